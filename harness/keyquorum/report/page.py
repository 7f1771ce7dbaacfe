"""The report: one HTML page, and its plots as PNG files."""

from __future__ import annotations

import base64
import io
from html import escape
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from keyquorum.model import published as tables
from keyquorum.model.committee import write_atomically

from . import cnn_evaluation, libraries, multikey, online_bits, oprf_communication, plots, published, published_bars
from .committees import committee_table, committees
from .data import OWN_TABLES, conditions, load, skipped, summary

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
figure { margin: 1.5rem 0 2.5rem } img { max-width: 100% } figcaption { color: #444; font-size: 13px; max-width: 48rem }
table { border-collapse: collapse; font-size: 13px } td, th { padding: .2rem .7rem; border-bottom: 1px solid #ddd; text-align: right }
td:first-child, th:first-child { text-align: left; white-space: nowrap } td { white-space: nowrap } .wide { overflow-x: auto }
"""
PARAMETER_TABLES = (
    "000_slide_parameters",
    "002_sections4_5_parameters",
    "002_table2_parameters",
    "003_sections3_4_parameters",
    "003_table6_parameters",
    "004_parameters",
)
"""Published tables that state parameters and no measurements."""
PNG_DPI = 150
DRAWN = {
    "committees": ("Which committee, and what it costs", committees), **plots.PLOTS, **libraries.PLOTS, **multikey.PLOTS, **online_bits.PLOTS, **oprf_communication.PLOTS,
    **cnn_evaluation.PLOTS,
}  # fmt: skip
"""Title and function of all plots but those of published tables."""


def write_report(results: Path, output: Path) -> list[Path]:
    """Writes ``output``/index.html and PNGs from the tables under ``results``; returns the paths. Plots of published figures that an earlier report left there, and that this
    one does not have, are removed.

    Raises NoResultsError if there are none.
    """
    rows = load(results)
    table = summary(rows)
    output.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    parts = ["<h1>KeyQuorum: measured results</h1>"]
    for name, (title, make) in DRAWN.items():
        made = make(table)
        if made is None:
            continue
        written.append(_save(made[0], output / f"{name}.png"))
        parts.append(f"<h2>{escape(title)}</h2>{_figure(written[-1], title, made[1])}")
        if make is committees:
            parts += [_html(committee_table(table)), _head(rows)]
    if not written:
        parts.append(_head(rows))
    beside = _beside(table, output)
    written += [path for path, _ in beside]
    if beside:
        parts.append("<h2>Beside published figures</h2>" + "".join(part for _, part in beside))
        parts.append("<h2>Parameters of the papers</h2>" + "".join(_parameters(name) for name in PARAMETER_TABLES))
    missing = skipped(results)
    if missing:
        parts.append("<h2>Not measured</h2><ul>" + "".join(f"<li>{escape(line)}</li>" for line in missing) + "</ul>")
    parts.append("<h2>All measurements</h2>" + _html(_all(table)))
    page = output / "index.html"
    title = "KeyQuorum: measured results"
    body = "\n".join(parts)
    text = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style></head><body>{body}</body></html>\n'
    )
    write_atomically(page, text.encode(), 0o644)
    for old in {*output.glob("published_*.png")} - {*written}:
        old.unlink()
    return [page, *written]


def _beside(table: pd.DataFrame, output: Path) -> list[tuple[Path, str]]:
    """Plots of published figures beside which ours stand, each with its part of the page. Where results have measurements at the sizes of a paper, also published
    figures alone."""
    plots_of_papers: list[published.Published | published_bars.Bars] = sorted([*published.PLOTS, *published_bars.BARS], key=lambda p: p.table)
    at_their_sizes = any(table.attrs.get(name) for name in OWN_TABLES)
    counts: dict[str, int] = {}
    found = []
    for plot in plots_of_papers:
        counts[plot.table] = counts.get(plot.table, 0) + 1
        if not (_has_ours(plot, table) or (at_their_sizes and isinstance(plot, published.Published) and (plot.ours is None or plot.computed))):
            continue
        suffix = f"_{counts[plot.table]}" if counts[plot.table] > 1 else ""
        figure, caption = published.draw(plot, table) if isinstance(plot, published.Published) else published_bars.draw(plot, table)
        path = _save(figure, output / f"published_{plot.table}{suffix}.png")
        found.append((path, _figure(path, plot.title, caption)))
    return found


def _has_ours(plot: published.Published | published_bars.Bars, table: pd.DataFrame) -> bool:
    """Whether something was measured that stands in a plot of published figures."""
    if isinstance(plot, published_bars.Bars):
        return plot.measured(table)
    return plot.ours is not None and not plot.computed and len(plot.ours(table)) > 0


def _head(rows: pd.DataFrame) -> str:
    pairs = "".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in conditions(rows))
    simulated = sorted(set(rows["link"]) - {""})
    notice = (
        f"<p><b>Links are simulated</b> where a round trip is named ({escape(', '.join(simulated))}): a delay and a token bucket in the "
        "transport. All other figures are without added delay.</p>"
        if simulated
        else "<p>No links were simulated.</p>"
    )
    return (
        "<h2>Conditions</h2><p>Every party is a process of one machine, over mutual TLS. Times are those of the slowest "
        f"party, medians over the runs.</p>{notice}<table>{pairs}</table>"
    )


def _save(figure: Figure, path: Path) -> Path:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=PNG_DPI, bbox_inches="tight", metadata={"Software": None})
    plt.close(figure)
    write_atomically(path, buffer.getvalue(), 0o644)
    return path


def _figure(path: Path, title: str, caption: str) -> str:
    data = base64.b64encode(path.read_bytes()).decode()
    return f'<figure><img alt="{escape(title)}" src="data:image/png;base64,{data}"><figcaption>{escape(caption)}</figcaption></figure>'


def _html(table: pd.DataFrame) -> str:
    return f'<div class="wide">{table.to_html(index=False, border=0, na_rep="–", float_format=_number)}</div>'


def _number(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def _parameters(name: str) -> str:
    rows = pd.DataFrame(tables.load(name)).astype(object)
    return f"<h3>{escape(name)}</h3>" + _html(rows.where(rows.notna(), "–"))


def _all(table: pd.DataFrame) -> pd.DataFrame:
    made = table[["suite", "name", "backend", "protocol", "parties", "parameters", "batch", "link", "runs"]].copy()
    made["link"] = made["link"].replace("", "–")
    made["parameters"] = made["parameters"].str.slice(0, 24)
    made["seconds"], made["low"], made["high"] = table["seconds"], table["seconds_low"], table["seconds_high"]
    made["offline s"], made["rounds"] = table["offline_seconds"], table["rounds"].astype(int)
    made["MB sent a party"] = table["sent_per_party"] / 1e6
    made["CPU s, all"], made["memory, MB a party"] = table["cpu_seconds"], table["peak_memory"] / 1e6
    return made
