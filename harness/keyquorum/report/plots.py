"""Plots of our own results. Each gives a figure and its caption, or None where the results do not have it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from . import style
from .data import select

Plot = tuple[Figure, str]
NAMES = {"seconds": "seconds", "online_seconds": "seconds, online"}


def _line(axis: Axes, table: pd.DataFrame, x: str, y: str, label: str, protocol: str, dashed: bool = False) -> None:
    table = table.sort_values(x)
    error = None
    if f"{y}_low" in table:
        error = np.maximum(0, np.stack([table[y] - table[f"{y}_low"], table[f"{y}_high"] - table[y]]))
    axis.errorbar(
        table[x], table[y], yerror(error), label=label, color=style.COLOURS[protocol], marker=style.MARKERS[protocol],
        linestyle="--" if dashed else "-", capsize=2, markersize=4, linewidth=1.2,
    )  # fmt: skip


def yerror(error: np.ndarray | None) -> np.ndarray | None:
    """No bars where no run differs."""
    return error if error is not None and bool((error > 0).any()) else None


def threat_models(table: pd.DataFrame) -> Plot | None:
    """Cost of primitives by protocol."""
    chosen = select(table, suite="primitives", backend="embedded", link="")
    chosen = chosen[chosen["parties"] == chosen.groupby("protocol")["parties"].transform("min")]
    if chosen.empty:
        return None
    chosen = chosen.assign(
        us=chosen["seconds"] / chosen["batch"] * 1e6, sent=chosen["sent_per_party"] / chosen["batch"]
    )
    names, present = list(dict.fromkeys(chosen["name"])), style.protocols(chosen["protocol"])
    made, axes = style.figure(2, 4.2, 3.4)
    for axis, column, label in zip(
        axes, ("us", "sent"), ("µs an operation", "bytes sent by a party an operation"), strict=True
    ):
        width = 0.8 / len(present)
        for i, protocol in enumerate(present):
            rows = chosen[chosen["protocol"] == protocol].set_index("name").reindex(names)
            places = np.arange(len(names)) + (i - (len(present) - 1) / 2) * width
            count = int(rows["parties"].dropna().iloc[0])
            axis.bar(places, rows[column], width, label=f"{protocol} (n = {count})", color=style.COLOURS[protocol])
        style.decades(axis)
        axis.set_xticks(range(len(names)), [n.replace(" of ", "\nof ") for n in names], rotation=25, ha="right")
        axis.set_ylabel(label)
        axis.grid(axis="x", visible=False)
    style.legend_below(made, axes)
    sizes = ", ".join(f"{n}: {b}" for n, b in chosen.groupby("name")["batch"].first().items())
    return made, (
        "What an operation costs under each threat model, correlated randomness included: time (slowest party, median of runs) and "
        f"payload sent by one party (mean). In batches ({sizes}); all parties on one machine, no simulated delay. A bar that is missing "
        "or does not rise above the axis: the protocol does not have the operation, or sends nothing for it."
    )


def scaling(table: pd.DataFrame) -> Plot | None:
    """Key generation and decryption against the number of parties."""
    panels = [("keygen", "key generation"), ("decrypt", "decryption of one ciphertext")]
    made, axes = style.figure(2, 4.0, 3.2)
    drawn, captions = False, []
    for axis, (suite, title) in zip(axes, panels, strict=True):
        rows = select(table, suite=suite, backend="embedded", link="", batch=1)
        if suite == "decrypt":
            rows = rows[rows["name"].str.contains("bfv.*circuit")]
        if rows.empty:
            axis.set_axis_off()
            continue
        parameters = rows.groupby("parameters")["parties"].nunique().idxmax()
        rows = rows[rows["parameters"] == parameters]
        for protocol in style.protocols(rows["protocol"]):
            _line(axis, rows[rows["protocol"] == protocol], "parties", "seconds", protocol, protocol)
        axis.set(title=title, xlabel="parties", ylabel="seconds")
        style.decades(axis)
        style.ticks(axis, rows["parties"])
        captions.append(f"{title}: {rows['name'].iloc[0]}, {parameters}")
        drawn = True
    if not drawn:
        return None
    style.legend_below(made, axes)
    return made, (
        f"Time against the number of parties ({'; '.join(captions)}). Medians, bars from the fastest to the slowest run. All parties "
        "share the cores of one machine, so CPU time adds up over the parties: on machines of their own they would be faster."
    )


def split(table: pd.DataFrame) -> Plot | None:
    """Offline and online time of decryption."""
    rows = select(table, suite="decrypt", backend="embedded", link="", batch=1)
    rows = rows[rows["parties"] == rows["parties"].min()] if len(rows) else rows
    if rows.empty:
        return None
    rows = rows.sort_values(["name", "protocol"])
    made, (axis,) = style.figure(1, 6.0, 0.9 + 0.34 * len(rows))
    labels = [f"{name}, {protocol}" for name, protocol in zip(rows["name"], rows["protocol"], strict=True)]
    places = np.arange(len(rows))
    axis.barh(places, rows["offline_seconds"], color="#999999", hatch="//", edgecolor="white", label="offline")
    axis.barh(places, rows["online_seconds"], left=rows["offline_seconds"], color="#0072b2", label="online")
    axis.set_yticks(places, labels)
    axis.invert_yaxis()
    axis.set_xlabel("seconds")
    axis.grid(axis="y", visible=False)
    style.legend_below(made, [axis])
    return made, (
        f"Where the time of a decryption goes, n = {int(rows['parties'].iloc[0])}. Offline: correlated randomness, independent of the "
        "ciphertext (oblivious transfer; protocols with an honest majority need none). Online: the rest, reading the key included."
    )


def round_trips(table: pd.DataFrame) -> Plot | None:
    """Time against the round trip of the links."""
    suites = [
        s
        for s in ("decrypt", "keygen", "primitives")
        if select(table, suite=s, backend="embedded")["rtt_ms"].nunique() > 0
    ]
    made, axes = style.figure(max(1, len(suites)), 3.8, 3.2)
    if not suites:
        return None
    captions = []
    for axis, suite in zip(axes, suites, strict=True):
        rows = select(table, suite=suite, backend="embedded").assign(rtt=lambda t: t["rtt_ms"].fillna(0))
        shaped = rows[rows["rtt"] > 0].iloc[0]
        same = ("name", "parameters", "batch")
        rows = rows[np.logical_and.reduce([rows[c] == shaped[c] for c in same])]
        for protocol in style.protocols(rows["protocol"]):
            mine = rows[rows["protocol"] == protocol]
            mine = mine[mine["parties"] == mine[mine["rtt"] > 0]["parties"].min()]
            if len(mine) > 1:
                _line(axis, mine, "rtt", "seconds", f"{protocol} (n = {int(mine['parties'].iloc[0])})", protocol)
        axis.set_xscale("symlog", linthresh=0.5)
        style.ticks(axis, rows["rtt"])
        axis.set(title=suite, xlabel="round trip, ms", ylabel="seconds")
        style.decades(axis)
        captions.append(f"{suite}: {shaped['name']}, {shaped['parameters']}, batch {int(shaped['batch'])}")
    style.legend_below(made, axes, 3)
    return made, (
        f"Time against the round trip ({'; '.join(captions)}). 0: the machine's own loopback; all others are simulated links (delay and "
        "token bucket in the transport), bandwidth as in their profiles."
    )


def traffic(table: pd.DataFrame) -> Plot | None:
    """Bytes against the number of parties."""
    panels = [s for s in ("keygen", "decrypt") if len(select(table, suite=s, link="", batch=1))]
    if not panels:
        return None
    made, axes = style.figure(len(panels), 4.0, 3.2)
    captions = []
    for axis, suite in zip(axes, panels, strict=True):
        rows = select(table, suite=suite, backend="embedded", link="", batch=1)
        rows = rows[rows["name"].str.contains("bfv.*circuit")] if suite == "decrypt" else rows
        if rows.empty:
            continue
        parameters = rows.groupby("parameters")["parties"].nunique().idxmax()
        rows = rows[rows["parameters"] == parameters].assign(mb=lambda t: t["sent_per_party"] / 1e6)
        for protocol in style.protocols(rows["protocol"]):
            _line(axis, rows[rows["protocol"] == protocol], "parties", "mb", protocol, protocol)
        axis.set(title=suite, xlabel="parties", ylabel="MB sent by a party")
        style.decades(axis)
        style.ticks(axis, rows["parties"])
        captions.append(f"{suite}: {rows['name'].iloc[0]}, {parameters}")
    style.legend_below(made, axes)
    return made, f"Payload that one party sends, mean over the parties ({'; '.join(captions)})."


def batches(table: pd.DataFrame) -> Plot | None:
    """Throughput of decryption against the size of the batch."""
    rows = select(table, suite="decrypt", backend="embedded", link="")
    rows = rows[rows["name"].str.contains("bfv.*circuit")]
    wide = rows.groupby(["protocol", "parties", "parameters"])["batch"].nunique()
    if wide.empty or wide.max() < 2:
        return None
    parameters = wide.idxmax()[2]
    made, (axis,) = style.figure(1, 4.6, 3.2)
    for protocol in style.protocols(rows["protocol"]):
        mine = rows[(rows["protocol"] == protocol) & (rows["parameters"] == parameters)]
        mine = mine[mine["parties"] == mine["parties"].min()].assign(rate=lambda t: t["batch"] / t["seconds"])
        _line(axis, mine, "batch", "rate", f"{protocol} (n = {int(mine['parties'].iloc[0])})", protocol)
    axis.set(xlabel="ciphertexts decrypted together", ylabel="ciphertexts a second", xscale="log")
    style.ticks(axis, rows["batch"])
    style.legend_below(made, [axis])
    return (
        made,
        f"Throughput of exact decryption against the batch ({parameters}): rounds and reading the key are shared by a batch.",
    )


PLOTS: dict[str, tuple[str, Callable[[pd.DataFrame], Plot | None]]] = {
    "threat_models": ("Cost per threat model", threat_models),
    "scaling": ("Scaling in the number of parties", scaling),
    "offline_online": ("Offline and online", split),
    "round_trip": ("Time against round trip", round_trips),
    "bytes": ("Communication", traffic),
    "throughput": ("Throughput against batch size", batches),
}
"""Title and function of every plot."""
