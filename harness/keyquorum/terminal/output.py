"""Printing of the command line: results on standard output, errors and progress on standard error."""

from __future__ import annotations

import json
import math
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from rich.console import Console
from rich.table import Table

from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError
from keyquorum.model.links import notice
from keyquorum.model.plain import Json
from keyquorum.parties import RunReport
from keyquorum.parties.worker import INTERRUPTED, Waiting

console = Console(highlight=False, soft_wrap=True)
"""Progress and costs, for people. Silent with --quiet and with --json."""
printed = Console(highlight=False, soft_wrap=True)
"""Results of commands: numbers, lists, descriptions. Silent with --json, which prints them as JSON (:func:`emit`)."""
errors = Console(stderr=True, highlight=False, soft_wrap=True)

SHOW_AFTER = 1.0
"""Seconds after which a bar appears, or a line with the parties that are missing."""
LINE_AFTER = 10.0
"""Seconds between lines of progress where standard error is not a terminal."""
INTERRUPT_SECONDS = 3.0
"""Seconds after Ctrl-C that a party has to send the reason to the others."""


@dataclass
class Chosen:
    """The options of a command that concern its output."""

    as_json: bool = False
    quiet: bool = False
    verbose: bool = False


choice = Chosen()
"""The options of the command that runs, or of the last one."""


@contextmanager
def chosen(as_json: bool, quiet: bool, verbose: bool) -> Iterator[None]:
    """Output as the options say while a command runs. Raises ParameterError for --quiet with --verbose."""
    if quiet and verbose:
        raise ParameterError("--quiet and --verbose contradict each other: choose one")
    choice.as_json, choice.quiet, choice.verbose = as_json, quiet, verbose
    console.quiet, printed.quiet = as_json or quiet, as_json
    try:
        yield
    finally:
        console.quiet = printed.quiet = choice.as_json = choice.quiet = False  # verbose stays, for the error that ends the process


def emit(result: Json) -> None:
    """Prints the result of a command as one line of JSON, if --json was given. Every command calls this once; serve prints its events itself."""
    if choice.as_json:
        print(json.dumps(_plain(result), allow_nan=False), flush=True)


def _plain(value: object) -> Any:
    """A value in the types of JSON: paths as texts, arrays as lists, and null for NaN and infinities."""
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, (Path, complex)) else value


def costs(reports: Sequence[RunReport]) -> list[Json]:
    """The cost of a run at each party, as plain data: phases with seconds, bytes sent and rounds, and the peak of memory in bytes."""
    return [
        {
            "party": report.party,
            "phases": [{"name": p.name, "seconds": p.seconds, "bytes_sent": p.bytes_sent, "rounds": p.rounds} for p in report.phases],
            "peak_memory": report.peak_memory,
        }
        for report in reports
    ]


def fail(text: str, error: BaseException | None = None) -> None:
    """Prints an error in one line; with --verbose further lines have its type and its cause."""
    errors.print("error: " + " ".join(text.split()), markup=False)
    cause = error.__cause__ if error is not None else None
    if choice.verbose and error is not None:
        errors.print(f"  kind: {type(error).__name__}", markup=False)
        if cause is not None:
            errors.print(f"  cause: {type(cause).__name__}: {' '.join(str(cause).split())}", markup=False)


def show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: TextIO | None = None, line: str | None = None
) -> None:
    """Prints a warning in one conspicuous line; replaces :func:`warnings.showwarning`."""
    errors.print("WARNING: " + " ".join(str(message).split()), markup=False)


def print_reports(reports: Sequence[RunReport]) -> None:
    """Prints the cost of each phase at party 0, and the cost of all parties together."""
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
    if choice.verbose:
        for report in reports:
            total = report.total
            console.print(
                f"  party {report.party}: {total.seconds:.2f} s, {total.bytes_sent / 1e6:.2f} MB sent, {total.rounds} rounds, "
                f"{report.cpu_seconds:.2f} s of CPU, {report.peak_memory / 1e9:.2f} GB of memory",
                markup=False,
            )


def waiting_lines(committee: Committee) -> Waiting:
    """A callback that prints the missing parties on standard error, after a second and whenever they change."""
    start, said = time.monotonic(), list[int]()

    def report(missing: list[int]) -> None:
        nonlocal said
        if missing != said and time.monotonic() - start > SHOW_AFTER:
            said = missing
            addresses = ", ".join(f"party {committee.number_of(p)} ({committee.parties[p].place})" for p in missing)
            errors.print(f"waiting for {addresses}", markup=False)

    return report


def print_summary(party: int, job: Json, result: Json) -> None:
    """Prints what one party of a job did, and its cost: a few lines, or one line of JSON."""
    report = RunReport.from_json(result["report"])
    total = report.total
    cost = {"seconds": round(total.seconds, 3), "bytes_sent": total.bytes_sent, "rounds": total.rounds, "peak_memory": report.peak_memory}
    rest = {name: value for name, value in result.items() if name != "report"}
    emit({"party": party, "job": job["kind"], **rest, **cost})
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
