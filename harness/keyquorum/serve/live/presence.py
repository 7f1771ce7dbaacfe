"""Who is live: every party asks every other one some three times a second what it does (:class:`.choice.Statement`), over TLS with pinned certificates.

A party answers anybody who reaches the port. So strangers there learn its number and certificate, whether it serves, with whom and in which view, a digest of its options, and when that changes. None of this is secret,
but it names the parties that an attacker would have to stop. What strangers cost is bounded: channels, questions of a channel in a second, and the length of a question. The one that asks knows by the certificate whose
answer it is. Who knows the name of a change of the epoch, 128 random bits which members and their receivers have, is shown what members signed of it (:mod:`.keeper`). A party that does not answer in time, or closes the channel, counts as lost until it answers again. Nothing but the time that a request takes depends on these answers.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from keyquorum.model.committee import Committee
from keyquorum.model.errors import CommitteeError, KeyQuorumError
from keyquorum.model.plain import json_loads
from keyquorum.parties.epochs.exchange import MOST_SHOWN

from ..listener import Connections, accept, bounded
from ..sealed import sealed, sealing
from ..wire import client_context, connect, load_identity, receive_message, send_message
from .choice import Statement, read_statement

ASK_SECONDS = 0.25
"""Pause between two questions to a party."""
LOST_SECONDS = 2.0
"""Longest wait for an answer."""
QUIET_SECONDS = 10.0
"""Time after which a channel on which nobody asks is closed."""
ANSWER_SECONDS = 0.1
"""Pause before each answer. Who asks back to back costs no more than that."""
QUESTION_LIMIT = 1 << 10
"""Bytes of a question."""
MOST, MOST_OF_SOURCE = 128, 64
"""Channels that a party answers at a time, in all and from one address; fewer where the limit on descriptors is low."""
CHANGE = "change"
"""Entry of a question: the name of the change of which the one that asks does not know the end."""
Place = tuple[str, int]


class Answering:
    """Answers questions until closed. ``say``: what the party does now; ``shown``: what it and others signed of a change of its epoch, by the name. ``port``: 0 is any free one."""

    def __init__(self, identity: Path, host: str, port: int, say: Callable[[], Statement], shown: Callable[[str], bytes] = lambda name: b"") -> None:
        self._say, self._shown, self._closed = say, shown, False
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_3
        load_identity(self._context, identity)
        most = bounded(MOST, 8)
        self._connections = Connections(most, min(MOST_OF_SOURCE, most // 2))
        try:
            self._listener = socket.create_server((host, port), backlog=64)
        except (OSError, UnicodeError) as error:
            raise CommitteeError(f"other parties at {host}:{port}: {error}: choose another --live-host or --live-port") from None
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Ends all channels."""
        self._closed = True
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._connections.shut_down()

    def _accept(self) -> None:
        accept(self._listener, self._connections, self._serve, lambda: self._closed)

    def _serve(self, raw: socket.socket) -> None:
        channel: socket.socket = raw
        try:
            raw.settimeout(QUIET_SECONDS)
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            found = sealing(self._context).wrap_socket(raw, server_side=True, do_handshake_on_connect=False)
            self._connections.replace(raw, found)
            channel = found
            found.do_handshake()
            sealed(found).answer_seal()
            while not self._closed and (question := receive_message(found, 0, QUIET_SECONDS, head_limit=QUESTION_LIMIT)) is not None:
                time.sleep(ANSWER_SECONDS)
                found.settimeout(QUIET_SECONDS)
                name = question[0].get(CHANGE)
                send_message(found, self._say().to_json(), self._shown(name) if isinstance(name, str) else b"")
        except (OSError, ConnectionError, KeyQuorumError):
            pass  # whoever asked is gone, or sent something else
        finally:
            self._connections.remove(channel)
            channel.close()


class Presence:
    """What the other parties said last. Thread-safe. ``places``: addresses at which all parties answer, in their order, read anew before each connection; an entry is None while it is not known.
    ``change``: the name of a change of which the party wants to hear, or nothing; ``hear`` gets the number of a party, and what that shows."""

    def __init__(
        self, committee: Committee, party: int, places: Callable[[], Sequence[Place | None]], needed: int,
        change: Callable[[], str] = lambda: "", hear: Callable[[int, str, bytes], None] = lambda party, name, shown: None,
    ) -> None:  # fmt: skip
        self._committee, self._needed, self._places = committee, needed, places
        self._change, self._hear = change, hear
        self._context = client_context(committee.identity_path(party))
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._said: dict[int, Statement] = {}
        self._lost_at: dict[int, float] = {other: time.time() for other in range(committee.size) if other != party}
        for other in self._lost_at:
            threading.Thread(target=self._ask, args=(other,), daemon=True).start()

    def close(self) -> None:
        """Asks no more."""
        self._stop.set()

    def live(self) -> dict[int, Statement]:
        """The statements of the other parties that are live, by their numbers."""
        with self._lock:
            return dict(self._said)

    def away(self) -> dict[int, float]:
        """Seconds since 1970 when each party was lost that is not live."""
        with self._lock:
            return {party: since for party, since in self._lost_at.items() if party not in self._said}

    def _ask(self, other: int) -> None:
        while not self._stop.is_set():
            with suppress(KeyQuorumError, OSError, ConnectionError):
                self._converse(other)
            with self._lock:
                if self._said.pop(other, None) is not None:
                    self._lost_at[other] = time.time()
            self._stop.wait(ASK_SECONDS)

    def _converse(self, other: int) -> None:
        place = self._places()[other]
        if place is None:
            return
        channel = connect(self._context, other, *place, self._committee.parties[other].fingerprint, LOST_SECONDS)
        try:
            while not self._stop.is_set():
                name = self._change()
                send_message(channel, {CHANGE: name} if name else {})
                answer = receive_message(channel, MOST_SHOWN if name else 0, LOST_SECONDS)
                if answer is None:
                    return
                if answer[1]:
                    self._hear(other, name, bytes(answer[1]))
                said = read_statement(answer[0], other, self._committee.size, self._needed)
                with self._lock:
                    self._said[other] = said
                channel.settimeout(LOST_SECONDS)
                self._stop.wait(ASK_SECONDS)
        finally:
            channel.close()


def local_places(committee: Committee) -> list[Place | None]:
    """Where the parties of this host answer, by their files ``serve.json``."""
    return [_local_place(committee, party) for party in range(committee.size)]


def _local_place(committee: Committee, party: int) -> Place | None:
    try:
        data = json_loads((committee.party_folder(party) / "serve.json").read_text())
        return str(data["live_host"]), int(data["live"])
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None


__all__ = ["Answering", "Place", "Presence", "local_places"]
