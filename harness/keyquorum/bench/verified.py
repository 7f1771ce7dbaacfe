"""Products and random bits with an honest majority and malicious parties, three parties on this host: the protocols that verify all products together,
the semi-honest protocols below them, and MP-SPDZ's executables for malicious parties.

``python -m keyquorum.bench.verified``: every row is a small program that runs unmodified on both engines, one process a party. What is measured is the whole program, with
its preprocessing, and with all checks before its output: by the clock of the slowest party, of MP-SPDZ by the time that party 0 prints; bytes are those of all parties. Medians. The embedded engine's links
are encrypted, as are those of MP-SPDZ. MP-SPDZ's columns need MP_SPDZ_HOME, a built checkout; executables that are not built there are left out. A row's last line is
``verified: row=… protocol=… engine=… seconds=… mb=… rounds=… cpu_seconds=…``. The factors are those between the embedded engine and the least of MP-SPDZ's executables.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import keyquorum
from keyquorum.backends.mpspdz import Checkout, run_program
from keyquorum.backends.mpspdz.workdir import WorkFolder
from keyquorum.dsl import ProgramIO
from keyquorum.dsl import run_program as run_embedded
from keyquorum.model.chosen_committees import split_options
from keyquorum.model.errors import KeyQuorumError
from keyquorum.model.plain import Json
from keyquorum.model.protocols import PROTOCOLS, Protocol
from keyquorum.parties import run_processes
from keyquorum.parties.context import PartyContext
from keyquorum.parties.jobs import party_job
from keyquorum.parties.setup import init
from keyquorum.terminal.output import console, fail

from .dishonest import FIELD, RING
from .keygen import write_table

PARTIES = 3
ITEMS = 1_000_000
PROGRAMS = {
    "products": "x = sint.get_random(size=n); y = sint.get_random(size=n); z = x * y",
    "random_bits": "z = sint.get_random_bit(size=n)",
}
ENDING = "print_ln('%s', z.get_vector(0, 1).reveal())"
"""An output, before which everything is verified."""
KINDS = ("ps", "sy")
"""MP-SPDZ's other executables for the same shares: postprocessing (Lindell and Nof, CCS 2017), and verification as in SPDZ (Chida et al., CRYPTO 2018)."""
VERIFIED = [p for p in PROTOCOLS.values() if p.names_runs]


def below(protocol: Protocol) -> str:
    """The semi-honest protocol whose products are verified."""
    same = (
        p
        for p in PROTOCOLS.values()
        if p.adversary == "semi-honest" and (p.sharing, p.field, p.ring) == (protocol.sharing, protocol.field, protocol.ring)
    )
    return next(same).name


def executables(protocol: Protocol) -> list[str]:
    """MP-SPDZ's executables for a protocol and malicious parties."""
    assert protocol.mp_spdz is not None, "verified protocols have a peer"
    own = protocol.mp_spdz.long_name
    return [own, *(f"{kind}-{own.split('-', 1)[1]}" for kind in KINDS)]


@dataclass(frozen=True)
class Cost:
    """Of a whole program: seconds of the slowest party, bytes that all parties sent, rounds; processor seconds of all parties (0: not measured)."""

    seconds: float
    bytes: int
    rounds: int
    cpu: float = 0.0


def source(row: str) -> str:
    """The program of a row; its argument is the number of items."""
    return "\n".join(["n = int(program.args[1])", *PROGRAMS[row].split("; "), ENDING, ""])


def domain_of(protocol: str) -> str:
    """Where it computes: F_q with a prime of 60 bits, or Z_2^64."""
    return FIELD if PROTOCOLS[protocol].field else RING


def _run(context: PartyContext, row: str, protocol: str, items: int, repeats: int) -> list[dict[str, float]]:
    results = []
    with tempfile.TemporaryDirectory(prefix="keyquorum-verified-") as folder:
        program = Path(folder) / f"{row}.mpc"
        program.write_text(source(row))
        for _ in range(1 + repeats):  # the first run of a process loads code
            context.session.compare("start of a run", b"")
            start, cpu = time.monotonic(), time.process_time()
            engine = context.session.engine(protocol, domain_of(protocol), row, context.committee.threshold)
            run_embedded(engine, program, [str(items)], ProgramIO(stdout=lambda _: None))
            stats = engine.stats()
            results.append(
                {"seconds": time.monotonic() - start, "sent": stats["bytes_sent"], "rounds": stats["rounds"], "cpu": time.process_time() - cpu}
            )
    return results[1:]


@party_job("bench:verified", {"row": str, "protocol": str, "items": int, "repeats": int}, verified=True)
def verified_job(context: PartyContext, job: Json) -> Json:
    """The job ``bench:verified``: the program of a row, ``repeats`` times; the costs at this party."""
    return {"runs": _run(context, job["row"], job["protocol"], job["items"], job["repeats"])}


def ours(row: str, protocol: str, items: int, repeats: int) -> Cost:
    """A row on the embedded engine, processes of this host over TLS."""
    with tempfile.TemporaryDirectory(prefix="keyquorum-verified-") as folder:
        committee = init(Path(folder) / "committee", PARTIES, protocol)
        job: Json = {"kind": "bench:verified", "row": row, "protocol": protocol, "items": items, "repeats": repeats}
        results = run_processes(committee.folder, job, io_timeout=600)
    runs = [[r["runs"][i] for r in results] for i in range(repeats)]
    seconds = statistics.median(max(one["seconds"] for one in run) for run in runs)
    cpu = statistics.median(sum(one["cpu"] for one in run) for run in runs)
    last = runs[-1]
    return Cost(seconds, sum(int(one["sent"]) for one in last), int(last[0]["rounds"]), cpu)


def peer(protocol: Protocol, executable: str) -> Protocol:
    """The description of an executable of MP-SPDZ for a protocol's shares. Its script has the name of MP-SPDZ's ``-E``."""
    assert protocol.mp_spdz is not None, "verified protocols have a peer"
    name = protocol.name if executable == protocol.mp_spdz.long_name else executable
    return replace(protocol, name=name, mp_spdz=replace(protocol.mp_spdz, binary=f"{executable}-party.x"))


def theirs(row: str, protocol: Protocol, executable: str, items: int, repeats: int, checkout: Checkout) -> Cost | None:
    """A row on an executable of MP-SPDZ; None if it is not built."""
    entry = peer(protocol, executable)
    if not checkout.has(entry):
        return None
    folder, runs = WorkFolder(), []
    try:
        program = folder.path / f"kq_{row}.mpc"
        program.write_text(source(row))
        for i in range(1 + repeats):  # the first run compiles
            run = run_program(
                checkout, entry, PARTIES, domain_of(protocol.name), program, [items], folder=folder, compiled=i > 0,
                compiler=split_options(protocol, PARTIES), threshold=1 if entry.chooses_threshold else None,
            )  # fmt: skip
            runs.append(run)
    finally:
        folder.close()
    return Cost(statistics.median(r.seconds for r in runs[1:]), runs[-1].bytes_global, runs[-1].rounds)


def measured(row: str, protocol: Protocol, items: int, repeats: int, checkout: Checkout | None) -> list[dict[str, str | int | float]]:
    """The rows of the table: the embedded engine's two, and MP-SPDZ's executables."""
    found = [
        ("embedded", below(protocol), ours(row, below(protocol), items, repeats)),
        ("embedded", protocol.name, ours(row, protocol.name, items, repeats)),
    ]
    if checkout is not None:
        peers = ((executable, theirs(row, protocol, executable, items, repeats, checkout)) for executable in executables(protocol))
        found += [("MP-SPDZ", executable, cost) for executable, cost in peers if cost is not None]
    return [
        {
            "row": row, "protocol": protocol.name, "engine": engine, "program_of": name, "items": items, "seconds": round(cost.seconds, 4),
            "mb": round(cost.bytes / 1e6, 2), "rounds": cost.rounds, "cpu_seconds": round(cost.cpu, 3) if cost.cpu else "", "repeats": repeats,
            "version": keyquorum.__version__, "mpspdz_commit": "" if checkout is None else checkout.commit, "machine": platform.machine(),
            "cores": os.cpu_count() or 0,
        }
        for engine, name, cost in found
    ]  # fmt: skip


def factors(rows: list[dict[str, str | int | float]]) -> str:
    """Time and bytes of the verified protocol divided by those of the semi-honest one, and by the least of MP-SPDZ's."""
    below, mine, others = rows[0], rows[1], rows[2:]
    text = f"{float(mine['seconds']) / float(below['seconds']):.2f} times the time of {below['program_of']}, {float(mine['mb']) / float(below['mb'] or 1):.2f} times the bytes"
    if others:
        time_of, bytes_of = (min(float(other[key]) for other in others) for key in ("seconds", "mb"))
        text += f"; {float(mine['seconds']) / time_of:.2f} times the time of MP-SPDZ, {float(mine['mb']) / bytes_of:.2f} times the bytes"
    return text


def main(arguments: list[str] | None = None) -> int:
    """Runs the rows and writes results/verified.csv, if all were measured beside MP-SPDZ and the folder is there; exit code 1 if ours is slower anywhere."""
    parser = argparse.ArgumentParser(prog="python -m keyquorum.bench.verified", description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="runs of each row (default 5)")
    parser.add_argument("--items", type=int, default=ITEMS, help=f"products or bits (default {ITEMS:,})")
    parser.add_argument("--only", default="", help="protocols whose name contains this")
    options = parser.parse_args(arguments)
    table: list[dict[str, str | int | float]] = []
    slower = 0
    try:
        checkout = Checkout.find(None) if os.environ.get("MP_SPDZ_HOME") else None
        for protocol in VERIFIED:
            for row in PROGRAMS:
                if options.only not in protocol.name:
                    continue
                rows = measured(row, protocol, options.items, options.repeats, checkout)
                for one in rows:
                    shown = ("row", "protocol", "engine", "program_of", "seconds", "mb", "rounds", "cpu_seconds")
                    console.print("verified: " + " ".join(f"{key}={one[key]}" for key in shown), markup=False, soft_wrap=True)
                console.print(f"{row} of {protocol.name}: {factors(rows)}", soft_wrap=True)
                slower += any(float(one["seconds"]) < float(rows[1]["seconds"]) for one in rows[2:])
                table += rows
    except KeyQuorumError as error:
        fail(str(error))
        return 2
    if Path("results").is_dir() and checkout is not None and not options.only and options.items == ITEMS:
        write_table(Path("results") / "verified.csv", table)
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
