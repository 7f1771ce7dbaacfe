"""Which helpers of programs can serve several runs: those that keep nothing from one run to the next.

A helper may be kept if all that could change in it can be seen: it has nothing but functions, classes, numbers, texts and tuples of them, and
names of ``Compiler``, of Python's library and of other such helpers. What is not understood here is taken for state. A run has the helpers that
it uses for itself (:class:`Shelf`), and when it ends they are compared with what they were: global names, attributes of classes and functions,
defaults, and names of the functions around a function. If anything is another object now, they are not used again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from operator import is_
from types import BuiltinFunctionType, FunctionType, GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any

from keyquorum.model.plain import Json

from .facade import CurrentProgram, Package, compiler_package
from .outside import Library

_OF_A_MODULE = {"__name__", "__doc__", "__package__", "__loader__", "__spec__", "__file__", "__builtins__", "__annotations__"}


class Snapshot:
    """What functions, classes and modules were, to be compared with what they are. Programs end often, so this is quick: it looks at identities."""

    def __init__(self) -> None:
        self._names: list[tuple[Mapping[str, Any], tuple[str, ...], tuple[Any, ...]]] = []
        self._functions: list[tuple[FunctionType, Any, Any, Any, Json, int]] = []
        self._cells: list[tuple[Any, Any]] = []

    def add_names(self, names: Mapping[str, Any]) -> None:
        """Remembers the names of a module or class, with their values: a view of them that changes with them."""
        self._names.append((names, tuple(names), tuple(names.values())))

    def add_function(self, function: FunctionType) -> None:
        """Remembers a function: its code, defaults, attributes, and the names of the functions around it."""
        by_name, own = function.__kwdefaults__, function.__dict__
        self._functions.append((function, function.__code__, function.__defaults__, by_name, own, len(own)))
        for names in (by_name, own):
            if names:
                self.add_names(names)
        self._cells += [(cell, _content(cell)) for cell in function.__closure__ or ()]

    def unchanged(self) -> bool:
        """Whether everything is the same object as it was."""
        for names, keys, values in self._names:
            if len(names) != len(keys) or not all(map(is_, names.values(), values)) or not all(map(is_, names, keys)):
                return False
        for function, code, defaults, by_name, own, size in self._functions:
            if function.__code__ is not code or function.__defaults__ is not defaults or function.__kwdefaults__ is not by_name:
                return False
            if function.__dict__ is not own or len(own) != size:
                return False
        return all(_content(cell) is content for cell, content in self._cells)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return Ellipsis  # an empty cell, which does not last


@lru_cache(maxsize=16)
def compiler_snapshot(kind: str) -> Snapshot:
    """What the package ``Compiler`` was before the first program of this process ran."""
    snapshot, seen = Snapshot(), set[int]()
    for module in compiler_package(kind).values():
        snapshot.add_names(vars(module))
        for value in vars(module).values():
            for each in value.__mro__ if isinstance(value, type) else [value]:
                if id(each) in seen or not str(getattr(each, "__module__", "")).startswith("keyquorum."):
                    continue
                seen.add(id(each))
                if isinstance(each, FunctionType):
                    snapshot.add_function(each)
                elif isinstance(each, type):
                    snapshot.add_names(vars(each))
    return snapshot


def examined(module: ModuleType, kept: dict[int, object]) -> Snapshot | None:
    """What a module that was just executed is, if all that could change in it can be seen; None otherwise. ``kept``: helpers that it may use, and
    their classes and names, by identity."""
    examination = _Examination(module.__dict__, kept)
    return examination.snapshot if examination.passed(module) else None


class _Examination:
    """Of one module, given by its names. What is under examination counts as lasting: functions and classes may name each other."""

    def __init__(self, names: Json, kept: dict[int, object]) -> None:
        self._names, self._kept = names, kept
        self._seen: set[int] = set()
        self.snapshot = Snapshot()

    def passed(self, module: ModuleType) -> bool:
        self.snapshot.add_names(module.__dict__)
        return all(self._lasts(value) for name, value in self._names.items() if name not in _OF_A_MODULE)

    def _lasts(self, value: object) -> bool:
        if value is None or value.__class__ in (bool, int, float, str, bytes) or isinstance(value, CurrentProgram):
            return True
        if id(value) in self._seen or id(value) in self._kept:
            return True
        if value.__class__ in (tuple, frozenset):
            return all(self._lasts(item) for item in value)
        if isinstance(value, BuiltinFunctionType):
            return value.__self__ is None or isinstance(value.__self__, ModuleType)
        if isinstance(value, ModuleType):
            return isinstance(value, (Package, Library)) or sys.modules.get(value.__name__) is value
        if isinstance(value, FunctionType):
            return self._function_lasts(value)
        return isinstance(value, type) and self._class_lasts(value)

    def _function_lasts(self, function: FunctionType) -> bool:
        if function.__globals__ is not self._names:
            home = getattr(sys.modules.get(function.__module__), "__dict__", None)
            return id(function.__globals__) in self._kept or home is function.__globals__
        self._seen.add(id(function))
        self.snapshot.add_function(function)
        held = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values(), *function.__dict__.values()]
        cells = [_content(cell) for cell in function.__closure__ or ()]
        return all(self._lasts(value) for value in [*held, *cells])

    def _class_lasts(self, value: type) -> bool:
        known = sys.modules.get(value.__module__)
        if known is not None and getattr(known, value.__name__, None) is value:
            return True
        self._seen.add(id(value))
        self.snapshot.add_names(vars(value))
        members = all(self._member_lasts(member) for member in vars(value).values())
        return type(value) is type and members and all(self._lasts(base) for base in value.__bases__)

    def _member_lasts(self, member: object) -> bool:
        if isinstance(member, (GetSetDescriptorType, MemberDescriptorType)):
            return True
        if isinstance(member, (staticmethod, classmethod)):
            return self._lasts(member.__func__)
        if isinstance(member, property):
            return all(f is None or (isinstance(f, FunctionType) and self._lasts(f)) for f in (member.fget, member.fset, member.fdel))
        return self._lasts(member)


Stamp = tuple[int, int]
"""Time of the last change of a file, and its size."""


@dataclass(frozen=True)
class Helper:
    """A module that a program imported. ``snapshot``: what it was, if it may serve other runs; ``files``: it and all helpers that it imported, with
    their versions; ``imported``: these helpers."""

    module: ModuleType
    snapshot: Snapshot | None
    files: tuple[tuple[str, Stamp], ...] = ()
    imported: tuple[Helper, ...] = ()


def with_imported(helpers: Iterable[Helper]) -> list[Helper]:
    """Helpers and all that they imported, each once."""
    return list({id(each): each for helper in helpers for each in (helper, *helper.imported)}.values())


Key = tuple[str, tuple[str, ...]]
"""A helper's file, and the folders of helpers."""


class Shelf:
    """Helpers that one run uses at a time, by file and folders."""

    def __init__(self) -> None:
        self.helpers: dict[Key, Helper] = {}
        self.objects: dict[int, object] = {}
        """The helpers' modules, names and classes, by identity; held, so that no other object takes their place."""

    def put(self, key: Key, helper: Helper) -> None:
        """Keeps a helper for later runs."""
        self.helpers[key] = helper
        names = helper.module.__dict__
        classes = [v for v in names.values() if isinstance(v, type)]
        self.objects.update({id(each): each for each in (helper.module, names, *classes)})


_free: dict[str, list[Shelf]] = {}
"""Shelves that no run uses, by kind of domain."""


def take_shelf(kind: str) -> Shelf:
    """A shelf for one run."""
    try:
        return _free.setdefault(kind, []).pop()
    except IndexError:
        return Shelf()


def give_back(kind: str, shelf: Shelf) -> None:
    """A run has ended that changed nothing on its shelf."""
    _free[kind].append(shelf)


def kept_helpers() -> list[tuple[str, Helper]]:
    """All helpers that no run uses now, with their files."""
    return [(path, helper) for shelves in list(_free.values()) for shelf in list(shelves) for (path, _), helper in shelf.helpers.items()]
