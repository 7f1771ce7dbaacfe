"""Joint generation of keys of AES-128: random bits and their round keys, which exist as shares only."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass

from keyquorum.dsl import Persistence, wiped_on_failure
from keyquorum.model.committee import Committee
from keyquorum.model.needs import Needs
from keyquorum.parties.context import PartyContext
from keyquorum.programs.signatures import aes_keys
from keyquorum.schemes.keys import KeyMaterial, KeyRequest, Plain

from .key import PrfKeyInfo, PrfParameters, parameters_from_json, sharing_of


@dataclass(frozen=True)
class PrfRequest(KeyRequest):
    """A key to be made. It has no options."""

    parameters: PrfParameters

    def to_json(self) -> Plain:
        """See :class:`.KeyRequest`."""
        return {"parameters": asdict(self.parameters)}

    @staticmethod
    def from_json(data: Plain) -> PrfRequest:
        """Inverse of :meth:`to_json`."""
        return PrfRequest(parameters_from_json(data["parameters"]))

    def check(self, contributors: int = 1) -> None:
        """Every set has keys."""

    def check_committee(self, committee: Committee) -> None:
        """Refuses a committee without shares of bits."""
        sharing_of(committee)

    def warnings(self, committee: Committee | None = None) -> list[str]:
        """A key that no served committee takes yet."""
        if committee is None or not committee.authenticated:
            return []
        return [f"{committee.protocol}: keys with MACs are made, but not served yet: take a committee of rep-field or semi to evaluate for receivers"]

    def needs(self, committee: Committee) -> Needs | None:
        """1,408 shares are next to nothing."""
        return None


def generate(context: PartyContext, request: PrfRequest, seed: bytes | None = None) -> KeyMaterial[PrfKeyInfo]:
    """Makes a key jointly; every party calls this. Rounds and bytes are those of `aes_keys`. Nothing is opened. ``seed``: INSECURE, tests."""
    committee = context.committee
    protocol, domain = sharing_of(committee)
    described = json.dumps([asdict(request.parameters), committee.protocol, committee.size, committee.threshold, seed is not None]).encode()
    context.session.compare("PRF key parameters", hashlib.sha256(described).digest())
    transcript = hashlib.sha256(b"keyquorum PRF key" + context.session.toss(32) + described).hexdigest()
    share = Persistence()
    with wiped_on_failure(share), context.phase("key"):
        context.backend.run(protocol, domain, aes_keys(), threshold=committee.threshold, persistence=share, seed=seed)
    info = PrfKeyInfo(
        key_id=transcript[:32], parameters=request.parameters, protocol=committee.protocol, parties=committee.size, threshold=committee.threshold,
        transcript=transcript,
    )  # fmt: skip
    return KeyMaterial(info, {}, [share])


__all__ = ["PrfRequest", "generate"]
