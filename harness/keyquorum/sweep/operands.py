"""Private inputs of programs, from numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
_WORD = 63
"""Bits of a word without its sign."""


def bit_rows(numbers: Ints, width: int, less: int = 0) -> Ints:
    """The low ``width`` bits (at most 126) of numbers - ``less`` in two's complement, lowest first: ``width`` joined rows with one entry for each
    number. ``numbers`` and ``less`` are not negative."""
    difference = numbers - (less & ((1 << _WORD) - 1))
    high = (difference >> _WORD) - (less >> _WORD)
    rows = np.empty((width, len(numbers)), dtype=np.int64)
    for b, row in enumerate(rows):
        np.right_shift(difference if b < _WORD else high, b % _WORD, out=row)
    rows &= 1
    return rows.ravel()


def summand_rows_of(contributor: int, contributors: int, summands: Ints, q: int) -> Ints:
    """The input of ``zq_to_z2_circuit`` from one contributor, for its additive shares modulo an odd q: their bits. The first of several contributors
    subtracts half of the multiple of q that bounds the sum of all shares."""
    m, steps = q.bit_length(), (contributors - 1).bit_length()
    return bit_rows(summands, m) if contributor else bit_rows(summands, m + steps, (1 << steps >> 1) * q)


def summand_rows(summands: Ints, q: int) -> dict[int, Ints]:
    """The same for all contributors, for shares [contributor, entry]."""
    return {i: summand_rows_of(i, len(summands), row, q) for i, row in enumerate(summands)}


__all__ = ["bit_rows", "summand_rows", "summand_rows_of"]
