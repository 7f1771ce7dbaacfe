"""The globals of a program, and its imports.

A program runs with imports of its own: the package ``Compiler`` is made of this one's modules, helpers lie next to the program (in
folders that it puts on ``sys.path``), and ``sys`` is a copy, so that several parties of one process, and runs after one another,
share nothing. Helpers are loaded anew for every run, but for those that cannot keep anything (:mod:`.stateless`); a program that itself
assigns to attributes could change even those, and has all of them anew.
"""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, TextIO

from keyquorum.model.plain import Json

from .context import Run, active, current
from .errors import SUBSET
from .facade import compiler_package, names_of
from .stateless import PURE, assigns, keep_names, looks_outside, stateless
from .tape import ends_recording

Stamp = tuple[int, int]
"""Time of the last change of a file, and its size."""


def stamp(path: str | Path) -> Stamp:
    """Tells another version of a file from this one."""
    stat = os.stat(path)
    return stat.st_mtime_ns, stat.st_size


@lru_cache(maxsize=256)
def _compiled(path: str, version: Stamp) -> CodeType:
    return compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)


@lru_cache(maxsize=1024)
def resolved(path: str) -> str:
    """The path of a program or helper without links. Files of programs are not moved while this process runs."""
    return os.path.realpath(path)


@lru_cache(maxsize=64)
def _added(path: tuple[str, ...], before: tuple[str, ...]) -> tuple[str, ...]:
    """The folders that a program put on its path."""
    return tuple(folder for folder in path if path.count(folder) > before.count(folder))


@dataclass(frozen=True)
class _Helper:
    """A module, whether it is kept for later runs, whether it and all helpers that it imported took nothing but functions from
    Python's library, and they all: path and version."""

    module: ModuleType
    kept: bool
    pure: bool
    files: tuple[tuple[str, Stamp], ...]


_kept: dict[tuple[str, tuple[str, ...], str], _Helper] = {}
"""Stateless helpers by path, folders of helpers, and kind of domain."""


class Namespace:
    """The globals of one run, and the modules that it imported."""

    def __init__(self, run: Run) -> None:
        self._kind = run.engine.protocol if run.engine.domain == "bits" else ""
        self._helpers: dict[str, _Helper] = {}
        self._all_anew = self._may_be_changed = False
        self._code: list[CodeType] = []
        self._files: dict[str, Stamp] = {}
        self._repeatable = True
        self._stamps: dict[str, Stamp] = {}
        self._loading: list[list[_Helper]] = []
        self.helper_files: list[str] = []
        self._original_path = tuple(sys.path)
        self._sys = ModuleType("sys")
        self._sys.__dict__.update(sys.__dict__, path=list(sys.path), argv=list(run.program.args))
        self.globals: Json = {"__builtins__": _BUILTINS, "program": run.program, **names_of(self._kind)}

    def execute(self, file: Path) -> None:
        """Runs the program of a file."""
        version = self._stamp(str(file))
        code = _compiled(str(file), version)
        self._code, self._files = [code], {str(file): version}
        self._all_anew = assigns(code)
        exec(code, self.globals)

    def repeatable(self) -> tuple[tuple[str, Stamp], ...] | None:
        """The files that this run executed, with their versions, if another run with the same arguments does the same as long as they
        stay; None if that is not certain."""
        sure = self._repeatable and not self._all_anew and all(helper.kept for helper in self._helpers.values())
        return tuple(self._files.items()) if sure and not any(looks_outside(code) for code in self._code) else None

    def clear(self) -> None:
        """Forgets all variables of the program and its helpers. Functions and their globals hold each other, so without this shares would
        stay until Python looks for cycles."""
        if self._may_be_changed:
            used = {id(helper) for helper in self._helpers.values()}
            for key in [key for key, helper in _kept.items() if id(helper) in used]:
                _kept.pop(key, None)
        for helper in self._helpers.values():
            if not helper.kept:
                helper.module.__dict__.clear()
        self._helpers.clear()
        self.globals.clear()

    def import_module(
        self, name: str, namespace: Mapping[str, object] | None, local: Mapping[str, object] | None, fromlist: Sequence[str] | None, level: int
    ) -> ModuleType:
        """What ``import`` does in a program or helper."""
        if level:
            raise ImportError("programs and helpers import by plain names")
        top = name.split(".")[0]
        if top == "Compiler":
            modules = compiler_package(self._kind)
            module = modules.get(name)
            if module is None:
                raise ImportError(f"{name} is {SUBSET}", name=name)
            for item in fromlist or ():
                if item != "*" and not hasattr(module, item):
                    raise ImportError(f"{name}.{item} is {SUBSET}", name=name)
            return module if fromlist else modules["Compiler"]
        if name == "sys":
            return self._sys
        if top in ("random", "secrets"):
            raise ImportError(f"{top}: every party would draw other numbers: use get_random, inputs or arguments", name=top)
        helper = self._helpers.get(name) or self._load(name)
        if helper is not None:
            for inside in self._loading:
                inside.append(helper)
            return helper.module
        self._repeatable = self._repeatable and top in PURE
        return builtins.__import__(name, namespace, local, fromlist, level)

    def _load(self, name: str) -> _Helper | None:
        """A helper from a folder that the program added to its path."""
        folders = _added(tuple(self._sys.path), self._original_path)
        file = next((f for f in (f"{folder}/{name}.py" for folder in folders) if os.path.isfile(f)), None)
        if file is None:
            return None
        file = resolved(file)
        key = (file, folders, self._kind)
        helper = None if self._all_anew else _kept.get(key)
        if helper is None or not self._unchanged(helper):
            helper = self._execute(name, file)
            if helper.kept:
                _kept[key] = helper
        self._helpers[name] = helper
        self.helper_files += [path for path, _ in helper.files]
        self._repeatable = self._repeatable and helper.pure
        self._files.update(helper.files)
        self._code += [_compiled(path, version) for path, version in helper.files]
        return helper

    def _unchanged(self, helper: _Helper) -> bool:
        try:
            return all(self._stamp(path) == version for path, version in helper.files)
        except OSError:  # one of its files is gone
            return False

    def _stamp(self, path: str) -> Stamp:
        version = self._stamps.get(path)
        if version is None:
            version = self._stamps[path] = stamp(path)
        return version

    def _execute(self, name: str, file: str) -> _Helper:
        module, version = ModuleType(name), self._stamp(file)
        imported: list[_Helper] = []
        module.__dict__.update(__file__=file, __builtins__=_BUILTINS)
        self._helpers[name] = _Helper(module, False, True, ())  # helpers may import each other in a circle
        self.helper_files.append(file)
        self._loading.append(imported)
        watched = _WatchedRun(current())
        outer, self._repeatable = self._repeatable, True
        try:
            with active(watched):  # type: ignore[arg-type]
                exec(_compiled(file, version), module.__dict__)
        finally:
            self._loading.pop()
            pure, self._repeatable = self._repeatable, outer
        files = dict([(file, version), *(entry for helper in imported for entry in helper.files)])
        kept = not self._all_anew and not watched.was_used and all(helper.kept for helper in imported) and stateless(module)
        if kept:
            keep_names(module)
        elif assigns(_compiled(file, version)):
            self._may_be_changed = True  # what is kept, by this helper
        return _Helper(module, kept, pure, tuple(files.items()))


class _WatchedRun:
    """Stands for the run while a helper is loaded: what the helper makes of the run's protocol, domain or arguments is for this run only."""

    def __init__(self, run: Run) -> None:
        self.__dict__.update(_run=run, was_used=False, namespace=run.namespace)

    def __getattr__(self, name: str) -> Any:
        self.__dict__["was_used"] = True
        return getattr(self._run, name)

    def __setattr__(self, name: str, value: object) -> None:
        self.__dict__["was_used"] = True
        setattr(self._run, name, value)


def _import(name: str, namespace: object = None, local: object = None, fromlist: object = (), level: int = 0) -> ModuleType:
    module: ModuleType = current().namespace.import_module(name, namespace, local, fromlist, level)
    return module


def _print(*args: object, sep: str = " ", end: str = "\n", file: TextIO | None = None, flush: bool = False) -> None:
    """Python's print: a compiler prints once, so only party 0 does."""
    run = current()
    text = (sep or " ").join(map(str, args)) + ("\n" if end is None else end)
    if file is not None:
        ends_recording(run.io, "print to a file")
        file.write(text)
    elif run.engine.party == 0:
        run.io.print(text)


_BUILTINS: Json = {**vars(builtins), "__import__": _import, "print": _print}
"""Those of all programs; what depends on the run asks for the current one."""


__all__ = ["Namespace", "Stamp", "resolved", "stamp"]
