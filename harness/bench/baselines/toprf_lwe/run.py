"""Keys, items and evaluations of the baseline, each party a process of this host, over TLS."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from keyquorum import api
from keyquorum.api import PathLike
from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError
from keyquorum.model.plain import Json
from keyquorum.parties import run_processes
from keyquorum.parties.context import Progress, RunReport
from keyquorum.schemes.prf.function import BLOCK

from .gates import MOST_BLOCKS, ROUNDING, blocks_in, lines_of
from .stored import load_gate_key


def gates_keygen(committee: Committee | PathLike, key: str, parameters: str = "lwe32-p2", progress: Progress | None = None) -> str:
    """Makes an LWE secret and a key of AES-128 jointly, and encrypts its round keys. Returns the id of the key. ``parameters``: lwe32-p2 or lwe32-p2-seed003."""
    job = {"kind": "bench:gates-keygen", "key": key, "parameters": parameters}
    return str(run_processes(api.as_committee(committee).folder, job, progress)[0]["key_id"])


def gates_fill(committee: Committee | PathLike, key: str, blocks: int, rounding: str = ROUNDING, progress: Progress | None = None) -> int:
    """Makes encrypted tables, and items of a rounding, for ``blocks`` blocks under a key. Returns the blocks for which there are items. ``rounding``:
    round_ltz_circuit or round_ltz_table."""
    load_gate_key(api.key_folder(committee, key))
    job = {"kind": "bench:gates-fill", "key": key, "rounding": rounding, "count": blocks}
    return int(run_processes(api.as_committee(committee).folder, job, progress)[0]["available"])


def gates_evaluate(
    committee: Committee | PathLike, key: str, points: Sequence[bytes], receiver: int = 0, rounding: str = ROUNDING, progress: Progress | None = None
) -> tuple[list[bytes], list[RunReport]]:
    """AES-128 of blocks of 16 bytes under a shared key, with items of :func:`gates_fill`. Party ``receiver`` gives the blocks as shares, and alone learns the
    values. Returns the values, and the costs at each party.

    Raises ParameterError, or PartyError if there are not enough items: nothing was opened then."""
    committee = api.as_committee(committee)
    if not 1 <= len(points) <= MOST_BLOCKS or any(len(point) != BLOCK for point in points):
        raise ParameterError(f"{len(points)} blocks: give 1 to {MOST_BLOCKS}, of {BLOCK} bytes each")
    load_gate_key(api.key_folder(committee, key))
    committee.index_of(receiver)
    with tempfile.TemporaryDirectory(prefix="keyquorum-") as folder:
        given, output = Path(folder) / "input", Path(folder) / "output"
        given.touch(0o600)
        given.write_bytes(lines_of(points))
        local = {"inputs": [str(given)], "outputs": [str(output)]}
        job: Json = {
            "kind": "bench:gates-evaluate", "key": key, "rounding": rounding, "receiver": receiver, "count": len(points), "local": local,
        }  # fmt: skip
        results = run_processes(committee.folder, job, progress)
        values = blocks_in(output)
    return values, [RunReport.from_json(result["report"]) for result in results]


__all__ = ["gates_evaluate", "gates_fill", "gates_keygen"]
