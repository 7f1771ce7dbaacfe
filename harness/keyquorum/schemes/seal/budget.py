"""Statistical budgets of a key's life: the sizes of masks, and what all values and attempts give away together.

The life of a key is its generation, and everything that its committee does under the MAC key of the time: attempts end with the MAC key, whatever the number of
keys. Honest leaks are added up for one FHE key; pads of MACs and products that the committee makes for other keys are theirs.

The terms and their argument are in ``Source/core/src/budget.rs``; the numbers in docs/pages/budget.md.
"""

from __future__ import annotations

import numpy as np

from keyquorum._engine import BUDGET_BITS, budget_attempts
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError
from keyquorum.sharing.budget import product_pads
from keyquorum.sharing.numbers import kind_of

TOTAL: float = 2.0**-BUDGET_BITS
PRODUCTS = 8
"""Additive products over a prime for a coefficient of noise, at most: key generation of `semi` multiplies in rings, a rounding takes some over t."""
SHORTEST = 43
"""Bits of the shortest prime that keeps attempts within the budget."""
NOISE_BITS = 5
"""The secret and both error distributions stay below 2^5 in absolute value (CBD 21, Gaussian 23)."""


def leaks(committee: Committee, values: int, mask_bits: int, prime_bits: int) -> float:
    """Distance from independence of everything that is opened or sent in honest runs of a key generation with so many lifted values.

    Over oblivious transfer there are pads: of MACs, and, over a prime, of additive products. With MACs sums of the values are opened as well, which test
    that they are the same in all domains (:mod:`keyquorum.sharing.numbers.lift_tests`).
    """
    found = kind_of(committee).lift_leaks(committee, values, mask_bits, prime_bits, 1 << NOISE_BITS)
    if committee.capabilities.oblivious_transfer:
        found += product_pads(PRODUCTS * values, committee.size - 1, prime_bits)
    return found


def _shortest(committee: Committee, parameters: ParameterSet) -> int | None:
    """Bits of the shortest prime of a set, where values have MACs over it and it is too short for the budget."""
    bits = min(q.bit_length() for q in parameters.coeff_modulus)
    return bits if kind_of(committee).attempts(bits) >= TOTAL else None


def short_primes(committee: Committee, parameters: ParameterSet) -> str:
    """What is to be said of a key whose shortest prime takes it above the budget, with the number; empty where it does not."""
    bits = _shortest(committee, parameters)
    if bits is None:
        return ""
    return (
        f"{parameters.name} has a prime of {bits} bits: with MACs a wrong value passes with 2^{np.log2(budget_attempts(bits)):.1f} in the life of "
        f"the key, ABOVE the 2^-{BUDGET_BITS:.0f} of everything else; sets without primes below {SHORTEST} bits keep to it"
    )


def check_attempts(committee: Committee, parameters: ParameterSet) -> None:
    """Refuses, with MACs, a set with a prime so short that a wrong value passes easily."""
    bits, least = _shortest(committee, parameters), kind_of(committee).least_prime_bits
    if bits is not None and bits < least:
        raise ParameterError(
            f"{parameters.name} has a prime of {bits} bits: under {committee.protocol} a wrong value passes its MAC with "
            f"2^{np.log2(budget_attempts(bits)):.1f}; take a set whose primes have {SHORTEST} bits or more (with {least} there is a warning)"
        )


def check_leaks(committee: Committee, values: int, mask_bits: int, prime_bits: int) -> None:
    """Refuses a key whose honest leaks exceed what attempts leave of the budget."""
    rest = TOTAL - kind_of(committee).attempts()
    found = leaks(committee, values, mask_bits, prime_bits)
    if found >= rest:
        raise ParameterError(
            f"{values:,} coefficients among {committee.size} parties: what is opened of them is 2^{np.log2(found):.1f} away from "
            f"independent of the key, at most 2^{np.log2(rest):.1f} may be: ask for fewer Galois keys, or take fewer parties"
        )
