"""Preprocessing for BFV and BGV: the roundings modulo an odd prime t, in two parts.

An item serves one coefficient; a ciphertext takes N of them. Phases come as [2, parts, size]: modulo 2^l and modulo t
(:func:`keyquorum.sharing.rounding.scaled_words`), and so does the mask. Interface: :class:`keyquorum.sharing.variants.Variant`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from keyquorum.dsl import Persistence
from keyquorum.dsl.persistence import KeyTest, Unsigned
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.model.committee import Committee, check_name
from keyquorum.model.domains import Field, Ring
from keyquorum.model.errors import ParameterError
from keyquorum.programs import Segment
from keyquorum.programs.signatures import (
    and_triples,
    round_ltz_circuit_odd_field_online,
    round_ltz_circuit_odd_ring_online,
    round_mask_odd_bits,
    round_mask_odd_field,
    round_mask_open_odd_field_online,
    round_mask_open_odd_ring_online,
    sum_inputs,
)
from keyquorum.sharing.joint import joined_name, named
from keyquorum.sharing.randomness import uniform_bits, wipe
from keyquorum.sharing.rounding import ROUNDINGS, RoundingGroup, check_rounds, rounding_length
from keyquorum.sharing.variants import Destination, Preprocessing, Section, Variant, agreed_names, comparison_ands, low_mask

from .phases import check_exact

Words = NDArray[np.uint64]


@dataclass(frozen=True)
class SealVariant(Variant):
    """A rounding for one BFV or BGV set. ``summands``: into which phases split; ``triples``: see :class:`keyquorum.schemes.lwe.variant.LweVariant`. ``verified``: for committees that verify
    products: masks are joint integers, and preprocessing has the name of its draw."""

    rounding: str
    parameters: ParameterSet
    summands: int
    triples: bool = False
    verified: bool = False

    def __post_init__(self) -> None:
        if self.rounding not in ROUNDINGS:
            raise ParameterError(f"{self.rounding} is for LWE alone: choose one of {', '.join(ROUNDINGS)} for {self.parameters.name}")
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

    def make(self, group: RoundingGroup, size: int, seed: bytes | None = None) -> Preprocessing:
        """The preprocessing of ``size`` coefficients, [parts, rows, size] a section; every member calls this.

        The contributors' masks go into three runs: as words modulo 2^l, as bits, and as words modulo t; the carry of their sum is opened
        under random bits. Rounds and bytes: `sum_inputs` and `round_mask_odd_bits`, `round_mask_odd_field`, and `and_triples`.
        """
        if self.verified:
            return self._made_together(group, size, seed)
        length, t, contributors = self.length, self.modulus, group.contributors
        carries = max(0, (contributors - 1).bit_length())
        keep: Literal["all", "carry"] = "all" if self._compares else "carry"
        words = bits = given = None
        ring, low, field = Persistence(), Persistence(), Persistence()
        try:
            if group.me is not None and group.me < contributors:
                words, rows = uniform_bits(size, length), uniform_bits(size * (carries + int(self._compares)), 1)
                bits = np.empty(length * size + rows.size, dtype=np.int64)
                for bit in range(length):
                    np.right_shift(words, bit, out=bits[bit * size : (bit + 1) * size])
                bits[length * size :] = rows
                bits &= 1
                given = np.concatenate([words, rows])
            sum_of_masks = sum_inputs(contributors=contributors, size=size)
            group.run(group.ring_protocol, Ring(length), sum_of_masks, private=words, persistence=ring, seed=seed)
            bits_of_mask = round_mask_odd_bits(contributors=contributors, size=size, l=length, keep=keep)
            opened = group.run(group.ring_protocol, Ring(1), bits_of_mask, private=bits, persistence=low, seed=seed)
            mask_in_field = round_mask_odd_field(contributors=contributors, size=size, l=length, t=t, keep=keep)
            group.run(group.field_protocol, Field(t), mask_in_field, private=given, public=[opened & 1], persistence=field, seed=seed)
        finally:
            wipe(*(secret for secret in (words, bits, given) if secret is not None))
        made = [ring, *([low] if self._compares else [])]
        if self._compares and self.triples:
            triples = Persistence()
            group.run(group.ring_protocol, Ring(1), and_triples(size=size, count=comparison_ands(length)), persistence=triples, seed=seed)
            made.append(triples)
        result = self._sections_of([*made, field], group, size)
        low.wipe()
        return Preprocessing(result)

    def _sections_of(self, made: Sequence[Persistence], group: RoundingGroup, size: int) -> list[Words]:
        """The shares that the runs have made, [parts, rows, size] each; wipes ``made``."""
        result: list[Words] = []
        for part, section in zip(made, self.sections, strict=True):
            preprocessing = part.words[: group.parts].reshape(group.parts, section.rows, size)
            result.append(preprocessing.copy() if part is made[-1] else preprocessing & low_mask(section.bits))
            part.wipe()
        return result

    def _made_together(self, group: RoundingGroup, size: int, seed: bytes | None) -> Preprocessing:
        """:meth:`make` from joint integers: no party inputs anything, and the products of both runs are verified. The names of the three share files become that of the items: all parties
        compare it before they use them, so honest parties use items of one draw."""
        length, t = self.length, self.modulus
        ring_protocol, field_protocol = group.ring_protocol, group.field_protocol
        ring, low, field = Persistence(), Persistence(), Persistence()
        masks = group.masks(size, length, seed)
        try:
            masks.append_words(ring, ring_protocol, Ring(length))
            masks.append_places(low, ring_protocol, Ring(1))
            masks.append_sums(low, ring_protocol, Ring(1))
            of_bits = Segment(0, low.length)
            first = round_mask_odd_bits(contributors=masks.summands, size=size, l=length, keep="all", masks="stored", r=of_bits)
            opened = group.run(ring_protocol, Ring(1), first, persistence=low, seed=seed)
            masks.append_words(field, field_protocol, Field(t))
            masks.append_bits(field, field_protocol, Field(t))
            of_field = Segment(0, field.length)
            second = round_mask_odd_field(contributors=masks.summands, size=size, l=length, t=t, keep="all", masks="stored", r=of_field)
            group.run(field_protocol, Field(t), second, public=[opened & 1], persistence=field, seed=seed)
            names = [*ring.key_tests, *low.key_tests, *field.key_tests]
            files = [ring, *(Persistence.from_words(file.tail(rows * size)) for file, rows in ((low, length + 1), (field, 2)))]
            return Preprocessing(self._sections_of(files, group, size), [joined_name("items", names)])
        finally:
            for file in (ring, low, field):
                file.wipe()

    def use(
        self, group: RoundingGroup, z: Words, preprocessing: Sequence[Unsigned], to: Destination = "share", seed: bytes | None = None,
        context: bytes = b"",
    ) -> Words | None:  # fmt: skip
        """Rounds phases z [2, parts, size] with one item of preprocessing each; every member calls this. Results as of
        :meth:`keyquorum.sharing.variants.Variant.use`, but modulo t: shares, or words in [0, t)."""
        length, t, size = self.length, self.modulus, z.shape[-1]
        names: list[KeyTest] = []
        if self.verified:
            names = agreed_names(group, preprocessing, context)
        flat = [np.ascontiguousarray(m).reshape(m.shape[0], -1) for m in preprocessing]
        try:
            ring = Persistence.from_sections([z[0], *flat[:-1]])
            if names:
                named(ring, group.ring_protocol, Ring(length), "phases and items modulo 2^l", names)
            in_ring = (
                round_ltz_circuit_odd_ring_online(size=size, l=length, ring_length=length, triples=int(self.triples))
                if self._compares
                else round_mask_open_odd_ring_online(size=size, l=length, ring_length=length)
            )
            opened = group.run(group.ring_protocol, Ring(length), in_ring, persistence=ring, seed=seed, keep=True, context=context)
            opened[:size] &= (1 << length) - 1
            opened[size:] &= 1
            field = Persistence.from_sections([z[1], flat[-1]])
            if names:
                named(field, group.field_protocol, Field(t), "phases and items modulo t", names)
            online = round_ltz_circuit_odd_field_online if self._compares else round_mask_open_odd_field_online
            in_field = online(size=size, l=length, t=t, destination=to)
            words = group.run(group.field_protocol, Field(t), in_field, public=[opened], persistence=field, seed=seed, keep=True, context=context)
            received: Words | None = (words % t).astype(np.uint64).reshape(1, -1) if words.size else None
            result = field.tail(size) if to == "share" else received
            ring.wipe()
            field.wipe()
        finally:
            wipe(*(mine for mine, theirs in zip(flat, preprocessing, strict=True) if not np.shares_memory(mine, theirs)))
        return result


def seal_variant(committee: Committee, rounding: str, parameters: ParameterSet) -> SealVariant:
    """A rounding for BFV or BGV with the preprocessing of a committee. Raises ParameterError for a committee that cannot round so."""
    check_rounds(committee.capabilities, rounding)
    triples = rounding == "round_ltz_circuit" and committee.rounds_with_triples
    return SealVariant(rounding, parameters, committee.summands, triples, committee.capabilities.names_runs)
