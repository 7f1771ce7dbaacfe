"""Boolean circuits on rows of bits, as raw engine values; row i has bit i of every entry of a vector.

Costs are per entry: an AND is a product of bits for packed bits, a product of elements for arithmetic bits. A row None
stands for zeros and costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce

import numpy as np

from ..context import Run, Value

Row = Value | None


class PackedBits:
    """Rows in the binary domain (kinds sb, cb): XOR and NOT are local."""

    def __init__(self, run: Run) -> None:
        self._engine = run.engine

    def and_(self, a: Value, b: Value) -> Value:
        """a AND b."""
        return self._engine.and_(a, b)

    def xor(self, a: Value, b: Value) -> Value:
        """a XOR b."""
        return self._engine.xor(a, b)

    def or_(self, a: Value, b: Value) -> Value:
        """a OR b of events that exclude each other."""
        return self._engine.xor(a, b)

    def not_(self, a: Value) -> Value:
        """NOT a."""
        return self._engine.not_(a)


class ArithmeticBits:
    """Rows of elements 0 and 1 (kinds s, c): NOT and the OR of exclusive events are local, XOR is a product."""

    def __init__(self, run: Run) -> None:
        self._engine = run.engine
        self._one = run.constant(1)

    def and_(self, a: Value, b: Value) -> Value:
        """a AND b."""
        return self._engine.mul(a, b)

    def xor(self, a: Value, b: Value) -> Value:
        """a XOR b."""
        engine = self._engine
        product = engine.mul(a, b)
        return engine.sub(engine.add(a, b), engine.add(product, product))

    def or_(self, a: Value, b: Value) -> Value:
        """a OR b of events that exclude each other."""
        return self._engine.add(a, b)

    def not_(self, a: Value) -> Value:
        """NOT a."""
        return self._engine.sub(self._one, a)


Logic = PackedBits | ArithmeticBits


def present(row: Row) -> Value:
    """A row that is never None where this is called."""
    assert row is not None
    return row


def xor(logic: Logic, a: Row, b: Row) -> Row:
    """a XOR b, either of which may be zero."""
    if a is None:
        return b
    return a if b is None else logic.xor(a, b)


def and_(logic: Logic, a: Row, b: Row) -> Row:
    """a AND b, either of which may be zero."""
    return None if a is None or b is None else logic.and_(a, b)


def full_adder(logic: PackedBits, a: Row, b: Row, c: Row) -> tuple[Row, Row]:
    """Sum and carry of three bits of one weight: 1 AND."""
    rows = [row for row in (a, b, c) if row is not None]
    if len(rows) < 2:
        return (rows[0] if rows else None), None
    if len(rows) == 2:
        return logic.xor(rows[0], rows[1]), logic.and_(rows[0], rows[1])
    x, y, z = rows
    xz, yz = logic.xor(x, z), logic.xor(y, z)
    return logic.xor(xz, y), logic.xor(logic.and_(xz, yz), z)


def two_numbers(logic: PackedBits, numbers: Sequence[Sequence[Row]]) -> tuple[list[Row], list[Row]]:
    """Two numbers with the sum of the given ones mod 2^m: m - 1 ANDs and one level for each number beyond two."""
    rest = [list(n) for n in numbers]
    width = len(rest[0])
    while len(rest) > 2:
        columns = list(zip(*rest[:3], strict=True))
        adders = [full_adder(logic, *column) for column in columns[:-1]]
        sums: list[Row] = [s for s, _ in adders]
        sums.append(reduce(partial(xor, logic), columns[-1]))
        rest = [*rest[3:], sums, [None, *(c for _, c in adders)]]
    if len(rest) == 1:
        rest.append([None] * width)
    return rest[0], rest[1]


def carry_into(logic: Logic, generate: Sequence[Row], propagate: Sequence[Row], first: int, last: int) -> Row:
    """The carry out of positions ``first`` .. ``last - 1``, m of them: 2(m - 1) ANDs at most, ceil(log2 m) levels."""
    g, p = list(generate[first:last]), list(propagate[first:last])
    while len(g) > 1:
        pairs = [(_passed(logic, g[i + 1], p[i + 1], g[i]), and_(logic, p[i + 1], p[i]) if i else None) for i in range(0, len(g) - 1, 2)]
        if len(g) % 2:
            pairs.append((g[-1], p[-1]))
        g, p = [a for a, _ in pairs], [b for _, b in pairs]
    return g[0] if g else None


def _passed(logic: Logic, g_high: Row, p_high: Row, g_low: Row) -> Row:
    """Whether two neighbouring ranges together generate a carry."""
    low = and_(logic, p_high, g_low)
    if low is None:
        return g_high
    return low if g_high is None else logic.or_(g_high, low)


def add(logic: Logic, a: Sequence[Row], b: Sequence[Row], carry_in: Row = None, with_carry: bool = False) -> list[Row]:
    """Sum mod 2^m of two numbers (m rows; with the carry as row m if asked for), by a Sklansky prefix adder.

    m ANDs for generating and about m log2(m) for prefixes, 1 + ceil(log2 m) levels; arithmetic bits: one more product
    a row and one more level for the sums.
    """
    width = len(a)
    count = width if with_carry else width - 1
    g: list[Row] = []
    p: list[Row] = []
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        generated = and_(logic, x, y) if i < count else None
        g.append(generated)
        if isinstance(logic, ArithmeticBits) and generated is not None and x is not None and y is not None:
            p.append(_xor_with(logic, x, y, generated))
        else:
            p.append(xor(logic, x, y))
    sums = list(p)
    if carry_in is not None and count > 0:
        g[0] = _passed(logic, g[0], p[0], carry_in)
    span = 1
    while span < count:
        for block in range(span, count, 2 * span):
            low = block - 1
            for i in range(block, min(block + span, count)):
                g[i] = _passed(logic, g[i], p[i], g[low])
                p[i] = and_(logic, p[i], p[low]) if block > span else None
        span *= 2
    carries: list[Row] = [carry_in, *g[: max(count, 0)]]
    rows = [xor(logic, s, c) for s, c in zip(sums, carries, strict=False)]
    return [*rows, carries[width]] if with_carry else rows


def _xor_with(logic: ArithmeticBits, x: Value, y: Value, product: Value) -> Value:
    engine = logic._engine
    return engine.sub(engine.add(x, y), engine.add(product, product))


def product(logic: PackedBits, a: Sequence[Value], b: Sequence[Value]) -> list[Row]:
    """Product mod 2^m of two numbers of m rows: m (m + 1) / 2 ANDs for the products of bits, about m^2 / 2 in 1.7 log2(m) levels to add them
    up, and a prefix adder."""
    width = len(a)
    zero: Row = None
    shifted = [[zero] * j + [and_(logic, a[i], b[j]) for i in range(width - j)] for j in range(width)]
    return add(logic, *two_numbers(logic, shifted))


def below_secret(logic: Logic, public: Sequence[Value], secret: Sequence[Value]) -> Row:
    """[public < secret] for rows of public and of secret bits: 2(m - 1) ANDs at most, ceil(log2 m) levels."""
    g: list[Row] = [logic.and_(logic.not_(c), r) for c, r in zip(public, secret, strict=True)]
    p: list[Row] = [logic.not_(logic.xor(c, r)) for c, r in zip(public, secret, strict=True)]
    return carry_into(logic, g, p, 0, len(g))


def all_ones(logic: Logic, rows: Sequence[Value]) -> Value:
    """AND of all rows: m - 1 ANDs, ceil(log2 m) levels."""
    level = list(rows)
    while len(level) > 1:
        pairs = [logic.and_(level[i], level[i + 1]) for i in range(0, len(level) - 1, 2)]
        level = pairs + level[len(pairs) * 2 :]
    return level[0]


def population_count(logic: PackedBits, rows: Sequence[Value]) -> list[Value]:
    """Number of ones among m rows: m - (number of ones in the binary form of m) ANDs, which is optimal, and floor(log2
    m) levels: a column's sums are local, so all its carries come one level after its inputs."""
    result: list[Value] = []
    column: list[Value] = list(rows)
    while column:
        total: Row
        carries: list[Value] = []
        total, rest = column[0], column[1:]
        while rest:
            pair, rest = rest[:2], rest[2:]
            total, carry = full_adder(logic, total, pair[0], pair[1] if len(pair) == 2 else None)
            carries.append(present(carry))  # the carry of two or three bits
        result.append(present(total))
        column = carries
    return result


def public_bits(value: int, size: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """The low ``size`` bits of a Python integer (negative ones in two's complement), as 0/1 bytes."""
    raw = (value & ((1 << size) - 1)).to_bytes((size + 7) // 8, "little")
    return np.unpackbits(np.frombuffer(raw, dtype=np.uint8), count=size, bitorder="little")
