"""Noise, secrets and bodies of keys of TFHE and FHEW against their exact distributions: 2^16 samples, 2^22 with KEYQUORUM_LONG=1.

Every part comes from the program that makes it, among the parties of its protocol. The wide noise of the key-switching key that is made jointly, and
TUniform(b), are in tests/programs/test_wide_noise.py and test_tuniform_law.py. Variances are within their 99.9 % interval, which is below 0.5 % for 2^22
samples; seeds are fixed, so a test always passes or never. The bodies of keys alone depend on the system's randomness: one in 10^5 alarms is false.
"""

from __future__ import annotations

import math
from dataclasses import replace
from math import comb

import numpy as np
import pytest
from keyquorum import api
from keyquorum.fhe.fhew import KEY_FILES, KINDS, SWITCHING
from keyquorum.fhe.lwe import FHEW_SETS, TFHE_SETS
from keyquorum.fhe.tfhe import KEY_FILES as TFHE_FILES
from keyquorum.fhe.tfhe import KINDS as TFHE_KINDS
from keyquorum.schemes.fhew.keygen import FhewRequest
from keyquorum.schemes.fhew.noise import NoisePlan
from keyquorum.schemes.tfhe.keygen import TfheRequest
from numpy.typing import NDArray
from scipy import stats

from tests.long import LONG
from tests.plans.quorum import fixed_randomness
from tests.programs.running import run
from tests.protocols import REPLICATED_RING, SEMI_RING, Backend

from .test_fhew import AJAX
from .test_fhew_noise import chi_square, draw, gaussian

SAMPLES = 1 << (22 if LONG else 16)
PIECE = 1 << 18
FIELD = f"F_{AJAX.prime}"
REPLICATED = Backend("rep-field", 3, FIELD, 1)
SHAMIR = [Backend("shamir", n, FIELD, (n - 1) // 2) for n in (3, 5, 7)]
QUANTILE = stats.norm.isf(0.0005)


def variance_is(samples: NDArray[np.int64], variance: float, kurtosis: float, what: str) -> None:
    """The mean of the squares, within its 99.9 % interval; ``kurtosis``: the fourth moment divided by the square of the variance."""
    found = float((samples.astype(np.float64) ** 2).mean()) / variance - 1
    spread = QUANTILE * math.sqrt((kurtosis - 1) / samples.size)
    print(f"{what}: {samples.size} samples, variance {100 * found:+.3f} %, allowed {100 * spread:.3f} %")
    assert abs(found) < spread < (0.005 if LONG else 0.03)


def contributed(backend: Backend, kind: str) -> NDArray[np.int64]:
    """Sums of contributions, which the parties share."""
    plan, made = NoisePlan(AJAX, "local", backend.parties, backend.threshold), []
    for piece in range(-(-SAMPLES // PIECE)):
        size = min(PIECE, SAMPLES)
        private = {}
        for party in range(backend.parties):
            if kind == SWITCHING:
                with fixed_randomness(b"noise of the switching key" + bytes([piece, backend.parties])) as enter:
                    enter(party)
                    private[party] = plan.contribution(kind, size)
            else:
                private[party] = draw(size, plan.contributed, 16 * piece % 256 + party)
        made.append(run("sum_inputs", {"contributors": backend.parties, "size": size}, backend, private=private).shares)
    return np.concatenate(made)


@pytest.mark.parametrize("backend", [*SHAMIR, REPLICATED], ids=str)
def test_local_noise_is_the_convolution(backend: Backend) -> None:
    plan = NoisePlan(AJAX, "local", backend.parties, backend.threshold)
    samples = contributed(backend, "bootstrapping")
    variance_is(samples, plan.variance, 3, f"local, n = {backend.parties}, t = {backend.threshold}")
    single = np.array([float(p) for p in gaussian(plan.contributed, math.ceil(9 * math.sqrt(plan.contributed)))])
    law = single
    for _ in range(backend.parties - 1):
        law = np.convolve(law, single)
    assert chi_square(samples, law) > 0.001


@pytest.mark.parametrize("backend", [SHAMIR[0], SHAMIR[2]], ids=str)
def test_local_noise_of_the_switching_key(backend: Backend) -> None:
    plan = NoisePlan(AJAX, "local", backend.parties, backend.threshold)
    samples = contributed(backend, SWITCHING)
    variance_is(samples, plan.switch_variance, 3, f"local, key-switching key, n = {backend.parties}")
    edges = stats.norm.ppf(np.arange(1, 256) / 256) * math.sqrt(plan.switch_variance)
    cells = np.bincount(np.searchsorted(edges, samples), minlength=256)
    assert stats.chisquare(cells).pvalue > 0.001


def test_exact_noise_is_binomial() -> None:
    plan = NoisePlan(AJAX, "exact", 3, 1)
    samples = run("sample_cbd", {"size": SAMPLES, "method": "bits", "chunk": PIECE, "half": plan.half}, REPLICATED).shares
    variance_is(samples, plan.variance, 3 - 1 / plan.half, "exact")
    law = np.array([comb(2 * plan.half, k) / 4.0**plan.half for k in range(2 * plan.half + 1)])
    assert chi_square(samples, law) > 0.001


@pytest.mark.parametrize("backend", [SHAMIR[0], SHAMIR[1], REPLICATED, REPLICATED_RING, SEMI_RING], ids=str)
def test_secrets_have_their_distribution(backend: Backend) -> None:
    """Bits of s, and of z for TFHE: 1/2 each. Coefficients of z for FHEW: -1, 0 and 1 with 1/4, 1/2 and 1/4."""
    bits = run("sample_bits", {"size": SAMPLES, "chunk": 1 << 16}, backend).shares
    assert set(bits.tolist()) == {0, 1} and stats.chisquare(np.bincount(bits)).pvalue > 0.001
    # pairs of neighbours, too
    assert stats.chisquare(np.bincount(2 * bits[::2] + bits[1::2])).pvalue > 0.001
    if backend.domain == FIELD:
        ring = run("sample_cbd", {"size": SAMPLES, "method": "arith", "chunk": 1 << 16, "half": 1}, backend).shares
        assert set(ring.tolist()) == {-1, 0, 1}
        assert stats.chisquare(np.bincount(ring + 1), np.array([1, 2, 1]) * SAMPLES / 4).pvalue > 0.001


def bodies_are_uniform(words: NDArray[np.uint64], bits: int, what: str) -> None:
    """By the highest and by the lowest 8 of ``bits`` bits, 4 for short files. Modulo the 53-bit prime cells differ by 2^-36."""
    values, width = [], 8 if words.size >= 1 << 13 else 4
    for shift in (bits - width, 0):
        cells = np.bincount(((words >> np.uint64(shift)) & np.uint64((1 << width) - 1)).astype(np.int64), minlength=1 << width)
        values.append(float(stats.chisquare(cells).pvalue))
    print(f"bodies of {what}: {words.size}, p-values {values}")
    assert min(values) > 1e-5


@pytest.mark.parametrize(("protocol", "noise"), [("shamir", "local"), ("rep-field", "exact")])
def test_bodies_of_fhew_are_uniform(protocol: str, noise: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the long test with N = 2048, and 2^20 bodies of the bootstrapping key."""
    size = {"dimension": 2048, "lwe_dimension": 32, "samples": 1 << 14} if LONG else {"dimension": 256, "lwe_dimension": 9, "samples": 500}
    small = replace(AJAX, name="fhew-small", source="tests: hides nothing", **size)
    monkeypatch.setitem(FHEW_SETS, small.name, small)
    public = api.keygen_in_process(api.in_process_committee(3, protocol), FhewRequest(small, noise))[0].public
    for kind in KINDS:
        bodies_are_uniform(KEY_FILES.read(public[KEY_FILES.name(kind)], kind).bodies, 53, f"{small.name}, {kind} key, {protocol}")


@pytest.mark.parametrize(("protocol", "parties"), [("rep-field", 3), ("semi", 2)])
def test_bodies_of_tfhe_are_uniform(protocol: str, parties: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the long test with N = 2048, and 2^20 bodies of the bootstrapping key."""
    size = {"dimension": 2048, "lwe_dimension": 256} if LONG else {"dimension": 256, "lwe_dimension": 16}
    small = replace(TFHE_SETS["tfhers-2-2"], name="tfhe-small", source="tests: hides nothing", **size)
    monkeypatch.setitem(TFHE_SETS, small.name, small)
    public = api.keygen_in_process(api.in_process_committee(parties, protocol), TfheRequest(small))[0].public
    for kind in TFHE_KINDS:
        bodies_are_uniform(TFHE_FILES.read(public[TFHE_FILES.name(kind)], kind).bodies, 64, f"{small.name}, {kind} key, {protocol}")
