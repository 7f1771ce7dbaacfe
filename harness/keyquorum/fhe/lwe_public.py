"""Public keys of LWE keys, in compact form, and encryption with them.

The secret s of an LWE key has n = 2^k bits. As the coefficients of a polynomial they are a secret of ring-LWE in R = Z_q[X]/(X^n + 1), and the public
key is one encryption of zero: b = a s + e, a uniform from a public seed (Lyubashevsky, Peikert, Regev: On Ideal Lattices and Learning with Errors
over Rings; the compact public keys of TFHE-rs). Encryption of up to n messages takes r uniform in {0, 1}^n and

    c1 = a r + e1,  c2 = b r + e2 + D m,

of which coefficient k of c2 and a row of c1's matrix are an LWE ciphertext of message k under s: c2 - c1 s = D m + e r + e2 - e1 s. All noise has the
distribution TUniform(b) of TFHE-rs, uniform in -2^b..2^b with half the probability at both ends.

Security: ring-LWE in R with binary secrets (s, then r), on top of LWE, which ciphertexts made with the secret alone need.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

import numpy as np

from keyquorum.model.errors import KeyFileError, ParameterError
from keyquorum.model.plain import is_hex

from .errors import ValuesError
from .lwe import Ints, LweCiphertexts, LweParameters, Words, encode, lwe_parameters, pack, unpack
from .seeds import SEED_BYTES, expand_a, expand_words
from .values import as_numbers

PUBLIC_MAGIC = b"KQLWEPK1"
PUBLIC_FILE = "public.lwepk"
"""Name of the file in a key folder."""
MOST_MESSAGES = 1 << 16
"""Messages of one file: up to 1 GiB."""


@dataclass(frozen=True)
class PublicNoise:
    """Noise of public keys of a set, and of ciphertexts under them. ``bound_bits``: b of TUniform(b); ``largest``: bound on the |e| of a fresh
    ciphertext, which always holds; ``deviation``: the standard deviation of e, in units of q."""

    bound_bits: int
    largest: int
    deviation: float


def public_noise(parameters: LweParameters) -> PublicNoise:
    """The noise of a set. b is the least value for which TUniform(b) has at least the set's deviation, on which the security depends.

    A fresh ciphertext has e r + e2 - e1 s with r and s of n bits, so |e| <= (2n + 1) 2^b, and n + 1 times the variance v of TUniform(b) where r and s
    have n/2 ones each. Raises ParameterError if the bound reached half the distance of two messages, or n were no power of 2.
    """
    n = parameters.dimension
    if n & (n - 1):
        raise ParameterError(f"{parameters.name} has dimension {n}: a compact public key needs a power of 2")
    bits = 0
    while _variance(bits) < parameters.deviation**2:
        bits += 1
    largest = (2 * n + 1) << bits
    if 2 * (largest + 1) >= parameters.delta:
        raise ParameterError(f"{parameters.name} is too small for the noise of public keys, 2^{math.log2(largest):.1f}: take another set")
    return PublicNoise(bits, largest, math.sqrt((n + 1) * _variance(bits)))


def _variance(bits: int) -> float:
    """Of TUniform(bits)."""
    return (2.0 ** (2 * bits + 1) + 1) / 6


def expand_mask(parameters: LweParameters, seed: bytes) -> Words:
    """The public polynomial a of a seed, n coefficients uniform modulo q, by the stream of SEAL's seeds."""
    if parameters.prime:
        mask: Words = expand_a(seed, parameters.dimension, [parameters.prime])[0]
        return mask
    return expand_words(seed, parameters.dimension)


def _reduced(parameters: LweParameters, words: Words) -> Words:
    return words % np.uint64(parameters.prime) if parameters.prime else words


def residues(parameters: LweParameters, signed: Ints) -> Words:
    """Small integers of either sign modulo q."""
    if not parameters.prime:
        return signed.astype(np.uint64)
    return np.where(signed < 0, signed + parameters.prime, signed).astype(np.uint64)


def rows_of(parameters: LweParameters, polynomial: Words, count: int) -> Words:
    """The first ``count`` rows of the matrix of products by a polynomial in R, [count, n]: row k has a_(k-j), or -a_(n+k-j) where k < j."""
    n = parameters.dimension
    zero = np.uint64(parameters.prime)  # 0 for 2^64
    signed = np.concatenate([polynomial, _reduced(parameters, zero - polynomial)])
    rows: Words = signed[(np.arange(count)[:, None] - np.arange(n)[None, :]) % (2 * n)]
    return rows


def _product(parameters: LweParameters, polynomial: Words, bits: Words, count: int) -> Words:
    """The first ``count`` coefficients of a polynomial times one with coefficients 0 and 1. Sums of n residues fit 64 bits, or wrap modulo 2^64 =
    q."""
    assert parameters.prime * parameters.dimension < 1 << 64
    total: Words = rows_of(parameters, polynomial, count) @ bits
    return _reduced(parameters, total)


def _random_words(size: int, bits: int) -> Words:
    words = np.frombuffer(bytearray(os.urandom(8 * size)), dtype="<u8")
    words >>= np.uint64(64 - bits)
    return words.astype(np.uint64, copy=False)


def tuniform(size: int, bits: int) -> Ints:
    """``size`` values of TUniform(bits), from the operating system's randomness: v/2 rounded up, minus 2^bits, for v of bits + 2 bits."""
    v = _random_words(size, bits + 2)
    made = ((v >> np.uint64(1)) + (v & np.uint64(1))).astype(np.int64) - (1 << bits)
    v.fill(0)
    return made


@dataclass(frozen=True)
class LwePublicKey:
    """A public key. ``seed``: 64 bytes, of the mask a; ``body``: the n coefficients of b, canonical modulo q."""

    parameters: LweParameters
    key_id: str
    seed: bytes
    body: Words

    def to_bytes(self) -> bytes:
        """A file: header (parameter set, key, seed), the body, little endian, and SHA-256."""
        header = {"parameters": self.parameters.name, "key_id": self.key_id, "seed": self.seed.hex()}
        return pack(PUBLIC_MAGIC, header, self.body.astype("<u8").tobytes())

    def encrypt(self, messages: Ints) -> LweCiphertexts:
        """A fresh ciphertext for each message, integers from 0 to 2^plain_bits - 1 (a vector). States the bound on its noise."""
        parameters, n = self.parameters, self.parameters.dimension
        scaled, mask = encode(parameters, messages), expand_mask(parameters, self.seed)
        noise = public_noise(parameters)
        a, b = [], []
        for first in range(0, messages.size, n):
            part = scaled[first : first + n]
            r, e1, e2 = _random_words(n, 1), tuniform(n, noise.bound_bits), tuniform(part.size, noise.bound_bits)
            c1 = _reduced(parameters, _product(parameters, mask, r, n) + residues(parameters, e1))
            c2 = _reduced(parameters, _product(parameters, self.body, r, part.size) + residues(parameters, e2))
            a.append(rows_of(parameters, c1, part.size))
            b.append(_reduced(parameters, c2 + part))
            for secret in (r, e1, e2):
                secret.fill(0)
        return LweCiphertexts(parameters, np.concatenate(a), np.concatenate(b), round(math.log2(noise.largest), 3))


def read_lwe_public_key(data: bytes, where: str) -> LwePublicKey:
    """A public key from :meth:`LwePublicKey.to_bytes`; ``where`` names the source in errors. Raises KeyFileError."""
    damaged = KeyFileError(f"{where}: not a public key of LWE, or a damaged one: copy it from another party")
    if data[:8] != PUBLIC_MAGIC:
        raise damaged
    try:
        header, body = unpack(data)
        parameters, key_id, seed = lwe_parameters(header["parameters"]), header["key_id"], header["seed"]
    except (ValueError, KeyError, TypeError):
        raise damaged from None
    if not (is_hex(key_id, 32) and is_hex(seed, 2 * SEED_BYTES)) or len(body) != 8 * parameters.dimension:
        raise damaged
    words = np.frombuffer(body, dtype="<u8").astype(np.uint64)
    if parameters.prime and int(words.max()) >= parameters.prime:
        raise damaged
    return LwePublicKey(parameters, key_id, bytes.fromhex(seed), words)


def integers(parameters: LweParameters, values: object) -> Ints:
    """Numbers as messages of a set, a vector of int64. Raises ValuesError for others."""
    array = as_numbers(values)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iuf" or not (array == np.floor(array)).all():
        raise ValuesError(f"{parameters.name} encrypts integers from 0 to {(1 << parameters.plain_bits) - 1}: give a list of them")
    if array.size > MOST_MESSAGES:
        raise ValuesError(f"{array.size:,} values: at most {MOST_MESSAGES:,} go in one file of {parameters.name}, encrypt them in parts")
    if not ((array >= 0) & (array < 1 << parameters.plain_bits)).all():
        raise ValuesError(
            f"a value is outside 0 to {(1 << parameters.plain_bits) - 1}, the messages of {parameters.name}: take smaller ones, or another set"
        )
    return array.astype(np.int64)


__all__ = ["PUBLIC_FILE", "LwePublicKey", "PublicNoise", "expand_mask", "integers", "public_noise", "read_lwe_public_key", "tuniform"]
