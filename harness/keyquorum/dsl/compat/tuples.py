"""Tuples of run-time values with names, and arrays of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..containers.containers import Array
from ..context import Dynamic
from ..errors import CompilerError


class NamedTuple:
    """Named values: as attributes, or in order by iteration. ``+ - ^`` work item by item, ``*`` with one value."""

    names: tuple[str, ...] = ()

    def __init__(self, *args: Dynamic) -> None:
        values = list(args[0]) if len(args) == 1 else list(args)
        if len(values) != len(self.names):
            raise CompilerError(f"a tuple of {', '.join(self.names)} takes {len(self.names)} values, not {len(values)}")
        self.__dict__.update(zip(self.names, values, strict=True))

    @classmethod
    def get_array(cls, size: int, t: object) -> NamedTupleArray:
        """An array of tuples of values of type ``t``."""
        return NamedTupleArray(cls, size, t)

    def __iter__(self) -> Iterator[Dynamic]:
        return (self.__dict__[name] for name in self.names)

    def _with(self, values: Iterable[Dynamic]) -> Dynamic:
        return type(self)(list(values))

    def __add__(self, other: Dynamic) -> Dynamic:
        return self._with(a + b for a, b in zip(self, other, strict=True))

    def __sub__(self, other: Dynamic) -> Dynamic:
        return self._with(a - b for a, b in zip(self, other, strict=True))

    def __xor__(self, other: Dynamic) -> Dynamic:
        return self._with(a ^ b for a, b in zip(self, other, strict=True))

    __rxor__ = __xor__

    def __mul__(self, other: object) -> Dynamic:
        return self._with(other * a for a in self)

    __rmul__ = __mul__


class NamedTupleArray:
    """One array for each name."""

    def __init__(self, kind: type[NamedTuple], size: int, t: Dynamic) -> None:
        self._kind = kind
        self.arrays = [Array(size, t) for _ in kind.names]

    def __getitem__(self, index: object) -> NamedTuple:
        return self._kind([array[index] for array in self.arrays])

    def __setitem__(self, index: Dynamic, item: Dynamic) -> None:
        for array, value in zip(self.arrays, item, strict=True):
            array[index] = value


def getNamedTupleType(*names: str) -> type[NamedTuple]:
    """A type of tuples with these names."""
    return type("NamedTuple", (NamedTuple,), {"names": names})
