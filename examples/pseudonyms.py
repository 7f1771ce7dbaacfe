"""Two registers replace names by pseudonyms, and link their rows: equal names have equal pseudonyms, which nobody can compute without the committee.

Each register asks with an identity of its own. The two parties of the committee learn how many rows it has, and no name.
"""

from __future__ import annotations

import csv
import subprocess
import sys
import tempfile
from pathlib import Path

import keyquorum
from keyquorum.serve.client import make_receiver
from keyquorum.toprf import Toprf, toprf_keygen

PARTIES = 2
REGISTERS = {
    "clinic": [("Ada", "asthma"), ("Charles", "gout"), ("Grace", "none")],
    "school": [("Grace", "9"), ("Ada", "10"), ("Alan", "7")],
}


def pseudonymise(committee: Toprf, source: Path, target: Path) -> None:
    """Replaces the first column of a CSV file."""
    with source.open(newline="") as file:
        rows = list(csv.reader(file))
    pseudonyms = committee.evaluate_many(row[0].strip().casefold().encode() for row in rows)  # one request
    with target.open("w", newline="") as file:
        csv.writer(file).writerows([pseudonym.hex(), *row[1:]] for pseudonym, row in zip(pseudonyms, rows, strict=True))


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        committee = keyquorum.init(folder / "committee", PARTIES, "semi")
        toprf_keygen(committee, "names")
        identities = {name: make_receiver(committee, name)[0] for name in REGISTERS}
        command = [sys.executable, "-m", "keyquorum", "toprf", "serve", str(committee.folder)]
        serving = [subprocess.Popen([*command, str(i), "names", "--rate", "1000/h", "--quiet"], stdout=subprocess.DEVNULL) for i in range(PARTIES)]
        try:
            linked: dict[str, list[str]] = {}
            for name, rows in REGISTERS.items():
                source, target = folder / f"{name}.csv", folder / f"{name}-pseudonyms.csv"
                with source.open("w", newline="") as file:
                    csv.writer(file).writerows(rows)
                with Toprf(committee, "names", identities[name], domain=b"study 7", output_bytes=16, wait=60.0) as toprf:
                    pseudonymise(toprf, source, target)
                with target.open(newline="") as file:
                    for pseudonym, value in csv.reader(file):
                        linked.setdefault(pseudonym, []).append(value)
            both = sorted(tuple(values) for values in linked.values() if len(values) == 2)
            assert both == [("asthma", "10"), ("none", "9")], "the registers link other rows than their names do"
            print(f"{len(linked)} people, {len(both)} in both registers: {both}")
        finally:
            for process in serving:
                process.terminate()
            for process in serving:
                process.wait(30)


if __name__ == "__main__":
    main()
