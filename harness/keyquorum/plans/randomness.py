"""Private randomness of one party, from the operating system. Callers clear the arrays after use (:func:`wipe`)."""

from __future__ import annotations

import math
import os

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

FLOAT_BITS = 40
"""log2 of the standard deviation up to which a double resolves deviates well below one unit (53 bits, 9 deviations)."""


def wipe(*arrays: NDArray[np.int64] | NDArray[np.uint64] | NDArray[np.float64]) -> None:
    """Overwrites arrays that held secrets."""
    for array in arrays:
        array.fill(0)


def uniform_bits(size: int, bits: int) -> Ints:
    """``size`` integers uniform in [0, 2^bits), bits <= 62."""
    words = np.frombuffer(bytearray(os.urandom(8 * size)), dtype="<u8")
    words >>= np.uint64(64 - bits)
    return words.view(np.int64)


def uniform_trits(size: int) -> Ints:
    """``size`` integers uniform in {0, 1, 2}: bytes below 243 give five trits each, others are drawn again."""
    digits = np.empty(0, dtype=np.int64)
    while digits.size < size:
        raw = np.frombuffer(os.urandom(size // 4 + 64), dtype=np.uint8)
        good = raw[raw < 243].astype(np.int64)
        fives = np.stack([good // 3**i % 3 for i in range(5)], axis=1).reshape(-1)
        digits = np.concatenate([digits, fives])
    return digits[:size].copy()


def rounded_gaussian(size: int, sigma: float) -> Ints:
    """``size`` rounded normal deviates of standard deviation ``sigma`` (at most 2^55), for flooding.

    Box–Muller on 53-bit uniforms of the operating system. Beyond 2^FLOAT_BITS, where rounded products of floats are no longer
    dense in the integers, the deviate is of the high part and the low bits are uniform: multiples of a power of two would
    leave the low bits of a result bare. Not constant in time; the values mask a result and are used once.
    """
    if not 0 < sigma <= 2.0**55:
        raise ValueError(f"standard deviation {sigma} is out of (0, 2^55]")
    low = max(0, math.ceil(math.log2(sigma)) - FLOAT_BITS)
    if low:
        high = rounded_gaussian(size, math.ldexp(sigma, -low)) << low
        return high + uniform_bits(size, low) - (1 << (low - 1))
    half = (size + 1) // 2
    radius = (uniform_bits(half, 53).astype(np.float64) + 1.0) * 2.0**-53
    angle = uniform_bits(half, 53).astype(np.float64) * (2.0**-53 * 2.0 * np.pi)
    length = np.sqrt(-2.0 * np.log(radius))
    values = np.concatenate([length * np.cos(angle), length * np.sin(angle)])[:size] * sigma
    result = np.rint(values).astype(np.int64)
    wipe(radius, angle, length, values)
    return result
