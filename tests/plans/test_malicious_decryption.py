"""Exact decryption by committees that verify products: right at the borders of rounding, at a small price, and refused where nothing can be promised. Attacks: tests/adversaries."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import _engine, api
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CommitteeError, KeyQuorumError, ParameterError, PoolTooSmall, ProgramError
from keyquorum.model.protocols import PROTOCOLS
from keyquorum.parties import PartyContext, run_in_process
from keyquorum.plans.pool_variants import pool_group, variant_for
from keyquorum.plans.pools import Pool
from keyquorum.schemes import encryption_of
from keyquorum.schemes.seal.variant import seal_variant
from keyquorum.sharing.rounding import check_rounds
from keyquorum.sharing.variants import Variant

from tests.adversaries.plans import Decryption, borders, committee_of, dealt, decryption, encrypted, key_info, pool_of_all, toy_set

ROUNDING = "round_ltz_circuit"


def planned(parameters: ParameterSet, protocol: str = "mal-rep-field", receiver: int = 0, pooled: bool = False) -> Decryption:
    """The plan of a decryption with noise at the borders."""
    job = decryption(protocol, 3, receiver, pooled=pooled, parameters=parameters).job
    assert isinstance(job, Decryption)
    return job


def key_shares(plan: Decryption, context: PartyContext, dealer: int = 0) -> Any:
    """This party's shares of the key."""
    domain = f"F_{plan.parameters.coeff_modulus[0]}"
    secret = np.array(plan.secret, dtype=np.int64)
    return dealt(context.session, plan.committee.field_protocol, domain, plan.committee.threshold, dealer, secret)


def test_from_a_key_on_disk_to_plaintexts(tmp_path: Path) -> None:
    """Processes make a key, fill a pool, and decrypt what SEAL encrypted, without the pool and with it. A share file without the name of its run is refused."""
    folder, values = tmp_path / "committee", np.arange(-50, 50)
    api.init(folder, 3, "mal-rep-field")
    api.keygen(folder, "key", "bfv-4096", relin=False)
    api.encrypt(folder, "key", values, tmp_path / "c.seal")
    api.pool_fill(folder, "bfv-4096", ROUNDING, 4096)
    for pool in (False, True):
        output = tmp_path / f"m{pool}.plain"
        api.decrypt(folder, "key", [tmp_path / "c.seal"], receiver=1, outputs=[output], pool=pool)
        assert np.array_equal(api.decode(folder, "key", output, len(values)), values)
    name = folder / "party-0" / "keys" / "key" / "mac-0.kqs"
    name.unlink()
    with pytest.raises(KeyQuorumError, match=r"mac-0\.kqs: missing"):
        api.decrypt(folder, "key", [tmp_path / "c.seal"], receiver=1, outputs=[tmp_path / "again.plain"])


@pytest.mark.parametrize("pooled", [False, True], ids=["no-pool", "pool"])
@pytest.mark.parametrize("name", ["bfv-4096", "bgv-4096"])
def test_no_coefficient_is_wrong(name: str, pooled: bool, tmp_path: Path) -> None:
    """Noise of every size up to the border, each message modulo t that comes, every receiver: 3 ciphertexts of 4,096 coefficients."""
    parameters = api.load_parameters(name)
    q, t = parameters.coeff_modulus[0], parameters.plain_modulus
    for receiver in range(3):
        plan = planned(parameters, receiver=receiver, pooled=pooled)
        secret, message, phase = borders(parameters, seed=receiver)
        if parameters.scheme == "bgv":  # t times the phase has the noise above the message, which changes its sign
            message, phase = -message % t, [t * x % q for x in phase]
        plan = replace(
            plan, committee=replace(plan.committee, folder=tmp_path / str(receiver)), secret=tuple(secret.tolist()),
            ciphertext=encrypted(parameters, secret, phase), wanted=tuple(message.tolist()),
        )  # fmt: skip
        results = run_in_process(plan.committee, lambda context, plan=plan: plan.decrypted(context, key_info(plan), [key_shares(plan, context)]))
        assert [words is None for words in results] == [party != receiver for party in range(3)]
        assert tuple(results[receiver]) == plan.wanted


def cost(plan: Decryption, folder: Path) -> tuple[int, dict[str, int]]:
    """Bytes that all parties send, and those of each phase."""

    def one(context: PartyContext) -> tuple[int, dict[str, int]]:
        shares, before = key_shares(plan, context), context.session.stats()["bytes_sent"]
        plan.decrypted(context, key_info(plan), [shares])
        return context.session.stats()["bytes_sent"] - before, {phase.name: phase.bytes_sent for phase in context.report.phases}

    results = run_in_process(replace(plan.committee, folder=folder), one)
    return sum(sent for sent, _ in results), {name: sum(phases[name] for _, phases in results) for name in results[0][1]}


def test_bytes_are_at_most_twice_those_of_semi_honest_parties(tmp_path: Path) -> None:
    """One ciphertext of bfv-4096: without a pool, with a pool that is filled for it, and the part with the pool that depends on the ciphertext."""
    parameters = api.load_parameters("bfv-4096")
    for pooled in (False, True):
        verified, online = cost(planned(parameters, "mal-rep-field", pooled=pooled), tmp_path / f"mal{pooled}")
        semi_honest, others = cost(planned(parameters, "rep-field", pooled=pooled), tmp_path / f"rep{pooled}")
        assert verified <= 2 * semi_honest
        if pooled:
            assert online["online"] <= 2 * others["online"]


def test_key_shares_of_two_dealings_are_refused() -> None:
    """Party 2 has the share file of another run: all find it before anything is computed with the shares."""
    plan = planned(toy_set())

    def one(context: PartyContext) -> None:
        first, second = key_shares(plan, context), key_shares(plan, context)
        plan.decrypted(context, key_info(plan), [second if context.party == 2 else first])

    with pytest.raises(_engine.StoreError, match="not made together"):
        run_in_process(plan.committee, one)


def test_shares_that_were_scaled_have_the_name_of_the_phase() -> None:
    """Phases of two runs have two names, and so have the shares that are computed from them locally; shares without a name are refused."""
    plan = planned(toy_set())

    domain = f"F_{plan.parameters.coeff_modulus[0]}"

    def one(context: PartyContext) -> list[bytes]:
        first, second = key_shares(plan, context), key_shares(plan, context)
        made = [first.copy(), second.copy(), second.copy()]
        for shares, purpose in zip(made, "aab", strict=True):
            shares.derive_origin("mal-rep-field", domain, purpose, shares.origins)
        with pytest.raises(ParameterError, match="without the name of a run"):
            first.derive_origin("mal-rep-field", domain, "a", [])
        return [bytes(shares.origins[0]) for shares in made]

    names = run_in_process(plan.committee, one)
    assert len(set(names[0])) == 3 and names == [names[0]] * 3


@pytest.mark.parametrize("differs", ["purpose", "items"])
def test_parties_agree_on_items_and_purpose(differs: str, tmp_path: Path) -> None:
    """Where a party uses other items, or the same items for another purpose, all stop before they send anything under them."""
    plan = planned(toy_set(), pooled=True)
    committee, size = replace(plan.committee, folder=tmp_path), plan.parameters.ring_degree

    def one(context: PartyContext) -> Any:
        variant, group = seal_variant(committee, ROUNDING, plan.parameters), pool_group(context)
        shares = key_shares(plan, context)
        z = encryption_of(key_info(plan)).phases(context, group, key_info(plan), [shares], variant, [plan.ciphertext])
        items = [variant.make(group, size), variant.make(group, size)]
        other = context.party == 1
        purpose = b"another" if other and differs == "purpose" else b"one"
        return variant.use(group, z, items[int(other and differs == "items")], 0, purpose=purpose)

    with pytest.raises(_engine.ProtocolError, match="items of the pool, and their purpose"):
        run_in_process(committee, one)


def test_pools_of_semi_honest_items_are_refused(tmp_path: Path) -> None:
    """Items without the name of their draw."""
    plan = planned(toy_set(), pooled=True)
    committee = replace(plan.committee, folder=tmp_path)

    def one(context: PartyContext) -> Any:
        variant, group = seal_variant(committee, ROUNDING, plan.parameters), pool_group(context)
        items = variant.make(group, 4)
        items.origins = []
        return variant.use(group, np.zeros((2, 2, 4), dtype=np.uint64), items, 0)

    with pytest.raises(ProgramError, match="lack the name of their draw"):
        run_in_process(committee, one)


def check_a_pool_is_used_once(committee: Committee, variant: Variant, size: int) -> None:
    """A run that breaks off after the claim has used its items: the next one takes others, or finds too few. ``size``: of the pool."""

    def fill(context: PartyContext) -> None:
        pool_of_all(context, variant, size)

    def use(context: PartyContext) -> int:
        pool = Pool(context, pool_group(context), variant)
        try:
            with pool.claimed(size // 2, "a test") as items:
                items.take(size // 2)
                if context.party == 1:
                    raise ZeroDivisionError
            return pool.left
        finally:
            pool.close()

    run_in_process(committee, fill)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            run_in_process(committee, use)
    with pytest.raises(PoolTooSmall, match="has 0"):
        run_in_process(committee, use)


def test_a_pool_is_used_once(tmp_path: Path) -> None:
    plan = planned(toy_set(), pooled=True)
    committee = replace(plan.committee, folder=tmp_path)
    check_a_pool_is_used_once(committee, seal_variant(committee, ROUNDING, plan.parameters), plan.parameters.ring_degree)


def test_what_is_refused() -> None:
    """Keys that these committees do not make, masks that parties input, and what Shamir's sharing does not have."""
    shamir_committee = committee_of("mal-shamir", 3)
    with pytest.raises(CommitteeError, match=r"without shares modulo 2\^k is semi-honest so far"):
        seal_variant(shamir_committee, ROUNDING, toy_set())
    with pytest.raises(ParameterError, match="there is no round_mask_open over prime fields alone"):
        variant_for(shamir_committee, "round_mask_open", toy_set())
    with pytest.raises(ParameterError, match="mal-rep-field: round_mask_open takes masks that parties input twice"):
        check_rounds(PROTOCOLS["mal-rep-field"], "round_mask_open")
    plan = planned(toy_set())
    for name in ("ajax53", "tfhers-2-2"):
        with pytest.raises(ParameterError, match=r"mal-rep-field: .* is decrypted by semi-honest committees alone"):
            variant_for(plan.committee, ROUNDING, api.load_parameters(name))
    with pytest.raises(ParameterError, match="round_mask_open takes masks that parties input twice"):
        seal_variant(plan.committee, "round_mask_open", plan.parameters)
    for protocol in ("rep-field", "semi", "shamir"):
        check_rounds(PROTOCOLS[protocol], "round_mask_open")
