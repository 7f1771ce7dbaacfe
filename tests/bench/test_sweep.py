"""``keyquorum bench``: every suite measures correct results, tables are complete, and an interrupted sweep continues."""

from __future__ import annotations

import ast
import csv
import os
import re
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from keyquorum.cli import app
from keyquorum.cnn.run import WAYS
from keyquorum.model import idle
from keyquorum.model.errors import ParameterError
from keyquorum.parties import PhaseReport, RunReport
from keyquorum.sweep import peers, rows
from keyquorum.sweep.cases import Axes, Case, CaseError
from keyquorum.sweep.measure import Bench, Effort, Run
from keyquorum.sweep.programs import PROGRAMS
from keyquorum.sweep.runner import Settings, run_suite
from keyquorum.sweep.suites import OF_OTHERS, SUITES, cases_of
from typer.testing import CliRunner

from tests.long import LONG

ONE = Effort(repeats=1, warm_up=0, timeout=120)


def _fake(seconds: float = 1.5, unused: int = 0) -> list[Run]:
    phases = [PhaseReport("offline", 1.0, 10, 10, 2), PhaseReport("online", seconds, 7, 8, 3, 0.25)]
    return [Run([RunReport(i, phases, 1000, 0.5, "", {"triples": unused} if unused else {}) for i in range(3)], 0)]


def _settings(path: Path, **rest: object) -> Settings:
    return Settings(path / "t.csv", ONE, **{"busy": lambda: 0.0, **rest})  # type: ignore[arg-type]


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("quick", [True, False])
def test_cases_are_possible_and_each_is_there_once(suite: str, quick: bool) -> None:
    cases = cases_of(suite, Axes(), quick)
    assert len({case.identity for case in cases}) == len(cases)
    others = {"threat_models": {"keygen", "decrypt"}, "cnn_thousand": {"cnn"}}
    assert set(others) == set(OF_OTHERS)
    assert all(case.possible for case in cases) and {case.suite for case in cases} == others.get(suite, {suite})


def test_a_thousand_digits_with_an_encrypted_model_are_a_sweep_of_their_own() -> None:
    (case,) = cases_of("cnn_thousand", Axes())
    assert (case.batch, WAYS[case.name][0]) == (1000, True) and case.identity not in {one.identity for one in cases_of("cnn", Axes())}
    with pytest.raises(ParameterError):
        cases_of("cnn_thousand", Axes(backends=("mp-spdz",)))


def test_sweeps_cover_what_the_papers_have() -> None:
    decrypt = cases_of("decrypt", Axes())
    for parties in (4, 8, 16):
        assert {c.link for c in decrypt if c.parties == parties} >= {"", "paper000-1ms", "paper000-10ms"}
    keygen = cases_of("keygen", Axes())
    wanted = {("semi", n) for n in (2, 3, 4, 8)} | {("shamir", n) for n in (3, 4, 8)} | {("rep-field", 3), ("mascot", 2)}
    assert {(c.protocol, c.parties) for c in keygen} >= wanted
    macs = {(c.protocol, c.parties, c.parameters) for c in keygen}
    assert {(protocol, n, "ckks-4096-mac") for protocol in ("mascot", "semi") for n in (2, 3, 4)} <= macs
    assert {("ring", 3), ("mal-rep-ring", 3), *((protocol, n) for protocol in ("semi2k", "spdz2k") for n in (2, 3, 4, 8))} == {
        (c.protocol, c.parties) for c in keygen if c.parameters == "lwe64-p2"
    }
    for protocol in ("mal-rep-field", "mal-shamir"):
        mine = {(c.name, c.parameters): c for c in (*keygen, *decrypt) if c.protocol == protocol}
        assert {("bfv round_ltz_circuit", "bfv-4096"), ("ckks flood", "ckks-8192-demo"), ("public and relinearisation key", "bfv-8192")} <= set(mine)
        assert {(c.parties, c.security) for c in mine.values()} == {(3, "malicious with abort, honest majority")}
        assert ("bfv round_mask_open", "bfv-4096") not in mine, "which is refused"


def test_axes_cut_a_sweep() -> None:
    cases = cases_of("primitives", Axes(protocols=("ring",), links=("wan", "none"), only="product"))
    assert {(c.protocol, c.link, c.name) for c in cases} == {("ring", "wan", "product"), ("ring", "", "product")}
    assert all(c.backend == "mp-spdz" for c in cases_of("primitives", Axes(backends=("mp-spdz",), links=("none",))))
    for axes, says in [
        (Axes(protocols=("rsa",)), "unknown protocol 'rsa'"),
        (Axes(backends=("gpu",)), "unknown backend 'gpu'"),
        (Axes(links=("moon",)), "unknown link 'moon'"),
        (Axes(only="nothing of this name"), "nothing is left"),
        (Axes(protocols=("ring",), parties=(5,)), "nothing is left"),
    ]:
        with pytest.raises(ParameterError, match=says):
            cases_of("primitives", axes)
    with pytest.raises(ParameterError, match="unknown suite"):
        cases_of("moon", Axes())


def test_patience_ends_a_measurement_with_one_run_at_least(tmp_path: Path) -> None:
    (case, *_) = cases_of("primitives", Axes(protocols=("ring",), only="product"), quick=True)
    hurried = Settings(tmp_path / "t.csv", Effort(repeats=5, warm_up=1, timeout=120, patience=0.0))
    assert run_suite([case], hurried).measured == 1
    table = rows.read(tmp_path / "t.csv")
    assert {row["repeat"] for row in table} == {"0"} and {row["asked"] for row in table} == {"5"}
    assert run_suite([case], hurried).kept == 1, "a measurement that was cut short is not made again"
    made = [Run([])]
    assert list(hurried.effort.turns()) == [0] and hurried.effort.counted(made) == made
    patient = Effort(repeats=2, warm_up=1)
    assert list(patient.turns()) == [0, 1, 2] and patient.counted(made * 3) == made * 2


def test_nothing_starts_after_the_deadline(tmp_path: Path) -> None:
    cases = cases_of("primitives", Axes(), quick=True)[:3]
    late = _settings(tmp_path, deadline=time.monotonic() - 1)
    outcome = run_suite(cases, late, measure=lambda case: _fake())
    assert outcome.line("primitives") == "bench: ok suite=primitives measured=0 kept=0 failed=0 left=3"
    assert run_suite(cases, _settings(tmp_path), measure=lambda case: _fake()).measured == 3
    done = CliRunner().invoke(app, ["bench", "primitives", "--quick", "--budget", "0", "-o", str(tmp_path / "none")])
    assert done.exit_code == 0 and "left out for want of time" in done.output


def test_other_libraries_beside_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = cases_of("peers", Axes(backends=("seal",)), quick=True)
    assert {case.parameters for case in cases} == {"ckks-8192", "bfv-8192", "bgv-8192"}
    assert run_suite(cases, _settings(tmp_path)).line("peers") == "bench: ok suite=peers measured=3 kept=0 failed=0"
    table = rows.read(tmp_path / "t.csv")
    assert {row["phase"] for row in table} == {"keys", "encryption", "decryption"}
    assert all(float(row["seconds"]) > 0 and row["threshold"] == "0" for row in table)
    assert {row["security"] for row in table} == {"one party has the key"}
    assert all(row["backend_commit"].startswith("seal-python ") for row in table)
    monkeypatch.setenv("KEYQUORUM_OPENFHE_PYTHON", str(tmp_path / "no-python"))
    peers.version.cache_clear()
    outcome = run_suite(cases_of("peers", Axes(backends=("openfhe",)), quick=True), _settings(tmp_path))
    assert outcome.measured == 0 and not outcome.errors and len(outcome.skipped) == 3
    assert "set KEYQUORUM_OPENFHE_PYTHON" in outcome.skipped[0]
    assert sum(row["status"] == "skipped" for row in rows.read(tmp_path / "t.csv")) == 3
    peers.version.cache_clear()


def test_the_program_of_openfhe_needs_no_other_package() -> None:
    """Its Python may have OpenFHE alone, and be too old for this package."""
    tree = ast.parse((Path(peers.__file__).parent / "openfhe_threshold.py").read_text())
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in imported} <= set(sys.stdlib_module_names)


def test_openfhe_is_measured_or_the_reason_told() -> None:
    try:
        report = peers.run("openfhe", "bfv", 3, 120.0)
    except peers.PeerMissingError as error:
        assert "openfhe is not to be had for this Python" in str(error)
        pytest.skip(str(error))
    assert [phase.name for phase in report.phases] == ["keys", "encryption", "decryption"]
    assert all(phase.seconds > 0 for phase in report.phases)


@pytest.mark.parametrize(
    ("suite", "only", "protocol"),
    [
        ("primitives", "product", "semi2k"),
        ("primitives", "AND", "ring"),
        ("sampling", "uniform trit (bilinear)", "shamir"),
        ("conversion", "Z2 to Zq (poly)", "rep-field"),
        ("keygen", "", "rep-field"),
        *([("cnn", "", "rep-field")] if LONG else []),
    ],
)
def test_a_measurement(suite: str, only: str, protocol: str, tmp_path: Path) -> None:
    cases = cases_of(suite, Axes(protocols=(protocol,), only=only), quick=True)[:1]
    assert run_suite(cases, _settings(tmp_path)).line(suite) == f"bench: ok suite={suite} measured=1 kept=0 failed=0"
    table = rows.read(tmp_path / "t.csv")
    assert {row["party"] for row in table} == {str(i) for i in range(cases[0].parties)}
    for name in ("bytes_sent", "bytes_received"):
        assert sum(int(row[name]) for row in table) > 0
    # The parties together receive the bytes that they send.
    assert sum(int(r["bytes_sent"]) for r in table) == sum(int(r["bytes_received"]) for r in table)
    for row in table:
        assert float(row["seconds"]) >= 0 and float(row["peak_memory"]) > 1e6 and float(row["run_cpu_seconds"]) > 0
        assert row["security"].startswith("semi-honest") and row["simulated_links"] == "no" and row["cores"] != "0"
    if only == "product":
        assert {row["phase"] for row in table} == {"offline", "online"}
        assert all("=" in row["unused"] for row in table)


def test_decryption_of_lwe(tmp_path: Path) -> None:
    axes = Axes(protocols=("rep-field",), links=("none", "rtt=40"), only="lwe round_mask_open")
    assert not run_suite(cases_of("decrypt", axes, quick=True), _settings(tmp_path)).errors
    written = rows.read(tmp_path / "t.csv")
    for phase in ("offline", "online"):
        sent, received = (sum(int(r[f"bytes_{way}"]) for r in written if r["phase"] == phase) for way in ("sent", "received"))
        assert sent > 0 and abs(sent - received) <= len(written), "every byte is sent and received, up to rounding"
    table = [row for row in written if row["phase"] == "online"]
    shaped = [row for row in table if row["rtt_ms"] == "40"]
    assert len(table) == 6 and len(shaped) == 3
    assert all(int(row["rounds"]) == 2 for row in shaped)
    assert max(float(row["seconds"]) for row in shaped) >= 0.039, "a party that starts late waits less, the first waits for all of it"
    assert all(float(row["cpu_seconds"]) > 0 for row in table)


def test_a_simulated_link_is_in_force_and_noted(tmp_path: Path) -> None:
    axes = Axes(protocols=("rep-field",), links=("rtt=60,mbit=100",), only="product")
    assert not run_suite(cases_of("primitives", axes, quick=True), _settings(tmp_path)).errors
    table = rows.read(tmp_path / "t.csv")
    assert {(r["rtt_ms"], r["mbit"], r["simulated_links"]) for r in table} == {("60", "100", "yes")}
    assert all(float(r["seconds"]) > 0 and int(r["rounds"]) > 0 for r in table)
    for repeat in {r["repeat"] for r in table}:  # a party that starts late waits less, the first waits for all of it
        assert max(float(r["seconds"]) / int(r["rounds"]) for r in table if r["repeat"] == repeat) >= 0.029


def test_decryption_is_checked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (case, *_) = cases_of("decrypt", Axes(protocols=("rep-field",), links=("none",), only="bfv round_ltz_circuit"), quick=True)
    with Bench(ONE) as bench:
        (run,) = bench.measure(case)
        assert {phase.name for phase in run.reports[0].phases} >= {"load", "phase", "rounding"}
        monkeypatch.setattr("keyquorum.fhe.seal.decode", lambda *_: [0] * 4096)
        with pytest.raises(CaseError, match="1 of 1 ciphertexts were decrypted wrongly"):
            bench.measure(case)


def test_a_measurement_that_takes_too_long_is_stopped_and_noted(tmp_path: Path) -> None:
    axes = Axes(protocols=("shamir",), links=("rtt=10000",), only="product")
    cases = cases_of("primitives", axes, quick=True)[:1]
    settings = Settings(tmp_path / "t.csv", Effort(1, 0, 3.0))
    outcome = run_suite(cases, settings)
    assert len(outcome.errors) == 1 and "took longer than 3 s" in outcome.errors[0]
    (row,) = rows.read(settings.path)
    assert row["status"] == "failed" and "took longer" in row["error"] and row["seconds"] == ""


def test_figures_of_results_are_columns_where_a_suite_has_them(tmp_path: Path) -> None:
    """And a table without them stays readable, as those of earlier builds are."""
    case = cases_of("cnn", Axes(), quick=True)[0]
    found = {"accuracy": 0.97, "digits": 104, "logit_error": 0.03125, "precision_bits": 5.0}
    plain = list(rows.rows_of(case, _fake(), rows.Circumstances(1)))
    rows.write(tmp_path / "plain.csv", plain)
    assert "accuracy" not in (tmp_path / "plain.csv").read_text()
    with_figures = list(rows.rows_of(case, [replace(run, results=found) for run in _fake()], rows.Circumstances(1)))
    rows.write(tmp_path / "t.csv", [*rows.read(tmp_path / "plain.csv"), *with_figures])
    again = rows.read(tmp_path / "t.csv")
    assert [again[0][name] for name in rows.RESULTS] == [""] * 4 and [float(again[-1][name]) for name in rows.RESULTS] == list(found.values())


def test_a_broken_sweep_goes_on(tmp_path: Path) -> None:
    cases = cases_of("primitives", Axes(), quick=True)[:3]
    measured: list[str] = []

    class Broken(Exception): ...

    def measure(case: Case) -> list[Run]:
        if len(measured) == 2:
            raise Broken
        measured.append(case.identity)
        return _fake()

    with pytest.raises(Broken):
        run_suite(cases, _settings(tmp_path), measure=measure)
    assert len({rows.identity(r) for r in rows.read(tmp_path / "t.csv")}) == 2
    again: list[str] = []

    def rest(case: Case) -> list[Run]:
        again.append(case.identity)
        return _fake()

    outcome = run_suite(cases, _settings(tmp_path), measure=rest)
    assert (outcome.measured, outcome.kept) == (1, 2)
    assert again == [cases[2].identity]
    assert run_suite(cases, _settings(tmp_path), measure=rest).kept == 3
    assert run_suite(cases, _settings(tmp_path, fresh=True), measure=rest).kept == 0
    more = Settings(tmp_path / "t.csv", Effort(repeats=2))
    assert run_suite(cases, more, measure=lambda case: _fake() * 2).kept == 0


def test_measurements_beside_other_work_are_noted_or_not_made(tmp_path: Path) -> None:
    cases = cases_of("primitives", Axes(), quick=True)[:3]
    cores = iter([0.0, 1.5, 0.1])
    outcome = run_suite(cases, _settings(tmp_path, busy=lambda: next(cores)), measure=lambda case: _fake())
    assert (outcome.measured, outcome.loaded, outcome.busy) == (3, 1, False)
    assert [list(dict.fromkeys(r["busy"] for r in rows.read(tmp_path / "t.csv") if rows.identity(r) == c.identity)) for c in cases] == [
        ["0.00"],
        ["1.50"],
        ["0.10"],
    ]
    cores = iter([0.0, 1.5])
    strict = _settings(tmp_path, busy=lambda: next(cores), idle=0.0, fresh=True)
    outcome = run_suite(cases, strict, measure=lambda case: _fake())
    assert (outcome.measured, outcome.left, outcome.loaded, outcome.busy) == (1, 2, 0, True)
    cores = iter([1.5, 1.5, 0.0, 0.0])
    outcome = run_suite(cases, _settings(tmp_path, busy=lambda: next(cores), idle=60.0), measure=lambda case: _fake())
    assert (outcome.measured, outcome.kept, outcome.busy) == (2, 1, False), "it waits for the machine"
    unknown = run_suite(cases, _settings(tmp_path, busy=lambda: None, idle=0.0, fresh=True), measure=lambda case: _fake())
    assert unknown.measured == 3 and {r["busy"] for r in rows.read(tmp_path / "t.csv")} == {""}


def test_busy_cores_are_those_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two samples of /proc/stat: half of all time was idle or waiting."""
    samples = iter(["cpu 100 0 0 100 0 0 0 0 7 7\ncpu0 1", "cpu 150 0 50 150 50 0 0 0 9 9\ncpu0 2"])
    stat = tmp_path / "stat"
    monkeypatch.setattr(idle, "STAT", stat)
    monkeypatch.setattr(idle.os, "cpu_count", lambda: 4)
    stat.write_text(next(samples))
    monkeypatch.setattr(idle.time, "sleep", lambda seconds: stat.write_text(next(samples)))
    assert idle.busy_cores() == 2.0
    monkeypatch.setattr(idle.time, "sleep", lambda seconds: None)
    stat.unlink()
    assert idle.busy_cores() is None


def test_the_commit_is_that_of_this_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package within a checkout of another project has no commit."""
    rows.commit.cache_clear()
    assert re.fullmatch(r"([0-9a-f]{12}\+?)?", rows.commit())
    answers = {"rev-parse": str(tmp_path), "log": "0123456789abcdef", "status": ""}
    monkeypatch.setattr(rows, "_git", lambda *words: next(answers[w] for w in words if w in answers))
    rows.commit.cache_clear()
    assert rows.commit() == ""
    answers["rev-parse"] = str(Path(rows.keyquorum.__file__).parents[2])
    rows.commit.cache_clear()
    assert rows.commit() == "0123456789ab"
    rows.commit.cache_clear()


def test_failures_are_noted_and_tried_again(tmp_path: Path) -> None:
    cases = cases_of("primitives", Axes(), quick=True)[:2]

    def measure(case: Case) -> list[Run]:
        if case is cases[0]:
            raise CaseError("party 1\nwas killed")
        return _fake(unused=3)

    outcome = run_suite(cases, _settings(tmp_path), measure=measure)
    assert outcome.line("primitives") == "bench: failed suite=primitives measured=1 kept=0 failed=1"
    table = rows.read(tmp_path / "t.csv")
    assert [r["error"] for r in table if r["status"] == "failed"] == ["party 1 was killed"]
    assert {r["unused"] for r in table if r["status"] == "ok"} == {"triples=3"}
    outcome = run_suite(cases, _settings(tmp_path), measure=lambda case: _fake())
    assert (outcome.measured, outcome.kept, outcome.errors) == (1, 1, [])
    assert all(r["status"] == "ok" for r in rows.read(tmp_path / "t.csv"))


def test_tables_of_other_commits_and_other_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = cases_of("primitives", Axes(), quick=True)[:1]
    run_suite(cases, _settings(tmp_path), measure=lambda case: _fake())
    monkeypatch.setattr(rows, "commit", lambda: "0123456789ab")
    with pytest.raises(rows.TableError, match="this is 0123456789ab: start anew with --fresh"):
        run_suite(cases, _settings(tmp_path), measure=lambda case: _fake())
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(rows.TableError, match="no table of this version"):
        run_suite(cases, _settings(tmp_path), measure=lambda case: _fake())


def test_every_program_names_protocols_that_exist() -> None:
    for program in PROGRAMS.values():
        assert any(program.runs_on(p, "embedded") for p in ("ring", "rep-field", "shamir", "semi2k", "semi"))


@pytest.mark.skipif("MP_SPDZ_HOME" not in os.environ, reason="MP_SPDZ_HOME is not set")
def test_a_program_on_mp_spdz(tmp_path: Path) -> None:
    axes = Axes(backends=("mp-spdz",), protocols=("semi2k",), only="product", links=("none",))
    assert not run_suite(cases_of("primitives", axes, quick=True), _settings(tmp_path)).errors
    table = rows.read(tmp_path / "t.csv")
    assert {r["party"] for r in table} == {"0"} and all(r["backend_commit"] for r in table)
    assert sum(float(r["seconds"]) for r in table) > 0 and sum(int(r["bytes_sent"]) for r in table) > 0


def test_the_command(tmp_path: Path) -> None:
    arguments = [
        "bench",
        "primitives",
        "--quick",
        "--only",
        "opening",
        "-E",
        "ring",
        "--repeats",
        "1",
        "-o",
        str(tmp_path),
    ]
    listed = CliRunner().invoke(app, [*arguments, "--list"])
    assert listed.exit_code == 0 and listed.output.startswith("primitives: opening -E ring n=3")
    assert not list(tmp_path.iterdir())
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert "bench: ok suite=primitives measured=1 kept=0 failed=0 table=" in done.output
    with (tmp_path / "primitives.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 3
