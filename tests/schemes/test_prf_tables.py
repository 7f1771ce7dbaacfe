"""One-time tables of AES: what a pool keeps, values by them, what is opened and what receivers see, and what an item that is used twice tells."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum.dsl import ShareVector
from keyquorum.dsl.values.bits import cbits
from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError, PoolError, PoolTooSmall
from keyquorum.parties import run_in_process
from keyquorum.parties.context import PartyContext
from keyquorum.plans.pool_store import pool_status
from keyquorum.plans.pool_variants import pool_group
from keyquorum.plans.pools import Pool, pools_folder
from keyquorum.schemes.prf import tables
from keyquorum.schemes.prf.evaluate import evaluate_by_tables
from keyquorum.schemes.prf.function import combined, held_by, shared_points
from keyquorum.schemes.prf.tables import HOT, MASKS, aes_tables
from keyquorum.sharing.variants import Preprocessing
from numpy.typing import NDArray
from scipy import stats

from tests.programs.test_aes import VECTORS, aes, schedule

PROTOCOLS = pytest.mark.parametrize(("protocol", "parties"), [("ring", 3), ("semi2k", 2)])
FALSE_ALARM = 1e-6
"""Of each test of uniformity."""


def summands(committee: Committee, bits: NDArray[np.uint8]) -> list[NDArray[np.uint64]]:
    """Shares of bits, for every party those that it holds."""
    made = [np.random.default_rng().integers(0, 2, bits.size, np.uint64) for _ in range(committee.summands - 1)]
    made.append(np.bitwise_xor.reduce(made) ^ bits.astype(np.uint64))
    return [np.stack([made[number] for number in held_by(committee, party)]) for party in range(committee.size)]


def opened(committee: Committee, shares: list[Any]) -> Any:
    """The bits of which every party has these shares, [summands held, ..]."""
    known: dict[int, Any] = {}
    for party, mine in enumerate(shares):
        known |= dict(zip(held_by(committee, party), mine, strict=True))
    assert len(known) == committee.summands
    return np.bitwise_xor.reduce(list(known.values()))


def with_pool(committee: Committee, job: Callable[[PartyContext, Pool], Any]) -> list[Any]:
    """Runs a job with the open pool at every party."""

    def one(context: PartyContext) -> Any:
        pool = Pool(context, pool_group(context), aes_tables(committee))
        try:
            return job(context, pool)
        finally:
            pool.close()

    return run_in_process(committee, one, timeout=60)


@PROTOCOLS
def test_items_are_bytes_and_their_one_hot_vectors(tmp_path: Path, protocol: str, parties: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made by several runs of the program, kept in several files, taken in parts across them; each once."""
    monkeypatch.setattr(tables, "AT_ONCE", 2)
    committee = api.init(tmp_path / "committee", parties, protocol)

    def job(context: PartyContext, pool: Pool) -> Any:
        pool.fill(8, 5)
        taken = []
        with pool.claimed(6, "test") as items:
            for count in (1, 3, 2):
                given, bound = items.take(count)
                taken.append(([section.copy() for section in given], bound))
            with pytest.raises(PoolError, match="1 items of 0 that are claimed"):
                items.take(1)
        assert not any(section.any() for section in given)  # wiped
        assert pool.left == 2
        with pytest.raises(PoolTooSmall, match="needs 3 items, has 2"), pool.claimed(3, "too many"):
            pass
        return taken

    results = with_pool(committee, job)
    for part in zip(*results, strict=True):
        assert len({bound for _, bound in part}) == 1
    assert len({bound for _, bound in results[0]}) == 3
    masks, hot = (np.concatenate([opened(committee, [r[i][0][s] for r in results]) for i in range(3)], axis=1) for s in (0, 1))
    assert masks.shape == (MASKS, 6) and hot.shape == (HOT, 6)
    r = (masks.reshape(8, 160, 6).astype(int) << np.arange(8)[:, None, None]).sum(0)
    assert np.array_equal(hot.reshape(256, 160, 6), r[None] == np.arange(256)[:, None, None])
    assert len({column.tobytes() for column in r.T}) == 6
    assert all(pool_status(pools_folder(committee, party) / "prf-aes128-table") == (8, 6) for party in range(parties))


def test_a_block_that_fails_uses_its_items_up(tmp_path: Path) -> None:
    committee = api.init(tmp_path / "committee", 2, "semi2k")

    def job(context: PartyContext, pool: Pool) -> int:
        pool.fill(6)
        with pytest.raises(ZeroDivisionError), pool.claimed(4, "test") as items:
            items.take(1)
            raise ZeroDivisionError
        return pool.left

    assert with_pool(committee, job) == [2, 2]
    assert pool_status(pools_folder(committee, 0) / "prf-aes128-table") == (6, 4)


@PROTOCOLS
def test_the_vectors_of_the_standard(tmp_path: Path, protocol: str, parties: int) -> None:
    """Many sharings of one point. The values are those of FIPS-197, and each share of them, which receivers see, is uniform."""
    committee = api.init(tmp_path / "committee", parties, protocol)
    key, plain, cipher = map(bytes.fromhex, VECTORS[0])
    shares, count = summands(committee, schedule(key).ravel()), 64
    bodies = shared_points(committee, [plain] * count)

    def job(context: PartyContext, pool: Pool) -> Any:
        pool.fill(count)
        held, values = len(held_by(committee, context.party)), []
        points = np.frombuffer(bodies[context.party], np.uint8).reshape(held, count, 16)
        with pool.claimed(count, "test") as items:
            for first, size in ((0, 1), (1, 2), (3, count - 3)):
                part, bound = items.take(size)
                own = ShareVector.from_words(shares[context.party].copy())
                values.append(evaluate_by_tables(context, own, points[:, first : first + size], part, bound))
        return np.concatenate(values, axis=1)

    values = with_pool(committee, job)
    assert combined(committee, [v.tobytes() for v in values], count) == count * cipher
    seen: dict[int, Any] = {}
    for party, value in enumerate(values):
        seen |= dict(zip(held_by(committee, party), value, strict=True))
    for share in seen.values():
        assert stats.chisquare(np.bincount(share.ravel(), minlength=256)).pvalue > FALSE_ALARM


def test_shares_of_values_are_fresh() -> None:
    """A bit of a value at y is a sum of entries (u, v) of the one-hot vector, u and v halves of a byte. Its share has the fresh share of the product (u, v) as
    a summand if f(u, v) + f(u, 15) + f(15, v) + f(15, 15) = 1. That is so for some product, for each sum of the 8 bits and each y: so they are uniform."""
    for encrypts in (True, False):
        table = np.array(aes.s_box_table(encrypts))
        at = table[np.arange(256)[:, None] ^ np.arange(256)[None, :]].reshape(256, 16, 16)  # [y, u, v]
        parity = np.array([bin(x).count("1") & 1 for x in range(256)], dtype=np.uint8)
        for chosen in range(1, 256):
            f = parity[at & chosen]
            products = f[:, :15, :15] ^ f[:, :15, 15:] ^ f[:, 15:, :15] ^ f[:, 15:, 15:]
            assert products.any(axis=(1, 2)).all()


def first_openings(committee: Committee, points: list[bytes], reuse: bool, monkeypatch: pytest.MonkeyPatch) -> list[NDArray[np.int64]]:
    """The 16 bytes that are opened first, in an evaluation of each point. ``reuse``: all take the item of the first."""
    seen: list[NDArray[np.int64]] = []
    plain = cbits.to_regint_by_bit

    def looked_at(bits: Any) -> Any:
        numbers = plain(bits)
        seen.append(np.array(numbers.data))
        return numbers

    shares = summands(committee, schedule(bytes(range(16))).ravel())
    bodies = [shared_points(committee, [point]) for point in points]

    def job(context: PartyContext, pool: Pool) -> list[NDArray[np.int64]]:
        pool.fill(len(points))
        mine, kept = [], None
        for number, body in enumerate(bodies):
            point = np.frombuffer(body[context.party], np.uint8).reshape(-1, 1, 16)
            with pool.claimed(1, f"point {number}") as items:
                given, bound = items.take(1)
                kept = [section.copy() for section in given] if kept is None or not reuse else kept
                before = len(seen)
                tables_of_point = Preprocessing(section.copy() for section in kept)  # which are wiped
                evaluate_by_tables(context, ShareVector.from_words(shares[context.party].copy()), point, tables_of_point, bound)
                context.session.compare("evaluated", b"")
                mine.append(seen[before])
        return mine

    with monkeypatch.context() as patched:
        patched.setattr(cbits, "to_regint_by_bit", looked_at)
        return [(y.reshape(8, 16) << np.arange(8)[:, None]).sum(0) for y in with_pool(committee, job)[0]]


def test_an_item_that_is_used_twice_tells_the_difference_of_the_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The attack that the claims of the pool exclude: both openings have the same mask. With an item for each point it gets a number that says nothing."""
    committee = api.init(tmp_path / "committee", 2, "semi2k")
    points = [bytes(range(16)), bytes(range(100, 116))]
    difference = np.frombuffer(points[0], np.uint8) ^ np.frombuffer(points[1], np.uint8)
    for reuse in (True, False):
        y = first_openings(committee, points, reuse, monkeypatch)
        assert np.array_equal(y[0] ^ y[1], difference) == reuse


def test_what_is_refused(tmp_path: Path) -> None:
    """Tables with MACs, and blocks without an item, whose state would be opened."""
    with pytest.raises(ParameterError, match="one-time tables with MACs are not made"):
        aes_tables(api.in_process_committee(2, "spdz2k"))
    committee = api.init(tmp_path / "committee", 2, "semi2k")

    def job(context: PartyContext, pool: Pool) -> None:
        pool.fill(2)
        key, points = ShareVector.from_words(np.zeros((1, 1408), np.uint64)), np.zeros((1, 3, 16), np.uint8)
        with pool.claimed(2, "test") as items, pytest.raises(ParameterError, match="2 items for 3 blocks"):
            evaluate_by_tables(context, key, points, items.take(2)[0], b"")

    with_pool(committee, job)
