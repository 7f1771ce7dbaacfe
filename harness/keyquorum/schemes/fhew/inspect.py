"""Files of FHEW to ``keyquorum inspect``."""

from __future__ import annotations

from keyquorum.fhe.fhew import KEY_MAGIC, read_key_file
from keyquorum.model.inspected import Candidate, Kind, Report
from keyquorum.schemes.key_folder import METADATA, holds_a_key

from .key import load_fhew_key, load_key_file


def _key_file(candidate: Candidate) -> Report:
    path, checked = candidate.path, "sha256"
    key = read_key_file(candidate.data, str(path))
    if holds_a_key(path.parent):
        load_key_file(path.parent, load_fhew_key(path.parent), key.kind)
        checked = f"sha256, also of {METADATA}"
    p = key.parameters
    lines = [
        f"{key.kind} key of FHEW, {p.name}, n = {p.lwe_dimension}, N = {p.dimension}, {key.bodies.size:,} residues of bodies",
        f"of key {key.key_id}, masks from the seed {key.seed.hex()}",
    ]
    return Report(
        lines, checked, {"parameters": p.name, "key_kind": key.kind, "key_id": key.key_id, "seed": key.seed.hex(), "residues": key.bodies.size}
    )


KINDS = (Kind("public key of FHEW", lambda c: c.head[:8] == KEY_MAGIC, _key_file, ("schemes/fhew/keygen",)),)
