"""Evaluation of GHS in clear text: what tests compute under joint keys, and the same of plaintexts by the schoolbook. No part of the package.

Paper: Gentry, Halevi, Smart: Homomorphic Evaluation of the AES Circuit (2012), section 3 (key switching with digits and special primes, modulus switching).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np
from keyquorum._engine import Cyclotomic, addmod, mulmod
from keyquorum.fhe.ghs import GhsKeyFile, GhsParameters, Ints, Words, masks
from keyquorum.fhe.ghs_ciphertexts import GhsCiphertext
from numpy.typing import NDArray

Integers = NDArray[np.object_]


@cache
def cyclotomic_polynomial(m: int) -> Any:
    """Coefficients of Phi_m, lowest first: X^m - 1 divided by Phi_d for all smaller divisors d."""
    rest = np.zeros(m + 1, dtype=np.int64)
    rest[0], rest[m] = -1, 1
    for d in range(1, m):
        if m % d == 0:
            rest = _divided(rest, cyclotomic_polynomial(d))[0]
    return rest


def _divided(a: Ints, by: Ints) -> tuple[Ints, Ints]:
    """Quotient and remainder by a monic polynomial."""
    rest, size = a.copy(), by.size - 1
    quotient = np.zeros(max(1, a.size - size), dtype=np.int64)
    for k in range(a.size - 1, size - 1, -1):
        quotient[k - size] = rest[k]
        rest[k - size : k + 1] -= rest[k] * by
    return quotient, rest[:size]


def product_of(m: int, a: Ints, b: Ints) -> Ints:
    """a b modulo Phi_m and 2."""
    return _divided(np.convolve(a, b), cyclotomic_polynomial(m))[1] % 2


def image_of(m: int, a: Ints, t: int) -> Ints:
    """a(X^t) modulo Phi_m and 2."""
    moved = np.zeros(m, dtype=np.int64)
    moved[np.arange(a.size) * t % m] = a
    return _divided(moved, cyclotomic_polynomial(m))[1] % 2


def _integers(order: int, primes: Sequence[int], values: Words) -> Integers:
    """Coefficients below the product of the primes, by the Chinese remainder theorem, of values modulo each prime [primes, phi(m)]."""
    whole = prod(primes)
    total = np.zeros(values.shape[1], dtype=object)
    for q, row in zip(primes, values, strict=True):
        unit = whole // q * pow(whole // q, -1, q)
        total += Cyclotomic(q, order).inverse(np.ascontiguousarray(row)).astype(object) * unit
    return total % whole


def _values(order: int, primes: Sequence[int], coefficients: Integers) -> Words:
    """Inverse of :func:`_integers`, for any integers."""
    return np.stack([Cyclotomic(q, order).forward((coefficients % q).astype(np.uint64)) for q in primes])


def _centred(x: Integers, modulus: int) -> Integers:
    x = x % modulus
    return np.where(x > modulus // 2, x - modulus, x)


def switched(ciphertext: GhsCiphertext, keep: int) -> GhsCiphertext:
    """Modulus switching to the first primes, ``keep`` of them: parts are divided by the others' product D, after the smallest even number that makes them divisible."""
    order, kept = ciphertext.order, ciphertext.primes[:keep]
    dropped = prod(ciphertext.primes[keep:])
    parts = []
    for part in ciphertext.parts:
        x = _integers(order, ciphertext.primes, part)
        off = _centred(x, dropped)
        off = np.where(off % 2 == 1, np.where(off > 0, off - dropped, off + dropped), off)
        parts.append(_values(order, kept, (x - off) // dropped))
    return GhsCiphertext(order, kept, np.stack(parts))


def added(a: GhsCiphertext, b: GhsCiphertext) -> GhsCiphertext:
    """The sum."""
    return _with(a, lambda k, q: [addmod(x[k].copy(), y[k].copy(), q) for x, y in zip(a.parts, b.parts, strict=True)])


def _with(of: GhsCiphertext, parts: Any) -> GhsCiphertext:
    """A ciphertext whose parts modulo each prime a function gives."""
    return GhsCiphertext(of.order, of.primes, np.stack([np.stack(parts(k, q)) for k, q in enumerate(of.primes)], axis=1))


def multiplied(key: GhsKeyFile, a: GhsCiphertext, b: GhsCiphertext) -> GhsCiphertext:
    """The product, relinearised by the switching key (2, 1), the first one."""

    def tensor(k: int, q: int) -> list[Words]:
        (a0, a1), (b0, b1) = a.parts[:, k].copy(), b.parts[:, k].copy()
        return [mulmod(a0, b0, q), addmod(mulmod(a0, b1, q), mulmod(a1, b0, q), q), mulmod(a1, b1, q)]

    made = _with(a, tensor)
    return _key_switched(key, 0, made.primes, made.parts[:2], made.parts[2])


def image(key: GhsKeyFile, a: GhsCiphertext, t: int) -> GhsCiphertext:
    """The ciphertext of m(X^t), by the switching key (1, t)."""
    target = 1 + key.parameters.automorphisms.index(t)
    moved = np.stack([np.stack([Cyclotomic(q, a.order).automorphism(part[k].copy(), t) for k, q in enumerate(a.primes)]) for part in a.parts])
    return _key_switched(key, target, a.primes, np.stack([moved[0], np.zeros_like(moved[0])]), moved[1])


def _key_switched(key: GhsKeyFile, target: int, primes: Sequence[int], under: Words, other: Words) -> GhsCiphertext:
    """``under`` s plus what ``other`` times the target of a switching key is: sum over digits d_j (b_j, a_j), and then without the special primes."""
    p: GhsParameters = key.parameters
    assert tuple(primes) == p.primes[: p.digits * p.per_digit]
    special, rest, digits = prod(p.special), _integers(p.order, primes, other), []
    for j in range(p.digits):
        radix = prod(primes[j * p.per_digit : (j + 1) * p.per_digit])
        digits.append(_centred(rest, radix))
        rest = (rest - digits[-1]) // radix
    parts = np.zeros((2, len(p.primes), p.degree), dtype=np.uint64)
    for k, q in enumerate(p.primes):
        if k < len(primes):
            parts[:, k] = [mulmod(part[k].copy(), np.full(p.degree, special % q, dtype=np.uint64), q) for part in under]
        for j, digit in enumerate(digits):
            values, place = _values(p.order, [q], digit)[0], target * p.digits + j
            for part, given in enumerate((key.bodies(k, (place, place + 1)), masks(key.seed, k, (place, place + 1), p))):
                parts[part, k] = addmod(parts[part, k].copy(), mulmod(values, given, q), q)
    return switched(GhsCiphertext(p.order, p.primes, parts), len(primes))


__all__ = ["added", "image", "image_of", "multiplied", "product_of", "switched"]
