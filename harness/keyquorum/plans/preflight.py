"""What a party finds out of a job by itself, before it connects: its files, hashes, key, shares and policy.

Nothing here replaces a check of the plans, which the parties do together; it lets a party that cannot take part say so at once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from keyquorum.fhe.lwe import lwe_parameters, read_lwe
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CiphertextError, KeyFileError, ParameterError, PolicyError
from keyquorum.model.plain import Json
from keyquorum.parties.jobs import local_path

from .approvals import check_approved
from .decrypt import check_decryption, load_shares, local_paths, read_ciphertexts
from .keygen import Request
from .keys import check_made_by, holds_a_key, load_key, parameters_from_json, policy_from_json
from .lwe_keys import load_lwe_key, load_lwe_share, sharing_of
from .policy import decryptions_used
from .pool_jobs import check_lwe_ciphertexts
from .pool_variants import variant_of


def check_keygen(committee: Committee, party: int, job: Json) -> None:
    """Of the job ``keygen``: what it would make, and that its name is free."""
    policy = policy_from_json(job["policy"])
    request = Request(parameters_from_json(job["parameters"]), job["relin"], tuple(job["galois_elements"]), job["error_law"], policy)
    request.check(committee.threshold + 1)
    request.check_budget(committee)
    _check_free(committee, party, job["key"])


def check_lwe_keygen(committee: Committee, party: int, job: Json) -> None:
    """Of the job ``lwe_keygen``."""
    sharing_of(committee, lwe_parameters(job["parameters"]))
    _check_free(committee, party, job["key"])


def _check_free(committee: Committee, party: int, key: str) -> None:
    folder = committee.key_folder(party, key)
    if holds_a_key(folder):
        raise KeyFileError(f"{folder}: there is a key of this name already: choose another name")


def check_decrypt(committee: Committee, party: int, job: Json) -> None:
    """Of the job ``decrypt``: key, ciphertexts, shares, approvals, the count of decryptions, and where the receiver would write."""
    folder = committee.key_folder(party, job["key"])
    info = load_key(folder)
    check_made_by(committee, info, folder)
    inputs, outputs = (local_paths(job, name) for name in ("ciphertexts", "outputs"))
    ciphertexts = read_ciphertexts(info, inputs, job["sha256"])
    check_decryption(info, ciphertexts, job["receiver"], job["rounding"])
    check_approved(folder, info, inputs, job["sha256"])
    needed = max((c.level_primes for c in ciphertexts), default=1)
    for share in load_shares(folder, info, party, needed, job["backend"]):
        share.wipe()
    if info.parameters.scheme == "ckks":
        used, limit = decryptions_used(folder, info), info.policy.decryptions
        if used + len(ciphertexts) > limit:
            raise PolicyError(
                f"the policy of key {info.key_id} allows {limit} decryptions and {used} are used: {len(ciphertexts)} more are refused; make a new key"
            )
    if party == job["receiver"]:
        _check_outputs(outputs)


def _check_outputs(outputs: Sequence[Path]) -> None:
    for path in outputs:
        if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
            raise ParameterError(f"{path}: cannot be written, {path.parent} is no folder that we may write to: name another place with --output")


def check_lwe_decrypt(committee: Committee, party: int, job: Json) -> None:
    """Of the job ``lwe_decrypt``."""
    folder = committee.key_folder(party, job["key"])
    info = load_lwe_key(folder)
    check_made_by(committee, info, folder)
    variant = variant_of(committee, job)
    path = local_path(job, "ciphertexts")
    ciphertexts, key_id = read_lwe(path.read_bytes(), str(path))
    check_lwe_ciphertexts(ciphertexts, key_id, info, variant.rounding, str(path))
    if ciphertexts.digest().hex() != job["sha256"]:
        raise CiphertextError(f"{path} is not what the committee was asked to decrypt")
    load_lwe_share(folder, info, party).wipe()
