"""CKKS decryption by committees that verify products: noise that every pair of parties has in common, of the right distribution, the same modulo every prime. Matrix: tests/adversaries."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from keyquorum import _engine, api
from keyquorum.backends.embedded import Embedded
from keyquorum.fhe.parameters import load
from keyquorum.model.errors import CiphertextError
from keyquorum.parties import PartyContext, run_in_process
from keyquorum.schemes.seal.decrypt import decrypt
from keyquorum.schemes.seal.keygen import SealRequest
from keyquorum.schemes.seal.policy import FloodPolicy, flooding_summands
from keyquorum.schemes.seal.precision import key_precision
from keyquorum.sharing import joint, randomness
from keyquorum.sharing.joint import JointNoise
from keyquorum.sharing.randomness import HALF_BITS, gaussian_of_words, gaussian_words

from tests.adversaries.flooded_plans import Flooded, coefficients, flooded, off
from tests.adversaries.plans import dealt

from .quorum import Seal

CORRUPT, RECEIVER = 2, 0
PROTOCOL = "mal-rep-field"
MADE = JointNoise.__init__
Ints = np.ndarray


def noises(variance: int, size: int) -> list[Ints]:
    """The two numbers that each party has of each joint one, [parts, size]."""
    members = api.in_process_committee(3, PROTOCOL)

    def drawn(context: PartyContext) -> Ints:
        made = JointNoise(context.session, members, size, variance)  # wipes its numbers when it goes
        return made._noise.copy()

    return run_in_process(members, drawn)


@pytest.mark.parametrize("variance", [10, 1 << 20, 12 * 16 * 4096 << 30])
def test_pairs_have_the_same_numbers_of_the_right_deviation(variance: int) -> None:
    """Party i has the numbers of set i and of set i - 1. Mean and deviation within 5.5 of their own deviations: false alarm 10^-7."""
    size = 4096
    mine = noises(variance, size)
    for party in range(3):
        assert np.array_equal(mine[party][0], mine[(party + 1) % 3][1])
        x = mine[party][0].astype(np.float64) / math.sqrt(variance)
        assert abs(x.mean()) < 5.5 / math.sqrt(size)
        assert abs((x**2).mean() - 1) < 5.5 * math.sqrt(2 / size)
    sets = np.stack([mine[party][0] for party in range(3)]).astype(np.float64) / math.sqrt(variance)
    for i in range(3):  # independent of one another
        assert abs((sets[i] * sets[i - 1]).mean()) < 5.5 / math.sqrt(size)


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


class Other:
    """A backend whose party has other noise in the domains that ``where`` says, when it is to be opened."""

    def __init__(self, backend: Embedded, where: Callable[[str], bool]) -> None:
        self._backend, self._where = backend, where

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def run(self, protocol: str, domain: str, call: Any, **options: Any) -> Any:
        """See :meth:`.Embedded.run`."""
        if call.program == "flood" and self._where(domain):
            shares = options["persistence"]
            shares.words[:, -1] = (shares.words[:, -1] + np.uint64(1 << 35)) % np.uint64(int(domain[2:]))
        return self._backend.run(protocol, domain, call, **options)


def outcomes(where: Callable[[str], bool], omitted: tuple[str, ...] = ()) -> tuple[Flooded, list[Any]]:
    """What each party ends with, where one opens another sum; ``omitted``: checks that the others leave out."""
    plan = flooded(PROTOCOL, 3, RECEIVER).job
    assert isinstance(plan, Flooded)
    found: list[Any] = [None] * 3

    def one(session: Any) -> None:
        party = session.party
        try:
            shares = [dealt(session, *sharing, 1, 0, np.array(plan.secret)) for sharing in plan.sharings()]
            context = PartyContext(session, plan.committee)
            if party == CORRUPT:
                context.backend = Other(Embedded(session), where)  # type: ignore[assignment]
            results = decrypt(context, plan.info(), shares, [plan.ciphertext], RECEIVER, "round_ltz_circuit")
            found[party] = None if results is None else coefficients(plan.parameters, results[0].plaintext)
        except Exception as error:
            found[party] = error
            session.abort(str(error))

    from threading import Thread

    threads = [Thread(target=one, args=(session,)) for session in _engine.tampered_sessions([None] * 3, list(omitted), 10.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return plan, found


def test_other_noise_is_found() -> None:
    """In one domain, or the same in all. Without the comparison of copies the receiver has noise as a result, or a result that is far off."""
    plan, found = outcomes(lambda domain: False)
    assert off(found[RECEIVER], plan.wanted) <= plan.bound
    last = f"F_{plan.parameters.coeff_modulus[1]}"
    for where in (lambda domain: domain == last, lambda domain: True):
        _, found = outcomes(where)
        assert isinstance(found[RECEIVER], _engine.CheckError) and "cheats" in str(found[RECEIVER])
    _, found = outcomes(lambda domain: True, ("Openings",))
    assert off(found[RECEIVER], plan.wanted) > plan.bound
    _, found = outcomes(lambda domain: domain == last, ("Openings",))
    assert isinstance(found[RECEIVER], CiphertextError) or off(found[RECEIVER], plan.wanted) > plan.bound


def test_noise_of_two_draws_is_refused() -> None:
    """An honest party that takes the noise of another draw has another name, and all stop before anything is opened."""
    plan = flooded(PROTOCOL, 3, RECEIVER).job
    assert isinstance(plan, Flooded)

    def one(context: PartyContext) -> None:
        n, q = plan.parameters.ring_degree, plan.parameters.coeff_modulus[0]
        draws = [JointNoise(context.session, plan.committee, n, 1000) for _ in range(2)]
        (shares,) = (dealt(context.session, PROTOCOL, f"F_{q}", 1, 0, np.zeros(n, dtype=np.int64)) for _ in range(1))
        draws[int(context.party == 1)].append_to(shares, PROTOCOL, q)
        context.backend.run(PROTOCOL, f"F_{q}", flood_call(n), threshold=1, persistence=shares)

    with pytest.raises(_engine.StoreError, match="not made together"):
        run_in_process(plan.committee, one)


def test_noise_of_two_laws_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of one draw with two variances is two names; with one variance it is one."""
    plan = flooded(PROTOCOL, 3, RECEIVER).job
    assert isinstance(plan, Flooded)
    n, q = plan.parameters.ring_degree, plan.parameters.coeff_modulus[0]

    def one(context: PartyContext, other: int) -> bytes:
        (shares,) = (dealt(context.session, PROTOCOL, f"F_{q}", 1, 0, np.zeros(n, dtype=np.int64)) for _ in range(1))
        noise = JointNoise(context.session, plan.committee, n, other if context.party == 1 else 1000)
        noise.append_to(shares, PROTOCOL, q)
        context.backend.run(PROTOCOL, f"F_{q}", flood_call(n), threshold=1, persistence=shares)
        return noise._name

    (name,) = set(run_in_process(plan.committee, lambda context: one(context, 1000)))
    assert len(name) == 16
    with pytest.raises(_engine.StoreError, match="not made together"):
        run_in_process(plan.committee, lambda context: one(context, 1 << 20))
    monkeypatch.setattr(joint, "joined_name", lambda purpose, names: names[0])
    with pytest.raises(
        _engine.CheckError, match="sent different ones"
    ):  # the ablation: without the law in the name the sum is opened, and copies differ then
        run_in_process(plan.committee, lambda context: one(context, 1 << 20))


def flood_call(n: int) -> Any:
    """The opening of stored noise."""
    from keyquorum.programs import Segment
    from keyquorum.programs.signatures import flood

    return flood(contributors=2, N=n, receiver=0, phase=Segment(0, n), masks="stored", r=Segment(n, n))


def residuals(monkeypatch: pytest.MonkeyPatch, runs: int, third: bool) -> np.ndarray:
    """What a corrupted receiver has left of results once it takes off the phase and the noise that it knows, in deviations. ``third``: whether the others add theirs."""
    plan = replace(flooded(PROTOCOL, 3, CORRUPT).job, receiver=CORRUPT)  # type: ignore[type-var]
    assert isinstance(plan, Flooded)
    left = []

    def one(context: PartyContext) -> Any:
        known: list[Ints] = []

        def noise(self: JointNoise, *arguments: Any) -> None:
            MADE(self, *arguments)
            if not third:
                part = {0: 0, 1: 1}.get(context.party)  # set 0: of parties 0 and 1
                if part is not None:
                    self._noise[part] = 0
            known.append(self._noise.copy())

        local[context.party] = noise
        shares = [dealt(context.session, *sharing, 1, 0, np.array(plan.secret)) for sharing in plan.sharings()]
        results = decrypt(context, plan.info(), shares, [plan.ciphertext], CORRUPT, "round_ltz_circuit")
        return None if results is None else (coefficients(plan.parameters, results[0].plaintext), known[0].sum(axis=0))

    local: dict[int, Any] = {}
    monkeypatch.setattr(JointNoise, "__init__", lambda self, session, *rest: local[session.party](self, session, *rest))
    for _ in range(runs):
        words, known = run_in_process(plan.committee, one)[CORRUPT]
        left.append(np.array(words) - np.array(plan.wanted) - known)
    return np.concatenate(left) / math.sqrt(plan.info().policy.variance(plan.parameters.ring_degree))


def test_what_a_corrupted_party_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own two numbers taken off, a result has noise of the full deviation: within 5.5 of the deviations of the estimate, false alarm 10^-7. Where the pair of honest parties adds none, the bare
    phase is left."""
    x = residuals(monkeypatch, 12, third=True).astype(np.float64)
    assert abs((x**2).mean() - 1) < 5.5 * math.sqrt(2 / x.size)
    assert not residuals(monkeypatch, 1, third=False).any()


def test_values_come_back_within_the_stated_precision() -> None:
    """A shipped set under the default policy: keys, encryption by SEAL, and the decryption; the deviation is the stated one, of three numbers (10 % are six deviations of the estimate)."""
    members, parameters = api.in_process_committee(3, PROTOCOL), load("ckks-4096", warn=False)
    assert flooding_summands(PROTOCOL, 3, 1) == 3 and flooding_summands("rep-field", 3, 1) == 2
    material = api.keygen_in_process(members, SealRequest(parameters, relin=False))
    s, stated = Seal(material[0]), key_precision(material[0].info)
    values = np.linspace(-1, 1, parameters.slots)
    ciphertext = s.encryptor.encrypt(s.encoder.encode(values, parameters.scale))
    (opened,) = api.decrypt_in_process(members, material, [ciphertext.to_string()], receiver=1)
    got = np.asarray(s.encoder.decode(s.context.from_plain_str(opened.plaintext)))
    assert np.abs(got - values).max() < stated.largest
    assert (got - values).std() == pytest.approx(stated.deviation, rel=0.1)
