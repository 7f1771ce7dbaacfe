"""Some parties of a committee that compute without the others, with additive shares among themselves."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from .committee import Committee
from .errors import CommitteeError, ParameterError
from .protocols import COMMITTEES

SUBSET_PROTOCOL = next(p.name for p in COMMITTEES.values() if p.sharing == "additive" and not p.macs)
"""The protocol of subsets: additive shares, of which all but one party may be corrupted."""


@dataclass(frozen=True)
class Members(Committee):
    """Some parties of another committee, ``origin``: party i of it is party ``numbers[i]`` there, with the same identity, address and folder."""

    origin: Committee | None = None
    numbers: tuple[int, ...] = ()

    @property
    def whole(self) -> Committee:
        """See :attr:`.Committee.whole`."""
        assert self.origin is not None
        return self.origin

    kind: ClassVar[str] = ""
    """What tells these parties from others with the same numbers."""

    @property
    def digest(self) -> bytes:
        """See :attr:`.Committee.digest`: of the whole committee, and of the numbers."""
        return hashlib.sha256(f"keyquorum {self.kind} v1".encode() + self.whole.digest + json.dumps(self.numbers).encode()).digest()

    def entries(self) -> list[tuple[str, str]]:
        """See :meth:`.Committee.entries`."""
        return [*self.whole.entries(), (f"{self.kind}.parties", numbers_text(self.numbers)), (f"{self.kind}.protocol", self.protocol)]

    def party_folder(self, index: int) -> Path:
        """See :meth:`.Committee.party_folder`: that of the party of the whole committee."""
        return self.whole.party_folder(self.numbers[index])

    def number_of(self, index: int) -> int:
        """See :meth:`.Committee.number_of`."""
        return self.numbers[index]

    def index_of(self, number: int) -> int:
        """See :meth:`.Committee.index_of`."""
        if number not in self.numbers:
            raise ParameterError(
                f"party {number} is none of parties {numbers_text(self.numbers)}, which do this without the others: name one of these"
            )
        return self.numbers.index(number)


@dataclass(frozen=True)
class Subset(Members):
    """Parties that compute without the others, with additive shares."""

    kind: ClassVar[str] = "subset"


@dataclass(frozen=True)
class Present(Members):
    """Parties of Shamir's sharing that take part while others are absent, with the protocol and the threshold of the whole committee, at the points that they have there."""

    kind: ClassVar[str] = "present"


ABSENT = "absent"
"""Field of a job: numbers of the parties that take no part in it (missing: none)."""
ANY = "any"
"""In place of numbers: any parties that are enough, whichever are live."""


def numbers_text(numbers: Sequence[int]) -> str:
    """Numbers of parties, for people."""
    return ", ".join(map(str, numbers))


def parse_numbers(text: str, option: str = "--parties") -> tuple[int, ...]:
    """The numbers in a text such as ``0,2``. Raises ParameterError."""
    try:
        return tuple(int(word) for word in text.split(","))
    except ValueError:
        raise ParameterError(f"{option} {text}: give numbers of parties, as 0,2") from None


def decrypts_apart(whole: Committee) -> bool:
    """Whether parties of this committee use keys without the others from their own shares: t + 1 of those that have a key together, where all follow the protocol. The counts of absent parties lag behind then."""
    can = whole.capabilities
    return can.adversary != "malicious" and (can.quorum is not None or can.sharing == "replicated")


def parties_of(committee: Committee, numbers: Sequence[int] | None) -> Committee:
    """The parties of a job: all (None), or these. Of Shamir's sharing for malicious parties those that are named go on with the same protocol while the others are absent; elsewhere :func:`members_of`. Raises ParameterError."""
    if numbers is None or not committee.malicious or not most_absent(committee):
        return members_of(committee, numbers)
    chosen, needed = tuple(sorted(numbers)), 2 * committee.threshold + 1
    if len(set(chosen)) < len(chosen) or not all(0 <= number < committee.size for number in chosen):
        raise ParameterError(f"parties {numbers_text(chosen)}: name parties of 0 to {committee.size - 1}, each once")
    if len(chosen) < needed:
        raise ParameterError(
            f"parties {numbers_text(chosen)}: {committee.threshold} of these may be malicious, and {committee.protocol} verifies among {needed} or more: name {needed}"
        )
    return _present(committee, chosen)


def members_of(committee: Committee, numbers: Sequence[int] | None) -> Committee:
    """The subset of these parties, or the whole committee (None). Raises ParameterError."""
    return committee if numbers is None else subset_of(committee, numbers)


def most_absent(committee: Committee) -> int:
    """How many parties of a committee may be absent while the others make new shares: as many as may be corrupt, if more than these are left, and of a committee for malicious parties as many as decide what is right. None but with
    Shamir's sharing: with every other one each party is needed."""
    n, t = committee.size, committee.threshold
    if committee.capabilities.sharing != "Shamir":
        return 0
    return max(0, min(t, n - 2 * t - 1 if committee.malicious else n - t - 1))


def present_of(committee: Committee, absent: Sequence[int]) -> Committee:
    """The parties of a committee but for the absent ones; the committee itself without any. Raises ParameterError for others than a few parties of Shamir's sharing (:func:`most_absent`)."""
    if not absent:
        return committee
    away, most = tuple(sorted(absent)), most_absent(committee)
    if isinstance(committee, Members) or len(set(away)) < len(away) or not all(0 <= number < committee.size for number in away):
        raise ParameterError(f"absent parties {numbers_text(away)}: name parties of the whole committee, of 0 to {committee.size - 1}, each once")
    if len(away) > most:
        n, t = committee.size, committee.threshold
        rest = (
            f"of {n} parties of which {t} may be {'malicious' if committee.malicious else 'corrupt'} {most or 'none'} may be absent"
            if committee.capabilities.sharing == "Shamir"
            else "no party may be absent, as all are needed"
        )
        raise ParameterError(f"{committee.protocol}: {rest}: bring back parties {numbers_text(away)}, or recover them first (keyquorum recover)")
    return _present(committee, tuple(number for number in range(committee.size) if number not in away))


def check_absent(named: Sequence[int], agreed: Sequence[int]) -> None:
    """Refuses a job without other parties than the operator of this one agrees to. A changed job would leave a live party out of a refresh: it would keep its old share, when the others have erased theirs. Raises ParameterError."""
    if sorted(named) == sorted(agreed):
        return
    if not named:
        raise ParameterError(
            f"--absent {numbers_text(sorted(agreed))}: by the job all parties take part: leave it out, or write the job again with it"
        )
    numbers = ",".join(map(str, sorted(named)))
    raise ParameterError(
        f"by the job parties {numbers} take no part, and keep the shares that they have: ask who wrote it, and give --absent {numbers} if you agree"
    )


def _present(committee: Committee, there: tuple[int, ...]) -> Committee:
    if len(there) == committee.size:
        return committee
    members = tuple(
        type(party)(i, party.host, party.port, party.fingerprint) for i, party in enumerate(committee.parties[number] for number in there)
    )
    return Present(
        committee.folder,
        committee.name,
        committee.protocol,
        committee.threshold,
        members,
        committee.openings,
        committee.base_ot,
        committee.lpn,
        committee,
        there,
    )


def subset_of(committee: Committee, numbers: Sequence[int]) -> Subset:
    """The subset of these parties, in ascending order. Raises ParameterError for numbers that name no subset of two parties or more."""
    chosen = tuple(sorted(numbers))
    if len(set(chosen)) < len(chosen) or len(chosen) < 2 or not all(0 <= number < committee.size for number in chosen):
        raise ParameterError(f"parties {numbers_text(numbers)}: name two parties or more of 0 to {committee.size - 1}, each once")
    if committee.verifies_products:
        raise CommitteeError(
            f"{committee.protocol} is for malicious parties, and a subset computes with additive shares, which do not let it verify anything: leave out --parties, and bring back the parties that are away (keyquorum recover, if their disks are lost)"
        )
    members = tuple(
        type(party)(i, party.host, party.port, party.fingerprint) for i, party in enumerate(committee.parties[number] for number in chosen)
    )
    made = Subset(committee.folder, committee.name, SUBSET_PROTOCOL, len(chosen) - 1, members, "direct", committee.base_ot, True, committee, chosen)
    made.check()
    return made


__all__ = [
    "ABSENT",
    "ANY",
    "SUBSET_PROTOCOL",
    "Members",
    "Present",
    "Subset",
    "check_absent",
    "members_of",
    "most_absent",
    "numbers_text",
    "parse_numbers",
    "parties_of",
    "present_of",
    "subset_of",
]
