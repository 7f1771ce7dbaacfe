"""``python -m bench.epochs``: every change runs between processes, and its bytes and rounds are those of its plan."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest
from bench import epochs
from bench.epochs import BENCH, CASES, PAIR, SMALL, THREE, VERIFIED_THREE, Case, reshare
from keyquorum.model.chosen_committees import REPLICATED, SHAMIR


def test_every_change_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With small keys. A refresh sends statements alone; a recovered party gets public files, and two summands, or a point of each of two helpers."""
    small = (Case("refresh", REPLICATED, 3, 1, SMALL), Case("recover", REPLICATED, 3, 1, SMALL), Case("recover", SHAMIR, 3, 1, "lwe53-p16"))
    monkeypatch.setattr(epochs, "BENCH", replace(BENCH, cases=lambda options: small))
    path = tmp_path / "epochs.csv"
    assert epochs.BENCH.main(["--runs", "1", "--output", str(path)]) == 0
    with path.open(newline="") as file:
        refresh, recover, of_shamir = csv.DictReader(file)
    assert [row["what"] for row in (refresh, recover, of_shamir)] == ["refresh", "recover", "recover"]
    assert 0 < float(refresh["sent_kb"]) < 40
    # 2 x 1,024 words, and a public key of none; 2 x 2,048 words, and a public key of 16 kB
    assert 16.4 < float(recover["sent_kb"]) < 16.4 + 20 and float(recover["disk_mb"]) == pytest.approx(0.0164, abs=0.001)
    assert 32.8 + 16 < float(of_shamir["sent_kb"]) < 32.8 + 16 + 20
    assert 0 < float(of_shamir["seconds"]) <= float(of_shamir["command_seconds"]) and of_shamir["expected"] == ""


def test_resharings_run_as_often_as_they_are_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs: the key goes back in between. A pair that is refused is left out, with its reason."""
    refused = reshare(THREE, ("mascot", 2, 1), SMALL)
    small = (reshare(THREE, PAIR, SMALL), reshare(PAIR, THREE, SMALL, 0.5), refused)
    monkeypatch.setattr(epochs, "BENCH", replace(BENCH, cases=lambda options: small))
    path = tmp_path / "epochs.csv"
    assert epochs.BENCH.main(["--runs", "1", "--output", str(path)]) == 0
    with path.open(newline="") as file:
        found = csv.DictReader(file)
        down, up = found
    assert found.fieldnames is not None and tuple(found.fieldnames[: len(epochs.COLUMNS)]) == epochs.COLUMNS
    assert [row["what"] for row in (down, up)] == ["reshare to semi 2", "reshare to rep-field 3"]
    # two words of 1,024 elements from two dealers, half of it as seeds; statements besides
    assert 16 < float(down["sent_kb"]) < 16.4 + 120 and float(down["disk_mb"]) == pytest.approx(0.0082, abs=0.001)
    assert 32 < float(up["sent_kb"]) < 32.8 + 150 and float(up["disk_mb"]) == pytest.approx(0.0164, abs=0.001) and up["expected"] == "0.5"


def test_cases_are_known_by_what_is_measured() -> None:
    names = [(case.what, case.protocol, case.parties, case.threshold, case.parameters) for case in CASES]
    assert len(set(names)) == len(names) and {case.what for case in CASES if case.to is None} == set(epochs.CHANGES)
    assert any(case.protocol == VERIFIED_THREE[0] and case.to is not None for case in CASES)
