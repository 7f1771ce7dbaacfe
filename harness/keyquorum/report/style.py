"""How plots look: legible in print and without colour."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

ORDER = ("ring", "rep-field", "shamir", "semi2k", "semi", "spdz2k", "mascot")
COLOURS = dict(zip(ORDER, ("#0072b2", "#56b4e9", "#009e73", "#d55e00", "#e69f00", "#cc79a7", "#7f3c8d"), strict=True))
MARKERS = dict(zip(ORDER, "osD^vP*", strict=True))
PAPER = "#555555"

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
    """A figure with panels, two side by side: more would be too small in print."""
    columns = min(panels, 2)
    rows = -(-panels // columns)
    made, grid = plt.subplots(rows, columns, figsize=(width * columns, height * rows), squeeze=False, layout="constrained")
    axes = list(grid.flat)
    for spare in axes[panels:]:
        made.delaxes(spare)
    return made, axes[:panels]


def legend_below(made: Figure, axes: list[Axes], columns: int = 4) -> None:
    """One legend for all panels, below them."""
    entries = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    if entries:
        made.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=min(columns, len(entries)))


def decades(panels: Axes | Sequence[Axes], which: Literal["x", "y"] = "y") -> None:
    """Logarithmic axes that end at powers of ten, so that they always have labels; of several panels, at the same ones."""
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
    """Labelled ticks at these places of the horizontal axis, and no others."""
    places = sorted({float(v) for v in values})
    axis.set_xticks(places, [f"{v:g}" for v in places])
    axis.xaxis.set_minor_locator(NullLocator())


def protocols(names: Iterable[str]) -> list[str]:
    """Protocols in the order of the threat-model table."""
    present = set(names)
    return [name for name in ORDER if name in present]
