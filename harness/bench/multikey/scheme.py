"""Multi-key BGV: keys, encryption, extension, sums, products without relinearisation, modulus switching, decryption.

A ciphertext of parties S is a vector of polynomials c, and its phase the inner product of c with a vector of ones and secrets; the message is the phase
modulo t, the noise a multiple of t. Signs are SEAL's, so a ciphertext of one party is a BGV ciphertext of SEAL. Products have a matrix of polynomials.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from keyquorum._engine import mulmod_scalar
from keyquorum.fhe import _arith
from keyquorum.fhe.seeds import SEED_BYTES, expand_a
from keyquorum.model.errors import ParameterError
from keyquorum.sharing.randomness import wipe

from .gadgets import Gadget, divide_by_last
from .ring import Ints, Ring, Words, tables

Layout = Literal["compact", "pairs"]
"""``compact``: (c_0, c_1, ..., c_k), phase c_0 + sum of c_i s_i. ``pairs``: a pair for each party, 2k polynomials, as in paper 001; phase: the sum of the
phases of the pairs."""
Secrets = Mapping[int, Words]
"""Secrets of parties in NTT form, [primes, N], of as many primes as there are or more."""


class Reference:
    """The common reference string: a public vector A [primes of keys, digits, N] that all parties derive from one seed of at least 16 bytes with SHAKE256.
    Who chooses the seed alone could know a trapdoor of A: parties toss it together."""

    def __init__(self, gadget: Gadget, seed: bytes) -> None:
        if len(seed) < 16:
            raise ParameterError(f"the seed of the reference string has {len(seed)} bytes: give at least 16")
        self.gadget, self.seed, ring = gadget, seed, gadget.key_ring
        rows = [
            expand_a(hashlib.shake_256(b"multi-key reference" + j.to_bytes(4, "little") + seed).digest(SEED_BYTES), ring.degree, ring.primes)
            for j in range(gadget.digits)
        ]
        self.a: Words = np.ascontiguousarray(np.stack(rows, axis=1))


@dataclass(frozen=True)
class PublicKey:
    """b = -s A + t e of party ``index``, [primes of keys, digits, N]. The first row is for encryption, all of them for relinearisation."""

    index: int
    b: Words = field(repr=False)


class Party:
    """A party with its secret, which :meth:`wipe` overwrites. ``rows``: of the public key that are made (default: all; 1 is enough without relinearisation)."""

    def __init__(self, index: int, reference: Reference, rows: int | None = None) -> None:
        self.index, self.reference, self.gadget = index, reference, reference.gadget
        ring, a = self.gadget.key_ring, reference.a[:, :rows]
        self.secret: Words = ring.ternary()
        self.public = PublicKey(index, zeros_of(ring, self.gadget.t, a, self.secret))

    def __repr__(self) -> str:
        return f"Party({self.index})"

    def wipe(self) -> None:
        """Overwrites the secret."""
        wipe(self.secret)


def zeros_of(ring: Ring, t: int, a: Words, secret: Words) -> Words:
    """-s a + t e: what makes, with a [primes, count, N], encryptions of zero."""
    errors = ring.errors(t, *a.shape[1:-1])
    product = ring.mul(a, secret[:, None, :])
    result = ring.sub(errors, product)
    wipe(errors, product)
    return result


@dataclass(frozen=True)
class _Polynomials:
    """``parts``: polynomials in NTT form, modulo each prime. ``parties``: ascending."""

    parties: tuple[int, ...]
    parts: Words = field(repr=False)
    layout: Layout = "compact"

    @property
    def level(self) -> int:
        """Number of its primes."""
        return len(self.parts)


class Ciphertext(_Polynomials):
    """``parts``: [primes, polynomials, N]."""


class Product(_Polynomials):
    """A product that is not relinearised. ``parts``: [primes, polynomials, polynomials, N]; its phase is a quadratic form in the vector of ones and secrets."""


def places(parties: Sequence[int], layout: Layout) -> list[int | None]:
    """Whose secret each polynomial of a ciphertext is multiplied with; None: it is not multiplied."""
    return [None, *parties] if layout == "compact" else [x for party in parties for x in (None, party)]


def encode(values: Ints, t: int) -> Ints:
    """Coefficients of the message whose N slots have these values modulo t: slots of sums and products are sums and products of slots."""
    transform = tables(t, len(values))
    return _arith.centred(transform.inverse((values % t).astype(np.uint64)), t)


def decode(message: Ints, t: int) -> Ints:
    """The slots, in [0, t)."""
    return tables(t, len(message)).forward((message % t).astype(np.uint64)).astype(np.int64)


def encrypt(reference: Reference, public: PublicKey, message: Ints, layout: Layout = "compact") -> Ciphertext:
    """Encrypts coefficients [N] modulo t."""
    gadget, ring, data = reference.gadget, reference.gadget.ring, slice(0, len(reference.gadget.ring.primes))
    t = gadget.t
    if message.shape != (ring.degree,):
        raise ParameterError(f"a message has {ring.degree} coefficients, not {message.shape}: fill it up with zeros")
    v, errors = ring.ternary(), ring.errors(t, 2, message=_arith.centred((message % t).astype(np.uint64), t))
    parts = ring.zeros(2)
    for side, key in enumerate((public.b[data, 0], reference.a[data, 0])):
        ring.add(ring.mul(key, v), errors[:, side], out=parts[:, side])
    wipe(v, errors)
    return Ciphertext((public.index,), parts, layout)


def extend(ciphertext: Ciphertext, parties: Sequence[int]) -> Ciphertext:
    """The ciphertext as one of more parties, which has the same phase. Raises ParameterError if one of its parties is missing."""
    wanted = tuple(sorted(set(parties)))
    missing = set(ciphertext.parties) - set(wanted)
    if missing:
        raise ParameterError(f"the ciphertext is of party {min(missing)} too, which is not among {wanted}: extend it to a larger set")
    if wanted == ciphertext.parties:
        return ciphertext
    parts = np.zeros((ciphertext.level, len(places(wanted, ciphertext.layout)), ciphertext.parts.shape[-1]), dtype=np.uint64)
    parts[:, _where(ciphertext, wanted)] = ciphertext.parts
    return Ciphertext(wanted, parts, ciphertext.layout)


def _where(ciphertext: Ciphertext, wanted: Sequence[int]) -> list[int]:
    """The places of its polynomials in a ciphertext of more parties."""
    if ciphertext.layout == "compact":
        return [0, *(1 + wanted.index(party) for party in ciphertext.parties)]
    return [2 * wanted.index(party) + side for party in ciphertext.parties for side in (0, 1)]


def _aligned(a: Ciphertext, b: Ciphertext) -> tuple[Ciphertext, Ciphertext]:
    """Both, extended to the union of their parties. Raises ParameterError for different levels or layouts."""
    _check_alike(a, b)
    union = sorted({*a.parties, *b.parties})
    return extend(a, union), extend(b, union)


def _check_alike(a: Ciphertext, b: Ciphertext) -> None:
    if a.level != b.level:
        raise ParameterError(f"the ciphertexts have {a.level} and {b.level} primes: switch one of them")
    if a.layout != b.layout:
        raise ParameterError(f"the ciphertexts have the layouts {a.layout} and {b.layout}: encrypt both in one layout")


def add(gadget: Gadget, a: Ciphertext, b: Ciphertext) -> Ciphertext:
    """a + b, of the parties of both."""
    a, b = _aligned(a, b)
    return replace(a, parts=gadget.ring.at(a.level).add(a.parts, b.parts))


def total(gadget: Gadget, ciphertexts: Sequence[Ciphertext]) -> Ciphertext:
    """The sum of ciphertexts of one level and layout, of the parties of all: that of their extensions, of which the zeros are neither stored nor added."""
    for other in ciphertexts[1:]:
        _check_alike(ciphertexts[0], other)
    first, wanted = ciphertexts[0], tuple(sorted({party for each in ciphertexts for party in each.parties}))
    ring = gadget.ring.at(first.level)
    sum_ = ring.zeros(len(places(wanted, first.layout)))
    for ciphertext in ciphertexts:
        for polynomial, place in enumerate(_where(ciphertext, wanted)):
            ring.add(sum_[:, place], ciphertext.parts[:, polynomial], out=sum_[:, place])
    return Ciphertext(wanted, sum_, first.layout)


def multiply(gadget: Gadget, a: Ciphertext, b: Ciphertext) -> Product:
    """a b, not relinearised: (k + 1)^2 products of polynomials for k parties, 4 k^2 with pairs."""
    a, b = _aligned(a, b)
    ring, count = gadget.ring.at(a.level), a.parts.shape[1]
    parts = np.empty((a.level, count, count, ring.degree), dtype=np.uint64)
    for i in range(count):
        ring.mul(a.parts[:, i : i + 1], b.parts, out=parts[:, i])
    return Product(a.parties, parts, a.layout)


def square(gadget: Gadget, a: Ciphertext) -> Product:
    """a^2, not relinearised: (k + 1)(k + 2)/2 products of polynomials. The polynomials below the diagonal are zero."""
    ring, count = gadget.ring.at(a.level), a.parts.shape[1]
    parts = ring.zeros(count, count)
    for i in range(count):
        row = ring.mul(a.parts[:, i : i + 1], a.parts[:, i:])
        row[:, 1:] = ring.add(row[:, 1:], row[:, 1:])
        parts[:, i, i:] = row
    return Product(a.parties, parts, a.layout)


def switch(gadget: Gadget, ciphertext: Ciphertext, level: int = 1) -> Ciphertext:
    """The ciphertext at a level of so many primes, by SEAL's rule for BGV. Raises ParameterError if it has fewer."""
    if not 1 <= level <= ciphertext.level:
        raise ParameterError(f"a ciphertext with {ciphertext.level} primes cannot be switched to {level}")
    parts = ciphertext.parts
    while len(parts) > level:
        parts = divide_by_last(gadget.ring.at(len(parts)), parts, gadget.t)
    return replace(ciphertext, parts=parts)


def phase(gadget: Gadget, ciphertext: Ciphertext | Product, secrets: Secrets) -> Words:
    """The phase, [primes, N] in NTT form. Raises ParameterError if a secret is missing."""
    missing = set(ciphertext.parties) - set(secrets)
    if missing:
        raise ParameterError(f"the secret of party {min(missing)} is missing: all of {ciphertext.parties} decrypt together")
    ring, level = gadget.ring.at(ciphertext.level), ciphertext.level
    one = np.ones((level, ring.degree), dtype=np.uint64)
    weights = np.stack([one if owner is None else secrets[owner][:level] for owner in places(ciphertext.parties, ciphertext.layout)], axis=1)
    parts = ciphertext.parts
    for _ in range(parts.ndim - 2):
        parts = ring.inner(weights, parts)
    wipe(weights)
    return parts


def integers(gadget: Gadget, words: Words) -> _arith.Objects:
    """Coefficients of a polynomial in NTT form, [primes, N], as integers, centred modulo the product of its primes."""
    ring = gadget.ring.at(len(words))
    return _arith.crt_centred(ring.intt(words), ring.primes)


def decrypt(gadget: Gadget, ciphertext: Ciphertext | Product, secrets: Secrets) -> Ints:
    """The message, coefficients centred modulo t, with the secrets of all its parties in one place: for checks. A committee decrypts by :mod:`.joint`."""
    ring, t = gadget.ring.at(ciphertext.level), gadget.t
    return _arith.centred(residues_modulo(ring, ring.intt(phase(gadget, ciphertext, secrets)), t), t)


def residues_modulo(ring: Ring, coefficients: Words, t: int) -> Words:
    """Coefficients [primes, N], as integers centred modulo Q, modulo t. x is the sum of d_i Q/q_i - v Q, for d_i = x (Q/q_i)^-1 mod q_i and v the sum of d_i / q_i, rounded:
    in floating point, unless some coefficient is so near to Q/2 that this would not decide."""
    total, quotient = np.zeros(ring.degree, dtype=np.uint64), np.zeros(ring.degree)
    for x, q in zip(coefficients, ring.primes, strict=True):
        cofactor = ring.modulus // q
        d = mulmod_scalar(x, pow(cofactor, -1, q), q)
        total += d % np.uint64(t) * np.uint64(cofactor % t) % np.uint64(t)
        quotient += d.astype(np.float64) / q
    if np.abs(quotient % 1 - 0.5).min() < 2.0**-40:
        exact: Words = (_arith.crt_centred(coefficients, ring.primes) % t).astype(np.uint64)
        return exact
    total += np.rint(quotient).astype(np.uint64) * np.uint64(-ring.modulus % t)
    total %= np.uint64(t)
    return total


__all__ = [
    "Ciphertext", "Layout", "Party", "Product", "PublicKey", "Reference", "Secrets", "add", "decode", "decrypt", "encode", "encrypt", "extend", "integers",
    "multiply", "phase", "places", "residues_modulo", "square", "switch", "total", "zeros_of",
]  # fmt: skip
