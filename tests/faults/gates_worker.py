"""A party that evaluates a block on LWE ciphertexts with encrypted tables, and kills itself with SIGKILL at a named checkpoint. Tests only.

Arguments: folder, party, checkpoint (or -; NAME@K: when it is reached for the K-th time), log, and ``unclaimed`` to take items without a claim on the disk.
Hashes of the items of both pools are appended to the log before they are used. Party 0 has the block, and prints its value."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from bench.baselines.toprf_lwe import gates
from keyquorum import _engine
from keyquorum.model.committee import Committee
from keyquorum.model.errors import KeyQuorumError
from keyquorum.parties.context import PartyContext
from keyquorum.parties.worker import open_session
from keyquorum.plans.pools import ClaimedItems

from tests.faults.killing import die_at, forget_claims, log_used

POINT = bytes(range(16))


def log_items(log: Path) -> None:
    """Writes what is taken from the pools to a file, a line for each item."""
    take = ClaimedItems.take

    def logged(self: ClaimedItems, count: int) -> Any:
        given, bound = take(self, count)
        log_used(log, (b"".join(np.ascontiguousarray(section[:, :, item]).tobytes() for section in given) for item in range(count)))
        return given, bound

    ClaimedItems.take = logged  # type: ignore[method-assign]


def main() -> int:
    folder, party, kill_at = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    die_at(kill_at)
    log_items(Path(sys.argv[4]))
    if sys.argv[5:] == ["unclaimed"]:
        forget_claims()
    committee, session = Committee.load(folder), None
    try:
        session = open_session(committee, party, {"kind": "gates"}, 10.0, 10.0)
        context = PartyContext(session, committee)
        with gates.GateKey(context, "gates", "round_ltz_circuit") as key:
            points = gates._shared(context, POINT if party == 0 else None, 1)
            value = gates._delivered(context, key.evaluate(points, "test"), 0)
        session.compare("end", b"")
        print(json.dumps({"value": "" if value is None else value.hex()}))
        session.close()
    except (KeyQuorumError, _engine.EngineError) as error:
        if session is not None:
            session.abort(str(error))
        print(json.dumps({"error": str(error), "type": type(error).__name__}))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
