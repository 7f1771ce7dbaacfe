"""Sentences of the papers (``params/published/claims.csv``), and whether they hold here: judged by rows of the table, or by recorded rows."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .figures import Figure
from .figures import matches as published_matches
from .files import RuleError, folder
from .recorded import History, Record, matches
from .rules import Check, Quantity
from .table import Papers, text

HOLDS, FAILS, CITED = "holds here", "not here", "cited only"


@dataclass(frozen=True)
class Verdict:
    """A claim and what our results say of it. ``why``: the figures behind it, or why there are none."""

    claim: Mapping[str, str]
    holds: str
    why: str


def claims() -> list[dict[str, str]]:
    """The claims: paper, place, claim, value (empty: it states none) and what it rests on in the paper."""
    with (folder() / "claims.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def verdicts(papers: Papers, results: Path, history: History) -> list[Verdict]:
    """The verdict of each claim. Raises RuleError if a claim has no check, or a check no claim."""
    checks = {check.claim: check for check in papers.rules.checks}
    known = claims()
    odd = sorted(checks.keys() ^ {claim["claim"] for claim in known})
    if odd:
        raise RuleError(f"claim {odd[0]!r}: it stands in claims.csv or in a file of ours/, not in both: add the other one")
    return [_verdict(claim, checks[claim["claim"]], papers, results, history) for claim in known]


def _verdict(claim: Mapping[str, str], check: Check, papers: Papers, results: Path, history: History) -> Verdict:
    if check.cited:
        return Verdict(claim, CITED, check.cited)
    values = [check.scale * value for value in _values(check, papers, results, history)]
    if not values:
        return Verdict(claim, CITED, "no result that counts, until measured anew")
    low = float("-inf") if check.least is None else check.least
    high = float("inf") if check.most is None else check.most
    shown = text(min(values), 3) if min(values) == max(values) else f"{text(min(values), 3)} to {text(max(values), 3)}"
    holds = HOLDS if all(low <= value <= high for value in values) else CITED if check.bound else FAILS
    return Verdict(claim, holds, ": ".join([*([check.says] if check.says else []), f"ours {shown}"]))


def _values(check: Check, papers: Papers, results: Path, history: History) -> Sequence[float]:
    if check.recorded:
        source = papers.rules.sources[check.recorded["source"]]
        value = Quantity.of(check.recorded["value"])
        rows = [row for row in source.rows(results) if matches(row, check.recorded["match"]) and not _refused(row, history)]
        return [number for number in map(value.read, rows) if number is not None]
    if check.of == "spread":
        return _spreads(check.figure, papers)
    first = _of_figures(check.figure, check.of, papers)
    if check.over:
        second = _of_figures(check.over, check.of, papers)
        return [min(first) / min(second)] if first and second else []
    return first


def _refused(row: Mapping[str, str], history: History) -> bool:
    """Whether a commit of a row is not of the history. A row that is computed from two tables has two."""
    return any(history.refusal(row[name]) for name in ("commit", "other_commit") if name in row)


def _spreads(wanted: Mapping[str, Any], papers: Papers) -> list[float]:
    """For each system of ours that stands beside several of the figures, its largest number divided by its smallest."""
    of_system: dict[str, list[float]] = {}
    for row in _rows(wanted, papers):
        of_system.setdefault(row["system"], []).append(float(row["ours"]))
    return [max(numbers) / min(numbers) for numbers in of_system.values() if len(numbers) > 1]


def _of_figures(wanted: Mapping[str, Any], column: str, papers: Papers) -> list[float]:
    """Numbers of the rows of figures that count."""
    return [float(row[column]) for row in _rows(wanted, papers)]


def _rows(wanted: Mapping[str, Any], papers: Papers) -> list[Record]:
    """The rows of figures that count."""
    chosen = [f for f in papers.figures if _is(f, wanted)]
    if not chosen:
        raise RuleError(f"claim about {wanted['table']}, {wanted['column']}: no figure is so: correct where")
    return [row for figure in chosen for row in papers.by_figure[figure] if row["ours"] and row["comparable"] != "no"]


def _is(figure: Figure, wanted: Mapping[str, Any]) -> bool:
    return (figure.table, figure.column) == (wanted["table"], wanted["column"]) and published_matches(figure.row, wanted.get("where", {}))
