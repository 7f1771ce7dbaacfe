"""Which material a committee keeps for a parameter set and a rounding, and who of it rounds."""

from __future__ import annotations

from typing import Any

from keyquorum.fhe.errors import UnknownParameterSetError
from keyquorum.fhe.lwe import LWE_SETS, LweParameters
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.fhe.parameters import load as load_parameters
from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError
from keyquorum.model.protocols import COMMITTEES, PROTOCOLS, names
from keyquorum.parties.context import PartyContext

from .lwe_keys import sharing_of
from .odd_variants import OddVariant
from .rounding import RoundingGroup
from .variants import Variant

AnyVariant = Variant | OddVariant


def parameter_set(name: str) -> LweParameters | ParameterSet:
    """An LWE set, or a set of SEAL's schemes (shipped, or a .toml file)."""
    if name in LWE_SETS:
        return LWE_SETS[name]
    try:
        return load_parameters(name)
    except UnknownParameterSetError as error:
        raise UnknownParameterSetError(f"{error}; for LWE {', '.join(LWE_SETS)}") from None


def _multiplies_with_triples(committee: Committee) -> bool:
    """Whether the parties that round multiply with triples, which come from oblivious transfer."""
    return PROTOCOLS[committee.rounding_protocols[0]].oblivious_transfer


def variant_for(committee: Committee, rounding: str, parameters: LweParameters | ParameterSet, width: int = 8, levels: int = 2) -> AnyVariant:
    """A rounding as a committee keeps material for it. Refuses committees that cannot."""
    triples = rounding == "round_ltz_circuit" and _multiplies_with_triples(committee)
    if isinstance(parameters, LweParameters):
        sharing_of(committee, parameters)
        return Variant(rounding, parameters, width, levels, triples and not committee.authenticated, committee.authenticated)
    return odd_variant(committee, rounding, parameters)


def odd_variant(committee: Committee, rounding: str, parameters: ParameterSet) -> OddVariant:
    """The same for BFV and BGV."""
    if committee.authenticated:
        raise ParameterError(
            f"{committee.protocol}: masks with MACs are kept for LWE alone: for BFV and BGV take {names(COMMITTEES, macs=False, field=True, last=' or ')}"
        )
    triples = rounding == "round_ltz_circuit" and _multiplies_with_triples(committee)
    return OddVariant(rounding, parameters, committee.summands, triples)


def variant_of(committee: Committee, job: dict[str, Any]) -> AnyVariant:
    """The variant that a job names: ``parameters``, ``rounding``, ``width``, ``levels``."""
    return variant_for(committee, job["rounding"], parameter_set(job["parameters"]), job["width"], job["levels"])


def pool_group(context: PartyContext) -> RoundingGroup:
    """The parties that round with pools: all, or t + 1 of a Shamir committee, 0 to t. Every party calls this."""
    return RoundingGroup.of(context, context.committee.threshold, 0)
