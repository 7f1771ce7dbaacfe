"""Signed integers in the binary domain: sbitint (one number, in packed bits) and sbitintvec (rows of bits, a number in every column)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from ..context import Dynamic, Value, current
from ..errors import SUBSET, CompilerError, VectorMismatch
from ..values import circuits
from ..values.base import is_constant, read
from ..values.binary import _row, sbit, sbits
from ..values.bits import _Bits, cbits
from ..values.bitvectors import register_numbers, sbitvec
from ..values.circuits import PackedBits, Row, present
from ..values.clear import regint

Rows = list[Value]


def _sum(logic: PackedBits, a: Rows, b: Rows) -> list[Row]:
    return circuits.add(logic, a, b)


def _difference(logic: PackedBits, a: Rows, b: Rows) -> list[Row]:
    """a - b = NOT (NOT a + b)."""
    flipped = circuits.add(logic, [logic.not_(x) for x in a], b)
    return [None if row is None else logic.not_(row) for row in flipped]


def _below(logic: PackedBits, a: Rows, b: Rows) -> list[Row]:
    """[a < b] of numbers in two's complement: a comparison of unsigned numbers with exchanged sign bits."""
    if len(a) > 1:
        a, b = [*a[:-1], b[-1]], [*b[:-1], a[-1]]
    return [circuits.below_secret(logic, a, b)]


def _same(logic: PackedBits, a: Rows, b: Rows) -> list[Row]:
    return [circuits.all_ones(logic, [logic.not_(logic.xor(x, y)) for x, y in zip(a, b, strict=True)])]


class _Integer:
    """Operations of signed integers on their rows of bits. m: number of bits.

    Sums and differences: about m log2(m) ANDs an entry and 1 + ceil(log2 m) rounds; comparisons: 2m ANDs and 1 + ceil(log2 m) rounds;
    products: about m^2 ANDs and 2 log2(m) + 2 rounds.
    """

    __slots__ = ()

    def _operands(self, other: object) -> tuple[Rows, Rows] | None:
        """The rows of this number and of an operand; None if the operand is of another type."""
        raise NotImplementedError

    def _number(self, rows: list[Dynamic]) -> Dynamic:
        """A number of this type."""
        raise NotImplementedError

    def _truth(self, row: object) -> Dynamic:
        """The result of a comparison."""
        raise NotImplementedError

    def _apply(self, other: object, circuit: Callable[[PackedBits, Rows, Rows], list[Row]], turned: bool = False) -> Dynamic:
        operands = self._operands(read(other))
        if operands is None:
            return NotImplemented
        a, b = reversed(operands) if turned else operands
        rows = circuit(PackedBits(current()), a, b)
        size = a[0].size
        return [sbits.get_type(size)(0) if row is None else sbits._wrap(row) for row in rows]

    def _arithmetic(self, other: object, circuit: Callable[[PackedBits, Rows, Rows], list[Row]], turned: bool = False) -> Dynamic:
        rows = self._apply(other, circuit, turned)
        return rows if rows is NotImplemented else self._number(rows)

    def _compare(self, other: object, circuit: Callable[[PackedBits, Rows, Rows], list[Row]], turned: bool, negated: bool) -> Dynamic:
        rows = self._apply(other, circuit, turned)
        if rows is NotImplemented:
            return rows
        return self._truth(~rows[0] if negated else rows[0])

    def __add__(self, other: object) -> Dynamic:
        return self if is_constant(other) and other == 0 else self._arithmetic(other, _sum)

    __radd__ = __add__

    def __sub__(self, other: object) -> Dynamic:
        return self._arithmetic(other, _difference)

    def __neg__(self) -> Dynamic:
        return self._arithmetic(0, _difference, turned=True)

    def __mul__(self, other: object) -> Dynamic:
        return self._arithmetic(other, circuits.product)

    __rmul__ = __mul__

    def __lt__(self, other: object) -> Dynamic:
        return self._compare(other, _below, False, False)

    def __gt__(self, other: object) -> Dynamic:
        return self._compare(other, _below, True, False)

    def __le__(self, other: object) -> Dynamic:
        return self._compare(other, _below, True, True)

    def __ge__(self, other: object) -> Dynamic:
        return self._compare(other, _below, False, True)

    def __eq__(self, other: object) -> Dynamic:
        return self._compare(other, _same, False, False)

    def __ne__(self, other: object) -> Dynamic:
        return self._compare(other, _same, False, True)

    __hash__ = None  # type: ignore[assignment]

    def __abs__(self) -> Dynamic:
        rows = self.bit_decompose()  # type: ignore[attr-defined]
        return rows[-1].if_else(-self, self)

    def __rshift__(self, other: object) -> Dynamic:
        return self._number(self.bit_decompose()[other:]) if is_constant(other) else NotImplemented  # type: ignore[attr-defined]

    def __lshift__(self, other: object) -> Dynamic:
        if not is_constant(other):
            return NotImplemented
        rows = self.bit_decompose()  # type: ignore[attr-defined]
        zero = sbits.get_type(max((row.n for row in rows if not is_constant(row)), default=1))(0)
        return self._number([*[zero] * other, *rows][: len(rows)])

    def less_than(self, other: object, bit_length: int | None = None) -> Dynamic:
        """[x < y]."""
        return self < other

    def greater_than(self, other: object, bit_length: int | None = None) -> Dynamic:
        """[x > y]."""
        return self > other

    def less_equal(self, other: object, bit_length: int | None = None) -> Dynamic:
        """[x <= y]."""
        return self <= other

    def greater_equal(self, other: object, bit_length: int | None = None) -> Dynamic:
        """[x >= y]."""
        return self >= other

    def equal(self, other: object, bit_length: int | None = None) -> Dynamic:
        """[x = y]."""
        return self == other

    def not_equal(self, other: object, bit_length: int | None = None) -> Dynamic:
        """[x != y]."""
        return self != other

    def square(self) -> Dynamic:
        """The product with itself."""
        return self * self

    def max(self, other: object) -> Dynamic:
        """The larger one."""
        return (self > other).if_else(self, other)

    def min(self, other: object) -> Dynamic:
        """The smaller one."""
        return (self < other).if_else(self, other)


def _bits_of(number: int, length: int, size: int) -> Rows:
    ones = sbits.get_type(size)
    return [ones(((number >> i) & 1) * ((1 << size) - 1))._value for i in range(length)]


class sbitint(_Integer, sbits):  # type: ignore[misc]
    """A secret signed integer in n packed bits, ``sbitint.get_type(n)``: ``+ - *`` modulo 2^n and comparisons (a single bit), with sbitint of
    the same length and int."""

    _types: ClassVar[dict[int, Dynamic]] = {}

    @classmethod
    def _family(cls) -> Dynamic:
        return sbitint

    @classmethod
    def bit_compose(cls, bits: Iterable[Dynamic]) -> Dynamic:
        """The number with these low bits; the others are 0."""
        rows = list(bits)[: cls.n]
        packed = sbits.bit_compose([sbit(b) if is_constant(b) else b for b in [*rows, *[0] * (cls.n - len(rows))]])
        return cls(packed)

    def _number(self, rows: list[Dynamic]) -> Dynamic:
        return type(self).bit_compose(rows)

    def _truth(self, row: object) -> Dynamic:
        return row

    def _operands(self, other: object) -> tuple[Rows, Rows] | None:
        mine = [bit._value for bit in sbits.bit_decompose(self)]
        if is_constant(other):
            return mine, _bits_of(int(other), self.n, 1)
        if isinstance(other, (regint, cbits)):
            other = sbits.get_type(self.n)(other)
        if isinstance(other, sbitintvec) or not isinstance(other, sbits):
            return None
        if other.n != self.n:
            raise VectorMismatch(f"different lengths of integers: {self.n}/{other.n} bits")
        return mine, [bit._value for bit in sbits.bit_decompose(other)]

    def bit_decompose(self, bit_length: int | None = None) -> list[Dynamic]:
        """The bits, least significant first; more than n repeat the sign."""
        bits = sbits.bit_decompose(self)
        length = bit_length or self.n
        return bits[:length] + [bits[-1]] * (length - len(bits))

    def __mul__(self, other: object) -> Dynamic:
        other = read(other)
        if isinstance(other, sbits) and other.n == 1 and self.n != 1:
            return type(self)(sbits.__mul__(self, other))
        return _Integer.__mul__(self, other)

    __rmul__ = __mul__

    def cast(self, n: int) -> Dynamic:
        """The number in ``n`` bits: cut, or with the sign repeated."""
        return sbitint.get_type(n).bit_compose(self.bit_decompose(n))


class sbitintvec(_Integer, sbitvec):  # type: ignore[misc]
    """Secret signed integers, one in every column of rows of bits: ``+ - *`` modulo 2^m for m rows, and comparisons (one row), with sbitintvec of as
    many rows and int."""

    __slots__ = ()

    @classmethod
    def _family(cls) -> Dynamic:
        return sbitintvec

    @staticmethod
    def _extended(rows: list[Dynamic], length: int) -> list[Dynamic]:
        """Repeats the sign; of a single row with zeros."""
        filling = 0 if len(rows) == 1 else rows[-1]
        return rows[:length] + [filling] * (length - len(rows))

    def elements(self, start: int | None = None, stop: int | None = None) -> list[Dynamic]:
        """The columns, each as sbitint. For rows of up to 64 bits."""
        return [sbitint.get_type(column.n)(column) for column in sbitvec.elements(self, start, stop)]

    def _number(self, rows: list[Dynamic]) -> Dynamic:
        return self.from_vec(rows)

    def _truth(self, row: object) -> Dynamic:
        return sbitintvec.get_type(1).from_vec([row])

    def _operands(self, other: object) -> tuple[Rows, Rows] | None:
        if isinstance(other, sbitint):
            other = type(self)([other] * self.size) if self.size > 1 else sbitintvec.from_vec(sbits.bit_decompose(other))
        if is_constant(other):
            size = self.size
            return [self._filled(row, size) for row in self.v], _bits_of(int(other), len(self.v), size)
        if not isinstance(other, sbitvec):
            return None
        if len(other.v) != len(self.v):
            raise VectorMismatch(f"different lengths of integers: {len(self.v)}/{len(other.v)} bits")
        size = max(self.size, other.size)
        return [self._filled(row, size) for row in self.v], [self._filled(row, size) for row in other.v]

    @staticmethod
    def _filled(row: object, size: int) -> Value:
        value = _row(row, size)
        return sbits.get_type(size)(0)._value if value is None else value

    def __rsub__(self, other: object) -> Dynamic:
        return self._arithmetic(other, _difference, turned=True)

    def __mul__(self, other: object) -> Dynamic:
        other = read(other)
        if isinstance(other, _Bits) and not isinstance(other, sbitint):
            if not isinstance(other, sbits) or other.n not in (1, self.size):
                raise CompilerError(f"{self!r} times {type(other).__name__}: use a single bit, or as many as there are numbers")
            factor = other if other.n == self.size else sbits._wrap(present(_row(other, self.size)))
            return self.from_vec([row * factor if is_constant(row) or row.n == 1 else row & factor for row in self.v])
        if is_constant(other) and self.size > 1:
            raise CompilerError(f"{self!r} times the number {other} is {SUBSET}: multiply with a sbitintvec")
        return _Integer.__mul__(self, other)

    __rmul__ = __mul__


register_numbers(sbitintvec)
