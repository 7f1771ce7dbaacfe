"""Some parties of a committee that compute without the others, with additive shares among themselves."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .committee import Committee
from .errors import CommitteeError, ParameterError
from .protocols import COMMITTEES

SUBSET_PROTOCOL = next(p.name for p in COMMITTEES.values() if p.sharing == "additive" and not p.macs)
"""The protocol of subsets: additive shares, of which all but one party may be corrupted."""


@dataclass(frozen=True)
class Subset(Committee):
    """A committee of some parties of another one, ``origin``: party i of it is party ``numbers[i]`` there, with the same identity, address and folder."""

    origin: Committee | None = None
    numbers: tuple[int, ...] = ()

    @property
    def whole(self) -> Committee:
        """See :attr:`.Committee.whole`."""
        assert self.origin is not None
        return self.origin

    @property
    def digest(self) -> bytes:
        """See :attr:`.Committee.digest`: of the whole committee, and of the numbers."""
        return hashlib.sha256(b"keyquorum subset v1" + self.whole.digest + json.dumps(self.numbers).encode()).digest()

    def entries(self) -> list[tuple[str, str]]:
        """See :meth:`.Committee.entries`."""
        return [*self.whole.entries(), ("subset.parties", numbers_text(self.numbers)), ("subset.protocol", self.protocol)]

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


ANY = "any"
"""In place of numbers: any parties that are enough, whichever are live."""


def numbers_text(numbers: Sequence[int]) -> str:
    """Numbers of parties, for people."""
    return ", ".join(map(str, numbers))


def parse_numbers(text: str) -> tuple[int, ...]:
    """The numbers in a text such as ``0,2``. Raises ParameterError."""
    try:
        return tuple(int(word) for word in text.split(","))
    except ValueError:
        raise ParameterError(f"--parties {text}: give numbers of parties, as 0,2") from None


def decrypts_apart(whole: Committee) -> bool:
    """Whether parties of this committee use keys without the others from their own shares: t + 1 of those that have a key together, where all follow the protocol. The counts of absent parties lag behind then."""
    can = whole.capabilities
    return can.adversary != "malicious" and (can.quorum is not None or can.sharing == "replicated")


def members_of(committee: Committee, numbers: Sequence[int] | None) -> Committee:
    """The subset of these parties, or the whole committee (None). Raises ParameterError."""
    return committee if numbers is None else subset_of(committee, numbers)


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


__all__ = ["ANY", "SUBSET_PROTOCOL", "Subset", "members_of", "numbers_text", "parse_numbers", "subset_of"]
