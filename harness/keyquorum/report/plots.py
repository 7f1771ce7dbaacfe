"""Plots of our own results. Each function returns a figure and its caption, or None if the results lack its measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from keyquorum.model.chosen_committees import ADDITIVE, with_capability

from . import style
from .data import select, states

Plot = tuple[Figure, str]
NAMES = {"seconds": "seconds", "online_seconds": "seconds, online", "ms": "ms, online"}


SHADES = (("#f0c808", "v"), ("#8c1c13", "s"), ("#1b5e20", "D"), ("#ff595e", "o"), ("#00a6a6", "^"), ("#1d3557", "P"), ("#8ac926", "X"))
"""Colours and marks of lines of one protocol, different from those of the protocols."""


def _line(axis: Axes, table: pd.DataFrame, x: str, y: str, label: str, protocol: str, shade: int | None = None) -> None:
    table = table.sort_values(x)
    colour, mark = (style.COLOURS[protocol], style.MARKERS[protocol]) if shade is None else SHADES[shade]
    error = None
    if f"{y}_low" in table:
        error = np.maximum(0, np.stack([table[y] - table[f"{y}_low"], table[f"{y}_high"] - table[y]]))
    axis.errorbar(
        table[x], table[y], yerror(error), label=label, color=colour, marker=mark, linestyle="-", capsize=2, markersize=4, linewidth=1.2,
    )  # fmt: skip
    loaded = table[table["loaded"]]
    if len(loaded):
        style.mark_loaded(axis, loaded[x], loaded[y], colour, mark)


def _any_loaded(tables: Iterable[pd.DataFrame]) -> bool:
    return any(bool(table["loaded"].any()) for table in tables)


def yerror(error: np.ndarray | None) -> np.ndarray | None:
    """The error bars; None if all runs are equal."""
    return error if error is not None and bool((error > 0).any()) else None


VERIFIED = {"products": "product", "random_bits": "random bit"}
"""Rows of results/verified.csv, and the operations of the primitives that they are."""
VERIFIED_BATCH = "1,000,000, with all their checks"


def _verified(table: pd.DataFrame) -> pd.DataFrame:
    """Protocols that verify products, three parties: rows of results/verified.csv that run the protocol itself, not its semi-honest part."""
    own = [r for r in table.attrs.get("verified", []) if r["engine"] == "embedded" and r["program_of"] == r["protocol"] and r["row"] in VERIFIED]
    return pd.DataFrame([
        {
            "name": VERIFIED[r["row"]], "protocol": r["protocol"], "parties": VERIFIED_PARTIES, "batch": int(r["items"]), "loaded": False,
            "us": float(r["seconds"]) / int(r["items"]) * 1e6, "sent": float(r["mb"]) * 1e6 / VERIFIED_PARTIES / int(r["items"]),
            "commit": r.get("commit", ""),
        }
        for r in own
    ])  # fmt: skip


VERIFIED_PARTIES = 3


def threat_models(table: pd.DataFrame) -> Plot | None:
    """Cost of primitives by protocol."""
    chosen = select(table, suite="primitives", backend="embedded", link="")
    chosen = chosen[chosen["parties"] == chosen.groupby("protocol")["parties"].transform("min")]
    if chosen.empty:
        return None
    chosen = chosen.assign(us=chosen["seconds"] / chosen["batch"] * 1e6, sent=chosen["sent_per_party"] / chosen["batch"])
    chosen = pd.concat([chosen, _verified(table)], ignore_index=True)
    names, present = list(dict.fromkeys(chosen["name"])), style.protocols(chosen["protocol"])
    made, axes = style.figure(2, 5.4, 3.6)
    for axis, column, label in zip(axes, ("us", "sent"), ("µs", "bytes that a party sends"), strict=True):
        width = 0.8 / len(present)
        for i, protocol in enumerate(present):
            rows = chosen[chosen["protocol"] == protocol].set_index("name").reindex(names)
            positions = np.arange(len(names)) + (i - (len(present) - 1) / 2) * width
            count = int(rows["parties"].dropna().iloc[0])
            bars = axis.bar(positions, rows[column], width, label=f"{protocol} (n = {count})", color=style.COLOURS[protocol])
            style.dot_loaded(bars, rows["loaded"].fillna(False).astype(bool))
        style.decades(axis)
        axis.set_xticks(range(len(names)), [n.replace(" of ", "\nof ") for n in names], rotation=25, ha="right")
        axis.set_ylabel(label)
        axis.grid(axis="x", visible=False)
    style.legend_below(made, axes, 5, loaded=bool(chosen["loaded"].any()))
    sizes = ", ".join(f"{n}: {b:,.0f}" for n, b in chosen.groupby("name", sort=False)["batch"].first().items())
    return made, (
        "What an operation costs under each threat model, correlated randomness included: time (slowest party, median of runs) and "
        f"payload sent by one party (mean), for each operation. In batches ({sizes}; protocols that verify products: {VERIFIED_BATCH}); all parties on one machine, no simulated delay. A bar that is missing "
        f"or does not rise above the axis: the protocol does not have the operation, sends nothing for it, or it was not measured.{states(chosen['commit'])}"
    )


def _latencies(table: pd.DataFrame) -> pd.DataFrame:
    """Single decryptions of LWE over links of 1 ms, opened directly: results/latency.csv and latency_macs.csv."""
    rows = [
        r
        for name in ("latency", "latency_macs")
        for r in table.attrs.get(name, [])
        if (r["openings"], r["link"].partition(",")[0]) == ("direct", "rtt=1")
    ]
    return pd.DataFrame([
        {
            "name": f"{r['variant']}, stored preprocessing", "parameters": "lwe64-p2", "protocol": r["protocol"], "parties": int(r["n"]), "loaded": False,
            "ms": float(r["ms"]), "ms_low": float(r["least_ms"]), "ms_high": float(r["most_ms"]), "commit": r.get("commit", ""),
        }
        for r in rows
    ])  # fmt: skip


def scaling(table: pd.DataFrame) -> Plot | None:
    """Key generation and decryption against the number of parties."""
    plain = select(table, backend="embedded", link="", batch=1)
    keys, opened = select(plain, suite="keygen"), select(plain, suite="decrypt")
    secrets = keys["name"].str.startswith("secret of LWE")
    keys, secrets = keys[~secrets], keys[secrets]
    lwe = opened[opened["name"] == "lwe round_ltz_table"]
    if table.attrs.get("latency_macs"):  # by number of parties, in a panel of its own; the sweep has two parties
        lwe = lwe[~lwe["protocol"].isin(with_capability(macs=True))]
    with_macs = set(keys[keys["protocol"].isin(with_capability(macs=True))]["parameters"])
    panels = [
        ("keys", "seconds", keys[~keys["parameters"].isin(with_macs)]),
        ("keys, small set, MACs beside", "seconds", keys[keys["parameters"].isin(with_macs)]),
        ("secrets of LWE", "seconds", secrets),
        ("decryption of a BFV ciphertext", "seconds", opened[opened["name"].str.contains("bfv.*circuit")]),
        ("decryption of an LWE ciphertext", "online_seconds", lwe),
        ("the same over links of 1 ms", "ms", _latencies(table)),
    ]
    panels = [panel for panel in panels if len(panel[2])]
    if not panels:
        return None
    made, axes = style.figure(len(panels), 3.6, 2.8)
    captions, commits = [], list[object]()
    for axis, (title, value, rows) in zip(axes, panels, strict=True):
        # Of several parameter sets the one with the most numbers of parties; LWE has a set of its own for shamir.
        chosen = [rows.groupby("parameters")["parties"].nunique().idxmax()]
        rows = rows[rows["parameters"].isin(chosen)]
        for protocol in style.protocols(rows["protocol"]):
            _line(axis, rows[rows["protocol"] == protocol], "parties", value, protocol, protocol)
        axis.set(title=title, xlabel="parties", ylabel=NAMES[value])
        style.decades(axis)
        style.ticks(axis, rows["parties"])
        captions.append(f"{title}: {rows['name'].iloc[0]}, {chosen[0]}")
        commits += list(rows["commit"])
    style.legend_below(made, axes, 6, _any_loaded(panel[2] for panel in panels))
    return made, (
        f"Time against the number of parties ({'; '.join(captions)}). Medians, bars from the fastest to the slowest run. All parties "
        f"share the cores of one machine, so CPU time adds up over the parties: on machines of their own they would be faster.{states(commits)}"
    )


def split(table: pd.DataFrame) -> Plot | None:
    """Offline and online share of the time of decryption, at the number of parties with the most measurements."""
    rows = select(table, suite="decrypt", backend="embedded", link="", batch=1)
    rows = rows[rows["parties"] == rows.groupby("parties").size().idxmax()] if len(rows) else rows
    if rows.empty:
        return None
    rows = rows.sort_values(["name", "protocol"])
    rows = rows.assign(total=rows["offline_seconds"] + rows["online_seconds"])
    made, (axis,) = style.figure(1, 6.0, 0.9 + 0.3 * len(rows))
    labels = [f"{r.name_}, {r.protocol}: {1e3 * r.total:,.3g} ms" for r in rows.rename(columns={"name": "name_"}).itertuples()]
    positions, offline = np.arange(len(rows)), 100 * rows["offline_seconds"] / rows["total"]
    axis.barh(positions, offline, color="#e69f00", hatch="//", edgecolor="white", label="offline")
    style.dot_loaded(axis.barh(positions, 100 - offline, left=offline, color="#0072b2", label="online"), rows["loaded"])
    axis.set_yticks(positions, labels)
    axis.invert_yaxis()
    axis.set_xlabel("% of the time")
    axis.grid(axis="y", visible=False)
    style.legend_below(made, [axis], loaded=bool(rows["loaded"].any()))
    return made, (
        f"Where the time of a decryption goes, n = {int(rows['parties'].iloc[0])}; beside each name the time in all. Offline: correlated randomness, independent "
        f"of the ciphertext (oblivious transfer; protocols with an honest majority need none), and for LWE the preprocessing of the pool. Online: the rest, reading the key included.{states(rows['commit'])}"
    )


def round_trips(table: pd.DataFrame) -> Plot | None:
    """Time against the round trip of the links."""
    rows = select(table, backend="embedded").assign(rtt=lambda t: t["rtt_ms"].fillna(0))
    panels = []
    for title, suite, name, value in (
        (f"LWE decryption, {ADDITIVE}", "decrypt", "lwe round_ltz_table", "online_seconds"),
        ("BFV decryption", "decrypt", "bfv round_ltz_circuit", "seconds"),
        ("keys", "keygen", "public", "seconds"),
        ("products", "primitives", "product", "seconds"),
    ):
        found = rows[(rows["suite"] == suite) & rows["name"].str.startswith(name)]
        found = found[(found["protocol"] == ADDITIVE) | (not name.startswith("lwe"))]
        shaped = found[found["rtt"] > 0]
        if shaped.empty:
            continue
        found = found[np.logical_and.reduce([found[c] == shaped.iloc[0][c] for c in ("parameters", "batch")])]
        panels.append((title, value, found))
    if not panels:
        return None
    made, axes = style.figure(len(panels), 3.6, 2.8)
    sizes: dict[str, list[str]] = {}
    for axis, (title, value, found) in zip(axes, panels, strict=True):
        for protocol in style.protocols(found["protocol"]):
            mine = found[found["protocol"] == protocol]
            counts = sorted(set(mine[mine["rtt"] > 0]["parties"].astype(int)))
            lwe = title.startswith("LWE")
            for i, parties in enumerate(counts if lwe else counts[:1]):
                label = f"LWE, {protocol} (n = {parties})" if lwe else protocol
                sizes.setdefault(title, []).append(f"{protocol} {parties}")
                _line(axis, mine[mine["parties"] == parties], "rtt", value, label, protocol, shade=i if lwe else None)
        axis.set_xscale("symlog", linthresh=0.5)
        style.ticks(axis, found["rtt"])
        axis.set(title=title, xlabel="round trip, ms", ylabel=NAMES[value])
        style.decades(axis)
    style.legend_below(made, axes, 5, _any_loaded(panel[2] for panel in panels))
    captions = (
        f"{title}: {rows['name'].iloc[0]}, {rows['parameters'].iloc[0]}, batch {int(rows['batch'].iloc[0])}, parties: {', '.join(sizes[title])}"
        for title, _, rows in panels
    )
    return made, (
        f"Time against the round trip ({'; '.join(captions)}). 0: the machine's own loopback; all others are simulated links (delay and "
        "token bucket in the transport), bandwidth as in their profiles; each link of a party has all of it."
        + states(commit for _, _, found in panels for commit in found["commit"])
    )


def traffic(table: pd.DataFrame) -> Plot | None:
    """Bytes against the number of parties."""
    plain = select(table, backend="embedded", link="", batch=1).assign(mb=lambda t: t["sent_per_party"] / 1e6)
    keys, opened = select(plain, suite="keygen"), select(plain, suite="decrypt")
    panels = [
        ("keys", keys[keys["name"].str.startswith("public")]),
        ("decryption of a BFV ciphertext", opened[opened["name"].str.contains("bfv.*circuit")]),
        ("decryption of an LWE ciphertext", opened[opened["name"] == "lwe round_ltz_table"]),
    ]
    panels = [panel for panel in panels if len(panel[1])]
    if not panels:
        return None
    made, axes = style.figure(len(panels), 3.6, 2.8)
    captions = []
    for axis, (title, rows) in zip(axes, panels, strict=True):
        parameters = rows.groupby("parameters")["parties"].nunique().idxmax()
        rows = rows[rows["parameters"] == parameters]
        for protocol in style.protocols(rows["protocol"]):
            _line(axis, rows[rows["protocol"] == protocol], "parties", "mb", protocol, protocol)
        axis.set(title=title, xlabel="parties", ylabel="MB sent by a party")
        style.decades(axis)
        style.ticks(axis, rows["parties"])
        captions.append(f"{title}: {rows['name'].iloc[0]}, {parameters}")
    style.legend_below(made, axes, 6, _any_loaded(panel[1] for panel in panels))
    return (
        made,
        f"Payload that one party sends, offline and online, mean over the parties ({'; '.join(captions)}).{states(commit for _, rows in panels for commit in rows['commit'])}",
    )


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
    style.legend_below(made, [axis], loaded=bool(rows["loaded"].any()))
    return (
        made,
        f"Throughput of exact decryption against the batch ({parameters}): rounds and reading the key are shared by a batch.{states(rows['commit'])}",
    )


LIBRARIES = {"seal": "SEAL, one key", "openfhe": "OpenFHE, threshold"}
LIBRARY_GREYS = {"seal": "#444444", "openfhe": "#999999"}
"""Greys of the other libraries."""


def _noise(row: pd.Series) -> str:
    """What hides the key in a decryption of OpenFHE: its mode for multiparty flooding is set for BFV and BGV alone."""
    if row["backend"] != "openfhe":
        return ""
    return ", fixed noise" if row["parameters"].startswith("ckks") else ", flooded"


def peers(table: pd.DataFrame) -> Plot | None:
    """Keys and decryption beside other libraries: three parties, or one."""
    others = table[table["suite"].isin(["peers: keys", "peers: decryption"])]
    if others.empty:
        return None
    made, axes = style.figure(2, 4.6, 4.2)
    shown: list[pd.Series] = []
    for axis, suite, theirs in zip(axes, ("keygen", "decrypt"), ("peers: keys", "peers: decryption"), strict=True):
        mine = select(table, suite=suite, backend="embedded", link="", batch=1, parties=3)
        mine = mine[~mine["name"].str.contains("(?i)lwe|mask_open")]
        libraries = select(others, suite=theirs, parties=[1, 3])
        bars = [(f"{LIBRARIES[r['backend']]}, {r['parameters']}{_noise(r)}", r, LIBRARY_GREYS[r["backend"]]) for _, r in libraries.iterrows()]
        bars += [(f"{r['protocol']}, {r['parameters']}", r, style.COLOURS[r["protocol"]]) for _, r in mine.iterrows()]
        shown += [row for _, row, _ in bars]
        for position, (_, row, colour) in enumerate(bars):
            error = [[row["seconds"] - row["seconds_low"]], [row["seconds_high"] - row["seconds"]]]
            style.dot_loaded(axis.barh(position, row["seconds"], 0.7, xerr=error, capsize=2, color=colour), [row["loaded"]])
        axis.set_yticks(range(len(bars)), [label for label, _, _ in bars], fontsize=7)
        axis.invert_yaxis()
        axis.grid(axis="y", visible=False)
        style.decades(axis, "x")
        axis.set(xlabel="seconds", title={"keygen": "keys", "decrypt": "decryption of one ciphertext"}[suite])
    style.legend_below(made, axes, loaded=any(row["loaded"] for row in shown))
    return made, (
        "Public and relinearisation key, and one decryption, by three of our parties (processes, TLS, no added delay), and on the same "
        "machine by libraries without MPC: SEAL where one party has the key; OpenFHE's additive threshold FHE, all parties' work in one process, "
        "no network, on all cores, at a ring of its own choice: BFV and BGV with noise flooding, CKKS with a fixed noise. Rings differ "
        "where the names of the sets do: the same job, not the same size (`make peers` compares equal sizes). What our parties pay for: nobody ever has the key, and "
        f"BFV is decrypted exactly, without flooding.{states(row['commit'] for row in shown)}"
    )


PLOTS: dict[str, tuple[str, Callable[[pd.DataFrame], Plot | None]]] = {
    "threat_models": ("Cost per threat model", threat_models),
    "scaling": ("Scaling in the number of parties", scaling),
    "offline_online": ("Offline and online", split),
    "round_trip": ("Time against round trip", round_trips),
    "bytes": ("Communication", traffic),
    "throughput": ("Throughput against batch size", batches),
    "peers": ("Beside other libraries", peers),
}
"""Title and function of every plot."""
