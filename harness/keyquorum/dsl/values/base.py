"""Base classes of run-time values: they are no Python values, and they are vectors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Self, TypeGuard

import numpy as np

from ..context import Dynamic, Ints
from ..errors import SUBSET, CompilerError, VectorMismatch

ELEMENT_LIMIT = 64
"""Vectors longer than this cannot be taken apart element by element."""


class RunTime:
    """A value that exists only while a program runs: Python's control flow cannot depend on it."""

    __slots__ = ()

    def __bool__(self) -> bool:
        raise CompilerError(f"cannot derive truth value (bool) from {type(self).__name__}: use if_, if_e, while_do or if_else")

    def _no_python_number(self) -> Dynamic:
        raise CompilerError(
            f"cannot use the run-time value {type(self).__name__} as a Python number or index: use an Array, for_range or a compile-time integer"
        )

    __int__ = __index__ = __float__ = _no_python_number

    def _no_comparison(self, other: object) -> Dynamic:
        """Raises CompilerError: without this, Python would compare the identities of objects."""
        raise CompilerError(
            f"comparing {type(self).__name__} with {type(other).__name__} is {SUBSET}: "
            "comparisons are for sint, cint, regint and int, and for containers of them"
        )

    __eq__ = __ne__ = _no_comparison
    __hash__ = object.__hash__


class SecretRunTime(RunTime):
    """A secret run-time value: no party knows it."""

    __slots__ = ()

    def __bool__(self) -> bool:
        raise CompilerError(f"cannot branch on secret values like {type(self).__name__}: use if_else")


class Readable(RunTime):
    """A container of one value that stands for its content in every operation (MemValue)."""

    __slots__ = ()

    @abstractmethod
    def read(self) -> Dynamic:
        """The content."""


def read(x: object) -> Dynamic:
    """The operand itself, or the content of a container."""
    return x.read() if isinstance(x, Readable) else x


def is_constant(x: object) -> TypeGuard[int]:
    """Whether ``x`` is a compile-time integer."""
    return isinstance(x, int)


def checked_size(size: object) -> int:
    """A vector size given as ``size=``."""
    if not is_constant(size) or size < 0:
        raise CompilerError(f"size must be a compile-time integer of at least 0, not {size!r}")
    return int(size)


def common_size(a: int, b: int) -> int:
    """The size of a result: sizes must be equal, or one of them 1."""
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    raise VectorMismatch(f"different vector sizes of operands: {a}/{b}")


class Vector(RunTime):
    """A vector of run-time values; a scalar is one of size 1."""

    __slots__ = ("size",)
    size: int

    # Methods that a type has to provide.

    @classmethod
    @abstractmethod
    def conv(cls, value: object) -> Dynamic:
        """The value as this type."""

    @classmethod
    def _made_from(cls, value: object) -> Dynamic:
        make: Dynamic = cls
        return make(value)

    @abstractmethod
    def _slice(self, start: int, step: int, count: int) -> Self:
        """Elements ``start``, ``start + step``, ...; the caller has checked the range."""

    @abstractmethod
    def _spread(self, size: int) -> Self:
        """A size-1 vector repeated."""

    @abstractmethod
    def _become(self, other: object) -> None:
        """Takes over the content of a vector of the same type and size."""

    @classmethod
    @abstractmethod
    def _join(cls, parts: list[Dynamic]) -> Dynamic:
        """One vector after another."""

    # Methods that follow from these.

    def __len__(self) -> int:
        return self.size

    def _check_elements(self) -> None:
        if self.size > ELEMENT_LIMIT:
            raise CompilerError(
                f"taking a vector of {self.size} elements apart is slow: use get_vector, sum() or an Array "
                f"(element access is for up to {ELEMENT_LIMIT})"
            )

    def __getitem__(self, index: object) -> Dynamic:
        if self.size == 1 and index.__class__ is int and index == 0:
            return self
        if isinstance(index, slice):
            for part in (index.start, index.stop, index.step):
                if part is not None and not is_constant(part):
                    raise CompilerError("cannot address vectors with run-time indices: use an Array")
            self._check_elements()
            return [self._slice(i, 1, 1) for i in range(*index.indices(self.size))]
        if not is_constant(index):
            raise CompilerError("cannot address vectors with run-time indices: use an Array")
        self._check_elements()
        if not -self.size <= index < self.size:
            raise IndexError(f"index {index}, length {self.size}")
        return self._slice(index % self.size, 1, 1)

    def __iter__(self) -> Iterator[Dynamic]:
        self._check_elements()
        return (self[i] for i in range(self.size))

    def get_vector(self, base: int = 0, size: int | None = None) -> Self:
        """``size`` elements from ``base`` on (both compile-time integers)."""
        if size is None:
            size = self.size - base
        if not (is_constant(base) and is_constant(size)):
            raise CompilerError("get_vector of a vector takes compile-time integers: use an Array")
        if base == 0 and size == self.size:
            return self
        if base < 0 or size < 0 or base + size > self.size:
            raise CompilerError(f"get_vector({base}, {size}) leaves the vector of size {self.size}")
        return self._slice(base, 1, size)

    def expand_to_vector(self, size: int) -> Self:
        """A size-1 vector repeated ``size`` times."""
        if self.size == size:
            return self
        if self.size != 1:
            raise VectorMismatch(f"cannot expand a vector of size {self.size} to {size}")
        return self._spread(size)

    @classmethod
    def concat(cls, parts: Iterable[Dynamic]) -> Dynamic:
        """One vector of the elements of several, all of this type."""
        vectors = [read(p) for p in parts]
        for part in vectors:
            if not isinstance(part, cls):
                raise CompilerError(f"{cls.__name__}.concat takes {cls.__name__} vectors, not {type(part).__name__}")
        return cls._join(vectors)

    def update(self, other: object) -> None:
        """Replaces the content of this object, which all its references see."""
        value = self._made_from(read(other))
        if value.size != self.size:
            raise VectorMismatch(f"cannot update a vector of size {self.size} with one of size {value.size}")
        self._become(value)

    def if_else(self, a: Dynamic, b: Dynamic) -> Dynamic:
        """``a`` where the bit is 1 and ``b`` where it is 0; one product."""
        a, b = read(a), read(b)
        return self * (a - b) + b

    def cond_swap(self, a: Dynamic, b: Dynamic) -> tuple[Dynamic, Dynamic]:
        """``(a, b)`` where the bit is 0 and ``(b, a)`` where it is 1; one product."""
        a, b = read(a), read(b)
        moved = self * (a - b)
        return a - moved, b + moved

    def square(self) -> Dynamic:
        """The product with itself."""
        return self * self  # type: ignore[operator]

    def __pow__(self, exponent: object) -> Dynamic:
        """The power with a compile-time exponent of at least 0, by squaring and multiplying: at most 2 log2 of it products."""
        if not is_constant(exponent):
            return NotImplemented
        if exponent < 0:
            raise CompilerError(f"the exponent of ** must be at least 0, not {exponent}: there are no fractions in the domain")
        if exponent == 0:
            return type(self)(1, size=self.size)  # type: ignore[call-arg]
        result: Dynamic = self
        for digit in bin(exponent)[3:]:
            result = result.square()
            if digit == "1":
                result = result * self
        return result

    def __abs__(self) -> Dynamic:
        """The absolute value of signed integers; a comparison and a product."""
        return (self < 0).if_else(-self, self)  # type: ignore[operator,attr-defined]

    def min(self, other: Dynamic) -> Dynamic:
        """The smaller one, element by element; a comparison and a product."""
        other = read(other)
        return (self < other).if_else(self, other)

    def max(self, other: Dynamic) -> Dynamic:
        """The larger one, element by element; a comparison and a product."""
        other = read(other)
        return (self < other).if_else(other, self)

    def iadd(self, other: object) -> None:
        """Adds in place, see :meth:`update`."""
        self.update(self + read(other))

    def zero_if_not(self, condition: Dynamic) -> Dynamic:
        """The product with a bit."""
        return condition * self

    def half_adder(self, other: Dynamic) -> tuple[Dynamic, Dynamic]:
        """Sum modulo 2 and carry of bits 0 and 1 in the arithmetic domain; one product."""
        other = read(other)
        carry = self * other
        return self + other - 2 * carry, carry

    def bit_xor(self, other: Dynamic) -> Dynamic:
        """XOR of bits 0 and 1 in the arithmetic domain; one product."""
        other = read(other)
        if is_constant(other):
            return 1 - self if other else self  # type: ignore[operator]
        return self + other - 2 * (self * other)

    def bit_and(self, other: Dynamic) -> Dynamic:
        """AND of bits 0 and 1 in the arithmetic domain; one product."""
        return self * other

    def bit_or(self, other: Dynamic) -> Dynamic:
        """OR of bits 0 and 1 in the arithmetic domain; one product."""
        other = read(other)
        if is_constant(other):
            if other:
                return 1
            raise CompilerError("bit_or(0) changes nothing here, but gives 0 on MP-SPDZ: leave it out")
        return self + other - self * other

    def bit_not(self) -> Dynamic:
        """NOT of bits 0 and 1 in the arithmetic domain."""
        return 1 - self  # type: ignore[operator]


def progression(start: int, step: int, count: int) -> Ints:
    """``start``, ``start + step``, ... as index vector."""
    if step and abs(start) + abs(step) * count < 1 << 62:
        return np.arange(start, start + step * count, step, dtype=np.int64)
    return start + step * np.arange(count, dtype=np.int64)


class Public(Vector):
    """A vector that all parties know at run time: run-time loops and indices of arrays can depend on it."""

    __slots__ = ()

    @abstractmethod
    def _indices(self) -> Ints:
        """The elements as int64."""


def public_int(x: object, what: str) -> int:
    """A compile-time or run-time public integer as a Python one."""
    x = read(x)
    if is_constant(x):
        return int(x)
    if isinstance(x, Public):
        if x.size != 1:
            raise CompilerError(f"{what} takes one number, not a vector of {x.size}")
        return int(x._indices()[0])
    if isinstance(x, SecretRunTime):
        raise CompilerError(f"{what} takes a public number, not the secret {type(x).__name__}")
    raise CompilerError(f"{what} takes a public number, not {type(x).__name__}")
