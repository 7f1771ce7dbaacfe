"""What participants of a change sign: votes, refusals, promises, commits. A statement names the record by its SHA-256, so it is of no other change; it is never taken back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from keyquorum.model.epoch import Seen, Stage, Standing, Who, may_name
from keyquorum.model.errors import EpochError
from keyquorum.model.plain import Json, is_hex, json_loads
from keyquorum.parties import signatures

from .record import FORMAT, Record

SIGNED = (Stage.VOTED, Stage.REFUSED, Stage.FROZEN, Stage.THAWED, Stage.COMMITTED, Stage.GIVEN_UP, Stage.GONE_BACK)
"""Stages that a participant signs."""
_CERTIFICATE_DIGITS = 1 << 14
"""Most hexadecimal digits of a certificate."""
_NAME_NOBODY = {Stage.VOTED, Stage.REFUSED}
"""Statements of a participant that never froze before."""
_AFTER_A_COMMIT = {Stage.COMMITTED, Stage.GONE_BACK}
"""Statements that an honest participant never signs beside one that it gave up."""
_AFTER_A_VOTE = {Stage.VOTED, Stage.FROZEN, Stage.THAWED, *_AFTER_A_COMMIT}
"""The same beside a refusal."""


@dataclass(frozen=True)
class Statement:
    """A signed statement. ``lost``: whom a frozen participant named, and of a later one whom it had named; sorted."""

    stage: Stage
    who: Who
    lost: tuple[Who, ...]
    certificate: str
    signature: str

    def to_json(self) -> Json:
        """As it is stored and sent."""
        return {"kind": self.stage.value, "who": self.who, "lost": list(self.lost), "certificate": self.certificate, "signature": self.signature}


def message(record: Record, stage: Stage, lost: Iterable[Who]) -> bytes:
    """What a statement signs."""
    return " ".join(["keyquorum epoch v1", stage.value, record.digest, *lost]).encode()


def signed(record: Record, identity: Path, stage: Stage, lost: Iterable[Who]) -> Statement:
    """A statement of the party with this identity."""
    named, certificate = tuple(sorted(lost)), signatures.certificate_in(identity)
    return Statement(stage, signatures.fingerprint_of(certificate), named, certificate, signatures.sign(identity, message(record, stage, named)))


def checked(record: Record, data: Json, where: str) -> Statement:
    """A statement of this change from JSON. Raises EpochError, which names its source and what is wrong."""
    try:
        said = Statement(Stage(data["kind"]), data["who"], tuple(data["lost"]), data["certificate"], data["signature"])
        digits = len(said.certificate)
        proper = is_hex(said.signature, 128) and digits <= _CERTIFICATE_DIGITS and digits % 2 == 0 and is_hex(said.certificate, digits)
        proper = (
            proper
            and is_hex(said.who, 64)
            and said.stage in SIGNED
            and len(data) == len(said.to_json())
            and not (said.lost and said.stage in _NAME_NOBODY)
            and all(is_hex(who, 64) for who in said.lost)
            and list(said.lost) == sorted(set(said.lost))
        )
    except (ValueError, KeyError, TypeError):
        proper = False
    if not proper:
        raise EpochError(f"{where}: not a statement of a change of an epoch: run the same version everywhere")
    if said.who not in record.roles.everybody or signatures.fingerprint_of(said.certificate) != said.who:
        raise EpochError(
            f"{where}: a statement of {said.who[:16]}, whose certificate is not one of this change's committees: ask that party for its own file"
        )
    if not signatures.is_signed(said.certificate, message(record, said.stage, said.lost), said.signature):
        raise EpochError(f"{where}: {said.who[:16]} did not sign this for the record {record.digest[:16]}: it is of another change, or was changed")
    return said


def _excluded(one: Statement, other: Statement) -> bool:
    """Whether an honest participant never signs both: another end, or others that it named as lost."""
    pair = {one.stage, other.stage}
    return (
        (Stage.REFUSED in pair and bool(pair & _AFTER_A_VOTE))
        or (Stage.GIVEN_UP in pair and bool(pair & _AFTER_A_COMMIT))
        or (pair <= {Stage.FROZEN, Stage.THAWED, Stage.COMMITTED} and not _follows(one, other) and not _follows(other, one))
    )


def _follows(before: Statement, after: Statement) -> bool:
    """Whether a participant may sign the second one later, by whom both name as lost: it may freeze for more, and what follows names the same as it did last."""
    first, last = set(before.lost), set(after.lost)
    return first <= last if before.stage == Stage.FROZEN else first == last and after.stage != Stage.FROZEN


def _contradiction(one: Statement, other: Statement) -> str:
    return f"{one.who[:16]} signed both {one.stage} and {other.stage} in ways that exclude each other: see what became of that party"


def standing_after(before: Standing, said: Statement) -> Standing:
    """The standing of a participant that has signed one more statement."""
    return Standing(said.stage, frozenset(said.lost) if said.stage == Stage.FROZEN else before.lost)


class Statements:
    """All statements of a change that a participant has, its own included. A participant that contradicts itself is named, and both statements are kept: others may depend on either."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self._said: dict[tuple[Who, Stage, tuple[Who, ...]], Statement] = {}

    def __iter__(self) -> Iterator[Statement]:
        return iter(self._said.values())

    def __len__(self) -> int:
        return len(self._said)

    def knows(self, statement: Statement) -> bool:
        """Whether there is this statement, by another signature perhaps."""
        return (statement.who, statement.stage, statement.lost) in self._said

    def add(self, statement: Statement) -> bool:
        """Adds a checked statement; whether it is new. Raises EpochError for one that no participant may sign, and for a second one of a kind that excludes the first, which stays."""
        who, stage = statement.who, statement.stage
        if stage == Stage.VOTED and who not in self.record.roles.new:
            raise EpochError(f"{who[:16]} voted, and is not a member of the new committee: its vote does not count")
        if (statement.lost or stage == Stage.FROZEN) and not may_name(self.record.roles, who, frozenset(statement.lost)):
            raise EpochError(
                f"{who[:16]} named {len(statement.lost)} parties as lost, itself or too many: this counts for nothing; see what became of it"
            )
        if self.knows(statement):
            return False
        for known in self:
            if (known.who, known.stage) == (who, stage) and (stage != Stage.FROZEN or _excluded(known, statement)):
                raise EpochError(_contradiction(known, statement))
        self._said[who, stage, statement.lost] = statement
        return True

    def contradictions(self, first: int | None = None) -> list[str]:
        """A line for each participant that signed two statements of which an honest one signs at most one. ``first``: among the first so many alone."""
        said = list(self)[:first]
        found = [
            _contradiction(one, other) for i, one in enumerate(said) for other in said[i + 1 :] if one.who == other.who and _excluded(one, other)
        ]
        return [line for i, line in enumerate(found) if line[:16] not in {before[:16] for before in found[:i]}]

    def of(self, stage: Stage) -> frozenset[Who]:
        """Who made this statement."""
        return frozenset(said.who for said in self if said.stage == stage)

    @property
    def seen(self) -> Seen:
        """The same for the state machine."""
        frozen = {who: frozenset(frozenset(s.lost) for s in self if (s.who, s.stage) == (who, Stage.FROZEN)) for who in self.of(Stage.FROZEN)}
        direct = frozenset(s.who for s in self if s.stage == Stage.COMMITTED and not s.lost)
        of = self.of
        return Seen(of(Stage.VOTED), of(Stage.REFUSED), frozen, of(Stage.THAWED), of(Stage.COMMITTED), direct, of(Stage.GIVEN_UP))

    def votes(self) -> bytes | None:
        """The file ``epochs/E.votes``, with the votes of all new members in their order; None while one is missing."""
        found = {vote.who: vote.to_json() for vote in self if vote.stage == Stage.VOTED}
        if found.keys() < self.record.roles.new:
            return None
        votes = [found[who] for who in self.record.voters]
        return json.dumps({"format": FORMAT, "record": self.record.digest, "votes": votes}, indent=1).encode() + b"\n"


def read_votes(record: Record, data: bytes, where: str) -> list[Statement]:
    """The votes in an ``E.votes``: one of every new member, verified. Raises EpochError."""
    try:
        said = json_loads(data)
        votes, proper = list(said["votes"]), said["format"] == FORMAT and is_hex(said["record"], 64)
    except (ValueError, KeyError, TypeError):
        proper = False
    if not proper:
        raise EpochError(f"{where}: not votes of an epoch, or damaged ones: copy epochs/{record.name}.votes again from another party")
    if said["record"] != record.digest:
        raise EpochError(f"{where}: votes for another record: copy epochs/{record.name}.votes and .json from one party")
    found = [checked(record, vote, where) for vote in votes]
    if any(vote.stage != Stage.VOTED for vote in found) or [vote.who for vote in found] != record.voters:
        raise EpochError(f"{where}: not one vote of every new member: copy epochs/{record.name}.votes again from another party")
    return found
