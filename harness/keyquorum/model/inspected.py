"""Kinds of files that `inspect` knows, and the file that it examines."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from keyquorum.model.errors import KeyFileError
from keyquorum.model.plain import Json, json_loads, toml_loads

HEAD = 64
LARGEST_TEXT = 1 << 26
"""Most bytes of a file that is read as text."""
STRUCTURE = "structure"
"""The check of a format that has no hash."""


@dataclass(frozen=True)
class Report:
    """A result of `inspect`. ``lines``: for people; ``checked``: what was verified; ``details``: the same as plain data."""

    lines: list[str]
    checked: str = STRUCTURE
    details: Json = field(default_factory=dict)
    kind: str = ""


class Candidate:
    """A file or folder, which is read on demand."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.is_folder = path.is_dir()

    @cached_property
    def head(self) -> bytes:
        """The first bytes of a file."""
        if self.is_folder:
            return b""
        return self.start(HEAD)

    def start(self, count: int) -> bytes:
        """The first ``count`` bytes of a file."""
        with self.path.open("rb") as file:
            return file.read(count)

    @cached_property
    def data(self) -> bytes:
        """All of a file."""
        return self.path.read_bytes()

    @cached_property
    def text(self) -> str | None:
        """The file as text; None if it is not text."""
        if self.is_folder or self.path.stat().st_size > LARGEST_TEXT or b"\0" in self.head:
            return None
        try:
            return self.data.decode("utf-8-sig")
        except UnicodeDecodeError:
            return None

    @cached_property
    def json(self) -> Any:
        """The file as JSON; None if it is not JSON."""
        if self.text is None or self.head[:1] not in (b"{", b"["):
            return None
        try:
            return json_loads(self.text)
        except ValueError:
            return None

    @cached_property
    def toml(self) -> Json | None:
        """The file as TOML; None if it is not TOML, or its name does not end in .toml."""
        if self.text is None or self.path.suffix != ".toml":
            return None
        try:
            return toml_loads(self.text)
        except ValueError:
            return None

    def has(self, *names: str) -> bool:
        """Whether a file is a JSON object with these entries."""
        return isinstance(self.json, dict) and set(names) <= set(self.json)

    def named(self, *names: str) -> bool:
        """Whether a file has one of these names."""
        return not self.is_folder and self.path.name in names

    def beside(self, name: str) -> bool:
        """Whether a file of this name lies beside this one."""
        return (self.path.parent / name).is_file()

    def holds(self, name: str) -> bool:
        """Whether a folder has a file of this name."""
        return self.is_folder and (self.path / name).is_file()


@dataclass(frozen=True)
class Kind:
    """A kind of file or folder. ``writers``: modules of the package that write it, or have it written. ``describe``: raises a KeyQuorumError, one
    line with the remedy, for a damaged file."""

    name: str
    recognise: Callable[[Candidate], bool]
    describe: Callable[[Candidate], Report]
    writers: tuple[str, ...]


def require(condition: object, path: Path, cure: str) -> None:
    """Refuses a damaged file."""
    if not condition:
        raise KeyFileError(f"{path}: damaged: {cure}")


def openness(path: Path) -> list[str]:
    """A line if others may read a secret file."""
    return [f"WARNING: others may read it: chmod 600 {path}"] if path.stat().st_mode & 0o077 else []


def sha256_of(path: Path, end: int | None = None) -> bytes:
    """SHA-256 of the first ``end`` bytes of a file (None: all), a piece at a time."""
    state, left = hashlib.sha256(), path.stat().st_size if end is None else end
    with path.open("rb") as file:
        while left > 0 and (piece := file.read(min(left, 1 << 20))):
            state.update(piece)
            left -= len(piece)
    return state.digest()
