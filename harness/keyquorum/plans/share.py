"""Shares of a key for subsets of parties, made by the committee from its own shares (`lisss_share`): the key is opened nowhere.

Every party stores its shares; when those of all are on the disk, the metadata, from which they count. A party that dies before has the old sharing, or
none; parties with sharings of two runs refuse each other, and a new run replaces both.
"""

from __future__ import annotations

import hashlib
import os
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from keyquorum.backends.base import Mode
from keyquorum.dsl import ShareVector
from keyquorum.model.checkpoints import reached
from keyquorum.model.committee import Committee
from keyquorum.model.plain import Json
from keyquorum.parties.context import PartyContext
from keyquorum.parties.jobs import party_job
from keyquorum.programs.signatures import lisss_share
from keyquorum.schemes.holding import holding_of
from keyquorum.schemes.key_folder import load_shares
from keyquorum.schemes.keys import KeyInfo, SecretVector
from keyquorum.schemes.subset_keys import compare_key, load_key_as
from keyquorum.schemes.subset_shares import (
    SubsetSharing,
    check_subsets,
    packed,
    publish,
    remove_unpublished,
    ring_bits,
    shared_vectors,
    vector_bytes,
    write_vectors,
)
from keyquorum.sharing.randomness import wipe

AT_ONCE = 1 << 21
"""Words of a run of the program, which bounds the memory."""
Words = NDArray[np.uint64]


def check_share(committee: Committee, party: int, job: Json) -> None:
    """The checks of the job ``share`` that a party makes alone."""
    _info(committee, party, job)


def _info(committee: Committee, party: int, job: Json) -> KeyInfo:
    folder = committee.key_folder(party, job["key"])
    info = load_key_as(committee, folder)
    check_subsets(committee, info, job["members"])
    return info


@party_job("share", {"key": str, "members": int}, check=check_share)
def share_job(context: PartyContext, job: Json) -> Json:
    """The job ``share``: shares of the key ``key`` for all subsets of ``members`` parties."""
    info, folder = _info(context.committee, context.party, job), context.committee.key_folder(context.party, job["key"])
    compare_key(context, folder, info)
    sharing = SubsetSharing(info.key_id, context.session.toss(16).hex(), job["members"])
    remove_unpublished(folder, info)
    held = shared_vectors(info, holding_of(folder, info).vectors)
    shares = load_shares(folder, info, context.party, len(held))
    try:
        for index, share in enumerate(shares):
            with context.phase("share"):
                vectors = share_vector(context, held[index], sharing.members, share.words)
            try:
                write_vectors(folder, info, sharing, context.party, index, vectors)
            finally:
                wipe(vectors)
            reached("share/written")
        context.session.compare("shares of subsets on the disk", hashlib.sha256(sharing.id.encode()).digest())
        reached("share/before")
        publish(folder, info, sharing)
        reached("share/published")
    except BaseException:
        for share in shares:
            share.wipe()
        raise
    for share in shares:
        share.wipe()
    context.session.compare("end of the sharing", hashlib.sha256(sharing.id.encode()).digest())
    return {"key_id": info.key_id, "sharing": sharing.id, "bytes": check_subsets(context.committee, info, sharing.members)}


def share_vector(context: PartyContext, vector: SecretVector, members: int, shared: Words) -> NDArray[np.uint8]:
    """This party's shares of a vector for subsets of so many members, packed: [subsets that have it, bytes], from those in the committee (``shared``); every
    party calls this. Rounds and bytes of every run are those of `lisss_share`."""
    committee, me = context.committee, context.party
    protocol = committee.ring_protocol
    assert protocol is not None
    size, bits = vector.length, ring_bits(vector.domain)
    made = np.zeros((comb(committee.size - 1, members - 1), vector_bytes(size, bits)), np.uint8)
    subsets, done = list(combinations(range(committee.size), members)), 0
    step = max(1, AT_ONCE // (size * members))
    key = ShareVector.from_words(shared.copy())
    try:
        for first in range(0, len(subsets), step):
            mine = [subset for subset in subsets[first : first + step] if me in subset]
            chooses = np.array([subset[-1] != me for subset in mine], bool)
            rows = np.zeros((len(mine), size), np.uint64)
            private = np.frombuffer(bytearray(os.urandom(8 * size * int(chooses.sum()))), np.uint64)
            if bits < 64:
                private &= np.uint64((1 << bits) - 1)
            call = lisss_share(parties=committee.size, members=members, size=size, first=first, count=min(step, len(subsets) - first))
            try:
                opened = context.backend.run(
                    protocol, vector.domain, call, private=private.view(np.int64), shares=key, mode=Mode(committee.threshold)
                ).words
                rows[chooses] = private.reshape(-1, size)
                rows[~chooses] = opened.view(np.uint64).reshape(-1, size)
                wipe(opened)
                if bits < 64:
                    rows &= np.uint64((1 << bits) - 1)
                made[done : done + len(mine)] = packed(rows, bits)
            finally:
                wipe(private, rows)
            done += len(mine)
    except BaseException:
        wipe(made)
        raise
    finally:
        key.wipe()
    return made


__all__ = ["check_share", "share_job", "share_vector"]
