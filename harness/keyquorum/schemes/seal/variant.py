"""Preprocessing for BFV and BGV: the roundings modulo an odd prime t, in two parts.

An item serves one coefficient; a ciphertext takes N of them. Phases come as [2, parts, size]: modulo 2^l and modulo t
(:func:`keyquorum.sharing.rounding.scaled_words`), and so does the mask. Interface: :class:`keyquorum.sharing.variants.Variant`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from keyquorum.dsl import ShareVector
from keyquorum.dsl.files.share_vector import Unsigned
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.model.committee import Committee, check_name
from keyquorum.model.errors import ParameterError
from keyquorum.programs import Call
from keyquorum.programs.signatures import (
    and_triples,
    round_ltz_circuit_odd_field_online,
    round_ltz_circuit_odd_ring_online,
    round_mask_odd_bits,
    round_mask_odd_field,
    round_mask_open_odd_field_online,
    round_mask_open_odd_ring_online,
)
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.numbers import kind_of
from keyquorum.sharing.rounding import ROUNDINGS, check_rounds, rounding_length
from keyquorum.sharing.shares import Shares
from keyquorum.sharing.variants import Destination, Preprocessing, Section, Variant, comparison_ands, low_mask, origins_of, wipe_copies

from .phases import check_exact

Words = NDArray[np.uint64]


@dataclass(frozen=True)
class SealVariant(Variant):
    """A rounding for one BFV or BGV set. ``summands``: into which phases split; ``triples``: see :class:`keyquorum.schemes.lwe.variant.LweVariant`."""

    rounding: str
    parameters: ParameterSet
    summands: int
    triples: bool = False
    ROUNDINGS: ClassVar[tuple[str, ...]] = ROUNDINGS
    """Those that the class has."""

    def __post_init__(self) -> None:
        if self.rounding not in self.ROUNDINGS:
            raise ParameterError(f"{self.rounding} is for LWE alone: choose one of {', '.join(self.ROUNDINGS)} for {self.parameters.name}")
        check_exact(self.parameters)
        check_name(self.name, "pool name")

    @property
    def name(self) -> str:
        """Name of the pool, and of its folder."""
        return f"{self.parameters.name}-{self.rounding}"

    @property
    def described(self) -> str:
        """See :class:`keyquorum.sharing.variants.Variant`."""
        return f"{self.name} l={self.length} t={self.modulus}"

    @property
    def modulus(self) -> int:
        """t."""
        return self.parameters.plain_modulus

    @property
    def length(self) -> int:
        """l: the bits that are taken off."""
        return rounding_length(self.parameters.coeff_modulus[0], self.modulus, self.summands)

    @property
    def verified(self) -> bool:
        """Whether no input of a party has to be right: in `round_ltz_circuit` where the kind of committee takes none (:meth:`.PrivateNumbers.rounding_masks`)."""
        return self._compares

    @property
    def _compares(self) -> bool:
        return self.rounding == "round_ltz_circuit"

    @property
    def sections(self) -> list[Section]:
        """What a coefficient needs: r modulo 2^l; the bits of r, a further bit and triples; r (and the further bit) modulo t."""
        first, last = Section(1, self.length), Section(2 if self._compares else 1, self.modulus.bit_length())
        if not self._compares:
            return [first, last]
        bits = [Section(self.length + 1, 1)]
        return [first, *bits, *([Section(3 * comparison_ands(self.length), 1)] if self.triples else []), last]

    @property
    def begins_with_opening(self) -> bool:
        """See :class:`keyquorum.sharing.variants.Variant`."""
        return True

    def make(self, group: RoundingGroup, size: int) -> Preprocessing:
        """The preprocessing of ``size`` coefficients, [parts, rows, size] a section; every member calls this.

        Masks go into three runs: as words modulo 2^l, as bits, and as words modulo t; the carry of their sum is opened under random bits. Rounds and
        bytes: `sum_inputs` where parties input masks, `round_mask_odd_bits`, `round_mask_odd_field`, and `and_triples`.
        """
        length, t, kind = self.length, self.modulus, kind_of(group.context.committee)
        keep: Literal["all", "carry"] = "all" if self._compares else "carry"
        with (
            group.ring(length).shares() as ring, group.ring(1).shares() as low, group.ring(1).shares() as triples, group.field(t).shares() as field,
            kind.rounding_masks(group, size, length, int(self._compares)) as masks,
        ):  # fmt: skip
            masks.append_sum(ring)
            r = masks.append_places(low)
            first = round_mask_odd_bits(contributors=masks.contributors, size=size, l=length, keep=keep, masks=masks.where, r=r)
            opened = low.run(first, masks.bits)
            r = masks.append_words(field)
            second = round_mask_odd_field(contributors=masks.contributors, size=size, l=length, t=t, keep=keep, masks=masks.where, r=r)
            field.run(second, masks.words, [opened & 1])
            if self._compares and self.triples:
                triples.run(and_triples(size=size, count=comparison_ands(length)))
            files = [ring, *([low] if self._compares else []), *([triples] if triples.length else []), field]
            origins = kind.origins_of_all("items", [file.file.origins for file in (ring, low, field)])
            return Preprocessing([_section(file, section, size) for file, section in zip(files, self.sections, strict=True)], origins)

    def use(
        self, group: RoundingGroup, z: Words, preprocessing: Sequence[Unsigned], to: Destination = "share", purpose: bytes = b""
    ) -> Words | None:  # fmt: skip
        """Rounds phases z [2, parts, size] with one item of preprocessing each; every member calls this. Results as of
        :meth:`keyquorum.sharing.variants.Variant.use`, but modulo t: shares, or words in [0, t)."""
        length, t, size, kind = self.length, self.modulus, z.shape[-1], kind_of(group.context.committee)
        origins = kind.begin(group, origins_of(preprocessing), purpose)
        flat = [np.ascontiguousarray(m).reshape(m.shape[0], -1) for m in preprocessing]
        try:
            with (
                group.ring(length).shares(ShareVector.from_sections([z[0], *flat[:-1]])) as ring,
                group.field(t).shares(ShareVector.from_sections([z[1], flat[-1]])) as field,
            ):
                kind.mark(ring, origins, "phases and items modulo 2^l")
                opened = ring.run(self._opening(size), keep=True, purpose=purpose)
                opened[:size] &= (1 << length) - 1
                opened[size:] &= 1
                kind.mark(field, origins, "phases and items modulo t")
                online = round_ltz_circuit_odd_field_online if self._compares else round_mask_open_odd_field_online
                words = field.run(online(size=size, l=length, t=t, destination=to), public=[opened], keep=True, purpose=purpose)
                received: Words | None = (words % t).astype(np.uint64).reshape(1, -1) if words.size else None
                return field.tail(size) if to == "share" else received
        finally:
            wipe_copies(flat, preprocessing)

    def _opening(self, size: int) -> Call:
        """The first online program, which opens the masked phase."""
        length = self.length
        if self._compares:
            return round_ltz_circuit_odd_ring_online(size=size, l=length, ring_length=length, triples=int(self.triples))
        return round_mask_open_odd_ring_online(size=size, l=length, ring_length=length)


def _section(made: Shares, section: Section, size: int) -> Words:
    """The shares of a section that a run has made, [parts, rows, size], at the end of its share file. Field elements are below 2^bits already."""
    words = made.tail(section.rows * size).reshape(-1, section.rows, size)  # a copy: nothing of it stays behind
    words &= low_mask(section.bits)
    return words


def seal_variant(committee: Committee, rounding: str, parameters: ParameterSet) -> SealVariant:
    """A rounding for BFV or BGV with the preprocessing of a committee. Raises ParameterError for a committee that cannot round so."""
    check_rounds(committee.capabilities, rounding)
    triples = rounding == "round_ltz_circuit" and committee.rounds_with_triples
    return SealVariant(rounding, parameters, committee.summands, triples)
