"""What paper 003 does and this project does not: smudging noise on partial decryptions, and low bits that are not sent. No command has either."""

from __future__ import annotations

from math import erfc, log2, pi, sqrt

import numpy as np
import pytest
from bench.baselines.toprf_lwe.parameters import gate_parameters
from keyquorum.model import published
from numpy.typing import NDArray

SIGMA = next(float(str(row["value"])) for row in published.load("003_table6_parameters") if row["symbol"] == "sigma")
DIMENSION = 512
HALF = np.uint32(1 << 31)
Words = NDArray[np.uint32]


def wrong_by_smudging(servers: int, sigma: float, count: int, rng: np.random.Generator) -> int:
    """Wrong results of so many decryptions of a bit, whose phase is bit * q/2, q = 2^32: each server adds Gaussian noise of deviation ``sigma`` of the modulus to
    its share of the phase, and the sum is rounded. The ciphertexts have no noise of their own."""
    bits = rng.integers(0, 2, count, dtype=np.uint32)
    phase = bits * HALF
    shares = rng.integers(0, 1 << 32, (servers - 1, count), dtype=np.uint32)
    parts = [*shares, phase - shares.sum(axis=0, dtype=np.uint32)]
    noise = [np.rint(rng.normal(0, sigma, count) * 2**32).astype(np.int64).astype(np.uint32) for _ in range(servers)]
    total = np.zeros(count, np.uint32)
    for part, e in zip(parts, noise, strict=True):
        total += part + e
    return int(np.count_nonzero((total + np.uint32(1 << 30)) >> np.uint32(31) != bits))


@pytest.mark.parametrize(("servers", "factor"), [(10, 1.0), (2, 2.2)])
def test_smudging_makes_results_wrong_as_often_as_its_distribution_says(servers: int, factor: float) -> None:
    """Two servers with the paper's deviation fail with 1.46 10^-8, which cannot be counted: theirs is scaled. 600,000 decryptions have at least 6,000 wrong results:
    10 % are 7 standard deviations. The rounding also takes sums beyond 3/4 q as right, with a probability below 10^-10."""
    count = 600_000
    expected = erfc(0.25 / (factor * SIGMA * sqrt(2 * servers)))
    found = wrong_by_smudging(servers, factor * SIGMA, count, np.random.default_rng(3)) / count
    assert count * expected > 6000 and abs(found / expected - 1) < 0.1


def test_the_papers_own_failure_rates() -> None:
    assert erfc(0.25 / (SIGMA * sqrt(4))) == pytest.approx(1.46e-8, rel=0.02)
    assert erfc(0.25 / (SIGMA * sqrt(20))) == pytest.approx(0.0113, rel=0.02)


def least_bits(k: int, rng: np.random.Generator) -> tuple[Words, Words, NDArray[np.uint32]]:
    """Ciphertexts (a, b) of both bits under the secret of all ones, where k low bits of a are worst: each component loses 2^(k - 1) in one direction."""
    bits = np.array([0, 1], np.uint32)
    high = rng.integers(0, 1 << (32 - k), (2, DIMENSION), dtype=np.uint32) << np.uint32(k)
    bound = np.uint32(1 << gate_parameters("lwe32-p2-seed003").noise_bound)
    a = high + np.uint32(1 << (k - 1))
    return high, a.sum(axis=1, dtype=np.uint32) + bits * HALF + bound, bits


@pytest.mark.parametrize(("k", "right"), [(19, True), (21, True), (22, False)])
def test_low_bits_that_are_not_sent(k: int, right: bool) -> None:
    """The noise of k dropped bits is at most n 2^(k - 1) where components are rounded, and the border is q/4 = 2^30: with the noise of a ciphertext, 2^24, it is
    passed from 22 bits on."""
    rest, b, bits = least_bits(k, np.random.default_rng(4))
    phase = b - rest.sum(axis=1, dtype=np.uint32)
    assert ((((phase + np.uint32(1 << 30)) >> np.uint32(31)) == bits).all()) == right


def test_the_papers_bound_gives_19_bits_where_it_says_20() -> None:
    """16 alpha_min + n 2^(k - 1) <= 4 alpha_max (section 3.4), with the deviations of its table 6 times q = 2^32."""
    least, most = sqrt(2 / pi) * 2.0**-15, sqrt(2 / pi) * 2.0**-6
    k = log2(4 / DIMENSION * (most - 4 * least) * 2**32) + 1
    assert int(k) == 19
    stated = [row["value"] for row in published.load("003_sections3_4_parameters") if row["symbol"] == "k"]
    assert stated == [20]
