"""Base class of vectors of bits, and opened bits (cbits). One file, since each refers to the other."""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import ClassVar

import numpy as np

from ..containers.containers import Structure
from ..containers.memory import ListMemory, Memory
from ..context import Dynamic, Value, current, current_or_none
from ..errors import CompilerError, VectorMismatch
from .base import ELEMENT_LIMIT, Public, RunTime, SecretRunTime, is_constant, read
from .circuits import public_bits
from .clear import cint, regint
from .global_memory import Cells, InMemory

DEFAULT_LENGTH = 40
"""Bits of ``sbits(x)`` and ``cbits(x)``, unless the program sets ``sbits.n``."""


class _BitsType(type):
    """The metaclass of types of bits. ``sbits.n = 64`` is a setting of the run, since all runs share the types."""

    _length: int | None = None
    """Number of bits, for types with a fixed number."""

    @property
    def n(cls) -> int:
        """Number of bits."""
        if cls._length is not None:
            return cls._length
        run = current_or_none()
        return DEFAULT_LENGTH if run is None else run.lengths_of_bits.get(cls.__name__, DEFAULT_LENGTH)

    def __setattr__(cls, name: str, value: object) -> None:
        run = current_or_none()
        if run is None:
            type.__setattr__(cls, name, value)
        elif name == "n" and cls._length is None and is_constant(value) and value > 0:
            run.lengths_of_bits[cls.__name__] = int(value)
        else:
            raise CompilerError(f"{cls.__name__}.{name} cannot be changed: only n of sbits and cbits, to a positive number")

    def __call__(cls, *args: object, **kwargs: object) -> Dynamic:
        if cls._length is None:
            family: Dynamic = cls
            return family.get_type(kwargs.pop("n", None) or cls.n)(*args, **kwargs)
        return super().__call__(*args, **kwargs)


class BitRows(SecretRunTime):
    """Rows of bits (sbitvec), which bits choose between."""

    __slots__ = ()

    @abstractmethod
    def bit_decompose(self, n_bits: int | None = None) -> list[Dynamic]:
        """The first rows."""

    @abstractmethod
    def chosen_by(self, bit: object, a: object, b: object) -> Dynamic:
        """``a`` where the bit is 1 and ``b`` where it is 0; one of them is of this type."""


class _Bits(RunTime, Structure, InMemory, metaclass=_BitsType):
    """n bits; ``n`` is fixed by the type: ``sbits.get_type(n)``."""

    _types: ClassVar[dict[int, Dynamic]]
    bit_type: ClassVar[Dynamic]
    unit: ClassVar[int] = 64
    n: int
    _value: Value

    @classmethod
    def get_type(cls, n: int) -> Dynamic:
        """The type of vectors of ``n`` bits."""
        family = cls._family()
        known = family._types.get(n)
        if known is None:
            if not is_constant(n) or n < 1:
                raise CompilerError(f"{family.__name__}.get_type takes a positive compile-time integer, not {n!r}")
            made = _BitsType(f"{family.__name__}{n}", (family,), {"_length": n, "n": n})
            known = family._types.setdefault(n, made)
        return known

    @classmethod
    def _family(cls) -> Dynamic:
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
        """Bits that are made at their first use."""
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
    def _element_count(vector: object) -> int:
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

    def _public_value(self, other: object) -> Value | None:
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
        """Replaces the content, which all references to this object see."""
        make: Dynamic = type(self)
        value = make(read(other))
        self._value = value._value
        self.__dict__.pop("_make", None)

    @classmethod
    def new(cls, value: object = None, n: int | None = None) -> Dynamic:
        """``n`` bits with a value."""
        return cls._family().get_type(n)(value)

    @classmethod
    def compose(cls, items: Iterable[Dynamic], bit_length: int = 1) -> Dynamic:
        """One vector of the low ``bit_length`` bits of each of several values."""
        return cls.bit_compose([bit for item in items for bit in _low_bits(item, bit_length)])  # type: ignore[attr-defined]

    @classmethod
    def _memory_kind(cls) -> str:
        return str(cls._bit_family().__name__)

    @classmethod
    def _loaded(cls, cells: Cells, at: int, count: int) -> Dynamic:
        if count != 1:
            raise CompilerError(f"{cls.__name__} are loaded one at a time")
        stored, _ = cells.get(at, (None, 0))
        make: Dynamic = cls
        return make(0 if stored is None else stored.vector)

    def expand(self, length: int) -> Dynamic:
        """A single bit repeated ``length`` times; bits of this length themselves."""
        if self.n == length:
            return self
        if self.n != 1:
            raise CompilerError(f"cannot expand {self.n} bits to {length}")
        return self._wrap(current().engine.repeat(self._value, length))

    def long_one(self) -> int:
        """The number whose ``n`` bits are all 1."""
        return (1 << self.n) - 1

    def _cut(self, length: int) -> Value:
        """The low ``length`` bits: truncated, or followed by zeros."""
        engine = current().engine
        if length <= self.n:
            return engine.slice(self._value, 0, 1, length) if length < self.n else self._value
        return engine.concat([self._value, engine.clear_bits(np.zeros(length - self.n, dtype=np.uint8))])

    def bit_decompose(self, bit_length: int | None = None) -> list[Dynamic]:
        """The single bits, first one first; zeros after the last one."""
        wanted = bit_length or self.n
        count = min(wanted, self.n)
        if count > ELEMENT_LIMIT:
            raise CompilerError(f"taking {count} bits apart is slow: keep vectors of bits whole (up to {ELEMENT_LIMIT})")
        if self.n == 1:
            return [self, *[0] * (wanted - 1)]
        engine, bit = current().engine, self._bit_family()
        return [*(bit._wrap(engine.slice(self._value, i, 1, 1)) for i in range(count)), *[0] * (wanted - count)]

    @classmethod
    def _bit_family(cls) -> Dynamic:
        """The type of single bits of this value."""
        return cls._family()

    def bit_xor(self, other: Dynamic) -> Dynamic:
        """XOR."""
        return self ^ other

    def bit_and(self, other: Dynamic) -> Dynamic:
        """AND."""
        return self & other

    def bit_not(self) -> Dynamic:
        """NOT."""
        return ~self  # type: ignore[operator]

    def __or__(self, other: Dynamic) -> Dynamic:
        both = self & other
        return both if both is NotImplemented else self ^ other ^ both

    __ror__ = __or__

    def half_adder(self, other: Dynamic) -> tuple[Dynamic, Dynamic]:
        """Sum modulo 2 and carry."""
        return self ^ other, self & other


class cbits(_Bits):
    """Opened bits."""

    _types: ClassVar[dict[int, Dynamic]] = {}

    def __init__(self, value: Dynamic = None) -> None:
        value = read(value)
        if value is None or is_constant(value):
            self._value = self._constant_value(value or 0)
        elif isinstance(value, cbits):
            self._value = value._cut(self.n)
        elif isinstance(value, Public):
            self._value = _bits_of_numbers(value, self.n)
        else:
            raise CompilerError(f"cannot convert {type(value).__name__} to {type(self).__name__}")

    @classmethod
    def _family(cls) -> Dynamic:
        return cbits

    @classmethod
    def new(cls, value: object = None, n: int | None = None) -> Dynamic:
        """``n`` bits with a value; a Python number has as many as it needs."""
        length: Dynamic = max(1, int(value).bit_length()) if is_constant(value) else n
        return cbits.get_type(length)(value)

    @classmethod
    def bit_compose(cls, bits: Iterable[Dynamic]) -> Dynamic:
        """The number with these bits, least significant first."""
        return cls._wrap(current().engine.concat([cls.get_type(1).conv(bit)._value for bit in bits]))

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
        unsigned = self._unsigned()
        return unsigned - (1 << self.n) if self.n > 1 and unsigned >> (self.n - 1) else unsigned

    def print_reg(self, comment: str = "") -> None:
        """Prints the bits as a number to base 16, in words of 64 bits, at party 0."""
        current().io.print(f"Reg[0] = 0x{self._unsigned():0{16 * -(-self.n // 64)}x} # {comment:<4}\n")

    def to_regint(self) -> regint:
        """The bits as one 64-bit number."""
        if self.n > 64:
            raise CompilerError("too many bits for a regint: use to_regint_by_bit")
        return regint(self._unsigned())

    def to_regint_by_bit(self) -> regint:
        """The bits as a vector of n numbers."""
        run, value = current(), self._value
        return regint._lazy(self.n, lambda: run.engine.read_bits(value).astype(np.int64), lambda: run.bits_to_clear(value))

    def _joined(self, other: object, operation: Callable[[int, int], int]) -> Dynamic:
        """The result of an operation on numbers, as long as the longer operand. Waits for the bits."""
        other = read(other)
        if is_constant(other):
            length, right = max(self.n, len(bin(other)) - 2), int(other)
        elif isinstance(other, cbits):
            length, right = max(self.n, other.n), other._unsigned()
        else:
            return NotImplemented
        return self.get_type(length)(operation(self._unsigned(), right) & ((1 << length) - 1))

    def _unsigned(self) -> int:
        bits = current().engine.read_bits(self._value)
        return int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little")

    def __add__(self, other: object) -> Dynamic:
        return self._joined(other, operator.add)

    __radd__ = __add__

    def __sub__(self, other: object) -> Dynamic:
        return self._joined(other, operator.sub)

    def __rsub__(self, other: object) -> Dynamic:
        return NotImplemented if not is_constant(other) else type(self)((int(other) - self._unsigned()) & self.long_one())

    def __neg__(self) -> Dynamic:
        return 0 - self

    def __lshift__(self, other: object) -> Dynamic:
        if not is_constant(other) or other == 0:
            return NotImplemented if other else self
        engine = current().engine
        return self._wrap(engine.concat([engine.clear_bits(np.zeros(other, dtype=np.uint8)), self._value]))

    def __rshift__(self, other: object) -> Dynamic:
        if not is_constant(other):
            return NotImplemented
        if not 0 <= other < self.n:
            raise CompilerError(f"{self.n} bits shift to the right by 0 to {self.n - 1} places, not {other}")
        return self._wrap(current().engine.slice(self._value, other, 1, self.n - other))

    def __xor__(self, other: object) -> Dynamic:
        other = read(other)
        if is_constant(other):
            length = max(self.n, len(bin(other)) - 2)
            other = self.get_type(length)(other)
        if not isinstance(other, cbits):
            return NotImplemented
        length = max(self.n, other.n)
        return self._wrap(current().engine.xor(self._cut(length), other._cut(length)))

    __rxor__ = __xor__

    def __and__(self, other: object) -> Dynamic:
        other = read(other)
        if is_constant(other):
            if other == 0:
                return 0  # a Python 0, as in MP-SPDZ, where the compiler knows the result
            other = type(self)(other)
        run = current()
        if isinstance(other, cbits) and not run.is_ring and self.n >= run.bits:
            raise CompilerError(f"& of {self.n} opened bits does not fit {run.engine.domain}: use shorter vectors, or sbits")
        return self._wrap(current().engine.and_(self._value, self._checked(other))) if isinstance(other, cbits) else NotImplemented

    __rand__ = __and__

    def __invert__(self) -> Dynamic:
        return self._wrap(current().engine.not_(self._value))


def _bits_of_numbers(numbers: Public, n: int) -> Value:
    """n clear bits: the bits of a single number, or n numbers 0 and 1 (cint)."""
    engine = current().engine
    if numbers.size == 1 and not (n == 1 and isinstance(numbers, cint)):
        return engine.clear_bits(public_bits(int(numbers._indices()[0]), n))
    if numbers.size != n or not isinstance(numbers, cint):
        raise VectorMismatch(f"cannot convert {numbers!r} to {n} bits")
    return engine.clear_bits((numbers._indices() & 1).astype(np.uint8))


cbit: Dynamic = cbits.get_type(1)
"""A single opened bit."""
cbits.bit_type = cbit


def _low_bits(item: Dynamic, length: int) -> list[Dynamic]:
    item = read(item)
    return [(item >> i) & 1 for i in range(length)] if is_constant(item) else list(item.bit_decompose(length))
