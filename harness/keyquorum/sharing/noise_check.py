"""A joint check of noise: one bit, for all phases of a request together, says whether all of them have less than half of the noise that their border allows.

Parties split scaled phases as for `round_ltz_circuit` (:mod:`.rounding`), and run `noise_check` on the low parts. It opens the bit to all, and nothing else; what the bit tells, and why its
noes are counted: docs/pages/security/leaks.md, "The check of noise".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from keyquorum.dsl import ShareVector
from keyquorum.dsl.files.origin import Origin
from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError
from keyquorum.programs.signatures import noise_check

from .field_variant import over_fields
from .group import RoundingGroup
from .numbers import kind_of
from .randomness import wipe
from .rounding import rounding_length, scaled_words

Words = NDArray[np.uint64]


def check_committee(committee: Committee) -> None:
    """Refuses committees that have no check of noise. Raises ParameterError."""
    if over_fields(committee) or not kind_of(committee).plain_shares:
        raise ParameterError(f"{committee.protocol}: there is no check of noise: it is for committees that round by a carry, leave out --check-noise")


def noise_within(group: RoundingGroup, u: Words, q: int, t: int, origins: Sequence[Origin] = ()) -> bool:
    """Whether all phases modulo q have noise in [-1/4, 1/4) in units of q/t, to within summands/2^l of it; every member calls this, and all get the same. ``u``: [parts, size], our summands;
    ``origins``: of the phases. Rounds and bytes: `noise_check`, for a size that is filled up to a power of two."""
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
    try:
        with group.ring(bits).shares(ShareVector.from_words(filled)) as ring:
            ring.derive_origin("low parts of phases, for the check of noise", origins)
            return bool(ring.run(noise_check(count=1, N=padded, l=length, ring_length=bits))[0] & 1)
    finally:
        wipe(filled)


__all__ = ["check_committee", "noise_within"]
