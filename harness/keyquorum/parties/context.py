"""What one party has at hand while a job runs, and what it reports."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from keyquorum._engine import Session
from keyquorum.model.committee import Committee

Progress = Callable[[str, int, int], None]
"""Called with (phase, steps done, steps in all)."""


@dataclass
class PhaseReport:
    """Cost of one phase at one party: wall-clock seconds, payload bytes, communication rounds."""

    name: str
    seconds: float = 0.0
    bytes_sent: int = 0
    bytes_received: int = 0
    rounds: int = 0


@dataclass
class RunReport:
    """Cost of a job at one party. ``peak_memory`` is the process's peak resident set in bytes."""

    party: int
    phases: list[PhaseReport] = field(default_factory=list)
    peak_memory: int = 0

    @property
    def total(self) -> PhaseReport:
        """All phases together."""
        total = PhaseReport("total")
        for phase in self.phases:
            total.seconds += phase.seconds
            total.bytes_sent += phase.bytes_sent
            total.bytes_received += phase.bytes_received
            total.rounds += phase.rounds
        return total

    def to_json(self) -> dict[str, Any]:
        """Plain data, see :meth:`from_json`."""
        return asdict(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> RunReport:
        """Inverse of :meth:`to_json`."""
        return RunReport(data["party"], [PhaseReport(**p) for p in data["phases"]], data["peak_memory"])


class PartyContext:
    """One party's session, committee and reporting during a job."""

    def __init__(self, session: Session, committee: Committee, progress: Progress | None = None) -> None:
        self.session = session
        self.committee = committee
        self.party: int = session.party
        self.parties: int = session.parties
        self.report = RunReport(session.party)
        self._progress = progress or (lambda phase, done, total: None)

    @contextmanager
    def phase(self, name: str, steps: int = 1) -> Iterator[Callable[[], None]]:
        """Measures a phase; yields a function that marks one of its ``steps`` as done. Phases of one name add up."""
        before, start, done = self.session.stats(), time.monotonic(), 0
        self._progress(name, 0, steps)

        def step() -> None:
            nonlocal done
            done += 1
            self._progress(name, done, steps)

        try:
            yield step
        finally:
            after = self.session.stats()
            entry = next((p for p in self.report.phases if p.name == name), None)
            if entry is None:
                entry = PhaseReport(name)
                self.report.phases.append(entry)
            entry.seconds += time.monotonic() - start
            entry.bytes_sent += after["bytes_sent"] - before["bytes_sent"]
            entry.bytes_received += after["bytes_received"] - before["bytes_received"]
            entry.rounds += after["rounds"] - before["rounds"]
            self.report.peak_memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        self._progress(name, steps, steps)
