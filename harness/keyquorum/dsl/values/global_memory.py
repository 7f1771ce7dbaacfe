"""Memory that programs address by numbers: ``x.store_in_mem(address)``, ``sint.load_mem(address)``. A run has one for each kind of values. Cells
start as zero. A vector takes one cell for each element."""

from __future__ import annotations

from typing import Self

from ..context import Dynamic, current
from ..errors import CompilerError
from .base import is_constant, public_int, read

Cells = dict[int, tuple[Dynamic, int]]
"""By address: the stored vector, and the index of the element that the cell has."""


class InMemory:
    """A type whose values can be stored in this memory."""

    __slots__ = ()

    @classmethod
    def _cells(cls) -> Cells:
        return current().memory.setdefault(cls._memory_kind(), {})

    @classmethod
    def _memory_kind(cls) -> str:
        """The kind of the type: types of one kind share a memory."""
        return cls.__name__

    @classmethod
    def load_mem(cls, address: object, mem_type: object = None, size: int | None = None) -> Self:
        """The value at an address (a public number), or ``size`` values from it on."""
        if mem_type is not None:
            raise CompilerError("load_mem takes an address and a size")
        at = _address(address)
        loaded: Self = cls._loaded(cls._cells(), at, 1 if size is None else size)
        return loaded

    @classmethod
    def _loaded(cls, cells: Cells, at: int, count: int) -> Dynamic:
        """``count`` values from ``at`` on, joined from the parts of stored vectors."""
        make: Dynamic = cls
        parts: list[Dynamic] = []
        i = 0
        while i < count:
            vector, first = cells.get(at + i, (None, 0))
            length = 1
            while i + length < count and cells.get(at + i + length, (None, 0)) == (vector, first + length if vector is not None else 0):
                length += 1
            parts.append(make(0, size=length) if vector is None else make(vector.get_vector(first, length)))
            i += length
        return parts[0] if len(parts) == 1 else make.concat(parts)

    def store_in_mem(self, address: object) -> None:
        """Stores the value at an address (a public number), the elements of a vector from it on."""
        at, cells = _address(address), self._cells()
        make: Dynamic = type(self)
        copy = _Stored(make(self))
        for i in range(copy.vector.size):
            cells[at + i] = copy, i


class _Stored:
    """A vector in memory, which is compared by identity, unlike values of the language."""

    __slots__ = ("vector",)

    def __init__(self, vector: Dynamic) -> None:
        self.vector = vector

    def get_vector(self, base: int, size: int) -> Dynamic:
        return self.vector.get_vector(base, size)


def _address(address: object) -> int:
    at = public_int(address, "an address")
    if at < 0:
        raise CompilerError(f"an address in memory is a number of at least 0, not {at}")
    return at


def store_in_mem(value: Dynamic, address: object) -> None:
    """Stores a value at an address, see :meth:`InMemory.store_in_mem`."""
    value = read(value)
    if is_constant(value):
        raise CompilerError(f"cannot store the Python number {value}: make it a sint, cint or regint")
    value.store_in_mem(address)
