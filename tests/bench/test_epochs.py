"""``python -m bench.epochs``: every change runs between processes, and its bytes and rounds are those of its plan."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest
from bench import epochs
from bench.epochs import BENCH, CASES, SMALL, Case
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


def test_cases_are_known_by_what_is_measured() -> None:
    names = [BENCH.label(case) for case in CASES]
    assert len(set(names)) == len(names) and {case.what for case in CASES} == set(epochs.CHANGES)
