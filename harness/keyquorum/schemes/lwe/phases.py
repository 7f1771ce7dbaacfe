"""Joint decryption of LWE ciphertexts: phases (local), then one of the roundings with items of a pool."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import scale_round
from keyquorum.dsl import ShareVector
from keyquorum.fhe.lwe import LweCiphertexts
from keyquorum.parties.context import PartyContext
from keyquorum.programs.signatures import lwe_phase
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.randomness import wipe
from keyquorum.sharing.shares import Run

from .key import sharing_of

Words = NDArray[np.uint64]
BLOCK = 128
"""Ciphertexts of which the phases are computed at a time: a matrix of 1 MB for n = 1024, which stays in the cache."""


def lwe_phases(context: PartyContext, group: RoundingGroup, key: ShareVector, ciphertexts: LweCiphertexts) -> Words:
    """Our summands [parts, count words of a share] of z = 2^l m + e + 2^(l-1) modulo 2^k for each ciphertext. Local, but for one comparison of the kept engine; every party calls this.

    Modulo 2^64 these are the shares of the phases. Modulo a prime each summand is scaled to 2^k u / q and rounded by who knows it:
    half a unit each, of 2^l for a message.
    """
    parameters, length = ciphertexts.parameters, ciphertexts.parameters.noise_length
    shares = _shares(context, key, ciphertexts)
    if not parameters.prime:
        return shares
    summands = group.summands_of(shares, parameters.prime)
    t = 1 << parameters.message_bits
    result = np.stack([scale_round(np.ascontiguousarray(part), t, length, parameters.prime)[0] for part in summands])
    if 0 in group.held:  # summand 0 takes the offset, at every party that knows it
        result[group.held.index(0)] += np.uint64(1 << (length - 1))
    result &= np.uint64((1 << parameters.ring_bits) - 1)
    wipe(summands, shares)
    return result


def phases_modulo_q(context: PartyContext, group: RoundingGroup, key: ShareVector, ciphertexts: LweCiphertexts) -> Words:
    """Our shares [1, parts, count] of the phases b - <a, s> modulo the prime q, which are not scaled. Local, but for the comparison of :func:`lwe_phases`; every party calls this."""
    shares = _shares(context, key, ciphertexts)
    result = group.summands_of(shares, ciphertexts.parameters.prime)[None]
    wipe(shares)
    return result


def _shares(context: PartyContext, key: ShareVector, ciphertexts: LweCiphertexts) -> Words:
    """Our shares of the phases; modulo 2^64 with the offset 2^(l-1)."""
    parameters = ciphertexts.parameters
    file = ShareVector.from_sections([key.words], key.element_words)
    file.take_mac(key)
    n, count, length = parameters.dimension, ciphertexts.count, parameters.noise_length
    call = lwe_phase(n=n, count=count, offset=0 if parameters.prime else 1 << (length - 1), block=BLOCK)
    with Run(context).over(sharing_of(context.committee, parameters)).shares(file) as working:
        working.run(call, public=ciphertexts.words(BLOCK), keep=True)
        return working.tail(count * file.element_words)
