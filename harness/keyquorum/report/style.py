"""Style of plots: legible in print and without colour."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import cycle
from typing import Any, Literal

import matplotlib
import matplotlib.colors

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib import patheffects
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import NullLocator

from keyquorum.model.protocols import COMMITTEES

ORDER = tuple(sorted(COMMITTEES, key=lambda name: COMMITTEES[name].verifies_products))
"""Committees in the order of plots: those that verify products last, as older tables have none of them."""
FIRST_COLOURS = ("#0072b2", "#56b4e9", "#009e73", "#d55e00", "#e69f00", "#cc79a7", "#7f3c8d")
MORE_COLOURS = ("#8c1c13", "#1b5e20", "#00a6a6", "#f0c808", "#6a4c93", "#ff595e", "#8ac926", "#1d3557", "#b5651d", "#ff7eb6", "#4d908e")
VERIFIED_COLOURS = ("#003f5c", "#994f00", "#00b3b3")
COLOURS = dict(zip(ORDER, cycle((*FIRST_COLOURS, *VERIFIED_COLOURS)), strict=False))
MARKERS = dict(zip(ORDER, cycle("osD^vP*X<>phdH"), strict=False))
OURS = FIRST_COLOURS[0]
"""Colour of our bars in plots of published figures."""
PAPER = "#555555"
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f3c8d", *MORE_COLOURS)
"""Colours of our series in plots of published figures: all different, none grey."""
MARKS = "soD^vPX*<>phdH"


def series(count: int) -> list[tuple[str, str]]:
    """A colour and a mark for each of ``count`` series of ours. Raises ValueError if there are more than colours."""
    if count > len(SERIES):
        raise ValueError(f"{count} series in one plot, but {len(SERIES)} colours: draw fewer")
    return [(SERIES[i], MARKS[i % len(MARKS)]) for i in range(count)]


def greys(count: int) -> list[str]:
    """A grey for each of ``count`` series of a paper, from dark to light."""
    levels = [0.1 + 0.62 * i / max(1, count - 1) for i in range(count)]
    return [matplotlib.colors.to_hex((level, level, level)) for level in levels]


NUMBER: dict[str, Any] = {
    "fontsize": 6, "color": "#000000", "zorder": 8, "path_effects": [patheffects.withStroke(linewidth=1.6, foreground="white")],
}  # fmt: skip
"""Style of the numbers beside published marks."""


def number(value: float) -> str:
    """A figure as it stands beside its mark."""
    return f"{value:,.4g}" if value < 1e4 else f"{value:,.0f}"


def published(
    axis: Axes,
    x: Sequence[float],
    y: Sequence[float],
    label: str,
    look: tuple[str, str],
    apart: tuple[float, float] = (0, 8),
    numbers: slice = slice(None),
) -> None:
    """Marks of a paper, above ours, and ``apart`` from them their ``numbers`` (all)."""
    colour, mark = look
    axis.plot(
        list(x), list(y), label=label, color=colour, marker=mark, linestyle="--", linewidth=1, markersize=6.5, markeredgecolor="white", markeredgewidth=0.7, zorder=6
    )  # fmt: skip
    for at, value in list(zip(x, y, strict=True))[numbers]:
        axis.annotate(number(value), (at, value), apart, textcoords="offset points", ha="center", va="center", **NUMBER)


DOTS = "...."
LOADED = "started under load"
"""Legend of hollow marks and dotted bars."""


def mark_loaded(axis: Axes, x: Iterable[float], y: Iterable[float], colour: str, mark: str, size: float = 4) -> None:
    """Makes marks hollow: these measurements started under load."""
    axis.plot(list(x), list(y), marker=mark, linestyle="none", color=colour, markerfacecolor="white", markersize=size, zorder=4)


def dot_loaded(bars: Iterable[Rectangle], loaded: Iterable[bool]) -> None:
    """Dots bars whose measurements started under load."""
    for bar, flag in zip(bars, loaded, strict=True):
        if flag:
            bar.set_hatch(DOTS)
            bar.set_edgecolor("white")


plt.rcParams.update(
    {
        "font.size": 9,
        "axes.titlesize": 10,
        "axes.grid": True,
        "grid.alpha": 0.3,
        "axes.axisbelow": True,
        "legend.fontsize": 8,
        "legend.frameon": False,
        "figure.dpi": 150,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
)


def figure(panels: int = 1, width: float = 3.6, height: float = 3.0) -> tuple[Figure, list[Axes]]:
    """A figure with panels, at most two in a row, so that they are legible in print."""
    columns = min(panels, 2)
    rows = -(-panels // columns)
    made, grid = plt.subplots(rows, columns, figsize=(width * columns, height * rows), squeeze=False, layout="constrained")
    axes = list(grid.flat)
    for spare in axes[panels:]:
        made.delaxes(spare)
    return made, axes[:panels]


def row_of_panels(panels: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """A figure with its panels in one row, which share the vertical axis."""
    made, grid = plt.subplots(1, panels, figsize=(width, height), squeeze=False, layout="constrained", sharey=True)
    return made, list(grid.flat)


def legend_below(made: Figure, axes: list[Axes], columns: int = 4, loaded: bool = False) -> None:
    """One legend for all panels, below them; ``loaded``: with an entry for hollow marks and dotted bars."""
    entries: dict[str, Artist] = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    for label, handle in entries.items():
        first = handle.patches[0] if isinstance(handle, BarContainer) and len(handle.patches) else None
        if isinstance(first, Rectangle) and first.get_hatch() == DOTS:
            entries[label] = Rectangle((0, 0), 1, 1, color=first.get_facecolor())
    if loaded:
        entries[f"hollow or dotted: {LOADED}"] = Line2D([], [], marker="o", linestyle="none", color="#222222", markerfacecolor="white")
    if entries:
        made.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=min(columns, len(entries)))


def decades(panels: Axes | Sequence[Axes], which: Literal["x", "y"] = "y") -> None:
    """Sets logarithmic axes that end at powers of ten, so that they have labels; all panels get the same limits."""
    axes = [panels] if isinstance(panels, Axes) else panels
    limits = [axis.dataLim for axis in axes]
    high = max(float((d.intervaly if which == "y" else d.intervalx)[1]) for d in limits)
    low = min(float(max(d.intervaly[0], d.minposy) if which == "y" else max(d.intervalx[0], d.minposx)) for d in limits)
    for axis in axes:
        (axis.set_yscale if which == "y" else axis.set_xscale)("log")
        if 0 < low <= high < float("inf"):
            bottom, top = math.floor(math.log10(low) - 0.06), math.ceil(math.log10(high) + 0.06)
            (axis.set_ylim if which == "y" else axis.set_xlim)(10.0**bottom, 10.0 ** max(top, bottom + 1))


def ticks(axis: Axes, values: Iterable[float]) -> None:
    """Sets labelled ticks at these values of the horizontal axis, and no others."""
    ordered = sorted({float(v) for v in values})
    axis.set_xticks(ordered, [f"{v:g}" for v in ordered])
    axis.xaxis.set_minor_locator(NullLocator())


def protocols(names: Iterable[str]) -> list[str]:
    """Protocols in the order of the threat-model table."""
    present = set(names)
    return [name for name in ORDER if name in present]
