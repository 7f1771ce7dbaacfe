"""Key generation: ``make bench-keygen``.

With an honest majority CKKS at N = 16384, coefficient bits [60,52,52,52,52,52,52,60], public key, relinearisation key and 7 Galois keys (steps 1, 4, 16, 64, 256,
1024, 4096), each semi-honest protocol beside the one that verifies products. With MACs the public key of BFV at N = 4096, and public key and relinearisation key at N = 8192. Every party
is a process of this host, over TLS. Prints time, bytes and rounds a phase, and ends with one line a configuration.

    python -m keyquorum.bench.keygen [--only TEXT]
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import keyquorum
from keyquorum import api
from keyquorum.bench.sweep.rows import commit
from keyquorum.fhe.parameters import load as load_parameters
from keyquorum.model.chosen_committees import REPLICATED, SHAMIR, VERIFIED_REPLICATED, VERIFIED_SHAMIR, WITH_MACS
from keyquorum.terminal.output import console, print_reports
from keyquorum.terminal.progress import progress_bars

STEPS = (1, 4, 16, 64, 256, 1024, 4096)
Row = dict[str, str | int | float]


@dataclass(frozen=True)
class Configuration:
    """A committee and its keys: ``steps`` are those of the Galois keys."""

    protocol: str
    parties: int
    parameters: str = "ckks-16384-bench"
    relinearisation: bool = True
    steps: tuple[int, ...] = STEPS

    @property
    def keys(self) -> str:
        """Which keys are made."""
        more = ["relinearisation"] if self.relinearisation else []
        return " + ".join(["public", *more, *([f"{len(self.steps)} Galois"] if self.steps else [])])


CONFIGURATIONS = (
    *(
        Configuration(p, n)
        for p, n in ((REPLICATED, 3), (VERIFIED_REPLICATED, 3), (SHAMIR, 3), (VERIFIED_SHAMIR, 3), (SHAMIR, 5), (VERIFIED_SHAMIR, 5))
    ),
    Configuration(WITH_MACS, 2, "bfv-4096", relinearisation=False, steps=()),
    Configuration(WITH_MACS, 2, "bfv-8192", steps=()),
)


def measure(asked: Configuration) -> tuple[str, Row, list[Row]]:
    """Makes one key; returns the closing line, the row of the configuration, and a row a phase (of party 0)."""
    protocol, parties = asked.protocol, asked.parties
    parameters = load_parameters(asked.parameters)
    with tempfile.TemporaryDirectory(prefix="keyquorum-bench-") as folder, progress_bars() as report:
        committee = api.init(Path(folder) / "committee", parties, protocol)
        elements = api.galois_elements(parameters, asked.steps)
        start = time.monotonic()
        result = api.keygen(committee, "bench", parameters, asked.relinearisation, elements, progress=report, io_timeout=600)
        seconds = time.monotonic() - start
    console.print(f"\n{protocol}, {parties} parties, {asked.parameters}, {asked.keys}")
    print_reports(result.reports)
    who: Row = {"protocol": protocol, "parties": parties, "parameters": asked.parameters, "keys": asked.keys}
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
    return f"keygen: protocol={protocol} n={parties} parameters={asked.parameters} {figures}", row, phases


def write_table(path: Path, rows: list[Row]) -> None:
    """Writes rows as CSV, with the commit that was measured: this one, unless a row names another."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0] | {"commit": ""}))
        writer.writeheader()
        writer.writerows({"commit": commit()} | row for row in rows)


def main() -> int:
    """Runs every configuration; writes results/keygen.csv and results/keygen_phases.csv if the folder is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="configurations whose protocol or parameters contain this text; no table is written")
    only = parser.parse_args().only
    measured = [measure(asked) for asked in CONFIGURATIONS if only in f"{asked.protocol} {asked.parties} {asked.parameters}"]
    folder = Path("results")
    if folder.is_dir() and not only:
        write_table(folder / "keygen.csv", [row for _, row, _ in measured])
        write_table(folder / "keygen_phases.csv", [phase for _, _, phases in measured for phase in phases])
    console.print(f"\nmachine: {platform.machine()}, {os.cpu_count()} cores, all parties on it, no added delay")
    for line, _, _ in measured:
        console.print(line, markup=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
