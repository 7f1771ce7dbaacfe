"""Joint decryption: the result goes to one party, the secret key and the noise stay hidden.

CKKS: the phase plus a flooding noise of every dealer, opened to the receiver (docs/pages/ckks.md); the policy stored with
the key bounds the flooding and counts decryptions across restarts. Before anything is counted, ciphertexts are refused that have not
the form of an encryption, that were not approved where the policy wants that, or of which the flooding would leave less than a bit. BFV and BGV: exact rounding inside the MPC
(`rounding`); what is opened is the message, and with `round_mask_open` its errors, so those decryptions are counted (`masked`).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import mulmod_scalar
from keyquorum.dsl import Persistence
from keyquorum.fhe.decode import ckks_plaintext, integer_plaintext
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.fhe.seal import Evaluator
from keyquorum.fhe.seal_format import Ciphertext, read_ciphertext
from keyquorum.model.errors import CiphertextError, KeyQuorumError, OutputError, ParameterError
from keyquorum.model.outputs import reserved, save_all
from keyquorum.model.plain import Json
from keyquorum.parties.context import PartyContext

from .approvals import check_approved, check_form
from .keys import KeyInfo, check_made_by, load_key, read_share, warn_of_weakness
from .masked import MASKED, most_masked, warn_of_rounding
from .phases import exact_summands, plain_coefficients, rlwe_phase
from .policy import claim_decryptions
from .pool_variants import odd_variant
from .pools import Pool
from .precision import Precision, check_ciphertext_precision, key_precision
from .randomness import discrete_gaussian, wipe
from .receipts import check_noise, check_receipt
from .recognise import ciphertext_of
from .rounding import ROUNDINGS, RoundingGroup, round_exactly, scaled_words

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

PLAINTEXT_HEADER = 4096
"""Bytes of a plaintext beside its coefficients, at most."""
RESULTS = "results"
"""Folder of a key where a result goes that cannot be put in its place."""


@dataclass(frozen=True)
class Decrypted:
    """What a receiver gets of one ciphertext: SEAL's plaintext bytes; for BFV and BGV the coefficients mod t; for CKKS the error that the
    flooding added."""

    plaintext: bytes
    coefficients: Words | None
    precision: Precision | None = None


def decrypt(
    context: PartyContext,
    info: KeyInfo,
    shares: Sequence[Persistence],
    ciphertexts: Sequence[Ciphertext],
    receiver: int,
    rounding: str = "round_ltz_circuit",
    seed: bytes | None = None,
    pool: str = "",
) -> list[Decrypted] | None:
    """Decrypts ciphertexts to ``receiver``; every party calls this. Returns None at the other parties.

    ``pool``: take the masks of BFV and BGV from a pool; a text that tells this request from others, the same at all parties.

    All ciphertexts are processed in the same rounds: phase (local), then for CKKS 2 rounds, for BFV and BGV those of the
    rounding program. CKKS callers must have claimed the decryptions (:func:`claim_decryptions`) before.
    """
    check_decryption(info, ciphertexts, receiver, rounding)
    if not ciphertexts:
        return [] if context.party == receiver else None
    decryption = _Decryption(context, info, list(shares), receiver, rounding, seed, pool)
    if info.parameters.scheme == "ckks":
        return decryption.approximate(ciphertexts)
    return decryption.exact(ciphertexts)


def check_decryption(info: KeyInfo, ciphertexts: Sequence[Ciphertext], receiver: int, rounding: str) -> None:
    """Refuses what cannot be done with the key, from what is public alone: receiver, parts, level; for CKKS the form, room for the flooding,
    and what it leaves."""
    if not 0 <= receiver < info.parties:
        raise ParameterError(f"there is no party {receiver}: choose a receiver from 0 to {info.parties - 1}")
    if rounding not in ROUNDINGS:
        raise ParameterError(f"unknown rounding {rounding!r}: choose one of {', '.join(ROUNDINGS)}")
    if info.parameters.scheme == "ckks" and rounding != ROUNDINGS[0]:
        raise ParameterError(f"CKKS results are flooded, not rounded: {rounding} has no meaning for this key: leave out --rounding")
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


def _check_room(info: KeyInfo, ciphertext: Ciphertext) -> None:
    """Refuses a level that does not hold the flooding and a message with coefficients of up to 4 scales."""
    sigma = info.policy.sigma(info.parameters.ring_degree)
    need = 2 * (4 * ciphertext.scale + 8 * sigma * (info.threshold + 1))
    if math.prod(info.parameters.moduli(ciphertext.level_primes)) <= need:
        raise CiphertextError(
            f"the ciphertext has no room for the flooding noise (2^{math.log2(sigma):.0f}): "
            "decrypt at a higher level, or make a key with a smaller policy"
        )


class _Decryption:
    """One joint decryption at one party."""

    def __init__(
        self,
        context: PartyContext,
        info: KeyInfo,
        shares: list[Persistence],
        receiver: int,
        rounding: str,
        seed: bytes | None,
        pool: str,
    ) -> None:
        self.context, self.info, self.shares = context, info, shares
        self.receiver, self.rounding, self.seed, self.pool = receiver, rounding, seed, pool
        self.parameters: ParameterSet = info.parameters
        self.dealers = info.threshold + 1
        self.deals = context.party < self.dealers
        self.mine = context.party == receiver

    def _run(self, protocol: str, domain: str, program: str, args: Sequence[object], **options: Any) -> Ints:
        backend, threshold = self.context.backend, self.info.threshold
        return backend.run(protocol, domain, program, args, threshold=threshold, seed=self.seed, **options).words

    def _field_run(self, q: int, program: str, args: Sequence[object], **options: object) -> Ints:
        return self._run(self.context.committee.field_protocol, f"F_{q}", program, args, **options)

    # CKKS

    def approximate(self, ciphertexts: Sequence[Ciphertext]) -> list[Decrypted] | None:
        """Flooded decryption, at the level of each ciphertext: only its owner knows how large the message is."""
        n = self.parameters.ring_degree
        sigma, results = self.info.policy.sigma(n), []
        with self.context.phase("decrypt", len(ciphertexts)) as step:
            for ciphertext in ciphertexts:
                flooding = discrete_gaussian(n, sigma) if self.deals else None
                residues = []
                for index in range(ciphertext.level_primes):
                    q = self.parameters.coeff_modulus[index]
                    working = rlwe_phase(self.context, self.info, self.shares[index], index, ciphertext, seed=self.seed)
                    words = self._field_run(q, "flood", [self.dealers, n, self.receiver, n], private=flooding, persistence=working)
                    if self.mine:
                        residues.append(np.where(words < 0, words + q, words).astype(np.uint64))
                if flooding is not None:
                    wipe(flooding)
                if self.mine:
                    self._check_plausible(residues)
                    data = ckks_plaintext(self.parameters, np.stack(residues), ciphertext.scale)
                    results.append(Decrypted(data, None, key_precision(self.info, ciphertext.scale)))
                step()
        return results if self.mine else None

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

    def exact(self, ciphertexts: Sequence[Ciphertext]) -> list[Decrypted] | None:
        """Exact decryption by rounding; ciphertexts must be at the last level (one prime)."""
        parameters, n = self.parameters, self.parameters.ring_degree
        q, t = parameters.coeff_modulus[0], parameters.plain_modulus
        group = RoundingGroup.of(self.context, self.info.threshold, 0 if self.pool else self.receiver)
        if self.receiver not in group.numbers:
            raise ParameterError(f"party {self.receiver} does not round: choose a receiver from 0 to {len(group.numbers) - 1}")
        u = exact_summands(self.context, self.info, self.shares[0], group, ciphertexts, self.seed)
        words: Ints | None = None
        try:
            if group.member and self.pool:
                words = self._from_pool(group, u, q, t)
            elif group.member:
                words = round_exactly(self.context, group, u, q, t, self.rounding, self.seed)
        finally:
            wipe(u)
        if words is None or not self.mine:
            return None
        results = []
        for i, ciphertext in enumerate(ciphertexts):
            coefficients = plain_coefficients(parameters, ciphertext, words[i * n : (i + 1) * n])
            results.append(Decrypted(integer_plaintext(parameters, coefficients), coefficients))
        return results

    def _from_pool(self, group: RoundingGroup, u: Words, q: int, t: int) -> Ints | None:
        variant = odd_variant(self.context.committee, self.rounding, self.parameters)
        with self.context.phase("online"):
            pool = Pool(self.context, group, variant)
            try:
                z = np.stack(scaled_words(group, u, q, t, variant.length))
                try:
                    words = pool.decrypt(z, self.pool, group.numbers.index(self.receiver), self.seed)
                finally:
                    wipe(z)
            finally:
                pool.close()
        return None if words is None else words[0].view(np.int64)


def load_shares(folder: Path, info: KeyInfo, party: int, count: int | None = None, backend: str = "embedded") -> list[Persistence]:
    """This party's share files of a key, one a prime (the first ``count``), for this backend."""
    primes = info.parameters.coeff_modulus[:count]
    return [read_share(folder, info, party, j, backend == "embedded") for j in range(len(primes))]


def local_paths(job: Json, name: str) -> list[Path]:
    """This party's paths, one for each ciphertext of the job."""
    paths = job["local"].get(name)
    if not isinstance(paths, list) or not all(isinstance(p, str) and p.isprintable() for p in paths) or len(paths) != len(job["sha256"]):
        raise ParameterError(f"the decrypt job needs {len(job['sha256'])} paths under local, {name}: write the job file again")
    return [Path(p) for p in paths]


def ready_to_decrypt(info: KeyInfo, data: bytes, what: str = "the ciphertext") -> Ciphertext:
    """A ciphertext as joint decryption takes it: of BFV and BGV at the last level, to which SEAL switches it, in the same way at every party.
    ``what`` names it in errors."""
    ciphertext = ciphertext_of(info.parameters, data, what)
    if info.parameters.scheme == "ckks" or ciphertext.level_primes == 1 or ciphertext.size != 2:
        return ciphertext
    return read_ciphertext(info.parameters, Evaluator(info.parameters).last_level(data), what)


def read_ciphertexts(info: KeyInfo, paths: Sequence[Path], digests: Sequence[str]) -> list[Ciphertext]:
    """The ciphertexts of a decrypt job, ready to decrypt; refuses other files than the job is about, and those of other keys."""
    ciphertexts = []
    for path, digest in zip(paths, digests, strict=True):
        if not path.exists():
            raise CiphertextError(f"{path}: no such file: copy the ciphertext there, or name it with keyquorum party --ciphertext")
        data = path.read_bytes()
        found = hashlib.sha256(data).hexdigest()
        if found != digest:
            raise CiphertextError(
                f"{path} is not the ciphertext that the committee was asked to decrypt: its SHA-256 is {found}, the job has {digest}"
            )
        check_receipt(path, data, info)
        check_noise(path, data, info)
        ciphertexts.append(ready_to_decrypt(info, data, str(path)))
    return ciphertexts


def decrypt_job(context: PartyContext, job: Json) -> Json:
    """The job ``decrypt``. Keys: ``key``, ``receiver``, ``rounding``, ``sha256`` (of each ciphertext), ``pool`` (optional: take masks from the
    committee's pool), and under ``local``
    the paths: ``ciphertexts``, ``outputs`` (written by the receiver, 0600, and reserved before anything is counted). Of BFV and BGV every party
    switches its copies to the last level."""
    committee, party = context.committee, context.party
    folder = committee.key_folder(party, job["key"])
    info = load_key(folder)
    check_made_by(committee, info, folder)
    context.session.compare("key", info.digest)
    inputs, outputs = (local_paths(job, name) for name in ("ciphertexts", "outputs"))
    ciphertexts = read_ciphertexts(info, inputs, job["sha256"])
    check_decryption(info, ciphertexts, job["receiver"], job["rounding"])
    warn_of_weakness(info.parameters, info.policy)
    warn_of_rounding(job["rounding"], info.parameters)
    check_approved(folder, info, inputs, job["sha256"])
    needed = max((c.level_primes for c in ciphertexts), default=1)
    receives = party == job["receiver"]
    if receives and set(outputs) & set(inputs):
        raise OutputError(f"{next(p for p in outputs if p in inputs)}: is a ciphertext of this job: name another output")
    sizes = [8 * info.parameters.ring_degree * c.level_primes + PLAINTEXT_HEADER for c in ciphertexts]
    # Before anything is counted: a result that has no place would be lost.
    with reserved(outputs if receives else [], sizes if receives else [], folder / RESULTS) as places:
        with context.phase("load"):
            shares = load_shares(folder, info, party, needed, job["backend"])
            if info.parameters.scheme == "ckks":
                claim_decryptions(context, folder, info, len(ciphertexts))
            elif job["rounding"] == MASKED:
                claim_decryptions(context, folder, info, len(ciphertexts), most_masked(info.parameters))
        pool = hashlib.sha256("".join(job["sha256"]).encode()).hexdigest() if job.get("pool") else ""
        results = decrypt(context, info, shares, ciphertexts, job["receiver"], job["rounding"], pool=pool)
        if results is not None:
            save_all(places, [result.plaintext for result in results])
    context.session.compare("end of the decryption", info.digest)  # a receiver that refused the result tells all
    written = {"outputs": [str(path) for path in outputs]} if results is not None else {}
    return {"key_id": info.key_id, "count": len(ciphertexts), "receiver": job["receiver"], **written}


__all__ = ["Decrypted", "KeyQuorumError", "decrypt", "decrypt_job", "load_shares"]
