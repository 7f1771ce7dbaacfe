"""Flooded decryptions of CKKS that the adversaries attack."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from keyquorum.dsl import ShareVector
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.fhe.seal_format import Ciphertext, read_plaintext
from keyquorum.model.committee import Committee, CommitteeShape
from keyquorum.parties.context import PartyContext
from keyquorum.plans.decrypt import decrypt
from keyquorum.schemes.seal.key import SealKeyInfo
from keyquorum.schemes.seal.policy import FloodPolicy, flooding_distribution
from keyquorum.sharing.numbers import ProvenNumbers
from keyquorum.sharing.numbers.flooding import GaussianSum
from keyquorum.sharing.numbers.uniform_noise import UniformNoise

from tests.fhe.dealer import tiny

from .plans import OnDealtKey, committee_of
from .runner import Plan

POLICY = FloodPolicy(bits=1, decryptions=1, noise_bits=4)
DEGREE = 64


def flooding_summands(protocol: str, parties: int, threshold: int) -> int:
    """Gaussian numbers of which the flooding of a committee without MACs is the sum."""
    distribution = flooding_distribution(POLICY, DEGREE, CommitteeShape(protocol, parties, threshold))
    assert isinstance(distribution, GaussianSum)
    return distribution.summands


def noise_with_macs(policy: FloodPolicy, degree: int, parties: int, threshold: int) -> UniformNoise:
    """The flooding of a committee with MACs."""
    return ProvenNumbers.flooding_distribution(policy, degree, CommitteeShape("mascot", parties, threshold))


DEVIATIONS = 9
"""A value is wrong if it is further off: honest flooding of a run is with probability below 2^-54."""


def toy_ckks() -> ParameterSet:
    """An insecure set of two data primes and 64 coefficients."""
    parameters = replace(tiny("ckks", 3), name="toy-ckks")
    object.__setattr__(parameters, "ring_degree", DEGREE)  # after the checks of the set
    return parameters


@dataclass(frozen=True)
class Flooded(OnDealtKey):
    """The plan of a flooded decryption. ``wanted``: the phase, without the flooding."""

    committee: Committee
    parameters: ParameterSet
    receiver: int
    secret: tuple[int, ...]
    ciphertext: Ciphertext
    wanted: tuple[int, ...]
    pooled: bool = False
    seeds: bool = False

    def sharings(self) -> list[tuple[str, str]]:
        """See :class:`OnDealtKey`."""
        return [(self.committee.field_protocol, f"F_{q}") for q in self.parameters.moduli(self.ciphertext.level_primes)]

    def info(self) -> SealKeyInfo:
        """See :class:`OnDealtKey`."""
        committee = self.committee
        return SealKeyInfo(
            key_id="0" * 32, parameters=self.parameters, protocol=committee.protocol, parties=committee.size, threshold=committee.threshold,
            error_law="cbd", relin=False, galois_elements=(), policy=POLICY,
        )  # fmt: skip

    @property
    def bound(self) -> float:
        """The largest flooding that honest parties add."""
        if self.committee.authenticated:
            return noise_with_macs(POLICY, DEGREE, self.committee.size, self.committee.threshold).largest
        terms = flooding_summands(self.committee.protocol, self.committee.size, self.committee.threshold)
        return DEVIATIONS * math.sqrt(terms) * POLICY.sigma(DEGREE)

    def result(self, context: PartyContext, shares: list[ShareVector]) -> list[int] | None:
        """See :class:`OnDealtKey`."""
        results = decrypt(context, self.info(), shares, [self.ciphertext], self.receiver)
        return None if results is None else coefficients(self.parameters, results[0].plaintext)

    def right(self, results: dict[int, list[int] | None]) -> bool:
        """Whether the receiver, if it is honest, has the phase with flooding of the right size."""
        return all(words is None or off(words, self.wanted) <= self.bound for words in results.values())


def off(words: list[int], wanted: tuple[int, ...]) -> int:
    """The largest difference."""
    return max(abs(found - right) for found, right in zip(words, wanted, strict=True))


def coefficients(parameters: ParameterSet, data: bytes) -> list[int]:
    """The coefficients of a CKKS plaintext over the integers."""
    from keyquorum.fhe import _arith

    plain = read_plaintext(parameters, data)
    moduli = parameters.moduli(plain.data.shape[0])
    return [int(word) for word in _arith.crt_centred(_arith.intt(plain.data, moduli), moduli)]


def multiplied(parameters: ParameterSet, c1: np.ndarray, secret: np.ndarray, q: int) -> list[int]:
    """c1 s modulo X^N + 1 and q."""
    degree = parameters.ring_degree
    product = [0] * degree
    for i, c in enumerate(c1.tolist()):
        for j, s in enumerate(secret.tolist()):
            place, sign = (i + j, 1) if i + j < degree else (i + j - degree, -1)
            product[place] = (product[place] + sign * c * s) % q
    return product


def flooded(protocol: str, parties: int, receiver: int = 0, primes: int = 2, threshold: int | None = None, seeds: bool = False) -> Plan:
    """A message at scale 2^40, at the level of two primes, or of one. ``threshold``: default that of the protocol. ``seeds``: see :class:`.OnDealtKey`."""
    parameters, rng = toy_ckks(), np.random.default_rng(9)
    secret = rng.integers(-1, 2, DEGREE)
    phase = rng.integers(-(1 << 40), 1 << 40, DEGREE)
    moduli = parameters.moduli(primes)
    c1 = np.stack([rng.integers(0, q, DEGREE, dtype=np.uint64) for q in moduli])
    c0 = [[(int(p) - x) % q for p, x in zip(phase, multiplied(parameters, row, secret, q), strict=True)] for row, q in zip(c1, moduli, strict=True)]
    ciphertext = Ciphertext(primes, np.stack([np.array(c0, dtype=np.uint64), c1]), False, parameters.scale, 1)
    job = Flooded(
        committee_of(protocol, parties, threshold), parameters, receiver, tuple(secret.tolist()), ciphertext, tuple(phase.tolist()), seeds=seeds
    )
    of = f"{protocol}, {parties} parties" if job.committee.ring_protocol is None or job.committee.authenticated else protocol
    if threshold is not None:
        of += f", t = {threshold}"
    name = f"flooded decryption of {of}, to {receiver}{', one prime' if primes == 1 else ''}{', seeds' if seeds else ''}"
    return Plan(name, parties, job, job.right)
