"""The examples run as their README says: each in an empty folder, with a result that it checks against the clear computation."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import keyquorum
import pytest

from tests.commands import run as forked

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
NOTEBOOK = EXAMPLES / "cost_and_threat_model.ipynb"
PRINTS = {
    "encrypted_mean": r"mean of 200 values of 'metres': 1\.\d+ under encryption, 1\.\d+ in the clear\n",
    "private_voting": r"25 votes counted, \d+ bits of the noise budget are left\n(\w+ +\d+\n){4}$",
    "two_registers": r"party 0: (\d+ visits, \d+ days, covariance \S+ = \S+)\nparty 1: \1\n$",
    "served_committee": r"(request \d: 40 messages in [\d.]+ s, the first: \[.*\]\n){3}the audit log of party 0 has 3 lines\n$",
    "password_hardening": r"ada logs in with her password, and not with another one\nthen the committee refuses: party \d: the policy allows this receiver 4 evaluations an hour and 4 are used: .*\n$",
    "pseudonyms": r"4 people, 2 in both registers: \[\('asthma', '10'\), \('none', '9'\)\]\n$",
}
"""Of each program: what it prints, among other lines."""
LONGEST = 80
"""Lines of a program."""


PACKAGE = str(Path(keyquorum.__file__).resolve().parents[1])
"""Where the package under test is, also for processes in other folders."""


def run(name: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """An example as a user starts it, in a folder of its own."""
    environment = {**os.environ, "PYTHONPATH": PACKAGE}
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments]
    return forked(command, folder, 240, environment)


@pytest.mark.parametrize("name", PRINTS)
def test_a_program(tmp_path: Path, name: str) -> None:
    done = run(name, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(PRINTS[name], done.stdout), done.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_mean_of_a_table_of_the_user(tmp_path: Path) -> None:
    """A column of the user's table, and errors of one line for what is no such column."""
    (tmp_path / "t.csv").write_text("a,b\n" + "".join(f"{i / 8},{i}\n" for i in range(5)))
    done = run("encrypted_mean", tmp_path, "t.csv", "a")
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.match(r"mean of 5 values of 'a': (\S+) under encryption, 0\.250000 in the clear\n", done.stdout)
    assert found and abs(float(found[1]) - 0.25) < 1e-5, done.stdout  # more than ten deviations of the flooding
    (tmp_path / "large.csv").write_text("a\n1\n5\n")
    for table, column, reason in (("t.csv", "c", "no column 'c'"), ("large.csv", "a", "between -4 and 4"), ("none.csv", "a", "No such file")):
        done = run("encrypted_mean", tmp_path, table, column)
        assert done.returncode == 1 and reason in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


def test_the_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All cells run, and the plot is there."""
    nbformat = pytest.importorskip("nbformat", reason="the extra test is not installed: make build")
    client = pytest.importorskip("nbclient", reason="the extra test is not installed: make build")
    pytest.importorskip("ipykernel", reason="the extra test is not installed: make build")
    monkeypatch.setenv("PYTHONPATH", PACKAGE)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert all(not cell.outputs for cell in notebook.cells if cell.cell_type == "code"), "clear the outputs before you commit"
    client.NotebookClient(notebook, timeout=240, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 1
    text = "".join(output.text for output in outputs if output.output_type == "stream" and output.name == "stdout")
    assert re.search(r"beside rep-field, semi sends [\d.]+ times as much, mascot \d+ times", text), text
    assert list(tmp_path.iterdir()) == []


def test_examples_are_short_and_listed() -> None:
    """Everything in the folder is tested here and has its line in the README of the folder."""
    programs = sorted(path.stem for path in EXAMPLES.glob("*.py"))
    assert programs == sorted(PRINTS)
    assert [name for name in programs if len((EXAMPLES / f"{name}.py").read_text().splitlines()) > LONGEST] == []
    listed = re.findall(r"^\| \[`[^`]+`\]\(([^)]+)\) \|", (EXAMPLES / "README.md").read_text(), re.M)
    assert sorted(listed) == sorted(
        ["cpp/main.cpp", "rust/src/main.rs", *(path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".ipynb"))]
    )
