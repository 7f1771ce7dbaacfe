"""Whether the parties of a served committee are connected. While they are not, requests are refused at once, with the party that is away."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from keyquorum.model.errors import PartyError

START_SECONDS, GRACE_SECONDS = 10.0, 1.0
"""How long requests wait after the start of a party, and after a session ended: parties that are there connect within that time."""
SETTLED_SECONDS = 0.7
"""Of a set-up: a party that is not reached by then is away."""


class NotConnected(PartyError):
    """The parties are not connected, so a request was refused before anything was done for it. The text names the party that is away."""


class ServedElsewhere(NotConnected):
    """Other parties serve now. The text names them. Nothing was done for the request."""


def _ago(since: float) -> str:
    """A time of the clock, and how long ago it was."""
    at = datetime.fromtimestamp(since, UTC)
    return f"{at:%Y-%m-%d %H:%M:%S} UTC ({max(0.0, time.time() - since):.0f} s)"


class EpochChanging(NotConnected):
    """The party changes its shares now. Nothing was done for the request."""


class Connection:
    """The state of one party's session. Thread-safe. ``number_of``: the number of a party, for people, by its index."""

    def __init__(self, number_of: Callable[[int], int]) -> None:
        self._number_of = number_of
        self._lock = threading.Lock()
        self._up, self._reason = False, "they have just started"
        self._down_since, self._requests_wait_until = time.time(), time.monotonic() + START_SECONDS
        self._set_up_since = time.monotonic()
        self._away: dict[int, float] | None = None
        """Parties that the set-ups since the end of the session do not reach, with the time since when. None: not known yet."""

    def up(self) -> None:
        """All parties are connected, and have exchanged messages."""
        with self._lock:
            self._up, self._away = True, None

    def down(self, reason: str) -> None:
        """A session ended, or a set-up failed."""
        with self._lock:
            if self._up:
                self._down_since, self._requests_wait_until = time.time(), time.monotonic() + GRACE_SECONDS
            elif time.monotonic() < self._set_up_since + SETTLED_SECONDS:
                self._away = None  # it ended for another reason than a party that is not reached
            self._up, self._reason = False, reason

    def begins(self) -> None:
        """A set-up begins."""
        with self._lock:
            self._set_up_since = time.monotonic()

    def misses(self, indices: Sequence[int]) -> None:
        """A set-up goes on, and these parties are not connected yet."""
        with self._lock:
            if time.monotonic() >= self._set_up_since + SETTLED_SECONDS:
                since = self._down_since if self._away is None else time.time()
                known = self._away or {}
                self._away = {index: known.get(index, since) for index in indices}

    @property
    def connected(self) -> bool:
        """Whether all parties are connected."""
        with self._lock:
            return self._up

    def away(self) -> dict[int, float]:
        """Numbers of the parties that are known to be away, with the time (seconds since 1970) since when."""
        with self._lock:
            return {} if self._up else {self._number_of(index): since for index, since in (self._away or {}).items()}

    def refusal(self) -> NotConnected | None:
        """Why requests are refused now; None while they may wait, or are served."""
        with self._lock:
            if self._up or time.monotonic() < self._requests_wait_until:
                return None
            away = {self._number_of(index): since for index, since in (self._away or {}).items()}
            down_since, reason = self._down_since, self._reason
        if not away:
            return NotConnected(f"the parties are not connected since {_ago(down_since)}: {reason}: send the request again later")
        if len(away) == 1:
            ((party, since),) = away.items()
            return NotConnected(f"party {party} is away since {_ago(since)}: send the request again when it is back")
        parts = ", ".join(f"party {party} since {_ago(since)}" for party, since in away.items())
        return NotConnected(f"several parties are away, {parts}: send the request again when they are back")

    def require(self) -> None:
        """Raises :class:`NotConnected` while requests are refused."""
        refusal = self.refusal()
        if refusal is not None:
            raise refusal


__all__ = ["Connection", "EpochChanging", "NotConnected", "ServedElsewhere"]
