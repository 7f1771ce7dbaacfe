"""The committees that benchmarks and the report choose, as data. Only this file of the harness names protocols; lists that mean "all" are taken
from the table by capability."""

from __future__ import annotations

from keyquorum.model.protocols import COMMITTEES, PROTOCOLS, Protocol

REPLICATED, SHAMIR, ADDITIVE, WITH_MACS = "rep-field", "shamir", "semi", "mascot"
"""One protocol over prime fields for each kind of sharing."""


def over_ring(protocol: str) -> str:
    """The protocol modulo 2^k of the same committee; the protocol itself if there is none."""
    return PROTOCOLS[protocol].ring_protocol or protocol


def over_field(protocol: str) -> str:
    """The protocol over prime fields of the same committee."""
    return PROTOCOLS[protocol].field_protocol


def verified(protocol: str) -> str:
    """The protocol over prime fields of the same sharing that verifies products."""
    return next(p.name for p in COMMITTEES.values() if p.verifies_products and p.field and p.sharing == PROTOCOLS[protocol].sharing)


VERIFIED_REPLICATED, VERIFIED_SHAMIR = map(verified, (REPLICATED, SHAMIR))
"""The same with products that are verified."""
REPLICATED_RING, ADDITIVE_RING, RING_WITH_MACS = map(over_ring, (REPLICATED, ADDITIVE, WITH_MACS))


_RUN_ALL_PLANS = tuple(p for p in COMMITTEES.values() if not p.verifies_products)
"""Protocols of committees that run all plans: those that verify products run few."""


def distinct(macs: bool | None = None) -> tuple[str, ...]:
    """One protocol a committee, over prime fields: two protocols of the same sharing are the same committee. ``macs``: only with, or without. Not those that
    verify products."""
    fields = dict.fromkeys(p.field_protocol for p in _RUN_ALL_PLANS)
    return tuple(name for name in fields if macs is None or PROTOCOLS[name].macs == macs)


def with_capability(**capabilities: object) -> tuple[str, ...]:
    """Protocols of committees that have all these capabilities. Not those that verify products."""
    return tuple(p.name for p in _RUN_ALL_PLANS if all(getattr(p, name) == value for name, value in capabilities.items()))


def lwe_set(protocol: str) -> str:
    """The parameter set of LWE that a committee can share: modulo 2^64, or modulo a prime where the sharing has no ring."""
    return "lwe53-p16" if PROTOCOLS[protocol].ring_protocol is None else "lwe64-p2"


def split_options(protocol: Protocol, parties: int) -> list[str]:
    """Options for MP-SPDZ's compiler about the summands of a share."""
    return ["-Z", str(protocol.summands(parties))] if protocol.splits else []
