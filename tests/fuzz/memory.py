"""Files and folders in memory, as far as readers ask for them."""

from __future__ import annotations

from io import BytesIO
from typing import Any


class MemoryFile:
    """Stands for a :class:`pathlib.Path`; ``data`` None: there is none."""

    def __init__(self, name: str, data: bytes | None) -> None:
        self.name, self._data = name, data

    def __str__(self) -> str:
        return self.name

    def exists(self) -> bool:
        return self._data is not None

    def glob(self, pattern: str) -> list[MemoryFile]:
        """It is no folder."""
        return []

    def read_bytes(self) -> bytes:
        assert self._data is not None
        return self._data

    def open(self, mode: str) -> BytesIO:
        assert mode == "rb"
        return BytesIO(self.read_bytes())

    def read_text(self, encoding: str = "utf-8") -> str:
        return self.read_bytes().decode(encoding)


class MemoryFolder:
    """A folder of such files, in a folder without files."""

    name = "folder"

    def __init__(self, **files: bytes) -> None:
        self._files = {name.replace("_", "."): MemoryFile(f"folder/{name.replace('_', '.')}", data) for name, data in files.items()}

    def __str__(self) -> str:
        return "folder"

    @property
    def parent(self) -> MemoryFolder:
        return MemoryFolder()

    def __truediv__(self, name: str) -> MemoryFile:
        return self._files.get(name) or MemoryFile(f"folder/{name}", None)


class Channel:
    """Stands for a socket: what a peer sends, in pieces."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = memoryview(data), 0

    def recv(self, size: int) -> bytes:
        part = bytes(self._data[self._at : self._at + size])
        self._at += len(part)
        return part

    def recv_into(self, buffer: Any, size: int = 0) -> int:
        part = self._data[self._at : self._at + min(size or len(buffer), len(buffer), 1000)]
        buffer[: len(part)] = part
        self._at += len(part)
        return len(part)
