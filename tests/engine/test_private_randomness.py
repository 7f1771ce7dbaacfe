"""The laws of a party's own randomness."""

from __future__ import annotations

import numpy as np
import pytest
from keyquorum.sharing.randomness import discrete_gaussian


@pytest.mark.parametrize("log_sigma", [4, 30, 40, 41, 48, 55])
def test_flooding_fills_the_low_bits(log_sigma: int) -> None:
    """Deviation as asked, and the lowest bits uniform at every size: else the noise would not cover those of a result."""
    sigma, size = 2.0**log_sigma, 1 << 16
    values = discrete_gaussian(size, sigma)
    assert abs(float(values.std()) / sigma - 1) < 0.02
    assert abs(float(values.mean()) / sigma) < 0.03
    counts = np.bincount(values % 4, minlength=4)
    chi_square = float(((counts - size / 4) ** 2).sum() / (size / 4))
    assert chi_square < 25, counts  # 3 degrees of freedom: 2e-5
