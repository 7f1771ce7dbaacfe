"""What `round_mask_open_one` asks of a committee, and what its first run gives. Paper: Ajax (ePrint 2025/1834), section 4.3 and figure 10, step 2.

The masked phase e + r is opened to member 0 alone, which takes it off its summand of the phase: of additive shares only the party that adds a public number has to
know it. Every other member sends l bits to member 0, whatever their number. What is opened has the same distribution as by `round_mask_open`, and one member sees it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError, ProgramError
from keyquorum.model.protocols import PROTOCOLS

from .group import RoundingGroup
from .variants import low_mask

Words = NDArray[np.uint64]


def check_opens_to_one(committee: Committee, rounding: str) -> None:
    """Raises ParameterError for committees against malicious parties, and for those that do not round with additive shares."""
    if committee.capabilities.adversary == "malicious":
        raise ParameterError(
            f"{committee.protocol}: {rounding} lets party 0 alone see a number and take it off, and nobody could check it: take round_mask_open, or round_ltz_circuit"
        )
    if PROTOCOLS[committee.rounding_protocols[0]].sharing != "additive":
        raise ParameterError(f"{committee.protocol}: {rounding} takes additive shares, of which each party has one summand: take round_mask_open")


def opened_to_first(group: RoundingGroup, opened: NDArray[np.int64], size: int, length: int, name: str) -> Words | None:
    """What a run opened modulo 2^length to member 0; None at the others. Raises ProgramError for another count of numbers."""
    if opened.size != (size if group.me == 0 else 0):
        raise ProgramError(f"{name}: member {group.me} got {opened.size} numbers of party 0's {size}: a backend or a member is at fault")
    return opened.view(np.uint64) & low_mask(length) if opened.size else None


__all__ = ["check_opens_to_one", "opened_to_first"]
