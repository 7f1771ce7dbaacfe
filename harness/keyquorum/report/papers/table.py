"""``results/papers.csv``: a row for each published figure and each of our measurements beside it."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from keyquorum.model.committee import write_atomically
from keyquorum.model.protocols import PROTOCOLS

from .figures import Figure, figures
from .files import RuleError, folder, read_toml
from .recorded import History, Record
from .rules import Rule, Rules, Source, load_rules

NAME = "papers.csv"
COLUMNS = (
    "paper", "place", "cell", "quantity", "unit", "published", "kind", "system", "ours", "low", "high", "runs", "ratio", "comparable", "why",
    "command", "protocol", "adversary", "parties", "link", "shared_link", "batch", "cpu_party", "commit", "machine", "cores", "busy", "utc",
)  # fmt: skip
"""``cell``: the table in params/published, and what names the figure there. ``ours`` is empty where no result counts: ``why`` says the reason."""
TAKEN = ("protocol", "adversary", "parties", "link", "shared_link", "batch", "runs", "commit", "machine", "cores", "busy", "utc")


@dataclass(frozen=True)
class Entry:
    """Figures beside which nothing of ours stands, and why: an entry of ``without_ours.toml``."""

    table: str
    reason: str
    columns: tuple[str, ...] = ()
    where: tuple[tuple[str, object], ...] = ()

    def covers(self, figure: Figure) -> bool:
        """Whether it is about a figure."""
        named = figure.table == self.table and (not self.columns or figure.column in self.columns)
        return named and all(figure.row.get(name) in (value if isinstance(value, list) else [value]) for name, value in self.where)


@dataclass(frozen=True)
class Papers:
    """The table, with what it was made from. ``rows``: rows of results/papers.csv; ``by_figure``: those of each figure."""

    figures: list[Figure]
    rules: Rules
    by_figure: dict[Figure, list[Record]]
    entries: list[Entry]
    pending: dict[Figure, str]
    """Of figures that have a rule: the command that measures them."""

    @property
    def rows(self) -> list[Record]:
        """All rows, in the order of the figures."""
        return [row for figure in self.figures for row in self.by_figure[figure]]

    def with_ours(self) -> list[Figure]:
        """Figures beside which a result stands that counts."""
        return [figure for figure in self.figures if any(row["ours"] for row in self.by_figure[figure])]

    def reason(self, figure: Figure) -> str:
        """Why nothing of ours stands beside a figure; empty if something does, or if nobody says why."""
        if any(row["ours"] for row in self.by_figure[figure]):
            return ""
        refused = [row["why"] for row in self.by_figure[figure]]
        said = [entry.reason for entry in self.entries if entry.covers(figure)]
        said += [f"Not measured yet at a commit of the history: {self.pending[figure]}."] if figure in self.pending else []
        return next(iter([*refused, *said]), "")

    def missing(self) -> list[Figure]:
        """Figures without a row, a rule or an entry."""
        found = [f for f in self.figures if not self.by_figure[f] and f not in self.pending]
        return [f for f in found if not any(entry.covers(f) for entry in self.entries)]

    def stale(self) -> list[str]:
        """Entries of ``without_ours.toml`` that are about no figure, or about one that has a row by now."""
        found = []
        for entry in self.entries:
            covered = [figure for figure in self.figures if entry.covers(figure)]
            found += [f"{entry.table}: an entry is about no figure"] if not covered else []
            found += [f"{figure.cell}: has a row of ours, and an entry" for figure in covered if self.by_figure[figure]]
        return found

    def line(self) -> str:
        """The last line of ``keyquorum report --papers``."""
        shown = [row for row in self.rows if row["ours"]]
        compared = [row for row in shown if row["comparable"] != "no" and row["ratio"]]
        worst = min(compared, key=lambda row: float(row["ratio"]), default=None)
        counts = {word: sum(row["comparable"] == word for row in shown) for word in ("partly", "no")}
        ours = len(self.with_ours())
        text = f"{worst['ratio']} ({worst['cell']})" if worst else "none"
        return (
            f"papers: rows={len(self.rows)} ours={ours} without={len(self.figures) - ours} worst_ratio={text} "
            f"partly={counts['partly']} no={counts['no']}"
        )


def make(results: Path, history: History, rules: Rules | None = None) -> Papers:
    """The table from recorded results. Rows of commits that ``history`` refuses have no figure of ours, and say why."""
    rules = rules or load_rules()
    known = figures()
    recorded = {name: source.rows(results) for name, source in rules.sources.items()}
    by_figure: dict[Figure, list[Record]] = {figure: [] for figure in known}
    pending: dict[Figure, str] = {}
    for rule in rules.rules:
        chosen = [figure for figure in known if rule.applies(figure)]
        if not chosen:
            raise RuleError(f"rule of {rule.table}, {rule.column}: no figure is so: correct table, column and where")
        for figure in chosen:
            pending.setdefault(figure, rules.sources[rule.source].command)
            by_figure[figure] += _beside(figure, rule, rules.sources[rule.source], recorded[rule.source], history)
    return Papers(known, rules, by_figure, load_entries(folder() / "without_ours.toml"), pending)


def load_entries(path: Path) -> list[Entry]:
    """The entries of ``without_ours.toml``."""
    return [
        Entry(one["table"], one["reason"], tuple(one.get("columns", ())), tuple(one.get("where", {}).items()))
        for one in read_toml(path).get("without", [])
    ]


def _beside(figure: Figure, rule: Rule, source: Source, rows: list[Record], history: History) -> Iterator[Record]:
    """The rows of a figure by a rule: one for each system of ours, of the commit that counts."""
    found: dict[str, list[Record]] = {}
    for row in rule.found(figure, rows):
        found.setdefault(rule.named(row), []).append(row)
    for system, all_of in found.items():
        usable = [row for row in all_of if not _refusal(row, source, history)]
        last = min((history.age(row.get("commit", "")) for row in usable), default=0)
        usable = [row for row in usable if history.age(row.get("commit", "")) == last]
        if len(usable) > 1:
            raise RuleError(f"rule of {figure.cell}: {len(usable)} recorded rows are {system!r}: narrow match, or name more columns in system")
        yield _row(figure, rule, source, (usable or all_of)[0], system) | ({} if usable else _refused(all_of[0], source, history))


def _refusal(row: Record, source: Source, history: History) -> str:
    return "" if source.computed and not row.get("commit") else history.refusal(row.get("commit", ""))


def _refused(row: Record, source: Source, history: History) -> Record:
    """What a row has instead of a figure whose commit does not count."""
    why = f"Without ours until measured anew: {_refusal(row, source, history)}."
    return dict.fromkeys(("ours", "low", "high", "ratio", "cpu_party"), "") | {"comparable": "no", "why": why}


def _row(figure: Figure, rule: Rule, source: Source, row: Record, system: str) -> Record:
    ours = rule.value.read(row)
    if ours is None:
        raise RuleError(f"rule of {figure.cell}: {rule.source} has no number in {rule.value.column}: correct value")
    made: Record = {name: str(source.cell(row, name)) for name in TAKEN} | dict(rule.fixed)
    numbers = {
        "low": rule.low.read(row) if rule.low else source.cell(row, "low") if "low" in source.columns else "",
        "high": rule.high.read(row) if rule.high else source.cell(row, "high") if "high" in source.columns else "",
        "cpu_party": rule.cpu.read(row) if rule.cpu else source.cell(row, "cpu_party"),
    }
    made |= {name: text(value) if isinstance(value, float) and value > 0 else "" for name, value in numbers.items()}
    made["adversary"] = made["adversary"] or (PROTOCOLS[made["protocol"]].adversary if made["protocol"] in PROTOCOLS else "")
    made["link"] = made["link"] or "none"
    if made["link"] != "none":
        made["shared_link"] = made["shared_link"] or "no"
    comparable = "no" if made["link"] == "none" and figure.over_link else rule.comparable
    return made | {
        "paper": figure.paper, "place": figure.place, "cell": figure.cell, "quantity": figure.column, "unit": figure.unit,
        "published": text(figure.value), "kind": figure.kind, "system": system, "ours": text(ours), "ratio": text(figure.ratio(ours), 3),
        "comparable": comparable, "why": _why(figure, rule, comparable), "command": row.get("command") or source.command,
    }  # fmt: skip


WITHOUT_LINK = "No link here: the machine's own loopback, where the paper has a network."


def _why(figure: Figure, rule: Rule, comparable: str) -> str:
    """How ours differs, and what the table says of the published figure."""
    column, _, note = str(figure.row.get("note") or "").partition(": ")
    without = [WITHOUT_LINK] if comparable != rule.comparable else []
    return " ".join([*without, rule.why, *([f"The published figure is {note}."] if column == figure.column else [])]).strip()


def text(value: float, digits: int = 6) -> str:
    """A number of so many digits, without an exponent where it is short."""
    if math.isnan(value):
        return ""
    rounded = float(f"{value:.{digits}g}")
    return str(int(rounded)) if rounded.is_integer() and abs(rounded) < 1e15 else repr(rounded)


def write(papers: Papers, path: Path) -> None:
    """Writes the rows."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, COLUMNS, lineterminator="\n", restval="", extrasaction="raise")
    writer.writeheader()
    writer.writerows(papers.rows)
    write_atomically(path, buffer.getvalue().encode(), 0o644)
