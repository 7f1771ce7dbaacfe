"""The flooding of CKKS results: the divergence from the worst error that a policy admits, an adversary who measures it, and the precision that
is left, as stated and as measured."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum.fhe.errors import SecurityWarning
from keyquorum.fhe.parameters import list_parameter_sets, load
from keyquorum.inspection import describe
from keyquorum.model.errors import CiphertextError, PolicyError
from keyquorum.parties import run_in_process
from keyquorum.parties.jobs import run_job
from keyquorum.schemes.seal import decrypt as decrypt_plan
from keyquorum.schemes.seal.keygen import SealRequest
from keyquorum.schemes.seal.policy import FloodPolicy, policy_from_json
from keyquorum.schemes.seal.precision import LEAST_KEY_BITS, key_precision, precision
from keyquorum.sharing import randomness
from keyquorum.sharing.randomness import discrete_gaussian
from numpy.typing import NDArray

from tests.fhe.dealer import narrow

from .quorum import WEAK, Seal, committee, make_key

DEGREES = (4096, 8192, 16384, 32768)
POLICIES = (FloodPolicy(noise_bits=13), FloodPolicy(1, 1, 1), FloodPolicy(40, 1, 9), FloodPolicy(30, 1 << 20, 11))


def bits_of_security(policy: FloodPolicy, degree: int) -> float:
    """What all decryptions of a key give away of the worst error, |e_i| = 2^noise_bits in every coefficient, in bits.

    One decryption: the Kullback-Leibler divergence of N(e, sigma^2) from N(0, sigma^2), |e|^2 / (2 sigma^2) with the Euclidean norm; of
    decryptions it adds up. s bits are 2^-s / 24.
    """
    error = np.full(degree, 2.0**policy.noise_bits)
    divergence = policy.decryptions * float(error @ error) / (2 * policy.sigma(degree) ** 2)
    return -math.log2(24 * divergence)


@pytest.fixture
def without_the_root_of_n(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes the remedy out: sigma for an error of Euclidean norm 2^noise_bits, whatever N is."""
    monkeypatch.setattr(FloodPolicy, "sigma", lambda self, degree: math.sqrt(12 * self.decryptions) * 2.0 ** (self.bits / 2 + self.noise_bits))


def guesses_right(policy: FloodPolicy, degree: int, trials: int = 400, excess: int = 0) -> float:
    """How often an adversary is right who sees flooded noise and tells the worst error from none: the best test there is, the sign of the
    projection on the error. 0.5: by guessing. ``excess``: the error is 2^excess times the worst."""
    error, right = np.full(degree, 1 << (policy.noise_bits + excess)), 0
    rng = np.random.default_rng(4)
    for secret in rng.integers(0, 2, trials):
        seen = secret * error + discrete_gaussian(degree, policy.sigma(degree))
        right += int((seen.sum() > error.sum() / 2) == secret)
    return right / trials


@pytest.mark.parametrize("degree", DEGREES)
@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_small_flooding_blocked_divergence_is_as_promised(policy: FloodPolicy, degree: int) -> None:
    """The bits of the policy, from the worst error that it admits."""
    assert bits_of_security(policy, degree) >= policy.bits - 1e-9


def test_small_flooding_blocked_adversary_guesses() -> None:
    """One bit, one decryption: the error is a fifth of the flooding's deviation, and who looks is right in 54 of 100 cases."""
    assert guesses_right(FloodPolicy(1, 1, 8), 4096) < 0.65


@pytest.mark.parametrize("degree", DEGREES)
@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.usefixtures("without_the_root_of_n")
def test_small_flooding_ablated_divergence(policy: FloodPolicy, degree: int) -> None:
    """Without the factor, log2 N bits of the policy are lost: 12 to 15 of 30."""
    assert bits_of_security(policy, degree) == pytest.approx(policy.bits - math.log2(degree))


@pytest.mark.usefixtures("without_the_root_of_n")
def test_small_flooding_ablated_adversary_knows() -> None:
    """Without the factor the same adversary is right every time."""
    assert guesses_right(FloodPolicy(1, 1, 8), 4096) > 0.99


def test_small_flooding_blocked_stored_policies() -> None:
    """A policy as it was stored with keys before: it means the corrected deviation."""
    stored = policy_from_json({"bits": 30, "decryptions": 16, "noise_bits": 11})
    assert stored == FloodPolicy(noise_bits=11) and stored.sigma(8192) == pytest.approx(math.sqrt(12 * 16 * 8192) * 2.0 ** (15 + 11))


def test_noise_above_the_bound_costs_two_bits_a_bit() -> None:
    """An adversary against noise 2^3 above the bound of 6 bits is as good as one against 0 bits."""
    policy = FloodPolicy(6, 1, 8)
    expected = 2.0 ** (policy.advantage + 3)
    assert expected == pytest.approx(2.0 ** replace(policy, bits=0).advantage)
    assert abs(2 * (guesses_right(policy, 1024, 4000, excess=3) - 0.5) - expected) < 0.07
    assert expected > 0.1 > abs(2 * (guesses_right(policy, 1024, 4000) - 0.5))


# The sampler


def exactly(sigma: float) -> tuple[int, NDArray[np.float64]]:
    """The least value of a table, and the probabilities from there on, from its 124 bits."""
    first, _, below = randomness._distribution(sigma)
    return first, np.array([float(b - a) / 2.0**124 for a, b in zip([0, *below], below, strict=False)])


@pytest.mark.parametrize("sigma", [1.0, 3.2, 256.0, 700.5])
def test_tables_hold_the_discrete_gaussian(sigma: float) -> None:
    """Every probability, as far as doubles show it."""
    first, found = exactly(sigma)
    k = np.arange(len(found)) + first
    weights = np.exp(-(k**2) / (2 * sigma**2))
    near = np.abs(k) <= 9 * sigma
    assert found[near] == pytest.approx((weights / math.fsum(weights))[near], rel=1e-11)
    assert found.sum() == pytest.approx(1)


def test_a_wide_deviate_has_the_probabilities_of_the_discrete_gaussian() -> None:
    """m x + y of two tables, convolved: the tables' steps of m are gone, as far as the Fourier transform shows; a spread of a third of m shows them."""
    sigma = 1500.0
    factor = int(sigma / math.hypot(randomness.TABLE_SIGMA, randomness.SPREAD))
    assert factor == 5

    def worst(narrow: float) -> float:
        (first_x, x), (first_y, y) = exactly(randomness.TABLE_SIGMA), exactly(narrow)
        stretched = np.zeros((len(x) - 1) * factor + 1)
        stretched[::factor] = x
        size = len(stretched) + len(y) - 1
        found = np.fft.irfft(np.fft.rfft(stretched, size) * np.fft.rfft(y, size), size)
        k = np.arange(len(found)) + first_x * factor + first_y
        weights = np.exp(-(k**2) / (2 * ((factor * randomness.TABLE_SIGMA) ** 2 + narrow**2)))
        near = np.abs(k) <= 5 * sigma
        return float(np.abs(found[near] / (weights / math.fsum(weights))[near] - 1).max())

    assert worst(math.sqrt(sigma**2 - (factor * randomness.TABLE_SIGMA) ** 2)) < 1e-7
    assert worst(factor * randomness.SPREAD) < 1e-7
    assert worst(factor * randomness.SPREAD / 12) > 0.1


def test_ties_of_the_upper_half_are_decided_by_the_lower(monkeypatch: pytest.MonkeyPatch) -> None:
    """Uniform words that hit an entry of the table exactly: below it, at it, above it."""
    first, upper, exact = randomness._distribution(2.0)
    at = len(exact) // 2
    low = exact[at] & ((1 << 62) - 1)
    words = iter([np.full(3, upper[at]), np.array([low - 1, low, low + 1])])
    monkeypatch.setattr(randomness, "uniform_bits", lambda size, bits: next(words))
    assert discrete_gaussian(3, 2.0).tolist() == [first + at, first + at + 1, first + at + 1]


# Precision


def decrypted(s: Seal, material: Any, ciphertexts: list[Any]) -> list[NDArray[np.float64]]:
    """Values of a joint decryption."""
    opened = api.decrypt_in_process(committee("rep-field"), material, [c.to_string() for c in ciphertexts])
    return [np.asarray(s.encoder.decode(s.context.from_plain_str(o.plaintext))) for o in opened]


@pytest.mark.parametrize("name", [name for name in list_parameter_sets() if name.startswith("ckks")])
def test_shipped_sets_and_the_default_policy_work_together(name: str) -> None:
    """[0.5, 0.25, -1] comes back right, within the error that is stated; and the deviation of all values is the stated one (10 % are
    six deviations of the estimate from 2,048 values)."""
    parameters = load(name, warn=False)
    material = make_key(committee("rep-field"), SealRequest(parameters, relin=False), name.encode())
    s, stated = Seal(material[0]), key_precision(material[0].info)
    values = np.zeros(parameters.slots)
    values[:3] = 0.5, 0.25, -1
    (got,) = decrypted(s, material, [s.encryptor.encrypt(s.encoder.encode(values, parameters.scale))])
    assert np.abs(got - values).max() < stated.largest < 2.0**-LEAST_KEY_BITS
    assert (got - values).std() == pytest.approx(stated.deviation, rel=0.1)


def test_two_products_at_8192() -> None:
    """All the levels that ckks-8192 offers, under the default policy."""
    parameters = load("ckks-8192")
    material = make_key(committee("rep-field"), SealRequest(parameters), b"two products")
    s, x = Seal(material[0]), np.random.default_rng(1).uniform(-1, 1, parameters.slots)
    product = s.encryptor.encrypt(s.encoder.encode(x, parameters.scale))
    for _ in range(2):
        product = s.evaluator.rescale_to_next(s.evaluator.relinearize(s.evaluator.square(product), s.relin))
    (got,) = decrypted(s, material, [product])
    assert np.abs(got - x**4).max() < key_precision(material[0].info, product.scale()).largest < 0.05


def small_scale() -> tuple[Seal, Any]:
    """A key of the default policy at N = 4096, and SEAL with it."""
    material = make_key(committee("rep-field"), SealRequest(load("ckks-4096"), relin=False), b"small scale")
    return Seal(material[0]), material


def test_small_flooding_blocked_garbage() -> None:
    """Noise of 10^3 and more is no result: refused with the cure, in process too; the cure works."""
    s, material = small_scale()
    ciphertext = s.encryptor.encrypt(s.encoder.encode([0.5], 2.0**28))
    with pytest.raises(CiphertextError, match=r"leaves -18.4 bits .* encrypt at scale 2\^48 or above, or make a key of another"):
        decrypted(s, material, [ciphertext])
    (got,) = decrypted(s, material, [s.encryptor.encrypt(s.encoder.encode([0.5], 2.0**48))])
    assert abs(got[0] - 0.5) < 0.5


def test_small_flooding_ablated_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the check, the flooding's noise is returned as values, silently."""
    s, material = small_scale()
    monkeypatch.setattr(decrypt_plan, "check_ciphertext_precision", lambda *_: None)
    (got,) = decrypted(s, material, [s.encryptor.encrypt(s.encoder.encode([0.5], 2.0**28))])
    assert np.abs(got).max() > 10**4


def test_sets_and_policies_that_leave_too_little_make_no_key() -> None:
    """The request of one party, the job, and the plan with the noise of all contributors; the cure works."""
    small = replace(load("ckks-4096"), scale_bits=30)
    message = (
        r"leaves -1[56].\d bits .* at least 3 are needed: take a set with scale_bits = [45]\d or more, fewer --decryptions, or fewer --noise-bits"
    )
    for make in (
        lambda: SealRequest(small).check(),
        lambda: api.keygen_job("key", small),
        lambda: api.keygen_in_process(committee("rep-field"), SealRequest(small)),
    ):
        with pytest.raises(PolicyError, match=message):
            make()
    for contributors in (1, 2, 16):
        bits = precision(small, FloodPolicy(), contributors).bits
        cured = replace(small, scale_bits=30 + math.ceil(LEAST_KEY_BITS - bits))
        SealRequest(cured).check(contributors)
        with pytest.raises(PolicyError):
            SealRequest(replace(cured, scale_bits=cured.scale_bits - 1)).check(contributors)


def test_weak_policies_warn() -> None:
    """Few bits of security, and a noise bound that a fresh encryption exceeds; the default policy is silent."""
    parameters = load("ckks-4096")
    for policy, word in ((FloodPolicy(bits=29), "flooding of 29 bits is WEAK"), (FloodPolicy(noise_bits=3), r"2\^3 is WEAK: .* noise of 2\^3.9")):
        with pytest.warns(SecurityWarning, match=word):
            api.keygen_job("key", parameters, policy=policy)
    with pytest.warns(SecurityWarning, match=r"2\^12 is below the 2\^13 of ckks-4096: sums of many slots"):
        api.keygen_job("key", parameters, policy=FloodPolicy(noise_bits=12))
    assert len(WEAK.weaknesses(parameters)) == 2
    for name in list_parameter_sets():
        shipped = load(name, warn=False)
        assert FloodPolicy().for_set(shipped).weaknesses(shipped) == []


def test_every_party_warns_of_a_weak_policy(tmp_path: Path) -> None:
    """Whoever wrote the job: at key generation, and at each decryption; inspect tells it."""
    members = replace(committee("rep-field"), folder=tmp_path)
    with pytest.warns(SecurityWarning):
        job = api.keygen_job("weak", narrow("ckks-4096"), False, policy=WEAK)
    with pytest.warns(SecurityWarning) as caught:
        warnings.simplefilter("always")
        run_in_process(members, lambda context: run_job(context, job), timeout=20.0)
    assert sum("flooding of 1 bits is WEAK" in str(w.message) for w in caught) == 3
    told = list(describe(members.key_folder(1, "weak")))
    assert any(line.startswith("WARNING: flooding of 1 bits is WEAK") for line in told)
    assert any("(advantage about 2^-4 over all decryptions together) while the noise of ciphertexts is at most 2^4" in line for line in told)


def test_bits_are_no_probability() -> None:
    """30 bits leave an advantage of 2^-18: measured with the best test, at few bits, where it shows."""
    assert FloodPolicy().advantage == pytest.approx(-18.1, abs=0.05)
    for bits in (1, 2):
        policy = FloodPolicy(bits, 1, 8)
        assert abs(2 * (guesses_right(policy, 1024, 4000) - 0.5) - 2.0**policy.advantage) < 0.05
