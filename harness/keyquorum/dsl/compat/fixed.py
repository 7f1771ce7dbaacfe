"""Fixed-point numbers: sfix (secret) and cfix (public), integers that stand for multiples of 2^-f.

A run has one precision, ``sfix.set_precision(f, k)``: f bits after the point, k bits in all (default 16 and 31). A product of secrets needs integers
of 2k bits. Results are rounded down, or to the nearest number if ``sfix.round_nearest`` is set.
"""

from __future__ import annotations

import math
from typing import Self

from ..containers.containers import Structure
from ..containers.memory import Memory
from ..context import Dynamic, Ints, current, current_or_none
from ..errors import SUBSET, CompilerError, VectorMismatch
from ..values.base import SecretRunTime, Vector, checked_size, common_size, is_constant, public_int, read
from ..values.clear import cint, regint
from ..values.secret import sint
from ..values.secret_comparisons import divided


class Precision:
    """Bits after the point, bits in all, rounding, and digits in printed numbers."""

    def __init__(self) -> None:
        self.f, self.k, self.round_nearest, self.digits = 16, 31, False, 6


def precision() -> Precision:
    """The precision of this run."""
    found = current().precision
    if found is None:
        found = current().precision = Precision()
    return found  # type: ignore[no-any-return]


class _FixType(type):
    """The metaclass of sfix and cfix. Their settings belong to the run, since all runs share the types."""

    @property
    def f(cls) -> int:
        """Bits after the point."""
        return precision().f

    @property
    def k(cls) -> int:
        """Bits in all."""
        return precision().k

    @property
    def round_nearest(cls) -> bool:
        """Whether results are rounded to the nearest number, not down."""
        return precision().round_nearest

    def __setattr__(cls, name: str, value: object) -> None:
        if current_or_none() is None:
            type.__setattr__(cls, name, value)
        elif name == "round_nearest":
            precision().round_nearest = bool(value)
        else:
            raise CompilerError(f"{cls.__name__}.{name} cannot be changed: use set_precision, or round_nearest")


class _Fixed(Vector, Structure, metaclass=_FixType):
    """Base of sfix and cfix. ``v``: the integers."""

    __slots__ = ("v",)
    v: Dynamic
    int_type: Dynamic

    @staticmethod
    def set_precision(f: int, k: int | None = None) -> None:
        """Sets the bits after the point, and the bits in all (default 2f), of later values."""
        k = 2 * f if k is None else k
        if not (is_constant(f) and is_constant(k)) or not 0 <= f < k:
            raise CompilerError(f"set_precision takes compile-time integers 0 <= f < k, not {f!r} and {k!r}")
        precision().f, precision().k = int(f), int(k)

    def __init__(self, value: Dynamic = None, size: int | None = None) -> None:
        value = read(value)
        if value is None or isinstance(value, (int, float)):
            self.v = self.int_type(_scaled(value or 0), size=1 if size is None else checked_size(size))
        elif isinstance(value, (list, tuple)):
            self.v = self.int_type([type(self)(x).v for x in value])
        elif isinstance(value, _Fixed):
            self.v = self.int_type(value.v)
        else:
            self.v = self.int_type(value) << precision().f
        self.size = self.v.size
        if size is not None and size != self.size:
            raise VectorMismatch(f"mismatch in vector size: {self.size}, not {size}")

    @classmethod
    def _new(cls, v: object, k: int | None = None, f: int | None = None) -> Self:
        """Numbers with these integers."""
        self = cls.__new__(cls)
        self.v = cls.int_type.conv(v)
        self.size = self.v.size
        return self

    @classmethod
    def conv(cls, value: object) -> Dynamic:
        """The value as this type; a list element by element."""
        value = read(value)
        if type(value) is cls:
            return value
        return type(value)(cls.conv(x) for x in value) if isinstance(value, (list, tuple)) else cls(value)

    hard_conv = conv

    @classmethod
    def _allocate(cls, size: int) -> Memory:
        return _FixedMemory(size, cls)

    @staticmethod
    def _element_count(vector: Dynamic) -> int:
        return int(vector.size)

    def _slice(self, start: int, step: int, count: int) -> Self:
        return self._new(self.v._slice(start, step, count))

    def _spread(self, size: int) -> Self:
        return self._new(self.v._spread(size))

    def _become(self, other: Dynamic) -> None:
        self.v._become(other.v)

    @classmethod
    def _join(cls, parts: list[Dynamic]) -> Dynamic:
        return cls._new(cls.int_type.concat([p.v for p in parts]))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size})"

    # -- arithmetic ---------------------------------------------------------------------------------------------------

    def _operand(self, other: object) -> _Fixed | None:
        """An operand as fixed-point numbers of checked size; None if it is none."""
        other = read(other)
        if isinstance(other, (int, float)):
            return cfix(other)
        if isinstance(other, (cint, regint)):
            other = cfix(other)
        elif isinstance(other, sint):
            other = sfix(other)
        if not isinstance(other, _Fixed):
            return None
        common_size(self.size, other.size)
        return other

    def _result(self, other: _Fixed, v: object) -> Dynamic:
        return (cfix if isinstance(self, cfix) and isinstance(other, cfix) else sfix)._new(v)

    def __add__(self, other: object) -> Dynamic:
        o = self._operand(other)
        return NotImplemented if o is None else self._result(o, self.v + o.v)

    __radd__ = __add__

    def __sub__(self, other: object) -> Dynamic:
        o = self._operand(other)
        return NotImplemented if o is None else self._result(o, self.v - o.v)

    def __rsub__(self, other: object) -> Dynamic:
        o = self._operand(other)
        return NotImplemented if o is None else self._result(o, o.v - self.v)

    def __neg__(self) -> Dynamic:
        return self._new(-self.v)

    def __mul__(self, other: object) -> Dynamic:
        other = read(other)
        if isinstance(other, (int, cint, regint, sint)) and not isinstance(other, float):  # no point moves
            factor: Dynamic = self.int_type(other) if is_constant(other) else other
            common_size(self.size, factor.size)
            product = self.v * factor
            return (sfix if isinstance(product, sint) else cfix)._new(product)
        o = self._operand(other)
        return NotImplemented if o is None else self._result(o, _without_point(self.v * o.v))

    __rmul__ = __mul__

    def square(self) -> Dynamic:
        """The product with itself."""
        return self * self

    def __truediv__(self, other: object) -> Dynamic:
        o = self._operand(other)
        return NotImplemented if o is None else _quotient(self, o)

    def __rtruediv__(self, other: object) -> Dynamic:
        o = self._operand(other)
        return NotImplemented if o is None else _quotient(o, self)

    # -- comparisons --------------------------------------------------------------------------------------------------

    def _compare(self, other: object, name: str) -> Dynamic:
        o = self._operand(other)
        if o is None:
            return NotImplemented
        if isinstance(self, cfix) and isinstance(o, cfix):
            return getattr(self.v, _SIGNS[name])(o.v)
        return getattr(sint.conv(self.v), name)(o.v, precision().k)

    def __lt__(self, other: object) -> Dynamic:
        return self._compare(other, "less_than")

    def __le__(self, other: object) -> Dynamic:
        return self._compare(other, "less_equal")

    def __gt__(self, other: object) -> Dynamic:
        return self._compare(other, "greater_than")

    def __ge__(self, other: object) -> Dynamic:
        return self._compare(other, "greater_equal")

    def __eq__(self, other: object) -> Dynamic:
        return self._compare(other, "equal")

    def __ne__(self, other: object) -> Dynamic:
        return self._compare(other, "not_equal")

    __hash__ = None  # type: ignore[assignment]

    def _matrix_product(self, right: object, rows: int, inner: int, columns: int) -> Dynamic:
        """See ``sint``: one rounding for each element of the result."""
        factor = right.v if isinstance(right, _Fixed) else right
        product = self.v._matrix_product(factor, rows, inner, columns)
        kind = sfix if isinstance(product, sint) else cfix
        return kind._new(_without_point(product) if isinstance(right, _Fixed) else product)


_SIGNS = {
    "less_than": "__lt__", "less_equal": "__le__", "greater_than": "__gt__", "greater_equal": "__ge__", "equal": "__eq__", "not_equal": "__ne__",
}  # fmt: skip


class cfix(_Fixed):
    """Public fixed-point numbers."""

    __slots__ = ()
    int_type = cint

    def __init__(self, value: Dynamic = None, size: int | None = None) -> None:
        if isinstance(read(value), SecretRunTime):
            raise CompilerError(f"cannot convert the secret {type(value).__name__} to cfix: reveal it first")
        if isinstance(value, (list, tuple)):
            raise CompilerError(f"cfix of a list is {SUBSET}: sfix(list).reveal(), or a cfix.Array")
        super().__init__(value, size)

    def reveal(self) -> cfix:
        """Itself."""
        return self

    def shown(self) -> str:
        """The printed text. Waits for the numbers."""
        settings = precision()
        texts = [f"{int(x) / (1 << settings.f):.{settings.digits}g}" for x in current().centred(self.v.value)]
        return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


class sfix(_Fixed, SecretRunTime):
    """Secret fixed-point numbers: ``+ - * /`` with sfix, cfix, sint, cint, regint and numbers of Python; comparisons give sintbit."""

    __slots__ = ()
    int_type = sint

    @classmethod
    def get_input_from(cls, player: object, size: int = 1) -> sfix:
        """The next ``size`` decimal numbers of ``player``'s text, rounded to the nearest multiple of 2^-f. One round."""
        return cls._new(sint.scaled_input(public_int(player, "get_input_from"), checked_size(size), precision().f))

    def load_int(self, value: object) -> None:
        """Takes the value of an integer."""
        self._become(type(self)(value))

    def secure_permute(self, permutation: object, unit_size: int = 1, reverse: bool = False) -> sfix:
        """See ``sint``."""
        return self._new(self.v.secure_permute(permutation, unit_size, reverse))

    def secure_shuffle(self, unit_size: int = 1) -> sfix:
        """See ``sint``."""
        return self._new(self.v.secure_shuffle(unit_size))

    def reveal(self) -> cfix:
        """Opens the numbers. One round."""
        return cfix._new(self.v.reveal())

    def sum(self) -> sfix:
        """Sum of the elements. Local."""
        return self._new(self.v.sum())

    def if_else(self, a: object, b: object) -> Dynamic:
        """``a`` where the number is 1 and ``b`` where it is 0."""
        return self * (read(a) - read(b)) + b


def _scaled(value: float) -> int:
    """The nearest multiple of 2^-f of a Python number, as integer. Raises CompilerError if it is longer than k bits."""
    settings = precision()
    if isinstance(value, float) and not math.isfinite(value):
        raise CompilerError(f"{value} is no fixed-point number")
    scaled = round(value * (1 << settings.f))
    if scaled.bit_length() >= settings.k + 1:
        raise CompilerError(f"the number {value} does not fit {settings.k} bits with {settings.f} after the point: use sfix.set_precision")
    return scaled


def _without_point(product: Dynamic) -> Dynamic:
    """Reduces products with 2f bits after the point to f bits."""
    settings = precision()
    if settings.f == 0:
        return product
    if settings.round_nearest:
        product = product + (1 << (settings.f - 1))
    if isinstance(product, sint):
        return product.right_shift(settings.f, 2 * settings.k)
    return cint(_shifted(product, settings.f))


def _shifted(x: cint, m: int) -> cint:
    """floor(x / 2^m) of signed public integers. (``>>`` would take the elements of the domain as unsigned.)"""
    run = current()
    return cint([int(v) >> m for v in run.centred(x.value)])


def _quotient(a: _Fixed, b: _Fixed) -> Dynamic:
    settings = precision()
    if isinstance(a, cfix) and isinstance(b, cfix):
        run = current()
        pairs = (x.get_vector() if x.size > 1 else x.expand_to_vector(max(a.size, b.size)) for x in (a, b))
        left, right = (run.centred(x.v.value) for x in pairs)
        if any(int(y) == 0 for y in right):
            raise CompilerError("division of a cfix by zero")
        return cfix._new(cint([_towards_zero(int(x) << settings.f, int(y)) for x, y in zip(left, right, strict=True)]))
    return sfix._new(divided(sint.conv(a.v), sint.conv(b.v), settings.k, settings.f))


def _towards_zero(x: int, y: int) -> int:
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


class _FixedMemory(Memory):
    """Fixed-point numbers as integers."""

    def __init__(self, size: int, element_type: Dynamic) -> None:
        self.size, self._type = size, element_type
        self._integers: Memory = element_type.int_type._allocate(size)

    def read(self, start: int, step: int, count: int) -> Dynamic:
        return self._type._new(self._integers.read(start, step, count))

    def gather(self, indices: Ints) -> Dynamic:
        return self._type._new(self._integers.gather(indices))

    def write(self, start: int, step: int, value: Dynamic) -> None:
        self._integers.write(start, step, value.v)

    def scatter(self, indices: Ints, value: Dynamic) -> None:
        self._integers.scatter(indices, value.v)


def print_float_precision(n: int) -> None:
    """Sets the number of significant digits of printed fixed-point numbers."""
    if not is_constant(n) or n < 1:
        raise CompilerError(f"print_float_precision takes a positive compile-time integer, not {n!r}")
    precision().digits = int(n)
