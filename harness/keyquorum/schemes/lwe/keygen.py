"""Joint generation of LWE keys: a secret of random bits that exists as shares only, and its public key ``public.lwepk``."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np

from keyquorum.dsl import ShareVector
from keyquorum.fhe.lwe import LweParameters
from keyquorum.fhe.lwe_public import PUBLIC_FILE, LwePublicKey, expand_mask, public_noise, residues
from keyquorum.model.committee import Committee, require_embedded
from keyquorum.parties.context import PartyContext
from keyquorum.programs.signatures import lwe_public_key, sample_bits, sample_tuniform
from keyquorum.schemes.generation import Generation, Preamble, Transcript
from keyquorum.schemes.keys import KeyMaterial, KeyRequest
from keyquorum.sharing.shares import Run

from .key import LweKeyInfo, sharing_of

PREAMBLE = Preamble("LWE key parameters", b"keyquorum LWE key", seeded=False)


@dataclass(frozen=True)
class LweRequest(KeyRequest):
    """An LWE key to be made. It has no options."""

    verified: ClassVar[bool] = True
    parameters: LweParameters

    def check_committee(self, committee: Committee) -> None:
        """Refuses a committee that cannot share modulo q."""
        sharing_of(committee, self.parameters)


def generate(context: PartyContext, request: LweRequest) -> KeyMaterial[LweKeyInfo]:
    """Makes a key jointly: see :func:`make_lwe_key` and :func:`make_lwe_public_key`."""
    with _generation(context, request.parameters) as made:
        share = _make_secret(made)
        public = _make_public_key(made.run, request.parameters, made.key_id, share).to_bytes()
        made.public[PUBLIC_FILE] = public
        return made.finish(LweKeyInfo, Transcript(PREAMBLE.tag, made.key_id.encode(), public).hexdigest())


def make_lwe_key(context: PartyContext, parameters: LweParameters) -> tuple[LweKeyInfo, ShareVector]:
    """Makes a secret jointly; every party calls this. Rounds and bytes are those of `sample_bits`."""
    with _generation(context, parameters) as made:
        share = _make_secret(made)
        return made.finish(LweKeyInfo, transcript="").info, share


def make_lwe_public_key(context: PartyContext, info: LweKeyInfo, share: ShareVector) -> LwePublicKey:
    """Makes the public key of a secret jointly; every party calls this. The noise exists as shares only, and the body is opened to all, who compare
    it. Rounds and bytes are those of `sample_tuniform` and `lwe_public_key`."""
    return _make_public_key(Run(context), info.parameters, info.key_id, share)


def _generation(context: PartyContext, parameters: LweParameters) -> Generation[LweRequest]:
    sharing_of(context.committee, parameters)
    require_embedded(context.committee, context.backend.name)
    return Generation(context, LweRequest(parameters), PREAMBLE, [asdict(parameters)])


def _make_secret(made: Generation[LweRequest]) -> ShareVector:
    """s, random bits."""
    context, parameters, share = made.context, made.request.parameters, made.keep(ShareVector())
    with context.phase("secret"):
        made.run.over(sharing_of(context.committee, parameters)).run(sample_bits(size=parameters.dimension), share)
    return share


def _make_public_key(run: Run, parameters: LweParameters, key_id: str, share: ShareVector) -> LwePublicKey:
    """b = A s + e for a public A."""
    context, n = run.context, parameters.dimension
    mask_seed = hashlib.shake_256(b"keyquorum LWE public key" + context.session.toss(64)).digest(64)
    with run.over(sharing_of(context.committee, parameters)).shares(share.copy(), s=n) as working:
        with context.phase("noise"):
            working.run(sample_tuniform(size=n, b=public_noise(parameters).bound_bits), appends="e")
        with context.phase("public key"):
            mask = expand_mask(parameters, mask_seed).view(np.int64)
            opened = working.run(lwe_public_key(n=n, s=working["s"], e=working["e"]), public=[mask])
            made = LwePublicKey(parameters, key_id, mask_seed, residues(parameters, opened))
            context.session.compare("public key of LWE", hashlib.sha256(made.to_bytes()).digest())
    return made
