"""What openings with MACs take from a pool beside the values (program `opening_masks`): random elements that nobody knows, and for each party elements that it knows.

They are the last section of an item with MACs: for each operation ``openings`` random elements, those for a receiver outside (:mod:`.receivers`), one element of each party, and a row with the
words of the element that this party knows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from keyquorum.backends.base import OpeningMasks
from keyquorum.dsl.files.share_vector import Unsigned
from keyquorum.model.domains import Ring, Sharing
from keyquorum.programs.signatures import and_triples, opening_masks

from .group import RoundingGroup
from .randomness import uniform_bits, wipe
from .shares import DomainRun
from .variants import Destination, PaddedOutput, Section

Words = NDArray[np.uint64]
WORDS = 2
"""64-bit words of a share with MACs, and its parts: share and MAC."""


def receiver_rows(padded: PaddedOutput) -> int:
    """Random elements of an operation for a receiver outside: its pad, masks of combinations, and as many for what is opened to it."""
    return 2 * padded.rows


def masks_section(openings: int, parties: int, padded: PaddedOutput) -> Section:
    """The section of ``openings`` openings of each operation, the one to a party included."""
    return Section(openings + receiver_rows(padded) + parties + 1, 64, WORDS)


def make_masks(group: RoundingGroup, protocol: str, parties: int, openings: int, padded: PaddedOutput, size: int) -> Words:
    """That section for ``size`` operations modulo 2^bits of ``padded``, [2, rows, 2 size]; every party calls this."""
    bits = padded.bits
    assert group.me is not None
    known = uniform_bits(size, bits)
    try:
        with group.over(Sharing(protocol, Ring(bits))).shares() as made:
            made.run(opening_masks(contributors=parties, size=size, count=openings + receiver_rows(padded)), known)
            rows = made.file.words.reshape(made.file.words.shape[0], -1, size * WORDS)
            result = np.concatenate([rows, np.zeros_like(rows[:, :1])], axis=1)
        result[0, -1, ::WORDS] = known.view(np.uint64)
        return result
    finally:
        wipe(known)


def made_triples(group: RoundingGroup, runs: DomainRun, size: int, count: int, words: int) -> Words:
    """``count`` triples for each of ``size`` operations, [parts, rows, size words]; every party calls this. In portions, between which others may pause."""
    sections = list[Words]()
    for portion in group.portions(size):
        with runs.shares() as made:
            made.run(and_triples(size=portion, count=count))
            sections.append(made.file.words.reshape(made.file.words.shape[0], -1, portion * words).copy())
    if len(sections) == 1:
        return sections[0]
    joined = np.concatenate(sections, axis=2)
    wipe(*sections)
    return joined


def masks_of(section: Unsigned, openings: int, padded: PaddedOutput, to: Destination) -> OpeningMasks:
    """What the openings of a run take of that section, as copies that the caller wipes. To ``share`` there is one opening less."""
    hidden = section[:, : openings - int(to == "share")].reshape(section.shape[0], -1).copy()
    if not isinstance(to, int):
        return OpeningMasks(hidden)
    return OpeningMasks(hidden, to, section[:, openings + receiver_rows(padded) + to].copy(), section[0, -1, ::WORDS].astype(np.uint64))


def receiver_section(section: Unsigned, openings: int, padded: PaddedOutput) -> Unsigned:
    """The rows for a receiver outside, a view: the pad, the masks of combinations, and what their openings take."""
    return section[:, openings : openings + receiver_rows(padded)]


__all__ = ["WORDS", "made_triples", "make_masks", "masks_of", "masks_section", "receiver_section"]
