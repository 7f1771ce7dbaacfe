"""How often decryptions of evaluated FHEW ciphertexts are wrong: `round_mask_open` at the rate that its noise gives, the exact roundings never.

The noise of bootstrapped ciphertexts of ajax53 is drawn with its deviation for 3 parties, and multiplied by a power of two, so that failures are frequent
enough to be counted: a mask and noise e carry with probability |e| / (q / 16). KEYQUORUM_LONG=1: 2^20 decryptions each, with noise 2^12 and 2^20 times as wide.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from keyquorum import api
from keyquorum.fhe.fhew import evaluated_deviation
from keyquorum.fhe.lwe import FHEW_SETS, encrypt
from keyquorum.parties import PartyContext, run_in_process
from keyquorum.schemes.fhew.keygen import FhewRequest
from keyquorum.schemes.lwe.phases import lwe_phases
from keyquorum.schemes.lwe.variant import LweVariant
from keyquorum.sharing.group import RoundingGroup
from scipy import stats

from tests.long import LONG
from tests.plans.quorum import reconstruct

from .test_fhew import AJAX, TINY

BATCH = 1 << 12
BATCHES = (1 << 20) // BATCH if LONG else 2
SCALES = (12, 20) if LONG else (22,)
LARGEST = AJAX.delta // 2 - 4
"""The largest noise of which exact roundings take away nothing else; two units are the rounding of a scaled phase."""


def wrong_ones(protocol: str, roundings: tuple[str, ...], noise: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Wrong decryptions of ciphertexts with this noise, [batches, count], by each rounding."""
    monkeypatch.setitem(FHEW_SETS, TINY.name, TINY)
    committee = api.in_process_committee(3, protocol)
    material = api.keygen_in_process(committee, FhewRequest(TINY, "local"))
    ring = reconstruct(protocol, 1, [m.shares[0].words for m in material], TINY.prime)
    rng = np.random.default_rng(5)
    messages = rng.integers(0, 16, noise.shape)
    ciphertexts = [encrypt(TINY, ring, m, rng, e) for m, e in zip(messages, noise, strict=True)]
    variants = [LweVariant(rounding, TINY) for rounding in roundings]

    def job(context: PartyContext) -> list[int]:
        group = RoundingGroup.of(context, committee.threshold, 0)
        counts = [0] * len(variants)
        for right, batch in zip(messages, ciphertexts, strict=True):
            z = lwe_phases(context, group, material[context.party].shares[0], batch)
            if not group.member:
                continue
            for i, variant in enumerate(variants):
                words = variant.use(group, z, variant.make(group, right.size), 0)
                if words is not None:
                    counts[i] += int((variant.messages(words[0]) != right).sum())
        return counts

    return run_in_process(committee, job, timeout=1200)[0]


@pytest.mark.parametrize("protocol", ["shamir", "rep-field"])
@pytest.mark.parametrize("scale", SCALES)
def test_masks_carry_as_often_as_the_noise_says(protocol: str, scale: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the exact 99.9 % interval of the binomial distribution: one in 1,000 alarms is false, as masks are the system's randomness."""
    deviation = 2.0**scale * evaluated_deviation(AJAX, 1.5)
    noise = np.rint(np.random.default_rng(scale).normal(0, deviation, (BATCHES, BATCH))).astype(np.int64)
    assert np.abs(noise).max() < LARGEST
    rate = math.sqrt(2 / math.pi) * deviation / AJAX.delta
    [wrong] = wrong_ones(protocol, ("round_mask_open",), noise, monkeypatch)
    low, high = stats.binom.interval(0.999, noise.size, rate)
    print(f"{protocol}, noise 2^{scale} times as wide: {wrong} of {noise.size} wrong, expected {noise.size * rate:.1f}, {low:.0f} to {high:.0f}")
    assert low <= wrong <= high


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("protocol", ["shamir", "rep-field"])
def test_exact_roundings_are_never_wrong(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With evaluated noise 2^29 times as wide, cut off at half the distance of two messages, and with that border itself."""
    rng = np.random.default_rng(9)
    noise = np.rint(rng.normal(0, 2.0**29 * evaluated_deviation(AJAX, 1.5), (BATCHES, BATCH) if LONG else (1, BATCH // 4)))
    noise = np.clip(noise, -LARGEST, LARGEST).astype(np.int64)
    noise[:, 0], noise[:, 1] = LARGEST, -LARGEST
    assert (np.abs(noise) > AJAX.delta // 16).mean() > 0.5
    roundings = ("round_ltz_circuit",) if LONG else ("round_ltz_circuit", "round_ltz_table")
    assert wrong_ones(protocol, roundings, noise, monkeypatch) == [0] * len(roundings)
