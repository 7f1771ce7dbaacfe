"""Simulation of the rounding without a mask (docs/pages/model.md): the bits of the carry are opened under random bits, and nothing else; and the shares of the message are uniform but for
the message, though the shares of the phase that go in are known numbers.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from keyquorum.dsl import ProgramIO, ShareVector, run_program

from tests.plans.distributions import bits_of, chi_square_p, smallest_p, uniform
from tests.protocols import REPLICATED_FIELD, REPLICATED_RING, SEMI_FIELD, SEMI_FIELD_3, SEMI_RING, Backend

from .costs import PROGRAMS
from .running import NO_WORDS, at_every_party
from .test_simulation import FALSE_ALARM, Log, Watched

T, L, COUNT = 257, 12, 4096
RNG = np.random.default_rng(23)
PAIRS = [
    (REPLICATED_RING, REPLICATED_FIELD, 3, 2),
    (SEMI_RING, SEMI_FIELD, 2, 2),
    (Backend("semi2k", 3, "Z2^64", 2), SEMI_FIELD_3, 3, 3),
]
BACKENDS = pytest.mark.parametrize(("ring", "field", "summands", "contributors"), PAIRS, ids=["replicated", "additive-2", "additive-3"])


def see(backend: Backend, program: str, words: list[Any], given: np.ndarray, private: list[np.ndarray], public: np.ndarray | None = None) -> Any:
    """Openings of a program in their order, with the words of those to all, and every party's shares of what is opened to party 0. ``given``: the summands of what it reads, [summands, size]."""

    def one(session: Any) -> Any:
        party, log, shares = session.party, Log(), []
        engine = session.engine(backend.protocol, backend.domain, program, None)
        held = [given[party], given[(party + 2) % 3]] if backend.protocol in ("ring", "rep-field") else [given[party]]
        mine = private[party] if party < len(private) else NO_WORDS
        io = ProgramIO(
            private_inputs=mine,
            public_inputs=[] if public is None else [public],
            shares=ShareVector.from_words(np.stack(held).astype(np.uint64)),
        )

        class Sent(Watched):
            def open_to(self, a: Any, player: int) -> Any:
                kept = ShareVector()
                kept.write(self._engine, self._engine.export(a))
                shares.append(kept.words.copy())
                return super().open_to(a, player)

        run_program(Sent(engine, log), PROGRAMS / f"{program}.mpc", [str(w) for w in words], io)  # type: ignore[arg-type]
        read = [np.asarray(engine.read_bits(v) if v.kind == "cb" else engine.read(v)).astype(np.uint64) for _, v in log if v is not None]
        return [name for name, _ in log], read, shares

    results = at_every_party(backend.parties, one)
    assert all(r[0] == results[0][0] for r in results)
    return results[0][0], results[0][1], [r[2] for r in results]


@BACKENDS
@pytest.mark.parametrize("masked", [True, False], ids=["random-bits", "zeros"])
def test_the_carry_is_opened_under_random_bits(ring: Backend, field: Backend, summands: int, contributors: int, masked: bool) -> None:
    """Each opened bit is balanced, and agrees with each bit of the low parts and of the carry half the time; with zeros in place of random bits it does not."""
    low, high = RNG.integers(0, 1 << L, (summands, COUNT)), RNG.integers(0, T, (summands, COUNT))
    carry, rows = low.sum(0) >> L, (summands - 1).bit_length()
    bits = [RNG.integers(0, 1 + masked, rows * COUNT) for _ in range(contributors)]
    names, opened, _ = see(ring, "round_carry_odd_ring", [summands, contributors, COUNT, L], low, bits)
    assert names == [f"open sb {COUNT}"] * rows
    known = [*bits_of(carry, rows), *(bit for part in low for bit in bits_of(part, L)), *bits_of(low.sum(0), L)]
    known = [column for column in known if 0 < column.mean() < 1]
    assert (smallest_p([bit for row in opened for bit in bits_of(row, 1)], known) > FALSE_ALARM) == masked

    over = field.over(f"F_{T}")
    names, found, shares = see(
        over, "round_carry_odd_field", [summands, contributors, COUNT, T, 0], high, bits, np.concatenate(opened).astype(np.int64)
    )
    assert names == [f"open s {COUNT} to 0"] and not found
    message = (high.sum(0) + carry) % T
    parts = [party[0][0].astype(np.int64) for party in shares]
    assert np.array_equal(sum(parts) % T, message)
    # The values that any coalition lacks are uniform, and so are their differences to the shares that went in.
    for size in range(1, len(parts)):
        for subset in combinations(range(len(parts)), size):
            lacking = np.sum([parts[i] for i in subset], axis=0) % T
            for known_ in (0, message, carry, np.sum([high[i] for i in subset], axis=0)):
                assert chi_square_p((lacking - known_) % T, uniform(range(T))) > FALSE_ALARM / 100
    assert chi_square_p((np.sum(parts, axis=0) - message) % T, uniform(range(T))) < FALSE_ALARM
