"""The benchmark of threshold decryption: its rows, and a small run with the closing line."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path

import pytest
from bench.decryption import ajax, decrypt, exactness, exchanges, latency, throughput, tradeoff
from bench.decryption.decrypt import configurations
from bench.decryption.exactness import RECORDED, check, interval, judged, totals
from bench.decryption.measure import Configuration, measure
from bench.runner import Row, add_line
from keyquorum.fhe.lwe import lwe_parameters
from keyquorum.schemes.lwe.variant import LweVariant
from keyquorum.sharing.variants import VARIANTS


def test_rows() -> None:
    rows = configurations(None, True)
    assert {r.rounding for r in rows} == set(VARIANTS)
    assert {r.parties for r in rows if r.protocol == "semi"} == {2, 3, 4, 8, 16}
    assert all((r.items in (4096, 5 * 4096) if r.parameters == "bfv-4096" else r.items == 50) for r in configurations(50, False))  # whole ciphertexts


def test_closing_line() -> None:
    values = measure(Configuration("round_ltz_table", 4, 3, "lwe64-p2", "semi", 2, 400))
    pattern = r"decrypt: variant=round_ltz_table-4x3 parameters=lwe64-p2 protocol=semi2k n=2 items=400 online_us=[\d.]+ offline_us=[\d.]+ rounds=4 bits=([\d.]+) per_s=\d+ "
    found = re.match(pattern, decrypt.BENCH.line(values))
    assert found and abs(float(found.group(1)) - (63 + 4 * 5 + 5 + 64)) < 3
    assert values["wrong"] == 0 and float(values["offline_bytes"]) > 0 and float(values["storage_bytes"]) == 250.1
    assert values["rounds_in_all"] == 4 and abs(float(values["bits_in_all"]) - (63 + 4 * 5 + 5 + 64)) < 3
    values = measure(Configuration("round_mask_open", 8, 2, "lwe64-p2", "semi", 2, 0), single=True)
    assert values["rounds"] == 2 and 2 * 0.5 * 0.95 < float(values["latency_ms"]) < 2000


def test_figures_with_macs() -> None:
    """Each of the seven openings takes 48 bits more, and checks come on top: at least one of four rounds."""
    values = measure(Configuration("round_ltz_table", 4, 3, "lwe64-p2", "mascot", 2, 10))
    assert abs(float(values["bits"]) - (63 + 4 * 5 + 5 + 64 + 7 * 48)) < 8 and values["wrong"] == 0
    assert values["rounds"] == 4 and float(values["rounds_in_all"]) >= 8 and float(values["bits_in_all"]) > float(values["bits"])


def test_table_of_ajax(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    rows = ajax.DECRYPTIONS.chosen(ajax.DECRYPTIONS._parser().parse_args([]))
    assert len(rows) == 3 * 2 * 4 and {(r.parties, r.link) for r in rows} == {(n, link) for n in (2, 4, 14) for link in ("lan,shared", "wan,shared")}
    assert {(r.items, r.batch, r.protocol) for r in rows} == {(20_000, 20_000, "semi")}
    assert ajax.printed(2, "lan") == {
        "ajax_bits": "100",
        "ajax_online_ms": "0.003",
        "ajax_total_ms": "0.855",
        "noah_online_ms": "242.44",
        "noah_total_ms": "242.44",
    }
    assert ajax.printed(14, "wan")["ajax_total_ms"] == "54.499" and ajax.printed(4, "lan")["noah_total_ms"] == ""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    assert ajax.DECRYPTIONS.main(["--items", "300", "--only", "n=2 lan mask_open_one"]) == 0
    found = re.search(
        r"ajax1: t=1 link=lan shared_link=yes variant=round_mask_open_one parameters=lwe53-p16-eta52 online_ms=([\d.]+) total_ms=([\d.]+) bits=([\d.]+) wrong=0",
        capsys.readouterr().out,
    )
    # 48 and 52 bits, and the latter take whole bytes
    assert found and float(found[1]) * 300 >= 0.95 * 2 * 0.5 and float(found[2]) > float(found[1]) and abs(float(found[3]) - (48 + 56)) < 1
    assert not any((tmp_path / "results").iterdir())  # a table of some rows is not kept
    values = measure(Configuration("round_mask_open", 8, 2, "lwe53-p16-eta52", "semi", 2, 300, batch=300, piece=128))
    assert values["wrong"] == 0 and values["rounds_in_all"] == 2
    assert ajax.DECRYPTIONS.main(["--only", "n=3"]) == 2 and "no measurement of ajax1 has these values" in capsys.readouterr().err


def test_rows_of_ajax_that_are_not_measured_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps of few and of many parties write one table, a row for each number of parties, link, rounding and set."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    monkeypatch.setattr(
        ajax,
        "measure",
        lambda case: (
            {name: 1 for name in (*ajax.TAKEN, "online_us", "offline_us")} | {"variant": case.name, "parameters": case.parameters, "n": case.parties}
        ),
    )
    for parties in ("2,4", "14", "14"):
        assert ajax.DECRYPTIONS.main(["--parties", parties]) == 0
    with (tmp_path / "results" / "ajax_decryption.csv").open(newline="") as file:
        found = [(row["n"], row["link"], row["variant"], row["parameters"]) for row in csv.DictReader(file)]
    assert len(found) == len(set(found)) == 24 and [row[0] for row in found] == ["2"] * 8 + ["4"] * 8 + ["14"] * 8


def test_latency_of_a_star() -> None:
    (case,) = latency.BENCH.chosen(latency.BENCH._parser().parse_args(["--parties", "4", "--openings", "star", "--link", "rtt=1"]))
    row = latency.latency(replace(case, parties=3), 1) | {"paper_ms": latency.paper_ms(4, 1)}
    pattern = r"latency: variant=round_ltz_table-8x2 protocol=semi2k n=3 openings=star link=rtt=1 rounds=5 ms=([\d.]+) least_ms=\1 most_ms=\1 cpu_ms_of_all=[\d.]+ runs=101 repeats=1 wrong=0 cpu_party_ms=[\d.]+ storage_bytes=[\d.]+ paper_ms=8.483"
    assert re.fullmatch(pattern, latency.BENCH.line(row))
    assert float(str(row["ms"])) >= 5 * 0.5 * 0.95  # the delay of the links


def test_pings_of_the_paper() -> None:
    cases = latency.BENCH.chosen(latency.BENCH._parser().parse_args(["--macs"]))
    assert {(c.parties, c.link, c.protocol) for c in cases} == {(n, link, "mascot") for n in (2, 4, 8, 16) for link in ("rtt=1", "rtt=10")}
    assert [latency.paper_ms(n, ping) for n, ping in ((2, 1), (8, 10))] == ["", 55.49]
    assert [line.split("round_trips=")[1][:4] for line in latency.slopes()] == ["5.24", "5.04", "3.64"]


def test_rows_of_throughput() -> None:
    cases = throughput.BENCH.chosen(throughput.BENCH._parser().parse_args([]))
    assert len(cases) == 4 * 7 * 3 + 2 * 2 * 2 * 2 and throughput.paper_rate(4, 1) == 64319 and throughput.paper_rate(2, 1) == ""
    (case,) = (c for c in cases if c.label == "mask-open semi n=4 ping=1 batch=1024")
    assert case.configuration(None).items == 8192 and case.configuration(None).link == "rtt=1,mbit=1000,shared"
    (row,) = throughput.job(replace(case, parties=2, batch=128), throughput.BENCH._parser().parse_args(["--items", "256"]))
    assert (row["items"], row["rounds"], row["streams"], row["shared_link"]) == (256, 2, 1, "yes")
    assert 0 < float(row["sustained_per_s"]) < float(row["per_s"]) and float(row["storage_bytes"]) == 8
    assert float(row["online_us"]) * 128 >= 0.95 * 2 * 500, "two rounds of half a ping for each batch"


def test_rows_of_exactness() -> None:
    everything = exactness.configurations(7)
    rows = [(row, fraction) for row, fraction in everything if row.parameters != exactness.SEAL]
    seal = {(row.name, row.protocol, row.items) for row, _ in everything if row.parameters == exactness.SEAL}
    assert seal == {("round_ltz_circuit", protocol, 4096) for protocol in ("mal-rep-field", "mal-shamir", "mascot")}
    assert {r.rounding for r, _ in rows} == set(VARIANTS)
    names = {"round_ltz_circuit", "round_ltz_table-8x2", "round_ltz_table-4x3", "round_mask_open", "round_flood"}
    verified = {("round_ltz_circuit", "mal-shamir"), *((name, "mal-rep-field") for name in names if "ltz" in name)}
    assert {(r.name, r.protocol) for r, _ in rows} == verified | {(name, p) for name in names for p in ("semi", "rep-field", "shamir", "mascot")} | {
        ("round_mask_open_one", p) for p in ("semi", "shamir")
    }
    assert all(r.items == 7 and (fraction > 0) == r.rounding.startswith("round_mask_open") for r, fraction in rows)
    for row, _ in rows:
        LweVariant(row.rounding, lwe_parameters(row.parameters), row.width, row.levels)  # raises for sets that are too small


def test_exactness_counts_what_is_wrong(tmp_path: Path) -> None:
    assert interval(1 / 16, 6400)[0] < 400 < interval(1 / 16, 6400)[1]
    counted = check(Configuration("round_mask_open", 8, 2, "lwe64-p2", "semi", 2, 3000), 1 / 2)
    assert 1300 < int(counted["wrong"]) < 1700  # fails once in 10^12 runs
    for wrong, said in ((1500, "ok"), (1350, "WRONG"), (1650, "WRONG")):
        assert judged({**counted, "wrong": wrong})["judged"] == said
    exact = check(Configuration("round_ltz_circuit", 8, 2, "lwe64-p2", "semi", 2, 300))
    assert "noise=D/2 decryptions=300 wrong=0 expected=0..0 judged=ok" in exactness.BENCH.line(judged(exact))
    line = exactness.BENCH.line(judged(check(Configuration("round_ltz_circuit", 8, 2, "lwe53-p16", "mal-shamir", 3, 300))))
    assert "protocol=mal-shamir n=3 parameters=lwe53-p16 noise=D/2 decryptions=300 wrong=0 expected=0..0 judged=ok" in line
    for name, protocol, parties, bits in (("lwe53-p16", "shamir", 3, 6), ("lwe64-p16", "mascot", 2, 17)):
        flooded = check(Configuration("round_flood", 8, 2, name, protocol, parties, 300))
        assert f"noise=2^{bits} decryptions=300 wrong=0 expected=0..0 judged=ok" in exactness.BENCH.line(judged(flooded))
    path = tmp_path / "exactness.csv"
    for one in (exact, counted, exact):
        add_line(path, one)
    both, other = totals(path)
    assert (both["variant"], both["decryptions"], both["wrong"]) == ("round_ltz_circuit", 600, 0)
    assert (other["fraction"], other["decryptions"], other["wrong"]) == ("0.5", 3000, counted["wrong"])
    one = judged({**both, "wrong": 1})
    assert exactness.wrong([one]) and "decryptions=600 wrong=1 expected=0..0 judged=WRONG" in exactness.BENCH.line(one)


def test_exactness_is_recorded_and_added_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    for option, culprit in (("--record", "there is no folder results here"), ("--totals", "there is no results/exactness.csv here")):
        assert exactness.BENCH.main([option]) == 2 and culprit in capsys.readouterr().err
    (tmp_path / "results").mkdir()
    for _ in range(2):
        assert exactness.BENCH.main(["--items", "64", "--only", "round_ltz_circuit lwe64-p2 semi n=2", "--record"]) == 0
    capsys.readouterr()
    assert exactness.BENCH.main(["--totals"]) == 0
    assert capsys.readouterr().out.split("decryptions=")[1].startswith("128 wrong=0 expected=0..0 judged=ok")
    assert exactness.BENCH.main(["--totals", "--protocol", "shamir"]) == 2 and exactness.BENCH.main(["--totals", "--protocol", "semi2k"]) == 0
    header = RECORDED.read_text().splitlines()[0]
    assert header == "variant,protocol,n,parameters,fraction,decryptions,wrong,cores,machine,version,commit"


def test_tradeoff_table_and_plot(tmp_path: Path) -> None:
    rows: list[Row] = [
        {"parameters": "lwe64-p2", "protocol": "semi2k", "n": n, "variant": variant, "latency_ms": 0}
        | {name: i + n + 0.5 for i, name in enumerate(tradeoff.COLUMNS) if name != "latency_ms"}
        for n in (4, 2)
        for variant in ("round_mask_open", "round_ltz_table-8x2")
    ]
    tradeoff.write(rows, tmp_path)
    lines = (tmp_path / "decrypt-tradeoff.md").read_text().splitlines()
    assert [line.split(" | ")[2] for line in lines[4:8]] == ["2", "2", "4", "4"]
    assert (tmp_path / "decrypt-tradeoff.png").read_bytes()[1:4] == b"PNG"


def test_exchanges() -> None:
    row = exchanges.measure(exchanges.Case(2, "rtt=20"), runs=3)
    found = re.fullmatch(r"exchanges: n=2 link=rtt=20 exchanges=2 ms=(\d+\.\d\d) cpu_ms_of_all=\d+\.\d\d", exchanges.BENCH.line(row))
    assert found is not None and float(found[1]) >= 2 * 10 * 0.95 and row["ms"] == found[1]
