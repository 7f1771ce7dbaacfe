"""Polynomials modulo X^N + 1 and several primes, for the multi-key baseline: arrays whose first axis runs over the primes, so that all that is modulo one
prime lies together. Random polynomials are of the operating system."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from keyquorum import _engine
from keyquorum.model.errors import ParameterError
from keyquorum.sharing.randomness import uniform_bits, uniform_trits, wipe

Words = NDArray[np.uint64]
Ints = NDArray[np.int64]

ERROR_BITS = 21
"""Bits of each of the two sums of a centred binomial error, as in SEAL."""
ERROR_DEVIATION = (ERROR_BITS / 2) ** 0.5
"""Standard deviation of an error."""


@cache
def tables(q: int, degree: int) -> _engine.Ntt:
    """The transform modulo a prime."""
    return _engine.Ntt(q, degree)


@dataclass(frozen=True)
class Ring:
    """Polynomials modulo X^``degree`` + 1 and ``primes``: uint64 arrays [primes, ..., degree], residues in [0, q), mostly in NTT form (SEAL's order)."""

    degree: int
    primes: tuple[int, ...]

    @property
    def modulus(self) -> int:
        """The product of the primes."""
        return prod(self.primes)

    def at(self, count: int) -> Ring:
        """The ring of the first ``count`` primes. Raises ParameterError if there are fewer."""
        if not 1 <= count <= len(self.primes):
            raise ParameterError(f"no level has {count} primes: choose 1 to {len(self.primes)}")
        return Ring(self.degree, self.primes[:count])

    def zeros(self, *shape: int) -> Words:
        """Zero polynomials, [primes, *shape, degree]."""
        return np.zeros((len(self.primes), *shape, self.degree), dtype=np.uint64)

    def _each(self, f: Callable[..., Words], *arrays: Words, out: Words | None = None) -> Words:
        shape = np.broadcast_shapes(*(a.shape for a in arrays))
        wide = [np.broadcast_to(a, shape) for a in arrays]
        out = np.empty(shape, dtype=np.uint64) if out is None else out
        for i, q in enumerate(self.primes):
            for place in np.ndindex(shape[1:-1]):  # one polynomial after another, which the cache holds
                out[(i, *place)] = f(q, *(np.ascontiguousarray(a[(i, *place)]) for a in wide))
        return out

    def ntt(self, a: Words) -> Words:
        """Coefficients to NTT form."""
        return self._each(lambda q, x: tables(q, self.degree).forward(x), a)

    def intt(self, a: Words) -> Words:
        """NTT form to coefficients."""
        return self._each(lambda q, x: tables(q, self.degree).inverse(x), a)

    def mul(self, a: Words, b: Words, out: Words | None = None) -> Words:
        """Products, in NTT form; shapes are broadcast. ``out``: where they go (default: a new array)."""
        return self._each(lambda q, x, y: _engine.mulmod(x, y, q), a, b, out=out)

    def inner(self, a: Words, b: Words) -> Words:
        """Sums over j of a[:, j] times b[:, j], for a [primes, count, degree] and b [primes, count, ..., degree] in NTT form: [primes, ..., degree]."""
        out = self.zeros(*b.shape[2:-1])
        for i, q in enumerate(self.primes):
            x, y = (np.ascontiguousarray(v[i]).reshape(-1) for v in (a, b))
            [total] = _engine.sums_of_products(x, [y], self.degree, q)
            out[i] = total.reshape(out[i].shape)
        return out

    def add(self, a: Words, b: Words, out: Words | None = None) -> Words:
        """Sums; shapes are broadcast. ``out``: where they go."""
        return self._each(lambda q, x, y: _engine.addmod(x, y, q), a, b, out=out)

    def sub(self, a: Words, b: Words) -> Words:
        """Differences; shapes are broadcast."""
        return self._each(lambda q, x, y: _engine.submod(x, y, q), a, b)

    def scale(self, a: Words, factor: int) -> Words:
        """Products with an integer."""
        return self._each(lambda q, x: _engine.mulmod_scalar(x, factor % q, q), a)

    def small(self, values: Ints) -> Words:
        """Integers [..., degree], below every prime in magnitude, in NTT form."""
        residues = np.stack([(values + (values >> 63 & q)).view(np.uint64) for q in self.primes])
        result = self.ntt(residues)
        wipe(residues)
        return result

    def uniform(self, *shape: int) -> Words:
        """Uniform polynomials, [primes, *shape, degree]: words of as many bits as a prime has, drawn again where they are not below it."""
        out = self.zeros(*shape)
        for i, q in enumerate(self.primes):
            out[i] = _uniform(q, out[i].size).reshape(out[i].shape)
        return out

    def ternary(self, *shape: int) -> Words:
        """Polynomials with coefficients uniform in {-1, 0, 1}, in NTT form. Private: callers wipe them."""
        values = uniform_trits(int(np.prod(shape)) * self.degree) - 1
        result = self.small(values.reshape(*shape, self.degree))
        wipe(values)
        return result

    def errors(self, factor: int, *shape: int, message: Ints | None = None) -> Words:
        """Polynomials ``factor`` e with e centred binomial (21 + 21 bits), in NTT form; ``message`` [N] is added to the first. Private: callers wipe them."""
        values = centred_binomial(int(np.prod(shape)) * self.degree)
        values *= factor
        if message is not None:
            values[: self.degree] += message
        result = self.small(values.reshape(*shape, self.degree))
        wipe(values)
        return result


def _uniform(q: int, size: int) -> Words:
    shift = np.uint64(64 - q.bit_length())
    found = np.frombuffer(bytearray(os.urandom(8 * size)), dtype=np.uint64)
    found >>= shift
    while (wrong := np.flatnonzero(found >= np.uint64(q))).size:
        found[wrong] = np.frombuffer(os.urandom(8 * wrong.size), dtype=np.uint64) >> shift
    return found


def centred_binomial(size: int) -> Ints:
    """``size`` errors: a sum of 21 bits minus a sum of 21 bits, counted in both halves of a word at once, without tables."""
    words = uniform_bits(size, 2 * ERROR_BITS).view(np.uint64)
    words[:] = (words & np.uint64((1 << ERROR_BITS) - 1)) | (words >> np.uint64(ERROR_BITS)) << np.uint64(32)
    words -= (words >> np.uint64(1)) & _everywhere(0x55555555)
    words[:] = (words & _everywhere(0x33333333)) + ((words >> np.uint64(2)) & _everywhere(0x33333333))
    words += words >> np.uint64(4)
    words &= _everywhere(0x0F0F0F0F)
    words += (words >> np.uint64(8)) + (words >> np.uint64(16))
    words &= _everywhere(0xFF)
    result: Ints = (words >> np.uint64(32)).view(np.int64)
    words &= np.uint64(0xFF)
    result -= words.view(np.int64)
    wipe(words)
    return result


def _everywhere(half: int) -> np.uint64:
    """A word of two equal halves."""
    return np.uint64(half << 32 | half)


__all__ = ["ERROR_DEVIATION", "Ints", "Ring", "Words", "centred_binomial", "tables"]
