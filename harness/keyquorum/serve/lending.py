"""A served party's lock on serving, which it lends to a job that changes its shares.

Who wants the lock holds ``change.lock`` (:func:`keyquorum.parties.queue.unserved`). The daemon looks between two batches, and while it waits for one. It ends its session, with which it closes its pool, wipes its shares, and gives the lock away. Requests are refused
meanwhile. When it has the lock again it loads its shares anew, and so those of the epoch in which its party is then. Nothing that it had of an epoch before is used after that.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable

from keyquorum.model.committee import Committee, place_text
from keyquorum.model.errors import CommitteeError, PartyError
from keyquorum.model.locks import held
from keyquorum.model.plain import json_loads
from keyquorum.parties.queue import CHANGE_FILE, SERVES, change_lock, serve_lock

START_SECONDS = 60.0
"""How long a daemon that starts waits for a change of its shares."""
PAUSE = 0.05
"""Seconds between two looks at a lock that is lent."""


class Lent(PartyError):
    """The session ends, since the party lends its lock, or is in another epoch than its shares."""


class Lending:
    """The lock of a party, not taken yet. ``party``: its index in the committee."""

    def __init__(self, committee: Committee, party: int, key: str, log: Callable[[str], None]) -> None:
        self._committee, self._party, self._number, self._log = committee, party, committee.number_of(party), log
        self._lock = serve_lock(committee, party, f"{SERVES}{key}")
        self._change = committee.party_folder(party) / CHANGE_FILE
        self._since = math.inf
        """When the lock was seen to be wanted."""
        self.stale = False
        """Whether the lock was lent since the shares were loaded."""

    def begin(self) -> None:
        """Takes the lock, after a change of the shares that is under way. Raises CommitteeError if another process holds it."""
        if not self._change.parent.is_dir():
            return
        until = time.monotonic() + START_SECONDS
        while not self._lock.take():
            holder = self._lock.holder()
            if holder.startswith(SERVES) or time.monotonic() >= until:
                raise CommitteeError(f"party {self._number} of {self._committee.folder} {_busy_text(self._committee, self._party, holder)}")
            time.sleep(PAUSE)

    @property
    def lent(self) -> bool:
        """Whether the daemon is without its lock."""
        return self._lock.descriptor < 0

    def wanted(self) -> bool:
        """Whether a job wants the lock, or has it."""
        return held(self._change)

    def require(self, patience: float = 0.0) -> None:
        """Raises :class:`Lent` if a job wants the lock, and has for so many seconds."""
        if not self.wanted():
            self._since = math.inf
            return
        self._since = min(self._since, time.monotonic())
        if time.monotonic() >= self._since + patience:
            raise Lent(f"party {self._number} changes its shares: {self._holder()}")

    def _holder(self) -> str:
        return change_lock(self._committee, self._party, "").holder()

    def lend(self, stop: threading.Event, wipe: Callable[[], None], meanwhile: Callable[[], None]) -> None:
        """Gives the lock away if a job wants it, and returns when it is back, or after a stop. Not within a session. Raises OSError, without the lock: then it is called again. ``wipe``: of the shares that the daemon has; the
        job may erase these, and nobody knows when the lock comes back."""
        if self._lock.descriptor >= 0 and not self.wanted():
            return
        self.stale = True
        if self._lock.descriptor >= 0:
            self._log(f"lends its shares to {self._holder()}")
            wipe()
            self._lock.release()
        while not stop.is_set() and (self.wanted() or not self._lock.take()):
            meanwhile()
            stop.wait(PAUSE)

    def release(self) -> None:
        """Ends serving."""
        self._lock.release()


def _busy_text(committee: Committee, party: int, holder: str) -> str:
    """What the holder of a party's serve lock does, and the cure."""
    if holder.startswith(SERVES):
        return f"serves already, {holder}{_address_text(committee, party)}: stop that one first, or ask it"
    return f"is busy with {holder}: try again when that has ended"


def _address_text(committee: Committee, party: int) -> str:
    """The address at which a party serves, for messages; empty if its file has none."""
    try:
        address = json_loads((committee.party_folder(party) / "serve.json").read_text())
        return f", at {place_text(address['host'], address['port'])}"
    except (OSError, ValueError, KeyError, TypeError):
        return ""


__all__ = ["Lending", "Lent"]
