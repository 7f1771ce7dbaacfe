"""Cost of exchanges alone: messages of every party to every other, without any computation.

A decryption of one ciphertext with `round_ltz_table` on two levels has two exchanges (the openings of masked words, the first of which
agrees on the pool as well) and one message to the receiver. So these costs are a lower bound on its latency on the same machine, whose cores all
parties share: each message is encrypted, sent, received and decrypted.

Writes results/exchanges.csv, if the folder is there.

    python -m keyquorum.bench.exchanges [--parties 2,4,8,16] [--link rtt=1]
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
import time
from pathlib import Path

import keyquorum
from keyquorum import api
from keyquorum.model.chosen_committees import ADDITIVE
from keyquorum.model.plain import Json
from keyquorum.parties import run_processes
from keyquorum.parties.context import PartyContext
from keyquorum.parties.jobs import party_job
from keyquorum.terminal.output import console

from .keygen import Row, write_table

EXCHANGES = 2
"""Consecutive exchanges: those of a decryption with two levels of tables before the message to the receiver."""
RUNS = 41
MESSAGE = bytes(48)
"""A message with the length of those by which parties agree on a pool."""


@party_job("bench:exchanges", {"runs": int})
def exchanges_job(context: PartyContext, job: Json) -> Json:
    """The job ``bench:exchanges``: medians of ``runs`` runs, seconds and processor seconds of this party."""
    session, seconds, cpu = context.session, [], []
    for _ in range(job["runs"]):
        session.compare("ready", b"")
        start, used = time.perf_counter(), time.process_time()
        for _ in range(EXCHANGES):
            session.all_gather(MESSAGE)
        seconds.append(time.perf_counter() - start)
        cpu.append(time.process_time() - used)
    session.compare("end", b"")
    return {"seconds": statistics.median(seconds), "cpu": statistics.median(cpu)}


def measure(parties: int, link: str | None, runs: int = RUNS) -> tuple[str, Row]:
    """The printed line and the row for a number of parties."""
    with tempfile.TemporaryDirectory(prefix="keyquorum-bench-") as folder:
        committee = api.init(Path(folder) / "committee", parties, ADDITIVE)
        results = run_processes(committee.folder, {"kind": "bench:exchanges", "runs": runs, "link": link})
    seconds = max(r["seconds"] for r in results)
    cpu = sum(r["cpu"] for r in results)
    row: Row = {
        "n": parties, "link": link or "none", "exchanges": EXCHANGES, "ms": f"{1e3 * seconds:.2f}", "cpu_ms_of_all": f"{1e3 * cpu:.2f}",
    }  # fmt: skip
    line = "exchanges: " + " ".join(f"{name}={value}" for name, value in row.items())
    return line, {**row, "cores": os.cpu_count() or 0, "machine": platform.machine(), "version": keyquorum.__version__}


def main() -> int:
    """Prints a line for each number of parties."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parties", default="2,4,8,16", help="comma-separated (default: 2,4,8,16)")
    parser.add_argument("--link", default="rtt=1", help="simulated links (default: rtt=1), or none")
    options = parser.parse_args()
    table = []
    for parties in map(int, options.parties.split(",")):
        line, row = measure(parties, None if options.link == "none" else options.link)
        console.print(line, markup=False)
        table.append(row)
    if Path("results").is_dir():
        write_table(Path("results") / "exchanges.csv", table)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
