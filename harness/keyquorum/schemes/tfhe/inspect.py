"""Files of TFHE to ``keyquorum inspect``."""

from __future__ import annotations

import re

from keyquorum.fhe.tfhe import KEY_MAGIC, read_key_file
from keyquorum.model.inspected import Candidate, Kind, Report, require
from keyquorum.schemes.key_folder import metadata_name

from .key import load_key_file, load_tfhe_key


def _key_file(candidate: Candidate) -> Report:
    path, checked = candidate.path, "sha256"
    key = read_key_file(candidate.data, str(path))
    metadata = metadata_name(path.parent)
    if metadata is not None:
        load_key_file(path.parent, load_tfhe_key(path.parent), key.kind)
        checked = f"sha256, also of {metadata}"
    p = key.parameters
    lines = [
        f"{key.kind} key for TFHE-rs, {p.name}, n = {p.lwe_dimension}, N = {p.dimension}, {key.bodies.size:,} words of bodies",
        f"of key {key.key_id}, masks from the seed {key.seed.hex()}",
    ]
    return Report(
        lines, checked, {"parameters": p.name, "key_kind": key.kind, "key_id": key.key_id, "seed": key.seed.hex(), "words": key.bodies.size}
    )


_LINE = re.compile(r"level|[0-9a-f]{1,4}( [0-9]+:[0-9]+)+")


def _circuit(candidate: Candidate) -> Report:
    first, *lines, last = (candidate.text or "").splitlines() or ["", ""]
    whole = re.fullmatch(r"inputs [0-9]+", first) and re.fullmatch(r"outputs( [0-9]+)+", last) and all(map(_LINE.fullmatch, lines))
    require(bool(whole), candidate.path, "write it again with keyquorum toprf circuit")
    inputs, levels, outputs = int(first.split()[1]), lines.count("level"), len(last.split()) - 1
    count = len(lines) - levels
    said = f"Boolean circuit for keyquorum tfhe circuit: {inputs:,} inputs, {count:,} bootstraps in {levels:,} levels, {outputs:,} outputs"
    return Report([said], details={"inputs": inputs, "bootstraps": count, "levels": levels, "outputs": outputs})


KINDS = (
    Kind("public key for TFHE-rs", lambda c: c.head[:8] == KEY_MAGIC, _key_file, ("schemes/tfhe/keygen",)),
    Kind("circuit for TFHE-rs", lambda c: c.head[:7] == b"inputs ", _circuit, ("toprf/service",)),
)
