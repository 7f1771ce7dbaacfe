"""What plans are written with: domains, shares with names that are wiped, and private numbers that are the same in every domain, of each kind of
committee."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum.model.domains import Domain, Field, Ring
from keyquorum.model.errors import CommitteeError, ParameterError, ProgramError
from keyquorum.model.protocols import COMMITTEES
from keyquorum.parties import PartyContext, run_in_process
from keyquorum.programs.signatures import sample_bits, sample_cbd
from keyquorum.schemes.generation import Generation
from keyquorum.schemes.prf.key import AES
from keyquorum.schemes.prf.keygen import PREAMBLE, PrfRequest
from keyquorum.sharing.numbers import KINDS, kind_of, lift, numbers_of
from keyquorum.sharing.numbers.lift import InputMasks, JointLiftMasks
from keyquorum.sharing.shares import Run

from .quorum import reconstruct

PRIMES = (1152921504606584833, 68719403009)
COMMITTEES_OF_KINDS = [("rep-field", 3), ("shamir", 3), ("shamir", 9), ("semi", 2), ("mascot", 2), ("mal-rep-field", 3), ("mal-shamir", 5)]


@pytest.mark.parametrize("domain", [Ring(1), Ring(64), Field(65537), Field((1 << 127) - 1)])
def test_domains_are_their_texts(domain: Domain) -> None:
    for same in (Domain.parse(str(domain)), copy.deepcopy(domain), pickle.loads(pickle.dumps(domain))):
        assert same == domain == str(same) and type(same) is type(domain)
        assert (same.bits, same.prime, same.modulus) == (domain.bits, domain.prime, domain.modulus)
    assert domain.modulus == (1 << domain.bits if domain.prime is None else domain.prime)


@pytest.mark.parametrize("text", ["Z2^0", "Z2^", "Z2^-1", "Z2^x", "F_2", "F_", "F_1x", "bits", "GF2", ""])
def test_other_texts_are_no_domains(text: str) -> None:
    with pytest.raises(ParameterError, match="domain") as caught:
        Domain.parse(text)
    assert "\n" not in str(caught.value)


def _alone(job: Any, protocol: str = "semi", parties: int = 2) -> list[Any]:
    return run_in_process(api.in_process_committee(parties, protocol), job)


@pytest.mark.parametrize("fails", [False, True])
def test_shares_are_wiped_at_the_end_of_a_block(fails: bool) -> None:
    def job(context: PartyContext) -> None:
        try:
            with Run(context).field(65537).shares() as shares:
                shares.run(sample_bits(size=64), appends="bits")
                words = shares.file.words
                assert words.any()
                if fails:
                    raise ProgramError("stop")
        except ProgramError:
            pass
        assert not words.any() and shares.length == 0

    _alone(job)


def test_names_are_of_shares_that_are_there() -> None:
    def job(context: PartyContext) -> None:
        with Run(context).field(65537).shares() as shares:
            shares.run(sample_bits(size=8), appends="a")
            shares.run(sample_bits(size=3), appends="b")
            assert (shares["a"].slice, shares["b"].slice) == (slice(0, 8), slice(8, 11))
            with pytest.raises(ParameterError, match="0 shares after the named ones: c cannot have 1"):
                shares.name("c", 1)
            shares.run(sample_bits(size=1))
            with pytest.raises(ParameterError, match="has a segment 'b' already"):
                shares.name("b", 1)

    _alone(job)


def test_a_committee_without_rings_says_so() -> None:
    def job(context: PartyContext) -> None:
        with pytest.raises(ParameterError, match="shamir shares over prime fields alone"):
            Run(context).ring(64)

    _alone(job, "shamir", 3)


def test_every_committee_has_a_kind() -> None:
    assert {protocol.private_numbers for protocol in COMMITTEES.values()} == KINDS.keys()


@pytest.mark.parametrize(("protocol", "parties"), COMMITTEES_OF_KINDS)
def test_lifted_numbers_are_the_same_in_every_domain(protocol: str, parties: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A secret and noise, in pieces that do not divide them: centred binomial of 21 + 21 bits, and trits before them."""
    members = api.in_process_committee(parties, protocol)
    monkeypatch.setattr(lift, "LIFTED", 100 * (members.threshold + 1))

    def job(context: PartyContext) -> list[Any]:
        run = Run(context)
        fields = [run.field(q) for q in PRIMES]
        with numbers_of(run).ternary(150) as x:
            x.run(sample_cbd(size=120, method="arith" if members.ring_protocol is None else "bits"), appends="noise")
            with numbers_of(run).lift(x, 5) as lifted:
                assert isinstance(lifted._masks, JointLiftMasks if kind_of(members).summands(members) else InputMasks)
                lifted.prove(fields)
                found = []
                for field in fields:
                    with lifted.over(field) as shares:
                        assert (shares["secret"].slice, shares["noise"].slice) == (slice(0, 150), slice(150, 270))
                        found.append(shares.file.words[:, :270].copy())
            return found

    found = run_in_process(members, job)
    first, second = (reconstruct(protocol, members.threshold, [party[i] for party in found], q) for i, q in enumerate(PRIMES))
    assert np.array_equal(first, second)
    assert set(first[:150].tolist()) == {-1, 0, 1} and 3 < np.abs(first[150:]).max() <= 21


def test_lifted_numbers_with_macs_are_tested_before_they_are_used() -> None:
    def job(context: PartyContext) -> None:
        run = Run(context)
        with numbers_of(run).ternary(16) as x, numbers_of(run).lift(x, 5) as lifted, pytest.raises(ProgramError, match="before they are tested"):
            lifted.over(run.field(PRIMES[0]))

    _alone(job, "mascot", 2)


def test_tests_of_lifted_numbers_serve_once() -> None:
    """Their masks are gone after the first time: sums of secrets would be opened bare."""

    def job(context: PartyContext) -> None:
        run = Run(context)
        fields = [run.field(PRIMES[0])]
        with numbers_of(run).ternary(16) as x, numbers_of(run).lift(x, 5) as lifted:
            lifted.prove(fields)
            before = context.backend.stats()
            with pytest.raises(ProgramError, match="serve once"):
                lifted.prove(fields)
            assert context.backend.stats() == before

    _alone(job, "mascot", 2)


@pytest.mark.parametrize(
    ("protocol", "wrong"), [("mascot", "contributed"), ("mascot", "pseudorandom"), ("mal-rep-field", "contributed"), ("mal-shamir", "proven")]
)
def test_a_kind_that_is_not_for_malicious_parties_is_refused(protocol: str, wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    committee = api.in_process_committee(3, protocol)
    kind_of(committee)
    monkeypatch.setattr(type(committee), "capabilities", replace(committee.capabilities, private_numbers=wrong))
    with pytest.raises(CommitteeError, match=f"{protocol}: {wrong} private numbers are not for malicious parties"):
        kind_of(committee)


def test_parties_that_verify_products_input_no_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    def job(context: PartyContext) -> None:
        numbers = numbers_of(Run(context))
        monkeypatch.setattr(type(context.backend), "takes_joint_integers", False)
        with pytest.raises(ParameterError, match="nobody may input masks"):
            numbers.masks(4)

    _alone(job, "mal-rep-field", 3)


def test_shares_without_a_name_are_not_taken_for_others() -> None:
    def job(context: PartyContext) -> None:
        with Run(context).field(65537).shares() as shares:
            shares.run(sample_bits(size=3))
            with pytest.raises(ParameterError, match="3 shares have no name yet: name them before sample_bits appends bits"):
                shares.run(sample_bits(size=3), appends="bits")
            shares.name("bits", 3)

    _alone(job)


def test_shares_of_a_key_that_fails_are_wiped() -> None:
    def job(context: PartyContext) -> None:
        with pytest.raises(ProgramError, match="stop"), Generation(context, PrfRequest(AES), PREAMBLE, ["test"]) as made:
            with Run(context).field(65537).shares() as shares:
                shares.run(sample_bits(size=64))
                kept = made.keep(shares.head(64))
            other, words = [1], kept.words
            made.wiping.callback(other.clear)
            assert words.any()
            raise ProgramError("stop")
        assert not words.any() and not other

    _alone(job)
