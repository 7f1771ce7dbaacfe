"""Helpers of programs that several runs can use: those without state.

A helper is stateless if all its parts that could change can be checked: it has only functions, classes, numbers, texts and tuples of them, and
names of ``Compiler``, of Python's library and of other such helpers. Every other object counts as state. One run at a time uses a cache of
helpers (:class:`HelperCache`). When the run ends, the helpers are compared with their snapshots: global names, attributes of classes and functions,
defaults, and closure cells of functions. If any of these is another object now, the cache is dropped.
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

_MODULE_NAMES = {"__name__", "__doc__", "__package__", "__loader__", "__spec__", "__file__", "__builtins__", "__annotations__"}


class Snapshot:
    """A snapshot of functions, classes and modules, to detect changes. The comparison is by identity, which is fast: it runs at the end of every
    program."""

    def __init__(self) -> None:
        self._names: list[tuple[Mapping[str, Any], tuple[str, ...], tuple[Any, ...]]] = []
        self._functions: list[tuple[FunctionType, Any, Any, Any, Json, int]] = []
        self._cells: list[tuple[Any, Any]] = []

    def add_names(self, names: Mapping[str, Any]) -> None:
        """Adds the names of a module or class with their values. ``names`` is the live mapping."""
        self._names.append((names, tuple(names), tuple(names.values())))

    def add_function(self, function: FunctionType) -> None:
        """Adds a function: its code, defaults, attributes and closure cells."""
        by_name, own = function.__kwdefaults__, function.__dict__
        self._functions.append((function, function.__code__, function.__defaults__, by_name, own, len(own)))
        for names in (by_name, own):
            if names:
                self.add_names(names)
        self._cells += [(cell, _content(cell)) for cell in function.__closure__ or ()]

    def unchanged(self) -> bool:
        """Whether all parts are still the same objects."""
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
        return Ellipsis  # an empty cell, which counts as state


@lru_cache(maxsize=16)
def compiler_snapshot(kind: str) -> Snapshot:
    """The snapshot of the package ``Compiler`` before the first program of this process ran."""
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
    """The snapshot of a module that was just executed, if it is stateless, else None. ``kept``: helpers that it may use, and their classes and names,
    by identity."""
    examination = _Examination(module.__dict__, kept)
    return examination.snapshot if examination.passed(module) else None


class _Examination:
    """The check of one module, given by its names. An object under examination counts as stateless: functions and classes may name one another."""

    def __init__(self, names: Json, kept: dict[int, object]) -> None:
        self._names, self._kept = names, kept
        self._seen: set[int] = set()
        self.snapshot = Snapshot()

    def passed(self, module: ModuleType) -> bool:
        self.snapshot.add_names(module.__dict__)
        return all(self._is_stateless(value) for name, value in self._names.items() if name not in _MODULE_NAMES)

    def _is_stateless(self, value: object) -> bool:
        if value is None or value.__class__ in (bool, int, float, str, bytes) or isinstance(value, CurrentProgram):
            return True
        if id(value) in self._seen or id(value) in self._kept:
            return True
        if value.__class__ in (tuple, frozenset):
            return all(self._is_stateless(item) for item in value)
        if isinstance(value, BuiltinFunctionType):
            return value.__self__ is None or isinstance(value.__self__, ModuleType)
        if isinstance(value, ModuleType):
            return isinstance(value, (Package, Library)) or sys.modules.get(value.__name__) is value
        if isinstance(value, FunctionType):
            return self._is_stateless_function(value)
        return isinstance(value, type) and self._is_stateless_class(value)

    def _is_stateless_function(self, function: FunctionType) -> bool:
        if function.__globals__ is not self._names:
            home = getattr(sys.modules.get(function.__module__), "__dict__", None)
            return id(function.__globals__) in self._kept or home is function.__globals__
        self._seen.add(id(function))
        self.snapshot.add_function(function)
        held = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values(), *function.__dict__.values()]
        cells = [_content(cell) for cell in function.__closure__ or ()]
        return all(self._is_stateless(value) for value in [*held, *cells])

    def _is_stateless_class(self, value: type) -> bool:
        known = sys.modules.get(value.__module__)
        if known is not None and getattr(known, value.__name__, None) is value:
            return True
        self._seen.add(id(value))
        self.snapshot.add_names(vars(value))
        members = all(self._is_stateless_member(member) for member in vars(value).values())
        return type(value) is type and members and all(self._is_stateless(base) for base in value.__bases__)

    def _is_stateless_member(self, member: object) -> bool:
        if isinstance(member, (GetSetDescriptorType, MemberDescriptorType)):
            return True
        if isinstance(member, (staticmethod, classmethod)):
            return self._is_stateless(member.__func__)
        if isinstance(member, property):
            return all(f is None or (isinstance(f, FunctionType) and self._is_stateless(f)) for f in (member.fget, member.fset, member.fdel))
        return self._is_stateless(member)


Stamp = tuple[int, int]
"""Time of the last change of a file, and its size."""


@dataclass(frozen=True)
class Helper:
    """A module that a program imported. ``snapshot``: its snapshot, if it is stateless; ``files``: the files of it and of all helpers that it
    imported, with their versions; ``imported``: these helpers."""

    module: ModuleType
    snapshot: Snapshot | None
    files: tuple[tuple[str, Stamp], ...] = ()
    imported: tuple[Helper, ...] = ()


def with_imported(helpers: Iterable[Helper]) -> list[Helper]:
    """Helpers and all helpers that they imported, each once."""
    return list({id(each): each for helper in helpers for each in (helper, *helper.imported)}.values())


Key = tuple[str, tuple[str, ...]]
"""A helper's file, and the folders of helpers."""


class HelperCache:
    """Stateless helpers, by file and folders. One run at a time uses a cache."""

    def __init__(self) -> None:
        self.helpers: dict[Key, Helper] = {}
        self.objects: dict[int, object] = {}
        """The helpers' modules, names and classes, by identity. The references keep the objects alive, so that no other object gets the same
        identity."""

    def put(self, key: Key, helper: Helper) -> None:
        """Adds a helper for later runs."""
        self.helpers[key] = helper
        names = helper.module.__dict__
        classes = [v for v in names.values() if isinstance(v, type)]
        self.objects.update({id(each): each for each in (helper.module, names, *classes)})


_free: dict[str, list[HelperCache]] = {}
"""Caches that no run uses, by kind of domain."""


def take_cache(kind: str) -> HelperCache:
    """A cache for one run."""
    try:
        return _free.setdefault(kind, []).pop()
    except IndexError:
        return HelperCache()


def return_cache(kind: str, cache: HelperCache) -> None:
    """Returns the cache of a run that has ended without changing its helpers."""
    _free[kind].append(cache)


def cached_helpers() -> list[tuple[str, Helper]]:
    """All helpers in caches that no run uses, with their files."""
    return [(path, helper) for caches in list(_free.values()) for cache in list(caches) for (path, _), helper in cache.helpers.items()]
