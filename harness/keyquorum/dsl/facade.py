"""The names that a program sees, and its imports.

A program runs with imports of its own: the package ``Compiler`` is made of this one's modules, helpers next to the
program (folders that it puts on ``sys.path``) are loaded anew for every run, and ``sys`` is a copy, so that several
parties of one process, and runs after one another, share nothing.
"""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from . import binary, clear, containers, control, errors, library, memvalue, secret
from .base import is_constant, read
from .context import Run
from .errors import CompilerError

SUBSET = "outside the supported subset of the language (docs/pages/dsl.md)"

# -- Compiler.util ----------------------------------------------------------------------------------------------------


def _tree_reduce(function: Callable[[Any, Any], Any], sequence: Any) -> Any:
    """Combines neighbours until one value is left: logarithmic depth."""
    values = list(sequence)
    if not values:
        raise CompilerError("tree_reduce of nothing")
    while len(values) > 1:
        pairs = [function(values[i], values[i + 1]) for i in range(0, len(values) - 1, 2)]
        values = pairs + values[len(pairs) * 2 :]
    return values[0]


def _if_else(condition: Any, a: Any, b: Any) -> Any:
    condition = read(condition)
    if a is b:
        return a
    if isinstance(condition, (bool, int)):
        return a if condition else b
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return [_if_else(condition, x, y) for x, y in zip(a, b, strict=False)]
    return condition.if_else(a, b)


def _two_bits(name: str, constant: Callable[[int, int], int]) -> Callable[[Any, Any], Any]:
    def operation(a: Any, b: Any) -> Any:
        if is_constant(a):
            return constant(a, b) if is_constant(b) else getattr(b, name)(a)
        return getattr(a, name)(b)

    return operation


def _bit_not(a: Any, n: int) -> Any:
    return ~a & ((1 << n) - 1) if is_constant(a) else a.bit_not()


def _bit_decompose(a: Any, bits: int | None = None) -> Any:
    if is_constant(a):
        return [(a >> i) & 1 for i in range(max(1, a.bit_length()) if bits is None else bits)]
    return a.bit_decompose(bits)


def _bit_compose(bits: Any) -> Any:
    bits = list(bits)
    if not bits:
        return 0
    if hasattr(bits[0], "bit_compose"):
        return bits[0].bit_compose(bits)
    return sum(b << i for i, b in enumerate(bits))


def _reveal(x: Any) -> Any:
    if isinstance(x, str):
        return x
    if hasattr(x, "reveal"):
        return x.reveal()
    return [_reveal(y) for y in x] if isinstance(x, (list, tuple)) else x


_UTIL: dict[str, Any] = {
    "tree_reduce": _tree_reduce,
    "if_else": _if_else,
    "bit_xor": _two_bits("bit_xor", lambda a, b: a ^ b),
    "bit_and": _two_bits("bit_and", lambda a, b: a & b),
    "bit_not": _bit_not,
    "bit_decompose": _bit_decompose,
    "bit_compose": _bit_compose,
    "reveal": _reveal,
    "is_constant": is_constant,
    "is_zero": lambda x: is_constant(x) and x == 0,
    "is_one": lambda x: is_constant(x) and x == 1,
    "log2": lambda x: (x - 1).bit_length(),
    "tuplify": lambda x: tuple(x) if isinstance(x, (list, tuple)) else (x,),
    "untuplify": lambda x: x[0] if len(x) == 1 else x,
    "max": lambda x, y=None: _tree_reduce(_larger, x) if y is None else _larger(x, y),
    "min": lambda x, y=None: _tree_reduce(_smaller, x) if y is None else _smaller(x, y),
}


def _larger(x: Any, y: Any) -> Any:
    return _if_else(x > y, x, y)


def _smaller(x: Any, y: Any) -> Any:
    return _if_else(x < y, x, y)


# -- the other modules ------------------------------------------------------------------------------------------------

_TYPES: dict[str, Any] = {
    "sint": secret.sint,
    "sintbit": secret.sintbit,
    "personal": secret.personal,
    "cint": clear.cint,
    "regint": clear.regint,
    "localint": clear.localint,
    "Array": containers.Array,
    "Matrix": containers.Matrix,
    "MultiArray": containers.MultiArray,
    "SubMultiArray": containers.SubMultiArray,
    "MemValue": memvalue.MemValue,
}
_GC_TYPES: dict[str, Any] = {
    "sbits": binary.sbits,
    "sbit": binary.sbit,
    "sbitvec": binary.sbitvec,
    "cbits": binary.cbits,
}
_INSTRUCTIONS: dict[str, Any] = {"fixinput": library.fixinput, "pubinput": library.pubinput}
_ERRORS: dict[str, Any] = {"CompilerError": errors.CompilerError, "VectorMismatch": errors.VectorMismatch}
_LIBRARY: dict[str, Any] = {
    name: getattr(module, name)
    for module, names in (
        (
            control,
            "for_range for_range_opt for_range_multithread while_do if_ if_e else_ function_block break_point "
            "start_timer stop_timer",
        ),
        (
            library,
            "print_ln print_str print_ln_to crash runtime_error runtime_error_if get_number_of_players get_player_id",
        ),
    )
    for name in names.split()
} | {"tree_reduce": _tree_reduce}


def _module(name: str, content: Mapping[str, Any]) -> ModuleType:
    module = ModuleType(name)
    module.__dict__.update(content)

    def missing(attribute: str) -> Any:
        raise AttributeError(f"{name}.{attribute} is {SUBSET}")

    module.__dict__["__getattr__"] = missing
    return module


class _NeedsArithmetic:
    """Stands for a type of arithmetic values where there are bits alone."""

    def __init__(self, name: str, protocol: str) -> None:
        self.__name, self.__protocol = name, protocol

    def __refused(self) -> CompilerError:
        return CompilerError(
            f"{self.__protocol} computes on bits alone, {self.__name} needs an arithmetic domain: use sbits, or semi2k or semi"
        )

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise self.__refused()

    def __getattr__(self, attribute: str) -> Any:
        raise self.__refused()


_ARITHMETIC_TYPES = ("sint", "sintbit", "personal", "cint")


def _types(run: Run) -> dict[str, Any]:
    """The types that there are on a run's domain."""
    if run.engine.domain != "bits":
        return _TYPES
    return _TYPES | {name: _NeedsArithmetic(name, run.engine.protocol) for name in _ARITHMETIC_TYPES}


def _compiler_package(program: Any, types: Mapping[str, Any]) -> dict[str, ModuleType]:
    shared = {"program": program}
    modules = {
        "Compiler.types": _module("Compiler.types", {**types, **_INSTRUCTIONS, **_ERRORS, **shared}),
        "Compiler.library": _module("Compiler.library", {**_LIBRARY, **types, **_INSTRUCTIONS, **_ERRORS}),
        "Compiler.GC.types": _module("Compiler.GC.types", _GC_TYPES | _ERRORS),
        "Compiler.instructions": _module("Compiler.instructions", _INSTRUCTIONS | _ERRORS | shared),
        "Compiler.util": _module("Compiler.util", _UTIL | _ERRORS),
        "Compiler.exceptions": _module("Compiler.exceptions", _ERRORS),
    }
    modules["Compiler.GC"] = _module("Compiler.GC", {"types": modules["Compiler.GC.types"]})
    top = {name.split(".")[1]: module for name, module in modules.items() if name.count(".") == 1}
    modules["Compiler"] = _module("Compiler", top)
    for module in modules.values():
        module.__dict__["__path__"] = []
    return modules


# -- imports ----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _compiled(path: str, stamp: int, size: int) -> CodeType:
    return compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)


def compiled(path: str | Path) -> CodeType:
    """The code of a program or helper."""
    stat = os.stat(path)
    return _compiled(str(path), stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=1024)
def resolved(path: str) -> str:
    """The path of a program or helper without links. Files of programs are not moved while this process runs."""
    return os.path.realpath(path)


class Namespace:
    """The globals of one run, and the modules that it imported."""

    def __init__(self, run: Run) -> None:
        types = _types(run)
        self._modules = _compiler_package(run.program, types)
        self._helpers: dict[str, ModuleType] = {}
        self.helper_files: list[str] = []
        self._original_path = list(sys.path)
        self._sys = ModuleType("sys")
        self._sys.__dict__.update(sys.__dict__)
        self._sys.__dict__["path"] = list(sys.path)
        self._sys.__dict__["argv"] = list(run.program.args)
        self._builtins = dict(vars(builtins))
        self._builtins["__import__"] = self._import
        self._builtins["print"] = lambda *args, **kwargs: _print(run, *args, **kwargs)
        self.globals: dict[str, Any] = {"__builtins__": self._builtins, "program": run.program}
        for names in (types, _GC_TYPES, _INSTRUCTIONS, _LIBRARY, _ERRORS):
            self.globals.update(names)

    def clear(self) -> None:
        """Forgets all variables of the program and its helpers. Functions and their globals hold each other, so without this shares would
        stay until Python looks for cycles."""
        for module in self._helpers.values():
            module.__dict__.clear()
        self.globals.clear()
        self._builtins.clear()  # among them an import that leads back here, and a print that holds the run
        self._modules.clear()

    def _import(
        self, name: str, namespace: Any = None, local: Any = None, fromlist: Any = (), level: int = 0
    ) -> ModuleType:
        if level:
            raise ImportError("programs and helpers import by plain names")
        top = name.split(".")[0]
        if top == "Compiler":
            module = self._modules.get(name)
            if module is None:
                raise ImportError(f"{name} is {SUBSET}", name=name)
            for item in fromlist or ():
                if item != "*" and not hasattr(module, item):
                    raise ImportError(f"{name}.{item} is {SUBSET}", name=name)
            return module if fromlist else self._modules["Compiler"]
        if name == "sys":
            return self._sys
        if top in ("random", "secrets"):
            raise ImportError(
                f"{top}: every party would draw other numbers: use get_random, inputs or arguments", name=top
            )
        helper = self._helpers.get(name) or self._load(name)
        if helper is not None:
            return helper
        return builtins.__import__(name, namespace, local, fromlist, level)

    def _load(self, name: str) -> ModuleType | None:
        """A helper from a folder that the program added to its path."""
        for folder in self._sys.path:
            if self._sys.path.count(folder) <= self._original_path.count(folder):
                continue
            path = os.path.join(folder, f"{name}.py")
            if not os.path.isfile(path):
                continue
            path = resolved(path)
            module = ModuleType(name)
            module.__dict__.update(__file__=path, __builtins__=self._builtins)
            self._helpers[name] = module
            self.helper_files.append(path)
            exec(compiled(path), module.__dict__)
            return module
        return None


def _print(run: Run, *args: Any, sep: str = " ", end: str = "\n", file: Any = None, flush: bool = False) -> None:
    """Python's print: a compiler prints once, so only party 0 does."""
    text = (sep or " ").join(map(str, args)) + ("\n" if end is None else end)
    if file is not None:
        file.write(text)
    elif run.engine.party == 0:
        run.io.print(text)


__all__ = ["SUBSET", "Namespace", "compiled"]
