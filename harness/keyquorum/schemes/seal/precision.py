"""How much of a CKKS message survives the flooding: worked out from public numbers, before anything is decrypted or counted."""

from __future__ import annotations

import math
from dataclasses import dataclass

from keyquorum.fhe.parameters import ParameterSet
from keyquorum.fhe.seal_format import Ciphertext
from keyquorum.model.errors import CiphertextError, PolicyError

from .key import SealKeyInfo
from .noise import Noise
from .policy import FloodPolicy, flooding_variance

DEVIATIONS = 6.0
"""What :attr:`Precision.largest` is in deviations: a value exceeds it once in 5 * 10^8, a ciphertext of 16,384 values once in 30,000."""
LEAST_BITS = 1.0
"""Bits that must survive, or a ciphertext is not decrypted."""
LEAST_KEY_BITS = 3.0
"""Bits that must survive at the scale of the parameter set, or a key is not made."""
SCALE_SLACK = 2.0
"""A ciphertext may have up to this many times the scale of the parameter set: rescaling by primes near the scale moves it a little."""


@dataclass(frozen=True)
class Precision:
    """The error that joint decryption adds to every value at ``scale``, which is what a ciphertext states, and nobody checks. ``deviation``: the
    standard deviation of the real part of a value.

    A value is the sum of N coefficients times powers of a primitive 2N-th root of unity, over the scale. The squares of the real parts of the
    powers add up to N/2, and the noises of c contributors to c sigma^2: the deviation is sqrt(c N / 2) sigma / scale. With MACs c is the variance of the noise of random bits over
    sigma^2 (:mod:`keyquorum.sharing.numbers.uniform_noise`).
    """

    scale: float
    deviation: float

    @property
    def largest(self) -> float:
        """The error that no value is expected to exceed, see DEVIATIONS."""
        return DEVIATIONS * self.deviation

    @property
    def bits(self) -> float:
        """Bits of a value of size 1 that survive: -log2 of the largest error. Below 0 nothing does."""
        return -math.log2(self.largest)

    def text(self) -> str:
        """One line for users."""
        return (
            f"error of a decrypted value at most {self.largest:.1e} (standard deviation {self.deviation:.1e}): "
            f"{self.bits:.1f} bits of a value of size 1, at the scale that the ciphertext states (2^{math.log2(self.scale):.1f})"
        )


def precision(parameters: ParameterSet, policy: FloodPolicy, contributors: float, scale: float | None = None) -> Precision:
    """What flooding of so many times the variance of one contributor leaves at a scale (default: that of the set)."""
    used, n, policy = parameters.scale if scale is None else scale, parameters.ring_degree, policy.for_set(parameters)
    return Precision(used, math.sqrt(contributors * n / 2) * policy.sigma(n) / used)


def key_precision(info: SealKeyInfo, scale: float | None = None) -> Precision:
    """:func:`precision` of a key, with the flooding of its committee (:func:`.flooding_variance`)."""
    variance = flooding_variance(info.policy, info.parameters.ring_degree, info.shape)
    return precision(info.parameters, info.policy, variance, scale)


def _scale_for(found: Precision, bits: float) -> int:
    """log2 of the scale that leaves so many bits."""
    return math.ceil(math.log2(found.scale) + bits - found.bits)


def check_ciphertext_precision(info: SealKeyInfo, ciphertext: Ciphertext) -> Precision:
    """Refuses a ciphertext of which less than LEAST_BITS would survive, or of which the scale tells that its noise was scaled up."""
    scale, usual = ciphertext.scale, info.parameters.scale
    if scale > SCALE_SLACK * usual:
        raise CiphertextError(
            f"the ciphertext has scale 2^{math.log2(scale):.1f}, the key's set 2^{info.parameters.scale_bits}: its noise may have grown "
            "with the scale beyond the policy's bound; rescale it, or make a key with a set of that scale_bits"
        )
    found = key_precision(info, scale)
    if found.bits < LEAST_BITS:
        raise CiphertextError(
            f"the flooding of the key's policy leaves {found.bits:.1f} bits of a value of size 1 at scale 2^{math.log2(scale):.1f}, at least "
            f"{LEAST_BITS:.0f} is needed: encrypt at scale 2^{_scale_for(found, LEAST_BITS)} or above, or make a key of another parameter set, "
            "or with a smaller policy (--decryptions, --noise-bits)"
        )
    return found


def expectation(info: SealKeyInfo, scale: float) -> str:
    """One line on what decrypting a CKKS value of this scale gives, for users."""
    found = key_precision(info, scale)
    if scale > SCALE_SLACK * info.parameters.scale:
        return f"decryption would be refused: scale 2^{math.log2(scale):.1f}, the key's set has 2^{info.parameters.scale_bits}: rescale first"
    if found.bits < LEAST_BITS:
        return f"decryption would be refused: {found.text()}"
    return f"when decrypted: {found.text()}"


def noise_estimate(info: SealKeyInfo, noise: Noise) -> str:
    """One line on the noise of a CKKS ciphertext, for users."""
    bits = info.policy.noise_bits
    text = f"noise at most 2^{noise.bits:.1f} (root mean square; values up to {noise.message:.3g}), the policy hides 2^{bits}"
    return text if noise.rms <= 2.0**bits else f"{text}: TOO MUCH, a decryption could reveal the secret key, and is refused"


def check_key_precision(parameters: ParameterSet, policy: FloodPolicy, contributors: float) -> None:
    """Refuses a CKKS set and policy that leave less than LEAST_KEY_BITS at the set's scale."""
    if parameters.scheme != "ckks":
        return
    policy = policy.for_set(parameters)
    found = precision(parameters, policy, contributors)
    if found.bits < LEAST_KEY_BITS:
        raise PolicyError(
            f"{parameters.name}: the flooding of the policy ({policy.bits} bits, {policy.decryptions} decryptions, noise 2^{policy.noise_bits}, "
            f"{contributors:.3g} times the variance of one contributor) leaves {found.bits:.1f} bits of a value of size 1 at scale 2^{parameters.scale_bits}, at least "
            f"{LEAST_KEY_BITS:.0f} are needed: take a set with scale_bits = {_scale_for(found, LEAST_KEY_BITS)} or more, fewer --decryptions, "
            "or fewer --noise-bits if your ciphertexts keep to them"
        )
