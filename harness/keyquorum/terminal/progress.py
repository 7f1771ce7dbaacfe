"""Progress of long commands on standard error: bars on a terminal, lines elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from keyquorum.parties.context import Progress

from .output import LINE_AFTER, SHOW_AFTER, choice, errors


@contextmanager
def progress_bars() -> Iterator[Progress]:
    """Reports phases. A terminal gets bars, for commands that take longer than a second. Otherwise there is a line every LINE_AFTER seconds, also
    while a phase makes no progress. With --verbose a line is printed when a phase begins; with --quiet nothing."""
    if choice.quiet:
        yield lambda phase, done, total: None
    elif errors.is_terminal and not choice.verbose:
        with _bars() as report:
            yield report
    else:
        with _lines() as report:
            yield report


@contextmanager
def _bars() -> Iterator[Progress]:
    columns = (TextColumn("{task.description:12}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    bars = Bars(*columns, console=errors, transient=True)
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


class _Lines:
    """The last report, and a thread that prints it every LINE_AFTER seconds."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._last: tuple[str, int, int] | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def report(self, phase: str, done: int, total: int) -> None:
        begins = self._last is None or self._last[0] != phase
        self._last = (phase, done, total)
        if begins and choice.verbose:
            self._print()

    def _print(self) -> None:
        where = "{}: {} of {}, ".format(*self._last) if self._last is not None else ""
        errors.print(f"progress: {where}{time.monotonic() - self._start:.0f} s", markup=False)

    def _run(self) -> None:
        while not self._ended.wait(LINE_AFTER):
            self._print()

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()


@contextmanager
def _lines() -> Iterator[Progress]:
    lines = _Lines()
    lines.start()
    try:
        yield lines.report
    finally:
        lines.end()
