"""SEAL's object headers, and reading of payloads that may be compressed (docs/pages/formats.md, SEAL's bytes).

No memory is allocated because a length in the data asks for it. Plain payloads are sliced. Compressed ones are inflated by the bytes that
the caller asks for, who knows the exact length of the next field.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Protocol

import zstandard

from .errors import DecompressionError, HeaderError, TruncatedError

MAGIC = 0xA15E
HEADER_BYTES = 16
VERSION = (4, 1)
"""The version that is written. SEAL 4.1 loads files of its own version alone, SEAL 4.4 those of 4.1 too."""
MODES = {0: "none", 1: "zlib", 2: "zstd"}

_HEADER = struct.Struct("<HBBBBHQ")
_VERSION_AT = 3
"""Place of the version in a header."""


def header(total: int) -> bytes:
    """Header of an uncompressed object of ``total`` bytes, header included."""
    return _HEADER.pack(MAGIC, HEADER_BYTES, *VERSION, 0, 0, total)


def parse_header(data: bytes | memoryview, what: str) -> tuple[int, int]:
    """Checks the 16 bytes of a header; returns compression mode and total size.

    Raises HeaderError, or TruncatedError when there are fewer than 16 bytes.
    """
    if len(data) < HEADER_BYTES:
        raise TruncatedError(f"{what}: {len(data)} bytes are too few for a SEAL object: was the file cut?")
    magic, size, major, minor, mode, reserved, total = _HEADER.unpack_from(data)
    if magic != MAGIC or size != HEADER_BYTES or reserved != 0:
        raise HeaderError(f"{what} is no SEAL object: give a file that SEAL saved")
    if major != 4:
        raise HeaderError(f"{what} was written by SEAL {major}.{minor}: load and save it again with SEAL 4")
    if mode not in MODES:
        raise HeaderError(f"{what} has unknown compression mode {mode}: save it with none, zlib or zstd")
    if total < HEADER_BYTES:
        raise HeaderError(f"{what} states a total size of {total} bytes: the header is damaged, fetch the file again")
    return mode, total


def labelled(data: bytes, places: Sequence[int]) -> bytes:
    """An uncompressed object with :data:`VERSION` in the headers at ``places``, which must be there. Its content is the same in all versions of SEAL 4."""
    result = bytearray(data)
    for at in places:
        parse_header(data[at : at + HEADER_BYTES], "an object that SEAL saved")
        result[at + _VERSION_AT : at + _VERSION_AT + 2] = bytes(VERSION)
    return bytes(result)


class Source(Protocol):
    """A stream of bytes, read in order."""

    def take(self, count: int) -> memoryview:
        """The next ``count`` bytes. Raises TruncatedError or DecompressionError."""

    def finish(self) -> None:
        """Raises TruncatedError unless everything has been read."""


class PlainSource(Source):
    """Bytes in memory; slices, no copies."""

    def __init__(self, data: bytes | memoryview, what: str) -> None:
        self._data, self._at, self._what = memoryview(data), 0, what

    def take(self, count: int) -> memoryview:
        left = len(self._data) - self._at
        if count > left:
            raise TruncatedError(f"{self._what} ends early: {count} bytes expected, {left} left: was the file cut?")
        self._at += count
        return self._data[self._at - count : self._at]

    def finish(self) -> None:
        left = len(self._data) - self._at
        if left:
            raise TruncatedError(f"{self._what} has {left} bytes too many: fetch the file again")


PIECE = 1 << 16
"""Bytes that zlib gets at a time: it copies its unused input at every read."""
WINDOW = 1 << 23
"""Largest window of zstd, which is allocated by the size in the data. SEAL's default level has 2^21; RFC 8878 asks for 2^23."""


class _ZlibInflater:
    def __init__(self, data: memoryview) -> None:
        self._inflater, self._data, self._at = zlib.decompressobj(), data, 0

    def read(self, count: int) -> bytes:
        out = self._inflater.decompress(self._inflater.unconsumed_tail, count)
        while not out and not self._inflater.eof and self._at < len(self._data):
            piece = self._data[self._at : self._at + PIECE]
            self._at += len(piece)
            out = self._inflater.decompress(piece, count)
        return out

    def trailing(self) -> bool:
        return not self._inflater.eof or bool(self._inflater.unused_data) or self._at < len(self._data)


class _ZstdInflater:
    def __init__(self, data: memoryview) -> None:
        decompressor = zstandard.ZstdDecompressor(max_window_size=WINDOW)
        self._reader = decompressor.stream_reader(bytes(data), read_across_frames=False)

    def read(self, count: int) -> bytes:
        return self._reader.read(count)

    def trailing(self) -> bool:
        return bool(self._reader.read(1))  # the reader stops at the end of the frame


class InflatingSource(Source):
    """A zlib or zstd payload, inflated on demand."""

    def __init__(self, data: memoryview, mode: int, what: str) -> None:
        self._what, self._mode = what, MODES[mode]
        self._inflater = _ZlibInflater(data) if mode == 1 else _ZstdInflater(data)

    def _read(self, count: int) -> bytes:
        try:
            return self._inflater.read(count)
        except (zlib.error, zstandard.ZstdError) as error:
            raise DecompressionError(f"{self._what}: the {self._mode} payload is damaged ({error}): fetch the file again") from error

    def take(self, count: int) -> memoryview:
        parts: list[bytes] = []
        left = count
        while left:
            part = self._read(left)
            if not part:
                raise TruncatedError(f"{self._what}: the {self._mode} payload ends early, {left} of {count} bytes are missing: was the file cut?")
            parts.append(part)
            left -= len(part)
        return memoryview(parts[0] if len(parts) == 1 else b"".join(parts))

    def finish(self) -> None:
        if self._read(1) or self._inflater.trailing():
            raise TruncatedError(f"{self._what}: the {self._mode} payload does not end with the object: fetch the file again")


def open_object(data: bytes | memoryview, what: str) -> Source:
    """The payload of a top-level SEAL object, whose header must state exactly the length of ``data``."""
    view = memoryview(data).cast("B")
    mode, total = parse_header(view[:HEADER_BYTES], what)
    if total != len(view):
        raise TruncatedError(f"{what} states {total} bytes and has {len(view)}: was the file cut or appended to?")
    payload = view[HEADER_BYTES:]
    return PlainSource(payload, what) if mode == 0 else InflatingSource(payload, mode, what)


def nested_header(source: Source, what: str) -> int:
    """Reads the header of an object inside another, which is never compressed; returns its total size."""
    mode, total = parse_header(source.take(HEADER_BYTES), what)
    if mode != 0:
        raise HeaderError(f"{what}: an inner object is compressed ({MODES[mode]}), which SEAL never writes: fetch the file again")
    return total
