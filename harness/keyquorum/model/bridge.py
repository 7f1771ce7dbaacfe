"""The parties of a resharing: members of an old committee, and all members of the new one, in one session. They send, toss and compare there; nothing is computed on shares of both."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .committee import COMMITTEE_FILE, Committee, Party, check_apart
from .errors import CommitteeError, ParameterError
from .plain import Json, is_count, is_hex
from .subset import SUBSET_PROTOCOL

OLD, NEW, DEALERS, ACCEPTED, KEPT = "old", "new", "dealers", "accept_origin", "keep_old"
"""Fields of a job between two committees: the files of both, the members of the old one that take part, what operators accept of the old one, and whether it keeps its shares."""


@dataclass(frozen=True)
class Bridge(Committee):
    """Members of an old committee, and the new one. The first parties are members ``numbers`` of ``old``, the others all members of ``new``. A host that is in both committees has a folder, an identity
    and an address for each, and a process for each. ``home``: the committee by whose folder this process was started."""

    old: Committee | None = None
    new: Committee | None = None
    numbers: tuple[int, ...] = ()
    home: Committee | None = None

    @property
    def sides(self) -> tuple[Committee, Committee]:
        """The old and the new committee."""
        assert self.old is not None and self.new is not None
        return self.old, self.new

    def place(self, index: int) -> tuple[Committee, int]:
        """The committee of a party, and its number there."""
        old, new = self.sides
        return (old, self.numbers[index]) if index < len(self.numbers) else (new, index - len(self.numbers))

    def title(self, index: int) -> str:
        """A party for people."""
        committee, number = self.place(index)
        return f"party {number} of {committee.name}"

    @property
    def olds(self) -> range:
        """The parties of the old committee."""
        return range(len(self.numbers))

    @property
    def news(self) -> range:
        """The parties of the new committee."""
        return range(len(self.numbers), self.size)

    @property
    def whole(self) -> Committee:
        """See :attr:`.Committee.whole`: the committee by whose folder this process was started."""
        assert self.home is not None
        return self.home

    @property
    def digest(self) -> bytes:
        """See :attr:`.Committee.digest`: of both committees, and the old members that take part."""
        old, new = self.sides
        return hashlib.sha256(b"keyquorum bridge v1" + old.digest + new.digest + json.dumps(self.numbers).encode()).digest()

    def entries(self) -> list[tuple[str, str]]:
        """See :meth:`.Committee.entries`."""
        old, new = self.sides
        sides = [(f"{side}.{name}", value) for side, committee in ((OLD, old), (NEW, new)) for name, value in committee.entries()]
        return [*sides, (DEALERS, json.dumps(self.numbers))]

    def party_folder(self, index: int) -> Path:
        """See :meth:`.Committee.party_folder`."""
        committee, number = self.place(index)
        return committee.party_folder(number)

    def started_by(self, index: int) -> tuple[Path, int]:
        """See :meth:`.Committee.started_by`."""
        committee, number = self.place(index)
        return committee.folder, number

    def index_of(self, number: int) -> int:
        """The party with this number in the committee by whose folder this process was started. Raises ParameterError for one that takes no part. Messages name parties by their place in the session."""
        old, new = self.sides
        if self.whole.digest == new.digest:
            return len(self.numbers) + new.index_of(number)
        if old.index_of(number) not in self.numbers:
            raise ParameterError(f"party {number} is not among the dealers {', '.join(map(str, self.numbers))}: start these, and all new members")
        return self.numbers.index(number)


def bridge_between(old: Committee, new: Committee, numbers: Sequence[int] | None = None, home: Committee | None = None) -> Bridge:
    """The parties of a resharing. ``numbers``: members of the old committee that take part, by default all. Raises CommitteeError for committees that are one, share an identity or an address, or lack a
    fingerprint, and ParameterError for numbers that are not members."""
    chosen = tuple(range(old.size)) if numbers is None else tuple(sorted(numbers))
    if not chosen or len(set(chosen)) < len(chosen) or not all(0 <= number < old.size for number in chosen):
        raise ParameterError(f"dealers {', '.join(map(str, chosen))}: name members of {old.name}, of 0 to {old.size - 1}, each once")
    if old.digest == new.digest:
        raise CommitteeError(f"{new.folder}: the same committee as {old.folder}: keyquorum refresh-shares makes new shares among the same members")
    for committee in (old, new):
        committee.check_complete()
    known = {party.fingerprint: party.index for party in old.parties}
    for party in new.parties:
        if party.fingerprint in known:
            raise CommitteeError(
                f"{new.folder}: party {party.index} has the identity of party {known[party.fingerprint]} of {old.name}: a member of both has one for each, make it with keyquorum init"
            )
    members = [*(old.parties[number] for number in chosen), *new.parties]
    check_apart([(p.host, p.port) for p in members], f"{new.folder}: among the old members and the new ones after them, ")
    parties = tuple(Party(i, p.host, p.port, p.fingerprint) for i, p in enumerate(members))
    name = f"{old.name} to {new.name}"
    return Bridge(new.folder, name, SUBSET_PROTOCOL, len(parties) - 1, parties, "direct", new.base_ot, True, old, new, chosen, home or old)


def bridge_job(old: Committee, new: Committee, numbers: Sequence[int] | None) -> Json:
    """The fields of a job between two committees."""
    return {OLD: old.text, NEW: new.text, DEALERS: list(bridge_between(old, new, numbers).numbers)}


def is_bridge_job(job: Json) -> bool:
    """Whether a job is between two committees."""
    return OLD in job and NEW in job


def bridge_of(committee: Committee, job: Json) -> Bridge:
    """The parties of a job between two committees, one of which this is; its folder and its addresses count. Raises CommitteeError for another committee, and ParameterError."""
    if not all(isinstance(job[side], str) for side in (OLD, NEW)) or not isinstance(job.get(DEALERS), list) or not all(map(is_count, job[DEALERS])):
        raise ParameterError("the job has no files of two committees and no list of dealers: write it again with keyquorum reshare --job")
    old, new = (Committee.parse(job[side], Path(f"the {side} committee of the job")) for side in (OLD, NEW))
    if committee.digest not in (old.digest, new.digest):
        raise CommitteeError(
            f"{committee.folder}: the job is between {old.name} and {new.name}, and this committee file is neither: take the one that the job was written with"
        )
    if committee.digest == old.digest:
        return bridge_between(committee, new, job[DEALERS], committee)
    return bridge_between(old, committee, job[DEALERS], committee)


@dataclass(frozen=True)
class _Other:
    """The committee that a member compares, of the two that a job names. ``side``: 0 the old one, 1 the new one. The texts end up in errors."""

    option: str
    side: int
    whose: str
    passes: str
    done: str


_TO = _Other("--to", 1, "who gets all keys", "passes all keys on to", "nothing was sent")
_FROM = _Other("--from", 0, "whose keys come", "passes on the keys of", "nothing was taken")


def check_to(committee: Committee, party: int, to: str | Path | None) -> None:
    """Refuses a job between two committees at an old member that does not know by itself who gets the keys: a job file may have been changed on its way, and names the new members and their fingerprints.
    ``to``: folder of the new committee, or its digest, 64 hexadecimal digits. A new member has its own folder, and needs none. Raises ParameterError where it is missing, or the job is of another kind,
    and CommitteeError where the job is for another new committee."""
    _check_other(committee, party, to, _TO)


def check_from(committee: Committee, party: int, old: str | Path | None) -> None:
    """Refuses a job between two committees at a new member that does not know by itself whose keys it gets: a changed job may name a committee of somebody who knows the keys that it passes on.
    ``old``: folder of the old committee, or its digest. An old member has its own folder, and needs none. Raises what :func:`check_to` does."""
    _check_other(committee, party, old, _FROM)


def check_accepted(committee: Committee, job: Json, accepted: str | None) -> None:
    """Refuses a job between two committees whose ``accept_origin`` is not what the operator of this party accepts: a changed job could make the old members do without their MACs. Raises ParameterError."""
    found = job.get(ACCEPTED) if isinstance(committee, Bridge) else None
    if found == accepted:
        return
    if found is None:
        raise ParameterError(f"--accept-origin {accepted}: the job accepts no origin: leave it out, or write the job again with it")
    raise ParameterError(
        f"the job accepts a weaker origin of the keys, {found!r}, and the operator of this party does not: ask who wrote the job, and give --accept-origin {found} if you agree"
    )


def check_kept(committee: Committee, job: Json, keep_old: bool) -> None:
    """Refuses a job between two committees that keeps the old shares, or erases them, where the operator of this party wants the other: a changed job would leave shares, or take them. Raises ParameterError."""
    if not isinstance(committee, Bridge) or job.get(KEPT, False) == keep_old:
        return
    if keep_old:
        raise ParameterError("--keep-old: by the job the old committee erases its shares: leave it out, or write the job again with it")
    raise ParameterError(
        "by the job the old committee keeps its shares, so the keys fall if either does: ask who wrote the job, and give --keep-old if you agree"
    )


def _check_other(committee: Committee, party: int, given: str | Path | None, other: _Other) -> None:
    if not isinstance(committee, Bridge):
        if given is not None:
            raise ParameterError(f"{other.option} is for reshare jobs, which pass keys on to another committee: leave it out")
        return
    found, who = committee.sides[other.side], committee.title(party)
    if given is None:
        if party in (committee.news, committee.olds)[other.side]:
            raise ParameterError(
                f"{who}: the job file alone says {other.whose}: give {other.option} with the folder of the {(OLD, NEW)[other.side]} committee, or with its digest, asked of its members over a channel that you trust"
            )
        return
    known = _digest_in(other.option, given)
    if known != found.digest.hex():
        raise CommitteeError(
            f"{who}: the job {other.passes} {found.name} with digest {found.digest.hex()[:16]}..., and {other.option} is {known[:16]}...: {other.done}; find out who changed the job, or write it again with keyquorum reshare --job"
        )


def _digest_in(option: str, given: str | Path) -> str:
    """The digest of a committee from its folder, or as written by people."""
    digits = str(given).strip().lower()
    if is_hex(digits, 64):
        return digits
    if not (Path(given) / COMMITTEE_FILE).is_file():
        raise ParameterError(
            f"{option} {given}: neither the folder of a committee nor a digest of 64 hexadecimal digits: keyquorum reshare --job prints it"
        )
    found = Committee.load(Path(given))
    found.check_complete()
    return found.digest.hex()


__all__ = [
    "ACCEPTED",
    "DEALERS",
    "KEPT",
    "NEW",
    "OLD",
    "Bridge",
    "bridge_between",
    "bridge_job",
    "bridge_of",
    "check_accepted",
    "check_from",
    "check_kept",
    "check_to",
    "is_bridge_job",
]
