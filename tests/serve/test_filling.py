"""A pool is filled between requests, and one that cannot grow ends nothing."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum.model.errors import KeyQuorumError, PoolCannotGrow, ResourceError
from keyquorum.plans.pool_store import PoolStore, pool_status
from keyquorum.plans.pools import Pool, Slices, pools_folder
from keyquorum.schemes.lwe.variant import LweVariant
from keyquorum.serve.client import Receiver, fetch
from keyquorum.serve.filling import SLICE_SECONDS, Pace

from tests.faults.test_served import Served, until_right
from tests.plans.test_pools import OPEN, committee, phases, with_pool


def no_space() -> OSError:
    return OSError(errno.ENOSPC, "No space left on device")


def full_at(monkeypatch: pytest.MonkeyPatch, step: str, party: int) -> None:
    """The disk of one party is full when it comes to a step of :meth:`.Pool.fill`."""
    honest: Callable[..., Any] = getattr(PoolStore, step)

    def full(self: PoolStore, *args: Any) -> Any:
        if self.kind["party"] != party:
            return honest(self, *args)
        raise ResourceError("1.00 MB are free there: free more") if step == "require_room" else no_space()

    monkeypatch.setattr(PoolStore, step, full)


STEPS = ["require_room", "write", "_save"]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("protocol", ["semi", "rep-field"])
def test_all_give_a_chunk_up_that_one_cannot_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, protocol: str) -> None:
    """All parties get the same error, which names the party, and have the items that they had; once there is room they go on from there."""
    members = committee(tmp_path, protocol, 3)
    seen = list[int]()

    def job(pool: Pool) -> int:
        if pool.group.me == 0:
            monkeypatch.undo()
        pool.fill(10, 10)
        pool.session.compare("before the failure", b"")
        if pool.group.me == 0:
            full_at(monkeypatch, step, 1)
        pool.session.compare("the disk is full", b"")
        with pytest.raises(PoolCannotGrow, match=r"^party 1: .*(1\.00 MB are free there|No space left on device)"):
            pool.fill(8, 4)
        assert pool.left == 10
        seen.append(int(pool.take(3, "what there is")[0][0][0, 0, 0]))
        pool.session.compare("served meanwhile", b"")
        if pool.group.me == 0:
            monkeypatch.undo()
        pool.session.compare("there is room", b"")
        return pool.fill(8, 4)

    assert with_pool(members, job) == [15] * 3
    assert len(list((pools_folder(members, 1) / OPEN.name).glob("chunk-*.kqs"))) == 3, "nothing of what was given up is left"

    def again(pool: Pool) -> int:
        pool.agree("look")
        return pool.left

    assert with_pool(members, again) == [15] * 3


@pytest.mark.parametrize("protocol", ["semi", "rep-field", "shamir"])
def test_parties_decrypt_between_slices(tmp_path: Path, protocol: str) -> None:
    """A chunk of three slices: the parties use items of an earlier chunk before each program, and those of the new one afterwards."""
    members, variant = committee(tmp_path, protocol, 3), LweVariant("round_ltz_circuit", OPEN.parameters if protocol != "shamir" else _field())
    messages = np.arange(3) % 2

    def job(pool: Pool) -> list[Any]:
        found = list[Any]()

        def decrypt() -> None:
            words = pool.decrypt(phases(pool, messages), f"number {len(found)}", "all")
            assert words is not None
            found.append(variant.messages(words[0]).tolist())

        pool.fill(30, 30)
        pool.fill(20, 20, slices=Slices(lambda: 8, decrypt))
        assert pool.left == 50 - 3 * len(found)
        while pool.left >= 3:
            decrypt()
        return found

    results = with_pool(members, job, variant)
    assert all(found == [messages.tolist()] * 16 for found in results)
    assert pool_status(pools_folder(members, 0) / variant.name) == (50, 48)


def _field() -> Any:
    from keyquorum.fhe.lwe import lwe_parameters

    return lwe_parameters("lwe53-p16")


def ask(s: Served, seconds: float, least: int) -> list[float]:
    """Sends single requests one after another for some time, and until there are ``least``. Returns how long each took."""
    receiver, times, end = Receiver(s.committee, s.identity), list[float](), time.monotonic() + seconds
    try:
        while time.monotonic() < end or len(times) < least:
            data, messages = s.request(1, len(times))
            start = time.monotonic()
            assert np.array_equal(receiver.decrypt(data).messages, messages)
            times.append(time.monotonic() - start)
    finally:
        receiver.close()
    return times


def serving(tmp_path: Path, keep: int, chunk: int) -> Served:
    s = Served(tmp_path, keep, start=False)
    s.service = type(s.service)("key", "round_mask_open", keep=keep, chunk=chunk, patience=60.0)
    for party in (0, 1):
        s.start(party)
    return s


def stopped(s: Served) -> None:
    for party in list(s.daemons):
        s.stop(party)
    assert not s.failures, s.failures


def test_requests_are_answered_while_a_chunk_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Items that take 4 ms each, as those with MACs, in chunks of 2,048: a chunk takes eight seconds, and no request waits for it."""
    make = LweVariant.make

    def slow(self: LweVariant, group: Any, size: int) -> Any:
        time.sleep(0.004 * size)
        return make(self, group, size)

    s = serving(tmp_path, 64, 0)
    try:
        s.filled(64)
        stopped(s)
        monkeypatch.setattr(LweVariant, "make", slow)
        s.service = type(s.service)("key", "round_mask_open", keep=100_000, chunk=2048, patience=60.0)
        for party in (0, 1):
            s.start(party)
        times = sorted(ask(s, 5.0, 5))
        assert times[len(times) // 2] < 2.0, times
    finally:
        stopped(s)


@pytest.mark.parametrize("step", STEPS)
def test_a_pool_that_cannot_grow_ends_no_party(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """The disk of party 1 is full: both say so, with a gauge, and serve from what there is; then the pool grows again."""
    monkeypatch.setattr("keyquorum.serve.filling.FIRST_WAIT", 0.2)
    monkeypatch.setattr("keyquorum.serve.filling.LONGEST_WAIT", 0.5)
    s = serving(tmp_path, 500, 100)
    said: dict[int, list[str]] = {0: [], 1: []}
    try:
        s.filled(500)
        for party in (0, 1):
            s.daemons[party][0]._filling._log = said[party].append
        full_at(monkeypatch, step, 1)
        assert len(ask(s, 1.0, 3)) >= 3
        growing = [s.daemons[party][0].metrics.growing for party in (0, 1)]
        for party in (0, 1):
            assert any("the pool cannot grow (party 1: " in line and "trying again in" in line for line in said[party]), said
            assert growing[party]._value.get() == 0
        before = s.daemons[0][0]._filling
        assert before.reach(7) == 7, "a request for more is refused at once"
        monkeypatch.undo()
        s.filled(500)
        ask(s, 0.0, 1)
        for party in (0, 1):
            assert said[party][-1] == "the pool grows again" and growing[party]._value.get() == 1
    finally:
        stopped(s)


def test_a_journal_that_takes_no_claim_ends_no_party(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is handed out without a claim on the disk: requests are refused with the reason, and answered again when there is room."""
    s = serving(tmp_path, 200, 0)
    try:
        s.filled(200)

        def full(file: int, data: bytes) -> None:
            raise no_space()

        monkeypatch.setattr("keyquorum.plans.pool_store._write", full)
        data, _ = s.request(2, 1)
        with pytest.raises(KeyQuorumError, match="the journal could not be written"):
            fetch(s.committee, s.identity, data)
        monkeypatch.undo()
        until_right(s, 2, Path(os.devnull))
    finally:
        stopped(s)


COSTS: dict[str, tuple[Callable[[int], float], int, int]] = {
    "items alone": (lambda n: 0.01 * n, 4, 8),
    "many cheap items": (lambda n: 0.02 + 1e-5 * n, 4096, 8192),
    "masks of a least size beside triples": (lambda n: max(0.075, 0.011 * -(-n // 8)), 32, 64),
    "a slow link": (lambda n: 0.75 + 1e-4 * n, 256, 8192),
    "one item takes long": (lambda n: 0.3 * n, 1, 1),
}


@pytest.mark.parametrize("name", COSTS)
def test_the_size_of_slices_follows_their_time(name: str) -> None:
    """As many items as hold a request up for a tenth of a second; where the time is in rounds more, as long as they take hardly longer."""
    cost, least, most = COSTS[name]
    now = [0.0]
    pace = Pace(1 << 14, lambda: now[0])
    for _ in range(60):
        items, seconds = pace.items, cost(pace.items)
        now[0] += seconds
        pace.measured(items, seconds)
    assert least <= pace.items <= most, pace.items
    if least > 1 and cost(1) <= SLICE_SECONDS:
        late = [cost(pace.items)]
        for _ in range(20):
            pace.measured(pace.items, cost(pace.items))
            late.append(cost(pace.items))
        assert sum(seconds > SLICE_SECONDS for seconds in late) <= 2


def test_slices_are_not_larger_than_a_chunk() -> None:
    pace = Pace(24)
    for _ in range(10):
        pace.measured(pace.items, 0.001)
    assert pace.items == 16
    assert Pace(3).items == 2 and Pace(0).items == 1
