"""Operations of containers element by element: comparisons, changes in place, and sums in the same shape."""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Callable

from ..context import Dynamic, ElementType
from ..errors import SUBSET, CompilerError, VectorMismatch
from ..values.base import RunTime, Vector, is_constant, read


def vector_of(other: object) -> Dynamic:
    """The elements of a container as one vector; any other operand unchanged."""
    return other.get_vector() if isinstance(other, Elementwise) else other


class Elementwise(RunTime):
    """A container whose operations work on the vector of its elements."""

    value_type: ElementType

    @property
    @abstractmethod
    def shape(self) -> list[int]:
        """The dimensions."""

    @abstractmethod
    def total_size(self) -> int:
        """Number of elements."""

    @abstractmethod
    def get_vector(self, base: object = 0, size: int | None = None) -> Dynamic:
        """The elements."""

    @abstractmethod
    def _store(self, vector: object, base: object) -> None:
        """Replaces elements."""

    def _elements_of(self, other: object) -> Dynamic:
        """An operand of an elementwise operation as vector. Raises VectorMismatch unless it has as many elements as this container."""
        vector = vector_of(read(other))
        if not isinstance(vector, Vector):
            raise CompilerError(
                f"{type(self).__name__} with {type(other).__name__} is {SUBSET}: element by element take a container or a vector, "
                "or work on get_vector()"
            )
        if vector.size != self.total_size():
            raise VectorMismatch(f"different vector sizes of operands: {self.total_size()}/{vector.size}")
        return vector

    def _change(self, operation: Callable[[Dynamic, Dynamic], Dynamic], other: object) -> Dynamic:
        vector = operation(self.get_vector(), self._elements_of(other))
        self._store(self.value_type.conv(vector), 0)
        return self

    def __iadd__(self, other: object) -> Dynamic:
        return self._change(operator.add, other)

    def __isub__(self, other: object) -> Dynamic:
        return self._change(operator.sub, other)

    def __imul__(self, other: object) -> Dynamic:
        return self._change(operator.mul, other)

    def _like_vector(self, vector: object) -> Dynamic:
        """The result of an elementwise operation: a vector for an Array, otherwise a container of this shape."""
        return vector

    def _compare(self, operation: Callable[[Dynamic, Dynamic], Dynamic], other: object) -> Dynamic:
        return self._like_vector(operation(self.get_vector(), vector_of(read(other))))

    def __lt__(self, other: object) -> Dynamic:
        return self._compare(operator.lt, other)

    def __le__(self, other: object) -> Dynamic:
        return self._compare(operator.le, other)

    def __gt__(self, other: object) -> Dynamic:
        return self._compare(operator.gt, other)

    def __ge__(self, other: object) -> Dynamic:
        return self._compare(operator.ge, other)

    def __eq__(self, other: object) -> Dynamic:
        return self._compare(operator.eq, other)

    def __ne__(self, other: object) -> Dynamic:
        return self._compare(operator.ne, other)

    __hash__ = None  # type: ignore[assignment]


class ElementwiseInShape(Elementwise):
    """A container whose elementwise sums and products are containers of the same shape."""

    def _same_shape(self, other: object) -> Dynamic:
        other = read(other)
        if isinstance(other, Elementwise) and list(other.shape) != self.shape:
            raise VectorMismatch(f"containers of {self._shown(self)} and {self._shown(other)} do not go together element by element")
        return self._elements_of(other)

    @staticmethod
    def _shown(container: Dynamic) -> str:
        return "x".join(map(str, container.shape))

    def __add__(self, other: object) -> Dynamic:
        """Sum element by element, in the same shape. Local."""
        if is_constant(other) and other == 0:
            return self
        return self._like_vector(self.get_vector() + self._same_shape(other))

    __radd__ = __add__

    def __sub__(self, other: object) -> Dynamic:
        """Difference element by element, in the same shape. Local."""
        if is_constant(other) and other == 0:
            return self
        return self._like_vector(self.get_vector() - self._same_shape(other))

    def schur(self, other: object) -> Dynamic:
        """Product element by element, in the same shape. One round if both are secret."""
        return self._like_vector(self.get_vector() * self._same_shape(other))

    def iadd(self, other: object) -> None:
        """Adds element by element, in place."""
        self._change(operator.add, other)
