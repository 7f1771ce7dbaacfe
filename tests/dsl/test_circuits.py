"""The circuits: right on all or random inputs, with the stated numbers of ANDs and levels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from keyquorum.dsl.values import circuits
from numpy.typing import NDArray

Bits = NDArray[np.uint8]


class Row:
    """Bits with the level at which they are known; ``public`` ones make ANDs local."""

    def __init__(self, bits: Bits, level: int = 0, public: bool = False) -> None:
        self.bits, self.level, self.public = bits, level, public


class Counting:
    """Logic in the clear that counts ANDs of secrets."""

    def __init__(self) -> None:
        self.ands = 0

    def and_(self, a: Row, b: Row) -> Row:
        secret = not (a.public or b.public)
        self.ands += secret
        return Row(a.bits & b.bits, max(a.level, b.level) + secret, a.public and b.public)

    def xor(self, a: Row, b: Row) -> Row:
        return Row(a.bits ^ b.bits, max(a.level, b.level), a.public and b.public)

    def or_(self, a: Row, b: Row) -> Row:
        assert not (a.bits & b.bits).any()
        return self.xor(a, b)

    def not_(self, a: Row) -> Row:
        return Row(1 - a.bits, a.level, a.public)


def rows(numbers: NDArray[Any], width: int, public: bool = False) -> list[Any]:
    return [Row(((numbers >> i) & 1).astype(np.uint8), public=public) for i in range(width)]


def number(result: Sequence[Any], size: int) -> NDArray[np.int64]:
    total = np.zeros(size, dtype=np.int64)
    for i, row in enumerate(result):
        if row is not None:
            total += row.bits.astype(np.int64) << i
    return total


def level(result: Sequence[Any]) -> int:
    return max((row.level for row in result if row is not None), default=0)


WIDTHS = [1, 2, 3, 4, 5, 7, 8, 13, 16, 31, 32, 40]
seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("width", WIDTHS)
@given(seed=seeds)
def test_add(width: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    a, b = generator.integers(0, 1 << width, (2, 50))
    carry = generator.integers(0, 2, 50)
    logic: Any = Counting()
    result = circuits.add(logic, rows(a, width), rows(b, width))
    assert np.array_equal(number(result, 50), (a + b) % (1 << width))
    assert level(result) <= (1 + math.ceil(math.log2(width - 1)) if width > 1 else 0)
    assert logic.ands <= width * (1 + math.ceil(math.log2(max(2, width))))
    full = circuits.add(logic, rows(a, width), rows(b, width), rows(carry, 1)[0], with_carry=True)
    assert len(full) == width + 1
    assert np.array_equal(number(full, 50), a + b + carry)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8])
@given(seed=seeds)
def test_sums_of_several_numbers(count: int, seed: int) -> None:
    width = 12
    numbers = np.random.default_rng(seed).integers(0, 1 << width, (count, 50))
    logic: Any = Counting()
    a, b = circuits.two_numbers(logic, [rows(n, width) for n in numbers])
    assert np.array_equal((number(a, 50) + number(b, 50)) % (1 << width), numbers.sum(axis=0) % (1 << width))
    assert logic.ands <= (width - 1) * max(0, count - 2)
    assert level([*a, *b]) <= max(0, count - 2)


@pytest.mark.parametrize("width", WIDTHS)
@given(seed=seeds)
def test_below(width: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    a, b = generator.integers(0, 1 << min(width, 2 + seed % 40), (2, 50))
    a, b = a % (1 << width), b % (1 << width)
    logic: Any = Counting()
    result = circuits.below_secret(logic, rows(a, width, public=True), rows(b, width))
    assert np.array_equal(number([result], 50), (a < b).astype(np.int64))
    assert logic.ands <= 2 * (width - 1)
    assert level([result]) <= math.ceil(math.log2(width))


@pytest.mark.parametrize("count", [*range(1, 34), 63, 64, 100])
def test_population_count(count: int) -> None:
    numbers = np.random.default_rng(count).integers(0, 2, (count, 200), dtype=np.uint8)
    logic: Any = Counting()
    result = circuits.population_count(logic, [Row(n) for n in numbers])
    assert np.array_equal(number(result, 200), numbers.sum(axis=0, dtype=np.int64))
    assert logic.ands == count - count.bit_count()
    assert level(result) == math.floor(math.log2(count))
    assert len(result) == count.bit_length()


@pytest.mark.parametrize("count", range(1, 10))
def test_all_ones(count: int) -> None:
    numbers = np.arange(1 << count)
    logic: Any = Counting()
    result = circuits.all_ones(logic, rows(numbers, count))
    assert np.array_equal(result.bits, numbers == (1 << count) - 1)
    assert (logic.ands, result.level) == (count - 1, math.ceil(math.log2(count)))


def test_constants_cost_nothing() -> None:
    logic: Any = Counting()
    x = rows(np.arange(8), 3)
    assert circuits.full_adder(logic, x[0], None, None) == (x[0], None)
    assert circuits.full_adder(logic, None, None, None) == (None, None)
    result = circuits.add(logic, x, [None, None, None])
    assert np.array_equal(number(result, 8), np.arange(8)) and logic.ands == 0


@pytest.mark.parametrize("value", [0, 1, 5, -1, -5, 1 << 70])
def test_public_bits(value: int) -> None:
    bits = circuits.public_bits(value, 72)
    assert sum(int(b) << i for i, b in enumerate(bits)) == value % (1 << 72)
