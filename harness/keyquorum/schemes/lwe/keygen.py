"""Joint generation of LWE keys: a secret of random bits that exists as shares only, and its public key ``public.lwepk``."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import ClassVar

import numpy as np

from keyquorum.dsl import Persistence
from keyquorum.fhe.lwe import LweParameters
from keyquorum.fhe.lwe_public import PUBLIC_FILE, LwePublicKey, expand_mask, public_noise, residues
from keyquorum.model.committee import Committee, require_embedded
from keyquorum.model.needs import Needs
from keyquorum.parties.context import PartyContext
from keyquorum.programs import Layout
from keyquorum.programs.signatures import lwe_public_key, sample_bits, sample_tuniform
from keyquorum.schemes.keys import KeyMaterial, KeyRequest, Plain

from .key import LweKeyInfo, parameters_from_json, sharing_of


@dataclass(frozen=True)
class LweRequest(KeyRequest):
    """An LWE key to be made. It has no options."""

    verified: ClassVar[bool] = True
    parameters: LweParameters

    def to_json(self) -> Plain:
        """See :class:`.KeyRequest`."""
        return {"parameters": asdict(self.parameters)}

    @staticmethod
    def from_json(data: Plain) -> LweRequest:
        """Inverse of :meth:`to_json`."""
        return LweRequest(parameters_from_json(data["parameters"]))

    def check(self, contributors: int = 1) -> None:
        """Every set has keys."""

    def check_committee(self, committee: Committee) -> None:
        """Refuses a committee that cannot share modulo q."""
        sharing_of(committee, self.parameters)

    def warnings(self, committee: Committee | None = None) -> list[str]:
        """None."""
        return []

    def needs(self, committee: Committee) -> Needs | None:
        """A few thousand shares are next to nothing."""
        return None


def generate(context: PartyContext, request: LweRequest, seed: bytes | None = None) -> KeyMaterial[LweKeyInfo]:
    """Makes a key jointly: see :func:`make_lwe_key` and :func:`make_lwe_public_key`."""
    info, share = make_lwe_key(context, request.parameters, seed)
    public = make_lwe_public_key(context, info, share, seed).to_bytes()
    info = replace(info, transcript=hashlib.sha256(b"keyquorum LWE key" + info.key_id.encode() + public).hexdigest())
    return KeyMaterial(info, {PUBLIC_FILE: public}, [share])


def make_lwe_key(context: PartyContext, parameters: LweParameters, seed: bytes | None = None) -> tuple[LweKeyInfo, Persistence]:
    """Makes a secret jointly; every party calls this. Rounds and bytes are those of `sample_bits`. ``seed``: INSECURE, tests."""
    committee = context.committee
    protocol, domain = sharing_of(committee, parameters)
    require_embedded(committee, context.backend.name)
    described = json.dumps([asdict(parameters), committee.protocol, committee.size, committee.threshold]).encode()
    context.session.compare("LWE key parameters", hashlib.sha256(described).digest())
    key_id = hashlib.sha256(b"keyquorum LWE key" + context.session.toss(32) + described).hexdigest()[:32]
    share = Persistence()
    with context.phase("secret"):
        call = sample_bits(size=parameters.dimension)
        context.backend.run(protocol, domain, call, threshold=committee.threshold, persistence=share, seed=seed)
    info = LweKeyInfo(key_id=key_id, parameters=parameters, protocol=committee.protocol, parties=committee.size, threshold=committee.threshold)
    return info, share


def make_lwe_public_key(context: PartyContext, info: LweKeyInfo, share: Persistence, seed: bytes | None = None) -> LwePublicKey:
    """Makes the public key of a secret jointly; every party calls this. The noise exists as shares only, and the body is opened to all, who compare
    it. Rounds and bytes are those of `sample_tuniform` and `lwe_public_key`. ``seed``: INSECURE, tests."""
    committee, parameters = context.committee, info.parameters
    protocol, domain = sharing_of(committee, parameters)
    mask_seed = hashlib.shake_256(b"keyquorum LWE public key" + context.session.toss(64)).digest(64)
    n, working, layout = parameters.dimension, share.copy(), Layout(secret=parameters.dimension)
    with context.phase("noise"):
        noise = sample_tuniform(size=n, b=public_noise(parameters).bound_bits)
        context.backend.run(protocol, domain, noise, threshold=committee.threshold, persistence=working, seed=seed)
        layout.append(noise, samples="noise")
    with context.phase("public key"):
        opened = context.backend.run(
            protocol, domain, lwe_public_key(n=n, s=layout["secret"], e=layout["noise"]), threshold=committee.threshold,
            public=[expand_mask(parameters, mask_seed).view(np.int64)], persistence=working, seed=seed,
        ).words  # fmt: skip
        working.wipe()
        made = LwePublicKey(parameters, info.key_id, mask_seed, residues(parameters, opened))
        context.session.compare("public key of LWE", hashlib.sha256(made.to_bytes()).digest())
    return made
