"""The preprocessing of a committee for a parameter set and a rounding, and the parties that round."""

from __future__ import annotations

from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError
from keyquorum.model.plain import Json
from keyquorum.model.protocols import COMMITTEES, names
from keyquorum.parties.context import PartyContext
from keyquorum.schemes import encryption_of, load_parameters
from keyquorum.schemes.base import AnyEncryption
from keyquorum.schemes.keys import Parameters
from keyquorum.schemes.subset_keys import check_parameters
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.variants import Variant


def variant_for(committee: Committee, rounding: str, parameters: Parameters, width: int = 8, levels: int = 2) -> Variant:
    """A rounding with the preprocessing of a committee. Raises ParameterError for a committee that cannot round so, and for a subset that no decryption has. ``width``, ``levels``: of
    tables."""
    check_verified(committee, encryption_of(parameters))
    check_parameters(committee, parameters, rounding)
    return encryption_of(parameters).variant(committee, rounding, parameters, width, levels)


def check_verified(committee: Committee, scheme: AnyEncryption) -> None:
    """Refuses decryptions that a committee whose protocols verify products would make without what its users rely on. Raises ParameterError."""
    if committee.verifies_products and not scheme.verified:
        raise ParameterError(
            f"{committee.protocol}: {scheme.title} is decrypted by semi-honest committees alone, as masks and noise of parties are not checked: take a committee of "
            f"{names(COMMITTEES, verifies_products=False, last=' or ')}"
        )


def variant_of(committee: Committee, job: Json) -> Variant:
    """The variant that a job names: ``parameters``, ``rounding``, ``width``, ``levels``."""
    return variant_for(committee, job["rounding"], load_parameters(job["parameters"]), job["width"], job["levels"])


def pool_group(context: PartyContext) -> RoundingGroup:
    """The parties that round with pools: all, or t + 1 of a Shamir committee, 0 to t. Every party calls this."""
    return RoundingGroup.of(context, context.committee.threshold, 0)
