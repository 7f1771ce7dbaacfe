"""How a served committee fills its pool while it answers requests.

A chunk is made in slices. Before each program of a slice, and before the chunk is stored, there is a cycle in which the parties serve the requests that wait: so filling holds a request up for one
program, about :data:`SLICE_SECONDS`. Party 0 measures how long that takes, and chooses the size of the next slices; all parties run the same ones, as its last plan says.

A pool that was lost at one party, or is old there, is dropped at all parties and made anew, if the committee keeps one (:func:`agreed_pool`).

A pool that cannot grow, as on a full disk of one party, ends nothing: the parties give the chunk up together, serve from what they have, and try again later.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from keyquorum.model.errors import PoolCannotGrow, PoolLost
from keyquorum.parties.context import PartyContext
from keyquorum.plans.pool_store import drop_pool
from keyquorum.plans.pools import Pool, Slices, pool_name, pools_folder
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.variants import PreprocessingKind

from .kinds import Service
from .metrics import Metrics

SLICE_SECONDS = 0.1
"""Longest time for which filling should hold a request up."""
CHUNK_SECONDS = 1.0
"""Time in which a chunk is made, unless the service has its own size."""
MOST_CHUNK, MOST_BYTES = 1 << 14, 1 << 26
"""Most items of such a chunk, and most bytes of memory for one component of them."""
FIRST_SLICE, FIRST_CHUNK = 16, 32
FLAT = 0.75
"""Slices of half the items are not worth it where they still take this part of the time: it is spent in rounds, or in checks of a least size."""
FORGET_SECONDS = 60.0
"""Age of a measurement that counts no more: the load of the hosts changes."""
FIRST_WAIT, LONGEST_WAIT = 5.0, 60.0
"""Seconds until a pool that cannot grow is tried again, at first and at most."""


def agreed_pool(
    context: PartyContext, group: RoundingGroup, variant: PreprocessingKind, lost: bool | None, log: Callable[[str], None], epoch: str
) -> Pool:
    """The pool of a member, on which all have agreed; every member calls this. ``lost``: whether it turned out to be lost in the last session; None: no pool is made, so
    one that is lost is left to the operators, and raises PoolLost. ``epoch``: of the loaded shares.

    All members find the same in the reports of all, so all drop their pools, or none does. One that dies before it does so finds other pools than the others have, and all drop theirs again."""
    pool = _opened(context, group, variant, lost, log, epoch)
    try:
        try:
            pool.agree("serve")
        except PoolLost as error:
            if lost is None:
                raise
            log(f"the pool {pool.name} is dropped and made anew: {error.reason}")
            pool.drop()
            pool.agree("serve")
    except BaseException:
        pool.close()
        raise
    return pool


def _opened(
    context: PartyContext, group: RoundingGroup, variant: PreprocessingKind, lost: bool | None, log: Callable[[str], None], epoch: str
) -> Pool:
    """The pool on this disk; an empty one in place of one that cannot be used."""
    try:
        pool = Pool(context, group, variant, epoch)
    except PoolLost as error:
        if lost is None:
            raise
        log(f"the pool {pool_name(context.committee, variant)} of this party is dropped: {error.reason}")
        drop_pool(pools_folder(context.committee, context.party, epoch) / pool_name(context.committee, variant))
        return Pool(context, group, variant, epoch)
    try:
        if lost is not None:
            pool.store.require_files()
    except PoolLost as error:
        lost = True
        log(f"the pool {pool.name} of this party is dropped: {error.reason}")
    if lost:
        pool.drop()
    return pool


class Pace:
    """The number of items of a slice, a power of two, from what slices took. ``clock``: seconds."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.items, self._most, self._clock = min(FIRST_SLICE, 1 << max(most, 1).bit_length() - 1), most, clock
        self._seen: dict[int, tuple[float, float]] = {}

    def _time(self, items: int) -> float | None:
        seconds, when = self._seen.get(items, (0.0, -FORGET_SECONDS))
        return seconds if when > self._clock() - FORGET_SECONDS else None

    def measured(self, items: int, seconds: float) -> None:
        """Notes the longest time without a pause in slices of so many items, and chooses the next size. The first slow one of a size is not counted: it has set-ups."""
        known = items in self._seen
        self._seen[items] = seconds, self._clock()
        if seconds > SLICE_SECONDS and not known:
            return
        half, double = self._time(items // 2) if items > 1 else seconds, self._time(2 * items)
        if half is None and double is not None and seconds > FLAT * double:
            half = seconds  # it takes as long as twice as many, so half of them would too
        if seconds <= SLICE_SECONDS:
            grows = double is None or double <= SLICE_SECONDS
        elif half is None or half <= FLAT * seconds:
            self.items = items // 2
            return
        else:  # smaller ones are not quicker, so larger ones may not be slower
            grows = (items > 1 and double is None) or (double is not None and double < seconds / FLAT)
        step = 4 if double is None and seconds < SLICE_SECONDS / 8 else 2
        self.items = step * items if grows and step * items <= self._most else items


class _Stopwatch:
    """Measures the times between pauses. ``between``: what is done in a pause, which does not count."""

    def __init__(self, between: Callable[[], None]) -> None:
        self._between, self._last = between, time.monotonic()
        self.longest = self.total = 0.0

    def pause(self) -> None:
        """See :class:`.Slices`."""
        self.note()
        self._between()
        self._last = time.monotonic()

    def note(self) -> None:
        """Counts the time since the last pause, or since it was noted."""
        now = time.monotonic()
        self.longest, self.total, self._last = max(self.longest, now - self._last), self.total + now - self._last, now


class Filling:
    """The filling of the pool of one party, which it counts in ``metrics``. ``item_bytes``: of one component of an item, in memory."""

    def __init__(self, service: Service, log: Callable[[str], None], metrics: Metrics, item_bytes: int = 1) -> None:
        self._keep, self._chunk, self._log, self._metrics = service.keep, service.chunk, log, metrics
        self.most = min(service.chunk or max(FIRST_CHUNK, min(MOST_CHUNK, MOST_BYTES // item_bytes)), service.keep)
        """Items of a chunk, at most."""
        self.trouble = ""
        """Why the pool cannot grow."""
        self._pace, self._rate = Pace(self.most), 0.0
        self.slice = 0
        """Items of the next slice, as the last plan says."""
        self._wait, self._after = 0.0, 0.0
        metrics.growing.set(1)

    def reach(self, left: int) -> int:
        """Items that the pool has, or will have."""
        return left if self.trouble else max(left, self._keep)

    def due(self, left: int) -> bool:
        """Whether party 0 should have items made, of a pool with ``left`` items."""
        return left < self._keep and time.monotonic() >= self._after

    def forget(self) -> None:
        """Has the pool tried at once again: that of other parties may grow."""
        self.trouble, self._wait, self._after = "", 0.0, 0.0
        self._metrics.growing.set(1)

    @property
    def slice_items(self) -> int:
        """What party 0 proposes as items of the next slice."""
        return self._pace.items

    def chunk_items(self, missing: int = 0) -> int:
        """What party 0 proposes as items of the next chunk: the service's own size, or as many as take about :data:`CHUNK_SECONDS`. ``missing``: items for which a request waits (0: none does); no more
        are stored together then, or few."""
        whole = min(self._chunk or max(FIRST_CHUNK, int(self._rate * CHUNK_SECONDS)), self.most)
        return min(whole, max(missing, FIRST_CHUNK)) if missing else whole

    def run(self, pool: Pool, items: int, between: Callable[[], None]) -> None:
        """Makes a chunk; every member calls this. ``between``: serves requests, at all parties, and sets ``slice``."""
        watch, left, size = _Stopwatch(between), items, 0

        def measured() -> None:
            if size:
                self._pace.measured(size, watch.longest)

        def next_slice() -> int:
            nonlocal left, size
            watch.note()
            measured()
            watch.longest, size = 0.0, self.slice if self.slice <= left else 0  # what is left over says little
            left -= size
            return self.slice

        self._metrics.filling.set(1)
        try:
            pool.fill(items, items, slices=Slices(next_slice, watch.pause))
        except PoolCannotGrow as error:
            self._wait = min(LONGEST_WAIT, 2 * self._wait or FIRST_WAIT)
            self._after, self.trouble = time.monotonic() + self._wait, str(error)
            self._metrics.growing.set(0)
            self._log(f"the pool cannot grow ({error}): serving from the {pool.left:,} items left, trying again in {self._wait:.0f} s")
            return
        finally:
            self._metrics.filling.set(0)
        measured()  # before the time of storing the chunk is noted
        watch.note()
        self._metrics.filled.inc(items)
        self._metrics.fill_seconds.inc(watch.total)
        if self.trouble:
            self._log("the pool grows again")
        self.forget()
        self._rate = items / max(watch.total, 1e-6)


__all__ = ["CHUNK_SECONDS", "SLICE_SECONDS", "Filling", "Pace", "agreed_pool"]
