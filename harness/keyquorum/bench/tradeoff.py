"""What the roundings trade: work before the ciphertext against work, rounds and bits with it. A table and a plot of `decrypt.csv`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .keygen import Row

COLUMNS = {
    "offline_us": "offline, µs",
    "offline_bytes": "offline, bytes sent by all",
    "storage_bytes": "stored a party, bytes",
    "online_us": "online, µs",
    "online_cpu_us": "online, µs of processor, all parties",
    "rounds": "rounds",
    "bits": "bits sent by a party",
    "per_s": "a second",
    "latency_ms": "one alone, ms",
}
"""Columns of the table, each a decryption."""


def table(rows: Sequence[Row]) -> str:
    """Markdown, the cheapest online first for every parameter set, protocol and number of parties."""
    head = ["parameters", "protocol", "n", "variant", *COLUMNS.values()]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for row in sorted(rows, key=lambda r: (str(r["parameters"]), str(r["protocol"]), int(r["n"]), float(r["online_us"]))):
        values = [_shown(row[name], name) for name in COLUMNS]
        lines.append(f"| {row['parameters']} | `{row['protocol']}` | {row['n']} | `{row['variant']}` | " + " | ".join(values) + " |")
    return "\n".join(lines) + "\n"


def _shown(value: object, name: str) -> str:
    if name == "latency_ms" and not float(str(value)):
        return "–"
    number = float(str(value))
    return f"{number:,.0f}" if number >= 100 or number == int(number) else f"{number:.3g}"


def plot(rows: Sequence[Row], path: Path) -> None:
    """Offline against online time of a decryption, a panel for each number of parties, on logarithmic axes. Needs the extra ``report``."""
    from keyquorum.report import style

    parties = sorted({int(r["n"]) for r in rows})
    made, axes = style.figure(len(parties), width=3.4, height=3.2)
    variants = sorted({str(r["variant"]) for r in rows})
    for axis, n in zip(axes, parties, strict=True):
        for row in rows:
            if int(row["n"]) != n:
                continue
            protocol, variant = str(row["protocol"]), str(row["variant"])
            axis.scatter(
                float(row["offline_us"]), float(row["online_us"]), marker="osD^vP*"[variants.index(variant) % 7],
                color=style.COLOURS[protocol], label=f"{variant.removeprefix('round_')}, {protocol}", s=22,
            )  # fmt: skip
        axis.set(xscale="log", yscale="log", title=f"{n} parties", xlabel="offline, µs a decryption")
    axes[0].set_ylabel("online, µs a decryption")
    style.legend_below(made, axes, 3)
    made.savefig(path, dpi=150)


def write(rows: Sequence[Row], folder: Path) -> None:
    """Writes ``decrypt-tradeoff.md`` and ``.png``."""
    text = "Cost of a decryption, measured by `make bench-decrypt`: all parties on one machine, over TLS.\n\n" + table(rows)
    (folder / "decrypt-tradeoff.md").write_text(text)
    plot(rows, folder / "decrypt-tradeoff.png")
