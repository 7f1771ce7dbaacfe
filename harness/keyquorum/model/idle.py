"""Detection of other work on the machine, which makes measurements unreliable."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

IDLE_CORES = 0.25
"""Other work that keeps fewer cores busy does not count."""
SAMPLE = 0.25
"""Seconds over which the load is measured."""
STAT = Path("/proc/stat")


def _jiffies() -> tuple[int, int] | None:
    """Idle time and all time of the machine's cores."""
    try:
        numbers = [int(text) for text in STAT.read_text().splitlines()[0].split()[1:9]]
    except (OSError, ValueError, IndexError):
        return None
    return numbers[3] + numbers[4], sum(numbers)


def busy_cores() -> float | None:
    """Cores that other processes keep busy, over SAMPLE seconds; None where the system does not publish it."""
    before = _jiffies()
    time.sleep(SAMPLE)
    after = _jiffies()
    if before is None or after is None or after[1] <= before[1]:
        return None
    return (1 - (after[0] - before[0]) / (after[1] - before[1])) * (os.cpu_count() or 1)


def wait_until_idle(seconds: float, busy: Callable[[], float | None] = busy_cores) -> float | None:
    """Waits until the machine is idle, at most ``seconds``. Returns the busy cores at that time."""
    end = time.monotonic() + seconds
    while True:
        found = busy()
        if found is None or found <= IDLE_CORES or time.monotonic() >= end:
            return found
