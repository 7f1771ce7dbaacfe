"""Writes the measured figures of results/*.csv into README.md, between its marks."""

from __future__ import annotations

import csv
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"


def parity() -> list[str]:
    """The comparison with MP-SPDZ, a line a protocol."""
    path = ROOT / "results" / "parity.csv"
    if not path.exists():
        return []
    with path.open() as file:
        rows = list(csv.DictReader(file))
    lines = [
        "",
        f"The same programs on MP-SPDZ (commit {rows[0]['mpspdz_commit'][:8]}), same inputs, medians of 5, same machine: `make parity`. A row is a program, or a "
        "variant of it; all outputs agree with each other and with clear text. Ratio: time of the embedded engine / time of MP-SPDZ.",
        "",
        "| protocol | rows | differences | compared in time | median ratio | largest ratio |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for protocol in dict.fromkeys(row["protocol"] for row in rows):
        mine = [row for row in rows if row["protocol"] == protocol]
        ratios = [float(row["ratio"]) for row in mine if row["ratio"]]
        times = f"{statistics.median(ratios):.2f} | {max(ratios):.2f}" if ratios else "– | –"
        wrong = sum(bool(row["difference"]) for row in mine)
        lines.append(f"| `{protocol}` | {len(mine)} | {wrong} | {len(ratios)} | {times} |")
    return lines


def table() -> str:
    """Key generation and the comparison, as Markdown tables."""
    with (ROOT / "results" / "keygen.csv").open() as file:
        rows = list(csv.DictReader(file))
    lines = [
        "## Measured",
        "",
        f"Joint keys for CKKS at N = 16384, [60,52,52,52,52,52,52,60] bits: public key, relinearisation key, 7 Galois keys. Every party is a process "
        f"of one machine ({rows[0]['machine']}, {rows[0]['cores']} cores), over TLS, no added delay: `make bench-keygen`.",
        "",
        "| protocol | parties | seconds | memory a party | sent by all | rounds |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        lines.append(
            f"| `{row['protocol']}` | {row['parties']} | {row['seconds']} | {row['rss_gb']} GB | {row['sent_mb']} MB | {row['rounds']} |"
        )
    return "\n".join([*lines, *parity()])


def main() -> int:
    """Rewrites the part of README.md between the marks."""
    path = ROOT / "README.md"
    text = path.read_text()
    head, _, rest = text.partition(BEGIN)
    tail = rest.partition(END)[2] if END in rest else rest
    if not rest:
        print(f"error: README.md has no mark {BEGIN}", file=sys.stderr)
        return 1
    path.write_text(f"{head}{BEGIN}\n{table()}\n{END}{tail}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
