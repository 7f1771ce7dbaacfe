"""One-time material of evaluations: for each AND gate two encrypted masks and an encrypted table of four entries, and for each input and output bit a
shared mask and its encryption. A pool stores it, an item for each block.

Masks and tables are encrypted under a secret that exists as shares only, so their ciphertexts are public. What is opened later is a bit under a mask. A mask
that serves two bits gives away whether they are equal: a party claims items in the journal of the pool before it opens anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from keyquorum.backends.embedded import Embedded
from keyquorum.dsl import ShareVector
from keyquorum.model.committee import Committee
from keyquorum.model.domains import Sharing
from keyquorum.model.errors import ParameterError
from keyquorum.programs.signatures import lwe_gate_bits, sample_bits
from keyquorum.schemes.circuit import Forms
from keyquorum.schemes.lwe.variant import LweVariant
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.variants import Preprocessing, PreprocessingKind, Section

from .encryption import SEED, EncryptedBits, encrypt_shared, runs_of
from .parameters import GateParameters

Words = NDArray[np.uint64]
OF_A_GATE = 6
"""Ciphertexts of a gate: two masks, then the entries (0, 0), (0, 1), (1, 0), (1, 1)."""
ROUNDINGS = ("round_ltz_circuit", "round_ltz_table")
"""The roundings that are never wrong."""


@dataclass(frozen=True)
class GateTables(PreprocessingKind):
    """Items for evaluations of a circuit with ``ands`` gates, and ``masks`` bits that come in or go out. ``parts``: summands of a share that a party holds;
    ``protocol``: of the shares; ``secret``: our components of s, [parts, n] (without them items are used, not made)."""

    parameters: GateParameters
    key_id: str
    ands: int
    masks: int
    held: int
    protocol: str
    secret: Words | None = field(default=None, repr=False, compare=False)

    @property
    def name(self) -> str:
        # Items are of one key.
        return f"{self.parameters.name}-gates-{self.key_id[:16]}"

    @property
    def described(self) -> str:
        return f"{self.parameters.name} gates of key {self.key_id}: {self.ands} ANDs, {self.masks} masks"

    @property
    def ciphertexts(self) -> int:
        """Of an item: first the masks of bits that come in or go out, then masks and entries of the gates, each kind of all gates."""
        return self.masks + OF_A_GATE * self.ands

    @property
    def _public(self) -> int:
        return SEED // 4 + self.ciphertexts

    @property
    def sections(self) -> list[Section]:
        # Masks as shares modulo 2; then the public seed and the bodies, which are divided among the parts.
        return [Section(self.masks, 1), Section(-(-self._public // self.held), self.parameters.modulus_bits)]

    @property
    def begins_with_opening(self) -> bool:
        # The masked inputs are opened first.
        return True

    def parts(self, group: RoundingGroup) -> int:
        return self.held

    def make(self, group: RoundingGroup, size: int) -> Preprocessing:
        # An item takes the rounds and bytes of `lwe_gate_bits`, `sample_bits` and :func:`.encrypt_shared`.
        if self.secret is None or not isinstance(group.backend, Embedded):
            raise ParameterError("items are made with the shares of the key, on the embedded engine: open the key before")
        run = runs_of(group.over(Sharing(self.protocol, self.parameters.domain)))
        made = Preprocessing([np.zeros((self.held, section.rows, size), np.uint32) for section in self.sections])
        for item in range(size):
            masks = ShareVector()
            try:
                run(sample_bits(size=self.masks), shares=masks)
                made[0][:, :, item] = masks.words & np.uint64(1)
                run(lwe_gate_bits(size=self.ands), shares=masks)
                public_seed = group.backend.session.toss(SEED)
                bits = encrypt_shared(run, self.parameters, self.secret, masks.words, public_seed)
            finally:
                masks.wipe()
            public = np.zeros(self.held * self.sections[1].rows, np.uint32)
            public[: self._public] = np.concatenate([np.frombuffer(public_seed, "<u4"), bits.bodies])
            made[1][:, :, item] = public.reshape(self.held, -1)
        return made

    def item(self, sections: Preprocessing, number: int) -> tuple[Words, EncryptedBits]:
        """Our shares modulo 2 of the masks, [parts, masks], and the ciphertexts of an item."""
        public = sections[1][:, :, number].reshape(-1).astype(np.uint32)[: self._public]
        split = SEED // 4
        return sections[0][:, :, number].astype(np.uint64), EncryptedBits(self.parameters, public[:split].astype("<u4").tobytes(), public[split:])


def require_bits(committee: Committee) -> str:
    """The protocol of the shares. Refuses a committee whose shares of rings do not split into summands, or have MACs."""
    if committee.ring_protocol is None:
        raise ParameterError(
            f"{committee.protocol} shares over prime fields alone, and the ciphertexts are modulo 2^32: take a committee of rep-field or semi"
        )
    if committee.authenticated:
        raise ParameterError(f"{committee.protocol}: encrypted tables with MACs are not made: take a committee of rep-field or semi")
    return committee.ring_protocol


def gate_tables(committee: Committee, parameters: GateParameters, key_id: str, forms: Forms, fresh: int, secret: Words | None = None) -> GateTables:
    """The items of a key for a circuit, of which the first ``fresh`` inputs are shared bits (the others are ciphertexts already). Raises ParameterError for a committee that makes none, or a circuit whose sums are too noisy."""
    parameters.check_sums(forms.longest)
    bits = fresh + forms.outputs.starts.size
    return GateTables(
        parameters, key_id, forms.ands, bits, committee.capabilities.values(committee.size, committee.threshold), require_bits(committee), secret
    )


def gate_rounding(committee: Committee, parameters: GateParameters, rounding: str = ROUNDINGS[0], width: int = 4, levels: int = 3) -> LweVariant:
    """An exact rounding of phases, and its preprocessing. Raises ParameterError for a rounding that is not exact."""
    require_bits(committee)
    if rounding == "round_mask_open":
        raise ParameterError(
            f"{parameters.name}: round_mask_open is wrong with probability |e|/2^{parameters.noise_length}, and an evaluation rounds thousands of bits, "
            "of which the wrong ones depend on secrets: take round_ltz_circuit or round_ltz_table"
        )
    if rounding == "round_flood":
        raise ParameterError(
            f"{parameters.name}: flooding that hides noise of 2^{parameters.noise_bits} with 40 bits of security does not fit below q/4 = "
            f"2^{parameters.modulus_bits - 2}: take round_ltz_circuit or round_ltz_table"
        )
    triples = rounding == ROUNDINGS[0] and committee.rounds_with_triples
    return LweVariant(rounding, parameters, width, levels, triples)


__all__ = ["OF_A_GATE", "ROUNDINGS", "GateTables", "gate_rounding", "gate_tables", "require_bits"]
