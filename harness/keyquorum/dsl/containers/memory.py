"""Memory: elements of one type that public run-time numbers can address. Starts as zeros. No communication."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from ..context import Dynamic, ElementType, Ints, Value, current
from ..errors import CompilerError
from ..recording.recorded import contiguous
from ..values.base import progression


class Postponed:
    """Computes a value at its first use, once: for values that may never be used."""

    def __init__(self, make: Callable[[], Value]) -> None:
        self._make: Callable[[], Value] | None = make
        self._made: Value | None = None

    def __call__(self) -> Value:
        if self._make is not None:
            self._made, self._make = self._make(), None
        assert self._made is not None
        return self._made


def _is_postponed(vector: Dynamic) -> bool:
    return vector._value is None and isinstance(vector._make, Postponed)


class Memory(ABC):
    """``size`` elements of one type. Callers have checked ranges and converted values."""

    size: int

    @abstractmethod
    def read(self, start: int, step: int, count: int) -> Dynamic:
        """The elements ``start``, ``start + step``, ... as a vector."""

    @abstractmethod
    def gather(self, indices: Ints) -> Dynamic:
        """The elements at these indices."""

    @abstractmethod
    def write(self, start: int, step: int, value: object) -> None:
        """Stores a vector at ``start``, ``start + step``, ..."""

    @abstractmethod
    def scatter(self, indices: Ints, value: object) -> None:
        """Stores a vector at these indices."""


class EngineMemory(Memory):
    """Elements of the arithmetic domain, in one vector of the engine, which is changed in place if there is no other reference to it."""

    def __init__(self, size: int, element_type: ElementType, secret: bool) -> None:
        self.size = size
        self._type = element_type
        self._secret = secret
        self._value: Value | None = None
        self._shared = False
        self._unread: Dynamic = None  # a vector of the share file that is not read yet

    def _zeros(self) -> Value:
        run = current()
        return run.engine.repeat(run.secret_zero() if self._secret else run.constant(0), self.size)

    def _content(self) -> Value:
        if self._unread is not None:
            self._value, self._shared, self._unread = self._unread.value, True, None
        if self._value is None:
            self._value = self._zeros()
        return self._value

    def read(self, start: int, step: int, count: int) -> Dynamic:
        value = self._content()
        if start == 0 and step == 1 and count == self.size:
            self._shared = True
            return self._type._wrap(value)
        return self._type._wrap(current().engine.slice(value, start, step, count))

    def gather(self, indices: Ints) -> Dynamic:
        picked = None if self._unread is None else self._unread._pick_stored(indices)
        if picked is not None:
            return picked
        return self._type._wrap(current().engine.gather(self._content(), contiguous(indices)))

    def _own(self, stored: Value) -> Value:
        """The content as a vector that may be changed in place: of a kind that can hold ``stored``, without other references."""
        run, value = current(), self._content()
        if value.kind == "c" and stored.kind == "s":
            value = run.to_secret(value)
        elif self._shared:
            value = run.engine.slice(value, 0, 1, self.size)
        self._value, self._shared = None, False
        return value

    def write(self, start: int, step: int, value: Dynamic) -> None:
        if start == 0 and step == 1 and value.size == self.size and (getattr(value, "_unread", False) or _is_postponed(value)):
            self._unread = type(value)(value)  # a copy: the vector may be updated before this memory is read
            return
        stored = value.value
        if start == 0 and step == 1 and value.size == self.size:
            self._value, self._shared, self._unread = stored, True, None
            return
        self._content()
        own = self._own(stored)
        self._value = current().engine.assign(own, start, step, stored)

    def scatter(self, indices: Ints, value: Dynamic) -> None:
        stored = value.value
        own = self._own(stored)
        self._value = current().engine.scatter(own, contiguous(indices), stored)


class NumpyMemory(Memory):
    """Public 64-bit integers."""

    def __init__(self, size: int, element_type: ElementType) -> None:
        self.size = size
        self._type = element_type
        self._data: Ints = np.zeros(size, dtype=np.int64)

    def read(self, start: int, step: int, count: int) -> Dynamic:
        return self._type._wrap(self._data[progression(start, step, count)] if step != 1 else self._data[start : start + count].copy())

    def gather(self, indices: Ints) -> Dynamic:
        return self._type._wrap(self._data[indices])

    def write(self, start: int, step: int, value: Dynamic) -> None:
        self._data[progression(start, step, value.size)] = value.data

    def scatter(self, indices: Ints, value: Dynamic) -> None:
        self._data[indices] = value.data


class ListMemory(Memory):
    """Elements that are separate values (rows of bits), which are read one at a time."""

    def __init__(self, size: int, element_type: ElementType) -> None:
        self.size = size
        self._type = element_type
        self._items: list[Dynamic] = [None] * size

    def read(self, start: int, step: int, count: int) -> Dynamic:
        if count != 1:
            raise CompilerError(f"an Array of {self._type.__name__} is read one element at a time")
        item = self._items[start]
        return self._type(0) if item is None else item._copy()

    def gather(self, indices: Ints) -> Dynamic:
        return self.read(int(indices[0]), 1, len(indices))

    def write(self, start: int, step: int, value: Dynamic) -> None:
        self._items[start] = value._copy()

    def scatter(self, indices: Ints, value: object) -> None:
        self.write(int(indices[0]), 1, value)
