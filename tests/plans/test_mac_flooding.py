"""CKKS decryption with MACs: noise of random bits that no party inputs, of the right distribution, the same modulo every prime. What a corrupted party does is found, and each attack also runs without
the check that finds it. Matrix: tests/adversaries."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import _engine, api
from keyquorum._engine import budget_lift
from keyquorum.fhe.errors import SecurityWarning
from keyquorum.fhe.parameters import list_parameter_sets, load
from keyquorum.model.committee import Committee, CommitteeShape
from keyquorum.model.errors import CiphertextError, PolicyError
from keyquorum.parties import PartyContext, run_in_process
from keyquorum.plans.decrypt import decrypt
from keyquorum.schemes import encryption_of
from keyquorum.schemes.keys import KeyMaterial
from keyquorum.schemes.seal import decrypt as decrypt_plan
from keyquorum.schemes.seal.key import SealKeyInfo
from keyquorum.schemes.seal.keygen import SealRequest
from keyquorum.schemes.seal.policy import FloodPolicy, flooding_variance
from keyquorum.schemes.seal.precision import key_precision
from keyquorum.schemes.subset_keys import compare_key
from keyquorum.sharing.budget import LIFT_VARIANCE
from keyquorum.sharing.numbers import ContributedNumbers, ProvenNumbers, lift
from keyquorum.sharing.numbers.lift_tests import LiftTests
from keyquorum.sharing.numbers.uniform_noise import UniformNoise, roughness, uniform_noise
from numpy.typing import NDArray

from tests.adversaries.flooded_plans import DEGREE, POLICY, Flooded, flooded, noise_with_macs, off
from tests.adversaries.plans import dealt
from tests.fhe.dealer import tiny
from tests.long import LONG
from tests.programs.test_flooding_noise import sums_of

from .corrupted import Change, check_the_toss_burns_the_key, ends_of, nothing
from .quorum import WEAK, Seal

PROTOCOL, CORRUPT, RECEIVER = "mascot", 1, 0
Ints = NDArray[np.int64]

# The distribution


def moved(law: NDArray[np.float64], by: int) -> float:
    """The squared Hellinger distance of a distribution from itself, moved."""
    return 1 - float(np.sqrt(law[by:] * law[: law.size - by]).sum())


SIZES = [(2, 2, 2), (4, 2, 2), (4, 4, 2), (8, 8, 8), (64, 64, 64), (64, 64, 32), (64, 32, 32), (1024, 1024, 512), (512, 4, 2)]


@pytest.mark.parametrize("sizes", SIZES)
def test_the_roughness_is_bounded(sizes: tuple[int, int, int]) -> None:
    """The bound is above the exact value, and close to it where sizes are large and nearly equal."""
    exact = moved(np.convolve(np.convolve(*(np.full(size, 1 / size) for size in sizes[:2])), np.full(sizes[2], 1 / sizes[2])), 1)
    assert exact <= roughness(sizes) + 1e-12
    if min(sizes) >= 32:
        assert roughness(sizes) < 1.02 * exact


def test_the_roughness_of_wide_numbers() -> None:
    """It falls with the square of the size: 0.5705 for three equal ones, which is the eighth part of their Fisher information."""
    for length in (10, 27, 40):
        assert roughness([1 << length] * 3) * 4.0**length == pytest.approx(0.5705, rel=1e-3)


def test_fewer_than_three_uniform_numbers_hide_less() -> None:
    """Of one number below A, h is 1/A; of two, A^2 h grows with log A: by a quarter of ln 2 or more for each bit."""
    for length in (6, 9, 12):
        one = np.full(1 << length, 2.0**-length)
        assert moved(one, 1) == pytest.approx(2.0**-length)
    two = [moved(np.convolve(one, one), 1) * one.size**2 for one in (np.full(1 << length, 2.0**-length) for length in (6, 9, 12))]
    assert two[1] - two[0] > 3 * math.log(2) / 4 - 0.02 and two[2] - two[1] == pytest.approx(3 * math.log(2) / 4, abs=0.02)


@pytest.mark.parametrize("noise", [UniformNoise(3, 15, 4), UniformNoise(0, 14, 3), UniformNoise(5, 13, 12)], ids=str)
def test_what_the_noise_hides(noise: UniformNoise) -> None:
    """The exact distance of the noise from itself, moved by any error of up to 64, is below the bound; mean, variance and range are as stated."""
    law = sums_of([1 << place for place in noise.places])
    assert law.sum() == pytest.approx(1) and len(noise.places) == noise.fine + noise.wide
    k = np.arange(law.size) - noise.centre
    assert max(abs(k[0]), abs(k[-1])) in (noise.largest, noise.largest - 1)
    mean = float(law @ k)
    assert mean == pytest.approx(0.5, abs=0.5 + 1e-9) and float(law @ (k - mean) ** 2) == pytest.approx(noise.variance)
    assert sum(centre << noise.width * j for j, centre in enumerate(noise.centres)) == noise.centre
    for j, centre in enumerate(noise.centres):
        assert 0 <= centre < 1 << noise.piece_bits and sum(noise.weights(j)) - centre < 1 << noise.piece_bits
    for error in range(1, 65):
        assert moved(law, error) <= noise.hellinger(1, 0) * (error**2 + 4.0**noise.fine / 4) / (1 + 4.0**noise.fine / 4) + 1e-12


def given_away(policy: FloodPolicy, noise: UniformNoise, degree: int, parties: int = 2) -> float:
    """Bound on the advantage of whoever sees all decryptions, and what is opened for them."""
    flooded = math.sqrt(2 * policy.decryptions * noise.hellinger(degree, policy.noise_bits))
    return flooded + 2 * noise.opened(degree, policy.decryptions, parties, parties - 1)


POLICIES = (
    FloodPolicy(noise_bits=13), FloodPolicy(1, 1, 1), FloodPolicy(40, 1, 9), FloodPolicy(30, 1 << 20, 11), FloodPolicy(50, 16, 10),
    FloodPolicy(30, 5, 13), FloodPolicy(30, 10, 13), FloodPolicy(30, 100, 13),
)  # fmt: skip


@pytest.mark.parametrize("degree", [64, 4096, 32768])
@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_the_advantage_of_the_policy_is_kept(policy: FloodPolicy, degree: int) -> None:
    """And no noise that is narrower by a bit keeps it. The deviation is 1.63 times that of one contributor by default, and at most 2.1 times, whatever the number of parties: sizes are whole bits, and
    where the number of decryptions is no power of two they do not fit exactly."""
    for parties in (2, 3, 16):
        noise = noise_with_macs(policy, degree, parties, parties - 1)
        assert given_away(policy, noise, degree, parties) <= 2.0**policy.advantage
        assert given_away(policy, replace(noise, wide=noise.wide - 1), degree, parties) > 0.9 * 2.0**policy.advantage
        deviation = math.sqrt(flooding_variance(policy, degree, CommitteeShape(PROTOCOL, parties, parties - 1)))
        assert 1 < deviation < 2.1 and (policy.decryptions != 16 or policy.bits != 30 or round(deviation, 2) == 1.63)


def guesses_right(noise: UniformNoise, policy: FloodPolicy, degree: int, trials: int = 4000) -> float:
    """How often an adversary is right who sees flooded noise and tells the worst error from none, by the sign of the projection on the error."""
    rng, right = np.random.default_rng(4), 0
    for secret in rng.integers(0, 2, trials):
        wide = sum(rng.integers(0, 1 << length, degree) for length in noise.lengths)
        seen = (wide << noise.fine) + rng.integers(0, 1 << noise.fine, degree) - noise.centre + (int(secret) << policy.noise_bits)
        right += int((seen.sum() > degree * (1 << policy.noise_bits) / 2) == secret)
    return right / trials


def test_an_adversary_guesses() -> None:
    """The best linear test has the advantage of the policy at most, but for 5 deviations of the estimate; with noise that is 2^5 narrower it knows."""
    policy = FloodPolicy(1, 1, 8)
    noise = noise_with_macs(policy, 1024, 2, 1)
    assert abs(2 * guesses_right(noise, policy, 1024) - 1) < 2.0**policy.advantage + 5 / math.sqrt(4000)
    assert guesses_right(replace(noise, wide=noise.wide - 15), policy, 1024, 400) > 0.9


def test_policies_that_a_lift_does_not_hide_are_refused() -> None:
    with pytest.raises(PolicyError, match="flooding of 80 bits over 1 decryptions is more than committees with MACs hide"):
        uniform_noise(80, 1, 1, 4096, 2, 1)
    request = SealRequest(replace(load("ckks-4096"), scale_bits=60), False, policy=FloodPolicy(75, 1, 1))
    with pytest.raises(PolicyError, match="make a key with fewer bits or decryptions"):
        request.check_committee(api.in_process_committee(2, PROTOCOL))
    request.check_committee(api.in_process_committee(3, "rep-field"))


def test_noise_that_is_too_narrow_is_never_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the widest noise that the program takes hides too little, the search ends there."""
    search = uniform_noise.__wrapped__
    needed = search(30, 16, 13, 4096, 2, 1).wide
    monkeypatch.setattr("keyquorum.sharing.numbers.uniform_noise.MOST_WIDE", needed)
    assert search(30, 16, 13, 4096, 2, 1).wide == needed
    monkeypatch.setattr("keyquorum.sharing.numbers.uniform_noise.MOST_WIDE", needed - 1)
    with pytest.raises(PolicyError, match="flooding of 30 bits over 16 decryptions is more than committees with MACs hide"):
        search(30, 16, 13, 4096, 2, 1)


def test_the_budget_of_a_lift_is_that_of_the_engine() -> None:
    """The variance for which the engine states the distance."""
    assert budget_lift(1000, 58) == pytest.approx(math.sqrt(1000 * LIFT_VARIANCE * 0.78) * 2.0**-56)


def test_precision_is_that_of_four_contributors_or_better() -> None:
    """The noise does not grow with the number of parties; all shipped sets keep three bits."""
    for name in list_parameter_sets():
        parameters = load(name, warn=False)
        if parameters.scheme == "ckks" and min(q.bit_length() for q in parameters.coeff_modulus) >= 36:
            for parties in (2, 8):
                SealRequest(parameters, relin=False).check_committee(api.in_process_committee(parties, PROTOCOL))


# Decryptions


@cache
def _made(parties: int) -> tuple[Committee, Sequence[KeyMaterial]]:
    members = api.in_process_committee(parties, PROTOCOL)
    return members, api.keygen_in_process(members, SealRequest(tiny("ckks", 3), False, (), "cbd", WEAK))


@pytest.mark.parametrize("parties", [2, 3])
def test_values_come_back_within_the_stated_precision(parties: int) -> None:
    """Keys, encryption by SEAL, and decryptions at the levels of two primes and, with two parties, of one; the deviation is the stated one (15 % are five deviations of the estimate)."""
    members, material = _made(parties)
    s, parameters = Seal(material[0]), material[0].info.parameters
    values = np.linspace(-1, 1, parameters.slots)
    fresh = s.encryptor.encrypt(s.encoder.encode(values, parameters.scale))
    stated = key_precision(material[0].info)
    levels = [fresh.to_string(), s.lowest(fresh).to_string()]
    opened = api.decrypt_in_process(members, material, levels if parties == 2 or LONG else levels[:1], receiver=parties - 1)
    for result in opened:
        got = np.asarray(s.encoder.decode(s.context.from_plain_str(result.plaintext)))
        assert np.abs(got - values).max() < stated.largest
        assert (got - values).std() == pytest.approx(stated.deviation, rel=0.15)


def outcome(change: Change = nothing, omitted: Sequence[str] = (), primes: int = 2) -> tuple[Flooded, Any]:
    """What the honest receiver ends with: coefficients, or an error. ``change``: what the corrupted party gives to programs; ``omitted``: checks that nobody makes."""
    plan = planned(primes)
    return plan, ends_of(plan.committee, lambda context: decrypted(plan, context), {CORRUPT: change}, omitted=omitted, silent=False)[RECEIVER]


def planned(primes: int = 2) -> Flooded:
    """The flooded decryption of a toy key, of a committee of its own: a failed check burns its MAC keys."""
    plan = flooded(PROTOCOL, 2, RECEIVER, primes).job
    assert isinstance(plan, Flooded)
    return plan


def decrypted(plan: Flooded, context: PartyContext) -> list[int] | None:
    """Deals the key, and decrypts."""
    return plan.result(context, [dealt(context.session, *sharing, 1, RECEIVER, np.array(plan.secret)) for sharing in plan.sharings()])


MACS = ["ElementMacs", "BitMacs"]


def found(end: Any, said: str) -> bool:
    """Whether a check found it."""
    return isinstance(end, _engine.CheckError) and said in str(end)


def wrong(plan: Flooded, end: Any) -> bool:
    """Whether nothing was noticed until there was a result: it is wrong, or no message at all."""
    return isinstance(end, CiphertextError) or off(end, plan.wanted) > plan.bound


def _last(plan_primes: int = 2) -> str:
    return f"F_{planned(plan_primes).parameters.coeff_modulus[plan_primes - 1]}"


def _another_mask(program: str, domain: str, options: dict[str, Any]) -> None:
    """The mask of one piece of the noise is another one modulo the last prime."""
    if program == "lift_close" and domain == _last():
        options["private"] = options["private"].copy()
        options["private"][7] += 1


def test_another_mask_in_one_domain(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests of lifted values find it before anything is opened with the noise. Without them MACs do not, and the result is wrong."""
    _, end = outcome(_another_mask)
    assert found(end, f"values that were lifted to {_last()}")
    monkeypatch.setattr(LiftTests, "_judge", lambda *_: None)
    assert wrong(*outcome(_another_mask))


def _other_noise(domains: Callable[[str], bool]) -> Change:
    """Another share of the noise of a coefficient, of its highest piece, as the sum is opened."""

    def change(program: str, domain: str, options: dict[str, Any]) -> None:
        if program == "flood" and domains(domain):
            noise = noise_with_macs(POLICY, DEGREE, 2, 1)
            options["shares"].words[0, (2 + noise.pieces - 1) * DEGREE + 7] += np.uint64(1 << 30)

    return change


def _other_phase(program: str, domain: str, options: dict[str, Any]) -> None:
    if program == "flood":
        options["shares"].words[0, DEGREE + 7] += np.uint64(1 << 30)


@pytest.mark.parametrize("primes", [1, 2])
@pytest.mark.parametrize("change", [_other_noise(lambda domain: True), _other_phase], ids=["noise", "phase"])
def test_a_wrong_opening(change: Change, primes: int) -> None:
    """The check of MACs, before the receiver hands anything out: of noise that is other in all domains, and of another phase. Without it the result is far off."""
    _, end = outcome(change, primes=primes)
    assert found(end, "MAC check")
    assert wrong(*outcome(change, MACS, primes))


def _other_sample(program: str, domain: str, options: dict[str, Any]) -> None:
    """Another share of a piece, before it is lifted: 2^40, far more than its bound."""
    if program == "lift_open":
        options["shares"].words[0, 7] += np.uint64(1 << 40)


def test_noise_that_is_too_large() -> None:
    """No party has a choice in its size: a share of another number is found when it is lifted. Without MACs the result is wrong."""
    _, end = outcome(_other_sample)
    assert found(end, "MAC check")
    assert wrong(*outcome(_other_sample, MACS))


def _inputs_noise(program: str, domain: str, options: dict[str, Any]) -> None:
    if program == "flood":
        options["private"] = options["private"].copy()
        options["private"][7] += 1 << 30


def test_noise_that_a_party_inputs_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What other committees do: each party inputs its noise modulo every prime. With MACs nothing notices that it is too large. Here no party inputs any: only masks of the lift and of its tests,
    which the tests concern."""
    given: set[str] = set()

    def seen(program: str, domain: str, options: dict[str, Any]) -> None:
        if options.get("private") is not None:
            given.add(program)

    plan, end = outcome(seen)
    assert off(end, plan.wanted) <= plan.bound and given == {"lift_open", "lift_close", "sum_inputs"}
    given.clear()
    plan, end = outcome(seen, primes=1)
    assert off(end, plan.wanted) <= plan.bound and not given
    monkeypatch.setattr(ProvenNumbers, "flooding", ContributedNumbers.flooding)
    assert wrong(*outcome(_inputs_noise))


@pytest.mark.parametrize("primes", [1, 2])
def test_the_noise_of_results(primes: int) -> None:
    """Of 8 decryptions of 64 coefficients: mean and deviation within 5.5 of their own deviations (false alarm 10^-7), and the range. The variance is right within 35 %: half of it or twice it is refuted."""
    noise, left = noise_with_macs(POLICY, DEGREE, 2, 1), []
    for _ in range(8):
        plan, end = outcome(primes=primes)
        left += [word - right for word, right in zip(end, plan.wanted, strict=True)]
    x = np.array(left, dtype=np.float64)
    assert np.abs(x).max() <= noise.largest
    assert abs(x.mean()) < 5.5 * math.sqrt(noise.variance / x.size) + 0.5
    assert abs((x**2).mean() / noise.variance - 1) < 5.5 * math.sqrt(2 / x.size)


@pytest.mark.parametrize("program", ["lift_open", "lift_close", "sum_inputs"])
def test_masks_of_the_tests_are_wiped(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """Also if a step before the tests fails; they are made after the values are opened. And so are the masks of the lift."""
    made, lifts, enter, draw = list[LiftTests](), list[Ints](), LiftTests.__enter__, lift.lift_masks

    def entered(tests: LiftTests) -> LiftTests:
        made.append(tests)
        assert tests._masks.any()
        return enter(tests)

    def fails(called: str, domain: str, options: dict[str, Any]) -> None:
        if called == program:
            raise _engine.EngineError("as the adversary wants it")

    def drawn(size: int, bits: int) -> Ints:
        lifts.append(draw(size, bits))
        assert lifts[-1].any()
        return lifts[-1]

    monkeypatch.setattr(LiftTests, "__enter__", entered)
    monkeypatch.setattr(lift, "lift_masks", drawn)
    outcome(fails)
    assert bool(made) == (program != "lift_open") and not any(tests._masks.any() for tests in made)
    # A party that fails at `lift_open` may do so before the other one drew its masks, which ends without them.
    assert len(lifts) in ((1, 2) if program == "lift_open" else (2,)) and not any(masks.any() for masks in lifts)


@pytest.mark.parametrize("ablated", [False, True])
def test_who_breaks_off_after_the_toss_burns_the_key(tmp_path: Path, ablated: bool) -> None:
    """Otherwise it could try again until it likes the subsets of the tests. Without the note the honest party's MAC key is still there."""
    plan = planned()
    check_the_toss_burns_the_key(api.init(tmp_path / "c", 2, PROTOCOL), lambda context: decrypted(plan, context), CORRUPT, ablated)


def test_keys_that_nothing_shows_to_be_tested() -> None:
    """Key generation marks a key whose lifted values were tested. The mark is in what parties compare before they use a key. Keys of earlier builds have none: they are read as before, and decrypt with a warning."""
    members, material = _made(2)
    info, scheme = material[0].info, encryption_of(material[0].info)
    assert isinstance(info, SealKeyInfo) and info.lift_tested and SealKeyInfo.from_json(info.to_json()) == info
    assert not any("semi-honest" in text for text in scheme.warnings(info))
    old = SealKeyInfo.from_json({name: value for name, value in info.to_json().items() if name != "lift_tested"})
    assert not old.lift_tested and "lift_tested" not in old.to_json() and old.digest != info.digest
    with pytest.raises(ValueError, match="entries of other types"):
        SealKeyInfo.from_json({**info.to_json(), "lift_tested": 1})
    s = Seal(material[0])
    ciphertext = s.lowest(s.encryptor.encrypt(s.encoder.encode([0.5], s.parameters.scale)))
    with pytest.warns(
        SecurityWarning, match="mascot: decryptions under this key are semi-honest, as nothing shows that its secret is the same modulo all primes"
    ):
        (opened,) = api.decrypt_in_process(members, [replace(made, info=old) for made in material], [ciphertext.to_string()])
    assert abs(np.asarray(s.encoder.decode(s.context.from_plain_str(opened.plaintext)))[0] - 0.5) < key_precision(old).largest

    def one(context: PartyContext) -> None:
        compare_key(context, Path("key"), old if context.party else info)

    with pytest.raises(_engine.EngineError, match=r"key: party . computed another value"):
        run_in_process(members, one)
    of_others = api.keygen_in_process(api.in_process_committee(2, "semi"), SealRequest(tiny("ckks", 3), False, (), "cbd", WEAK))[0].info
    assert isinstance(of_others, SealKeyInfo) and not of_others.lift_tested and not any("semi-honest" in text for text in scheme.warnings(of_others))


def test_the_receiver_alone_has_the_result() -> None:
    members, material = _made(2)
    s = Seal(material[0])
    ciphertext = s.lowest(s.encryptor.encrypt(s.encoder.encode([0.5], s.parameters.scale)))
    parsed = [decrypt_plan.ready_to_decrypt(material[0].info, ciphertext.to_string())]
    ends = run_in_process(members, lambda context: decrypt(context, material[context.party].info, material[context.party].shares, parsed, 1))
    assert ends[0] is None and len(ends[1]) == 1
