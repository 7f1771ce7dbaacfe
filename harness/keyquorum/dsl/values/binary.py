"""Secret bits in the binary domain: sbits (n packed bits, the vector of bits)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, cast

from keyquorum.model.protocols import names

from ..context import Dynamic, ElementType, Run, Value, current
from ..errors import CompilerError, VectorMismatch
from . import circuits
from .base import Public, SecretRunTime, is_constant, read
from .bits import BitRows, _Bits, _bits_of_numbers, cbits
from .circuits import PackedBits, Row, public_bits
from .clear import cint

__all__ = ["BitRows", "cbits", "sbit", "sbits"]

WRONG_ON_MP_SPDZ = (2, 4, 5, 6, 8, 9, 10)
"""Numbers of rows for which popcnt of MP-SPDZ 0.4.2 loses the last carry."""


COLUMN_LIMIT = 4096
"""Rows longer than this cannot be turned into columns."""


class sbits(_Bits, SecretRunTime):
    """Secret bits. ``&`` takes one round, ``^`` and ``~`` are local."""

    _types: ClassVar[dict[int, ElementType]] = {}
    clear_type: ClassVar[ElementType] = cbits

    def __init__(self, value: Dynamic = None) -> None:
        _need_binary(current())
        value = read(value)
        if value is None or is_constant(value):
            self._value = self._constant_value(value or 0)
        elif isinstance(value, (sbits, cbits)):
            self._value = value._cut(self.n)
        elif isinstance(value, Public):
            self._value = _bits_of_numbers(value, self.n)
        elif isinstance(value, BitRows):
            rows = value.bit_decompose()[: self.n]
            self._value = sbits.bit_compose([*rows, *[0] * (self.n - len(rows))])._value
        elif isinstance(value, SecretRunTime) and hasattr(value, "_low_rows") and len(cast(Dynamic, value)) == 1:
            rows = cast(Dynamic, value)._low_rows(max(self.n, current().program.bit_length), self.n)
            self._value = current().engine.concat([row._value for row in rows])
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
    def hard_conv(cls, value: object) -> Dynamic:
        """See :meth:`conv`."""
        return cls.conv(value)

    @classmethod
    def _bit_family(cls) -> Dynamic:
        return sbits

    @staticmethod
    def trans(rows: Iterable[Dynamic]) -> list[Dynamic]:
        """The columns of rows of one length: item i has bit i of every row."""
        return transposed(list(rows))

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
        """The bits of the next number of ``player``'s text input, in two's complement: ``n_bits`` of them (default all), then zeros. One
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
        """Number of ones, as bits of the length that it needs."""
        bits = [bit._value for bit in self.bit_decompose()]
        check_popcnt(len(bits))
        return sbits._wrap(current().engine.concat(circuits.population_count(PackedBits(current()), bits)))

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
        if type(other) is type(self):  # fast path of the common case
            return self._like(current().engine.xor(self._value, other._value))
        other = read(other)
        if is_constant(other):
            length = max(self.n, 0 if other < 0 else int(other).bit_length())
            other = sbits.get_type(length)(other)
        if not isinstance(other, _Bits):
            return NotImplemented
        length = max(self.n, other.n)
        return self._wrap(current().engine.xor(self._cut(length), other._cut(length)))

    __rxor__ = __xor__

    def __add__(self, other: object) -> Dynamic:
        """XOR: the sum of bits."""
        return sbits.__xor__(self, other)

    __radd__ = __sub__ = __rsub__ = __add__

    def __mul__(self, other: object) -> Dynamic:
        """AND of all bits with a single bit. A single bit times a number gives the number where the bit is 1, else 0."""
        other = read(other)
        if is_constant(other):
            if other in (0, 1):
                return self if other else 0
            if self.n != 1 or other < 0:
                return NotImplemented
            zero = sbit(0)
            return sbits.bit_compose([self if (other >> i) & 1 else zero for i in range(int(other).bit_length())])
        if not isinstance(other, sbits):
            return NotImplemented
        if min(self.n, other.n) != 1:
            raise CompilerError(f"the product of {self.n} and {other.n} bits: one operand is a single bit (sbit), or use &, or sbitint for numbers")
        return self._wrap(current().engine.and_(self._value, other._value))

    __rmul__ = __mul__

    def __lshift__(self, other: object) -> Dynamic:
        if not is_constant(other):
            return NotImplemented
        return sbits.bit_compose([*[sbit(0)] * other, *self.bit_decompose()][:64])

    def right_shift(self, m: int, k: int, security: int | None = None, signed: bool = True) -> Dynamic:
        """Bits ``m`` to ``k - 1``."""
        return sbits.get_type(k - m)._wrap(current().engine.slice(self._value, m, 1, k - m))

    def equal(self, other: object, n: int | None = None) -> Dynamic:
        """Whether all bits are equal, as a single bit: ceil(log2 n) rounds."""
        differing = sbits.__xor__(self, other)
        if differing is NotImplemented:
            return differing
        same = ~differing
        bits = [same] if same.n == 1 else [sbits._wrap(current().engine.slice(same._value, i, 1, 1)) for i in range(same.n)]
        return sbits._wrap(circuits.all_ones(PackedBits(current()), [bit._value for bit in bits]))

    def __eq__(self, other: object) -> Dynamic:
        return self.equal(other)

    def __ne__(self, other: object) -> Dynamic:
        same = self.equal(other)
        return same if same is NotImplemented else ~same

    __hash__ = None  # type: ignore[assignment]

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
        """Bit by bit ``a`` where this value is 1, ``b`` where it is 0; a single bit selects for all. One round."""
        a, b = read(a), read(b)
        for rows in (a, b):
            if isinstance(rows, BitRows):
                return rows.chosen_by(self, a, b)
        if self.n == 1 and is_constant(a) and is_constant(b):
            return self * (a ^ b) ^ b
        size = max((x.n for x in (a, b) if isinstance(x, _Bits)), default=self.n)
        t, kinds = sbits.get_type(size), {type(x) for x in (a, b) if not is_constant(x)}
        a, b = t.conv(a), t.conv(b)
        chooser = self if self.n in (size, 1) else self._mismatch(size)
        engine = current().engine
        chosen = sbits._wrap(engine.xor(engine.and_(chooser._value, (a ^ b)._value), b._value))
        return kinds.pop().conv(chosen) if len(kinds) == 1 else chosen

    def cond_swap(self, a: Dynamic, b: Dynamic) -> tuple[Dynamic, Dynamic]:
        """``(a, b)`` if this single bit is 0, ``(b, a)`` if it is 1, for all bits of a and b. One round."""
        if self.n != 1:
            raise CompilerError(f"cond_swap takes a single bit (sbit), not {self.n}")
        a, b = read(a), read(b)
        difference = self.if_else(a ^ b, 0)
        return a ^ difference, b ^ difference

    def _mismatch(self, size: int) -> Dynamic:
        raise VectorMismatch(f"different vector sizes of operands: {self.n}/{size} bits")


sbit: ElementType = sbits.get_type(1)
"""A single secret bit."""
sbits.bit_type = sbit


def check_popcnt(rows: int) -> None:
    """Raises CompilerError for the numbers of rows in :data:`WRONG_ON_MP_SPDZ`."""
    if rows in WRONG_ON_MP_SPDZ:
        raise CompilerError(f"popcnt of {rows} rows is wrong on MP-SPDZ: append rows of zeros up to 3, 7 or 11")


def _need_binary(run: Run) -> None:
    if not run.engine.has_binary:
        raise CompilerError(
            f"{run.engine.protocol} has no binary domain in this engine: use bits as sint (get_random_bit), or {names(binary=True, emulated=False, bits=False, last=' or ')}"
        )


def _row(x: object, size: int) -> Row:
    """An operand of a circuit as a row: bits of this size, or a single bit, 0 or 1 repeated."""
    x = read(x)
    if is_constant(x):
        if x not in (0, 1):
            raise CompilerError(f"a row of bits cannot be {x}")
        return None if x == 0 else sbits.get_type(size)((1 << size) - 1)._value
    if not isinstance(x, _Bits) or x.n not in (1, size):
        raise VectorMismatch(f"a row of {size} bits is needed, not {x!r}")
    return x._value if x.n == size else current().engine.repeat(x._value, size)


def transposed(rows: Sequence[Dynamic]) -> list[Dynamic]:
    """Columns of rows of equal length (or integers 0)."""
    size = max((x.n for x in rows if isinstance(x, _Bits)), default=1)
    if size > COLUMN_LIMIT:
        raise CompilerError(f"taking rows of {size} bits apart is slow: work on the rows .v (up to {COLUMN_LIMIT} columns)")
    t = sbits.get_type(size)
    values = [(t(x) if is_constant(x) else x) for x in rows]
    if any(not isinstance(x, _Bits) or x.n != size for x in values):
        raise VectorMismatch("rows of different sizes cannot be transposed")
    engine = current().engine
    joined = engine.concat([x._value for x in values])
    return [sbits._wrap(engine.slice(joined, j, size, len(values))) for j in range(size)]
