"""A receiver that asks all parties of a committee, of which any t + 1 answer.

What members of one view answer to one request is one sharing of the messages. Answers of two views are of different sharings, so the receiver adds up only those that name the same view, members and epoch, and are for the
same id. Where a try cannot end so, since a member is lost, the receiver asks again, with another id.
"""

from __future__ import annotations

import queue
import secrets
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keyquorum.model.committee import Committee
from keyquorum.model.errors import AuditError, CommitteeError, KeyQuorumError, PartyError
from keyquorum.model.plain import Json, is_count
from keyquorum.model.subset import ANY, subset_of
from keyquorum.schemes.base import Decrypted
from keyquorum.schemes.keys import KeyInfo

from ..client import AGAIN_SECONDS, Receiver, Refused, RefusedUnconnected, checked_summands, exchanged, local_address, raise_moved, refusal_of
from ..connection import EpochChanging, NotConnected, ServedElsewhere
from ..wire import client_context, connect
from .options import check_live

TRY_SECONDS = 3.0
"""How long a try goes on after the first answer."""
LIVE_SECONDS = 12.0
"""How long a receiver asks again, at least: parties that replace a lost one connect within a few seconds, and may have to make items first."""
LONGEST_PAUSE = 2.0
"""Longest pause before another try. The first pause is :data:`AGAIN_SECONDS`, each other one twice the one before: members may still serve a try that was given up, which takes items."""
CONNECT_SECONDS = 2.0
PASSING = (NotConnected.__name__, ServedElsewhere.__name__, EpochChanging.__name__, PartyError.__name__, AuditError.__name__)
"""Refusals that another try may not meet. All others are for good."""
Place = tuple[str, int]
Sharing = tuple[int, tuple[int, ...], str]
"""View, members and epoch of an answer."""


class Again(PartyError):
    """A try did not end with an answer of t + 1 parties. Nothing was learned."""


@dataclass(frozen=True)
class _Said:
    """What came of asking one party: an answer, or an error."""

    party: int
    sharing: Sharing | None = None
    body: bytearray | None = None
    error: KeyQuorumError | None = None


@dataclass
class _Try:
    """A request, and what comes of it. ``over``: nobody waits any more."""

    head: Json
    body: bytes
    said: queue.SimpleQueue[_Said] = field(default_factory=queue.SimpleQueue)
    over: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


class LiveReceiver(Receiver):
    """A receiver of messages, of whichever t + 1 parties serve. ``committee``: the whole one; ``places``: addresses of all its parties, in their order (default: those of this host, of parties that
    serve). ``timeout``: seconds of one try; ``wait``: seconds for which it asks again, at least :data:`LIVE_SECONDS`."""

    def __init__(self, committee: Committee, identity: Path, places: list[Place] | None = None, timeout: float = 90.0, wait: float = 0.0) -> None:
        self._whole, self._needed = committee, check_live(committee)
        if places is not None and len(places) != committee.size:
            raise CommitteeError(f"{len(places)} addresses for {committee.size} parties: name each once, in their order")
        super().__init__(subset_of(committee, range(self._needed)), identity, places, timeout, max(wait, LIVE_SECONDS))
        self._live_context = client_context(identity)
        self._open: dict[int, ssl.SSLSocket] = {}

    def close(self) -> None:
        """Closes the channels."""
        for channel in self._open.values():
            channel.close()
        self._open = {}

    def _named(self) -> str:
        return ANY

    def _shares(self, data: bytes, count: int, head: dict[str, object], modulus: int) -> list[NDArray[np.uint64]]:
        members, answers = self.ask_any(data, head)
        return checked_summands(subset_of(self._whole, members), answers, count, modulus)

    def ask_any(self, body: bytes, head: Mapping[str, object]) -> tuple[tuple[int, ...], list[bytearray]]:
        """The numbers of the t + 1 parties that answered, and their answers. Raises :class:`.Refused`, PartyError or, when no t + 1 parties answered in time, RefusedUnconnected."""
        until, pause = time.monotonic() + self._wait, AGAIN_SECONDS
        with self._lock:
            while True:
                try:
                    return self._try(body, head)
                except Again as error:
                    if time.monotonic() >= until:
                        raise RefusedUnconnected(f"no {self._needed} parties answered within {self._wait:g} s; the last try: {error}") from None
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    def _try(self, body: bytes, head: Mapping[str, object]) -> tuple[tuple[int, ...], list[bytearray]]:
        """One request, with an id of its own, to all parties."""
        tried = _Try({"id": secrets.token_hex(16), **head}, body)
        for party in range(self._whole.size):
            threading.Thread(target=self._ask_one, args=(party, tried), daemon=True).start()
        pending, answers, errors = set(range(self._whole.size)), dict[Sharing, dict[int, bytearray]](), list[KeyQuorumError]()
        latest = time.monotonic() + self._timeout
        try:
            while True:
                try:
                    one = tried.said.get(timeout=max(0.0, latest - time.monotonic()))
                except queue.Empty:
                    raise Again("answers of some parties did not come in time") from None
                pending.discard(one.party)
                if one.error is not None:
                    errors.append(one.error)
                elif one.sharing is not None and one.body is not None:
                    found = answers.setdefault(one.sharing, {})
                    found[one.party] = one.body
                    members = one.sharing[1]
                    if set(found) == set(members):
                        return members, [found[member] for member in members]
                    latest = min(latest, time.monotonic() + TRY_SECONDS)
                # An answer names all members of its view. Where one of them answers no more, parties that have not answered are of no use to it.
                if len(pending) < self._needed and not any(set(members) <= found.keys() | pending for (_, members, _), found in answers.items()):
                    raise_moved(self._whole, errors)
                    for error in errors:
                        if isinstance(error, Refused) and not isinstance(error, _Passing):
                            raise error
                    raise Again("; ".join(sorted({str(error) for error in errors})) or "answers of different parties do not belong together")
        finally:
            self._give_up(tried, pending)

    def _give_up(self, tried: _Try, pending: set[int]) -> None:
        """Ends the channels on which an answer is to come that nobody reads. Their threads close them."""
        with tried.lock:
            tried.over = True
            for party in pending:
                channel = self._open.pop(party, None)
                if channel is not None:
                    with suppress(OSError):
                        socket.socket.shutdown(channel, socket.SHUT_RDWR)

    def _ask_one(self, party: int, tried: _Try) -> None:
        channel = self._open.get(party)
        try:
            if channel is None:
                place = self._addresses[party] if self._addresses is not None else local_address(self._whole, party)
                channel = connect(self._live_context, party, *place, self._whole.parties[party].fingerprint, CONNECT_SECONDS)
                channel.settimeout(self._timeout)
                with tried.lock:
                    if tried.over:
                        channel.close()
                        return
                    self._open[party] = channel
            answer = exchanged(channel, tried.head, tried.body)
            if answer is None:
                raise PartyError(f"party {party} closed the channel")
            tried.said.put(self._judged(party, *answer))
        except (KeyQuorumError, OSError, ConnectionError) as error:
            with tried.lock:
                if not tried.over:
                    self._open.pop(party, None)
            if channel is not None:
                channel.close()
            tried.said.put(_Said(party, error=error if isinstance(error, KeyQuorumError) else PartyError(f"party {party}: {error}")))

    def _judged(self, party: int, head: Json, body: bytearray) -> _Said:
        """What a party's answer is. Raises PartyError for one without a view of which the party is a member."""
        if head.get("status") != "ok":
            kind, text = str(head.get("type")), f"party {party}: {head.get('error', 'no reason given')}"
            return _Said(party, error=_Passing(text) if kind in PASSING else refusal_of(party, head, body))
        view, members, epoch = head.get("view"), head.get("parties"), head.get("epoch")
        if not (
            isinstance(view, int) and is_count(view, 1) and isinstance(members, list) and len(members) == self._needed and isinstance(epoch, str)
        ):
            raise PartyError(f"party {party} answers without a view: serve with --parties {ANY} everywhere")
        if not all(is_count(member) for member in members) or party not in members or sorted(set(members)) != members:
            raise PartyError(f"party {party} answers in a view of other parties: run the same version everywhere")
        return _Said(party, (view, tuple(members), epoch), body)


class _Passing(Refused):
    """A refusal that another try may not meet."""


def fetch_live(
    committee: Committee, identity: Path, data: bytes, places: list[Place] | None = None, wait: float = 0.0, info: KeyInfo | None = None
) -> Decrypted:
    """One request: see :meth:`.Receiver.decrypt`, of :class:`LiveReceiver`."""
    receiver = LiveReceiver(committee, identity, places, wait=wait)
    try:
        return receiver.decrypt(data, info)
    finally:
        receiver.close()


__all__ = ["Again", "LiveReceiver", "fetch_live"]
