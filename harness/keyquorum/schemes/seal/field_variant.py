"""Exact decryption of BFV and BGV over prime fields alone: F_q, and F_t of the messages (:mod:`keyquorum.sharing.field_variant`)."""

from __future__ import annotations

from dataclasses import dataclass

from keyquorum.fhe.parameters import ParameterSet
from keyquorum.model.committee import Committee, check_name
from keyquorum.model.errors import ParameterError
from keyquorum.programs import Call
from keyquorum.programs.signatures import round_field_close
from keyquorum.sharing.field_variant import FieldVariant, check_rounding
from keyquorum.sharing.variants import Destination

from .phases import check_exact


@dataclass(frozen=True, kw_only=True)
class SealFieldVariant(FieldVariant):
    """`round_ltz_circuit` for one BFV or BGV set, over F_q and F_t. An item serves one coefficient."""

    parameters: ParameterSet

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
    def factor(self) -> int:
        """t."""
        return self.parameters.plain_modulus

    @property
    def field(self) -> int:
        """t, which is prime."""
        return self.parameters.plain_modulus

    def closing(self, size: int, to: Destination) -> Call:
        """See :class:`.FieldVariant`."""
        return round_field_close(size=size, l=self.length, q=self.modulus, t=self.factor, destination=to)


def field_variant(committee: Committee, rounding: str, parameters: ParameterSet) -> SealFieldVariant:
    """The rounding of a committee that verifies products, and has prime fields alone. Raises ParameterError for another rounding."""
    check_rounding(committee, rounding)
    return SealFieldVariant(protocol=committee.protocol, parties=committee.size, threshold=committee.threshold, parameters=parameters)
