"""Targets that run programs: a protocol in a domain, on the embedded engine or on MP-SPDZ, with its capabilities."""

from __future__ import annotations

from dataclasses import dataclass

from .builder import Program
from .domain import FIELD, RING, SMALL, TINY, Domain

OFFERS = frozenset({"binary", "dabit", "party 1", "party 2", "listed", "file", "shuffle", "wide"})
"""What a program may need beyond arithmetic: a binary domain, bits shared in both domains, inputs of parties 1 and 2, the public input file, the
share file, shuffles, constants of more than 32 bits."""
OF_RINGS = frozenset({"ring", "split"})
"""Z_2^64, and shares that split into summands."""


@dataclass(frozen=True)
class Target:
    """``engine``: embedded or mp-spdz."""

    engine: str
    protocol: str
    parties: int
    domain: Domain
    offers: frozenset[str]

    @property
    def shows_refusals(self) -> bool:
        """Whether refusals are tested on this target: the front end refuses, so a few protocols are enough."""
        return self.protocol in ("ring", "rep-field") and self.domain in (RING, FIELD)

    @property
    def only_field_refusals(self) -> bool:
        """Whether this target is only for refusals of fields: MP-SPDZ compiles the other programs once."""
        return self.engine == "mp-spdz" and not self.domain.ring

    @property
    def name(self) -> str:
        """For reports."""
        suffix = {RING: "", FIELD: "-q60", SMALL: "-q50", TINY: "-q17"}[self.domain]
        return f"{self.engine}:{self.protocol}-{self.parties}{suffix}"

    def takes(self, program: Program) -> bool:
        """Whether this target has the capabilities that the program needs."""
        return program.needs <= self.offers and program.room <= self.domain.length


def _embedded(protocol: str, parties: int, domain: Domain) -> Target:
    offers = OFFERS | (OF_RINGS if domain.ring else frozenset())
    if protocol in ("shamir", "mal-shamir"):
        offers -= {"binary", "dabit"}
    if parties == 2:
        offers -= {"party 2"}
    if domain is TINY:
        offers -= {"wide"}
    if protocol == "spdz2k":
        offers -= {"split"}
    return Target("embedded", protocol, parties, domain, offers)


EMBEDDED = [
    _embedded("emulate", 1, RING),
    _embedded("emulate", 1, FIELD),
    _embedded("ring", 3, RING),
    _embedded("rep-field", 3, FIELD),
    _embedded("rep-field", 3, SMALL),
    _embedded("rep-field", 3, TINY),
    _embedded("shamir", 3, FIELD),
    _embedded("shamir", 5, FIELD),
    _embedded("semi2k", 2, RING),
    _embedded("semi", 2, FIELD),
    _embedded("spdz2k", 2, RING),
    _embedded("mascot", 2, FIELD),
    _embedded("mal-rep-field", 3, FIELD),
    _embedded("mal-shamir", 3, FIELD),
]
"""The embedded engine's."""
SPDZ = [
    Target("mp-spdz", "emulate", 1, RING, OFFERS - {"party 1", "party 2", "dabit"} | OF_RINGS),
    Target("mp-spdz", "ring", 3, RING, OFFERS | OF_RINGS),
    Target("mp-spdz", "rep-field", 3, FIELD, OFFERS),
    Target("mp-spdz", "shamir", 3, FIELD, OFFERS - {"binary", "dabit"}),
]
"""MP-SPDZ's, as far as its parties are built."""
MORE_SPDZ = [
    Target("mp-spdz", "rep-field", 3, SMALL, OFFERS),
    Target("mp-spdz", "rep-field", 3, TINY, OFFERS - {"wide"}),
    Target("mp-spdz", "shamir", 5, FIELD, OFFERS - {"binary", "dabit"}),
    Target("mp-spdz", "semi2k", 2, RING, (OFFERS | OF_RINGS) - {"party 2"}),
    Target("mp-spdz", "semi", 2, FIELD, OFFERS - {"party 2"}),
]
"""Those that take longer, or add little."""
