"""Products modulo X^n + 1: the engine's own are those of matrices, where they exist."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from keyquorum import _engine
from keyquorum.dsl.control.program import Program, ProgramOptions

from .test_recorded import replayed

RNG = np.random.default_rng(31)


def engine(protocol: str, domain: str) -> Any:
    return _engine.local_sessions(1)[0].engine(protocol, domain, "test", None, b"seed")


@pytest.mark.parametrize("bits", [64, 63, 24, 2])
@pytest.mark.parametrize(("n", "rows"), [(2, 5), (8, 3), (64, 1), (256, 2)])
def test_products_are_those_of_the_schoolbook(bits: int, n: int, rows: int) -> None:
    run, mask = engine("emulate", f"Z2^{bits}"), np.uint64(2**bits - 1)
    a = RNG.integers(0, 2**64, (rows, n), dtype=np.uint64) & mask
    s = RNG.integers(0, 2**64, n, dtype=np.uint64) & mask
    public, shared = run.clear(a.ravel().view(np.int64)), run.input(0, n, s.view(np.int64))
    got = run.read(run.open(run.negacyclic(public, shared))).reshape(rows, n)
    clear = run.read(run.negacyclic(public, run.clear(s.view(np.int64)))).reshape(rows, n)
    for i in range(rows):
        wanted = np.zeros(n, dtype=np.uint64)
        for j in range(n):
            wanted[j:] += s[j] * a[i, : n - j]
            wanted[:j] -= s[j] * a[i, n - j :]
        assert np.array_equal(got[i], wanted & mask) and np.array_equal(clear[i], wanted & mask)


@pytest.mark.parametrize("bits", [64, 47, 16])
def test_products_with_macs(bits: int) -> None:
    """Shares have 48 bits more. The MACs are those of the products: what is read is verified."""
    n, rows, mask = 64, 2, np.uint64(2**bits - 1)
    a = RNG.integers(0, 2**64, (rows, n), dtype=np.uint64) & mask
    s = RNG.integers(0, 2**64, n, dtype=np.uint64) & mask

    def one(session: Any) -> Any:
        run = session.engine("spdz2k", f"Z2^{bits}", "test", None, None)
        shared = run.input(0, n, s.view(np.int64) if session.party == 0 else None)
        return run.read(run.open(run.negacyclic(run.clear(a.ravel().view(np.int64)), shared))).reshape(rows, n)

    wanted = np.zeros((rows, n), dtype=np.uint64)
    for j in range(n):
        wanted[:, j:] += s[j] * a[:, : n - j]
        wanted[:, :j] -= s[j] * a[:, n - j :]
    with ThreadPoolExecutor() as pool:
        for got in pool.map(one, _engine.local_sessions(2)):
            assert np.array_equal(got.view(np.uint64) & mask, wanted & mask)


def test_wrong_operands_are_refused() -> None:
    run = engine("emulate", "Z2^64")
    zeros = np.zeros(16, dtype=np.int64)
    public, shared = run.clear(zeros), run.input(0, 8, zeros[:8])
    assert run.negacyclic(public, shared).size == 16
    for a, s, error in [
        (run.clear(zeros[:12]), shared, "no whole number of polynomials"),
        (public, run.input(0, 12, zeros[:12]), "power of two"),
        (public, run.input(0, 1, zeros[:1]), "power of two"),
        (shared, shared, "public factor"),
    ]:
        with pytest.raises(_engine.UsageError, match=error):
            run.negacyclic(a, s)
    for domain in ("Z2^100", "F_65537"):
        other = engine("emulate", domain)
        with pytest.raises(_engine.UsageError, match="at most 64 bits"):
            other.negacyclic(other.clear(zeros), other.input(0, 8, zeros[:8]))


def test_recordings_repeat_products() -> None:
    replayed("Z2^64", lambda run, x: run.negacyclic(run.clear(x), run.slice(run.clear(x), 3, 1, 8)))


@pytest.mark.parametrize(("protocol", "domain", "there"), [("emulate", "Z2^64", True), ("emulate", "Z2^72", False), ("emulate", "F_65537", False)])
def test_programs_see_where_the_engine_has_them(protocol: str, domain: str, there: bool) -> None:
    program = Program(engine(protocol, domain), "p.mpc", "p", [], ProgramOptions())
    assert (program.negacyclic_product is not None) == there
