"""The context of one party while a job runs, and the report of its cost."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

from keyquorum._engine import Session
from keyquorum.backends import Backend, open_backend
from keyquorum.model.committee import Committee
from keyquorum.model.plain import Json

Progress = Callable[[str, int, int], None]
"""Called with (phase, steps done, steps in all)."""


@dataclass
class PhaseReport:
    """Cost of one phase at one party: wall-clock seconds, payload bytes, communication rounds, CPU seconds. The fields ``offline_*`` are the part
    that made correlated randomness, where the backend reports it."""

    name: str
    seconds: float = 0.0
    bytes_sent: int = 0
    bytes_received: int = 0
    rounds: int = 0
    cpu_seconds: float = 0.0
    offline_seconds: float = 0.0
    offline_bytes_sent: int = 0
    offline_bytes_received: int = 0
    offline_rounds: int = 0

    def add(self, other: PhaseReport) -> None:
        """Adds the cost of another phase."""
        for name in COSTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))


COSTS = tuple(f.name for f in fields(PhaseReport) if f.name != "name")
"""Names of the costs of a phase."""


@dataclass
class RunReport:
    """Cost of a job at one party. ``peak_memory``: see :func:`peak_memory`. ``cpu_seconds``: of this process and of those
    that it started. ``link``: the simulated links (:mod:`keyquorum.model.links`), empty if they are real. ``unused``: items of
    correlated randomness that were made and not used, by kind."""

    party: int
    phases: list[PhaseReport] = field(default_factory=list)
    peak_memory: int = 0
    cpu_seconds: float = 0.0
    link: str = ""
    unused: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> PhaseReport:
        """All phases together."""
        total = PhaseReport("total")
        for phase in self.phases:
            total.add(phase)
        return total

    def to_json(self) -> Json:
        """Plain data, see :meth:`from_json`."""
        return asdict(self)

    @staticmethod
    def from_json(data: Json) -> RunReport:
        """Inverse of :meth:`to_json`."""
        return RunReport(**{**data, "phases": [PhaseReport(**p) for p in data["phases"]]})


def peak_memory() -> int:
    """Peak resident set in bytes of this process, or of the largest process that it started (MP-SPDZ's)."""
    return max(_own_peak(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)


def _own_peak() -> int:
    """The peak of this process since its program started. ``getrusage`` would include the size of the process that forked it."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) * 1024


def cpu_seconds() -> float:
    """CPU time of this process and of the processes that it started and that have ended."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


class PartyContext:
    """One party's session, committee, backend and reporting during a job."""

    seed: bytes | None = None
    """INSECURE, tests: the randomness of all programs of the job is drawn from it. Set before the first program."""

    def __init__(
        self,
        session: Session,
        committee: Committee,
        progress: Progress | None = None,
        backend: Backend | None = None,
        link: str = "",
    ) -> None:
        self.session = session
        self.committee = committee
        self.backend = backend or open_backend("embedded", session, committee)
        self.party: int = session.party
        self.parties: int = session.parties
        self.report = RunReport(committee.number_of(session.party), link=link)
        self._progress = progress or (lambda phase, done, total: None)

    @contextmanager
    def phase(self, name: str, steps: int = 1) -> Iterator[Callable[[], None]]:
        """Measures a phase; yields a function that marks one of its ``steps`` as done. Phases of one name add up."""
        before, start, cpu, done = self.backend.stats(), time.monotonic(), cpu_seconds(), 0
        self._progress(name, 0, steps)

        def step() -> None:
            nonlocal done
            done += 1
            self._progress(name, done, steps)

        try:
            yield step
        finally:
            after = self.backend.stats()
            entry = next((p for p in self.report.phases if p.name == name), None)
            if entry is None:
                entry = PhaseReport(name)
                self.report.phases.append(entry)
            spent = {name: after[name] - before.get(name, 0) for name in after}
            micros = spent.pop("offline_microseconds", 0)
            entry.add(
                PhaseReport(
                    name,
                    seconds=time.monotonic() - start,
                    cpu_seconds=cpu_seconds() - cpu,
                    offline_seconds=micros / 1e6,
                    **{k: v for k, v in spent.items() if k in COSTS},
                )
            )
            self.report.peak_memory = peak_memory()
            self.report.cpu_seconds = cpu_seconds()
            self.report.unused = self.backend.unused()
        self._progress(name, steps, steps)
