"""The side of a party that receivers see: a listener, and a thread for each channel.

Anybody can connect. Who has not shown an admitted certificate yet holds a thread and a descriptor for some seconds at most, and there are
only so many of these: the oldest of the address with most of them makes room for the next one. So a crowd of strangers cannot keep
receivers out, nor take the descriptors that the party needs for its session and its files: a crowd from one address pushes out itself. Where
receivers and strangers share an address (a host, a translated network), a receiver gets in if its handshake is over before
:data:`MOST_OF_SOURCE` newer connections have come. Channels are shared out among receivers in the same way.
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
from keyquorum.model.errors import AuditError, CiphertextError, CommitteeError, KeyQuorumError, PartyError
from keyquorum.model.listening import PASSING, PAUSE
from keyquorum.model.plain import Json

from .audit import LONGEST, AuditLog
from .kinds import Kind
from .requests import Requests
from .wire import Budget, Hold, Receivers, receive_message, send_message

IDLE_SECONDS = 600.0
HANDSHAKE_SECONDS = 5.0
"""For a whole TLS handshake."""
MESSAGE_SECONDS = 30.0
"""For a whole request, from its first byte on, and one second more for each MiB; and for our answer."""
MEMORY = 1 << 30
"""Bytes of memory that the requests of all channels may take together, as they came and parsed; those of one receiver half of it."""
MOST_CHANNELS, MOST_STRANGERS = 256, 128
"""Channels of receivers, and connections in their handshake, at a time; fewer where the limit on descriptors is low."""
MOST_OF_SOURCE = 64
"""Connections in their handshake from one address at a time, at most half of all."""


def _shut_down(end: socket.socket) -> None:
    """Ends a connection that another thread waits for. Not by the method of a TLS socket, which takes its state from under that thread."""
    with suppress(OSError):
        socket.socket.shutdown(end, socket.SHUT_RDWR)


def source_of(address: str) -> str:
    """What counts as one address: a whole network of 64 bits with IPv6, since one host has all addresses of it."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        return str(ip.ipv4_mapped or ipaddress.ip_network((int(ip) >> 64 << 64, 64)))
    return str(ip)


class _Group:
    """Connections of one kind, the one that waits longest first; each belongs to a source (an address, or a receiver). One that must make
    room is shut down; its thread closes it. ``most``: connections in all; ``most_of_source``: of one source."""

    def __init__(self, most: int, most_of_source: int) -> None:
        self._most, self._most_of_source = most, most_of_source
        self._all: dict[socket.socket, str] = {}
        self._busy: set[socket.socket] = set()
        self._lock = threading.Lock()

    def add(self, end: socket.socket, source: str = "") -> bool:
        """False if there is no room, and none can be made. Room is made in the source itself if it has all that one may have, else in the
        source with most connections."""
        with self._lock:
            counts = Counter(self._all.values())
            if counts[source] >= self._most_of_source:
                made = self._dismiss(source)
            else:
                made = len(self._all) < self._most or self._dismiss_of_most()
            if made:
                self._all[end] = source
            return made

    def _dismiss(self, source: str) -> bool:
        for each, its in self._all.items():
            if its == source and each not in self._busy:
                del self._all[each]
                _shut_down(each)
                return True
        return False

    def _dismiss_of_most(self) -> bool:
        idle = Counter(source for each, source in self._all.items() if each not in self._busy)
        return bool(idle) and self._dismiss(idle.most_common(1)[0][0])

    def dismiss_one(self) -> None:
        """Makes room for what needs a descriptor."""
        with self._lock:
            self._dismiss_of_most()

    def busy(self, end: socket.socket, busy: bool) -> None:
        """One that is busy need not make room; after that it has waited for the shortest time of all."""
        with self._lock:
            if busy:
                self._busy.add(end)
            else:
                self._busy.discard(end)
                if end in self._all:
                    self._all[end] = self._all.pop(end)

    def replace(self, end: socket.socket, other: socket.socket) -> None:
        """The same connection under another object. One that was dismissed in between is shut down."""
        with self._lock:
            if end in self._all:
                self._all = {other if each is end else each: source for each, source in self._all.items()}
                return
        _shut_down(other)

    def remove(self, end: socket.socket) -> None:
        """It is closed."""
        with self._lock:
            self._all.pop(end, None)
            self._busy.discard(end)

    def shut_down(self) -> None:
        """Ends all."""
        with self._lock:
            for each in self._all:
                _shut_down(each)


class Front:
    """Accepts channels until closed. ``count``: called with ``answered`` or ``refused`` for each request, of which ``audit`` gets a line before its
    answer leaves."""

    def __init__(
        self, receivers: Receivers, host: str, port: int, kind: Kind, requests: Requests, count: Callable[[str], None], audit: AuditLog
    ) -> None:
        self._receivers, self._kind, self._requests, self._count = receivers, kind, requests, count
        self._audit = audit
        self._memory = Budget(MEMORY, MEMORY // 2)
        descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        few = 1 << 20 if descriptors == resource.RLIM_INFINITY else descriptors
        channels, strangers = min(MOST_CHANNELS, few // 4), min(MOST_STRANGERS, few // 8)
        self._channels, self._strangers = _Group(channels, channels // 2), _Group(strangers, min(MOST_OF_SOURCE, strangers // 2))
        self._listener = socket.create_server((host, port), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Takes no more channels, and ends those that are open."""
        self._closed = True
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._strangers.shut_down()
        self._channels.shut_down()

    def _accept(self) -> None:
        while not self._closed:
            try:
                raw, address = self._listener.accept()
            except OSError as error:
                if self._closed or error.errno not in PASSING:
                    return
                self._strangers.dismiss_one()
                time.sleep(PAUSE)
                continue
            if not self._strangers.add(raw, source_of(address[0])):
                raw.close()
                continue
            try:
                threading.Thread(target=self._serve, args=(raw,), daemon=True).start()
            except RuntimeError:  # no thread to be had
                self._strangers.remove(raw)
                raw.close()
                time.sleep(PAUSE)

    def _serve(self, raw: socket.socket) -> None:
        try:
            with self._handshake(raw) as channel:
                if not self._channels.add(channel, _fingerprint(channel)):
                    return
                try:
                    self._answer(channel)
                finally:
                    self._channels.remove(channel)
        except (OSError, ConnectionError, CommitteeError):
            pass  # the receiver is gone or talks nonsense: what it asked for runs into its deadline

    def _handshake(self, raw: socket.socket) -> ssl.SSLSocket:
        """The channel of whoever shows an admitted certificate."""
        try:
            raw.settimeout(HANDSHAKE_SECONDS)
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            channel = self._receivers.context().wrap_socket(raw, server_side=True, do_handshake_on_connect=False)
        except BaseException:
            self._strangers.remove(raw)
            raw.close()
            raise
        # wrap_socket has taken the descriptor; the thread that accepts must find it to dismiss it.
        self._strangers.replace(raw, channel)
        try:
            channel.do_handshake()
            self._receivers.require(_fingerprint(channel))
            channel.settimeout(IDLE_SECONDS)
        except BaseException:
            channel.close()
            raise
        finally:
            self._strangers.remove(channel)
        return channel

    def _answer(self, channel: ssl.SSLSocket) -> None:
        """Answers request after request, until the receiver ends the channel or is silent for too long."""
        receiver = _fingerprint(channel)
        while self._one(channel, receiver):
            pass

    def _one(self, channel: ssl.SSLSocket, receiver: str) -> bool:
        """Answers one request; False if there is none any more. Nothing of the request is kept after that."""
        channel.settimeout(IDLE_SECONDS)
        with Hold(self._memory, receiver) as hold:
            answer, head, asked = b"", {"status": "ok"}, _asked({}, None)
            try:
                message = receive_message(channel, self._kind.limit, MESSAGE_SECONDS, hold)
                if message is None:
                    return False
                self._channels.busy(channel, True)
                asked = _asked(*message)
                self._receivers.require(receiver)
                self._audit.require()
                answer = self._request(receiver, *message)
            except (KeyQuorumError, EngineError) as error:
                head = _refusal(error)
            try:
                self._audit.write({"receiver": receiver, **asked, **_result(head)})
            except AuditError as error:
                answer, head = b"", _refusal(error)
            self._count("answered" if head["status"] == "ok" else "refused")
            channel.settimeout(MESSAGE_SECONDS)
            send_message(channel, head, answer)
            self._channels.busy(channel, False)
        return True

    def _request(self, receiver: str, head: Json, body: bytearray) -> bytes:
        name = head.get("id")
        if not (isinstance(name, str) and 8 <= len(name) <= 64 and name.isalnum()):
            raise CiphertextError("a request needs an id of 8 to 64 letters and digits")
        request = self._requests.add(f"{receiver}/{name}", self._kind.read(head, body))
        try:
            return request.done.result(timeout=self._requests.patience + 30)
        except TimeoutError:
            late = PartyError("not decrypted in time: a party is missing; send the request again to all")
            self._requests.answer(request.key, late)  # it holds its ciphertexts no longer
            raise late from None


def _refusal(error: Exception) -> dict[str, str]:
    return {"status": "refused", "error": str(error), "type": type(error).__name__}


def _result(head: dict[str, str]) -> dict[str, str]:
    """What a line of the audit log says of an answer."""
    return {"result": "answered"} if head["status"] == "ok" else {"result": "refused", "type": head["type"], "error": head["error"][:LONGEST]}


def _asked(head: Json, body: bytearray | None) -> Json:
    """What a line of the audit log says of a request: its id if it is one, and the digest of its bytes. None: it was never whole."""
    name = head.get("id")
    request = name if isinstance(name, str) and len(name) <= 64 and name.isalnum() and name.isascii() else None
    digest = None if body is None else hashlib.sha256(body).hexdigest()
    return {"request": request, "sha256": digest, "bytes": None if body is None else len(body)}


def _fingerprint(channel: ssl.SSLSocket) -> str:
    return hashlib.sha256(channel.getpeercert(binary_form=True) or b"").hexdigest()
