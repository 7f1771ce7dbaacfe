"""Whether a step has been measured: from the commits of its rows."""

from __future__ import annotations

import csv
import subprocess
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

from keyquorum.sweep.rows import MEASURED

from .steps import Step

DONE, STALE, MISSING, UNFINISHED = "done", "stale", "missing", "unfinished"
NOT_MEASURED = ("params/published", "harness/keyquorum/report", "harness/bench/papers", "*.md")
"""What lies in the folders of :data:`MEASURED` and changes no result."""


@dataclass(frozen=True)
class Progress:
    """Measured steps of a checkout. ``root``: its folder; ``logs``: where the logs and the marks of unfinished steps are."""

    root: Path
    logs: Path

    def log(self, step: Step) -> Path:
        """The log of a step."""
        return self.logs / f"{step.name.replace(' ', '-')}.log"

    def mark(self, step: Step) -> Path:
        """A file that is there from the start of a step to its good end."""
        return self.log(step).with_suffix(".unfinished")

    def state(self, step: Step) -> str:
        """``done``: rows with all wanted values have the state of HEAD; ``stale``: there are rows, of another state; ``unfinished``: the step did not end well."""
        rows = [row for row in _table(self.root / "results" / step.table) if row.get("status", "ok") == "ok"]
        mine = [row for row in rows if all(row.get(name) in values for name, values in step.rows.items())]
        if not mine:
            return MISSING
        now = [row for row in mine if self.current(row.get("commit") or "")]
        whole = all(
            any(all(row[name] == value for name, value in zip(step.rows, values, strict=True)) for row in now)
            for values in product(*step.rows.values())
        )
        if not now or not whole or (step.sweep and len(now) < len(mine)):
            return STALE
        return UNFINISHED if self.mark(step).exists() else DONE

    def current(self, commit: str) -> bool:
        """Whether a commit is HEAD or before it, and nothing that is measured has changed since."""
        return bool(commit) and not commit.endswith("+") and _unchanged(self.root, commit)

    def uncommitted(self) -> list[str]:
        """Changes of what is measured that no commit has: rows that are recorded with them count nowhere."""
        return _git(self.root, "status", "--porcelain", "--untracked-files=no", "--", *MEASURED).stdout.splitlines()


def _table(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@cache
def _unchanged(root: Path, commit: str) -> bool:
    folders = [*MEASURED, *(f":(exclude){name}" for name in NOT_MEASURED)]
    return all(
        _git(root, *words).returncode == 0
        for words in (("merge-base", "--is-ancestor", commit, "HEAD"), ("diff", "--quiet", commit, "HEAD", "--", *folders))
    )


def _git(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, timeout=60, check=False)
