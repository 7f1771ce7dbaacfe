"""Files of GHS to ``keyquorum inspect``."""

from __future__ import annotations

from keyquorum.fhe.ghs import KEY_MAGIC, read_key_file
from keyquorum.fhe.ghs_ciphertexts import is_ciphertext, read_ciphertext
from keyquorum.model.inspected import Candidate, Kind, Report
from keyquorum.schemes.key_folder import METADATA, holds_a_key

from .key import check_file, load_ghs_key


def _key_file(candidate: Candidate) -> Report:
    path, checked = candidate.path, "sha256"
    found = read_key_file(path)
    if holds_a_key(path.parent):
        check_file(path.parent, load_ghs_key(path.parent), found.kind)
        checked = f"sha256, also of {METADATA}"
    p = found.parameters
    lines = [
        f"{found.kind} key of GHS, {p.name}, m = {p.order}, {p.polynomials(found.kind)} polynomials of {p.degree} values modulo {len(p.primes)} primes",
        f"of key {found.key_id}, masks from the seed {found.seed.hex()}",
    ]
    return Report(
        lines,
        checked,
        {"parameters": p.name, "key_kind": found.kind, "key_id": found.key_id, "seed": found.seed.hex(), "residues": p.residues(found.kind)},
    )


def _ciphertext(candidate: Candidate) -> Report:
    found, key_id = read_ciphertext(candidate.data, str(candidate.path))
    degree, (prime,) = found.parts.shape[-1], found.primes
    lines = [f"ciphertext of GHS, m = {found.order}, {degree} bits, modulo {prime}", f"under key {key_id}"]
    return Report(lines, "sha256", {"key_id": key_id, "order": found.order, "prime": prime, "count": degree})


KINDS = (
    Kind("public key of GHS", lambda candidate: candidate.head[:8] == KEY_MAGIC, _key_file, ("schemes/ghs/keygen",)),
    Kind("ciphertext of GHS", lambda candidate: is_ciphertext(candidate.head), _ciphertext, ("schemes/ghs/scheme",)),
)
