"""CKKS decryption by committees that verify products: noise that every set of n - t parties has in common, of the right distribution, the same modulo every prime. Matrix: tests/adversaries."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import _engine, api
from keyquorum.backends.base import Mode
from keyquorum.backends.embedded import Embedded
from keyquorum.dsl import ShareVector
from keyquorum.fhe.parameters import load
from keyquorum.model.committee import Committee, CommitteeShape
from keyquorum.model.errors import CiphertextError, KeyQuorumError, ParameterError, PolicyError
from keyquorum.parties import PartyContext, run_in_process
from keyquorum.schemes.seal.decrypt import _check_room, decrypt
from keyquorum.schemes.seal.keygen import SealRequest
from keyquorum.schemes.seal.policy import FloodPolicy, flooding_variance
from keyquorum.schemes.seal.precision import check_key_precision, key_precision
from keyquorum.sharing import randomness
from keyquorum.sharing.numbers import flooding as floodings
from keyquorum.sharing.numbers.flooding import JointNoise
from keyquorum.sharing.randomness import HALF_BITS, gaussian_of_words, gaussian_words
from keyquorum.sharing.shares import Run

from tests.adversaries.changes import Change as Deviates
from tests.adversaries.changes import Wire
from tests.adversaries.flooded_plans import Flooded, coefficients, flooded, flooding_summands, off
from tests.adversaries.plans import committee_of, dealt
from tests.fhe.dealer import narrow
from tests.long import LONG

from . import test_policy as jobs
from .corrupted import Change, Ends, deviating, ends_of
from .quorum import WEAK, Seal

RECEIVER = 0
MADE = JointNoise.__init__
Ints = np.ndarray
Kind = tuple[str, int, int]
"""Protocol, parties and threshold."""
REPLICATED: Kind = ("mal-rep-field", 3, 1)
SHAMIR: list[Kind] = [("mal-shamir", 3, 1), ("mal-shamir", 4, 1), ("mal-shamir", 5, 2)]
KINDS = [REPLICATED, *SHAMIR]
FIVE: Kind = ("mal-shamir", 5, 2)
INPUTS: list[Kind] = [("rep-field", 3, 1), ("shamir", 5, 2), ("semi", 4, 3)]
"""Committees of which each contributor inputs noise."""
DEALER = 2
ADDED = 1 << 35
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind[0]}-{kind[1]}-{kind[2]}")


def sets_of(kind: Kind) -> list[tuple[int, ...]]:
    """The sets of parties that have a number in common, in their order."""
    _, n, t = kind
    return [(i, (i + 1) % n) for i in range(n)] if kind == REPLICATED else list(combinations(range(n), n - t))


def members_of(kind: Kind) -> Committee:
    """A committee in this process."""
    return committee_of(*kind)


def planned(kind: Kind, receiver: int = RECEIVER) -> Flooded:
    """The flooded decryption of a toy key."""
    protocol, n, t = kind
    plan = flooded(protocol, n, receiver, threshold=t).job
    assert isinstance(plan, Flooded)
    return plan


def noises(variance: int, size: int, kind: Kind) -> list[dict[int, Ints]]:
    """The numbers that each party has, by their set."""
    members = members_of(kind)

    def drawn(context: PartyContext) -> dict[int, Ints]:
        made = JointNoise(context, size, variance)  # wipes its numbers when it goes
        return dict(zip(made.known, made._noise.copy(), strict=True))

    return run_in_process(members, drawn)


@each_kind
@pytest.mark.parametrize("variance", [10, 1 << 20, 12 * 16 * 4096 << 30])
def test_members_have_the_same_numbers_of_the_right_deviation(variance: int, kind: Kind) -> None:
    """Of each set all members have the same numbers, and nobody else any. Mean, deviation and correlations of at most ten sets within 6 of their own deviations: false alarm below 10^-6."""
    size, sets = 4096, sets_of(kind)
    assert len(sets) == flooding_summands(*kind)
    mine = noises(variance, size, kind)
    found = []
    for i, members in enumerate(sets):
        assert [party for party in range(kind[1]) if i in mine[party]] == sorted(members)
        assert all(np.array_equal(mine[party][i], mine[members[0]][i]) for party in members)
        found.append(mine[members[0]][i].astype(np.float64) / math.sqrt(variance))
    for x in found:
        assert abs(x.mean()) < 6 / math.sqrt(size)
        assert abs((x**2).mean() - 1) < 6 * math.sqrt(2 / size)
    for x, y in combinations(found, 2):  # independent of one another
        assert abs((x * y).mean()) < 6 / math.sqrt(size)


@each_kind
def test_sizes_are_counted_honestly(kind: Kind) -> None:
    """Variances of all sets add up in the stated precision."""
    sets, plan = len(sets_of(kind)), planned(kind)
    info, degree, scale = plan.info(), plan.parameters.ring_degree, plan.ciphertext.scale
    assert flooding_variance(info.policy, degree, CommitteeShape(*kind)) == sets
    assert key_precision(info).deviation == pytest.approx(math.sqrt(sets * degree / 2) * info.policy.sigma(degree) / scale)


@pytest.mark.parametrize("kind", [*KINDS, *INPUTS], ids=lambda kind: f"{kind[0]}-{kind[1]}-{kind[2]}")
def test_a_level_has_room_for_eight_deviations_of_the_sum(kind: Kind) -> None:
    """A level is refused if 8 deviations of the sum of all independent numbers, of sets or of t + 1 contributors, and a message, do not fit."""
    numbers, plan = kind[2] + 1 if kind in INPUTS else len(sets_of(kind)), planned(kind)
    info, degree, scale = plan.info(), plan.parameters.ring_degree, plan.ciphertext.scale
    room = (plan.parameters.moduli(1)[0] / 2 - 4 * scale) / (8 * math.sqrt(numbers))
    one = replace(plan.ciphertext, level_primes=1, data=plan.ciphertext.data[:, :1])
    policies = [FloodPolicy(bits=bits, decryptions=1, noise_bits=noise_bits) for noise_bits in (14, 15) for bits in range(1, 81)]
    assert {policy.sigma(degree) < room for policy in policies} == {True, False}
    for policy in policies:
        if policy.sigma(degree) < room:
            _check_room(replace(info, policy=policy), one)
        else:
            with pytest.raises(CiphertextError, match="no room for the flooding noise"):
                _check_room(replace(info, policy=policy), one)


def test_numbers_of_sets() -> None:
    """C(n, t), with a room and precision to match; semi-honest committees have t + 1 contributors."""
    assert flooding_summands("mal-shamir", 9, 4) == 126 and flooding_summands("mal-shamir", 6, 1) == 6 and flooding_summands("shamir", 9, 4) == 5


@pytest.mark.parametrize(
    ("name", "most"),
    [("ckks-8192", 18), ("ckks-16384-bench", 18), ("ckks-4096", 126), ("ckks-4096-mac", 126), ("ckks-8192-demo", 126), ("ckks-16384", 126)],
)
def test_sets_of_parties_that_parameter_sets_take(name: str, most: int) -> None:
    """Under the default policy no key is made whose flooding leaves less than 3 bits: `docs/pages/ckks.md` has the numbers of sets, and the memory of the noise of nine parties."""
    parameters = load(name, warn=False)
    for n, t in [(parties, threshold) for parties in range(3, 10) for threshold in range(1, (parties + 1) // 2)]:
        sets = flooding_summands("mal-shamir", n, t)
        assert (sets <= most) == (most == 126 or t == 1 or (t == 2 and n < 7))
        if sets <= most:
            check_key_precision(parameters, FloodPolicy(), sets)
        else:
            with pytest.raises(PolicyError, match="at least 3 are needed"):
                check_key_precision(parameters, FloodPolicy(), sets)
    words = gaussian_words(FloodPolicy().for_set(parameters).variance(parameters.ring_degree))
    assert words == (16 if name in ("ckks-8192-demo", "ckks-16384") else 14)
    stated = {"ckks-4096": 34, "ckks-8192-demo": 78, "ckks-16384": 156}
    megabytes = 8 * (words + 1) * math.comb(8, 4) * parameters.ring_degree / 1e6
    assert stated.get(name, round(megabytes)) == round(megabytes)


def shared_noise(kind: Kind, moduli: Sequence[int]) -> tuple[Ints, list[list[Ints]]]:
    """The sum of all numbers of a draw, and the shares [parts, size] of each party modulo each prime."""
    members, variance, size = members_of(kind), 1 << 70, 64
    known: dict[int, Ints] = {}

    def one(context: PartyContext) -> list[Ints]:
        noise = JointNoise(context, size, variance)
        known.update(zip(noise.known, noise._noise.copy(), strict=True))
        shares = []
        for q in moduli:
            stored = ShareVector()
            noise.append_to(Run(context).field(q).shares(stored))
            shares.append(stored.words[:, -size:].copy())
        return shares

    found = run_in_process(members, one)
    return np.sum([known[i].astype(object) for i in range(len(sets_of(kind)))], axis=0), found


def at_zero(points: Sequence[int], shares: Sequence[Ints], q: int, at: int = 0) -> list[int]:
    """The values at a point of the polynomials through shares of these parties."""
    total = [0] * len(shares[0])
    for i, share in zip(points, shares, strict=True):
        factor = 1
        for j in points:
            if j != i:
                factor = factor * (at - j - 1) * pow(i - j, -1, q) % q
        total = [(sum_ + factor * int(x)) % q for sum_, x in zip(total, share.tolist(), strict=True)]
    return total


@each_kind
def test_the_noise_is_the_same_modulo_all_primes(kind: Kind) -> None:
    """Shares are those of the sum of all numbers, as integers: all n of Shamir's scheme lie on a polynomial of degree t modulo each prime. The noise is far larger than one of them."""
    moduli = (65537, *planned(kind).parameters.moduli(2))
    wanted, shares = shared_noise(kind, moduli)
    assert max(abs(int(x)) for x in wanted) > 1 << 33
    for index, q in enumerate(moduli):
        rows = [party[index] for party in shares]
        if kind == REPLICATED:
            assert [sum(int(rows[p][0, i]) for p in range(3)) % q for i in range(64)] == [int(x) % q for x in wanted]
            assert all(np.array_equal(rows[p][0], rows[(p + 1) % 3][1]) for p in range(3))
            continue
        _, n, t = kind
        for quorum in combinations(range(n), t + 1):
            chosen = [rows[p][0] for p in quorum]
            assert at_zero(quorum, chosen, q) == [int(x) % q for x in wanted]
            assert all(at_zero(quorum, chosen, q, other + 1) == rows[other][0].tolist() for other in range(n))


def test_the_distribution_is_the_discrete_gaussian() -> None:
    """Of a narrow table exactly, as its words say; of a wide one its steps are exact integers that add up to the variance."""
    first, _, exact = randomness._table(Fraction(10))
    middle = len(exact) // 2  # neighbours in the tails are equal
    places = np.array([middle - 9, middle, middle + 9])
    words = np.array([[(exact[p] - 1) >> HALF_BITS for p in places], [(exact[p] - 1) & ((1 << HALF_BITS) - 1) for p in places]], dtype=np.uint64)
    assert gaussian_of_words(10, words).tolist() == [first + p for p in places.tolist()]
    for variance in (1, 65536 * 16, 65536 * 16 + 1, 12 * 16 * 4096 << 30, 1 << 110):
        steps = randomness._steps(variance)
        assert sum(factor**2 * table for factor, table in steps) == variance
        left = variance
        for factor, table in steps[:-1]:
            left -= factor**2 * table
            assert left >= 16 * factor**2  # the smoothing of Peikert's convolution
        assert gaussian_words(variance) == 2 * len(steps)
    policy = FloodPolicy(bits=31, decryptions=5, noise_bits=9)
    assert policy.variance(64) == pytest.approx(policy.sigma(64) ** 2)


Added = Callable[[str], int]
"""Gets a domain."""


def opening(added: Added) -> Change:
    """Adds to the party's share of the last coefficient of the noise what ``added`` says, when it is to be opened."""

    def change(program: str, domain: str, options: dict[str, Any]) -> None:
        if program == "flood":
            words = options["shares"].words
            words[:, -1] = (words[:, -1] + np.uint64(added(domain))) % np.uint64(int(domain[2:]))

    return change


def outcomes(
    kind: Kind, additions: Mapping[int, Added], omitted: tuple[str, ...] = (), receiver: int = RECEIVER, **more: Any
) -> tuple[Flooded, Ends]:
    """What each party ends with, where some open other shares. ``omitted`` and ``more``: see :func:`ends_of`."""
    plan = planned(kind, receiver)

    def one(context: PartyContext) -> list[int] | None:
        return plan.result(context, [dealt(context.session, *sharing, kind[2], DEALER, np.array(plan.secret)) for sharing in plan.sharings()])

    return plan, ends_of(
        plan.committee, one, {party: opening(added) for party, added in additions.items()}, omitted=omitted, silent=False, patience=20, **more
    )


@each_kind
def test_other_noise_is_found(kind: Kind) -> None:
    """In one domain, or the same in all. Without the comparison of copies, or of the degree, the receiver has noise as a result, or a result that is far off."""
    plan, found = outcomes(kind, {})
    assert off(found[RECEIVER], plan.wanted) <= plan.bound
    last = f"F_{plan.parameters.coeff_modulus[1]}"

    def in_one(domain: str) -> int:
        return ADDED * (domain == last)

    def in_all(domain: str) -> int:
        return ADDED

    def deviating(added: Added, omitted: tuple[str, ...] = ()) -> list[Any]:
        # The receiver takes the shares of the t parties after it, and those of the others are compared alone.
        parties = {1 if omitted else kind[1] - 1, *([2] if kind == REPLICATED else [])}
        return outcomes(kind, dict.fromkeys(parties, added), omitted)[1]

    for added in (in_one, in_all):
        found = deviating(added)
        # With n > 2t + 1 all parties check a combination of the shares of the file: the first one that finds it breaks off, and says why.
        assert isinstance(found[RECEIVER], _engine.CheckError | _engine.NetworkError) and "cheats" in str(found[RECEIVER])
    found = deviating(in_all, ("Openings",))
    assert off(found[RECEIVER], plan.wanted) > plan.bound
    found = deviating(in_one, ("Openings",))
    assert isinstance(found[RECEIVER], CiphertextError) or off(found[RECEIVER], plan.wanted) > plan.bound


def test_other_noise_of_two_parties_is_found() -> None:
    """Party 1 sends another share to the receiver, and party 3 the hash of the share that fits it and the one of party 2. The share of party 4, which is honest, does not."""

    def fits(domain: str, point: int = 4) -> int:
        return at_zero([0, 1, 2], [np.array([0]), np.array([ADDED]), np.array([0])], int(domain[2:]), point)[0]

    additions: dict[int, Added] = {1: lambda domain: ADDED, 3: fits}
    _, found = outcomes(FIVE, additions)
    assert isinstance(found[RECEIVER], _engine.CheckError) and "cheats" in str(found[RECEIVER])
    plan, found = outcomes(FIVE, additions, ("Openings",))
    assert isinstance(found[RECEIVER], CiphertextError) or off(found[RECEIVER], plan.wanted) > plan.bound
    # The hash fits: with four parties of the five the shares would be those of another sum.
    plan, found = outcomes(FIVE, {**additions, 4: lambda domain: fits(domain, 5)})
    assert isinstance(found[RECEIVER], CiphertextError) or off(found[RECEIVER], plan.wanted) > plan.bound


def test_two_seeds_of_a_set_are_found() -> None:
    """Party 0 sends party 1 another seed of the set {0, 1, 2} than party 2. Both find it before anybody has noise. Without the comparison: `session/tests/joint.rs` of the engine, and the test below."""
    wire = Wire(Deviates("flip", 4))  # after what all compare when an engine is made
    _, found = outcomes(FIVE, {}, receiver=2, wire=wire, apart=(0, 1, 2))
    to, message = wire.sent[4]
    assert wire.done and to == 1 and len(message) == 3 * 32, "seeds of the sets of parties 0 and 1"
    for end in found[1:3]:
        assert isinstance(end, _engine.CheckError) and "different seeds for the same subset" in str(end)
    assert all(isinstance(end, Exception) for end in found)


def test_two_seeds_of_a_set_would_go_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where honest members have two numbers of one set, no other check finds it: parties 0 and 4, which know both numbers, fit their shares to those of the three honest parties. Their sum is another integer
    modulo every prime: its difference is 9/5 of that of the numbers."""
    difference = 1 << 12

    def made(self: JointNoise, context: PartyContext, *rest: Any) -> None:
        MADE(self, context, *rest)
        if context.party == 1:
            self._noise[self.known.index(0), -1] += difference

    def fits(domain: str, point: int) -> int:
        q = int(domain[2:])
        share = difference * (2 - 4) * (2 - 5) * pow((0 - 4) * (0 - 5), -1, q) % q
        return at_zero([1, 2, 3], [np.array([share]), np.array([0]), np.array([0])], q, point)[0]

    monkeypatch.setattr(JointNoise, "__init__", made)
    plan, found = outcomes(FIVE, {0: lambda domain: fits(domain, 1), 4: lambda domain: fits(domain, 5)}, receiver=2)
    assert not any(isinstance(end, Exception) for end in found)
    assert off(found[2], plan.wanted) > plan.bound


def test_nine_parties() -> None:
    """The most parties: 126 sets, of which each party is in 70. Another share is found."""
    kind = ("mal-shamir", 9, 4)
    plan, found = outcomes(kind, {})
    assert off(found[RECEIVER], plan.wanted) <= plan.bound
    _, found = outcomes(kind, {8: lambda domain: ADDED})
    assert isinstance(found[RECEIVER], _engine.CheckError) and "cheats" in str(found[RECEIVER])


@each_kind
def test_noise_is_used_once(kind: Kind) -> None:
    """Two ciphertexts never share noise, and none gets noise that is wiped."""
    members = members_of(kind)

    def one(context: PartyContext) -> None:
        noise, run = JointNoise(context, 8, 1000), Run(context)
        for q in (65537, 786433):  # once modulo each prime
            noise.append_to(run.field(q).shares())
        with pytest.raises(ParameterError, match="is used modulo 65537 already"):
            noise.append_to(run.field(65537).shares())
        noise.wipe()
        assert noise._drawn is None and not noise._noise.any()
        with pytest.raises(ParameterError, match="is wiped"):
            noise.append_to(run.field(114689).shares())

    run_in_process(members, one)


@pytest.mark.parametrize("kind", [REPLICATED, SHAMIR[1], *INPUTS[:2]], ids=lambda kind: f"{kind[0]}-{kind[1]}-{kind[2]}")
def test_a_decryption_that_fails_leaves_no_secrets(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise and shares of the phase are wiped, of whatever party, when the sum cannot be opened."""
    plan, left, drawn = planned(kind), [], floodings.discrete_gaussian
    errors = []  # whose tracebacks keep alive what would be wiped when it goes

    def made(self: JointNoise, *arguments: Any) -> None:
        MADE(self, *arguments)
        left.append(self._noise)
        assert self._noise.any()

    def gaussian(size: int, sigma: float) -> Ints:
        left.append(drawn(size, sigma))
        return left[-1]

    def one(context: PartyContext) -> None:
        shares = [dealt(context.session, *sharing, kind[2], 0, np.array(plan.secret)) for sharing in plan.sharings()]

        def broken(program: str, domain: str, options: dict[str, Any]) -> None:
            if program == "flood":
                left.append(options["shares"].words)
                assert left[-1].any()
                raise KeyQuorumError("no opening")

        with pytest.raises(KeyQuorumError, match="no opening") as error:
            decrypt(deviating(context, broken), plan.info(), shares, [plan.ciphertext], RECEIVER, "round_ltz_circuit")
        errors.append(error)

    monkeypatch.setattr(JointNoise, "__init__", made)
    monkeypatch.setattr(floodings, "discrete_gaussian", gaussian)
    run_in_process(plan.committee, one)
    assert len(errors) == kind[1] and len(left) == kind[1] + (kind[1] if kind not in INPUTS else kind[2] + 1)
    assert not any(array.any() for array in left)


@each_kind
def test_noise_of_two_draws_is_refused(kind: Kind) -> None:
    """An honest party that takes the noise of another draw has another name, and all stop before anything is opened."""
    plan, (protocol, _, t) = planned(kind), kind

    def one(context: PartyContext) -> None:
        n, q = plan.parameters.ring_degree, plan.parameters.coeff_modulus[0]
        draws = [JointNoise(context, n, 1000) for _ in range(2)]
        shares = dealt(context.session, protocol, f"F_{q}", t, 0, np.zeros(n, dtype=np.int64))
        draws[int(context.party == 1)].append_to(Run(context).field(q).shares(shares))
        context.backend.run(protocol, f"F_{q}", flood_call(n), shares=shares, mode=Mode(t))

    with pytest.raises(_engine.StoreError, match="not made together"):
        run_in_process(plan.committee, one)


@each_kind
def test_noise_of_two_laws_is_refused(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of one draw with two variances is two names; with one variance it is one."""
    plan, (protocol, _, t) = planned(kind), kind
    n, q = plan.parameters.ring_degree, plan.parameters.coeff_modulus[0]

    def one(context: PartyContext, other: int) -> bytes:
        shares = dealt(context.session, protocol, f"F_{q}", t, 0, np.zeros(n, dtype=np.int64))
        noise = JointNoise(context, n, other if context.party == 1 else 1000)
        noise.append_to(Run(context).field(q).shares(shares))
        context.backend.run(protocol, f"F_{q}", flood_call(n), shares=shares, mode=Mode(t))
        return noise._name

    (name,) = set(run_in_process(plan.committee, lambda context: one(context, 1000)))
    assert len(name) == 16
    with pytest.raises(_engine.StoreError, match="not made together"):
        run_in_process(plan.committee, lambda context: one(context, 1 << 20))
    monkeypatch.setattr(floodings.Origin, "derived", lambda purpose, origins: origins[0])
    # The ablation: without the law in the name the sum is opened, and copies or degrees are wrong then.
    with pytest.raises(_engine.CheckError, match="cheats"):
        run_in_process(plan.committee, lambda context: one(context, 1 << 20))


def flood_call(n: int) -> Any:
    """The opening of stored noise."""
    from keyquorum.programs import Segment
    from keyquorum.programs.signatures import flood

    return flood(contributors=0, N=n, receiver=0, phase=Segment(0, n), masks="stored", r=Segment(n, n))


def residuals(monkeypatch: pytest.MonkeyPatch, kind: Kind, runs: int, unknown: bool) -> np.ndarray:
    """What a corrupted receiver has left of results once it takes off the phase and the noise that it and t - 1 others know, in deviations. ``unknown``: whether the set of honest parties adds its noise."""
    corrupt = set(range(kind[1] - kind[2], kind[1]))
    receiver, plan = max(corrupt), planned(kind, max(corrupt))
    (honest,) = (i for i, members in enumerate(sets_of(kind)) if not corrupt & set(members))
    left = []

    def one(context: PartyContext) -> Any:
        known: dict[int, Ints] = {}

        def noise(self: JointNoise, *arguments: Any) -> None:
            MADE(self, *arguments)
            if not unknown and honest in self.known:
                self._noise[self.known.index(honest)] = 0
            known.update(zip(self.known, self._noise.copy(), strict=True))

        local[context.party] = noise
        shares = [dealt(context.session, *sharing, kind[2], 0, np.array(plan.secret)) for sharing in plan.sharings()]
        results = decrypt(context, plan.info(), shares, [plan.ciphertext], receiver, "round_ltz_circuit")
        return known, None if results is None else coefficients(plan.parameters, results[0].plaintext)

    local: dict[int, Any] = {}
    monkeypatch.setattr(JointNoise, "__init__", lambda self, context, *rest: local[context.party](self, context, *rest))
    for _ in range(runs):
        ends = run_in_process(plan.committee, one)
        pooled = {i: numbers for party in corrupt for i, numbers in ends[party][0].items()}
        assert len(pooled) == len(sets_of(kind)) - 1
        left.append(np.array(ends[receiver][1]) - np.array(plan.wanted) - sum(pooled.values()))
    return np.concatenate(left) / math.sqrt(plan.info().policy.variance(plan.parameters.ring_degree))


@each_kind
def test_what_corrupted_parties_do_not_know(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    """All numbers that t parties know taken off, a result has noise of the full deviation: within 5.5 of the deviations of the estimate, false alarm 10^-7. Where the set of honest parties adds none,
    the bare phase is left."""
    x = residuals(monkeypatch, kind, 12, unknown=True).astype(np.float64)
    assert abs((x**2).mean() - 1) < 5.5 * math.sqrt(2 / x.size)
    assert not residuals(monkeypatch, kind, 1, unknown=False).any()


@pytest.mark.parametrize("kind", [REPLICATED, SHAMIR[0], *(SHAMIR[1:] if LONG else [])], ids=str)
def test_values_come_back_within_the_stated_precision(kind: Kind) -> None:
    """A shipped set under the default policy: keys, encryption by SEAL, and the decryption; the deviation is the stated one, of all sets (10 % are six deviations of the estimate)."""
    members, parameters = api.in_process_committee(kind[1], kind[0], kind[2]), load("ckks-4096", warn=False)
    assert flooding_summands(*kind) == math.comb(kind[1], kind[2]) and flooding_summands("rep-field", 3, 1) == 2
    material = api.keygen_in_process(members, SealRequest(parameters, relin=False))
    s, stated = Seal(material[0]), key_precision(material[0].info)
    values = np.linspace(-1, 1, parameters.slots)
    ciphertext = s.encryptor.encrypt(s.encoder.encode(values, parameters.scale))
    (opened,) = api.decrypt_in_process(members, material, [ciphertext.to_string()], receiver=1)
    got = np.asarray(s.encoder.decode(s.context.from_plain_str(opened.plaintext)))
    assert np.abs(got - values).max() < stated.largest
    assert (got - values).std() == pytest.approx(stated.deviation, rel=0.1)


@pytest.mark.filterwarnings("ignore::keyquorum.fhe.errors.SecurityWarning")
def test_decryptions_are_counted_before_anything_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a party is about to open the sum all have the count on their disks, and a run that breaks off there is counted."""
    members = replace(members_of(SHAMIR[1]), folder=tmp_path)
    job = api.keygen_job("ckks", narrow("ckks-4096"), False, policy=WEAK)
    assert jobs.succeeded(jobs.run_parties(members, lambda party: job))
    paths, opened = jobs.encrypt(members, "ckks"), Embedded.run

    def used(party: int) -> int:
        count = json.loads((members.key_folder(party, "ckks") / "decryptions.json").read_text())["used"]
        assert isinstance(count, int)
        return count

    before: list[int] = []

    def stopped(self: Embedded, protocol: str, domain: str, call: Any, **options: Any) -> Any:
        if call.program == "flood" and self.session.party == 2:
            before.extend(used(party) for party in range(4))
            raise KeyQuorumError("party 2 breaks off")
        return opened(self, protocol, domain, call, **options)

    with monkeypatch.context() as patched:
        patched.setattr(Embedded, "run", stopped)
        ends = jobs.decrypt(members, "ckks", paths)
    assert all(isinstance(end, Exception) for end in ends) and before == [1] * 4
    assert [used(party) for party in range(4)] == [1] * 4
    assert jobs.succeeded(jobs.decrypt(members, "ckks", paths))
    assert [used(party) for party in range(4)] == [2] * 4
