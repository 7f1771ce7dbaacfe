"""Runs the measurements of a suite one after another, and keeps the table on disk up to date."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from keyquorum.backends.mpspdz import Checkout
from keyquorum.model.idle import IDLE_CORES, busy_cores, wait_until_idle
from keyquorum.parties.context import Progress
from keyquorum.sweep import peers

from . import rows
from .cases import Case, CaseError, SkippedError
from .measure import Bench, Effort, Run

Measure = Callable[[Case], Sequence[Run]]


@dataclass(frozen=True)
class Settings:
    """``path``: the table. ``fresh``: replace it; otherwise its measurements are not repeated. ``deadline``: time of ``time.monotonic`` after
    which no measurement starts. ``idle``: seconds to wait before a measurement until the machine is idle; a measurement on a busy machine does not
    start. None: measurements start in any case, and the table has the busy cores."""

    path: Path
    effort: Effort = field(default_factory=Effort)
    fresh: bool = False
    mp_spdz: str | None = None
    deadline: float = math.inf
    idle: float | None = None
    busy: Callable[[], float | None] = busy_cores


@dataclass(frozen=True)
class Outcome:
    """Counts of measurements. ``measured``: made now; ``kept``: found in the table; ``errors``, ``skipped``: with reasons; ``left``: not made before
    the deadline; ``loaded``: started on a busy machine. ``busy``: the sweep ended because the machine did not become idle."""

    measured: int
    kept: int
    errors: list[str]
    skipped: list[str] = field(default_factory=list)
    left: int = 0
    loaded: int = 0
    busy: bool = False

    def line(self, suite: str) -> str:
        """The closing line of a sweep."""
        state = "ok" if not self.errors else "failed"
        others = (("skipped", len(self.skipped)), ("left", self.left))
        rest = "".join(f" {name}={number}" for name, number in others if number)
        return f"bench: {state} suite={suite} measured={self.measured} kept={self.kept} failed={len(self.errors)}{rest}"


def _done(table: Sequence[rows.Row], repeats: int) -> set[str]:
    """Identities of measurements that have ``repeats`` good runs, or for which that many were requested and took too long."""
    return {rows.identity(row) for row in table if row["status"] == "ok" and int(row["asked"]) >= repeats}


def run_suite(cases: Sequence[Case], settings: Settings, progress: Progress | None = None, measure: Measure | None = None) -> Outcome:
    """Makes the measurements that are not in the table yet. A failed measurement gets a row, and does not stop the others.

    Raises TableError if the table is of another commit. ``measure``: for tests.
    """
    table = [] if settings.fresh else rows.read(settings.path)
    others = sorted({row["commit"] for row in table} - {rows.commit()})
    if others:
        raise rows.TableError(
            f"{settings.path} was measured at commit {others[0] or 'unknown'}, this is {rows.commit() or 'unknown'}: "
            "start anew with --fresh, or write to another file with -o"
        )
    done = _done(table, settings.effort.repeats)
    todo = [case for case in cases if case.identity not in done]
    errors: list[str] = []
    skipped: list[str] = []
    measured = loaded = 0
    busy = False
    report = progress or (lambda phase, finished, total: None)
    suite = cases[0].suite if cases else ""
    with Bench(settings.effort, settings.mp_spdz) as bench:
        for number, case in enumerate(todo):
            if time.monotonic() > settings.deadline:
                break
            report(suite, number, len(todo))
            load, cores = os.getloadavg()[0], wait_until_idle(settings.idle or 0.0, settings.busy)
            beside = cores is not None and cores > IDLE_CORES
            if beside and settings.idle is not None:
                busy = True
                break
            loaded += beside
            when = rows.Circumstances(settings.effort.repeats, backend_version(case, settings.mp_spdz), load, cores)
            try:
                made = list(rows.rows_of(case, (measure or bench.measure)(case), when))
                measured += 1
            except CaseError as error:
                (skipped if isinstance(error, SkippedError) else errors).append(str(error))
                made = [rows.failed(case, error, when)]
            table = [row for row in table if rows.identity(row) != case.identity] + made
            rows.write(settings.path, table)
        report(suite, len(todo), len(todo))
    left = len(todo) - measured - len(errors) - len(skipped)
    return Outcome(measured, len(cases) - len(todo), errors, skipped, left, loaded, busy)


def backend_version(case: Case, mp_spdz: str | None) -> str:
    """The version of another backend: MP-SPDZ's commit, or the version of a library."""
    if case.suite == "peers":
        return peers.version(case.backend)
    return Checkout.find(mp_spdz).commit if case.backend == "mp-spdz" else ""
