"""Relinearisation of multi-key products with keys that each party makes alone (Chen, Dai, Kim, Song: Efficient Multi-Key Homomorphic Encryption with Packed
Ciphertexts, CCS 2019, algorithm 1): keys of 3 digits polynomials a party, 3 k^2 digits products.

With D = decompose(T_ij), c' = <D, b_j> and D' = decompose(c'): c_0 += <D', d0_i>, c_i += <D', d1_i>, c_j += <D, d2_i>. The terms with r cancel, and T_ij
s_i s_j remains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from keyquorum._engine import mulmod_scalar
from keyquorum.model.errors import ParameterError
from keyquorum.sharing.randomness import wipe

from .gadgets import Gadget
from .ring import ERROR_DEVIATION, Words
from .scheme import Ciphertext, Party, Product, PublicKey, zeros_of


@dataclass(frozen=True)
class EvaluationKey:
    """The evaluation key of party ``index``, polynomials [primes of keys, digits, N]: d0 = -s d1 + t e + w r and d2 = r A + t e + w s, for the weights w and
    a secret ternary r that nobody keeps; d1 is uniform. Public. It does not depend on the other parties, and serves every set of them."""

    index: int
    d0: Words = field(repr=False)
    d1: Words = field(repr=False)
    d2: Words = field(repr=False)

    @property
    def nbytes(self) -> int:
        """Bytes of its words."""
        return self.d0.nbytes + self.d1.nbytes + self.d2.nbytes


def weighted(gadget: Gadget, x: Words) -> Words:
    """w_j x for all weights, [primes of keys, digits, N], of x [primes of keys, N]."""
    ring, weights = gadget.key_ring, gadget.weights()
    out = ring.zeros(gadget.digits)
    for i, q in enumerate(ring.primes):
        for j in np.flatnonzero(weights[i]):
            out[i, j] = mulmod_scalar(np.ascontiguousarray(x[i]), int(weights[i, j]), q)
    return out


def evaluation_key(party: Party) -> EvaluationKey:
    """The evaluation key of a party, of which it alone knows the secrets; r is wiped."""
    gadget, ring = party.gadget, party.gadget.key_ring
    r = ring.ternary()
    products, d1 = (weighted(gadget, r), weighted(gadget, party.secret)), ring.uniform(gadget.digits)
    errors = ring.errors(gadget.t, gadget.digits)
    d0 = ring.add(zeros_of(ring, gadget.t, d1, party.secret), products[0])
    masked = ring.mul(party.reference.a, r[:, None, :])
    d2 = ring.add(ring.add(masked, errors), products[1])
    wipe(r, errors, masked, *products)
    return EvaluationKey(party.index, d0, d1, d2)


def relinearise(gadget: Gadget, product: Product, publics: Mapping[int, PublicKey], keys: Mapping[int, EvaluationKey]) -> Ciphertext:
    """A product of k parties (layout ``compact``) as a ciphertext of k + 1 polynomials. Raises ParameterError for pairs, or if a party's keys are missing."""
    if product.layout != "compact":
        raise ParameterError("products of pairs are not relinearised: encrypt in the compact layout")
    missing = [party for party in product.parties if party not in keys or party not in publics]
    if missing:
        raise ParameterError(f"the public and evaluation key of party {missing[0]} are needed: get them from that party")
    level = gadget.at(product.level)
    ring, key_ring, T = level.ring, level.key_ring, product.parts
    taken = {i: [level.of_keys(rows) for rows in (publics[i].b, keys[i].d0, keys[i].d1, keys[i].d2)] for i in product.parties}
    sums = [key_ring.zeros() for _ in range(T.shape[1])]
    for i, first in enumerate(product.parties, 1):
        for j, second in enumerate(product.parties, 1):
            b, d2 = level.inner(level.decompose(np.ascontiguousarray(T[:, i, j])), taken[second][0], taken[first][3])
            d0, d1 = level.inner(level.decompose(level.finish(b)), *taken[first][1:3])
            for place, term in ((0, d0), (i, d1), (j, d2)):
                sums[place] = key_ring.add(sums[place], term)
    parts = level.finish(np.stack(sums, axis=1))
    parts[:, 0] = ring.add(parts[:, 0], T[:, 0, 0])
    parts[:, 1:] = ring.add(parts[:, 1:], ring.add(T[:, 0, 1:], T[:, 1:, 0]))
    return Ciphertext(product.parties, parts)


def noise_bound(gadget: Gadget, parties: int) -> float:
    """A bound on what relinearisation adds to a coefficient of the phase: of the digits six standard deviations and more, t N k^2 digits B sigma 6 / P, and of
    the k^2 + k + 1 divisions by P their largest rounding error."""
    n, t, k = gadget.ring.degree, gadget.t, parties
    digits = 6.0 * t * n * k**2 * gadget.digits * 2.0**gadget.digit_bits * ERROR_DEVIATION / gadget.special
    divisions = ((k**2 + k) * n + 1) * (t + 1) if gadget.special > 1 else 0
    return float(digits + divisions)


__all__ = ["EvaluationKey", "evaluation_key", "noise_bound", "relinearise", "weighted"]
