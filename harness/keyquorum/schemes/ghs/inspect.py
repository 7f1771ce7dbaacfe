"""Files of GHS to ``keyquorum inspect``."""

from __future__ import annotations

from keyquorum.fhe.ghs import KEY_MAGIC, read_key_file
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


KINDS = (Kind("public key of GHS", lambda candidate: candidate.head[:8] == KEY_MAGIC, _key_file, ("schemes/ghs/keygen",)),)
