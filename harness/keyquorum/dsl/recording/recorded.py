"""Public numbers of a recorded run: a program may compute with them, but its control flow must not depend on them.

A run that is recorded gets its public numbers as :class:`RecordedNumbers`. Operations of numpy that have a step are done at once and
recorded. Every other use of the numbers (a branch, an index, a text, another function of numpy) ends the recording:
the program continues with plain numbers, and there is no recording of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from keyquorum import _engine

from ..errors import CompilerError

Operand = Any
"""An operand or the result of a recorded call: a Python number, an array of numpy, a handle of the engine, or the stand-in of one of these. The type
is known at run time only."""

INT, WORD, BYTE, BOOL = (np.dtype(t) for t in (np.int64, np.uint64, np.uint8, np.bool_))
ARITHMETIC = {np.add, np.subtract, np.multiply, np.floor_divide}
SHIFTS = {np.left_shift, np.right_shift}
BITWISE = {np.bitwise_and, np.bitwise_or, np.bitwise_xor}
COMPARISONS = {np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal}
_SHAPE = {"size", "shape", "dtype", "ndim", "nbytes"}

T = TypeVar("T")


class RecordedNumbers(NDArrayOperatorsMixin):
    """Numbers of a recorded run, with their position in the recording."""

    __slots__ = ("_data", "_position", "_recorder")
    __array_priority__ = 1000

    def __init__(self, recorder: RecordsNumbers, position: int, data: Operand) -> None:
        self._recorder, self._position, self._data = recorder, position, data

    def _end_recording(self, how: str) -> Operand:
        """Ends the recording, and returns the plain numbers. ``how``: the use that ended it."""
        self._recorder.fail(f"the program looked at public numbers ({how})")
        return self._data

    def _same(self, data: Operand) -> RecordedNumbers:
        """The same 64-bit words in another shape or type."""
        return RecordedNumbers(self._recorder, self._position, data)

    # -- recorded operations ------------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: Operand, method: str, *inputs: Operand, **kwargs: Operand) -> Operand:
        result = getattr(ufunc, method)(*plain(inputs), **{key: plain(value) for key, value in kwargs.items()})
        name = _operation(ufunc, inputs, result) if method == "__call__" and not kwargs else None
        if name is None:
            self._end_recording(f"{ufunc.__name__}.{method}")
            return result
        operands = (0, *inputs) if ufunc is np.negative else inputs
        return self._recorder.numbers(result, partial(self._recorder.number_op, name), *operands)

    def __array_function__(self, function: Operand, types: Operand, args: Operand, kwargs: Operand) -> Operand:
        result = function(*plain(args), **{key: plain(value) for key, value in kwargs.items()})
        if function is np.where and len(args) == 3 and not kwargs and _one_type(args[1:], result):
            return self._recorder.numbers(result, self._recorder.choose, *args)
        if function is np.concatenate and len(args) == 1 and not kwargs and _one_type(args[0], result):
            return self._recorder.numbers(result, lambda *positions: self._recorder.join(positions), *args[0])
        self._end_recording(function.__name__)
        return result

    def __getitem__(self, index: Operand) -> Operand:
        part = _section_of(index, len(self._data)) if np.ndim(self._data) == 1 else None
        if part is None:
            return self._end_recording("[]")[plain(index)]
        return self._recorder.numbers(self._data[index], lambda position: self._recorder.part(position, *part), self)

    def astype(self, dtype: Operand) -> Operand:
        """The numbers as another type."""
        result, (before, after) = self._data.astype(dtype), (self._data.dtype, np.dtype(dtype))
        if after in (before, INT, WORD) or (before, after) == (BOOL, BYTE):
            return self._same(result)
        if after == BYTE and before in (INT, WORD):
            return self._recorder.numbers(result, partial(self._recorder.number_op, "bitwise_and"), self, 255)
        self._end_recording(f"astype({dtype})")
        return result

    def view(self, dtype: Operand) -> Operand:
        """The same words as another type."""
        result = self._data.view(dtype)
        if {self._data.dtype, np.dtype(dtype)} <= {INT, WORD}:
            return self._same(result)
        self._end_recording(f"view({dtype})")
        return result

    def copy(self) -> RecordedNumbers:
        """The same numbers."""
        return self._same(self._data.copy())

    def contiguous(self) -> RecordedNumbers:
        """The same numbers, one after another in memory."""
        return self._same(np.ascontiguousarray(self._data))

    def in_range(self, length: int) -> RecordedNumbers:
        """The same numbers. This run and every repetition raise an error if one is no index of a vector of this length."""
        self._recorder.note(lambda position: self._recorder.in_range(position, length), self)
        return self

    # -- operations that end the recording ----------------------------------------------------------------------------

    def __array__(self, dtype: Operand = None, copy: Operand = None) -> Operand:
        return np.array(self._end_recording("array"), dtype=dtype, copy=copy)

    def __getattr__(self, name: str) -> Operand:
        if name in _SHAPE:
            return getattr(self._data, name)
        return getattr(self._end_recording(name), name)

    def __setitem__(self, index: Operand, value: Operand) -> None:
        self._end_recording("assignment")[plain(index)] = plain(value)

    def __len__(self) -> int:
        return len(self._data)

    def __iter__(self) -> Operand:
        return iter(self._end_recording("iteration"))

    def __bool__(self) -> bool:
        return bool(self._end_recording("bool"))

    def __int__(self) -> int:
        return int(self._end_recording("int"))

    def __index__(self) -> int:
        return int(self._end_recording("index"))

    def __float__(self) -> float:
        return float(self._end_recording("float"))

    def __bytes__(self) -> bytes:
        return bytes(self._end_recording("bytes"))

    def __contains__(self, item: Operand) -> bool:
        return plain(item) in self._end_recording("in")

    def __repr__(self) -> str:
        return repr(self._end_recording("text"))

    def __format__(self, form: str) -> str:
        return format(self._end_recording("text"), form)

    __hash__ = None  # type: ignore[assignment]


class RecordedShares:
    """Raw shares of the share file, in a recorded run. Only the engine may import them."""

    __slots__ = ("_data", "_position", "_recorder")

    def __init__(self, recorder: RecordsNumbers, position: int, data: bytes) -> None:
        self._recorder, self._position, self._data = recorder, position, data

    def __len__(self) -> int:
        return len(self._data)

    def __bytes__(self) -> bytes:
        self._recorder.fail("the program looked at shares")
        return self._data


class RecordsNumbers(_engine.Recorder):
    """Records the steps of a run on ``engine``, with operands that the program gives. ``stored``: whether the run stored shares. ``checked``: whether
    the share file has to fit the engine."""

    def __init__(self, engine: _engine.Engine) -> None:
        self.engine = engine
        self.stored = self.checked = False

    @contextmanager
    def aside(self) -> Iterator[None]:
        """The engine's calls in here are not steps."""
        self.engine.record(None)
        try:
            yield
        finally:
            self.engine.record(self)

    def stand_in(self, position: int, result: Operand) -> Operand:
        """What stands for numbers or raw shares at ``position``, in the program. ``result``: those of this run."""
        if self.failure is not None:
            return result
        return (RecordedShares if isinstance(result, bytes) else RecordedNumbers)(self, position, result)

    def numbers(self, result: Operand, step: Callable[..., int], *operands: Operand) -> Operand:
        """Records a step that makes numbers or raw shares. ``result``: those of this run."""
        position = self.note(step, *operands)
        return result if position is None else self.stand_in(position, result)

    def note(self, step: Callable[..., T], *operands: Operand) -> T | None:
        """Records the step ``step(*positions)``, with the positions of numbers. Returns its result; None if the recording has ended."""
        if self.failure is None:
            try:
                return step(*[self._position(operand) for operand in operands])
            except (_engine.EngineError, OverflowError, TypeError) as problem:  # the run itself is correct, and continues
                self.fail(f"a step takes {problem}")
        return None

    def _position(self, operand: Operand) -> int:
        if isinstance(operand, RecordedNumbers):
            if operand._recorder is not self:
                raise TypeError("numbers of another run")
            return operand._position
        words = np.atleast_1d(np.array(operand, dtype=INT) if operand.__class__ in (int, bool) else operand)
        if not isinstance(operand, (int, np.ndarray, np.generic)) or words.ndim != 1 or words.dtype not in (INT, WORD, BYTE, BOOL):
            raise TypeError(f"a {type(operand).__name__}")
        return self.constant_numbers((words.view(INT) if words.dtype == WORD else words.astype(INT)).tolist())


def plain(value: Operand) -> Operand:
    """The plain value of an argument, which may be a stand-in."""
    if isinstance(value, (RecordedNumbers, RecordedShares)):
        return value._data
    if value.__class__ in (list, tuple):
        return value.__class__(plain(item) for item in value)
    return value


def _types(operands: Operand) -> set[np.dtype[Operand]]:
    """The numpy types of the operands. Python's numbers have none: they take the type of the others."""
    return {np.asarray(plain(a)).dtype for a in operands if a.__class__ not in (int, bool)}


def _one_type(operands: Operand, result: Operand) -> bool:
    """Whether operands and result are of one type, so that no 64-bit word is converted."""
    return _types(operands) <= {result.dtype} and result.dtype in (INT, WORD, BYTE, BOOL) and result.ndim < 2


def _operation(ufunc: Operand, inputs: Operand, result: Operand) -> str | None:
    """The name of the step on 64-bit words for an operation of numpy; None if there is none."""
    types, to = _types(inputs), result.dtype
    name: str = ufunc.__name__
    signed = types <= {INT, BOOL} and to in (INT, BOOL)
    if ufunc is np.negative:
        return "subtract" if types == {INT} else None
    if ufunc in COMPARISONS:
        return name if types <= {INT, BOOL} or types == {BYTE} else None
    if ufunc in ARITHMETIC:
        constant = not isinstance(inputs[1], RecordedNumbers)
        divides = ufunc is not np.floor_divide or (constant and bool(np.all(np.asarray(inputs[1]) != 0)))
        return name if signed and to == INT and divides else None
    if ufunc in BITWISE:
        return name if signed or types == {to} else None
    if ufunc in SHIFTS and not isinstance(inputs[1], RecordedNumbers) and types == {to} and to in (INT, WORD):
        length = np.asarray(inputs[1])
        if np.all((length >= 0) & (length < 64)):
            return "unsigned_right_shift" if (ufunc, to) == (np.right_shift, WORD) else name
    return None


def _section_of(index: Operand, length: int) -> tuple[int, int, int] | None:
    """Start, step and count of the elements of an index or a slice; None for other indices."""
    if index.__class__ is int and -length <= index < length:
        return index % length, 1, 1
    if isinstance(index, slice) and all(bound is None or bound.__class__ is int for bound in (index.start, index.stop, index.step)):
        selected = range(*index.indices(length))
        if selected.step > 0 and len(selected):
            return selected.start, selected.step, len(selected)
    return None


def contiguous(numbers: Operand) -> Operand:
    """The numbers, one after another in memory."""
    return numbers.contiguous() if isinstance(numbers, RecordedNumbers) else np.ascontiguousarray(numbers)


def as_int64(numbers: Operand) -> Operand:
    """The numbers as int64."""
    return numbers.astype(np.int64) if isinstance(numbers, RecordedNumbers) else np.asarray(numbers, dtype=np.int64)


def in_range(numbers: T, length: int) -> T:
    """The same indices. Raises CompilerError if one is outside a vector of this length."""
    at: Operand = plain(numbers)
    if at.size and not (at.min() >= 0 and at.max() < length):
        bad = at[(at < 0) | (at >= length)][0]
        raise CompilerError(f"overflow: index {bad}, length {length}")
    return numbers.in_range(length) if isinstance(numbers, RecordedNumbers) else numbers  # type: ignore[return-value]
