"""What a party agrees to decrypt under CKKS: ciphertexts that have the form of an encryption, and, if the key's policy wants it, those
that were approved at this party.

A chosen ciphertext gives the key away in one decryption: the phase of (0, 2^k) is 2^k s, and that of 2^j c under the scale of c is 2^j times
message and noise, far above the flooding. The first has a form that no encryption has, and is refused. The second has not: nor has an encryption
of zero plus (0, 2^k). Only where a ciphertext comes from tells such a one, and that is what an approval is about.

An approval keeps a bound on noise and message (:mod:`.noise`), and no approval exceeds the policy's: else 26 approved additions of a ciphertext to
itself would be that 2^j c. An approval binds neither the receiver of a decryption nor how often the ciphertext is decrypted: the policy counts.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from keyquorum.fhe import _arith
from keyquorum.fhe._arith import Words
from keyquorum.fhe.parameters import NOISE_BITS_MAX, ParameterSet
from keyquorum.fhe.seal import evaluate
from keyquorum.fhe.seal_format import Ciphertext, read_ciphertext, write_ciphertext
from keyquorum.model.committee import write_atomically
from keyquorum.model.errors import ApprovalError, CiphertextError, ParameterError
from keyquorum.model.plain import json_loads
from keyquorum.schemes.key_folder import load_public_file

from .key import SealKeyInfo
from .noise import Noise, evaluated, fresh, stated

FILE, LOCK = "approved.json", "approved.lock"
LOCK_SECONDS = 10.0
"""Longest wait for another approval at this party."""
MESSAGE_BITS_MAX = 200
"""log2 of the largest bound on values that an approval may state."""


def check_form(parameters: ParameterSet, ciphertext: Ciphertext) -> None:
    """Refuses a CKKS ciphertext with a part that is not spread over a modulus as an encryption's parts are, in coefficient or in NTT form.

    Of N uniform residues half are at least q/4 in absolute value, and nearly all differ. Less than half of either is refused: an encryption
    is with a probability below 2^-190.
    """
    moduli, n = parameters.moduli(ciphertext.level_primes), parameters.ring_degree
    for name, part in zip(("c0", "c1"), ciphertext.data, strict=True):
        other = _arith.intt(part, moduli) if ciphertext.is_ntt else _arith.ntt(part, moduli)
        for rows in (part, other):
            if any(_few(row, q, n) for row, q in zip(rows, moduli, strict=True)):
                raise CiphertextError(
                    f"{name} of the ciphertext is no encryption's: its coefficients are not spread over the modulus; a ciphertext of this form "
                    "can reveal the secret key, take one that SEAL made"
                )


def _few(row: Words, q: int, n: int) -> bool:
    large = np.count_nonzero(np.abs(_arith.centred(row, q)) >= q // 4)
    return bool(large < n // 4 or np.unique(row).size < n // 2)


def approved(folder: Path, info: SealKeyInfo) -> dict[str, Noise]:
    """Bounds of all that was approved at a party, by SHA-256. ApprovalError for a damaged list, or that of another key."""
    path = folder / FILE
    if not path.exists():
        return {}
    try:
        data = json_loads(path.read_text())
        if data["key_id"] != info.key_id:
            raise ApprovalError(f"{path} is of another key: delete it, and approve again with keyquorum approve")
        return {str(digest): Noise.from_json(noise) for digest, noise in data["noise"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ApprovalError(
            f"{path} is damaged, or was written before approvals had noise bounds: delete it, and approve again with keyquorum approve"
        ) from None


def _check_bound(info: SealKeyInfo, noise: Noise, what: str) -> None:
    bits = info.policy.noise_bits
    if not noise.rms <= 2.0**bits:
        raise ApprovalError(
            f"{what} may have a noise of 2^{noise.bits:.1f}, the flooding of key {info.key_id} hides up to 2^{bits}: a decryption could reveal the "
            "secret key; compute with less noise, or make a key with more --noise-bits"
        )


def _approve(folder: Path, info: SealKeyInfo, data: bytes, noise: Noise) -> str:
    """Writes an approval down. A larger bound that was there stays: approving a result again as a fresh encryption does not make it one."""
    read_ciphertext(info.parameters, data)
    _check_bound(info, noise, "the ciphertext")
    digest = hashlib.sha256(data).hexdigest()
    with _locked(folder):
        known = approved(folder, info)
        before = known.get(digest)
        if before is not None:
            noise = replace(max(before, noise, key=lambda bound: bound.rms), message=max(before.message, noise.message))
        if noise != before:
            content = {"key_id": info.key_id, "noise": {name: bound.to_json() for name, bound in {**known, digest: noise}.items()}}
            write_atomically(folder / FILE, json.dumps(content).encode() + b"\n", 0o600)
    return digest


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One approval after another, of this process or of others: each keeps what the others added. The lock file is never deleted.
    ApprovalError if another process holds the lock for longer than :data:`LOCK_SECONDS`."""
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        end = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise ApprovalError(f"{folder / LOCK}: another approval is under way: try again when it has ended") from None
                time.sleep(0.01)
        yield
    finally:
        os.close(lock)


def approve(folder: Path, info: SealKeyInfo, data: bytes, message: float = 1.0, noise_bits: float | None = None) -> str:
    """Notes at a party, in its folder of the key, that it agrees to decrypt this ciphertext; returns the ciphertext's SHA-256.

    It counts as a fresh encryption by SEAL of values up to ``message`` in absolute value, or as of a noise with a root mean square of
    2^``noise_bits``: whoever approves vouches for that.
    """
    if not 0 < message < 2.0**MESSAGE_BITS_MAX:
        raise ParameterError(f"a bound of {message:g} on the values: give a positive number below 2^{MESSAGE_BITS_MAX}")
    if noise_bits is not None and not 0 <= noise_bits <= NOISE_BITS_MAX:
        raise ParameterError(f"noise of {noise_bits:g} bits: choose 0 to {NOISE_BITS_MAX}")
    digest = hashlib.sha256(data).hexdigest()
    return _approve(folder, info, data, fresh(info.parameters, digest, message) if noise_bits is None else stated(noise_bits, message))


def approve_derived(folder: Path, info: SealKeyInfo, data: bytes, operation: str, inputs: Sequence[bytes], step: int | None = None) -> str:
    """:func:`approve`, if the ciphertext is what ``operation`` makes of inputs that were approved at this party: it is computed again, and has
    the bound that follows from theirs (:mod:`.noise`). A bound above the policy's is refused."""
    known = approved(folder, info)
    digests = [hashlib.sha256(i).hexdigest() for i in inputs]
    if any(digest not in known for digest in digests):
        raise ApprovalError(f"an input of {operation} was not approved at this party: approve it first, or name the right files")
    relin, galois = (load_public_file(folder, info, name) if name in info.files else None for name in ("relin.key", "galois.key"))
    computed = evaluate(info.parameters, operation, inputs, relin, galois, step)
    if not _same(info.parameters, computed, data):
        raise ApprovalError(f"the ciphertext is not what {operation} makes of these inputs: do not decrypt it")
    operands = [(read_ciphertext(info.parameters, i), known[digest]) for i, digest in zip(inputs, digests, strict=True)]
    noise = evaluated(info.parameters, operation, operands, hashlib.sha256(data).hexdigest(), step, info.galois_elements)
    return _approve(folder, info, data, noise)


def _same(parameters: ParameterSet, x: bytes, y: bytes) -> bool:
    """Whether two files have the same ciphertext, whatever version of SEAL saved them, and how."""
    first, second = (write_ciphertext(parameters, read_ciphertext(parameters, data)) for data in (x, y))
    return first == second


def approved_noise(folder: Path, info: SealKeyInfo, data: bytes) -> Noise | None:
    """The bound of an approval at this party; None where there is none."""
    return approved(folder, info).get(hashlib.sha256(data).hexdigest())


def check_approved(folder: Path, info: SealKeyInfo, paths: Sequence[Path], digests: Sequence[str]) -> None:
    """Refuses ciphertexts that were not approved at this party, or only with more noise than the flooding hides, if the key's policy wants
    approvals."""
    if not info.policy.approvals or info.parameters.scheme != "ckks":
        return
    known = approved(folder, info)
    for path, digest in zip(paths, digests, strict=True):
        if digest not in known:
            raise ApprovalError(
                f"{path} was not approved at this party, which the policy of key {info.key_id} wants: find out where it comes from, and run "
                "keyquorum approve on the host of every party"
            )
        _check_bound(info, known[digest], str(path))


__all__ = ["approve", "approve_derived", "approved_noise", "check_approved", "check_form"]
