"""Runs the Python tests; a test that fails is run once more, alone, after all others: ``python Scripts/run_tests.py [ARGUMENTS OF PYTEST]``.

A test that passes the second time is reported as ``flaky: TEST`` above the summary of the second run, and the exit code is 0. Such a test has a
fault of its own, which the next commit mends. A test that fails twice fails. More than ``MOST`` failures are no accident: they are not run again.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

MOST = 5
"""Failures that are run again."""
FAILED = 1
"""Exit code of pytest if tests failed, and nothing worse happened."""


class Recorder:
    """Plugin of pytest that writes the names of failed tests to a file, and prints flaky ones in a second run."""

    def __init__(self, failed: Path, again: bool) -> None:
        self.failed = failed
        self.again = again

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Called by pytest before it prints its summary, in the process that has all reports."""
        stats = terminalreporter.stats
        broken = {report.nodeid for kind in ("failed", "error") for report in stats.get(kind, [])}
        if self.again:
            for name in sorted({report.nodeid for report in stats.get("passed", [])} - broken):
                terminalreporter.write_line(f"flaky: {name}")
        else:
            self.failed.write_text("".join(f"{name}\n" for name in sorted(broken)))


def _pytest(words: Sequence[str], failed: Path, again: bool) -> int:
    """Runs pytest in a process of its own; returns its exit code."""
    environment = {**os.environ, "KEYQUORUM_FAILED_TESTS": str(failed), "KEYQUORUM_SECOND_RUN": "1" if again else ""}
    return subprocess.run([sys.executable, __file__, "--inside", *words], env=environment, check=False).returncode


def _inside(words: Sequence[str]) -> int:
    return int(pytest.main(list(words), plugins=[Recorder(Path(os.environ["KEYQUORUM_FAILED_TESTS"]), bool(os.environ["KEYQUORUM_SECOND_RUN"]))]))


def main(words: Sequence[str]) -> int:
    """Runs all tests, then the failed ones."""
    with tempfile.TemporaryDirectory(prefix="keyquorum-tests-") as folder:
        failed = Path(folder) / "failed"
        code = _pytest(words, failed, again=False)
        names = failed.read_text().splitlines() if failed.exists() else []
        if code != FAILED or not 0 < len(names) <= MOST or not all("::" in name for name in names):
            return code
        print(f"{len(names)} failed: once more, alone", flush=True)
        return _pytest(names, failed, again=True)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    sys.exit(_inside(arguments[1:]) if arguments[:1] == ["--inside"] else main(arguments))
