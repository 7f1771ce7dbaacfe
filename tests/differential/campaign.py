"""Runs many programs on many targets and finds those that differ from the oracle."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from .batch import Batch, Observed
from .builder import Program
from .generate import smallest
from .refusals import Refusal
from .targets import Target

BATCH = 100
AGAIN = 3
"""Runs of a program alone that tell whether it always differs."""
Runner = Callable[[Batch, Path], Observed]
TextRunner = Callable[[str, Target, Path, dict[int, list[int]]], Observed]


@dataclass(frozen=True)
class Difference:
    """A program whose result on a target differs from the expected one."""

    program: Program
    target: Target
    what: str

    def __str__(self) -> str:
        return f"{self.target.name}: {self.what}\nin {self.program!r}"


@dataclass
class Tally:
    """``runs``: programs run, by target; ``skipped``: those outside of what a target offers."""

    runs: dict[str, int] = field(default_factory=dict)
    skipped: int = 0
    differences: list[Difference] = field(default_factory=list)


def check(programs: Sequence[Program], target: Target, run: Runner, folder: Path, tally: Tally) -> None:
    """Runs all programs that a target takes, in batches."""
    taken = [p for p in programs if target.takes(p)]
    tally.runs[target.name] = len(taken)
    tally.skipped += len(programs) - len(taken)
    for at in range(0, len(taken), BATCH):
        tally.differences += _checked(taken[at : at + BATCH], target, run, folder)


def _checked(programs: Sequence[Program], target: Target, run: Runner, folder: Path) -> Iterator[Difference]:
    """Differences of a batch; a batch that fails as a whole is run in halves."""
    batch = Batch(programs, target)
    seen = run(batch, folder)
    if not seen.error:
        for number, what in sorted(batch.differences(seen).items()):
            yield Difference(programs[number], target, what)
    elif len(programs) == 1:
        yield Difference(programs[0], target, f"fails: {seen.error}")
    else:
        middle = len(programs) // 2
        for part in (programs[:middle], programs[middle:]):
            yield from _checked(part, target, run, folder)


def shrunk(difference: Difference, run: Runner, folder: Path, seconds: float = 60.0) -> Difference:
    """The difference of the smallest program that hypothesis finds from this one; the search ends after ``seconds``."""
    target, end = difference.target, time.monotonic() + seconds
    differences: dict[str, Difference] = {}

    def fails(program: Program) -> bool:
        if time.monotonic() > end or not target.takes(program):
            return False
        found = list(_checked([program], target, run, folder))
        if found:
            differences[repr(program)] = found[0]
        return bool(found)

    return differences.get(repr(smallest(difference.program, fails)), difference)


def explained(difference: Difference, run: Runner, folder: Path) -> Difference:
    """The difference with a smaller program; or as it is, marked as flaky, if the program alone does not differ in every one of AGAIN runs."""
    program, target = difference.program, difference.target
    again = sum(bool(list(_checked([program], target, run, folder))) for _ in range(AGAIN))
    if again == AGAIN:
        return shrunk(difference, run, folder)
    return replace(difference, what=f"flaky: differs in a batch, and in {again} of {AGAIN} runs alone: {difference.what}")


def report(tally: Tally, runners: dict[str, Runner], folder: Path, most: int = 3) -> str:
    """The differences, the first ones explained."""
    texts = [str(explained(d, runners[d.target.engine], folder)) for d in tally.differences[:most]]
    rest = [f"{d.target.name}: {d.what}" for d in tally.differences[most:]]
    return "\n\n".join(texts + rest)


def check_refusals(pairs: Sequence[Refusal], target: Target, run: TextRunner, folder: Path) -> list[str]:
    """Pairs whose good program was refused, or whose bad one was not. Every party has eight words of input."""
    private = {party: list(range(1, 9)) for party in range(3)}
    wrong = []
    for pair in pairs:
        if (pair.field and target.domain.ring) or (not pair.field and target.only_field_refusals):
            continue
        if not run(pair.bad, target, folder, private).error:
            wrong.append(f"{target.name} takes what both must refuse ({pair.family}):\n{pair.bad}")
        refused = run(pair.good, target, folder, private).error
        if refused:
            wrong.append(f"{target.name} refuses what both must take ({pair.family}): {refused}\n{pair.good}")
    return wrong
