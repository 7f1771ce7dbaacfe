"""Programs of encrypted tables: LWE bodies, messages of tables, openings of masked values; results, rounds and bytes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.protocols import EMULATE_RING, REPLICATED_RING, SEMI_RING, SEMI_RING_4, Backend

from .running import run

RNG = np.random.default_rng(12)
RINGS = pytest.mark.parametrize("ring", [EMULATE_RING, REPLICATED_RING, SEMI_RING, SEMI_RING_4, SEMI_RING.over("Z2^32")], ids=str)


def of_ring(values: np.ndarray, ring: Backend) -> list[int]:
    return [int(v) % ring.modulus for v in values]


@RINGS
@pytest.mark.parametrize("block", [16, 1024])
def test_bodies(ring: Backend, block: int) -> None:
    n, count, shift = 37, 50, 31
    a, s = RNG.integers(0, 2**32, (count, n)), RNG.integers(0, 2, n)
    m, e = RNG.integers(0, 2, count), RNG.integers(-100, 100, count)
    arguments = {"n": n, "count": count, "shift": shift, "s_at": 0, "m_at": n, "e_at": n + count, "block": block}
    out = run("lwe_bodies", arguments, ring, shares=np.concatenate([s, m, e]), public=a.ravel())
    assert of_ring(out.public, ring) == of_ring(a @ s + e + (m << shift), ring)


@RINGS
def test_messages_of_tables(ring: Backend) -> None:
    size = 1000
    r0, r1, *table = run("lwe_gate_bits", {"size": size}, ring).shares.reshape(6, size)
    assert set(r0.tolist()) == set(r1.tolist()) == {0, 1}
    assert 0.15 < (r0 & r1).mean() < 0.35
    assert np.array_equal(table, [(u ^ r0) & (v ^ r1) for u in (0, 1) for v in (0, 1)])


@RINGS
def test_masked_values(ring: Backend) -> None:
    x, r = RNG.integers(0, 2**31, (2, 50))
    out = run("open_masked", {"size": 50, "x_at": 0, "r_at": 50}, ring, shares=np.concatenate([x, r]))
    assert of_ring(out.public, ring) == of_ring(x + r, ring)
