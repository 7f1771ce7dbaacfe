"""Bars of published figures that do not depend on the number of parties, or are for one number of parties, with our figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from textwrap import fill

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from keyquorum.cnn.packing import IMAGES
from keyquorum.cnn.run import WAYS
from keyquorum.model import published
from keyquorum.model.idle import IDLE_CORES
from keyquorum.schemes.circuit import aes_forms

from . import style
from .data import select
from .published import NOT_THE_SAME, head

Bar = tuple[str, float, float, float, bool]
"""Label, value, lowest and highest run, and whether it started under load."""


@dataclass(frozen=True)
class Bars:
    """One published table: ``value`` of each row; ``label``: the columns that name a row."""

    table: str
    title: str
    paper: str
    value: str
    unit: str
    label: tuple[str, ...]
    ours: Callable[[pd.DataFrame], list[Bar]] | None = None
    note: str = ""
    where: tuple[tuple[str, tuple[object, ...]], ...] = ()
    other: bool = False
    """Whether ours is not the paper's operation: it stands in a panel of its own."""


def _cnn_evaluation(table: pd.DataFrame) -> list[Bar]:
    """Milliseconds of one evaluation, which does not depend on the number of digits in a set, and the same divided by the digits of a full set."""
    return [bar for name, row in _ways(table, "evaluation") for bar in _bars(row, name, "evaluation", ", stock SEAL")]


def _cnn_client(table: pd.DataFrame) -> list[Bar]:
    encryption = [bar for name, row in _ways(table, "encryption") if not WAYS[name][0] for bar in _bars(row, name, "encryption")]
    return encryption + _cnn_evaluation(table)


def _ways(table: pd.DataFrame, phase: str) -> list[tuple[str, pd.Series]]:
    """The first measurement of each way, of a phase that does not depend on the protocol."""
    found = [(name, select(table, suite=f"cnn: {phase}", name=name).head(1)) for name in WAYS]
    return [(name, row) for name, rows in found for _, row in rows.iterrows()]


def _bars(row: pd.Series, name: str, what: str, how: str = "") -> list[Bar]:
    """Bars for a set of ciphertexts and, of full sets, for one digit."""
    encrypted, digits = WAYS[name]
    how = f"{', encrypted model' if encrypted else ''}{how}"
    if digits < IMAGES:
        return [_bar(row, f"ours, {what} of a set of one digit{how}", row["batch"] / digits)]
    return [
        _bar(row, f"ours, {what} of a set (1 to {IMAGES} digits){how}", row["batch"] / IMAGES),
        _bar(row, f"ours, {what}, a digit of a full set{how}", row["batch"]),
    ]


def _bar(row: pd.Series, label: str, share: float) -> Bar:
    value, low, high = (float(row[name]) / share * 1e3 for name in ("seconds", "seconds_low", "seconds_high"))
    return label, value, low, high, bool(row["loaded"])


def _oprf(column: str, scale: float) -> Callable[[pd.DataFrame], list[Bar]]:
    """One evaluation of AES-128 by each system: rows of results/toprf.csv without added delay, without what is made ahead."""

    def make(table: pd.DataFrame) -> list[Bar]:
        bars = []
        for row in table.attrs.get("toprf", []):
            if row["batch"] == "1" and row["link"] == "none" and row["system"] in SYSTEMS:
                value = float(row[column]) * scale
                label = f"ours, {SYSTEMS[row['system']]}, {row['method']}, {row['protocol']}, {row['n']} parties"
                bars.append((label, value, value, value, float(row["busy"] or 0) > IDLE_CORES))
        return bars

    return make


def _aes(blocks: int) -> Callable[[pd.DataFrame], list[Bar]]:
    """AES on shares of two parties, of so many blocks together: rows of results/toprf.csv over the links of the paper."""

    def make(table: pd.DataFrame) -> list[Bar]:
        bars = []
        for row in table.attrs.get("toprf", []):
            if row["system"] == "native" and row["n"] == "2" and row["batch"] == str(blocks) and row["link"].startswith("paper004-"):
                network, loaded = row["link"].removeprefix("paper004-").upper(), float(row["busy"] or 0) > IDLE_CORES
                for phase, column in (("online", "ms"), ("offline", "offline_ms")):
                    value = float(row[column]) * 1e-3
                    bars.append((f"AES on shares, no FHE, {phase}, {network}", value, value, value, loaded))
        return bars

    return make


def _transforms(table: pd.DataFrame) -> list[Bar]:
    """One transform of each ring: rows of results/ghs.csv."""
    bars = []
    for row in table.attrs.get("ghs", []):
        if row["what"].endswith("transform"):
            value = float(row["seconds"]) * 1e3
            bars.append((f"ours, {row['what']}, {row['parameters']}", value, value, value, float(row["busy"] or 0) > IDLE_CORES))
    return bars


def _ajax_bits(table: pd.DataFrame) -> list[Bar]:
    """Bits that a party sends online: results/ajax_decryption.csv, which are the same over both links."""
    rows = [r for r in table.attrs.get("ajax_decryption", []) if r["link"] == "lan" and r["variant"] == "round_mask_open" and r.get("bits")]
    return [_own(f"ours, mask-open, {r['parameters']}, t = {r['t']}", r, "bits") for r in rows]


def _operations(table: pd.DataFrame) -> list[Bar]:
    """Milliseconds of single operations: results/lisss.csv and toprf.csv."""
    two = [r for r in table.attrs.get("lisss", []) if r["t"] == r["T"] == "2"]
    bars = [_own("ours, local step of one party", r, "partial_us", 1e-3) for r in two]
    bars += [_own("ours, exact rounding in a batch, 2 parties", r, "exact_batch_us", 1e-3) for r in two]
    bars += [_own("ours, exact rounding of one, 2 parties", r, "exact_ms") for r in two]
    evaluated = [r for r in table.attrs.get("toprf", []) if r["system"] == "F" and r.get("bootstraps")]
    return bars + [_own("ours, bootstrapping in TFHE-rs", r, "ms", 1 / int(r["bootstraps"])) for r in evaluated]


def _gates(table: pd.DataFrame) -> list[Bar]:
    """ANDs of our circuit, where evaluations of it were measured."""
    ands = float(aes_forms().ands) if table.attrs.get("toprf") else 0.0
    return [("ours, AND", ands, ands, ands, False)] if ands else []


def _own(label: str, row: dict[str, str], column: str, scale: float = 1.0) -> Bar:
    """A bar of a table of our own."""
    value = float(row[column]) * scale
    return label, value, value, value, float(row.get("busy") or 0) > IDLE_CORES


SYSTEMS = {"native": "AES on shares", "H": "the paper's system without a dealer", "F": "FHE alone (TFHE-rs)"}
"""Systems of `bench toprf` beside those of the paper."""
OPRF = "Theirs: one server holds the key, and a dealer made it. Ours: no party knows the key, all parties on one machine, loopback; without what is made ahead."
AES = "Two parties. Theirs: AES on 180 or 120 blocks under GHS keys. Ours: the same blocks on shares, without homomorphic encryption, over simulated links."
BARS = [
    Bars(
        "002_sections2_4_communication", "Online communication of one decryption", "002 (Ajax), sections 2.2 and 4.3",
        "online_bits_per_threshold", "bits times t", ("protocol", "context"),
        note="Computed, not measured. Published alone: ours depend on the method and stand in the table of all measurements.",
    ),
    Bars(
        "002_sections2_4_communication", "Online communication of one decryption, a party", "002 (Ajax), sections 2.2 and 4.3",
        "online_bits_per_party", "bits", ("protocol", "context"), _ajax_bits,
        note="Computed, not measured. Ours: measured, what a party sends online in a batch of 20,000, by corruptions t.",
    ),
    Bars("003_table1_oprf", "One evaluation of AES-128", "003, table 1", "seconds", "seconds", ("protocol", "parties"), _oprf("ms", 1e-3), note=OPRF),
    Bars(
        "003_table1_oprf", "Communication of one evaluation of AES-128", "003, table 1", "mb", "MB (ours: that a party sends)", ("protocol", "parties"),
        _oprf("mb", 1.0), note=OPRF,
    ),
    Bars("003_sections1_3_timings", "Single operations", "003, sections 1.1 and 3.3", "ms", "ms", ("operation", "parties"), _operations, note="Ours: the step of one party, as in the paper's figure, which has no communication; exact roundings between the parties; mean of the bootstrappings of one AES-128 by TFHE-rs."),
    Bars("003_section3_gates", "Gates of AES-128", "003, section 3", "gates", "gates", ("gate",), _gates, note="Computed, not measured: ours too, whose XORs and NOTs take no table."),
    Bars(
        "003_section3_communication", "Communication of one evaluation, times t", "003, section 3.4", "mb_per_threshold", "MB times t", ("version", "direction"),
        note="Computed, not measured. Published alone.",
    ),
    Bars(
        "004_table5_cnn", "Encryption and evaluation of a CNN", "004 (GMPFHE), table 5", "ms", "ms", ("operation",), _cnn_client,
        where=(("operation", ("Enc", "Eval")),), note=f"Theirs: one digit. Ours: one set of ciphertexts, which takes as long for one digit as for {IMAGES}; stock SEAL, one process. Our weights are in clear, which the paper's application encrypts, and ours is one run.", other=True,
    ),
    Bars(
        "004_section6_eval", "Evaluation of a CNN", "004 (GMPFHE), section 6.2.1", "ms", "ms", ("protocol",), _cnn_evaluation,
        note=f"Theirs: one digit, MK-CKKS with two parties on a faster machine. Ours: one set of ciphertexts, which takes as long for one digit as for {IMAGES}; stock SEAL, one process. Our weights are in clear, which the paper's application encrypts, and ours is one run.", other=True,
    ),
    Bars("004_section6_ntt", "One number-theoretic transform", "004 (GMPFHE), section 6.1.4", "ms", "ms", ("ring", "context"), _transforms, note="Ours: on one core."),
    Bars(
        "004_appendix_a_binary_keygen", "AND gates of key generation by binary circuits", "004 (GMPFHE), appendix A",
        "total_and_gates", "AND gates", ("protocol",), note="Computed, not measured. Published alone.",
    ),
    Bars(
        "004_table7_aes_bootstrappable", "AES with bootstrappable GHS", "004 (GMPFHE), table 7", "seconds", "seconds",
        ("operation", "network"), _aes(180), note=AES,
    ),
    Bars(
        "004_table8_aes_leveled", "AES with leveled GHS", "004 (GMPFHE), table 8", "seconds", "seconds",
        ("operation", "network"), _aes(120), note=AES,
    ),
]  # fmt: skip


def draw(plot: Bars, table: pd.DataFrame) -> tuple[Figure, str]:
    """The figure and its caption."""
    rows = [row for row in published.load(plot.table) if row[plot.value] is not None]
    rows = [row for row in rows if all(row[column] in values for column, values in plot.where)]
    theirs = [("paper, " + _label(row, plot.label), float(str(row[plot.value]))) for row in rows]
    ours = plot.ours(table) if plot.ours is not None else []
    apart = plot.other and bool(ours)
    height = 1.4 + 0.36 * (len(theirs) + len(ours))
    made, axes = style.figure(1 + apart, 6.4 if not apart else 4.4, height if not apart else 1.4 + 0.36 * max(len(theirs), len(ours)))
    labels: list[list[str]] = [[] for _ in axes]
    axes[0].barh(range(len(theirs)), [value for _, value in theirs], 0.7, color="#aaaaaa", hatch="//", edgecolor="white")
    labels[0] += [_number(axes[0], name, value, position) for position, (name, value) in enumerate(theirs)]
    start = len(labels[-1])
    error = [[value - low for _, value, low, _, _ in ours], [high - value for _, value, _, high, _ in ours]]
    bars = axes[-1].barh(
        range(start, start + len(ours)), [bar[1] for bar in ours], 0.7, xerr=error if ours else None, capsize=2, color=style.OURS
    )  # fmt: skip
    style.dot_loaded(bars, [bar[4] for bar in ours])
    labels[-1] += [_number(axes[-1], bar[0], bar[1], start + position) for position, bar in enumerate(ours)]
    style.decades(axes, "x")
    for axis, names in zip(axes, labels, strict=True):
        axis.set_yticks(range(len(names)), [fill(name, 34) for name in names], fontsize=7.5)
        axis.invert_yaxis()
        axis.grid(axis="y", visible=False)
        axis.set_xlabel(plot.unit)
    if apart:
        axes[1].set_title(NOT_THE_SAME, fontsize=8)
    style.legend_below(made, axes, loaded=any(bar[4] for bar in ours))
    head(made, f"{plot.title}: {plot.paper}", plot.table, table.attrs.get("machine", "") if ours else "", plot.note.startswith("Computed"))
    missing = " Ours: not measured in these results." if plot.ours is not None and not ours else ""
    other = f" The second panel has what is {NOT_THE_SAME}." if apart else ""
    return made, f"{plot.paper}, as printed (grey). {plot.note}{other}{missing}"


def _number(axis: Axes, name: str, value: float, position: int) -> str:
    """Writes the value beside a bar; returns its name."""
    text = f"{value:,.3g}" if value < 1000 or value >= 1e6 else f"{value:,.0f}"
    axis.annotate(text, (value, position), (3, 0), textcoords="offset points", va="center", fontsize=7)
    return name


def _label(row: published.Row, columns: Sequence[str]) -> str:
    return ", ".join(str(row[column]) for column in columns if row[column] is not None)
