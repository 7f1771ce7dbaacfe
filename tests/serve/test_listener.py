"""The listener of a party under unverified connections: they take few resources, for seconds, and admitted receivers are served meanwhile."""

from __future__ import annotations

import hashlib
import json
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
from keyquorum.model.errors import CommitteeError, PartyError
from keyquorum.parties.audit.log import AuditLog
from keyquorum.serve import listener, metrics, wire
from keyquorum.serve.admission import Receivers
from keyquorum.serve.client import Receiver, exchanged
from keyquorum.serve.listener import Listener
from keyquorum.serve.metrics import Metrics
from keyquorum.serve.requests import Answer
from keyquorum.serve.sealed import SealedSocket
from keyquorum.serve.wire import certificate_of, client_context, connect, receive_message, send_message

STRANGERS = 300


class Party:
    """A listener that answers every request with its body, and an admitted receiver."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.waiting: list[Future[Answer]] | None = None
        """Requests that are not answered yet, if they are not answered at once."""
        (folder / "receivers").mkdir()
        for name in ("party", "alice", "eve"):
            make_identity(str(folder / f"{name}.pem"), name)
        self.admit("alice")
        key: Any = SimpleNamespace(limit=1000, hashed=True, read=lambda head, body: body)
        requests: Any = SimpleNamespace(patience=5.0, add=self._answer)
        self.audit = AuditLog(folder / "audit.jsonl", {"party": 0})
        self.receivers = Receivers(folder / "party.pem", folder / "receivers")
        self.listener = Listener(self.receivers, "127.0.0.1", 0, key, requests, lambda result, seconds: None, self.audit)
        self.fingerprint = self._fingerprint("party")

    def _fingerprint(self, name: str) -> str:
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate_of(self.folder / f"{name}.pem"))).hexdigest()

    def admit(self, name: str) -> None:
        (self.folder / "receivers" / f"{name}.crt").write_text(certificate_of(self.folder / f"{name}.pem"))

    def _answer(self, key: str, body: bytes) -> Any:
        done: Future[Answer] = Future()
        if self.waiting is None:
            done.set_result(Answer(bytes(body)))
        else:
            self.waiting.append(done)
        return SimpleNamespace(done=done, key=key)

    def channel(self, name: str = "alice", timeout: float = 4.0) -> Any:
        return connect(client_context(self.folder / f"{name}.pem"), 0, "127.0.0.1", self.listener.port, self.fingerprint, timeout)

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

    def stranger(self, address: str = "127.0.0.1") -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.listener.port), 5, (address, 0))


@pytest.fixture()
def party(tmp_path: Path) -> Iterator[Party]:
    made = Party(tmp_path)
    yield made
    made.listener.close()


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
    """Waits until no channel is being closed, which would free a descriptor."""
    end = time.monotonic() + 5
    while any("_serve" in thread.name for thread in threading.enumerate()) and time.monotonic() < end:
        time.sleep(0.01)


def out_of_descriptors(party: Party) -> bool:
    """An unverified connection comes when the party has no descriptor left. Returns whether the receiver is served afterwards."""
    wait_for_threads()
    context = party.receivers.context()
    with pytest.MonkeyPatch.context() as patch, no_descriptors(1):
        # Made here: a handshake that cannot read its certificates ends at once, and the listener may have the descriptor back.
        patch.setattr(party.receivers, "context", lambda: context)
        stranger = party.stranger()
        time.sleep(0.5)
    served = party.serves()
    stranger.close()
    return served


@pytest.mark.parametrize("size", [5, 900])
def test_a_receiver_that_is_not_admitted_gets_the_reason(party: Party, size: int) -> None:
    """Whether it notices at a read or at a write; the error has the remedy. Admitted receivers are served as before."""
    committee: Any = SimpleNamespace(
        ring_protocol="semi2k",
        size=1,
        parties=[SimpleNamespace(fingerprint=party.fingerprint)],
        local_parties=lambda: [0],
        number_of=lambda index: index,
    )
    for _ in range(5):
        receiver = Receiver(committee, party.folder / "eve.pem", [("127.0.0.1", party.listener.port)], 5.0)
        with pytest.raises(
            PartyError, match=r"^party 0 does not admit this receiver: put its certificate \(\.crt\) into the folder party-0/receivers there$"
        ):
            receiver._shares(bytes(size), 1, {}, 65537)
    assert party.serves()


def test_crowds_blocked_out_of_descriptors(party: Party) -> None:
    assert party.serves()
    assert out_of_descriptors(party)


def crowd(party: Party) -> tuple[bool, int, int]:
    """Hundreds of attackers connect and send nothing. Returns whether the receiver is served meanwhile, on an old channel and a new one;
    how many threads the connections take; and how many of them are still open some seconds later."""
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


def test_crowds_blocked_a_crowd_of_strangers(party: Party) -> None:
    served, held, left = crowd(party)
    assert served
    assert held <= 80
    assert left == 0


def test_crowds_blocked_repeated_unverified_connections(party: Party) -> None:
    """Two threads connect as fast as they can, while the receiver sends requests."""
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


def relay(port: int, address: str, delay: float) -> socket.socket:
    """A listener whose connections go on to ``port`` from ``address``, ``delay`` seconds later in each direction."""
    listener = socket.create_server(("127.0.0.1", 0))

    def pump(one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65536):
                time.sleep(delay)
                other.sendall(data)
        for each in (one, other):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def accept() -> None:
        with suppress(OSError):
            while True:
                one = listener.accept()[0]
                other = socket.create_connection(("127.0.0.1", port), 5, (address, 0))
                for pair in ((one, other), (other, one)):
                    threading.Thread(target=pump, args=pair, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener


def served_over_a_round_trip(party: Party, crowd: list[str], times: int = 4) -> int:
    """A receiver at 127.0.0.9, 0.4 s away, sends requests on new channels, while attackers at the addresses of ``crowd`` connect as fast as one
    thread can. Returns how often the receiver is served."""
    stop = threading.Event()

    def come() -> None:
        waiting: list[socket.socket] = []
        while not stop.is_set():
            with suppress(OSError):
                waiting.append(party.stranger(crowd[len(waiting) % len(crowd)]))
            if len(waiting) > 200:
                waiting.pop(0).close()
        for each in waiting:
            each.close()

    def served() -> bool:
        try:
            with connect(client_context(party.folder / "alice.pem"), 0, "127.0.0.1", far.getsockname()[1], party.fingerprint, 6.0) as channel:
                return party.asks(channel)
        except (PartyError, OSError):
            return False

    thread = threading.Thread(target=come)
    with relay(party.listener.port, "127.0.0.9", 0.2) as far:
        thread.start()
        time.sleep(0.5)
        try:
            return sum(served() for _ in range(times))
        finally:
            stop.set()
            thread.join()


@pytest.fixture()
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Party]:
    """A party that allows 16 unverified connections, which a crowd fills within a handshake even on a slow machine."""
    monkeypatch.setattr(listener, "MOST_UNVERIFIED", 16)
    made = Party(tmp_path)
    yield made
    made.listener.close()


@pytest.mark.alone
@pytest.mark.parametrize("addresses", [1, 5])
def test_crowds_blocked_a_fast_crowd_and_a_receiver_far_away(small: Party, addresses: int) -> None:
    assert served_over_a_round_trip(small, [f"127.0.0.{20 + i}" for i in range(addresses)]) >= 3


@pytest.mark.alone
def test_crowds_ablated_a_fast_crowd_and_a_receiver_far_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If all addresses count as one, the receiver is displaced in the middle of its handshake. On a busy machine the crowd is slow, so two newer
    connections are enough here."""
    monkeypatch.setattr(listener, "source_of", lambda address: "anywhere")
    monkeypatch.setattr(listener, "MOST_UNVERIFIED", 4)
    party = Party(tmp_path)
    try:
        assert any(served_over_a_round_trip(party, ["127.0.0.20"]) <= 2 for _ in range(4))
    finally:
        party.listener.close()


def test_crowds_blocked_a_handshake_byte_by_byte(party: Party, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time limit is for the whole handshake."""
    monkeypatch.setattr(listener, "HANDSHAKE_SECONDS", 1.0)
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


def test_crowds_blocked_who_is_not_admitted_holds_no_channel(party: Party, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the receiver does not wait for the party's refusal."""
    monkeypatch.setattr(wire, "_check_admitted", lambda *args: None)
    monkeypatch.setattr(SealedSocket, "offer_seal", lambda self: None)
    eve = party.channel("eve")
    assert not party.asks(eve)
    end = time.monotonic() + 2
    while connected(eve) and time.monotonic() < end:
        time.sleep(0.05)
    assert time.monotonic() < end
    eve.close()


def test_crowds_ablated_out_of_descriptors(party: Party, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "PASSING", frozenset())
    assert party.serves()
    assert not out_of_descriptors(party)


def test_crowds_ablated_a_crowd_of_strangers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the limits every unverified connection keeps a thread without end."""
    monkeypatch.setattr(listener, "HANDSHAKE_SECONDS", listener.IDLE_SECONDS)
    monkeypatch.setattr(listener, "Connections", lambda most, most_of_source: group(10000, 10000))
    party = Party(tmp_path)
    try:
        _, held, left = crowd(party)
        assert held >= STRANGERS
        assert left == STRANGERS
    finally:
        party.listener.close()


group = listener.Connections


def test_idle_channels_make_room_and_busy_ones_stay() -> None:
    pairs = [socket.socketpair() for _ in range(4)]
    (a, _), (b, _), (c, _), (d, _) = pairs
    channels = group(2, 2)
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


def test_the_source_with_most_connections_makes_room() -> None:
    pairs = [socket.socketpair() for _ in range(8)]
    ends, far = [near for near, _ in pairs], [far for _, far in pairs]
    strangers = group(4, 3)
    assert strangers.add(ends[0], "one") and all(strangers.add(each, "crowd") for each in ends[1:4])
    assert strangers.add(ends[4], "crowd"), "in place of the oldest of its own"
    assert [connected(each) for each in far] == [True, False, True, True, True, True, True, True]
    assert strangers.add(ends[5], "two"), "in place of the oldest of the crowd"
    assert [connected(each) for each in far] == [True, False, False, True, True, True, True, True]
    for each in (ends[3], ends[4]):
        strangers.busy(each, True)
    assert strangers.add(ends[6], "three"), "no other of the crowd is idle"
    assert [connected(each) for each in far] == [False, False, False, True, True, True, True, True]
    for near, end in pairs:
        near.close()
        end.close()


def test_addresses_of_one_host_count_together() -> None:
    assert listener.source_of("::ffff:10.0.0.1") == listener.source_of("10.0.0.1") != listener.source_of("10.0.0.2")
    assert listener.source_of("2001:db8::1") == listener.source_of("2001:db8::ffff:1%eth0") != listener.source_of("2001:db8:0:1::1")


def large_requests(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Party, int, list[dict[str, Any]]]:
    """Alice and Bob send requests of 1 MiB on five channels each, to a party with memory for eight requests, received and parsed. The party
    answers none of them yet. Returns how many of them wait, and the heads of the refusals of the others."""
    monkeypatch.setattr(listener, "MEMORY", 8 * 2 << 20)
    party = Party(folder)
    make_identity(str(folder / "bob.pem"), "bob")
    party.admit("bob")
    party.listener._key.limit = 1 << 20
    party.waiting = []
    refused: list[dict[str, Any]] = []

    def ask(name: str) -> None:
        with party.channel(name, 30.0) as channel:
            send_message(channel, {"id": "0123456789"}, bytes(1 << 20))
            answer = receive_message(channel, 1 << 20)
            if answer is not None and answer[0]["status"] == "refused":
                refused.append(answer[0])

    threads = [threading.Thread(target=ask, args=(name,)) for name in ("alice", "bob") for _ in range(5)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + 20
    while len(party.waiting) + len(refused) < len(threads) and time.monotonic() < end:
        time.sleep(0.05)
    held = len(party.waiting)
    waiting, party.waiting = party.waiting, None
    for each in waiting:
        each.set_result(Answer(b"done"))
    for thread in threads:
        thread.join()
    return party, held, refused


def test_crowds_blocked_requests_that_take_all_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each receiver gets half of the memory; other requests are refused with the reason, and served when memory is free again."""
    party, held, refused = large_requests(tmp_path, monkeypatch)
    try:
        assert held == 8 and len(refused) == 2
        assert all("no memory for a request of 1,048,576 bytes beside the others: send it again later" in head["error"] for head in refused)
        wait_for_threads()
        assert not party.listener._memory._held
        assert party.serves()
    finally:
        party.listener.close()


def test_crowds_ablated_requests_that_take_all_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keyquorum.serve.wire.Budget.take", lambda self, owner, size: True)
    party, held, refused = large_requests(tmp_path, monkeypatch)
    party.listener.close()
    assert held == 10 and not refused


def drips(party: Party) -> float:
    """An admitted receiver sends a request byte by byte. Seconds until the channel is ended, at most four."""
    start = time.monotonic()
    with party.channel() as channel, suppress(OSError):
        channel.sendall((20).to_bytes(4, "little") + (900).to_bytes(8, "little") + b'{"id": "0123456789"}')
        while time.monotonic() - start < 4:
            channel.sendall(b"x")
            channel.settimeout(0.2)
            with suppress(TimeoutError):
                if not channel.recv(1):
                    break
    return time.monotonic() - start


def test_crowds_blocked_a_request_byte_by_byte(party: Party, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "MESSAGE_SECONDS", 1.0)
    assert drips(party) < 3
    assert party.serves()


def test_crowds_ablated_a_request_byte_by_byte(party: Party, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "MESSAGE_SECONDS", listener.IDLE_SECONDS)
    assert drips(party) >= 4


def test_crowds_blocked_silent_readers_of_the_counters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their number is bounded, they are closed after some seconds, and the server goes on after a lack of descriptors."""
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


def audited(party: Party) -> list[dict[str, Any]]:
    return [json.loads(line) for line in party.audit.path.read_text().splitlines()]


@pytest.mark.parametrize("size", [1001, 200_000, 30 << 20])
def test_a_request_above_the_limit_is_refused_with_a_line(party: Party, size: int) -> None:
    """For the receiver, which may be in the middle of its write, and in the audit log."""
    with party.channel() as channel:
        answer = exchanged(channel, {"id": "0123456789"}, bytes(size))
    assert answer is not None and answer[0]["status"] == "refused" and answer[0]["type"] == "CiphertextError"
    assert answer[0]["error"] == f"a message of {size:,} bytes is too long: at most 1,000 bytes: send it in parts"
    (line,) = audited(party)
    assert (line["result"], line["request"], line["type"]) == ("refused", "0123456789", "CiphertextError")
    assert party.serves()


def test_a_request_of_a_size_that_nobody_has_holds_no_thread_for_long(party: Party, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "DROP_SECONDS", 0.5)
    with party.channel() as channel:
        channel.sendall((20).to_bytes(4, "little") + (1 << 63).to_bytes(8, "little") + b'{"id": "0123456789"}')
        answer = receive_message(channel, 1000)
        assert answer is not None and "is too long" in answer[0]["error"]
        assert channel.recv(1) == b""
    assert party.serves()


@pytest.mark.parametrize("where", ["receive", "parse"])
def test_a_lack_of_memory_is_a_refused_request(party: Party, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """With a line for the receiver and in the audit log, and no traceback. Other requests are answered."""

    def fails(*args: Any) -> Any:
        raise MemoryError

    with party.channel() as channel, monkeypatch.context() as patch:
        patch.setattr(*((wire.MessageMemory, "take", fails) if where == "receive" else (party.listener._key, "read", fails)))
        send_message(channel, {"id": "0123456789"}, b"hello")
        answer = receive_message(channel, 1000)
        assert answer is not None and (answer[0]["status"], answer[0]["type"]) == ("refused", "ResourceError")
    assert audited(party)[0]["error"] == "no memory for this request at this party: send it again later, or in parts"
    assert party.serves()


@pytest.mark.parametrize("host", ["127.0.0.1", "no host", "192.0.2.1", "x" * 100])
def test_an_address_that_cannot_be_taken_names_the_options(party: Party, host: str) -> None:
    key: Any = SimpleNamespace()
    requests: Any = SimpleNamespace()
    with pytest.raises(CommitteeError, match=rf"^receivers at {host}:{party.listener.port}: .*: choose another --host or --port$"):
        Listener(party.receivers, host, party.listener.port, key, requests, lambda result, seconds: None, party.audit)
