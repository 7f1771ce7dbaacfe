"""What old members show of a change by which a committee passed its keys on, and what is taken of it: the record, and signed statements that the change holds.

A change to another committee holds if all new members signed that they committed (:func:`.may_erase`): then no honest one among them drops the keys again. Who trusts the old committee believes this if t + 1 old members signed
that they know it, so that an honest one did. With additive shares and MACs these are all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from keyquorum.model.committee import Committee
from keyquorum.model.epoch import Stage, Who, may_erase
from keyquorum.model.errors import EpochError, KeyQuorumError
from keyquorum.model.plain import json_loads

from .change import Change
from .record import Record
from .statements import Statements, checked


@dataclass(frozen=True)
class Move:
    """A change that holds. ``record``: of it; ``signed``: old members that said so."""

    record: Record
    signed: int

    def text(self) -> str:
        """Where the keys are, for people."""
        new = self.record.new
        return f"since epoch {self.record.number} the committee {new['name']} ({new['protocol']}, {len(new['parties'])} parties) with the digest {new['digest']} holds the keys"


def proof_of_move(committee: Committee, party: int) -> bytes:
    """What this old member shows: a JSON object with ``record`` and ``statements``; empty where its keys did not move, or nothing shows yet that the change holds. Raises EpochError."""
    change = Change.current(committee, party)
    if change is None or change.is_new or change.uncommitted():
        return b""
    return json.dumps({"record": change.record.data.decode(), "statements": [said.to_json() for said in change.statements(Stage.COMMITTED)]}).encode()


def checked_move(committee: Committee, shown: Mapping[str, bytes]) -> Move:
    """The change that ``shown`` proves together, by whom: to another committee, signed by t + 1 members of this one and by all new members. A bad statement counts for nothing. Raises EpochError, which names who showed
    what proves nothing."""
    found: dict[str, Statements] = {}
    for who, data in shown.items():
        with suppress(EpochError, ValueError, KeyError, TypeError, AttributeError):
            said = json_loads(data)
            record = Record.parse(said["record"].encode(), who)
            if record.old["digest"] != committee.digest.hex() or list(record.old["parties"]) != [p.fingerprint for p in committee.parties]:
                continue
            statements = found.setdefault(record.digest, Statements(record))
            for each in said["statements"]:
                with suppress(KeyQuorumError):
                    statements.add(checked(record, each, who))
    for statements in found.values():
        record, signed = statements.record, statements.of(Stage.COMMITTED)
        if record.new["digest"] != record.old["digest"] and may_erase(record.roles, statements.seen) and _enough(committee, signed):
            return Move(record, len(signed & _members(committee)))
    raise EpochError(
        f"{', '.join(shown)} said that the keys moved to another committee, and not {committee.threshold + 1} members of {committee.name} and all new ones have signed this: believe nobody, ask their operators"
    )


def _members(committee: Committee) -> frozenset[Who]:
    return frozenset(party.fingerprint for party in committee.parties)


def _enough(committee: Committee, signed: frozenset[Who]) -> bool:
    """Whether an honest member of the committee is among those who signed."""
    return len(signed & _members(committee)) > committee.threshold


__all__ = ["Move", "checked_move", "proof_of_move"]
