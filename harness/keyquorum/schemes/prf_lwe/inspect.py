"""Encrypted round keys and public keys to ``keyquorum inspect``."""

from __future__ import annotations

from keyquorum.model.errors import KeyFileError
from keyquorum.model.inspected import Candidate, Kind, Report

from .encryption import MAGIC, read_encrypted_bits
from .key import ROUND_KEY_BITS
from .public import samples_of


def _round_keys(candidate: Candidate) -> Report:
    bits, key_id = read_encrypted_bits(candidate.data, None, str(candidate.path))
    p, count = bits.parameters, bits.bodies.size
    kinds = {ROUND_KEY_BITS: "round keys of AES-128, encrypted bit by bit", samples_of(p): "public key, encryptions of zero"}
    if count not in kinds:
        raise KeyFileError(f"{candidate.path}: {count} encrypted bits, neither round keys nor a public key: copy the file from another party")
    lines = [f"{kinds[count]}: {count:,} LWE ciphertexts, {p.name}, n = {p.dimension}", f"of key {key_id}"]
    return Report(lines, "sha256", {"parameters": p.name, "key_id": key_id, "count": int(bits.bodies.size)})


KINDS = (Kind("encrypted round keys", lambda c: c.head[:8] == MAGIC, _round_keys, ("schemes/key_folder",)),)
