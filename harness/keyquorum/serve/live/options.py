"""Options of parties that serve with whichever others are live, and which committees can."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError
from keyquorum.model.subset import ANY
from keyquorum.schemes.quorum_shares import own_shares


@dataclass(frozen=True)
class LiveOwn:
    """Options that each party chooses for itself. ``host``, ``port``: where it answers the other parties (port 0: any free one). ``places``: where all parties answer, in their order (empty: at the places in
    their files ``serve.json``, on this host)."""

    host: str = "127.0.0.1"
    port: int = 0
    places: Sequence[tuple[str, int]] = ()


def check_live(committee: Committee) -> int:
    """How many parties of a committee serve at a time. Raises ParameterError for committees of which all must be there."""
    if own_shares(committee) is None:
        raise ParameterError(
            f"{committee.protocol}: --parties {ANY} is for committees whose parties decrypt without the others from their own shares, shamir and rep-field: leave it out, or take another committee"
        )
    return committee.threshold + 1


__all__ = ["LiveOwn", "check_live"]
