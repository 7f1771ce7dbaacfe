"""Preprocessing that a pool stores (:class:`PreprocessingKind`), and roundings in two parts: how it is made, and how a decryption uses it. Each scheme
has its own roundings (:class:`Variant`).

Preprocessing is a list of sections. A section is an array [parts, rows, items] of share words: for every item (a decryption, or a block) a column of
``rows`` shares, of which the low ``bits`` bits count. Shares with MACs take two words each, and two parts: share and MAC.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import addmod
from keyquorum.dsl.files.origin import Origin
from keyquorum.dsl.files.share_vector import Unsigned
from keyquorum.model.errors import ProgramError

from .group import RoundingGroup

Words = NDArray[np.uint64]
Destination = int | Literal["all", "share"]
"""Who gets the result of a rounding: a member by its number, all members, or none of them, and it stays shared."""
VARIANTS = ("round_ltz_circuit", "round_ltz_table", "round_mask_open", "round_mask_open_one", "round_flood")


class Preprocessing(list[Unsigned]):
    """Sections of correlated randomness, [parts, rows, items] each. ``origins``: those of :attr:`.ShareVector.origins`."""

    def __init__(self, sections: Iterable[Unsigned], origins: Sequence[Origin] = ()) -> None:
        super().__init__(sections)
        self.origins = [origin.copy() for origin in origins]

    @property
    def arrays(self) -> list[Unsigned]:
        """All that must be wiped."""
        return [*self, *(origin.words for origin in self.origins)]


def join_slices(slices: Sequence[Preprocessing], origins: Sequence[Origin]) -> Preprocessing:
    """Items that were made one slice after another, in one session, as one; wipes the slices. ``origins``: of the whole (:meth:`.PrivateNumbers.origins_of_all`)."""
    whole = Preprocessing((np.concatenate(rows, axis=2) for rows in zip(*slices, strict=True)), origins)
    for each in slices:
        for words in each.arrays:
            words.fill(0)
    return whole


@dataclass(frozen=True)
class Section:
    """Part of the preprocessing of an item: ``rows`` shares modulo 2^bits, in ``words`` words each."""

    rows: int
    bits: int
    words: int = 1


PAD_SECURITY = 80
"""A receiver outside takes a wrong pad with probability 2^-PAD_SECURITY at most."""


@dataclass(frozen=True)
class PaddedOutput:
    """How rounded phases are opened under pads of receivers outside (program `client_outputs`): they are modulo 2^``bits``, and 2^``shift`` times a message."""

    bits: int
    shift: int

    @property
    def checks(self) -> int:
        """Combinations that are opened of each pad: a wrong one passes each with probability 2^-(shift + 1)."""
        return -(-PAD_SECURITY // (self.shift + 1))

    @property
    def rows(self) -> int:
        """Random elements that a message takes: its pad, and a mask of each combination."""
        return 1 + self.checks


class PreprocessingKind(ABC):
    """Items of one form, which a pool stores, and how they are made for one committee. An item serves one operation."""

    @property
    def verified(self) -> bool:
        """Whether no input of a party has to be right, so that committees that verify products can make and use them."""
        return False

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the pool, and of its folder."""

    @property
    @abstractmethod
    def described(self) -> str:
        """A text of all parameters that preprocessing depends on."""

    @property
    @abstractmethod
    def sections(self) -> list[Section]:
        """What an item needs, in the order of the share files."""

    @property
    @abstractmethod
    def begins_with_opening(self) -> bool:
        """Whether the online part begins with an opening to all members, whose messages compare their context."""

    def parts(self, group: RoundingGroup) -> int:
        """Components of a share: summands that a party knows, or a share and its MAC."""
        return group.parts

    @abstractmethod
    def make(self, group: RoundingGroup, size: int) -> Preprocessing:
        """The preprocessing of ``size`` items, [parts, rows, size] a section; every member calls this."""


class Variant(PreprocessingKind):
    """A rounding for one parameter set and one committee, and the preprocessing that a pool stores for it. ``rounding``: one of :data:`VARIANTS`."""

    rounding: str

    @property
    def words(self) -> int:
        """64-bit words of a share."""
        return 1

    @property
    def padded(self) -> PaddedOutput | None:
        """Under which pads receivers outside get messages; None where they get shares, or nothing, or where items have no pads."""
        return None

    def for_receivers(self, preprocessing: Sequence[Unsigned]) -> Unsigned:
        """The rows of some items for receivers outside, [parts, rows, items], a view (:func:`.receiver_section`). Raises ProgramError where items have none."""
        raise ProgramError(f"items of {self.name} have no pads for receivers outside: decrypt to a party")

    @abstractmethod
    def use(
        self, group: RoundingGroup, z: Words, preprocessing: Sequence[Unsigned], to: Destination = "share", purpose: bytes = b""
    ) -> Words | None:  # fmt: skip
        """Rounds phases z, whose last axis counts words, with one item of preprocessing each; every member calls this.

        Members have compared number and purpose before, or do by the first messages, as ``purpose`` (:meth:`.Backend.run`). ``to``: ``share``
        gives every member its shares of the rounded phases, [parts, size]; a member's number, or ``all``, gives that member (all) the words
        themselves, [1, size], and others None.
        """


def origins_of(preprocessing: Sequence[Unsigned]) -> list[Origin]:
    """The origins that came with items; none, if they are not of a pool."""
    return preprocessing.origins if isinstance(preprocessing, Preprocessing) else []


def wipe_copies(copies: Sequence[Words], items: Sequence[Unsigned]) -> None:
    """Overwrites what was copied of items; what is a view of them is their owner's."""
    for mine, theirs in zip(copies, items, strict=True):
        if not np.shares_memory(mine, theirs):
            mine.fill(0)


def comparison_ands(length: int) -> int:
    """ANDs of `round_ltz_circuit` that need triples. Its prefix tree has l - 1 ranges that generate, and those that do not begin at 0
    propagate as well (Programs/Library/trees.py)."""
    return 2 * (length - 1) - (length - 1).bit_length()


def low_mask(bits: int) -> np.uint64:
    """2^bits - 1."""
    return np.uint64((1 << bits) - 1)


def combine_modulo(shares: Sequence[Words], modulus: int) -> Words:
    """The numbers modulo ``modulus`` of which the members hold these shares ([parts, size] each): the sum of the first summands."""
    total = np.zeros(shares[0].shape[1], dtype=np.uint64)
    for share in shares:
        total = addmod(total, share[0] % np.uint64(modulus), modulus)
    return total


def combine(shares: Sequence[Words], bits: int) -> Words:
    """The words of which the members hold these shares ([parts, size] each): the sum of the first summands."""
    total = np.zeros(shares[0].shape[1], dtype=np.uint64)
    for share in shares:
        total += share[0]
    return total & low_mask(bits)
