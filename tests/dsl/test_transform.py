"""The engine's negacyclic transforms are those of the arithmetic module, where they exist."""

from __future__ import annotations

import numpy as np
import pytest
from keyquorum import _engine
from keyquorum.dsl.control.program import Program, ProgramOptions

from .test_negacyclic import engine
from .test_recorded import replayed

RNG = np.random.default_rng(37)
Q53 = 9007199254614017


@pytest.mark.parametrize(("q", "n"), [(Q53, 2048), (Q53, 2), (65537, 64), (257, 128)])
@pytest.mark.parametrize("rows", [1, 3])
def test_transforms_are_those_of_the_ntt(q: int, n: int, rows: int) -> None:
    run = engine("emulate", f"F_{q}")
    a = RNG.integers(0, q, rows * n)
    wanted = _engine.Ntt(q, n).forward(a.astype(np.uint64))
    assert np.array_equal(run.read(run.open(run.transform(run.input(0, a.size, a), n))), wanted)
    assert np.array_equal(run.read(run.transform(run.clear(a), n)), wanted)


def test_wrong_operands_are_refused() -> None:
    run = engine("emulate", f"F_{Q53}")
    a = run.input(0, 16, np.zeros(16, dtype=np.int64))
    assert run.transform(a, 8).size == 16
    for n, error in (
        (12, "power of two"),
        (1, "power of two"),
        (32, "no whole number of polynomials"),
        (4096, "has no transform of ring degree 4096"),
    ):
        with pytest.raises(_engine.UsageError, match=error):
            run.transform(a, n)
    ring = engine("emulate", "Z2^64")
    with pytest.raises(_engine.UsageError, match="modulo 2\\^k there are none"):
        ring.transform(ring.clear(np.zeros(16, dtype=np.int64)), 8)


@pytest.mark.parametrize(("domain", "there"), [("Z2^64", False), ("Z2^72", False), ("F_65537", True)])
def test_programs_see_where_the_engine_has_them(domain: str, there: bool) -> None:
    assert (Program(engine("emulate", domain), "p.mpc", "p", [], ProgramOptions()).transform is not None) == there


def test_recordings_repeat_transforms() -> None:
    replayed("F_65537", lambda run, x: run.transform(run.clear(x), 8))
