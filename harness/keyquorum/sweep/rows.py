"""The table of a sweep: one row for each phase of each party of each run, with the conditions of the measurement."""

from __future__ import annotations

import csv
import io
import os
import platform
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import keyquorum
from keyquorum.model.committee import write_atomically
from keyquorum.model.errors import KeyQuorumError
from keyquorum.model.links import parse
from keyquorum.parties.context import COSTS

from .cases import Case, SkippedError
from .measure import Run

Row = dict[str, str]
COLUMNS = (
    "suite", "name", "backend", "protocol", "parties", "threshold", "parameters", "batch", "link", "rtt_ms", "mbit",
    "asked", "repeat", "party", "phase", *COSTS, "run_cpu_seconds", "peak_memory", "unused", "wrong", "status", "error", "security",
    "simulated_links", "version", "commit", "backend_commit", "python", "machine", "cores", "memory_gb", "load", "busy", "utc",
)  # fmt: skip
"""``asked``: runs that were requested; fewer were made if they took too long. ``status``: ok, failed or skipped (with the reason
in ``error``, and no figures). ``rtt_ms``, ``mbit``: properties of simulated
links, empty for real ones. ``unused``: items of correlated randomness that were made and not used, ``kind=number;...``.
``wrong``: wrong results of the run, for a method that may fail.
``load``: load of the machine over the minute before the measurement, which includes the sweep's own work. ``busy``: cores that
other work kept busy just before the measurement."""
RESULTS = ("accuracy", "digits", "logit_error", "precision_bits")
"""Columns after those, of tables whose suite has such figures: accuracy on so many test digits; largest difference of a logit from the network in clear,
and -log2 of it."""
MEASURED = ("Source", "harness", "Programs", "params")
"""Folders whose changes may change results."""
_CASE = ("suite", "name", "backend", "protocol", "parties", "parameters", "batch", "link")


class TableError(KeyQuorumError):
    """A table of results cannot be used."""


def identity(row: Row) -> str:
    """As :attr:`Case.identity`."""
    return "/".join(row[name] for name in _CASE)


def _git(*words: str) -> str:
    where = Path(__file__).resolve().parent
    try:
        done = subprocess.run(["git", "-C", str(where), *words], capture_output=True, text=True, timeout=20, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


@lru_cache(maxsize=1)
def commit() -> str:
    """The last commit that changed a folder of MEASURED, followed by "+" if their files have uncommitted changes; empty outside of a checkout."""
    root = _git("rev-parse", "--show-toplevel")
    if not root or (Path(root) / "harness" / "keyquorum").resolve() != Path(keyquorum.__file__).resolve().parent:
        return ""  # an installed package, perhaps within another checkout
    name = _git("-C", root, "log", "-1", "--format=%H", "--", *MEASURED)[:12]
    if not name:
        return ""
    changed = _git("-C", root, "status", "--porcelain", "--untracked-files=no", "--", *MEASURED)
    return name + ("+" if changed else "")


@lru_cache(maxsize=1)
def machine() -> str:
    """The processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    except OSError:
        names = []
    return f"{platform.machine()} {names[0] if names else platform.processor()}".strip()


@lru_cache(maxsize=1)
def _memory_gb() -> str:
    return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9:.1f}"


@dataclass(frozen=True)
class Circumstances:
    """Conditions of a measurement: requested runs; commit or version of another backend; load of the machine and busy cores at the start."""

    asked: int
    backend_commit: str = ""
    load: float = 0.0
    busy: float | None = None


def _common(case: Case, repeat: int, when: Circumstances) -> Row:
    link = parse(case.link) if case.link else None
    row = {name: str(getattr(case, name)) for name in _CASE}
    return row | {
        "threshold": str(case.threshold), "asked": str(when.asked), "repeat": str(repeat), "security": case.security,
        "rtt_ms": f"{link.rtt_ms:g}" if link else "", "mbit": f"{link.mbit:g}" if link and link.mbit else "",
        "simulated_links": "yes" if link else "no", "version": keyquorum.__version__, "commit": commit(),
        "backend_commit": when.backend_commit, "python": platform.python_version(), "machine": machine(),
        "cores": str(os.cpu_count() or 0), "memory_gb": _memory_gb(), "load": f"{when.load:.2f}", "busy": "" if when.busy is None else f"{when.busy:.2f}",
        "utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }  # fmt: skip


def rows_of(case: Case, runs: Sequence[Run], when: Circumstances) -> Iterator[Row]:
    """The rows of a measurement."""
    for repeat, run in enumerate(runs):
        common = _common(case, repeat, when)
        for report in run.reports:
            unused = ";".join(f"{kind}={count}" for kind, count in sorted(report.unused.items()))
            whole = {
                "party": str(report.party), "run_cpu_seconds": f"{report.cpu_seconds:.6g}",
                "peak_memory": str(report.peak_memory), "unused": unused, "wrong": str(run.wrong), "status": "ok",
                **{name: f"{value:.6g}" for name, value in run.results.items()},
            }  # fmt: skip
            for phase in report.phases:
                costs = {name: f"{getattr(phase, name):.6g}" if "seconds" in name else str(getattr(phase, name)) for name in COSTS}
                yield common | whole | costs | {"phase": phase.name}


def failed(case: Case, error: Exception, when: Circumstances) -> Row:
    """The row of a measurement that failed, or was skipped."""
    status = "skipped" if isinstance(error, SkippedError) else "failed"
    return _common(case, 0, when) | {"status": status, "error": " ".join(str(error).split())}


def read(path: Path) -> list[Row]:
    """The rows of a table; none if there is no such file. Raises TableError."""
    if not path.exists():
        return []
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file, strict=True)
            if tuple(reader.fieldnames or ()) not in (COLUMNS, COLUMNS + RESULTS):
                raise TableError(f"{path}: no table of this version: move it away, or start anew with --fresh")
            return [dict(row) for row in reader]
    except (csv.Error, UnicodeDecodeError) as error:
        raise TableError(f"{path}: not readable as CSV ({error}): move it away, or start anew with --fresh") from error


def write(path: Path, rows: Sequence[Row]) -> None:
    """Writes the table as a whole, so that an interrupted run leaves the previous table."""
    text = io.StringIO()
    columns = COLUMNS + RESULTS if any(row.get(name) for row in rows for name in RESULTS) else COLUMNS
    writer = csv.DictWriter(text, columns, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text.getvalue().encode(), 0o644)
