"""The count of the decryptions of a key, where its scheme limits them: durable before a result leaves, and the same at every party."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from keyquorum.model.committee import write_atomically
from keyquorum.model.errors import KeyFileError, PolicyError
from keyquorum.model.needs import require_disk
from keyquorum.model.plain import is_count, json_loads
from keyquorum.model.subset import decrypts_apart
from keyquorum.parties.context import PartyContext
from keyquorum.schemes.base import EXACT
from keyquorum.schemes.keys import KeyInfo

DECRYPTIONS, REFUSALS, PROOFS, EVALUATIONS = "decryptions", "refusals", "proofs", "evaluations"
"""What is counted of a key."""
COUNT_BYTES = 8
"""A count on the wire, little endian."""
TOLERANCE = 2
"""Decryptions by which a count may at least be above what is confirmed: see :func:`agreed_count`."""
SPLIT_FILE = "split.json"
"""In the folder of a key: the counts of this committee after it gave the rest away to a standby (:func:`note_split`)."""


def decryptions_used(folder: Path, info: KeyInfo) -> int:
    """How many decryptions this party has on record for the key."""
    path = folder / "decryptions.json"
    if not path.exists():
        raise KeyFileError(f"{path} is missing: without the count of decryptions the key must not be used; restore the file")
    try:
        data = json_loads(path.read_text())
        if data["key_id"] != info.key_id:
            raise KeyFileError(f"{path} is of another key: restore the file of key {info.key_id}")
        used = data["used"]
    except (ValueError, KeyError, TypeError):
        used = None
    if not isinstance(used, int) or isinstance(used, bool) or not 0 <= used < 1 << 62:
        raise KeyFileError(f'{path} is damaged: restore it, or set "used" to the count of another party')
    return used


def start_count(folder: Path, info: KeyInfo) -> None:
    """Starts the count of a new key at zero."""
    _write(folder, info, 0)


def set_count(folder: Path, info: KeyInfo, used: int) -> None:
    """Sets the count of a party that lost it, to that on which the others agree."""
    _write(folder, info, used)


def _write(folder: Path, info: KeyInfo, used: int) -> None:
    data = json.dumps({"key_id": info.key_id, "used": used}) + "\n"
    write_atomically(folder / "decryptions.json", data.encode(), 0o600)


def note_split(folder: Path, info: KeyInfo, counts: Mapping[str, int]) -> None:
    """Keeps the counts from which this committee goes on beside a standby. All members have them on the disk before the first one counts so (:func:`agreed_count`)."""
    write_atomically(folder / SPLIT_FILE, (json.dumps({"key_id": info.key_id, "counts": dict(counts)}) + "\n").encode(), 0o600)


def noted_split(folder: Path, info: KeyInfo) -> dict[str, int]:
    """The same as they are on the disk; empty where no standby was made. Raises KeyFileError for a damaged file."""
    path = folder / SPLIT_FILE
    if not path.exists():
        return {}
    try:
        data = json_loads(path.read_text())
        counts = dict(data["counts"])
        proper = data["key_id"] == info.key_id and all(map(is_count, counts.values()))
    except (ValueError, KeyError, TypeError):
        proper = False
    if not proper:
        raise KeyFileError(f"{path} is damaged, or of another key: restore it, or copy that of another party")
    return counts


def confirmed(counts: Sequence[int], threshold: int) -> int:
    """The count that an honest party has, or a higher one: that in place ``threshold`` + 1 from the top. ``threshold``: parties that may be corrupted."""
    return sorted(counts, reverse=True)[min(threshold, len(counts) - 1)]


def _read_count(party: int, data: bytes, info: KeyInfo, limit: int) -> int:
    """The count that a party sent; PolicyError if it is none, or above the ``limit``."""
    used = int.from_bytes(data, "little") if len(data) == COUNT_BYTES else None
    if used is None or used > limit:
        said = f"{len(data)} bytes that are no count" if used is None else f"a count of {used}"
        raise PolicyError(
            f"party {party} sent {said} of decryptions with key {info.key_id}, which allows {limit}: run the same version "
            "everywhere, and see whether its decryptions.json was changed"
        )
    return used


def agreed_count(counts: Sequence[int], threshold: int, count: int, info: KeyInfo, noted: int = 0) -> int:
    """The count that all parties go on from: the maximum of the ``counts`` of all parties. ``threshold``: parties that may be corrupted;
    ``count``: decryptions of this run; ``noted``: a count that members may have alone (:func:`noted_split`), as a party knows of its own disk, or by :func:`confirmed`.

    At least one honest party has a count as high as the one in place ``threshold`` + 1 from the top. A party above that by more than a crash
    explains is named (PolicyError): it could use up the key of all. A crash between two parties' writes sets them apart by the decryptions of
    one run, which is usually the run that is started again: so max(``count``, :data:`TOLERANCE`) is tolerated. Parties below do no harm.
    """
    known = max(noted, confirmed(counts, threshold))
    for party, used in enumerate(counts):
        if used > known + max(count, TOLERANCE):
            raise PolicyError(
                f"party {party} reports {used} decryptions with key {info.key_id}, only {known} are confirmed by another party: nothing was counted; "
                f'if it is right (others were restored from backups, or lost several runs), set "used" in their decryptions.json to {used}'
            )
    return max(counts)


def check_left(info: KeyInfo, used: int, count: int, limit: int) -> None:
    """Refuses ``count`` decryptions more than those that are used, if the ``limit`` is below. Raises PolicyError."""
    exact = "" if info.most_decryptions(EXACT) is not None else f", or take the exact rounding, {EXACT}"
    if used + count > limit:
        raise PolicyError(
            f"the policy of key {info.key_id} allows {limit} decryptions and {used} are used: {count} more are refused; make a new key{exact}"
        )


def claim_decryptions(context: PartyContext, folder: Path, info: KeyInfo, count: int, limit: int | None = None) -> int:
    """Counts ``count`` decryptions as used, durably, before any of them starts; returns the number left.

    The count is the maximum over all parties, so a party that was restored from an old backup cannot lower it; a run that
    fails later has used its claim. Of a subset it is the maximum over its members. They are so many that any two subsets have a party in common
    (:func:`keyquorum.schemes.quorum_shares.counting_parties`), and every member has its count on the disk before it sends anything of a result: so the maximum
    has all decryptions, as long as no member is restored from an old backup. PolicyError, and nothing is written anywhere, when the policy of the key is exhausted (or ``limit`` is), when a party sends
    something that is no count, or when counts are too far apart (see :func:`agreed_count`). All parties compare the new count before one of
    them writes it: a party that reports different counts to different parties changes none.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder / "decryptions.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PolicyError(f"{folder}: another decryption with this key is under way: try again when it ended") from None
        mine, noted = decryptions_used(folder, info), noted_split(folder, info).get(DECRYPTIONS, 0)
        require_disk("the count of decryptions", 0, folder)  # a party that cannot count stops all before anyone has counted
        if limit is None:
            limit = info.most_decryptions(EXACT)
        if limit is None:
            raise PolicyError(f"key {info.key_id} has no limit of decryptions: name one")
        number = context.committee.number_of
        counts = [
            _read_count(number(p), data, info, limit) for p, data in enumerate(context.session.all_gather(mine.to_bytes(COUNT_BYTES, "little")))
        ]
        # Where parties decrypt without the others, counts of absent ones lag behind, or of one that was restored: they follow the protocol, by assumption.
        whole = context.committee.whole
        used = max(counts) if decrypts_apart(whole) else agreed_count(counts, whole.threshold, count, info, noted)
        check_left(info, used, count, limit)
        counted = (used + count).to_bytes(COUNT_BYTES, "little")
        context.session.compare("count of decryptions", counted)
        _write(folder, info, used + count)
        context.session.compare("count of decryptions on the disk", counted)  # nobody sends anything of a result before
        return limit - used - count
    finally:
        os.close(lock)
