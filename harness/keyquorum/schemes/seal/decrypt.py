"""Joint decryption of SEAL's ciphertexts: the result goes to one party, the secret key and the noise stay hidden.

CKKS: the phase plus a flooding noise, opened to the receiver (:meth:`.PrivateNumbers.flooding`). The policy stored with the key bounds the flooding and counts decryptions across restarts. Ciphertexts
are refused that have not the form of an encryption, or of which the flooding would leave less than a bit. BFV and BGV: exact rounding inside the MPC,
without a pool in one ring with MACs (:mod:`.ring`), over prime fields alone (:mod:`.field_variant`), or modulo 2^k and t (:mod:`keyquorum.sharing.rounding`). What is opened is the
message, and with `round_mask_open` its errors, so those decryptions are counted (:mod:`.masked`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import mulmod_scalar
from keyquorum.dsl import ShareVector
from keyquorum.fhe.decode import ckks_plaintext, integer_plaintext
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.fhe.seal import Evaluator
from keyquorum.fhe.seal_format import Ciphertext, read_ciphertext
from keyquorum.model.errors import CiphertextError, ParameterError
from keyquorum.model.protocols import named as protocol_named
from keyquorum.parties.context import PartyContext
from keyquorum.programs import Segment
from keyquorum.programs.signatures import flood, round_ltz_ring
from keyquorum.schemes.base import MASKED_ONE, Decrypted
from keyquorum.sharing.field_variant import over_fields
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.numbers import numbers_of
from keyquorum.sharing.randomness import wipe
from keyquorum.sharing.rounding import ROUNDINGS, check_rounds, round_exactly
from keyquorum.sharing.shares import Run

from .approvals import check_form
from .decryptable import MESSAGE_SCALES
from .field_variant import field_variant
from .key import SealKeyInfo
from .phases import exact_summands, plain_coefficients, shares_of_phase
from .policy import flooding_distribution
from .precision import Precision, check_ciphertext_precision, key_precision
from .recognise import ciphertext_of
from .ring import RING, messages, switched, switched_bits

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]


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
    if rounding not in (*ROUNDINGS, MASKED_ONE):
        raise ParameterError(f"unknown rounding {rounding!r}: choose one of {', '.join((*ROUNDINGS, MASKED_ONE))}")
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
    largest = flooding_distribution(info.policy, n, info.shape).largest
    if math.prod(info.parameters.moduli(ciphertext.level_primes)) <= 2 * (MESSAGE_SCALES * ciphertext.scale + largest):
        raise CiphertextError(
            f"the ciphertext has no room for the flooding noise (2^{math.log2(info.policy.sigma(n)):.0f}): "
            "decrypt at a higher level, or make a key with a smaller policy"
        )


@dataclass(frozen=True)
class _Decryption:
    """One joint decryption at one party."""

    context: PartyContext
    info: SealKeyInfo
    shares: Sequence[ShareVector]
    receiver: int
    rounding: str

    @property
    def parameters(self) -> ParameterSet:
        """The parameter set of the key."""
        return self.info.parameters

    @property
    def mine(self) -> bool:
        """Whether this party gets the results."""
        return self.context.party == self.receiver

    # CKKS

    def approximate(self, ciphertexts: Sequence[Ciphertext]) -> list[SealDecrypted] | None:
        """Flooded decryption, at the level of each ciphertext: only its owner knows how large the message is."""
        results = []
        with self.context.phase("decrypt", len(ciphertexts)) as step:
            for ciphertext in ciphertexts:
                residues = self._flooded(ciphertext)
                if self.mine:
                    self._check_plausible(residues)
                    data = ckks_plaintext(self.parameters, np.stack(residues), ciphertext.scale)
                    results.append(SealDecrypted(data, None, key_precision(self.info, ciphertext.scale)))
                step()
        return results if self.mine else None

    def _flooded(self, ciphertext: Ciphertext) -> list[Words]:
        """The phase and its flooding modulo each prime, as residues at the receiver, and empty elsewhere. Where the noise comes from is up to the kind of committee."""
        n, numbers, residues = self.parameters.ring_degree, numbers_of(Run(self.context)), list[Words]()
        with numbers.flooding(self.info.policy, n) as flooding, ExitStack() as wiping:
            files = [
                wiping.enter_context(shares_of_phase(self.context, self.info, self.shares[index], index, ciphertext))
                for index in range(ciphertext.level_primes)
            ]
            for file, r in zip(files, flooding.store(files), strict=True):
                call = flood(
                    contributors=flooding.contributors, N=n, receiver=self.receiver, phase=file["phase"], masks=flooding.where, r=r,
                    pieces=flooding.pieces, width=flooding.width,
                )  # fmt: skip
                words = file.run(call, flooding.private)
                file.wipe()
                residues.append(np.where(words < 0, words + file.runs.modulus, words).astype(np.uint64))
        return residues

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
        u, origins = exact_summands(group, self.info, self.shares[0], ciphertexts)
        words: Ints | None = None
        try:
            if over_fields(self.context.committee):
                words = self._over_fields(group, u)
            elif group.member:
                words = round_exactly(group, u, q, t, self.rounding, origins)
        finally:
            wipe(u)
        if words is None or not self.mine:
            return None
        return plaintexts(parameters, ciphertexts, words)

    def _over_fields(self, group: RoundingGroup, u: Words) -> Ints | None:
        """Rounds phases modulo q with masks that are made for them."""
        with self.context.phase("rounding"):
            variant = field_variant(self.context.committee, self.rounding, self.parameters)
            items = variant.make(group, u.shape[1])
            try:
                words = variant.use(group, u[None], items, self.receiver)
            finally:
                wipe(*items)
        return None if words is None else words[0].view(np.int64)

    def _in_ring(self, ciphertexts: Sequence[Ciphertext]) -> list[SealDecrypted] | None:
        """Exact decryption in one ring with MACs (:mod:`.ring`). ``shares``: the last one is modulo 2^64."""
        parameters, n = self.parameters, self.parameters.ring_degree
        assert len(self.shares) == len(self.info.secrets)
        call = round_ltz_ring(
            N=n, count=1, t=parameters.plain_modulus, k=switched_bits(parameters), receiver=self.receiver, s=Segment(0, n)
        )  # fmt: skip
        found, ring = [], Run(self.context).ring(RING.bits)
        with self.context.phase("rounding", len(ciphertexts)) as step:
            for ciphertext in ciphertexts:
                found.append(messages(parameters, ring.run(call, self.shares[-1], public=[switched(parameters, ciphertext)])))
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
    context: PartyContext, info: SealKeyInfo, shares: Sequence[ShareVector], ciphertexts: Sequence[Ciphertext], receiver: int, rounding: str
) -> list[SealDecrypted] | None:  # fmt: skip
    """Decrypts ciphertexts, which :func:`check_decryption` admits, to ``receiver``; every party calls this. Returns None at the other parties.

    Phases are local. Rounds: for CKKS 2 for each ciphertext and prime, 1 where noise is stored, beside those that make it (:mod:`keyquorum.sharing.numbers.flooding`);
    for BFV and BGV those of the rounding program. CKKS callers must have claimed the decryptions (:func:`keyquorum.schemes.counts.claim_decryptions`) before.
    """
    decryption = _Decryption(context, info, shares, receiver, rounding)
    return decryption.approximate(ciphertexts) if info.parameters.scheme == "ckks" else decryption.exact(ciphertexts)


__all__ = ["SealDecrypted", "check_decryption", "decrypt", "ready_to_decrypt"]
