"""Decryption of multi-key ciphertexts by a committee of all parties of the ciphertext, each a process of its own.

Party i alone knows u_i = c_i s_i, so (u_0, ..., u_(k-1)) is an additive sharing of the phase, without key shares and without key generation inside MPC.
:func:`decrypt_exactly` rounds it with the programs that round phases of joint keys, and opens the message alone. :func:`decrypt_flooded` is what papers on
multi-key encryption do: each party adds noise of its own, and the sum is opened.

Committees are ``semi``: additive shares, semi-honest, all but one corrupted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from keyquorum import _engine
from keyquorum.dsl.files.share_vector import Unsigned
from keyquorum.fhe import _arith
from keyquorum.model.chosen_committees import ADDITIVE, ADDITIVE_RING
from keyquorum.model.errors import CiphertextError, ParameterError
from keyquorum.parties.context import PartyContext
from keyquorum.schemes.seal.variant import SealVariant, seal_variant
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.randomness import uniform_bits, wipe
from keyquorum.sharing.rounding import ROUNDINGS, scaled_words
from keyquorum.sharing.variants import Preprocessing

from .gadgets import Gadget
from .ring import Ints, Ring, Words
from .scheme import Ciphertext, residues_modulo, switch

FLOODED_LEVEL = 2
"""Primes at which results are flooded: one does not hold noise that hides the noise of a ciphertext."""
FLOODING_SECURITY = 40
"""A phase and its flooding are at a statistical distance of about 2^-FLOODING_SECURITY from the message and a flooding, a coefficient."""


def rounding_of(context: PartyContext, gadget: Gadget) -> SealVariant:
    """The rounding of phases among these parties."""
    return seal_variant(context.committee, ROUNDINGS[0], gadget.parameters)


def prepare(context: PartyContext, gadget: Gadget) -> Preprocessing:
    """Preprocessing for one ciphertext, of which nothing is known but the set; every party calls this. :func:`decrypt_exactly` uses it once."""
    return rounding_of(context, gadget).make(_group(context, 0), gadget.ring.degree)


def decrypt_exactly(
    context: PartyContext, gadget: Gadget, secret: Words, ciphertext: Ciphertext, receiver: int = 0, items: Sequence[Unsigned] | None = None
) -> Ints | None:  # fmt: skip
    """The message, coefficients centred modulo t, at the receiver, and None elsewhere; every party calls this with its own secret. ``items``: of
    :func:`prepare`, which are wiped (default: made now). Right for every phase below half of the last prime in magnitude.

    Rounds and bits: those of `round_ltz_circuit_odd_ring_online` and `round_ltz_circuit_odd_field_online`, and one comparison of the ciphertext.
    Raises ParameterError unless the committee is ``semi`` and has exactly the parties of the ciphertext."""
    _check(context, ciphertext)
    q, t = gadget.ring.primes[0], gadget.t
    group, variant = _group(context, receiver), rounding_of(context, gadget)
    u = _summand(gadget, secret, switch(gadget, ciphertext), context.party)
    scaled = _engine.mulmod_scalar(u[0], pow(t, -1, q), q)  # noise above, message below: as a phase of BFV
    z = np.stack(scaled_words(group, scaled[None], q, t, variant.length))
    taken = prepare(context, gadget) if items is None else items
    try:
        words = variant.use(group, z, taken, group.receiver)
    finally:
        wipe(u, scaled, z)
        for section in taken:
            section.fill(0)
    # The rounded number h is that of t x = w + q h, for the phase w = t x modulo q.
    return None if words is None else _arith.centred(_engine.mulmod_scalar(words[0], -q % t, t), t)


def decrypt_flooded(context: PartyContext, gadget: Gadget, secret: Words, ciphertext: Ciphertext, receiver: int = 0) -> Ints | None:
    """The same by noise flooding, at :data:`FLOODED_LEVEL` primes, to which the ciphertext is switched first: that leaves noise of known size, if the noise before is
    below a prime that is dropped. One round: each party sends 2 N words. Raises ParameterError as
    :func:`decrypt_exactly`, or if the level is too low, and CiphertextError for a damaged message of a party."""
    _check(context, ciphertext)
    if ciphertext.level <= FLOODED_LEVEL:
        raise ParameterError(
            f"flooding needs more than {FLOODED_LEVEL} primes, the ciphertext has {ciphertext.level}: decrypt it before it is switched"
        )
    ring = gadget.ring.at(FLOODED_LEVEL)
    u = _summand(gadget, secret, switch(gadget, ciphertext, FLOODED_LEVEL), context.party)
    flooded = _flooded(ring, gadget.t, u, context.parties)
    wipe(u)
    if context.party != receiver:
        context.session.send(receiver, flooded.tobytes())
        return None
    total = flooded
    for party in range(context.parties):
        if party != receiver:
            total = ring.add(total, _received(context, ring, party))
    return _arith.centred(residues_modulo(ring, total, gadget.t), gadget.t)


def flooding_bits(ring: Ring, t: int, parties: int) -> int:
    """b: a party floods with t e, e uniform in [-2^b, 2^b). Modulus switching leaves at most 2 (t + 1)(1 + k N) in a coefficient of the phase."""
    return ((2 * (t + 1) * (1 + parties * ring.degree)) // t + 1).bit_length() + FLOODING_SECURITY


def _flooded(ring: Ring, t: int, u: Words, parties: int) -> Words:
    """A summand with noise."""
    bits = flooding_bits(ring, t, parties)
    noise = uniform_bits(ring.degree, bits + 1)
    noise -= 1 << bits
    out = np.stack(
        [_engine.addmod(part, _engine.mulmod_scalar((noise % q).astype(np.uint64), t, q), q) for part, q in zip(u, ring.primes, strict=True)]
    )
    wipe(noise)
    return out


def _received(context: PartyContext, ring: Ring, party: int) -> Words:
    """The flooded summand of a party."""
    size = 8 * len(ring.primes) * ring.degree
    data = context.session.recv(party, size)
    if len(data) != size:
        raise CiphertextError(f"party {party} sent {len(data)} bytes of a flooded summand, expected {size}: it runs other code or parameters")
    words = np.frombuffer(data, dtype=np.uint64).reshape(len(ring.primes), ring.degree)
    if any(int(part.max()) >= q for part, q in zip(words, ring.primes, strict=True)):
        raise CiphertextError(f"party {party} sent a flooded summand that is not reduced modulo its primes: it runs other code or parameters")
    return words


def _group(context: PartyContext, receiver: int) -> RoundingGroup:
    return RoundingGroup.of(context, context.committee.threshold, receiver)


def _check(context: PartyContext, ciphertext: Ciphertext) -> None:
    """Refuses other committees than ``semi``, and ciphertexts of other parties; compares the ciphertext among the parties."""
    committee = context.committee
    if committee.protocol not in (ADDITIVE, ADDITIVE_RING):
        raise ParameterError(f"summands of a multi-key phase are additive shares: make a committee of {ADDITIVE}, not {committee.protocol}")
    if ciphertext.parties != tuple(range(committee.size)) or ciphertext.layout != "compact":
        raise ParameterError(
            f"the ciphertext is of parties {ciphertext.parties} ({ciphertext.layout}), the committee of {committee.size}: all of its parties decrypt, "
            "and no others; extend it, or make a committee of them"
        )
    context.session.compare("multi-key ciphertext", hashlib.sha256(ciphertext.parts.tobytes()).digest())


def _summand(gadget: Gadget, secret: Words, ciphertext: Ciphertext, party: int) -> Words:
    """u_i = c_i s_i, and for party 0 c_0 + c_1 s_0: coefficients [primes, N]."""
    ring = gadget.ring.at(ciphertext.level)
    product = ring.mul(np.ascontiguousarray(ciphertext.parts[:, 1 + party]), secret[: ciphertext.level])
    u = ring.add(product, np.ascontiguousarray(ciphertext.parts[:, 0])) if party == 0 else product
    out = ring.intt(u)
    wipe(u, product)
    return out


__all__ = ["FLOODED_LEVEL", "FLOODING_SECURITY", "decrypt_exactly", "decrypt_flooded", "flooding_bits", "prepare", "rounding_of"]
