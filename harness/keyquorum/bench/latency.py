"""Latency of a single decryption: `round_ltz_table` with 8-bit blocks on two levels, over simulated links of 1 ms ping.

All parties are processes of this host. They begin at the same moment, and are idle before and afterwards; the pool is claimed ahead.
The time is the median of 101 decryptions (``--runs``) at party 0, until it has the message. There are several such measurements, each with a committee of its
own: the table has the median, the least and the largest. ``direct`` and ``star``: how the committee opens values (``star``: through a king).

Writes results/latency.csv, or with ``--macs`` results/latency_macs.csv, if the folder is there; rows of committees that were not measured stay. With MACs the preprocessing takes long: 19 minutes for 11
decryptions among 16 parties on two cores. ``--runs`` takes fewer decryptions.

    python -m keyquorum.bench.latency [--macs] [--parties 2,4,8,16] [--openings direct,star] [--repeats 3] [--runs 101]
"""

from __future__ import annotations

import argparse
import csv
import io
import os
import platform
import statistics
from pathlib import Path

import keyquorum
from keyquorum.model.chosen_committees import ADDITIVE, WITH_MACS
from keyquorum.terminal.output import console

from .decryption import LATENCY_LINK, LATENCY_RUNS, Configuration, measure
from .keygen import Row, write_table


def latency(parties: int, openings: str, repeats: int, protocol: str = ADDITIVE, runs: int = LATENCY_RUNS) -> tuple[str, Row]:
    """The printed line and the row of one committee."""
    asked = Configuration("round_ltz_table", 8, 2, "lwe64-p2", protocol, parties, 0, openings)
    measured = [measure(asked, single=True, runs=runs)[1] for _ in range(repeats)]
    values, times = measured[0], [float(one["latency_ms"]) for one in measured]
    row: Row = {
        "variant": values["variant"], "protocol": values["protocol"], "n": parties, "openings": openings, "link": LATENCY_LINK,
        "rounds": values["rounds"], "ms": statistics.median(times), "least_ms": min(times), "most_ms": max(times),
        "cpu_ms_of_all": round(statistics.median(float(one["online_cpu_us"]) for one in measured) / 1e3, 2),
        "runs": runs, "repeats": repeats, "wrong": sum(int(one["wrong"]) for one in measured),
    }  # fmt: skip
    line = "latency: " + " ".join(f"{key}={value}" for key, value in row.items())
    return line, {**row, "cores": os.cpu_count() or 0, "machine": platform.machine(), "version": keyquorum.__version__}


def with_others(path: Path, measured: list[Row]) -> list[Row]:
    """The rows of a table, of which those of committees that were measured are new."""

    def committee(row: Row) -> tuple[str, int, str]:
        return str(row["protocol"]), int(row["n"]), str(row["openings"])

    new = {committee(row): row for row in measured}
    with path.open(newline="") if path.exists() else io.StringIO() as file:
        rows: list[Row] = [new.pop(committee(row), row) for row in csv.DictReader(file)]
    return [*rows, *new.values()]


def main() -> int:
    """Measures every chosen committee."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--macs", action="store_true", help="committees whose shares have MACs, which open values directly")
    parser.add_argument("--parties", default="2,4,8,16", help="numbers of parties (default: 2,4,8,16)")
    parser.add_argument("--openings", default="direct,star", help="direct, star, or both (default); a star among two is direct")
    parser.add_argument("--repeats", type=int, default=3, help="measurements of each committee (default: 3)")
    parser.add_argument("--runs", type=int, default=LATENCY_RUNS, help=f"decryptions of a measurement (default: {LATENCY_RUNS})")
    options = parser.parse_args()
    table = []
    for parties in map(int, options.parties.split(",")):
        for openings in options.openings.split(","):
            if openings == "direct" or (parties > 2 and not options.macs):
                line, row = latency(parties, openings, max(1, options.repeats), WITH_MACS if options.macs else ADDITIVE, max(1, options.runs))
                console.print(line, markup=False, soft_wrap=True)
                table.append(row)
    if Path("results").is_dir() and table:
        path = Path("results") / ("latency_macs.csv" if options.macs else "latency.csv")
        write_table(path, with_others(path, table))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
