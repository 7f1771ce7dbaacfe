"""The joint check of noise before a decryption, and the count of its noes, durable at every party."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from keyquorum.dsl import ShareVector
from keyquorum.model.committee import Committee, write_atomically
from keyquorum.model.errors import CiphertextError, KeyFileError, ParameterError, PolicyError
from keyquorum.model.plain import json_loads
from keyquorum.model.subset import Present, Subset
from keyquorum.parties.context import PartyContext
from keyquorum.schemes import encryption_of
from keyquorum.schemes.keys import KeyInfo
from keyquorum.schemes.quorum_shares import counting_parties, own_shares
from keyquorum.sharing.noise_check import check_committee

FILE, LOCK = "noise-checks.json", "noise-checks.lock"
"""In the folder of a key: how often the check said no, or was begun and not ended."""
MOST_FAILED = 16
"""Negative answers after which a key has no more checks. So Q checks have at most sum over i <= 16 of C(Q, i) outcomes: 2^276 for 2^20 checks
(docs/pages/security/leaks.md, "The check of noise")."""
COUNT_BYTES = 8


def refuse_noise_check(committee: Committee, info: KeyInfo, backend: str = "embedded") -> None:
    """Refuses keys, committees and backends that have no check of noise. Raises ParameterError."""
    if backend != "embedded":
        raise ParameterError(f"the {backend} backend has no check of noise: leave out --backend, or --check-noise")
    if not encryption_of(info).checks_noise(info):
        raise ParameterError(
            f"key {info.key_id} is of {info.parameters.scheme.upper()}: a check of noise is for BFV and BGV: leave out --check-noise"
        )
    # As many parties as decrypt must be as many as count.
    if isinstance(committee, Subset) and (own_shares(committee.whole) is None or counting_parties(committee.whole) != committee.whole.threshold + 1):
        raise ParameterError(
            "the checks of noise that say no are counted, and two sets of these parties may have no party that remembers: leave out --parties, or --check-noise"
        )
    if isinstance(committee, Present):
        raise ParameterError("the checks of noise that say no are counted by all parties: leave out --parties, or --check-noise")
    check_committee(committee)


def check_noise(
    context: PartyContext, folder: Path, info: KeyInfo, shares: Sequence[ShareVector], ciphertexts: Sequence[object], receiver: int
) -> None:
    """Refuses ciphertexts of which one has half of the noise or more that its decryption takes: CiphertextError at every party, and nothing is decrypted. Every party calls this.

    One bit is opened for all of them. PolicyError once it said no :data:`MOST_FAILED` times under this key."""
    with _charged(context, folder, info), context.phase("noise check"):
        within = encryption_of(info).noise_within(context, info, shares, ciphertexts, receiver)
        said = context.session.all_gather(b"" if within is None else bytes([within]))  # parties that do not round take it from those that do
        if any(answer not in (b"", b"\0", b"\1") for answer in said) or b"\0" in said or b"\1" not in said:
            raise CiphertextError(
                "the noise of a ciphertext is half of its border or more, or was too large already, and nothing was decrypted: compute with fewer products, "
                "or take a parameter set with more noise budget"
            )


def failed_checks(folder: Path, info: KeyInfo) -> int:
    """How often the check said no under a key, by this party's count. Raises KeyFileError for a damaged one."""
    path = folder / FILE
    if not path.exists():
        return 0
    try:
        data = json_loads(path.read_text())
        failed = data["failed"] if data["key_id"] == info.key_id else None
    except (ValueError, KeyError, TypeError):
        failed = None
    if type(failed) is not int or not 0 <= failed < 1 << 62:
        raise KeyFileError(f'{path} is damaged, or of another key: restore it, or set "failed" to the count of another party')
    return failed


def set_failed_checks(folder: Path, info: KeyInfo, failed: int) -> None:
    """Sets this party's count."""
    write_atomically(folder / FILE, (json.dumps({"key_id": info.key_id, "failed": failed}) + "\n").encode(), 0o600)


@contextmanager
def _charged(context: PartyContext, folder: Path, info: KeyInfo) -> Iterator[None]:
    """Counts a no, durably, before the bit is opened, and takes it back if the bit is a yes: a party that dies in between has counted. All parties go on from the largest of their counts."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PolicyError(f"{folder}: another check of noise with this key is under way: try again when it ended") from None
        failed = _agreed(context, folder, info)
        set_failed_checks(folder, info, failed + 1)
        context.session.compare(
            "count of checks of noise on the disk", failed.to_bytes(COUNT_BYTES, "little")
        )  # nobody sends anything of the bit before
        yield
        set_failed_checks(folder, info, failed)
    finally:
        os.close(lock)


def _agreed(context: PartyContext, folder: Path, info: KeyInfo) -> int:
    counts = [
        int.from_bytes(said[:COUNT_BYTES], "little")
        for said in context.session.all_gather(failed_checks(folder, info).to_bytes(COUNT_BYTES, "little"))
    ]
    failed = max(counts)
    if failed >= MOST_FAILED:
        raise PolicyError(
            f"the check of noise has failed {failed} times under key {info.key_id}, at most {MOST_FAILED} are allowed, as each tells something of the key: "
            "make a new key, or decrypt without --check-noise what you know to have little noise"
        )
    context.session.compare("count of failed checks of noise", failed.to_bytes(COUNT_BYTES, "little"))
    return failed


__all__ = ["FILE", "MOST_FAILED", "check_noise", "failed_checks", "refuse_noise_check", "set_failed_checks"]
