"""A party that fills a pool and decrypts with it, and kills itself with SIGKILL at a named checkpoint. Tests only.

Arguments: folder, party, checkpoint (or -; NAME@K: when it is reached for the K-th time), log; then, for a subset, its parties as 0,2, and ``unclaimed``
to take items without a claim on the disk. The masks are appended to the log before they are used."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from keyquorum import _engine
from keyquorum.fhe.lwe import lwe_parameters
from keyquorum.model.committee import Committee
from keyquorum.model.errors import KeyQuorumError
from keyquorum.model.subset import members_of, parse_numbers
from keyquorum.parties.context import PartyContext
from keyquorum.parties.worker import open_session
from keyquorum.plans.pool_variants import pool_group
from keyquorum.plans.pools import Pool
from keyquorum.schemes.lwe.variant import LweVariant

from tests.faults.killing import die_at, forget_claims, log_used

ITEMS = 3
SINGLES = 4
"""Decryptions after that, one by one, of which the pool claims some ahead."""


def main() -> int:
    folder, party, kill_at, log = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], Path(sys.argv[4])

    die_at(kill_at)
    variant = LweVariant("round_mask_open", lwe_parameters("lwe64-p2"))
    use = LweVariant.use

    def logged(self: LweVariant, group: Any, z: Any, material: Any, *rest: Any) -> Any:
        log_used(log, (material[0][:, :, item].tobytes() for item in range(z.shape[1])))
        return use(self, group, z, material, *rest)

    LweVariant.use = logged  # type: ignore[method-assign]
    if sys.argv[6:] == ["unclaimed"]:
        forget_claims()
    committee = members_of(Committee.load(folder), parse_numbers(sys.argv[5]) if len(sys.argv) > 5 else None)
    party = committee.index_of(party)
    session = None
    try:
        session = open_session(committee, party, {"kind": "pools"}, 10.0, 10.0)
        context = PartyContext(session, committee)
        pool = Pool(context, pool_group(context), variant)
        pool.fill(4 * ITEMS, 2 * ITEMS)
        z = np.zeros((1, ITEMS), dtype=np.uint64)
        if party == 0:
            z += np.uint64(1 << 62) + (np.arange(ITEMS, dtype=np.uint64) << np.uint64(63))
        words = pool.decrypt(z, "test", "all")
        assert words is not None
        messages = variant.messages(words[0]).tolist()
        for i in range(SINGLES):
            words = pool.decrypt(z[:, i % ITEMS : i % ITEMS + 1].copy(), f"single {i}", "all")
            assert words is not None and variant.messages(words[0]).tolist() == messages[i % ITEMS : i % ITEMS + 1]
        print(json.dumps({"messages": messages}))
        session.close()
    except (KeyQuorumError, _engine.EngineError) as error:
        if session is not None:
            session.abort(str(error))
        print(json.dumps({"error": str(error), "type": type(error).__name__}))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
