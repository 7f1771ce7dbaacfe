"""Jobs on pools: fill one, and decrypt LWE ciphertexts with one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from keyquorum.fhe.lwe import LweCiphertexts, LweParameters, lwe_parameters, read_lwe
from keyquorum.model.committee import Committee, write_atomically
from keyquorum.model.errors import CiphertextError, KeyFileError, ParameterError
from keyquorum.parties.context import PartyContext

from .lwe_decrypt import lwe_phases
from .lwe_keys import LweKeyInfo, load_lwe_key, load_lwe_share, sharing_of
from .pools import Pool
from .rounding import RoundingGroup
from .variants import Variant


def variant_for(committee: Committee, rounding: str, parameters: LweParameters, width: int = 8, levels: int = 2) -> Variant:
    """A rounding as a committee keeps material for it."""
    return Variant(rounding, parameters, width, levels, rounding == "round_ltz_circuit" and committee.field_protocol != "rep-field")


def variant_of(committee: Committee, job: dict[str, Any]) -> Variant:
    """The variant that a job names: ``parameters``, ``rounding``, ``width``, ``levels``."""
    return variant_for(committee, job["rounding"], lwe_parameters(job["parameters"]), job["width"], job["levels"])


def pool_group(context: PartyContext, variant: Variant) -> RoundingGroup:
    """The parties that round with pools: all, or t + 1 of a Shamir committee, 0 to t. Every party calls this."""
    sharing_of(context.committee, variant.parameters)
    return RoundingGroup.of(context, context.committee.threshold, 0)


def pool_fill_job(context: PartyContext, job: dict[str, Any]) -> dict[str, Any]:
    """The job ``pool_fill``: makes ``count`` items, ``chunk`` at a time."""
    variant = variant_of(context.committee, job)
    if not (1 <= job["count"] <= 1 << 40 and 1 <= job["chunk"] <= 1 << 20):
        raise ParameterError(f"{job['count']} items by {job['chunk']}: choose 1 to 2^40, and chunks of 1 to 2^20")
    group = pool_group(context, variant)
    available = 0
    if group.member:
        pool = Pool(context, group, variant)
        try:
            with context.phase("fill"):
                available = pool.fill(job["count"], job["chunk"])
        finally:
            pool.close()
    context.session.compare("end of the filling", variant.name.encode())
    return {"pool": variant.name, "available": available}


def check_lwe_key(context: PartyContext, info: LweKeyInfo, folder: Path) -> None:
    """Refuses a key of another committee."""
    committee = context.committee
    if (info.protocol, info.parties, info.threshold) != (committee.protocol, committee.size, committee.threshold):
        raise KeyFileError(f"{folder}: this key was made by a committee with another protocol or size")


def check_lwe_ciphertexts(ciphertexts: LweCiphertexts, key_id: str, info: LweKeyInfo, where: str) -> None:
    """Refuses ciphertexts of another key or set."""
    if key_id != info.key_id or ciphertexts.parameters.name != info.parameters:
        raise CiphertextError(f"{where} is encrypted under another key ({key_id}), not {info.key_id}: name that key")


def lwe_decrypt_job(context: PartyContext, job: dict[str, Any]) -> dict[str, Any]:
    """The job ``lwe_decrypt``. Keys: ``key``, ``receiver``, ``sha256`` (of the ciphertexts), those of the variant, and under ``local``
    the paths ``ciphertexts`` and ``output`` (JSON, the messages, written by the receiver, 0600)."""
    committee, party = context.committee, context.party
    folder = committee.key_folder(party, job["key"])
    info, variant = load_lwe_key(folder), variant_of(context.committee, job)
    check_lwe_key(context, info, folder)
    group = pool_group(context, variant)
    if job["receiver"] not in group.numbers:
        raise ParameterError(f"party {job['receiver']} does not round: choose a receiver from 0 to {len(group.numbers) - 1}")
    context.session.compare("key", info.digest)
    path = Path(job["local"]["ciphertexts"])
    ciphertexts, key_id = read_lwe(path.read_bytes(), str(path))
    check_lwe_ciphertexts(ciphertexts, key_id, info, str(path))
    if ciphertexts.digest().hex() != job["sha256"]:
        raise CiphertextError(f"{path} is not what the committee was asked to decrypt")
    share = load_lwe_share(folder, info, party)
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
        if words is not None:
            messages = variant.messages(words[0]).tolist()
            write_atomically(Path(job["local"]["output"]), json.dumps(messages).encode() + b"\n", 0o600)
    context.session.compare("end of the decryption", info.digest)
    return {"key_id": info.key_id, "count": ciphertexts.count}
