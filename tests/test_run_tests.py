"""Scripts/run_tests.py: a test that fails is run once more, alone, and named if it passes then."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[1] / "Scripts" / "run_tests.py"
FLAKY = """
from pathlib import Path

def test_second_time():
    mark = Path(__file__).with_name("mark")
    ran = mark.exists()
    mark.touch()
    assert ran

def test_good():
    pass
"""


def run(folder: Path, text: str, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(text)
    command = [sys.executable, str(SCRIPT), "-p", "no:cacheprovider", "--rootdir", str(folder), *words, str(folder / "test_it.py")]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def test_a_test_that_passes_the_second_time_is_named(tmp_path: Path) -> None:
    done = run(tmp_path, FLAKY, "-n", "2")
    assert done.returncode == 0, done.stdout
    assert [line for line in done.stdout.splitlines() if line.startswith("flaky: ")] == ["flaky: test_it.py::test_second_time"]
    assert "1 failed, 1 passed" in done.stdout
    assert "1 passed" in done.stdout.splitlines()[-1]


def test_a_test_that_fails_twice_fails(tmp_path: Path) -> None:
    done = run(tmp_path, "def test_bad():\n    assert False\n")
    assert done.returncode == 1
    assert "flaky" not in done.stdout and done.stdout.count("def test_bad") == 2


def test_many_failures_are_not_run_again(tmp_path: Path) -> None:
    done = run(tmp_path, "import pytest\n\n@pytest.mark.parametrize('i', range(6))\ndef test_bad(i):\n    assert False\n")
    assert done.returncode == 1
    assert done.stdout.count("6 failed") == 1 and "once more" not in done.stdout


def test_errors_of_collection_are_not_run_again(tmp_path: Path) -> None:
    done = run(tmp_path, "import nothing_of_this_name\n")
    assert done.returncode == 2 and "once more" not in done.stdout


def test_without_failures_there_is_one_run(tmp_path: Path) -> None:
    done = run(tmp_path, "def test_good():\n    pass\n")
    assert done.returncode == 0 and "once more" not in done.stdout
