"""Plots of published figures against a number of parties (``published_bars``: of single figures), with our figures of the same kind where there are
any. They are no race: hardware, parameters and often the security differ, as every caption states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from keyquorum.cnn.packing import IMAGES
from keyquorum.cnn.run import DIGITS
from keyquorum.cnn.run import PARAMETERS as CNN_SET
from keyquorum.fhe.keys import key_bytes
from keyquorum.fhe.parameters import load
from keyquorum.model import published
from keyquorum.model.chosen_committees import ADDITIVE, ADDITIVE_RING, SHAMIR, lwe_set, with_capability
from keyquorum.model.idle import IDLE_CORES
from keyquorum.model.protocols import COMMITTEES, PROTOCOLS

from . import style
from .data import select

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
    return _named(row["protocol"])


def _named(name: str) -> str:
    """A committee's protocol, and what it is against."""
    protocol = PROTOCOLS[name]
    return f"{protocol.name} ({'MACs' if protocol.macs else 'products verified' if protocol.verifies_products else 'no MACs'})"


def _where(row: pd.Series) -> str:
    """Batch and link."""
    batch = f", batch {int(row['batch']):,}" if row["batch"] > 1 else ""
    return batch + (f", {row['rtt_ms']:g} ms" if row["rtt_ms"] > 0 else ", one machine")


def _paper004(row: str, quantity: str) -> Ours:
    """The best method for rows of a table of the paper whose name begins so, at the paper's sizes: results/paper004.csv."""

    def make(table: pd.DataFrame) -> pd.DataFrame:
        rows = [
            r
            for r in table.attrs.get("paper004", [])
            if r["row"].startswith(row) and (r["quantity"], r["best"], r.get("link", "none")) == (quantity, "yes", "none")
        ]
        batch = f", batch {PAPER_004_BATCH:,}" if quantity in ("ms", "us") else ""

        def label(r: dict[str, str]) -> str:
            words = {"3": f", length {r['row'].split()[-1]}", "5": f", {r['row'].split()[-1]}"}.get(r["table"], "")
            return f"ours, {r['method']}{words}{batch}, one machine"

        return _own_rows(rows, "parties", "ours", label)

    return make


PAPER_004_BATCH = 1 << 15
"""Results of a run in results/paper004.csv."""


def _sweep(suite: str, name: str, scale: float, protocols: list[str], other: str = "") -> Ours:
    """Programs of a sweep whose names begin so. Those with ``other`` in their name do another thing than the paper."""

    def make(table: pd.DataFrame) -> pd.DataFrame:
        rows = select(table, suite=suite, backend="embedded", protocol=protocols)
        rows = rows[rows["name"].str.startswith(name)]
        made = _points(rows, scale, lambda r: f"ours, {r['name']}, {r['protocol']}{_where(r)}")
        return made.assign(other=[bool(other) and other in text for text in made["label"]])

    return make


def _both(*makers: Ours) -> Ours:
    """The figures of several."""

    def make(table: pd.DataFrame) -> pd.DataFrame:
        found = [made for made in (maker(table) for maker in makers) if len(made)]
        return pd.concat(found, ignore_index=True) if found else pd.DataFrame()

    return make


def _not_the_same(maker: Ours) -> Ours:
    """Figures of another operation than the paper's."""
    return lambda table: maker(table).assign(other=True)


def _single(table: pd.DataFrame) -> pd.DataFrame:
    """Single decryptions of LWE as in the paper: a dishonest majority, exact, over links. Of a protocol whose latency was measured for itself (results/latency.csv,
    latency_macs.csv) the sweep has the other round trips alone."""
    own = [r for name in LATENCIES for r in table.attrs.get(name, [])]
    measured = _own_rows(
        own, "n", "ms", lambda r: f"ours, {r['variant']}, {_named(r['protocol'])}, {r['openings']} openings, {r['link'].removeprefix('rtt=')} ms",
        ("least_ms", "most_ms"),
    )  # fmt: skip
    rows = select(table, suite="decrypt", backend="embedded", batch=1)
    rows = rows[rows["name"].str.startswith("lwe") & rows["protocol"].isin(DISHONEST) & (rows["rtt_ms"] > 0) & rows["name"].str.contains("ltz")]
    partners = {COMMITTEES[r["protocol"]].field_protocol for r in own}
    again = rows["protocol"].isin(partners) & rows["name"].str.contains("table") & (rows["rtt_ms"] == 1)
    sweep = _points(rows[~again], 1e3, lambda r: f"ours, {r['name']}, {_committee(r)}{_where(r)}", "online_seconds")
    return pd.concat([made for made in (measured, sweep) if len(made)], ignore_index=True) if len(measured) or len(sweep) else sweep


LATENCIES = ("latency", "latency_macs")
"""Tables of single decryptions."""


def _batches(table: pd.DataFrame) -> pd.DataFrame:
    """Decryptions of LWE in a batch, against the corruptions tolerated."""
    rows = select(table, suite="decrypt", backend="embedded")
    rows = rows[rows["name"].str.startswith("lwe") & (rows["batch"] > 1)]
    made = _points(rows, 1e3, lambda r: f"ours, {r['name']}, {_committee(r)}{_where(r)}", "online_seconds")
    made["x"] = [COMMITTEES[p].most_corruptions(n) for n, p in zip(rows["parties"], rows["protocol"], strict=True)]
    return made


def _rates(table: pd.DataFrame) -> pd.DataFrame:
    """Decryptions of LWE a second, of batches over the paper's link, dishonest majority."""
    rows = select(table, suite="decrypt", backend="embedded", protocol=ADDITIVE, parameters="lwe64-p2", link="paper000-1ms")
    rows = rows[rows["name"].str.startswith("lwe") & (rows["batch"] > 1)]
    made = _points(rows, 1.0, lambda r: f"ours, {r['name']}, {_committee(r)}{_where(r)}", "online_seconds")
    made["y"], made["low"], made["high"] = 1 / made["y"], 1 / made["high"], 1 / made["low"]
    return made


def _own_rows(
    rows: list[dict[str, str]], x: str, y: str, label: Callable[[dict[str, str]], str], ends: tuple[str, str] | None = None
) -> pd.DataFrame:
    """Points of a table of our own: single runs, or with the columns ``ends`` of the smallest and the largest. ``changed``: recorded with changes that no
    commit has."""
    values, low, high = ([float(r[name]) for r in rows] for name in (y, *(ends or (y, y))))
    loaded = [float(r.get("busy") or 0) > IDLE_CORES for r in rows]
    changed = [str(r.get("commit", "")).endswith("+") for r in rows]
    return pd.DataFrame(
        {
            "x": [int(r[x]) for r in rows],
            "y": values,
            "low": low,
            "high": high,
            "label": [label(r) for r in rows],
            "loaded": loaded,
            "changed": changed,
        }
    )


def _ajax_keys(table: pd.DataFrame) -> pd.DataFrame:
    """Keys of the paper's own set: results/ajax.csv."""
    return _own_rows(
        table.attrs.get("ajax", []),
        "parties",
        "seconds",
        lambda r: f"ours, {r['protocol']}, noise {r['noise']} ({float(r['growth']):.3g}), link {r['link']}, one machine",
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
    """Sizes of keys of the paper's 484-bit set, not seeded, which do not depend on the number of parties."""
    sizes = zip(("pk", "swk"), key_bytes(load(PAPER_SET, warn=False)), strict=True)
    points = [(n, f"ours, {key}, {PAPER_SET}", size / 2**20) for key, size in sizes for n in (2, 4, 8, 16)]
    return pd.DataFrame([{"x": n, "y": mib, "low": mib, "high": mib, "label": label, "loaded": False} for n, label, mib in points])


def _modulus_bits(name: str) -> int:
    return sum(q.bit_length() for q in load(name, warn=False).coeff_modulus)


LAN_WAN = "LAN: 0.5 ms, 2 Gbit/s; WAN: 20 ms, 500 Mbit/s; one instance of 2 vCPU a party."
OPEN_MACS = "which do not say whether MACs are included"
AJAX_BATCH = "A batch of 20,000. Theirs: c6i.2xlarge a party, whose peers share its bandwidth. Ours: t + 1 additive parties, semi-honest, fresh noise; each simulated link has the whole bandwidth."
ONE_MACHINE = "Ours: all parties on one machine, which adds up their CPU time."
PLOTS = [
    Published(
        "000_slide_online_latency", "Online latency of one decryption", "000 (ePrint 2025/1781)", "online_ms", "ms",
        series=("ping_ms",), ours=_single, note=f"Theirs: hardware and bandwidth not stated, {OPEN_MACS}. Ours: LWE (lwe64-p2), stored preprocessing, simulated links of 1 Gbit/s. {ONE_MACHINE}",
    ),
    Published(
        "000_slide_throughput", "Latency against Noah's Ark", "000 (ePrint 2025/1781)", "latency_ms", "ms", series=("protocol",),
        ours=_single, note=f"Theirs: 1 ms, 1 Gbit/s, {OPEN_MACS}. Ours: LWE (lwe64-p2), stored preprocessing. {ONE_MACHINE}",
    ),
    Published(
        "000_slide_throughput", "Decryptions a second", "000 (ePrint 2025/1781)", "decryptions_per_second", "decryptions a second",
        series=("protocol",), ours=lambda t: _rates(t),
        note=f"Theirs: 1 ms, 1 Gbit/s, {OPEN_MACS}. Ours: LWE (lwe64-p2), the same link, one batch of 1,024 at a time, stored preprocessing, no MACs. {ONE_MACHINE}",
    ),
    Published(
        "002_table1_decryption", "Decryption", "002 (Ajax), table 1", "online_ms", "ms, online", x="corruption_threshold",
        series=("protocol", "network"), xlabel="corruptions t", ours=_batches,
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
        ours=_both(_paper004("discrete Gaussian", "ms"), _sweep("sampling", "discrete Gaussian", 1e3, [ADDITIVE_RING])), note=f"{LAN_WAN} {ONE_MACHINE} A sample of a batch.",
    ),
    Published(
        "004_table3_fixed_weight", "Vector of Hamming weight 64", "004 (GMPFHE), table 3", "seconds", "seconds",
        series=("phi_m", "network"), ours=_paper004("Hamming weight", "seconds"),
        note=f"{LAN_WAN} {ONE_MACHINE} Ours have the paper's lengths (`make bench-paper004`); marks are hollow only where the busy cores were noted.",
    ),
    *(
        Published(
            "004_table4_conversion", f"Conversion: {theirs}", "004 (GMPFHE), table 4", "us", "µs a value",
            where=(("operation", theirs),), ours=_both(_paper004(theirs, "us"), _sweep("conversion", ours, 1e6, [ADDITIVE_RING, ADDITIVE], "(bits)")),
            note=f"{LAN_WAN} {ONE_MACHINE} A value of a batch. Ours modulo a prime of 60 bits; shares of bits alone, without the lift to that prime, are another operation.",
        )
        for theirs, ours in (("Z2 to Zq", "Z2 to Zq"), ("Z3 to Zq", "Z3 to Zq"), ("Zq to bits", "Zq to Z2"))
    ),
    Published(
        "004_table5_cnn", "Key generation for a CNN", "004 (GMPFHE), table 5", "seconds", "seconds",
        where=(("operation", "KeyGen"),), ours=_both(_paper004("key generation", "seconds"), _not_the_same(_cnn("keys"))),
        note=f"{LAN_WAN} CKKS, N = 16384, 484 bits, which have no 128-bit security; public and relinearisation key. Another operation: the keys of our CNN, {_modulus_bits(CNN_SET)} bits with seven Galois keys. {ONE_MACHINE}",
    ),
    Published(
        "004_table5_cnn", "Decryption of a CNN's result", "004 (GMPFHE), table 5", "seconds", "seconds",
        where=(("operation", "Dec"),), ours=_not_the_same(_cnn("decryption")),
        note=f"{LAN_WAN} Theirs: one digit. Ours: a set of ciphertexts, which holds up to {IMAGES} digits, mean of the sets of a run, which are decrypted together; flooded. {ONE_MACHINE}",
    ),
    Published(
        "004_table6_key_sizes", "Sizes of keys", "004 (GMPFHE), table 6", "mb", "MB (ours: MiB)", series=("protocol", "key"), ours=_key_sizes, computed=True,
        note="A key that does not depend on the number of parties is drawn as a level line. Ours: exact sizes of whole keys of the same 484 bits, from the parameters; "
        "with seeds in place of random polynomials they are half as large.",
    ),
]  # fmt: skip


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
    head(made, f"{plot.title}: {plot.paper}", plot.table, table.attrs.get("machine", "") if len(found) and not plot.computed else "")
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
                number = f"{value:,.4g}{read}" if value < 1e4 else f"{value:,.0f}{read}"
                axis.annotate(number, (at, value), places[i][0], textcoords="offset points", ha=places[i][1], va="center", **style.NUMBER)
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
    changed = " Some of ours were recorded with changes that no commit has." if "changed" in found and (found["changed"] == True).any() else ""  # noqa: E712
    return f"{plot.paper}, as printed (grey, dashed). {plot.note}{other}{changed}{missing}{nothing}"


def head(made: Figure, title: str, published_table: str, machine: str, computed: bool = False) -> None:
    """The title, and below it the hardware of the paper, and ours if ``machine`` is not empty."""
    made.suptitle(title, fontsize=10)
    hardware = PAPERS[published_table[:3]] + LINKS.get(published_table, "")
    lines = [f"paper: {'computed, not measured' if computed else hardware}"]
    if machine:
        lines += [f"ours: {machine}, shared by all parties;", "loopback, or simulated links where a round trip is named"]
    made.axes[0].set_title("\n".join(lines), fontsize=6.5, color=style.PAPER, loc="left")


def _words(column: str, value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    names = {"ping_ms": f"{value} ms ping", "phi_m": f"length {value}"}
    return names.get(column, str(value))
