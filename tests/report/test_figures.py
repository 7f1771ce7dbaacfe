"""results/README.md and the measured part of README.md: made from the existing results only."""

from __future__ import annotations

import importlib.util
from itertools import product
from pathlib import Path
from types import ModuleType

import pytest
from bench import primitives
from bench.decryption import ajax
from bench.runner import Options, Row, write_table
from bench.toprf.__main__ import COLUMNS
from keyquorum.sweep import rows
from keyquorum.sweep.cases import Axes
from keyquorum.sweep.suites import cases_of

from .test_report import BESIDE, WHEN, fake

SCRIPT = Path(__file__).resolve().parents[2] / "Scripts" / "figures.py"


@pytest.fixture
def figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("figures", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    (tmp_path / "README.md").write_text(f"before\n{module.BEGIN}\nold\n{module.END}\nafter\n")
    return module


def beside(row: primitives.Primitive, with_peer: bool = True) -> Row:
    """1,000 items a second and 12 bytes for each, beside 400 a second and 30 bytes."""
    n = row.items
    peer = primitives.Cost(n / 400, 30 * n, 9, 2e-6 * n) if with_peer else None
    return primitives.side_by_side(row, 7, primitives.Cost(n / 1000, 12 * n, 3, 1e-6 * n), peer) | {"mpspdz_commit": "", "cores": 2}


def test_without_results_nothing_is_claimed(figures: ModuleType, tmp_path: Path) -> None:
    assert figures.main() == 0
    assert (tmp_path / "README.md").read_text() == f"before\n{figures.BEGIN}\n## Measured\n{figures.END}\nafter\n"
    assert not (tmp_path / "results").exists()


def test_the_table_and_the_plots_that_are_there(figures: ModuleType, tmp_path: Path) -> None:
    cases = cases_of("keygen", Axes(protocols=("semi", "mascot"), parties=(3,), links=("none",)))
    made = [row for case in cases for row in rows.rows_of(case, fake(case), WHEN)]
    rows.write(tmp_path / "results" / "bench" / "keygen.csv", made)
    (tmp_path / "results" / "report").mkdir()
    (tmp_path / "results" / "report" / "scaling.png").write_bytes(b"png")
    assert figures.main() == 0
    text = (tmp_path / "results" / "README.md").read_text()
    assert "| `mascot` + `spdz2k` | 3 | 2 of 3 | malicious | ckks-4096-mac | 3.8 |" in text
    assert "| `semi` + `semi2k` | 3 | 2 of 3 | semi-honest | bfv-8192 | 3.8 |" in text
    assert "(report/scaling.png)" in text and "round_trip" not in text
    assert rows.machine() in text
    front = (tmp_path / "README.md").read_text()
    assert "| keys of ckks-4096-mac | `mascot` + `spdz2k`, 3 | 3.8 s, " in front and "| keys of bfv-8192 | `semi` + `semi2k`, 3 | 3.8 s, " in front
    assert "old" not in front and ".png" not in front and front.startswith("before\n") and front.endswith("after\n")
    (tmp_path / "results" / "report" / "threat_models.png").write_bytes(b"png")
    assert figures.main() == 0
    front = (tmp_path / "README.md").read_text()
    assert "(results/report/threat_models.png)" in front
    assert figures.main() == 0 and (tmp_path / "README.md").read_text() == front, "the second time changes nothing"


def test_tables_of_the_benches(figures: ModuleType, tmp_path: Path) -> None:
    """Each table is made from its CSV alone; rows without a figure of others stay in order."""
    (tmp_path / "results").mkdir()
    made = [beside(row, with_peer) for row, with_peer in zip(primitives.DISHONEST, (False, True), strict=False)]
    assert made[1]["ratio"] == 2.5 and made[0]["ratio"] == ""
    write_table(tmp_path / "results" / "dishonest.csv", made)
    paper = {"table": "4", "best": "yes", "method": "m", "parties": 2, "quantity": "communication_kb", "ours": 3.0}
    write_table(tmp_path / "results" / "paper004.csv", [{**paper, "row": "a", "paper": 10.9}, {**paper, "row": "b", "paper": ""}])
    lwe = [
        {
            "variant": "round_mask_open",
            "n": 2,
            "online_us": 5.0,
            "offline_us": 10.0,
            "rounds": 2,
            "rounds_in_all": 2,
            "per_s": 170334,
            "latency_ms": 0,
            "online_cpu_us": "",
            "items": 20000,
        },
        {
            "variant": "round_ltz_table-8x2",
            "n": 4,
            "online_us": 35.5,
            "offline_us": 2043.0,
            "rounds": 3,
            "rounds_in_all": 15.4,
            "per_s": 28119,
            "latency_ms": 9.0,
            "online_cpu_us": 52.0,
            "items": 4096,
        },
    ]
    sets = [{"parameters": p, "protocol": "semi2k", "cores": 2} for p in ("lwe64-p2", "lwe64-p2", "lwe53-p16")]
    write_table(tmp_path / "results" / "decrypt.csv", [s | row for s, row in zip(sets, [*lwe, lwe[0]], strict=True)])
    assert figures.main() == 0
    front = (tmp_path / "README.md").read_text()
    assert "| LWE decryptions, online | `semi2k`, 2 | " not in front and "random_bits" not in front, "chosen rows only"
    text = (tmp_path / "results" / "README.md").read_text()
    assert "| random_bits_z2_64 | `semi2k` | 1,000 | 12.0 | – | – |" in text
    assert "| random_bits_field | `semi` | 1,000 | 12.0 | 400 | 30.0 |" in text
    assert "medians of 7" in text
    assert "| a | m | 2 | none | – | – | – | – | 3.0 KB | 10.9 KB |" in text and "| b | m | 2 | none | – | – | – | – | 3.0 KB | – |" in text
    assert "| `round_ltz_table-8x2` | `semi2k` | 4 | 35.5 | 13.0 | 2043.0 | 3 (15) | 28,119 | 9.0 ms |" in text, "CPU of one of four parties"
    assert "| `round_mask_open` | `semi2k` | 2 | 5.0 | – | 10.0 | 2 | 170,334 | – |" in text and "lwe53" not in text
    assert "in batches of 4,096 to 20,000, without any delay of links" in text


def test_what_is_served_stands_beside_the_engine(figures: ModuleType, tmp_path: Path) -> None:
    """README.md has the cells of the last commit, one ciphertext a request; the table has all."""
    (tmp_path / "results").mkdir()
    engine = {"variant": "round_ltz_circuit", "parameters": "lwe64-p2", "protocol": "semi2k", "n": 2, "items": 20000, "per_s": 151560}
    more = {"online_us": 6.6, "offline_us": 21.9, "rounds": 9, "rounds_in_all": 9, "latency_ms": 0, "online_cpu_us": 12.0, "cores": 2}
    write_table(tmp_path / "results" / "decrypt.csv", [engine | more])
    row = {"protocol": "semi2k", "n": 2, "parameters": "lwe64-p2", "ciphertexts": 1, "cpu_ms": "4.00", "busy": "0.00", "cores": 2}
    write_table(
        tmp_path / "results" / "served.csv",
        [
            row | {"clients": 1, "per_s": "18.0", "lwe_per_s": 18, "p50_ms": "54.0", "p99_ms": "71.0", "commit": "before"},
            row | {"clients": 1, "per_s": "106.0", "lwe_per_s": 106, "p50_ms": "8.6", "p99_ms": "19.0", "commit": "after"},
            row | {"clients": 32, "per_s": "365.0", "lwe_per_s": 365, "p50_ms": "80.0", "p99_ms": "300.0", "commit": "after", "busy": "1.5"},
            row | {"clients": 8, "per_s": "53.0", "lwe_per_s": 5310, "p50_ms": "87.0", "p99_ms": "329.0", "commit": "after", "ciphertexts": 100},
        ],
    )
    assert figures.main() == 0
    served = "1 client: 106.0 requests/s, p50 8.6 ms, p99 19.0 ms; 32 clients: 365.0 requests/s, p50 80.0 ms, p99 300.0 ms (started under load)"
    front = (tmp_path / "README.md").read_text()
    assert f"| LWE decryptions, served, one a request | `semi2k`, 2 | {served} | engine alone: 151,560 (batch 20,000) |" in front
    text = (tmp_path / "results" / "README.md").read_text()
    assert "| `semi2k` | 2 | 1 | 1 | 18.0 | 18 | 151,560 (batch 20,000) | 54.0 | 71.0 | 4.00 | before |" in text
    assert "| `semi2k` | 2 | 8 | 100 | 53.0 | 5,310 |" in text


def test_throughput_over_links_stands_beside_the_paper(figures: ModuleType, tmp_path: Path) -> None:
    """The paper's figure is for links of 1 ms: our figures of these links are beside it, with a note if other work ran."""
    cases = [c for c in cases_of("decrypt", Axes(protocols=("semi",), parties=(4,), parameters=("lwe64-p2",))) if c.batch > 1]
    assert {c.link for c in cases} == {"", "paper000-1ms"}
    made = [row for case in cases for row in rows.rows_of(case, fake(case), BESIDE if "table" in case.name else WHEN)]
    rows.write(tmp_path / "results" / "bench" / "decrypt.csv", made)
    (tmp_path / "results" / "decrypt.csv").write_text(
        "variant,parameters,protocol,n,items,online_us,offline_us,rounds,rounds_in_all,per_s,latency_ms,online_cpu_us,cores\n"
        "round_mask_open,lwe64-p2,semi2k,2,20000,5,10,2,2,200000,0,8,2\n"
    )
    assert figures.main() == 0
    text = (tmp_path / "results" / "README.md").read_text()
    rate = 1024 / (4 * 1.1 + 0.25)
    assert f"| `round_ltz_circuit` | `semi` | 4 | 1,024 | {rate:,.0f} |" in text
    assert f"| `round_ltz_table` | `semi` | 4 | 1,024 | {rate:,.0f} (started under load) |" in text
    assert text.count("| `semi` | 4 | 1,024 |") == 3, "links only"
    assert "| paper 000, Mod-L | – | 4 | – | 64,319 |" in text and "| paper 000, Noah's Ark | – | 4 | – | 3.18 |" in text


def test_a_readme_without_marks_is_left_alone(figures: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "README.md").write_text("nothing here\n")
    assert figures.main() == 1 and "no mark" in capsys.readouterr().err
    assert (tmp_path / "README.md").read_text() == "nothing here\n"


def test_tables_of_the_benches_say_which_commit_was_measured(tmp_path: Path) -> None:
    write_table(tmp_path / "t.csv", [{"a": 1}, {"a": 2}])
    assert (tmp_path / "t.csv").read_text().splitlines() == ["a,commit", f"1,{rows.commit()}", f"2,{rows.commit()}"]


def test_tables_beside_ajax(figures: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    keys = {"protocol": "shamir", "parties": 3, "noise": "local", "link": "none", "growth": 1.5, "seconds": 11.5, "paper_seconds": "17.6"}
    keys |= {"cores": 2, "cpu_seconds_of_a_party": 7.5, "sent_gb_in_all": 1.42, "rss_gb_of_a_party": 0.21, "rounds": 99}
    write_table(tmp_path / "results" / "ajax.csv", [keys, keys | {"parties": 5, "paper_seconds": ""}])
    row = ajax.configurations(Options(items=None))[0]
    measured = {"n": 2, "variant": row.name, "parameters": row.parameters, "items": row.items, "rounds": 2, "bits": 104.2, "wrong": 0}
    measured |= {"online_cpu_us": 4, "offline_cpu_us": 9, "online_us": 5.0, "offline_us": 10.0, "cores": 2, "machine": "x86_64", "version": "0"}
    write_table(tmp_path / "results" / "ajax_decryption.csv", [{**ajax.row_of(row, measured), "busy": busy, "cores": 2} for busy in ("0.00", "1.90")])
    tfhe = {
        "protocol": "rep-field",
        "parties": 3,
        "parameters": "tfhers-2-2",
        "seconds": 5.3,
        "sent_mb": 146,
        "cpu_seconds": 3,
        "memory_mb": 209,
        "rounds": 207,
    }
    tfhe |= {"alone_seconds": 1.06, "ratio": 5.0, "noise_method": "carry", "busy": "0.00", "cores": 2}
    write_table(tmp_path / "results" / "tfhe.csv", [tfhe])
    assert figures.main() == 0
    text = (tmp_path / "results" / "README.md").read_text()
    assert (
        "| `shamir` | 3 | local | none | 1.5 | 11.5 | 17.6 | 7.5 | 1.42 GB | 0.21 GB | 99 |" in text
        and "| `shamir` | 5 | local | none | 1.5 | 11.5 | – |" in text
    )
    assert "| 1 | lan | `round_mask_open_one` | `lwe53-p16-eta52` | 104.2 | 100, 128 implemented | 0.005 | 0.015 | 0.003 | 0.855 | 242.44 |" in text
    assert "| 0.005 (started under load) |" in text and "| `rep-field`, noise_method=carry | 3 | 5.3 |" in text


def test_evaluations_and_sharings(figures: ModuleType, tmp_path: Path) -> None:
    """All rows of both tables, and in README.md the one by tables between two parties."""
    (tmp_path / "results").mkdir()
    row = dict.fromkeys(COLUMNS, "") | {"system": "native", "method": "table", "protocol": "semi2k", "n": "2", "batch": "1", "link": "rtt=1"}
    row |= {
        "ms": "10.26",
        "mb": "0.000240",
        "per_s": 97,
        "offline_ms": "2.36",
        "offline_mb": "0.005",
        "all_mb": "0.00048",
        "rounds": 11,
        "wrong": 0,
        "busy": "1.5",
        "cores": 2,
    }
    write_table(
        tmp_path / "results" / "toprf.csv",
        [row, row | {"system": "F", "busy": "0.00", "all_mb": ""}, row | {"batch": "64", "offline_mb": "0.64", "offline_ms": "160"}],
    )
    sharing = {
        "t": 2,
        "T": 3,
        "n": 512,
        "share_ms": "2.73",
        "share_mb": "0.006280",
        "stored_kb": "4.096",
        "partial_us": "0.991",
        "busy": "0.00",
        "cores": 2,
    }
    sharing |= {"partial_batch_us": "0.218", "combine_us": "2.624", "exact_ms": "2.750", "exact_batch_us": "16.548"}
    write_table(tmp_path / "results" / "lisss.csv", [sharing])
    assert figures.main() == 0
    text = (tmp_path / "results" / "README.md").read_text()
    assert "| native | table | `semi2k` | 2 | 1 | rtt=1 | 10.26 (started under load) | 97 | 0.00024 | 0.00048 | – | – | 11 |" in text, (
        "a block alone takes what earlier ones left over"
    )
    assert "| native | table | `semi2k` | 2 | 64 | rtt=1 | 10.26 (started under load) | 97 | 0.00024 | 0.00048 | 160 | 0.64 | 11 |" in text
    assert "| F | table | `semi2k` | 2 | 1 | rtt=1 | 10.26 | 97 | 0.00024 | – | 2.36 | 0.005 | 11 |" in text
    assert "| 2 | 3 | 2.73 | 0.00628 | 4.1 | 0.991 | 0.218 | 2.624 | 2.750 | 16.548 |" in text
    assert (
        "| AES-128 under a shared key, 1 ms round trip | `semi2k`, 2 | 10.26 ms, 0.24 kB a party; 2.5 ms, 0.01 MB ahead (of 64 blocks, each) |"
        in (tmp_path / "README.md").read_text()
    )


def test_each_chosen_rate_names_its_batch_processor_time_and_peer(figures: ModuleType, tmp_path: Path) -> None:
    """The dozen figures of README.md: a row of each benchmark, with the figure of others."""
    (tmp_path / "results").mkdir()
    write_table(tmp_path / "results" / "dishonest.csv", [beside(row) for row in primitives.DISHONEST])
    decrypt = {"parameters": "lwe64-p2", "variant": "round_ltz_circuit", "protocol": "semi2k", "n": 2, "items": 512, "per_s": 149226, "cores": 2}
    decrypt |= {"online_us": 6.7, "online_cpu_us": 10.6, "offline_us": 20, "rounds": 9, "rounds_in_all": 9, "latency_ms": 0}
    write_table(tmp_path / "results" / "decrypt.csv", [decrypt])
    keys = {
        "table": "5",
        "best": "yes",
        "method": "plan",
        "quantity": "seconds",
        "row": "key generation x",
        "parties": 2,
        "ours": 3.7,
        "paper": 525.0,
    }
    write_table(tmp_path / "results" / "paper004.csv", [keys])
    parity = {"protocol": "ring", "program": "a", "difference": "", "mpspdz_commit": "0123456789"}
    write_table(
        tmp_path / "results" / "parity.csv", [parity | {"ratio": 0.5}, parity | {"ratio": 0.1}, parity | {"ratio": 0.3}, parity | {"ratio": ""}]
    )
    assert figures.main() == 0
    text = (tmp_path / "README.md").read_text()
    assert "| LWE decryptions, online | `semi2k`, 2 | 149,226 a second (batch 512, CPU of a party 5.3 µs each; no added delay) | – |" in text
    assert text.count("| triples modulo 2^64 | ") == 2 and "CPU of a party 0.5 µs each; no added delay) | MP-SPDZ: 400 |" in text
    assert "| key generation x | semi-honest, dishonest majority, 2 | 3.7 s, no link | GMPFHE, other hardware, over its LAN: 525.0 s |" in text
    assert "| 1 programs, on both engines | all, 3 rows | median 0.30 of MP-SPDZ's time, largest 0.50; 0 outputs differ | the same machine |" in text
    assert "[all tables, plots, conditions and commits](results/README.md)" in text


def test_rows_of_gmpfhe_name_link_batch_and_processor_time(figures: ModuleType, tmp_path: Path) -> None:
    """Each link has a row of its own; conversions are those with the prime of 60 bits; keys of a set that is not the paper's have no figure beside them."""
    (tmp_path / "results").mkdir()
    row = {
        "table": "4",
        "row": "Z2 to Zq",
        "method": "bits",
        "best": "yes",
        "parties": 4,
        "link": "none",
        "q_bits": "60",
        "batch": 32768,
        "cpu_party": 0.7,
    }
    row |= {"quantity": "us", "ours": 0.8, "paper": 574.0}
    keys = {
        **row,
        "table": "5",
        "row": "key generation x",
        "method": "cbd",
        "best": "no",
        "q_bits": "",
        "batch": 1,
        "quantity": "seconds",
        "paper": "",
    }
    traffic = {"quantity": "communication_kb", "ours": 3.0, "paper": 20.6, "cpu_party": ""}
    made = [
        row,
        row | traffic,
        row | {"link": "paper004-wan", "ours": 9.5, "paper": 1046.0},
        row | {"q_bits": "62", "ours": 7.7},
        keys,
        row | {"method": "slow", "best": "no"},
    ]
    write_table(tmp_path / "results" / "paper004.csv", made)
    assert figures.main() == 0
    text = (tmp_path / "results" / "README.md").read_text()
    assert "| Z2 to Zq | bits | 4 | none | 32768 | 0.8 µs | 0.7 µs | 574.0 µs | 3.0 KB | 20.6 KB |" in text
    assert "| Z2 to Zq | bits | 4 | paper004-wan | 32768 | 9.5 µs | 0.7 µs | 1046.0 µs | – | – |" in text
    assert "| key generation x | cbd | 4 | none | 1 | 0.8 s | 0.7 s | – | – | – |" in text and "7.7" not in text and "slow" not in text
    assert "is not comparable with it" in text


def test_rates_over_links_have_the_paper_s_beside_them(figures: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    row = {
        "variant": "8x2",
        "protocol": "semi2k",
        "n": 4,
        "link": "rtt=1,mbit=1000",
        "batch": 4096,
        "parameters": "lwe64-p2",
        "per_s": 60000,
        "busy": "0.0",
        "cores": 2,
    }
    row |= {"per_s_of_a_core": 400000, "sustained_per_s": 30000, "bits": 380.1, "storage_bytes": 8.0, "paper_per_s": 64319}
    write_table(
        tmp_path / "results" / "throughput.csv",
        [
            row,
            row | {"link": "rtt=10,mbit=1000", "paper_per_s": "", "per_s": 90000},
            row | {"variant": "4x3", "per_s": 50000},
            row | {"variant": "mask-open", "per_s": 80000},
        ],
    )
    assert figures.throughput()[-4] == "| 8x2 | `semi2k` | 4 | rtt=1,mbit=1000 | 4,096 | 60,000 | 400,000 | 30,000 | 380.1 | 8.0 | 64,319 |"
    assert figures.main() == 0
    front = (tmp_path / "README.md").read_text()
    assert (
        "| LWE decryptions, exact, online, 1 ms and 1 Gbit/s | `semi2k`, 4 | 60,000 a second (8x2, batch 4,096) | paper 000, other hardware, MACs or not: 64,319 |"
        in front
    )
    assert "90,000" not in front and "50,000" not in front and "80,000" not in front, "mask-open may fail"


def test_results_begin_with_the_commits_of_their_rows(figures: ModuleType, tmp_path: Path) -> None:
    """As recorded, none typed by hand."""
    (tmp_path / "results" / "bench").mkdir(parents=True)
    rows_of = [{"a": 1, "machine": "x86_64", "commit": commit} for commit in ("b" * 12, "a" * 12, "b" * 12)]
    write_table(tmp_path / "results" / "one.csv", rows_of)
    (tmp_path / "results" / "bench" / "two.csv").write_text("a\n1\n")
    (tmp_path / "results" / "papers.csv").write_text("a,commit\n1,c\n")
    lines = figures.origin()
    assert lines[-2:] == [
        "* `bench/two.csv`: not recorded (1 on machine not recorded).",
        f"* `one.csv`: {'b' * 12} (2 on x86_64), {'a' * 12} (1 on x86_64).",
    ] and "papers.csv" not in "".join(lines)


def test_rows_of_other_states_are_marked(figures: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "results").mkdir()
    keys = {"protocol": "ring", "parties": 3, "parameters": "x", "seconds": 5, "sent_mb": 1, "memory_mb": 2, "alone_seconds": 1, "cores": 2}
    for commit, marked in (("a" * 12, False), ("b" * 12, True)):
        monkeypatch.setattr(figures, "_history", lambda root: figures.History(frozenset({"a" * 40})))
        write_table(tmp_path / "results" / "tfhe.csv", [keys | {"commit": commit}])
        assert f"{figures.MARK} Recorded at a state" in "\n".join(figures.chosen()) if marked else figures.MARK not in "\n".join(figures.chosen())
        assert bool(figures.provenance()) == marked


def test_decryptions_without_a_pool_and_counts_of_wrong_ones(figures: ModuleType, tmp_path: Path) -> None:
    """Medians over the runs of the slowest party; verified products beside those of the same sharing; counts of a configuration are added up."""
    exact = []
    for protocol, seconds in (("rep-field", 1.0), ("shamir", 9.0), ("mal-rep-field", 1.5)):
        for repeat, party, phase in product(range(3), range(2), ("phase", "rounding")):
            exact.append({
                "name": "bfv round_ltz_circuit", "protocol": protocol, "parties": 3, "parameters": "bfv-4096", "batch": 4, "link": "", "status": "ok", "repeat": repeat, "party": party,
                "phase": phase, "seconds": seconds * (repeat + party + 1) / 4, "rounds": 12 if phase == "rounding" else 0, "cpu_seconds": 0.5, "cores": 2,
            })  # fmt: skip
    (tmp_path / "results").mkdir()
    write_table(tmp_path / "results" / "exact_decryption.csv", exact)
    one: Row = {
        "variant": "round_mask_open",
        "protocol": "ring",
        "n": 3,
        "parameters": "lwe64-p2",
        "fraction": 1 / 16,
        "decryptions": 1000,
        "wrong": 60,
    }
    write_table(
        tmp_path / "results" / "exactness.csv", [one, one | {"wrong": 62}, one | {"fraction": 0.0, "variant": "round_ltz_circuit", "wrong": 0}]
    )
    text = "\n".join([*figures.without_pool(), *figures.counted()])
    assert "| `rep-field` | 3 | bfv-4096 | 4 | 1.5 | 0.75 | 12 | 0.5 |" in text and "| `shamir` | 3 | bfv-4096 | 4 | 13.5 | 6.75 | 12 | 0.5 |" in text
    assert "| `mal-rep-field` | 3 | bfv-4096 | 4 | 2.25 (1.5) | 1.12 | 12 | 0.5 |" in text, "times that of the same sharing, not of the row above"
    assert "| `round_mask_open` | `ring` | 3 | lwe64-p2 | 0.0625 | 2,000 | 122 |" in text
    assert "| `round_ltz_circuit` | `ring` | 3 | lwe64-p2 | – | 1,000 | 0 |" in text
