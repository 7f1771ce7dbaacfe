"""The count of CKKS decryptions of a key, and of those by `round_mask_open` under a BFV or BGV key: durable before a result leaves, and the same at every party."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

from keyquorum.model.committee import write_atomically
from keyquorum.model.errors import KeyFileError, PolicyError
from keyquorum.model.plain import json_loads
from keyquorum.parties.context import PartyContext

from .keys import KeyInfo


def decryptions_used(folder: Path, info: KeyInfo) -> int:
    """How many decryptions this party has on record for the key."""
    path = folder / "decryptions.json"
    if not path.exists():
        raise KeyFileError(
            f"{path} is missing: without the count of decryptions the key must not be used; restore the file"
        )
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


def _write(folder: Path, info: KeyInfo, used: int) -> None:
    data = json.dumps({"key_id": info.key_id, "used": used}) + "\n"
    write_atomically(folder / "decryptions.json", data.encode(), 0o600)


def claim_decryptions(context: PartyContext, folder: Path, info: KeyInfo, count: int, limit: int | None = None) -> int:
    """Counts ``count`` decryptions as used, durably, before any of them starts; returns the number left.

    The count is the maximum over all parties, so a party that was restored from an old backup cannot lower it; a run that
    fails later has used its claim. Refuses when the policy of the key is exhausted, or ``limit`` is, which is for BFV and BGV keys.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder / "decryptions.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PolicyError(
                f"{folder}: another decryption with this key is under way: try again when it ended"
            ) from None
        mine = decryptions_used(folder, info)
        counts = [int.from_bytes(data, "little") for data in context.session.all_gather(mine.to_bytes(8, "little"))]
        used, limit = max(counts), info.policy.decryptions if limit is None else limit
        exact = "" if info.parameters.scheme == "ckks" else ", or take the exact rounding, round_ltz_circuit"
        if used + count > limit:
            raise PolicyError(
                f"the policy of key {info.key_id} allows {limit} decryptions and {used} are used: {count} more are refused; "
                f"make a new key{exact}"
            )
        _write(folder, info, used + count)
        context.session.compare("count of decryptions", (used + count).to_bytes(8, "little"))
        return limit - used - count
    finally:
        os.close(lock)
