"""Exact distributions of key material, and the tests that compare samples with them. No scipy: the formulas are short."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

Z99 = NormalDist().inv_cdf(0.995)
"""Half-width of a two-sided 99 % interval, in standard deviations."""
Z_SURE = NormalDist().inv_cdf(1 - 5e-8)
"""Half-width of a two-sided interval that chance leaves once in ten million times: for what no seed can fix."""
CBD_VARIANCE = 10.5
CBD_KURTOSIS = 3 - 1 / 21
"""Fourth moment over squared variance of a sum of 42 independent ±1/2."""

Distribution = Mapping[int, float]


def centred_binomial(bits: int = 21) -> dict[int, float]:
    """Sum of ``bits`` bits minus the sum of as many others."""
    return {k: math.comb(2 * bits, k + bits) / 4**bits for k in range(-bits, bits + 1)}


def discrete_gaussian(sigma: float, tail: int) -> dict[int, float]:
    """Integers with weight exp(-k²/2σ²); what lies beyond ±tail counts as ±tail."""
    far = tail + math.ceil(12 * sigma)
    weights = [math.exp(-k * k / (2 * sigma * sigma)) for k in range(far + 1)]
    total = weights[0] + 2 * math.fsum(weights[1:])
    distribution = {k: weights[abs(k)] / total for k in range(-tail, tail + 1)}
    distribution[tail] = distribution[-tail] = math.fsum(weights[tail:]) / total
    return distribution


def uniform(values: range) -> dict[int, float]:
    """Each of ``values`` alike."""
    return {v: 1 / len(values) for v in values}


def variance(distribution: Distribution) -> float:
    """Variance of a distribution of mean 0."""
    return math.fsum(p * k * k for k, p in distribution.items())


def kurtosis(distribution: Distribution) -> float:
    """Fourth moment over squared variance, for a distribution of mean 0."""
    return math.fsum(p * k**4 for k, p in distribution.items()) / variance(distribution) ** 2


def chi_square_tail(statistic: float, degrees: int) -> float:
    """P(X >= statistic) for a chi-square variable: Q(k+1, x) = Q(k, x) + x^k e^-x / Gamma(k+1), from Q(1/2) or Q(1)."""
    x = statistic / 2
    k = 0.5 if degrees % 2 else 1.0
    tail = math.erfc(math.sqrt(x)) if degrees % 2 else math.exp(-x)
    while k < degrees / 2:
        tail += math.exp(k * math.log(x) - x - math.lgamma(k + 1)) if x > 0 else 0.0
        k += 1
    return min(tail, 1.0)


def chi_square_p(sample: NDArray[Any], distribution: Distribution, least: float = 8.0) -> float:
    """p-value of Pearson's test of a sample against a distribution; neighbouring values are joined until each cell expects ``least``.

    A value of probability 0 gives 0.
    """
    values, counts = np.unique(sample, return_counts=True)
    observed = dict(zip(values.tolist(), counts.tolist(), strict=True))
    if set(observed) - set(distribution):
        return 0.0
    cells: list[list[float]] = []
    for value in sorted(distribution):
        expected = distribution[value] * sample.size
        if cells and (cells[-1][0] < least):
            cells[-1][0] += expected
            cells[-1][1] += observed.get(value, 0)
        else:
            cells.append([expected, observed.get(value, 0)])
    if len(cells) > 1 and cells[-1][0] < least:
        expected, count = cells.pop()
        cells[-1][0] += expected
        cells[-1][1] += count
    statistic = math.fsum((o - e) ** 2 / e for e, o in cells)
    return chi_square_tail(statistic, len(cells) - 1)


def bits_of(words: NDArray[Any], length: int, first: int = 0) -> Iterator[NDArray[Any]]:
    """Bits ``first`` to ``first + length`` of words, a vector each."""
    for i in range(first, first + length):
        yield ((words.astype(np.uint64) >> np.uint64(i)) & np.uint64(1)).astype(np.int64)


def smallest_p(seen: Sequence[NDArray[Any]], known: Sequence[NDArray[Any]]) -> float:
    """The smallest p-value, times the number of tests: that each bit that was seen is balanced, and agrees with each known bit half the time. Vectors of bits, all of one length."""
    count = len(seen[0])
    columns = np.stack(seen).astype(float) * 2 - 1
    others = np.concatenate([np.ones((1, count)), np.stack(known).astype(float) * 2 - 1])
    sums = np.abs(columns @ others.T)
    return math.erfc(float(sums.max()) / math.sqrt(2 * count)) * sums.size


def variance_error(kurtosis_value: float, samples: int) -> float:
    """Relative standard deviation of the sample variance of a distribution with known mean."""
    return math.sqrt((kurtosis_value - 1) / samples)
