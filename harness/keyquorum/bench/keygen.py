"""Key generation at N = 16384: ``make bench-keygen``.

CKKS, coefficient bits [60,52,52,52,52,52,52,60], public key, relinearisation key and 7 Galois keys (steps 1, 4, 16, 64, 256,
1024, 4096), every party a process of this host, over TLS. Prints time, bytes and rounds a phase, and ends with one line a
configuration.
"""

from __future__ import annotations

import csv
import os
import platform
import sys
import tempfile
import time
from pathlib import Path

import keyquorum
from keyquorum import api
from keyquorum.bench.sweep.rows import commit
from keyquorum.fhe.parameters import load as load_parameters
from keyquorum.model.chosen_committees import REPLICATED, SHAMIR, VERIFIED_REPLICATED, VERIFIED_SHAMIR
from keyquorum.terminal.output import console, print_reports
from keyquorum.terminal.progress import progress_bars

PARAMETERS = "ckks-16384-bench"
STEPS = (1, 4, 16, 64, 256, 1024, 4096)
Row = dict[str, str | int | float]
CONFIGURATIONS = ((REPLICATED, 3), (VERIFIED_REPLICATED, 3), (SHAMIR, 3), (VERIFIED_SHAMIR, 3), (SHAMIR, 5), (VERIFIED_SHAMIR, 5))


def measure(protocol: str, parties: int) -> tuple[str, Row, list[Row]]:
    """Makes one key; returns the closing line, the row of the configuration, and a row a phase (of party 0)."""
    parameters = load_parameters(PARAMETERS)
    with tempfile.TemporaryDirectory(prefix="keyquorum-bench-") as folder, progress_bars() as report:
        committee = api.init(Path(folder) / "committee", parties, protocol)
        elements = api.galois_elements(parameters, STEPS)
        start = time.monotonic()
        result = api.keygen(committee, "bench", parameters, True, elements, progress=report, io_timeout=600)
        seconds = time.monotonic() - start
    console.print(f"\n{protocol}, {parties} parties, {PARAMETERS}, pk + relin + {len(STEPS)} Galois keys")
    print_reports(result.reports)
    who: Row = {"protocol": protocol, "parties": parties}
    phases: list[Row] = [
        {
            **who,
            "phase": phase.name,
            "seconds": round(phase.seconds, 3),
            "sent_mb": round(phase.bytes_sent / 1e6, 3),
            "rounds": phase.rounds,
        }
        for phase in result.reports[0].phases
    ]
    row: Row = {
        **who,
        "seconds": round(seconds, 1),
        "rss_gb": round(max(r.peak_memory for r in result.reports) / 1e9, 2),
        "sent_mb": round(sum(r.total.bytes_sent for r in result.reports) / 1e6),
        "rounds": result.reports[0].total.rounds,
        "cores": os.cpu_count() or 0,
        "machine": platform.machine(),
        "version": keyquorum.__version__,
    }
    figures = " ".join(f"{name}={row[name]}" for name in ("seconds", "rss_gb", "sent_mb", "rounds"))
    return f"keygen: protocol={protocol} n={parties} {figures}", row, phases


def write_table(path: Path, rows: list[Row]) -> None:
    """Writes rows as CSV, with the commit that was measured."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0] | {"commit": ""}))
        writer.writeheader()
        writer.writerows(row | {"commit": commit()} for row in rows)


def main() -> int:
    """Runs every configuration; writes results/keygen.csv and results/keygen_phases.csv if the folder is there."""
    measured = [measure(protocol, parties) for protocol, parties in CONFIGURATIONS]
    folder = Path("results")
    if folder.is_dir():
        write_table(folder / "keygen.csv", [row for _, row, _ in measured])
        write_table(folder / "keygen_phases.csv", [phase for _, _, phases in measured for phase in phases])
    console.print(f"\nmachine: {platform.machine()}, {os.cpu_count()} cores, all parties on it, no added delay")
    for line, _, _ in measured:
        console.print(line, markup=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
