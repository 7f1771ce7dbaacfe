"""Exact decryption of LWE over prime fields alone, by committees of mal-shamir: right for every phase, and refused where nothing can be promised. Attacks: tests/adversaries."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import _engine, api
from keyquorum.fhe.lwe import encrypt
from keyquorum.fhe.lwe_sets import LweParameters
from keyquorum.model.errors import KeyQuorumError, ParameterError, PartyError, PoolTooSmall, ProgramError
from keyquorum.parties import PartyContext, run_in_process
from keyquorum.plans.pool_variants import pool_group, variant_for
from keyquorum.plans.pools import Pool
from keyquorum.schemes.lwe.field_variant import FIELD, LweFieldVariant, words_of_messages
from keyquorum.schemes.lwe.phases import phases_modulo_q

from tests.adversaries.lwe_plans import COUNT, LweDecryption, lwe_decryption
from tests.adversaries.plans import committee_of, dealt, pool_of_all

ROUNDING = "round_ltz_circuit"
SETS = ("lwe53-p16", "lwe53-p16-eta52")


def toy(parties: int = 3, receiver: int = 0, pooled: bool = True) -> LweDecryption:
    """The plan of a toy decryption."""
    job = lwe_decryption("mal-shamir", parties, receiver, modulus="prime", pooled=pooled).job
    assert isinstance(job, LweDecryption)
    return job


def key_shares(plan: LweDecryption, context: PartyContext) -> Any:
    """This party's shares of the key."""
    ((protocol, domain),) = plan.sharings()
    return dealt(context.session, protocol, domain, plan.committee.threshold, 0, np.array(plan.secret, dtype=np.int64))


def variant_and_phases(plan: LweDecryption, context: PartyContext) -> tuple[LweFieldVariant, Any, Any]:
    """The rounding, its parties, and this party's shares of the phases."""
    variant, group = variant_for(plan.committee, ROUNDING, plan.parameters), pool_group(context)
    assert isinstance(variant, LweFieldVariant)
    return variant, group, phases_modulo_q(context, group, key_shares(plan, context), plan.ciphertexts)


def of_set(parameters: LweParameters, parties: int, receiver: int, pooled: bool, folder: Path, seed: int) -> LweDecryption:
    """Every message with noise at both ends of the range, one unit beyond them, none, and in between. Messages 0 and 2^j - 1 wrap there."""
    q, j, rng = parameters.prime, parameters.message_bits, np.random.default_rng(seed)
    values, noise, wanted = [], [], []
    for m in range(1 << j):
        encoded = (m * q + (1 << (j - 1))) >> j
        least, most = -(-((2 * m - 1) * q) // (2 << j)) - encoded, ((2 * m + 1) * q) // (2 << j) - encoded
        for e in (least, most, least - 1, most + 1, 0, int(rng.integers(least, most))):
            values.append(m)
            noise.append(e)
            wanted.append(((encoded + e) * (2 << j) + q) // (2 * q) % (1 << j))
        assert wanted[-6:] == [m, m, (m - 1) % (1 << j), (m + 1) % (1 << j), m, m]
    secret = rng.integers(0, 2, parameters.dimension)
    ciphertexts = encrypt(parameters, secret, np.array(values), rng, np.array(noise))
    committee = replace(committee_of("mal-shamir", parties), folder=folder)
    return LweDecryption(committee, parameters, receiver, ROUNDING, tuple(secret.tolist()), ciphertexts, tuple(wanted), pooled)


@pytest.mark.parametrize("pooled", [False, True], ids=["no-pool", "pool"])
@pytest.mark.parametrize(("name", "parties"), [(SETS[0], 3), (SETS[0], 5), (SETS[1], 3), (SETS[0], 4)])
def test_every_message_at_the_ends_of_the_range(name: str, parties: int, pooled: bool, tmp_path: Path) -> None:
    """The receiver alone gets the exact rounding, whatever the sign of the noise."""
    parameters = api.load_parameters(name)
    assert isinstance(parameters, LweParameters)
    receiver = parties - 1
    plan = of_set(parameters, parties, receiver, pooled, tmp_path, parties)
    assert plan.committee.threshold == (parties - 1) // 2
    results = run_in_process(plan.committee, lambda context: plan.result(context, [key_shares(plan, context)]))
    assert [words is None for words in results] == [party != receiver for party in range(parties)]
    assert tuple(results[receiver]) == plan.wanted
    assert not pooled or all((tmp_path / f"party-{party}" / "pools" / f"{name}-{ROUNDING}").exists() for party in range(parties))


def test_from_a_key_on_disk_to_messages(tmp_path: Path) -> None:
    """Processes make a key, fill a pool, and decrypt. Without items it is refused; a share file without the name of its run is too."""
    folder, values = tmp_path / "committee", np.arange(16)
    api.init(folder, 3, "mal-shamir")
    api.keygen(folder, "key", "lwe53-p16")
    api.encrypt(folder, "key", values, tmp_path / "c.lwe")
    with pytest.raises(KeyQuorumError, match="needs 16 items, has 0"):
        api.decrypt(folder, "key", [tmp_path / "c.lwe"], receiver=1, outputs=[tmp_path / "none.json"])
    api.pool_fill(folder, "lwe53-p16", ROUNDING, 40)
    for receiver in (0, 2):
        output = tmp_path / f"m{receiver}.json"
        api.decrypt(folder, "key", [tmp_path / "c.lwe"], receiver=receiver, outputs=[output])
        assert np.array_equal(api.decode(folder, "key", output), values)
    with pytest.raises(KeyQuorumError, match="needs 16 items, has 8"):
        api.decrypt(folder, "key", [tmp_path / "c.lwe"], receiver=1, outputs=[tmp_path / "none.json"])
    (folder / "party-0" / "keys" / "key" / "mac-0.kqs").unlink()
    with pytest.raises(KeyQuorumError, match=r"mac-0\.kqs: missing"):
        api.decrypt(folder, "key", [tmp_path / "c.lwe"], receiver=1, outputs=[tmp_path / "again.json"])


def test_items_are_as_said() -> None:
    """Rows of the pool: a mask below q and its bits, of which the low ones also have their one-hot vector; the same number in both fields."""
    plan = toy(pooled=False)

    def one(context: PartyContext) -> list[list[list[int]]]:
        variant, group = variant_for(plan.committee, ROUNDING, plan.parameters), pool_group(context)
        assert isinstance(variant, LweFieldVariant) and variant.field == FIELD
        return [part[0].tolist() for part in variant.make(group, 40)]

    q, j = plan.parameters.prime, plan.parameters.message_bits
    results = run_in_process(plan.committee, one)
    opened = []
    for section, modulus in ((0, q), (1, FIELD)):
        a, b, c = (np.array(result[section], dtype=object) for result in results)
        assert not ((a - 2 * b + c) % modulus).any()  # the shares lie on lines
        opened.append((2 * a - b) % modulus)
    (v,), rows = opened[0], opened[1]
    length = q.bit_length()
    assert rows.shape[0] == length + (1 << j) and max(v) < q
    assert np.array_equal(sum(rows[i] << i for i in range(length)), v) and set(rows.reshape(-1).tolist()) <= {0, 1}
    assert all(rows[length + i].tolist() == [int(x % (1 << j) == i) for x in v] for i in range(1 << j))


def test_key_shares_of_two_dealings_are_refused() -> None:
    """Party 2 has the share file of another run: all find it before anything is opened."""
    plan = toy(pooled=False)

    def one(context: PartyContext) -> None:
        first, second = key_shares(plan, context), key_shares(plan, context)
        plan.result(context, [second if context.party == 2 else first])

    with pytest.raises(_engine.StoreError, match="not made together"):
        run_in_process(plan.committee, one)


@pytest.mark.parametrize("differs", ["purpose", "items"])
def test_parties_agree_on_items_and_purpose(differs: str) -> None:
    """Where a party uses other items, or the same items for another purpose, all stop before they send anything under them. Items without a name are refused."""
    plan = toy()

    def one(context: PartyContext) -> Any:
        variant, group, z = variant_and_phases(plan, context)
        items = [variant.make(group, COUNT), variant.make(group, COUNT)]
        other = context.party == 1
        purpose = b"another" if other and differs == "purpose" else b"one"
        return variant.use(group, z, items[int(other and differs == "items")], 0, context=purpose)

    with pytest.raises(_engine.ProtocolError, match="items of the pool, and their purpose"):
        run_in_process(plan.committee, one)

    def nameless(context: PartyContext) -> Any:
        variant, group, z = variant_and_phases(plan, context)
        return variant.use(group, z, list(variant.make(group, COUNT)), 0)

    with pytest.raises(ProgramError, match="lack the name of their draw"):
        run_in_process(plan.committee, nameless)


def test_a_pool_is_used_once(tmp_path: Path) -> None:
    """A run that breaks off after the claim has used its items: the next one takes others, or finds too few."""
    plan = toy()
    committee = replace(plan.committee, folder=tmp_path)
    variant = variant_for(committee, ROUNDING, plan.parameters)

    def fill(context: PartyContext) -> None:
        pool_of_all(context, variant, COUNT)

    def use(context: PartyContext) -> int:
        pool = Pool(context, pool_group(context), variant)
        try:
            with pool.claimed(COUNT // 2, "a test") as items:
                items.take(COUNT // 2)
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


@pytest.mark.parametrize("rounding", ["round_ltz_table", "round_mask_open", "round_flood"])
def test_other_roundings_are_refused(rounding: str) -> None:
    """One line, for the parties of a decryption and of a pool."""
    with pytest.raises(ParameterError, match=f"^mal-shamir: there is no {rounding} over prime fields alone: take round_ltz_circuit$"):
        variant_for(committee_of("mal-shamir", 3), rounding, api.load_parameters("lwe53-p16"))


def test_sets_that_do_not_fit_are_refused() -> None:
    """Sets modulo 2^64, and messages of more bits than items have rows for."""
    committee, small = committee_of("mal-shamir", 3), api.load_parameters("lwe53-p16")
    assert isinstance(small, LweParameters)
    with pytest.raises(ParameterError, match=r"lwe64-p2 is modulo 2\^64: take lwe53-p16"):
        variant_for(committee, ROUNDING, api.load_parameters("lwe64-p2"))
    with pytest.raises(ParameterError, match="and at most 8 bits a message"):
        variant_for(committee, ROUNDING, replace(small, plain_bits=9))


def test_numbers_that_are_no_messages_are_refused() -> None:
    """A result of 2^j or more at a receiver."""
    parameters = toy().parameters
    most = (1 << parameters.message_bits) - 1
    words = words_of_messages(parameters, np.array([[0, most]], dtype=np.uint64))
    assert words.tolist() == [[0, most << parameters.noise_length]]
    with pytest.raises(PartyError, match="a result is no message of 3 bits"):
        words_of_messages(parameters, np.array([[0, most + 1]], dtype=np.uint64))
