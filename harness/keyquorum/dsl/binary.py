"""Bits in the binary domain: sbits and cbits (n packed bits, the vector of bits) and sbitvec (a matrix of them)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar, Self, cast

import numpy as np

from . import circuits, comparison
from .base import ELEMENT_LIMIT, Public, RunTime, SecretRunTime, is_constant, read
from .circuits import PackedBits, Row, public_bits
from .clear import cint, regint
from .containers import Structure
from .context import Dynamic, ElementType, Run, Value, current
from .errors import CompilerError, VectorMismatch
from .memory import ListMemory, Memory


class _Bits(RunTime, Structure):
    """n bits; ``n`` is fixed by the type: ``sbits.get_type(n)``."""

    n: ClassVar[int] = 40
    _types: ClassVar[dict[int, ElementType]]
    _value: Value

    @classmethod
    def get_type(cls, n: int) -> ElementType:
        """The type of vectors of ``n`` bits."""
        family = cls._family()
        known = family._types.get(n)
        if known is None:
            if not is_constant(n) or n < 1:
                raise CompilerError(f"{family.__name__}.get_type takes a positive compile-time integer, not {n!r}")
            known = family._types.setdefault(n, type(f"{family.__name__}{n}", (family,), {"n": n}))
        return known

    @classmethod
    def _family(cls) -> ElementType:
        raise NotImplementedError

    @classmethod
    def _wrap(cls, value: Value) -> Dynamic:
        """Bits of the type that fits the value's size."""
        kind = cls.get_type(value.size)
        self = kind.__new__(kind)
        self._value = value
        return self

    @classmethod
    def _lazy(cls, size: int, make: Callable[[], Value]) -> Dynamic:
        """Bits that are made when they are needed first."""
        kind = cls.get_type(size)
        self = kind.__new__(kind)
        self._make = make
        return self

    def __getattr__(self, name: str) -> Dynamic:
        if name == "_value" and "_make" in self.__dict__:
            value = self.__dict__["_make"]()
            del self.__dict__["_make"]
            self._value = value
            return value
        raise AttributeError(f"{type(self).__name__} has no attribute {name}")

    @property
    def value(self) -> Value:
        """The engine's handle."""
        return self._value

    @property
    def size(self) -> int:
        """1: the bits are packed into one element. Their number is ``n``."""
        return 1

    def __len__(self) -> int:
        return 1

    def __repr__(self) -> str:
        return type(self).__name__

    def _copy(self) -> Dynamic:
        return self._wrap(self._value)

    @staticmethod
    def _places(vector: object) -> int:
        return 1

    @classmethod
    def _allocate(cls, size: int) -> Memory:
        return ListMemory(size, cls)

    @classmethod
    def _constant_value(cls, value: int) -> Value:
        engine = current().engine
        if value == 0 or (cls.n > 64 and value in (-1, (1 << cls.n) - 1)):
            one = engine.clear_bits(np.array([value & 1], dtype=np.uint8))
            return one if cls.n == 1 else engine.repeat(one, cls.n)
        if abs(value) > 1 << cls.n:
            raise CompilerError(f"public value {value} longer than {cls.n} bits")
        return engine.clear_bits(public_bits(value, cls.n))

    def _public_value(self, other: Dynamic) -> Value | None:
        """Bits of a public operand: a Python integer or cbits."""
        other = read(other)
        if is_constant(other):
            return self._constant_value(other)
        return other._value if isinstance(other, cbits) else None

    def _checked(self, other: _Bits) -> Value:
        if other.n != self.n:
            raise VectorMismatch(f"different vector sizes of operands: {self.n}/{other.n} bits")
        return other._value

    def update(self, other: object) -> None:
        """Replaces the content, also for everyone else who holds this object."""
        make: ElementType = type(self)
        value = make(read(other))
        self._value = value._value
        self.__dict__.pop("_make", None)

    def bit_decompose(self, bit_length: int | None = None) -> list[Dynamic]:
        """The single bits, first one first."""
        count = self.n if bit_length is None else min(bit_length, self.n)
        if count > ELEMENT_LIMIT:
            raise CompilerError(f"taking {count} bits apart is slow: keep vectors of bits whole (up to {ELEMENT_LIMIT})")
        engine = current().engine
        return [self._wrap(engine.slice(self._value, i, 1, 1)) for i in range(count)]

    def bit_xor(self, other: Dynamic) -> Dynamic:
        """XOR."""
        return self ^ other

    def bit_and(self, other: Dynamic) -> Dynamic:
        """AND."""
        return self & other

    def bit_not(self) -> Dynamic:
        """NOT."""
        return ~self  # type: ignore[operator]

    def half_adder(self, other: Dynamic) -> tuple[Dynamic, Dynamic]:
        """Sum modulo 2 and carry."""
        return self ^ other, self & other


class cbits(_Bits):
    """Opened bits."""

    _types: ClassVar[dict[int, ElementType]] = {}

    def __init__(self, value: Dynamic = None) -> None:
        value = read(value)
        if value is None or is_constant(value):
            self._value = self._constant_value(value or 0)
        elif isinstance(value, cbits) and value.n == self.n:
            self._value = value._value
        elif isinstance(value, Public):
            self._value = _bits_of_numbers(value, self.n)
        else:
            raise CompilerError(f"cannot convert {type(value).__name__} to {type(self).__name__}")

    @classmethod
    def _family(cls) -> ElementType:
        return cbits

    @classmethod
    def conv(cls, value: object) -> Dynamic:
        """The value as cbits of this length."""
        value = read(value)
        return value if isinstance(value, cls) and value.n == cls.n else cls(value)

    def reveal(self) -> cbits:
        """Itself."""
        return self

    def number(self) -> int:
        """The bits as a Python integer in two's complement."""
        bits = current().engine.read_bits(self._value)
        unsigned = int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little")
        return unsigned - (1 << self.n) if self.n > 1 and unsigned >> (self.n - 1) else unsigned

    def to_regint(self) -> regint:
        """The bits as one 64-bit number."""
        if self.n > 64:
            raise CompilerError("too many bits for a regint: use to_regint_by_bit")
        bits = current().engine.read_bits(self._value)
        return regint(int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little"))

    def to_regint_by_bit(self) -> regint:
        """The bits as a vector of n numbers."""
        run, value = current(), self._value
        return regint._lazy(self.n, lambda: run.engine.read_bits(value).astype(np.int64), lambda: run.bits_to_clear(value))

    def __xor__(self, other: object) -> Dynamic:
        other = read(other)
        if is_constant(other):
            other = type(self)(other)
        return self._wrap(current().engine.xor(self._value, self._checked(other))) if isinstance(other, cbits) else NotImplemented

    __rxor__ = __xor__

    def __and__(self, other: object) -> Dynamic:
        other = read(other)
        if is_constant(other):
            if other == 0:
                return 0  # a Python 0: a compiler knows the result
            other = type(self)(other)
        run = current()
        if isinstance(other, cbits) and not run.is_ring and self.n >= run.bits:
            raise CompilerError(f"& of {self.n} opened bits does not fit {run.engine.domain}: use shorter vectors, or sbits")
        return self._wrap(current().engine.and_(self._value, self._checked(other))) if isinstance(other, cbits) else NotImplemented

    __rand__ = __and__

    def __invert__(self) -> Dynamic:
        return self._wrap(current().engine.not_(self._value))


def _bits_of_numbers(numbers: Public, n: int) -> Value:
    """n clear bits: those of a single number, or one of each of n numbers 0 and 1 (cint)."""
    engine = current().engine
    if numbers.size == 1 and not (n == 1 and isinstance(numbers, cint)):
        return engine.clear_bits(public_bits(int(numbers._indices()[0]), n))
    if numbers.size != n or not isinstance(numbers, cint):
        raise VectorMismatch(f"cannot convert {numbers!r} to {n} bits")
    return engine.clear_bits((numbers._indices() & 1).astype(np.uint8))


class sbits(_Bits, SecretRunTime):
    """Secret bits. ``&`` takes one round, ``^`` and ``~`` are local."""

    _types: ClassVar[dict[int, ElementType]] = {}
    clear_type: ClassVar[ElementType] = cbits

    def __init__(self, value: Dynamic = None) -> None:
        _need_binary(current())
        value = read(value)
        if value is None or is_constant(value):
            self._value = self._constant_value(value or 0)
        elif isinstance(value, (sbits, cbits)) and value.n == self.n:
            self._value = value._value
        elif isinstance(value, Public):
            self._value = _bits_of_numbers(value, self.n)
        elif isinstance(value, SecretRunTime) and hasattr(value, "_low_rows") and len(cast(Dynamic, value)) == 1:
            self._value = sbitvec(value, self.n).elements()[0]._value
        else:
            raise CompilerError(f"cannot convert {type(value).__name__} to {type(self).__name__}")

    @classmethod
    def _family(cls) -> ElementType:
        return sbits

    @classmethod
    def conv(cls, value: object) -> Dynamic:
        """The value as sbits of this length."""
        value = read(value)
        return value if isinstance(value, cls) and value.n == cls.n else cls(value)

    @classmethod
    def bit_compose(cls, bits: Iterable[Dynamic]) -> Dynamic:
        """One vector of several bits or vectors of bits."""
        parts = [sbit(b) if is_constant(b) else b for b in bits]
        if not all(isinstance(p, _Bits) for p in parts):
            raise CompilerError("sbits.bit_compose takes bits")
        return sbits._wrap(current().engine.concat([p._value for p in parts]))

    concat = bit_compose

    @classmethod
    def get_input_from(cls, player: object, n_bits: int | None = None) -> Dynamic:
        """The bits of the next number of ``player``'s text input (``n_bits``, default all, in two's complement; the rest is 0). One
        round."""
        if not is_constant(player):
            raise CompilerError("player must be known at compile time for binary circuit inputs")
        count = cls.n if n_bits is None else n_bits
        if not is_constant(count) or not 1 <= count <= cls.n:
            raise CompilerError(f"{cls.__name__}.get_input_from takes 1 to {cls.n} bits, not {n_bits!r}")
        run = current()
        number = run.io.take_number(run.engine, player)
        if number is not None and not -(1 << (count - 1)) <= number < 1 << count:
            raise CompilerError(f"input out of range for a {count}-bit (un)signed integer: a number of party {player}")
        bits = None if number is None else public_bits(number, count)
        value = run.engine.input_bits(0 if run.emulated else player, count, bits)
        return cls._wrap(run.engine.concat([value, cls.get_type(cls.n - count)(0).value]) if count < cls.n else value)

    @staticmethod
    def get_random_bit() -> Dynamic:
        """One uniform secret bit."""
        return sbits._wrap(current().engine.random_bits(1))

    @staticmethod
    def bit_decompose_clear(numbers: object, n_bits: int) -> list[Dynamic]:
        """Rows of the low bits of a public vector, as cbits. Waits for the vector."""
        run = current()
        return [cbits._wrap(row) for row in run.clear_rows(cint.conv(numbers).value, n_bits)]

    @staticmethod
    def bit_adder(a: Sequence[Dynamic], b: Sequence[Dynamic], carry_in: object = 0, get_carry: bool = False) -> list[Dynamic]:
        """Sum of two numbers given as lists of rows, least significant first: m rows take about m log2(m) + m ANDs
        per entry and 1 + ceil(log2 m) rounds."""
        if len(a) != len(b):
            raise VectorMismatch(f"cannot add numbers of {len(a)} and {len(b)} rows")
        run = current()
        size = max((x.n for x in (*a, *b) if isinstance(x, _Bits)), default=1)
        rows_a, rows_b = ([_row(x, size) for x in side] for side in (a, b))
        carry = _row(carry_in, size)
        rows = circuits.add(PackedBits(run), rows_a, rows_b, carry, get_carry)
        return [0 if row is None else sbits._wrap(row) for row in rows]

    def reveal(self, check: bool = False) -> Dynamic:
        """Opens the bits. One round."""
        value = self._value
        return cbits._wrap(value if value.kind == "cb" else current().engine.open(value))

    def popcnt(self) -> Dynamic:
        """Number of ones, as sbits of the length that it needs."""
        return sbitvec.from_vec(self.bit_decompose()).popcnt().elements()[0]

    def _operand(self, other: object) -> Value | None:
        other = read(other)
        if isinstance(other, _Bits):
            return self._checked(other)
        return self._public_value(other)

    def _like(self, value: Value) -> Dynamic:
        """Bits of our own type."""
        kind = type(self)
        made = kind.__new__(kind)
        made._value = value
        return made

    def __xor__(self, other: object) -> Dynamic:
        if type(other) is type(self):  # the common case, without the general path's questions
            return self._like(current().engine.xor(self._value, other._value))
        o = self._operand(other)
        return NotImplemented if o is None else self._wrap(current().engine.xor(self._value, o))

    __rxor__ = __xor__

    def __and__(self, other: object) -> Dynamic:
        if type(other) is type(self):
            return self._like(current().engine.and_(self._value, other._value))
        if is_constant(other) and other == 0:
            return 0
        o = self._operand(other)
        return NotImplemented if o is None else self._wrap(current().engine.and_(self._value, o))

    __rand__ = __and__

    def __invert__(self) -> Dynamic:
        return self._wrap(current().engine.not_(self._value))

    def if_else(self, a: Dynamic, b: Dynamic) -> Dynamic:
        """Bit by bit: ``a`` where we are 1, ``b`` where we are 0; a single bit selects for all. One round."""
        a, b = read(a), read(b)
        if isinstance(a, sbitvec) or isinstance(b, sbitvec):
            return sbitvec.from_vec([self.if_else(x, y) for x, y in zip(sbitvec.conv(a).v, sbitvec.conv(b).v, strict=True)])
        size = max((x.n for x in (a, b) if isinstance(x, _Bits)), default=self.n)
        t = sbits.get_type(size)
        a, b = t.conv(a), t.conv(b)
        chooser = self if self.n in (size, 1) else self._mismatch(size)
        engine = current().engine
        return self._wrap(engine.xor(engine.and_(chooser._value, (a ^ b)._value), b._value))

    def cond_swap(self, a: Dynamic, b: Dynamic) -> tuple[Dynamic, Dynamic]:
        """``(a, b)`` where we are 0 and ``(b, a)`` where we are 1, one bit for all bits of a and b. One round."""
        if self.n != 1:
            raise CompilerError(f"cond_swap takes a single bit (sbit), not {self.n}")
        a, b = read(a), read(b)
        difference = self.if_else(a ^ b, 0)
        return a ^ difference, b ^ difference

    def _mismatch(self, size: int) -> Dynamic:
        raise VectorMismatch(f"different vector sizes of operands: {self.n}/{size} bits")


sbit: ElementType = sbits.get_type(1)
"""A single secret bit."""


def _need_binary(run: Run) -> None:
    if not run.engine.has_binary:
        raise CompilerError(f"{run.engine.protocol} has no binary domain in this engine: use bits as sint (get_random_bit), or ring or rep-field")


def _row(x: object, size: int) -> Row:
    """An operand of a circuit: bits of this size, a single bit for all, or 0 or 1 for all."""
    x = read(x)
    if is_constant(x):
        if x not in (0, 1):
            raise CompilerError(f"a row of bits cannot be {x}")
        return None if x == 0 else sbits.get_type(size)((1 << size) - 1)._value
    if not isinstance(x, _Bits) or x.n not in (1, size):
        raise VectorMismatch(f"a row of {size} bits is needed, not {x!r}")
    return x._value if x.n == size else current().engine.repeat(x._value, size)


WRONG_ON_MP_SPDZ = (2, 4, 5, 6, 8, 9, 10)
"""Numbers of rows of which popcnt of MP-SPDZ 0.4.2 loses the last carry."""


class sbitvec(SecretRunTime):
    """Rows of secret bits: row i, ``v[i]``, holds bit i of every number; a column (``elements()``) is one number."""

    __slots__ = ("v",)
    v: list[Dynamic]

    def __init__(self, elements: object = None, length: int | None = None, input_length: int | None = None) -> None:
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
        elif isinstance(elements, (list, tuple)) and elements:
            self.v = _transposed(elements)
        else:
            raise CompilerError(f"sbitvec takes a list of sbits, or a sint and a length, not {type(elements).__name__}")

    @classmethod
    def from_vec(cls, vector: Dynamic) -> Self:
        """The matrix with these rows."""
        self = cls.__new__(cls)
        self.v = list(vector.v if isinstance(vector, sbitvec) else vector)
        sizes = {x.n for x in self.v if isinstance(x, _Bits)}
        if len(sizes) > 1:
            raise VectorMismatch(f"rows of different sizes: {'/'.join(map(str, sorted(sizes)))}")
        return self

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
        return f"sbitvec({len(self.v)}/{self.size})"

    def bit_decompose(self, n_bits: int | None = None) -> list[Dynamic]:
        """The first rows."""
        return self.v[:n_bits]

    def elements(self, start: int | None = None, stop: int | None = None) -> list[Dynamic]:
        """The columns, each as sbits. For rows of up to 64 bits."""
        if stop is None:
            start, stop = stop, start
        return _transposed(self.v[start:stop])

    def __iter__(self) -> Iterator[Dynamic]:
        return iter(self.elements())

    def popcnt(self) -> sbitvec:
        """Number of ones in every column, m - (ones in the binary form of m) ANDs, floor(log2 m) rounds for m rows.

        Refused for the numbers of rows of which MP-SPDZ loses the last carry."""
        if len(self.v) in WRONG_ON_MP_SPDZ:
            raise CompilerError(f"popcnt of {len(self.v)} rows is wrong on MP-SPDZ: append rows of zeros up to 3, 7 or 11")
        rows = [_row(x, self.size) for x in self.v]
        counted = circuits.population_count(PackedBits(current()), [r for r in rows if r is not None])
        return sbitvec.from_vec([sbits._wrap(r) for r in counted])

    def _pairs(self, other: Dynamic, mask: bool = False) -> list[tuple[Dynamic, Dynamic]]:
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
        return sbitvec.from_vec([x ^ y for x, y in self._pairs(other)])

    __rxor__ = __xor__

    def __and__(self, other: object) -> Dynamic:
        return sbitvec.from_vec([x & y for x, y in self._pairs(other, mask=True)])

    __rand__ = __and__

    def __invert__(self) -> Dynamic:
        return sbitvec.from_vec([1 - x if is_constant(x) else ~x for x in self.v])

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
        """Selection by the first row."""
        return self.v[0].if_else(a, b)


def _transposed(rows: Sequence[Dynamic]) -> list[Dynamic]:
    """Columns of rows of equal length (or integers 0)."""
    size = max((x.n for x in rows if isinstance(x, _Bits)), default=1)
    if size > ELEMENT_LIMIT:
        raise CompilerError(f"taking rows of {size} bits apart is slow: work on the rows .v (up to {ELEMENT_LIMIT} columns)")
    t = sbits.get_type(size)
    values = [(t(x) if is_constant(x) else x) for x in rows]
    if any(not isinstance(x, _Bits) or x.n != size for x in values):
        raise VectorMismatch("rows of different sizes cannot be transposed")
    engine = current().engine
    joined = engine.concat([x._value for x in values])
    return [sbits._wrap(engine.slice(joined, j, size, len(values))) for j in range(size)]


def rows_of_numbers(run: Run, value: Value, k: int, m: int) -> list[Dynamic]:
    """The low ``m`` bits of secret integers of ``k`` bits, as sbits rows."""
    _need_binary(run)
    _, rows = comparison.low_bits(run, value, k, m)
    size = value.size
    return [sbits.get_type(size)(0) if row is None else sbits._wrap(cast(Value, row)) for row in rows]
