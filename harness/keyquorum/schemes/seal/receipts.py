"""Notes beside ciphertext files: the key that they are for, and how much noise they have. SEAL's bytes have neither."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from keyquorum.fhe.noise_bgv import BgvNoise
from keyquorum.fhe.noise_bound import NoiseEstimate, after, final_budget, from_json, to_json
from keyquorum.fhe.seal_format import read_ciphertext
from keyquorum.model.arguments import checked
from keyquorum.model.errors import CiphertextError
from keyquorum.model.outputs import save_file
from keyquorum.model.plain import Json, json_loads, read_text

from .key import SealKeyInfo
from .noise import Noise


@checked
def write_receipt(path: Path | str, data: bytes, info: SealKeyInfo, noise: NoiseEstimate | BgvNoise | Noise | None = None) -> None:
    """Writes the note of a ciphertext file, ``<path>.json``. ``noise``: worked out from how it was made, an estimate for whoever computes on;
    nobody vouches for it, and approvals do not look at it."""
    receipt: Json = {"key_id": info.key_id, "sha256": hashlib.sha256(data).hexdigest()}
    if noise is not None:
        receipt["noise"] = noise.to_json() if isinstance(noise, Noise) else to_json(noise)
    save_file(Path(f"{path}.json"), json.dumps(receipt).encode() + b"\n")


@checked
def check_receipt(path: Path, data: bytes, info: SealKeyInfo) -> Noise | None:
    """Refuses a ciphertext whose receipt is of other bytes, or names another key; returns the noise that it states of a CKKS ciphertext, if any.
    Without a receipt (stock SEAL) nothing is known.

    A receipt of other bytes says nothing of the key: file or receipt was changed, replaced or mixed up. The noise that it states of a BFV or BGV
    ciphertext must be of this level and correction factor.

    Raises :class:`CiphertextError`, which names the file and the cure."""
    receipt = Path(f"{path}.json")
    if not receipt.exists():
        return None
    try:
        noted = json_loads(read_text(receipt))
        key_id, digest = str(noted["key_id"]), str(noted["sha256"])
        noise = Noise.from_json(noted["noise"]) if "noise" in noted and info.parameters.scheme == "ckks" else None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise CiphertextError(f"{receipt}: damaged: remove it if you know which key {path} is for") from None
    if digest != hashlib.sha256(data).hexdigest():
        raise CiphertextError(
            f"{receipt} is of another ciphertext than {path} (their SHA-256 differ): one of them was changed or replaced: write {path} again, "
            f"or remove {receipt.name} if you know that it is encrypted under {info.key_id}"
        )
    if key_id == info.key_id and "noise" in noted and info.parameters.scheme != "ckks" and noted_noise(path, data, info) is None:
        raise CiphertextError(
            f"{receipt}: states a noise that does not fit {path}: write {path} again, or remove {receipt.name} if you know that the noise is small enough"
        )
    if key_id != info.key_id:
        raise CiphertextError(f"{path} is encrypted under another key ({key_id}), not {info.key_id}: name that key")
    return noise


def noted_noise(path: Path, data: bytes, info: SealKeyInfo) -> NoiseEstimate | BgvNoise | None:
    """The noise of a ciphertext as its receipt has it; None if there is none, or it is of other bytes."""
    receipt = Path(f"{path}.json")
    try:
        noted = json_loads(read_text(receipt))
        if noted["sha256"] != hashlib.sha256(data).hexdigest() or noted["key_id"] != info.key_id:
            return None
        return _fitting(info, from_json(info.parameters, noted.get("noise")), data)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _fitting(info: SealKeyInfo, noise: NoiseEstimate | BgvNoise | None, data: bytes) -> NoiseEstimate | BgvNoise | None:
    """As it is if level and correction factor are those of the ciphertext; else None."""
    if noise is None:
        return None
    found = read_ciphertext(info.parameters, data)
    same = noise.primes == found.level_primes and (not isinstance(noise, BgvNoise) or noise.factor == found.correction_factor)
    return noise if same else None


def noise_after(
    info: SealKeyInfo, operation: str, inputs: Sequence[tuple[Path, bytes]], result: bytes, switches: int = 1
) -> NoiseEstimate | BgvNoise | None:
    """The noise of what an operation made of ciphertext files; None if that of one of them is not noted. ``switches``: key switches of a rotation."""
    found = [noted_noise(path, data, info) for path, data in inputs]
    known = [noise for noise in found if noise is not None]
    if len(known) < len(found):
        return None
    return after(info.parameters, operation, known, read_ciphertext(info.parameters, result).level_primes, switches)


def check_noise(path: Path, data: bytes, info: SealKeyInfo) -> None:
    """Refuses a ciphertext of which the receipt states more noise than can be decrypted: under CKKS, than the flooding of the key hides; under
    BFV and BGV, so much that it may have reached the message. Without a receipt nothing is known."""
    if info.parameters.scheme == "ckks":
        _check_flooded(path, check_receipt(path, data, info), info)
        return
    noise = noted_noise(path, data, info)
    if noise is not None and final_budget(info.parameters, noise) < 0:
        raise CiphertextError(
            f"{path}: its noise budget is used up ({final_budget(info.parameters, noise):.1f} bits left, by the operations that its receipt {path}.json "
            "notes): the result may be wrong; compute with fewer products, or with a set of a larger modulus or smaller plain_modulus; remove the "
            "receipt to decrypt all the same"
        )


def _check_flooded(path: Path, noise: Noise | None, info: SealKeyInfo) -> None:
    if noise is None or noise.rms <= 2.0**info.policy.noise_bits:
        return
    raise CiphertextError(
        f"{path} may have a noise of 2^{noise.bits:.1f} by its receipt, the flooding of the key hides up to 2^{info.policy.noise_bits}: compute with "
        f"less noise, or make a key with more --noise-bits (if you know better, remove {path}.json)"
    )
