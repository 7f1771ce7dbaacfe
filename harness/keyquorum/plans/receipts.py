"""Notes beside ciphertext files that tell which key they are for: SEAL's bytes do not."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from keyquorum.model.errors import CiphertextError
from keyquorum.model.outputs import save_file
from keyquorum.model.plain import json_loads

from .keys import KeyInfo


def write_receipt(path: Path | str, data: bytes, info: KeyInfo) -> None:
    """Writes the note of a ciphertext file, ``<path>.json``."""
    receipt = {"key_id": info.key_id, "sha256": hashlib.sha256(data).hexdigest()}
    save_file(Path(f"{path}.json"), json.dumps(receipt).encode() + b"\n")


def check_receipt(path: Path, data: bytes, info: KeyInfo) -> None:
    """Refuses a ciphertext whose receipt is of other bytes, or names another key. Without a receipt (stock SEAL) nothing can be told.

    A receipt of other bytes says nothing of the key: file or receipt was changed, replaced or mixed up.

    Raises :class:`CiphertextError`, which names the file and the cure."""
    receipt = Path(f"{path}.json")
    if not receipt.exists():
        return
    try:
        noted = json_loads(receipt.read_text())
        key_id, digest = str(noted["key_id"]), str(noted["sha256"])
    except (ValueError, KeyError, TypeError):
        raise CiphertextError(f"{receipt}: damaged: remove it if you know which key {path} is for") from None
    if digest != hashlib.sha256(data).hexdigest():
        raise CiphertextError(
            f"{receipt} is of another ciphertext than {path} (their SHA-256 differ): one of them was changed or replaced: write {path} again, "
            f"or remove {receipt.name} if you know that it is encrypted under {info.key_id}"
        )
    if key_id != info.key_id:
        raise CiphertextError(f"{path} is encrypted under another key ({key_id}), not {info.key_id}: name that key")
