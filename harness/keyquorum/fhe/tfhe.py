"""Public key files for TFHE-rs (docs/pages/formats.md, "Keys for TFHE-rs"): their form, their masks, and their noise under secrets in clear text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from keyquorum._engine import expand_aes_ctr
from keyquorum.model.plain import Json

from .lwe import TFHE_SETS, Ints, TfheParameters, Words
from .seeded_files import BodyWriter, SeededFile, SeededForm

KEY_MAGIC = b"KQTFHE01"
BOOTSTRAPPING, SWITCHING, COMPACT = "bootstrapping", "key-switching", "compact"
KINDS = (BOOTSTRAPPING, SWITCHING, COMPACT)
"""Kinds of key files, in the order in which they are made."""


def file_name(kind: str) -> str:
    """Name of the file in a key folder."""
    return f"{kind}.kqt"


def body_words(parameters: TfheParameters, kind: str) -> int:
    """Words of the bodies of a file."""
    p = parameters
    return {BOOTSTRAPPING: p.lwe_dimension * p.pbs_level * 2 * p.dimension, SWITCHING: p.dimension * p.ks_level, COMPACT: p.dimension}[kind]


def header(parameters: TfheParameters, kind: str, key_id: str, seed: bytes) -> Json:
    """The header of a file."""
    p = parameters
    return {
        "kind": kind,
        "parameters": p.name,
        "lwe_dimension": p.lwe_dimension,
        "glwe_dimension": 1,
        "polynomial_size": p.dimension,
        "pbs_base_log": p.pbs_base_log,
        "pbs_level": p.pbs_level,
        "ks_base_log": p.ks_base_log,
        "ks_level": p.ks_level,
        "message_bits": p.plain_bits - p.carry_bits,
        "carry_bits": p.carry_bits,
        "lwe_noise": p.lwe_noise,
        "glwe_noise": p.glwe_noise,
        "key_id": key_id,
        "seed": seed.hex(),
        "words": body_words(p, kind),
    }


def masks(seed: bytes, first: int, count: int) -> Words:
    """The words ``first`` to ``first + count - 1`` of the masks of a file, modulo 2^64; both numbers are even."""
    expanded: Words = expand_aes_ctr(seed, first, count)
    return expanded


class KeyFileWriter(BodyWriter):
    """Writes a file in pieces, and ends it with its checksum. The bodies come in the order of the format."""

    def __init__(self, file: BinaryIO, parameters: TfheParameters, kind: str, key_id: str, seed: bytes) -> None:
        super().__init__(file, KEY_MAGIC, header(parameters, kind, key_id, seed), body_words(parameters, kind))


@dataclass(frozen=True)
class KeyFile(SeededFile[TfheParameters]):
    """A public key file: kind, id of the key, 16 bytes of the seed of the masks, and the bodies."""

    def rows(self, short: Ints, ring: Ints) -> tuple[Words, Words]:
        """Of every word of the bodies, with the secrets in clear text: the phase b - <a, secret>, and the part of it that is no noise, modulo 2^64."""
        p = self.parameters
        s, z = short.astype(np.uint64), ring.astype(np.uint64)
        if self.kind == SWITCHING:
            a = masks(self.seed, 0, self.bodies.size * p.lwe_dimension).reshape(self.bodies.size, p.lwe_dimension)
            weights = np.array([1 << (64 - p.ks_base_log * level) for level in range(p.ks_level, 0, -1)], dtype=np.uint64)
            return self.bodies - a @ s, np.multiply.outer(z, weights).reshape(-1)
        a, b = masks(self.seed, 0, self.bodies.size).reshape(-1, p.dimension), self.bodies.reshape(-1, p.dimension)
        secret = z if self.kind == BOOTSTRAPPING else z[::-1]
        phases = b - np.stack([negacyclic(row, secret) for row in a])
        plain = np.zeros_like(b)
        if self.kind == BOOTSTRAPPING:
            each = plain.reshape(p.lwe_dimension, p.pbs_level, 2, p.dimension)
            for place, level in enumerate(range(p.pbs_level, 0, -1)):
                weighted = s << np.uint64(64 - p.pbs_base_log * level)
                each[:, place, 0] = np.multiply.outer(-weighted, z)
                each[:, place, 1, 0] = weighted
        return phases.reshape(-1), plain.reshape(-1)

    def noise(self, short: Ints, ring: Ints) -> Ints:
        """The noise of every word of the bodies, in -2^63..2^63 - 1, with the secrets in clear text."""
        phases, plain = self.rows(short, ring)
        return (phases - plain).view(np.int64)

    @property
    def bound(self) -> int:
        """The largest absolute value of the noise."""
        return 1 << (self.parameters.lwe_noise if self.kind == SWITCHING else self.parameters.glwe_noise)


def negacyclic(public: Words, bits: Words) -> Words:
    """A polynomial times one with coefficients 0 and 1, modulo 2^64 and X^N + 1."""
    total, n = np.zeros_like(public), public.size
    for j in np.flatnonzero(bits):
        total[j:] += public[: n - j]
        total[:j] -= public[n - j :]
    return total


_FORM = SeededForm("public key for TFHE-rs", KEY_MAGIC, KINDS, TFHE_SETS, header, body_words, lambda _: 8)


def check_key_file(path: Path, kind: str, key_id: str, parameters: TfheParameters) -> None:
    """Checks a file on the disk without all of it in memory, see :meth:`.SeededForm.check`. Raises KeyFileError."""
    _FORM.check(path, kind, key_id, parameters)


def read_key_file(data: bytes | bytearray, where: str) -> KeyFile:
    """A file from the bytes that a :class:`KeyFileWriter` wrote; ``where`` names the source in errors. Raises KeyFileError."""
    found = _FORM.read(data, where)
    return KeyFile(found.parameters, found.kind, found.key_id, found.seed, found.bodies)


__all__ = [
    "BOOTSTRAPPING",
    "COMPACT",
    "KEY_MAGIC",
    "KINDS",
    "SWITCHING",
    "KeyFile",
    "KeyFileWriter",
    "body_words",
    "check_key_file",
    "file_name",
    "masks",
    "read_key_file",
]
