"""Bars of published figures that do not depend on the number of parties, or are for one number of parties, with our figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from keyquorum.cnn.packing import IMAGES
from keyquorum.cnn.run import WAYS
from keyquorum.model import published
from keyquorum.model.chosen_committees import ADDITIVE
from keyquorum.model.idle import IDLE_CORES
from keyquorum.model.protocols import PROTOCOLS
from keyquorum.schemes.circuit import aes_forms

from . import style
from .data import machines, own_machine, select, states
from .published import NETWORKS_004
from .published_lines import NOT_THE_SAME, head


class Bar(NamedTuple):
    """A figure of ours: with its lowest and highest run, whether it started under load, and its commit and machine if they are recorded."""

    label: str
    value: float
    low: float
    high: float
    loaded: bool
    commit: str = ""
    machine: str = ""


Ours = Callable[[pd.DataFrame], list[Bar]]


def _nothing(table: pd.DataFrame) -> list[Bar]:
    return []


@dataclass(frozen=True)
class Bars:
    """One published table: ``value`` of each row; ``label``: the columns that name a row. ``units``: columns of figures in several units, each with the factor to that of
    the plot. ``ours``: the paper's operation; ``apart``: another one, which stands in a panel of its own."""

    table: str
    title: str
    paper: str
    value: str
    unit: str
    label: tuple[str, ...]
    ours: Ours = _nothing
    note: str = ""
    where: tuple[tuple[str, tuple[object, ...]], ...] = ()
    apart: Ours = _nothing
    units: Mapping[str, float] | None = None
    remark: Callable[[list[Bar]], str] = lambda bars: ""
    """A sentence on the figures of ours that were found."""

    def theirs(self) -> list[tuple[published.Row, float]]:
        """The rows of the table that have a figure, and the figure in the unit of the plot."""
        rows = [row for row in published.load(self.table) if all(row[column] in values for column, values in self.where)]
        units = self.units or {self.value: 1.0}
        return [(row, float(str(row[column])) * factor) for row in rows for column, factor in units.items() if row[column] is not None]

    def measured(self, table: pd.DataFrame) -> bool:
        """Whether anything of ours stands in it."""
        return bool(self.ours(table) or self.apart(table))


def _of_cnn(phase: str, same: bool) -> Ours:
    """Milliseconds of a phase, which does not depend on the number of digits in a set, and the same divided by the digits of a full set. ``same``: the paper's
    operation: a digit alone, and an evaluation with encrypted weights."""

    def make(table: pd.DataFrame) -> list[Bar]:
        return [
            bar
            for name, (encrypted, digits) in WAYS.items()
            if (digits == 1 and (encrypted or phase == "encryption")) == same and not (encrypted and phase == "encryption")
            for bar in _way(table, name, phase)
        ]

    return make


def _way(table: pd.DataFrame, name: str, phase: str) -> list[Bar]:
    """The first measurement of a way, of a phase that does not depend on the protocol: bars for a set of ciphertexts and, of full sets, for one digit."""
    encrypted, digits = WAYS[name]
    weights = f", {'encrypted' if encrypted else 'clear'} weights, stock SEAL" if phase == "evaluation" else ""
    bars = []
    for _, row in select(table, suite=f"cnn: {phase}", name=name).head(1).iterrows():
        how = f"{weights}, {int(row['runs'])} run{'s' if row['runs'] > 1 else ''}"
        if digits < IMAGES:
            bars.append(_bar(row, f"ours, {phase} of a set of one digit{how}", row["batch"] / digits))
        else:
            bars.append(_bar(row, f"ours, {phase} of a set (1 to {IMAGES} digits){how}", row["batch"] / IMAGES))
            bars.append(_bar(row, f"ours, {phase}, a digit of a full set{how}", row["batch"]))
    return bars


def _together(*makers: Ours) -> Ours:
    return lambda table: [bar for make in makers for bar in make(table)]


def _bar(row: pd.Series, label: str, share: float) -> Bar:
    value, low, high = (float(row[name]) / share * 1e3 for name in ("seconds", "seconds_low", "seconds_high"))
    return Bar(label, value, low, high, bool(row["loaded"]), str(row["commit"]), str(row["machine"]))


def _rates(exact: bool) -> Ours:
    """By exact roundings, as the paper's, or by mask-open, which may fail."""
    return lambda table: [bar for bar in _all_rates(table) if ("mask" in bar.label) != exact]


def _all_rates(table: pd.DataFrame) -> list[Bar]:
    """Decryptions of LWE a second, four parties, over links of 1 ms and 1 Gbit/s: rows of results/throughput.csv; without them batches of the sweep, without MACs."""
    rows = [r for r in table.attrs.get("throughput", []) if (r["n"], r["link"]) == ("4", "rtt=1,mbit=1000")]
    if rows:
        return [_own(f"ours, {r['variant']}, {_macs(r['protocol'])}, batches of {int(r['batch']):,}", r, "per_s") for r in rows]
    found = select(table, suite="decrypt", backend="embedded", protocol=ADDITIVE, parameters="lwe64-p2", link="paper000-1ms", parties=4)
    found = found[found["name"].str.startswith("lwe") & (found["batch"] > 1)]
    bars = []
    for _, r in found.iterrows():
        rate, low, high = (float(r["batch"] / r[f"online_seconds{end}"]) for end in ("", "_high", "_low"))
        name = f"ours, {r['name'].removeprefix('lwe ')}, {_macs(r['protocol'])}, a batch of {int(r['batch']):,}"
        bars.append(Bar(name, rate, low, high, bool(r["loaded"]), str(r["commit"]), str(r["machine"])))
    return bars


def _macs(protocol: str) -> str:
    return "MACs" if PROTOCOLS[protocol].macs else "no MACs"


def _best_rate(bars: list[Bar]) -> str:
    """What the best of ours is of the paper's."""
    if not bars:
        return ""
    paper = max(float(str(row["decryptions_per_second"])) for row in published.load("000_slide_throughput"))
    best = max(bar.value for bar in bars)
    return f" The fastest of ours has {best:,.0f} a second, {best / paper:.2f} times the paper's {paper:,.0f}."


def _evaluations(table: pd.DataFrame) -> Iterable[tuple[str, dict[str, str]]]:
    """One evaluation of AES-128 by each system: labels, and rows of results/toprf.csv without a link."""
    for row in table.attrs.get("toprf", []):
        if row["batch"] == "1" and row["link"] == "none" and row["system"] in SYSTEMS:
            yield f"ours, {SYSTEMS[row['system']]}, {row['method']}, {row['protocol']}, {row['n']} parties", row


def _oprf_seconds(table: pd.DataFrame) -> list[Bar]:
    """Without what is made ahead."""
    return [_own(label, row, "ms", 1e-3) for label, row in _evaluations(table)]


def _oprf_bytes(table: pd.DataFrame) -> list[Bar]:
    """MB that all parties send online; by FHE the client's request and the answer. Rows that were measured before the table had these are left out."""
    bars = []
    for label, row in _evaluations(table):
        parts = [row.get(name) or "" for name in (("request_mb", "answer_mb") if row["system"] == "F" else ("all_mb",))]
        if all(parts):
            what = "request and answer" if row["system"] == "F" else "sent by all"
            bars.append(_own(f"{label}: {what}", row | {"mb": str(sum(map(float, parts)))}, "mb"))
    return bars


def _aes(blocks: int) -> Ours:
    """AES on shares of two parties, of so many blocks together: rows of results/toprf.csv over the links of the paper."""

    def make(table: pd.DataFrame) -> list[Bar]:
        bars = []
        for row in table.attrs.get("toprf", []):
            if row["system"] == "native" and row["n"] == "2" and row["batch"] == str(blocks) and row["link"] in NETWORKS_004:
                for phase, column in (("online", "ms"), ("offline", "offline_ms")):
                    bars.append(_own(f"ours, {blocks} blocks on shares, no FHE, {phase}, {NETWORKS_004[row['link']]}", row, column, 1e-3))
        return bars

    return make


def _ghs(parameters: str) -> Ours:
    """Keys and decryptions of two parties: rows of results/ghs.csv."""

    def make(table: pd.DataFrame) -> list[Bar]:
        rows = [r for r in table.attrs.get("ghs", []) if r["parameters"] == parameters and not r["what"].startswith("transform")]
        return [_own(f"ours, {_step(r)}, {NETWORKS_004[r['link']]}", r, "seconds") for r in rows]

    return make


def _step(row: dict[str, str]) -> str:
    """What a row of results/ghs.csv measures, in the words of the paper's tables."""
    if row["what"] == "keys":
        return f"KeyGen, noise {row['noise']}"
    steps = {"offline": "Dec (TupleGen), exact rounding", "online": "Dec (CircuitEval), exact rounding"}
    return steps.get(row["step"], "Dec, both, by bits as in the paper")


def _transforms(table: pd.DataFrame) -> list[Bar]:
    """One transform of each ring, in both directions: rows of results/ghs.csv."""
    rows = [r for r in table.attrs.get("ghs", []) if r["what"].startswith("transform")]
    return [_own(f"ours, {r['what'].replace('-', ', ')}, {r['parameters']}", r, "seconds", 1e3) for r in rows]


def _operations(table: pd.DataFrame) -> list[Bar]:
    """Milliseconds of single operations: results/lisss.csv and toprf.csv."""
    two = [r for r in table.attrs.get("lisss", []) if r["t"] == r["T"] == "2"]
    bars = [_own("ours, local step of one party", r, "partial_us", 1e-3) for r in two]
    bars += [_own("ours, exact rounding in a batch, 2 parties", r, "exact_batch_us", 1e-3) for r in two]
    bars += [_own("ours, exact rounding of one, 2 parties", r, "exact_ms") for r in two]
    evaluated = [r for _, r in _evaluations(table) if r["system"] == "F" and r.get("bootstraps")]
    bars += [_own("ours, bootstrapping in TFHE-rs", r, "ms", 1 / int(r["bootstraps"])) for r in evaluated]
    bars += [_own("ours, AES-128 by TFHE-rs", r, "ms") for r in evaluated]
    return bars + [
        _own(f"ours, AES-128 by masked gates, {r['method']}, 2 parties", r, "ms")
        for _, r in _evaluations(table)
        if (r["system"], r["n"]) == ("H", "2")
    ]


def _gates(table: pd.DataFrame) -> list[Bar]:
    """ANDs of our circuit, where evaluations of it were measured."""
    ands = float(aes_forms().ands) if table.attrs.get("toprf") else 0.0
    return [Bar("ours, AND", ands, ands, ands, False)] if ands else []


def _counted_ands(table: pd.DataFrame) -> list[Bar]:
    """ANDs of a key generation: results/paper004.csv."""
    rows = [r for r in table.attrs.get("paper004", []) if (r["table"], r["quantity"]) == ("A", "total_and_gates")]
    return [_own(f"ours, {r['row']}, beside arithmetic modulo primes", r, "ours") for r in rows]


def _own(label: str, row: dict[str, str], column: str, scale: float = 1.0) -> Bar:
    """A bar of a table of our own."""
    value = float(row[column]) * scale
    return Bar(label, value, value, value, float(row.get("busy") or 0) > IDLE_CORES, row.get("commit", ""), own_machine(row))


SYSTEMS = {"native": "AES on shares", "H": "the paper's system without a dealer", "F": "FHE alone (TFHE-rs)"}
"""Systems of `bench toprf` beside those of the paper."""
OPRF = "Theirs: one server holds the key, and a dealer made it. Ours: no party knows the key, all parties on one machine, no link; without what is made ahead."
CNN = f"Theirs: one digit, encrypted weights, 484 bits. Ours: a network and weights of our own, 432 bits, stock SEAL, one process. Another operation: clear weights, and sets of ciphertexts that take as long for one digit as for {IMAGES}."
GHS = "Two parties on one machine. Ours: GHS keys of the paper's numbers of primes, digits and switching keys, and decryptions of as many coefficients. Another operation: AES on as many blocks on shares, without homomorphic encryption. Nothing of ours evaluates AES under these keys."
BARS = [
    Bars(
        "000_slide_throughput", "Decryptions a second", "000 (ePrint 2025/1781)", "decryptions_per_second", "decryptions a second, 4 parties", ("protocol",), _rates(exact=True),
        note="Theirs: 1 ms, 1 Gbit/s, which do not say whether MACs are included. Ours: LWE (lwe64-p2), links of 1 ms and 1 Gbit/s, stored preprocessing, whose making is not counted, one batch after another; all parties on one machine. Another operation: mask-open, which may fail and takes fresh noise alone.",
        apart=_rates(exact=False), remark=_best_rate,
    ),
    Bars("003_table1_oprf", "One evaluation of AES-128", "003, table 1", "seconds", "seconds", ("protocol", "parties"), _oprf_seconds, note=OPRF),
    Bars(
        "003_table1_oprf", "Communication of one evaluation of AES-128", "003, table 1", "mb", "MB, of all parties", ("protocol", "parties"),
        _oprf_bytes, note=OPRF,
    ),
    Bars(
        "003_sections1_3_timings", "Single operations, and AES-128", "003, sections 1.1 and 3.3", "ms", "ms", ("operation", "parties"), _operations,
        note="Printed in s, ms and µs. Ours: the step of one party, as in the paper's figure, which has no communication; exact roundings between the parties; mean of the bootstrappings of one AES-128 by TFHE-rs.",
        units={"seconds": 1e3, "ms": 1.0, "us": 1e-3},
    ),
    Bars("003_section3_gates", "Gates of AES-128", "003, section 3", "gates", "gates", ("gate",), _gates, note="Computed, not measured: ours too, whose XORs and NOTs take no table."),
    Bars(
        "004_table5_cnn", "Encryption and evaluation of a CNN", "004 (GMPFHE), table 5", "ms", "ms", ("operation",), _together(_of_cnn("encryption", True), _of_cnn("evaluation", True)),
        where=(("operation", ("Enc", "Eval")),), note=CNN, apart=_together(_of_cnn("encryption", False), _of_cnn("evaluation", False)),
    ),
    Bars(
        "004_section6_eval", "Evaluation of a CNN", "004 (GMPFHE), section 6.2.1", "ms", "ms", ("protocol",), _of_cnn("evaluation", True),
        note=f"{CNN} MK-CKKS: two parties, on a faster machine.", apart=_of_cnn("evaluation", False),
    ),
    Bars("004_section6_ntt", "One number-theoretic transform", "004 (GMPFHE), section 6.1.4", "ms", "ms", ("ring", "context"), _transforms, note="Ours: on one core, residues of about 52 bits."),
    Bars(
        "004_appendix_a_binary_keygen", "AND gates of key generation", "004 (GMPFHE), appendix A", "total_and_gates", "AND gates", ("protocol",), _counted_ands,
        note="Computed, not measured, for binary circuits alone. Ours: counted in a key generation, of the set of the paper's CNN.",
    ),
    Bars(
        "004_table7_aes_bootstrappable", "AES with bootstrappable GHS", "004 (GMPFHE), table 7", "seconds", "seconds",
        ("operation", "network"), _ghs("ghs-28679"), note=GHS, apart=_aes(180),
    ),
    Bars(
        "004_table8_aes_leveled", "AES with leveled GHS", "004 (GMPFHE), table 8", "seconds", "seconds",
        ("operation", "network"), _ghs("ghs-53261"), note=GHS, apart=_aes(120),
    ),
]  # fmt: skip


def draw(plot: Bars, table: pd.DataFrame) -> tuple[Figure, str]:
    """The figure and its caption."""
    theirs = [("paper, " + _label(row, plot.label), value) for row, value in plot.theirs()]
    ours, other = plot.ours(table), plot.apart(table)
    made, axes = style.figure(1 + bool(other), 4.4 if other else 6.4, 1.4 + 0.36 * max(len(theirs) + len(ours), len(other)))
    axes[0].barh(range(len(theirs)), [value for _, value in theirs], 0.7, color="#aaaaaa", hatch="//", edgecolor="white")
    labels = [[_number(axes[0], name, value, position) for position, (name, value) in enumerate(theirs)], *([] for _ in axes[1:])]
    for axis, bars, names in zip(axes, (ours, other), labels, strict=False):
        _draw(axis, bars, names)
    style.decades(axes, "x")
    for axis, names in zip(axes, labels, strict=True):
        axis.set_yticks(range(len(names)), [fill(name, 34) for name in names], fontsize=7.5)
        axis.set_ylim(max(map(len, labels)) - 0.4, -0.6)  # bars of both panels are as thick
        axis.grid(axis="y", visible=False)
        axis.set_xlabel(plot.unit)
    if other:
        axes[1].set_title(NOT_THE_SAME, fontsize=8)
    style.legend_below(made, axes, loaded=any(bar.loaded for bar in (*ours, *other)))
    where = machines(bar.machine for bar in (*ours, *other)) or table.attrs.get("machine", "")
    head(made, f"{plot.title}: {plot.paper}", plot.table, where if ours or other else "", plot.note.startswith("Computed"))
    missing = "" if ours or other else " Ours: not measured in these results."
    apart = f" The second panel has what is {NOT_THE_SAME}." if other else ""
    commits = states(bar.commit for bar in (*ours, *other))
    return made, f"{plot.paper}, as printed (grey). {plot.note}{plot.remark(ours)}{apart}{commits}{missing}"


def _draw(axis: Axes, bars: list[Bar], names: list[str]) -> None:
    """Bars of ours below those that have ``names``, to which theirs are added."""
    start = len(names)
    error = [[bar.value - bar.low for bar in bars], [bar.high - bar.value for bar in bars]]
    made = axis.barh(range(start, start + len(bars)), [bar.value for bar in bars], 0.7, xerr=error if bars else None, capsize=2, color=style.OURS)
    style.dot_loaded(made, [bar.loaded for bar in bars])
    names += [_number(axis, bar.label, bar.value, start + position) for position, bar in enumerate(bars)]


def _number(axis: Axes, name: str, value: float, position: int) -> str:
    """Writes the value beside a bar; returns its name."""
    text = f"{value:,.3g}" if value < 1000 or value >= 1e6 else f"{value:,.0f}"
    axis.annotate(text, (value, position), (3, 0), textcoords="offset points", va="center", fontsize=7)
    return name


def _label(row: published.Row, columns: Sequence[str]) -> str:
    return ", ".join(str(row[column]) for column in columns if row[column] is not None)
