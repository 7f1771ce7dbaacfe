"""The side of a party that receivers see: a listener, and a thread for each channel.

Anybody can connect. Who has not shown an admitted certificate yet holds a thread and a descriptor for some seconds at most, and there are
only so many of these: the oldest makes room for the next one. So a crowd of strangers cannot keep receivers out, whose handshakes take
milliseconds, nor take the descriptors that the party needs for its session and its files.
"""

from __future__ import annotations

import hashlib
import resource
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from keyquorum._engine import EngineError
from keyquorum.model.errors import CiphertextError, CommitteeError, KeyQuorumError, PartyError
from keyquorum.model.listening import PASSING, PAUSE

from .kinds import Kind
from .requests import Requests
from .wire import Receivers, receive_message, send_message

IDLE_SECONDS = 600.0
HANDSHAKE_SECONDS = 5.0
"""For a whole TLS handshake."""
MOST_CHANNELS, MOST_STRANGERS = 256, 64
"""Channels of receivers, and connections in their handshake, at a time; fewer where the limit on descriptors is low."""


def _shut_down(end: socket.socket) -> None:
    """Ends a connection that another thread waits for. Not by the method of a TLS socket, which takes its state from under that thread."""
    with suppress(OSError):
        socket.socket.shutdown(end, socket.SHUT_RDWR)


class _Group:
    """Connections of one kind, the one that waits longest first. One that must make room is shut down; its thread closes it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._all: dict[socket.socket, None] = {}
        self._busy: set[socket.socket] = set()
        self._lock = threading.Lock()

    def add(self, end: socket.socket) -> bool:
        """False if there is no room, and none can be made."""
        with self._lock:
            if len(self._all) >= self._most and not self._dismiss():
                return False
            self._all[end] = None
            return True

    def _dismiss(self) -> bool:
        for each in self._all:
            if each not in self._busy:
                del self._all[each]
                _shut_down(each)
                return True
        return False

    def dismiss_one(self) -> None:
        """Makes room for what needs a descriptor."""
        with self._lock:
            self._dismiss()

    def busy(self, end: socket.socket, busy: bool) -> None:
        """One that is busy need not make room; after that it has waited for the shortest time of all."""
        with self._lock:
            if busy:
                self._busy.add(end)
            else:
                self._busy.discard(end)
                if end in self._all:
                    del self._all[end]
                    self._all[end] = None

    def replace(self, end: socket.socket, other: socket.socket) -> None:
        """The same connection under another object. One that was dismissed in between is shut down."""
        with self._lock:
            if end in self._all:
                self._all = {other if each is end else each: None for each in self._all}
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
    """Accepts channels until closed. ``count``: called with ``answered`` or ``refused`` for each request."""

    def __init__(
        self, receivers: Receivers, host: str, port: int, kind: Kind, requests: Requests, count: Callable[[str], None]
    ) -> None:
        self._receivers, self._kind, self._requests, self._count = receivers, kind, requests, count
        descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        few = 1 << 20 if descriptors == resource.RLIM_INFINITY else descriptors
        self._channels, self._strangers = _Group(min(MOST_CHANNELS, few // 4)), _Group(min(MOST_STRANGERS, few // 16))
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
                raw, _ = self._listener.accept()
            except OSError as error:
                if self._closed or error.errno not in PASSING:
                    return
                self._strangers.dismiss_one()
                time.sleep(PAUSE)
                continue
            if not self._strangers.add(raw):
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
                if not self._channels.add(channel):
                    return
                try:
                    self._answer(channel)
                finally:
                    self._channels.remove(channel)
        except (OSError, ConnectionError, CommitteeError):
            pass  # the receiver is gone or talks nonsense: what it asked for runs into its deadline

    def _handshake(self, raw: socket.socket) -> Any:
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

    def _answer(self, channel: Any) -> None:
        """Answers request after request, until the receiver ends the channel or is silent for too long."""
        receiver = _fingerprint(channel)
        while (message := receive_message(channel, self._kind.limit)) is not None:
            self._channels.busy(channel, True)
            head, body = message
            try:
                self._receivers.require(receiver)
                answer = self._request(receiver, head, body)
            except (KeyQuorumError, EngineError) as error:
                self._count("refused")
                send_message(channel, {"status": "refused", "error": str(error), "type": type(error).__name__})
            else:
                self._count("answered")
                send_message(channel, {"status": "ok"}, answer)
            self._channels.busy(channel, False)

    def _request(self, receiver: str, head: dict[str, Any], body: bytes) -> bytes:
        name = head.get("id")
        if not (isinstance(name, str) and 8 <= len(name) <= 64 and name.isalnum()):
            raise CiphertextError("a request needs an id of 8 to 64 letters and digits")
        request = self._requests.add(f"{receiver}/{name}", self._kind.read(head, body))
        try:
            return request.done.result(timeout=self._requests.patience + 30)
        except TimeoutError:
            raise PartyError("not decrypted in time: a party is missing; send the request again to all") from None


def _fingerprint(channel: Any) -> str:
    return hashlib.sha256(channel.getpeercert(binary_form=True) or b"").hexdigest()
