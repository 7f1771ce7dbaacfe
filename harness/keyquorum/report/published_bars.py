"""Bars of published figures that do not depend on the number of parties, or are for one number of parties, with our figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from textwrap import fill

import pandas as pd
from matplotlib.figure import Figure

from keyquorum.cnn.packing import IMAGES
from keyquorum.cnn.run import WAYS
from keyquorum.model import published
from keyquorum.model.idle import IDLE_CORES

from . import style
from .data import select
from .published import head

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
        if row["what"] != "keys":
            value = float(row["seconds"]) * 1e3
            bars.append((f"ours, {row['what']}, {row['parameters']}", value, value, value, float(row["busy"] or 0) > IDLE_CORES))
    return bars


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
        "online_bits_per_party", "bits", ("protocol", "context"), note="Computed, not measured. Published alone.",
    ),
    Bars("003_table1_oprf", "One evaluation of AES-128", "003, table 1", "seconds", "seconds", ("protocol", "parties"), _oprf("ms", 1e-3), note=OPRF),
    Bars(
        "003_table1_oprf", "Communication of one evaluation of AES-128", "003, table 1", "mb", "MB (ours: that a party sends)", ("protocol", "parties"),
        _oprf("mb", 1.0), note=OPRF,
    ),
    Bars("003_sections1_3_timings", "Single operations", "003, sections 1.1 and 3.3", "ms", "ms", ("operation", "parties"), note="Published alone."),
    Bars("003_section3_gates", "Gates of AES-128", "003, section 3", "gates", "gates", ("gate",), note="Computed, not measured. Published alone."),
    Bars(
        "003_section3_communication", "Communication of one evaluation, times t", "003, section 3.4", "mb_per_threshold", "MB times t", ("version", "direction"),
        note="Computed, not measured. Published alone.",
    ),
    Bars(
        "004_table5_cnn", "Encryption and evaluation of a CNN", "004 (GMPFHE), table 5", "ms", "ms", ("operation",), _cnn_client,
        where=(("operation", ("Enc", "Eval")),), note=f"Theirs: one digit. Ours: one set of ciphertexts, which takes as long for one digit as for {IMAGES}; stock SEAL, one process.",
    ),
    Bars(
        "004_section6_eval", "Evaluation of a CNN", "004 (GMPFHE), section 6.2.1", "ms", "ms", ("protocol",), _cnn_evaluation,
        note=f"Theirs: one digit, MK-CKKS with two parties on a faster machine. Ours: one set of ciphertexts, which takes as long for one digit as for {IMAGES}; stock SEAL, one process.",
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
    made, (axis,) = style.figure(1, 6.4, 1.4 + 0.36 * (len(theirs) + len(ours)))
    axis.barh(range(len(theirs)), [value for _, value in theirs], 0.7, color="#aaaaaa", hatch="//", edgecolor="white")
    positions = range(len(theirs), len(theirs) + len(ours))
    values = [bar[1] for bar in ours]
    error = [[value - low for _, value, low, _, _ in ours], [high - value for _, value, _, high, _ in ours]]
    bars = axis.barh(positions, values, 0.7, xerr=error if ours else None, capsize=2, color=style.OURS)
    style.dot_loaded(bars, [bar[4] for bar in ours])
    style.decades(axis, "x")
    for position, value in enumerate([*(value for _, value in theirs), *values]):
        axis.annotate(
            f"{value:,.3g}" if value < 1000 or value >= 1e6 else f"{value:,.0f}",
            (value, position),
            (3, 0),
            textcoords="offset points",
            va="center",
            fontsize=7,
        )
    axis.set_yticks(range(len(theirs) + len(ours)), [*(fill(name, 34) for name, _ in theirs), *(fill(bar[0], 34) for bar in ours)], fontsize=7.5)
    axis.invert_yaxis()
    axis.grid(axis="y", visible=False)
    axis.set_xlabel(plot.unit)
    style.legend_below(made, [axis], loaded=any(bar[4] for bar in ours))
    head(made, f"{plot.title}: {plot.paper}", plot.table, table.attrs.get("machine", "") if ours else "", plot.note.startswith("Computed"))
    missing = " Ours: not measured in these results." if plot.ours is not None and not ours else ""
    return made, f"{plot.paper}, as printed (grey). {plot.note}{missing}"


def _label(row: published.Row, columns: Sequence[str]) -> str:
    return ", ".join(str(row[column]) for column in columns if row[column] is not None)
