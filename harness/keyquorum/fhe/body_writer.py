"""Files of seeded keys, of which the bodies come in pieces: the form of :func:`.lwe.pack`, without all of it in memory."""

from __future__ import annotations

import hashlib
import json
from typing import BinaryIO

import numpy as np

from keyquorum.model.errors import KeyFileError
from keyquorum.model.plain import Json

from .lwe import Words


def packed(words: Words, size: int = 8) -> bytes:
    """The lowest ``size`` bytes of each word, little endian."""
    rows = words.astype("<u8", copy=False).view(np.uint8).reshape(-1, 8)
    return rows[:, :size].tobytes()


def unpacked(data: bytes | bytearray | memoryview, size: int = 8) -> Words:
    """Inverse of :func:`packed`."""
    rows = np.zeros((len(data) // size, 8), dtype=np.uint8)
    rows[:, :size] = np.frombuffer(data, dtype=np.uint8).reshape(-1, size)
    return rows.view("<u8").reshape(-1).astype(np.uint64, copy=False)


class BodyWriter:
    """Writes a file in pieces, and ends it with its checksum. ``count``: words of the bodies; ``size``: bytes of a word."""

    def __init__(self, file: BinaryIO, magic: bytes, header: Json, count: int, size: int = 8) -> None:
        text = json.dumps(header).encode()
        self._file, self._hash, self._left, self._size = file, hashlib.sha256(), count, size
        self._put(magic + len(text).to_bytes(4, "little") + text)

    def _put(self, data: bytes) -> None:
        self._hash.update(data)
        self._file.write(data)

    def write(self, bodies: Words) -> None:
        """The next words of the bodies."""
        self._left -= bodies.size
        self._put(packed(bodies, self._size))

    def finish(self) -> bytes:
        """Writes the checksum; returns it."""
        if self._left:
            raise KeyFileError(f"{self._left} words of the bodies are missing: please report it")
        digest = self._hash.digest()
        self._file.write(digest)
        return digest


__all__ = ["BodyWriter", "packed", "unpacked"]
