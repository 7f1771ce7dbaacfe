"""The listener of a party towards strangers: they hold little, for seconds, and who may ask is served meanwhile."""

from __future__ import annotations

import hashlib
import os
import resource
import socket
import ssl
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from keyquorum._engine import make_identity
from keyquorum.model.errors import PartyError
from keyquorum.serve import front, metrics, wire
from keyquorum.serve.client import Receiver
from keyquorum.serve.front import Front
from keyquorum.serve.metrics import Metrics
from keyquorum.serve.wire import Receivers, certificate_of, client_context, connect, receive_message, send_message

STRANGERS = 300


class Party:
    """A listener that answers every request with its body, and an admitted receiver."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "receivers").mkdir()
        for name in ("party", "alice", "eve"):
            make_identity(str(folder / f"{name}.pem"), name)
        self.admit("alice")
        kind: Any = SimpleNamespace(limit=1000, read=lambda head, body: body)
        requests: Any = SimpleNamespace(patience=5.0, add=self._answer)
        self.front = Front(Receivers(folder / "party.pem", folder / "receivers"), "127.0.0.1", 0, kind, requests, lambda result: None)
        self.fingerprint = self._fingerprint("party")

    def _fingerprint(self, name: str) -> str:
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate_of(self.folder / f"{name}.pem"))).hexdigest()

    def admit(self, name: str) -> None:
        (self.folder / "receivers" / f"{name}.crt").write_text(certificate_of(self.folder / f"{name}.pem"))

    def _answer(self, key: str, body: bytes) -> Any:
        done: Future[bytes] = Future()
        done.set_result(body)
        return SimpleNamespace(done=done)

    def channel(self, name: str = "alice", timeout: float = 4.0) -> Any:
        return connect(client_context(self.folder / f"{name}.pem"), 0, "127.0.0.1", self.front.port, self.fingerprint, timeout)

    def asks(self, channel: Any) -> bool:
        """Whether a request is answered."""
        try:
            send_message(channel, {"id": "0123456789"}, b"hello")
            return receive_message(channel, 1000) == ({"status": "ok"}, b"hello")
        except (OSError, ConnectionError):
            return False

    def serves(self) -> bool:
        """Whether a new channel of the admitted receiver is served."""
        try:
            with self.channel() as channel:
                return self.asks(channel)
        except PartyError:
            return False

    def stranger(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.front.port), 5)


@pytest.fixture()
def party(tmp_path: Path) -> Iterator[Party]:
    made = Party(tmp_path)
    yield made
    made.front.close()


@contextmanager
def no_descriptors(spare: int) -> Iterator[None]:
    """This process may open ``spare`` files more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    ballast = [os.open(os.devnull, os.O_RDONLY)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 4, hard))
    try:
        with suppress(OSError):
            while True:
                ballast.append(os.dup(ballast[0]))
        for each in ballast[len(ballast) - spare :]:
            os.close(each)
        del ballast[len(ballast) - spare :]
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for each in ballast:
            os.close(each)


def wait_for_threads() -> None:
    """Until no channel is being closed, which would free a descriptor."""
    end = time.monotonic() + 5
    while any("_serve" in thread.name for thread in threading.enumerate()) and time.monotonic() < end:
        time.sleep(0.01)


def out_of_descriptors(party: Party) -> bool:
    """A stranger comes when the party has no descriptor left. Returns whether the receiver is served after that."""
    wait_for_threads()
    with no_descriptors(1):
        stranger = party.stranger()
        time.sleep(0.5)
    served = party.serves()
    stranger.close()
    return served


@pytest.mark.parametrize("size", [5, 900])
def test_a_receiver_that_is_not_admitted_is_told_so(party: Party, size: int) -> None:
    """Whether it notices when it reads or when it writes; the cure is named. Who is admitted is served as before."""
    committee: Any = SimpleNamespace(
        ring_protocol="semi2k", size=1, parties=[SimpleNamespace(fingerprint=party.fingerprint)], local_parties=lambda: [0]
    )
    for _ in range(5):
        receiver = Receiver(committee, party.folder / "eve.pem", [("127.0.0.1", party.front.port)], 5.0)
        with pytest.raises(PartyError, match=r"^party 0 does not admit this receiver: put its certificate \(\.crt\) into the folder party-0/receivers there$"):
            receiver._shares(bytes(size), 1, {})
    assert party.serves()


def test_finding_06_blocked_out_of_descriptors(party: Party) -> None:
    assert party.serves()
    assert out_of_descriptors(party)


def crowd(party: Party) -> tuple[bool, int, int]:
    """Hundreds of strangers connect and say nothing. Returns whether the receiver is served among them, on an old channel and a new one;
    how many threads they hold then; and how many of them are still connected some seconds later."""
    threads = threading.active_count()
    with party.channel() as old:
        strangers = [party.stranger() for _ in range(STRANGERS)]
        served = all([party.asks(old), party.serves(), party.asks(old)])
        held = threading.active_count() - threads
        deadline = time.monotonic() + 8
        left = list(strangers)
        while left and time.monotonic() < deadline:
            time.sleep(0.2)
            left = [each for each in left if connected(each)]
    for each in strangers:
        each.close()
    return served, held, len(left)


def connected(end: socket.socket) -> bool:
    end.setblocking(False)
    try:
        return end.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def test_finding_06_blocked_a_crowd_of_strangers(party: Party) -> None:
    served, held, left = crowd(party)
    assert served
    assert held <= 80
    assert left == 0


def test_finding_06_blocked_strangers_who_come_again_and_again(party: Party) -> None:
    """Two threads connect as fast as they can, for as long as the receiver asks."""
    stop = threading.Event()

    def come() -> None:
        waiting: list[socket.socket] = []
        while not stop.is_set():
            with suppress(OSError):
                waiting.append(party.stranger())
            if len(waiting) > 100:
                waiting.pop(0).close()
        for each in waiting:
            each.close()

    threads = [threading.Thread(target=come) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        with party.channel() as old:
            assert all(party.asks(old) for _ in range(20))
            assert sum(party.serves() for _ in range(10)) >= 8
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_finding_06_blocked_a_handshake_byte_by_byte(party: Party, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is that of the whole handshake."""
    monkeypatch.setattr(front, "HANDSHAKE_SECONDS", 1.0)
    stranger = party.stranger()
    start = time.monotonic()
    for byte in bytes.fromhex("16030100ff010000fb0303") + bytes(100):
        with suppress(OSError):
            stranger.sendall(bytes([byte]))
        time.sleep(0.1)
        if not connected(stranger):
            break
    assert 0.5 < time.monotonic() - start < 3
    stranger.close()


def test_finding_06_blocked_who_is_not_admitted_holds_no_channel(party: Party, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if she does not wait for the party's refusal."""
    monkeypatch.setattr(wire, "_check_admitted", lambda *args: None)
    eve = party.channel("eve")
    assert not party.asks(eve)
    end = time.monotonic() + 2
    while connected(eve) and time.monotonic() < end:
        time.sleep(0.05)
    assert time.monotonic() < end
    eve.close()


def test_finding_06_ablated_out_of_descriptors(party: Party, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front, "PASSING", frozenset())
    assert party.serves()
    assert not all(out_of_descriptors(party) for _ in range(3))


def test_finding_06_ablated_a_crowd_of_strangers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the limits every stranger holds a thread, for as long as it likes."""
    monkeypatch.setattr(front, "HANDSHAKE_SECONDS", front.IDLE_SECONDS)
    monkeypatch.setattr(front, "_Group", lambda most: group(10000))
    party = Party(tmp_path)
    try:
        _, held, left = crowd(party)
        assert held >= STRANGERS
        assert left == STRANGERS
    finally:
        party.front.close()


group = front._Group


def test_idle_channels_make_room_and_busy_ones_stay() -> None:
    pairs = [socket.socketpair() for _ in range(4)]
    (a, _), (b, _), (c, _), (d, _) = pairs
    channels = group(2)
    assert channels.add(a) and channels.add(b)
    channels.busy(a, True)
    assert channels.add(c), "b is idle"
    assert [connected(far) for _, far in pairs] == [True, False, True, True]
    channels.busy(c, True)
    assert not channels.add(d), "both are busy"
    channels.busy(a, False)
    channels.busy(c, False)
    assert channels.add(d), "a has waited longer"
    assert [connected(far) for _, far in pairs] == [False, False, True, True]
    channels.remove(c)
    assert channels.add(b)
    channels.shut_down()
    for near, far in pairs:
        near.close()
        far.close()


def test_finding_06_blocked_silent_readers_of_the_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are not many, they go after some seconds, and a lack of descriptors passes."""
    monkeypatch.setattr(metrics, "READ_SECONDS", 1.0)
    counters = Metrics(0)

    def answers() -> bool:
        with suppress(OSError):
            return b"keyquorum_connected" in urllib.request.urlopen(f"http://127.0.0.1:{counters.port}/metrics", timeout=3).read()
        return False

    try:
        assert answers()
        threads = threading.active_count()
        strangers = [socket.create_connection(("127.0.0.1", counters.port), 5) for _ in range(100)]
        time.sleep(0.3)
        assert threading.active_count() - threads <= metrics.MOST_READERS
        time.sleep(1.5)
        assert not any(connected(each) for each in strangers)
        assert answers()
        with no_descriptors(1):
            strangers.append(socket.create_connection(("127.0.0.1", counters.port), 5))
            time.sleep(0.5)
        assert answers()
        for each in strangers:
            each.close()
    finally:
        counters.close()
