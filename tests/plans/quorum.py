"""Quorums in this process with fixed randomness, their secrets put together, and SEAL with that secret. Tests only."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.fhe.seal import context as seal_context
from keyquorum.fhe.seal import require_seal
from keyquorum.fhe.seal_format import SecretKey, read_ciphertext, read_plaintext, read_secret_key, write_secret_key
from keyquorum.model.committee import Committee
from keyquorum.model.protocols import PROTOCOLS
from keyquorum.parties import PartyContext, run_in_process
from keyquorum.plans.decrypt import Rounding
from keyquorum.plans.decrypt import decrypt as joint_decrypt
from keyquorum.schemes.keys import KeyMaterial
from keyquorum.schemes.seal.decrypt import SealDecrypted
from keyquorum.schemes.seal.keygen import SealRequest, generate
from keyquorum.schemes.seal.policy import FloodPolicy
from keyquorum.sharing import randomness
from numpy.typing import NDArray

from tests.fhe.dealer import find_primes

seal = require_seal()
Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

BACKENDS = {"rep-field": ("rep-field", 3), "shamir-3": ("shamir", 3), "shamir-5": ("shamir", 5), "semi-2": ("semi", 2), "semi-4": ("semi", 4)}
"""Committees by name: protocol and number of parties."""


WEAK = FloodPolicy(bits=1, decryptions=4, noise_bits=4)
"""Hides nothing: little flooding, so that small sets and scales have room."""


def committee(backend: str) -> Committee:
    """A committee in this process."""
    protocol, parties = BACKENDS[backend]
    return api.in_process_committee(parties, protocol)


@contextmanager
def fixed_randomness(seed: bytes) -> Iterator[Callable[[int], None]]:
    """The operating system's randomness of the plans comes from ``seed``; yields a function that tells a thread its party."""
    local = threading.local()

    def enter(party: int) -> None:
        key = hashlib.sha256(seed + bytes([party])).digest()[:16]
        local.stream = np.random.Generator(np.random.Philox(key=int.from_bytes(key, "little")))

    def urandom(size: int) -> bytes:
        stream = getattr(local, "stream", None)
        return os.urandom(size) if stream is None else stream.bytes(size)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(randomness, "os", SimpleNamespace(urandom=urandom))
        yield enter


def run_fixed(members: Committee, job: Callable[[PartyContext], Any], seed: bytes) -> list[Any]:
    """``run_in_process`` with fixed private randomness of each party."""
    with fixed_randomness(seed) as enter:

        def seeded(context: PartyContext) -> Any:
            enter(context.party)
            context.seed = seed
            return job(context)

        return run_in_process(members, seeded)


def make_key(members: Committee, request: SealRequest, seed: bytes) -> list[KeyMaterial]:
    """``api.keygen_in_process`` with everything secret fixed by ``seed``; the public `a` stays random."""
    return run_fixed(members, lambda context: generate(context, request), seed)


def decrypt_fixed(
    members: Committee,
    material: Sequence[KeyMaterial],
    ciphertexts: Sequence[bytes],
    seed: bytes,
    receiver: int = 0,
    rounding: str = "round_ltz_circuit",
) -> list[SealDecrypted]:
    """``api.decrypt_in_process`` with everything secret fixed by ``seed``."""
    parsed = [read_ciphertext(material[0].info.parameters, data) for data in ciphertexts]

    def job(context: PartyContext) -> list[SealDecrypted] | None:
        mine, context.seed = material[context.party], seed
        return joint_decrypt(context, mine.info, mine.shares, parsed, receiver, Rounding(rounding))

    results: list[SealDecrypted] = run_fixed(members, job, seed)[receiver]
    return results


def reconstruct(protocol: str, threshold: int, shares: Sequence[Words], q: int) -> Ints:
    """Values shared modulo a prime, centred. ``shares``: one [parts, n] a party.

    Replicated, additive: the sum of each party's first summand. Shamir: Lagrange at 0, party i at i + 1, on the first t + 1 parties;
    the others must agree.
    """
    if PROTOCOLS[protocol].sharing != "Shamir":
        total = sum(s[0].astype(object) for s in shares) % q
    else:
        total = _lagrange([(i + 1, s[0].astype(object)) for i, s in enumerate(shares[: threshold + 1])], q)
        last = _lagrange([(i + 1, s[0].astype(object)) for i, s in enumerate(shares)][-threshold - 1 :], q)
        assert np.array_equal(total, last)
    centred: Ints = np.where(total > q // 2, total - q, total).astype(np.int64)
    return centred


def _lagrange(points: list[tuple[int, Any]], q: int) -> Any:
    total: Any = 0
    for x, value in points:
        factor = 1
        for other, _ in points:
            if other != x:
                factor = factor * other * pow(other - x, -1, q) % q
        total = (total + factor * value) % q
    return total


def secret_of(members: Committee, material: Sequence[KeyMaterial]) -> SecretKey:
    """The secret key that nobody should have: the same ternary polynomial modulo every prime."""
    info = material[0].info
    parameters, n = info.parameters, info.parameters.ring_degree
    found = [
        reconstruct(members.protocol, info.threshold, [m.shares[j].words[:, :n] for m in material], q) for j, q in enumerate(parameters.coeff_modulus)
    ]
    assert all(np.array_equal(found[0], other) for other in found[1:])
    assert set(np.unique(found[0]).tolist()) <= {-1, 0, 1}
    return read_secret_key(parameters, write_secret_key(parameters, found[0]))


class Seal:
    """Stock SEAL with the public files of a key, and with its secret where one is given."""

    def __init__(self, material: KeyMaterial, secret: SecretKey | None = None) -> None:
        self.parameters: ParameterSet = material.info.parameters
        self.context: Any = seal_context(self.parameters)
        self.encryptor = seal.Encryptor(self.context, self.context.from_public_str(material.public["public.key"]))
        self.evaluator = seal.Evaluator(self.context)
        self.relin = self.galois = self.decryptor = None
        if "relin.key" in material.public:
            self.relin = self.context.from_relin_str(material.public["relin.key"])
        if "galois.key" in material.public:
            self.galois = self.context.from_galois_str(material.public["galois.key"])
        if secret is not None:
            bytes_of_secret = write_secret_key(self.parameters, secret.coefficients)
            self.decryptor = seal.Decryptor(self.context, self.context.from_secret_str(bytes_of_secret))

    @property
    def encoder(self) -> Any:
        """SEAL's encoder for the scheme."""
        kind = seal.CKKSEncoder if self.parameters.scheme == "ckks" else seal.BatchEncoder
        return kind(self.context)

    def lowest(self, ciphertext: Any) -> Any:
        """The ciphertext at the last level."""
        return self.evaluator.mod_switch_to(ciphertext, self.context.last_parms_id())

    def coefficients(self, ciphertext: Any) -> Words:
        """SEAL's own decryption, N coefficients mod t (BFV, BGV)."""
        assert self.decryptor is not None
        plain = read_plaintext(self.parameters, bytes(self.decryptor.decrypt(ciphertext).to_bytes()))
        out = np.zeros(self.parameters.ring_degree, dtype=np.uint64)
        out[: plain.data.size] = plain.data
        return out

    def budget(self, ciphertext: Any) -> int:
        """SEAL's invariant noise budget, in bits."""
        assert self.decryptor is not None
        return int(self.decryptor.invariant_noise_budget(ciphertext))


def quality_set() -> ParameterSet:
    """Many coefficients and few primes: two data primes, so keys have two digits."""
    primes = (*find_primes(16384, 45, 2), *find_primes(16384, 50, 1))
    return ParameterSet("quality", "ckks", 16384, primes, 0, 40, "tc128", "tests")
