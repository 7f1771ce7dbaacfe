"""Public key files for TFHE-rs (docs/pages/formats.md, "Keys for TFHE-rs"): their form, their masks, and their noise under secrets in clear text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from keyquorum._engine import expand_aes_ctr
from keyquorum.model.plain import Json

from .lwe import TFHE_SETS, Ints, TfheParameters, Words
from .seeded_files import SeededFile, SeededForm

KEY_MAGIC = b"KQTFHE01"
BOOTSTRAPPING, SWITCHING, COMPACT = "bootstrapping", "key-switching", "compact"
KINDS = (BOOTSTRAPPING, SWITCHING, COMPACT)


def body_words(parameters: TfheParameters, kind: str) -> int:
    """Words of the bodies of a file."""
    p = parameters
    return {BOOTSTRAPPING: p.lwe_dimension * p.pbs_level * 2 * p.dimension, SWITCHING: p.dimension * p.ks_level, COMPACT: p.dimension}[kind]


def _numbers(parameters: TfheParameters) -> Json:
    """The numbers of a set in headers."""
    p = parameters
    return {
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
    }


def masks(seed: bytes, first: int, count: int) -> Words:
    """The words ``first`` to ``first + count - 1`` of the masks of a file, modulo 2^64; both numbers are even."""
    expanded: Words = expand_aes_ctr(seed, first, count)
    return expanded


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


KEY_FILES = SeededForm("public key for TFHE-rs", KEY_MAGIC, "kqt", KINDS, TFHE_SETS, _numbers, body_words, lambda _: 8, "words", KeyFile)
"""The form of the files."""


__all__ = [
    "BOOTSTRAPPING",
    "COMPACT",
    "KEY_FILES",
    "KEY_MAGIC",
    "KINDS",
    "SWITCHING",
    "KeyFile",
    "body_words",
    "masks",
]
