"""Exact distributions of the samplers, and tests of samples against them."""

from __future__ import annotations

from decimal import Decimal, localcontext
from math import comb, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy import stats

CONFIDENCE = 0.99
"""Every test of a distribution has a false-alarm rate of 1 %; seeds are fixed, so a test either always passes or always fails."""


def uniform_ternary() -> dict[int, float]:
    return dict.fromkeys((-1, 0, 1), 1 / 3)


def centred_binomial() -> dict[int, float]:
    return {v: comb(42, v + 21) / 2**42 for v in range(-21, 22)}


def exact_gaussian(sigma_milli: int, bound: int) -> dict[int, Decimal]:
    """Probabilities of the discrete Gaussian on [-bound, bound]."""
    with localcontext() as context:
        context.prec = 60
        variance = (Decimal(sigma_milli) / 1000) ** 2
        weights = {v: (-Decimal(v * v) / (2 * variance)).exp() for v in range(-bound, bound + 1)}
        total = sum(weights.values())
        return {v: weight / total for v, weight in weights.items()}


def check_distribution(samples: NDArray[np.int64], distribution: dict[int, float]) -> None:
    """Chi-square on the values (rare ones joined), and mean and variance, each at 99 %."""
    n = len(samples)
    values, counts = np.unique(samples, return_counts=True)
    assert set(values.tolist()) <= set(distribution), "a value outside the distribution"
    seen = dict(zip(values.tolist(), counts.tolist(), strict=True))
    frequent = [v for v, p in distribution.items() if n * p >= 10]
    observed = [seen.get(v, 0) for v in frequent]
    wanted = [n * distribution[v] for v in frequent]
    if len(frequent) < len(distribution):
        observed.append(n - sum(observed))
        wanted.append(n - sum(wanted))
        if wanted[-1] < 5:
            observed[:2], wanted[:2] = [observed[0] + observed[1]], [wanted[0] + wanted[1]]
            observed[-2:], wanted[-2:] = [sum(observed[-2:])], [sum(wanted[-2:])]
    p_value = stats.chisquare(observed, np.array(wanted) * (n / sum(wanted))).pvalue
    assert p_value > 1 - CONFIDENCE, f"chi-square p-value {p_value}"
    mean = sum(v * p for v, p in distribution.items())
    central = {k: sum((v - mean) ** k * p for v, p in distribution.items()) for k in (2, 4)}
    z = stats.norm.ppf((1 + CONFIDENCE) / 2)
    assert abs(samples.mean() - mean) < z * sqrt(central[2] / n), "mean"
    variance_error = sqrt((central[4] - central[2] ** 2) / n)
    assert abs(samples.var() - central[2]) < z * variance_error, "variance"


__all__ = ["CONFIDENCE", "centred_binomial", "check_distribution", "exact_gaussian", "uniform_ternary"]
