"""A served committee whose shares change: daemons lend their locks, refuse requests meanwhile, and serve with the shares of the new epoch. What a cut-off job left unfinished, live parties end by themselves."""

from __future__ import annotations

import errno
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from keyquorum import api
from keyquorum._engine import EngineError
from keyquorum.model.committee import Committee
from keyquorum.model.epoch import Stage
from keyquorum.model.errors import CommitteeError, KeyQuorumError, MovedError
from keyquorum.model.locks import FileLock
from keyquorum.parties import PartyContext, queue, run_in_process
from keyquorum.parties.epochs import Change, read_epoch
from keyquorum.parties.jobs import run_job
from keyquorum.parties.queue import SERVES, hold, unserved
from keyquorum.plans.epochs import hold as hold_module
from keyquorum.plans.epochs import refresh
from keyquorum.plans.pool_store import pool_status
from keyquorum.plans.pools import Pool, pools_folder
from keyquorum.schemes.lwe.ciphertexts import LweDecrypted
from keyquorum.serve import daemon
from keyquorum.serve.client import RefusedUnconnected, fetch, make_receiver
from keyquorum.serve.daemon import Daemon
from keyquorum.serve.kinds import Service
from keyquorum.serve.lending import Lending
from keyquorum.serve.live import presence
from keyquorum.serve.live.daemon import LiveDaemon
from keyquorum.serve.live.keeper import Keeper
from keyquorum.serve.live.receiver import LiveReceiver
from keyquorum.serve.plan import Plan

from tests.plans.epochs.reshared import reshared
from tests.plans.test_refresh import with_keys

SERVICE = Service("key", keep=64, chunk=64, patience=20.0)
MESSAGES = [1, 0, 3]


@contextmanager
def daemons(committee: Committee, make: Callable[[int], Daemon]) -> Iterator[list[BaseException]]:
    """All parties, as threads. Errors that ended one."""
    failures, made = list[BaseException](), [make(party) for party in range(committee.size)]

    def run(one: Daemon) -> None:
        try:
            one.run()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(one,), daemon=True) for one in made]
    for each in threads:
        each.start()
    try:
        yield failures
    finally:
        for one in made:
            one.stop()
        for each in threads:
            each.join(30)
            assert not each.is_alive()


def refreshed(committee: Committee, hold_pools: bool = False) -> None:
    """A refresh with the locks of a job, as processes have them."""
    with hold(committee, range(committee.size), {"kind": "refresh_shares"}):
        run_in_process(committee, lambda context: run_job(context, api.refresh_shares_job(committee, hold=hold_pools)), timeout=60)


def until(done: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        time.sleep(0.05)


def right(result: object) -> bool:
    assert isinstance(result, LweDecrypted)
    return bool(np.array_equal(result.messages, MESSAGES))


@pytest.fixture
def three(tmp_path: Path) -> tuple[Committee, Path, bytes]:
    """A committee of three, a receiver, and a ciphertext."""
    committee = with_keys(tmp_path, "rep-field", 3, ["lwe53-p16"])
    api.encrypt(committee, "key", MESSAGES, tmp_path / "x.lwe")
    return committee, make_receiver(committee, "alice")[0], (tmp_path / "x.lwe").read_bytes()


def test_the_epoch_changes_while_all_serve(three: tuple[Committee, Path, bytes]) -> None:
    """Daemons serve before and after, under one process, and name the epoch in their audit logs. While the lock is lent requests are refused with the reason."""
    committee, alice, data = three
    with daemons(committee, lambda party: Daemon(committee, party, SERVICE)) as failures:
        assert right(fetch(committee, alice, data, wait=30))
        with unserved(committee, range(3), "a test"), pytest.raises(RefusedUnconnected, match=r"party . changes its shares: send the request again"):
            fetch(committee, alice, data)
        refreshed(committee)
        assert right(fetch(committee, alice, data, wait=30))
        api.epoch_commit(committee)  # an order needs no stop either
        assert right(fetch(committee, alice, data, wait=30))
    assert not failures
    name = read_epoch(committee.party_folder(0)).name
    lines = [json.loads(line) for line in (committee.party_folder(0) / "audit.jsonl").read_text().splitlines()]
    answered = [line for line in lines if line.get("result") == "answered"]
    assert [line.get("epoch", "") for line in answered] == ["", name, name]
    assert {line["type"] for line in lines if line.get("result") == "refused"} <= {"EpochChanging", "NotConnected"}


def test_a_daemon_serves_until_the_vote(three: tuple[Committee, Path, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """New shares are made while requests are answered, and nobody votes before all daemons have lent their locks."""
    committee, alice, data = three
    seen, check, vote = list[bool](), refresh.check_stored, Change.vote

    def checked(*given: object) -> None:
        check(*given)  # type: ignore[arg-type]
        if not seen:
            seen.append(right(fetch(committee, alice, data, wait=30)))

    def voted(change: Change) -> None:
        seen.append(all((committee.party_folder(party) / "change.lock").exists() for party in range(3)))
        vote(change)

    monkeypatch.setattr(refresh, "check_stored", checked)
    monkeypatch.setattr(Change, "vote", voted)
    with daemons(committee, lambda party: Daemon(committee, party, SERVICE)) as failures:
        assert right(fetch(committee, alice, data, wait=30))
        refreshed(committee)
        assert right(fetch(committee, alice, data, wait=30))
    assert len(seen) >= 4 and all(seen) and not failures
    assert not list(committee.folder.glob("*/change.lock"))


@pytest.mark.parametrize("ablated", [False, True], ids=["wiped", "ablated"])
def test_a_daemon_has_no_old_shares_when_they_are_erased(
    three: tuple[Committee, Path, bytes], monkeypatch: pytest.MonkeyPatch, ablated: bool
) -> None:
    """They are wiped before the lock is lent, whatever becomes of it: on a full disk a daemon may not get it back for long."""
    committee, alice, data = three
    made, memory, seen, full = list[Daemon](), list[np.ndarray](), list[bool](), threading.Event()
    erase, take = Change.erase, FileLock.take

    def served(party: int) -> Daemon:
        made.append(Daemon(committee, party, SERVICE))
        return made[-1]

    def erased(change: Change, *given: object) -> int:
        full.set()
        seen.extend(not shares.any() for shares in memory)
        return erase(change)

    def taken(lock: FileLock) -> bool:
        if full.is_set() and lock._what.startswith(SERVES):
            raise OSError(errno.ENOSPC, "No space left on device")
        return take(lock)

    monkeypatch.setattr(Change, "erase", erased)
    monkeypatch.setattr(FileLock, "take", taken)
    if ablated:
        lend = Lending.lend
        monkeypatch.setattr(Lending, "lend", lambda lending, stop, wipe, meanwhile: lend(lending, stop, lambda: None, meanwhile))
    with daemons(committee, served) as failures:
        assert right(fetch(committee, alice, data, wait=30))
        memory += [shares for one in made for vector in one.served_key._shares for shares in vector.sections]  # type: ignore[attr-defined]
        assert len(memory) == 3 and all(shares.any() for shares in memory)
        refreshed(committee)
        time.sleep(1.0)
        assert all(one.lending.lent for one in made)
        seen.extend(not shares.any() for shares in memory)
        assert len(seen) == 12 and set(seen) == {not ablated}
        full.clear()
        assert right(fetch(committee, alice, data, wait=30))
    assert not failures


class Seldom(Daemon):
    """Party 0, frozen or corrupt: it sends a plan just often enough to be taken for live, and has no job that changes shares."""

    slow = True

    def _propose(self, pool: Pool | None, filling: bool) -> Plan:
        if self.slow:
            self._stop.wait(8.0)
        return super()._propose(pool, filling)


@pytest.mark.parametrize("ablated", [False, True], ids=["looks", "ablated"])
def test_a_party_that_plans_seldom_holds_no_change_up(three: tuple[Committee, Path, bytes], monkeypatch: pytest.MonkeyPatch, ablated: bool) -> None:
    """The others lend their locks while they wait for its plan; without that they lend them too late."""
    committee, alice, data = three
    monkeypatch.setattr(queue, "LEND_SECONDS", 5.0)
    monkeypatch.setattr(Seldom, "slow", False)
    if ablated:
        monkeypatch.setattr(daemon, "LOOK_SECONDS", 60.0)
    with daemons(committee, lambda party: (Daemon if party else Seldom)(committee, party, SERVICE)) as failures:
        assert right(fetch(committee, alice, data, wait=30))
        Seldom.slow = True
        time.sleep(2.0)
        if ablated:
            with pytest.raises(CommitteeError, match="serves key key"), unserved(committee, [1, 2], "a test"):
                pass
            return
        for _ in range(2):
            with unserved(committee, [1, 2], "a test"):
                pass
        Seldom.slow = False
        assert right(fetch(committee, alice, data, wait=40))
    assert not failures


def test_pools_are_full_when_a_daemon_serves_again(three: tuple[Committee, Path, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests are answered while pools of the new epoch are filled, and after the change from these, also without ``keep``."""
    committee, alice, data = three
    pool = "lwe53-p16-round_ltz_circuit"
    fill = api.pool_fill_job(committee, "lwe53-p16", "round_ltz_circuit", 20)
    run_in_process(committee, lambda context: run_job(context, fill), timeout=60)
    seen, agreed = list[bool](), hold_module._agreed

    def asked(*given: object) -> object:
        if not seen:
            seen.append(right(fetch(committee, alice, data, wait=30)))
        return agreed(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(hold_module, "_agreed", asked)
    with daemons(committee, lambda party: Daemon(committee, party, Service("key", patience=20.0))) as failures:
        assert right(fetch(committee, alice, data, wait=30))
        refreshed(committee, hold_pools=True)
        assert right(fetch(committee, alice, data, wait=30))
        made, used = pool_status(pools_folder(committee, 0) / pool)
        assert 11 <= made <= 17 and 3 <= used <= 6
    assert seen and all(seen) and not failures


def test_a_daemon_that_did_not_load_its_new_shares_ends(three: tuple[Committee, Path, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """Ablated: without new shares after it lent its lock, the check of the epoch ends it before it connects."""
    committee, alice, data = three

    def kept(self: Daemon) -> None:
        self.lending.stale = False

    monkeypatch.setattr(Daemon, "_reopen", kept)
    with daemons(committee, lambda party: Daemon(committee, party, SERVICE)) as failures:
        assert right(fetch(committee, alice, data, wait=30))
        refreshed(committee)
        until(lambda: len(failures) == 3)
    assert all("the loaded shares are of the epoch of key generation" in str(failure) for failure in failures)


def test_a_member_that_leaves_says_so(three: tuple[Committee, Path, bytes]) -> None:
    """Old members need not be stopped for a resharing. Their daemons end with the name of the new committee, and answer ``moved`` when they are made again."""
    old, alice, data = three
    new = api.init_after(old.folder.parent / "new", old)
    with daemons(old, lambda party: Daemon(old, party, SERVICE)) as failures:
        assert right(fetch(old, alice, data, wait=30))
        with hold(old, range(3), {"kind": "reshare"}):
            reshared(old, new)
        until(lambda: len(failures) == 3)
    assert all(isinstance(failure, MovedError) and "the committee new holds this key" in str(failure) for failure in failures)


# -- live parties end what was cut off ---------------------------------------------------------------------------------------------


class CutOff(BaseException):
    """The process of a party died."""


def _cut(committee: Committee, monkeypatch: pytest.MonkeyPatch, victims: set[int], place: str) -> None:
    """A refresh in which these parties die at this place. A party that only dies leaves nothing behind but its files."""
    original = getattr(refresh, place)

    def cut(context: PartyContext, change: Change) -> None:
        if context.party in victims:
            raise CutOff
        original(context, change)

    monkeypatch.setattr(refresh, place, cut)
    with hold(committee, range(committee.size), {"kind": "refresh_shares"}), pytest.raises((CutOff, KeyQuorumError, EngineError)):
        run_in_process(committee, lambda context: run_job(context, api.refresh_shares_job(committee)), timeout=60)
    monkeypatch.setattr(refresh, place, original)


def _stages(committee: Committee) -> list[Stage]:
    found = [Change.last(committee, party) for party in range(committee.size)]
    return [change.standing.stage for change in found if change is not None]


@pytest.mark.parametrize("asks", [True, False], ids=["ends it", "ablated"])
def test_live_parties_end_a_change_after_the_votes(three: tuple[Committee, Path, bytes], monkeypatch: pytest.MonkeyPatch, asks: bool) -> None:
    """One died after its vote. The others have not heard it, and all commit and erase while they serve; without asking each other they stay where they are."""
    committee, alice, data = three
    _cut(committee, monkeypatch, {1}, "finish")
    assert Stage.VOTED in _stages(committee) and Stage.ERASED not in _stages(committee)
    if not asks:
        monkeypatch.setattr(Keeper, "name", lambda keeper: "")
    with daemons(committee, lambda party: LiveDaemon(committee, party, SERVICE)) as failures:
        if not asks:
            time.sleep(5.0)
            assert Stage.ERASED not in _stages(committee)
            return
        until(lambda: _stages(committee) == [Stage.ERASED] * 3)
        receiver = LiveReceiver(committee, alice, wait=30)
        assert right(receiver.decrypt(data))
        receiver.close()
    assert not failures and len({read_epoch(committee.party_folder(party)).name for party in range(3)}) == 1


def test_live_parties_give_a_change_up_before_the_votes(three: tuple[Committee, Path, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """One died before its vote, and refuses when it serves again. The others drop what they voted for, and a refresh succeeds afterwards."""
    committee, alice, data = three
    vote, refuse = Change.vote, Change.refuse

    def voted(change: Change) -> None:
        if change.me == committee.parties[2].fingerprint:
            raise CutOff
        vote(change)

    monkeypatch.setattr(Change, "vote", voted)
    with hold(committee, range(3), {"kind": "refresh_shares"}), pytest.raises((CutOff, KeyQuorumError, EngineError)):
        run_in_process(committee, lambda context: run_job(context, api.refresh_shares_job(committee)), timeout=60)
    monkeypatch.setattr(Change, "vote", vote)
    assert Change.refuse is refuse and sorted(_stages(committee)) == [Stage.WAITING, Stage.VOTED, Stage.VOTED]
    with daemons(committee, lambda party: LiveDaemon(committee, party, SERVICE)) as failures:
        until(lambda: sorted(_stages(committee)) == [Stage.GIVEN_UP, Stage.GIVEN_UP, Stage.REFUSED])
        refreshed(committee)
        until(lambda: _stages(committee) == [Stage.ERASED] * 3)
        receiver = LiveReceiver(committee, alice, wait=30)
        assert right(receiver.decrypt(data))
        receiver.close()
    assert not failures


def test_who_does_not_know_the_name_is_shown_nothing(three: tuple[Committee, Path, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """Statements are shown for the name of a change alone, which members and receivers have; a wrong one is no error. What a corrupt party shows counts for nothing."""
    committee, _, _ = three
    _cut(committee, monkeypatch, {1}, "finish")
    change = Change.last(committee, 0)
    assert change is not None
    lines = list[str]()
    keepers = [Keeper(committee, party, lines.append) for party in range(3)]
    for keeper in keepers:
        keeper._look()
        assert keeper.name() == change.record.name
        assert keeper.shown("") == keeper.shown("ab" * 16) == b"" != keeper.shown(change.record.name)
    before = _stages(committee)
    for shown in (b"{", keepers[0].shown(change.record.name).replace(b"voted", b"refused"), b'{"epoch": "ab", "statements": []}'):
        keepers[1].hear(0, change.record.name, shown)
        keepers[1]._next = 0.0
        keepers[1].step(read_epoch(committee.party_folder(1)).name)
    assert _stages(committee) == before and lines and all(line.startswith("a change of the epoch: party 0") for line in lines)
    with hold(committee, [1], {"kind": "refresh_shares"}):  # a job of the party may be the change itself
        keepers[1].hear(0, change.record.name, keepers[0].shown(change.record.name))
        keepers[1]._next = 0.0
        assert not keepers[1].step(read_epoch(committee.party_folder(1)).name) and _stages(committee) == before
    assert len(json.dumps({presence.CHANGE: change.record.name})) < presence.QUESTION_LIMIT


def test_what_a_party_says_again_costs_nothing(three: tuple[Committee, Path, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """A party shows the same four times a second, and may show junk: signatures of it are verified once, and those of other bytes again."""
    committee, _, _ = three
    _cut(committee, monkeypatch, {1}, "finish")
    change, keeper, heard, hear = Change.last(committee, 0), Keeper(committee, 1, lambda line: None), list[bytes](), Change.hear
    assert change is not None

    def counted(change: Change, data: bytes, where: str) -> None:
        heard.append(data)
        hear(change, data, where)

    monkeypatch.setattr(Change, "hear", counted)
    junk = change.show().replace(b"voted", b"thawed")
    for shown in (junk, junk, junk + b" ", junk):
        keeper.hear(0, change.record.name, shown)
        keeper._next = 0.0
        keeper.step(read_epoch(committee.party_folder(1)).name)
    assert heard == [junk, junk + b" ", junk]
