"""Primitives with a dishonest majority, two parties on this host: the embedded engine and MP-SPDZ side by side.

``python -m keyquorum.bench.dishonest``: every row is a small program that runs unmodified on both, one process a party over
encrypted links; correlated randomness is made within the measured time, base OTs before it. Medians. MP-SPDZ's columns
need MP_SPDZ_HOME, a built checkout. A row's last line is ``dishonest: row=… ours_per_s=… ours_bytes=…``, with the bytes that both parties together
send for one item.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import keyquorum
from keyquorum.backends.mpspdz import Checkout, run_program
from keyquorum.backends.mpspdz.workdir import WorkFolder
from keyquorum.dsl import ProgramIO
from keyquorum.dsl import run_program as run_embedded
from keyquorum.dsl.control import Timer
from keyquorum.model.chosen_committees import ADDITIVE, ADDITIVE_RING, RING_WITH_MACS, WITH_MACS, split_options
from keyquorum.model.errors import KeyQuorumError
from keyquorum.model.plain import Json
from keyquorum.model.protocols import PROTOCOLS
from keyquorum.parties import run_processes
from keyquorum.parties.context import PartyContext
from keyquorum.parties.jobs import party_job
from keyquorum.parties.setup import init
from keyquorum.terminal.output import console, fail

from .keygen import write_table

RING, FIELD = "Z2^64", "F_1152921504606584833"
PARTIES = 2
CPU_BOUND = 0.75
"""Share of the processors' time above which a row counts as bound by the CPU."""


@dataclass(frozen=True)
class Row:
    """One measurement: ``before`` makes operands, ``measured`` runs under the timer, ``after`` uses the result ``z``."""

    name: str
    protocol: str
    domain: str
    items: int
    before: str
    measured: str
    after: str

    @property
    def source(self) -> str:
        """The program; its arguments are the row's name and the number of items."""
        lines = ["n = int(program.args[1])", *self.before.split("; "), "start_timer(1)", self.measured, "stop_timer(1)"]
        return "\n".join([*filter(None, lines), self.after, ""])


ELEMENTS = "x = sint.get_random(size=n); y = sint.get_random(size=n)"
BITS = "; ".join(f"{v} = sint.get_random(size=n).split_to_n_summands(1, {PARTIES})[0][0]" for v in "xy")
TOTAL = "print_ln('%s', z.get_vector(0, 1).reveal())"
ROWS = [
    Row("random_bits_z2_64", ADDITIVE_RING, RING, 100_000, "", "z = sint.get_random_bit(size=n)", TOTAL),
    Row("random_bits_field", ADDITIVE, FIELD, 100_000, "", "z = sint.get_random_bit(size=n)", TOTAL),
    Row("triples_z2_64", ADDITIVE_RING, RING, 100_000, ELEMENTS, "z = x * y", TOTAL),
    Row("triples_field", ADDITIVE, FIELD, 100_000, ELEMENTS, "z = x * y", TOTAL),
    Row("triples_spdz2k", RING_WITH_MACS, RING, 20_000, ELEMENTS, "z = x * y", TOTAL),
    Row("triples_mascot", WITH_MACS, FIELD, 20_000, ELEMENTS, "z = x * y", TOTAL),
    Row("and_triples", ADDITIVE_RING, RING, 1_000_000, BITS, "z = x & y", "z.reveal()"),
    Row("comparisons_64", ADDITIVE_RING, RING, 10_000, ELEMENTS, "z = x < y", TOTAL),
]


@dataclass(frozen=True)
class Rate:
    """Median items a second; bytes and CPU seconds for one item, of all parties together (for MP-SPDZ: CPU time of the whole run, minus that
    of a run with a hundredth of the items); rounds. CPU time depends little on other work on the machine."""

    per_second: float
    bytes: float
    rounds: int
    cpu: float

    @property
    def busy(self) -> float:
        """Share of the processors' time."""
        return self.cpu * self.per_second / min(os.cpu_count() or 1, PARTIES)

    @property
    def bound(self) -> str:
        """The resource that limits the row."""
        return "CPU" if self.busy >= CPU_BOUND else "waiting: for the peer, or for a processor"

    def text(self) -> str:
        """The text in the table."""
        return f"{self.per_second:12,.0f}/s {self.bytes:9.2f} B {self.cpu * 1e6:8.3f} us CPU {self.rounds:4} rounds"


def _run(context: PartyContext, row: Row, repeats: int) -> list[dict[str, float]]:
    session, results = context.session, []
    with tempfile.TemporaryDirectory(prefix="keyquorum-dishonest-") as folder:
        program = Path(folder) / f"{row.name}.mpc"
        program.write_text(row.source)
        for _ in range(1 + repeats):  # the first run of a process loads code
            engine = session.engine(row.protocol, row.domain, row.name, context.committee.threshold)
            io, cpu = ProgramIO(stdout=lambda _: None), time.process_time()
            timer: Timer = run_embedded(engine, program, [str(row.items)], io).timers[1]
            cpu = time.process_time() - cpu
            results.append({"seconds": timer.seconds, "sent": timer.bytes_sent, "rounds": timer.rounds, "cpu": cpu})
    return results[1:]


@party_job("bench:dishonest", {"row": int, "repeats": int})
def dishonest_job(context: PartyContext, job: Json) -> Json:
    """The job ``bench:dishonest``: row number ``row``, ``repeats`` times; the costs at this party."""
    return {"runs": _run(context, ROWS[job["row"]], job["repeats"])}


def ours(index: int, repeats: int) -> Rate:
    """One row on the embedded engine, processes of this host over TLS."""
    row = ROWS[index]
    with tempfile.TemporaryDirectory(prefix="keyquorum-dishonest-") as folder:
        committee = init(Path(folder) / "committee", PARTIES, row.protocol)
        results = run_processes(committee.folder, {"kind": "bench:dishonest", "row": index, "repeats": repeats}, io_timeout=600)
    seconds = statistics.median(max(r["runs"][i]["seconds"] for r in results) for i in range(repeats))
    cpu = statistics.median(sum(r["runs"][i]["cpu"] for r in results) for i in range(repeats))
    last = [r["runs"][-1] for r in results]
    return Rate(row.items / seconds, sum(r["sent"] for r in last) / row.items, int(last[0]["rounds"]), cpu / row.items)


def theirs(index: int, repeats: int, checkout: Checkout) -> Rate:
    """One row on MP-SPDZ. Its timers have party 0's traffic, which in a symmetric protocol is that of each party."""
    row = ROWS[index]
    folder = WorkFolder()

    def measure(items: int, count: int) -> tuple[list[Timer], float]:
        """Timers of `count` runs, and the median of the CPU time of a whole run."""
        timers, used = [], []
        for i in range(1 + count):  # the first run compiles
            before = os.times()
            run = run_program(
                checkout, row.protocol, PARTIES, row.domain, program, [items], folder=folder, compiled=i > 0,
                compiler=split_options(PROTOCOLS[row.protocol], PARTIES),
            )  # fmt: skip
            after = os.times()
            if i:
                timers.append(run.result.timers[1])
                used.append(after.children_user + after.children_system - before.children_user - before.children_system)
        return timers, statistics.median(used)

    try:
        program = folder.path / f"kq_{row.name}.mpc"
        program.write_text(row.source)
        timers, cpu = measure(row.items, repeats)
        few = row.items // 100
        _, start = measure(few, min(repeats, 3))
    finally:
        folder.close()
    seconds = statistics.median(t.seconds for t in timers)
    sent = PARTIES * timers[-1].bytes_sent / row.items
    return Rate(row.items / seconds, sent, timers[-1].rounds, max(0.0, cpu - start) / (row.items - few))


def line(row: Row, mine: Rate, other: Rate | None) -> str:
    """The closing line of a row."""
    columns = {"row": row.name, "ours_per_s": f"{mine.per_second:.0f}"}
    if other is not None:
        columns["mpspdz_per_s"] = f"{other.per_second:.0f}"
    columns["ours_bytes"] = f"{mine.bytes:.2f}"
    if other is not None:
        columns["mpspdz_bytes"] = f"{other.bytes:.2f}"
    return "dishonest: " + " ".join(f"{k}={v}" for k, v in columns.items())


def table_row(row: Row, repeats: int, mine: Rate, other: Rate | None, checkout: Checkout | None) -> dict[str, str | int | float]:
    """The row of the table. MP-SPDZ's columns are empty where it was not measured."""
    values: dict[str, str | int | float] = {
        "row": row.name, "protocol": row.protocol, "domain": row.domain, "parties": PARTIES, "items": row.items, "repeats": repeats,
        "bound_by": mine.bound,
    }  # fmt: skip
    for name, rate in (("embedded", mine), ("mpspdz", other)):
        values[f"{name}_per_s"] = "" if rate is None else round(rate.per_second)
        values[f"{name}_bytes"] = "" if rate is None else round(rate.bytes, 2)
        values[f"{name}_rounds"] = "" if rate is None else rate.rounds
        values[f"{name}_cpu_us"] = "" if rate is None else round(1e6 * rate.cpu, 3)
    return values | {
        "ratio": "" if other is None else round(mine.per_second / other.per_second, 2),
        "version": keyquorum.__version__,
        "mpspdz_commit": "" if checkout is None else checkout.commit,
        "machine": platform.machine(),
        "cores": os.cpu_count() or 0,
    }


def main(arguments: list[str] | None = None) -> int:
    """Runs the rows, one engine right after the other, and writes results/dishonest.csv if all were measured and the folder is there (a table with
    MP-SPDZ's columns is not overwritten by one without); exit code 1 if ours is slower anywhere."""
    parser = argparse.ArgumentParser(prog="python -m keyquorum.bench.dishonest", description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="runs of each row (default 5)")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    options = parser.parse_args(arguments)
    lines, table, slower = [], [], 0
    try:
        checkout = Checkout.find(None) if os.environ.get("MP_SPDZ_HOME") else None
        for index, row in enumerate(ROWS):
            if options.only not in row.name:
                continue
            mine = ours(index, options.repeats)
            other = theirs(index, options.repeats, checkout) if checkout else None
            console.print(f"{row.name:18} {row.protocol:7} {mine.text()}; bound by {mine.bound} ({mine.busy:.0%} busy)")
            if other is not None:
                ratio = mine.per_second / other.per_second
                console.print(f"{'':18} MP-SPDZ {other.text()}; ours {ratio:.2f} times as fast")
                slower += mine.per_second < other.per_second
            lines.append(line(row, mine, other))
            table.append(table_row(row, options.repeats, mine, other, checkout))
    except KeyQuorumError as error:
        fail(str(error))
        return 2
    path = Path("results") / "dishonest.csv"
    if path.parent.is_dir() and not options.only and (checkout is not None or not path.exists()):
        write_table(path, table)
    for text in lines:
        console.print(text)
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
