"""Roundings with MACs and a pool: few rounds, as the openings under masks are verified together before the message is opened. A lie in any of them ends the run before
the receiver has anything."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from keyquorum import _engine
from keyquorum.backends.base import Mode, OpeningMasks
from keyquorum.backends.embedded import Embedded
from keyquorum.dsl import ShareVector
from keyquorum.fhe.lwe import lwe_parameters
from keyquorum.model.errors import ParameterError, ProgramError
from keyquorum.parties.context import PartyContext
from keyquorum.programs import Call
from keyquorum.programs.header import collection, header
from keyquorum.schemes.lwe.variant import LweVariant
from keyquorum.schemes.seal.ring import switched_bits
from keyquorum.schemes.seal.ring_variant import BLOCK, RingVariant
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.numbers import ProvenNumbers
from keyquorum.sharing.openings import receiver_rows
from keyquorum.sharing.variants import Preprocessing, combine, comparison_ands

from tests.adversaries.plans import committee_of, dealt, toy_set
from tests.long import LONG

SET = lwe_parameters("lwe64-p2")
L, J = SET.noise_length, SET.message_bits
LONG_RUN = pytest.mark.skipif(not LONG, reason="2,240 bits in both domains an item; KEYQUORUM_LONG=1 runs it")
TABLE, SMALL_TABLE = ("round_ltz_table", 8, 2), ("round_ltz_table", 4, 3)
MASK_OPEN, CIRCUIT = ("round_mask_open", 8, 2), ("round_ltz_circuit", 8, 2)
RING = ("ring", 0, 0)
"""BFV in one ring: t = 65537, ciphertexts that were switched to 2^K."""
T_RING, K_RING = toy_set().plain_modulus, switched_bits(toy_set())
SHAPES = [pytest.param(TABLE, marks=LONG_RUN), SMALL_TABLE, MASK_OPEN, CIRCUIT]
Shape = tuple[str, int, int]


def variant_of(shape: Shape, parties: int) -> LweVariant | RingVariant:
    if shape == RING:
        return RingVariant(toy_set(), "spdz2k", parties)
    return LweVariant(shape[0], SET, shape[1], shape[2], True, ProvenNumbers, parties)


@dataclass
class Party:
    """What a party of a run has: its group, and shares of phases of the messages 0, 1, 0, 1, ..."""

    session: Any
    group: RoundingGroup
    variant: LweVariant | RingVariant

    def phases(self, size: int) -> np.ndarray:
        if isinstance(self.variant, RingVariant):
            # what a phase has above 2^K hangs on the secret
            z = [(((2 * m + 1) << K_RING) // (2 * T_RING) + (m << K_RING)) % (1 << 64) for m in self.messages(size).tolist()]
        else:
            z = [(m << L) + (1 << (L - 1)) for m in self.messages(size).tolist()]
        shares = dealt(self.session, "spdz2k", "Z2^64", self.session.parties - 1, 0, np.array(z, dtype=np.uint64).view(np.int64))
        return shares.words.copy()

    def messages(self, size: int) -> np.ndarray:
        return np.arange(size) * 4099 % T_RING if isinstance(self.variant, RingVariant) else np.arange(size) % (1 << SET.plain_bits)

    def opened(self, words: np.ndarray) -> np.ndarray:
        return words[0] if isinstance(self.variant, RingVariant) else self.variant.messages(words[0])

    @property
    def stats(self) -> dict[str, int]:
        assert self.group.backend is not None
        return self.group.backend.stats()


def together(
    shape: Shape, parties: int, one: Callable[[Party], Any], tamper: Sequence[Any] = (), omitted: Sequence[str] = (),
) -> tuple[list[Any], list[BaseException | None]]:  # fmt: skip
    """What each party gets, and its error. ``omitted``: checks whose verdict all ignore but those that tamper."""
    committee, results = committee_of("mascot", parties), [None] * parties
    errors: list[BaseException | None] = [None] * parties
    sessions = _engine.tampered_sessions(list(tamper) or [None] * parties, list(omitted), 20.0)

    def run(session: Any) -> None:
        try:
            session.set_mac_key(os.urandom(16))
            context = PartyContext(session, committee, backend=Embedded(session))
            group = RoundingGroup.of(context, committee.threshold, 0)
            results[session.party] = one(Party(session, group, variant_of(shape, parties)))
        except BaseException as error:
            errors[session.party] = error
            session.abort(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=run, args=(session,), daemon=True) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    return results, errors


def part(items: Preprocessing, start: int, stop: int) -> Preprocessing:
    """Some of the items, whose shares have two words."""
    return Preprocessing([section[:, :, 2 * start : 2 * stop].copy() for section in items], items.origins)


CHECK = 2
TAG = 8
"""Bytes at the start of a message."""
ROUNDS = {TABLE: 2, SMALL_TABLE: 3, MASK_OPEN: 1, CIRCUIT: 1 + (L - 1).bit_length(), RING: 2 * (1 + (-(-K_RING // BLOCK) - 1).bit_length())}
"""Rounds of the openings before that of the message."""


@pytest.mark.parametrize("parties", [2, 3])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: f"{s[0]}-{s[1]}x{s[2]}")
def test_few_rounds_and_nothing_is_made_online(shape: Shape, parties: int) -> None:
    """A single decryption: the rounds of the openings, the check of all, the message, and its check. More values than are verified one by one take two more rounds a
    check, three among three parties. Bytes as stated, and every stored element is used."""

    def one(party: Party) -> list[tuple[Any, ...]]:
        variant, sizes = party.variant, [1, 1, 1, 1, *([many] if many else [])]
        destinations: list[Any] = [0, parties - 1, "all", "share", 0]
        items, z, found = variant.make(party.group, sum(sizes)), party.phases(sum(sizes)), []
        start = 0
        for size, to in zip(sizes, destinations, strict=False):
            before = party.stats
            words = variant.use(party.group, z[:, 2 * start : 2 * (start + size)], part(items, start, start + size), to)
            after = party.stats
            spent = {name: after[name] - before[name] for name in ("rounds", "bytes_sent")}
            found.append((to, size, words, spent, party.messages(sum(sizes))[start : start + size]))
            start += size
        kept = next(iter(party.group.backend._kept.values()))  # type: ignore[union-attr]
        made, used = kept.engine.preprocessed()["random elements"]
        assert made == used == sum(sizes) * variant.openings - 1, (
            "all that was stored is used, but of the message that stays shared, and nothing is made"
        )
        return found

    many = {MASK_OPEN: 300, CIRCUIT: 2}.get(shape, 0)
    results, errors = together(shape, parties, one)
    assert errors == [None] * parties
    variant = variant_of(shape, parties)
    for i, (to, size, _, spent, messages) in enumerate(results[0]):
        got = [result[i][2] for result in results]
        words = combine([g[:, ::2] for g in got], SET.ring_bits) if to == "share" else got[0 if to == "all" else to][0]
        assert np.array_equal(variant.messages(words), messages)
        assert to == "all" or to == "share" or all(g is None for p, g in enumerate(got) if p != to)
        if i == 0:
            continue  # with the opening of the engine
        last = 0 if to == "share" else 1 + CHECK
        rounds = ROUNDS[shape] + CHECK + last
        tossed = int(size * (variant.openings - 1) > 256) + int(to != "share" and size > 256)
        rounds += tossed * (3 if parties > 2 else 2)
        assert spent["rounds"] == rounds, (to, size)
        if size == 1:
            assert spent["bytes_sent"] == (parties - 1) * (sent(variant, parties, to) + TAG * rounds)


def sent(variant: LweVariant, parties: int, to: int | str) -> int:
    """Bytes to each other party in a single decryption."""
    width = {"round_mask_open": [L], "round_ltz_circuit": [L, *[1] * 2 * comparison_ands(L)]}.get(variant.rounding)
    if width is None:
        width = [L, *(s + 1 for sizes in variant.table_groups[1] for s in sizes)]
    digests = 64 if parties > 2 else 0

    def check(values: int) -> int:
        return 32 + 32 + 16 * values + digests  # a commitment, its nonce, and a sum a value

    openings = sum((w + 48 + 7) // 8 for w in width) + check(len(width))
    if to == "share":
        return openings
    return openings + ((L + J + 48 + 7) // 8 if to == "all" else 14) + check(1)


LIES = [
    (TABLE, 0, 0, 1 << (L - 1)),
    (TABLE, 1, -1, 0),
    (TABLE, 2, 0, 1 << (64 - J)),
    (SMALL_TABLE, 1, -1, 0),
    (MASK_OPEN, 0, 0, 1 << (L - 1)),
    (MASK_OPEN, 1, 0, 1 << (64 - J)),
    (CIRCUIT, 0, 0, 1 << (L - 1)),
    (CIRCUIT, 2, -3, 1),
    (CIRCUIT, 3, 0, 1 << (64 - J)),
    (RING, 0, 0, 1 << (K_RING - 1)),
    (RING, 0, -1, 1),
    (RING, 1, -3, 1),
    (RING, 2, 0, 3 << (K_RING - 2)),
    (RING, 3, -3, 1),
    (RING, 4, 0, 1 << K_RING),
]
"""A shape, and the section and row of which the corrupted party takes another share, which changes one opened value alone: the masked phase, the masked signs of the last group (by their
highest bit), masked bits of the last AND, and the message under the mask of the receiver; in the ring masked values, the highest block of a mask, and ANDs of both comparisons."""


def told() -> list[Any]:
    """Each lie: those of the shortest shape among three parties, the others among two. With KEYQUORUM_LONG=1 all among both."""
    found = list[Any]()
    for lie in LIES:
        among_three = lie[0] == MASK_OPEN
        marks = [LONG_RUN] if lie[0] == TABLE else []
        found += [pytest.param(*lie, parties, marks=marks) for parties in ((3, 2) if LONG else (3,) if among_three else (2,))]
    return found


def lying(party: Party, items: Preprocessing, section: int, row: int, by: int) -> None:
    variant = party.variant
    if isinstance(variant, LweVariant) and variant.rounding == "round_ltz_table" and section == 1:
        signs = variant.table_groups[1][-1][-1]
        row, by = -(2 << signs) - 1, 1 << signs  # the mask before the last table
    if section == len(items) - 1:
        assert variant.padded is not None
        row = variant.openings + receiver_rows(variant.padded)  # of party 0
    shares = items[section][0, row].reshape(-1, 2)
    total = [(int(low) + (int(high) << 64) + by) % (1 << 112) for low, high in shares.tolist()]
    shares[:] = [[word & (2**64 - 1), word >> 64] for word in total]


@pytest.mark.parametrize(("shape", "section", "row", "by", "parties"), told())
def test_a_lie_in_any_opening_is_found_before_the_message_is_opened(shape: Shape, section: int, row: int, by: int, parties: int) -> None:
    """Ablation: without the check the receiver has a wrong message. A lie in the opening of the message itself is found after it, and the receiver hands out nothing."""
    size, sent_at = 2 if "table" in shape[0] else 16, [0] * parties

    def one(party: Party) -> Any:
        made, z, me = party.variant.make(party.group, size + 1), party.phases(size), party.session.party
        party.variant.use(party.group, z[:, :2], part(made, size, size + 1), 0)  # opens the engine
        items = part(made, 0, size)
        if me == parties - 1:
            lying(party, items, section, row, by)
        before = party.session.stats()["messages"]
        try:
            words = party.variant.use(party.group, z, items, 0)
        finally:
            sent_at[me] = party.session.stats()["messages"] - before
        return None if words is None else (party.opened(words), party.messages(size))

    results, errors = together(shape, parties, one)
    assert results == [None] * parties
    assert any("the MAC check of opened values failed" in str(error) for error in errors)
    assert all(isinstance(error, (_engine.CheckError, _engine.NetworkError)) for error in errors), (
        "who hears of another one's failure first has lost a party"
    )
    few = size * (variant_of(shape, parties).openings - 1) <= 256
    check = CHECK if few else 2 * CHECK + int(parties > 2)
    last = 1 + CHECK if section == len(variant_of(shape, parties).sections) - 1 else 0
    whole = (parties - 1) * (ROUNDS[shape] + check + last)
    # Among three parties one may hear of another one's failure before it has sent its last message.
    assert whole - (parties - 2) * check <= sent_at[0] <= whole, "nothing is sent after the check that fails"
    results, errors = together(shape, parties, one, omitted=["ElementMacs"])
    assert errors == [None] * parties
    got, messages = results[0]
    assert not np.array_equal(got, messages)


def party_messages(shape: Shape, words: np.ndarray) -> list[int]:
    got: list[int] = variant_of(shape, 2).messages(words[0]).tolist()
    return got


class Tampering:
    """Changes one message that a party sends, after it has begun; `to`: to one party alone."""

    def __init__(self, at: int, others: int, to: int | None = None) -> None:
        self.at, self.others, self.to, self.begun, self.count, self.done = at, others, to, False, 0, False

    def __call__(self, to: int, message: bytes) -> list[bytes]:
        if not self.begun:
            return [message]
        number, self.count = self.count // self.others, self.count + 1
        if number != self.at or self.to not in (None, to):
            return [message]
        self.done = True
        return [message[:8] + bytes([message[8] ^ 1]) + message[9:]]


@pytest.mark.parametrize(("parties", "victim"), [(2, None), (3, None), (3, 1)])
@pytest.mark.parametrize("shape", [pytest.param(SMALL_TABLE, marks=LONG_RUN), MASK_OPEN], ids=str)
def test_no_message_can_be_changed(shape: Shape, parties: int, victim: int | None) -> None:
    """Every message of a single decryption, towards all or towards one party. What is opened differently is found before any sum is revealed, commitments that differ
    before the sums are accepted."""
    rounds = ROUNDS[shape] + 1 + 2 * CHECK
    for at in range(rounds):
        wire = Tampering(at, parties - 1, victim)

        def one(party: Party, wire: Tampering = wire) -> Any:
            items, z = party.variant.make(party.group, 2), party.phases(2)
            party.variant.use(party.group, z[:, :2], part(items, 0, 1), 0)
            party.session.compare("begin", b"")
            if party.session.party == parties - 1:
                wire.begun = True
            return party.variant.use(party.group, z[:, 2:], part(items, 1, 2), 0)

        results, errors = together(shape, parties, one, [*[None] * (parties - 1), wire])
        assert wire.done
        if victim is not None and at == rounds - 1:
            # Party 1 alone gets another sum of the last check. It reports it; the receiver has the right message, or has lost party 1 before.
            assert results[0] is None or party_messages(shape, results[0]) == [1]
            assert isinstance(errors[1], _engine.CheckError)
            continue
        assert results[0] is None, at
        assert isinstance(errors[0], (_engine.CheckError, _engine.NetworkError)), (at, errors)
        if victim is not None:
            opened = at < ROUNDS[shape] or at == ROUNDS[shape] + CHECK
            said = [str(error) for error in errors]
            assert any(isinstance(error, _engine.CheckError) for error in errors), (at, said)
            assert not opened or any("did not get the same messages" in text for text in said), (at, said)


def test_who_may_defer_checks() -> None:
    """The programs whose headers say so, and no others; with stored elements of keys that were tested."""
    assert [name for name in collection() if header(name).has("checks")] == [
        "client_outputs", "round_ltz_circuit_online", "round_ltz_ring_online", "round_ltz_table_online", "round_mask_open_online",
    ]  # fmt: skip
    with pytest.raises(ParameterError, match="for a number of parties"):
        LweVariant("round_mask_open", SET, kind=ProvenNumbers)

    def one(party: Party) -> None:
        backend = party.group.backend
        assert backend is not None
        masks = OpeningMasks(np.zeros((2, 2), dtype=np.uint64))
        with pytest.raises(ProgramError, match="round_mask: its checks cannot be deferred"):
            backend.run("spdz2k", "Z2^64", Call("round_mask", [1, 4]), shares=ShareVector(), mode=Mode(masks=masks))
        engine = party.session.engine("spdz2k", "Z2^64", "stored", party.session.parties - 1, None)
        with pytest.raises(_engine.EngineError, match="test the keys first"):
            engine.give_random(np.ones(32, dtype=np.uint8), 1)
        with pytest.raises(_engine.EngineError, match="have 16 bytes"):
            engine.give_random(np.zeros(16, dtype=np.uint8), 1)
        with pytest.raises(_engine.UsageError, match="there is no party 5"):
            engine.give_mask(5, np.zeros(32, dtype=np.uint8), np.zeros(1, dtype=np.uint64))
        engine = party.session.engine("semi2k", "Z2^64", "stored", party.session.parties - 1, None)
        with pytest.raises(_engine.UsageError, match="masks no openings with stored elements"):
            engine.give_random(np.zeros(8, dtype=np.uint8), 1)

    _, errors = together(MASK_OPEN, 2, one)
    assert errors == [None, None]


@pytest.mark.parametrize("exposes", ["open", "open_low", "open_to", "export", "end"])
def test_what_is_not_marked_waits_for_the_check(exposes: str) -> None:
    """Checks are deferred, and a lie in an opening under a mask can be read. Whatever else is opened, stored, or ends the deferral comes after the check, which finds it; elsewhere reading
    does."""

    def one(party: Party) -> int:
        engine = party.session.engine("spdz2k", "Z2^64", "deferred", 1, None)
        engine.origin()
        x, y = (engine.input(0, 1, np.array([v]) if party.session.party == 0 else None) for v in (5, 7))
        data = bytearray(engine.export(x))
        if party.session.party == 1:
            data[0] ^= 1
        x = engine.import_(bytes(data), 1)
        engine.flush()
        if exposes == "end":
            with pytest.raises(_engine.CheckError):
                engine.read(engine.open_masked(x, 8))
            return 0
        engine.defer_checks(True)
        assert engine.read(engine.open_masked(x, 8)).tolist() in ([4], [6])
        before = party.session.stats()["messages"]
        with pytest.raises(_engine.CheckError, match="the MAC check of opened values failed"):
            match exposes:
                case "open":
                    engine.read(engine.open(y))
                case "open_low":
                    engine.read(engine.open_low(y, 8))
                case "open_to":
                    engine.read(engine.open_to(y, 0))
                case "export":
                    engine.export(y)
        return party.session.stats()["messages"] - before

    results, errors = together(MASK_OPEN, 2, one)
    assert errors == [None, None] or all(isinstance(e, _engine.EngineError) for e in errors if e)
    assert results == [0 if exposes == "end" else CHECK] * 2, "nothing but the check was sent"


def test_the_end_of_the_deferral_verifies_all() -> None:
    def one(party: Party) -> None:
        engine = party.session.engine("spdz2k", "Z2^64", "deferred", 1, None)
        engine.origin()
        x = engine.input(0, 1, np.array([5]) if party.session.party == 0 else None)
        data = bytearray(engine.export(x))
        data[0] ^= party.session.party
        engine.defer_checks(True)
        engine.read(engine.open_masked(engine.import_(bytes(data), 1), 8))
        with pytest.raises(_engine.CheckError, match="the MAC check of opened values failed"):
            engine.defer_checks(False)

    _, errors = together(MASK_OPEN, 2, one)
    assert errors == [None, None]
