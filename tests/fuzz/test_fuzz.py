"""A short run of every target with a fixed seed, and the driver itself."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from keyquorum.model.errors import KeyQuorumError

from . import __main__ as command
from .driver import MEMORY_CAP, Report, Target, run, try_input
from .targets import TARGETS

INPUTS = 2048


@pytest.mark.filterwarnings("ignore")  # numpy remarks on headers that it reads in the end
@pytest.mark.parametrize("name", TARGETS)
def test_damaged_inputs_are_refused_in_one_line(name: str, tmp_path: Path) -> None:
    report = run(TARGETS[name], "1", inputs=INPUTS, folder=tmp_path)
    assert not report.crash, report.crash
    assert report.inputs == INPUTS
    assert 0 < report.accepted < INPUTS  # neither is every mutation harmless, nor does every one fail at the first byte


def _report(parse: object, tmp_path: Path) -> Report:
    return run(Target("self-test", parse, lambda: [b"a valid input"] * 2), "1", inputs=5000, folder=tmp_path)  # type: ignore[arg-type]


def test_an_error_of_another_type_is_found_and_saved(tmp_path: Path) -> None:
    def parse(data: bytes) -> None:
        if data.endswith(b"\xff"):
            raise IndexError("beyond the end")
        if data.startswith(b"\xff"):
            raise KeyQuorumError("refused: give another")

    report = _report(parse, tmp_path)
    assert report.crash.startswith("IndexError: beyond the end")
    (saved,) = tmp_path.iterdir()
    assert saved.read_bytes().endswith(b"\xff")
    assert saved.name in report.crash
    assert report.line().endswith("crashes=1")


def test_an_allocation_on_the_word_of_an_input_is_found(tmp_path: Path) -> None:
    kept = []

    def parse(data: bytes) -> None:
        if data[:1] >= b"\x80":
            kept.append(b"\1" * (2 * MEMORY_CAP))
            kept.clear()

    # The peak of the whole process counts, and other tests may have raised it.
    import tests.fuzz.driver as driver

    peaks = iter([0, *[2 * MEMORY_CAP] * 1000])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "_peak", lambda: next(peaks))
        report = _report(parse, tmp_path)
    assert "grew by more than" in report.crash
    (saved,) = tmp_path.iterdir()
    assert saved.read_bytes()[:1] >= b"\x80"  # the one of many that took most


def test_an_input_that_takes_long_is_found(tmp_path: Path) -> None:
    def parse(data: bytes) -> None:
        end = time.process_time() + (2.2 if data.endswith(b"\xff") else 0)
        while time.process_time() < end:
            pass

    assert "at most 2 are allowed" in _report(parse, tmp_path).crash


def test_saved_inputs_are_tried_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "committee-00.bin"
    path.write_bytes(b"port = ")
    assert command.main(["--input", str(path)]) == 0
    assert "refused" in capsys.readouterr().out
    unknown = tmp_path / "nothing-00.bin"
    unknown.write_bytes(b"")
    assert command.main(["--input", str(unknown)]) == 2


def test_a_run_ends_with_its_sums(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["receipt", "key-info", "--seconds", "1"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert re.fullmatch(r"fuzz: ok targets=2 inputs=[1-9]\d+ crashes=0", last)


def test_rust_targets_exist() -> None:
    source = Path(__file__).resolve().parents[2] / "Source"
    text = "".join((source / path).read_text() for path in ("net/src/fuzz.rs", "mpc/tests/fuzz.rs", "ot/tests/fuzz.rs"))
    assert set(re.findall(r'name: "([^"]+)"', text)) == set(command.RUST)
    assert all(f"fn {test.rpartition('::')[2]}()" in text for _, test in command.RUST.values())


def test_a_valid_input_is_accepted() -> None:
    assert all(try_input(TARGETS["committee"], data) for data in TARGETS["committee"].corpus())
