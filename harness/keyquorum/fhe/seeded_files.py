"""Files of seeded keys, which have the seed of the masks and the bodies: the form of :func:`.lwe.pack`, written without all of it in memory."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Generic, TypeVar

import numpy as np

from keyquorum.model.errors import KeyFileError
from keyquorum.model.plain import Json, is_hex, json_loads

from .lwe import Words, unpack
from .lwe_sets import SeededParameters

P = TypeVar("P", bound=SeededParameters)
F = TypeVar("F", bound="SeededFile[Any]")
SEED_BYTES = 16
PIECE = 1 << 17
"""Words that a check reads at a time."""
COUNTED = 1 << 16
"""Words of bodies from which on their bytes are counted."""
DEVIATIONS = 8
"""Standard deviations that a count of a byte may be off: uniform bodies of a good key are refused once in 10^12 checks, at most."""


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


@dataclass(frozen=True)
class SeededFile(Generic[P]):
    """The content of a file: parameters, kind, id of the key, 16 bytes of the seed of the masks, and the bodies."""

    parameters: P
    kind: str
    key_id: str
    seed: bytes
    bodies: Words


@dataclass(frozen=True)
class SeededForm(Generic[P, F]):
    """The form of a library's key files. ``what``: a file's name in errors; ``suffix``: of names of files; ``kinds``: of files, in the order in which
    they are made; ``numbers``: of a set, for headers; ``count``: words of the bodies of a kind; ``size``: bytes of a word; ``unit``: its name;
    ``content``: the class of what is read."""

    what: str
    magic: bytes
    suffix: str
    kinds: Sequence[str]
    sets: Mapping[str, P]
    numbers: Callable[[P], Json]
    count: Callable[[P, str], int]
    size: Callable[[P], int]
    unit: str
    content: Callable[[P, str, str, bytes, Words], F]

    def name(self, kind: str) -> str:
        """Name of a file in a key folder."""
        return f"{kind}.{self.suffix}"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all files of a key."""
        return tuple(map(self.name, self.kinds))

    def header(self, parameters: P, kind: str, key_id: str, seed: bytes) -> Json:
        """The header of a file."""
        return {
            "kind": kind,
            "parameters": parameters.name,
            **self.numbers(parameters),
            "key_id": key_id,
            "seed": seed.hex(),
            self.unit: self.count(parameters, kind),
        }

    def writer(self, file: BinaryIO, parameters: P, kind: str, key_id: str, seed: bytes) -> BodyWriter:
        """Writes a file. Its bodies come in the order of the format."""
        header = self.header(parameters, kind, key_id, seed)
        return BodyWriter(file, self.magic, header, self.count(parameters, kind), self.size(parameters))

    def read(self, data: bytes | bytearray, where: str) -> F:
        """A file from the bytes that a :class:`BodyWriter` wrote; ``where`` names the source in errors. Raises KeyFileError."""
        damaged = KeyFileError(f"{where}: not a {self.what}, or a damaged one: copy it from another party")
        if data[:8] != self.magic:
            raise damaged
        try:
            found, body = unpack(data)
            kind, key_id, seed = found["kind"], found["key_id"], found["seed"]
            parameters = self.sets[found["parameters"]]
        except (ValueError, KeyError, TypeError):
            raise damaged from None
        if kind not in self.kinds or not (is_hex(key_id, 32) and is_hex(seed, 2 * SEED_BYTES)):
            raise damaged
        if found != self.header(parameters, kind, key_id, bytes.fromhex(seed)):
            raise KeyFileError(f"{where}: its header has other numbers than the set {parameters.name} of this version: make the key again")
        size = self.size(parameters)
        if len(body) != size * self.count(parameters, kind):
            raise damaged
        bodies = unpacked(body, size)
        if parameters.prime and int(bodies.max()) >= parameters.prime:
            raise damaged
        return self.content(parameters, kind, key_id, bytes.fromhex(seed), bodies)

    def check(self, path: Path, kind: str, key_id: str, parameters: P) -> None:
        """Refuses a file that is not of this kind and key, a piece at a time: header, size, checksum, the range of the bodies, and, as bodies of a key
        look uniform, how often each value of their 8 highest bits is there. Raises KeyFileError."""
        damaged = KeyFileError(f"{path}: not a {self.what}, or a damaged one: delete this key and make it again")
        count, size = self.count(parameters, kind), self.size(parameters)
        with path.open("rb") as file:
            head = file.read(12)
            length = int.from_bytes(head[8:12], "little")
            if head[:8] != self.magic or path.stat().st_size != 12 + length + count * size + hashlib.sha256().digest_size:
                raise damaged
            text = file.read(length)
            try:
                found = json_loads(text)
                right = found == self.header(parameters, kind, key_id, bytes.fromhex(found["seed"])) and is_hex(found["seed"], 2 * SEED_BYTES)
            except (ValueError, KeyError, TypeError):
                raise damaged from None
            if not right:
                raise KeyFileError(f"{path}: its header is not that of the {kind} key {key_id}: delete this key and make it again")
            digest, seen = hashlib.sha256(head + text), np.zeros(256, dtype=np.int64)
            for first in range(0, count, PIECE):
                data = file.read(min(PIECE, count - first) * size)
                digest.update(data)
                words = unpacked(data, size)
                if parameters.prime and int(words.max()) >= parameters.prime:
                    raise damaged
                high = np.uint64(parameters.modulus.bit_length() - (9 if not parameters.prime else 8))
                seen += np.bincount(((words >> high) & np.uint64(255)).astype(np.int64), minlength=256)
            if digest.digest() != file.read():
                raise damaged
        if count >= COUNTED and np.abs(seen - count / 256).max() > DEVIATIONS * (count / 256) ** 0.5:
            raise KeyFileError(f"{path}: its bodies are not as good as random: delete this key, make it again, and report it")


__all__ = ["SEED_BYTES", "BodyWriter", "SeededFile", "SeededForm", "packed", "unpacked"]
