"""The policy of a CKKS key: how its results are flooded, how many it may ever decrypt, and whether each must be approved."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from keyquorum.fhe.parameters import NOISE_BITS_MAX, ParameterSet
from keyquorum.model.committee import CommitteeShape
from keyquorum.model.errors import PolicyError
from keyquorum.model.plain import Json
from keyquorum.model.protocols import named
from keyquorum.sharing.numbers import kind_of_protocol
from keyquorum.sharing.numbers.flooding import FloodingDistribution

from .noise import default_bits, fresh_rms

RECOMMENDED_BITS = 30
"""Statistical security below which a policy is weak: s as LMSS count it, see :attr:`FloodPolicy.advantage`."""
SIGMA_MAX = 2.0**55
"""Largest deviation of one party's flooding noise."""


@dataclass(frozen=True)
class FloodPolicy:
    """How CKKS results are protected: every contributor, or set of n - t parties, adds Gaussian noise of deviation :meth:`sigma` to every coefficient. Committees with MACs
    add noise of random bits instead, which keeps the same :attr:`advantage` (:mod:`keyquorum.sharing.numbers.uniform_noise`).

    ``bits``: statistical security s of all decryptions together; ``decryptions``: how many the key may ever serve (tau); ``noise_bits``:
    the bound on the noise e of the ciphertexts that the committee accepts, an expected squared Euclidean norm of N 4^noise_bits. It holds
    where every coefficient is at most 2^noise_bits, and where their root mean square is. 0: that of the parameter set (:meth:`for_set`).
    ``approvals``: 1 if every party decrypts only what was approved at it, and is bounded (:mod:`keyquorum.schemes.seal.approvals`), else 0.

    The bound (Li, Micciancio, Schultz, Sorrell: Securing Approximate Homomorphic Encryption Using Differential Privacy, CRYPTO 2022; the
    Gaussian mechanism is differentially private in the Kullback-Leibler sense for the EUCLIDEAN norm): a decryption gives away at most
    |e|^2 / (2 sigma^2), and tau adaptive ones at most tau times that. With sigma^2 = 12 tau 2^s N 2^(2 noise_bits) it is 2^-s / 24 in all.
    For random e the expected |e|^2 counts, as the divergence is convex. s counts as in LMSS, where the square of an advantage counts: whoever
    tells flooded noise from flooding alone, by the best test, has an advantage of about 2^(-s/2 - 3) (:meth:`advantage`), NOT 2^-s.

    The same formula holds for policies that were stored with keys before it had the factor sqrt(N).
    """

    bits: int = 30
    decryptions: int = 16
    noise_bits: int = 0
    approvals: int = 0

    def for_set(self, parameters: ParameterSet) -> FloodPolicy:
        """The policy with a noise bound: its own, or that of the set. Every policy that is stored has one."""
        if self.noise_bits:
            return self
        return replace(self, noise_bits=default_bits(parameters) if parameters.scheme == "ckks" else 1)

    @property
    def advantage(self) -> float:
        """log2 of the largest advantage in telling the noise of all decryptions from none: |shift| / (sigma sqrt(2 pi)) for a divergence of 2^-s / 24."""
        return -self.bits / 2 - math.log2(math.sqrt(12 * 2 * math.pi))

    def check(self, ring_degree: int) -> None:
        """Refuses a policy that makes no sense or does not fit."""
        if not 1 <= self.bits <= 80:
            raise PolicyError(f"flooding of {self.bits} bits: choose 1 to 80")
        if not 1 <= self.decryptions <= 1 << 30:
            raise PolicyError(f"{self.decryptions} decryptions: choose 1 to 2^30")
        if not 1 <= self.noise_bits <= NOISE_BITS_MAX:
            raise PolicyError(f"noise of {self.noise_bits} bits: choose 1 to {NOISE_BITS_MAX}")
        if self.approvals not in (0, 1):
            raise PolicyError(f"approvals {self.approvals}: choose 0 (none needed) or 1 (of every party)")
        sigma = self.sigma(ring_degree)
        if sigma > SIGMA_MAX:
            raise PolicyError(
                f"the policy needs a flooding noise of 2^{math.log2(sigma):.0f}, at most 2^{math.log2(SIGMA_MAX):.0f} is possible: "
                "lower the bits, the decryptions or the noise bound"
            )

    def sigma(self, ring_degree: int) -> float:
        """Standard deviation of one party's flooding noise, in units of the ciphertext's coefficients."""
        if not self.noise_bits:
            raise PolicyError("the policy has no noise bound yet: take that of a parameter set (FloodPolicy.for_set), or say noise_bits")
        return math.sqrt(12 * self.decryptions * ring_degree) * math.pow(2.0, self.bits / 2 + self.noise_bits)

    def variance(self, ring_degree: int) -> int:
        """The square of :meth:`sigma`, exactly: an integer."""
        if not self.noise_bits:
            raise PolicyError("the policy has no noise bound yet: take that of a parameter set (FloodPolicy.for_set), or say noise_bits")
        return 12 * self.decryptions * ring_degree << self.bits + 2 * self.noise_bits

    def weaknesses(self, parameters: ParameterSet) -> list[str]:
        """What is weak about the policy for keys of a CKKS set, each in one line; empty if nothing is, and for other schemes."""
        found: list[str] = []
        if parameters.scheme != "ckks":
            return found
        if self.bits < RECOMMENDED_BITS:
            found.append(f"flooding of {self.bits} bits is WEAK: whoever sees the results may find the secret key; take {RECOMMENDED_BITS} or more")
        fresh, usual = math.log2(fresh_rms(parameters)), default_bits(parameters)
        if self.noise_bits < fresh:
            found.append(
                f"a noise bound of 2^{self.noise_bits} is WEAK: a fresh encryption has noise of 2^{fresh:.1f}, which the flooding does not "
                f"hide; take {usual} bits, as the set does"
            )
        elif self.noise_bits < usual:
            found.append(
                f"a noise bound of 2^{self.noise_bits} is below the 2^{usual} of {parameters.name}: sums of many slots and products may exceed it, and "
                "are not hidden then; decrypt nothing of which keyquorum eval states more, or take --approvals, which refuse it"
            )
        return found


def flooding_distribution(policy: FloodPolicy, degree: int, shape: CommitteeShape) -> FloodingDistribution:
    """The distribution of the flooding of a committee (:meth:`.PrivateNumbers.flooding_distribution`). Raises PolicyError where the policy admits none."""
    return kind_of_protocol(named(shape.protocol)).flooding_distribution(policy, degree, shape)


def flooding_variance(policy: FloodPolicy, degree: int, shape: CommitteeShape) -> float:
    """Variance of the flooding of a committee, over the square of :meth:`.FloodPolicy.sigma`: the number of its summands, or with MACs that of its noise of random bits."""
    return flooding_distribution(policy, degree, shape).variance / policy.variance(degree)


def policy_from_json(data: Json) -> FloodPolicy:
    """A policy from plain data; refuses unknown fields and anything but integers."""
    fields = FloodPolicy.__dataclass_fields__
    if not set(data) <= set(fields) or any(type(v) is not int for v in data.values()):
        raise PolicyError(f"not a flooding policy ({data}): give {', '.join(fields)} as integers")
    return FloodPolicy(**data)


def promise(policy: FloodPolicy) -> str:
    """What a CKKS key's policy holds, in one line: s is no probability, so the advantage stands beside it."""
    return (
        f"flooding of {policy.bits} bits (advantage about 2^{policy.advantage:.0f} over all decryptions together) while the noise of ciphertexts is at "
        f"most 2^{policy.noise_bits}"
    )
