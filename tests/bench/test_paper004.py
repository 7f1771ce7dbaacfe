"""The comparison with GMPFHE: it runs, and compares with the paper's own figures."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from bench import paper004
from keyquorum.sweep.rows import commit


@pytest.mark.parametrize(
    ("table", "match", "parties", "quantity", "wanted"),
    [
        ("2", {}, 4, "communication_kb", 32.92),
        ("3", {"phi_m": 23040, "hamming_weight": 64}, 2, "seconds", 42),
        ("3", {"phi_m": 23040, "hamming_weight": 64}, 4, "seconds", None),  # illegible
        ("4", {"operation": "Zq to bits"}, 2, "us", 549),
        ("5", {"operation": "KeyGen"}, 4, "seconds", 1207),
        ("2", {}, 3, "ms", None),
    ],
)
def test_the_papers_figures(table: str, match: dict[str, object], parties: int, quantity: str, wanted: float | None) -> None:
    assert paper004.paper_figure(table, match, parties, quantity) == wanted


def test_every_method_has_a_row_of_the_paper() -> None:
    for method in paper004.methods():
        for parties in (2, 4):
            assert paper004.paper_figure(method.table, method.match, parties, method.traffic), method.row
    rows = {method.row for method in paper004.methods() if method.table == "4"}
    assert rows == {"Z2 to Zq", "Z3 to Zq", "Zq to bits"}, "all rows of table 4"


def test_it_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "paper004.csv"
    assert paper004.BENCH.main(["--quick", "--parties", "2", "--repeats", "1", "--output", str(output)]) == 0
    lines = [text for text in capsys.readouterr().out.splitlines() if text.startswith("paper004: table=")]
    with output.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["table"] for row in rows} == {"2", "3", "4", "5"}
    assert all(float(row["ours"]) > 0 and row["commit"] == commit() and row["command"] and row["machine"] and row["cores"] for row in rows)
    best = [row for row in rows if row["best"] == "yes"]
    assert sorted(row["row"] for row in best) == sorted(2 * list({row["row"] for row in rows})), "one method a row"
    for row in rows:
        if row["paper"]:
            assert float(row["ratio"]) == pytest.approx(float(row["paper"]) / float(row["ours"]), rel=0.01)
        else:
            assert row["table"] in "35", "another size than the paper's"
    assert lines == [paper004.BENCH.line(dict(row)) for row in rows]
