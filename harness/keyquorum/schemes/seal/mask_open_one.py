"""`round_mask_open_one` of BFV and BGV: `round_mask_open` modulo an odd t, with the masked phase opened to party 0 alone (:mod:`keyquorum.sharing.opened_to_one`).

Items are those of `round_mask_open`: a mask modulo 2^l and modulo t. The first run opens z' = e + r modulo 2^l to member 0, which takes z' modulo t off its summand of the phase modulo t. So
the second run, that of `round_mask_open`, has nothing public to take off: zeros stand in its place. Its errors are the same, and decryptions by both are counted together (:mod:`.masked`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import submod
from keyquorum.dsl import ShareVector
from keyquorum.dsl.files.share_vector import Unsigned
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError
from keyquorum.programs.signatures import round_mask_open_odd_field_online, round_mask_open_one_ring_online
from keyquorum.schemes.base import MASKED_ONE
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.opened_to_one import check_opens_to_one, opened_to_first
from keyquorum.sharing.randomness import wipe
from keyquorum.sharing.variants import Destination, wipe_copies

from .variant import SealVariant

Words = NDArray[np.uint64]


@dataclass(frozen=True)
class SealMaskOpenOne(SealVariant):
    """The rounding for one BFV or BGV set, for semi-honest parties with additive shares: nobody sees what party 0 takes off its summand."""

    ROUNDINGS: ClassVar[tuple[str, ...]] = (MASKED_ONE,)

    @property
    def begins_with_opening(self) -> bool:
        """Not to all members, so they agree on the items before."""
        return False

    def use(
        self, group: RoundingGroup, z: Words, preprocessing: Sequence[Unsigned], to: Destination = "share", purpose: bytes = b""
    ) -> Words | None:  # fmt: skip
        """See :meth:`.SealVariant.use`. Two runs, modulo 2^l and modulo t; between them party 0 takes what the first opened to it off its summand modulo t."""
        if group.parts != 1:
            raise ParameterError(f"{self.name} takes one summand of a party: take round_mask_open")
        length, t, size = self.length, self.modulus, z.shape[-1]
        flat = [np.ascontiguousarray(m).reshape(m.shape[0], -1) for m in preprocessing]
        mask, mask_t = flat
        rest = z[1].copy()
        try:
            with group.ring(length).shares(ShareVector.from_sections([z[0], mask])) as masked:
                opened = masked.run(round_mask_open_one_ring_online(size=size, l=length), keep=True, purpose=purpose)
            seen = opened_to_first(group, opened, size, length, self.name)
            if seen is not None:
                rest[0] = submod(rest[0], seen % np.uint64(t), t)
            with group.field(t).shares(ShareVector.from_sections([rest, mask_t])) as phases:
                call = round_mask_open_odd_field_online(size=size, l=length, t=t, destination=to)
                words = phases.run(call, public=[np.zeros(size, np.int64)], keep=True, purpose=purpose)
                received: Words | None = (words % t).astype(np.uint64).reshape(1, -1) if words.size else None
                return phases.tail(size) if to == "share" else received
        finally:
            wipe(rest)
            wipe_copies(flat, preprocessing)


def seal_mask_open_one(committee: Committee, parameters: ParameterSet) -> SealMaskOpenOne:
    """The rounding of a committee. Raises ParameterError for committees against malicious parties, and for those that do not round with additive shares."""
    check_opens_to_one(committee, MASKED_ONE)
    return SealMaskOpenOne(MASKED_ONE, parameters, committee.summands)


__all__ = ["SealMaskOpenOne", "seal_mask_open_one"]
