"""A thousand random programs: the oracle, the embedded engine and, with MP_SPDZ_HOME, MP-SPDZ agree on all of them.

The programs are the same at every run; SEED=fresh (or a number) in the environment draws others.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from keyquorum.backends.mpspdz import Checkout
from keyquorum.backends.mpspdz.workdir import WorkFolder
from keyquorum.dsl.values import clear
from keyquorum.model.protocols import PROTOCOLS

from tests.long import some

from . import embedded, refusals
from .__main__ import main, seed_of
from .batch import Batch, Observed
from .builder import REGISTRY, Program
from .campaign import Tally, check, check_refusals, report, shrunk
from .domain import FIELD, RING, Domain
from .generate import collect, smallest
from .spdz import MpSpdz
from .targets import EMBEDDED, SPDZ, Target

ROOT = Path(__file__).parents[2]
PROGRAMS = 1000
WITH_MACS = 40
"""Every opening is verified in rounds of its own: `make differential` runs all."""
FRESH = 40
"""Programs of a seed that no earlier run had."""
EACH = pytest.mark.parametrize("target", EMBEDDED, ids=lambda t: t.name)
EACH_SPDZ = pytest.mark.parametrize("target", SPDZ, ids=lambda t: t.name)
NEEDS_SPDZ = pytest.mark.skipif(not os.environ.get("MP_SPDZ_HOME"), reason="MP_SPDZ_HOME is not set")


@pytest.fixture(scope="module")
def seed() -> int:
    number = seed_of(os.environ.get("SEED"))
    print(f"SEED={number}")
    return number


@pytest.fixture(scope="module")
def programs(seed: int) -> list[Program]:
    return collect(PROGRAMS, seed)


@pytest.fixture(scope="module")
def pairs(seed: int) -> list[refusals.Refusal]:
    return refusals.collect(4, seed)


@pytest.fixture(scope="module")
def mp_spdz(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MpSpdz]:
    with WorkFolder(tmp_path_factory.mktemp("mp-spdz")) as folder:
        yield MpSpdz(Checkout.find(), folder)


def built(target: Target) -> None:
    if not Checkout.find().has(target.protocol):
        pytest.skip(f"{target.protocol} is not built")


@EACH
def test_programs(programs: list[Program], target: Target, tmp_path: Path) -> None:
    tally = Tally()
    count = WITH_MACS if PROTOCOLS[target.protocol].macs else PROGRAMS
    check(programs[:count], target, embedded.run_batch, tmp_path, tally)
    assert not tally.differences, report(tally, {"embedded": embedded.run_batch}, tmp_path)
    assert tally.runs[target.name] > count // 4


def test_programs_of_a_fresh_seed(record_property: Callable[[str, object], None], tmp_path: Path) -> None:
    """Others at every run. `make differential SEED=` and the number that is printed at the end of the tests runs them again, and more."""
    seed = secrets.randbits(32)
    record_property("fresh seed", seed)
    tally, fresh = Tally(), collect(FRESH, seed)
    for target in EMBEDDED:
        check(fresh, target, embedded.run_batch, tmp_path, tally)
    wrong = check_refusals(refusals.collect(1, seed), EMBEDDED[2], embedded.run_text, tmp_path)
    assert not tally.differences and not wrong, f"seed {seed}: " + "\n".join([report(tally, {"embedded": embedded.run_batch}, tmp_path), *wrong])
    assert len(tally.runs) == len(EMBEDDED)


@pytest.mark.parametrize("number", some([2921596353, 5, 6], 1))
def test_the_oracle_takes_every_program(number: int) -> None:
    """Programs keep the operands of comparisons within the lengths that engines see: the first seed once made inputs of 64 bits there."""
    for program in collect(PROGRAMS, number):
        for target in EMBEDDED:
            if target.takes(program):
                program.evaluate(target.domain, target.parties)


@pytest.mark.parametrize("target", [t for t in EMBEDDED if t.shows_refusals], ids=lambda t: t.name)
def test_refusals(pairs: list[refusals.Refusal], target: Target, tmp_path: Path) -> None:
    assert not check_refusals(pairs, target, embedded.run_text, tmp_path)


@NEEDS_SPDZ
@EACH_SPDZ
def test_programs_on_mp_spdz(programs: list[Program], target: Target, mp_spdz: MpSpdz, tmp_path: Path) -> None:
    built(target)
    tally = Tally()
    check(programs, target, mp_spdz.run_batch, tmp_path, tally)
    assert not tally.differences, report(tally, {"mp-spdz": mp_spdz.run_batch}, tmp_path)


@NEEDS_SPDZ
@pytest.mark.parametrize("target", [t for t in SPDZ if t.shows_refusals], ids=lambda t: t.name)
def test_refusals_on_mp_spdz(pairs: list[refusals.Refusal], target: Target, mp_spdz: MpSpdz, tmp_path: Path) -> None:
    built(target)
    each = [p for i, p in enumerate(pairs) if i % 4 < 2]
    assert not check_refusals(each, target, mp_spdz.run_text, tmp_path)


def test_every_construct_is_tried(programs: list[Program], pairs: list[refusals.Refusal]) -> None:
    used = Counter(name for p in programs for name in set(p.uses))
    assert not [name for name in REGISTRY if used[name] < 5]
    assert {p.family for p in pairs} == {f.__name__ for f in refusals.FAMILIES}
    assert len({p.text for p in programs}) == PROGRAMS


def test_the_same_seed_gives_the_same_programs() -> None:
    first, second, other = ([p.text for p in collect(30, seed)] for seed in (5, 5, 6))
    assert first == second != other


# -- mistakes are found -----------------------------------------------------------------------------------------------

MISTAKES: list[tuple[str, Any, str, Any]] = [
    ("differences are sums", clear.Element, "__sub__", clear.Element.__add__),
    ("division rounds down", clear, "_quotient", lambda a, b: a // b),
    ("numbers are not reversed", clear.Element, "__rsub__", clear.Element.__sub__),
    ("words of loops come late", clear.regint, "_become", lambda self, other: None),
]


@pytest.mark.parametrize(("name", "owner", "attribute", "wrong"), MISTAKES, ids=[m[0] for m in MISTAKES])
def test_a_mistake_is_found(
    name: str, owner: Any, attribute: str, wrong: Any,
    monkeypatch: pytest.MonkeyPatch, programs: list[Program], tmp_path: Path,
) -> None:  # fmt: skip
    some = [p for p in programs if "while_do" not in p.text]  # loops whose counter a mistake stops never end
    monkeypatch.setattr(owner, attribute, wrong)
    tally = Tally()
    check(some, EMBEDDED[0], embedded.run_batch, tmp_path, tally)
    assert 0 < len(tally.differences) < len(some)


def test_a_difference_is_shrunk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(clear.Element, "__neg__", lambda self: self)
    tally = Tally()
    check([p for p in collect(150, 2) if p.uses["negation"]], EMBEDDED[0], embedded.run_batch, tmp_path, tally)
    found = max(tally.differences, key=lambda d: len(d.program.text))
    smallest = shrunk(found, embedded.run_batch, tmp_path, 60.0).program
    assert smallest.uses["negation"] and len(smallest.text.splitlines()) < min(16, len(found.program.text.splitlines()))


def test_a_search_among_results_that_change_ends(programs: list[Program]) -> None:
    """A program that failed keeps its verdict: hypothesis raises an error if its smallest example passes in the end."""
    asked: Counter[str] = Counter()

    def fails(program: Program) -> bool:
        asked[repr(program)] += 1
        return len(asked) < 30  # later programs pass, as after the end of the time for a search

    found = smallest(programs[50], fails)
    assert max(asked.values()) == 1 and len(asked) >= 30 and len(found.text) < len(programs[50].text)


def test_a_flaky_program_is_reported_as_flaky(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """One that differs in some runs only is printed as it is, and the command ends with its summary and exit code 1."""
    monkeypatch.delenv("MP_SPDZ_HOME", raising=False)
    runs = 0
    right = embedded.run_batch

    def flaky(batch: Batch, folder: Path) -> Observed:
        nonlocal runs
        runs += 1
        seen = right(batch, folder)
        if runs % 2:
            seen.lines[0] = seen.lines[0][:-1]
        return seen

    monkeypatch.setattr(embedded, "run_batch", flaky)
    assert main(["--programs", "20", "--targets", "emulate-1$", "--refusals", "1", "--seed", "4"]) == 1
    out = capsys.readouterr().out
    assert "embedded:emulate-1: flaky: differs in a batch, and in 1 of 3 runs alone: party 0 prints" in out
    assert collect(20, 4)[-1].text in out
    assert out.splitlines()[-1].startswith("differential: programs=20 backends=1 differences=1 skipped=")


def test_a_wrong_output_is_found(tmp_path: Path) -> None:
    """Of every party, in lines, words and errors."""
    spoilt_programs = []

    def spoilt(batch: Batch, folder: Path) -> Observed:
        seen = embedded.run_batch(batch, folder)
        if not spoilt_programs:
            last = max(n for n, state in enumerate(batch.states) if state.words[1])
            other = min(n for n, state in enumerate(batch.states) if state.lines[2] and n != last)
            seen.words[1][-1] += 1
            at = next(n for n, line in enumerate(seen.lines[2]) if line.startswith(f"@{other} "))
            seen.lines[2][at] += "0"
            spoilt_programs.extend((batch.programs[last], batch.programs[other]))
        return seen

    tally = Tally()
    check(collect(60, 3), EMBEDDED[2], spoilt, tmp_path, tally)
    found = {d.program.text: d.what for d in tally.differences}
    words, lines = (p.text for p in spoilt_programs)
    assert found.keys() == {words, lines} and "party 1 outputs" in found[words] and "party 2 prints" in found[lines]


def test_the_programs_depend_on_the_seed_alone() -> None:
    """Not on what else is loaded, and not on an earlier collection."""
    script = (
        "import sys, hashlib; from tests.differential.generate import collect; "
        "print(hashlib.sha256(''.join(map(repr, collect(40, 5))).encode()).hexdigest())"
    )
    other = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    here = hashlib.sha256("".join(map(repr, collect(40, 5))).encode()).hexdigest()
    assert other.stdout.strip() == here


def test_the_oracle_knows_its_domains() -> None:
    small = Domain(7, 0)
    assert small.centre(range(7)) == [0, 1, 2, 3, -3, -2, -1] and small.integers(range(7)) == [0, 1, 2, -4, -3, -2, -1]
    assert RING.centre([1 << 63, (1 << 63) - 1]) == [-(1 << 63), (1 << 63) - 1] == RING.integers([1 << 63, (1 << 63) - 1])
    assert (RING.bits, FIELD.bits, RING.name, small.name) == (64, 60, "Z2^64", "F_7")


def test_the_command_ends_with_its_summary(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MP_SPDZ_HOME", raising=False)
    assert main(["--programs", "40", "--targets", "emulate", "--refusals", "1"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("differential: programs=40 backends=2 differences=0 skipped=")
