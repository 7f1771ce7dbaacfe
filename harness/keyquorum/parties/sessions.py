"""What a session of a committee's parties must know before its first engine."""

from __future__ import annotations

from keyquorum._engine import Session
from keyquorum.model.committee import Committee
from keyquorum.model.subset import Present


def prepare(session: Session, committee: Committee) -> None:
    """Tells a session how its parties open values and transfer obliviously, and where they hold shares if others are absent."""
    session.set_openings(committee.openings)
    session.set_base_ot(committee.base_ot)
    session.set_lpn(committee.lpn)
    if isinstance(committee, Present):
        session.set_members(committee.numbers, committee.whole.size)


__all__ = ["prepare"]
