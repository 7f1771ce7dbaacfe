"""Plots of published figures against a number of parties (``published_bars``: of single figures), with our figures of the same kind where there are
any. They are no race: hardware, parameters and often the security differ, as every caption states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from keyquorum.cnn.packing import IMAGES
from keyquorum.cnn.run import DIGITS
from keyquorum.cnn.run import PARAMETERS as CNN_SET
from keyquorum.fhe.parameters import load
from keyquorum.model import published
from keyquorum.model.chosen_committees import ADDITIVE, ADDITIVE_RING, SHAMIR, lwe_set, with_capability
from keyquorum.model.idle import IDLE_CORES
from keyquorum.model.protocols import COMMITTEES

from . import style
from .data import select

Ours = Callable[[pd.DataFrame], pd.DataFrame]
"""A function that selects our figures, as columns ``x``, ``y``, ``low``, ``high``, ``label``."""
PAPERS = {
    "000": "hardware not stated; 1 Gbit/s",
    "002": "c6i.2xlarge (8 vCPU) a party; LAN 1 ms, 1 Gbit/s; WAN 100 ms, 100 Mbit/s",
    "003": "Xeon E5-2690 v4, 28 cores; network not measured",
    "004": "2 vCPU a party; LAN 0.5 ms, 2 Gbit/s; WAN 20 ms, 500 Mbit/s",
}
"""Hardware and network of the papers, from params/published/README.md."""


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
    computed: bool = False
    """Whether our figures are computed from parameters, not measured."""


def _points(rows: pd.DataFrame, scale: float, label: Callable[[pd.Series], str], column: str = "seconds") -> pd.DataFrame:
    def values(suffix: str) -> pd.Series:
        return rows[column + suffix] / rows["batch"] * scale

    labels = [label(row) for _, row in rows.iterrows()]
    return pd.DataFrame(
        {"x": rows["parties"], "y": values(""), "low": values("_low"), "high": values("_high"), "label": labels, "loaded": rows["loaded"]}
    )


DISHONEST = with_capability(dishonest_majority=True, field=True)
PAPER_SET = "ckks-16384-seed004"


def _committee(row: pd.Series) -> str:
    protocol = COMMITTEES[row["protocol"]]
    return f"{protocol.name} ({'MACs' if protocol.macs else 'products verified' if protocol.verifies_products else 'no MACs'})"


def _where(row: pd.Series) -> str:
    return f", {row['rtt_ms']:g} ms" if row["rtt_ms"] > 0 else ", one machine"


def _sampling(name: str, scale: float) -> Ours:
    def make(table: pd.DataFrame) -> pd.DataFrame:
        rows = select(table, suite="sampling", backend="embedded", protocol=ADDITIVE_RING)
        return _points(rows[rows["name"].str.startswith(name)], scale, lambda r: f"ours, {r['name']}, {ADDITIVE_RING}{_where(r)}")

    return make


def _conversion(name: str, scale: float) -> Ours:
    def make(table: pd.DataFrame) -> pd.DataFrame:
        rows = select(table, suite="conversion", backend="embedded", protocol=[ADDITIVE_RING, ADDITIVE])
        return _points(rows[rows["name"].str.startswith(name)], scale, lambda r: f"ours, {r['name']}, {r['protocol']}{_where(r)}")

    return make


def _lwe(column: str, shift: bool = False) -> Ours:
    """Decryptions of LWE: single ones (000), or in a batch (002, against the corruptions tolerated)."""

    def make(table: pd.DataFrame) -> pd.DataFrame:
        rows = select(table, suite="decrypt", backend="embedded")
        rows = rows[rows["name"].str.startswith("lwe") & ((rows["batch"] > 1) == shift)]
        if not shift:  # as in the paper: a dishonest majority, exact, over links
            rows = rows[rows["protocol"].isin(DISHONEST) & (rows["rtt_ms"] > 0) & rows["name"].str.contains("ltz")]
        made = _points(rows, 1e3, lambda r: f"ours, {r['name']}, {_committee(r)}{_where(r)}", column)
        if shift:
            made["x"] = [COMMITTEES[p].most_corruptions(n) for n, p in zip(rows["parties"], rows["protocol"], strict=True)]
        return made

    return make


def _rates(table: pd.DataFrame) -> pd.DataFrame:
    """Decryptions of LWE a second, of batches over the paper's link, dishonest majority."""
    rows = select(table, suite="decrypt", backend="embedded", protocol=ADDITIVE, parameters="lwe64-p2", link="paper000-1ms")
    rows = rows[rows["name"].str.startswith("lwe") & (rows["batch"] > 1)]
    made = _points(rows, 1.0, lambda r: f"ours, {r['name']}, {_committee(r)}{_where(r)}", "online_seconds")
    made["y"], made["low"], made["high"] = 1 / made["y"], 1 / made["high"], 1 / made["low"]
    return made


def _fixed_weight(table: pd.DataFrame) -> pd.DataFrame:
    """Whole vectors of the paper's own lengths, by the best method: results/paper004.csv."""
    rows = [
        r for r in table.attrs.get("paper004", []) if (r["table"], r["quantity"], r["best"], r.get("link", "none")) == ("3", "seconds", "yes", "none")
    ]
    values = [float(r["ours"]) for r in rows]
    labels = [f"ours, {r['method']}, {ADDITIVE_RING}, one machine, length {r['row'].split()[-1]}" for r in rows]
    loaded = [float(r.get("busy") or 0) > IDLE_CORES for r in rows]
    return pd.DataFrame({"x": [int(r["parties"]) for r in rows], "y": values, "low": values, "high": values, "label": labels, "loaded": loaded})


def _own_rows(rows: list[dict[str, str]], x: str, y: str, label: Callable[[dict[str, str]], str]) -> pd.DataFrame:
    """Points of a table of our own: single runs."""
    values = [float(r[y]) for r in rows]
    loaded = [float(r.get("busy") or 0) > IDLE_CORES for r in rows]
    return pd.DataFrame(
        {"x": [int(r[x]) for r in rows], "y": values, "low": values, "high": values, "label": [label(r) for r in rows], "loaded": loaded}
    )


def _ajax_keys(table: pd.DataFrame) -> pd.DataFrame:
    """Keys of the paper's own set: results/ajax.csv."""
    return _own_rows(
        table.attrs.get("ajax", []),
        "parties",
        "seconds",
        lambda r: f"ours, {r['protocol']}, noise {r['noise']} ({float(r['growth']):.3g}), one machine",
    )


def _ajax_decryption(column: str) -> Ours:
    """Batches of 20,000 over the paper's links: results/ajax_decryption.csv."""

    def make(table: pd.DataFrame) -> pd.DataFrame:
        rows = table.attrs.get("ajax_decryption", [])
        return _own_rows(rows, "t", column, lambda r: f"ours, {r['variant']}, {r['parameters']}, {r['link'].upper()}, simulated")

    return make


def _cnn(phase: str) -> Ours:
    """Time of key generation for a run; for other phases, which every set of ciphertexts repeats, the mean over the sets of up to eight digits."""

    def make(table: pd.DataFrame) -> pd.DataFrame:
        rows = select(table, suite=f"cnn: {phase}", name=DIGITS)
        sets = 1 if phase == "keys" else rows["batch"] / IMAGES
        of = "" if phase == "keys" else f" a set of {IMAGES} digits,"
        return _points(rows.assign(batch=sets), 1.0, lambda r: f"ours,{of} {r['protocol']}{_where(r)}")

    return make


def _key_sizes(table: pd.DataFrame) -> pd.DataFrame:
    """Sizes of keys of the paper's 484-bit set, which do not depend on the number of parties. A public key has two polynomials over all primes, a
    switching key two for every prime of a ciphertext, with 8 bytes for each coefficient."""
    parameters = load(PAPER_SET, warn=False)
    primes, degree = len(parameters.coeff_modulus), parameters.ring_degree
    public = 2 * degree * primes * 8 / 2**20
    points = [(n, f"ours, {key}, {PAPER_SET}", mib) for key, mib in (("pk", public), ("swk", (primes - 1) * public)) for n in (2, 4, 8, 16)]
    return pd.DataFrame([{"x": n, "y": mib, "low": mib, "high": mib, "label": label, "loaded": False} for n, label, mib in points])


def _modulus_bits(name: str) -> int:
    return sum(q.bit_length() for q in load(name, warn=False).coeff_modulus)


LAN_WAN = "LAN: 0.5 ms, 2 Gbit/s; WAN: 20 ms, 500 Mbit/s; one instance of 2 vCPU a party."
OPEN_MACS = "which do not say whether MACs are included"
AJAX_BATCH = "A batch of 20,000. Theirs: c6i.2xlarge a party. Ours: t + 1 additive parties, semi-honest, fresh noise."
ONE_MACHINE = "Ours: all parties on one machine, which adds up their CPU time."
PLOTS = [
    Published(
        "000_slide_online_latency", "Online latency of one decryption", "000 (ePrint 2025/1781)", "online_ms", "ms",
        series=("ping_ms",), ours=_lwe("online_seconds"), note=f"Theirs: hardware not stated, {OPEN_MACS}. Ours: LWE (lwe64-p2), stored preprocessing, simulated links of 1 Gbit/s. {ONE_MACHINE}",
    ),
    Published(
        "000_slide_throughput", "Latency against Noah's Ark", "000 (ePrint 2025/1781)", "latency_ms", "ms", series=("protocol",),
        ours=_lwe("online_seconds"), note=f"Theirs: 1 ms, 1 Gbit/s, {OPEN_MACS}. Ours: LWE (lwe64-p2), stored preprocessing. {ONE_MACHINE}",
    ),
    Published(
        "000_slide_throughput", "Decryptions a second", "000 (ePrint 2025/1781)", "decryptions_per_second", "decryptions a second",
        series=("protocol",), ours=lambda t: _rates(t),
        note=f"Theirs: 1 ms, 1 Gbit/s, {OPEN_MACS}. Ours: LWE (lwe64-p2), the same link, one batch of 1,024 at a time, stored preprocessing, no MACs. {ONE_MACHINE}",
    ),
    Published(
        "002_table1_decryption", "Decryption", "002 (Ajax), table 1", "online_ms", "ms, online", x="corruption_threshold",
        series=("protocol", "network"), xlabel="corruptions t", ours=_lwe("online_seconds", shift=True),
        note=f"Theirs: averaged over a batch of 20,000 (Ajax), c6i.2xlarge a party. Ours: LWE (lwe64-p2; {SHAMIR}: {lwe_set(SHAMIR)}), averaged over a batch. {ONE_MACHINE}",
    ),
    Published(
        "002_table1_decryption", "Decryption with the paper's batch and links", "002 (Ajax), table 1", "online_ms", "ms, online", x="corruption_threshold",
        series=("protocol", "network"), xlabel="corruptions t", ours=_ajax_decryption("online_ms"), note=f"{AJAX_BATCH} {ONE_MACHINE}",
    ),
    Published(
        "002_table1_decryption", "Decryption with its preprocessing", "002 (Ajax), table 1", "total_ms", "ms, online and offline", x="corruption_threshold",
        series=("protocol", "network"), xlabel="corruptions t", ours=_ajax_decryption("total_ms"), note=f"{AJAX_BATCH} {ONE_MACHINE}",
    ),
    Published(
        "002_section1_end_to_end", "Key generation", "002 (Ajax), section 1.1", "keygen_seconds", "seconds", ours=_ajax_keys,
        note=f"Keys with a bootstrapping key, of the paper's parameters (ajax53): 33.8 million opened residues, theirs and ours. Ours: no added delay; in brackets the variance of the noise, as a multiple of the set's. {ONE_MACHINE}",
    ),
    Published(
        "004_table2_gaussian", "Discrete Gaussian, deviation 3.2", "004 (GMPFHE), table 2", "ms", "ms a sample",
        ours=_sampling("discrete Gaussian", 1e3), note=f"{LAN_WAN} {ONE_MACHINE} A sample of a batch.",
    ),
    Published(
        "004_table3_fixed_weight", "Vector of Hamming weight 64", "004 (GMPFHE), table 3", "seconds", "seconds",
        series=("phi_m", "network"), ours=_fixed_weight,
        note=f"{LAN_WAN} {ONE_MACHINE} Ours have the paper's lengths (`make bench-paper004`); marks are hollow only where the busy cores were noted.",
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
        note=f"{LAN_WAN} CKKS, N = 16384, 484 bits; ours {_modulus_bits(CNN_SET)} bits and seven Galois keys. {ONE_MACHINE}",
    ),
    Published(
        "004_table5_cnn", "Decryption of a CNN's result", "004 (GMPFHE), table 5", "seconds", "seconds",
        where=(("operation", "Dec"),), ours=_cnn("decryption"),
        note=f"{LAN_WAN} Theirs: one digit. Ours: a set of ciphertexts, which holds up to {IMAGES} digits, mean of the sets of a run, which are decrypted together; flooded. {ONE_MACHINE}",
    ),
    Published(
        "004_table6_key_sizes", "Sizes of keys", "004 (GMPFHE), table 6", "mb", "MB (ours: MiB)", series=("protocol", "key"), ours=_key_sizes, computed=True,
        note="A key that does not depend on the number of parties is drawn as a level line. Ours: exact sizes of whole keys of the same 484 bits, from the parameters; "
        "with seeds in place of random polynomials they are half as large.",
    ),
]  # fmt: skip


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
    greys = style.greys(len(lines) + len(levels))
    entries = len(lines) + len(levels) + (found["label"].nunique() if len(found) else 0)
    made, (axis,) = style.figure(1, 5.4, 2.9 + 0.1 * entries)
    for i, (name, rows) in enumerate(lines):
        rows = rows.sort_values(plot.x)
        label = "paper, " + ", ".join(_words(c, v) for c, v in zip(plot.series, name, strict=True))
        x, y = rows[plot.x].astype(float), rows[plot.value].astype(float)
        axis.plot(x, y, label=label, color=greys[i], marker=style.MARKS[i % len(style.MARKS)], linestyle="--", markersize=4, linewidth=1)
    for i, (_, row) in enumerate(levels.iterrows()):
        label = "paper, " + ", ".join(_words(c, row[c]) for c in plot.series)
        axis.axhline(float(row[plot.value]), label=label, color=greys[i + len(lines)], linestyle=":")
    ours = list(found.groupby("label")) if len(found) else []
    for (label, rows), (colour, mark) in zip(ours, style.series(len(ours)), strict=True):
        rows = rows.sort_values("x")
        error = [rows["y"] - rows["low"], rows["high"] - rows["y"]]
        axis.errorbar(
            rows["x"],
            rows["y"],
            error,
            label=str(label),
            color=colour,
            marker=mark,
            capsize=2,
            markersize=5,
            linewidth=1.3,
        )
        if rows["loaded"].any():
            style.mark_loaded(axis, rows[rows["loaded"]]["x"], rows[rows["loaded"]]["y"], colour, mark, 5)
    axis.set(xlabel=plot.xlabel, ylabel=plot.unit)
    head(made, f"{plot.title}: {plot.paper}", plot.table, table.attrs.get("machine", "") if len(found) and not plot.computed else "")
    style.decades(axis)
    axis.set_xscale("log", base=2)
    style.ticks(axis, [*theirs[plot.x].astype(float), *(found["x"] if len(found) else [])])
    style.legend_below(made, [axis], 2, bool(len(found) and found["loaded"].any()))
    missing = "" if plot.ours is None or len(found) else " Ours: not measured in these results."
    nothing = " Nothing of ours is of this kind." if plot.ours is None else ""
    return made, f"{plot.paper}, as printed (grey, dashed). {plot.note}{missing}{nothing}"


def head(made: Figure, title: str, published_table: str, machine: str, computed: bool = False) -> None:
    """The title, and below it the hardware of the paper, and ours if ``machine`` is not empty."""
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
