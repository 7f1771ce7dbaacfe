"""Arrays and matrices: views on a memory, so that rows share the content of their matrix. No communication unless stated. One file, since arrays and
matrices make one another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ..context import Dynamic, ElementType, Ints, current
from ..errors import SUBSET, CompilerError, VectorMismatch
from ..recording.recorded import in_range
from ..values import comparison
from ..values.base import ELEMENT_LIMIT, Public, SecretRunTime, Vector, is_constant, read
from . import sorting
from .elementwise import Elementwise, ElementwiseInShape, vector_of
from .indexing import checked_index, checked_length, element_type, slice_range
from .memory import ListMemory, Memory


class Structure:
    """Constructors of containers for a type: ``sint.Array(n)``, ``sint.Matrix(rows, columns)``, ``sint.Tensor(shape)``."""

    __slots__ = ()

    @classmethod
    def _allocate(cls, size: int) -> Memory:
        raise CompilerError(f"there are no arrays of {cls.__name__}")

    @classmethod
    def Array(cls, size: int) -> Array:
        """An array of ``size`` zeros."""
        return Array(size, cls)

    @classmethod
    def Matrix(cls, rows: int, columns: int) -> Matrix:
        """A matrix of zeros."""
        return Matrix(rows, columns, cls)

    @classmethod
    def Tensor(cls, shape: Sequence[int]) -> MultiArray:
        """A multidimensional array of zeros."""
        made: MultiArray = _multi_array(shape, cls)
        return made


def _checked_indices(indices: Public, length: int) -> Ints:
    return in_range(indices._indices(), length)


class _Container(Elementwise):
    """Part of a memory: elements ``offset`` .. ``offset + total - 1``."""

    value_type: ElementType
    _memory: Memory
    _offset: int

    def total_size(self) -> int:
        """Number of elements."""
        raise NotImplementedError

    def get_vector(self, base: object = 0, size: int | None = None) -> Dynamic:
        """``size`` elements from ``base`` (public number) on, or the elements at the indices ``base`` (public vector)."""
        total = self.total_size()
        base = read(base)
        if isinstance(base, Public) and base.size > 1:
            return self._memory.gather(_checked_indices(base, total) + self._offset)
        if size is None or (is_constant(size) and size == 0):
            if not is_constant(base):
                raise CompilerError("get_vector at a run-time index needs a size")
            size = total - base
        count = checked_length(size, "the size of a vector")
        at = checked_index(base, total) if count else 0
        if at + count > total:
            raise CompilerError(f"get_vector({at}, {count}) leaves the container of {total} elements")
        return self._memory.read(at + self._offset, 1, count)

    def _converted(self, other: object) -> Dynamic:
        """An assignable operand as one vector of this container's type."""
        other = read(other)
        if isinstance(other, _Container):
            other = other.get_vector()
        if isinstance(other, (Vector, int, float, SecretRunTime)):
            return self.value_type.conv(other)
        if hasattr(other, "__iter__") and not isinstance(other, (str, bytes)):
            parts = [self._converted(x) for x in other]
            return parts[0] if len(parts) == 1 else self.value_type.concat(parts)
        raise CompilerError(f"cannot assign {type(other).__name__} to an Array of {self.value_type.__name__}")

    def _store(self, vector: Dynamic, base: object) -> None:
        total = self.total_size()
        base = read(base)
        if isinstance(base, Public) and base.size > 1:
            indices = _checked_indices(base, total)
            if vector.size != len(indices):
                raise VectorMismatch(f"{vector.size} values do not fit {len(indices)} indices")
            self._memory.scatter(indices + self._offset, vector)
            return
        count = self.value_type._element_count(vector)
        if count == 0:
            return
        at = checked_index(base, total)
        if at + count > total:
            raise CompilerError(f"{count} values from index {at} on do not fit a container of {total} elements")
        self._memory.write(at + self._offset, 1, vector)

    def input_from(self, player: object, budget: int | None = None, raw: bool = False, **options: object) -> None:
        """Fills the container with the next private numbers of ``player``, see ``get_input_from`` of its type."""
        kind = self.value_type
        if isinstance(self._memory, ListMemory):
            for i in range(self.total_size()):
                self._memory.write(self._offset + i, 1, kind.get_input_from(player, **options))
        elif self.total_size():
            self._store(kind.get_input_from(player, size=self.total_size(), **options), 0)

    def _new_vector_memory(self, vector: Dynamic) -> Memory:
        memory: Memory = type(vector)._allocate(vector.size)
        memory.write(0, 1, vector)
        return memory


class Array(_Container):
    """A one-dimensional array. ``A[i]`` takes public numbers, ``A[a:b:s]`` compile-time bounds, ``A[v]`` index
    vectors."""

    def __init__(self, length: int, value_type: Dynamic, address: Memory | None = None, offset: int = 0) -> None:
        self.length = checked_length(length, "the length of an Array")
        self.value_type = element_type(value_type)
        self._memory = self.value_type._allocate(self.length) if address is None else address
        self._offset = offset

    @classmethod
    def create_from(cls, source: Dynamic) -> Array:
        """A new array with the elements of a vector, an array or a list."""
        source = read(source)
        if isinstance(source, Array):
            source = source.get_vector()
        if isinstance(source, Vector):
            result = cls(source.size, type(source))
        else:
            source = list(source)
            if not source:
                raise CompilerError("cannot create an Array from an empty list")
            result = cls(len(source), type(source[0]))
        return result.assign(source)

    def total_size(self) -> int:
        return self.length

    @property
    def shape(self) -> list[int]:
        """The length, as a list."""
        return [self.length]

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[Dynamic]:
        if self.length > ELEMENT_LIMIT:
            raise CompilerError(f"iterating over {self.length} elements is slow: use for_range or get_vector()")
        return (self[i] for i in range(self.length))

    def __getitem__(self, index: object) -> Dynamic:
        if isinstance(index, slice):
            start, step, count = slice_range(index, self.length)
            return self._memory.read(start + self._offset, step, count)
        index = read(index)
        if isinstance(index, Public) and index.size != 1:
            return self._memory.gather(_checked_indices(index, self.length) + self._offset)
        return self._memory.read(checked_index(index, self.length) + self._offset, 1, 1)

    def __setitem__(self, index: object, value: object) -> None:
        if isinstance(index, slice):
            start, step, count = slice_range(index, self.length)
            vector = self._converted(value)
            given = self.value_type._element_count(vector)
            if given > count or (step == 1 and start + given > self.length):
                raise VectorMismatch(f"{given} values do not fit a slice of {count}")
            if step != 1 and given != count:
                raise VectorMismatch(f"{given} values for a slice of {count}")
            self._memory.write(start + self._offset, step, vector)
            return
        vector = self.value_type.conv(read(value))
        if self.value_type._element_count(vector) != 1:
            raise CompilerError("size mismatch in array assignment")
        self._memory.write(checked_index(index, self.length) + self._offset, 1, vector)

    def get(self, indices: object) -> Dynamic:
        """The elements at the indices of a public vector or array."""
        indices = indices.get_vector() if isinstance(indices, Array) else read(indices)
        if not isinstance(indices, Public):
            raise CompilerError(f"Array.get takes a regint vector, not {type(indices).__name__}")
        return self._memory.gather(_checked_indices(indices, self.length) + self._offset)

    def assign(self, other: object, base: object = 0) -> Array:
        """Stores a vector, container or list from ``base`` on, or at the indices ``base`` (public vector)."""
        if isinstance(self._memory, ListMemory) and isinstance(other, (list, tuple, Array)):
            start = checked_index(base, self.length)
            for i, x in enumerate(other):
                self[start + i] = x
        else:
            self._store(self._converted(other), base)
        return self

    assign_vector = assign
    assign_part_vector = assign
    get_part_vector = _Container.get_vector

    def assign_all(self, value: object) -> Array:
        """Stores one value everywhere."""
        element = self.value_type.conv(read(value))
        if isinstance(self._memory, ListMemory):
            for i in range(self.length):
                self[i] = element
            return self
        if element.size != 1:
            raise CompilerError("cannot assign vector to all elements")
        if self.length:
            self._store(element.expand_to_vector(self.length), 0)
        return self

    def get_range(self, start: Dynamic, size: int) -> list[Dynamic]:
        """A list of ``size`` elements from ``start`` on."""
        return [self[start + i] for i in range(size)]

    def set_range(self, start: Dynamic, values: Dynamic) -> None:
        """Stores values one after another from ``start`` on."""
        for i, value in enumerate(values):
            self[start + i] = value

    def get_sub(self, start: Dynamic, stop: Dynamic = None) -> Array:
        """Elements ``start`` to ``stop - 1`` (or the first ``start``), sharing their content with this array."""
        first, last = (0, start) if stop is None else (start, stop)
        return self.get_part(first, checked_length(last - first, "the length of a part"))

    def to_row_matrix(self) -> Matrix:
        """A matrix with this array as its only row, sharing its content."""
        return Matrix(1, self.length, self.value_type, self._memory, self._offset)

    def to_column_matrix(self) -> Matrix:
        """A matrix with this array as its only column, sharing its content."""
        return Matrix(self.length, 1, self.value_type, self._memory, self._offset)

    def print_reveal_nested(self, end: str = "\n") -> None:
        """Opens and prints the elements as a list. One round."""
        print_list(self.get_vector().reveal(), end)

    def get_part(self, base: object, size: int) -> Array:
        """A part, sharing its content with this array."""
        at = checked_index(base, self.length)
        if at + size > self.length:
            raise CompilerError(f"get_part({at}, {size}) leaves the Array of length {self.length}")
        return Array(size, self.value_type, self._memory, self._offset + at)

    def same_shape(self) -> Array:
        """A new array of this length and type."""
        return Array(self.length, self.value_type)

    def reveal(self) -> Array:
        """The opened content, as array. One round."""
        return Array.create_from(self.get_vector().reveal())

    def sum(self) -> Dynamic:
        """Sum of the elements. Local."""
        return self.get_vector().sum()

    def dot(self, other: object) -> Array:
        """Inner product with another array, as array of length 1. One round if both are secret."""
        product: Array = self.to_row_matrix().dot(other)
        return product

    def sort(self, n_threads: int | None = None, batcher: bool = False, n_bits: int | None = None) -> None:
        """Sorts signed secret integers of ``n_bits`` bits (default: ``program.bit_length``) in place, smallest first. For n elements: t (t + 1) / 2
        layers of at most n / 2 comparisons each, t = ceil(log2 n). ``n_threads`` and ``batcher`` have no effect here."""
        if not (issubclass(self.value_type, SecretRunTime) and hasattr(self.value_type, "less_than")):
            raise CompilerError(f"sort of an Array of {self.value_type.__name__} is {SUBSET}: sort an Array of sint")
        if (n_threads or 1) > 1 and not batcher:
            raise CompilerError("sort with several threads is only there with batcher=True")
        if getattr(self.value_type, "needs_room", False) and isinstance(n_bits, int):
            comparison.require_bits(current(), n_bits + 1, "comparison", "n_bits")
        for low, high in sorting.layers(self.length):
            a, b = (self._memory.gather(indices + self._offset) for indices in (low, high))
            moved = b.less_than(a, n_bits) * (a - b)
            self._memory.scatter(low + self._offset, a - moved)
            self._memory.scatter(high + self._offset, b + moved)

    def secure_shuffle(self) -> None:
        """Shuffles in place, see :mod:`keyquorum.dsl.values.shuffle`."""
        self.assign_vector(self.get_vector().secure_shuffle())

    def secure_permute(self, permutation: object, reverse: bool = False) -> None:
        """Moves the elements in place, or back, by a permutation of ``sint.get_secure_shuffle``."""
        self.assign_vector(self.get_vector().secure_permute(permutation, reverse=reverse))

    def binary_output(self, player: int | None = None) -> None:
        """Writes a public array to the binary output."""
        self.get_vector().binary_output(player)

    def write_to_file(self, position: object = None) -> None:
        """Appends the shares to the share file, or stores them at ``position``."""
        self.value_type.write_to_file(self.get_vector(), position)

    def read_from_file(self, start: object) -> Dynamic:
        """Fills the array with shares from position ``start`` on; returns the final position (-1: end of file)."""
        stop, shares = self.value_type.read_from_file(start, size=self.length)
        self.assign_vector(shares[0])
        return stop

    def __add__(self, other: object) -> Dynamic:
        if is_constant(other) and other == 0:
            return self
        return self.get_vector() + vector_of(other)

    __radd__ = __add__

    def __sub__(self, other: object) -> Dynamic:
        return self.get_vector() - vector_of(other)

    def __rsub__(self, other: object) -> Dynamic:
        return vector_of(other) - self.get_vector()

    def __mul__(self, other: object) -> Dynamic:
        return self.get_vector() * vector_of(other)

    __rmul__ = __mul__

    def __pow__(self, exponent: object) -> Dynamic:
        return self.get_vector() ** exponent

    def __neg__(self) -> Dynamic:
        return -self.get_vector()


class SubMultiArray(_Container, ElementwiseInShape):
    """A view on a multidimensional array, or on a part of one."""

    def __init__(self, sizes: Sequence[int], value_type: object, memory: Memory | None = None, offset: int = 0) -> None:
        if len(sizes) < 2:
            raise CompilerError("a MultiArray has at least two dimensions: use Array")
        self.sizes = tuple(checked_length(s, "a dimension") for s in sizes)
        self.value_type = element_type(value_type)
        self._memory = self.value_type._allocate(self.total_size()) if memory is None else memory
        self._offset = offset

    def total_size(self) -> int:
        return int(np.prod(self.sizes))

    def part_size(self) -> int:
        """Number of elements for one index of the first dimension."""
        return int(np.prod(self.sizes[1:]))

    @property
    def shape(self) -> list[int]:
        """The dimensions."""
        return list(self.sizes)

    def __len__(self) -> int:
        return self.sizes[0]

    def __iter__(self) -> Iterator[Dynamic]:
        return (self[i] for i in range(self.sizes[0]))

    def __getitem__(self, index: object) -> Dynamic:
        if isinstance(index, slice):
            if index == slice(None):
                return self.get_vector()
            raise CompilerError("a MultiArray knows the slice [:] only: use get_part_vector")
        at = checked_index(index, self.sizes[0]) * self.part_size() + self._offset
        if len(self.sizes) == 2:
            return Array(self.sizes[1], self.value_type, self._memory, at)
        return _multi_array(self.sizes[1:], self.value_type, self._memory, at)

    def __setitem__(self, index: object, other: object) -> None:
        if isinstance(index, slice) and index == slice(None):
            self.assign(other)
        else:
            self[index].assign(other)

    def assign_vector(self, vector: Dynamic, base: object = 0) -> None:
        """Stores a vector, in row-major order, from element ``base`` on."""
        vector = self._converted(vector)
        if vector.size > self.total_size():
            raise CompilerError(f"{vector.size} values do not fit a container of {self.total_size()} elements")
        self._store(vector, base)

    assign = assign_vector

    def assign_all(self, value: object) -> SubMultiArray:
        """Stores one value everywhere."""
        self.to_array().assign_all(value)
        return self

    def to_array(self) -> Array:
        """All elements as an array that shares its content."""
        return Array(self.total_size(), self.value_type, self._memory, self._offset)

    def get_part_vector(self, base: object = 0, size: int | None = None) -> Dynamic:
        """The elements for ``size`` (default 1) indices of the first dimension, from ``base`` on."""
        at = checked_index(base, self.sizes[0])
        return self.get_vector(at * self.part_size(), (size or 1) * self.part_size())

    def assign_part_vector(self, vector: object, base: object = 0) -> None:
        """Stores a vector of this container's type from index ``base`` of the first dimension on."""
        vector = read(vector)
        if not isinstance(vector, self.value_type):
            raise CompilerError(
                f"assign_part_vector takes a {self.value_type.__name__} vector, not {type(vector).__name__}: "
                f"convert it, {self.value_type.__name__}(...)"
            )
        self.assign_vector(vector, checked_index(base, self.sizes[0]) * self.part_size())

    def get_part(self, start: object, size: int) -> Dynamic:
        """``size`` indices of the first dimension, sharing their content."""
        at = checked_index(start, self.sizes[0])
        if at + size > self.sizes[0]:
            raise CompilerError(f"get_part({at}, {size}) leaves the first dimension of {self.sizes[0]}")
        return _multi_array((size, *self.sizes[1:]), self.value_type, self._memory, self._offset + at * self.part_size())

    def same_shape(self) -> Dynamic:
        """A new container of these dimensions and type."""
        return _multi_array(self.sizes, self.value_type)

    def reveal(self) -> Dynamic:
        """The opened content, in the same shape. One round."""
        vector = self.get_vector().reveal()
        return _multi_array(self.sizes, type(vector), self._new_vector_memory(vector))

    def reveal_nested(self) -> Dynamic:
        """The opened content, as nested lists. One round."""
        flat = iter([x for part in _chunks(self.get_vector().reveal()) for x in part])

        def nest(sizes: tuple[int, ...]) -> Dynamic:
            return [next(flat) for _ in range(sizes[0])] if len(sizes) == 1 else [nest(sizes[1:]) for _ in range(sizes[0])]

        return nest(self.sizes)

    def print_reveal_nested(self, end: str = "\n") -> None:
        """Opens and prints the elements as nested lists. One round."""
        print_list(self.reveal_nested(), end)

    def _like_vector(self, vector: object) -> Dynamic:
        return _multi_array(self.sizes, type(vector), self._new_vector_memory(vector))

    def secure_shuffle(self) -> None:
        """Shuffles the first dimension in place, see :mod:`keyquorum.dsl.values.shuffle`."""
        self.assign_vector(self.get_vector().secure_shuffle(self.part_size()))

    def secure_permute(self, permutation: object, reverse: bool = False, n_threads: int | None = None, n_parallel: int | None = None) -> None:
        """Moves the first dimension in place, or back, by a permutation of ``sint.get_secure_shuffle``."""
        self.assign_vector(self.get_vector().secure_permute(permutation, self.part_size(), reverse))

    def write_to_file(self, position: object = None) -> None:
        """Appends the shares to the share file, or stores them at ``position``."""
        self.to_array().write_to_file(position)

    def read_from_file(self, start: object) -> Dynamic:
        """Fills the container with shares from position ``start`` on; returns the final position (-1: end of file)."""
        return self.to_array().read_from_file(start)


def _chunks(vector: Dynamic) -> Iterator[Dynamic]:
    for base in range(0, vector.size, ELEMENT_LIMIT):
        yield vector.get_vector(base, min(ELEMENT_LIMIT, vector.size - base))


class MultiArray(SubMultiArray):
    """A multidimensional array of zeros."""


class Matrix(MultiArray):
    """A matrix in row-major order: ``M[i]`` is a row that shares its content."""

    def __init__(self, rows: int, columns: int, value_type: object, memory: Memory | None = None, offset: int = 0) -> None:
        super().__init__((rows, columns), value_type, memory, offset)

    @staticmethod
    def create_from(rows: Dynamic) -> Matrix:
        """A new matrix of rows: lists, vectors or arrays of one length. The type is that of the first element, or of the first row."""
        rows = [row.get_vector() if isinstance(row, Array) and not isinstance(row._memory, ListMemory) else row for row in rows]
        if not rows or len({len(row) for row in rows}) > 1:
            raise CompilerError("a Matrix is created from rows of one length, at least one")
        first = rows[0]
        made = Matrix(len(rows), len(first), type(first if isinstance(first, Vector) else first[0]))
        for i, row in enumerate(rows):
            made[i].assign(row)
        return made

    def __mul__(self, other: object) -> Dynamic:
        """See :meth:`dot`."""
        return self.dot(other) if isinstance(other, (Matrix, Array)) else NotImplemented

    def direct_mul(self, other: Matrix | Array, reduce: bool = True, indices: Dynamic = None, res_type: object = None) -> Dynamic:
        """The product as vector, row by row. ``indices``: four public vectors that select rows and columns of this matrix, then rows and columns of
        the other one."""
        if not isinstance(other, (Matrix, Array)):
            raise CompilerError(f"direct_mul takes a Matrix or an Array, not {type(other).__name__}")
        right = other.to_column_matrix() if isinstance(other, Array) else other
        if self.sizes[1] != right.sizes[0] or self.value_type is not right.value_type:
            raise VectorMismatch(f"direct_mul of {self._shown(self)} and {self._shown(right)} needs one type and an inner dimension of one size")
        if indices is None:
            return self.dot(right).get_vector()
        if len(indices) != 4:
            raise CompilerError("the indices of direct_mul are four public vectors")
        rows, inner, other_inner, columns = (read(v)._indices() for v in indices)
        if len(inner) != len(other_inner):
            raise VectorMismatch(f"direct_mul of {len(inner)} columns and {len(other_inner)} rows")
        left = self._memory.gather(self._offset + _row_major_offsets(rows, inner, self.sizes))
        factor = right._memory.gather(right._offset + _row_major_offsets(other_inner, columns, right.sizes))
        return left._matrix_product(factor, len(rows), len(inner), len(columns))

    def get_column(self, index: object) -> Dynamic:
        """A column, as vector."""
        rows, columns = self.sizes
        return self._memory.read(self._offset + checked_index(index, columns), columns, rows)

    def set_column(self, index: Dynamic, vector: Dynamic) -> None:
        """Stores a vector as column."""
        rows, columns = self.sizes
        vector = self._converted(vector)
        if vector.size != rows:
            raise VectorMismatch(f"a column has {rows} elements, not {vector.size}")
        self._memory.write(self._offset + checked_index(index, columns), columns, vector)

    def transpose(self) -> Matrix:
        """The transpose, a copy."""
        rows, columns = self.sizes
        order = np.arange(rows * columns, dtype=np.int64).reshape(rows, columns).T.ravel() + self._offset
        return Matrix(columns, rows, self.value_type, self._new_vector_memory(self._memory.gather(order)))

    def dot(self, other: object, res_params: None = None, n_threads: int | None = None) -> Dynamic:
        """Product with a Matrix or (column) Array. Each operand is public or secret. If both are secret: one round, and
        the traffic of one product for each element of the result."""
        if isinstance(other, Array):
            column = Matrix(other.length, 1, other.value_type, other._memory, other._offset)
            return self.dot(column).to_array()
        if not isinstance(other, Matrix):
            raise CompilerError(f"dot of a Matrix takes a Matrix or an Array, not {type(other).__name__}")
        if self.sizes[1] != other.sizes[0]:
            raise VectorMismatch(f"matrices of {self.sizes[0]}x{self.sizes[1]} and {other.sizes[0]}x{other.sizes[1]}: no product")
        left, right = self.get_vector(), other.get_vector()
        vector = left._matrix_product(right, self.sizes[0], self.sizes[1], other.sizes[1])
        return Matrix(self.sizes[0], other.sizes[1], type(vector), self._new_vector_memory(vector))


def _row_major_offsets(rows: Ints, columns: Ints, sizes: Sequence[int]) -> Ints:
    """Row-major offsets of the elements at these rows and columns of a matrix."""
    at = in_range(rows, sizes[0])[:, None] * sizes[1] + in_range(columns, sizes[1])[None, :]
    return np.ascontiguousarray(at.ravel())


_printer: list[Callable[[str, Dynamic], None]] = []


def register_printer(print_str: Callable[[str, Dynamic], None]) -> None:
    """Registers the function that prints."""
    _printer.append(print_str)


def print_list(opened: Dynamic, end: str) -> None:
    """Prints opened elements as a list."""
    _printer[0]("%s" + end, opened)


def _multi_array(sizes: Sequence[int], value_type: object, memory: Memory | None = None, offset: int = 0) -> Dynamic:
    if len(sizes) == 2:
        return Matrix(sizes[0], sizes[1], value_type, memory, offset)
    return MultiArray(sizes, value_type, memory, offset)
