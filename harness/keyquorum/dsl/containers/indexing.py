"""Lengths, indices and slices of containers, checked."""

from __future__ import annotations

from ..context import Dynamic
from ..errors import CompilerError
from ..values.base import Public, SecretRunTime, is_constant, read


def checked_length(size: object, what: str) -> int:
    """A compile-time length of at least 0. Raises CompilerError."""
    if not is_constant(size) or size < 0:
        raise CompilerError(f"{what} must be a compile-time integer of at least 0, not {size!r}")
    return int(size)


def element_type(value_type: object) -> Dynamic:
    """The type, if containers can have it. Raises CompilerError."""
    if not (isinstance(value_type, type) and hasattr(value_type, "_allocate")):
        raise CompilerError(f"cannot create an Array of {value_type!r}")
    return value_type


def checked_index(index: object, length: int) -> int:
    """A single index, compile-time or run-time, checked."""
    index = read(index)
    if is_constant(index):
        if not -length <= index < length:
            raise IndexError(f"index {index}, length {length}")
        return int(index) + (length if index < 0 else 0)
    if isinstance(index, SecretRunTime):
        raise CompilerError("need a clear index to address an Array, not a secret one")
    if not isinstance(index, Public) or index.size != 1:
        raise CompilerError(f"cannot address an Array with {type(index).__name__}")
    at = int(index._indices()[0])
    if not 0 <= at < length:
        raise CompilerError(f"overflow: index {at}, length {length}")
    return at


def slice_range(index: slice, length: int) -> tuple[int, int, int]:
    """start, step, count of a slice with compile-time, non-negative bounds."""
    for part in (index.start, index.stop, index.step):
        if part is not None and not is_constant(part):
            raise CompilerError("slices of an Array take compile-time integers: use get_vector(base, size)")
    start, step = index.start or 0, 1 if index.step is None else index.step
    stop = length if index.stop is None else min(index.stop, length)
    if step < 1:
        raise CompilerError("the step of a slice must be at least 1")
    if start < 0 or stop <= start:
        raise CompilerError(f"slice [{start}:{stop}] of an Array of length {length} is empty or has a negative bound")
    return start, step, (stop - start - 1) // step + 1
