"""Exact decryption of LWE over prime fields alone, by committees of mal-shamir: right for every phase, and refused where nothing can be promised. Attacks: tests/adversaries."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import _engine, api
from keyquorum.backends.embedded import Embedded
from keyquorum.dsl import Origin
from keyquorum.fhe.lwe import encrypt
from keyquorum.fhe.lwe_sets import LweParameters
from keyquorum.model.errors import KeyQuorumError, ParameterError, PartyError, ProgramError
from keyquorum.parties import PartyContext, run_in_process
from keyquorum.plans.pool_variants import pool_group, variant_for
from keyquorum.schemes.lwe.field_variant import FIELD, LweFieldVariant, words_of_messages
from keyquorum.schemes.lwe.phases import phases_modulo_q
from keyquorum.sharing.variants import Preprocessing

from tests.adversaries.lwe_plans import COUNT, LweDecryption, lwe_decryption
from tests.adversaries.plans import committee_of, dealt

from .corrupted import ends_of, nothing
from .distributions import chi_square_p, uniform
from .test_malicious_decryption import check_a_pool_is_used_once

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
    assert rows.shape[0] == length + (1 << j)
    # the number of the bits is v itself, so it is below q
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
        return variant.use(group, z, items[int(other and differs == "items")], 0, purpose=purpose)

    with pytest.raises(_engine.ProtocolError, match="items of the pool, and their purpose"):
        run_in_process(plan.committee, one)

    def nameless(context: PartyContext) -> Any:
        variant, group, z = variant_and_phases(plan, context)
        return variant.use(group, z, list(variant.make(group, COUNT)), 0)

    with pytest.raises(ProgramError, match="lack the name of their draw"):
        run_in_process(plan.committee, nameless)


def test_a_pool_is_used_once(tmp_path: Path) -> None:
    plan = toy()
    committee = replace(plan.committee, folder=tmp_path)
    check_a_pool_is_used_once(committee, variant_for(committee, ROUNDING, plan.parameters), COUNT)


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
    for bits in (9, 0):
        with pytest.raises(ParameterError, match="and at least 1 and at most 8 bits a message"):
            variant_for(committee, ROUNDING, replace(small, plain_bits=bits))


def test_messages_of_one_bit(tmp_path: Path) -> None:
    """t = 2, with noise at the ends of the range."""
    plan = of_set(replace(toy().parameters, plain_bits=1, padding_bits=0), 3, 0, False, tmp_path, 1)
    results = run_in_process(plan.committee, lambda context: plan.result(context, [key_shares(plan, context)]))
    assert plan.parameters.message_bits == 1 and tuple(results[0]) == plan.wanted


def test_a_receiving_party_refuses_what_is_no_message() -> None:
    """Items whose one-hot vectors all parties have another: the result is 2^j or more, and the party that gets it stops."""
    plan = toy(pooled=False)
    length, j = plan.parameters.prime.bit_length(), plan.parameters.message_bits

    def one(context: PartyContext) -> Any:
        variant, group, z = variant_and_phases(plan, context)
        items = variant.make(group, COUNT)
        items[1][:, length:] = (items[1][:, length:].astype(np.uint64) + np.uint64(1 << j)) % np.uint64(FIELD)  # of a constant all shares are equal
        return variant.use(group, z, items, 0)

    with pytest.raises(PartyError, match="a result is no message of 3 bits"):
        run_in_process(plan.committee, one)


SAMPLES = 640
"""Masks of a statistic: 40 for each of 16 intervals."""


def not_uniform(numbers: np.ndarray, q: int) -> bool:
    """Whether the intervals of [0, q) in which numbers lie are not uniform: chi-square of 16 intervals, false alarm 10^-9."""
    return chi_square_p((16 * numbers.astype(np.int64) // q).astype(np.int64), uniform(range(16))) < 1e-9


def opened_words(monkeypatch: pytest.MonkeyPatch, party: int = 0) -> list[np.ndarray]:
    """What a party sees in openings of masked phases, run by run."""
    seen, truly = list[np.ndarray](), Embedded.run

    def run(self: Embedded, protocol: str, domain: str, call: Any, **options: Any) -> Any:
        output = truly(self, protocol, domain, call, **options)
        if call.program == "round_field_open" and self.session.party == party:
            seen.append(output.words % int(call.args[1]))
        return output

    monkeypatch.setattr(Embedded, "run", run)
    return seen


def no_masks(v: Any, rows: Any) -> None:
    v[:], rows[:] = 0, 0
    rows[:, -8] = 1  # [0 modulo 2^3 = 0]


def one_mask(v: Any, rows: Any) -> None:
    v[:], rows[:] = v[:, :, :1], rows[:, :, :1]


@pytest.mark.parametrize("change", [None, no_masks, one_mask], ids=["masks", "no-masks", "one-mask"])
def test_what_is_opened_is_uniform(change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Masks, and one phase under all of them, as it is opened. Masks of two draws differ. Without masks, and under the same mask, what is opened is not uniform; messages are right even then."""
    plan, opened = toy(pooled=False), opened_words(monkeypatch)
    q, same = plan.parameters.prime, np.zeros(SAMPLES, dtype=np.int64)
    plan = replace(plan, ciphertexts=replace(plan.ciphertexts, a=plan.ciphertexts.a[same], b=plan.ciphertexts.b[same]))

    def one(context: PartyContext) -> Any:
        variant, group, z = variant_and_phases(plan, context)
        items, others = variant.make(group, SAMPLES), variant.make(group, SAMPLES)
        if change is not None:
            change(*items)
        words = variant.use(group, z, items, 0)
        return [items[0][0, 0].astype(object), others[0][0, 0].astype(object)], None if words is None else words[0] >> plan.parameters.noise_length

    results = run_in_process(plan.committee, one)
    v, other = ((2 * results[0][0][i] - results[1][0][i]) % q for i in range(2))
    assert set(results[0][1].tolist()) == {plan.wanted[0]} and (v != other).any() and not not_uniform(other, q)
    (c,) = opened
    assert [not_uniform(v, q), not_uniform(c, q)] == [change is not None] * 2


@pytest.mark.parametrize("again", [False, True])
def test_masks_are_drawn_anew_without_a_pool(again: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same ciphertexts, decrypted twice: other words are opened. They are the same where the masks are used again."""
    plan, opened, kept, truly = toy(pooled=False), opened_words(monkeypatch), dict[int, Any](), LweFieldVariant.make

    def make(self: LweFieldVariant, group: Any, size: int) -> Any:
        made = truly(self, group, size)
        items, origins = kept.setdefault(group.me, ([part.copy() for part in made], [origin.copy() for origin in made.origins]))
        return Preprocessing([part.copy() for part in items], [origin.copy() for origin in origins])

    if again:
        monkeypatch.setattr(LweFieldVariant, "make", make)

    def one(context: PartyContext) -> Any:
        shares = key_shares(plan, context)
        return [plan.result(context, [shares]) for _ in range(2)]

    assert run_in_process(plan.committee, one)[0] == [list(plan.wanted)] * 2
    first, second = opened
    assert np.array_equal(first, second) == again


def test_masks_are_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pieces of items, also where a later one fails, and what is more than was asked for."""
    variant = variant_for(toy().committee, ROUNDING, toy().parameters)
    assert isinstance(variant, LweFieldVariant)
    pieces, joined, concatenate = list[np.ndarray](), list[np.ndarray](), np.concatenate
    fails = 9

    def masks(self: LweFieldVariant, group: Any, size: int, names: list[Any]) -> Any:
        if len(pieces) == fails:
            raise PartyError("broke off")
        names.append([Origin(bytes(16))])
        made = np.full((1, 1, 5), 7, np.uint64), np.full((1, variant.rows, 5), 7, np.uint64)
        pieces.extend(made)
        return made

    def seen(*arguments: Any, **options: Any) -> Any:
        joined.append(concatenate(*arguments, **options))
        return joined[-1]

    monkeypatch.setattr(LweFieldVariant, "_masks", masks)
    with monkeypatch.context() as patch:
        patch.setattr(np, "concatenate", seen)
        items = variant.make(None, 8)  # type: ignore[arg-type]
    assert [part.shape[-1] for part in items] == [8, 8] and all((part == 7).all() for part in items)
    assert len(pieces) == 4 and len(joined) == 2 and not any(part.any() for part in [*pieces, *joined])
    pieces.clear()
    fails = 4
    with pytest.raises(PartyError, match="broke off"):
        variant.make(None, 100)  # type: ignore[arg-type]
    assert len(pieces) == 4 and not any(part.any() for part in pieces)


class Colluding(Embedded):
    """The engine of a party that opens phases with another share: its error is that of a polynomial of degree 2 that is 0 at the points 1 and 2."""

    def run(self, protocol: str, domain: str, call: Any, **options: Any) -> Any:
        """See :meth:`.Embedded.run`."""
        if call.program == "round_field_open":
            size, q, x = int(call.args[0]), int(call.args[1]), self.session.party + 1
            words = options["shares"].words
            words[0, :size] = (words[0, :size] + np.uint64((x - 1) * (x - 2) * (q // 16 + 1) % q)) % np.uint64(q)
        return super().run(protocol, domain, call, **options)


@pytest.mark.parametrize("checked", [True, False])
def test_two_parties_of_five_collude(checked: bool) -> None:
    """Parties 3 and 4 shift their shares so that they fit those of the receiver and of party 1. The share of party 2 does not, so the check of openings fails. Without the checks the message is another one."""
    plan = toy(5, pooled=False)

    def one(context: PartyContext) -> Any:
        if context.party > 2:
            context.backend = Colluding(context.session)
        return plan.result(context, [key_shares(plan, context)])

    ends = ends_of(plan.committee, one, {3: nothing, 4: nothing}, omitted=[] if checked else ["Openings", "Products"])
    if checked:
        assert all(isinstance(end, _engine.EngineError) for end in ends[:3]) and any(isinstance(end, _engine.CheckError) for end in ends[:3]), ends
    else:
        assert isinstance(ends[0], list | PartyError) and ends[0] != list(plan.wanted)


def test_numbers_that_are_no_messages_are_refused() -> None:
    """A result of 2^j or more at a receiver."""
    parameters = toy().parameters
    most = (1 << parameters.message_bits) - 1
    words = words_of_messages(parameters, np.array([[0, most]], dtype=np.uint64))
    assert words.tolist() == [[0, most << parameters.noise_length]]
    with pytest.raises(PartyError, match="a result is no message of 3 bits"):
        words_of_messages(parameters, np.array([[0, most + 1]], dtype=np.uint64))
