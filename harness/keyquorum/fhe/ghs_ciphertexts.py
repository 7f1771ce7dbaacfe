"""Ciphertexts of GHS: encryption of polynomials of bits under a public key, files (docs/pages/formats.md), and decryption with the secret in clear text.

A ciphertext (c0, c1) of a polynomial m of bits has c0 + c1 s = m + p e modulo Q and Phi_m, with p = 2. It is decrypted modulo the first prime q: w = c0 + c1 s has
|w| < q/2, and m is w modulo 2. Half of it, w (q + 1)/2 modulo q, is e + m (q + 1)/2 with |e| < q/4: the message is in the top bit, below noise of any size that
decryption takes, and a rounding takes it off.

Paper: GMPFHE, section 5.2; encryption is of Gentry, Halevi, Smart (Homomorphic Evaluation of the AES Circuit, 2012), section 3.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keyquorum._engine import Cyclotomic, addmod, mulmod, mulmod_scalar, scale_round
from keyquorum.model.errors import CiphertextError
from keyquorum.model.plain import is_hex

from ._arith import is_prime
from .errors import ValuesError
from .ghs import PUBLIC, GhsKeyFile, GhsParameters, Ints, Words, degree_of, masks
from .lwe import pack, unpack
from .seeded_files import packed, unpacked
from .values import as_numbers

MAGIC = b"KQGHSCT1"
NOISE_PAIRS, RANDOMISER_PAIRS = 21, 1
"""Pairs of bits of centred binomial samples: of noise, which has variance 10.5 as the noise of keys, and of the polynomial by which a public key is multiplied, which is
0 with probability 1/2 (ZO(0.5) of the paper of Gentry, Halevi and Smart)."""


@dataclass(frozen=True)
class GhsCiphertext:
    """``parts``: c0 and c1 as values at the primitive roots of unity, [2, primes, phi(m)], canonical."""

    order: int
    primes: tuple[int, ...]
    parts: Words

    def to_bytes(self, key_id: str) -> bytes:
        """A file: header, values of c0 and c1, and SHA-256. Raises CiphertextError for a ciphertext modulo several primes."""
        if len(self.primes) != 1:
            raise CiphertextError(f"a ciphertext of GHS modulo {len(self.primes)} primes: switch it to the first one before it is decrypted")
        header = {"key_id": key_id, "order": self.order, "prime": self.primes[0]}
        return pack(MAGIC, header, packed(self.parts.reshape(-1), _size(self.primes[0])))


def _size(prime: int) -> int:
    """Bytes of a residue in a file."""
    return -(-prime.bit_length() // 8)


def is_ciphertext(head: bytes) -> bool:
    """Whether a file that begins so has a ciphertext of GHS."""
    return head[:8] == MAGIC


def read_ciphertext(data: bytes, where: str) -> tuple[GhsCiphertext, str]:
    """A ciphertext and the id of its key, from :meth:`GhsCiphertext.to_bytes`; ``where`` names the source in errors. Raises CiphertextError."""
    damaged = CiphertextError(f"{where}: not a ciphertext of GHS, or a damaged one: make it again")
    if not is_ciphertext(data):
        raise damaged
    try:
        header, body = unpack(data)
        key_id, order, prime = header["key_id"], header["order"], header["prime"]
    except (ValueError, KeyError, TypeError):
        raise damaged from None
    numbers = type(order) is int and 3 <= order < 1 << 16 and type(prime) is int and 2 < prime < 1 << 60 and is_prime(prime)
    if not numbers or set(header) != {"key_id", "order", "prime"} or not is_hex(key_id, 32) or len(body) != 2 * _size(prime) * degree_of(order):
        raise damaged
    words = unpacked(body, _size(prime))
    if int(words.max()) >= prime:
        raise damaged
    return GhsCiphertext(order, (prime,), words.reshape(2, 1, -1)), key_id


def bits_of(parameters: GhsParameters, values: object) -> Ints:
    """Numbers as a polynomial of bits, [phi(m)], zeros after the last one given. Raises ValuesError for others."""
    array = as_numbers(values)
    if array.ndim != 1 or not 1 <= array.size <= parameters.degree or not np.isin(array, (0, 1)).all():
        raise ValuesError(f"{parameters.name} encrypts at most {parameters.degree:,} bits: give a list of numbers 0 and 1")
    return np.concatenate([array.astype(np.int64), np.zeros(parameters.degree - array.size, dtype=np.int64)])


def _binomial(size: int, pairs: int) -> Ints:
    """Centred binomial samples from the operating system's randomness."""
    made = np.zeros(size, dtype=np.int64)
    for sign in [1, -1] * pairs:
        made += sign * np.unpackbits(np.frombuffer(os.urandom(-(-size // 8)), dtype=np.uint8), count=size).astype(np.int64)
    return made


def values_of(coefficients: Ints, order: int, primes: Sequence[int]) -> Words:
    """The values of a polynomial of small integers modulo each prime, [primes, phi(m)]."""
    return np.stack([Cyclotomic(q, order).forward((coefficients % q).astype(np.uint64)) for q in primes])


def encrypt(public: GhsKeyFile, bits: Ints, primes: int = 1) -> GhsCiphertext:
    """A fresh ciphertext of a polynomial of bits, modulo the first ``primes`` primes. Randomness is the operating system's."""
    p = public.parameters
    assert public.kind == PUBLIC and bits.shape == (p.degree,)
    moduli = p.primes[:primes]
    randomiser = _binomial(p.degree, RANDOMISER_PAIRS)
    added = [p.plain_modulus * _binomial(p.degree, NOISE_PAIRS) for _ in range(2)]
    added[0] += bits
    small = [values_of(each, p.order, moduli) for each in (randomiser, *added)]
    parts = np.empty((2, primes, p.degree), dtype=np.uint64)
    for k, q in enumerate(moduli):
        for part, key in enumerate((public.bodies(k, (0, 1)), masks(public.seed, k, (0, 1), p))):
            parts[part, k] = addmod(mulmod(key, small[0][k], q), small[1 + part][k], q)
    for secret in (randomiser, *added, *small):
        secret.fill(0)
    return GhsCiphertext(p.order, tuple(moduli), parts)


def with_phase(order: int, prime: int, secret: Ints, phase: Ints, rng: np.random.Generator) -> GhsCiphertext:
    """Reference encryption with the secret in clear text: a ciphertext modulo one prime whose phase c0 + c1 s has these coefficients (centred)."""
    transform = Cyclotomic(prime, order)
    c1 = rng.integers(0, prime, secret.size, dtype=np.uint64)
    masked = mulmod(c1, transform.forward((-secret % prime).astype(np.uint64)), prime)
    c0 = addmod(transform.forward((phase % prime).astype(np.uint64)), masked, prime)
    return GhsCiphertext(order, (prime,), np.stack([c0, c1])[:, None])


def phase(ciphertext: GhsCiphertext, secret: Ints, k: int = 0) -> Ints:
    """c0 + c1 s modulo prime number ``k``, coefficients, centred, with the secret in clear text."""
    q = ciphertext.primes[k]
    transform = Cyclotomic(q, ciphertext.order)
    c0, c1 = ciphertext.parts[:, k]
    words = transform.inverse(addmod(c0, mulmod(np.ascontiguousarray(c1), transform.forward((secret % q).astype(np.uint64)), q), q))
    return np.where(words > q // 2, words - np.uint64(q), words).view(np.int64)


def halved_products(ciphertext: GhsCiphertext, shares: Words) -> Words:
    """Of summands [parts, phi(m)] of s, those of c1 s (q + 1)/2 modulo the one prime q of the ciphertext, coefficients."""
    (q,) = ciphertext.primes
    transform, half = Cyclotomic(q, ciphertext.order), _halved(ciphertext, 1)
    return np.stack([transform.inverse(mulmod(half, transform.forward(np.ascontiguousarray(part)), q)) for part in shares])


def halved_constant(ciphertext: GhsCiphertext) -> Words:
    """c0 (q + 1)/2 modulo the one prime q of the ciphertext, coefficients."""
    words: Words = Cyclotomic(ciphertext.primes[0], ciphertext.order).inverse(_halved(ciphertext, 0))
    return words


def _halved(ciphertext: GhsCiphertext, part: int) -> Words:
    (q,) = ciphertext.primes
    words: Words = mulmod_scalar(np.ascontiguousarray(ciphertext.parts[part, 0]), (q + 1) // 2, q)
    return words


def scaled(halved: Words, q: int, length: int) -> Words:
    """Summands of 2^(l+1) x / q modulo 2^(l+1), rounded, of summands x modulo q."""
    words: Words = np.stack([scale_round(np.ascontiguousarray(part), 2, length, q)[0] for part in halved])
    words &= np.uint64((2 << length) - 1)
    return words


__all__ = [
    "MAGIC",
    "GhsCiphertext",
    "bits_of",
    "encrypt",
    "halved_constant",
    "halved_products",
    "is_ciphertext",
    "phase",
    "read_ciphertext",
    "scaled",
    "values_of",
    "with_phase",
]
