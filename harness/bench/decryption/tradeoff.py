"""The trade-off of the roundings: offline work against online work, rounds and bits. A table and a plot of `decrypt.csv`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from keyquorum.model.plain import Json

from ..runner import Row

COLUMNS = {
    "offline_us": "offline, µs",
    "offline_bytes": "offline, bytes sent by all",
    "storage_bytes": "stored a party, bytes",
    "online_us": "online, µs",
    "online_cpu_us": "online, µs of processor, all parties",
    "rounds": "rounds",
    "bits": "bits sent by a party",
    "rounds_in_all": "rounds of a batch, in all",
    "bits_in_all": "bits sent, in all",
    "per_s": "a second",
    "latency_ms": "one alone, ms",
}
"""Columns of the table. Each is for one decryption, except the rounds, which are those of a batch."""


def table(rows: Sequence[Row]) -> str:
    """The table in Markdown. For every parameter set, protocol and number of parties the rounding with the least online time comes first."""
    head = ["parameters", "protocol", "n", "variant", *COLUMNS.values()]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for row in sorted(rows, key=lambda r: (str(r["parameters"]), str(r["protocol"]), int(r["n"]), float(r["online_us"]))):
        values = [_shown(row[name], name) for name in COLUMNS]
        lines.append(
            f"| {row['parameters']} | `{row['protocol']}` | {row['n']} | `{row['variant']}`{_only(row['variant'])} | " + " | ".join(values) + " |"
        )
    return "\n".join(lines) + "\n"


def _only(variant: object) -> str:
    """The restriction of a rounding: the flooding of the baseline hides the noise of fresh ciphertexts, not the larger noise of evaluated ones."""
    return " (fresh ciphertexts only)" if variant == "round_flood" else ""


def _shown(value: object, name: str) -> str:
    if name == "latency_ms" and not float(str(value)):
        return "–"
    number = float(str(value))
    return f"{number:,.0f}" if number >= 100 or number == int(number) else f"{number:.3g}"


def plot(rows: Sequence[Row], path: Path) -> None:
    """Offline against online time of a decryption, a panel for each number of parties, all with the same logarithmic axes: a colour for
    each protocol, a marker for each rounding, which is hollow for coefficients of BFV. Needs the extra ``report``."""
    from matplotlib.lines import Line2D

    from keyquorum.report import style

    parties = sorted({int(r["n"]) for r in rows})
    made, axes = style.figure(len(parties), width=3.4, height=2.9)
    variants = sorted({str(r["variant"]) for r in rows})
    markers = dict(zip(variants, style.MARKERS.values(), strict=False))
    for axis, n in zip(axes, parties, strict=True):
        for row in rows:
            if int(row["n"]) != n:
                continue
            colour, lwe = style.COLOURS[str(row["protocol"])], str(row["parameters"]).startswith("lwe")
            axis.scatter(
                float(row["offline_us"]), float(row["online_us"]), marker=markers[str(row["variant"])], s=24, edgecolors=colour,
                facecolors=colour if lwe else "none",
            )  # fmt: skip
        axis.set(title=f"{n} parties", xlabel="offline, µs a decryption", ylabel="online, µs a decryption")
    for which in ("x", "y"):
        style.decades(axes, which)
    empty: Json = {"linestyle": "none", "markersize": 5}
    entries = [Line2D([], [], color=style.COLOURS[p], marker="o", label=p, **empty) for p in style.protocols(str(r["protocol"]) for r in rows)]
    entries += [
        Line2D([], [], color=style.PAPER, marker=m, label=v.removeprefix("round_") + _only(v).replace(" ciphertexts", ""), **empty)
        for v, m in markers.items()
    ]
    entries.append(Line2D([], [], color=style.PAPER, marker="o", markerfacecolor="none", label="hollow: BFV", **empty))
    made.legend(handles=entries, loc="outside lower center", ncols=5)
    made.savefig(path, dpi=150)


def write(rows: Sequence[Row], folder: Path) -> None:
    """Writes ``decrypt-tradeoff.md`` and ``.png``."""
    text = "Cost of a decryption, measured by `make bench-decrypt`: all parties on one machine, over TLS.\n\n" + table(rows)
    text += (
        "\n`round_flood` is a baseline: its room is for the noise of fresh ciphertexts. Noise of evaluated ones is larger, and 40 bits of flooding over it do not "
        "fit the modulus, so that its rows are no alternative to the others there.\n"
        "\nRounds and bits are those of the program's openings and ANDs. In all: with the checks of MACs, and with what programs with MACs make online.\n"
        "\n![Offline against online time](decrypt-tradeoff.png)\n"
    )
    (folder / "decrypt-tradeoff.md").write_text(text)
    plot(rows, folder / "decrypt-tradeoff.png")
