"""Key generation at N = 16384: ``make bench-keygen``.

CKKS, coefficient bits [60,52,52,52,52,52,52,60], public key, relinearisation key and 7 Galois keys (steps 1, 4, 16, 64, 256,
1024, 4096), every party a process of this host, over TLS. Prints time, bytes and rounds a phase, and ends with one line a
configuration. Writes results/keygen.csv with the figures of every phase.
"""

from __future__ import annotations

import csv
import os
import platform
import sys
import tempfile
import time
from pathlib import Path

from keyquorum import api
from keyquorum.cli.output import console, print_reports, progress_bars

PARAMETERS = "ckks-16384-bench"
STEPS = (1, 4, 16, 64, 256, 1024, 4096)
CONFIGURATIONS = (("rep-field", 3), ("shamir", 3), ("shamir", 5))


def measure(protocol: str, parties: int, rows: list[dict[str, object]]) -> str:
    """Makes one key and returns the closing line; adds a row a phase to ``rows``."""
    parameters = api.load_parameters(PARAMETERS)
    with tempfile.TemporaryDirectory(prefix="keyquorum-bench-") as folder, progress_bars() as report:
        committee = api.init(Path(folder) / "committee", parties, protocol)
        start = time.monotonic()
        result = api.keygen(
            committee,
            "bench",
            parameters,
            True,
            api.galois_elements(parameters, STEPS),
            progress=report,
            io_timeout=600,
        )
        seconds = time.monotonic() - start
    console.print(f"\n{protocol}, {parties} parties, {PARAMETERS}, pk + relin + {len(STEPS)} Galois keys")
    print_reports(result.reports)
    for phase in result.reports[0].phases:
        rows.append(
            {
                "protocol": protocol,
                "parties": parties,
                "phase": phase.name,
                "seconds": round(phase.seconds, 3),
                "sent_mb_party_0": round(phase.bytes_sent / 1e6, 3),
                "rounds": phase.rounds,
            }
        )
    memory = max(r.peak_memory for r in result.reports) / 1e9
    sent = sum(r.total.bytes_sent for r in result.reports) / 1e6
    rounds = result.reports[0].total.rounds
    rows.append(
        {
            "protocol": protocol,
            "parties": parties,
            "phase": "whole run, processes included",
            "seconds": round(seconds, 3),
            "sent_mb_party_0": round(result.reports[0].total.bytes_sent / 1e6, 3),
            "rounds": rounds,
        }
    )
    return f"keygen: protocol={protocol} n={parties} seconds={seconds:.1f} rss_gb={memory:.2f} sent_mb={sent:.0f} rounds={rounds}"


def main() -> int:
    """Runs every configuration."""
    rows: list[dict[str, object]] = []
    lines = [measure(protocol, parties, rows) for protocol, parties in CONFIGURATIONS]
    folder = Path("results")
    if folder.is_dir():
        with (folder / "keygen.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    console.print(f"\nmachine: {platform.machine()}, {os.cpu_count()} cores, all parties on it, no added delay")
    for line in lines:
        console.print(line, markup=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
