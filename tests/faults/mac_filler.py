"""A party of a committee with MACs that fills a pool again and again, connecting anew whenever a session breaks. Tests only.

A process starts others that have all modules already, so that hundreds of them can be killed. It reads ``start PARTY`` and ``kill PARTY`` on standard input; it writes
``PARTY filling`` when a party begins to fill, and ``PARTY killed STATE`` with what the party left. Argument: the committee's folder."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from pathlib import Path

from keyquorum import _engine
from keyquorum.fhe.lwe import lwe_parameters
from keyquorum.model.committee import Committee
from keyquorum.model.errors import KeyQuorumError
from keyquorum.parties import mac_key
from keyquorum.parties.context import PartyContext
from keyquorum.parties.worker import open_session
from keyquorum.plans.pool_variants import pool_group, variant_for
from keyquorum.plans.pools import Pool
from keyquorum.sharing.variants import Variant

PR_SET_PDEATHSIG = 1
ITEMS = 32
"""Of a chunk."""


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def fills(committee: Committee, party: int, variant: Variant) -> None:
    """One session, until it breaks."""
    session, pool = open_session(committee, party, {"kind": "mac filler"}, 10.0, 20.0), None
    try:
        mac_key.use(session, committee.mac_key_path(party))
        context = PartyContext(session, committee)
        pool = Pool(context, pool_group(context), variant)
        say(f"{party} filling")
        while True:
            pool.fill(ITEMS, ITEMS)
    except BaseException as error:
        session.abort(str(error))
        raise
    finally:
        if pool is not None:
            pool.close()


def run(committee: Committee, party: int) -> None:
    variant = variant_for(committee, "round_ltz_circuit", lwe_parameters("lwe64-p2"))
    while True:
        try:
            fills(committee, party, variant)
        except (KeyQuorumError, _engine.EngineError) as error:
            say(f"{party} broke {' '.join(str(error).split())}")
        time.sleep(0.1)


def main() -> None:
    committee = Committee.load(Path(sys.argv[1]))
    running: dict[int, int] = {}
    for line in sys.stdin:
        order, party = line.split()[0], int(line.split()[1])
        if order == "start":
            child = os.fork()
            if not child:
                ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
                run(committee, party)
            running[party] = child
        else:
            os.kill(running[party], signal.SIGKILL)
            os.waitpid(running.pop(party), 0)
            state = mac_key.state(committee.mac_key_path(party))
            say(f"{party} killed {int(bool(state.burned))} {state.cut_offs} {state.unfinished}")
    for child in running.values():
        os.kill(child, signal.SIGKILL)


if __name__ == "__main__":
    main()
