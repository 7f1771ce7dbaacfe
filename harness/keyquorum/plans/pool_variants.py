"""Which material a committee keeps for a parameter set and a rounding, and who of it rounds."""

from __future__ import annotations

from keyquorum.fhe.errors import UnknownParameterSetError
from keyquorum.fhe.lwe import LWE_SETS, LweParameters
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.fhe.parameters import load as load_parameters
from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError
from keyquorum.model.plain import Json
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


def variant_for(committee: Committee, rounding: str, parameters: LweParameters | ParameterSet, width: int = 8, levels: int = 2) -> AnyVariant:
    """A rounding as a committee keeps material for it. Refuses committees that cannot."""
    triples = rounding == "round_ltz_circuit" and committee.field_protocol != "rep-field"
    if isinstance(parameters, LweParameters):
        sharing_of(committee, parameters)
        return Variant(rounding, parameters, width, levels, triples and not committee.authenticated, committee.authenticated)
    return odd_variant(committee, rounding, parameters)


def odd_variant(committee: Committee, rounding: str, parameters: ParameterSet) -> OddVariant:
    """The same for BFV and BGV."""
    if committee.authenticated:
        raise ParameterError(f"{committee.protocol}: masks with MACs are kept for LWE alone: for BFV and BGV take rep-field, semi or shamir")
    replicated = committee.field_protocol == "rep-field"
    summands = 3 if replicated else committee.size if committee.ring_protocol else committee.threshold + 1
    return OddVariant(rounding, parameters, summands, rounding == "round_ltz_circuit" and not replicated)


def variant_of(committee: Committee, job: Json) -> AnyVariant:
    """The variant that a job names: ``parameters``, ``rounding``, ``width``, ``levels``."""
    return variant_for(committee, job["rounding"], parameter_set(job["parameters"]), job["width"], job["levels"])


def pool_group(context: PartyContext) -> RoundingGroup:
    """The parties that round with pools: all, or t + 1 of a Shamir committee, 0 to t. Every party calls this."""
    return RoundingGroup.of(context, context.committee.threshold, 0)
