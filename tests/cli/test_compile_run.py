"""MP-SPDZ's command line on the embedded engine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "Scripts" / "compile-run.py"


def compile_run(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT), *args], cwd=folder, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    "options",
    [
        ["-E", "ring", "-R", "64", "-Z", "3", "sample_cbd", "100", "bits"],
        ["-E", "rep-field", "sample_cbd", "100", "bits", "--", "-P", "1152921504606584833", "-e"],
        ["-E", "shamir", "-P", "2305843009213693951", "sample_cbd", "100", "arith", "--", "-N", "5", "-T", "2"],
        ["-E", "emulate", "sample_cbd", "100", "bits"],
    ],
    ids=lambda o: o[1],
)
def test_runs(tmp_path: Path, options: list[str]) -> None:
    done = compile_run(tmp_path, *options)
    assert done.returncode == 0, done.stderr
    assert "Time = " in done.stdout and "Data sent = " in done.stdout
    assert list((tmp_path / "Persistence").iterdir())


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    done = compile_run(tmp_path, "-E", "rep-field", "-R", "64", "sample_cbd", "10")
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "-P" in done.stderr
    assert compile_run(tmp_path, "-E", "mascot", "sample_cbd", "10").returncode == 2
