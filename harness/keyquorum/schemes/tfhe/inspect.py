"""Files of TFHE to ``keyquorum inspect``."""

from __future__ import annotations

import re

from keyquorum.fhe.tfhe_files import HEADER, SECRET, VALUES, read_header
from keyquorum.model.inspected import STRUCTURE, Candidate, Kind, Report, openness, require

from .key import TFHE_KEYS

_LINE = re.compile(r"level|[0-9a-f]{1,4}( [0-9]+:[0-9]+)+")


def _circuit(candidate: Candidate) -> Report:
    first, *lines, last = (candidate.text or "").splitlines() or ["", ""]
    whole = re.fullmatch(r"inputs [0-9]+", first) and re.fullmatch(r"outputs( [0-9]+)+", last) and all(map(_LINE.fullmatch, lines))
    require(bool(whole), candidate.path, "write it again with keyquorum toprf circuit")
    inputs, levels, outputs = int(first.split()[1]), lines.count("level"), len(last.split()) - 1
    count = len(lines) - levels
    said = f"Boolean circuit for keyquorum tfhe circuit: {inputs:,} inputs, {count:,} bootstraps in {levels:,} levels, {outputs:,} outputs"
    return Report([said], details={"inputs": inputs, "bootstraps": count, "levels": levels, "outputs": outputs})


def _tfhe_rs(candidate: Candidate) -> Report:
    """The header alone: TFHE-rs reads the content. A client key is named as the secret that it is."""
    header = read_header(candidate.start(HEADER))
    assert header is not None
    form = f"data format {header.version}" if header.versioned else f"of TFHE-rs {header.version} alone, without versions"
    lines = [f"file of TFHE-rs: {header.type}, {form}, {candidate.path.stat().st_size:,} bytes; its content was not read"]
    if header.type in SECRET:
        lines.append("it has a SECRET key: no file of a committee; whoever has it decrypts everything under that key")
    elif header.type in VALUES:
        lines.append("keyquorum decrypt takes it, with a key of a committee, as it is")
    return Report([*lines, *(openness(candidate.path) if header.type in SECRET else [])], STRUCTURE, {"type": header.type, "version": header.version})


KINDS = (
    Kind("file of TFHE-rs", lambda c: not c.is_folder and read_header(c.start(HEADER)) is not None, _tfhe_rs, ()),
    TFHE_KEYS.inspected("schemes/tfhe/keygen"),
    Kind("circuit for TFHE-rs", lambda c: c.head[:7] == b"inputs ", _circuit, ("toprf/service",)),
)
