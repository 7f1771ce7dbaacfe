"""Plots of multi-key BGV (``make bench-multikey``, results/multikey.csv): beside the figures of paper 001, and beside joint keys. Each function returns a
figure and its caption, or None if there are no such results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pandas as pd
from matplotlib.axes import Axes

from keyquorum.model import published
from keyquorum.model.idle import IDLE_CORES

from . import style
from .data import states
from .plots import Plot
from .published_lines import NOT_THE_SAME

Cells = dict[str, str]
PAPER = "paper 001: i7-12800H, 14 cores, OpenFHE"
ONE_PROCESS = "Ours: one process, one thread, N = 16384, five primes, t = 65537."


def _found(table: pd.DataFrame, **wanted: str) -> list[Cells]:
    """Rows of the table whose columns have these values."""
    rows: Iterable[Cells] = table.attrs.get("multikey", [])
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def _line(axis: Axes, rows: Sequence[Cells], x: str, label: str, look: tuple[str, str], scale: float = 1.0) -> bool:
    """A line of ours, with bars from the fastest to the slowest run; whether a measurement started under load."""
    rows = sorted(rows, key=lambda row: int(row[x]))
    at, y = [int(row[x]) for row in rows], [scale * float(row["ours"]) for row in rows]
    low = [value - scale * float(row["low"] or row["ours"]) for row, value in zip(rows, y, strict=True)]
    high = [scale * float(row["high"] or row["ours"]) - value for row, value in zip(rows, y, strict=True)]
    axis.errorbar(at, y, [low, high], label=label, color=look[0], marker=look[1], capsize=2, markersize=4, linewidth=1.2)
    loaded = [i for i, row in enumerate(rows) if row["quantity"] == "ms" and float(row["busy"] or 0) > IDLE_CORES]
    style.mark_loaded(axis, [at[i] for i in loaded], [y[i] for i in loaded], *look)
    return bool(loaded)


def _states(rows: Iterable[Cells]) -> str:
    return states(row.get("commit", "") for row in rows)


def _readings(table: pd.DataFrame, workload: str, published_table: str, title: str) -> Plot | None:
    rows = _found(table, workload=workload)
    readings = list(dict.fromkeys(row["reading"] for row in rows))
    if not rows:
        return None
    made, (axis,) = style.figure(1, 5.4, 3.9)
    theirs = published.load(published_table)
    x, y = ([float(row[name] or 0) for row in theirs] for name in ("parties", "ms"))
    looks = style.series(len(readings))
    loaded = [
        _line(axis, [row for row in rows if row["reading"] == name], "parties", f"ours, {name}", look)
        for name, look in zip(readings, looks, strict=True)
    ]
    style.published(axis, x, y, "paper 001", (style.greys(1)[0], "o"))
    axis.set(xlabel="parties, each with its own key", ylabel="ms", title=f"{title}\n{PAPER}")
    style.decades(axis)
    style.ticks(axis, [int(row["parties"]) for row in rows])
    style.legend_below(made, [axis], 2, any(loaded))
    return made, (
        f"Paper 001, {published_table[4:10]}, as printed (grey, dashed), and multi-key BGV of our own. The paper does not say what its times contain, so every reading "
        f"is measured. {ONE_PROCESS} Other hardware.{_states(rows)}"
    )


def additions(table: pd.DataFrame) -> Plot | None:
    """Table 1 of paper 001."""
    return _readings(table, "W1", "001_table1_addition", "Multi-key addition")


def products(table: pd.DataFrame) -> Plot | None:
    """Table 2 of paper 001."""
    return _readings(table, "W2", "001_table2_multiplication", "Multi-key multiplication, not relinearised")


def rgsw(table: pd.DataFrame) -> Plot | None:
    """Tables 3 and 4 of paper 001."""
    rows = _found(table, workload="W3")
    if not rows:
        return None
    gadgets = {row["gadget"]: {r["threads"]: r for r in rows if r["gadget"] == row["gadget"]} for row in rows}
    panels = [{name: of for name, of in gadgets.items() if (name == "bits") == paper} for paper in (True, False)]
    made, axes = style.figure(1 + bool(panels[1]), 5.4, 3.9)
    names = {"001_table3_rgsw_openfhe_1_1_1": "OpenFHE 1.1.1", "001_table4_rgsw_openfhe_1_0_3": "OpenFHE 1.0.3"}
    looks = dict(zip(gadgets, style.series(len(gadgets)), strict=True))
    loaded = [
        _line(axis, list(of.values()), "threads", f"ours, {name}", looks[name], 1e-3)
        for axis, panel in zip(axes, panels, strict=False)
        for name, of in panel.items()
    ]
    for (name, label), grey, mark, apart in zip(names.items(), style.greys(2), style.MARKS, ((0, -9), (0, 9)), strict=False):
        theirs = published.load(name)
        seconds = [60 * float(row["minutes"] or 0) + float(row["seconds"] or 0) for row in theirs]
        style.published(axes[0], [float(row["threads"] or 0) for row in theirs], seconds, f"paper 001, {label}", (grey, mark), apart)
    for axis, title in zip(axes, (f"One row of an RGSW product, by bits\n{PAPER}", f"by RNS digits\n{NOT_THE_SAME}"), strict=False):
        axis.set(xlabel="threads", ylabel="seconds", title=title)
        axis.set_xscale("log", base=2)
        style.ticks(axis, (1, 2, 4, 8, 16, 20))
    style.decades(axes)
    style.legend_below(made, axes, 2, any(loaded))
    return made, (
        "Paper 001, tables 3 and 4, as printed (grey, dashed): one row of one element of an evaluation key, by bits. Ours: the same row by bits; in the second panel by RNS digits with a "
        f"special prime, which the paper does not have. {ONE_PROCESS.replace('one thread, ', '')} Other hardware.{_states(rows)}"
    )


PANELS = (
    ("W2r", "ms", "one relinearised product"),
    ("evaluation key", "MiB", "evaluation keys"),
    ("ciphertext", "MiB", "one ciphertext"),
)  # fmt: skip


def comparison(table: pd.DataFrame) -> Plot | None:
    """Multi-key against joint keys: time of a product, bytes of evaluation keys and of a ciphertext."""
    sizes = {row["parameters"] for row in _found(table, workload="ciphertext")}
    found = [(panel, [row for row in _found(table, workload=panel[0], gadget="rns") if row["parameters"] in sizes]) for panel in PANELS]
    if not all(rows for _, rows in found):
        return None
    made, axes = style.figure(len(PANELS), 4.4, 3.3)
    loaded = []
    for axis, ((_, unit, title), rows) in zip(axes, found, strict=True):
        for kind, look in zip(("multi-key", "joint"), style.series(2), strict=True):
            chosen = [row for row in rows if row["reading"] in (kind, f"{kind}, k + 1 polynomials")]
            loaded.append(_line(axis, chosen, "parties", kind, look))
        axis.set(xlabel="parties", ylabel=unit, title=title)
        style.decades(axis)
        style.ticks(axis, [int(row["parties"]) for row in rows])
    style.legend_below(made, axes, 2, any(loaded))
    paid = ", ".join(f"{float(row['ours']):.0f} with {row['parties']} parties" for row in _found(table, workload="break-even"))
    after = f" In time, the quorum's key generation has paid for itself after so many products: {paid}." if paid else ""
    return made, (
        "What joint keys save: the same BGV set, with a key of each party (k + 1 polynomials a ciphertext, relinearised with keys of all k parties) and under one joint "
        f"key, where stock SEAL multiplies and relinearises. Sizes are computed, without seeds.{after}{_states(row for _, of in found for row in of)}"
    )


PLOTS: dict[str, tuple[str, Callable[[pd.DataFrame], Plot | None]]] = {
    "multikey": ("What joint keys save, against multi-key BGV", comparison),
    "published_001_table1_addition": ("Multi-key addition, beside paper 001", additions),
    "published_001_table2_multiplication": ("Multi-key multiplication, beside paper 001", products),
    "published_001_table3_rgsw_openfhe_1_1_1": ("RGSW product, beside paper 001", rgsw),
}
"""Title and function of every plot."""

__all__ = ["PLOTS", "additions", "comparison", "products", "rgsw"]
