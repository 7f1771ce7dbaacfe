"""Runs the measurements of a suite one after another, and keeps the table on disk up to date."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from keyquorum.backends.mpspdz import Checkout
from keyquorum.parties.context import Progress

from . import rows
from .cases import Case, CaseError
from .measure import Bench, Effort, Run

Measure = Callable[[Case], Sequence[Run]]


@dataclass(frozen=True)
class Settings:
    """``path``: the table; ``fresh``: leave out what it holds; else measurements that it has are not repeated."""

    path: Path
    effort: Effort = field(default_factory=Effort)
    fresh: bool = False
    mp_spdz: str | None = None


@dataclass(frozen=True)
class Outcome:
    """Numbers of measurements: made now, found in the table, failed; and why."""

    measured: int
    kept: int
    errors: list[str]

    def line(self, suite: str) -> str:
        """The closing line of a sweep."""
        state = "ok" if not self.errors else "failed"
        return f"bench: {state} suite={suite} measured={self.measured} kept={self.kept} failed={len(self.errors)}"


def _done(table: Sequence[rows.Row], repeats: int) -> set[str]:
    """Measurements with enough good runs."""
    good: dict[str, set[str]] = {}
    for row in table:
        if row["status"] == "ok":
            good.setdefault(rows.identity(row), set()).add(row["repeat"])
    return {name for name, runs in good.items() if len(runs) >= repeats}


def run_suite(
    cases: Sequence[Case], settings: Settings, progress: Progress | None = None, measure: Measure | None = None
) -> Outcome:
    """Measures what is not in the table yet; a measurement that fails is noted there and does not stop the others.

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
    report = progress or (lambda phase, finished, total: None)
    suite = cases[0].suite if cases else ""
    with Bench(settings.effort, settings.mp_spdz) as bench:
        for number, case in enumerate(todo):
            report(suite, number, len(todo))
            backend_commit = Checkout.find(settings.mp_spdz).commit if case.backend == "mp-spdz" else ""
            load = os.getloadavg()[0]
            try:
                made = list(rows.rows_of(case, (measure or bench.measure)(case), backend_commit, load))
            except CaseError as error:
                errors.append(str(error))
                made = [rows.failed(case, error, backend_commit, load)]
            table = [row for row in table if rows.identity(row) != case.identity] + made
            rows.write(settings.path, table)
        report(suite, len(todo), len(todo))
    return Outcome(len(todo) - len(errors), len(cases) - len(todo), errors)
