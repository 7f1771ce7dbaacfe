"""The page of published figures, ``papers.html``: for each paper its headlines, then what its claims are worth here, then every figure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from keyquorum.model.committee import write_atomically

from . import table
from .claims import Verdict, verdicts
from .figures import Figure
from .recorded import History, Record
from .table import Papers

PAPERS = {
    "000": "High-Throughput Universally Composable Threshold FHE Decryption (ePrint 2025/1781, its slides)",
    "001": "Pure Multi Key BGV Implementation (ICISSP 2024)",
    "002": "Ajax: Fast Threshold Fully Homomorphic Encryption without Noise Flooding (ePrint 2025/1834)",
    "003": "Threshold OPRF from Threshold Additive HE (2024)",
    "004": "Practical MPC+FHE with Applications in Secure Multi-Party Neural Network Evaluation (GMPFHE, ePrint 2020)",
}
STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 78rem; margin: 1.5rem auto; padding: 0 1rem; color: #222 } p { max-width: 60rem }
table { border-collapse: collapse; font-size: 13px; margin: .5rem 0 1.5rem } td, th { padding: .15rem .6rem; border-bottom: 1px solid #ddd; text-align: left; vertical-align: top }
td.number { text-align: right; white-space: nowrap } td.yes { color: #1b5e20 } td.no { color: #8c1c13 } td.behind { font-weight: 600 } figure { margin: 1rem 0 2rem } img { max-width: 46rem; width: 100% }
h1 { margin-bottom: .3rem } h2 { margin-top: 2rem } .wide { overflow-x: auto } .paper { white-space: nowrap }
"""


@dataclass(frozen=True)
class Made:
    """What a report of the papers wrote: the table and the page; ``line``: what it comes to."""

    table: Path
    page: Path
    line: str


def write_papers(results: Path, output: Path) -> Made:
    """Writes ``results/papers.csv`` and ``output/papers.html`` from the tables in ``results``. Raises HistoryError outside of a checkout with
    its history, and RuleError if rules and tables do not fit."""
    history = History.of(results)
    papers = table.make(results, history)
    path, page = results / table.NAME, output / "papers.html"
    table.write(papers, path)
    output.mkdir(parents=True, exist_ok=True)
    pictures = sorted(image.name for image in output.glob("published_*.png"))
    write_atomically(page, html(papers, verdicts(papers, results, history), pictures).encode(), 0o644)
    return Made(path, page, papers.line())


def html(papers: Papers, judged: Sequence[Verdict], pictures: Sequence[str] = ()) -> str:
    """The page. ``pictures``: names of files beside it, ``published_`` and the published table."""
    parts = ["<h1>Five papers, and this project</h1>", _conditions(papers), _headlines(papers)]
    for paper, title in PAPERS.items():
        parts += [f'<h2 id="p{paper}">{paper}: {escape(title)}</h2>', _claims(v for v in judged if v.claim["paper"] == paper)]
        tables = dict.fromkeys(f.table for f in papers.figures if f.paper == paper)
        for name in tables:
            of = [f for f in papers.figures if f.table == name]
            parts += [f"<h3>{escape(name)}: {escape(of[0].place)}</h3>", _figures(papers, of)]
            parts += [f'<figure><img alt="{escape(image)}" src="{escape(image)}"></figure>' for image in pictures if _shows(image, name)]
    body = "\n".join(parts)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>KeyQuorum: five papers</title>'
        f"<style>{STYLE}</style></head><body>{body}</body></html>\n"
    )


def _shows(image: str, name: str) -> bool:
    rest = image.removeprefix(f"published_{name}").removesuffix(".png")
    return image.startswith(f"published_{name}") and (not rest or (rest.startswith("_") and rest[1:].isdigit()))


def _conditions(papers: Papers) -> str:
    shown = [row for row in papers.rows if row["ours"] and row["commit"]]
    cores = ", ".join(sorted({row["cores"] for row in shown} - {""}))
    with_ours = len(papers.with_ours())
    return (
        f"<p>{len(papers.figures)} published figures; beside {with_ours} of them stands a result of ours, recorded at a commit of this history. Ratio: the "
        "paper's time or bytes divided by ours, our rate divided by the paper's; above 1 ours is better. Every party of ours is a process of one machine "
        f"({cores} cores, shared by all parties), over TLS; links are simulated where one is named. The papers used other hardware, so no ratio is a race. "
        'All columns: <a href="../papers.csv">papers.csv</a>.</p>'
        "<p>Comparable: <b>yes</b>, ours is the same operation, and nothing that changes the figure differs; <b>partly</b>, it is the same operation under other conditions, "
        "which the row names; <b>no</b>, it is another operation, or a time or a rate without a link beside one over a network. Bytes, rounds and gates do not depend on links.</p>"
    )


def _headlines(papers: Papers) -> str:
    """One line for each headline and each result that can be compared; of a headline without these the others, or the reason why there is none."""
    rows = []
    for headline in papers.rules.headlines:
        figure = headline.of(papers.figures)
        counted = [row for row in papers.by_figure[figure] if row["ours"]]
        shown = [row for row in counted if row["comparable"] != "no"] or counted
        first = [_link(figure.paper), escape(headline.title), f"{table.text(figure.value)} {figure.unit}"]
        if not shown:
            rows.append([*first, "–", "–", "–", escape(papers.reason(figure) or "without ours")])
        for number, row in enumerate(shown):
            start = first if number == 0 else ["", "", ""]
            rows.append(
                [
                    *start,
                    f"{row['ours']} {figure.unit}",
                    row["ratio"] if row["comparable"] != "no" else "–",
                    row["comparable"],
                    escape(_headline(row)),
                ]
            )
    return _table(("paper", "headline", "published", "ours", "ratio", "comparable", "what ours is, or why there is none"), rows)


def _headline(row: Record) -> str:
    """What ours is; of a row that cannot be compared also why."""
    return f"{row['system']}. {row['why']}" if row["comparable"] == "no" else row["system"]


def _link(paper: str) -> str:
    return f'<a href="#p{paper}">{paper}</a>'


def _claims(judged: Iterable[Verdict]) -> str:
    rows = [[escape(v.claim["claim"]), escape(v.claim["place"]), escape(v.claim["rests_on"]), v.holds, escape(v.why)] for v in judged]
    return _table(("claim", "place", "rests on", "here", "because"), rows) if rows else ""


def _figures(papers: Papers, figures: Sequence[Figure]) -> str:
    rows = []
    for figure in figures:
        cell = figure.cell.removeprefix(figure.table).strip()
        first = [escape(cell), f"{table.text(figure.value)} {figure.unit}", figure.kind]
        of = papers.by_figure[figure]
        rows += [[*first, *_ours(row, figure)] for row in of]
        rows += [] if of else [[*first, "–", "–", "–", "–", "–", escape(papers.reason(figure)), ""]]
    return _table(("cell", "published", "kind", "ours", "ratio", "comparable", "system", "parties, link, batch", "what differs", "commit"), rows)


def _ours(row: Record, figure: Figure) -> list[str]:
    """Cells of a row of ours; beside a rate without a link also that of one core for each party."""
    value = f"{row['ours']} {figure.unit}" if row["ours"] else "–"
    if row["low"] and row["low"] != row["high"]:
        value += f" ({row['low']} to {row['high']})"
    if figure.unit == "1/s" and row["cpu_party"]:
        value += f"; {table.text(1 / float(row['cpu_party']), 3)} a core of a party"
    link = row["link"] + (" (each link has the whole bandwidth)" if row["shared_link"] == "no" and row["parties"] not in ("", "2") else "")
    where = f"{row['parties'] or '–'}, {link}, {row['batch'] or '–'}"
    return [value, row["ratio"] or "–", row["comparable"], escape(row["system"]), escape(where), escape(row["why"]), escape(row["commit"])]


NUMBERS = frozenset({"published", "ours", "ratio"})


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"<tr>{''.join(f'<th>{name}</th>' for name in head)}</tr>"]
    for row in rows:
        cells = zip(head, row, strict=True)
        lines.append(f"<tr>{''.join(f'<td{_kind(name, cell)}>{cell}</td>' for name, cell in cells)}</tr>")
    return f'<div class="wide"><table>{"".join(lines)}</table></div>'


def _kind(name: str, cell: str) -> str:
    """The class of a cell: numbers stand at the right, and figures of ours behind the paper's are bold."""
    words = ["number"] if name in NUMBERS else [cell] if name == "comparable" and cell in ("yes", "no") else []
    if name == "ratio" and cell not in ("–", "") and float(cell) < 1:
        words.append("behind")
    return f' class="{" ".join(words)}"' if words else ""
