"""Exact decryption over prime fields alone, for committees whose sharing has no ring, and who verify products (docs/pages/decryption.md).

Shares modulo q do not become shares modulo 2^l by local steps in Shamir's sharing, so the phase is not scaled. Instead t w = q m + e over the integers, so m = -e/q modulo t, and e moves
from F_q to the field of the messages under a mask v that both fields have: y + v modulo q is opened, for y = e + (q - 1)/2, and the wrap [c < v] is compared on shared bits in the other field. v is
uniform in [0, q), so the opening hides y perfectly, and every phase is rounded as the exact fraction would be. The bits of v are XORs of joint integers: no party inputs anything, and both fields have
the same v. How m is computed in its field is up to each scheme.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import joint_summands
from keyquorum.dsl import ShareVector
from keyquorum.dsl.files.origin import Origin
from keyquorum.dsl.files.share_vector import Unsigned
from keyquorum.model.committee import Committee
from keyquorum.model.domains import Field, Sharing
from keyquorum.model.errors import ParameterError
from keyquorum.programs import Call, Segment
from keyquorum.programs.signatures import round_field_mask, round_field_open

from .group import RoundingGroup
from .numbers import PseudorandomNumbers
from .randomness import wipe
from .rounding import ROUNDINGS
from .variants import Destination, Preprocessing, Section, Variant, origins_of, wipe_copies

Words = NDArray[np.uint64]
CHUNK = 1024
"""Masks that are made at a time: they take some hundred products each."""


@dataclass(frozen=True, kw_only=True)
class FieldVariant(Variant):
    """`round_ltz_circuit` over F_q and the field of the messages. Phases come as [1, parts, size], modulo q; an item serves one of them. ``protocol``, ``parties``, ``threshold``: of the
    committee."""

    protocol: str
    parties: int
    threshold: int
    rounding: str = ROUNDINGS[0]

    @property
    def verified(self) -> bool:
        """All masks are joint integers."""
        return True

    @property
    @abstractmethod
    def modulus(self) -> int:
        """q, an odd prime."""

    @property
    @abstractmethod
    def factor(self) -> int:
        """t: messages are round(t w/q) modulo t."""

    @property
    @abstractmethod
    def field(self) -> int:
        """The prime modulo which messages are shared, and the bits of masks; more than the number of parties."""

    @property
    def low(self) -> int:
        """The number of low bits of a mask of which items have the one-hot vector too."""
        return 0

    @abstractmethod
    def closing(self, size: int, to: Destination) -> Call:
        """The program that computes messages from the bits of masks and of what was opened."""

    @property
    def length(self) -> int:
        """l: bits of a mask."""
        return self.modulus.bit_length()

    @property
    def rows(self) -> int:
        """Shares of an item in the field of the messages."""
        return self.length + (1 << self.low if self.low else 0)

    @property
    def sections(self) -> list[Section]:
        """What a phase needs: v modulo q; and its bits, then the one-hot vector of the low ones, in the field of the messages."""
        return [Section(1, self.length), Section(self.rows, self.field.bit_length())]

    @property
    def begins_with_opening(self) -> bool:
        """See :class:`keyquorum.sharing.variants.Variant`."""
        return True

    def make(self, group: RoundingGroup, size: int) -> Preprocessing:
        """The preprocessing of ``size`` phases, [parts, rows, size] a section; all parties call this. Numbers that are not below q are thrown away, and others made."""
        made: list[tuple[Words, Words]] = []
        origins: list[list[Origin]] = []
        count = 0
        good = self.modulus / (1 << self.length)
        try:
            while count < size:
                made.append(self._masks(group, min(CHUNK, math.ceil((size - count) / good) + 8), origins))
                count += made[-1][0].shape[-1]
            joined = [np.concatenate(parts, axis=2) for parts in zip(*made, strict=True)]
        finally:
            wipe(*(part for pair in made for part in pair))
        sections = [whole[:, :, :size].copy() for whole in joined]
        wipe(*joined)  # with the masks that are too many
        return Preprocessing(sections, PseudorandomNumbers.origins_of_all("items", origins))

    def _masks(self, group: RoundingGroup, size: int, origins: list[list[Origin]]) -> tuple[Words, Words]:
        """v modulo q and its rows in the field of the messages, [parts, rows, at most size] each: those of ``size`` draws that are below q. ``origins``: of the runs that made them are appended."""
        q, length = self.modulus, self.length
        over_q, over_messages = group.over(Sharing(self.protocol, Field(q))), group.over(Sharing(self.protocol, Field(self.field)))
        joint, summands = over_q.joint_integers(size, length), joint_summands(self.protocol, self.parties, self.threshold)
        with over_q.shares() as sums, over_messages.shares() as rows:
            for shares in (sums, rows):
                for summand in range(summands):
                    for place in range(length):
                        shares.append_joint(joint.bits(shares.runs.domain, summand, place), joint)
            given = Segment(0, sums.length)
            sums.run(round_field_mask(summands=summands, size=size, l=length, q=q, keep="sum", bits=given))
            below = rows.run(round_field_mask(summands=summands, size=size, l=length, q=q, keep="bits", low=self.low, bits=given))
            chosen = np.flatnonzero(below == 1)
            origins += [[origin.copy() for origin in shares.file.origins] for shares in (sums, rows)]
            made = [shares.tail(count * size).reshape(group.parts, count, size) for shares, count in ((sums, 1), (rows, self.rows))]
            kept = np.ascontiguousarray(made[0][:, :, chosen]), np.ascontiguousarray(made[1][:, :, chosen])
            wipe(*made)
            return kept

    def use(
        self, group: RoundingGroup, z: Words, preprocessing: Sequence[Unsigned], to: Destination = "share", purpose: bytes = b""
    ) -> Words | None:  # fmt: skip
        """Rounds phases z [1, parts, size] with one item of preprocessing each; all parties call this. Results as of :meth:`keyquorum.sharing.variants.Variant.use`, but in the field of the messages."""
        q, length, size = self.modulus, self.length, z.shape[-1]
        origins = PseudorandomNumbers.begin(group, origins_of(preprocessing), purpose)
        flat = [np.ascontiguousarray(m).reshape(m.shape[0], -1) for m in preprocessing]
        over_q, over_messages = group.over(Sharing(self.protocol, Field(q))), group.over(Sharing(self.protocol, Field(self.field)))
        try:
            with (
                over_q.shares(ShareVector.from_sections([z[0], flat[0]])) as first,
                over_messages.shares(ShareVector.from_sections([flat[1]])) as second,
            ):
                PseudorandomNumbers.mark(first, origins, "phases and masks modulo q")
                opened = first.run(round_field_open(size=size, q=q, t=self.factor), keep=True, purpose=purpose) % q
                PseudorandomNumbers.mark(second, origins, "bits of masks modulo t")
                digits = [np.ascontiguousarray(opened >> i & 1) for i in range(length)]
                words = second.run(self.closing(size, to), public=digits, keep=True, purpose=purpose)
                received: Words | None = self.received((words % self.field).astype(np.uint64).reshape(1, -1)) if words.size else None
                return second.tail(size) if to == "share" else received
        finally:
            wipe_copies(flat, preprocessing)

    def received(self, messages: Words) -> Words:
        """What a party gets for messages [1, size] in their field. The default: the messages."""
        return messages


def over_fields(committee: Committee) -> bool:
    """Whether a committee rounds over prime fields alone: it verifies products, and its sharing has no ring."""
    return committee.verifies_products and committee.ring_protocol is None


def check_rounding(committee: Committee, rounding: str) -> None:
    """Refuses roundings that there are not over prime fields alone. Raises ParameterError."""
    if rounding != ROUNDINGS[0]:
        raise ParameterError(f"{committee.protocol}: there is no {rounding} over prime fields alone: take {ROUNDINGS[0]}")
