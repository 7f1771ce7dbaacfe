"""Runs of a batch of evaluations at one party, several times: medians of what is online, means of what is made ahead."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from keyquorum.model.plain import Json
from keyquorum.parties.context import PartyContext
from keyquorum.sweep.decryption import common_start

FEW, LEAST_SECONDS, MOST_RUNS = 3, 1.0, 21
"""Runs of a measurement: at least FEW, more until LEAST_SECONDS are over, but at most MOST_RUNS."""
LONG_RUN = 0.5
"""Seconds of a run that needs one run before it alone."""
T = TypeVar("T")


@dataclass(frozen=True)
class Once(Generic[T]):
    """One run: what is measured, and the seconds and bytes that its preparation took."""

    online: Callable[[], T]
    seconds: float = 0.0
    sent: int = 0


def measured(context: PartyContext, once: Callable[[], Once[T]]) -> tuple[Json, T]:
    """Costs of a run at this party, and the result of the last one. Correlated randomness that is made inside a run counts as prepared. A run that finds some left
    over makes none, and another makes some for several: seconds and bytes ahead are those of all counted runs together, divided by their number."""
    online: list[float] = []
    offline: list[tuple[float, int]] = []
    began, runs = time.monotonic(), 0
    while True:
        prepared = once()
        common_start(context)
        before, start = context.backend.stats(), time.perf_counter()
        result = prepared.online()
        seconds, after = time.perf_counter() - start, context.backend.stats()
        last = {name: after[name] - before.get(name, 0) for name in after}
        inside = last.get("offline_microseconds", 0) / 1e6
        runs += 1
        # Of a small run the second is recorded, and the third is the first that is replayed. Large ones are not recorded.
        if runs > (3 if seconds < LONG_RUN else 1):
            online.append(seconds - inside)
            offline.append((prepared.seconds + inside, prepared.sent + last.get("offline_bytes_sent", 0)))
        done = len(online) >= MOST_RUNS or (len(online) >= FEW and time.monotonic() - began > LEAST_SECONDS)
        if all(context.session.all_gather(bytes([done]))[i] == b"\x01" for i in range(context.parties)):
            break
    figures = {
        "online": statistics.median(online),
        "offline": statistics.fmean(seconds for seconds, _ in offline),
        "sent": last["bytes_sent"] - last.get("offline_bytes_sent", 0),
        "offline_sent": statistics.fmean(sent for _, sent in offline),
        "rounds": last["rounds"] - last.get("offline_rounds", 0),
        "runs": len(online),
    }
    return figures, result


__all__ = ["Once", "measured"]
