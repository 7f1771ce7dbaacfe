"""The round keys of a PRF key, encrypted under a key for TFHE-rs of the same committee: whoever has the public files evaluates the PRF on encrypted inputs,
without the parties, which decrypt results alone."""

from __future__ import annotations

import hashlib

from keyquorum.dsl import wiped_on_failure
from keyquorum.model.committee import Committee, write_atomically
from keyquorum.model.errors import ParameterError
from keyquorum.model.plain import Json
from keyquorum.parties.context import PartyContext
from keyquorum.parties.jobs import party_job
from keyquorum.schemes.key_folder import check_made_by, load_shares
from keyquorum.schemes.prf.key import AES, PrfKeyInfo, load_prf_key
from keyquorum.schemes.subset_keys import compare_key
from keyquorum.schemes.tfhe.encryption import encrypt_shared_bits, round_keys_file
from keyquorum.schemes.tfhe.key import TFHE_KEYS, TfheKeyInfo, sharing_of


def check_encrypt(committee: Committee, party: int, job: Json) -> None:
    """The checks of the job ``toprf_encrypt`` that a party makes alone."""
    _keys(committee, party, job)


def _keys(committee: Committee, party: int, job: Json) -> tuple[PrfKeyInfo, TfheKeyInfo]:
    folder, other = (committee.key_folder(party, job[name]) for name in ("key", "tfhe"))
    prf, tfhe = load_prf_key(folder), TFHE_KEYS.load(other)
    check_made_by(committee, prf, folder)
    if prf.parameters != AES:
        raise ParameterError(f"{folder}: a key of {prf.parameters.name}, which has no round keys: name a key of {AES.name}")
    check_made_by(committee, tfhe, other)
    sharing_of(committee, tfhe.parameters)
    return prf, tfhe


@party_job("toprf_encrypt", {"key": str, "tfhe": str}, check=check_encrypt)
def encrypt_job(context: PartyContext, job: Json) -> Json:
    """The job ``toprf_encrypt``: the round keys of the PRF key ``key``, encrypted under the key ``tfhe``. Each party writes the same file into the folder of ``tfhe``."""
    committee, me = context.committee, context.party
    prf, tfhe = _keys(committee, me, job)
    folder = committee.key_folder(me, job["tfhe"])
    compare_key(context, committee.key_folder(me, job["key"]), prf)
    compare_key(context, folder, tfhe)
    with context.phase("round keys"):
        [bits] = load_shares(committee.key_folder(me, job["key"]), prf, me)
        with wiped_on_failure(bits):
            [ring] = load_shares(folder, tfhe, me, 1)
        with wiped_on_failure(bits, ring):
            made = encrypt_shared_bits(context, tfhe, ring.words, bits.words)
        bits.wipe()
        ring.wipe()
    data = made.to_bytes(tfhe.key_id)
    context.session.compare("encrypted round keys", hashlib.sha256(data).digest())
    path = folder / round_keys_file(prf.key_id)
    write_atomically(path, data, 0o644)
    return {"key_id": tfhe.key_id, "prf": prf.key_id, "file": path.name, "sha256": hashlib.sha256(data).hexdigest()}


__all__ = ["check_encrypt", "encrypt_job"]
