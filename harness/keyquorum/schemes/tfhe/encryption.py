"""Shared bits, encrypted by the parties under their shared ring secret: public ciphertexts of TFHE-rs, of bits that nobody knows.

Opened are bodies b = <a, z> + e + 2^59 r of random bits r, and bit xor r. The bodies are samples of LWE as those of the public key, with the noise of fresh
ciphertexts of the set.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from keyquorum.backends.base import Mode
from keyquorum.dsl import ShareVector, wiped_on_failure
from keyquorum.fhe.lwe import LweCiphertexts, Words
from keyquorum.fhe.seeded_files import SEED_BYTES
from keyquorum.fhe.tfhe import masks
from keyquorum.model.domains import Ring
from keyquorum.parties.context import PartyContext
from keyquorum.programs import Call, Layout
from keyquorum.programs.signatures import lwe_bodies, open_masked, sample_bits, sample_tuniform
from keyquorum.sharing.randomness import wipe

from .key import TfheKeyInfo, sharing_of

AT_ONCE = 512
"""Ciphertexts of which the masks are multiplied together: 8 MB."""
BIT_DOMAIN = Ring(1)


def encrypt_shared_bits(context: PartyContext, info: TfheKeyInfo, secret: Words, bits: Words) -> LweCiphertexts:
    """Ciphertexts of shared bits, [count] of them; every party calls this, and has the same result.

    ``secret``: our parts of z, [parts, dimension], modulo 2^64; ``bits``: of the bits, [parts, count], modulo 2. The masks a come from a seed that the parties toss.
    Rounds and bytes: those of `sample_bits`, `sample_tuniform` and `open_masked` for ``count``, and 1 round of 8 ``count`` bytes for every :data:`AT_ONCE`."""
    p, count, committee = info.parameters, bits.shape[1], context.committee
    protocol, domain = sharing_of(committee, p)

    def run(where: str, call: Call, share: ShareVector, public: Sequence[Words] = ()) -> Words:
        words = [part.reshape(-1).view(np.int64) for part in public]
        return context.backend.run(protocol, where, call, public=words, shares=share, mode=Mode(committee.threshold)).words.view(np.uint64)

    seed = context.session.toss(SEED_BYTES)
    hidden, noise = ShareVector(), ShareVector()
    with wiped_on_failure(hidden, noise):
        run(domain, sample_bits(size=count), hidden)
        run(domain, sample_tuniform(size=count, b=p.glwe_noise, chunk=count), noise)
    file = ShareVector.from_words(np.concatenate([secret, hidden.words, noise.words], axis=1))
    lowest = hidden.words & np.uint64(1)
    both = ShareVector.from_words(np.concatenate([bits, lowest], axis=1))
    wipe(lowest)
    hidden.wipe()
    noise.wipe()
    layout, pair = Layout(z=p.dimension, r=count, e=count), Layout(x=count, r=count)
    a, bodies = masks(seed, 0, count * p.dimension).reshape(count, p.dimension), []
    with wiped_on_failure(file, both):
        for first in range(0, count, AT_ONCE):
            last = min(first + AT_ONCE, count)
            r, e = (layout[name].rows(first, last, 1) for name in ("r", "e"))
            call = lwe_bodies(n=p.dimension, count=last - first, shift=p.noise_length, s=layout["z"], m=r, e=e)
            bodies.append(run(domain, call, file, [a[first:last]]))
        opened = run(BIT_DOMAIN, open_masked(size=count, x=pair["x"], r=pair["r"]), both) & np.uint64(1)
    file.wipe()
    both.wipe()
    return flipped(LweCiphertexts(p, a, np.concatenate(bodies), float(p.glwe_noise)), opened)


def round_keys_file(prf: str) -> str:
    """Name of the file with the encrypted round keys of the PRF key of this id, in the folder of a TFHE key."""
    return f"round-keys-{prf}.lwe"


def flipped(ciphertexts: LweCiphertexts, which: Words) -> LweCiphertexts:
    """Ciphertexts of bits m, those of m xor ``which``: of 1 - m where it is 1."""
    one = np.uint64(1 << ciphertexts.parameters.noise_length)
    change = which.astype(bool)
    a = np.where(change[:, None], np.uint64(0) - ciphertexts.a, ciphertexts.a)
    b = np.where(change, one - ciphertexts.b, ciphertexts.b)
    return LweCiphertexts(ciphertexts.parameters, a, b, ciphertexts.noise_bits)


__all__ = ["encrypt_shared_bits", "flipped", "round_keys_file"]
