"""Tables of results and of published figures, plots, reports, and weights of the CNN."""

from __future__ import annotations

import csv
import io
import zlib

from keyquorum.cnn.model import Model
from keyquorum.model import published
from keyquorum.model.errors import KeyFileError
from keyquorum.model.inspected import Candidate, Kind, Report, require
from keyquorum.model.plain import toml_loads
from keyquorum.sweep import rows

PNG = b"\x89PNG\r\n\x1a\n"
AGAIN = "measure again"
RESULTS = {
    "rows of a sweep (keyquorum bench)": rows.COLUMNS[:4],
    "decryption (make bench-decrypt)": ("variant", "parameters", "protocol", "n", "items"),
    "primitives, dishonest majority (make bench-dishonest)": ("row", "protocol", "domain", "parties", "items"),
    "primitives, malicious parties (make bench-verified)": ("row", "protocol", "engine", "program_of", "items"),
    "exactness (make check-decrypt)": ("variant", "protocol", "n", "parameters", "fraction"),
    "exchanges": ("n", "link", "exchanges", "ms"),
    "key generation (make bench-keygen)": ("protocol", "parties", "parameters", "keys", "seconds"),
    "phases of key generation (make bench-keygen)": ("protocol", "parties", "parameters", "keys", "phase"),
    "keys for TFHE-rs (make bench-tfhe)": ("protocol", "parties", "parameters", "seconds"),
    "results of TFHE-rs (make check-tfhe)": ("protocol", "parties", "parameters", "integers"),
    "keys of Ajax (make bench-ajax)": ("protocol", "parties", "noise", "link", "shared_link", "growth"),
    "phases of keys of Ajax (make bench-ajax)": ("protocol", "parties", "noise", "link", "phase"),
    "decryptions beside Ajax (python -m bench.decryption.ajax decryptions)": ("t", "link", "n", "variant"),
    "throughput of decryption (python -m bench.decryption.throughput)": ("variant", "protocol", "n", "link", "shared_link"),
    "latency of a decryption": ("variant", "protocol", "n", "openings", "link"),
    "shares for subsets (make bench-lisss)": ("t", "T", "n", "share_ms"),
    "AES under a shared key (make bench-toprf)": ("system", "method", "protocol", "n", "ms", "mb", "per_s"),
    "a served committee (make bench-served)": ("protocol", "n", "parameters", "clients", "ciphertexts"),
    "beside GMPFHE (make bench-paper004)": ("table", "row", "method", "best", "parties"),
    "beside other libraries (make peers)": ("peer", "peer_version", "operation", "parameters", "ring_degree"),
    "multi-key BGV (make bench-multikey)": ("workload", "reading", "parameters", "gadget", "parties"),
    "transforms, keys and decryption of GHS (make bench-ghs)": ("what", "parameters", "noise", "n", "link"),
    "changes in the life of a committee (make bench-epochs)": ("what", "protocol", "parties", "threshold", "parameters"),
    "published figures beside ours (keyquorum report --papers)": ("paper", "place", "cell", "quantity", "unit"),
    "beside MP-SPDZ (make parity)": ("protocol", "parties", "program", "variant", "arguments"),
}
"""The first columns of every table of measurements."""


def _columns(candidate: Candidate) -> tuple[str, ...]:
    if candidate.is_folder or candidate.path.suffix != ".csv" or candidate.text is None:
        return ()
    try:
        return tuple(next(csv.reader(io.StringIO(candidate.text)), []))
    except csv.Error:
        return ()


def _name(candidate: Candidate) -> str:
    columns = _columns(candidate)
    return next((name for name, first in RESULTS.items() if columns[: len(first)] == first), "")


def _rectangular(candidate: Candidate) -> int:
    """The number of rows of a table. Raises KeyFileError if a row has another number of cells than there are columns, or the last line is not
    whole."""
    try:
        lines = list(csv.reader(io.StringIO(candidate.text or "", newline=""), strict=True))
    except csv.Error as error:
        raise KeyFileError(f"{candidate.path}: damaged ({error}): {AGAIN}") from None
    bad = next((i for i, line in enumerate(lines) if len(line) != len(lines[0])), None)
    require(bad is None, candidate.path, f"line {(bad or 0) + 1} has not as many cells as columns: {AGAIN}")
    require((candidate.text or "").endswith("\n"), candidate.path, f"its last line is not whole: {AGAIN}")
    return len(lines) - 1


def _results(candidate: Candidate) -> Report:
    if _columns(candidate)[: len(rows.COLUMNS)] == rows.COLUMNS:
        rows.read(candidate.path)
    name, count = _name(candidate), _rectangular(candidate)
    return Report([f"table of results: {name}, {count:,} rows of {len(_columns(candidate))} columns"], details={"table": name, "rows": count})


def _published(candidate: Candidate) -> Report:
    count = _rectangular(candidate)
    return Report([f"published figures, table {candidate.path.stem}: {count} rows"], details={"table": candidate.path.stem, "rows": count})


def _entries(candidate: Candidate) -> list[object]:
    """The entries of a file of rules beside published figures; none of other files."""
    try:
        data = {} if candidate.is_folder or candidate.path.suffix != ".toml" or candidate.text is None else toml_loads(candidate.text)
    except ValueError:
        return []
    if data.keys() & {"rule", "without", "headline", "claim"}:
        return [entry for entries in data.values() for entry in entries]
    described: list[object] = [
        entry for entry in data.values() if isinstance(entry, dict) and ({"place", "kind"} <= entry.keys() or entry.keys() & {"file", "computed"})
    ]
    return described if len(described) == len(data) else []


def _rules(candidate: Candidate) -> Report:
    count = len(_entries(candidate))
    return Report([f"rules for published figures (keyquorum report --papers): {count} entries"], details={"entries": count})


def _plot(candidate: Candidate) -> Report:
    data, at, size, last = candidate.data, len(PNG), (0, 0), b""
    while at + 12 <= len(data):
        length, last = int.from_bytes(data[at : at + 4]), data[at + 4 : at + 8]
        body = data[at + 4 : at + 8 + length]
        require(zlib.crc32(body) == int.from_bytes(data[at + 8 + length : at + 12 + length]), candidate.path, "draw it again with keyquorum report")
        if last == b"IHDR":
            size = int.from_bytes(body[4:8]), int.from_bytes(body[8:12])
        at += 12 + length
    require(last == b"IEND" and at == len(data), candidate.path, "draw it again with keyquorum report")
    return Report([f"plot, {size[0]} x {size[1]} points"], "checksum of every part", {"width": size[0], "height": size[1]})


def _page(candidate: Candidate) -> Report:
    require((candidate.text or "").rstrip().endswith("</html>"), candidate.path, "write it again with keyquorum report")
    return Report(["report of measured results (keyquorum report)"])


def _tradeoff(candidate: Candidate) -> Report:
    require(
        "![Offline against online time](decrypt-tradeoff.png)" in (candidate.text or ""), candidate.path, "write it again with make bench-decrypt"
    )
    return Report(["what the roundings trade, as a table (make bench-decrypt)"])


def _weights(candidate: Candidate) -> Report:
    Model.load(candidate.path)
    return Report(["weights of the CNN of keyquorum cnn"], "checksum of every array")


def _is_page(candidate: Candidate) -> bool:
    return candidate.path.suffix == ".html" and "<title>KeyQuorum" in (candidate.text or "")[:400]


KINDS = (
    Kind("table of results", lambda c: bool(_name(c)), _results, ("sweep/rows", "report/papers/table")),
    Kind("published figures", lambda c: bool(_columns(c)) and c.path.stem in (*published.tables(), "claims"), _published, ()),
    Kind("rules for published figures", lambda c: bool(_entries(c)), _rules, ()),
    Kind("plot", lambda c: c.head.startswith(PNG), _plot, ("report/page",)),
    Kind("report", _is_page, _page, ("report/page", "report/papers/overview")),
    Kind("table of roundings", lambda c: c.named("decrypt-tradeoff.md"), _tradeoff, ()),
    Kind("weights of the CNN", lambda c: not c.is_folder and c.path.suffix == ".npz", _weights, ("cnn/model",)),
)  # fmt: skip
