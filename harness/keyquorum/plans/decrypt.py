"""Joint decryption, of whatever scheme: the result goes to one party, the secret key and the noise stay hidden.

A scheme decrypts by its own means, or by a rounding with masks of a pool, which is the same for all: phases (local), the rounding, plaintexts.
Before a decryption is counted, the files are compared with the job. Ciphertexts that the scheme does not decrypt, or that were not approved, are refused.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from keyquorum.dsl import ShareVector
from keyquorum.model.committee import Committee, require_embedded, require_semi_honest
from keyquorum.model.errors import CiphertextError, OutputError, ParameterError
from keyquorum.model.outputs import reserved, save_all
from keyquorum.model.plain import Json
from keyquorum.parties.context import PartyContext
from keyquorum.parties.jobs import party_job
from keyquorum.schemes import encryption_of
from keyquorum.schemes.base import EXACT, AnyEncryption, Decrypted
from keyquorum.schemes.counts import check_left, claim_decryptions, decryptions_used
from keyquorum.schemes.holding import holding_of
from keyquorum.schemes.key_folder import load_shares
from keyquorum.schemes.keys import KeyInfo
from keyquorum.schemes.subset_keys import check_decryptions, compare_key, info_in, load_key_as, load_shares_as
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.randomness import wipe
from keyquorum.sharing.variants import Variant, Words

from .masked import check_masks, warn_of_rounding
from .noise_check import check_noise, refuse_noise_check
from .pool_variants import check_verified, pool_group, variant_for
from .pools import Pool
from .weakness import warn_all

RESULTS = "results"
"""Folder of a key for results that cannot be written to their paths."""


@dataclass(frozen=True)
class Rounding:
    """How phases are rounded. ``width``, ``levels``: bits of a block and levels of the tables of round_ltz_table."""

    name: str = EXACT
    width: int = 8
    levels: int = 2

    @staticmethod
    def of(job: Json) -> Rounding:
        """The rounding of a job; jobs for roundings without tables need not have width and levels."""
        width, levels = job.get("width", 8), job.get("levels", 2)
        if type(width) is not int or type(levels) is not int:
            raise ParameterError("the decrypt job has tables of no whole width and levels: write the job file again")
        return Rounding(job["rounding"], width, levels)

    def variant(self, committee: Committee, info: KeyInfo) -> Variant:
        """The rounding with the preprocessing of a committee, for a key. Raises ParameterError for a committee that cannot round so."""
        return variant_for(committee, self.name, info.parameters, self.width, self.levels)


EXACTLY = Rounding()


def decrypt(
    context: PartyContext, info: KeyInfo, shares: Sequence[ShareVector], ciphertexts: Sequence[object], receiver: int, rounding: Rounding = EXACTLY,
    pool: str = "",
) -> Sequence[Decrypted] | None:  # fmt: skip
    """Decrypts ciphertexts (contents of files, :meth:`.Scheme.read_ciphertext`) to ``receiver``; every party calls this. Returns None at the others.

    ``pool``: take the masks from a pool; a text that identifies this request, the same at all parties. Empty: they are made for it.
    All ciphertexts are processed in the same rounds. Decryptions that are counted must have been claimed (:func:`.claim_decryptions`) before.
    """
    scheme = encryption_of(info)
    check_verified(context.committee, scheme)
    scheme.check_decryption(info, ciphertexts, receiver, rounding.name)
    if not ciphertexts:
        return [] if context.party == receiver else None
    if not pool and not scheme.pooled(info, False):
        check_masks(rounding.name, False)
        return scheme.decrypt_without_pool(context, info, shares, ciphertexts, receiver, rounding.name)
    return _with_pool(context, info, shares, ciphertexts, receiver, rounding.variant(context.committee, info), pool)


def _with_pool(
    context: PartyContext, info: KeyInfo, shares: Sequence[ShareVector], ciphertexts: Sequence[object], receiver: int, variant: Variant, purpose: str
) -> Sequence[Decrypted] | None:
    scheme, group = encryption_of(info), pool_group(context)
    if receiver not in group.members:
        raise ParameterError(f"party {receiver} does not round: choose a receiver from 0 to {len(group.members) - 1}")
    z = scheme.phases(context, group, info, shares, variant, ciphertexts)
    words = None
    try:
        if group.member:
            with context.phase("online"):
                words = _rounded(context, group, variant, z, purpose, group.members.index(receiver))
    finally:
        wipe(z)
    return None if words is None or context.party != receiver else scheme.plaintexts(info, ciphertexts, words[0])


def _rounded(context: PartyContext, group: RoundingGroup, variant: Variant, z: Words, purpose: str, receiver: int) -> Words | None:
    """Rounds phases with items of the pool, or without a purpose with items that are made for them."""
    if purpose:
        pool = Pool(context, group, variant)
        try:
            return pool.decrypt(z, purpose, receiver)
        finally:
            pool.close()
    if not variant.verified:
        require_semi_honest(context.committee, f"preprocessing of {variant.name}")
    items = variant.make(group, z.shape[-1] // variant.words)
    try:
        return variant.use(group, z, items, receiver)
    finally:
        wipe(*items)


def local_paths(job: Json, name: str) -> list[Path]:
    """This party's paths, one for each ciphertext of the job."""
    paths = job["local"].get(name)
    if not isinstance(paths, list) or not all(isinstance(p, str) and p.isprintable() for p in paths) or len(paths) != len(job["sha256"]):
        raise ParameterError(f"the decrypt job needs {len(job['sha256'])} paths under local, {name}: write the job file again")
    return [Path(p) for p in paths]


def read_ciphertexts(info: KeyInfo, paths: Sequence[Path], digests: Sequence[str], rounding: str) -> list[object]:
    """The ciphertexts of a decrypt job, ready to decrypt; refuses files that the job does not name, and those of other keys."""
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
        ciphertexts.append(encryption_of(info).read_ciphertext(info, path, data, rounding))
    return ciphertexts


@dataclass(frozen=True)
class _Asked:
    """What a job asks of a party, read from the job and the folder of the key."""

    folder: Path
    stored: KeyInfo
    info: KeyInfo
    receiver: int
    rounding: Rounding
    inputs: list[Path]
    outputs: list[Path]

    @staticmethod
    def of(committee: Committee, party: int, job: Json) -> _Asked:
        """What the job asks of a party."""
        folder = committee.key_folder(party, job["key"])
        stored, receiver = load_key_as(committee, folder), committee.index_of(job["receiver"])
        rounding, paths = Rounding.of(job), (local_paths(job, name) for name in ("ciphertexts", "outputs"))
        check_decryptions(committee, stored, rounding.name)
        return _Asked(folder, stored, info_in(stored, committee, holding_of(folder, stored)), receiver, rounding, *paths)

    @property
    def scheme(self) -> AnyEncryption:
        """The scheme of the key."""
        return encryption_of(self.info)

    def ciphertexts(self, job: Json) -> list[object]:
        """The ciphertexts of the job. Raises an error for those that are not decrypted, or not approved."""
        found = read_ciphertexts(self.info, self.inputs, job["sha256"], self.rounding.name)
        self.scheme.check_decryption(self.info, found, self.receiver, self.rounding.name)
        check_masks(self.rounding.name, self.scheme.pooled(self.info, bool(job.get("pool"))))
        self.scheme.check_accepted(self.folder, self.info, self.inputs, job["sha256"])
        return found


def check_decrypt(committee: Committee, party: int, job: Json) -> None:
    """The checks of the job ``decrypt`` that a party makes alone, before it connects: a party that cannot take part says so at once.

    Key, ciphertexts, shares, approvals, the count of decryptions, and where the receiver would write. No check of the plan is replaced."""
    asked = _Asked.of(committee, party, job)
    info, scheme = asked.info, asked.scheme
    check_verified(committee, scheme)
    require_embedded(committee, job["backend"])
    if _checks_noise(job):
        refuse_noise_check(committee, info, job["backend"])
    if scheme.pooled(info, bool(job.get("pool"))):
        asked.rounding.variant(committee, info)
    ciphertexts = asked.ciphertexts(job)
    for share in load_shares_as(committee, asked.folder, asked.stored, party, scheme.vectors_needed(info, ciphertexts), job["backend"]):
        share.wipe()
    limit = info.most_decryptions(asked.rounding.name)
    if limit is not None:
        check_left(info, decryptions_used(asked.folder, info), len(ciphertexts), limit)
    if party == asked.receiver:
        _check_outputs(asked.outputs)


def _checks_noise(job: Json) -> bool:
    wanted = job.get("check_noise", False)
    if type(wanted) is not bool:
        raise ParameterError("check_noise of the decrypt job is no true or false: write the job file again")
    return wanted


def _check_outputs(outputs: Sequence[Path]) -> None:
    for path in outputs:
        if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
            raise ParameterError(f"{path}: cannot be written, {path.parent} is no folder that we may write to: name another place with --output")


@party_job(
    "decrypt",
    {"key": str, "receiver": int, "rounding": str, "sha256": list, "backend": str, "local": dict},
    check=check_decrypt,
    subsets=True,
    verified=True,
    optional={"pool": bool, "width": int, "levels": int, "check_noise": bool},
)
def decrypt_job(context: PartyContext, job: Json) -> Json:
    """The job ``decrypt``. Keys: ``key``, ``receiver``, ``rounding``, ``sha256`` (of each ciphertext file), ``pool`` (optional: take masks from the
    committee's pool), ``width``, ``levels`` (optional: of the rounding's tables), ``check_noise`` (optional: the joint check of noise first), ``subset`` (optional:
    parties that decrypt without the others), and under ``local`` the paths: ``ciphertexts``, ``outputs``
    (written by the receiver, 0600, and reserved before anything is counted)."""
    committee, party = context.committee, context.party
    asked = _Asked.of(committee, party, job)
    folder, info, scheme, inputs, outputs = asked.folder, asked.info, asked.scheme, asked.inputs, asked.outputs
    compare_key(context, folder, asked.stored)
    ciphertexts = asked.ciphertexts(job)
    warn_all(scheme.warnings(info))
    warn_of_rounding(asked.rounding.name, info.parameters)
    receives = party == asked.receiver
    if receives and set(outputs) & set(inputs):
        raise OutputError(f"{next(p for p in outputs if p in inputs)}: is a ciphertext of this job: name another output")
    sizes = [scheme.plaintext_size(info, ciphertext) for ciphertext in ciphertexts]
    # Before anything is counted: a result that cannot be written would be lost.
    with reserved(outputs if receives else [], sizes if receives else [], folder / RESULTS) as reservations:
        with context.phase("load"):
            shares = load_shares_as(committee, folder, asked.stored, party, scheme.vectors_needed(info, ciphertexts), job["backend"])
            most = info.most_decryptions(asked.rounding.name)
            if most is not None:
                claim_decryptions(context, folder, info, len(ciphertexts), most)
        if _checks_noise(job):
            refuse_noise_check(committee, info, job["backend"])
            check_noise(context, folder, info, shares, ciphertexts, asked.receiver)
        pooled = scheme.pooled(info, bool(job.get("pool")))
        pool = hashlib.sha256("".join(job["sha256"]).encode()).hexdigest() if pooled else ""
        results = decrypt(context, info, shares, ciphertexts, asked.receiver, asked.rounding, pool)
        for share in shares:
            share.wipe()
        if results is not None:
            save_all(reservations, [result.plaintext for result in results])
    context.session.compare("end of the decryption", info.digest)  # all parties notice a receiver that refused the result
    written = {"outputs": [str(path) for path in outputs]} if results is not None else {}
    return {"key_id": info.key_id, "count": len(ciphertexts), "receiver": job["receiver"], **written}


__all__ = ["RESULTS", "Decrypted", "Rounding", "check_decrypt", "decrypt", "decrypt_job", "load_shares", "local_paths", "read_ciphertexts"]
