"""Origins of shares that were computed locally from others, where products are verified (:attr:`.Protocol.verifies_products`)."""

from __future__ import annotations

from collections.abc import Sequence

from keyquorum.dsl import ShareVector
from keyquorum.dsl.files.origin import Origin
from keyquorum.model.errors import ParameterError
from keyquorum.model.protocols import PROTOCOLS


def derive_origin(shares: ShareVector, protocol: str, domain: str, purpose: str, origins: Sequence[Origin]) -> ShareVector:
    """Gives ``shares``, which were computed locally from shares of these origins, an origin of their own (:meth:`.Origin.derived`). All parties compare
    it before a program uses the shares. Without effect where products are not verified. Returns ``shares``."""
    shares.bind(protocol, domain)
    if PROTOCOLS[protocol].verifies_products:
        if not origins:
            raise ParameterError(f"shares of {protocol} without the name of a run are not used: make the key again")
        shares.origins = [Origin.derived(purpose, origins)]
    return shares


__all__ = ["derive_origin"]
