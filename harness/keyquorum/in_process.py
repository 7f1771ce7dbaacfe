"""Parties as threads of this process, for notebooks and tests: nothing is on disk, and the caller is every party."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path

from keyquorum.fhe.seal_format import read_ciphertext
from keyquorum.model.committee import Committee, Party, default_threshold
from keyquorum.parties import run_in_process
from keyquorum.parties.context import PartyContext
from keyquorum.plans.decrypt import Decrypted
from keyquorum.plans.decrypt import decrypt as _decrypt
from keyquorum.plans.keygen import KeyMaterial, Request, generate
from keyquorum.plans.keys import warn_of_weakness

PathLike = str | Path


def in_process_committee(parties: int = 3, protocol: str = "rep-field", threshold: int | None = None, openings: str = "direct") -> Committee:
    """A committee without folder or certificates, for :func:`keygen_in_process` and :func:`decrypt_in_process`.

    Every call makes a committee of its own: its digest is unlike all others, and so is its MAC key, under which alone the shares of its
    ``mascot`` keys can be used. Keep the committee as long as its keys."""
    t = threshold if threshold is not None else default_threshold(protocol, parties)
    # random in place of fingerprints: a burned MAC key is of this committee alone
    members = tuple(Party(i, "in-process", 1, secrets.token_hex(32)) for i in range(parties))
    committee = Committee(Path("in-process"), "in-process", protocol, t, members, openings)
    committee.check()
    return committee


def keygen_in_process(
    committee: Committee,
    request: Request,
    seed: bytes | None = None,
    backend: str = "embedded",
    mp_spdz: PathLike | None = None,
    link: str | None = None,
) -> list[KeyMaterial]:
    """Makes a key among threads of this process; returns each party's material. ``seed``: INSECURE, tests only."""
    return run_in_process(committee, lambda context: generate(context, request, seed), backend=backend, mp_spdz=mp_spdz, link=link)


def decrypt_in_process(
    committee: Committee,
    material: Sequence[KeyMaterial],
    ciphertexts: Sequence[bytes],
    receiver: int = 0,
    rounding: str = "round_ltz_circuit",
    backend: str = "embedded",
    mp_spdz: PathLike | None = None,
    link: str | None = None,
) -> list[Decrypted]:
    """Decrypts among threads of this process. CKKS decryptions are flooded by the policy, but neither they nor those of `round_mask_open` are
    counted, and nothing is approved: there is no key on disk, and the caller is every party."""
    parsed = [read_ciphertext(material[0].info.parameters, data) for data in ciphertexts]

    def job(context: PartyContext) -> list[Decrypted] | None:
        mine = material[context.party]
        return _decrypt(context, mine.info, mine.shares, parsed, receiver, rounding)

    warn_of_weakness(material[0].info.parameters, material[0].info.policy)
    result: list[Decrypted] = run_in_process(committee, job, backend=backend, mp_spdz=mp_spdz, link=link)[receiver]
    return result


__all__ = ["decrypt_in_process", "in_process_committee", "keygen_in_process"]
