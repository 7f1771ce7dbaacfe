"""The public key of the LWE secret, and encryption of bits under it (Regev, J. ACM 56(6), 2009, section 5).

The key has z encryptions of zero, which the parties make together: (a_i, b_i = <a_i, s> + e_i), with the a_i from a public seed. A bit m is encrypted as
the sum of a uniform subset of them, plus 2^31 m. With z = 32 (n + 1) + 256, 2 log2 of the security more than the bits of a ciphertext, the sum is within 2^-129
of uniform for uniform keys, by the leftover hash lemma, so that ciphertexts hide m if LWE is hard.

**Whoever encrypts is trusted.** The scheme is not secure against chosen ciphertexts: a ciphertext (2^31 u_i, 0) decrypts to s_i. AES of such a block tells
its receiver bits of s, and with s everybody decrypts the round keys. So inputs of receivers come as shares (:meth:`.Evaluator.evaluate`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keyquorum.model.errors import ParameterError

from .encryption import AT_ONCE, SEED, EncryptedBits, Runs, encrypt_shared, vectors
from .parameters import GateParameters

Words = NDArray[np.uint64]
Half = NDArray[np.uint32]
SECURITY = 128
"""Bits of the leftover hash lemma."""
SAMPLES_AT_ONCE = 2048


def samples_of(parameters: GateParameters) -> int:
    """z: encryptions of zero in a public key."""
    return (parameters.dimension + 1) * parameters.modulus_bits + 2 * SECURITY


def public_deviation(parameters: GateParameters) -> float:
    """The standard deviation of the noise of a ciphertext under a public key: that of a subset of z/2 terms."""
    return parameters.deviation * math.sqrt(samples_of(parameters) / 2)


def failure_bits(parameters: GateParameters) -> float:
    """-log2 of a bound on the probability that a ciphertext and an encrypted mask are decrypted wrongly. Hoeffding: a sum of at most z independent terms of
    [-2^b, 2^b] with mean 0 exceeds B with probability at most 2 exp(-B^2 / (2 z 4^b)); here B = q/4 - 2^b. Over the noise of the key, for any subset."""
    reach = (parameters.modulus >> 2) - (1 << parameters.noise_bound)
    return reach**2 / (2 * samples_of(parameters) << 2 * parameters.noise_bound) / math.log(2) - 1


@dataclass(frozen=True)
class GateCiphertexts:
    """Ciphertexts of bits that somebody encrypted. ``a``: [count, n]; ``b``: [count]; modulo 2^32."""

    parameters: GateParameters
    a: Half
    b: Half

    def __post_init__(self) -> None:
        if self.a.shape != (self.b.size, self.parameters.dimension) or self.a.dtype != np.uint32 or self.b.dtype != np.uint32:
            raise ParameterError(
                f"ciphertexts of shapes {self.a.shape} and {self.b.shape}: give a of {self.parameters.dimension} words each, and a b"
            )

    def words(self, indices: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """See :meth:`.EncryptedBits.words`."""
        parts = [indices[first : first + AT_ONCE] for first in range(0, indices.size, AT_ONCE)]
        return [words.astype(np.int64) for part in parts for words in (self.a[part].reshape(-1), self.b[part])]


@dataclass(frozen=True)
class GatePublicKey:
    """``zeros``: encryptions of zero, :func:`samples_of` of them."""

    zeros: EncryptedBits

    def encrypt(self, bits: Sequence[int]) -> GateCiphertexts:
        """Encrypts bits, a ciphertext each, with subsets from the operating system's generator. Raises ParameterError for other integers."""
        p, zeros = self.zeros.parameters, self.zeros
        values = np.asarray(bits, np.int64).reshape(-1)
        if ((values < 0) | (values > 1)).any():
            raise ParameterError("bits are 0 or 1")
        samples, count = zeros.bodies.size, values.size
        drawn = np.frombuffer(os.urandom(count * -(-samples // 8)), np.uint8).reshape(count, -1)
        chosen = np.unpackbits(drawn, axis=1)[:, :samples].astype(np.float64)
        total = np.zeros((count, p.dimension + 1), np.uint64)
        for first in range(0, samples, SAMPLES_AT_ONCE):
            last = min(first + SAMPLES_AT_ONCE, samples)
            rows = np.concatenate([vectors(zeros.seed, range(first, last), p.dimension), zeros.bodies[first:last, None]], axis=1)
            # Sums of 2,048 words of 16 bits are exact in floating point.
            for half, shift in ((rows & np.uint32(0xFFFF), 0), (rows >> np.uint32(16), 16)):
                total += (chosen[:, first:last] @ half.astype(np.float64)).astype(np.uint64) << np.uint64(shift)
        chosen.fill(0)
        a, b = total[:, :-1].astype(np.uint32), total[:, -1].astype(np.uint32)
        return GateCiphertexts(p, a, b + (values << p.noise_length).astype(np.uint32))


def make_public_key(run: Runs, parameters: GateParameters, secret: Words, public_seed: bytes) -> GatePublicKey:
    """Makes the public key of a shared secret, [parts, n]; every party calls this. Rounds and bytes are those of :func:`.encrypt_shared`. ``public_seed``:
    tossed by all parties, for this key alone."""
    if len(public_seed) != SEED:
        raise ParameterError(f"a public seed has {SEED} bytes")
    zeros = np.zeros((secret.shape[0], samples_of(parameters)), np.uint64)
    return GatePublicKey(encrypt_shared(run, parameters, secret, zeros, public_seed))


__all__ = ["GateCiphertexts", "GatePublicKey", "failure_bits", "make_public_key", "public_deviation", "samples_of"]
