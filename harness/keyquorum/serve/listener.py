"""The listener of a served party for receivers, with one thread for each channel.

Anybody can connect. A connection that has not shown an admitted certificate yet is *unverified*. It holds a thread and a descriptor for
:data:`HANDSHAKE_SECONDS` at most, and their number is bounded. When the bound is reached, the oldest unverified connection of the address that has
most of them is closed. So many connections from one address displace one another only. They keep no receiver out, and do not take the descriptors
that the party needs for its session and its files. Where receivers share an address with attackers (a host, a translated network), a receiver is
admitted if its handshake ends before :data:`MOST_OF_SOURCE` newer connections have come. Channels are shared among receivers in the same way.
"""

from __future__ import annotations

import hashlib
import ipaddress
import resource
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from keyquorum._engine import EngineError
from keyquorum.model.errors import AuditError, CiphertextError, CommitteeError, KeyQuorumError, MovedError, PartyError, ResourceError
from keyquorum.model.listening import PASSING, PAUSE
from keyquorum.model.plain import Json
from keyquorum.parties.audit.log import LONGEST, AuditLog

from .admission import Receivers
from .kinds.base import ServedKind, is_request_id
from .requests import Answer, Requests
from .sealed import sealed, sealing
from .wire import Budget, MessageMemory, MessageTooLong, drop, receive_message, send_message

IDLE_SECONDS = 600.0
HANDSHAKE_SECONDS = 5.0
"""Longest TLS handshake."""
MESSAGE_SECONDS = 30.0
"""Longest request, from its first byte on, plus one second for each MiB; and longest answer."""
DROP_SECONDS, LARGE = 5.0, 1 << 62
"""Longest time for which the rest of a request is read and dropped that the party did not take; and more bytes than any rest has."""
LAST_SECONDS = 2.0
"""Longest wait for the answers that are under way when the listener is closed."""
MEMORY = 1 << 30
"""Bytes of memory that the requests of all channels may take together, received and parsed. The requests of one receiver may take half of it."""
MOST_CHANNELS, MOST_UNVERIFIED = 256, 128
"""Most channels of receivers, and most unverified connections; fewer where the limit on descriptors is low."""
MOST_OF_SOURCE = 64
"""Most unverified connections from one address, and at most half of all."""


def _shut_down(end: socket.socket) -> None:
    """Ends a connection that another thread waits for. Not by the method of a TLS socket, which would change its state under that thread."""
    with suppress(OSError):
        socket.socket.shutdown(end, socket.SHUT_RDWR)


def source_of(address: str) -> str:
    """The address whose connections are counted together: with IPv6 the /64 network, since one host has all addresses of it."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        return str(ip.ipv4_mapped or ipaddress.ip_network((int(ip) >> 64 << 64, 64)))
    return str(ip)


def bounded(most: int, part: int) -> int:
    """At most ``most`` connections, and a ``part``-th of the descriptors that the process may have."""
    descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return most if descriptors == resource.RLIM_INFINITY else min(most, descriptors // part)


class Connections:
    """A bounded set of connections, ordered by the time of their last use. Each belongs to a source (an address, or a receiver). A connection that is
    displaced is shut down; its thread closes it. ``most``: connections in all; ``most_of_source``: of one source."""

    def __init__(self, most: int, most_of_source: int) -> None:
        self._most, self._most_of_source = most, most_of_source
        self._all: dict[socket.socket, str] = {}
        self._busy: set[socket.socket] = set()
        self._lock = threading.Lock()

    def add(self, end: socket.socket, source: str = "") -> bool:
        """Adds a connection; False if the set is full of busy ones. A source that has ``most_of_source`` displaces a connection of its own, otherwise
        the source with most connections loses one."""
        with self._lock:
            counts = Counter(self._all.values())
            if counts[source] >= self._most_of_source:
                made = self._displace(source)
            else:
                made = len(self._all) < self._most or self._displace_largest()
            if made:
                self._all[end] = source
            return made

    def _displace(self, source: str) -> bool:
        for each, its in self._all.items():
            if its == source and each not in self._busy:
                del self._all[each]
                _shut_down(each)
                return True
        return False

    def _displace_largest(self) -> bool:
        idle = Counter(source for each, source in self._all.items() if each not in self._busy)
        return bool(idle) and self._displace(idle.most_common(1)[0][0])

    def displace_one(self) -> None:
        """Shuts one idle connection down, to free a descriptor."""
        with self._lock:
            self._displace_largest()

    def busy(self, end: socket.socket, busy: bool) -> None:
        """Marks a connection as busy, which protects it, or as idle, which makes it the last to be displaced."""
        with self._lock:
            if busy:
                self._busy.add(end)
            else:
                self._busy.discard(end)
                if end in self._all:
                    self._all[end] = self._all.pop(end)

    def replace(self, end: socket.socket, other: socket.socket) -> None:
        """Enters another object for the same connection. A connection that was displaced in between is shut down."""
        with self._lock:
            if end in self._all:
                self._all = {other if each is end else each: source for each, source in self._all.items()}
                return
        _shut_down(other)

    def remove(self, end: socket.socket) -> None:
        """Removes a closed connection."""
        with self._lock:
            self._all.pop(end, None)
            self._busy.discard(end)

    def wait_for_busy(self, seconds: float) -> None:
        """Returns when no connection is busy, at the latest after some seconds."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            with self._lock:
                if not self._busy:
                    return
            time.sleep(0.01)

    def shut_down(self) -> None:
        """Ends all."""
        with self._lock:
            for each in self._all:
                _shut_down(each)


def accept(listener: socket.socket, connections: Connections, serve: Callable[[socket.socket], None], closed: Callable[[], bool]) -> None:
    """Accepts connections until ``closed``, and gives each to ``serve`` in a thread of its own, which removes it from ``connections``. Where descriptors or threads run out, connections are closed."""
    while not closed():
        try:
            raw, address = listener.accept()
        except OSError as error:
            if closed() or error.errno not in PASSING:
                return
            connections.displace_one()
            time.sleep(PAUSE)
            continue
        if not connections.add(raw, source_of(address[0])):
            raw.close()
            continue
        try:
            threading.Thread(target=serve, args=(raw,), daemon=True).start()
        except RuntimeError:  # the system has no thread left
            connections.remove(raw)
            raw.close()
            time.sleep(PAUSE)


class Listener:
    """Accepts channels until closed. ``count`` is called for each request, with ``answered`` or the type of the error, and the seconds since it came. ``audit`` gets a line of each request
    before its answer is sent."""

    def __init__(
        self, receivers: Receivers, host: str, port: int, key: ServedKind, requests: Requests, count: Callable[[str, float], None], audit: AuditLog
    ) -> None:
        self._receivers, self._key, self._requests, self._count = receivers, key, requests, count
        self._audit = audit
        self._memory = Budget(MEMORY, MEMORY // 2)
        channels, unverified = bounded(MOST_CHANNELS, 4), bounded(MOST_UNVERIFIED, 8)
        self._channels, self._unverified = Connections(channels, channels // 2), Connections(unverified, min(MOST_OF_SOURCE, unverified // 2))
        try:
            self._listener = socket.create_server((host, port), backlog=128)
        except (OSError, UnicodeError) as error:
            raise CommitteeError(f"receivers at {host}:{port}: {error}: choose another --host or --port") from None
        self.port: int = self._listener.getsockname()[1]
        self._closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    def serves(self, key: ServedKind) -> None:
        """Reads requests by this object from now on: the same key, with the shares of another epoch."""
        self._key = key

    def close(self) -> None:
        """Accepts no more channels, and ends those that are open, after the last answers are sent."""
        self._closed = True
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._unverified.shut_down()
        self._channels.wait_for_busy(LAST_SECONDS)
        self._channels.shut_down()

    def _accept(self) -> None:
        accept(self._listener, self._unverified, self._serve, lambda: self._closed)

    def _serve(self, raw: socket.socket) -> None:
        try:
            with self._handshake(raw) as channel:
                if not self._channels.add(channel, _fingerprint(channel)):
                    return
                try:
                    self._answer(channel)
                finally:
                    self._channels.remove(channel)
        except (OSError, ConnectionError, CommitteeError, MemoryError):
            pass  # the receiver is gone or sent malformed bytes: its request runs into its deadline

    def _handshake(self, raw: socket.socket) -> ssl.SSLSocket:
        """The channel after its handshake. Raises unless the client showed an admitted certificate."""
        try:
            raw.settimeout(HANDSHAKE_SECONDS)
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            channel = sealing(self._receivers.context()).wrap_socket(raw, server_side=True, do_handshake_on_connect=False)
        except BaseException:
            self._unverified.remove(raw)
            raw.close()
            raise
        # wrap_socket has taken the descriptor over: the accepting thread must know the new object to shut it down.
        self._unverified.replace(raw, channel)
        try:
            channel.do_handshake()
            self._receivers.require(_fingerprint(channel))
            sealed(channel).answer_seal()
            channel.settimeout(IDLE_SECONDS)
        except BaseException:
            channel.close()
            raise
        finally:
            self._unverified.remove(channel)
        return channel

    def _answer(self, channel: ssl.SSLSocket) -> None:
        """Answers request after request, until the receiver ends the channel or is silent for too long."""
        receiver = _fingerprint(channel)
        while self._one(channel, receiver):
            pass

    def _one(self, channel: ssl.SSLSocket, receiver: str) -> bool:
        """Answers one request; False if the channel has ended. Nothing of the request stays in memory."""
        channel.settimeout(IDLE_SECONDS)
        with MessageMemory(self._memory, receiver) as memory:
            unread, message = 0, None
            answer, asked, came = b"", _request_fields({}, None), time.monotonic()
            head: Json = {"status": "ok"}
            try:
                message = receive_message(channel, self._key.limit, MESSAGE_SECONDS, memory)
                if message is None:
                    return False
                self._channels.busy(channel, True)
                came = time.monotonic()
                asked = _request_fields(*message, self._key.hashed)
                self._receivers.require(receiver)
                self._audit.require()
                answered = self._request(receiver, *message)
                answer, head = answered.body, {**head, **answered.head}
            except (KeyQuorumError, EngineError) as error:
                head = _refusal(error)
                answer = error.proof if isinstance(error, MovedError) else b""
            except MessageTooLong as error:
                head, asked, unread = _refusal(CiphertextError(f"{error}: send it in parts")), _request_fields(error.head, None), error.size
            except MemoryError:
                head = _refusal(ResourceError("no memory for this request at this party: send it again later, or in parts"))
                unread = LARGE if message is None else 0
            try:
                self._audit.write({"receiver": receiver, **asked, **_answer_fields(head)})
            except AuditError as error:
                answer, head = b"", _refusal(error)
            self._count("answered" if head["status"] == "ok" else head["type"], time.monotonic() - came)
            channel.settimeout(MESSAGE_SECONDS)
            send_message(channel, head, answer)
            self._channels.busy(channel, False)
            drop(channel, unread, DROP_SECONDS)
        return not unread

    def _request(self, receiver: str, head: Json, body: bytearray) -> Answer:
        name = head.get("id")
        if not is_request_id(name):
            raise CiphertextError("a request needs an id of 8 to 64 letters and digits")
        request = self._requests.add(f"{receiver}/{name}", self._key.read(head, body))
        try:
            return request.done.result(timeout=self._requests.patience + 30)
        except TimeoutError:
            late = PartyError("not answered in time: a party is missing; send the request again to all")
            self._requests.answer(request.key, late)  # frees the content of the request
            raise late from None


def _refusal(error: Exception) -> Json:
    return {"status": "refused", "error": str(error), "type": type(error).__name__}


def _answer_fields(head: Json) -> Json:
    """Fields of an audit line that describe the answer."""
    return {"result": "answered"} if head["status"] == "ok" else {"result": "refused", "type": head["type"], "error": head["error"][:LONGEST]}


def _request_fields(head: Json, body: bytearray | None, hashed: bool = True) -> Json:
    """Fields of an audit line that describe the request: its id if that is well-formed, digest (if it is ``hashed``) and length of its body. None: the
    body was not received in full."""
    name = head.get("id")
    request = name if is_request_id(name) else None
    digest = None if body is None or not hashed else hashlib.sha256(body).hexdigest()
    return {"request": request, "sha256": digest, "bytes": None if body is None else len(body)}


def _fingerprint(channel: ssl.SSLSocket) -> str:
    return hashlib.sha256(channel.getpeercert(binary_form=True) or b"").hexdigest()
