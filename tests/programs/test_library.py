"""Circuits of Programs/Library on clear bits: results, AND counts and depths; and the transform's constants."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from itertools import pairwise

import pytest

from .costs import below_ands, ring_bits_ands, ring_bits_levels
from .distributions import exact_gaussian
from .library import Row, Split, library, number, rows

RANDOM = random.Random(6)


@pytest.mark.parametrize("m", [1, 2, 3, 5, 8, 21, 46, 47, 62])
@pytest.mark.parametrize("summands", [1, 2, 3, 4])
def test_ring_bits(m: int, summands: int) -> None:
    with library("logic") as lib:
        for first in {0, m // 2, m - 1}:
            numbers = [RANDOM.getrandbits(m) for _ in range(summands)]
            Row.ands = 0
            got = lib.logic.ring_bits(Split(*numbers), m, summands, first)
            assert number(got, first) == sum(numbers) % 2**m >> first << first
            if summands > 1:
                assert Row.ands == ring_bits_ands(summands, m, first)
                assert max(r.depth for r in got) == ring_bits_levels(summands, m)
            if summands == 3:
                assert ring_bits_levels(summands, m) == (1 + math.ceil(math.log2(m - 1)) if m > 1 else 0)


@pytest.mark.parametrize("m", [1, 2, 3, 5, 8, 46, 60])
def test_below(m: int) -> None:
    with library("logic") as lib:
        pairs = [(a, b) for a in range(2**m) for b in range(2**m)] if m <= 5 else []
        pairs += [(RANDOM.getrandbits(m), RANDOM.getrandbits(m)) for _ in range(50)]
        pairs += [(v, v + d) for v in (RANDOM.getrandbits(m) // 2 for _ in range(20)) for d in (-1, 0, 1) if 0 <= v + d < 2**m]
        for a, b in pairs:
            Row.ands = 0
            got = lib.logic.below(lib.logic.Binary, rows(a, m, public=True), rows(b, m))
            assert got.value == (a < b)
            assert Row.ands == below_ands(m) and got.depth == math.ceil(math.log2(m))


@pytest.mark.parametrize("m", [1, 2, 3, 7, 8, 42, 63, 64])
def test_popcount(m: int) -> None:
    with library("logic") as lib:
        value = RANDOM.getrandbits(m)
        Row.ands = 0
        got = lib.logic.popcount(rows(value, m))
        assert number(got) == value.bit_count() and len(got) == m.bit_length()
        assert Row.ands == m - m.bit_count() and max(r.depth for r in got) == m.bit_length() - 1


@pytest.mark.parametrize("b", [1, 2, 3, 4, 5, 8])
def test_one_hot(b: int) -> None:
    with library("logic") as lib:
        for value in range(2**b):
            Row.ands = 0
            got = lib.logic.one_hot(lib.logic.Binary, rows(value, b))
            assert [r.value for r in got] == [int(i == value) for i in range(2**b)]
            assert Row.ands == 2**b - b - 1 and max(r.depth for r in got) == math.ceil(math.log2(b))


def test_gaussian_circuit() -> None:
    """The default circuit: 354 ANDs, depth 6, and exactly the number of thresholds reached, at every threshold's border."""
    with library("gaussian", "logic") as lib:
        table = lib.gaussian.cumulative_table(3200, 40, 23)
        borders = [t + d for t in table for d in (-1, 0, 1)]
        for x in [0, 2**40 - 1, *borders, *(RANDOM.getrandbits(40) for _ in range(200))]:
            Row.ands = 0
            below = lib.gaussian.below_thresholds(lib.logic.Binary, rows(x, 40), table)
            assert [r.value for r in below] == [int(x < t) for t in table]
            assert Row.ands == 354 and max(r.depth for r in below) == 6
            assert number(lib.gaussian.thermometer_digits([~r for r in below])) == sum(x >= t for t in table)


def test_gaussian_table() -> None:
    """Every probability of the sampled distribution is within 2^-41 of the discrete Gaussian's; their distance is below 2^-37."""
    with library("gaussian") as lib:
        table = [0, *lib.gaussian.cumulative_table(3200, 40, 23), 2**40]
    exact = exact_gaussian(3200, 200)
    magnitudes = [Decimal(b - a) / 2**40 for a, b in pairwise(table)]
    errors = [abs(magnitudes[0] - exact[0])] + [abs(p / 2 - exact[v]) for v, p in enumerate(magnitudes[1:], 1)]
    assert len(errors) == 24 and max(errors) <= Decimal(2) ** -41
    tail = sum(p for v, p in exact.items() if abs(v) > 23)
    assert Decimal(2) ** -43 < tail < Decimal(2) ** -42
    assert (errors[0] + 2 * sum(errors[1:]) + tail) / 2 < Decimal(2) ** -37


def test_interpolation() -> None:
    with library("conversions") as lib:
        for modulus in (5, 65537, 2**61 - 1):
            values = [RANDOM.randrange(modulus) for _ in range(5)]
            coefficients = lib.conversions.interpolation(values, modulus)
            assert [sum(c * x**k for k, c in enumerate(coefficients)) % modulus for x in range(5)] == values


def test_smallest_root() -> None:
    with library("ntt") as lib:
        for n, q in ((2, 5), (4, 17), (8, 97), (16, 97)):
            roots = [r for r in range(1, q) if pow(r, n, q) == q - 1]
            assert lib.ntt.smallest_root(n, q) == min(roots)
