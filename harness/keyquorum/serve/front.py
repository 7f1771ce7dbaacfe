"""The side of a party that receivers see: a listener, and a thread for each channel."""

from __future__ import annotations

import hashlib
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from keyquorum._engine import EngineError
from keyquorum.fhe.lwe import LweParameters, read_lwe
from keyquorum.model.errors import CiphertextError, KeyQuorumError, PartyError

from .requests import Requests
from .wire import receive_message, send_message

MOST_CIPHERTEXTS = 100_000
"""Most ciphertexts of a request."""
IDLE_SECONDS = 600.0


class Front:
    """Accepts channels until closed. ``count``: called with ``answered`` or ``refused`` for each request."""

    def __init__(
        self, context: ssl.SSLContext, host: str, port: int, parameters: LweParameters, key_id: str, requests: Requests,
        count: Callable[[str], None],
    ) -> None:  # fmt: skip
        self._context, self._parameters, self._key_id, self._requests, self._count = context, parameters, key_id, requests, count
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
        limit = MOST_CIPHERTEXTS * 8 * (self._parameters.dimension + 1) + 4096
        try:
            raw.settimeout(IDLE_SECONDS)
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._context.wrap_socket(raw, server_side=True) as channel:
                self._channels.add(channel)
                receiver = hashlib.sha256(channel.getpeercert(binary_form=True) or b"").hexdigest()
                while (message := receive_message(channel, limit)) is not None:
                    head, body = message
                    try:
                        answer = self._request(receiver, head, body)
                    except (KeyQuorumError, EngineError) as error:
                        self._count("refused")
                        send_message(channel, {"status": "refused", "error": str(error), "type": type(error).__name__})
                        continue
                    self._count("answered")
                    send_message(channel, {"status": "ok"}, answer)
        except (OSError, ConnectionError):
            pass  # the receiver is gone or talks nonsense: what it asked for runs into its deadline
        finally:
            self._channels = {c for c in self._channels if c.fileno() >= 0}
            raw.close()

    def _request(self, receiver: str, head: dict[str, Any], body: bytes) -> bytes:
        name = head.get("id")
        if not (isinstance(name, str) and 8 <= len(name) <= 64 and name.isalnum()):
            raise CiphertextError("a request needs an id of 8 to 64 letters and digits")
        ciphertexts, key_id = read_lwe(body, "the request")
        if key_id != self._key_id or ciphertexts.parameters != self._parameters:
            raise CiphertextError(f"the request is encrypted under another key ({key_id}), not {self._key_id}")
        if ciphertexts.count > MOST_CIPHERTEXTS:
            raise CiphertextError(f"{ciphertexts.count} ciphertexts in one request: at most {MOST_CIPHERTEXTS}")
        request = self._requests.add(f"{receiver}/{name}", ciphertexts)
        try:
            return request.done.result(timeout=self._requests.patience + 30)
        except TimeoutError:
            raise PartyError("not decrypted in time: a party is missing; send the request again to all") from None
