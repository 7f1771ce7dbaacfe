"""A joint check of noise: one bit, for all phases of a request together, says whether all of them have less than half of the noise that their border allows.

Parties split scaled phases as for `round_ltz_circuit` (:mod:`.rounding`), and run `noise_check` on the low parts. It opens the bit to all, and nothing else; what the bit tells, and why its
noes are counted: docs/pages/security/leaks.md, "The check of noise".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from keyquorum.dsl import Persistence
from keyquorum.dsl.persistence import KeyTest
from keyquorum.model.committee import Committee
from keyquorum.model.domains import Ring
from keyquorum.model.errors import ParameterError
from keyquorum.programs.signatures import noise_check

from .joint import named
from .randomness import wipe
from .rounding import RoundingGroup, rounding_length, scaled_words

Words = NDArray[np.uint64]


def check_committee(committee: Committee) -> None:
    """Refuses committees that have no check of noise. Raises ParameterError."""
    if committee.authenticated or (committee.verifies_products and committee.ring_protocol is None):
        raise ParameterError(f"{committee.protocol}: there is no check of noise: it is for committees that round by a carry, leave out --check-noise")


def noise_within(group: RoundingGroup, u: Words, q: int, t: int, seed: bytes | None = None, names: Sequence[KeyTest] = ()) -> bool:
    """Whether all phases modulo q have noise in [-1/4, 1/4) in units of q/t, to within summands/2^l of it; every member calls this, and all get the same. ``u``: [parts, size], our summands;
    ``names``: of the runs that made the phases, where runs have names. Rounds and bytes: `noise_check`, for a size that is filled up to a power of two."""
    assert group.backend is not None
    length, size = rounding_length(q, t, group.summands), u.shape[1]
    padded = 1 << max(1, (size - 1).bit_length())
    low, residues = scaled_words(group, u, q, t, length)
    wipe(residues)
    filled = np.zeros((low.shape[0], padded), dtype=np.uint64)
    filled[:, :size] = low
    if 0 in group.held:  # no noise: e + 2^(l-1) with e = 0
        filled[group.held.index(0), size:] = 1 << (length - 1)
    wipe(low)
    bits = group.backend.ring_bits(max(length, padded.bit_length() + 1) + 1)
    ring = Persistence.from_words(filled)
    try:
        if names:
            named(ring, group.ring_protocol, Ring(bits), "low parts of phases, for the check of noise", names)
        call = noise_check(count=1, N=padded, l=length, ring_length=bits)
        opened = group.run(group.ring_protocol, Ring(bits), call, persistence=ring, seed=seed)
        return bool(opened[0] & 1)
    finally:
        ring.wipe()
        wipe(filled)


__all__ = ["check_committee", "noise_within"]
