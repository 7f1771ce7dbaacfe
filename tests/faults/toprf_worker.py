"""A party that serves a pseudorandom function, and kills itself with SIGKILL at a named checkpoint. Tests only.

Arguments: folder, party, checkpoint (or -; NAME@K: when it is reached for the K-th time); then, for one-time tables, ``table``, a log, and ``unclaimed`` to
take items without a claim on the disk. Hashes of the items are appended to the log before they are used."""

from __future__ import annotations

import hashlib
import os
import signal
import sys
from pathlib import Path
from typing import Any

from keyquorum.model import checkpoints
from keyquorum.model.committee import Committee
from keyquorum.plans.pool_store import Claim, PoolStore
from keyquorum.serve.daemon import Service, serve
from keyquorum.serve.kinds import toprf


def log_items(log: Path) -> None:
    """Writes what an evaluation uses to a file."""
    evaluate = toprf.evaluate_by_tables

    def logged(context: Any, key: Any, points: Any, tables: Any, bound: bytes) -> Any:
        with log.open("a") as file:
            for item in range(points.shape[1]):
                file.write(hashlib.sha256(tables[0][:, :, item].tobytes()).hexdigest() + "\n")
            file.flush()
            os.fsync(file.fileno())
        return evaluate(context, key, points, tables, bound)

    toprf.evaluate_by_tables = logged


def forget_claims() -> None:
    """Takes out what the claims are for: those of a process that died are forgotten."""

    def unwritten(self: PoolStore, claim: Claim) -> None:
        self.claim = claim

    PoolStore.claim_items = unwritten  # type: ignore[method-assign]


def main() -> None:
    folder, party, kill_at = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    point, _, times = kill_at.partition("@")
    left = int(times or 1)

    def hook(name: str) -> None:
        nonlocal left
        left -= name == point
        if name == point and not left:
            os.kill(os.getpid(), signal.SIGKILL)

    checkpoints.hook = hook
    method = "circuit"
    if len(sys.argv) > 4:
        method = sys.argv[4]
        log_items(Path(sys.argv[5]))
        if sys.argv[6:] == ["unclaimed"]:
            forget_claims()
    serve(Committee.load(folder), party, Service("prf", patience=20.0, method=method))


if __name__ == "__main__":
    main()
