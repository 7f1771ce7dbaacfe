"""A party that serves a pseudorandom function, and kills itself with SIGKILL at a named checkpoint. Tests only.

Arguments: folder, party, checkpoint (or -; NAME@K: when it is reached for the K-th time); then, for one-time tables, ``table``, a log, and ``unclaimed`` to
take items without a claim on the disk. Hashes of the items are appended to the log before they are used. First may come ``--parties=0,2``, for a subset."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from keyquorum.model.committee import Committee
from keyquorum.model.subset import members_of, parse_numbers
from keyquorum.serve.daemon import Service, serve
from keyquorum.serve.kinds import toprf

from tests.faults.killing import die_at, forget_claims, log_used


def log_items(log: Path) -> None:
    """Writes what an evaluation uses to a file."""
    evaluate = toprf.evaluate_by_tables

    def logged(context: Any, key: Any, points: Any, tables: Any, bound: bytes) -> Any:
        log_used(log, (tables[0][:, :, item].tobytes() for item in range(points.shape[1])))
        return evaluate(context, key, points, tables, bound)

    toprf.evaluate_by_tables = logged


def main() -> None:
    numbers = parse_numbers(sys.argv.pop(1).partition("=")[2]) if sys.argv[1].startswith("--parties=") else None
    folder, party, kill_at = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    die_at(kill_at)
    method = "circuit"
    if len(sys.argv) > 4:
        method = sys.argv[4]
        log_items(Path(sys.argv[5]))
        if sys.argv[6:] == ["unclaimed"]:
            forget_claims()
    committee = members_of(Committee.load(folder), numbers)
    serve(committee, committee.index_of(party), Service("prf", patience=20.0, method=method))


if __name__ == "__main__":
    main()
