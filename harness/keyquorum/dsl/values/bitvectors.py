"""Rows of secret bits (sbitvec): a matrix of bits, whose columns are numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar, Self

from ..context import Dynamic, ElementType, Run, Value, current
from ..errors import CompilerError, VectorMismatch
from . import circuits, comparison
from .base import Vector, is_constant, read
from .binary import _need_binary, _row, check_popcnt, sbit, sbits, transposed
from .bits import BitRows, _Bits
from .circuits import PackedBits


class sbitvec(BitRows):
    """Rows of secret bits: row i, ``v[i]``, has bit i of every number; a column (``elements()``) is one number."""

    __slots__ = ("v",)
    v: list[Dynamic]
    length: ClassVar[int | None] = None
    """Number of rows of the type, if it is fixed."""

    @classmethod
    def get_type(cls, n: int) -> Dynamic:
        """The type of matrices of ``n`` rows: numbers of ``n`` bits."""
        if not is_constant(n) or n < 1:
            raise CompilerError(f"{cls.__name__}.get_type takes a positive compile-time integer, not {n!r}")
        family = cls._family()
        return _types.setdefault((family, n), type(f"{family.__name__}{n}", (family,), {"length": int(n), "__slots__": ()}))

    @classmethod
    def _family(cls) -> Dynamic:
        return sbitvec

    @staticmethod
    def _extended(rows: list[Dynamic], length: int) -> list[Dynamic]:
        """The rows, truncated or extended with zeros to ``length`` rows."""
        return rows[:length] + [0] * (length - len(rows))

    def __init__(self, elements: Dynamic = None, length: int | None = None, input_length: int | None = None) -> None:
        _need_binary(current())
        elements = read(elements)
        if length is not None:
            if not hasattr(elements, "_low_rows"):
                raise CompilerError(f"sbitvec(x, length) takes a sint, not {type(elements).__name__}")
            self.v = elements._low_rows(max(length, input_length or current().program.bit_length), length)
        elif isinstance(elements, sbitvec):
            self.v = list(elements.v)
        elif elements is None or (is_constant(elements) and elements == 0):
            self.v = []
        elif is_constant(elements) and self.length is not None:
            if int(elements).bit_length() > self.length:
                raise CompilerError(f"the constant {elements} is longer than {self.length} bits")
            self.v = [sbit((elements >> i) & 1) for i in range(self.length)]
        elif isinstance(elements, _Bits) and self.length is not None:
            self.v = sbits.get_type(self.length)(elements).bit_decompose()
        elif isinstance(elements, Iterable) and not isinstance(elements, _NO_COLUMNS):
            self.v = _from_columns(list(elements))
        else:
            raise CompilerError(f"{type(self).__name__} takes a list of sbits, or a sint and a length, not {type(elements).__name__}")
        if self.length is not None and self.v:
            self.v = self._extended(self.v, self.length)

    @classmethod
    def from_vec(cls, vector: Dynamic) -> Self:
        """The matrix with these rows."""
        self = cls.__new__(cls)
        self.v = [read(row) for row in (vector.v if isinstance(vector, sbitvec) else vector)]
        if cls.length is not None:
            self.v = self._extended(self.v, cls.length)
        sizes = {x.n for x in self.v if isinstance(x, _Bits)}
        if len(sizes) > 1:
            raise VectorMismatch(f"rows of different sizes: {'/'.join(map(str, sorted(sizes)))}")
        return self

    @classmethod
    def from_matrix(cls, matrix: Iterable[Iterable[Dynamic]]) -> Self:
        """The rows of several matrices, each given by its columns."""
        return cls.combine(cls(columns) for columns in matrix)

    @classmethod
    def combine(cls, vectors: Iterable[Dynamic]) -> Self:
        """The rows of several matrices, one after another."""
        return cls.from_vec([row for part in vectors for row in part.v])

    @classmethod
    def conv(cls, other: object) -> sbitvec:
        """The value as sbitvec."""
        other = read(other)
        return other if isinstance(other, sbitvec) else cls(other)

    @property
    def size(self) -> int:
        """Length of the rows."""
        return next((int(x.n) for x in self.v if isinstance(x, _Bits)), 1)

    def __len__(self) -> int:
        return len(self.v)

    def __repr__(self) -> str:
        return f"{self._family().__name__}({len(self.v)}/{self.size})"

    def bit_decompose(self, n_bits: int | None = None, security: int | None = None, maybe_mixed: bool | None = None) -> list[Dynamic]:
        """The first rows."""
        return self.v[:n_bits]

    def elements(self, start: int | None = None, stop: int | None = None) -> list[Dynamic]:
        """The columns, each as sbits. For rows of up to 64 bits."""
        if stop is None:
            start, stop = stop, start
        return transposed(self.v[start:stop])

    def __iter__(self) -> Iterator[Dynamic]:
        return iter(self.elements())

    def popcnt(self) -> sbitvec:
        """Number of ones in every column, m - (ones in the binary form of m) ANDs, floor(log2 m) rounds for m rows.

        Raises CompilerError for the numbers of rows for which MP-SPDZ loses the last carry."""
        check_popcnt(len(self.v))
        rows = [_row(x, self.size) for x in self.v]
        counted = circuits.population_count(PackedBits(current()), [r for r in rows if r is not None])
        return self._counts([sbits._wrap(r) for r in counted])

    @classmethod
    def _counts(cls, rows: list[Dynamic]) -> sbitvec:
        """The numbers with these rows."""
        return _number_type[0].get_type(len(rows)).from_vec(rows) if _number_type else sbitvec.from_vec(rows)

    def _pairs(self, other: object, mask: bool = False) -> list[tuple[Dynamic, Dynamic]]:
        other = read(other)
        if is_constant(other) and mask:
            rows: list[Dynamic] = [(other >> i) & 1 for i in range(len(self.v))]
        elif isinstance(other, sbitvec):
            rows = other.v
        else:
            raise CompilerError(f"an operation of a sbitvec takes a sbitvec (& also an int), not {type(other).__name__}")
        if len(rows) != len(self.v):
            raise VectorMismatch(f"different numbers of rows: {len(self.v)}/{len(rows)}")
        size = max(self.size, other.size if isinstance(other, sbitvec) else 1)
        t = sbits.get_type(size)
        ones = (1 << size) - 1
        return [tuple(t(x * ones) if is_constant(x) else x for x in pair) for pair in zip(self.v, rows, strict=True)]

    def __xor__(self, other: object) -> Dynamic:
        return self.from_vec([x ^ y for x, y in self._pairs(other)])

    __rxor__ = __xor__

    def bit_xor(self, other: object) -> Dynamic:
        """XOR."""
        return self ^ other

    def bit_and(self, other: object) -> Dynamic:
        """AND."""
        return self & other

    def bit_not(self) -> Dynamic:
        """NOT."""
        return ~self

    def __and__(self, other: object) -> Dynamic:
        return self.from_vec([x & y for x, y in self._pairs(other, mask=True)])

    __rand__ = __and__

    def __invert__(self) -> Dynamic:
        return self.from_vec([1 - x if is_constant(x) else ~x for x in self.v])

    def reveal(self) -> Dynamic:
        """The opened columns: a list of cbits, or a single one. One round. For rows of up to 64 bits."""
        opened = [x.reveal() for x in self.elements()]
        return opened[0] if len(opened) == 1 else opened

    def update(self, other: object) -> None:
        """Replaces the content of every row."""
        other = self.conv(other)
        if len(other.v) != len(self.v):
            raise VectorMismatch(f"different numbers of rows: {len(self.v)}/{len(other.v)}")
        for x, y in zip(self.v, other.v, strict=True):
            if x is not y:
                x.update(y)

    def if_else(self, a: object, b: object) -> Dynamic:
        """``a`` where the first row is 1, ``b`` where it is 0."""
        return if_else(self.v[0], a, b)

    def chosen_by(self, bit: Dynamic, a: object, b: object) -> Dynamic:
        kind = type(self)
        rows = zip(kind.conv(a).v, kind.conv(b).v, strict=True)
        return kind.from_vec([bit.if_else(x, y) for x, y in rows])


_types: dict[tuple[Dynamic, int], Dynamic] = {}
_number_type: list[Dynamic] = []
_NO_COLUMNS = (str, bytes, Vector)


def register_numbers(number_type: ElementType) -> None:
    """Registers the type of rows that are numbers, which is the type of counts."""
    _number_type.append(number_type)


def _from_columns(columns: list[Dynamic]) -> list[Dynamic]:
    """Rows of numbers given as columns, or as matrices next to each other."""
    if not columns:
        raise CompilerError("sbitvec of no columns")
    if any(isinstance(column, sbitvec) for column in columns):
        columns = [number for column in columns for number in column.elements()]
    return transposed(columns)


def if_else(condition: Dynamic, a: object, b: object) -> Dynamic:
    """``a`` where the condition is 1 and ``b`` where it is 0; lists item by item."""
    condition = read(condition)
    if a is b:
        return a
    if isinstance(condition, (bool, int)):
        return a if condition else b
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return [if_else(condition, x, y) for x, y in zip(a, b, strict=False)]
    return condition.if_else(a, b)


def rows_of_numbers(run: Run, value: Value, k: int, m: int) -> list[Dynamic]:
    """The low ``m`` bits of secret integers of ``k`` bits, as sbits rows."""
    _need_binary(run)
    _, rows = comparison.low_bits(run, value, k, m)
    size = value.size
    return [sbits.get_type(size)(0) if row is None else sbits._wrap(row) for row in rows]
