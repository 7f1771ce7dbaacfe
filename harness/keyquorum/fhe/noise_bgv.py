"""A bound on the noise of SEAL's BGV ciphertexts, from the operations that made them. It is built to hold for all but a few keys in a thousand.

The phase of a ciphertext, v = m + t e over the integers, decrypts while its coefficients are below Q/2. The phase of a sum is the sum of the
phases, the phase of a product is their product. So v is bounded at the roots z_k = exp(i pi (2k + 1) / N), where polynomials multiply value by value.

**SEAL's roundings are not centred.** Every division by a prime (encryption, key switch, modulus switch) takes r0 + r1 s away, and the coefficients
of r0 and r1 lie in [0, t), with the mean t/2. The mean of r1 gives w = (t/2) s(z) (1 + z + ... + z^(N-1)), with |1 + z + ...| = 1/sin(pi
(2k+1)/(2N)): near z = 1 this is larger than everything else by sqrt(N), and powers of it dominate products. w is the same in all ciphertexts under a
key. So a bound has two parts:

* ``powers``: v = sum of ``powers[i]`` (w / W_0)^(i + 1) + rest, with signs, so that common parts of x and y cancel in x - y. |w(z_k)| <= W_k.
* ``rest``: a decreasing profile, of the absolute values of the rest at the roots, sorted. One number each for the ranks 0, 1, 2-3, 4-7, ... of the
  N/2 pairs. For every k it bounds the sum of the k largest. Sums and products of such profiles are such profiles again, and automorphisms, which
  permute roots, leave them as they are; w moves to the rest there.

Terms: a message has coefficients below t. s is uniform ternary, so s(z) is a complex Gaussian of variance 2N/3. A key switch adds each digit, in [0,
q_i), times t times an error of the key, over the special prime. Correction factors enter as the integers by which SEAL multiplies before a sum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from keyquorum.model.plain import Json

from .parameters import ParameterSet

Floats = NDArray[np.float64]

ERROR_VARIANCE = 10.5
"""Largest variance of the error of keys and encryptions, over both distributions."""
TAIL = 13 * math.log(2)
"""A value at one root exceeds its bound with probability exp(-TAIL)."""
DEVIATIONS = 6.0
"""Bound on the largest coefficient of a polynomial that is spread over many roots, in standard deviations."""
MOST_POWERS = 64
"""Powers of w that are tracked separately; higher ones go to the rest."""
MOST = 2.0**1000
"""A larger bound counts as exhausted, and so does every bound that follows from it."""


@dataclass(frozen=True)
class BgvNoise:
    """Bound on the phase of a ciphertext, with the message, see the module. ``primes``: number of primes of its level; ``factor``: its correction
    factor modulo t."""

    powers: tuple[float, ...]
    rest: tuple[float, ...]
    primes: int
    factor: int = 1

    @property
    def exhausted(self) -> bool:
        """Whether the bound exceeds :data:`MOST`."""
        return not max(self.rest) < MOST

    @property
    def ring_degree(self) -> int:
        """N, from the length of the profile."""
        return 1 << len(self.rest)

    @property
    def log2(self) -> float:
        """log2 of the bound on the coefficients of the phase.

        The largest values are added in full, the others as a sum with independent phases. The split that gives the least bound is taken."""
        first, count = _ranks(self.ring_degree)
        values = np.minimum(_size(self.powers, self.ring_degree) + np.array(self.rest), MOST)
        scale, found = float(values.max()), math.inf
        values = values / scale
        for split in range(len(first) + 1):
            spread = DEVIATIONS * math.sqrt(2 * float(np.sum(count[split:] * values[split:] ** 2)))
            found = min(found, 2 * float(np.sum(count[:split] * values[:split])) + spread)
        return math.log2(found / self.ring_degree) + math.log2(scale)


@lru_cache(maxsize=16)
def _ranks(n: int) -> tuple[Floats, Floats]:
    """First rank and number of ranks of every entry of a profile: 0, 1, 2-3, 4-7, ... of N/2. Both [log2 N]."""
    first = np.array([0.0] + [2.0**i for i in range(int(math.log2(n)) - 1)])
    return first, np.array([1.0, *first[1:]])


def _sum_of_powers(n: int) -> Floats:
    """|1 + z + ... + z^(N-1)| at the first root of every entry."""
    first, _ = _ranks(n)
    return np.asarray(1 / np.sin(np.pi * (2 * first + 1) / (2 * n)))


def _fixed(n: int) -> Floats:
    """Bounds on a complex Gaussian of variance 1 at the roots in their order."""
    first, _ = _ranks(n)
    return np.asarray(np.sqrt(TAIL + 2 * np.log(first + 1)))


def _sorted(n: int) -> Floats:
    """Bounds on the sorted absolute values of N/2 complex Gaussians of variance 1: order statistics by the union bound."""
    first, _ = _ranks(n)
    return np.asarray(np.sqrt(np.log(n / 2 * math.e / (first + 1)) + TAIL / (first + 1)))


def _shape(n: int) -> Floats:
    """W_k / W_0."""
    values = _sum_of_powers(n) * _fixed(n)
    return np.asarray(values / values[0])


def _largest_w(parameters: ParameterSet) -> float:
    """W_0."""
    n, t = parameters.ring_degree, parameters.plain_modulus
    return float(t / 2 * _sum_of_powers(n)[0] * _fixed(n)[0] * math.sqrt(2 * n / 3))


def _size(powers: Sequence[float], n: int) -> Floats:
    """Bound on the absolute value of the part of w, as a profile."""
    shape = _shape(n)
    return np.asarray(sum((abs(a) * shape ** (i + 1) for i, a in enumerate(powers)), np.zeros(len(shape))))


def _made(parameters: ParameterSet, powers: Sequence[float], rest: Floats, primes: int, factor: int) -> BgvNoise:
    """The bound, with high powers of w moved to the rest, and with values above MOST replaced."""
    n = parameters.ring_degree
    if len(powers) > MOST_POWERS:
        high = [0.0] * MOST_POWERS + list(powers[MOST_POWERS:])
        powers, rest = powers[:MOST_POWERS], rest + _size(high, n)
    if not (max((abs(a) for a in powers), default=0.0) < MOST and float(rest.max()) < MOST):  # or not a number
        return BgvNoise((), (MOST,) * len(rest), primes, factor)
    return BgvNoise(tuple(powers), tuple(rest.tolist()), primes, factor)


def _rounded(parameters: ParameterSet, powers: Sequence[float], rest: Floats, primes: int, factor: int) -> BgvNoise:
    """The bound after a division by a prime: adds w, and the deviations of r0 and r1 from their means."""
    n, t = parameters.ring_degree, parameters.plain_modulus
    deviation = t * math.sqrt(n / 12) * _sorted(n)
    added = t / 2 * _sum_of_powers(n) + deviation + deviation * math.sqrt(2 * n / 3) * _sorted(n)
    more = list(powers) or [0.0]
    more[0] += _largest_w(parameters)
    return _made(parameters, more, rest + added, primes, factor)


def fresh(parameters: ParameterSet) -> BgvNoise:
    """The bound of an encryption by SEAL under a public key, which encrypts with one more prime and divides by it."""
    n, t = parameters.ring_degree, parameters.plain_modulus
    first, _ = _ranks(n)
    message = n * t / 2 / np.sqrt(2 * (first + 1))
    hidden = t * math.sqrt(ERROR_VARIANCE * n) * math.sqrt(1 + 4 * n / 3) / parameters.special_prime * _sorted(n) ** 2
    return _rounded(parameters, (), message + hidden, parameters.levels, 1)


def _key_switched(parameters: ParameterSet, noise: BgvNoise) -> BgvNoise:
    n, t = parameters.ring_degree, parameters.plain_modulus
    digits = math.sqrt(sum((q / parameters.special_prime) ** 2 for q in parameters.moduli(noise.primes)))
    error = t * digits * math.sqrt(ERROR_VARIANCE * n)
    added = error * (_sum_of_powers(n) / 2 * _fixed(n) + math.sqrt(n / 12) * _sorted(n) ** 2)
    return _rounded(parameters, noise.powers, np.array(noise.rest) + added, noise.primes, noise.factor)


def switched(parameters: ParameterSet, noise: BgvNoise, primes: int) -> BgvNoise:
    """The bound after modulus switches down to a level of ``primes`` primes, one after another."""
    t = parameters.plain_modulus
    while noise.primes > primes:
        q, level = parameters.coeff_modulus[noise.primes - 1], noise.primes - 1
        factor = noise.factor * pow(q, -1, t) % t
        if noise.exhausted:
            noise = BgvNoise(noise.powers, noise.rest, level, factor)
        else:
            noise = _rounded(parameters, [a / q for a in noise.powers], np.array(noise.rest) / q, level, factor)
    return noise


def balanced(first: int, second: int, t: int) -> tuple[int, int]:
    """The integers in [1, t) by which SEAL multiplies two ciphertexts of these correction factors before their sum."""
    if first == second:
        return 1, 1
    ratio = pow(first, -1, t) * second % t
    chosen, before, now = (ratio, 1), (t, 0), (ratio, 1)
    while now[0]:
        quotient = before[0] // now[0]
        before, now = now, (before[0] % now[0], before[1] - now[1] * quotient)
        candidate = (now[0] % t, now[1] % t)
        if candidate[0] and sum(min(e, t - e) for e in candidate) < sum(min(e, t - e) for e in chosen):
            chosen = candidate
    return chosen


def _sum(parameters: ParameterSet, x: BgvNoise, y: BgvNoise, sign: int) -> BgvNoise:
    t = parameters.plain_modulus
    a, b = balanced(x.factor, y.factor, t)
    powers = [0.0] * max(len(x.powers), len(y.powers))
    for i, value in enumerate(x.powers):
        powers[i] += a * value
    for i, value in enumerate(y.powers):
        powers[i] += sign * b * value
    return _made(parameters, powers, a * np.array(x.rest) + b * np.array(y.rest), x.primes, a * x.factor % t)


def _product(parameters: ParameterSet, x: BgvNoise, y: BgvNoise) -> BgvNoise:
    n, t = parameters.ring_degree, parameters.plain_modulus
    a, b = np.array(x.rest), np.array(y.rest)
    with np.errstate(over="ignore", invalid="ignore"):
        rest = _size(x.powers, n) * b + _size(y.powers, n) * a + a * b
        both = x.powers and y.powers
        powers = [0.0, *np.convolve(x.powers, y.powers).tolist()] if both else []
    return _made(parameters, powers, rest, x.primes, x.factor * y.factor % t)


def after(parameters: ParameterSet, operation: str, inputs: Sequence[BgvNoise], primes: int, switches: int = 1) -> BgvNoise:
    """The bound of the result of one of :data:`keyquorum.fhe.seal.OPERATIONS`, at a level of ``primes``. ``switches``: key switches of a rotation."""
    known = [switched(parameters, noise, primes) for noise in inputs]
    x, y = known[0], known[-1]
    if operation in ("add", "subtract"):
        return _sum(parameters, x, y, 1 if operation == "add" else -1)
    if operation in ("multiply", "square"):
        return _key_switched(parameters, _product(parameters, x, y))
    if operation in ("rotate", "swap"):
        for _ in range(switches):
            moved = np.array(x.rest) + _size(x.powers, parameters.ring_degree)
            x = _key_switched(parameters, _made(parameters, (), moved, primes, x.factor))
        return x
    if operation == "negate":
        return BgvNoise(tuple(-a for a in x.powers), x.rest, x.primes, x.factor)
    return x


def final_budget(parameters: ParameterSet, noise: BgvNoise) -> float:
    """Bits by which the noise may still grow, at its level and at every lower one; below 0 a decryption may be wrong."""
    found = []
    for primes in range(noise.primes, 0, -1):
        noise = switched(parameters, noise, primes)
        found.append(math.log2(math.prod(parameters.moduli(primes))) - 1 - noise.log2)
    return min(found) if not noise.exhausted else min(-1.0, *found)


def to_json(noise: BgvNoise) -> Json:
    """See :func:`from_json`."""
    return {"powers": list(noise.powers), "rest": list(noise.rest), "primes": noise.primes, "factor": noise.factor}


def from_json(parameters: ParameterSet, data: object) -> BgvNoise | None:
    """Inverse of :func:`to_json`; None for data that are no bound of a ciphertext of this set."""
    if not isinstance(data, dict) or set(data) != {"powers", "rest", "primes", "factor"}:
        return None
    powers, rest, primes, factor = data["powers"], data["rest"], data["primes"], data["factor"]
    if type(primes) is not int or type(factor) is not int or not isinstance(powers, list) or not isinstance(rest, list):
        return None
    if not (1 <= primes <= parameters.levels and 1 <= factor < parameters.plain_modulus and len(powers) <= MOST_POWERS):
        return None
    if not all(type(a) in (int, float) and abs(a) <= MOST for a in (*powers, *rest)):
        return None
    if len(rest) != int(math.log2(parameters.ring_degree)) or not all(a > 0 for a in rest):
        return None
    return BgvNoise(tuple(map(float, powers)), tuple(map(float, rest)), primes, factor)


__all__ = ["BgvNoise", "after", "balanced", "final_budget", "fresh", "from_json", "switched", "to_json"]
