"""`make papers`: every step is a command that there is, and only what is not measured is measured."""

from __future__ import annotations

import csv
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from bench.decryption import exactness
from bench.papers import __main__ as papers
from bench.papers import state, steps
from bench.papers.state import Progress
from bench.papers.steps import STEPS, Step
from bench.runner import Bench
from keyquorum.model.chosen_committees import WITH_MACS, over_ring
from keyquorum.report.papers.rules import load_rules
from keyquorum.sweep.cases import Axes
from keyquorum.sweep.suites import SUITES, cases_of

ROOT = Path(__file__).resolve().parents[2]


def _bench(step: Step) -> tuple[Bench[Any], list[str]]:
    """The benchmark that a step starts, and its options."""
    name, *words = step.words
    module = import_module(f"{name}.__main__" if (find_spec(name) or sys).__dict__.get("submodule_search_locations") else name)
    found = [one for value in vars(module).values() for one in (value.values() if isinstance(value, dict) else [value]) if isinstance(one, Bench)]
    options = [word for word in words if word.startswith("--")]
    words = words if not words or words[0] in options else words[1:]
    chosen = [one for one in found if Path(step.table).stem in (one.name, one.table(one._parser().parse_args(words if one in found[:1] else [])))]
    return (chosen or found)[0], words


@pytest.mark.parametrize(
    "step", [s for s in STEPS if not s.sweep and s.words[0] not in ("bench.service", "bench.parity")], ids=lambda step: step.name
)
def test_a_step_selects_measurements_and_writes_its_table(step: Step) -> None:
    bench, words = _bench(step)
    options = bench._parser().parse_args(words)
    assert bench.chosen(options)
    if bench.columns:
        assert f"{bench.table(options) or bench.name}.csv" == step.table
        usual = bench._parser().parse_args([])
        left_out = [
            name for name in (*bench.restricting, *(() if bench.key else ("only", *bench.axes))) if getattr(options, name) != getattr(usual, name)
        ]
        assert not left_out, "the table would not be written"
        assert set(step.rows) <= {*bench.columns, "commit"}


def test_steps_of_sweeps_and_scripts() -> None:
    for step in STEPS:
        if step.sweep:
            assert step.words[:2] == ("keyquorum", "bench") and cases_of(step.words[2], Axes()) and step.table == f"bench/{step.words[2]}.csv"
            assert step.words[2] in SUITES
        assert step.words[0] == "keyquorum" or find_spec(step.words[0])
    assert len({step.name for step in STEPS}) == len(STEPS) and {step.needs for step in STEPS} - {""} == set(steps.NEEDS)


def test_the_short_form_fits_into_ninety_minutes_and_covers_the_page() -> None:
    assert sum(step.minutes for step in STEPS if not step.full) <= 90
    files = {source.file for source in load_rules().sources.values() if source.file}
    assert files <= {step.table for step in STEPS if not step.full}


@pytest.mark.parametrize("table", ["ghs.csv", "ajax.csv", "ajax_decryption.csv"])
def test_steps_leave_no_measurement_out(table: str) -> None:
    made = [_bench(step) for step in STEPS if step.table == table]
    bench = made[0][0]
    found = {case for _, words in made for case in bench.chosen(bench._parser().parse_args(words))}
    assert found == set(bench.cases(bench._parser().parse_args([])))


def test_short_counts_of_wrong_decryptions_leave_none_out() -> None:
    """The two steps together count all rows, and the table tells them apart by the protocols of their roundings."""
    made = [step for step in STEPS if step.table == "exactness.csv" and "--items" in step.words]
    counted = [exactness.BENCH.chosen(exactness.BENCH._parser().parse_args(step.words[1:])) for step in made]
    assert [step.full for step in made] == [False, True] and all(made[i].rows["decryptions"] == ("512",) for i in (0, 1))
    assert [one for cases in counted for one in cases] == sorted(
        (exactness.Case(*row) for row in exactness.configurations(512)), key=lambda one: one.protocol == WITH_MACS
    )
    found = [{over_ring(one.protocol) for one in cases} for cases in counted]
    assert found == [set(step.rows["protocol"]) for step in made] and not found[0] & found[1]


def _git(root: Path, *words: str) -> str:
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", "-C", str(root), *identity, *words], check=True, capture_output=True, text=True).stdout.strip()


def _commit(root: Path, name: str) -> str:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{len(list(root.rglob('*')))}\n")
    _git(root, "add", name)
    _git(root, "commit", "-q", "-m", name)
    return _git(root, "rev-parse", "HEAD")[:12]


def _record(root: Path, *rows: tuple[str, str]) -> None:
    (root / "results").mkdir(exist_ok=True)
    with (root / "results" / "toy.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("n", "commit"), *rows])


STEP = Step("toy", ("toy",), "toy.csv", 1, {"n": ("2", "4")})


def test_what_is_measured_at_this_state_is_done(tmp_path: Path) -> None:
    _git(tmp_path, "init", "-q")
    old, new = _commit(tmp_path, "Source/a"), _commit(tmp_path, "harness/a")
    progress = Progress(tmp_path, tmp_path / "build")
    progress.logs.mkdir()
    assert progress.state(STEP) == state.MISSING
    for rows, expected in (
        ((("2", old), ("4", new)), state.STALE),
        ((("2", new),), state.STALE),
        ((("2", new + "+"), ("4", new)), state.STALE),
        ((("2", ""), ("4", new)), state.STALE),
        ((("8", new),), state.MISSING),
        ((("2", new), ("2", old), ("4", new)), state.DONE),
    ):
        _record(tmp_path, *rows)
        assert progress.state(STEP) == expected, rows
    assert progress.state(replace(STEP, sweep=True)) == state.STALE
    progress.mark(STEP).touch()
    assert progress.state(STEP) == state.UNFINISHED
    progress.mark(STEP).unlink()
    for name in ("results/b", "docs/b", "harness/b.md", "params/published/b"):
        _commit(tmp_path, name)
        state._unchanged.cache_clear()
        assert progress.state(STEP) == state.DONE, name
    _commit(tmp_path, "params/b")
    state._unchanged.cache_clear()
    assert progress.state(STEP) == state.STALE


def test_a_failed_step_is_named_and_the_others_follow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(tmp_path, tmp_path)
    commands = {"good": "print(1)", "bad": "raise SystemExit(3)", "slow": "import time; time.sleep(60)"}
    monkeypatch.setattr(papers, "command", lambda step, state: [sys.executable, "-c", commands[step.name]])
    monkeypatch.setattr(Step, "limit", property(lambda step: 0.01 if step.name == "slow" else 1.0))
    made = [Step(name, (), "none.csv", 1) for name in ("bad", "slow", "good")]
    needy = Step("needy", (), "none.csv", 1, needs=steps.MP_SPDZ)
    monkeypatch.delenv("MP_SPDZ_HOME", raising=False)
    assert papers.measure([*made, needy, Step("long", (), "none.csv", 99)], progress, 30) == ["bad", "slow"]
    output = capsys.readouterr()
    text = output.out + output.err
    for said in (
        "1/5 bad: failed: exit code 3",
        "2/5 slow: failed: it took more than 0.01 minutes",
        "3/5 good: ok",
        "it needs a built checkout",
        "99 minutes do not fit",
    ):
        assert said in text, said
    assert progress.log(made[2]).read_text() == "1\n" and not progress.mark(made[2]).exists() and progress.mark(made[0]).exists()


def test_a_sweep_of_another_state_starts_anew() -> None:
    sweep = next(step for step in STEPS if step.sweep)
    assert papers.command(sweep, state.STALE)[-1] == "--fresh" and "--fresh" not in papers.command(sweep, state.UNFINISHED)


def test_steps_are_listed_and_mistakes_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert papers.main(["--list", "--only", "lisss"]) == 0 and "papers: step=lisss minutes=1.5 state=" in capsys.readouterr().out
    assert papers.main(["--only", "moon"]) == 2 and "no step has 'moon' in its name" in capsys.readouterr().err
