"""A change of the party's epoch whose end it does not know, since a job was cut off: the party goes on with it by itself while it serves.

Live parties ask one another what they signed of the change, with :mod:`.presence`. The party takes these statements, does what follows from them (:class:`keyquorum.parties.epochs.Change`), and erases the old shares when all
have committed. It refuses a change before whose vote its process died. It orders nothing that an operator decides: it never freezes. While a job of the party runs, which may be the change itself, it leaves the change alone.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from keyquorum.model.committee import Committee
from keyquorum.model.epoch import Stage
from keyquorum.model.errors import EpochError, KeyQuorumError
from keyquorum.parties.epochs import JOURNAL, Change, read_epoch
from keyquorum.parties.queue import job_lock
from keyquorum.plans.pools import drop_pools

PAUSE = 0.5
"""Seconds between two looks at the journal."""


class Keeper:
    """Of one party, by its number in the whole committee. Threads that ask and answer call :meth:`name`, :meth:`hear` and :meth:`shown`."""

    def __init__(self, committee: Committee, party: int, log: Callable[[str], None]) -> None:
        self._committee, self._party, self._log = committee, party, log
        self._folder = committee.party_folder(party)
        self._lock = threading.Lock()
        self._open = ""
        self._shown: dict[str, bytes] = {}
        self._heard: dict[int, tuple[str, bytes]] = {}
        self._taken: dict[int, tuple[str, bytes]] = {}
        """What was heard of each party last: it says the same again as long as nothing changes."""
        self._stamp: tuple[int, int] | None = None
        """Of the journal when it was read."""
        self._next, self._said = 0.0, ""

    def name(self) -> str:
        """The change of whose end this party wants to hear; empty: none."""
        return self._open

    def hear(self, party: int, name: str, shown: bytes) -> None:
        """Keeps what a party showed of a change until the next step."""
        with self._lock:
            self._heard[party] = name, shown

    def shown(self, name: str) -> bytes:
        """What this party has of a change; empty if it does not know it."""
        return self._shown.get(name, b"")

    def step(self, epoch: str) -> bool:
        """Goes on with the change, if there is one, and no job runs. Whether the party is in another epoch than ``epoch`` then. Between two batches, or without a session."""
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + PAUSE
        try:
            self._look()
            if self._open:
                self._go_on()
        except (KeyQuorumError, OSError) as error:
            self._say(f"a change of the epoch: {error}")
        return read_epoch(self._folder).name != epoch

    def _say(self, line: str) -> None:
        if line != self._said:
            self._said = line
            self._log(line)

    def _look(self) -> None:
        """Reads the journal, if it has changed."""
        try:
            found = (self._folder / JOURNAL).stat()
        except FileNotFoundError:
            return
        stamp = found.st_mtime_ns, found.st_size
        if stamp == self._stamp:
            return
        changes = Change.recent(self._committee, self._party)
        self._shown = {change.record.name: change.show() for change in changes}
        self._open = next((change.record.name for change in changes if _is_open(change)), "")
        self._stamp = stamp

    def _go_on(self) -> None:
        lock = job_lock(self._committee, self._party, "the end of a change of its epoch")
        if not lock.take():
            return
        try:
            with self._lock:
                heard, self._heard = self._heard, {}
            Change.unfinished(self._committee, self._party)
            for change in Change.recent(self._committee, self._party):
                if _is_open(change):
                    new = {party: each for party, each in heard.items() if each[0] == change.record.name and each != self._taken.get(party)}
                    self._end(change, {party: shown for party, (_, shown) in new.items()})
                    self._taken |= new
        finally:
            lock.release()

    def _end(self, change: Change, heard: dict[int, bytes]) -> None:
        before: Stage = change.standing.stage
        if before == Stage.WAITING and change.is_new:
            change.refuse()
        for party, shown in heard.items():
            try:
                change.hear(shown, f"party {party}")  # one line: a party has no more of a change
            except EpochError as error:
                self._say(f"a change of the epoch: {error}")
        change.advance()
        if change.standing.stage == Stage.COMMITTED and not change.uncommitted():
            change.check_erasable()
            drop_pools(self._committee, self._party, leaves=not change.is_new)
            change.erase()
        if change.standing.stage != before:
            self._log(f"the change to epoch {change.record.name}: {change.standing.stage}")


def _is_open(change: Change) -> bool:
    """Whether the party must hear of others, or has yet to erase."""
    return not change.settled or change.standing.stage == Stage.COMMITTED


__all__ = ["Keeper"]
