"""Files of LWE to ``keyquorum inspect``."""

from __future__ import annotations

from collections.abc import Sequence

from keyquorum.fhe.lwe import is_lwe, read_lwe, read_messages
from keyquorum.fhe.lwe_public import PUBLIC_MAGIC, read_lwe_public_key
from keyquorum.fhe.values import FORMATS
from keyquorum.model.inspected import Candidate, Kind, Report, openness
from keyquorum.schemes.key_folder import METADATA, holds_a_key

from .key import load_lwe_key, load_lwe_public_key


def _lwe_public(candidate: Candidate) -> Report:
    path, checked = candidate.path, "sha256"
    key = read_lwe_public_key(candidate.data, str(path))
    if holds_a_key(path.parent):
        load_lwe_public_key(path.parent, load_lwe_key(path.parent))
        checked = f"sha256, also of {METADATA}"
    set_ = key.parameters
    lines = [f"public key of LWE, {set_.name}, n = {set_.dimension}", f"of key {key.key_id}"]
    return Report(lines, checked, {"parameters": set_.name, "key_id": key.key_id})


def _lwe(candidate: Candidate) -> Report:
    ciphertexts, key_id = read_lwe(candidate.data, str(candidate.path))
    set_ = ciphertexts.parameters
    lines = [f"{ciphertexts.count:,} LWE ciphertexts, {set_.name}, n = {set_.dimension}, {set_.plain_bits} bits each", f"under key {key_id}"]
    if ciphertexts.noise_bits is not None:
        lines.append(f"noise of at most 2^{ciphertexts.noise_bits:.1f}, as their maker states")
    lines += _typed(ciphertexts.types)
    details = {
        "parameters": set_.name,
        "key_id": key_id,
        "count": ciphertexts.count,
        "noise_bits": ciphertexts.noise_bits,
        "types": list(ciphertexts.types),
    }
    return Report(lines, "sha256", details)


def _messages(candidate: Candidate) -> Report:
    messages, types = read_messages(candidate.path)
    lines = [f"{len(messages):,} decrypted messages of LWE (keyquorum decode prints them)", *_typed(types)]
    return Report([*lines, *openness(candidate.path)], details={"count": len(messages), "types": list(types)})


def _typed(types: Sequence[str]) -> list[str]:
    """A line for blocks of values."""
    return [f"blocks of {', '.join(types[:8])}{' and more' if len(types) > 8 else ''}"] if types else []


def _is_messages(candidate: Candidate) -> bool:
    if candidate.path.suffix.lower() in FORMATS:
        return False
    return (
        isinstance(candidate.json, list)
        or candidate.has("types", "messages")
        or (candidate.path.name.endswith(".lwe.plain") and not candidate.is_folder)
    )


KINDS = (
    Kind("public key of LWE", lambda c: c.head[:8] == PUBLIC_MAGIC, _lwe_public, ("schemes/key_folder",)),
    Kind("LWE ciphertexts", lambda c: is_lwe(c.head), _lwe, ("schemes/lwe/ciphertexts", "plans/round_keys", "cli/tfhe")),
    Kind("messages of LWE", _is_messages, _messages, ("model/outputs", "plans/decrypt", "cli/data")),
)
