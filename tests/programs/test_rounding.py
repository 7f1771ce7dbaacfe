"""round_ltz_circuit is exact, also at both rounding borders; round_mask_open fails exactly where it says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.long import LONG
from tests.protocols import (
    EMULATE_RING,
    REPLICATED_FIELD,
    REPLICATED_RING,
    SEMI_FIELD,
    SEMI_FIELD_3,
    SEMI_RING,
    SEMI_RING_4,
    SHAMIR_3,
    VERIFIED_RING,
    VERIFIED_SHAMIR,
    Backend,
)

from .running import Outcome, run

RNG = np.random.default_rng(4)
RINGS = [
    (EMULATE_RING, EMULATE_RING),
    (REPLICATED_RING, REPLICATED_FIELD),
    (SEMI_RING, SEMI_FIELD),
    (SEMI_RING_4, SEMI_FIELD_3),
    (REPLICATED_RING, SHAMIR_3),
    (VERIFIED_RING, VERIFIED_SHAMIR),
]
BOTH = pytest.mark.parametrize(("ring", "field"), RINGS, ids=["emulate", "replicated", "additive-2", "additive-3-4", "shamir", "verified"])


def few_of_four(ring: Backend, kept: bool) -> None:
    """Skips what is not ``kept`` of four parties, whose oblivious transfers take most of the time of these tests; KEYQUORUM_LONG=1 runs it."""
    if ring is SEMI_RING_4 and not kept and not LONG:
        pytest.skip("KEYQUORUM_LONG=1: other numbers of contributors to sums of four parties")


def uniform(bits: int, size: int) -> np.ndarray:
    return RNG.integers(0, 2**bits, size, dtype=np.int64)


def masks(contributors: int, size: int, ell: int, rows: int) -> dict[int, np.ndarray]:
    return {i: np.concatenate([uniform(ell, size), uniform(1, rows * size)]) for i in range(contributors)}


def carry_rows(contributors: int) -> int:
    return (contributors - 1).bit_length()


def power2(program: str, z: list[int], ell: int, j: int, ring: Backend, private: Any, k: int = 64) -> np.ndarray:
    """Messages that the program opens, t = 2^j."""
    contributors, size = len(private), len(z)
    arguments = {"contributors": contributors, "size": size, "l": ell, "j": j, "receiver": 0, "at": 1, "ring_length": k}
    out = run(program, arguments, ring, private=private, shares=[9, *z])
    messages: np.ndarray = (out.personal[0] >> (k - j)) % 2**j
    return messages


def odd(program: str, z: list[int], ell: int, t: int, ring: Backend, field: Backend, private: Any, k: int = 64) -> np.ndarray:
    """Messages that the two runs of a program open, t an odd prime."""
    contributors, size = len(private), len(z)
    arguments: dict[str, Any] = {"contributors": contributors, "size": size, "l": ell, "at": 0, "ring_length": k}
    first: Outcome = run(f"{program}_odd_ring", arguments, ring, private=private, shares=[v % 2**ell for v in z])
    assert first.public.min() >= 0
    arguments = {"contributors": contributors, "size": size, "l": ell, "t": t, "receiver": "all", "at": 0}
    second = run(f"{program}_odd_field", arguments, field.over(f"F_{t}"), private=private, public=first.public, shares=[v % t for v in z])
    return second.public % t


def border_instances(t: int, ell: int) -> tuple[list[int], np.ndarray]:
    """z = 2^l m + e + 2^(l-1) with e at both borders and around 0, for many m, and the messages."""
    half = 2 ** (ell - 1)
    noises = [-half, -half + 1, -half + 2, -1, 0, 1, half - 2, half - 1, *RNG.integers(-half, half, 8).tolist()]
    messages = [0, 1, t // 2, t - 2, t - 1, *RNG.integers(0, t, 11).tolist()]
    return [(2**ell * m + e + half) % (t * 2**ell) for m in messages for e in noises], np.repeat(messages, len(noises))


@BOTH
@pytest.mark.parametrize("contributors", [1, 2, 3])
@pytest.mark.parametrize(("ell", "t"), [(4, 3), (20, 257), (46, 65537), (60, 65537)])
def test_circuit_is_exact_for_odd_t(ring: Backend, field: Backend, contributors: int, ell: int, t: int) -> None:
    few_of_four(ring, contributors == 3)
    z, messages = border_instances(t, ell)
    private = masks(contributors, len(z), ell, carry_rows(contributors) + 1)
    assert np.array_equal(odd("round_ltz_circuit", z, ell, t, ring, field, private), messages)


def cut(z: list[int], ell: int, t: int, summands: int) -> tuple[list[int], list[int]]:
    """Sums of the low parts, over the integers, and of the high parts, modulo t, of summands of z modulo t * 2^l: random ones, and the largest."""
    low, high = [], []
    for i, value in enumerate(z):
        given = [int(RNG.integers(0, t)) * 2**ell + int(RNG.integers(0, 2**ell)) if i % 4 else t * 2**ell - 1 for _ in range(summands - 1)]
        given.append((value - sum(given)) % (t * 2**ell))
        low.append(sum(v % 2**ell for v in given))
        high.append(sum(v >> ell for v in given) % t)
    return low, high


@BOTH
@pytest.mark.parametrize("stores", [False, True], ids=["inputs", "stored"])
@pytest.mark.parametrize(("summands", "contributors"), [(2, 1), (2, 2), (3, 2), (3, 3), (4, 3)])
@pytest.mark.parametrize(("ell", "t"), [(4, 3), (46, 65537), (60, 65537)])
def test_carry_is_exact(ring: Backend, field: Backend, summands: int, contributors: int, stores: bool, ell: int, t: int) -> None:
    """Random bits that contributors give, or joint integers of which both runs read shares."""
    few_of_four(ring, (summands, contributors) == ((4, 3) if ell > 4 else (3, 3)))
    z, messages = border_instances(t, ell)
    low, high = cut(z, ell, t, summands)
    size, rows = len(z), carry_rows(summands)
    bits = RNG.integers(0, 2, (rows, contributors, size))
    private = None if stores else {i: bits[:, i].ravel() for i in range(contributors)}
    head: dict[str, Any] = {"summands": summands, "contributors": contributors, "size": size}
    tail = {"at": 0, "masks": "stored" if stores else "inputs", "r_at": size if stores else 0}
    stored = bits.sum(1).ravel().tolist() if stores else []
    first = run("round_carry_odd_ring", {**head, "l": ell, "at": 0, "ring_length": 64, **tail}, ring, private=private, shares=[*low, *stored])
    assert set(first.public.tolist()) <= {0, 1}
    masked = np.array(low) >> ell
    for row, opened in enumerate(first.public.reshape(rows, size)):
        assert np.array_equal(opened, (masked >> row & 1) ^ bits[row].sum(0) % 2)
    stored = bits.transpose(1, 0, 2).ravel().tolist() if stores else []
    field = field.over(f"F_{t}")
    second = run(
        "round_carry_odd_field", {**head, "t": t, "receiver": "all", **tail}, field, private=private, public=first.public, shares=[*high, *stored]
    )  # fmt: skip
    assert np.array_equal(second.public % t, messages)


def test_every_carry_of_a_small_ring() -> None:
    """All sums of low parts of three summands, in a ring with no bit to spare."""
    ell, summands, field = 4, 3, REPLICATED_FIELD
    low = list(range(summands * (2**ell - 1) + 1))
    size = len(low)
    private = {i: RNG.integers(0, 2, 2 * size) for i in range(2)}
    head = {"summands": summands, "contributors": 2, "size": size}
    tail = {"at": 0, "masks": "inputs", "r_at": 0}
    ring = Backend("ring", 3, f"Z2^{ell + 2}", 1)
    first = run("round_carry_odd_ring", {**head, "l": ell, "at": 0, "ring_length": ell + 2, **tail}, ring, private=private, shares=low)
    second = run(
        "round_carry_odd_field", {**head, "t": 5, "receiver": "all", **tail}, field.over("F_5"), private=private, public=first.public, shares=[0] * size
    )  # fmt: skip
    assert np.array_equal(second.public % 5, np.array(low) >> ell)


@BOTH
@pytest.mark.parametrize("contributors", [1, 2, 3])
@pytest.mark.parametrize(("ell", "j"), [(3, 1), (40, 10), (60, 4)])
def test_circuit_is_exact_for_powers_of_two(ring: Backend, field: Backend, contributors: int, ell: int, j: int) -> None:
    few_of_four(ring, contributors == 3)
    z, messages = border_instances(2**j, ell)
    high = [v + (int(RNG.integers(0, 2 ** (64 - ell - j))) << (ell + j)) if ell + j < 64 else v for v in z]
    assert np.array_equal(power2("round_ltz_circuit", high, ell, j, ring, masks(contributors, len(z), ell, 0)), messages)


def test_every_noise_under_every_mask() -> None:
    """All noises, masks and wraps of a small ring, exhaustively, in rings with no bit to spare."""
    ell, t = 4, 5
    ring, field = Backend("ring", 3, "Z2^5", 1), REPLICATED_FIELD
    values, first, second = (v.ravel() for v in np.meshgrid(range(t * 2**ell), range(2**ell), range(2**ell)))
    private = {i: np.concatenate([r, uniform(1, 2 * len(r))]) for i, r in enumerate((first, second))}
    got = odd("round_ltz_circuit", [int(v) for v in values], ell, t, ring, field, private, k=5)
    assert np.array_equal(got, values // 2**ell)


@BOTH
@pytest.mark.parametrize("contributors", [1, 2, 3])
def test_mask_open_fails_exactly_where_it_says(ring: Backend, field: Backend, contributors: int) -> None:
    """Wrong by one where e + (R mod 2^l) leaves [0, 2^l), and nowhere else: probability |e| / 2^l."""
    few_of_four(ring, contributors == 3)
    ell, t, size = 10, 257, 4096
    messages = RNG.integers(0, t, size)
    e = RNG.integers(-16, 17, size)
    z = [int(v) for v in (2**ell * messages + e + 2 ** (ell - 1)) % (t * 2**ell)]
    private = masks(contributors, size, ell, carry_rows(contributors))
    low = sum(v[:size] for v in private.values()) % 2**ell
    error = np.where(e + low < 0, -1, 0) + np.where(e + low >= 2**ell, 1, 0)
    assert 0 < np.count_nonzero(error) <= 2 * size * np.abs(e).mean() / 2**ell
    got = odd("round_mask_open", z, ell, t, ring, field, private)
    assert np.array_equal(got, (messages + error) % t)
    got = power2(
        "round_mask_open",
        [int(v) for v in (2**ell * (messages % 256) + e + 2 ** (ell - 1)) % 2 ** (ell + 8)],
        ell,
        8,
        ring,
        {i: v[:size] for i, v in private.items()},
    )
    assert np.array_equal(got, (messages % 256 + error) % 256)


@BOTH
def test_mask_open_at_the_sizes_of_bfv(ring: Backend, field: Backend) -> None:
    """|e| <= 2^16, l = 46: no failure in 2^14 openings (of four parties 2^12) but with probability 2^14 * 2^16 / 2^46 = 2^-16."""
    ell, t, size = 46, 65537, 1 << (12 if ring is SEMI_RING_4 and not LONG else 14)
    messages = RNG.integers(0, t, size)
    z = [int(m) * 2**ell + int(v) + 2 ** (ell - 1) for m, v in zip(messages, RNG.integers(-(2**16), 2**16, size), strict=True)]
    got = odd("round_mask_open", z, ell, t, ring, field, masks(2, size, ell, 1))
    assert np.array_equal(got, messages)
