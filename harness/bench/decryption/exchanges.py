"""Cost of exchanges alone: messages of every party to every other, without any computation.

A decryption of one ciphertext with `round_ltz_table` on two levels has two exchanges (the openings of masked words, the first of which
agrees on the pool as well) and one message to the receiver. So these costs are a lower bound on its latency on the same machine, whose cores all
parties share: each message is encrypted, sent, received and decrypted.

Writes results/exchanges.csv; rows that were not measured stay.

    python -m bench.decryption.exchanges [--parties 2,4,8,16] [--link rtt=1]
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

from keyquorum.model.chosen_committees import ADDITIVE
from keyquorum.model.plain import Json
from keyquorum.parties import run_processes
from keyquorum.parties.context import PartyContext
from keyquorum.parties.jobs import party_job

from ..runner import MACHINE, Arguments, Bench, Options, Row, committee_of
from .measure import LATENCY_LINK

EXCHANGES = 2
"""Consecutive exchanges: those of a decryption with two levels of tables before the message to the receiver."""
RUNS = 41
MESSAGE = bytes(48)
"""A message with the length of those by which parties agree on a pool."""


@dataclass(frozen=True)
class Case:
    """Parties and the simulated links between them."""

    parties: int
    link: str | None


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


def measure(case: Case, runs: int = RUNS) -> Row:
    """The row of a number of parties."""
    with committee_of(ADDITIVE, case.parties) as committee:
        results = run_processes(committee.folder, {"kind": "bench:exchanges", "runs": runs, "link": case.link})
    seconds = max(r["seconds"] for r in results)
    return {
        "n": case.parties, "link": case.link or "none", "exchanges": EXCHANGES, "ms": f"{1e3 * seconds:.2f}", "cpu_ms_of_all": f"{1e3 * sum(r['cpu'] for r in results):.2f}",
    }  # fmt: skip


def cases(options: Options) -> list[Case]:
    """Numbers of parties."""
    return [Case(parties, None if options.link == "none" else options.link) for parties in (2, 4, 8, 16)]


COLUMNS = ("n", "link", "exchanges", "ms", "cpu_ms_of_all", *MACHINE)
OPTIONS: Arguments = {"link": {"default": LATENCY_LINK, "help": f"simulated links (default: {LATENCY_LINK}), or none"}}
BENCH = Bench(
    "exchanges", cases, lambda case, options: [measure(case)], COLUMNS, axes=("parties",), options=OPTIONS, key=("n", "link"),
)  # fmt: skip

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
