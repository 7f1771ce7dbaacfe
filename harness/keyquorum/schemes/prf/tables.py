"""One-time tables for AES: for each S-box of a block a random byte r, and its one-hot vector (program `aes_hot`). A pool stores them, an item for each
block.

An evaluation opens y = x xor r for each input x of an S-box. With r used once, y is uniform and says nothing. With r used for x and for x', the two
openings are x xor r and x' xor r, so everybody who saw them knows x xor x'. So a party claims items in the journal of the pool before it opens anything,
and there is no padding: a block without an item of its own would open its state.

The results are shares that receivers see, all of them. They are fresh: the 8 bits of a value are sums of entries of the one-hot vector, which have 225
products of 15 by 15 entries as summands, each with a share that is new. No sum of these bits leaves all products out, for any y
(tests/schemes/test_prf_tables.py), so each party's shares of the 8 bits are uniform, whatever its share of the key is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from keyquorum.model.committee import Committee
from keyquorum.model.domains import Sharing
from keyquorum.model.errors import ParameterError
from keyquorum.programs.signatures import aes_hot
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.numbers import kind_of
from keyquorum.sharing.variants import Preprocessing, PreprocessingKind, Section

from .key import AES, sharing_of

MASKS, HOT = 8 * 160, 256 * 160
"""Bits of a block: of the bytes r, and of their one-hot vectors."""
AT_ONCE = 64
"""Blocks that one run of a program makes or takes: each takes 338 kB of memory there for each summand that a party holds."""
CHUNK = 256
"""Blocks of a file of the pool, if whoever fills it does not say otherwise: 5,280 bytes each for each summand."""


@dataclass(frozen=True)
class AesTables(PreprocessingKind):
    """Items of :data:`MASKS` + :data:`HOT` shared bits, for blocks under any key of the committee. ``sharing``: protocol and domain of the shares."""

    sharing: Sharing

    @property
    def name(self) -> str:
        return f"{AES.name}-table"

    @property
    def described(self) -> str:
        return self.name

    @property
    def sections(self) -> list[Section]:
        # The sections are the rows of `aes_hot`.
        return [Section(MASKS, 1), Section(HOT, 1)]

    @property
    def begins_with_opening(self) -> bool:
        # Before the first opening all is local.
        return True

    def make(self, group: RoundingGroup, size: int) -> Preprocessing:
        # Rounds and bytes of every :data:`AT_ONCE` blocks are those of `aes_hot`.
        made = Preprocessing(np.zeros((group.parts, section.rows, size), np.uint8) for section in self.sections)
        try:
            for first in range(0, size, AT_ONCE):
                last = min(size, first + AT_ONCE)
                with group.over(self.sharing).shares() as shares:
                    shares.run(aes_hot(size=last - first))
                    rows = shares.file.words.reshape(group.parts, MASKS + HOT, last - first)
                    made[0][:, :, first:last] = rows[:, :MASKS] & np.uint64(1)
                    made[1][:, :, first:last] = rows[:, MASKS:] & np.uint64(1)
        except BaseException:
            for words in made:
                words.fill(0)
            raise
        return made


def aes_tables(committee: Committee) -> AesTables:
    """The one-time tables of a committee. Raises ParameterError for one that has no shares of bits, or has no tables."""
    if refused := kind_of(committee).one_time_tables:
        raise ParameterError(f"{committee.protocol}: one-time tables {refused}: take a committee of rep-field or semi")
    return AesTables(sharing_of(committee))


__all__ = ["AT_ONCE", "CHUNK", "HOT", "MASKS", "AesTables", "aes_tables"]
