"""Ctrl-C while the command line loads: one line and exit code 130, no traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SLOW = """
import sys, time
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "keyquorum.cli":
            open(sys.argv[1], "w").close()
            time.sleep(60)
sys.meta_path.insert(0, Slow())
import keyquorum.__main__ as entry
entry.main()
"""
"""The entry of the command line with a module that takes long to load, so that the test can strike while it does."""


def interrupted(code: str, ready: Path, ignored: bool = False) -> tuple[int, str]:
    """Exit code and standard error of Python code that was interrupted once a file was there."""

    def ignore() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    process = subprocess.Popen(
        [sys.executable, "-c", code, str(ready)], stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT / "harness")},
        preexec_fn=ignore if ignored else None,
    )  # fmt: skip
    end = time.monotonic() + 60
    while not ready.exists():
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    try:
        _, error = process.communicate(timeout=3 if ignored else 60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return 0, ""
    return process.returncode, error


def test_ctrl_c_while_modules_are_loaded(tmp_path: Path) -> None:
    assert interrupted(SLOW, tmp_path / "ready") == (130, "error: keyquorum was interrupted; keys made before are untouched\n")


def test_a_background_command_of_a_script_goes_on(tmp_path: Path) -> None:
    """It ignores SIGINT, as the shell asked."""
    assert interrupted(SLOW, tmp_path / "ready", ignored=True) == (0, "")


@pytest.mark.parametrize("delay", [0.0, 0.1, 0.3, 0.6, 1.0])
def test_ctrl_c_in_the_first_second(tmp_path: Path, delay: float) -> None:
    """At any moment after the entry: no traceback; the command may have ended before. A process that takes itself down has no handler any more."""
    code = f"""
import sys, threading, time, os, signal
import keyquorum.__main__ as entry
open(sys.argv[1], "w").close()
sys.argv = ["keyquorum", "init", {str(tmp_path / "committee")!r}]
entry.main()
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "ready")], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "harness")},
    )  # fmt: skip
    while not (tmp_path / "ready").exists():
        time.sleep(0.01)
    time.sleep(delay + 0.05)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    ends = [(130, 1), (0, 0), *([(-signal.SIGINT, 0)] if (tmp_path / "committee" / "committee.toml").exists() else [])]
    assert "Traceback" not in error and (process.returncode, error.count("\n")) in ends, (process.returncode, error)


def test_the_command_begins_there() -> None:
    assert 'keyquorum = "keyquorum.__main__:main"' in (ROOT / "pyproject.toml").read_text()
