"""Parties as threads of this process, for notebooks and tests: nothing is on disk, and the caller is every party."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from keyquorum.model.arguments import checked
from keyquorum.model.committee import Committee, Party
from keyquorum.model.protocols import DEFAULT_COMMITTEE, default_threshold
from keyquorum.parties import run_in_process
from keyquorum.parties.context import PartyContext
from keyquorum.plans.decrypt import Rounding
from keyquorum.plans.decrypt import decrypt as _decrypt
from keyquorum.plans.weakness import warn_all
from keyquorum.schemes import encryption_of, scheme_of
from keyquorum.schemes.base import Decrypted
from keyquorum.schemes.keys import KeyInfo, KeyMaterial, KeyRequest

PathLike = str | Path


@checked
def in_process_committee(
    parties: int = 3, protocol: str = DEFAULT_COMMITTEE, threshold: int | None = None, openings: str = "direct", lpn: bool = True
) -> Committee:
    """A committee without folder or certificates, for :func:`keygen_in_process` and :func:`decrypt_in_process`.

    Every call makes a committee with a digest and a MAC key of its own. Shares of its ``mascot`` keys can be used under that MAC key only, so keep
    the committee as long as its keys."""
    t = threshold if threshold is not None else default_threshold(protocol, parties)
    # Random fingerprints: a burned MAC key belongs to this committee alone.
    members = tuple(Party(i, "in-process", 1, secrets.token_hex(32)) for i in range(parties))
    committee = Committee(Path("in-process"), "in-process", protocol, t, members, openings, lpn=lpn)
    committee.check()
    return committee


@checked
def keygen_in_process(
    committee: Committee,
    request: KeyRequest,
    seed: bytes | None = None,
    backend: str = "embedded",
    mp_spdz: PathLike | None = None,
    link: str | None = None,
) -> list[KeyMaterial[Any]]:
    """Makes a key among threads of this process; returns each party's part of the key. ``seed``: INSECURE, tests only."""

    def job(context: PartyContext) -> KeyMaterial[Any]:
        context.seed = seed
        return scheme_of(request).generate(context, request)

    request.check_plan(committee)
    return run_in_process(committee, job, backend=backend, mp_spdz=mp_spdz, link=link)


@checked
def decrypt_in_process(
    committee: Committee,
    material: Sequence[KeyMaterial[Any]],
    ciphertexts: Sequence[bytes],
    receiver: int = 0,
    rounding: str = "round_ltz_circuit",
    *,
    backend: str = "embedded",
    mp_spdz: PathLike | None = None,
    link: str | None = None,
) -> Sequence[Decrypted]:
    """Decrypts among threads of this process, without pools. CKKS decryptions are flooded by the policy, but neither they nor those of
    `round_mask_open` are counted, and nothing is approved: there is no key on disk, and the caller is every party."""
    info: KeyInfo = material[0].info
    parsed = [encryption_of(info).parse(info, data, "the ciphertext", rounding) for data in ciphertexts]

    def job(context: PartyContext) -> Sequence[Decrypted] | None:
        mine = material[context.party]
        return _decrypt(context, mine.info, mine.shares, parsed, receiver, Rounding(rounding))

    warn_all(scheme_of(info).warnings(info))
    result = run_in_process(committee, job, backend=backend, mp_spdz=mp_spdz, link=link)[receiver]
    return result or []


__all__ = ["decrypt_in_process", "in_process_committee", "keygen_in_process"]
