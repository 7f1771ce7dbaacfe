"""Phases of RLWE ciphertexts, as shares modulo one prime."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import mulmod_scalar
from keyquorum.dsl import ShareVector, wiped_on_failure
from keyquorum.dsl.files.origin import Origin
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.fhe.seal_format import Ciphertext
from keyquorum.model.errors import ParameterError
from keyquorum.parties.context import PartyContext
from keyquorum.programs.signatures import rlwe_phase
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.randomness import wipe
from keyquorum.sharing.shares import Run, Shares

from .key import SealKeyInfo

Words = NDArray[np.uint64]


def shares_of_phase(
    context: PartyContext, info: SealKeyInfo, share: ShareVector, index: int, ciphertext: Ciphertext, factor: int = 1, keep: bool = False
) -> Shares:  # fmt: skip
    """Shares of factor (c0 + c1 s) modulo the prime ``index``, coefficients, as segment ``phase`` after ``s``: a copy of the key's share file modulo that prime,
    with the phase appended. Local. ``keep``: see :meth:`.Backend.run`."""
    n, q = info.parameters.ring_degree, info.parameters.coeff_modulus[index]
    working = Run(context).field(q).shares(share.copy(), s=n)
    public = [mulmod_scalar(np.ascontiguousarray(ciphertext.data[i, index]), factor, q).astype(np.int64) for i in (0, 1)]
    call = rlwe_phase(N=n, q=q, form_in="ntt" if ciphertext.is_ntt else "coeff", form_out="coeff", s=working["s"])
    with wiped_on_failure(working.file):
        working.run(call, public=public, keep=keep, appends="phase")
    return working


def check_exact(parameters: ParameterSet) -> None:
    """Refuses sets whose ciphertexts cannot be decrypted exactly."""
    if parameters.scheme == "ckks":
        raise ParameterError(f"{parameters.name}: CKKS has no exact messages: decryption is flooded, and uses no pool")
    if parameters.plain_modulus % 2 == 0:
        raise ParameterError(f"plain modulus {parameters.plain_modulus} is even: exact decryption in a plan needs an odd prime")


def exact_summands(
    group: RoundingGroup, info: SealKeyInfo, share: ShareVector, ciphertexts: Sequence[Ciphertext], keep: bool = False
) -> tuple[Words, list[Origin]]:
    """Our summands [parts, count N] of the phases of BFV or BGV ciphertexts at the last prime, the noise below the message for both; and the origins
    of the phases."""
    check_exact(info.parameters)
    q, t, context = info.parameters.coeff_modulus[0], info.parameters.plain_modulus, group.context
    factor = pow(t, -1, q) if info.parameters.scheme == "bgv" else 1
    summands, origins = list[Words](), list[Origin]()
    with context.phase("phase", len(ciphertexts)) as step:
        for ciphertext in ciphertexts:
            with shares_of_phase(context, info, share, 0, ciphertext, factor, keep) as working:
                summands.append(group.summands_of(working.file.words[:, working["phase"].slice], q))
                origins += [origin.copy() for origin in working.file.origins]
            step()
        u = np.ascontiguousarray(np.concatenate(summands, axis=1))
    wipe(*summands)
    return u, origins


def plain_coefficients(parameters: ParameterSet, ciphertext: Ciphertext, words: NDArray[np.int64]) -> Words:
    """Coefficients modulo t of a plaintext, from rounded phases (any representatives).

    BGV: the phase w is divided by t modulo q first, so what is rounded is t x / q for x = w / t modulo q. As t x = w + q h for an integer h, and |w| < q/2, that gives h, and w = -q h
    modulo t. The message is w over the correction factor of the ciphertext, whatever q is modulo t."""
    t = parameters.plain_modulus
    coefficients = np.ascontiguousarray((words % t).astype(np.uint64))
    if parameters.scheme == "bgv":
        unit = -parameters.coeff_modulus[0] * pow(ciphertext.correction_factor, -1, t) % t
        coefficients = mulmod_scalar(coefficients, unit, t)
    return coefficients
