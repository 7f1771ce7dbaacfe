"""What a receiver takes of parties that say that their committee passed the keys on (:mod:`.moved`)."""

from __future__ import annotations

from collections.abc import Mapping

from keyquorum.model.committee import Committee
from keyquorum.model.errors import MovedError, PartyError
from keyquorum.model.plain import Json
from keyquorum.parties.epochs.moved import checked_move


class Moved(MovedError, PartyError):
    """The keys of a committee are with another one, as t + 1 of its members and all new ones have signed. ``committee``: the new one, as the record has it (``name``, ``protocol``, ``threshold``, ``parties``: fingerprints,
    ``digest``); ``epoch``: number of the change. Nothing was computed."""

    def __init__(self, text: str, committee: Json, epoch: int) -> None:
        super().__init__(text)
        self.committee, self.epoch = committee, epoch

    def leads_to(self, committee: Committee) -> bool:
        """Whether a committee, as its file has it, is the new one."""
        return bool(committee.digest.hex() == self.committee["digest"])


def moved(committee: Committee, shown: Mapping[str, bytes]) -> Moved:
    """The error of a receiver, of what parties showed. Raises EpochError for what proves nothing."""
    move = checked_move(committee.whole, shown)
    text = f"moved: {move.text()}, as {move.signed} members of {committee.whole.name} have signed: ask that one"
    return Moved(text, move.record.new, move.record.number)


__all__ = ["Moved", "moved"]
