"""Public key files of FHEW-like keys (docs/pages/formats.md, "Keys of FHEW"): their form, their masks, and their noise under secrets in clear text."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from keyquorum._engine import Ntt, expand_uniform, mulmod, mulmod_scalar, submod
from keyquorum.model.plain import Json

from .lwe import FHEW_SETS, FhewParameters, Ints, Words, inner_products
from .seeded_files import SeededFile, SeededForm

KEY_MAGIC = b"KQFHEW01"
PUBLIC, SWITCHING, BOOTSTRAPPING = "public", "key-switching", "bootstrapping"
KINDS = (PUBLIC, SWITCHING, BOOTSTRAPPING)
PIECE = 1 << 20
"""Masks of which the noise is computed at a time, at least those of a row."""


def body_residues(parameters: FhewParameters, kind: str) -> int:
    """Residues of the bodies of a file."""
    p = parameters
    return {PUBLIC: p.samples, BOOTSTRAPPING: p.lwe_dimension * 2 * p.levels * p.dimension, SWITCHING: p.dimension * p.switch_levels}[kind]


def masks_each(parameters: FhewParameters, kind: str) -> int:
    """Residues of the masks for each residue of the bodies."""
    return {PUBLIC: parameters.dimension, BOOTSTRAPPING: 1, SWITCHING: parameters.lwe_dimension}[kind]


def residue_bytes(parameters: FhewParameters) -> int:
    """Bytes of a residue in a file."""
    return -(-parameters.prime.bit_length() // 8)


def _numbers(parameters: FhewParameters) -> Json:
    """The numbers of a set in headers."""
    p = parameters
    return {
        "modulus": p.prime,
        "lwe_dimension": p.lwe_dimension,
        "ring_degree": p.dimension,
        "base_log": p.base_log,
        "levels": p.levels,
        "switch_base_log": p.switch_base_log,
        "switch_levels": p.switch_levels,
        "samples": p.samples,
        "message_bits": p.plain_bits,
    }


def masks(parameters: FhewParameters, seed: bytes, first: int, count: int) -> Words:
    """The residues ``first`` to ``first + count - 1`` of the masks of a file."""
    expanded: Words = expand_uniform(seed, first, count, parameters.prime)
    return expanded


def weights(parameters: FhewParameters, kind: str) -> list[int]:
    """Weights of the digits of the bootstrapping key or of the key-switching key, the smallest first."""
    p = parameters
    base_log, levels = (p.base_log, p.levels) if kind == BOOTSTRAPPING else (p.switch_base_log, p.switch_levels)
    return [1 << (p.prime.bit_length() - base_log * level) for level in range(levels, 0, -1)]


def evaluated_deviation(parameters: FhewParameters, growth: float) -> float:
    """Standard deviation of the noise of a bootstrapped ciphertext, in units of q, for noise of the bootstrapping key of ``growth`` times the set's
    variance: digits are uniform, and each of the 2 levels N products of a step adds its own noise."""
    p = parameters
    digits = 2 * p.levels * p.dimension * 4.0**p.base_log / 12
    return math.sqrt(p.lwe_dimension * digits * p.variance * growth)


@dataclass(frozen=True)
class FhewKeyFile(SeededFile[FhewParameters]):
    """A public key file: kind, id of the key, 16 bytes of the seed of the masks, and the bodies."""

    def noise(self, short: Ints, ring: Ints) -> Ints:
        """The noise of every residue of the bodies, centred, with the secrets in clear text: the phase less what is encrypted."""
        p = self.parameters
        q = np.uint64(p.prime)
        rows, made = max(1, PIECE // masks_each(p, self.kind)), []
        if self.kind == BOOTSTRAPPING:
            rows = max(1, rows // p.dimension) * p.dimension
            made = [self._polynomials(short, ring, first, min(rows, self.bodies.size - first)) for first in range(0, self.bodies.size, rows)]
        else:
            secret = ring if self.kind == PUBLIC else short
            for first in range(0, self.bodies.size, rows):
                bodies = self.bodies[first : first + rows]
                a = masks(p, self.seed, first * secret.size, bodies.size * secret.size).reshape(bodies.size, secret.size)
                made.append((bodies + (q - inner_products(p, a, secret))) % q)
        phases = np.concatenate(made)
        if self.kind == SWITCHING:
            plain = [int(z) * g % p.prime for z in ring for g in weights(p, SWITCHING)]
            phases = (phases + (q - np.array(plain, dtype=np.uint64))) % q
        return np.where(phases > q // np.uint64(2), phases - q, phases).view(np.int64)

    def _polynomials(self, short: Ints, ring: Ints, first: int, count: int) -> Words:
        """The noise, modulo q, of polynomials of the bootstrapping key, from residue ``first`` on."""
        p, q, n = self.parameters, self.parameters.prime, self.parameters.dimension
        ntt, polynomials = Ntt(q, n), count // n
        z = ntt.forward((ring % q).astype(np.uint64))
        phases = submod(self.bodies[first : first + count], mulmod(masks(p, self.seed, first, count), np.tile(z, polynomials), q), q)
        plain = np.zeros((polynomials, n), dtype=np.uint64)
        for row, at in zip(plain, range(first // n, (first + count) // n), strict=True):
            bit, place = divmod(at, 2 * p.levels)
            weight = int(short[bit]) * weights(p, BOOTSTRAPPING)[place // 2]
            row[:] = weight if place % 2 else mulmod_scalar(z, (q - weight) % q, q)
        noise: Words = ntt.inverse(submod(phases, plain.reshape(-1), q))
        return noise


KEY_FILES = SeededForm("public key of FHEW", KEY_MAGIC, "kqf", KINDS, FHEW_SETS, _numbers, body_residues, residue_bytes, "residues", FhewKeyFile)
"""The form of the files."""


__all__ = [
    "BOOTSTRAPPING",
    "KEY_FILES",
    "KEY_MAGIC",
    "KINDS",
    "PUBLIC",
    "SWITCHING",
    "FhewKeyFile",
    "body_residues",
    "evaluated_deviation",
    "masks",
    "weights",
]
