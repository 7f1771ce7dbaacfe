"""Pools: files, agreement, refusals; material is used once."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum._engine import EngineError
from keyquorum.fhe.lwe import LweCiphertexts, encrypt, lwe_parameters
from keyquorum.model.committee import Committee, Party
from keyquorum.model.errors import PoolError, ProgramError
from keyquorum.parties import PartyContext, run_in_process
from keyquorum.plans import pool_store
from keyquorum.plans.pool_list import Chunk
from keyquorum.plans.pool_store import (
    Claim,
    PoolStore,
    drop_pool,
    items_of,
    last_claim,
    pack,
    packed_bytes,
    pool_status,
    stored_sections,
)
from keyquorum.plans.pool_variants import pool_group, variant_for
from keyquorum.plans.pools import Pool, Report, judge, pools_folder
from keyquorum.schemes.lwe.keygen import make_lwe_key
from keyquorum.schemes.lwe.phases import lwe_phases
from keyquorum.schemes.lwe.variant import LweVariant
from keyquorum.sharing.variants import Preprocessing, Section, combine
from scipy import stats

OPEN = LweVariant("round_mask_open", lwe_parameters("lwe64-p2"))


def committee(folder: Path, protocol: str = "semi", parties: int = 2, openings: str = "direct") -> Committee:
    threshold = 1 if protocol in ("rep-field", "shamir") else parties - 1
    return Committee(folder, "test", protocol, threshold, tuple(Party(i, "in-process", 1, "") for i in range(parties)), openings)


def with_pool(members: Committee, job: Callable[[Pool], Any], variant: LweVariant = OPEN) -> list[Any]:
    """Runs a job with the open pool at every member."""

    def one(context: PartyContext) -> Any:
        group = pool_group(context)
        if not group.member:
            return None
        pool = Pool(context, group, variant)
        try:
            return job(pool)
        finally:
            pool.close()

    return [r for r in run_in_process(members, one, timeout=60) if r is not None]


def phases(pool: Pool, messages: np.ndarray, noise: np.ndarray | int = 0) -> np.ndarray:
    """Shares of z for these messages: party 0 of the pool holds the sum, others nothing."""
    p = pool.variant.parameters
    z = np.zeros((pool.group.parts, messages.size), dtype=np.uint64)
    if pool.group.me == 0:
        whole = [(int(m) << p.noise_length) + int(e) + (1 << (p.noise_length - 1)) for m, e in np.broadcast(messages, noise)]
        z[0] = np.array([w % 2**p.ring_bits for w in whole], dtype=np.uint64)
    if pool.group.ring_protocol == "ring" and pool.group.me == 1:
        whole = [(int(m) << p.noise_length) + int(e) + (1 << (p.noise_length - 1)) for m, e in np.broadcast(messages, noise)]
        z[1] = np.array([w % 2**p.ring_bits for w in whole], dtype=np.uint64)
    return z


@pytest.mark.parametrize(("protocol", "parties", "name"), [("semi", 2, "lwe64-p2"), ("rep-field", 3, "lwe64-p32"), ("shamir", 3, "lwe53-p16")])
@pytest.mark.parametrize("rounding", ["round_ltz_circuit", "round_ltz_table", "round_mask_open"])
def test_filled_in_chunks_and_used_across_them(tmp_path: Path, protocol: str, parties: int, name: str, rounding: str) -> None:
    members, variant = committee(tmp_path, protocol, parties), LweVariant(rounding, lwe_parameters(name), 4, 3)
    assert with_pool(members, lambda pool: pool.fill(10, 4), variant) == [10] * len(set(with_pool(members, lambda p: p.group.me, variant)))
    for size in (3, 5):
        messages = np.arange(size) % 2

        def job(pool: Pool, messages: np.ndarray = messages) -> Any:
            return pool.decrypt(phases(pool, messages), "test")

        words = combine(with_pool(members, job, variant), variant.parameters.ring_bits)
        assert np.array_equal(variant.messages(words), messages)
    folder = pools_folder(members, 0) / variant.name
    assert pool_status(folder) == (10, 8)
    assert len(list(folder.glob("chunk-*.kqs"))) == 1  # used ones are gone
    with pytest.raises(PoolError, match=r"needs 4,096 items, has 2: keyquorum pool fill"):
        with_pool(members, lambda pool: pool.take(4096, "test"), variant)
    assert pool_status(folder) == (10, 8)


def test_material_with_macs_across_chunks(tmp_path: Path) -> None:
    """spdz2k: shares of two words and two parts, from the disk, under the committee's MAC key, which outlives sessions."""
    members, set_ = committee(tmp_path, "mascot", 2), lwe_parameters("lwe64-p2")
    for party in range(2):
        members.party_folder(party).mkdir(parents=True)
    variant = variant_for(members, "round_mask_open", set_)
    keys = run_in_process(members, lambda context: make_lwe_key(context, set_))
    secret = np.asarray(sum(share.words[0, : 2 * set_.dimension : 2] for _, share in keys)).astype(np.int64)
    assert with_pool(members, lambda pool: pool.fill(9, 4), variant) == [9, 9]
    for size in (3, 5):
        messages = np.arange(size) % 2
        ciphertexts = encrypt(set_, secret, messages, np.random.default_rng(size))

        def job(context: PartyContext, ciphertexts: LweCiphertexts = ciphertexts) -> Any:
            group = pool_group(context)
            z = lwe_phases(context, group, keys[context.party][1], ciphertexts)
            pool = Pool(context, group, variant)
            try:
                return pool.decrypt(z, "test", 1)
            finally:
                pool.close()

        nothing, words = run_in_process(members, job, timeout=60)
        assert nothing is None and np.array_equal(variant.messages(words[0]), messages)
    assert pool_status(pools_folder(members, 0) / variant.name) == (9, 8)


def test_packing() -> None:
    rng, sections = np.random.default_rng(1), [Section(1, 64), Section(5, 1), Section(3, 9), Section(2, 6), Section(2, 62), Section(1, 16)]
    material = [rng.integers(0, 1 << s.bits, (2, s.rows, 21), dtype=np.uint64, endpoint=False) if s.bits < 64 else
                rng.integers(0, 2**64 - 1, (2, s.rows, 21), dtype=np.uint64) for s in sections]  # fmt: skip
    data = pack(material, sections)
    assert len(data) == packed_bytes(sections, 2, 21)
    for start, stop in ((0, 21), (3, 4), (8, 16), (20, 21)):
        stored = stored_sections(data, sections, 2, 21)
        assert all(words.flags.aligned and words.base is None for words in stored)  # where one begins depends on those before
        got = items_of(stored, sections, start, stop)
        assert all(np.array_equal(g, m[:, :, start:stop]) for g, m in zip(got, material, strict=True))
    assert 8 * packed_bytes(sections, 1, 4096) == 4096 * sum(s.rows * s.bits for s in sections)


def report(**changes: Any) -> Report:
    return replace(Report("decrypt", "pool", [("a", 60), ("b", 60)], 100, "c1", [(60, "c0"), (60, "c0"), (60, "c0")], 60, 100, 0, "n"), **changes)


def test_agreement() -> None:
    names = [0, 1, 2]
    assert judge([report(), report(), report()], names).position == 100
    behind = report(end=60, chain="c0", before=[], start=0)
    assert judge([behind, report(), behind], names).position == 100  # died between agreeing and claiming
    assert judge([report(), report(chunks=[("a", 60), ("x", 60)]), report(chunks=[("a", 60)])], names).chunks == 1
    assert judge([report(pool_id=i, chunks=[], end=0) for i in ("", "x", "y")], names).position == 0
    digests = {judge([report(nonce=n), report(), report()], names).chain for n in ("n", "m")}
    assert len(digests) == 2
    for reports, text in (
        ([report(), report(end=40, chain="c9"), report()], "party 1 is back at item 40 of its pool, party 0 knows that it had used 60"),
        ([report(), report(end=60, chain="other"), report()], "were used apart from each other"),
        ([report(), report(chain="fork"), report()], "parties 0 and 1 were used apart"),
        ([report(), report(), report(end=80, chain="c7")], "parties 0 and 2 were used apart"),
        ([report(), report(pool_id="new"), report()], "parties 0 and 1 have different pools"),
        ([report(), report(), report(purpose="fill 3")], "party 0 wants to decrypt, party 2 to fill 3"),
    ):
        with pytest.raises(PoolError, match=text):
            judge(reports, names)


def test_what_is_claimed_ahead_is_handed_out_once_and_given_up_with_the_pool(tmp_path: Path) -> None:
    """One decryption after another: a claim is as long as what was handed out before, so few of them are written. What is left
    of the last one is given up by those who open the pool again, and then by all."""
    members, rows = committee(tmp_path), []

    def some(pool: Pool) -> int:
        rows.append([int(pool.take(1, f"number {i}")[0][0][0, 0, 0]) for i in range(9)])
        return pool.left

    def journal() -> list[tuple[int, int]]:
        text = (pools_folder(members, 0) / OPEN.name / "cursor.journal").read_text()
        return [(c["start"], c["end"]) for c in (json.loads(line.partition(" ")[2]) for line in text.splitlines())]

    with_pool(members, lambda pool: pool.fill(60, 20))
    assert with_pool(members, some) == [51, 51], "what is claimed ahead is there as long as the pool is open"
    assert journal()[1:] == [(0, 1), (1, 2), (2, 4), (4, 8), (8, 16)]
    assert pool_status(pools_folder(members, 0) / OPEN.name) == (60, 16)
    assert with_pool(members, some) == [35, 35]
    assert journal()[-1] == (24, 32)
    assert len({value for row in rows for value in row}) == 2 * 2 * 9, "at two parties, twice, nine items"
    # Near the end no more is claimed than there is.
    assert with_pool(members, lambda pool: [pool.take(20, "many"), pool.take(7, "more"), pool.left][2]) == [1, 1]
    with pytest.raises(PoolError, match="needs 2 items, has 0"):
        with_pool(members, lambda pool: pool.take(2, "too many"))
    assert journal()[-1] == (52, 60)


@pytest.mark.parametrize(("protocol", "openings"), [("semi", "direct"), ("semi", "star"), ("rep-field", "direct")])
def test_a_batch_out_of_a_claim_made_ahead_is_agreed_on_by_its_first_messages(tmp_path: Path, protocol: str, openings: str) -> None:
    members, sent = committee(tmp_path, protocol, 3, openings), []

    def decrypt(pool: Pool, purpose: str) -> Any:
        before = pool.session.stats()["messages"]
        words = pool.decrypt(phases(pool, np.array([1])), purpose, "all")
        sent.append((pool.store.next, pool.session.stats()["messages"] - before))
        assert words is not None
        return pool.variant.messages(words[0])

    def job(pool: Pool) -> list[Any]:
        pool.fill(40, 40)
        return [decrypt(pool, f"number {i}") for i in range(7)]

    def one_skips(pool: Pool) -> None:
        """Party 1 is one item further, for the same purpose."""
        for i in range(6):
            decrypt(pool, f"number {i}")
        pool.store.next += pool.group.me == 1
        decrypt(pool, "same")

    def apart(pool: Pool) -> None:
        for i in range(3):
            decrypt(pool, f"number {i}")
        decrypt(pool, f"the fourth, for party {pool.group.me}")

    assert all(np.array_equal(m, [1]) for party in with_pool(members, job) for m in party)
    # A claim takes an exchange with two peers; so do, with both or the next one, the opening of masked words and that of the result.
    # As a star the centre sends two messages an opening, the others one.
    opening = {1} if protocol == "rep-field" else {2} if openings == "direct" else {1, 2}
    costs = {item: {cost for at, cost in sent if at == item} for item in range(2, 8)}
    assert all(costs[i] == {2 * o for o in opening} for i in (4, 6, 7)), costs
    assert all(costs[i] == {2 * o + 2 for o in opening} for i in (2, 3, 5)), costs
    for wrong in (one_skips, apart):
        with pytest.raises(EngineError, match="for the same purpose"):
            with_pool(members, wrong)
    end = max(at for at, _ in sent)
    del sent[:]
    assert with_pool(members, lambda pool: decrypt(pool, "after that")[0]) == [1, 1, 1]
    assert len({at for at, _ in sent}) == 1 and sent[0][0] > end + 1, "what a member may have used is given up"


def test_a_pool_belongs_to_a_kind_of_openings(tmp_path: Path) -> None:
    members = committee(tmp_path, "semi", 3)
    with_pool(members, lambda pool: pool.fill(4, 4))
    with pytest.raises(PoolError, match="made with another committee: keyquorum pool drop"):
        with_pool(replace(members, openings="star"), lambda pool: pool.take(1, "test"))


def test_after_a_failure_and_where_no_opening_compares_members_agree_anew(tmp_path: Path) -> None:
    members = committee(tmp_path)

    def batches(pool: Pool, size: int = 1) -> int:
        before = pool.session.stats()["messages"]
        pool.decrypt(phases(pool, np.ones(size, np.int64)), "test")
        return int(pool.session.stats()["messages"] - before)

    def fails(pool: Pool) -> list[int]:
        pool.fill(40, 40)
        costs = [batches(pool) for _ in range(6)]
        with pytest.raises(ProgramError):
            pool.decrypt(np.zeros((0, 1), np.uint64), "no shares of phases")
        return [*costs[-2:], batches(pool)]

    # Two parties: an opening; agreement and an opening; the same, and the opening of another engine.
    assert with_pool(members, fails) == [[2, 1, 3]] * 2
    flood = LweVariant("round_flood", lwe_parameters("lwe53-p16"))
    with_pool(members, lambda pool: pool.fill(40, 40), flood)
    assert with_pool(members, lambda pool: [batches(pool) for _ in range(6)][1:], flood) == [[1] * 5] * 2, "no opening, but agreement"


def test_a_member_that_opens_again_makes_all_give_up_what_was_claimed_ahead() -> None:
    names = [0, 1, 2]
    found = judge([report(next=70, ahead=8), report(next=70, ahead=8), report(next=70, ahead=8)], names)
    assert (found.position, found.end, found.ahead) == (70, 100, 8)
    found = judge([report(next=70, ahead=8), report(next=100), report(next=70, ahead=8)], names)
    assert (found.position, found.end, found.ahead) == (100, 100, 0)
    behind = report(end=60, chain="c0", before=[], start=0, next=60)
    assert judge([report(next=70, ahead=8), behind, report(next=70, ahead=8)], names).position == 100


def test_a_chunk_that_one_member_alone_has_does_not_count(tmp_path: Path) -> None:
    """It died between storing a chunk and counting it: what is left is what all have, before anything is filled again."""
    members = committee(tmp_path)

    def orphan(pool: Pool) -> int:
        pool.fill(4, 4)
        if pool.group.me == 0:
            made = Chunk("ab" * 16, 4)
            pool.store.write(made, Preprocessing(np.zeros((1, section.rows, 4), np.uint64) for section in pool.store.sections))
            pool.store.add(made)
        return pool.left

    def left(pool: Pool) -> int:
        pool.agree("look")
        return pool.left

    assert with_pool(members, orphan) == [4, 4]
    assert with_pool(members, left) == [4, 4]
    with pytest.raises(PoolError, match="needs 5 items, has 4"):
        with_pool(members, lambda pool: pool.take(5, "more than all have"))
    assert with_pool(members, lambda pool: pool.fill(4, 4)) == [8, 8]


def test_a_disk_that_takes_little_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim that was written in part is written on until all of it is there."""
    store = PoolStore(tmp_path / "p", {"protocol": "semi2k", "parties": 2, "threshold": 1, "party": 0}, OPEN.sections, 1)
    store.start("id")
    write = os.write
    monkeypatch.setattr("keyquorum.plans.pool_store.os.write", lambda file, data: write(file, data[:7]))
    store.claim_items(Claim(0, 5, "c", [(0, "a")]))
    store.close()
    assert last_claim(tmp_path / "p" / "cursor.journal", "id") == Claim(0, 5, "c", [(0, "a")])

    def full(file: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    store = PoolStore(tmp_path / "p", {"protocol": "semi2k", "parties": 2, "threshold": 1, "party": 0}, OPEN.sections, 1)
    monkeypatch.setattr("keyquorum.plans.pool_store.os.write", full)
    with pytest.raises(PoolError, match=r"the journal could not be written .*No space left.*: make room on the disk"):
        store.claim_items(Claim(5, 9, "d", []))
    with pytest.raises(PoolError, match="not claimed"):
        store.hand_out(5, 9)
    store.close()


def test_used_material_is_wiped_in_memory(tmp_path: Path) -> None:
    """The masks of a decryption that was made are zero in the chunk that is held; closing wipes all of it."""
    members, seen = committee(tmp_path), []

    def job(pool: Pool) -> None:
        pool.fill(8, 8)
        pool.decrypt(np.zeros((1, 3), np.uint64), "test", "all")
        assert pool.store._cached is not None
        [masks] = pool.store._cached[1]
        assert masks.shape == (1, 1, 8) and not masks[0, 0, :3].any() and masks[0, 0, 3:].all()
        seen.append(masks)

    with_pool(members, job)
    assert len(seen) == 2 and not any(masks.any() for masks in seen)


def test_restored_pools_are_refused_and_doubtful_items_given_up(tmp_path: Path) -> None:
    members = committee(tmp_path)
    with_pool(members, lambda pool: pool.fill(100, 50))
    mine, backup = pools_folder(members, 1), tmp_path / "backup"
    shutil.copytree(mine, backup)
    with_pool(members, lambda pool: pool.take(10, "a"))
    shutil.copytree(mine, tmp_path / "backup-10")
    with_pool(members, lambda pool: pool.take(10, "b"))
    shutil.rmtree(mine)
    shutil.copytree(backup, mine)
    with pytest.raises(PoolError, match=r"party 1 is back at item 0 of its pool, party 0 knows that it had used 10: its files were restored"):
        with_pool(members, lambda pool: pool.take(10, "c"))
    # One claim back is as if it had died before claiming: the items in doubt are not used.
    shutil.rmtree(mine)
    shutil.copytree(tmp_path / "backup-10", mine)
    with_pool(members, lambda pool: pool.take(10, "d"))
    assert [pool_status(pools_folder(members, i) / OPEN.name)[1] for i in (0, 1)] == [30, 30]
    # A copy that runs elsewhere: both sides claim, apart from each other.
    shutil.copytree(tmp_path, tmp_path / "fork", ignore=lambda folder, names: [n for n in names if n == "fork"])
    with_pool(committee(tmp_path / "fork"), lambda pool: pool.take(10, "e"))
    with_pool(members, lambda pool: pool.take(10, "e"))
    shutil.rmtree(mine)
    shutil.copytree(pools_folder(committee(tmp_path / "fork"), 1), mine)
    with pytest.raises(PoolError, match="parties 0 and 1 were used apart from each other"):
        with_pool(members, lambda pool: pool.take(10, "f"))


def test_one_process_at_a_time(tmp_path: Path) -> None:
    kind = {"protocol": "semi2k", "parties": 2, "threshold": 1, "party": 0}
    store = PoolStore(tmp_path / "p", kind, OPEN.sections, 1)
    with pytest.raises(PoolError, match="another process uses this pool: stop it"):
        PoolStore(tmp_path / "p", kind, OPEN.sections, 1)
    with pytest.raises(PoolError, match="another process uses this pool"):
        drop_pool(tmp_path / "p")
    store.start("id")
    store.close()
    with pytest.raises(PoolError, match="was made with another threshold"):
        PoolStore(tmp_path / "p", {**kind, "threshold": 2}, OPEN.sections, 1)
    journal = tmp_path / "p" / "cursor.journal"
    whole = journal.read_bytes()
    journal.write_bytes(whole + b"torn li")  # never synced: nothing depended on it
    PoolStore(tmp_path / "p", kind, OPEN.sections, 1).close()
    assert journal.read_bytes() == whole
    journal.write_bytes(whole[:-9] + b"x" + whole[-8:] + whole)
    with pytest.raises(PoolError, match="what was used is not known: keyquorum pool drop"):
        PoolStore(tmp_path / "p", kind, OPEN.sections, 1)
    drop_pool(tmp_path / "p")
    with pytest.raises(PoolError, match="no pool here"):
        pool_status(tmp_path / "p")
    assert Chunk("a", 1) == Chunk("a", 1)


def dropped_between_open_and_lock(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[PoolStore, PoolStore | PoolError]:
    """One process opens the lock of a pool and is slow to lock it; meanwhile the pool is dropped, and another process makes a new one. The
    store of the other process, and of the slow one, or its error."""
    kind = {"protocol": "semi2k", "parties": 2, "threshold": 1, "party": 0}
    sections = [Section(1, 8)]

    def made() -> PoolStore:
        store, chunk = PoolStore(folder, kind, sections, 1), Chunk("cc" * 16, 8)
        store.start("p" * 32)
        store.write(chunk, Preprocessing([np.arange(8, dtype=np.uint64).reshape(1, 1, 8)]))
        store.add(chunk)
        return store

    made().close()
    others: list[PoolStore] = []

    def slow(descriptor: int, operation: int) -> None:
        monkeypatch.setattr(pool_store.fcntl, "flock", flock)
        drop_pool(folder)
        others.append(made())
        flock(descriptor, operation)

    flock = pool_store.fcntl.flock
    monkeypatch.setattr(pool_store.fcntl, "flock", slow)
    late: PoolStore | PoolError
    try:
        late = PoolStore(folder, kind, sections, 1)
    except PoolError as error:
        late = error
    return others[0], late


def test_dropped_pool_blocked_lock_locks_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other, late = dropped_between_open_and_lock(tmp_path / "p", monkeypatch)
    assert isinstance(late, PoolError) and "another process uses this pool" in str(late)
    other.close()
    drop_pool(tmp_path / "p")
    assert not (tmp_path / "p").exists()
    with pytest.raises(PoolError, match="no pool here"):
        drop_pool(tmp_path / "p")


def test_dropped_pool_ablated_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the comparison of the locked file with the one that is there, two processes hand out the same items."""
    monkeypatch.setattr(pool_store, "_is_file", lambda descriptor, path: True)
    other, late = dropped_between_open_and_lock(tmp_path / "p", monkeypatch)
    assert isinstance(late, PoolStore)
    taken = []
    for store in (other, late):
        store.claim_items(Claim(0, 4, "x"))
        taken.append(store.hand_out(0, 4)[0])
        store.close()
    assert np.array_equal(*taken)


def opened_bytes(tmp_path: Path, spoil: Callable[[np.ndarray], None] | None = None) -> float:
    """p-value of the bytes of many opened masked values, all of the same phase, being uniform (the top one has 7 bits)."""
    members, count = committee(tmp_path), 20000
    opened: list[np.ndarray] = []

    def job(pool: Pool) -> int:
        pool.fill(count)
        material, _ = pool.take(count, "uniformity")
        if spoil is not None:
            spoil(material[0])
        z = phases(pool, np.zeros(count, np.int64), 5)
        sums = pool.session.all_gather((z[0] + material[0][0, 0]).tobytes())
        if pool.group.me == 0:
            opened.append(sum(np.frombuffer(s, np.uint64) for s in sums) & np.uint64(2**63 - 1))
        return 0

    with_pool(members, job)
    digits = opened[0].view(np.uint8).reshape(count, 8)
    counts = [np.bincount(digits[:, i], minlength=256) for i in range(7)] + [np.bincount(digits[:, 7], minlength=128)]
    worst = min(stats.chisquare(c).pvalue for c in counts)
    same = np.unique(opened[0]).size
    return float(worst) if same == count else 0.0


def test_opened_values_are_uniform(tmp_path: Path) -> None:
    """False alarm: 8 tests at 1e-6. The test sees masks that are zero, short, or used twice."""
    assert opened_bytes(tmp_path / "good") > 1e-6

    def short(words: np.ndarray) -> None:
        words &= np.uint64(2**60 - 1)

    def reused(words: np.ndarray) -> None:
        words[:, :, 1] = words[:, :, 0]

    for name, spoil in (("zero", lambda words: words.fill(0)), ("short", short), ("reused", reused)):
        assert opened_bytes(tmp_path / name, spoil) <= 1e-6, name
