"""Plots of one published table against a number, with our figures of the same kind: what such a plot is, and how it is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from keyquorum.model import published

from . import style
from .data import machines, states

Ours = Callable[[pd.DataFrame], pd.DataFrame]
"""A function that selects our figures, as columns ``x``, ``y``, ``low``, ``high``, ``label``."""
PAPERS = {
    "000": "hardware not stated",
    "002": "c6i.2xlarge (8 vCPU) a party; LAN 1 ms, 1 Gbit/s; WAN 100 ms, 100 Mbit/s",
    "003": "Xeon E5-2690 v4, 28 cores; network not measured",
    "004": "2 vCPU a party; LAN 0.5 ms, 2 Gbit/s; WAN 20 ms, 500 Mbit/s",
}
"""Hardware and network of the papers, from params/published/README.md."""
LINKS = {"000_slide_online_latency": ", nor bandwidth", "000_slide_throughput": "; 1 ms ping, 1 Gbit/s"}
"""What single tables state of the network."""


@dataclass(frozen=True)
class Published:
    """A plot of one published table: ``value`` against ``x``, one line for each combination of ``series``."""

    table: str
    title: str
    paper: str
    value: str
    unit: str
    x: str = "parties"
    series: tuple[str, ...] = ("network",)
    where: tuple[tuple[str, object], ...] = ()
    xlabel: str = "parties"
    ours: Ours | None = None
    note: str = ""
    remark: Callable[[pd.DataFrame], str] = lambda found: ""
    """A sentence on the figures of ours that were found."""
    computed: bool = False
    """Whether our figures are computed from parameters, not measured."""


def draw(plot: Published, table: pd.DataFrame) -> tuple[Figure, str]:
    """The figure and its caption. Figures of ours that are not of the paper's operation stand in a panel of their own."""
    found = plot.ours(table) if plot.ours is not None else pd.DataFrame()
    if "other" not in found:
        found = found.assign(other=False)
    found["other"] = found["other"].fillna(False).astype(bool)
    lines, levels = _theirs(plot)
    entries = len(lines) + len(levels) + (found["label"].nunique() if len(found) else 0)
    panels = 1 + bool(found["other"].any())
    made, axes = style.row_of_panels(panels, 5.4 if panels == 1 else 7.6, 2.9 + 0.1 * entries)
    series = style.series(found["label"].nunique()) if len(found) else []
    for (label, rows), (colour, mark) in zip(found.groupby("label") if len(found) else [], series, strict=True):
        _draw_ours(axes[int(rows["other"].iloc[0])], str(label), rows, colour, mark)
    _draw_theirs(axes[0], plot, lines, levels)
    axes[0].set(ylabel=plot.unit)
    head(made, f"{plot.title}: {plot.paper}", plot.table, machines(found["machine"]) if len(found) and not plot.computed else "")
    style.decades(axes)
    for axis, shown in zip(axes, (found[~found["other"]], found[found["other"]]), strict=False):
        axis.set_xlabel(plot.xlabel)
        axis.set_xscale("log", base=2)
        published_x = [x for _, rows in lines for x in rows[plot.x]] if axis is axes[0] else []
        style.ticks(axis, [*published_x, *(shown["x"] if len(shown) else [])])
    if panels > 1:
        axes[1].set_title(NOT_THE_SAME, fontsize=8)
    style.legend_below(made, axes, 2, bool(len(found) and found["loaded"].any()))
    return made, _caption(plot, found)


NOT_THE_SAME = "not the same operation"
Lines = list[tuple[str, pd.DataFrame]]


def _theirs(plot: Published) -> tuple[Lines, Lines]:
    """Published lines with their labels, with gaps where no figure is, and figures for any number of parties."""
    theirs = pd.DataFrame(published.load(plot.table))
    for column, value in plot.where:
        theirs = theirs[theirs[column] == value]
    theirs[plot.value] = theirs[plot.value].astype(float)
    against = theirs[theirs[plot.x].notna()]
    grouped = sorted(against.groupby(list(plot.series), dropna=False, sort=False), key=lambda item: str(item[0]))
    lines = [
        ("paper, " + ", ".join(_words(c, v) for c, v in zip(plot.series, name, strict=True)), rows.sort_values(plot.x))
        for name, rows in grouped
        if rows[plot.value].notna().any()
    ]
    levels = theirs[theirs[plot.x].isna() & theirs[plot.value].notna()]
    return lines, [("paper, " + ", ".join(_words(c, row[c]) for c in plot.series), row.to_frame().T) for _, row in levels.iterrows()]


def _draw_theirs(axis: Axes, plot: Published, lines: Lines, levels: Lines) -> None:
    """Published marks above ours, each with its number; a question mark where it is our reading of the paper."""
    greys = style.greys(len(lines) + len(levels))
    single = all(rows[plot.x].nunique() == 1 for _, rows in lines)
    places = [BESIDE] * len(lines) if single else _places([float(rows[plot.value].median()) for _, rows in lines])
    for i, (label, rows) in enumerate(lines):
        x, y = rows[plot.x].astype(float), rows[plot.value]
        axis.plot(
            x, y, label=label, color=greys[i], marker=style.MARKS[i % len(style.MARKS)], linestyle="--", markersize=6.5, linewidth=1,
            markeredgecolor="white", markeredgewidth=0.7, zorder=6,
        )  # fmt: skip
        notes = rows["note"] if "note" in rows else [None] * len(rows)
        for at, value, note in zip(x, y, notes, strict=True):
            if value == value:
                read = "?" if str(note or "").startswith(f"{plot.value}: ") else ""
                axis.annotate(
                    f"{style.number(value)}{read}",
                    (at, value),
                    places[i][0],
                    textcoords="offset points",
                    ha=places[i][1],
                    va="center",
                    **style.NUMBER,
                )
    for i, (label, rows) in enumerate(levels):
        axis.axhline(float(rows[plot.value].iloc[0]), label=label, color=greys[i + len(lines)], linestyle=":", zorder=6)


Place = tuple[tuple[float, float], str]
BESIDE: Place = ((8.0, 0.0), "left")


def _places(heights: list[float]) -> list[Place]:
    """Where the numbers of each line stand beside its marks: of the highest above, of the lowest below, of those between at the sides."""
    ranks = [sorted(heights).index(height) for height in heights]
    top = len(heights) - 1
    return [
        ((0, 9), "center") if rank == top else ((0, -9), "center") if rank == 0 else ((6, 0), "left") if rank % 2 else ((-6, 0), "right")
        for rank in ranks
    ]


def _draw_ours(axis: Axes, label: str, rows: pd.DataFrame, colour: str, mark: str) -> None:
    rows = rows.sort_values("x")
    error = [rows["y"] - rows["low"], rows["high"] - rows["y"]]
    axis.errorbar(rows["x"], rows["y"], error, label=label, color=colour, marker=mark, capsize=2, markersize=4.5, linewidth=1.2)
    if rows["loaded"].any():
        style.mark_loaded(axis, rows[rows["loaded"]]["x"], rows[rows["loaded"]]["y"], colour, mark, 4.5)


def _caption(plot: Published, found: pd.DataFrame) -> str:
    missing = "" if plot.ours is None or len(found) else " Ours: not measured in these results."
    nothing = " Nothing of ours is of this kind." if plot.ours is None else ""
    other = f" The second panel has what is {NOT_THE_SAME}." if len(found) and found["other"].any() else ""
    commits = states(found["commit"]) if "commit" in found else ""
    return f"{plot.paper}, as printed (grey, dashed). {plot.note}{plot.remark(found)}{other}{commits}{missing}{nothing}"


def head(made: Figure, title: str, published_table: str, machine: str, computed: bool = False) -> None:
    """The title, and below it the hardware of the paper, and ours if ``machine`` is not empty."""
    made.suptitle(title, fontsize=10)
    hardware = PAPERS[published_table[:3]] + LINKS.get(published_table, "")
    lines = [f"paper: {'computed, not measured' if computed else hardware}"]
    if machine:
        lines += [f"ours: {machine}, shared by all parties;", "no link, or simulated ones where a ping or a network is named"]
    made.axes[0].set_title("\n".join(lines), fontsize=6.5, color=style.PAPER, loc="left")


def _words(column: str, value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    names = {"ping_ms": f"{value} ms ping", "phi_m": f"length {value}"}
    return names.get(column, str(value))
