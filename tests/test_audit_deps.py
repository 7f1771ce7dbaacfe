"""`make audit-deps`: the outputs of its tools give ok, found or not checked, and never ok for a check that was not made."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from tests.commands import run as forked

SCRIPT = Path(__file__).resolve().parents[1] / "Scripts" / "audit_deps.py"
GOOD = "case $* in *fetch*) exit 0;; *advisories*) echo 'advisories ok' >&2;; *) echo 'bans ok, licenses ok, sources ok' >&2;; esac"
UNREACHABLE = (
    "case $* in *fetch*) echo 'fatal: Could not resolve host: github.com' >&2; exit 1;; *) echo 'bans ok, licenses ok, sources ok' >&2;; esac"
)
VULNERABLE = "case $* in *fetch*) exit 0;; *advisories*) echo 'advisories FAILED' >&2; exit 1;; *) echo 'bans ok, licenses ok, sources ok' >&2;; esac"
UNLICENSED = "case $* in *fetch*) exit 0;; *advisories*) echo 'advisories ok' >&2;; *) echo 'bans ok, licenses FAILED, sources ok' >&2; exit 4;; esac"
SILENT = "exit 0"


def answer(**fields: object) -> str:
    """What pip-audit prints of one package."""
    package = {"name": "numpy", "version": metadata.version("numpy"), **fields}
    return f"echo '{json.dumps({'dependencies': [package]})}'"


CLEAN = answer(vulns=[])
SKIPPED = answer(skip_reason="Dependency not found on PyPI")


def run(folder: Path, deny: str, audit: str) -> tuple[int, list[str]]:
    """Exit code and lines of the script with two tools that print these texts."""
    tools = []
    for name, text in (("cargo-deny", deny), ("pip-audit", audit)):
        path = folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        tools += [f"--{name}", str(path)]
    done = forked([sys.executable, str(SCRIPT), *tools], folder)
    assert not done.stderr
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize(
    ("deny", "audit", "code", "said"),
    [
        (GOOD, CLEAN, 0, "audit-deps: 3 ok, 0 found, 0 not checked"),
        (UNREACHABLE, CLEAN, 3, "crates, advisories: not checked: the database of RustSec cannot be fetched: fatal: Could not resolve host: github.com"),
        (VULNERABLE, CLEAN, 1, "audit-deps: 2 ok, 1 found, 0 not checked"),
        (UNLICENSED, CLEAN, 1, "audit-deps: 2 ok, 1 found, 0 not checked"),
        (SILENT, CLEAN, 3, "audit-deps: 1 ok, 0 found, 2 not checked"),
        (GOOD, SKIPPED, 3, "audit-deps: 2 ok, 0 found, 1 not checked"),
        (GOOD, "echo 'ConnectionError: pypi.org' >&2; exit 1", 3, "Python packages, advisories: not checked: the index of PyPI cannot be asked: ConnectionError: pypi.org"),
        (GOOD, answer(vulns=[{"id": "PYSEC-1"}]), 1, f"Python packages, advisories: found: numpy {metadata.version('numpy')}: PYSEC-1"),
        (VULNERABLE, SKIPPED, 1, "audit-deps: 1 ok, 1 found, 1 not checked"),
    ],
)  # fmt: skip
def test_what_the_tools_say(deny: str, audit: str, code: int, said: str, tmp_path: Path) -> None:
    got, lines = run(tmp_path, deny, audit)
    assert got == code and said in lines, lines


def test_a_tool_that_is_missing_checks_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--cargo-deny", str(tmp_path / "x"), "--pip-audit", str(tmp_path / "y")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3 and done.stdout.splitlines()[-1] == "audit-deps: 0 ok, 0 found, 3 not checked"
