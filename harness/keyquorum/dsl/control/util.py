"""``Compiler.util``: functions of compile-time and run-time values alike."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce

from ..context import Dynamic
from ..errors import CompilerError
from ..values.base import RunTime, is_constant
from ..values.bitvectors import if_else


def tree_reduce(function: Callable[[Dynamic, Dynamic], Dynamic], sequence: Dynamic) -> Dynamic:
    """Combines neighbours until one value is left: logarithmic depth."""
    values = list(sequence)
    if not values:
        raise CompilerError("tree_reduce of nothing")
    while len(values) > 1:
        pairs = [function(values[i], values[i + 1]) for i in range(0, len(values) - 1, 2)]
        values = pairs + values[len(pairs) * 2 :]
    return values[0]


def _two_bits(name: str, constant: Callable[[int, int], int]) -> Callable[[Dynamic, Dynamic], Dynamic]:
    def operation(a: object, b: object) -> Dynamic:
        if is_constant(a):
            return constant(a, b) if is_constant(b) else getattr(b, name)(a)
        return getattr(a, name)(b)

    return operation


_bit_xor = _two_bits("bit_xor", operator.xor)
_bit_and = _two_bits("bit_and", operator.and_)


def _or(a: Dynamic, b: Dynamic) -> Dynamic:
    return a + b - _bit_and(a, b)


def _bit_not(a: Dynamic, n: int) -> Dynamic:
    return ~a & ((1 << n) - 1) if is_constant(a) else a.bit_not()


def _int_len(x: int) -> int:
    return len(bin(x)) - 2


def _bit_decompose(a: Dynamic, bits: int | None = None) -> Dynamic:
    if is_constant(a):
        return [(a >> i) & 1 for i in range(_int_len(a) if bits is None else bits)]
    return a.bit_decompose(bits)


def _bit_compose(bits: Dynamic) -> Dynamic:
    bits = list(bits)
    if not bits:
        return 0
    if hasattr(bits[0], "bit_compose"):
        return bits[0].bit_compose(bits)
    return sum(b << i for i, b in enumerate(bits))


def reveal(x: object) -> Dynamic:
    """The opened value; of a list, each item."""
    if isinstance(x, str):
        return x
    if hasattr(x, "reveal"):
        return x.reveal()
    return [reveal(y) for y in x] if isinstance(x, (list, tuple)) else x


def _cond_swap(condition: Dynamic, a: object, b: object) -> Dynamic:
    if is_constant(condition):
        return (a, b) if condition else (b, a)
    return condition.cond_swap(a, b)


def _greater_than(a: Dynamic, b: object, bits: int) -> Dynamic:
    return a > b if is_constant(a) and is_constant(b) else a.greater_than(b, bits)


def _right_shift(a: Dynamic, m: int, bits: int) -> Dynamic:
    return a >> m if is_constant(a) else a.right_shift(m, bits)


def _mod2m(a: Dynamic, m: int, bits: int, signed: bool) -> Dynamic:
    return a % 2**m if is_constant(a) else a.mod2m(m, bits)


def _pow2(bits: Sequence[Dynamic]) -> Dynamic:
    """2 to the power of the number with these bits; for m bits ceil(log2 m) rounds of products."""
    return tree_reduce(operator.mul, [b.if_else(2**2**i, 1) for i, b in enumerate(bits)])


def _larger(x: Dynamic, y: Dynamic) -> Dynamic:
    return if_else(x > y, x, y)


def _smaller(x: Dynamic, y: Dynamic) -> Dynamic:
    return if_else(x < y, x, y)


def _series(a: Iterable[Dynamic]) -> Iterator[Dynamic]:
    """The sums of the first 0, 1, 2, ... items."""
    total: Dynamic = 0
    for item in a:
        yield total
        total = total + item
    yield total


def _long_one(x: object) -> Dynamic:
    """The number with all bits 1 of the value's length; for a list, of the first item that has a length."""
    if hasattr(x, "long_one"):
        return x.long_one()
    if isinstance(x, (list, tuple)):
        return next((y.long_one() for y in x if hasattr(y, "long_one")), 1)
    return 1


def _expand(x: object, size: int) -> Dynamic:
    return x.expand_to_vector(size) if isinstance(x, RunTime) and hasattr(x, "expand_to_vector") else x


NAMES: dict[str, Dynamic] = {
    "tree_reduce": tree_reduce,
    "if_else": if_else,
    "cond_swap": _cond_swap,
    "greater_than": _greater_than,
    "right_shift": _right_shift,
    "mod2m": _mod2m,
    "pow2": _pow2,
    "bit_xor": _bit_xor,
    "bit_and": _bit_and,
    "bit_not": _bit_not,
    "or_op": _or,
    "OR": _or,
    "bit_decompose": _bit_decompose,
    "bit_compose": _bit_compose,
    "reveal": reveal,
    "is_constant": is_constant,
    "is_constant_float": lambda x: isinstance(x, float) or is_constant(x),
    "is_zero": lambda x: is_constant(x) and x == 0,
    "is_one": lambda x: is_constant(x) and x == 1,
    "is_all_ones": lambda x, n: is_constant(x) and x == (1 << n) - 1,
    "log2": lambda x: math.ceil(math.log2(x)) if isinstance(x, float) else (x - 1).bit_length(),
    "round_to_int": lambda x: round(x) if isinstance(x, float) or is_constant(x) else x.round_to_int(),
    "int_len": _int_len,
    "irepeat": lambda items, n: reduce(operator.add, ([i] * n for i in items)),
    "series": _series,
    "long_one": _long_one,
    "expand": _expand,
    "tuplify": lambda x: tuple(x) if isinstance(x, (list, tuple)) else (x,),
    "untuplify": lambda x: x[0] if len(x) == 1 else x,
    "max": lambda x, y=None, n_threads=None: tree_reduce(_larger, x) if y is None else _larger(x, y),
    "min": lambda x, y=None: tree_reduce(_smaller, x) if y is None else _smaller(x, y),
}
