"""What the command line prints: results on standard output, errors and progress on standard error."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.table import Table

from keyquorum.model.links import notice
from keyquorum.parties import RunReport
from keyquorum.parties.context import Progress

console = Console(highlight=False, soft_wrap=True)
errors = Console(stderr=True, highlight=False, soft_wrap=True)

SHOW_AFTER = 1.0
"""Seconds after which a bar appears."""


def fail(text: str) -> None:
    """One line of error."""
    errors.print("error: " + " ".join(text.split()), markup=False)


def show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: TextIO | None = None, line: str | None = None
) -> None:
    """One loud line for a warning, in the place of :func:`warnings.showwarning`."""
    errors.print("WARNING: " + " ".join(str(message).split()), markup=False)


@contextmanager
def progress_bars() -> Iterator[Progress]:
    """Bars on standard error for anything that takes longer than a second; nothing when it is not a terminal."""
    columns = (TextColumn("{task.description:12}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    bars = Bars(*columns, console=errors, transient=True, disable=not errors.is_terminal)
    tasks = {}
    start = time.monotonic()
    started = False

    def report(phase: str, done: int, total: int) -> None:
        nonlocal started
        if not started and time.monotonic() - start > SHOW_AFTER:
            bars.start()
            started = True
        if phase not in tasks:
            tasks[phase] = bars.add_task(phase, total=total)
        bars.update(tasks[phase], completed=done, total=total)

    try:
        yield report
    finally:
        if started:
            bars.stop()


def print_reports(reports: Sequence[RunReport]) -> None:
    """Cost a phase of party 0, and of all parties together."""
    table = Table(box=None, pad_edge=False)
    for name in ("phase", "seconds", "sent MB (party 0)", "rounds"):
        table.add_column(name, justify="left" if name == "phase" else "right")
    for phase in [*reports[0].phases, reports[0].total]:
        table.add_row(phase.name, f"{phase.seconds:.2f}", f"{phase.bytes_sent / 1e6:.2f}", str(phase.rounds))
    console.print(table)
    sent = sum(r.total.bytes_sent for r in reports) / 1e6
    memory = max(r.peak_memory for r in reports) / 1e9
    if reports[0].link:
        console.print(notice(reports[0].link), markup=False)
    console.print(f"all {len(reports)} parties sent {sent:.1f} MB; peak memory {memory:.2f} GB a party")
