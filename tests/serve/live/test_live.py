"""A served committee of which any t + 1 live parties decrypt: answers while parties come and go, refusals, and a receiver that never adds up answers of two views."""

from __future__ import annotations

import errno
import json
import re
import resource
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum.cli import app
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CommitteeError, ParameterError, PartyError, PoolUnwritable
from keyquorum.parties import run_in_process
from keyquorum.parties.jobs import run_job
from keyquorum.plans.pool_store import PoolStore
from keyquorum.serve.client import Refused, RefusedUnconnected, make_receiver
from keyquorum.serve.kinds import Service
from keyquorum.serve.live import daemon, presence, receiver
from keyquorum.serve.live.choice import State, Statement, View
from keyquorum.serve.live.daemon import LiveDaemon
from keyquorum.serve.live.options import LiveOwn, check_live
from keyquorum.serve.live.presence import Answering, Presence
from keyquorum.serve.live.receiver import Again, LiveReceiver
from keyquorum.serve.wire import client_context, connect, receive_message, send_message
from typer.testing import CliRunner

from tests.fhe.dealer import tiny
from tests.schemes.test_prf import committee_with_key

VALUES = [3, -7, 11]


@dataclass
class Live:
    """Daemons of the parties of a committee, as threads."""

    committee: Committee
    service: Service
    logs: list[str] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)
    running: dict[int, tuple[LiveDaemon, threading.Thread]] = field(default_factory=dict)

    def start(self, *parties: int, own: LiveOwn = daemon.ON_THIS_HOST) -> None:
        for party in parties:
            one = LiveDaemon(self.committee, party, self.service, log=self.logs.append, live=own)
            thread = threading.Thread(target=self._run, args=(one,), daemon=True)
            thread.start()
            self.running[party] = one, thread

    def _run(self, one: LiveDaemon) -> None:
        try:
            one.run()
        except BaseException as error:
            self.failures.append(error)

    def stop(self, *parties: int) -> None:
        for party in parties:
            self.running[party][0].stop()
        for party in parties:
            _, thread = self.running.pop(party)
            thread.join(30)
            assert not thread.is_alive()


@pytest.fixture()
def live(tmp_path: Path) -> Iterator[Live]:
    """Three parties of `rep-field` with a small key of BFV; none is started."""
    committee = api.init(tmp_path / "committee", 3, "rep-field", base_ot="curve25519")
    run_in_process(committee, lambda context: run_job(context, api.keygen_job("key", tiny("bfv", 2), relin=False)), timeout=60)
    make_receiver(committee, "alice")
    api.encrypt(committee, "key", VALUES, tmp_path / "x.ct")
    served = Live(committee, Service("key", keep=512, chunk=256, patience=20.0))
    yield served
    served.stop(*served.running)
    assert not served.failures, served.failures


def call(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def asked(live: Live, wait: float = 60.0) -> list[int]:
    """By the command line."""
    folder, output = live.committee.folder, live.committee.folder.parent / "out"
    output.unlink(missing_ok=True)
    identity = folder / "receiver-alice.pem"
    call("decrypt", folder, "key", folder.parent / "x.ct", "--committee", "--parties", "any", "--identity", identity, "-o", output, "--wait", wait)
    return np.asarray(api.decode(live.committee, "key", output))[:3].tolist()


def said_elsewhere(party: int, folder: Path) -> bool:
    """Whether a party refused a request since others serve, by its audit log."""
    lines = map(json.loads, (folder / f"party-{party}" / "audit.jsonl").read_text().splitlines())
    text = r"parties \d, \d serve now, in view \d+: ask all parties, and take what these answer"
    return any(line.get("parties") == "any" and re.fullmatch(text, line.get("error", "")) for line in lines)


def test_parties_come_and_go(live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pair serves at some time; with one party alone requests are refused with the reason, and later answered; a party that is not needed says who serves."""
    live.start(0, 1, 2)
    assert asked(live) == VALUES
    alice = live.committee.folder / "receiver-alice.pem"
    with pytest.raises(Refused, match=r"here serve any parties that are live, ask with --parties any|parties 0, 1 serve now"):
        call("decrypt", live.committee.folder, "key", live.committee.folder.parent / "x.ct", "--committee", "--identity", alice, "-o", tmp_path / "o")
    # A party that is reached late may not be asked before the others have answered.
    assert until(lambda: asked(live) == VALUES and any(said_elsewhere(party, live.committee.folder) for party in range(3)), 40)
    live.stop(0)
    assert asked(live) == VALUES
    live.start(0)
    live.stop(1)
    assert asked(live) == VALUES
    assert {line.partition(": ")[2].partition(" serve")[0] for line in live.logs if line.startswith("view ")} == {
        "parties 0, 1",
        "parties 1, 2",
        "parties 0, 2",
    }
    live.stop(2)
    monkeypatch.setattr(receiver, "LIVE_SECONDS", 1.5)
    begin = time.monotonic()
    with pytest.raises(RefusedUnconnected, match=r"no 2 parties answered within 1\.5 s; the last try: .*party 1 does not serve on this host"):
        asked(live, 0)
    assert time.monotonic() - begin < 60
    live.start(2)
    assert asked(live) == VALUES
    pools = {path.name.rpartition(".")[2] for party in range(3) for path in (live.committee.party_folder(party) / "pools").iterdir()}
    assert pools == {"0-1", "1-2", "0-2"}


def views(live: Live) -> list[str]:
    """Who served, one entry for each view and member."""
    return [line.partition(": ")[2].partition(" serve")[0] for line in live.logs if line.startswith("view ")]


def test_a_member_that_cannot_write_its_audit_log(live: Live) -> None:
    """Others serve, and the party serves again once it can, without a request."""
    live.start(0, 1, 2)
    assert asked(live) == VALUES and set(views(live)) == {"parties 0, 1"}
    log = live.committee.party_folder(0) / "audit.jsonl"
    log.rename(log.with_name("old.jsonl"))
    log.mkdir(mode=0o700)
    assert asked(live) == VALUES and views(live)[-1] == "parties 1, 2"
    assert live.running[0][0].statement() == Statement(0, "0" * 64) and live.running[0][0]._not_ready() == "party 0 cannot write its audit log"
    log.rmdir()
    assert until(lambda: live.running[0][0].audit.writable)
    live.stop(1)
    assert asked(live) == VALUES and views(live)[-1] == "parties 0, 2"


@pytest.mark.parametrize("method", ["claim_items", "write"])
def test_a_member_that_cannot_write_its_pool(live: Live, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    """No claim of items, or no new items. Its session comes up each time, so that shows nothing: the party says that it does not serve, and others do."""
    right = getattr(PoolStore, method)

    def full(store: PoolStore, *rest: Any) -> None:
        if "party-0" in store.folder.parts:
            if method == "write":
                raise OSError(errno.ENOSPC, "No space left on device")
            raise PoolUnwritable("the journal cannot be written")
        right(store, *rest)

    monkeypatch.setattr(PoolStore, method, full)
    live.start(0, 1, 2)
    assert asked(live) == VALUES and views(live)[-1] == "parties 1, 2"
    assert any(line.startswith("this party serves no more for 10 s, others may: ") for line in live.logs)
    assert live.running[0][0].statement() == Statement(0, "0" * 64)


@pytest.mark.parametrize("ablated", [False, True], ids=["taken over", "ablated"])
def test_a_party_that_hears_nobody(live: Live, monkeypatch: pytest.MonkeyPatch, ablated: bool) -> None:
    """The lowest party has wrong addresses of the others, and they hear that it is live. It proposes nothing, and the next one does in its place."""
    monkeypatch.setattr(daemon, "TAKEOVER_SECONDS", 3600.0 if ablated else 3.0)
    live.start(0, own=LiveOwn(places=[("127.0.0.1", 1)] * 3))
    live.start(1, 2)
    assert until(lambda: {0, 2} <= set(live.running[1][0]._presence.live()))
    assert until(lambda: "parties 1, 2" in views(live), 10) != ablated
    assert ablated or asked(live) == VALUES


@pytest.mark.parametrize("ablated", [False, True], ids=["says so", "ablated"])
def test_a_member_that_hangs(live: Live, monkeypatch: pytest.MonkeyPatch, ablated: bool) -> None:
    """Its disk does not answer: its main thread stands still, and another thread goes on to say that it serves. Others serve once it says that it does not; without that they wait for ever."""
    monkeypatch.setattr(daemon, "STALLED_SECONDS", 3600.0 if ablated else 3.0)
    goes_on, right = threading.Event(), LiveDaemon._cycle

    def hung(self: LiveDaemon, *rest: Any, **named: Any) -> None:
        if self._me == 0 and stuck.is_set():
            goes_on.wait(60)
        right(self, *rest, **named)

    stuck = threading.Event()
    monkeypatch.setattr(LiveDaemon, "_cycle", hung)
    live.start(0, 1)
    assert asked(live) == VALUES and set(views(live)) == {"parties 0, 1"}
    live.start(2)
    assert until(lambda: 2 in live.running[1][0]._presence.live())
    stuck.set()
    try:
        assert until(lambda: "parties 1, 2" in views(live), 25) != ablated
        assert live.running[0][0].statement().state == (State.SERVING if ablated else State.IDLE)
        assert ablated or asked(live) == VALUES
    finally:
        stuck.clear()
        goes_on.set()


def test_a_view_that_breaks_at_once_came_to_nothing(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proposed view counts once it has answered a batch, or served for some time: others are proposed after one that only came up."""
    one, view = LiveDaemon(live.committee, 0, live.service), View(5, (0, 1))
    serving = {1: Statement(1, "ab" * 32, State.SERVING, view)}
    try:
        one._failed, one._proposed = 2, view
        one._judge(serving)
        assert (one._failed, one._proposed) == (2, view)  # it is not taken back while its members serve
        one._judge({})
        assert (one._failed, one._proposed) == (3, None)
        one._proposed = view
        monkeypatch.setattr(daemon, "PROVED_SECONDS", -1.0)
        one._judge(serving)
        assert one._failed == 0 and one._came_up
        one._failed, one._came_up, one._view = 4, False, view
        assert one._answer(b"x").head["view"] == 5 and one._failed == 0
    finally:
        one.stop()
        one.run()


def test_a_lost_pool_is_lost_to_its_members_alone(live: Live) -> None:
    """Without `--keep` no pool is made anew. Parties whose pool is lost serve with others then, and none of them ends."""
    live.start(0, 1)
    assert asked(live) == VALUES
    live.stop(0)
    live.start(2)
    assert asked(live) == VALUES
    assert until(lambda: (live.running[1][0].requests.left or 0) >= 512)
    live.stop(1, 2)
    (pool,) = (live.committee.party_folder(0) / "pools").glob("*.0-1")
    (pool / "cursor.journal").unlink()
    live.service = replace(live.service, keep=0, chunk=0)
    live.start(0, 1, 2)
    assert asked(live) == VALUES and views(live)[-1] == "parties 1, 2"
    assert any("parties 0, 1 cannot serve together, others may: " in line and "keyquorum pool drop, and fill again" in line for line in live.logs)
    assert all(thread.is_alive() for _, thread in live.running.values())


def answers(live: Live, said: dict[int, tuple[int, tuple[int, ...], str] | Exception]) -> Any:
    """What a receiver of three parties, of which two serve, makes of what parties say: a view, members and an epoch, or an error."""
    asking = LiveReceiver(live.committee, live.committee.folder / "receiver-alice.pem", [("127.0.0.1", 1)] * 3)

    def one(self: LiveReceiver, party: int, tried: Any) -> None:
        mine = said.get(party)
        if mine is not None:
            tried.said.put(receiver._Said(party, error=mine) if isinstance(mine, Exception) else receiver._Said(party, mine, bytearray([party])))  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LiveReceiver, "_ask_one", one)
        patch.setattr(receiver, "TRY_SECONDS", 0.2)
        return asking._try(b"", {})


def test_answers_of_two_views_are_never_added(live: Live) -> None:
    """Same members in another view, other members, another epoch; and a party that is silent. What belongs together is taken beside what does not."""
    pair, lost = (0, 1), PartyError("party 2: gone")
    assert answers(live, {0: (1, pair, ""), 1: (1, pair, ""), 2: lost}) == (pair, [bytearray([0]), bytearray([1])])
    assert answers(live, {0: (4, pair, ""), 1: (4, pair, ""), 2: (3, (1, 2), "")})[0] == pair
    for other in ((2, pair, ""), (1, (1, 2), ""), (1, pair, "ab" * 16)):
        with pytest.raises(Again, match=r"answers of different parties do not belong together|party 2: gone"):
            answers(live, {0: (1, pair, ""), 1: other, 2: lost})
    with pytest.raises(Again, match="did not come in time"):
        answers(live, {0: (1, pair, ""), 2: lost})
    with pytest.raises(Refused, match="party 1: above the limit"):
        answers(live, {0: lost, 1: Refused("party 1: above the limit"), 2: lost})


def test_shares_of_two_sharings_added_up_are_no_messages(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each view's answers give the message. With the names of views left out of what is compared, a receiver adds up one of each, and has another message."""
    rng, message = np.random.default_rng(1), np.array([1, 0, 1, 1], np.uint64)
    sharings = {view: [share := rng.integers(0, 1 << 62, 4, dtype=np.uint64), message - share] for view in (1, 2)}

    def total(views: tuple[int, int], named: bool) -> np.ndarray:
        def one(self: LiveReceiver, party: int, tried: Any) -> None:
            if party == 2:
                tried.said.put(receiver._Said(2, error=PartyError("party 2: gone")))
                return
            view, pair = views[party], (0, 1)
            tried.said.put(receiver._Said(party, (view if named else 0, pair, ""), bytearray(sharings[view][party].tobytes())))

        monkeypatch.setattr(LiveReceiver, "_ask_one", one)
        monkeypatch.setattr(receiver, "TRY_SECONDS", 0.2)
        asking = LiveReceiver(live.committee, live.committee.folder / "receiver-alice.pem", [("127.0.0.1", 1)] * 3)
        _, bodies = asking._try(b"", {})
        return np.add.reduce([np.frombuffer(body, "<u8") for body in bodies])

    assert all(np.array_equal(total((view, view), True), message) for view in (1, 2))
    with pytest.raises(Again):
        total((1, 2), True)
    assert not np.array_equal(total((1, 2), False), message)


def test_tries_become_rarer(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Members that are slow serve tries that were given up, and each takes items."""
    tries, pauses = [0] * 6, list[float]()

    def one(self: LiveReceiver, body: bytes, head: object) -> tuple[tuple[int, ...], list[bytearray]]:
        if not tries:
            return (0, 1), []
        raise Again(f"try {tries.pop()}")

    monkeypatch.setattr(LiveReceiver, "_try", one)
    asking = LiveReceiver(live.committee, live.committee.folder / "receiver-alice.pem")
    monkeypatch.setattr(receiver.time, "sleep", pauses.append)
    assert asking.ask_any(b"", {}) == ((0, 1), [])
    assert pauses == [0.2, 0.4, 0.8, 1.6, 2.0, 2.0]


@pytest.mark.parametrize(
    ("head", "text"),
    [
        ({}, "answers without a view"), ({"view": 1, "parties": [0, 1], "epoch": 5}, "answers without a view"), ({"view": True, "parties": [0, 1], "epoch": ""}, "without a view"),
        ({"view": 1, "parties": [0, 1, 2], "epoch": ""}, "without a view"), ({"view": 1, "parties": [1, 2], "epoch": ""}, "in a view of other parties"),
        ({"view": 1, "parties": [0, 0], "epoch": ""}, "in a view of other parties"), ({"view": 1, "parties": [1, 0], "epoch": ""}, "in a view of other parties"),
    ],
)  # fmt: skip
def test_other_answers_are_refused(live: Live, head: dict[str, object], text: str) -> None:
    asking = LiveReceiver(live.committee, live.committee.folder / "receiver-alice.pem")
    with pytest.raises(PartyError, match=text):
        asking._judged(0, {"status": "ok", **head}, bytearray())


def test_refused(live: Live, tmp_path: Path) -> None:
    for protocol, size in (("semi", 3), ("mal-rep-field", 3), ("mal-shamir", 3), ("mascot", 2)):
        with pytest.raises(ParameterError, match=rf"{protocol}: --parties any is for committees whose parties decrypt without the others"):
            check_live(api.init(tmp_path / protocol, size, protocol))
    with pytest.raises(ParameterError, match="2 addresses for 3 parties: name each once with --live-at"):
        LiveDaemon(live.committee, 0, live.service, live=LiveOwn(places=[("h", 1)] * 2))
    with pytest.raises(CommitteeError, match="2 addresses for 3 parties"):
        LiveReceiver(live.committee, live.committee.folder / "receiver-alice.pem", [("h", 1)] * 2)
    with pytest.raises(ParameterError, match="--parties any asks a served committee: add --committee"):
        call("decrypt", live.committee.folder, "key", tmp_path / "x.ct", "--to", 0, "--parties", "any")
    with pytest.raises(ParameterError, match="--live-host, --live-port and --live-at are for --parties any"):
        call("serve", live.committee.folder, 0, "key", "--live-port", 1)
    with pytest.raises(ParameterError, match="--live-port 70000: choose a port"):
        call("serve", live.committee.folder, 0, "key", "--parties", "any", "--live-port", 70000)
    prf = committee_with_key(tmp_path / "prf", "rep-field", 3)
    make_receiver(prf, "alice")
    with pytest.raises(ParameterError, match="is one of a PRF: name the parties that evaluate"):
        LiveDaemon(prf, 0, Service("prf"))


def test_who_is_live(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """A party that answers, stops, and is there again. One with another certificate, and one that says nonsense, are not there. Bytes of strangers do no harm."""
    committee, places = live.committee, list[presence.Place | None]([None] * 3)
    one = Answering(committee.identity_path(1), "127.0.0.1", 0, lambda: Statement(1, "ab" * 32))
    wrong = Answering(committee.identity_path(0), "127.0.0.1", 0, lambda: Statement(2, "ab" * 32))  # the identity of another party
    places[1:] = ("127.0.0.1", one.port), ("127.0.0.1", wrong.port)
    mine = Presence(committee, 0, lambda: places, 2)
    try:
        with socket.create_connection(("127.0.0.1", one.port), 5) as raw:
            raw.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert until(lambda: 1 in mine.live()) and mine.live() == {1: Statement(1, "ab" * 32)} and set(mine.away()) == {2}
        one.close()
        assert until(lambda: not mine.live()) and set(mine.away()) == {1, 2}
        told = list[Statement]()

        def lie() -> Statement:
            told.append(Statement(2, "ab" * 32))
            return told[-1]

        liar = Answering(committee.identity_path(1), "127.0.0.1", 0, lie)
        places[1] = ("127.0.0.1", liar.port)
        assert until(lambda: len(told) > 1)  # it is asked again once its first answer was read
        assert not mine.live()
        liar.close()
        again = Answering(committee.identity_path(1), "127.0.0.1", 0, lambda: Statement(1, "cd" * 32))
        places[1] = ("127.0.0.1", again.port)
        assert until(lambda: mine.live() == {1: Statement(1, "cd" * 32)})
        again.close()
    finally:
        mine.close()
        wrong.close()
    with pytest.raises(CommitteeError, match="choose another --live-host or --live-port"):
        Answering(committee.identity_path(1), "192.0.2.1", 0, lambda: Statement(1, "ab" * 32))


def test_what_strangers_cost(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Questions back to back are answered slowly, long ones not at all, and few descriptors mean few channels."""
    committee, alice = live.committee, client_context(live.committee.folder / "receiver-alice.pem")
    one = Answering(committee.identity_path(1), "127.0.0.1", 0, lambda: Statement(1, "ab" * 32))
    try:
        channel = connect(alice, 1, "127.0.0.1", one.port, committee.parties[1].fingerprint, 5)
        begin = time.monotonic()
        for _ in range(6):
            send_message(channel, {})
        for _ in range(6):
            answer = receive_message(channel, 0)
            assert answer is not None and answer[0] == Statement(1, "ab" * 32).to_json()
        assert time.monotonic() - begin > 0.55
        send_message(channel, {"x": "y" * 1100})
        assert ended(channel)
        channel.close()
    finally:
        one.close()
    monkeypatch.setattr(resource, "getrlimit", lambda which: (64, 64))
    few = Answering(committee.identity_path(1), "127.0.0.1", 0, lambda: Statement(1, "ab" * 32))
    raw = [socket.create_connection(("127.0.0.1", few.port), 5) for _ in range(5)]  # half of an eighth, and one
    try:
        assert ended(raw[0])
    finally:
        few.close()
        for each in raw:
            each.close()


def ended(channel: socket.socket) -> bool:
    """Whether the other side ends a channel within 3 s."""
    channel.settimeout(3)
    try:
        return channel.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def until(condition: Any, seconds: float = 15.0) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return bool(condition())
