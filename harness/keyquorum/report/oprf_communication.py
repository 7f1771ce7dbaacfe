"""Figure 4 of paper 003: communication of an evaluation of AES-128 against the threshold t, by the paper's two formulas; and ours, measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes

from keyquorum.model import published

from . import style
from .data import OWN_TABLES, states
from .plots import Plot

TABLE = "003_section3_communication"
SYSTEMS = {"H": "the paper's system without a dealer", "native": "AES on shares"}
"""Systems of `bench toprf` beside it."""


@dataclass(frozen=True)
class Point:
    """``t``: servers that decrypt; of ours the number of parties. ``mb``: sent by all servers or parties in an evaluation of one block, MB."""

    series: str
    t: int
    mb: float


def largest_threshold() -> int:
    """The greatest t that the paper considers: 400."""
    return next(int(str(row["value"])) for row in published.load("003_sections3_4_parameters") if row["symbol"] == "t")


def formulas(thresholds: Iterable[int] | None = None) -> list[Point]:
    """The paper's lines (128 t + 64 MB at first, 2.25 t + 0.63 MB with seeds), from t = 1 to the greatest t.

    They are as printed. T = 2 servers need one transfer of a partial decryption, since the server that decrypts keeps its own: the formulas count t."""
    found = []
    for row in published.load(TABLE):
        if row["direction"] == "both" and row["mb_fixed"] is not None:
            each, fixed = float(str(row["mb_per_threshold"])), float(str(row["mb_fixed"]))
            for t in thresholds if thresholds is not None else range(1, largest_threshold() + 1):
                found.append(Point(f"paper 003, {row['version']}", t, each * t + fixed))
    return found


def ours(rows: Iterable[Mapping[str, str]]) -> list[Point]:
    """Our points from the rows of results/toprf.csv: one block, no simulated link. Rows that were measured before the table had the bytes of all parties are left
    out."""
    return [
        Point(f"ours, {SYSTEMS[row['system']]}, {row['method']}, {row['protocol']}", int(row["n"]), float(row["all_mb"]))
        for row in rows
        if row["system"] in SYSTEMS and (row["batch"], row["link"]) == ("1", "none") and row.get("all_mb")
    ]


NUMBERED = (2, 20, 100, 400)
"""Thresholds at which the paper's lines have marks with numbers: that of its measurements, two of its text, and the greatest."""


def _draw(axis: Axes, points: list[Point], look: tuple[str, str], paper: bool) -> None:
    """A series; marks of the paper are above ours and have numbers, its line is of its formula."""
    colour, mark = look
    label, points = points[0].series, sorted(points, key=lambda p: p.t)
    if not paper:
        axis.plot(
            [p.t for p in points], [p.mb for p in points], label=f"{label}, batch of 1, no added delay", color=colour, marker=mark, markersize=4.5
        )
        return
    axis.plot([p.t for p in points], [p.mb for p in points], color=colour, linestyle="--", linewidth=1, zorder=5)
    marked = [p for p in points if p.t in NUMBERED]
    axis.plot(
        [p.t for p in marked], [p.mb for p in marked], label=f"{label}, by its formula", color=colour, marker=mark, linestyle="none", markersize=6.5,
        markeredgecolor="white", zorder=6,
    )  # fmt: skip
    for p in marked:
        axis.annotate(style.number(p.mb), (p.t, p.mb), (0, 8), textcoords="offset points", ha="center", **style.NUMBER)


def communication(table: pd.DataFrame) -> Plot | None:
    """Figure 4 of paper 003; None where nothing was measured at the sizes of papers."""
    if not any(table.attrs.get(name) for name in OWN_TABLES):
        return None
    measured, theirs = ours(table.attrs.get("toprf", [])), formulas()
    made, (axis,) = style.figure(1, 6.4, 4.2)
    names = list(dict.fromkeys(p.series for p in measured))
    for name, look in zip(names, style.series(len(names)), strict=True):
        _draw(axis, [p for p in measured if p.series == name], look, paper=False)
    if not measured:
        axis.plot([], [], linestyle="none", label="ours: not measured yet")
    papers = list(dict.fromkeys(p.series for p in theirs))
    for name, grey, mark in zip(papers, style.greys(len(papers)), style.MARKS, strict=False):
        _draw(axis, [p for p in theirs if p.series == name], (grey, mark), paper=True)
    axis.set(
        xlabel="servers that decrypt, t (ours: parties)",
        ylabel="MB, all servers together",
        title="Communication of one AES-128 evaluation\npaper 003, figure 4: computed, not measured",
    )
    style.decades(axis)
    axis.set_xscale("log")
    axis.set_xlim(0.8, 1.6 * largest_threshold())
    axis.margins(y=0.1)
    style.ticks(axis, (1, 2, 4, 8, *NUMBERED[1:]))
    style.legend_below(made, [axis], 1)
    return made, (
        "Paper 003, figure 4: its two formulas (grey), as printed. They count t transfers of partial decryptions; the server that decrypts keeps its own. Ours: measured, one "
        "block, online, sent by all parties together, where no party knows the key and there is no dealer."
        + (states(row.get("commit", "") for row in table.attrs["toprf"]) if measured else " Ours: not measured yet.")
    )


PLOTS: dict[str, tuple[str, Callable[[pd.DataFrame], Plot | None]]] = {
    f"published_{TABLE}": ("Communication of AES-128 under a shared key, beside paper 003", communication)
}
"""Title and function of the plot."""

__all__ = ["PLOTS", "TABLE", "Point", "communication", "formulas", "largest_threshold", "ours"]
