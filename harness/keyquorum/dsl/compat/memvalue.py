"""MemValue: memory for one value. Every operation on it uses its content."""

from __future__ import annotations

import operator
from collections.abc import Callable

from ..context import Dynamic
from ..errors import CompilerError
from ..values.base import Readable, is_constant, read
from ..values.clear import regint


class MemValue(Readable):
    """Memory for one value; an int becomes a regint. ``write`` replaces the content, and every operation reads it."""

    __slots__ = ("_content", "value_type")

    def __init__(self, value: Dynamic) -> None:
        value = read(value)
        if is_constant(value):
            value = regint(value)
        if not hasattr(type(value), "conv") or not hasattr(value, "size"):
            raise CompilerError(f"cannot store {type(value).__name__} as MemValue")
        self.value_type = type(value)
        self._content = _fresh(value)

    @property
    def size(self) -> int:
        """Size of the content."""
        return int(self._content.size)

    def read(self) -> Dynamic:
        """The content."""
        return _fresh(self._content)

    def write(self, value: Dynamic) -> MemValue:
        """Replaces the content by a value of the same size, converted to the same type."""
        try:
            value = self.value_type.conv(read(value))
        except CompilerError as error:
            raise CompilerError(f"cannot store {type(value).__name__} as MemValue of {self.value_type.__name__}: {error}") from None
        if value.size != self.size:
            raise CompilerError(f"size mismatch: a MemValue of size {self.size} cannot hold {value.size}")
        self._content = _fresh(value)
        return self

    def update(self, value: object) -> None:
        """Same as :meth:`write`."""
        self.write(value)

    def reveal(self) -> Dynamic:
        """The opened content. One round."""
        return self.read().reveal()

    def __neg__(self) -> Dynamic:
        return -self.read()

    def __invert__(self) -> Dynamic:
        return ~self.read()

    def __abs__(self) -> Dynamic:
        return abs(self.read())

    def __getattr__(self, name: str) -> Dynamic:
        if name.startswith("_") or name not in _FORWARDED:
            raise AttributeError(f"MemValue has no attribute {name!r}", name=name, obj=self)
        return getattr(self.read(), name)


_FORWARDED = frozenset(
    [
        "if_else",
        "less_than",
        "greater_than",
        "less_equal",
        "greater_equal",
        "equal",
        "not_equal",
        "bit_xor",
        "bit_and",
        "bit_or",
        "bit_not",
        "bit_decompose",
        "expand_to_vector",
        "get_vector",
        "sum",
        "reveal_to",
        "to_regint",
        "binary_output",
        "square",
        "min",
        "max",
        "mod2m",
        "right_shift",
        "zero_if_not",
    ]
)


def _fresh(value: Dynamic) -> Dynamic:
    """Another object with the same content, so that ``update`` of one does not reach the other."""
    return type(value).from_vec(value) if hasattr(value, "from_vec") else type(value)(value)


def _forward(name: str) -> Callable[[Dynamic, Dynamic], Dynamic]:
    def operation(self: Dynamic, other: object) -> Dynamic:
        method = getattr(self.read(), name, None)
        return NotImplemented if method is None else method(read(other))

    return operation


for _operator in ("add", "sub", "mul", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift"):
    setattr(MemValue, f"__{_operator}__", _forward(f"__{_operator}__"))
for _operator in ("add", "sub", "mul", "floordiv", "mod", "and", "or", "xor"):
    setattr(MemValue, f"__r{_operator}__", _forward(f"__r{_operator}__"))
for _operator in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(MemValue, f"__{_operator}__", _forward(f"__{_operator}__"))


def _in_place(apply: Callable[[Dynamic, Dynamic], Dynamic]) -> Callable[[MemValue, Dynamic], MemValue]:
    def operation(self: MemValue, other: object) -> MemValue:
        return self.write(apply(self.read(), read(other)))

    return operation


for _operator in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift"):
    _change = _in_place(getattr(operator, f"__{_operator}__"))
    setattr(MemValue, f"__i{_operator}__", _change)
    setattr(MemValue, f"i{_operator}", _change)
