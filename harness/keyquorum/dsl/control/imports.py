"""The globals of a program, and its imports.

A program runs with imports of its own. The package ``Compiler`` consists of modules of this package. Helpers are in the folder of the program, and in
folders that it adds to ``sys.path``. ``sys`` and Python's library are stand-ins (:mod:`.outside`). So the parties of one process, and consecutive
runs, share no state. Helpers are loaded anew for every run, except stateless ones (:mod:`.stateless`).
"""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, TextIO

from keyquorum.model.plain import Json

from ..context import Run, active, current
from ..errors import SUBSET
from .facade import compiler_package, names_of
from .outside import BUILTINS, LIBRARY, System, note_unrepeatable
from .stateless import Helper, HelperCache, Snapshot, Stamp, compiler_snapshot, examined, return_cache, take_cache, with_imported

_BARE = {
    "util", "library", "instructions", "instructions_base", "comparison", "floatingpoint", "mpc_math", "ml", "oram", "path_oram", "sqrt_oram",
    "circuit_oram", "dijkstra", "gs", "circuit", "sorting", "permutation", "decision_tree", "non_linear",
}  # fmt: skip
"""Modules of ``Compiler`` that programs also import without the package's name. Those that this engine does not have are refused."""


def stamp(path: str | Path) -> Stamp:
    """The version of a file: time of its last change and size."""
    stat = os.stat(path)
    return stat.st_mtime_ns, stat.st_size


@lru_cache(maxsize=256)
def _compiled(path: str, version: Stamp) -> CodeType:
    return compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)


@lru_cache(maxsize=1024)
def resolved(path: str) -> str:
    """The path of a program or helper without links; cached, since files of programs are not moved while this process runs."""
    return os.path.realpath(path)


@lru_cache(maxsize=64)
def _added(path: tuple[str, ...], before: tuple[str, ...]) -> tuple[str, ...]:
    """The folders that a program added to its path."""
    return tuple(folder for folder in path if path.count(folder) > before.count(folder))


class Namespace:
    """The globals of one run, and the modules that it imported. ``outside``: the sources, beside its arguments and inputs, that the program used."""

    def __init__(self, run: Run) -> None:
        self._kind = run.engine.protocol if run.engine.domain == "bits" else ""
        self._compiler = compiler_snapshot(self._kind)
        self._cache: HelperCache | None = None
        self._helpers: dict[str, Helper] = {}
        self._files: dict[str, Stamp] = {}
        self.outside: list[str] = []
        self._stamps: dict[str, Stamp] = {}
        self._loading: list[list[Helper]] = []
        self.helper_files: list[str] = []
        self._original_path = tuple(sys.path)
        self._sys = System(list(sys.path), list(run.program.args))
        self.globals: Json = {"__builtins__": _BUILTINS, "program": run.program, **names_of(self._kind)}

    def execute(self, file: Path) -> None:
        """Runs the program of a file."""
        version = self._stamp(str(file))
        self._files = {str(file): version}
        exec(_compiled(str(file), version), self.globals)

    def note_unrepeatable(self, what: str) -> None:
        """Notes that the program depends on more than its arguments and inputs. ``what``: on what."""
        self.outside.append(what)

    def repeatable(self) -> tuple[tuple[str, Stamp], ...] | None:
        """The files that this run executed, with their versions, if every run of these versions with the same arguments makes the same calls; None if
        that is not certain."""
        snapshots = [_built_in, self._compiler, *(helper.snapshot for helper in with_imported(self._helpers.values()))]
        sure = not self.outside and all(snapshot is not None and snapshot.unchanged() for snapshot in snapshots)
        return tuple(self._files.items()) if sure else None

    def clear(self) -> None:
        """Removes all variables of the program and its helpers. Functions and their globals reference each other, so without this, shares would stay
        in memory until the garbage collector runs."""
        cache, self._cache = self._cache, None
        snapshots = [helper.snapshot for helper in with_imported(self._helpers.values()) if helper.snapshot is not None]
        if cache is not None and all(snapshot.unchanged() for snapshot in snapshots):
            return_cache(self._kind, cache)
        for helper in self._helpers.values():
            if helper.snapshot is None:
                helper.module.__dict__.clear()
        self._helpers.clear()
        self.globals.clear()

    def import_module(
        self, name: str, namespace: Mapping[str, object] | None, local: Mapping[str, object] | None, fromlist: Sequence[str] | None, level: int
    ) -> ModuleType:
        """Implements ``import`` in a program or helper."""
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
        if top in _BARE and not self._is_helper(name):
            module = compiler_package(self._kind).get(f"Compiler.{name}")
            if module is None:
                raise ImportError(f"Compiler.{name} is {SUBSET}", name=name)
            return module
        if name == "sys":
            return self._sys
        if top in ("random", "secrets"):
            refused = _Refused(top)
            return refused if not fromlist else refused.refuse()
        helper = self._helpers.get(name) or self._load(name)
        if helper is not None:
            for inside in self._loading:
                inside.append(helper)
            return helper.module
        known = LIBRARY.get(name)
        if known is not None:
            return known if fromlist else LIBRARY[top]
        self.note_unrepeatable(f"import {name}")
        return builtins.__import__(name, namespace, local, fromlist, level)

    def _is_helper(self, name: str) -> bool:
        folders = _added(tuple(self._sys.path), self._original_path)
        return any(os.path.isfile(f"{folder}/{name}.py") for folder in folders)

    def _load(self, name: str) -> Helper | None:
        """A helper from a folder that the program added to its path."""
        folders = _added(tuple(self._sys.path), self._original_path)
        file = next((f for f in (f"{folder}/{name}.py" for folder in folders) if os.path.isfile(f)), None)
        if file is None:
            return None
        file = resolved(file)
        if self._cache is None:
            self._cache = take_cache(self._kind)
        helper = self._cache.helpers.get((file, folders))
        if helper is None or not self._is_unchanged(helper):
            helper = self._execute(name, file, self._cache)
            if helper.snapshot is not None:
                self._cache.put((file, folders), helper)
        self._helpers[name] = helper
        self.helper_files += [path for path, _ in helper.files]
        self._files.update(helper.files)
        return helper

    def _is_unchanged(self, helper: Helper) -> bool:
        try:
            return all(self._stamp(path) == version for path, version in helper.files)
        except OSError:  # one of its files was removed
            return False

    def _stamp(self, path: str) -> Stamp:
        version = self._stamps.get(path)
        if version is None:
            version = self._stamps[path] = stamp(path)
        return version

    def _execute(self, name: str, file: str, cache: HelperCache) -> Helper:
        module, version = ModuleType(name), self._stamp(file)
        imported: list[Helper] = []
        module.__dict__.update(__file__=file, __builtins__=_BUILTINS)
        self._helpers[name] = Helper(module, None)  # helpers may import each other in a circle
        self.helper_files.append(file)
        self._loading.append(imported)
        watched, before = _WatchedRun(current()), len(self.outside)
        try:
            with active(watched):  # type: ignore[arg-type]
                exec(_compiled(file, version), module.__dict__)
        finally:
            self._loading.pop()
        files = dict([(file, version), *(entry for helper in imported for entry in helper.files)])
        # A helper that depends on the run, or on a source outside it, is for this run only.
        stateless = not watched.was_used and len(self.outside) == before and all(helper.snapshot is not None for helper in imported)
        return Helper(module, examined(module, cache.objects) if stateless else None, tuple(files.items()), tuple(imported))


class _Refused(ModuleType):
    """A module that may be imported, but not used."""

    def refuse(self) -> Any:
        """Raises the error."""
        raise ImportError(f"{self.__name__}: every party would draw other numbers: use get_random, inputs or arguments", name=self.__name__)

    def __getattr__(self, name: str) -> Any:
        return self.refuse()


class _WatchedRun:
    """Stands for the run while a helper is loaded, and notes whether the helper uses the run's protocol, domain or arguments."""

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
    """Python's print, at party 0 only: MP-SPDZ's compiler prints once."""
    run = current()
    text = (sep or " ").join(map(str, args)) + ("\n" if end is None else end)
    if file is not None:
        note_unrepeatable("print to a file")
        file.write(text)
    elif run.engine.party == 0:
        run.io.print(text)


_BUILTINS: Json = {**BUILTINS, "__import__": _import, "print": _print}
"""The built-in names of all programs. Those that depend on the run use the current one."""
_built_in = Snapshot()
_built_in.add_names(_BUILTINS)


__all__ = ["Namespace", "Stamp", "resolved", "stamp"]
