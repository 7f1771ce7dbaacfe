"""RNS polynomials over the engine's vector arithmetic.

An RNS polynomial is a uint64 array [..., k, N]: axis -2 runs over the primes, axis -1 over coefficients (index =
power of X) or over NTT positions in SEAL's order (docs/pages/formats.md, SEAL's bytes). Residues are canonical, in [0, q).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keyquorum import _engine

Words = NDArray[np.uint64]
Ints = NDArray[np.int64]
Objects = NDArray[np.object_]

_WITNESSES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)


@lru_cache(maxsize=1024)  # a parameter set is checked each time that it is read
def is_prime(n: int) -> bool:
    """Miller and Rabin with the first twelve primes: exact below 3.3 · 10^24."""
    if n < 2:
        return False
    for p in _WITNESSES:
        if n % p == 0:
            return n == p
    odd, twos = n - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for w in _WITNESSES:
        x = pow(w, odd, n)
        if x in (1, n - 1):
            continue
        for _ in range(twos - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True


@lru_cache(maxsize=64)
def _tables(q: int, n: int) -> Any:
    return _engine.Ntt(q, n)


def _per_prime(moduli: Sequence[int], f: Callable[..., Words], *arrays: Words) -> Words:
    """Applies ``f(q, *flat blocks)`` prime by prime."""
    out = np.empty(arrays[0].shape, dtype=np.uint64)
    for i, q in enumerate(moduli):
        blocks = [np.ascontiguousarray(a[..., i, :]) for a in arrays]
        out[..., i, :] = f(q, *(b.reshape(-1) for b in blocks)).reshape(blocks[0].shape)
    return out


def ntt(a: Words, moduli: Sequence[int]) -> Words:
    """Coefficients to NTT form. [..., k, N]."""
    n = a.shape[-1]
    return _per_prime(moduli, lambda q, x: _tables(q, n).forward(x), a)


def intt(a: Words, moduli: Sequence[int]) -> Words:
    """NTT form to coefficients. [..., k, N]."""
    n = a.shape[-1]
    return _per_prime(moduli, lambda q, x: _tables(q, n).inverse(x), a)


def mul(a: Words, b: Words, moduli: Sequence[int]) -> Words:
    """Position-wise product; same shapes."""
    return _per_prime(moduli, lambda q, x, y: _engine.mulmod(x, y, q), a, b)


def add(a: Words, b: Words, moduli: Sequence[int]) -> Words:
    """Sum; same shapes."""
    return _per_prime(moduli, lambda q, x, y: _engine.addmod(x, y, q), a, b)


def sub(a: Words, b: Words, moduli: Sequence[int]) -> Words:
    """Difference; same shapes."""
    return _per_prime(moduli, lambda q, x, y: _engine.submod(x, y, q), a, b)


def scale(a: Words, factor: int, moduli: Sequence[int]) -> Words:
    """Product with one integer, which is reduced modulo each prime."""
    return _per_prime(moduli, lambda q, x: _engine.mulmod_scalar(x, factor % q, q), a)


def automorphism(a: Words, element: int, moduli: Sequence[int]) -> Words:
    """a(X) -> a(X^element), on coefficients; one polynomial [k, N]."""
    return _per_prime(moduli, lambda q, x: _engine.automorphism(x, element, q), a)


def small(values: Ints, moduli: Sequence[int]) -> Words:
    """Signed integers [..., N], |v| below every prime, to RNS form [..., k, N]."""
    return np.stack([np.where(values < 0, values + q, values).astype(np.uint64) for q in moduli], axis=-2)


def centred(a: Words, q: int) -> Ints:
    """Residues modulo q < 2^62 to representatives in (-q/2, q/2]."""
    signed = a.astype(np.int64)
    return np.where(signed > q // 2, signed - q, signed)


def crt_centred(a: Words, moduli: Sequence[int]) -> Objects:
    """RNS coefficients [k, N] to Python integers, centred modulo the product of the primes."""
    modulus = prod(moduli)
    total: Objects = np.zeros(a.shape[-1], dtype=object)
    for i, q in enumerate(moduli):
        cofactor = modulus // q
        digits = _engine.mulmod_scalar(np.ascontiguousarray(a[i]), pow(cofactor, -1, q), q)
        total = total + digits.astype(object) * cofactor
    total %= modulus
    result: Objects = np.where(total > modulus // 2, total - modulus, total)
    return result


def first_out_of_range(a: Words, moduli: Sequence[int]) -> tuple[int, ...] | None:
    """Index [..., prime, position] of a coefficient that is not below its prime; None when all are."""
    for i, q in enumerate(moduli):
        block = a[..., i, :]
        if block.size and int(block.max()) >= q:
            where = np.argwhere(block >= np.uint64(q))[0]
            return (*(int(x) for x in where[:-1]), i, int(where[-1]))
    return None
