"""The statistics of the other tests, on values from tables."""

from __future__ import annotations

import math

import numpy as np
import pytest

from .distributions import (
    CBD_KURTOSIS,
    CBD_VARIANCE,
    centred_binomial,
    chi_square_p,
    chi_square_tail,
    discrete_gaussian,
    kurtosis,
    uniform,
    variance,
)

QUANTILES_99 = {1: 6.6349, 2: 9.2103, 5: 15.0863, 10: 23.2093, 31: 52.1914, 63: 92.0100, 255: 310.4574}


@pytest.mark.parametrize("degrees", QUANTILES_99)
def test_tail_of_chi_square(degrees: int) -> None:
    """99 % quantiles."""
    assert chi_square_tail(QUANTILES_99[degrees], degrees) == pytest.approx(0.01, rel=1e-3)
    assert chi_square_tail(0.0, degrees) == pytest.approx(1.0)


def test_exact_laws() -> None:
    """Probabilities sum to 1; the moments are the known ones."""
    distribution = centred_binomial()
    assert math.fsum(distribution.values()) == pytest.approx(1)
    assert variance(distribution) == pytest.approx(CBD_VARIANCE)
    assert kurtosis(distribution) == pytest.approx(CBD_KURTOSIS)
    gaussian = discrete_gaussian(3.2, 23)
    assert math.fsum(gaussian.values()) == pytest.approx(1)
    assert variance(gaussian) == pytest.approx(3.2**2, rel=1e-9)


def test_p_values_of_small_samples() -> None:
    """Impossible values give 0, exact proportions 1, rare cells are joined; p-values are uniform on the right distribution."""
    assert chi_square_p(np.array([0, 1, 5]), uniform(range(3))) == 0.0
    assert chi_square_p(np.repeat(np.arange(4), 100), uniform(range(4))) == pytest.approx(1)
    assert chi_square_p(np.zeros(1000, dtype=np.int64), uniform(range(2))) < 1e-9
    rng = np.random.default_rng(1)
    values = sorted(chi_square_p(rng.binomial(42, 0.5, 5000) - 21, centred_binomial()) for _ in range(400))
    assert max(abs(p - (i + 0.5) / 400) for i, p in enumerate(values)) < 1.63 / 20  # Kolmogorov, 99 %
