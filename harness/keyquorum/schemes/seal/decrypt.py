"""Joint decryption of SEAL's ciphertexts: the result goes to one party, the secret key and the noise stay hidden.

CKKS: the phase plus a flooding noise of every contributor, opened to the receiver; where products are verified, of every set of
n - t parties, from their common stream; with MACs joint noise of random bits (:mod:`.proven_noise`). The policy stored with the key bounds the flooding and counts decryptions across restarts. Ciphertexts are refused that have not
the form of an encryption, or of which the flooding would leave less than a bit. BFV and BGV: exact rounding inside the MPC
(`rounding`); what is opened is the message, and with `round_mask_open` its errors, so those decryptions are counted (`masked`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import mulmod_scalar
from keyquorum.dsl import Persistence
from keyquorum.dsl.persistence import KeyTest, wiped_on_failure
from keyquorum.fhe.decode import ckks_plaintext, integer_plaintext
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.fhe.seal import Evaluator
from keyquorum.fhe.seal_format import Ciphertext, read_ciphertext
from keyquorum.model.domains import Field
from keyquorum.model.errors import CiphertextError, ParameterError
from keyquorum.model.protocols import named as protocol_named
from keyquorum.parties.context import PartyContext
from keyquorum.programs import Call, Segment
from keyquorum.programs.signatures import flood, round_ltz_ring
from keyquorum.schemes.base import Decrypted
from keyquorum.sharing.joint import JointNoise
from keyquorum.sharing.randomness import discrete_gaussian, wipe
from keyquorum.sharing.rounding import ROUNDINGS, RoundingGroup, check_rounds, round_exactly

from .approvals import check_form
from .decryptable import MESSAGE_SCALES
from .field_variant import field_variant
from .key import SealKeyInfo
from .phases import exact_summands, phase_layout, plain_coefficients, shares_of_phase
from .policy import largest_flooding, noise_with_macs
from .precision import Precision, check_ciphertext_precision, key_precision
from .proven_noise import ProvenNoise
from .recognise import ciphertext_of
from .ring import RING, messages, switched, switched_bits

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

PLAINTEXT_HEADER = 4096
"""Bytes of a plaintext beside its coefficients, at most."""


@dataclass(frozen=True)
class SealDecrypted(Decrypted):
    """The result of one ciphertext at the receiver: SEAL's plaintext bytes; for BFV and BGV the coefficients mod t; for CKKS the error that the
    flooding added."""

    coefficients: Words | None
    precision: Precision | None = None


def check_decryption(info: SealKeyInfo, ciphertexts: Sequence[Ciphertext], receiver: int, rounding: str) -> None:
    """Refuses a decryption that the key does not admit, by public data alone: receiver, parts, level; for CKKS the form, whether the level holds the
    flooding, and the precision that is left."""
    if not 0 <= receiver < info.parties:
        raise ParameterError(f"there is no party {receiver}: choose a receiver from 0 to {info.parties - 1}")
    if rounding not in ROUNDINGS:
        raise ParameterError(f"unknown rounding {rounding!r}: choose one of {', '.join(ROUNDINGS)}")
    if info.parameters.scheme == "ckks" and rounding != ROUNDINGS[0]:
        raise ParameterError(f"CKKS results are flooded, not rounded: {rounding} has no meaning for this key: leave out --rounding")
    if info.parameters.scheme != "ckks":
        check_rounds(protocol_named(info.protocol), rounding)
    info.policy.check(info.parameters.ring_degree)
    for ciphertext in ciphertexts:
        if ciphertext.size != 2:
            raise CiphertextError(f"the ciphertext has {ciphertext.size} parts: relinearise it first")
        if info.parameters.scheme == "ckks":
            check_form(info.parameters, ciphertext)
            check_ciphertext_precision(info, ciphertext)
            _check_room(info, ciphertext)
        elif ciphertext.level_primes != 1:
            raise CiphertextError(f"the ciphertext is at a level of {ciphertext.level_primes} primes: switch it to the last level first")


def _check_room(info: SealKeyInfo, ciphertext: Ciphertext) -> None:
    """Refuses a level that does not hold the flooding and a message with coefficients of up to 4 scales."""
    n = info.parameters.ring_degree
    largest = largest_flooding(info.policy, n, info.protocol, info.parties, info.threshold)
    if math.prod(info.parameters.moduli(ciphertext.level_primes)) <= 2 * (MESSAGE_SCALES * ciphertext.scale + largest):
        raise CiphertextError(
            f"the ciphertext has no room for the flooding noise (2^{math.log2(info.policy.sigma(n)):.0f}): "
            "decrypt at a higher level, or make a key with a smaller policy"
        )


class _Decryption:
    """One joint decryption at one party."""

    def __init__(
        self,
        context: PartyContext,
        info: SealKeyInfo,
        shares: list[Persistence],
        receiver: int,
        rounding: str,
        seed: bytes | None,
    ) -> None:
        self.context, self.info, self.shares = context, info, shares
        self.receiver, self.rounding, self.seed = receiver, rounding, seed
        self.parameters: ParameterSet = info.parameters
        self.contributors = info.threshold + 1
        self.contributes = context.party < self.contributors
        self.mine = context.party == receiver

    # CKKS

    def approximate(self, ciphertexts: Sequence[Ciphertext]) -> list[SealDecrypted] | None:
        """Flooded decryption, at the level of each ciphertext: only its owner knows how large the message is."""
        results = []
        flooded = self._flooded_with_macs if self.context.committee.authenticated else self._flooded
        with self.context.phase("decrypt", len(ciphertexts)) as step:
            for ciphertext in ciphertexts:
                residues = flooded(ciphertext)
                if self.mine:
                    self._check_plausible(residues)
                    data = ckks_plaintext(self.parameters, np.stack(residues), ciphertext.scale)
                    results.append(SealDecrypted(data, None, key_precision(self.info, ciphertext.scale)))
                step()
        return results if self.mine else None

    def _flooded(self, ciphertext: Ciphertext) -> list[Words]:
        """The phase and its flooding modulo each prime, at the receiver: noise of every contributor, or of every set of n - t parties."""
        n, policy, together = self.parameters.ring_degree, self.info.policy, self.context.committee.verifies_products
        phase = phase_layout(n)["phase"]
        masks: Literal["inputs", "stored"] = "stored" if together else "inputs"
        r = Segment(phase.slice.stop, n) if together else None
        call = flood(contributors=self.contributors, N=n, receiver=self.receiver, phase=phase, masks=masks, r=r)
        joint = JointNoise(self.context.session, self.context.committee, n, policy.variance(n), self.seed) if together else None
        flooding = discrete_gaussian(n, policy.sigma(n)) if self.contributes and joint is None else None
        residues = []
        try:
            for index in range(ciphertext.level_primes):
                working = shares_of_phase(self.context, self.info, self.shares[index], index, ciphertext, seed=self.seed)
                with wiped_on_failure(working):
                    if joint is not None:
                        joint.append_to(working, self.context.committee.field_protocol, self.parameters.coeff_modulus[index])
                    residues.append(self._opened(index, call, working, flooding))
        finally:
            if flooding is not None:
                wipe(flooding)
            if joint is not None:
                joint.wipe()
        return residues

    def _flooded_with_macs(self, ciphertext: Ciphertext) -> list[Words]:
        """The same with joint noise of random bits, which no party inputs, and which is proven to be the same modulo all primes before anything is opened with it."""
        n, info = self.parameters.ring_degree, self.info
        noise = noise_with_macs(info.policy, n, info.parties, info.threshold)
        levels = range(ciphertext.level_primes)
        working = [shares_of_phase(self.context, info, self.shares[index], index, ciphertext, seed=self.seed) for index in levels]
        with wiped_on_failure(*working):
            proven = ProvenNoise(self.context, noise, n, self.parameters.moduli(ciphertext.level_primes), self.seed)
            residues = []
            for index, r in enumerate(proven.append_to(working)):
                call = flood(
                    contributors=self.contributors, N=n, receiver=self.receiver, phase=phase_layout(n)["phase"], masks="stored", r=r,
                    pieces=noise.pieces, width=noise.width,
                )  # fmt: skip
                residues.append(self._opened(index, call, working[index], None))
        return residues

    def _opened(self, index: int, call: Call, working: Persistence, private: Ints | None) -> Words:
        """What `flood` opens modulo the prime ``index``, as residues; empty at those who do not receive it. Wipes ``working``."""
        q = self.parameters.coeff_modulus[index]
        words = self.context.backend.run(
            self.context.committee.field_protocol, Field(q), call, threshold=self.info.threshold, private=private, persistence=working, seed=self.seed
        ).words  # fmt: skip
        working.wipe()
        return np.where(words < 0, words + q, words).astype(np.uint64)

    def _check_plausible(self, residues: Sequence[Words]) -> None:
        """A phase that fills the whole modulus is no message: the ciphertext is of another key, or overflowed."""
        moduli = self.parameters.moduli(len(residues))
        modulus = math.prod(moduli)
        fraction = np.zeros(self.parameters.ring_degree)
        for q, words in zip(moduli, residues, strict=True):
            fraction += mulmod_scalar(words, pow(modulus // q, -1, q), q) / q
        if float(np.abs(fraction - np.rint(fraction)).max()) > 0.47:
            raise CiphertextError("the result is noise: the ciphertext is of another key, or its level has overflowed")

    # BFV and BGV

    def exact(self, ciphertexts: Sequence[Ciphertext]) -> list[SealDecrypted] | None:
        """Exact decryption by rounding; ciphertexts must be at the last level (one prime)."""
        parameters = self.parameters
        if self.info.ring_secret and self.rounding == ROUNDINGS[0] and self.context.backend.name == "embedded":
            return self._in_ring(ciphertexts)
        q, t = parameters.coeff_modulus[0], parameters.plain_modulus
        group = RoundingGroup.of(self.context, self.info.threshold, self.receiver)
        names: list[KeyTest] = []
        u = exact_summands(self.context, self.info, self.shares[0], group, ciphertexts, self.seed, names=names)
        words: Ints | None = None
        try:
            if group.verified and self.context.committee.ring_protocol is None:
                words = self._over_fields(group, u)
            elif group.member:
                words = round_exactly(self.context, group, u, q, t, self.rounding, self.seed, names)
        finally:
            wipe(u)
        if words is None or not self.mine:
            return None
        return plaintexts(parameters, ciphertexts, words)

    def _over_fields(self, group: RoundingGroup, u: Words) -> Ints | None:
        """Rounds phases modulo q with masks that are made for them."""
        with self.context.phase("rounding"):
            variant = field_variant(self.context.committee, self.rounding, self.parameters)
            items = variant.make(group, u.shape[1], self.seed)
            try:
                words = variant.use(group, u[None], items, self.receiver, self.seed)
            finally:
                wipe(*items)
        return None if words is None else words[0].view(np.int64)

    def _in_ring(self, ciphertexts: Sequence[Ciphertext]) -> list[SealDecrypted] | None:
        """Exact decryption in one ring with MACs (:mod:`.ring`). ``shares``: the last one is modulo 2^64."""
        parameters, protocol, n = self.parameters, self.context.committee.ring_protocol, self.parameters.ring_degree
        assert protocol is not None and len(self.shares) == len(self.info.secrets)
        call = round_ltz_ring(
            N=n, count=1, t=parameters.plain_modulus, k=switched_bits(parameters), receiver=self.receiver, s=Segment(0, n)
        )  # fmt: skip
        found = []
        with self.context.phase("rounding", len(ciphertexts)) as step:
            for ciphertext in ciphertexts:
                public = [switched(parameters, ciphertext)]
                opened = self.context.backend.run(
                    protocol, RING, call, threshold=self.info.threshold, public=public, persistence=self.shares[-1], seed=self.seed
                ).words  # fmt: skip
                found.append(messages(parameters, opened))
                step()
        return plaintexts(parameters, ciphertexts, np.concatenate(found)) if self.mine and found else None


def plaintexts(parameters: ParameterSet, ciphertexts: Sequence[Ciphertext], words: Ints) -> list[SealDecrypted]:
    """Plaintexts of BFV or BGV from the rounded phases of their ciphertexts, [count N], any representatives modulo t."""
    n, results = parameters.ring_degree, []
    for i, ciphertext in enumerate(ciphertexts):
        coefficients = plain_coefficients(parameters, ciphertext, words[i * n : (i + 1) * n])
        results.append(SealDecrypted(integer_plaintext(parameters, coefficients), coefficients))
    return results


def ready_to_decrypt(info: SealKeyInfo, data: bytes, what: str = "the ciphertext") -> Ciphertext:
    """A ciphertext as joint decryption takes it: of BFV and BGV at the last level, to which SEAL switches it, in the same way at every party.
    ``what`` names it in errors."""
    ciphertext = ciphertext_of(info.parameters, data, what)
    if info.parameters.scheme == "ckks" or ciphertext.level_primes == 1 or ciphertext.size != 2:
        return ciphertext
    return read_ciphertext(info.parameters, Evaluator(info.parameters).last_level(data), what)


def decrypt(
    context: PartyContext, info: SealKeyInfo, shares: Sequence[Persistence], ciphertexts: Sequence[Ciphertext], receiver: int, rounding: str,
    seed: bytes | None = None,
) -> list[SealDecrypted] | None:  # fmt: skip
    """Decrypts ciphertexts, which :func:`check_decryption` admits, to ``receiver``; every party calls this. Returns None at the other parties.

    Phases are local. Rounds: for CKKS 2 for each ciphertext and prime, 1 where noise is stored, beside those that make it (:class:`.JointNoise`, :mod:`.proven_noise`);
    for BFV and BGV those of the rounding program. CKKS callers must have claimed the decryptions (:func:`keyquorum.schemes.counts.claim_decryptions`) before.
    """
    decryption = _Decryption(context, info, list(shares), receiver, rounding, seed)
    return decryption.approximate(ciphertexts) if info.parameters.scheme == "ckks" else decryption.exact(ciphertexts)


__all__ = ["SealDecrypted", "check_decryption", "decrypt", "ready_to_decrypt"]
