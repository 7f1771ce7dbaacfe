"""Exact decryption of BFV and BGV in one ring with MACs: nothing leaves the domain in which the key is authenticated.

Everybody switches the ciphertext from q to 2^k, and the program `round_ltz_ring` takes the phase from shares of the secret modulo 2^64, which key generation proved to be the same
secret (:mod:`keyquorum.sharing.numbers.lift_tests`). No party inputs anything, every product and opening is checked, and the receiver gets the message alone.

**The error of the switch.** A ciphertext has c0 + c1 s = w modulo q with t w/q = m + t e/q modulo t. The switched c0' = 2^k c0/q + d0 and c1' = 2^k c1/q + d1 have roundings d0, d1 of at most 1/2,
so c0' + c1' s = 2^k w/q + d with |d| <= (1 + |s|_1)/2 <= (N + 1)/2, modulo 2^k. With the offset 2^k/(2t), rounded down, the message is right if |e| < q/(2t) - :func:`margin`, where
margin = (q/2^k) (N + 3)/2. For every shipped set that is less than 2^-16 of the q/(2t) that noise may have.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import mulmod_scalar
from keyquorum.fhe import _arith
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.fhe.seal_format import Ciphertext
from keyquorum.model.domains import Ring
from keyquorum.sharing.variants import PaddedOutput

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

RING_BITS = 64
RING = Ring(RING_BITS)
"""The ring of the secret and of everything in a decryption."""
LEAST_ROOM = 256
"""Decryptions in the ring take less than this part of the noise that a set allows."""


def switched_bits(parameters: ParameterSet) -> int:
    """k, for t 2^k to fit the ring; not more than is of use."""
    q, t = parameters.coeff_modulus[0], parameters.plain_modulus
    return min(RING_BITS - t.bit_length(), q.bit_length() + parameters.ring_degree.bit_length())


def padded_output(parameters: ParameterSet) -> PaddedOutput:
    """How messages in [0, t) are opened under pads of receivers outside: as integers modulo 2^(64 - k), t of them are below that."""
    return PaddedOutput(RING_BITS, switched_bits(parameters))


def margin(parameters: ParameterSet) -> float:
    """By how much, in units of q, noise must stay further below q/(2t) than at a decryption by SEAL."""
    return parameters.coeff_modulus[0] / 2.0 ** switched_bits(parameters) * (parameters.ring_degree + 3) / 2


def decrypts_in_ring(parameters: ParameterSet) -> bool:
    """Whether ciphertexts of a set are decrypted in the ring: those of BFV and BGV with an odd t that leaves room for the switch."""
    q, t = parameters.coeff_modulus[0], parameters.plain_modulus
    if parameters.scheme == "ckks" or t % 2 == 0 or switched_bits(parameters) < 8:
        return False
    return margin(parameters) * LEAST_ROOM < q / (2 * t)


def switched(parameters: ParameterSet, ciphertext: Ciphertext) -> Ints:
    """c0 with the offset 2^k/(2t), and c1, coefficients modulo 2^k, of a ciphertext at the last prime. BGV ciphertexts are divided by t modulo q first, so that the noise lies below the message."""
    q, t, k = parameters.coeff_modulus[0], parameters.plain_modulus, switched_bits(parameters)
    parts = []
    for part in ciphertext.data[:2, :1]:
        words = _arith.intt(part, (q,))[0] if ciphertext.is_ntt else part[0]
        words = np.ascontiguousarray(words)
        if parameters.scheme == "bgv":
            words = mulmod_scalar(words, pow(t, -1, q), q)
        parts.append(((words.astype(object) << k) + q // 2) // q)
    parts[0] = parts[0] + (1 << k) // (2 * t)
    return (np.concatenate(parts) % (1 << k)).astype(np.int64)


def messages(parameters: ParameterSet, words: Ints) -> Ints:
    """Messages in [0, t) from what the program opened."""
    return (words.view(np.uint64) >> np.uint64(switched_bits(parameters))).view(np.int64)


__all__ = ["RING", "decrypts_in_ring", "margin", "messages", "padded_output", "switched", "switched_bits"]
