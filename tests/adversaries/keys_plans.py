"""Key generations that the adversaries attack: toy keys of SEAL and of LWE."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from keyquorum._engine import CheckError
from keyquorum.dsl import ShareVector
from keyquorum.fhe import _arith
from keyquorum.fhe.lwe_public import PUBLIC_FILE, public_noise
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.fhe.seal_format import read_public_key, read_switch_keys
from keyquorum.model.committee import Committee
from keyquorum.model.protocols import PROTOCOLS
from keyquorum.parties.context import PartyContext
from keyquorum.schemes import scheme_of
from keyquorum.schemes.keys import KeyMaterial, KeyRequest
from keyquorum.schemes.lwe.key import LweKeyInfo, sharing_of
from keyquorum.schemes.lwe.keygen import LweRequest
from keyquorum.schemes.seal.keygen import SealRequest
from numpy.typing import NDArray

from tests.fhe.dealer import tiny
from tests.plans.quorum import WEAK

from .changes import Deviation
from .lwe_plans import toy_lwe
from .plans import DeviatingBackend, committee_of
from .runner import Begin, Plan

Words = NDArray[np.uint64]
Objects = NDArray[Any]
CBD = 21
"""The largest noise of the centred binomial distribution of SEAL's keys."""


class Made(NamedTuple):
    """What a party has: public files, their readable form, and its shares, one matrix a share file. ``opened``: with MACs, the values of each share file."""

    public: dict[str, bytes]
    material: KeyMaterial[Any]
    shares: list[Words]
    opened: list[Words | None]


@dataclass(frozen=True)
class Generation:
    """The plan of a key generation, with the comparison at its end."""

    committee: Committee
    request: KeyRequest

    def __call__(self, session: Any, deviation: Deviation, begin: Begin, honest: int) -> Made:
        """One party."""
        if self.committee.authenticated:
            session.set_mac_key(os.urandom(16))  # of this run alone: a failed check burns it
        begin()
        context = PartyContext(session, self.committee, backend=DeviatingBackend(session, deviation))
        material = scheme_of(self.request).generate(context, self.request)
        session.compare("stored key", material.info.digest)
        begin.end()
        judged = zip(material.shares, material.info.secrets, strict=True)
        opened = [self._opened(session, deviation, share, vector.domain) for share, vector in judged] if self.committee.authenticated else []
        return Made(dict(material.public), material, [share.words.copy() for share in material.shares], opened)

    def _opened(self, session: Any, deviation: Deviation, share: ShareVector, domain: str) -> Words | None:
        """With MACs honest parties do not determine a secret by their shares alone: it is opened, with the check of its MACs, from the shares that all should have. None if that fails."""
        protocol = self.committee.ring_protocol if domain.startswith("Z2^") else self.committee.field_protocol
        judged = share.copy()
        deviation.undo(judged)
        try:
            engine = session.engine(protocol, domain, "opened", self.committee.threshold, None)
            values: Words = engine.read(engine.open(engine.import_(judged.read(engine, 0, judged.length), judged.length)))
        except CheckError:
            return None
        return values

    def right(self, results: Mapping[int, Made]) -> bool:
        """Whether honest parties that have a key have the same, and their shares determine a secret of the right distribution, to which the public files belong."""
        made = list(results.values())
        if any(other.public != made[0].public for other in made) or any(values is None for each in made for values in each.opened):
            return False
        if not self.committee.authenticated and len(made) <= self.committee.threshold:  # so few shares determine no secret
            return True
        if isinstance(self.request, SealRequest):
            return self._seal(results)
        return self._lwe(results)

    def secrets(self, results: Mapping[int, Made], index: int, modulus: int, length: int) -> Objects:
        """The secret that the honest parties determine, centred; 2 modulus where their shares contradict one another."""
        committee = self.committee
        if committee.authenticated:
            first, *others = (np.asarray(made.opened[index]).astype(object) for made in results.values())
            consistent = all(np.array_equal(first, other) for other in others)
            total = first[:length]
            return np.where(total > modulus // 2, total - modulus, total) if consistent else np.full(length, 2 * modulus, dtype=object)
        shares = {party: made.shares[index][:, :length].astype(object) for party, made in results.items()}
        if PROTOCOLS[committee.protocol].sharing == "Shamir":
            total, consistent = interpolated(shares, committee.threshold, modulus)
        else:
            total, consistent = added(committee, shares, modulus)
        return np.where(total > modulus // 2, total - modulus, total) if consistent else np.full(length, 2 * modulus, dtype=object)

    def _seal(self, results: Mapping[int, Made]) -> bool:
        assert isinstance(self.request, SealRequest)
        parameters, made = self.request.parameters, next(iter(results.values()))
        moduli = [*parameters.coeff_modulus, *([1 << 64] if made.material.info.ring_secret else [])]
        found = [self.secrets(results, j, q, parameters.ring_degree) for j, q in enumerate(moduli)]
        if any(not np.array_equal(found[0], other) for other in found) or not set(found[0].tolist()) <= {-1, 0, 1}:
            return False
        s = found[0].astype(np.int64)
        public = read_public_key(parameters, made.public["public.key"])
        noises = [noise_of(parameters, public.c0, public.a, s, np.zeros_like(s))]
        if self.request.relin:
            square = squared(s)
            digits = read_switch_keys(parameters, made.public["relin.key"]).groups[0]
            noises += [noise_of(parameters, digit.c0, digit.a, s, square, i) for i, digit in enumerate(digits)]
        return all(np.abs(noise).max() <= CBD for noise in noises)

    def _lwe(self, results: Mapping[int, Made]) -> bool:
        assert isinstance(self.request, LweRequest)
        parameters, made = self.request.parameters, next(iter(results.values()))
        info = made.material.info
        assert isinstance(info, LweKeyInfo)
        q, n = parameters.modulus, parameters.dimension
        s = self.secrets(results, 0, q, n)
        if not set(s.tolist()) <= {0, 1}:
            return False
        mask, body = (part.astype(object) for part in lwe_public(made.public[PUBLIC_FILE], parameters))
        product = np.zeros(n, dtype=object)
        for i in range(n):
            for j in range(n):
                product[(i + j) % n] += (1 if i + j < n else -1) * mask[i] * s[j]
        noise = (body - product) % q
        noise = np.where(noise > q // 2, noise - q, noise)
        return bool(np.abs(noise).max() <= 1 << public_noise(parameters).bound_bits)


def lwe_public(data: bytes, parameters: Any) -> tuple[Words, Words]:
    """a and b of a public key of LWE, of a set that is not shipped."""
    from keyquorum.fhe.lwe import unpack
    from keyquorum.fhe.lwe_public import expand_mask

    header, body = unpack(data)
    return expand_mask(parameters, bytes.fromhex(header["seed"])), np.frombuffer(body, "<u8").astype(np.uint64)


def added(committee: Committee, shares: Mapping[int, Objects], modulus: int) -> tuple[Objects, bool]:
    """The sum of the summands that two honest parties hold, and whether their copies are equal."""
    summands: dict[int, Objects] = {}
    consistent = True
    for party, parts in shares.items():
        for part, number in zip(parts, committee.capabilities.held(party, committee.size, committee.threshold), strict=True):
            consistent &= np.array_equal(summands.setdefault(number, part), part)
    return sum(summands.values()) % modulus, consistent


def interpolated(shares: Mapping[int, Objects], threshold: int, modulus: int) -> tuple[Objects, bool]:
    """The value at 0 of the polynomials of the honest shares, and whether all lie on polynomials of this degree."""
    points = sorted(shares)

    def value(at: int, of: Sequence[int]) -> Objects:
        total: Objects = np.zeros_like(shares[of[0]][0])
        for x in of:
            factor = 1
            for other in of:
                if other != x:
                    factor = factor * (at - other - 1) * pow(x - other, -1, modulus) % modulus
            total = (total + factor * shares[x][0]) % modulus
        return total

    chosen = points[: threshold + 1]
    consistent = all(np.array_equal(value(x + 1, chosen), shares[x][0] % modulus) for x in points[threshold + 1 :])
    return value(0, chosen), consistent


def squared(s: NDArray[np.int64]) -> NDArray[np.int64]:
    """s^2 modulo X^N + 1."""
    n, square = s.size, np.zeros(s.size, dtype=np.int64)
    for i in range(n):
        for j in range(n):
            square[(i + j) % n] += s[i] * s[j] if i + j < n else -s[i] * s[j]
    return square


def noise_of(parameters: ParameterSet, c0: Words, a: Words, s: NDArray[np.int64], target: NDArray[np.int64], digit: int = -1) -> NDArray[np.int64]:
    """c0 + a s, without P times ``target`` modulo the prime ``digit``: the noise, the same modulo every prime, or its largest difference."""
    moduli = parameters.coeff_modulus
    factor = parameters.plain_modulus if parameters.scheme == "bgv" else 1
    found = []
    for j, q in enumerate(moduli):
        key = _arith.ntt((s % q).astype(np.uint64)[None], [q])
        phase = _arith.intt(_arith.add(c0[j : j + 1], _arith.mul(np.ascontiguousarray(a[j : j + 1]), key, [q]), [q]), [q])[0].astype(object)
        if j == digit:
            phase = phase - moduli[-1] % q * target.astype(object)
        phase = phase * pow(factor, -1, q) % q
        found.append(np.where(phase > q // 2, phase - q, phase).astype(np.int64))
    return found[0] if all(np.array_equal(found[0], other) for other in found) else np.full(s.size, 1 << 30)


def toy_seal(degree: int = 16) -> ParameterSet:
    """An insecure set of two primes and 16 coefficients."""
    parameters = replace(tiny("bfv", 2), name="toy-bfv")
    object.__setattr__(parameters, "ring_degree", degree)  # after the checks of the set
    return parameters


def seal_keys(protocol: str, parties: int) -> Plan:
    """A secret, a public key and a relinearisation key."""
    committee = committee_of(protocol, parties)
    job = Generation(committee, SealRequest(toy_seal(), True, (), "cbd", WEAK))
    return Plan(f"keys of SEAL by {protocol}, {parties} parties", parties, job, job.right)


def lwe_keys(protocol: str, parties: int, modulus: str = "ring") -> Plan:
    """A secret and a public key."""
    committee = committee_of(protocol, parties)
    parameters = replace(toy_lwe(modulus), padding_bits=0, deviation=3.0)
    sharing_of(committee, parameters)
    job = Generation(committee, LweRequest(parameters))
    return Plan(f"keys of LWE modulo a {modulus} by {protocol}, {parties} parties", parties, job, job.right)
