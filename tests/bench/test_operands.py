"""Bits of numbers, beyond a word too."""

from __future__ import annotations

import numpy as np
import pytest
from keyquorum.sweep.operands import bit_rows, summand_rows


@pytest.mark.parametrize("less", [0, 1, 5, (1 << 62) + 3, (1 << 63) - 1, 1 << 63, 7 << 61, (1 << 65) + 9])
@pytest.mark.parametrize("width", [1, 60, 63, 64, 70])
def test_bits_are_those_of_the_integers(less: int, width: int) -> None:
    numbers = np.array([0, 1, 2, 12345678901, (1 << 62) - 1, (1 << 63) - 1])
    rows = bit_rows(numbers, width, less).reshape(width, -1)
    assert rows.T.tolist() == [[(int(v) - less) >> b & 1 for b in range(width)] for v in numbers]


@pytest.mark.parametrize("contributors", [1, 2, 3, 5, 16])
def test_summands_add_up(contributors: int) -> None:
    """The rows' numbers add up to the sum less half of the multiple of q above it, modulo 2^(m + L)."""
    q, steps = 1152921504606584833, (contributors - 1).bit_length()
    summands = np.random.default_rng(contributors).integers(0, q, (contributors, 20))
    total = np.zeros(20, dtype=object)
    for rows in summand_rows(summands, q).values():
        total += sum(row.astype(object) << b for b, row in enumerate(rows.reshape(-1, 20)))
    modulus = 1 << (60 + steps)
    assert ((total - summands.sum(0, dtype=object) + (1 << steps >> 1) * q) % modulus == 0).all()
