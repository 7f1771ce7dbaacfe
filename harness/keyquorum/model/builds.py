"""What two parties must have in common besides the version number: programs, parameter sets, and the code that runs between parties."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from keyquorum._engine import __version__

from .resources import resource_folder

CODE = ("backends", "dsl", "fhe", "model", "parties", "plans", "programs", "schemes", "serve", "sharing")
"""Folders of the package whose code decides what parties send. A difference elsewhere, as in a command, does no harm."""
SHOWN = 12


@cache
def build_text() -> str:
    """Version, and digests of programs with parameter sets and of the code: read once a process, in some 20 ms."""
    package = Path(__file__).resolve().parent.parent
    programs, sets = resource_folder("Programs"), resource_folder("params")
    shared = [*programs.glob("Source/*.mpc"), *programs.glob("Library/**/*.py"), *sets.glob("*.toml")]
    code = [path for name in CODE for path in (package / name).rglob("*.py")]
    return f"{__version__}, programs {_digest(shared)}, code {_digest(code)}"


def _digest(paths: Iterable[Path]) -> str:
    """Of names and contents. Folders above are not the same on every host."""
    state = hashlib.sha256()
    for name, path in sorted(("/".join(path.parts[-2:]), path) for path in paths):
        data = path.read_bytes()
        state.update(f"{name} {len(data)}\n".encode() + data)
    return state.hexdigest()[:SHOWN]


def build_entries() -> list[tuple[str, str]]:
    """The entry of a description that the parties compare when they connect: an error names it, with both values."""
    return [("version and programs (install the same everywhere)", build_text())]


__all__ = ["build_entries", "build_text"]
