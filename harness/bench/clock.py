"""Costs of the steps of a run at one party."""

from __future__ import annotations

import time

from keyquorum.model.plain import Json
from keyquorum.parties.context import PartyContext, cpu_seconds


class Clock:
    """Costs of the steps of a run at one party, from when it is made."""

    def __init__(self, context: PartyContext) -> None:
        self._context = context
        self._at = self._now()

    def _now(self) -> tuple[float, float, int]:
        return time.perf_counter(), cpu_seconds(), self._context.backend.stats()["bytes_sent"]

    def lap(self) -> Json:
        """What was spent since the last call: wall-clock ``seconds``, ``cpu`` seconds, bytes ``sent``."""
        before, self._at = self._at, self._now()
        seconds, cpu, sent = (after - then for after, then in zip(self._at, before, strict=True))
        return {"seconds": seconds, "cpu": cpu, "sent": sent}


__all__ = ["Clock"]
