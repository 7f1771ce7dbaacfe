"""Distributions of the noise of FHEW keys. False-alarm rates: 0.1 % a chi-square; seeds of the sampler are fixed, so a test always passes or never."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from keyquorum import _engine, api
from keyquorum.fhe.fhew import BOOTSTRAPPING, KEY_FILES, KINDS, PUBLIC, SWITCHING
from keyquorum.fhe.lwe import FHEW_SETS
from keyquorum.schemes.fhew import noise as noise_module
from keyquorum.schemes.fhew.keygen import FhewRequest
from keyquorum.schemes.fhew.noise import LEAST, NoisePlan
from keyquorum.sharing import randomness
from keyquorum.sharing.randomness import table_gaussian
from scipy import stats

from tests.plans.quorum import reconstruct
from tests.programs.test_wide_noise import below

from .test_fhew import AJAX, TINY

SIZE = 1 << 18
COMMITTEES = [(3, 1), (5, 2), (7, 3), (21, 10), (61, 30)]


def gaussian(variance: float | Fraction, reach: int) -> list[Decimal]:
    """Probabilities of the discrete Gaussian on -reach..reach, to 70 digits."""
    exact = Fraction(variance)
    with localcontext() as context:
        context.prec = 90
        v = Decimal(exact.numerator) / Decimal(exact.denominator)
        weights = [(-Decimal(k * k) / (2 * v)).exp() for k in range(-reach, reach + 1)]
        total = sum(weights)
        return [w / total for w in weights]


def convolved(law: list[Decimal], times: int) -> list[Decimal]:
    """The law of a sum of that many."""
    out = [Decimal(1)]
    with localcontext() as context:
        context.prec = 60
        for _ in range(times):
            following = [Decimal(0)] * (len(out) + len(law) - 1)
            for i, p in enumerate(out):
                for j, r in enumerate(law):
                    following[i + j] += p * r
            out = following
    return out


def chi_square(samples: np.ndarray, law: np.ndarray) -> float:
    """p-value of samples against probabilities of -reach..reach, over cells of at least 50 expected, the others joined."""
    reach = len(law) // 2
    counts = np.bincount(samples + reach, minlength=len(law)).astype(float)
    expected = law * samples.size
    full = expected >= 50
    observed, wanted = [*counts[full], counts[~full].sum()], [*expected[full], expected[~full].sum()]
    if wanted[-1] < 50:
        observed, wanted = [*observed[:-2], observed[-2] + observed[-1]], [*wanted[:-2], wanted[-2] + wanted[-1]]
    return float(stats.chisquare(observed, np.array(wanted) * (sum(observed) / sum(wanted))).pvalue)


def draw(size: int, variance: float, seed: int) -> np.ndarray:
    return _engine.sample_symmetric(randomness._thresholds(variance), size, bytes([seed]) * 16)


@pytest.mark.parametrize("variance", [LEAST, 1.18, 3.24, 6.48, 100.0, 1024.0])
def test_the_table_is_exact_to_128_bits(variance: float) -> None:
    """The statistical distance of what the table gives from the discrete Gaussian, exactly."""
    words = randomness._thresholds(variance).astype(object).reshape(-1, 3)
    reached = [0, *(int(low) + (int(middle) << 63) + (int(high) << 126) for low, middle, high in words), 1 << 189]
    found = [b - a for a, b in pairwise(reached)]
    assert all(mass > 0 for mass in found) and len(found) >= 14 * math.sqrt(variance) + 1
    reach = 2 * len(found)
    ideal = gaussian(variance, reach)[reach:]
    with localcontext() as context:
        context.prec = 90
        ideal = [ideal[0], *(2 * p for p in ideal[1:])]
        given = [Decimal(mass) / (1 << 189) for mass in found] + [Decimal(0)] * (len(ideal) - len(found))
        assert sum(abs(p - r) for p, r in zip(ideal, given, strict=True)) / 2 < Decimal(2) ** -128


@pytest.mark.parametrize(("parties", "threshold"), COMMITTEES)
def test_sums_of_contributions_have_the_law_of_the_convolution(parties: int, threshold: int) -> None:
    plan = NoisePlan(AJAX, "local", parties, threshold)
    total = sum(draw(SIZE, plan.contributed, party + 1) for party in range(parties))
    reach = math.ceil(8 * math.sqrt(plan.contributed))
    single = np.array([float(p) for p in gaussian(plan.contributed, reach)])
    law = single
    for _ in range(parties - 1):
        law = np.convolve(law, single)
    assert chi_square(total, law) > 0.001
    assert abs(total.var() / plan.variance - 1) < 3.3 * math.sqrt(2 / SIZE)
    # the test sees noise of another variance
    other = draw(SIZE, 1.02 * plan.contributed, 1) + sum(draw(SIZE, 1.02 * plan.contributed, party + 1) for party in range(1, parties))
    assert chi_square(other, law) < 0.001


def test_contributions_are_those_of_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    plan, asked = NoisePlan(AJAX, "local", 3, 1), []
    monkeypatch.setattr(noise_module, "table_gaussian", lambda size, variance: asked.append((size, variance)) or np.zeros(size, dtype=np.int64))
    monkeypatch.setattr(noise_module, "discrete_gaussian", lambda size, sigma: asked.append((size, sigma)) or np.zeros(size, dtype=np.int64))
    plan.contribution(PUBLIC, 5)
    plan.contribution(SWITCHING, 6)
    assert asked == [(5, 6.48), (6, 3.4 * 2.0**26 / math.sqrt(2))]


def test_a_sum_is_no_discrete_gaussian() -> None:
    """The distances that docs/pages/fhew.md states, of sums of m deviates of variance v from the deviate of variance m v."""

    def distance(v: Fraction, m: int) -> Decimal:
        reach = math.ceil(13 * math.sqrt(v))
        law = convolved(gaussian(v, reach), m)
        return sum((abs(p - r) for p, r in zip(law, gaussian(m * v, m * reach), strict=True)), Decimal(0)) / 2

    assert 7.8e-3 < distance(Fraction(49, 100), 2) < 8.0e-3
    assert 4e-9 < distance(Fraction(118, 100), 11) < 5e-9
    assert distance(Fraction(648, 100), 2) < 2e-16


def test_the_sampler_of_the_system_is_seeded_anew() -> None:
    one, two = table_gaussian(1000, 6.48), table_gaussian(1000, 6.48)
    assert not np.array_equal(one, two) and one.dtype == np.int64 and abs(float(one.mean())) < 0.5
    assert np.array_equal(draw(1000, 6.48, 3), draw(1000, 6.48, 3)) and table_gaussian(0, 1.0).size == 0
    for variance in (0.48, 1025.0):
        with pytest.raises(ValueError, match="is out of"):
            table_gaussian(1, variance)
    for words, said in (([1, 2], "no cumulative table"), ([0, 0, 1 << 63], "no cumulative table"), ([0, 0, 2, 0, 0, 1], "no cumulative table")):
        with pytest.raises(_engine.UsageError, match=said):
            _engine.sample_symmetric(np.array(words, dtype=np.uint64), 1)
    with pytest.raises(_engine.UsageError, match="16 bytes, not 3"):
        _engine.sample_symmetric(np.array([0, 0, 1], dtype=np.uint64), 1, b"abc")


def test_noise_of_the_switching_key_is_wide() -> None:
    plan = NoisePlan(AJAX, "local", 3, 1)
    total = sum(plan.contribution(SWITCHING, 1 << 15) for _ in range(3))
    assert stats.kstest(total / math.sqrt(plan.switch_variance), "norm").pvalue > 1e-5
    assert np.unique(total % 2).size == 2 and np.unique(total % 64).size == 64  # no low bits are missing


@pytest.mark.parametrize(("protocol", "noise"), [("shamir", "local"), ("rep-field", "exact")])
def test_noise_of_a_key_has_the_law_of_its_plan(protocol: str, noise: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all rows of the bootstrapping key and of the key-switching key. One in 10^5 alarms is false: this randomness is the system's."""
    monkeypatch.setitem(FHEW_SETS, TINY.name, TINY)
    material = api.keygen_in_process(api.in_process_committee(3, protocol), FhewRequest(TINY, noise))
    info = material[0].info
    ring, short = (reconstruct(protocol, 1, [m.shares[j].words for m in material], TINY.prime) for j in (0, 1))
    files = [KEY_FILES.read(material[0].public[KEY_FILES.name(kind)], kind) for kind in KINDS]
    plan = info.noise_plan
    if noise == "local":
        single = np.array([float(p) for p in gaussian(plan.contributed, 25)])
        law = np.convolve(np.convolve(single, single), single)
    else:
        law = np.array([math.comb(52, v + 26) / 2**52 for v in range(-26, 27)])
    for file in files:
        found = file.noise(short, ring)
        if file.kind == SWITCHING and noise == "exact":
            wide = plan.wide
            assert np.abs(found).max() <= wide.weight * wide.half + (1 << wide.b)
            assert stats.kstest(found, lambda x, wide=wide: below(x, *wide)).pvalue > 1e-5
        elif file.kind == SWITCHING:
            assert stats.kstest(found / math.sqrt(plan.switch_variance), "norm").pvalue > 1e-5
        elif file.kind == BOOTSTRAPPING:
            assert chi_square(found, law) > 1e-5
