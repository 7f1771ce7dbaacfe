"""Terms of statistical budgets that plans share (``Source/core/src/budget.rs``, docs/pages/budget.md)."""

from __future__ import annotations

import numpy as np

LIFT_VARIANCE = 10.5
"""Of the values for which the engine states the distance of a lift (``VARIANCE`` in ``Source/core/src/budget.rs``)."""
PRODUCT_STRING_BITS = 122
"""Bits of a string of which the residue is a pad of an additive product (``Source/ot/src/product.rs``)."""


def product_pads(products: int, peers: int, prime_bits: int) -> float:
    """Distance from uniform of the pads of so many additive products of one party with each of its peers, over a prime of so many bits.

    A pad is a string of 122 bits modulo q, with a chi-square of at most (q/2^122)^2/4; a product has one for each bit, in both directions. The
    distance of all is half the root of the sum, as for pads of MACs.
    """
    pads = 2.0 * products * peers * prime_bits
    return float(np.sqrt(pads / 4) / 2 * 2.0 ** (prime_bits - PRODUCT_STRING_BITS))


__all__ = ["LIFT_VARIANCE", "product_pads"]
