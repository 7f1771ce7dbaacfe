"""Jobs on pools: fill one, and decrypt LWE ciphertexts with one."""

from __future__ import annotations

import json

from keyquorum.fhe.lwe import LweCiphertexts, read_lwe
from keyquorum.model.errors import CiphertextError, OutputError, ParameterError
from keyquorum.model.outputs import reserved, save_all
from keyquorum.model.plain import Json
from keyquorum.parties.context import PartyContext
from keyquorum.parties.jobs import local_path

from .decrypt import RESULTS
from .keys import check_made_by
from .lwe_decrypt import lwe_phases
from .lwe_keys import LweKeyInfo, load_lwe_key, load_lwe_share
from .masked import warn_of_rounding
from .pool_variants import pool_group, variant_of
from .pools import Pool
from .randomness import wipe
from .variants import Variant

NUMBER = 8
"""Bytes of a message in JSON, at most: it has up to 16 bits."""


def pool_fill_job(context: PartyContext, job: Json) -> Json:
    """The job ``pool_fill``: makes ``count`` items, ``chunk`` at a time."""
    variant = variant_of(context.committee, job)
    if not (1 <= job["count"] <= 1 << 40 and 1 <= job["chunk"] <= 1 << 20):
        raise ParameterError(f"{job['count']} items by {job['chunk']}: choose 1 to 2^40, and chunks of 1 to 2^20")
    group = pool_group(context)
    pool = Pool(context, group, variant) if group.member else None
    chunks = -(-job["count"] // job["chunk"])
    available = 0
    try:
        if pool is not None:
            pool.store.require_room(job["count"], len(context.committee.local_parties()))
        with context.phase("fill", chunks) as step:
            for i in range(chunks):
                if pool is not None:
                    available = pool.fill(min(job["chunk"], job["count"] - i * job["chunk"]), job["chunk"])
                # Those that have no part in it do not wait in vain for long.
                context.session.compare("items made", f"{variant.name} {i}".encode())
                step()
    finally:
        if pool is not None:
            pool.close()
    return {"pool": variant.name, "available": available}


def check_lwe_ciphertexts(ciphertexts: LweCiphertexts, key_id: str, info: LweKeyInfo, rounding: str, where: str) -> None:
    """Refuses ciphertexts of another key or set, and those that state more noise than the rounding takes."""
    if key_id != info.key_id or ciphertexts.parameters.name != info.parameters:
        raise CiphertextError(f"{where} is encrypted under another key ({key_id}), not {info.key_id}: name that key")
    ciphertexts.check_rounding(rounding, where)


def lwe_decrypt_job(context: PartyContext, job: Json) -> Json:
    """The job ``lwe_decrypt``. Keys: ``key``, ``receiver``, ``sha256`` (of the ciphertexts), those of the variant, and under ``local``
    the paths ``ciphertexts`` and ``output`` (JSON, the messages, written by the receiver, 0600)."""
    committee, party = context.committee, context.party
    folder = committee.key_folder(party, job["key"])
    info, variant = load_lwe_key(folder), variant_of(context.committee, job)
    if not isinstance(variant, Variant):
        raise ParameterError(f"{job['parameters']} is no LWE parameter set: write the job file again")
    check_made_by(committee, info, folder)
    warn_of_rounding(variant.rounding, variant.parameters)
    group = pool_group(context)
    if job["receiver"] not in group.numbers:
        raise ParameterError(f"party {job['receiver']} does not round: choose a receiver from 0 to {len(group.numbers) - 1}")
    context.session.compare("key", info.digest)
    path, output = local_path(job, "ciphertexts"), local_path(job, "output")
    ciphertexts, key_id = read_lwe(path.read_bytes(), str(path))
    check_lwe_ciphertexts(ciphertexts, key_id, info, variant.rounding, str(path))
    if ciphertexts.digest().hex() != job["sha256"]:
        raise CiphertextError(f"{path} is not what the committee was asked to decrypt")
    if output == path:
        raise OutputError(f"{output}: is the file of the ciphertexts: name another output")
    share = load_lwe_share(folder, info, party)
    receives = party == job["receiver"]
    with reserved([output] if receives else [], [NUMBER * ciphertexts.count + 16] if receives else [], folder / RESULTS) as places:
        with context.phase("phase"):
            z = lwe_phases(context, group, share, ciphertexts)
        share.wipe()
        if group.member:
            pool = Pool(context, group, variant)
            try:
                with context.phase("online"):
                    words = pool.decrypt(z, job["sha256"], group.numbers.index(job["receiver"]))
            finally:
                pool.close()
                wipe(z)
            if words is not None:
                messages = variant.messages(words[0]).tolist()
                save_all(places, [json.dumps(messages).encode() + b"\n"])
    context.session.compare("end of the decryption", info.digest)
    return {"key_id": info.key_id, "count": ciphertexts.count}
