"""Roundings for odd plaintext moduli in two parts: masks that are the same number modulo 2^l, in bits and modulo t, and what uses them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.protocols import EMULATE_RING, REPLICATED_FIELD, REPLICATED_RING, SEMI_FIELD, SEMI_FIELD_3, SEMI_RING, SEMI_RING_4, Backend

from .running import run
from .test_rounding import BOTH, border_instances, few_of_four

RNG = np.random.default_rng(7)


class Masks:
    """Masks of some contributors, and what the offline programs make of them."""

    def __init__(
        self, contributors: int, size: int, ell: int, t: int, ring: Backend, field: Backend, keep: str, adder: str = "ripple", source: str = "inputs",
    ) -> None:  # fmt: skip
        self.carries, extra = (contributors - 1).bit_length(), int(keep == "all")
        words = RNG.integers(0, 1 << ell, (contributors, size))
        words[:, 0] = (1 << ell) - 1  # the largest carry
        words[:, 1] = 0
        rows = RNG.integers(0, 2, (contributors, self.carries + extra, size))
        places = np.arange(ell)[:, None]
        bits = {i: np.concatenate([((w >> places) & 1).ravel(), r.ravel()]) for i, (w, r) in enumerate(zip(words, rows, strict=True))}
        given = {i: np.concatenate([w, r.ravel()]) for i, (w, r) in enumerate(zip(words, rows, strict=True))}
        self.r = [int(sum(map(int, column))) % (1 << ell) for column in words.T]
        arguments: dict[str, Any] = {"contributors": contributors, "size": size, "l": ell, "keep": keep, "adder": adder, "masks": source, "r_at": 0}
        stored = [*bits_of(words, places), *rows.sum(0).ravel()] if source == "stored" else None
        private = {"private": bits} if source == "inputs" else {}
        first = run("round_mask_odd_bits", arguments, ring, shares=stored, check_costs=adder == "ripple", **private)
        carry = np.array([int(sum(map(int, column))) >> ell for column in words.T])
        crossed = rows[:, : self.carries].sum(0) % 2
        opened = [((carry >> i) & 1) ^ crossed[i] for i in range(self.carries)]
        assert np.array_equal(first.public, np.concatenate([*opened, []]))
        arguments = {"contributors": contributors, "size": size, "l": ell, "t": t, "keep": keep, "masks": source, "r_at": 0}
        stored = [*(int(sum(map(int, column))) % t for column in words.T), *rows.ravel()] if source == "stored" else None
        private = {"private": given} if source == "inputs" else {}
        second = run("round_mask_odd_field", arguments, field.over(f"F_{t}"), public=first.public, shares=stored, **private)
        assert [int(v) % t for v in second.shares[:size]] == [r % t for r in self.r]
        self.bits, self.further = first.shares, second.shares[size:]
        if keep == "all":
            expected = [[(r >> i) & 1 for r in self.r] for i in range(ell)]
            assert first.shares.reshape(ell + 1, size).tolist() == [*expected, (rows[:, -1].sum(0) % 2).tolist()]
            assert np.array_equal(self.further, rows[:, -1].sum(0) % 2)


def bits_of(words: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Of each contributor the rows of bits of its mask."""
    return np.concatenate([((w >> places) & 1).ravel() for w in words])


def finish(program: str, z: list[int], masks: Masks, ell: int, t: int, ring: Backend, field: Backend, triples: list[int] | None = None) -> list[int]:
    """What the online programs open, to a party and as shares."""
    size, compares = len(z), program == "round_ltz_circuit"
    arguments: dict[str, Any] = {"size": size, "l": ell, "z_at": 0, "at": size, "ring_length": 64}
    stored = [v % (1 << ell) for v in z] + masks.r + (masks.bits.tolist() if compares else [])
    if compares:
        arguments["triples"] = int(triples is not None)
    opened = run(f"{program}_odd_ring_online", arguments, ring, shares=stored + (triples or [])).public
    results = []
    for to in (0, "share"):
        arguments = {"size": size, "l": ell, "t": t, "destination": to}
        stored = [v % t for v in z] + [r % t for r in masks.r] + (masks.further.tolist() if compares else [])
        out = run(f"{program}_odd_field_online", arguments, field.over(f"F_{t}"), public=opened, shares=stored)
        results.append([int(v) % t for v in (out.shares if to == "share" else out.personal[0])])
    assert results[0] == results[1]
    return results[0]


@BOTH
@pytest.mark.parametrize("contributors", [1, 2, 3, 4])
@pytest.mark.parametrize(("ell", "t"), [(4, 3), (20, 257), (46, 65537)])
def test_circuit_is_exact(ring: Backend, field: Backend, contributors: int, ell: int, t: int) -> None:
    few_of_four(ring, contributors == 3)
    z, messages = border_instances(t, ell)
    masks = Masks(contributors, len(z), ell, t, ring, field, "all")
    assert finish("round_ltz_circuit", z, masks, ell, t, ring, field) == messages.tolist()


@BOTH
@pytest.mark.parametrize("contributors", [2, 3])
def test_circuit_is_exact_with_masks_that_are_joint_integers(ring: Backend, field: Backend, contributors: int) -> None:
    ell, t = 20, 257
    z, messages = border_instances(t, ell)
    masks = Masks(contributors, len(z), ell, t, ring, field, "all", source="stored")
    assert finish("round_ltz_circuit", z, masks, ell, t, ring, field) == messages.tolist()


def test_circuit_with_stored_triples_is_exact() -> None:
    from keyquorum.sharing.variants import comparison_ands

    ell, t = 20, 257
    z, messages = border_instances(t, ell)
    count = comparison_ands(ell)
    triples = [int(v) & 1 for v in run("and_triples", {"size": len(z), "count": count}, SEMI_RING).shares]
    masks = Masks(2, len(z), ell, t, SEMI_RING, SEMI_FIELD, "all")
    assert finish("round_ltz_circuit", z, masks, ell, t, SEMI_RING, SEMI_FIELD, triples) == messages.tolist()


@BOTH
@pytest.mark.parametrize("contributors", [1, 2, 3, 4])
def test_mask_open_fails_exactly_where_it_says(ring: Backend, field: Backend, contributors: int) -> None:
    few_of_four(ring, contributors == 3)
    ell, t, size = 10, 257, 4096
    messages, e = RNG.integers(0, t, size), RNG.integers(-16, 17, size)
    z = [int(v) for v in (2**ell * messages + e + 2 ** (ell - 1)) % (t * 2**ell)]
    masks = Masks(contributors, size, ell, t, ring, field, "carry")
    low = np.array(masks.r)
    error = np.where(e + low < 0, -1, 0) + np.where(e + low >= 2**ell, 1, 0)
    assert 0 < np.count_nonzero(error) < size // 8
    assert finish("round_mask_open", z, masks, ell, t, ring, field) == ((messages + error) % t).tolist()


@pytest.mark.parametrize("contributors", [2, 3, 4])
def test_both_adders(contributors: int) -> None:
    for ring, field in ((REPLICATED_RING, REPLICATED_FIELD), (SEMI_RING_4, SEMI_FIELD_3), (EMULATE_RING, EMULATE_RING)):
        if ring.protocol == "emulate" or contributors <= min(ring.parties, field.parties):
            Masks(contributors, 50, 12, 257, ring, field, "all", "prefix")
