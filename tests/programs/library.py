"""The modules of Programs/Library without an engine: for their plain-Python parts and for circuits on counting bits."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

from .costs import PROGRAMS

LIBRARY = PROGRAMS.parent / "Library"
_NAMES = ("Compiler.GC.types", "Compiler.types", "Compiler.library", "Compiler.GC", "Compiler")


@contextmanager
def library(*modules: str) -> Iterator[SimpleNamespace]:
    """Fresh imports of some modules, over an empty stand-in for the DSL."""
    own = {path.stem for path in LIBRARY.glob("*.py")}
    saved = {name: sys.modules.pop(name) for name in [*own, *_NAMES] if name in sys.modules}
    sys.path.insert(0, str(LIBRARY))
    try:
        for name in _NAMES:
            stand_in: Any = ModuleType(name)
            stand_in.__getattr__ = lambda _: None
            sys.modules[name] = stand_in
        yield SimpleNamespace(**{name: importlib.import_module(name) for name in modules})
    finally:
        sys.path.remove(str(LIBRARY))
        for name in [*own, *_NAMES]:
            sys.modules.pop(name, None)
        sys.modules.update(saved)


class Row:
    """A secret bit that knows its depth; `ands` counts all ANDs of secret bits."""

    ands = 0

    def __init__(self, value: int, depth: int = 0, public: bool = False) -> None:
        self.value, self.depth, self.public = value, depth, public

    def __and__(self, other: Row) -> Row:
        local = self.public or other.public
        Row.ands += not local
        return Row(self.value & other.value, max(self.depth, other.depth) + (not local), self.public and other.public)

    def __xor__(self, other: Row) -> Row:
        return Row(self.value ^ other.value, max(self.depth, other.depth), self.public and other.public)

    def __invert__(self) -> Row:
        return Row(1 - self.value, self.depth, self.public)


def rows(value: int, count: int, public: bool = False) -> list[Row]:
    """Digits, least significant first."""
    return [Row((value >> i) & 1, 0, public) for i in range(count)]


def number(digits: list[Row], first: int = 0) -> int:
    return sum(row.value << i for i, row in enumerate(digits, first))


class Split:
    """A number as summands: what ring_bits takes."""

    def __init__(self, *summands: int) -> None:
        self.summands = summands

    def split_to_n_summands(self, length: int, n: int) -> list[list[Row]]:
        assert n == len(self.summands)
        return [[Row((x >> i) & 1) for x in self.summands] for i in range(length)]
