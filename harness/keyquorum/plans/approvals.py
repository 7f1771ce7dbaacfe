"""What a party agrees to decrypt under CKKS: ciphertexts that have the form of an encryption, and, if the key's policy wants it, those
that were approved at this party.

A chosen ciphertext gives the key away in one decryption: the phase of (0, 2^k) is 2^k s, and that of 2^j c under the scale of c is 2^j times
message and noise, far above the flooding. The first has a form that no encryption has, and is refused. The second has not: nor has an encryption
of zero plus (0, 2^k). Only where a ciphertext comes from tells such a one, and that is what an approval is about.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from keyquorum.fhe import _arith
from keyquorum.fhe._arith import Words
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.fhe.seal import evaluate
from keyquorum.fhe.seal_format import Ciphertext, read_ciphertext
from keyquorum.model.committee import write_atomically
from keyquorum.model.errors import ApprovalError, CiphertextError

from .keys import KeyInfo, load_public_file

FILE, LOCK = "approved.json", "approved.lock"
LOCK_SECONDS = 10.0
"""Longest wait for another approval at this party."""


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


def _approved(folder: Path, info: KeyInfo) -> list[str]:
    path = folder / FILE
    if not path.exists():
        return []
    try:
        data = json.loads(path.read_text())
        digests = [str(digest) for digest in data["sha256"]]
        if data["key_id"] != info.key_id:
            raise ApprovalError(f"{path} is of another key: delete it, and approve again with keyquorum approve")
    except (ValueError, KeyError, TypeError):
        raise ApprovalError(f"{path} is damaged: delete it, and approve again with keyquorum approve") from None
    return digests


def _missing(folder: Path, digests: Sequence[str], info: KeyInfo) -> list[str]:
    approved = set(_approved(folder, info))
    return [digest for digest in digests if digest not in approved]


def approve(folder: Path, info: KeyInfo, data: bytes) -> str:
    """Notes at a party, in its folder of the key, that it agrees to decrypt this ciphertext; returns the ciphertext's SHA-256."""
    read_ciphertext(info.parameters, data)
    digest = hashlib.sha256(data).hexdigest()
    with _locked(folder):
        known = _approved(folder, info)
        if digest not in known:
            content = {"key_id": info.key_id, "sha256": [*known, digest]}
            write_atomically(folder / FILE, json.dumps(content, indent=1).encode() + b"\n", 0o600)
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


def approve_derived(
    folder: Path, info: KeyInfo, data: bytes, operation: str, inputs: Sequence[bytes], step: int | None = None
) -> str:
    """:func:`approve`, if the ciphertext is what ``operation`` makes of inputs that were approved at this party: it is computed again."""
    if _missing(folder, [hashlib.sha256(i).hexdigest() for i in inputs], info):
        raise ApprovalError(f"an input of {operation} was not approved at this party: approve it first, or name the right files")
    relin, galois = (load_public_file(folder, info, name) if name in info.files else None for name in ("relin.key", "galois.key"))
    if evaluate(info.parameters, operation, inputs, relin, galois, step) != data:
        raise ApprovalError(f"the ciphertext is not what {operation} makes of these inputs: do not decrypt it")
    return approve(folder, info, data)


def check_approved(folder: Path, info: KeyInfo, paths: Sequence[Path], digests: Sequence[str]) -> None:
    """Refuses ciphertexts that were not approved at this party, if the key's policy wants approvals."""
    if not info.policy.approvals or info.parameters.scheme != "ckks":
        return
    missing = _missing(folder, digests, info)
    if missing:
        path = paths[list(digests).index(missing[0])]
        raise ApprovalError(
            f"{path} was not approved at this party, which the policy of key {info.key_id} wants: find out where it comes from, and run "
            "keyquorum approve on the host of every party"
        )


__all__ = ["approve", "approve_derived", "check_approved", "check_form"]
