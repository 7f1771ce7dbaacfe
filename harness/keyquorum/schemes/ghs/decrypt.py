"""Joint decryption of GHS: a party's share of the phase is a transform and a product away from its share of the secret, and the exact rounding takes the noise off.

Paper: GMPFHE, section 5.2 (Dec), which converts phases to bits and takes the lowest one; here the message is in the top bit (:mod:`keyquorum.fhe.ghs_ciphertexts`),
and `round_ltz_circuit` finds it without the other bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keyquorum._engine import addmod
from keyquorum.dsl import ShareVector
from keyquorum.fhe.ghs import GhsParameters, Ints, Words
from keyquorum.fhe.ghs_ciphertexts import GhsCiphertext, halved_constant, halved_products, scaled
from keyquorum.fhe.lwe import messages_to_bytes
from keyquorum.fhe.lwe_sets import SmallRingParameters
from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError
from keyquorum.schemes.base import EXACT, Decrypted
from keyquorum.schemes.lwe.variant import LweVariant, messages_of
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.numbers import kind_of
from keyquorum.sharing.randomness import wipe

SUMMANDS_BITS = 4
"""Every phase is rounded right among up to 2^SUMMANDS_BITS summands of a share: z = 2^(l+1) x / q lies at least 2^l / (2 q) from a border, and scaling moves each
summand by half a unit at most, so l = bits(q) + SUMMANDS_BITS suffices."""
LONGEST_PRIME = 57
"""Bits of the first prime, at most: l + 1 bits are a ring of `round_ltz_circuit`."""


@dataclass(frozen=True)
class GhsDecrypted(Decrypted):
    """What a receiver gets of a ciphertext file: the bits of the message, [phi(m)], and the bytes of the plaintext file (JSON)."""

    messages: Ints


def rounded_set(parameters: GhsParameters) -> SmallRingParameters:
    """Halved phases of a set to the roundings: those of LWE ciphertexts modulo the first prime with messages of one bit."""
    q = parameters.primes[0]
    if q.bit_length() > LONGEST_PRIME:
        raise ParameterError(
            f"{parameters.name}: its first prime has {q.bit_length()} bits, roundings take {LONGEST_PRIME}: take a set with a shorter one"
        )
    return SmallRingParameters(
        parameters.name, parameters.degree, q, plain_bits=1, padding_bits=0, deviation=0.0, noise_bits=0, source=parameters.source,
        ring=q.bit_length() + SUMMANDS_BITS + 1,
    )  # fmt: skip


def rounding_of(committee: Committee, name: str, parameters: GhsParameters) -> LweVariant:
    """The rounding of a committee. An item serves one coefficient. Raises ParameterError for roundings that are wrong for some noise."""
    if name != EXACT:
        raise ParameterError(
            f"{parameters.name}: ciphertexts of GHS, whose noise depends on what was evaluated, are decrypted by {EXACT} alone: take it"
        )
    if (committee.summands or committee.size) > 1 << SUMMANDS_BITS:
        raise ParameterError(
            f"{parameters.name}: phases are rounded right among {1 << SUMMANDS_BITS} summands, and this committee has more: take fewer parties"
        )
    return LweVariant(EXACT, rounded_set(parameters), triples=committee.rounds_with_triples, kind=kind_of(committee), parties=committee.size)


def phases(group: RoundingGroup, parameters: GhsParameters, secret: ShareVector, ciphertexts: Sequence[GhsCiphertext]) -> Words:
    """Our summands [parts, count phi(m)] of z = 2^l m + e + 2^(l-1) modulo 2^(l+1). Local."""
    q, length = parameters.primes[0], rounded_set(parameters).noise_length
    own, made = group.summands_of(secret.words, q), list[Words]()
    try:
        for ciphertext in ciphertexts:
            halved = halved_products(ciphertext, own)
            if 0 in group.held:  # summand 0 takes what is public, at every party that knows it
                at = group.held.index(0)
                halved[at] = addmod(np.ascontiguousarray(halved[at]), halved_constant(ciphertext), q)
            made.append(scaled(halved, q, length))
            wipe(halved)
        z = np.concatenate(made, axis=1)
        if 0 in group.held:
            z[group.held.index(0)] += np.uint64(1 << (length - 1))
        z &= np.uint64((2 << length) - 1)
        return z
    finally:
        wipe(own, *made)


def plaintexts(parameters: GhsParameters, count: int, words: Words) -> list[GhsDecrypted]:
    """The messages of ``count`` ciphertexts, from their rounded phases."""
    messages = messages_of(rounded_set(parameters), words).reshape(count, parameters.degree)
    return [GhsDecrypted(messages_to_bytes(own), own) for own in messages]


__all__ = ["GhsDecrypted", "phases", "plaintexts", "rounded_set", "rounding_of"]
