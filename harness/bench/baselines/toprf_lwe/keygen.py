"""Joint generation of keys: an LWE secret s, a key of AES-128 with its round keys, both as shares only, and the round keys encrypted under s;
and the public key of s."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keyquorum.backends.base import Mode
from keyquorum.dsl import ShareVector
from keyquorum.fhe.lwe_sets import shipped_set
from keyquorum.model.committee import Committee
from keyquorum.parties.context import PartyContext
from keyquorum.programs import Call
from keyquorum.programs.signatures import aes_keys, sample_bits
from keyquorum.schemes.generation import Generation, Preamble, Transcript
from keyquorum.schemes.keys import KeyMaterial, KeyRequest, Plain

from .encryption import SEED, EncryptedBits, Runs, encrypt_shared
from .evaluate import open_masked_bits
from .key import BITS, PUBLIC_FILE, PUBLIC_KEY, ROUND_KEY_BITS, GateKeyInfo
from .parameters import GateParameters, gate_parameters
from .public import make_public_key
from .tables import require_bits

PREAMBLE = Preamble("parameters of a key with tables", b"keyquorum LWE key with tables")


@dataclass(frozen=True)
class GateRequest(KeyRequest):
    """A key to be made. It has no options."""

    parameters: GateParameters

    @staticmethod
    def from_json(data: Plain) -> GateRequest:
        """Inverse of :meth:`to_json`."""
        return GateRequest(shipped_set(data["parameters"], gate_parameters))

    def check_committee(self, committee: Committee) -> None:
        """Refuses a committee without shares modulo 2^32 that split into summands."""
        require_bits(committee)

    def warnings(self, committee: Committee | None = None) -> list[str]:
        """A set below 128 bits."""
        p = self.parameters
        if committee is not None or p.security_bits >= 128:
            return []
        return [f"{p.name} has about {p.security_bits} bits of security, for comparison only: take lwe32-p2 for anything else"]


def generate(context: PartyContext, request: GateRequest) -> KeyMaterial[GateKeyInfo]:
    """Makes a key jointly; every party calls this. Opened are the masked bits of the round keys, and bodies of LWE ciphertexts."""
    protocol, p = require_bits(context.committee), request.parameters
    run, run_bits = (partial(_run, context, protocol, domain) for domain in (p.domain, BITS))
    with Generation(context, request, PREAMBLE, [asdict(p)]) as made:
        secret, keys, masks = made.keep(ShareVector()), made.keep(ShareVector()), ShareVector()
        made.wiping.callback(masks.wipe)
        with context.phase("secrets"):
            run(sample_bits(size=p.dimension), shares=secret)
            run_bits(aes_keys(), shares=keys)
        with context.phase("round keys"):
            bits = _encrypt_bits(context, run, run_bits, p, secret, keys, masks)
        with context.phase("public key"):
            zeros = make_public_key(run, p, secret.words, context.session.toss(SEED)).zeros
        made.public.update({PUBLIC_FILE: bits.to_bytes(made.key_id), PUBLIC_KEY: zeros.to_bytes(made.key_id)})
        digest = hashlib.sha256(b"".join(hashlib.sha256(data).digest() for data in made.public.values())).digest()
        context.session.compare("encrypted round keys and public key", digest)
        return made.finish(GateKeyInfo, Transcript(PREAMBLE.tag, made.key_id.encode(), digest).hexdigest())


def _run(context: PartyContext, protocol: str, domain: str, call: Call, **options: Any) -> NDArray[np.int64]:
    return context.backend.run(protocol, domain, call, **options, mode=Mode(context.committee.threshold, seed=context.seed)).words


def _encrypt_bits(
    context: PartyContext,
    run: Runs,
    run_bits: Runs,
    p: GateParameters,
    secret: ShareVector,
    keys: ShareVector,
    masks: ShareVector,
) -> EncryptedBits:
    """Encryptions of shared bits k: masks r are encrypted, and k xor r is opened and added in the clear."""
    run(sample_bits(size=ROUND_KEY_BITS), shares=masks)
    made = encrypt_shared(run, p, secret.words, masks.words, context.session.toss(SEED))
    opened = open_masked_bits(run_bits, keys.words, masks.words & np.uint64(1))
    return EncryptedBits(p, made.seed, made.bodies + (opened << p.noise_length).astype(np.uint32))


__all__ = ["GateRequest", "generate"]
