"""The paper's way of evaluation, without its dealer: AES-128 on LWE ciphertexts with encrypted tables. A baseline for comparisons, which is not served."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from keyquorum import api
from keyquorum.api import PathLike
from keyquorum.model.arguments import checked
from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError
from keyquorum.model.plain import Json
from keyquorum.parties import run_processes
from keyquorum.parties.context import Progress, RunReport
from keyquorum.plans.gates import MOST_BLOCKS, blocks_in, lines_of
from keyquorum.schemes.prf.function import BLOCK
from keyquorum.schemes.prf_lwe.key import load_gate_key


@checked
def gates_fill_job(committee: Committee | PathLike, key: str, blocks: int, rounding: str = "round_ltz_circuit") -> Json:
    """The job of :func:`gates_fill` as plain data."""
    load_gate_key(api.key_folder(committee, key))
    return {"kind": "gates_fill", "key": key, "rounding": rounding, "count": blocks}


@checked
def gates_fill(
    committee: Committee | PathLike,
    key: str,
    blocks: int,
    rounding: str = "round_ltz_circuit",
    progress: Progress | None = None,
    io_timeout: float = 120.0,
) -> int:
    """Makes encrypted tables, and items of a rounding, for ``blocks`` blocks under a key of ``lwe32-p2`` or ``lwe32-p2-seed003``, among all parties of this
    host, each a process of its own, over TLS. Returns the blocks for which there are items. ``rounding``: round_ltz_circuit or round_ltz_table."""
    committee = api.as_committee(committee)
    return int(run_processes(committee.folder, gates_fill_job(committee, key, blocks, rounding), progress, io_timeout=io_timeout)[0]["available"])


@checked
def gates_evaluate_job(
    committee: Committee | PathLike, key: str, blocks: PathLike, output: PathLike, receiver: int = 0, rounding: str = "round_ltz_circuit"
) -> Json:
    """The job of an evaluation as plain data. ``blocks``: a file of words of 32 hexadecimal digits; ``output``: the file for the values, one on each line. Party
    ``receiver`` needs the first and writes the second. Raises ParameterError."""
    committee = api.as_committee(committee)
    load_gate_key(api.key_folder(committee, key))
    committee.index_of(receiver)
    count = len(blocks_in(Path(blocks)))
    if not 1 <= count <= MOST_BLOCKS:
        raise ParameterError(f"{blocks}: {count} blocks: give 1 to {MOST_BLOCKS}, one on each line")
    local = {"inputs": [str(Path(blocks).resolve())], "outputs": [str(Path(output).resolve())]}
    return {"kind": "gates_evaluate", "key": key, "rounding": rounding, "receiver": receiver, "count": count, "local": local}


@checked
def gates_evaluate(
    committee: Committee | PathLike, key: str, points: Sequence[bytes], receiver: int = 0, rounding: str = "round_ltz_circuit",
    progress: Progress | None = None, io_timeout: float = 120.0,
) -> tuple[list[bytes], list[RunReport]]:  # fmt: skip
    """AES-128 of blocks of 16 bytes under a shared key, by all parties of this host, each a process of its own, over TLS, with items of :func:`gates_fill`.
    Party ``receiver`` gives the blocks as shares, and alone learns the values. Returns the values, and the costs at each party.

    Raises ParameterError, or PartyError if there are not enough items: nothing was opened then."""
    committee = api.as_committee(committee)
    if not points or any(len(point) != BLOCK for point in points):
        raise ParameterError(f"{len(points)} blocks: give one at least, of {BLOCK} bytes each")
    with tempfile.TemporaryDirectory(prefix="keyquorum-") as folder:
        given, output = Path(folder) / "input", Path(folder) / "output"
        given.touch(0o600)
        given.write_bytes(lines_of(points))
        job = gates_evaluate_job(committee, key, given, output, receiver, rounding)
        results = run_processes(committee.folder, job, progress, io_timeout=io_timeout)
        values = blocks_in(output)
    return values, [RunReport.from_json(result["report"]) for result in results]


__all__ = ["gates_evaluate", "gates_evaluate_job", "gates_fill", "gates_fill_job"]
