"""Statistical budgets of a key's life: the sizes of masks, and what all values and attempts give away together.

The life of a key is its generation, and everything that its committee does under the MAC key of the time: attempts end with the MAC key, whatever the number of
keys. Honest leaks are added up for one FHE key; pads of MACs and products that the committee makes for other keys are theirs.

The terms and their argument are in ``Source/mpc/src/budget.rs``; the numbers in docs/pages/budget.md.
"""

from __future__ import annotations

import math

import numpy as np

from keyquorum._engine import BUDGET_BITS, budget_attempts, budget_lift, budget_lift_tests, budget_residues
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError
from keyquorum.sharing.lifted import mask_width

TOTAL: float = 2.0**-BUDGET_BITS
ELEMENTS = 200
"""Elements that a party gives MACs to for a coefficient of noise: those of the random bits of six bits, over a field."""
PRODUCTS = 8
"""Additive products over a prime for a coefficient of noise, at most: key generation of `semi` multiplies in rings, a rounding takes some over t."""
PRODUCT_STRING_BITS = 122
"""Bits of a string of which the residue is a pad of an additive product (``Source/ot/src/product.rs``)."""
SHORTEST = 43
"""Bits of the shortest prime that keeps attempts within the budget."""
LEAST_PRIME_BITS = 36
"""Bits of the shortest prime under which a committee with MACs makes a key: a wrong value passes with 2^-34 then, and a warning says so."""
NOISE_BITS = 5
"""The secret and both error distributions stay below 2^5 in absolute value (CBD 21, Gaussian 23)."""
LIFT_VARIANCE = 10.5
"""Of the values for which the engine states the distance of a lift (``VARIANCE`` in ``Source/mpc/src/budget.rs``)."""


def leaks(committee: Committee, values: int, mask_bits: int, prime_bits: int) -> float:
    """Distance from independence of everything that is opened or sent in honest runs of a key generation with so many lifted values.

    Over oblivious transfer there are pads: of MACs, and, over a prime, of additive products. With MACs sums of the values are opened as well, which test
    that they are the same in all domains (:mod:`keyquorum.sharing.lifted`).
    """
    found = budget_lift(values, mask_bits)
    peers = committee.size - 1
    if committee.authenticated:
        width = mask_width(committee.size, (1 << prime_bits) - 1, 1 << NOISE_BITS)
        found = math.hypot(found, budget_lift_tests(values, width))
        found += budget_residues(ELEMENTS * values, peers, prime_bits)
    if committee.capabilities.oblivious_transfer:
        found += product_pads(PRODUCTS * values, peers, prime_bits)
    return found


def product_pads(products: int, peers: int, prime_bits: int) -> float:
    """Distance from uniform of the pads of so many additive products of one party with each of its peers, over a prime of so many bits.

    A pad is a string of 122 bits modulo q, with a chi-square of at most (q/2^122)^2/4; a product has one for each bit, in both directions. The
    distance of all is half the root of the sum, as for pads of MACs.
    """
    pads = 2.0 * products * peers * prime_bits
    return float(np.sqrt(pads / 4) / 2 * 2.0 ** (prime_bits - PRODUCT_STRING_BITS))


def _shortest(committee: Committee, parameters: ParameterSet) -> int | None:
    """Bits of the shortest prime of a set, where values have MACs over it and it is too short for the budget."""
    bits = min(q.bit_length() for q in parameters.coeff_modulus)
    return bits if committee.authenticated and budget_attempts(bits) >= TOTAL else None


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
    bits = _shortest(committee, parameters)
    if bits is not None and bits < LEAST_PRIME_BITS:
        raise ParameterError(
            f"{parameters.name} has a prime of {bits} bits: under {committee.protocol} a wrong value passes its MAC with "
            f"2^{np.log2(budget_attempts(bits)):.1f}; take a set whose primes have {SHORTEST} bits or more (with {LEAST_PRIME_BITS} there is a warning)"
        )


def check_leaks(committee: Committee, values: int, mask_bits: int, prime_bits: int) -> None:
    """Refuses a key whose honest leaks exceed what attempts leave of the budget."""
    rest = TOTAL - (budget_attempts() if committee.authenticated else 0.0)
    found = leaks(committee, values, mask_bits, prime_bits)
    if found >= rest:
        raise ParameterError(
            f"{values:,} coefficients among {committee.size} parties: what is opened of them is 2^{np.log2(found):.1f} away from "
            f"independent of the key, at most 2^{np.log2(rest):.1f} may be: ask for fewer Galois keys, or take fewer parties"
        )
