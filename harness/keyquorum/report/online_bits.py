"""Sections 2.2 and 4.3 of Ajax (paper 002): bits that are sent online in a decryption, against the corruptions t; and ours, measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from keyquorum.model import published

from . import style
from .data import states
from .plots import Plot

TABLE = "002_sections2_4_communication"
THRESHOLDS = (1, 3, 13)
"""Corruptions t of the paper's measurements."""


@dataclass(frozen=True)
class Line:
    """Bits at each of :data:`THRESHOLDS`."""

    label: str
    bits: tuple[float, ...]


def theirs() -> list[Line]:
    """The paper's lines: bits times t, or as many for any t."""
    found = []
    for row in published.load(TABLE):
        each, fixed = row["online_bits_per_threshold"], row["online_bits_per_party"]
        if each is not None or fixed is not None:
            bits = tuple(float(str(fixed)) if each is None else float(str(each)) * t for t in THRESHOLDS)
            formula = f"{fixed} for any t" if each is None else f"{each} t"
            found.append(Line(f"paper 002, {row['protocol']}, {row['context']}: {formula}", bits))
    return found


def ours(rows: Sequence[Mapping[str, str]]) -> dict[str, list[tuple[int, float]]]:
    """Of each method the corruptions t, and the bits that a party sends online: rows of results/ajax_decryption.csv, which are the same over both links."""
    found: dict[str, dict[int, float]] = {}
    for row in rows:
        if row.get("bits"):
            found.setdefault(f"ours, {row['variant']}, {row['parameters']}, that a party sends", {})[int(row["t"])] = float(row["bits"])
    return {label: sorted(points.items()) for label, points in found.items()}


def online_bits(table: pd.DataFrame) -> Plot | None:
    """The plot; None where no decryption of Ajax's sets was measured."""
    rows = table.attrs.get("ajax_decryption", [])
    measured = ours(rows)
    if not measured:
        return None
    made, (axis,) = style.figure(1, 6.4, 4.4)
    for (label, points), (colour, mark) in zip(measured.items(), style.series(len(measured)), strict=True):
        axis.plot([t for t, _ in points], [bits for _, bits in points], label=label, color=colour, marker=mark, markersize=4.5)
    lines = theirs()
    for line, grey, mark in zip(lines, style.greys(len(lines)), style.MARKS, strict=False):
        style.published(axis, THRESHOLDS, line.bits, line.label, (grey, mark), (15, 0), slice(-1, None))
    axis.set(
        xlabel="corruptions t",
        ylabel="bits, online",
        title="Online communication of one decryption\npaper 002, sections 2.2 and 4.3: computed, not measured",
    )
    style.decades(axis)
    axis.set_xscale("log")
    axis.set_xlim(0.8, 1.4 * THRESHOLDS[-1])
    style.ticks(axis, THRESHOLDS)
    style.legend_below(made, [axis], 1)
    return made, (
        "Paper 002, sections 2.2 and 4.3 (grey), as printed: bits times t, of which section 2.2 does not say whether one party sends them or all, and bits that a party sends for any t. Ours: "
        f"measured, what a party sends online in a batch of 20,000, t + 1 additive parties.{states(row.get('commit', '') for row in rows)}"
    )


PLOTS: dict[str, tuple[str, Callable[[pd.DataFrame], Plot | None]]] = {
    f"published_{TABLE}": ("Online communication of a decryption, beside Ajax", online_bits)
}
"""Title and function of the plot."""

__all__ = ["PLOTS", "TABLE", "Line", "online_bits", "ours", "theirs"]
