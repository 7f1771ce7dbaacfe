"""Figure 6 of paper 004: evaluation of the CNN against the number of parties, under multi-key CKKS and under a joint key."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable

import pandas as pd
from matplotlib.axes import Axes

from keyquorum.cnn.counts import counts
from keyquorum.cnn.packing import IMAGES
from keyquorum.cnn.run import DIGITS, PARAMETERS
from keyquorum.fhe.parameters import load
from keyquorum.model import published

from . import style
from .data import OWN_TABLES, select, states
from .plots import Plot

TABLE, MULTI_KEY, JOINT = "004_section6_eval", "MK-CKKS", "GMPFHE-CKKS"
SET = "mk-ckks-set2"
WEIGHTS = {"clear weights": DIGITS, "encrypted weights": "encrypted digits and model"}
PARTIES = (2, 4, 8)
NOT_YET = "not measured yet"


def relinearised() -> int:
    """Products of the network with encrypted weights that are relinearised."""
    return counts(load(PARAMETERS, warn=False), True).relinearisations


def multi_key(table: pd.DataFrame) -> list[tuple[int, float]]:
    """Parties and ms of what the network needs at least under multi-key CKKS: its relinearised products, by results/multikey.csv."""
    rows = [
        r for r in table.attrs.get("multikey", []) if (r["workload"], r["reading"], r["gadget"], r["parameters"]) == ("W2r", "multi-key", "rns", SET)
    ]
    return sorted((int(r["parties"]), relinearised() * float(r["ours"])) for r in rows)


def joint(table: pd.DataFrame, weights: str) -> float | None:
    """Our ms of one evaluation, of a set of up to 8 digits: the median of the committees, on which it does not depend. None if it was not measured."""
    rows = select(table, suite="cnn: evaluation", name=WEIGHTS[weights])
    return 1e3 * statistics.median(rows["seconds"] / (rows["batch"] / IMAGES)) if len(rows) else None


def _commits(table: pd.DataFrame) -> list[object]:
    """The commits of what :func:`evaluation` draws."""
    found = select(table, suite="cnn: evaluation", name=list(WEIGHTS.values()))
    products = [row.get("commit", "") for row in table.attrs.get("multikey", []) if (row["workload"], row["parameters"]) == ("W2r", SET)]
    return [*products, *found.get("commit", ())]


def _published(axis: Axes) -> None:
    """The paper's marks, last and on top, with their numbers; no line through parties that it does not have."""
    dark, light = style.greys(2)
    for row in published.load(TABLE):
        ms = float(str(row["ms"]))
        if row["protocol"] == MULTI_KEY:
            k = int(str(row["parties"]))
            axis.plot(
                [k],
                [ms],
                marker="o",
                color=dark,
                linestyle="none",
                markersize=7,
                markeredgecolor="white",
                zorder=7,
                label="paper 004, MK-CKKS, one digit",
            )
        else:
            axis.axhline(ms, color=light, linestyle=":", zorder=6, label="paper 004, GMPFHE-CKKS, one digit")
            k = PARTIES[-1]
        axis.annotate(f"{ms:,.0f}", (k, ms), (9, 5), textcoords="offset points", ha="left", va="bottom", **style.NUMBER)


def evaluation(table: pd.DataFrame) -> Plot | None:
    """The plot; None where nothing was measured at the sizes of papers."""
    if not any(table.attrs.get(name) for name in OWN_TABLES):
        return None
    made, (axis,) = style.figure(1, 6.4, 4.2)
    looks, missing = style.series(1 + len(WEIGHTS)), []
    points, label = multi_key(table), f"ours, {relinearised()} relinearised products of {SET}, multi-key"
    if points:
        axis.plot(
            [k for k, _ in points], [ms for _, ms in points], color=looks[0][0], marker=looks[0][1], markersize=4.5, label=f"{label} (at least)"
        )
    else:
        missing.append(label)
    for weights, (colour, _) in zip(WEIGHTS, looks[1:], strict=True):
        ms, label = joint(table, weights), f"ours, joint key, {weights}, {PARAMETERS}, a set of up to {IMAGES} digits, no link"
        if ms is None:
            missing.append(label)
        else:
            axis.axhline(ms, color=colour, linewidth=1.3, label=label)
            axis.annotate(f"{ms:,.0f}", (PARTIES[0], ms), (-9, 4), textcoords="offset points", ha="right", va="bottom", color=colour, fontsize=6)
    for label in missing:
        axis.plot([], [], linestyle="none", label=f"{label}: {NOT_YET}")
    _published(axis)
    axis.set(
        xlabel="parties k",
        ylabel="ms, one evaluation",
        title="Evaluation of the CNN: paper 004, figure 6\npaper: computed from figures of its reference for MK-CKKS",
    )
    axis.set_xscale("log", base=2)
    axis.set_xlim(1.6, 10)
    axis.set_yscale("log")
    highest = max(ms for _, ms in [*points, (0, 1e3)])
    axis.set_ylim(1e2, 10.0 ** math.ceil(math.log10(2 * highest)))
    style.ticks(axis, PARTIES)
    style.legend_below(made, [axis], 1)
    return made, (
        "Paper 004, figure 6 (grey), as printed in section 6.2.1: MK-CKKS for two parties, and its own evaluation, which does not depend on the number of parties. Ours: stock SEAL under "
        "a joint key, on one core, is a level line too. Multi-key: the relinearised products alone of the network with encrypted weights, each as long as one of ours in the form of "
        "MK-CKKS; rotations, sums and rescalings are not counted, so the evaluation takes at least that."
        + (f" Of ours {len(missing)} series are {NOT_YET}." if missing else "")
        + states(_commits(table))
    )


PLOTS: dict[str, tuple[str, Callable[[pd.DataFrame], Plot | None]]] = {
    f"published_{TABLE}_2": ("Evaluation of a CNN against the number of parties, beside paper 004", evaluation)
}
"""Title and function of the plot."""

__all__ = ["PLOTS", "evaluation", "joint", "multi_key", "relinearised"]
