"""Published figures one by one: every number of ``params/published`` that a paper measured, computed or cites (``figures.toml`` says which)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from keyquorum.model import published
from keyquorum.model.plain import Json
from keyquorum.model.published import Cell, Row

from .files import RuleError, folder, read_toml

KINDS = ("measured", "computed", "cited")
RATES = frozenset({"1/s", "bits of security", "bits dropped"})
"""Units of which more is better."""
TIMES = frozenset({"s", "ms", "us", "µs", "1/s"})
"""Units of times, and of results a second: what the delay of a link changes."""
NETWORK_COLUMNS = ("network", "ping_ms")
SHARES = frozenset({"%"})
"""Units of which neither more nor less is better."""


@dataclass(frozen=True)
class Figure:
    """One published number. ``row``: its row of the table; ``cell``: the words that name it, the same in results/papers.csv and in
    ``without_ours.toml``."""

    table: str
    column: str
    place: str
    cell: str
    unit: str
    kind: str
    value: float
    row: Row = field(hash=False, compare=False)

    @property
    def paper(self) -> str:
        """The paper's number, of three digits."""
        return self.table[:3]

    @property
    def over_link(self) -> bool:
        """Whether it is a time or a rate that the paper measured over a network."""
        return self.unit in TIMES and any(self.row.get(name) for name in NETWORK_COLUMNS)

    def ratio(self, ours: float) -> float:
        """How much better ours is: of times and bytes the published figure divided by ours, of rates the reverse; nan: of shares, and without a number."""
        if self.unit in SHARES:
            return float("nan")
        return (ours / self.value if self.unit in RATES else self.value / ours) if ours and self.value else float("nan")


def figures() -> list[Figure]:
    """All figures, in the order of the tables. Raises RuleError if ``figures.toml`` leaves out a table or a column of numbers, or names one
    that is not there."""
    described = read_toml(folder() / "figures.toml")
    names = published.tables()
    if set(described) != set(names):
        raise RuleError(f"figures.toml: describes {sorted(set(described) ^ set(names))}, or lacks them: there is one entry for each table")
    return [figure for name in names for figure in _of_table(name, described[name])]


def _of_table(name: str, table: Json) -> list[Figure]:
    rows = published.load(name)
    if table["kind"] not in KINDS:
        raise RuleError(f"figures.toml, {name}: the kind {table['kind']!r} is none of {', '.join(KINDS)}")
    if table.get("chosen"):
        units, found = table.get("figures_of", {}), {row["quantity"] for row in rows}
        if not units.keys() <= found:
            raise RuleError(f"figures.toml, {name}: no quantity {sorted(units.keys() - found)[0]!r} is in the table")
        return [_figure(name, table, row, "value", units[row["quantity"]]) for row in rows if row["quantity"] in units and row["value"] is not None]
    added = table.get("add", {})
    numbers = {column for column in rows[0] if column not in published.TEXT_COLUMNS}
    if numbers != {*table["keys"], *table["figures"], *added}:
        raise RuleError(f"figures.toml, {name}: keys, figures and add are not its columns of numbers ({', '.join(sorted(numbers))})")
    return [_figure(name, table, row, column, unit) for row in rows for column, unit in table["figures"].items() if row[column] is not None]


def _figure(name: str, table: Json, row: Row, column: str, unit: str) -> Figure:
    """The figure of a row; what other columns add to it is in it."""
    parts = [(other, factor) for other, (target, factor) in table.get("add", {}).items() if target == column]
    value = _number(row[column]) + sum(_number(row[other]) * factor for other, factor in parts)
    numbers = {*table.get("figures", ()), *table.get("add", ()), "value", "formula", "symbol", "note"}
    words = [f"{other}={cell}" for other, cell in row.items() if other not in numbers and cell is not None]
    cited = any(row[other] == text for other, text in table.get("cited", {}).items())
    cell = " ".join([name, ", ".join([*words, column])])
    return Figure(name, column, table["place"], cell, unit, "cited" if cited else table["kind"], value, row)


def _number(cell: Cell) -> float:
    return float(cell) if isinstance(cell, int | float) else 0.0


def matches(row: Row, wanted: Mapping[str, object]) -> bool:
    """Whether cells of a published row have these values (for a list: one of its values)."""
    return all(row.get(column) in (value if isinstance(value, list) else [value]) for column, value in wanted.items())
