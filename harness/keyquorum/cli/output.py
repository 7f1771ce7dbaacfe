"""What the command line prints: results on standard output, errors and progress on standard error."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.table import Table

from keyquorum.model.committee import Committee
from keyquorum.model.links import notice
from keyquorum.parties import RunReport
from keyquorum.parties.context import Progress
from keyquorum.parties.worker import INTERRUPTED, Waiting

console = Console(highlight=False, soft_wrap=True)
errors = Console(stderr=True, highlight=False, soft_wrap=True)

SHOW_AFTER = 1.0
"""Seconds after which a bar appears, or a line that says for whom we wait."""
INTERRUPT_SECONDS = 3.0
"""Seconds after Ctrl-C in which a party tells the others."""


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


def waiting_lines(committee: Committee) -> Waiting:
    """Says on standard error for whom a party waits, after a second and whenever that changes."""
    start, said = time.monotonic(), list[int]()

    def report(missing: list[int]) -> None:
        nonlocal said
        if missing != said and time.monotonic() - start > SHOW_AFTER:
            said = missing
            places = ", ".join(f"party {p} ({committee.parties[p].host}:{committee.parties[p].port})" for p in missing)
            errors.print(f"waiting for {places}", markup=False)

    return report


def print_summary(party: int, job: dict[str, Any], result: dict[str, Any], as_json: bool) -> None:
    """What one party of a job did, and what it cost this party: a few lines, or one line of JSON."""
    report = RunReport.from_json(result["report"])
    total = report.total
    cost = {"seconds": round(total.seconds, 3), "bytes_sent": total.bytes_sent, "rounds": total.rounds, "peak_memory": report.peak_memory}
    if as_json:
        rest = {name: value for name, value in result.items() if name != "report"}
        console.print(json.dumps({"party": party, "job": job["kind"], **rest, **cost}), markup=False)
        return
    if "links" in result:
        console.print(result["links"], markup=False)
    for phase in report.phases:
        console.print(f"  {phase.name:12} {phase.seconds:8.2f} s {phase.bytes_sent / 1e6:10.2f} MB sent {phase.rounds:6} rounds", markup=False)
    what = f"party {party}: {job['kind']}"
    if "key" in job:
        what += f", key {job['key']} ({result['key_id']})" if "key_id" in result else f", key {job['key']}"
    console.print(f"{what}: done in {total.seconds:.2f} s, {total.bytes_sent / 1e6:.2f} MB sent, {total.rounds} rounds", markup=False)
    for path in result.get("outputs", []):
        console.print(f"party {party} wrote {path}", markup=False)
    if "folder" in result:
        console.print(f"party {party} wrote {result['folder']}", markup=False)
    if result.get("receiver", party) != party:
        console.print(f"party {result['receiver']} has the result", markup=False)


@contextmanager
def ends_at_interrupt(text: str) -> Iterator[None]:
    """Ends this process with the line ``text`` and exit code 130 some seconds after Ctrl-C, if it has not ended by then: it may wait for
    another party, where Python handles no signal."""
    reading, writing = socket.socketpair()
    writing.setblocking(False)
    done = threading.Event()

    def end() -> None:
        while number := reading.recv(1):
            if number[0] == signal.SIGINT:
                if not done.wait(INTERRUPT_SECONDS):
                    fail(text)
                    os._exit(INTERRUPTED)
                return

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=end, daemon=True).start()
    try:
        yield
    finally:
        done.set()
        signal.set_wakeup_fd(before)
        writing.close()
