"""Private randomness of one party, from the operating system. Callers clear the arrays after use (:func:`wipe`)."""

from __future__ import annotations

import math
import os
from bisect import bisect_right
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import sample_symmetric

Ints = NDArray[np.int64]

TABLE_SIGMA = 256.0
"""Deviation of the table that wide Gaussian deviates are combined from."""
SPREAD = 4.0
"""Least deviation of what is added to m times a deviate, in units of m: four times that of the smoothing that it needs."""
TAIL = 14.0
"""Deviations where a table ends: beyond them are 2^-143."""
HALF_BITS = 62
FRACTION_BITS = 320
"""Of the fixed-point numbers that a table is computed with."""
TABLE_BITS = 189
"""Of the probabilities of :func:`table_gaussian`."""


def wipe(*arrays: NDArray[np.int64] | NDArray[np.uint64] | NDArray[np.float64] | NDArray[np.uint8]) -> None:
    """Overwrites arrays that held secrets."""
    for array in arrays:
        array.fill(0)


def uniform_bits(size: int, bits: int) -> Ints:
    """``size`` integers uniform in [0, 2^bits), bits <= 62."""
    words = np.frombuffer(bytearray(os.urandom(8 * size)), dtype="<u8")
    words >>= np.uint64(64 - bits)
    return words.view(np.int64)


def uniform_below(size: int, bound: int) -> Ints:
    """``size`` integers uniform in [0, bound), 1 <= bound <= 2^62: words of as many bits as ``bound - 1`` has, others are drawn again."""
    bits = max((bound - 1).bit_length(), 1)
    found = uniform_bits(size, bits)
    while True:
        wrong = np.flatnonzero(found >= bound)
        if wrong.size == 0:
            return found
        found[wrong] = uniform_bits(wrong.size, bits)


def uniform_trits(size: int) -> Ints:
    """``size`` integers uniform in {0, 1, 2}: bytes below 243 give five trits each, others are drawn again."""
    digits = np.empty(0, dtype=np.int64)
    while digits.size < size:
        raw = np.frombuffer(os.urandom(size // 4 + 64), dtype=np.uint8)
        good = raw[raw < 243].astype(np.int64)
        fives = np.stack([good // 3**i % 3 for i in range(5)], axis=1).reshape(-1)
        digits = np.concatenate([digits, fives])
    return digits[:size].copy()


def discrete_gaussian(size: int, sigma: float) -> Ints:
    """``size`` integers of the discrete Gaussian distribution of deviation ``sigma``, from 1 to 2^55, for flooding.

    Shifted by an integer e, this distribution has the Kullback-Leibler divergence e^2 / (2 sigma^2) from itself, as the continuous one. A
    rounded product of floats has not: where it gets coarser than the integers, its gaps show what it was added to.

    A wide deviate is m x + y, with x from a table and y narrower, of deviation at least SPREAD m (Peikert: An Efficient and Parallel Gaussian
    Sampler for Lattices, CRYPTO 2010, theorem 3.1): every probability of the sum is within 4 exp(-2 pi^2 SPREAD^2) < 2^-450 of the ideal
    one, relatively. The tables are exact to 2^-124. Not constant in time; the values mask a result and are used once.
    """
    if not 1 <= sigma <= 2.0**55:
        raise ValueError(f"standard deviation {sigma} is out of [1, 2^55]")
    if sigma <= TABLE_SIGMA * SPREAD:
        return _from_table(size, sigma)
    factor = int(sigma / math.hypot(TABLE_SIGMA, SPREAD))
    narrow = math.sqrt((sigma - factor * TABLE_SIGMA) * (sigma + factor * TABLE_SIGMA))
    wide, result = _from_table(size, TABLE_SIGMA), discrete_gaussian(size, narrow)
    wide *= factor
    result += wide
    wipe(wide)
    return result


def gaussian_words(variance: int) -> int:
    """Uniform words of HALF_BITS bits that a deviate of :func:`gaussian_of_words` takes."""
    return 2 * len(_steps(variance))


def gaussian_of_words(variance: int, words: NDArray[np.uint64]) -> Ints:
    """The discrete Gaussian distribution as :func:`discrete_gaussian` has it, computed from given uniform ``words`` of HALF_BITS bits, [gaussian_words(variance), size]: whoever has the same
    words has the same deviates. There is no arithmetic of floats in it, which two machines might round differently. ``variance``: an integer from 1 to 2^110."""
    total = np.zeros(words.shape[1], dtype=np.int64)
    for (factor, step), high, low in zip(_steps(variance), words[::2], words[1::2], strict=True):
        deviates = _inverted(_table(Fraction(step)), high.astype(np.int64), low.astype(np.int64))
        deviates *= factor
        total += deviates
        wipe(deviates)
    return total


def _steps(variance: int) -> list[tuple[int, int]]:
    """Factors and variances of the tables of which a wide deviate is the sum: each is narrower than what is left, whose deviation is at least SPREAD times the factor."""
    if not 1 <= variance <= 1 << 110:
        raise ValueError(f"variance {variance} is out of [1, 2^110]")
    table, spread, steps = int(TABLE_SIGMA) ** 2, int(SPREAD) ** 2, []
    while variance > table * spread:
        factor = math.isqrt(variance // (table + spread))
        steps.append((factor, table))
        variance -= factor * factor * table
    return [*steps, (1, variance)]


def _from_table(size: int, sigma: float) -> Ints:
    """A deviate of a table with words of its own."""
    return _inverted(_distribution(sigma), uniform_bits(size, HALF_BITS), uniform_bits(size, HALF_BITS))


def _inverted(table: tuple[int, Ints, list[int]], high: Ints, low: Ints) -> Ints:
    """By inversion of the distribution function, which is known to 124 bits: the upper half decides, except for one deviate in 2^49. Wipes the words."""
    first, upper, exact = table
    indices: Ints = np.searchsorted(upper, high, side="left").astype(np.int64, copy=False)
    found = upper[indices]
    for i in np.flatnonzero(found == high):
        indices[i] = bisect_right(exact, (int(high[i]) << HALF_BITS) + int(low[i]))
    wipe(high, low, found)
    indices += first
    return indices


def _distribution(sigma: float) -> tuple[int, Ints, list[int]]:
    """:func:`_table` of a deviation."""
    return _table(Fraction(sigma) ** 2)


@lru_cache(maxsize=16)
def _table(variance: Fraction) -> tuple[int, Ints, list[int]]:
    """The smallest value, and of each value the probability, times 2^124, that a deviate is at most as large: its upper half, and all of it."""
    reach = math.isqrt(math.floor(int(TAIL) ** 2 * variance)) + 1
    weights = _weights(variance, reach)
    both = [*reversed(weights[1:]), *weights]
    total, exact, sum_ = sum(both), [], 0
    for weight in both:
        sum_ += weight
        exact.append((sum_ << 2 * HALF_BITS) // total)
    return -reach, np.array([value >> HALF_BITS for value in exact], dtype=np.int64), exact


def _weights(variance: Fraction, reach: int) -> list[int]:
    """exp(-k^2 / (2 variance)) for k = 0..reach, times 2^FRACTION_BITS."""
    one = 1 << FRACTION_BITS
    step, term, k = 0, one, 0
    while term:  # the series of exp(-1 / (2 variance))
        step += -term if k % 2 else term
        k += 1
        term = term * variance.denominator // (2 * k * variance.numerator)
    weights, ratio, squared = [one], step, step * step >> FRACTION_BITS
    for _ in range(reach):
        weights.append(weights[-1] * ratio >> FRACTION_BITS)
        ratio = ratio * squared >> FRACTION_BITS
    return weights


def table_gaussian(size: int, variance: float) -> Ints:
    """``size`` integers of the discrete Gaussian distribution of a small ``variance``, from 0.49 to 2^10, in constant time: for noise of keys.

    Every deviate is compared with a whole table (``Source/math/src/table.rs``). The statistical distance from the ideal distribution is below 2^-128 a
    deviate: what is beyond TAIL deviations has less than 2^-137, and each of at most 449 thresholds is rounded to 2^-189.
    """
    if not 0.49 <= variance <= 2.0**10:
        raise ValueError(f"variance {variance} is out of [0.49, 2^10]")
    deviates: Ints = sample_symmetric(_thresholds(variance), size)
    return deviates


@lru_cache(maxsize=8)
def _thresholds(variance: float) -> NDArray[np.uint64]:
    """The probability, times 2^189, that a magnitude is at most k, for k from 0 to one less than the largest: three words of 63 bits each."""
    reach = math.ceil(TAIL * math.sqrt(variance)) + 1
    first, *others = _weights(Fraction(variance), reach)
    masses = [first, *(2 * weight for weight in others)]
    total, reached, words = sum(masses), 0, []
    for mass in masses[:-1]:
        reached += mass
        share = (reached << TABLE_BITS) // total
        words += [share >> shift & (1 << 63) - 1 for shift in (0, 63, 126)]
    return np.array(words, dtype=np.uint64)
