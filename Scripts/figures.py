"""Writes the measured figures of results/ into README.md, between its marks. What is not in results/ is left out."""

from __future__ import annotations

import csv
import statistics
import sys
from pathlib import Path

from keyquorum.report.data import NoResultsError, conditions, load, summary
from keyquorum.report.threat_models import threat_model_table

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"
PLOTS = {
    "threat_models": "What an operation costs under each threat model: time, and bytes that a party sends",
    "scaling": "Keys and decryption against the number of parties",
    "round_trip": "Time against the round trip of the links",
}
"""Plots of the report that the README shows."""


def _rows(name: str) -> list[dict[str, str]]:
    path = ROOT / "results" / f"{name}.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def parity() -> list[str]:
    """The comparison with MP-SPDZ, a line a protocol."""
    rows = _rows("parity")
    if not rows:
        return []
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


def keygen() -> list[str]:
    """Key generation at N = 16384."""
    rows = _rows("keygen")
    if not rows:
        return []
    lines = [
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
    return lines


def sweeps() -> list[str]:
    """The table of threat models and some plots, of the sweeps in results/bench."""
    try:
        rows = load(ROOT / "results")
    except NoResultsError:
        return []
    where = dict(conditions(rows))
    table, told = threat_model_table(summary(rows))
    lines = [
        "",
        f"Threat models, as measured by `make bench` on {where['processor']}, {where['cores']} cores, {where['memory, GB']} GB (commit {where['commit']}, "
        f"{where['dates'][:10]}). {told}",
    ]
    if len(table):
        table["committee"] = [" + ".join(f"`{name}`" for name in names.split(" + ")) for names in table["committee"]]
        cells = [[str(value) for value in row] for row in table.to_numpy()]
        lines += ["", f"| {' | '.join(table.columns)} |", "| " + " | ".join("---" for _ in table.columns) + " |"]
        lines += [f"| {' | '.join(row)} |" for row in cells]
    for name, title in PLOTS.items():
        path = ROOT / "results" / "report" / f"{name}.png"
        if path.exists():
            lines += ["", f"![{title}]({path.relative_to(ROOT)})"]
    return [*lines, "", "All plots, published figures beside ours: [results/report](results/report/index.html) (`keyquorum report`)."]


def main() -> int:
    """Rewrites the part of README.md between the marks."""
    path = ROOT / "README.md"
    text = path.read_text()
    head, _, rest = text.partition(BEGIN)
    tail = rest.partition(END)[2] if END in rest else rest
    if not rest:
        print(f"error: README.md has no mark {BEGIN}", file=sys.stderr)
        return 1
    body = "\n".join(["## Measured", *sweeps(), *keygen(), *parity()])
    path.write_text(f"{head}{BEGIN}\n{body}\n{END}{tail}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
