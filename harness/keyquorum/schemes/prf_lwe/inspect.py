"""Encrypted round keys to ``keyquorum inspect``."""

from __future__ import annotations

from keyquorum.model.inspected import Candidate, Kind, Report

from .encryption import MAGIC, read_encrypted_bits
from .key import ROUND_KEY_BITS


def _round_keys(candidate: Candidate) -> Report:
    bits, key_id = read_encrypted_bits(candidate.data, ROUND_KEY_BITS, str(candidate.path))
    p = bits.parameters
    lines = [f"round keys of AES-128, encrypted bit by bit: {bits.bodies.size:,} LWE ciphertexts, {p.name}, n = {p.dimension}", f"of key {key_id}"]
    return Report(lines, "sha256", {"parameters": p.name, "key_id": key_id, "count": int(bits.bodies.size)})


KINDS = (Kind("encrypted round keys", lambda c: c.head[:8] == MAGIC, _round_keys, ("schemes/key_folder",)),)
