"""Wide noise of `sample_wide_noise`: on every protocol of its header, its exact distribution, and that of the key-switching key of ajax53."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from keyquorum.fhe.lwe_sets import FHEW_SETS
from keyquorum.model.errors import ProgramError
from keyquorum.schemes.fhew.noise import NoisePlan
from numpy.typing import NDArray
from scipy import stats

from tests.long import LONG
from tests.protocols import ADDITIVE, EMULATE_FIELD, EMULATE_RING, MAC_FIELD, MAC_RING, REPLICATED_FIELD, REPLICATED_RING, Backend

from .distributions import check_distribution
from .running import run

SAMPLES = 1 << (22 if LONG else 16)
AJAX = Backend("rep-field", 3, f"F_{FHEW_SETS['ajax53'].prime}", 1)


def probabilities(half: int, weight: int, b: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Every value, and its probability: the convolution."""
    reach = weight * half + (1 << b)
    law = np.zeros(2 * reach + 1)
    uniform = np.full((1 << (b + 1)) + 1, 2.0 ** -(b + 1))
    uniform[[0, -1]] /= 2
    for c in range(-half, half + 1):
        first = reach + weight * c - (1 << b)
        law[first : first + uniform.size] += comb(2 * half, c + half) / 4.0**half * uniform
    return np.arange(-reach, reach + 1), law


def below(x: NDArray[np.float64], half: int, weight: int, b: int) -> NDArray[np.float64]:
    """The probability of values below x + 1/2, for integers x: the sum over the binomial of that of TUniform(b)."""
    total = np.zeros_like(x)
    for c in range(-half, half + 1):
        total += comb(2 * half, c + half) / 4.0**half * np.clip((x + 0.5 - weight * c + 2.0**b) / 2.0 ** (b + 1), 0, 1)
    return total


@pytest.mark.parametrize("backend", [EMULATE_RING, EMULATE_FIELD, REPLICATED_RING, REPLICATED_FIELD, *ADDITIVE, MAC_RING, MAC_FIELD], ids=str)
def test_every_value_has_its_probability(backend: Backend) -> None:
    half, weight, b, size = 3, 3, 1, 20_000 if backend.protocol not in ("spdz2k", "mascot") else 300
    values, law = probabilities(half, weight, b)
    assert law.sum() == pytest.approx(1) and (law[1:-1] > 0).all()
    assert (law * values**2).sum() == pytest.approx(weight**2 * half / 2 + (2 ** (2 * b + 1) + 1) / 6)
    found = run("sample_wide_noise", {"size": size, "half": half, "weight": weight, "b": b, "chunk": 16384}, backend).shares
    check_distribution(found, dict(zip(values.tolist(), law.tolist(), strict=True)))


def test_gaps_are_refused() -> None:
    with pytest.raises(ProgramError, match="weight 9 leaves gaps: at most 8 for b = 2"):
        run("sample_wide_noise", {"size": 4, "half": 1, "weight": 9, "b": 2, "chunk": 4}, EMULATE_RING)


def test_noise_of_the_switching_key_is_that_of_the_set() -> None:
    """2^16 samples, 2^22 with KEYQUORUM_LONG=1: the variance within its 99.9 % interval, and 256 cells against the exact distribution."""
    p = FHEW_SETS["ajax53"]
    half, weight, b = NoisePlan(p, "exact", 3, 1).wide
    variance = p.switch_deviation**2
    assert weight**2 * half / 2 + (2.0 ** (2 * b + 1) + 1) / 6 == pytest.approx(variance, rel=1e-7)
    noise = run("sample_wide_noise", {"size": SAMPLES, "half": half, "weight": weight, "b": b, "chunk": 1 << 14}, AJAX).shares
    assert np.abs(noise).max() <= weight * half + (1 << b)
    # the fourth moment is at most that of a normal variable, 3 variances squared
    spread = stats.norm.isf(0.0005) * np.sqrt(2 / SAMPLES)
    assert abs((noise.astype(np.float64) ** 2).mean() / variance - 1) < spread < (0.005 if LONG else 0.02)
    edges = np.floor(stats.norm.ppf(np.arange(1, 256) / 256) * p.switch_deviation)
    law = np.diff([0.0, *below(edges, half, weight, b), 1.0])
    cells = np.bincount(np.searchsorted(edges, noise, side="left"), minlength=256)
    assert stats.chisquare(cells, law * SAMPLES).pvalue > 1e-5
    assert stats.chisquare(np.bincount(noise & 63, minlength=64)).pvalue > 1e-5  # no low bits are missing
