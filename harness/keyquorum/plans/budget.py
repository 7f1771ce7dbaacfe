"""Statistical budgets of a key's life: the sizes of masks, and what all values and attempts give away together.

The terms and their argument are in ``Source/mpc/src/budget.rs``; the numbers in docs/pages/budget.md.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import BUDGET_BITS, budget_attempts, budget_lift, budget_residues
from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError

from .randomness import uniform_bits, wipe

TOTAL: float = 2.0**-BUDGET_BITS
ELEMENTS = 200
"""Elements that a party gives MACs to for a coefficient of noise: those of the random bits of six bits, over a field."""
SMOOTH = 4
"""Uniform numbers whose sum is a mask: with one, values tell at the ends of the mask, and what they tell adds up."""


def lift_masks(size: int, bits: int) -> NDArray[np.int64]:
    """Masks of `lift` below 2^bits, of one party: sums of four uniform numbers of bits - 2 bits."""
    masks = uniform_bits(size, bits - 2)
    for _ in range(SMOOTH - 1):
        more = uniform_bits(size, bits - 2)
        masks += more
        wipe(more)
    return masks


def leaks(committee: Committee, values: int, mask_bits: int, prime_bits: int) -> float:
    """Distance from independence of everything that is opened in honest runs of a key generation with so many lifted values."""
    pads = budget_residues(ELEMENTS * values, committee.size - 1, prime_bits) if committee.authenticated else 0.0
    return budget_lift(values, mask_bits) + pads


def check_leaks(committee: Committee, values: int, mask_bits: int, prime_bits: int) -> None:
    """Refuses a key whose honest leaks exceed what attempts leave of the budget."""
    room = TOTAL - (budget_attempts() if committee.authenticated else 0.0)
    found = leaks(committee, values, mask_bits, prime_bits)
    if found >= room:
        raise ParameterError(
            f"{values:,} coefficients among {committee.size} parties: what is opened of them is 2^{np.log2(found):.1f} away from "
            f"independent of the key, at most 2^{np.log2(room):.1f} may be: ask for fewer Galois keys, or take fewer parties"
        )
