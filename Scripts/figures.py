"""Writes the measured figures of results/*.csv into README.md, between its marks."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"


def table() -> str:
    """Key generation, as a Markdown table."""
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
    return "\n".join(lines)


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
