"""``python -m bench.ghs``: decryption by both ways is right at the borders, rows stand beside the paper's figures, and their mapping is complete."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict
from pathlib import Path

import pytest
from bench import ghs, ghs_decryption
from bench.ghs import BENCH, Case, cases
from bench.ghs_decryption import WAYS, ghs_decrypt_job
from keyquorum import api
from keyquorum.model import published
from keyquorum.parties import run_in_process
from keyquorum.report.papers import table
from keyquorum.report.papers.recorded import History

from tests.schemes.test_ghs_decrypt import small_set

COMMIT = "c" * 40


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.filterwarnings("ignore::keyquorum.fhe.errors.SecurityWarning")
def test_both_ways_decrypt_at_the_borders(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(small_set(105)).items()}
    (tmp_path / "small.toml").write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in numbers.items()))
    job = {"parameters": str(tmp_path / "small.toml"), "way": way, "count": 2, "runs": 1}
    found = run_in_process(api.in_process_committee(2, "semi"), lambda context: ghs_decrypt_job(context, job))
    assert [one["wrong"] for one in found] == [0, 0] and ghs_decryption.steps_of(found) == (
        ["offline", "online"] if way == "rounding" else ["offline and online"]
    )
    assert all(cost["sent"] > 0 and cost["rounds"] > 0 for one in found for cost in one["runs"][0].values())
    # the receiver compares: a summand that is off by half of q makes every coefficient wrong
    share = ghs_decryption.with_phase
    monkeypatch.setattr(ghs_decryption, "with_phase", lambda order, q, secret, noise, rng: share(order, q, secret, noise + (q + 1) // 2, rng))
    assert run_in_process(api.in_process_committee(2, "semi"), lambda context: ghs_decrypt_job(context, job))[0]["wrong"] > 0


def test_every_figure_that_is_measured_has_a_case_and_a_rule(tmp_path: Path) -> None:
    """A table with a row of every case: keys, decryption and transforms of the paper all get rows of ours."""
    made = [case for case in cases(BENCH._parser().parse_args([])) if case.what != "decryption-bits"]
    rows = [
        {
            **(case.columns if case.noise or "decryption" in case.what else vars(case)),
            "step": step,
            "seconds": "1",
            "gb": "1",
            "commit": COMMIT,
            "runs": "1",
        }
        for case in made
        for step in (("offline", "online") if "decryption" in case.what else ("",))
    ]
    with (tmp_path / "ghs.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [*ghs.COLUMNS, "commit"], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    found = [row for row in table.make(tmp_path, History(frozenset({COMMIT}))).rows if row["ours"]]
    ours = (*ghs.TABLES.values(), "004_section6_ntt")
    cells = {row["cell"] for row in found if row["cell"].startswith(ours)}
    measured = [row for name in ghs.TABLES.values() for row in published.load(name) if row["operation"] not in ("Enc", "Eval")]
    assert len(cells) == 2 * len(measured) + len(published.load("004_section6_ntt"))
    assert {row["adversary"] for row in found if row["cell"].startswith(ours[:2])} == {"semi-honest"}
    assert Case("keys", "ghs-53261", "cbd", "paper004-wan").paper("KeyGen") == {"paper_seconds": "78879", "paper_gb": "909"}
    assert Case("keys", "ghs-53261", "cbd", "paper004-wan").shared_link == "paper004-wan,shared"


def test_rows_that_are_measured_again_replace_their_rows(tmp_path: Path) -> None:
    output = tmp_path / "ghs.csv"
    for what in ("transform", "transform,transform-inverse"):
        assert BENCH.main(["--what", what, "--parameters", "ckks-16384-seed004", "--output", str(output)]) == 0
    with output.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["what"], row["link"], row["step"]) for row in rows] == [("transform", "none", ""), ("transform-inverse", "none", "")]
    assert all(float(row["seconds"]) > 0 and row["paper_seconds"] == "0.00581" and row["commit"] for row in rows)
