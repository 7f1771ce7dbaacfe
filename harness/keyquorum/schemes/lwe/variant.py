"""Preprocessing for LWE: every rounding of VARIANTS, in two parts.

Shares with MACs take two words each, and two parts: share and MAC.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from keyquorum.dsl import ShareVector
from keyquorum.dsl.files.origin import Origin
from keyquorum.dsl.files.share_vector import Unsigned
from keyquorum.fhe.lwe import LweParameters, flooding_bits
from keyquorum.model.errors import ParameterError
from keyquorum.programs import Call
from keyquorum.programs.signatures import (
    ltz_tables,
    round_flood,
    round_ltz_circuit_online,
    round_ltz_table_online,
    round_mask,
    round_mask_open_online,
)
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.numbers import ContributedNumbers, PrivateNumbers, kind_of
from keyquorum.sharing.openings import made_triples, make_masks, masks_of, masks_section, receiver_section
from keyquorum.sharing.randomness import wipe
from keyquorum.sharing.variants import (
    VARIANTS,
    Destination,
    PaddedOutput,
    Preprocessing,
    Section,
    Variant,
    comparison_ands,
    low_mask,
    origins_of,
    wipe_copies,
)

Words = NDArray[np.uint64]
FLOOD_SECURITY = 40
"""Statistical security of `round_flood`, in bits a decryption."""


@dataclass(frozen=True)
class LweVariant(Variant):
    """A rounding for one LWE parameter set. ``width``, ``levels``: of the tables. ``triples``: whether the triples of the ANDs of
    `round_ltz_circuit` are stored as well; ANDs of replicated shares need none. ``kind``: of the committee, which says how shares are stored.
    Where it defers the checks of openings, the last section is what they take (:class:`.OpeningMasks`): random elements, those for receivers outside, elements that each of the ``parties`` knows, and
    a row of those that this party knows. No party has to input anything right: masks are sums of random bits of the protocol."""

    rounding: str
    parameters: LweParameters
    width: int = 8
    levels: int = 2
    triples: bool = False
    kind: type[PrivateNumbers] = ContributedNumbers
    parties: int = 0

    def __post_init__(self) -> None:
        if self.parties < self.kind.least_receivers:
            raise ParameterError("preprocessing with MACs is for a number of parties, each of which may be the receiver")
        if self.rounding not in VARIANTS:
            raise ParameterError(f"unknown rounding {self.rounding!r}: choose one of {', '.join(VARIANTS)}")
        if self.rounding == "round_flood":
            flooding_bits(self.parameters, FLOOD_SECURITY)
        if self.rounding == "round_ltz_table" and not (1 <= self.width <= 12 and 1 <= self.levels <= 6):
            raise ParameterError(f"tables of width {self.width} on {self.levels} levels: choose 1 to 12, and 1 to 6")

    @property
    def name(self) -> str:
        """Name of the pool, and of its folder."""
        shape = f"-{self.width}x{self.levels}" if self.rounding == "round_ltz_table" else ""
        return f"{self.parameters.name}-{self.rounding}{shape}"

    @property
    def described(self) -> str:
        """See :class:`keyquorum.sharing.variants.Variant`."""
        return self.name

    @property
    def table_groups(self) -> tuple[list[tuple[int, int]], list[list[int]]]:
        """Blocks (count, width) and groups of signs of each further level: those of Programs/Library/ltz_tables.py."""
        length, width = self.parameters.noise_length, self.width
        blocks = [(c, w) for c, w in ((length // width, width), (int(length % width > 0), length % width)) if c]
        count, groups = sum(c for c, _ in blocks), []
        group = next(g for g in range(1, count + 1) if self.levels == 1 or g ** (self.levels - 1) >= count)
        for level in range(self.levels - 1):
            last = level == self.levels - 2
            groups.append([count] if last else [min(group, count - i) for i in range(0, count, group)])
            count = len(groups[-1])
        return blocks, groups

    @property
    def table_bits(self) -> int:
        """Bits of the ring of the tables: of the largest mask of a group, and at least j, for the use of the result."""
        return max([self.parameters.message_bits, *(s + 1 for sizes in self.table_groups[1] for s in sizes)])

    @property
    def verified(self) -> bool:
        """See :class:`keyquorum.sharing.variants.PreprocessingKind`."""
        return True

    @property
    def stores_triples(self) -> bool:
        return self.rounding == "round_ltz_circuit" and self.triples

    @property
    def openings(self) -> int:
        """Values that the online program opens for a decryption, the message included."""
        if self.rounding == "round_ltz_table":
            return 2 + sum(len(sizes) for sizes in self.table_groups[1])
        return 2 + (2 * comparison_ands(self.parameters.noise_length) if self.stores_triples else 0)

    @property
    def defers_checks(self) -> bool:
        """Whether the checks of openings are deferred, with what they take from the pool. With `round_flood` nothing is opened but the message."""
        return self.kind.defers_checks and self.rounding != "round_flood"

    @property
    def words(self) -> int:
        """64-bit words of a share."""
        return self.kind.element_words

    def parts(self, group: RoundingGroup) -> int:
        """Components of a share: summands that a party knows, or a share and its MAC."""
        return self.kind.stored_parts(group)

    @property
    def sections(self) -> list[Section]:
        """What a decryption needs, in the order of the share files."""
        made = self._stored
        return [*made, masks_section(self.openings, self.parties, padded_output(self.parameters))] if self.defers_checks else made

    @property
    def _stored(self) -> list[Section]:
        """Those that the online program reads."""
        mask, *rest = (self.kind.stored(section) for section in self._sections)
        return [mask, *(_joined(rest) if self.rounding == "round_ltz_table" else rest)]

    @property
    def _sections(self) -> list[Section]:
        p = self.parameters
        mask = Section(1, p.ring_bits)
        if self.rounding == "round_ltz_circuit":
            made = [mask, Section(p.noise_length, 1), *([] if self.kind.bits_in_ring else [Section(1, p.message_bits)])]
            return [*made, Section(3 * comparison_ands(p.noise_length), 1)] if self.stores_triples else made
        if self.rounding == "round_ltz_table":
            return [mask, *self._table_sections]
        return [mask]

    @property
    def _table_sections(self) -> list[Section]:
        """Tables and masks of groups in the order of Programs/Library/ltz_tables.py. Of a mask the bits count that are opened under it, and of the entries of a
        table those of their sum, which is opened next; of the last table, those of the message: d + 1 and j bits for d blocks on two levels."""
        blocks, groups = self.table_groups
        opened = [max(sizes) + 1 for sizes in groups] + [self.parameters.message_bits]
        made = [Section(sum(c << w for c, w in blocks), opened[0])]
        for sizes, bits in zip(groups, opened[1:], strict=True):
            for size in sizes:
                made += [Section(1, size + 1), Section(2 << size, bits)]
        return made

    @property
    def padded(self) -> PaddedOutput | None:
        """See :class:`keyquorum.sharing.variants.Variant`."""
        return padded_output(self.parameters) if self.defers_checks else None

    def for_receivers(self, preprocessing: Sequence[Unsigned]) -> Unsigned:
        """See :class:`keyquorum.sharing.variants.Variant`."""
        return receiver_section(preprocessing[-1], self.openings, padded_output(self.parameters))

    @property
    def begins_with_opening(self) -> bool:
        """See :class:`keyquorum.sharing.variants.Variant`."""
        return self.rounding != "round_flood"

    def _kind_in(self, group: RoundingGroup) -> type[PrivateNumbers]:
        kind = kind_of(group.context.committee)
        if kind is not self.kind:
            raise ParameterError(f"{self.name}: a variant of another kind of committee than {group.context.committee.protocol}")
        return kind

    def make(self, group: RoundingGroup, size: int) -> Preprocessing:
        """The preprocessing of ``size`` decryptions, [parts, rows, size] a section; every member calls this."""
        kind, p = self._kind_in(group), self.parameters
        circuit, table = self.rounding == "round_ltz_circuit", self.rounding == "round_ltz_table"
        length = flooding_bits(p, FLOOD_SECURITY) + 1 if self.rounding == "round_flood" else p.noise_length
        with group.ring(p.ring_bits).shares() as made:
            if table and kind.bits_in_ring:
                made.run(self._ltz_tables(size, "made"))  # one program makes mask and tables, from the same bits
            else:
                made.run(round_mask(size=size, l=length, bits="all" if circuit or table else "sum", extra=int(circuit and not kind.bits_in_ring)))
            words = made.file.words
            rows, origins = words.reshape(words.shape[0], -1, size * self.words), [list(made.file.origins)]
            cuts = [1, 1 + length] if circuit else [1] if table else []  # the mask, its bits or all tables, and what makes a bit a number
            sections = [part for part in np.split(rows, cuts, axis=1) if part.shape[1]]
            if self.stores_triples:
                runs = made.runs if kind.bits_in_ring else group.ring(1)
                sections.append(made_triples(group, runs, size, comparison_ands(length), self.words))
            elif table and not kind.bits_in_ring:
                sections[1] = self._tables(group, sections[1], size, origins)
            if table:
                sections[1:] = np.split(sections[1], np.cumsum([section.rows for section in self._stored[1:-1]]), axis=1)
            if self.defers_checks:
                sections.append(make_masks(group, group.pool_protocol, self.parties, self.openings, padded_output(p), size))
            result = [part & low_mask(section.bits) for part, section in zip(sections, self.sections, strict=True)]
            wipe(*sections)
            return Preprocessing(result, kind.origins_of_all("items", origins))

    def _ltz_tables(self, size: int, masks: Literal["stored", "made"]) -> Call:
        return ltz_tables(size=size, l=self.parameters.noise_length, b=self.width, levels=self.levels, masks=masks)

    def _tables(self, group: RoundingGroup, bits: Words, size: int, origins: list[list[Origin]]) -> Words:
        """The tables for the bits [parts, rows, size] of masks, in a ring of as many bits as they need. ``origins``: of the run that made the bits; those of the tables are appended."""
        low = (bits & low_mask(self.table_bits)).reshape(bits.shape[0], -1)
        with group.ring(self.table_bits).shares(ShareVector.from_words(low)) as tables:
            self._kind_in(group).mark(tables, origins[0], "bits of masks")
            tables.run(self._ltz_tables(size, "stored"))
            origins.append([origin.copy() for origin in tables.file.origins])
            return tables.file.words.reshape(bits.shape[0], -1, size)[:, self.parameters.noise_length :].copy()

    def use(
        self, group: RoundingGroup, z: Words, preprocessing: Sequence[NDArray[Any]], to: Destination = "share", purpose: bytes = b""
    ) -> Words | None:  # fmt: skip
        """Rounds phases z [parts, size] with one item of preprocessing each; every member calls this.

        Members have compared number and purpose before, or do by the first messages, as ``purpose`` (:meth:`.Backend.run`).
        ``to``: ``share`` gives every member its shares
        [parts, size] of 2^(k-j) m modulo 2^k; a member's number, or ``all``, gives that member (all) the words themselves,
        [1, size], and others None.
        """
        p, size, kind = self.parameters, z.shape[1] // self.words, self._kind_in(group)
        origins = kind.begin(group, origins_of(preprocessing), purpose)
        shares = preprocessing[:-1] if self.defers_checks else preprocessing
        flat = [m.reshape(m.shape[0], -1) for m in shares]
        masks = masks_of(preprocessing[-1], self.openings, padded_output(p), to) if self.defers_checks else None
        try:
            with group.ring(p.ring_bits).shares(ShareVector.from_sections([z, *flat], self.words)) as working:
                kind.mark(working, origins, "phases and items")
                words = working.run(_online(self, size, to), keep=True, purpose=purpose, masks=masks)
                opened: Words | None = words.view(np.uint64).reshape(1, -1) if words.size else None
                return working.tail(size * self.words) if to == "share" else opened
        finally:
            if masks is not None:
                masks.wipe()
            wipe_copies(flat, shares)

    def messages(self, words: Words) -> NDArray[np.int64]:
        """Messages (with padding bits) from opened words. A flooded phase carries 2^(l-1), so that cutting off rounds it."""
        return messages_of(self.parameters, words)


def _joined(sections: Sequence[Section]) -> list[Section]:
    """The same rows, neighbours of equal width in one section."""
    made: list[Section] = []
    for section in sections:
        if made and (made[-1].bits, made[-1].words) == (section.bits, section.words):
            made[-1] = Section(made[-1].rows + section.rows, section.bits, section.words)
        else:
            made.append(section)
    return made


def padded_output(parameters: LweParameters) -> PaddedOutput:
    """How messages are opened under pads of receivers outside."""
    return PaddedOutput(parameters.ring_bits, parameters.noise_length)


def messages_of(parameters: LweParameters, words: Words) -> NDArray[np.int64]:
    """See :meth:`LweVariant.messages`."""
    return ((words & low_mask(parameters.ring_bits)) >> np.uint64(parameters.noise_length)).astype(np.int64)


@lru_cache(maxsize=64)
def _online(variant: LweVariant, size: int, to: Destination) -> Call:
    """The online program. A single decryption takes some milliseconds, so calls are kept."""
    p = variant.parameters
    l, j, k = p.noise_length, p.message_bits, p.ring_bits  # noqa: E741
    if variant.rounding == "round_flood":
        return round_flood(size=size, f=flooding_bits(p, FLOOD_SECURITY), destination=to)
    if variant.rounding == "round_ltz_table":
        return round_ltz_table_online(size=size, l=l, j=j, b=variant.width, levels=variant.levels, destination=to, ring_length=k)
    if variant.rounding == "round_mask_open":
        return round_mask_open_online(size=size, l=l, j=j, destination=to, ring_length=k)
    if variant.rounding != "round_ltz_circuit":
        raise ParameterError(f"{variant.rounding} has no program of one run: make the variant of a committee")
    return round_ltz_circuit_online(size=size, l=l, j=j, destination=to, ring_length=k, triples=int(variant.stores_triples))
