"""The comparison with GMPFHE: it runs, compares with the paper's own figures, and leaves none out silently."""

from __future__ import annotations

import csv
from argparse import Namespace
from pathlib import Path

import pytest
from bench.paper004 import beside, cnn
from bench.paper004.__main__ import BENCH, Case, cases, repeats
from bench.paper004.beside import Asked, Cost, cells, paper_figure, summary
from bench.paper004.methods import methods
from keyquorum.fhe import seal
from keyquorum.fhe.parameters import load
from keyquorum.model.errors import ParameterError
from keyquorum.sweep.rows import commit

ASKED = Asked(2, "none", 5, False)


@pytest.mark.parametrize(
    ("table", "match", "parties", "quantity", "network", "wanted"),
    [
        ("2", {}, 4, "communication_kb", "LAN", 32.92),
        ("2", {}, 16, "ms", "WAN", 11.27),
        ("3", {"phi_m": 23040, "hamming_weight": 64}, 2, "seconds", "LAN", 42),
        ("3", {"phi_m": 23040, "hamming_weight": 64}, 4, "seconds", "LAN", 63),
        ("4", {"operation": "Zq to bits"}, 2, "us", "LAN", 549),
        ("5", {"operation": "KeyGen"}, 4, "seconds", "WAN", 1876),
        ("5", {"operation": "Dec"}, 8, "communication_kb", "LAN", 896),
        ("6", {"key": "swk", "protocol": "GMPFHE-CKKS", "parties": None}, 0, "mb", "LAN", 18),
        ("A", {"protocol": "CKKS"}, 0, "total_and_gates", "LAN", 5.04e11),
        ("2", {}, 3, "ms", "LAN", None),
    ],
)
def test_the_papers_figures(table: str, match: dict[str, object], parties: int, quantity: str, network: str, wanted: float | None) -> None:
    assert paper_figure(table, match, parties, quantity, network) == wanted


def test_every_method_has_a_row_of_the_paper() -> None:
    for method in methods():
        for parties in (2, 4):
            assert paper_figure(method.table, method.match, parties, method.traffic), method.row
    rows = {method.row for method in methods() if method.table == "4"}
    assert rows == {"Z2 to Zq", "Z3 to Zq", "Zq to bits"}, "all rows of table 4"


def test_a_figure_of_the_paper_without_a_row_of_ours_is_named() -> None:
    every = list(cells())
    # tables 2 to 4: 2 quantities of 8, 16 and 24 rows; table 5: KeyGen and Dec, 8 rows each
    assert len(every) == 2 * (8 + 16 + 24) + 2 * 16
    row = {"table": "2", "row": "discrete Gaussian", "cell": "discrete Gaussian", "best": "yes", "method": "F_q", **ASKED.columns}
    below = beside.compare(row, "ms", 0.5e-3, 1.62)
    above = beside.compare(row, "communication_kb", 11e3, 10.97, {"cpu_party": 0.25})
    assert (below["ratio"], above["ratio"], above["cpu_party"]) == (3.24, 0.997, 0.00025)
    lines = list(summary([below, above, beside.compare(row, "us", 1e-6, None)]))
    assert lines[0] == (
        f"paper004: compared=2 below=1 not_below=1 without_a_figure_of_the_paper=1 figures_of_the_paper_without_ours={len(every) - 2}"
    )
    assert lines[1] == "paper004: not below: discrete Gaussian, 2 parties, link none: 11.0 communication_kb, paper 10.97, CPU of a party 0.00025"
    assert "paper004: without ours: table 2, discrete Gaussian ms: 2 WAN, 4 LAN, 4 WAN, 8 LAN, 8 WAN, 16 LAN, 16 WAN" in lines
    saved = [beside.compare(row, "saved_percent", value, 83) for value in (83.4, 82.9)]
    assert [beside.better(each) for each in saved] == [True, False]


def test_costs_are_those_of_the_slowest_and_the_busiest_party() -> None:
    one = [{"seconds": s, "cpu": 1.0, "sent": 10} for s in (5.0, 1.0, 2.0)]
    other = [{"seconds": s, "cpu": 2.0, "sent": 30} for s in (4.0, 3.0, 1.0)]
    assert Cost.of([one, other], 2) == Cost(1.5, 1.0, 15, 20)


def test_cases_runs_and_links() -> None:
    found = list(cases(Namespace(parties="2,16", link="none,paper004-wan", quick=False)))
    assert Case("Z2 to Zq", 16, "paper004-wan") in found and Case("decryption flooded", 2, "none") in found
    assert sum(case.row.startswith("key generation") for case in found) == 3 * 4
    assert sum(case.parties == 2 and case.row.startswith(("section", "appendix", "table")) for case in found) == 3
    assert [repeats(parties, Namespace(repeats=0)) for parties in (2, 4, 8, 16)] == [5, 5, 3, 1]
    assert Asked(2, "paper004-wan", 1, False).job == {"link": "paper004-wan,shared"} and ASKED.job == {}
    with pytest.raises(ParameterError, match="'wan' is no network of the paper"):
        list(cases(Namespace(parties="2", link="wan", quick=False)))


def test_sizes_of_keys_are_those_of_seal() -> None:
    """SEAL's own files, not compressed, have these coefficients and less than 1 % besides."""
    import seal as library

    parameters = load("ckks-4096")
    generator = library.KeyGenerator(seal.context(parameters))
    sizes = cnn.sizes_of_keys(parameters)
    saved = {"public key": generator.create_public_key(), "relinearisation key": generator.create_relin_keys()}
    for name, key in saved.items():
        assert sizes[name] <= len(key.to_string()) < 1.01 * sizes[name], name
    assert sizes["7 Galois keys"] == 7 * sizes["relinearisation key"]


def test_it_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "paper004.csv"
    rows: list[dict[str, str]] = []
    for only in ("Gaussian", "Hamming weight 64 of 23040", "Z2 to Zq", "key generation gaussian", "decryption", "appendix", "powers", "sizes"):
        assert BENCH.main(["--quick", "--parties", "2", "--repeats", "1", "--only", only, "--output", str(output)]) == 0
    lines = [text for text in capsys.readouterr().out.splitlines() if text.startswith("paper004: table=")]
    with output.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["table"] for row in rows} == {"2", "3", "4", "4.3", "5", "6", "A"} and len(rows) == len(lines)
    assert all(float(row["ours"]) > 0 or row["quantity"] == "saved_percent" for row in rows)
    assert all(row["commit"] == commit() and row["command"] and row["machine"] and row["cores"] for row in rows)
    for row in rows:
        if row["paper"] and row["quantity"] != "saved_percent":
            assert float(row["ratio"]) == pytest.approx(float(row["paper"]) / float(row["ours"]), rel=0.01)
        assert row["shared_link"] == "" and row["link"] == "none"
    traffic = {(row["row"], row["method"], row["q_bits"], row["quantity"]): float(row["ours"]) for row in rows}
    # An opening of one element of 60 bits in place of six; a phase of 4,096 elements of 39 bits to each other party, and a message that compares runs.
    assert traffic["powers up to 4, online", "quartic tuple", "60", "communication_kb"] == pytest.approx(8 / 1000, rel=0.05)
    assert traffic["powers up to 4, online", "triples", "60", "communication_kb"] == pytest.approx(48 / 1000, rel=0.05)
    plain = traffic["decryption of a ciphertext, ckks-4096, primes 1, opened plainly, unsafe", "opened plainly", "", "communication_kb"]
    assert 4.096 * 5 <= plain < 4.096 * 5 + 1
    assert traffic["ANDs of key generation ckks-4096", "counted", "", "total_and_gates"] == 4096 * (3 * 354 + 3), "354 a Gaussian, 3 a trit"
    assert rows[0]["best"] in ("yes", "no") and {row["q_bits"] for row in rows if row["table"] == "4"} == {"60", "62"}
