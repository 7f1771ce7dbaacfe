"""Gadget decompositions: small digits of a polynomial, and the weights whose sum with them is the polynomial again.

RNS digits with a special prime P, as SEAL has them: digit i of x is x mod q_i, of weight P (Q/q_i) [(Q/q_i)^-1 mod q_i], and what was multiplied with it is
divided by P. Bits: weights 2^j for j < log2 Q, as paper 001 has them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from keyquorum import _engine
from keyquorum.fhe import _arith
from keyquorum.fhe.parameters import ParameterSet

from .ring import Ring, Words, tables
from .sets import check

Digits = NDArray[np.uint64] | NDArray[np.uint8]
"""Coefficients of digit polynomials, [digits, N]."""
CHUNK = 16
"""Digits that are widened to words at a time: bounds memory."""


class Rows(Protocol):
    """Polynomials [primes, rows, ..., N], in memory or in a file."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of all of them."""

    def __getitem__(self, place: tuple[int, slice], /) -> Words:
        """Some of the rows modulo one prime."""


class Gadget(ABC):
    """A gadget for one parameter set and level. ``ring``: modulo the data primes of the level. ``key_ring``: modulo the primes of its keys."""

    def __init__(self, parameters: ParameterSet, level: int | None = None) -> None:
        self.parameters, self.t = check(parameters), parameters.plain_modulus
        self.ring = Ring(parameters.ring_degree, parameters.moduli(parameters.levels)).at(parameters.levels if level is None else level)

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name in tables."""

    @property
    @abstractmethod
    def key_ring(self) -> Ring:
        """The ring of keys."""

    @property
    @abstractmethod
    def digits(self) -> int:
        """Number of digits."""

    @property
    @abstractmethod
    def digit_bits(self) -> int:
        """Digits are in [0, 2^digit_bits)."""

    @property
    @abstractmethod
    def special(self) -> int:
        """P; 1 if there is none."""

    @abstractmethod
    def weights(self) -> Words:
        """The weights as residues, [primes of keys, digits]."""

    @abstractmethod
    def decompose(self, x: Words) -> Digits:
        """Digits of polynomials x [primes, ..., N] in NTT form: [digits, ..., N], coefficients."""

    @abstractmethod
    def finish(self, x: Words) -> Words:
        """Sums of products of digits and rows, modulo the data primes: divided by P."""

    @abstractmethod
    def of_keys(self, rows: Words) -> Words:
        """What this level takes of rows [primes of keys, digits, ..., N] that were made for the highest level."""

    def at(self, level: int) -> Gadget:
        """The gadget of another level."""
        return type(self)(self.parameters, level)

    def inner(self, digits: Digits, *rows: Rows, threads: int = 1) -> list[Words]:
        """Sums over digit polynomials [count, N] of digit times row, for each of ``rows`` [primes of keys, count, ..., N]: [primes of keys, ..., N] each,
        not finished. A digit is transformed once for all rows. ``threads``: among which primes and chunks of digits are shared out."""
        ring, parts = self.key_ring, [(i, first) for first in range(0, len(digits), CHUNK) for i in range(len(self.key_ring.primes))]
        totals = [np.zeros((len(ring.primes), *row.shape[2:]), dtype=np.uint64) for row in rows]

        def part(place: tuple[int, int]) -> tuple[int, list[Words]]:
            return place[0], self._part(digits, rows, *place)

        with ThreadPoolExecutor(threads) as pool:
            for i, sums in pool.map(part, parts) if threads > 1 else map(part, parts):
                for total, sum_ in zip(totals, sums, strict=True):
                    total[i] = _engine.addmod(total[i].reshape(-1), sum_.reshape(-1), ring.primes[i]).reshape(sum_.shape)
        return totals

    def _part(self, digits: Digits, rows: tuple[Rows, ...], i: int, first: int) -> list[Words]:
        """The sums of a chunk of digits modulo prime ``i``."""
        q, n = self.key_ring.primes[i], self.ring.degree
        chunk = digits[first : first + CHUNK].astype(np.uint64)
        if self.digit_bits >= q.bit_length():
            chunk %= np.uint64(q)
        blocks = [row[i, slice(first, first + CHUNK)] for row in rows]
        flat = [np.ascontiguousarray(block).reshape(-1) for block in blocks]
        sums = tables(q, n).sums_of_products(np.ascontiguousarray(chunk).reshape(-1), flat)
        return [total.reshape(block.shape[1:]) for total, block in zip(sums, blocks, strict=True)]


class RnsGadget(Gadget):
    """RNS digits with the special prime."""

    @property
    def name(self) -> str:
        """See :class:`Gadget`."""
        return "rns"

    @property
    def key_ring(self) -> Ring:
        """The data primes, and the special prime."""
        return Ring(self.ring.degree, (*self.ring.primes, self.special))

    @property
    def digits(self) -> int:
        """One for each data prime."""
        return len(self.ring.primes)

    @property
    def digit_bits(self) -> int:
        """Bits of the longest data prime."""
        return max(q.bit_length() for q in self.ring.primes)

    @property
    def special(self) -> int:
        """P."""
        return self.parameters.special_prime

    def weights(self) -> Words:
        """P modulo q_i for digit i, 0 modulo all other primes."""
        found = np.zeros((len(self.key_ring.primes), self.digits), dtype=np.uint64)
        for i, q in enumerate(self.ring.primes):
            found[i, i] = self.special % q
        return found

    def decompose(self, x: Words) -> Digits:
        """The residues."""
        return self.ring.intt(x)

    def finish(self, x: Words) -> Words:
        """Divided by P; the message stays, as P is 1 mod t."""
        return divide_by_last(self.key_ring, x, self.t)

    def of_keys(self, rows: Words) -> Words:
        """The residues modulo the level's primes and P, of the first digits."""
        if rows.shape[:2] == (len(self.key_ring.primes), self.digits):
            return rows
        return np.ascontiguousarray(rows[[*range(self.digits), -1], : self.digits])


class BitGadget(Gadget):
    """Bits."""

    @property
    def name(self) -> str:
        """See :class:`Gadget`."""
        return "bits"

    @property
    def key_ring(self) -> Ring:
        """The data primes."""
        return self.ring

    @property
    def digits(self) -> int:
        """Bits of Q."""
        return self.ring.modulus.bit_length()

    @property
    def digit_bits(self) -> int:
        """1."""
        return 1

    @property
    def special(self) -> int:
        """1: there is none."""
        return 1

    def weights(self) -> Words:
        """Powers of two."""
        return np.array([[pow(2, j, q) for j in range(self.digits)] for q in self.ring.primes], dtype=np.uint64)

    def decompose(self, x: Words) -> Digits:
        """The bits of the coefficients in [0, Q)."""
        coefficients, modulus, length = self.ring.intt(x), self.ring.modulus, -(-self.digits // 8)
        found = np.empty((self.digits, *x.shape[1:]), dtype=np.uint8)
        for place in np.ndindex(x.shape[1:-1]):
            numbers = _arith.crt_centred(coefficients[(slice(None), *place)], self.ring.primes) % modulus
            raw = np.frombuffer(b"".join(int(v).to_bytes(length, "little") for v in numbers), dtype=np.uint8).reshape(-1, length)
            found[(slice(None), *place)] = np.unpackbits(raw, axis=1, count=self.digits, bitorder="little").T
        return found

    def finish(self, x: Words) -> Words:
        """Nothing to do."""
        return x

    def of_keys(self, rows: Words) -> Words:
        """The residues modulo the level's primes, of the first digits."""
        if rows.shape[:2] == (len(self.ring.primes), self.digits):
            return rows
        return np.ascontiguousarray(rows[: len(self.ring.primes), : self.digits])


def divide_by_last(ring: Ring, x: Words, t: int) -> Words:
    """Polynomials x [primes, ..., N] in NTT form divided by the last prime, modulo the others: SEAL's rule for BGV, which keeps x modulo t where the last
    prime is 1 mod t (``RNSTool::mod_t_and_divide_q_last_ntt_inplace`` of SEAL 4)."""
    *rest, last = ring.primes
    less, modulus = ring.at(len(rest)), np.uint64(t)
    flat = np.ascontiguousarray(x[-1]).reshape(-1)
    residues = tables(last, ring.degree).inverse(flat).reshape(x.shape[1:])
    quotient = (modulus - residues % modulus) % modulus
    if last % t != 1:
        quotient = quotient * np.uint64(pow(last, -1, t)) % modulus
    out = less.zeros(*x.shape[1:-1])
    for i, q in enumerate(rest):
        # residues + quotient * last is what x is modulo last, and 0 modulo t
        delta = _engine.addmod(
            (residues % np.uint64(q)).reshape(-1), _engine.mulmod_scalar((quotient % np.uint64(q)).reshape(-1), last % q, q), q
        )  # fmt: skip
        difference = _engine.submod(np.ascontiguousarray(x[i]).reshape(-1), tables(q, ring.degree).forward(delta), q)
        out[i] = _engine.mulmod_scalar(difference, pow(last, -1, q), q).reshape(x.shape[1:])
    return out


GADGETS: dict[str, type[Gadget]] = {"rns": RnsGadget, "bits": BitGadget}
"""Both gadgets, by name."""

__all__ = ["GADGETS", "BitGadget", "Digits", "Gadget", "RnsGadget", "Rows", "divide_by_last"]
