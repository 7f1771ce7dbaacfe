"""A party of a committee with MACs that answers receivers outside, and kills itself with SIGKILL at a named checkpoint. Tests only.

Arguments: folder, party, checkpoint (or -; NAME@K: when it is reached for the K-th time), log; then ``unclaimed`` to take items without a claim on the disk. Each pad and each mask of
an item is appended to the log, in a line of its own, before it is used. Answers are printed as hexadecimal digits."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from keyquorum import _engine
from keyquorum.model.committee import Committee
from keyquorum.model.errors import KeyQuorumError
from keyquorum.parties import mac_key
from keyquorum.parties.context import PartyContext
from keyquorum.parties.worker import open_session
from keyquorum.plans.pool_variants import pool_group
from keyquorum.plans.pools import Pool
from keyquorum.schemes.lwe.variant import LweVariant
from keyquorum.serve.kinds.decryption_macs import PaddedServedKey

from tests.faults.killing import die_at, forget_claims, log_used

REQUESTS, ITEMS = 3, 3
"""Batches of one request, and ciphertexts of each."""


def main() -> int:
    folder, party, kill_at, log = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], Path(sys.argv[4])
    die_at(kill_at)
    rows_of = LweVariant.for_receivers

    def logged(self: LweVariant, preprocessing: Any) -> Any:
        rows = rows_of(self, preprocessing)
        log_used(log, (row[2 * item : 2 * item + 2].tobytes() for row in rows[0] for item in range(rows.shape[2] // 2)))
        return rows

    LweVariant.for_receivers = logged  # type: ignore[method-assign]
    if sys.argv[5:] == ["unclaimed"]:
        forget_claims()
    committee = Committee.load(folder)
    kind = PaddedServedKey(committee, party, "key", "round_ltz_circuit")
    session = None
    try:
        session = open_session(committee, party, {"kind": "receivers"}, 10.0, 10.0)
        mac_key.use(session, committee.mac_key_path(party))
        context = PartyContext(session, committee)
        group = pool_group(context)
        pool = Pool(context, group, kind.variant)
        pool.fill(REQUESTS * ITEMS, REQUESTS * ITEMS)
        request = kind.read({}, (folder / "c.lwe").read_bytes())
        answers = [kind.run(context, group, pool, [(f"receiver/{i}", request)])[0].hex() for i in range(REQUESTS)]
        print(json.dumps({"answers": answers}))
        session.close()
    except (KeyQuorumError, _engine.EngineError) as error:
        if session is not None:
            session.abort(str(error))
        print(json.dumps({"error": str(error), "type": type(error).__name__}))
        return 1
    finally:
        kind.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
