"""The measurement of a served committee: parties and clients are processes, and every answer is checked."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from bench import service
from bench.runner import write_table
from keyquorum.cli import app
from keyquorum.model.errors import KeyQuorumError
from typer.testing import CliRunner


def test_a_short_measurement() -> None:
    (one, few) = service.measure("semi2k", 2, [(1, 1), (2, 3)], 0.5, items=3000)
    for row, clients, count in ((one, 1, 1), (few, 2, 3)):
        assert (row["protocol"], row["n"], row["clients"], row["ciphertexts"]) == ("semi2k", 2, clients, count)
        assert row["wrong"] == row["refused"] == 0 and int(row["requests"]) >= 1
        assert 0 < float(row["p50_ms"]) <= float(row["p99_ms"]) and float(row["cpu_ms"]) > 0
        assert float(row["lwe_per_s"]) == pytest.approx(count * float(row["per_s"]), abs=0.1 * count + 0.6)


def test_inspect_knows_the_table(tmp_path: Path) -> None:
    row = service._row("semi2k", 2, "lwe64-p2", 1, 1, service.Counts([0.01], elapsed=1.0), 0.1, None)
    write_table(tmp_path / "served.csv", [row])
    assert CliRunner().invoke(app, ["inspect", str(tmp_path / "served.csv")]).output.count("a served committee (make bench-served)") == 1


def test_a_pool_that_is_empty_is_named() -> None:
    with pytest.raises(KeyQuorumError, match="all 7 requests were refused: take more --items"):
        service._row("semi2k", 2, "lwe64-p2", 1, 1, service.Counts(refused=7, elapsed=1.0), 0.1, None)


def test_rows_of_other_commits_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "commit", lambda: "ours")
    table = tmp_path / "served.csv"
    assert service._others(table) == []
    write_table(table, [{"n": 2, "commit": "theirs"}, {"n": 3, "commit": "ours"}])
    assert service._others(table) == [{"n": "2", "commit": "theirs"}]
    with table.open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 2
