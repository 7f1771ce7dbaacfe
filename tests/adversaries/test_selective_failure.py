"""Whether a run stops must not depend on secrets of honest parties: rates of aborts against bits of secrets, over many toy runs; and a check that comes too late, where they do."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from keyquorum.dsl import ProgramIO, run_program

from tests.long import LONG

from .changes import ABOVE, WIRE, Change, Deviation
from .lwe_plans import LweDecryption, encrypt, lwe_decryption, toy_lwe
from .plans import FIELD_OF_TOYS, SIZE, toy_of
from .runner import Begin, Case, Plan, honest_run, run

RUNS = 2000 if LONG else 60
ALARM = 1e-7
"""The test stops without a reason with this probability, for each bit that it looks at."""
KINDS = tuple(kind for kind in (*WIRE, *ABOVE) if kind != "drop")  # a message that does not come costs a wait


def independent(table: Sequence[Sequence[float]]) -> float | None:
    """The probability of such a table of counts, or a less even one, if rows and columns are independent: chi square of 2 x 2. None where a row or a column is empty: such a table says nothing of them."""
    (a, b), (c, d) = table
    rows, columns, total = (a + b, c + d), (a + c, b + d), a + b + c + d
    if 0 in (*rows, *columns):
        return None
    return math.erfc(math.sqrt(total * (a * d - b * c) ** 2 / (rows[0] * rows[1] * columns[0] * columns[1]) / 2))


def difference_seen(runs: int) -> tuple[float, float]:
    """The least difference of the rates of aborts, between a bit 0 and a bit 1, that :data:`ALARM` finds in tables of so many runs, half of them stopped and half of the bits 1; and what an abort tells of the bit then."""
    low, high = 0.0, 1.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        x = runs * middle / 4
        found = independent([[runs / 4 + x, runs / 4 - x], [runs / 4 - x, runs / 4 + x]])
        low, high = (low, middle) if found is not None and found < ALARM else (middle, high)
    p = (1 + high) / 2
    return high, 1 + p * math.log2(p) + (1 - p) * math.log2(1 - p)


def tables(sample: Callable[[np.random.Generator], tuple[Plan, list[int]]], seed: int) -> list[list[list[int]]]:
    """For each bit of the secret a table: its value, and whether the run stopped. Deviations and secrets are drawn anew for each run."""
    rng = np.random.default_rng(seed)
    plan, bits = sample(rng)
    followed = [honest_run(plan, party) for party in range(plan.parties)]
    found = [[[0, 0], [0, 0]] for _ in bits]
    for _ in range(RUNS):
        plan, bits = sample(rng)
        party = int(rng.integers(plan.parties))
        counts = {kind: len(followed[party].sent) if kind in WIRE else followed[party].calls[kind] for kind in KINDS}
        kind = str(rng.choice([kind for kind, count in counts.items() if count]))
        count = counts[kind]
        outcome = run(Case(plan, party, Change(kind, int(rng.integers(count))), other_session=tuple(followed[party].sent)))
        assert outcome.end not in ("wrong", "hung", "internal"), outcome.reason
        for table, bit in zip(found, bits, strict=True):
            table[bit][int(outcome.end != "right")] += 1
    return found


def products(rng: np.random.Generator) -> tuple[Plan, list[int]]:
    """Products of secret bits, modulo a prime."""
    bits = rng.integers(0, 2, SIZE).tolist()
    return toy_of("mal-rep-field", 3, FIELD_OF_TOYS, (*bits, *rng.integers(0, 100, SIZE).tolist())), bits[:2]


def decryptions(rng: np.random.Generator) -> tuple[Plan, list[int]]:
    """Bits of an LWE secret and of the messages."""
    plan = lwe_decryption("mal-rep-field", 3, 1, modulus="prime")
    assert isinstance(plan.job, LweDecryption)
    parameters = toy_lwe("prime")
    secret, messages = rng.integers(0, 2, parameters.dimension), rng.integers(0, 1 << parameters.plain_bits, len(plan.job.wanted))
    ciphertexts = encrypt(parameters, secret, messages, rng, rng.integers(-5, 6, messages.size))
    job = replace(plan.job, secret=tuple(secret.tolist()), ciphertexts=ciphertexts, wanted=tuple(messages.tolist()))
    return replace(plan, job=job, right=job.right), [int(secret[0]), int(secret[-1]), int(messages[0]) & 1]


@pytest.mark.parametrize("sample", [products, decryptions])
def test_aborts_do_not_depend_on_secrets(sample: Callable[[np.random.Generator], tuple[Plan, list[int]]]) -> None:
    """Any deviation at any place, by any party: with the secret's bits 0 and 1 runs stop equally often. False alarm: 10^-7 a bit."""
    for table in tables(sample, 77):
        found = independent(table)
        assert sum(map(sum, table)) == RUNS and all(stopped for _, stopped in table), table  # both values of the bit, with runs that stop
        if found is None:
            assert not any(went_on for went_on, _ in table), table  # every run stops, whatever the bit is
        else:
            assert found > ALARM, table


class CheckedInput:
    """Party 1 gives 2 in place of a bit. ``order``: when it is checked."""

    def __init__(self, order: str, bit: int) -> None:
        self.order, self.bit = order, bit

    def __call__(self, session: Any, deviation: Deviation, begin: Begin, honest: int) -> bool:
        """Whether the party stops."""
        begin()
        engine = session.engine("mal-rep-field", FIELD_OF_TOYS, "selective", 1, None)
        private = np.array([{0: self.bit, 1: 2}.get(session.party, 0)][: int(session.party < 2)], dtype=np.int64)
        io = ProgramIO(private_inputs=private, public_inputs=[])
        run_program(engine, Path(__file__).with_name("selective.mpc"), [self.order], io)
        return bool(io.binary_outputs[0][0] != 0)


def stops(order: str, runs: int) -> list[list[int]]:
    """A table of the honest bit, and whether honest parties stop."""
    table, rng = [[0, 0], [0, 0]], np.random.default_rng(5)
    for _ in range(runs):
        bit, ends = int(rng.integers(2)), list[bool]()
        plan = Plan("a late check", 3, CheckedInput(order, bit), lambda results, ends=ends: ends.append(results[0]) is None)
        assert run(Case(plan, 1, None)).end == "right"
        table[bit][int(ends[0])] += 1
    return table


def test_a_late_check_stops_depending_on_the_secret() -> None:
    """The ablation: where an input is checked in what was computed from it, and not before, a run stops if the honest bit is 1. The statistic shows it; and nothing where the check comes first."""
    late, early = stops("after", 40), stops("before", 10)
    assert late[0][1] == 0 and late[1][0] == 0
    found = independent(late)
    assert found is not None and found < ALARM
    assert independent(early) is None and early[0][0] == early[1][0] == 0 < early[0][1] * early[1][1]  # with both bits every run stops


def test_the_statistic() -> None:
    assert independent([[30, 30], [30, 30]]) == 1.0
    assert cast(float, independent([[60, 0], [0, 60]])) < 1e-20
    assert 0.01 < cast(float, independent([[25, 35], [35, 25]])) < 0.1
    for empty in ([[0, 0], [30, 30]], [[30, 30], [0, 0]], [[0, 30], [0, 30]], [[30, 0], [30, 0]], [[0, 0], [0, 0]]):
        assert independent(empty) is None


def test_what_the_statistic_finds() -> None:
    """The numbers of docs/pages/security/deviations.md."""
    assert [tuple(round(x, 2) for x in difference_seen(runs)) for runs in (60, 2000)] == [(0.69, 0.37), (0.12, 0.01)]
