"""Keys of ``ajax53`` beside the figures of Ajax (params/published/002_section1_end_to_end.csv): ``make bench-ajax``.

Every party is a process of this host, over TLS, without added delay; semi-honest with an honest majority. Seconds are from the start of the processes to
the files on disk, one run. The paper used other hardware and a network of 1 Gbit/s with 1 ms, so the columns are no race.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from pathlib import Path

import keyquorum
from keyquorum import api
from keyquorum.model import published
from keyquorum.model.chosen_committees import REPLICATED, SHAMIR
from keyquorum.model.idle import busy_cores
from keyquorum.schemes.fhew.key import FhewKeyInfo
from keyquorum.terminal.output import console, print_reports
from keyquorum.terminal.progress import progress_bars

from .keygen import Row, write_table

PARAMETERS = "ajax53"
CONFIGURATIONS = (
    (SHAMIR, 3, "local"), (REPLICATED, 3, "local"), (REPLICATED, 3, "exact"), (SHAMIR, 5, "local"), (SHAMIR, 7, "local"), (SHAMIR, 9, "local"),
)  # fmt: skip
"""Protocol, parties, noise."""


def paper_seconds(parties: int) -> str:
    """Seconds of the paper's key generation on its LAN; empty where it has none for this number of parties."""
    found = [row["keygen_seconds"] for row in published.load("002_section1_end_to_end") if row["network"] == "LAN" and row["parties"] == parties]
    return str(found[0]) if found else ""


def measure(protocol: str, parties: int, noise: str) -> tuple[Row, list[Row]]:
    """Makes one key; returns the row of the configuration, and a row a phase (of party 0)."""
    with tempfile.TemporaryDirectory(prefix="keyquorum-bench-") as folder, progress_bars() as report:
        committee = api.init(Path(folder) / "committee", parties, protocol)
        start = time.monotonic()
        result = api.keygen(committee, "bench", PARAMETERS, progress=report, io_timeout=900, noise=noise)
        seconds = time.monotonic() - start
        assert isinstance(result.info, FhewKeyInfo)
        public = sum((result.folder / name).stat().st_size for name in result.info.files)
    console.print(f"\n{protocol}, {parties} parties, {PARAMETERS}, {result.info.noise_plan.text()}")
    print_reports(result.reports)
    who: Row = {"protocol": protocol, "parties": parties, "noise": noise}
    phases: list[Row] = [
        {**who, "phase": p.name, "seconds": round(p.seconds, 3), "cpu_seconds": round(p.cpu_seconds, 3), "sent_mb": round(p.bytes_sent / 1e6, 3), "rounds": p.rounds}
        for p in result.reports[0].phases
    ]  # fmt: skip
    row: Row = {
        **who,
        "growth": round(result.info.noise_plan.growth, 4),
        "seconds": round(seconds, 1),
        "paper_seconds": paper_seconds(parties),
        "cpu_seconds_of_a_party": round(max(r.cpu_seconds for r in result.reports), 1),
        "sent_gb_in_all": round(sum(r.total.bytes_sent for r in result.reports) / 1e9, 3),
        "rss_gb_of_a_party": round(max(r.peak_memory for r in result.reports) / 1e9, 3),
        "rounds": result.reports[0].total.rounds,
        "public_mb": round(public / 1e6, 1),
        "cores": os.cpu_count() or 0,
        "machine": platform.machine(),
        "version": keyquorum.__version__,
    }
    return row, phases


def main() -> int:
    """Measures the configurations; writes results/ajax.csv and results/ajax_phases.csv if the folder is there and all of them were measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parties", type=int, action="append", help="these numbers of parties alone; repeat")
    given = parser.parse_args()
    chosen = [c for c in CONFIGURATIONS if given.parties is None or c[1] in given.parties]
    busy = busy_cores()
    measured = [measure(*configuration) for configuration in chosen]
    folder = Path("results")
    if folder.is_dir() and given.parties is None:
        write_table(folder / "ajax.csv", [{**row, "busy": "" if busy is None else f"{busy:.2f}"} for row, _ in measured])
        write_table(folder / "ajax_phases.csv", [phase for _, phases in measured for phase in phases])
    console.print(f"\nmachine: {platform.machine()}, {os.cpu_count()} cores, all parties on it, no added delay")
    for row, _ in measured:
        names = ("protocol", "parties", "noise", "growth", "seconds", "paper_seconds", "sent_gb_in_all", "rss_gb_of_a_party", "rounds")
        console.print("ajax: " + " ".join(f"{name}={row[name] if row[name] != '' else 'none'}" for name in names), markup=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
