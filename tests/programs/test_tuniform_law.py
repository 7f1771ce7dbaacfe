"""The noise of keys for TFHE-rs has exactly the distribution TUniform(b): its variance, and every cell of its range."""

from __future__ import annotations

import os

import numpy as np
import pytest
from scipy import stats

from .running import REPLICATED_RING, SEMI_RING, Backend, run

LONG = os.environ.get("KEYQUORUM_LONG", "") == "1"
SAMPLES = 1 << (22 if LONG else 17)
CELLS = 256


@pytest.mark.parametrize("b", [17, 45])
@pytest.mark.parametrize("backend", [REPLICATED_RING, SEMI_RING], ids=str)
def test_variance_and_cells(backend: Backend, b: int) -> None:
    """2^17 samples; 2^22 with KEYQUORUM_LONG=1, whose variance is known within 0.14 %."""
    noise = run("sample_tuniform", {"size": SAMPLES, "b": b, "chunk": 1 << 14}, backend).shares
    assert np.abs(noise).max() <= 1 << b
    # The fourth moment of a uniform variable is 9/5 of the square of its variance.
    spread = stats.norm.isf(0.0005) * np.sqrt(0.8 / SAMPLES)
    variance = (2.0 ** (2 * b + 1) + 1) / 6
    assert abs((noise.astype(np.float64) ** 2).mean() / variance - 1) < spread < (0.005 if LONG else 0.01)
    # Shifted by half a step, both ends together are one cell of full probability.
    cells = np.bincount(((noise + (1 << b)) % (1 << (b + 1))) >> (b + 1 - 8), minlength=CELLS)
    assert stats.chisquare(cells).pvalue > 1e-5
