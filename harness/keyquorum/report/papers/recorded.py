"""Recorded measurements: rows of the tables in ``results``, and whether the history has their commits."""

from __future__ import annotations

import csv
import statistics
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from keyquorum.model.errors import KeyQuorumError

Record = dict[str, str]
CASE = ("suite", "name", "backend", "protocol", "parties", "parameters", "batch", "link")
ORIGIN = ("commit", "machine", "cores", "busy", "utc")
OF_RUNS = ("accuracy", "digits", "logit_error", "precision_bits")
"""Columns of sweeps whose suite has such figures."""
SHORT = 12
"""Digits of a commit in tables."""


class HistoryError(KeyQuorumError):
    """The history of the project is not here, so that nobody can say of which state results are."""


@dataclass(frozen=True)
class History:
    """The commits from which HEAD comes. ``order``: the same, the newest first."""

    commits: frozenset[str]
    order: tuple[str, ...] = ()

    @classmethod
    def of(cls, folder: Path) -> History:
        """The history of the checkout around a folder. Raises HistoryError if there is none, or only its end."""
        shallow = _git(folder, "rev-parse", "--is-shallow-repository")
        listed = _git(folder, "rev-list", "HEAD")
        if listed is None:
            raise HistoryError(f"{folder.resolve()}: no history of commits here: run it in a checkout of the project")
        if shallow == "true":
            raise HistoryError(f"{folder.resolve()}: the checkout has only the end of the history: fetch the rest with git fetch --unshallow")
        return cls(frozenset(listed.split()), tuple(listed.split()))

    @cached_property
    def _short(self) -> frozenset[str]:
        return frozenset(commit[:SHORT] for commit in self.commits)

    @cached_property
    def _ages(self) -> dict[str, int]:
        return {commit[:SHORT]: age for age, commit in enumerate(self.order)}

    def age(self, commit: str) -> int:
        """The number of commits after this one; 0 if that is not known."""
        return self._ages.get(commit[:SHORT], 0)

    def refusal(self, commit: str) -> str:
        """Why results of this commit do not count; empty if they do."""
        if not commit:
            return "no commit is recorded"
        if commit.endswith("+"):
            return f"recorded with changes that no commit has ({commit})"
        if commit[:SHORT] not in self._short and not any(known.startswith(commit) for known in self.commits):
            return f"recorded at {commit}, which is not of this history"
        return ""


def _git(folder: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=20, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def read(path: Path) -> list[Record]:
    """The rows of a table of results; of a sweep of ``keyquorum bench`` one for each measurement; no rows if there is no such table."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return measurements(rows) if rows and "repeat" in rows[0] else rows


def measurements(rows: Iterable[Record]) -> list[Record]:
    """Measurements of a sweep: one for each case with its whole runs (``phase`` is empty), and one for each of its phases.

    Times are those of the slowest party: medians over the runs, with the fastest and the slowest. ``cpu_party``: CPU seconds of the busiest party;
    ``cpu_online_party``: without its offline phase. Accuracy and the like are those of the first run; empty where a table has none.
    """
    found: dict[tuple[str, ...], list[Record]] = {}
    for row in rows:
        if row["status"] == "ok":
            who = tuple(row[name] for name in CASE)
            found.setdefault((*who, ""), []).append(row)
            found.setdefault((*who, row["phase"]), []).append(row)
    return [_measurement(dict(zip((*CASE, "phase"), key, strict=True)), of) for key, of in found.items()]


def _measurement(case: Record, rows: list[Record]) -> Record:
    def of_runs(value: Callable[[Record], float]) -> list[float]:
        """For each run the largest sum over the phases of a party."""
        sums: dict[tuple[str, str], float] = {}
        for row in rows:
            key = row["repeat"], row["party"]
            sums[key] = sums.get(key, 0.0) + value(row)
        runs = {repeat: [total for (other, _), total in sums.items() if other == repeat] for repeat, _ in sums}
        return [max(totals) for totals in runs.values()]

    made = case | {name: rows[0][name] for name in ORIGIN} | {"rtt_ms": rows[0]["rtt_ms"]} | {name: rows[0].get(name) or "" for name in OF_RUNS}
    times = {
        "seconds": lambda row: float(row["seconds"]),
        "online_seconds": lambda row: float(row["seconds"]) - float(row["offline_seconds"]),
        "cpu_party": lambda row: float(row["cpu_seconds"]),
        "cpu_online_party": lambda row: float(row["cpu_seconds"]) * (row["phase"] != "offline"),
        "sent": lambda row: float(row["bytes_sent"]),
    }  # fmt: skip
    for name, value in times.items():
        values = of_runs(value)
        low, high = min(values), max(values)
        made |= {name: repr(statistics.median(values)), f"{name}_low": repr(low), f"{name}_high": repr(high), "runs": str(len(values))}
    return made


def same(cell: str | None, wanted: object) -> bool:
    """Whether a cell of a table of results is this value: as a number, or as text in either case."""
    if cell is None or wanted is None:
        return False
    try:
        return float(cell) == float(str(wanted))
    except ValueError:
        return cell.casefold() == str(wanted).casefold()


def matches(row: Mapping[str, str], wanted: Mapping[str, object]) -> bool:
    """Whether cells of a recorded row have these values (for a list: one of its values)."""
    return all(any(same(row.get(name), v) for v in (value if isinstance(value, list) else [value])) for name, value in wanted.items())
