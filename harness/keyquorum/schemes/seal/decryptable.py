"""Which committees decrypt the ciphertexts of a parameter set, from public numbers alone: a key that nobody can decrypt with is not made.

BFV and BGV ciphertexts are decrypted at the last level, modulo the first prime q. There noise must stay below a share of q/(2t) (:func:`border`), and that of a fresh ciphertext, which is
switched to q, must do so. CKKS ciphertexts are decrypted at their own level, where flooding and message must fit.
"""

from __future__ import annotations

import math

from keyquorum.fhe import noise_bound
from keyquorum.fhe.parameters import MODULUS_BITS_MAX, ParameterSet
from keyquorum.model.committee import Committee
from keyquorum.model.errors import KeyQuorumError, ParameterError, PolicyError
from keyquorum.sharing.field_variant import over_fields
from keyquorum.sharing.numbers import kind_of
from keyquorum.sharing.rounding import rounding_length

from .phases import check_exact
from .policy import FloodPolicy, flooding_distribution, flooding_variance
from .precision import check_key_precision
from .ring import decrypts_in_ring, margin

MESSAGE_SCALES = 4.0
"""Coefficients of a CKKS message have up to so many scales."""


def border(parameters: ParameterSet, committee: Committee) -> float:
    """The share of q/(2t) below which noise of a BFV or BGV ciphertext must stay for this committee to decrypt it; at 1, every ciphertext that SEAL decrypts. Raises ParameterError for a
    committee that cannot round under this set."""
    q, t = parameters.coeff_modulus[0], parameters.plain_modulus
    if over_fields(committee):
        if t <= committee.size:
            raise ParameterError(
                f"{parameters.name}: Shamir's sharing among {committee.size} parties takes a plain modulus above {committee.size}, not {t}"
            )
        return 1.0
    if kind_of(committee).one_ring and decrypts_in_ring(parameters):
        return 1 - 2 * t * margin(parameters) / q
    return 1 - committee.summands / 2.0 ** rounding_length(q, t, committee.summands)


def room(parameters: ParameterSet, committee: Committee | None = None) -> float:
    """Bits that the noise of a fresh BFV or BGV ciphertext may grow, at its level and at each lower one. ``committee``: below its :func:`border`; None: below that of SEAL. Below 0 a
    decryption may be wrong."""
    fresh = noise_bound.fresh(parameters)
    assert fresh is not None
    share = 1.0 if committee is None else border(parameters, committee)
    return -math.inf if share <= 0 else noise_bound.final_budget(parameters, fresh) + math.log2(share)


def check_set(parameters: ParameterSet) -> None:
    """Refuses a set of BFV or BGV that no committee can decrypt. Raises ParameterError, with the cure."""
    if parameters.scheme == "ckks":
        return
    check_exact(parameters)
    _check_room(parameters, room(parameters), "ciphertexts")


def check_decryptable(parameters: ParameterSet, policy: FloodPolicy, committee: Committee) -> None:
    """Refuses a set whose ciphertexts this committee cannot decrypt. Raises ParameterError or PolicyError, in one line, with the cure."""
    if parameters.scheme == "ckks":
        _check_flooding(parameters, policy, committee)
        return
    check_set(parameters)
    _check_room(parameters, room(parameters, committee), f"{committee.protocol}: ciphertexts")


def undecryptable(parameters: ParameterSet, policy: FloodPolicy, committee: Committee) -> str:
    """Why this committee cannot decrypt ciphertexts of a set; empty where it can."""
    try:
        check_decryptable(parameters, policy, committee)
    except KeyQuorumError as error:
        return str(error)
    return ""


def _check_room(parameters: ParameterSet, bits: float, what: str) -> None:
    if bits >= 0:
        return
    q, t = parameters.coeff_modulus[0], parameters.plain_modulus
    wanted = q.bit_length() + math.ceil(min(-bits, MODULUS_BITS_MAX)) + 1
    cure = f"put a prime of {wanted} bits first, or take a smaller plain_modulus" if wanted <= MODULUS_BITS_MAX else "take a smaller plain_modulus"
    raise ParameterError(
        f"{parameters.name}: {what} cannot be decrypted, since fresh noise fills the first prime {q} of {q.bit_length()} bits under plain modulus {t}: {cure}"
    )


def _check_flooding(parameters: ParameterSet, policy: FloodPolicy, committee: Committee) -> None:
    """Refuses a CKKS set and policy that leave a value too few bits, or of which the highest level does not hold message and flooding."""
    n, policy = parameters.ring_degree, policy.for_set(parameters)
    policy.check(n)
    check_key_precision(parameters, policy, flooding_variance(policy, n, committee.shape))
    wanted = 2 * (MESSAGE_SCALES * parameters.scale + flooding_distribution(policy, n, committee.shape).largest)
    if math.prod(parameters.moduli(parameters.levels)) <= wanted:
        raise PolicyError(
            f"{parameters.name}: no ciphertext can be decrypted, since all primes but the last have {math.log2(math.prod(parameters.moduli(parameters.levels))):.0f} bits, and scale and flooding take "
            f"{math.log2(wanted):.0f}: add a prime, or take a smaller policy (--decryptions, --noise-bits)"
        )


__all__ = ["MESSAGE_SCALES", "border", "check_decryptable", "check_set", "room", "undecryptable"]
