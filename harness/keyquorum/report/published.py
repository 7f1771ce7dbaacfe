"""Plots of published figures against a number of parties (``published_bars``: of those that stand alone), ours beside them wherever there is something of the same kind. They stand side by side and do not
race: hardware, parameters and often the security differ, and every caption says how."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from keyquorum.bench import published

from . import style
from .data import select

Ours = Callable[[pd.DataFrame], pd.DataFrame]
"""Ours as columns ``x``, ``y``, ``low``, ``high``, ``label``."""
PAPERS = {
    "000": "hardware not stated; 1 Gbit/s",
    "002": "c6i.2xlarge (8 vCPU) a party; LAN 1 ms, 1 Gbit/s; WAN 100 ms, 100 Mbit/s",
    "004": "2 vCPU a party; LAN 0.5 ms, 2 Gbit/s; WAN 20 ms, 500 Mbit/s",
}
"""Hardware and network of the papers, as params/published/README.md has them."""
GREYS = ("#222222", "#777777", "#aaaaaa", "#4d4d4d", "#909090", "#bbbbbb")
MARKS = ("s", "o", "^", "D", "v", "P")


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


def _points(
    rows: pd.DataFrame, scale: float, label: Callable[[pd.Series], str], column: str = "seconds"
) -> pd.DataFrame:
    def values(suffix: str) -> pd.Series:
        return rows[column + suffix] / rows["batch"] * scale

    labels = [label(row) for _, row in rows.iterrows()]
    return pd.DataFrame(
        {"x": rows["parties"], "y": values(""), "low": values("_low"), "high": values("_high"), "label": labels}
    )


def _where(row: pd.Series) -> str:
    return f", {row['rtt_ms']:g} ms" if row["rtt_ms"] > 0 else ", one machine"


def _sampling(name: str, scale: float) -> Ours:
    def make(table: pd.DataFrame) -> pd.DataFrame:
        rows = select(table, suite="sampling", backend="embedded", protocol="semi2k")
        return _points(
            rows[rows["name"].str.startswith(name)], scale, lambda r: f"ours, {r['name']}, semi2k{_where(r)}"
        )

    return make


def _conversion(name: str, scale: float) -> Ours:
    def make(table: pd.DataFrame) -> pd.DataFrame:
        rows = select(table, suite="conversion", backend="embedded", protocol=["semi2k", "semi"])
        return _points(
            rows[rows["name"].str.startswith(name)], scale, lambda r: f"ours, {r['name']}, {r['protocol']}{_where(r)}"
        )

    return make


def _lwe(column: str, shift: bool = False) -> Ours:
    """Decryptions of LWE: one alone (000), or of a batch (002, against the corruptions tolerated)."""

    def make(table: pd.DataFrame) -> pd.DataFrame:
        rows = select(table, suite="decrypt", backend="embedded")
        rows = rows[rows["name"].str.startswith("lwe") & ((rows["batch"] > 1) == shift)]
        if not shift:  # as in the paper: a dishonest majority, exact, over links
            rows = rows[(rows["protocol"] == "semi") & (rows["rtt_ms"] > 0) & rows["name"].str.contains("ltz")]
        made = _points(rows, 1e3, lambda r: f"ours, {r['name']}, {r['protocol']}{_where(r)}", column)
        if shift:
            made["x"] = [
                n - 1 if p == "semi" else (n - 1) // 2 for n, p in zip(rows["parties"], rows["protocol"], strict=True)
            ]
        return made

    return make


def _rates(table: pd.DataFrame) -> pd.DataFrame:
    """Decryptions of LWE a second, of batches, dishonest majority."""
    rows = select(table, suite="decrypt", backend="embedded", protocol="semi", parameters="lwe64-p2")
    rows = rows[rows["name"].str.startswith("lwe") & (rows["batch"] > 1)]
    made = _points(rows, 1.0, lambda r: f"ours, {r['name']}, {r['protocol']}{_where(r)}", "online_seconds")
    made["y"], made["low"], made["high"] = 1 / made["y"], 1 / made["high"], 1 / made["low"]
    return made


def _keygen(protocols: list[str]) -> Ours:
    def make(table: pd.DataFrame) -> pd.DataFrame:
        rows = select(table, suite="keygen", backend="embedded", protocol=protocols)
        rows = rows[rows["name"].str.startswith("public")]
        return _points(rows, 1.0, lambda r: f"ours, {r['parameters']}, {r['protocol']}{_where(r)}")

    return make


def _cnn(phase: str) -> Ours:
    def make(table: pd.DataFrame) -> pd.DataFrame:
        rows = select(table, suite=f"cnn: {phase}")
        return _points(rows.assign(batch=1), 1.0, lambda r: f"ours, {r['protocol']}{_where(r)}")

    return make


LAN_WAN = "LAN: 0.5 ms, 2 Gbit/s; WAN: 20 ms, 500 Mbit/s; one instance of 2 vCPU a party."
ONE_MACHINE = "Ours: all parties on one machine, which adds up their CPU time."
PLOTS = [
    Published(
        "000_slide_online_latency", "Online latency of one decryption", "000 (ePrint 2025/1781)", "online_ms", "ms",
        series=("ping_ms",), ours=_lwe("online_seconds"), note=f"Theirs: hardware not stated. Ours: LWE (lwe64-p2; shamir: lwe53-p16), stored material, simulated links of 1 Gbit/s. {ONE_MACHINE}",
    ),
    Published(
        "000_slide_throughput", "Latency against Noah's Ark", "000 (ePrint 2025/1781)", "latency_ms", "ms", series=("protocol",),
        ours=_lwe("online_seconds"), note=f"Theirs: 1 ms, 1 Gbit/s. Ours: LWE (lwe64-p2; shamir: lwe53-p16), stored material. {ONE_MACHINE}",
    ),
    Published(
        "000_slide_throughput", "Decryptions a second", "000 (ePrint 2025/1781)", "decryptions_per_second", "decryptions a second",
        series=("protocol",), ours=lambda t: _rates(t),
        note=f"Theirs: 1 ms, 1 Gbit/s. Ours: LWE (lwe64-p2), one batch at a time, stored material. {ONE_MACHINE}",
    ),
    Published(
        "002_table1_decryption", "Decryption", "002 (Ajax), table 1", "online_ms", "ms, online", x="corruption_threshold",
        series=("protocol", "network"), xlabel="corruptions t", ours=_lwe("online_seconds", shift=True),
        note=f"Theirs: averaged over a batch of 20,000 (Ajax), c6i.2xlarge a party. Ours: LWE (lwe64-p2; shamir: lwe53-p16), averaged over a batch. {ONE_MACHINE}",
    ),
    Published(
        "002_section1_end_to_end", "Key generation", "002 (Ajax), section 1.1", "keygen_seconds", "seconds",
        ours=_keygen(["shamir", "rep-field"]), note=f"Theirs: keys of TFHE. Ours: public and relinearisation key of SEAL. {ONE_MACHINE}",
    ),
    Published(
        "004_table2_gaussian", "Discrete Gaussian, deviation 3.2", "004 (GMPFHE), table 2", "ms", "ms a sample",
        ours=_sampling("discrete Gaussian", 1e3), note=f"{LAN_WAN} {ONE_MACHINE} A sample of a batch.",
    ),
    Published(
        "004_table3_fixed_weight", "Vector of Hamming weight 64", "004 (GMPFHE), table 3", "seconds", "seconds",
        series=("phi_m", "network"), ours=lambda t: _sampling("Hamming weight", 1.0)(t).pipe(_whole_vectors, t),
        note=f"{LAN_WAN} {ONE_MACHINE} Lengths as in the legend.",
    ),
    *(
        Published(
            "004_table4_conversion", f"Conversion: {theirs}", "004 (GMPFHE), table 4", "us", "µs a value",
            where=(("operation", theirs),), ours=_conversion(ours, 1e6), note=f"{LAN_WAN} {ONE_MACHINE} A value of a batch.",
        )
        for theirs, ours in (("Z2 to Zq", "Z2 to Zq"), ("Z3 to Zq", "Z3 to Zq"), ("Zq to bits", "Zq to Z2"))
    ),
    Published(
        "004_table5_cnn", "Key generation for a CNN", "004 (GMPFHE), table 5", "seconds", "seconds",
        where=(("operation", "KeyGen"),), ours=_cnn("keys"),
        note=f"{LAN_WAN} CKKS, N = 16384, 484 bits; ours 428 bits and seven Galois keys. {ONE_MACHINE}",
    ),
    Published(
        "004_table5_cnn", "Decryption of a CNN's result", "004 (GMPFHE), table 5", "seconds", "seconds",
        where=(("operation", "Dec"),), ours=_cnn("decryption"),
        note=f"{LAN_WAN} Theirs: one digit. Ours: all ciphertexts of the run together, flooded. {ONE_MACHINE}",
    ),
    Published(
        "004_table6_key_sizes", "Sizes of keys", "004 (GMPFHE), table 6", "mb", "MB", series=("protocol", "key"),
        note="A key that does not depend on the number of parties is drawn as a level line.",
    ),
]  # fmt: skip


def _whole_vectors(points: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """A batch is one vector here, not one result an entry."""
    sizes = table.loc[points.index, "batch"]
    points[["y", "low", "high"]] = points[["y", "low", "high"]].mul(sizes, axis=0)
    points["label"] = [f"{label}, length {size}" for label, size in zip(points["label"], sizes, strict=True)]
    return points


def draw(plot: Published, table: pd.DataFrame) -> tuple[Figure, str]:
    """The figure and its caption."""
    theirs = pd.DataFrame(published.load(plot.table))
    for column, value in plot.where:
        theirs = theirs[theirs[column] == value]
    theirs = theirs[theirs[plot.value].notna()]
    levels = theirs[theirs[plot.x].isna()]
    theirs = theirs[theirs[plot.x].notna()]
    found = plot.ours(table) if plot.ours is not None else pd.DataFrame()
    lines = sorted(theirs.groupby(list(plot.series), dropna=False, sort=False), key=lambda item: str(item[0]))
    entries = len(lines) + len(levels) + (found["label"].nunique() if len(found) else 0)
    made, (axis,) = style.figure(1, 5.4, 2.9 + 0.1 * entries)
    for i, (name, rows) in enumerate(lines):
        rows = rows.sort_values(plot.x)
        label = "paper, " + ", ".join(_words(c, v) for c, v in zip(plot.series, name, strict=True))
        x, y = rows[plot.x].astype(float), rows[plot.value].astype(float)
        axis.plot(x, y, label=label, color=GREYS[i % 6], marker=MARKS[i % 6], linestyle="--", markersize=4, linewidth=1)
    for i, (_, row) in enumerate(levels.iterrows()):
        label = "paper, " + ", ".join(_words(c, row[c]) for c in plot.series)
        axis.axhline(float(row[plot.value]), label=label, color=GREYS[(i + len(lines)) % 6], linestyle=":")
    for i, (label, rows) in enumerate(found.groupby("label") if len(found) else []):
        rows = rows.sort_values("x")
        error = [rows["y"] - rows["low"], rows["high"] - rows["y"]]
        axis.errorbar(
            rows["x"],
            rows["y"],
            error,
            label=str(label),
            color=f"C{i}",
            marker=MARKS[i % 6],
            capsize=2,
            markersize=5,
            linewidth=1.3,
        )
    axis.set(xlabel=plot.xlabel, ylabel=plot.unit)
    head(made, f"{plot.title}: {plot.paper}", plot.table, table.attrs.get("machine", "") if len(found) else "")
    style.decades(axis)
    axis.set_xscale("log", base=2)
    style.ticks(axis, [*theirs[plot.x].astype(float), *(found["x"] if len(found) else [])])
    style.legend_below(made, [axis], 2)
    missing = "" if plot.ours is None or len(found) else " Ours: not measured in these results."
    nothing = " Nothing of ours is of this kind." if plot.ours is None else ""
    return made, f"{plot.paper}, as printed (grey, dashed). {plot.note}{missing}{nothing}"


def head(made: Figure, title: str, published_table: str, machine: str, computed: bool = False) -> None:
    """Title, and below it on what was measured: theirs, and ours if ``machine`` is not empty."""
    made.suptitle(title, fontsize=10)
    lines = [f"paper: {'computed, not measured' if computed else PAPERS[published_table[:3]]}"]
    if machine:
        lines += [f"ours: {machine}, shared by all parties;", "loopback, or simulated links where a round trip is named"]
    made.axes[0].set_title("\n".join(lines), fontsize=6.5, color=style.PAPER, loc="left")


def _words(column: str, value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    names = {"ping_ms": f"{value} ms ping", "phi_m": f"length {value}"}
    return names.get(column, str(value))
