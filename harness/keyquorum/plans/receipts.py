"""Notes beside ciphertext files that tell which key they are for: SEAL's bytes do not."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from keyquorum.model.errors import CiphertextError
from keyquorum.model.plain import json_loads

from .keys import KeyInfo
from .noise import Noise


def write_receipt(path: Path | str, data: bytes, info: KeyInfo, noise: Noise | None = None) -> None:
    """Writes the note of a ciphertext file, ``<path>.json``. ``noise``: of a CKKS ciphertext, an estimate for whoever computes on; nobody
    vouches for it, and approvals do not look at it."""
    receipt: dict[str, Any] = {"key_id": info.key_id, "sha256": hashlib.sha256(data).hexdigest()}
    if noise is not None:
        receipt["noise"] = noise.to_json()
    Path(f"{path}.json").write_text(json.dumps(receipt) + "\n")


def check_receipt(path: Path, data: bytes, info: KeyInfo) -> Noise | None:
    """Refuses a ciphertext whose receipt names another key; returns the noise that it states, if any. Without a receipt (stock SEAL) nothing can be
    told."""
    receipt = Path(f"{path}.json")
    if not receipt.exists():
        return None
    try:
        noted = json_loads(receipt.read_text())
        key_id, digest = str(noted["key_id"]), str(noted["sha256"])
        noise = Noise.from_json(noted["noise"]) if "noise" in noted else None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise CiphertextError(f"{receipt}: damaged: remove it if you know which key {path} is for") from None
    if digest != hashlib.sha256(data).hexdigest():
        return None
    if key_id != info.key_id:
        raise CiphertextError(f"{path} is encrypted under another key ({key_id}), not {info.key_id}: name that key")
    return noise


def check_noise(path: Path, noise: Noise | None, info: KeyInfo) -> None:
    """Refuses a CKKS ciphertext whose own receipt states more noise than the flooding of the key hides."""
    if noise is None or info.parameters.scheme != "ckks" or noise.rms <= 2.0**info.policy.noise_bits:
        return
    raise CiphertextError(
        f"{path} may have a noise of 2^{noise.bits:.1f} by its receipt, the flooding of the key hides up to 2^{info.policy.noise_bits}: compute with "
        f"less noise, or make a key with more --noise-bits (if you know better, remove {path}.json)"
    )
