"""The runner: what is chosen, printed and kept; and `keyquorum inspect` knows every table."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from bench import JOBS, epochs, ghs, keygen, primitives, runner, tfhe
from bench.decryption import ajax, decrypt, exactness, exchanges, latency, throughput
from bench.multikey.__main__ import BENCH as MULTIKEY
from bench.paper004.__main__ import BENCH as PAPER004
from bench.runner import Bench, Options, Row, one_of, write_table
from bench.toprf.__main__ import BENCH as TOPRF
from bench.toprf.lisss import BENCH as LISSS
from keyquorum.inspection.tables import RESULTS
from keyquorum.model.errors import KeyQuorumError, ParameterError
from keyquorum.parties.jobs import PACKAGES, add_package, find_job

ALL: list[Bench[Any]] = [
    *primitives.BENCHES.values(), ajax.KEYS_BENCH, ajax.DECRYPTIONS, decrypt.BENCH, exactness.BENCH, exchanges.BENCH, latency.BENCH, throughput.BENCH, TOPRF, LISSS,
    keygen.BENCH, PAPER004, ghs.BENCH, tfhe.BENCH, tfhe.RESULTS_BENCH, MULTIKEY, epochs.BENCH,
]  # fmt: skip
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Case:
    n: int
    link: str = "none"


def toy(case: Case, options: Options) -> Iterator[Row]:
    if case.n == 13:
        raise ParameterError("thirteen is bad")
    yield {"n": case.n, "link": case.link, "ms": options.repeats * case.n, "wrong": int(case.n == 8)}
    yield {"n": case.n, "phase": "online", "seconds": 1.5}


def bench(**more: Any) -> Bench[Case]:
    return Bench(
        "toy", lambda options: [Case(2), Case(8), Case(8, "lan"), *([Case(13)] if options.repeats > 9 else [])], toy, ("n", "link", "ms", "busy", "version"),
        lambda: ["toy: paper=1 ms=0.5"], axes=("n",), options={"repeats": {"type": int, "default": 1}},
        phases=("n", "phase", "seconds"), **more,
    )  # fmt: skip


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(runner, "commit", lambda: "now")
    (tmp_path / "results").mkdir()
    return tmp_path / "results"


def rows_in(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_table_of_all_cases(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench().main([]) == 0
    assert (results / "toy.csv").read_text().splitlines()[0] == "n,link,ms,busy,version,commit"
    assert [(row["n"], row["link"], row["ms"], row["commit"]) for row in rows_in(results / "toy.csv")] == [
        ("2", "none", "2", "now"), ("8", "none", "8", "now"), ("8", "lan", "8", "now"),
    ]  # fmt: skip
    assert list(rows_in(results / "toy_phases.csv")[0].values()) == ["2", "online", "1.5", "now"]
    printed = capsys.readouterr().out
    assert "toy: n=8 link=lan ms=8 busy=" in printed and "toy: paper=1 ms=0.5" in printed and "phase" not in printed


def test_a_part_is_no_table(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, lines in ((["--n", "8"], 2), (["--only", "8 lan"], 1), (["--n", "2,8", "--only", "none"], 2)):
        assert bench().main(words) == 0 and capsys.readouterr().out.count("toy: n=") == lines
    assert bench(restricting=("repeats",)).main(["--repeats", "2"]) == 0
    assert not any(results.iterdir())
    assert bench().main(["--n", "2", "--output", str(tmp_path / "part.csv")]) == 0 and len(rows_in(tmp_path / "part.csv")) == 1
    assert bench().main(["--n", "3"]) == 2 and "no measurement of toy has these values" in capsys.readouterr().err


def test_exit_codes(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = bench(failed=lambda rows: any(row.get("wrong") for row in rows))
    assert wrong.main(["--n", "2"]) == 0 and wrong.main(["--n", "8"]) == 1
    assert bench().main(["--repeats", "10"]) == 2 and "thirteen is bad" in capsys.readouterr().err and not any(results.iterdir())
    assert one_of({"toy": bench()}, ["toy", "--n", "2"]) == 0
    for words in ([], ["other"], ["--n", "2"]):
        assert one_of({"toy": bench()}, words) == 2 and "name a benchmark first: toy" in capsys.readouterr().err


def test_rows_of_other_cases_stay(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = bench(key=("n", "link"))
    write_table(results / "toy.csv", [{"n": n, "link": "none", "ms": n, "commit": "before"} for n in (16, 8)], kept.columns)
    assert kept.main(["--n", "2,8", "--repeats", "5"]) == 0
    found = [(row["n"], row["link"], row["ms"], row["commit"]) for row in rows_in(results / "toy.csv")]
    assert found == [("16", "none", "16", "before"), ("8", "none", "40", "now"), ("2", "none", "10", "now"), ("8", "lan", "40", "now")]


def test_a_table_with_mp_spdz_is_not_replaced_by_one_without(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MP_SPDZ_HOME", raising=False)
    beside: Bench[Case] = Bench("toy", lambda options: [Case(2)], lambda case, options: [{"n": case.n}], ("n", "mpspdz_commit"))
    assert beside.main([]) == 0 and rows_in(results / "toy.csv") == [{"n": "2", "mpspdz_commit": "", "commit": "now"}]
    (results / "toy.csv").write_text("n,mpspdz_commit,commit\n2,abc,before\n")
    assert beside.main([]) == 0 and "abc" in (results / "toy.csv").read_text()


def test_tables_of_results_have_the_columns_of_their_benchmark() -> None:
    """And `keyquorum inspect` knows each of them. The oldest tables have no commit."""
    for one in (each for each in ALL if each.columns):
        options = one._parser().parse_args([])
        assert one.chosen(options)
        for columns, end in ((one.columns, ""), (one.phases, "_phases")):
            assert not columns or any(columns[: len(first)] == first for first in RESULTS.values()), one.name
            path, whole = ROOT / "results" / f"{one.table(options) or one.name}{end}.csv", list(dict.fromkeys([*columns, "commit"]))
            if columns and path.exists():
                assert path.read_text().splitlines()[0].split(",") in (whole, whole[:-1]), path


def test_every_job_is_found_and_a_prefix_is_of_one_package() -> None:
    assert PACKAGES["bench"] == "bench"
    for name, module in JOBS.items():
        assert find_job(f"bench:{name}").run.__module__ == import_module(f"bench.{module}").__name__
    add_package("bench", "bench")
    with pytest.raises(KeyQuorumError, match="jobs bench: are of bench in this process"):
        add_package("bench", "elsewhere")
    with pytest.raises(KeyQuorumError, match=r"jobs : are of keyquorum\.plans"):
        add_package("", "elsewhere")


def test_a_line_with_a_new_column_keeps_the_older_lines(tmp_path: Path) -> None:
    path = tmp_path / "counts.csv"
    for row in ({"n": 1, "wrong": 0}, {"n": 2, "wrong": 0, "commit": "abc"}):
        runner.add_line(path, row)
    assert path.read_text().split() == ["n,wrong,commit", "1,0,", "2,0,abc"]
