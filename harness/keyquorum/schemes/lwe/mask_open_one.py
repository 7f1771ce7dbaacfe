"""`round_mask_open_one` of LWE: `round_mask_open` with the masked phase opened to party 0 alone. Paper: Ajax (ePrint 2025/1834), section 4.3 and figure 10, step 2.

Items are those of `round_mask_open`. Every other party sends l bits to party 0, and k bits to the receiver, for any number of parties. What is opened has the same distribution, and one party sees it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keyquorum.dsl import ShareVector
from keyquorum.fhe.lwe import LweParameters
from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError
from keyquorum.programs.signatures import round_mask_open_one_online, round_mask_open_one_ring_online
from keyquorum.schemes.base import MASKED_ONE
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.numbers import kind_of
from keyquorum.sharing.opened_to_one import check_opens_to_one, opened_to_first
from keyquorum.sharing.randomness import wipe
from keyquorum.sharing.variants import Destination, low_mask, wipe_copies

from .variant import LweVariant, Words


@dataclass(frozen=True)
class MaskOpenOne(LweVariant):
    """The rounding for one LWE parameter set, for semi-honest parties with additive shares: nobody sees what party 0 takes off its summand."""

    @property
    def verified(self) -> bool:
        """No: a wrong number of party 0 gives another message."""
        return False

    @property
    def begins_with_opening(self) -> bool:
        """Not to all members, so they agree on the items before."""
        return False

    def use(
        self, group: RoundingGroup, z: Words, preprocessing: Sequence[NDArray[Any]], to: Destination = "share", purpose: bytes = b""
    ) -> Words | None:  # fmt: skip
        """See :meth:`.LweVariant.use`. Two runs, modulo 2^l and modulo 2^k; between them party 0 takes what the first opened to it off its summand of z."""
        self._kind_in(group)
        if group.parts != 1 or self.words != 1:
            raise ParameterError(f"{self.name} takes one summand of a party, of one word: take round_mask_open")
        p, size = self.parameters, z.shape[1]
        l, low = p.noise_length, low_mask(p.noise_length)  # noqa: E741
        (mask,) = flat = [m.reshape(m.shape[0], -1) for m in preprocessing]
        short, rest = [z & low, mask & low], z.copy()
        try:
            with group.ring(l).shares(ShareVector.from_sections(short)) as masked:
                opened = masked.run(round_mask_open_one_ring_online(size=size, l=l), keep=True, purpose=purpose)
            seen = opened_to_first(group, opened, size, l, self.name)
            if seen is not None:
                rest[0] -= seen
                rest &= low_mask(p.ring_bits)
            with group.ring(p.ring_bits).shares(ShareVector.from_sections([rest, mask])) as phases:
                call = round_mask_open_one_online(size=size, l=l, j=p.message_bits, destination=to, ring_length=p.ring_bits)
                words = phases.run(call, keep=True, purpose=purpose)
                received: Words | None = words.view(np.uint64).reshape(1, -1) if words.size else None
                return phases.tail(size) if to == "share" else received
        finally:
            wipe(*short, rest)
            wipe_copies(flat, preprocessing)


def mask_open_one(committee: Committee, parameters: LweParameters) -> MaskOpenOne:
    """The rounding of a committee. Raises ParameterError for committees against malicious parties, and for those that do not round with additive shares."""
    check_opens_to_one(committee, MASKED_ONE)
    return MaskOpenOne(MASKED_ONE, parameters, kind=kind_of(committee), parties=committee.size)


__all__ = ["MaskOpenOne", "mask_open_one"]
