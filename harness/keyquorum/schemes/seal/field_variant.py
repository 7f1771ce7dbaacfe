"""Exact decryption of BFV and BGV over prime fields alone, for committees whose sharing has no ring, and who verify products (docs/pages/decryption.md).

Shares modulo q do not become shares modulo 2^l by local steps in Shamir's sharing, so the phase is not scaled. Instead t w = q m + e over the integers, so m = -e/q modulo t, and e moves
from F_q to F_t under a mask v that both fields have: y + v modulo q is opened, for y = e + (q - 1)/2, and the wrap [c < v] is compared on shared bits in F_t. v is uniform in [0, q), so the opening
hides y perfectly, and every phase is rounded as the exact fraction would be. The bits of v are XORs of joint integers: no party inputs anything, and both fields have the same v.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import joint_summands
from keyquorum.backends.embedded import Embedded
from keyquorum.dsl import Persistence
from keyquorum.dsl.persistence import KeyTest, Unsigned
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.model.committee import Committee, check_name
from keyquorum.model.errors import ParameterError
from keyquorum.programs import Segment
from keyquorum.programs.signatures import round_field_close, round_field_mask, round_field_open
from keyquorum.sharing.joint import joined_name, named
from keyquorum.sharing.randomness import wipe
from keyquorum.sharing.rounding import ROUNDINGS, RoundingGroup
from keyquorum.sharing.variants import Destination, Preprocessing, Section, Variant, agreed_names

from .phases import check_exact

Words = NDArray[np.uint64]
CHUNK = 1024
"""Masks that are made at a time: they take some hundred products each."""


@dataclass(frozen=True)
class FieldVariant(Variant):
    """`round_ltz_circuit` for one BFV or BGV set, over F_q and F_t. Phases come as [1, parts, size], modulo q; an item serves one coefficient. ``protocol``, ``parties``, ``threshold``: of the
    committee."""

    parameters: ParameterSet
    protocol: str
    parties: int
    threshold: int
    rounding: str = ROUNDINGS[0]
    verified: bool = True

    def __post_init__(self) -> None:
        check_exact(self.parameters)
        check_name(self.name, "pool name")
        if self.parameters.plain_modulus <= self.parties:
            raise ParameterError(f"plain modulus {self.parameters.plain_modulus}: Shamir's sharing among {self.parties} parties needs a larger one")

    @property
    def name(self) -> str:
        """Name of the pool, and of its folder."""
        return f"{self.parameters.name}-{self.rounding}"

    @property
    def described(self) -> str:
        """See :class:`keyquorum.sharing.variants.Variant`."""
        return f"{self.name} fields q={self.modulus} t={self.parameters.plain_modulus}"

    @property
    def modulus(self) -> int:
        """q."""
        return self.parameters.coeff_modulus[0]

    @property
    def length(self) -> int:
        """l: bits of a mask."""
        return self.modulus.bit_length()

    @property
    def sections(self) -> list[Section]:
        """What a coefficient needs: v modulo q, and its bits modulo t."""
        return [Section(1, self.length), Section(self.length, self.parameters.plain_modulus.bit_length())]

    @property
    def begins_with_opening(self) -> bool:
        """See :class:`keyquorum.sharing.variants.Variant`."""
        return True

    def make(self, group: RoundingGroup, size: int, seed: bytes | None = None) -> Preprocessing:
        """The preprocessing of ``size`` coefficients, [parts, rows, size] a section; all parties call this. Numbers that are not below q are thrown away, and others made."""
        made: list[tuple[Words, Words]] = []
        names: list[KeyTest] = []
        count = 0
        while count < size:
            good = self.modulus / (1 << self.length)
            made.append(self._masks(group, min(CHUNK, math.ceil((size - count) / good) + 8), names, seed))
            count += made[-1][0].shape[-1]
        sums, rows = (np.concatenate(parts, axis=2)[:, :, :size].copy() for parts in zip(*made, strict=True))
        wipe(*(part for pair in made for part in pair))
        return Preprocessing([sums, rows], [joined_name("items", names)])

    def _masks(self, group: RoundingGroup, size: int, names: list[KeyTest], seed: bytes | None) -> tuple[Words, Words]:
        """v modulo q and its bits modulo t, [parts, rows, at most size] each: those of ``size`` draws that are below q. ``names``: of the runs that made them are appended."""
        assert isinstance(group.backend, Embedded)
        q, t, length, field = self.modulus, self.parameters.plain_modulus, self.length, self.protocol
        summands = joint_summands(field, self.parties, self.threshold)
        joint = group.backend.session.joint_integers(field, size, length, 1, self.threshold, seed)
        files = []
        try:
            for domain in (f"F_{q}", f"F_{t}"):
                files.append(Persistence())
                for summand in range(summands):
                    for place in range(length):
                        files[-1].append_joint(field, domain, joint.bits(domain, summand, place), group.parts, joint.name)
            given = Segment(0, files[0].length)
            group.run(
                field,
                f"F_{q}",
                round_field_mask(summands=summands, size=size, l=length, q=q, keep="sum", bits=given),
                persistence=files[0],
                seed=seed,
            )
            masks = round_field_mask(summands=summands, size=size, l=length, q=q, keep="bits", bits=given)
            below = group.run(field, f"F_{t}", masks, persistence=files[1], seed=seed)
            chosen = np.flatnonzero(below == 1)
            names += [name.copy() for file in files for name in file.key_tests]
            sums, rows = (file.tail(rows * size).reshape(group.parts, rows, size) for file, rows in zip(files, (1, length), strict=True))
            kept = np.ascontiguousarray(sums[:, :, chosen]), np.ascontiguousarray(rows[:, :, chosen])
            wipe(sums, rows)
            return kept
        finally:
            for file in files:
                file.wipe()

    def use(
        self, group: RoundingGroup, z: Words, preprocessing: Sequence[Unsigned], to: Destination = "share", seed: bytes | None = None,
        context: bytes = b"",
    ) -> Words | None:  # fmt: skip
        """Rounds phases z [1, parts, size] with one item of preprocessing each; all parties call this. Results as of :meth:`keyquorum.sharing.variants.Variant.use`, but modulo t."""
        q, t, length, size = self.modulus, self.parameters.plain_modulus, self.length, z.shape[-1]
        names = agreed_names(group, preprocessing, context)
        flat = [np.ascontiguousarray(m).reshape(m.shape[0], -1) for m in preprocessing]
        field, first, second = self.protocol, Persistence.from_sections([z[0], flat[0]]), Persistence.from_sections([flat[1]])
        try:
            named(first, field, f"F_{q}", "phases and masks modulo q", names)
            opening = round_field_open(size=size, q=q, t=t)
            opened = group.run(field, f"F_{q}", opening, persistence=first, seed=seed, keep=True, context=context) % q
            named(second, field, f"F_{t}", "bits of masks modulo t", names)
            digits = [np.ascontiguousarray(opened >> i & 1) for i in range(length)]
            closing = round_field_close(size=size, l=length, q=q, t=t, destination=to)
            words = group.run(field, f"F_{t}", closing, public=digits, persistence=second, seed=seed, keep=True, context=context)
            received: Words | None = (words % t).astype(np.uint64).reshape(1, -1) if words.size else None
            return second.tail(size) if to == "share" else received
        finally:
            first.wipe()
            second.wipe()
            wipe(*(mine for mine, theirs in zip(flat, preprocessing, strict=True) if not np.shares_memory(mine, theirs)))


def field_variant(committee: Committee, rounding: str, parameters: ParameterSet) -> FieldVariant:
    """The rounding of a committee that verifies products, and has prime fields alone. Raises ParameterError for another rounding."""
    if rounding != ROUNDINGS[0]:
        raise ParameterError(f"{committee.protocol}: there is no {rounding} over prime fields alone: take {ROUNDINGS[0]}")
    return FieldVariant(parameters, committee.protocol, committee.size, committee.threshold)
