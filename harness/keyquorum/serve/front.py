"""The side of a party that receivers see: a listener, and a thread for each channel."""

from __future__ import annotations

import hashlib
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from keyquorum._engine import EngineError
from keyquorum.model.errors import CiphertextError, CommitteeError, KeyQuorumError, PartyError

from .kinds import Kind
from .requests import Requests
from .wire import Receivers, receive_message, send_message

IDLE_SECONDS = 600.0


class Front:
    """Accepts channels until closed. ``count``: called with ``answered`` or ``refused`` for each request."""

    def __init__(
        self, receivers: Receivers, host: str, port: int, kind: Kind, requests: Requests, count: Callable[[str], None]
    ) -> None:
        self._receivers, self._kind, self._requests, self._count = receivers, kind, requests, count
        self._listener = socket.create_server((host, port), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._closed = False
        self._channels: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Takes no more channels, and ends those that are open."""
        self._closed = True
        for each in (self._listener, *list(self._channels)):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while not self._closed:
            try:
                raw, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(raw,), daemon=True).start()

    def _serve(self, raw: socket.socket) -> None:
        try:
            raw.settimeout(IDLE_SECONDS)
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._receivers.context().wrap_socket(raw, server_side=True) as channel:
                self._channels.add(channel)
                receiver = hashlib.sha256(channel.getpeercert(binary_form=True) or b"").hexdigest()
                while (message := receive_message(channel, self._kind.limit)) is not None:
                    head, body = message
                    try:
                        self._receivers.require(receiver)
                        answer = self._request(receiver, head, body)
                    except (KeyQuorumError, EngineError) as error:
                        self._count("refused")
                        send_message(channel, {"status": "refused", "error": str(error), "type": type(error).__name__})
                        continue
                    self._count("answered")
                    send_message(channel, {"status": "ok"}, answer)
        except (OSError, ConnectionError, CommitteeError):
            pass  # the receiver is gone or talks nonsense: what it asked for runs into its deadline
        finally:
            self._channels = {c for c in self._channels if c.fileno() >= 0}
            raw.close()

    def _request(self, receiver: str, head: dict[str, Any], body: bytes) -> bytes:
        name = head.get("id")
        if not (isinstance(name, str) and 8 <= len(name) <= 64 and name.isalnum()):
            raise CiphertextError("a request needs an id of 8 to 64 letters and digits")
        request = self._requests.add(f"{receiver}/{name}", self._kind.read(head, body))
        try:
            return request.done.result(timeout=self._requests.patience + 30)
        except TimeoutError:
            raise PartyError("not decrypted in time: a party is missing; send the request again to all") from None
