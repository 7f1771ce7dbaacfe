"""Other libraries at our sizes (``make peers``, results/peers.csv): theirs beside ours, operation by operation."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from keyquorum.model.idle import IDLE_CORES

from . import style
from .data import states
from .plots import Plot

BAR = 0.38
"""Height of a bar: two of them make a row."""


def libraries(table: pd.DataFrame) -> Plot | None:
    """Seconds of each operation, theirs and ours, with the ratio; None if nothing was measured."""
    rows = [row for row in table.attrs.get("peers", []) if row["status"] == "ok"]
    skipped = [f"{r['peer']}, {r['parameters']}" for r in table.attrs.get("peers", []) if r["status"] != "ok"]
    if not rows:
        return None
    made, (axis,) = style.figure(1, 8.2, 1.2 + 0.42 * len(rows))
    sides = (("library", "seconds", "low", "high", style.greys(2)[1], -BAR / 2), ("ours", "ours", "our_low", "our_high", style.OURS, BAR / 2))
    loaded = [float(row["busy"] or 0) > IDLE_CORES for row in rows]
    for label, value, low, high, colour, shift in sides:
        at, values = [i + shift for i in range(len(rows))], [float(row[value]) for row in rows]
        error = [[float(r[value]) - float(r[low]) for r in rows], [float(r[high]) - float(r[value]) for r in rows]]
        style.dot_loaded(axis.barh(at, values, BAR, xerr=error, capsize=1.5, color=colour, label=label), loaded)
    for i, row in enumerate(rows):
        axis.annotate(
            f"\u00d7 {float(row['ratio']):.3g}", (float(row["our_high"]), i + BAR / 2), (5, 0), textcoords="offset points", va="center", fontsize=6.5
        )
    names = [
        f"{r['peer']} ({r['model']}), {r['operation']}, {r['parameters']}, {r['parties']} parties\nN = {r['ring_degree']}, log2 q {r['log2_q']}, ours {r['our_log2_q']}"
        for r in rows
    ]
    axis.set_yticks(range(len(rows)), names, fontsize=7)
    axis.invert_yaxis()
    axis.grid(axis="y", visible=False)
    style.decades(axis, "x")
    axis.set(xlabel="seconds, median; \u00d7: ours over theirs", title="Other libraries with the same ring, parties and cores")
    style.legend_below(made, [axis], 3, any(loaded))
    differs = " ".join(dict.fromkeys(f"{r['peer']}, {r['operation']}: {r['differs']}" for r in rows))
    missing = f" Not measured: {'; '.join(skipped)}." if skipped else ""
    versions = ", ".join(dict.fromkeys(f"{r['peer']}: {r['peer_version']}" for r in rows))
    return made, (
        f"Both sides on {rows[0]['pinned_cores']} of the cores of one machine, all parties on them ({versions}). Below each name the ring degree and the bits of both moduli of fresh "
        f"ciphertexts. {differs}{missing}{states(r.get('commit', '') for r in rows)}"
    )


PLOTS: dict[str, tuple[str, Callable[[pd.DataFrame], Plot | None]]] = {"libraries": ("Beside other libraries, at the same sizes", libraries)}
"""Title and function of the plot."""

__all__ = ["PLOTS", "libraries"]
