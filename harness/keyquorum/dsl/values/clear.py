"""Public run-time values: cint (elements of the domain) and regint (64-bit integers). One file, since each converts to the other."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Self

import numpy as np

from ..containers.containers import Structure
from ..containers.memory import EngineMemory, Memory, NumpyMemory, Postponed
from ..context import Dynamic, ElementType, Ints, Value, current
from ..errors import CompilerError, VectorMismatch
from ..recording.recorded import as_int64, contiguous
from .base import Public, RunTime, SecretRunTime, Vector, checked_size, common_size, is_constant, progression, read
from .global_memory import InMemory


class Element(Vector, Structure, InMemory):
    """A vector of elements of the arithmetic domain. The engine has the elements; ``value`` is its handle, which may be made at the first use."""

    __slots__ = ("_make", "_value")
    _value: Value | None
    _make: Callable[[], Value] | None

    def _set(self, value: Value) -> None:
        self._value = value
        self._make = None
        self.size = value.size

    @property
    def value(self) -> Value:
        """The engine's handle."""
        if self._value is None:
            assert self._make is not None
            self._value = self._make()
            self._make = None
        return self._value

    @classmethod
    def _wrap(cls, value: Value) -> Self:
        self = cls.__new__(cls)
        self._value = value
        self._make = None
        self.size = value.size
        return self

    @classmethod
    def _lazy(cls, size: int, make: Callable[[], Value]) -> Self:
        self = cls.__new__(cls)
        self._value = None
        self._make = make
        self.size = size
        return self

    @staticmethod
    def _element_count(vector: Dynamic) -> int:
        return int(vector.size)

    def _become(self, other: Dynamic) -> None:
        self._set(other.value)

    def _slice(self, start: int, step: int, count: int) -> Self:
        return self._wrap(current().engine.slice(self.value, start, step, count))

    def _spread(self, size: int) -> Self:
        return self._wrap(current().engine.repeat(self.value, size))

    @classmethod
    def _join(cls, parts: list[Dynamic]) -> Dynamic:
        if not parts:
            return cls(size=0)  # type: ignore[call-arg]
        return cls._wrap(current().engine.concat([p.value for p in parts]))

    def _load_constant(self, val: object, size: int | None) -> bool:
        """Fills ``self`` from None or an integer; False if ``val`` is something else."""
        run = current()
        if val is None:
            value = run.constant(0)
        elif is_constant(val):
            value = run.constant(int(val))
        else:
            return False
        n = 1 if size is None else checked_size(size)
        self._set(value if n == 1 else run.engine.repeat(value, n))
        return True

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size})"

    # -- arithmetic: the operand's value and whether it is secret, or None --------------------------------------------

    def _operand(self, other: object) -> Element | None:
        """An operand of + - * as an element vector of checked size."""
        if isinstance(other, Element):
            if other.size != self.size:
                common_size(self.size, other.size)
            return other
        if is_constant(other):
            return cint._wrap(current().constant(int(other)))
        if isinstance(other, RunTime):
            other = read(other)
            if is_constant(other):
                return cint._wrap(current().constant(int(other)))
            if isinstance(other, regint):
                other = cint(other)
            if isinstance(other, Element):
                common_size(self.size, other.size)
                return other
        return None

    def _result(self, other: Element, value: Value) -> Dynamic:
        """The result of an operation: cint if both operands are public, else secret."""
        return (cint if isinstance(self, cint) and isinstance(other, cint) else secret_type())._wrap(value)

    def __add__(self, other: object) -> Dynamic:
        if other.__class__ is int and other == 0:
            return self
        o = self._operand(other)
        return NotImplemented if o is None else self._result(o, current().engine.add(self.value, o.value))

    __radd__ = __add__

    def __sub__(self, other: object) -> Dynamic:
        o = self._operand(other)
        return NotImplemented if o is None else self._result(o, current().engine.sub(self.value, o.value))

    def __rsub__(self, other: object) -> Dynamic:
        o = self._operand(other)
        return NotImplemented if o is None else self._result(o, current().engine.sub(o.value, self.value))

    def __mul__(self, other: object) -> Dynamic:
        if is_constant(other) and other in (0, 1):
            return self if other else 0  # a Python 0, whatever the size, as in MP-SPDZ, where the compiler knows the result
        o = self._operand(other)
        return NotImplemented if o is None else self._result(o, current().engine.mul(self.value, o.value))

    __rmul__ = __mul__

    def __neg__(self) -> Dynamic:
        return self._wrap(current().engine.neg(self.value))

    def _matrix_product(self, right: Dynamic, rows: int, inner: int, columns: int) -> Dynamic:
        """Row-major product of a rows x inner and an inner x columns matrix, in pieces that bound the memory."""
        engine = current().engine
        if self.value.kind == "c" or right.value.kind == "c":
            return self._result(right, engine.matrix_product(self.value, right.value, rows, inner, columns))
        if rows * inner * columns > _LARGE_PRODUCT:  # computed at its first use, since it may never be used
            left = self.value, right.value
            return secret_type()._lazy(rows * columns, Postponed(lambda: _secret_product(*left, rows, inner, columns)))
        return self._result(right, _secret_product(self.value, right.value, rows, inner, columns))

    def _negacyclic_product(self, s: Dynamic) -> Dynamic:
        """Products of the public polynomials of this vector with s modulo X^n + 1, where s has n coefficients."""
        return self._result(s, current().engine.negacyclic(self.value, s.value))

    def _bit_products(self, v: Dynamic, shift: int) -> Dynamic:
        """2^shift times the products of each of these bits with each element of v."""
        engine, bits, other = current().engine, self.value, v.value
        if bits.kind != "c" and other.kind != "c":
            return self._wrap(engine.bit_products(bits, other, shift))
        # A secret vector that is public internally: the products are local.
        rows, columns = np.divmod(np.arange(bits.size * other.size, dtype=np.int64), other.size)
        product = engine.mul(engine.gather(bits, rows), engine.gather(other, columns))
        return secret_type()._wrap(engine.mul(product, engine.clear_wide((1 << shift).to_bytes(16, "little"))))

    def _looked_up(self, at: Dynamic, table: Sequence[int], bits: int, first: int) -> Dynamic:
        """Bits of the values of a table at positions at xor r, where this vector has the one-hot vectors of r."""
        run = current()
        positions = regint.conv(at)._indices()
        return secret_type()._wrap(run.engine.lookup(run.to_secret(self.value), positions, np.array(table, dtype=np.int64), bits, first))


_LARGE_PRODUCT = 1 << 28
"""A matrix product of more products of elements than this is computed at its first use, which may cost a round of its own."""


def _secret_product(left: Value, right: Value, rows: int, inner: int, columns: int) -> Value:
    """Row-major product of two secret matrices, in pieces that bound the memory."""
    engine, parts = current().engine, []
    step = max(1, (1 << 22) // max(1, inner * columns))
    by_column = engine.gather(right, np.arange(inner * columns, dtype=np.int64).reshape(inner, columns).T.ravel())
    for base in range(0, rows, step):
        count = min(step, rows - base)
        row = np.arange(inner, dtype=np.int64)[None, None, :] + inner * (base + np.arange(count))[:, None, None]
        left_index = np.broadcast_to(row, (count, columns, inner)).ravel()
        right_index = np.broadcast_to(np.arange(columns * inner, dtype=np.int64), (count, columns * inner)).ravel()
        picked = engine.gather(left, np.ascontiguousarray(left_index))
        parts.append(engine.dot(picked, engine.gather(by_column, np.ascontiguousarray(right_index)), inner))
    joined: Value = parts[0] if len(parts) == 1 else engine.concat(parts)
    return joined


_secret: list[ElementType] = []


def register_secret(element_type: ElementType, bit_type: ElementType) -> None:
    """Registers the type of results with a secret operand, and the type of comparisons. (The modules of secret types import this one.)"""
    _secret.extend((element_type, bit_type))


def secret_type() -> Dynamic:
    """sint."""
    return _secret[0]


def secret_bit_type() -> Dynamic:
    """sintbit."""
    return _secret[1]


class cint(Element, Public):
    """A public vector of elements of the domain. ``<< >> % &`` work on canonical unsigned integers (on rings, ``%`` works on
    centred ones, as in MP-SPDZ). Comparisons and printing work on centred integers."""

    __slots__ = ()

    def __init__(self, val: object = None, size: int | None = None) -> None:
        run = current()
        val = read(val)
        if self._load_constant(val, size):
            return
        if isinstance(val, (list, tuple)):
            if all(is_constant(v) for v in val):
                self._set(run.constants(val))
            else:
                parts = [cint(v) for v in val]
                if any(p.size != 1 for p in parts):
                    raise VectorMismatch("the elements of a list must be scalars: use cint.concat")
                self._set(run.engine.concat([p.value for p in parts]))
            return
        if isinstance(val, SecretRunTime):
            raise CompilerError(f"cannot convert the secret {type(val).__name__} to cint: reveal it first")
        if isinstance(val, cint):
            self._value, self._make, self.size = val._value, val._make, val.size
        elif isinstance(val, regint):
            self._value, self._make, self.size = val._as_clear()
        elif hasattr(val, "to_regint"):
            self._set(run.engine.clear(val.to_regint().data))
        else:
            raise CompilerError(f"cannot convert {type(val).__name__} to cint")
        if size is not None and size != self.size:
            raise VectorMismatch(f"mismatch in vector size: {self.size}, not {size}")

    @classmethod
    def conv(cls, value: object) -> Dynamic:
        """The value as cint; a list element by element."""
        value = read(value)
        if isinstance(value, cls):
            return value
        if isinstance(value, (list, tuple)):
            return type(value)(cls.conv(v) for v in value)
        return cls(value)

    @classmethod
    def _allocate(cls, size: int) -> Memory:
        return EngineMemory(size, cls, secret=False)

    def _indices(self) -> Ints:
        return current().int64s(self.value)

    def reveal(self) -> cint:
        """Itself."""
        return self

    def to_regint(self) -> regint:
        """The centred values as 64-bit integers."""
        return regint(self)

    def binary_output(self, player: int | None = None) -> None:
        """Writes the centred values, as int64, to the binary output of all parties (or of ``player``)."""
        run, value = current(), self.value
        run.defer(lambda: run.io.output(run.int64s(value), player))

    def __lshift__(self, other: object) -> Dynamic:
        run, other = current(), read(other)
        if is_constant(other):
            factor = (1 << other) % run.modulus if other < 4 * run.bits else pow(2, other, run.modulus)
            return self._wrap(run.engine.mul(self.value, run.clear_ints((factor,))))
        return self._clear_op("<<", other)

    def __rshift__(self, other: object) -> Dynamic:
        run, other = current(), read(other)
        if is_constant(other) and other >= run.bits:
            return self._wrap(run.engine.mul(self.value, run.constant(0)))
        return self if is_constant(other) and other == 0 else self._clear_op(">>", other)

    def __and__(self, other: object) -> Dynamic:
        other = read(other)
        if is_constant(other) and not current().is_ring and not 0 <= other < current().modulus:
            raise CompilerError(f"the mask {other} of & must lie in [0, {current().modulus})")
        return self._clear_op("&", other)

    __rand__ = __and__

    def __mod__(self, other: object) -> Dynamic:
        run, other = current(), read(other)
        if is_constant(other):
            if other < 1:
                raise CompilerError(f"the modulus of % must be positive, not {other}")
            if other >= run.modulus:
                if other == run.modulus or not run.is_ring:
                    return self
                raise CompilerError(f"the modulus {other} does not fit {run.engine.domain}")
        o = self._public_operand(other)
        if o is None:
            return NotImplemented
        engine = run.engine
        if not run.is_ring or (is_constant(other) and other & (other - 1) == 0):
            return self._wrap(engine.clear_op("%", self.value, o.value))
        # Centred x mod m: with h = 2^(k-1), ((x + h) mod m) + m - (h mod m), mod m.
        half = run.clear_ints((1 << (run.bits - 1),))
        moved = engine.clear_op("%", engine.add(self.value, half), o.value)
        back = engine.sub(o.value, engine.clear_op("%", half, o.value))
        high = engine.clear_op("%", engine.add(moved, back), o.value)
        return self._wrap(high)

    def _public_operand(self, other: object) -> Element | None:
        o = self._operand(other)
        return o if isinstance(o, cint) else None

    def _clear_op(self, name: str, other: object) -> Dynamic:
        o = self._public_operand(other)
        return NotImplemented if o is None else self._wrap(current().engine.clear_op(name, self.value, o.value))

    def legendre(self) -> cint:
        """Legendre symbols 1, 0 and -1 of the elements, over a prime field."""
        return self._wrap(current().engine.clear_legendre(self.value))

    def bit_decompose(self, bit_length: int | None = None) -> list[cint]:
        """The low bits, as vectors of 0 and 1, least significant first."""
        length = current().program.bit_length if bit_length is None else bit_length
        return [(self >> i) & 1 for i in range(length)]

    def _compare(self, other: object, compare: Callable[[Dynamic, Dynamic], Dynamic]) -> Dynamic:
        run, other = current(), read(other)
        if isinstance(other, regint):
            right: Dynamic = other.data
        elif is_constant(other):
            right = other
        elif isinstance(other, cint):
            right = run.compared(other.value)
        else:
            return NotImplemented
        if not is_constant(right):
            common_size(self.size, len(right))
        return regint._wrap(as_int64(compare(run.compared(self.value), right)))

    def __lt__(self, other: object) -> Dynamic:
        return self._compare(other, operator.lt)

    def __le__(self, other: object) -> Dynamic:
        return self._compare(other, operator.le)

    def __gt__(self, other: object) -> Dynamic:
        return self._compare(other, operator.gt)

    def __ge__(self, other: object) -> Dynamic:
        return self._compare(other, operator.ge)

    def __eq__(self, other: object) -> Dynamic:
        return self._compare(other, operator.eq)

    def __ne__(self, other: object) -> Dynamic:
        return self._compare(other, operator.ne)

    __hash__ = None  # type: ignore[assignment]


class regint(Public, Structure, InMemory):
    """A public vector of 64-bit integers, wrapping around. ``data`` is the int64 array (read on first use)."""

    __slots__ = ("_clear", "_data", "_make")
    _data: Ints | None
    _make: Callable[[], Ints] | None
    _clear: Callable[[], Value] | None

    def __init__(self, val: Dynamic = None, size: int | None = None) -> None:
        val = read(val)
        self._make = self._clear = None
        if val is None or is_constant(val):
            self._data = np.full(1 if size is None else checked_size(size), _wrapped(val or 0), dtype=np.int64)
        elif isinstance(val, (list, tuple)):
            parts: list[Dynamic] = [v if is_constant(v) else regint(v) for v in val]
            if any(not is_constant(p) and p.size != 1 for p in parts):
                raise VectorMismatch("the elements of a list must be scalars: use regint.concat")
            self._data = np.array([_wrapped(p) if is_constant(p) else p.data[0] for p in parts], dtype=np.int64)
        elif isinstance(val, regint):
            self._data, self._make, self._clear, self.size = val._data, val._make, val._clear, val.size
        elif isinstance(val, cint):
            run, source = current(), val
            self._data, self.size = None, val.size
            self._make = lambda: run.int64s(source.value)
            if run.bits <= 64:
                self._clear = lambda: source.value
        elif isinstance(val, SecretRunTime):
            raise CompilerError(f"cannot convert the secret {type(val).__name__} to regint: reveal it first")
        elif hasattr(val, "to_regint"):
            self._data = val.to_regint().data
        else:
            raise CompilerError(f"cannot convert {type(val).__name__} to regint")
        if self._data is not None:
            self.size = len(self._data)
        if size is not None and size != self.size:
            raise VectorMismatch(f"mismatch in vector size: {self.size}, not {size}")

    @property
    def data(self) -> Ints:
        """The numbers."""
        if self._data is None:
            assert self._make is not None
            self._data = self._make()
        return self._data

    @classmethod
    def _wrap(cls, data: Ints) -> Self:
        self = cls.__new__(cls)
        self._data = data
        self._make = self._clear = None
        self.size = len(data)
        return self

    @classmethod
    def _lazy(cls, size: int, make: Callable[[], Ints], clear: Callable[[], Value]) -> Self:
        """Numbers that are read from the engine at their first use, and that become a cint without being read."""
        self = cls.__new__(cls)
        self._data, self._make, self._clear, self.size = None, make, clear, size
        return self

    def _as_clear(self) -> tuple[Value | None, Callable[[], Value] | None, int]:
        if self._clear is not None and self._data is None:
            return None, self._clear, self.size
        return current().engine.clear(contiguous(self.data)), None, self.size

    @classmethod
    def conv(cls, value: object) -> Dynamic:
        """The value as regint; a list element by element."""
        value = read(value)
        if isinstance(value, cls):
            return value
        if isinstance(value, (list, tuple)):
            return type(value)(cls.conv(v) for v in value)
        return cls(value)

    @classmethod
    def inc(cls, size: int, base: object = 0, step: int = 1, repeat: int = 1, wrap: int | None = None) -> regint:
        """``base``, ``base + step``, ...: each number ``repeat`` times, starting again after ``wrap`` numbers."""
        if not (is_constant(size) and is_constant(step) and is_constant(repeat) and (wrap is None or is_constant(wrap))):
            raise CompilerError("regint.inc takes compile-time integers, but for its base")
        first = cls.conv(base)
        if first.size != 1:
            raise VectorMismatch("the base of regint.inc is a single number")
        if repeat == 1 and wrap is None:
            return cls._wrap(first.data[0] + progression(0, step, size))
        steps = progression(0, 1, size) // repeat
        if wrap is not None:
            steps %= wrap
        return cls._wrap(first.data[0] + step * steps)

    @classmethod
    def _allocate(cls, size: int) -> Memory:
        return NumpyMemory(size, cls)

    @staticmethod
    def _element_count(vector: Dynamic) -> int:
        return int(vector.size)

    def _indices(self) -> Ints:
        return self.data

    def _slice(self, start: int, step: int, count: int) -> Self:
        return self._wrap(self.data[progression(start, step, count)])

    def _spread(self, size: int) -> Self:
        return self._wrap(np.full(size, self.data[0], dtype=np.int64))

    @classmethod
    def _join(cls, parts: list[Dynamic]) -> Dynamic:
        return cls._wrap(np.concatenate([p.data for p in parts]) if parts else np.zeros(0, dtype=np.int64))

    def _become(self, other: Dynamic) -> None:
        self._data, self._make, self._clear = other._data, other._make, other._clear

    def __repr__(self) -> str:
        return f"regint({self.size})"

    def reveal(self) -> regint:
        """Itself."""
        return self

    def binary_output(self, player: int | None = None) -> None:
        """Writes the numbers to the binary output of all parties (or of ``player``)."""
        run, numbers = current(), regint(self)  # a copy: an update may come before the output
        run.defer(lambda: run.io.output(numbers.data, player))

    def bit_decompose(self, bit_length: int | None = None) -> list[regint]:
        """The low bits, as vectors of 0 and 1, least significant first."""
        length = min(64, current().program.bit_length) if bit_length is None else bit_length
        if length > 64:
            raise CompilerError("a regint has 64 bits")
        return [self._wrap((self.data >> np.int64(i)) & np.int64(1)) for i in range(length)]

    def _numbers(self, other: object) -> Dynamic:
        other = read(other)
        if is_constant(other):
            return np.full(1, _wrapped(other), dtype=np.int64)
        if isinstance(other, regint):
            common_size(self.size, other.size)
            return other.data
        return None

    def _apply(self, other: object, function: Callable[[Dynamic, Dynamic], Dynamic], swap: bool = False) -> Dynamic:
        o = self._numbers(other)
        if o is None:
            return NotImplemented
        result = function(o, self.data) if swap else function(self.data, o)
        return self._wrap(as_int64(result))

    def __add__(self, other: object) -> Dynamic:
        return self._apply(other, operator.add)

    __radd__ = __add__

    def __sub__(self, other: object) -> Dynamic:
        return self._apply(other, operator.sub)

    def __rsub__(self, other: object) -> Dynamic:
        return self._apply(other, operator.sub, swap=True)

    def __mul__(self, other: object) -> Dynamic:
        if is_constant(other) and other in (0, 1):
            return self if other else 0  # as for cint
        return self._apply(other, operator.mul)

    __rmul__ = __mul__

    def __neg__(self) -> Dynamic:
        return self._wrap(-self.data)

    def __floordiv__(self, other: object) -> Dynamic:
        return self._apply(other, _quotient)

    def __rfloordiv__(self, other: object) -> Dynamic:
        return self._apply(other, _quotient, swap=True)

    def __mod__(self, other: object) -> Dynamic:
        return self._apply(other, _remainder)

    def __rmod__(self, other: object) -> Dynamic:
        return self._apply(other, _remainder, swap=True)

    def __lshift__(self, other: object) -> Dynamic:
        return self * (1 << other) if is_constant(other) else NotImplemented

    def __rshift__(self, other: object) -> Dynamic:
        if not is_constant(other):
            return NotImplemented
        if other > 62:
            raise CompilerError("a regint shifts by at most 62")
        return self // (1 << other)

    def __lt__(self, other: object) -> Dynamic:
        return self._apply(other, operator.lt)

    def __le__(self, other: object) -> Dynamic:
        return self._apply(other, operator.le)

    def __gt__(self, other: object) -> Dynamic:
        return self._apply(other, operator.gt)

    def __ge__(self, other: object) -> Dynamic:
        return self._apply(other, operator.ge)

    def __eq__(self, other: object) -> Dynamic:
        return self._apply(other, operator.eq)

    def __ne__(self, other: object) -> Dynamic:
        return self._apply(other, operator.ne)

    __hash__ = None  # type: ignore[assignment]


def _wrapped(value: int) -> int:
    """A Python integer modulo 2^64, signed."""
    return ((int(value) + (1 << 63)) & ((1 << 64) - 1)) - (1 << 63)


def _quotient(a: Ints, b: Ints) -> Ints:
    """Integer division that rounds towards zero."""
    if np.any(b == 0):
        raise CompilerError("division of a regint by zero")
    down = a // b
    rounded: Ints = down + ((a - down * b != 0) & ((a < 0) != (b < 0)))
    return rounded


def _remainder(a: Ints, b: Ints) -> Ints:
    return a - _quotient(a, b) * b


class localint(RunTime):
    """A number that may differ between parties (the own party number): it can only be printed and compared."""

    __slots__ = ("_v",)

    def __init__(self, value: object = 0) -> None:
        self._v = regint(value)

    @property
    def number(self) -> int:
        """The number at this party."""
        return int(self._v.data[0])

    def _made(self, result: object) -> Dynamic:
        return NotImplemented if result is NotImplemented else localint(result)

    def __lt__(self, other: object) -> Dynamic:
        return self._made(self._v < other)

    def __le__(self, other: object) -> Dynamic:
        return self._made(self._v <= other)

    def __gt__(self, other: object) -> Dynamic:
        return self._made(self._v > other)

    def __ge__(self, other: object) -> Dynamic:
        return self._made(self._v >= other)

    def __eq__(self, other: object) -> Dynamic:
        return self._made(self._v == other)

    def __ne__(self, other: object) -> Dynamic:
        return self._made(self._v != other)

    def __add__(self, other: object) -> Dynamic:
        return self._made(self._v + other)

    __radd__ = __add__
    __hash__ = None  # type: ignore[assignment]
