"""Rules: which measurement stands beside which figure. ``params/published/ours/*.toml``, whose schema is in the README there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from keyquorum.model.plain import Json

from .derived import DERIVED
from .figures import Figure
from .figures import matches as published_matches
from .files import RuleError, folder, read_toml
from .recorded import Record, read
from .recorded import matches as recorded_matches

T = TypeVar("T")
SOURCES = "sources.toml"
COMPARABLE = ("yes", "partly", "no")
QUANTITIES = ("value", "low", "high", "cpu_party")
"""Columns of a row that are numbers with a scale."""


@dataclass(frozen=True)
class Quantity:
    """A number of a recorded row: a column, and the column ``plus`` if there is one, times ``scale``, divided by the column ``per`` if there is one."""

    column: str
    scale: float = 1.0
    per: str = ""
    plus: str = ""

    @classmethod
    def of(cls, data: object) -> Quantity:
        """From the name of a column, or from a table."""
        return cls(data) if isinstance(data, str) else cls(**data)  # type: ignore[arg-type]

    def read(self, row: Mapping[str, str]) -> float | None:
        """The number; None if the row does not have it."""
        if not all(row.get(name) for name in self._columns):
            return None
        value = sum(float(row[name]) for name in (self.column, self.plus) if name) * self.scale
        return value / float(row[self.per]) if self.per else value

    def not_recorded(self, row: Mapping[str, str]) -> bool:
        """Whether the row has the columns, and one of them is empty: it was measured before the table had the number."""
        return all(name in row for name in self._columns) and self.read(row) is None

    @property
    def _columns(self) -> list[str]:
        return [name for name in (self.column, self.plus, self.per) if name]


@dataclass(frozen=True)
class Source:
    """A table of results (``file``), or a function of :mod:`.derived` (``computed``)."""

    file: str = ""
    computed: str = ""
    command: str = ""
    columns: Mapping[str, Any] = field(default_factory=dict)

    def rows(self, results: Path) -> list[Record]:
        """All its rows."""
        return read(results / self.file) if self.file else DERIVED[self.computed](results)

    def cell(self, row: Mapping[str, str], name: str) -> str | float:
        """What a column of results/papers.csv has from a recorded row."""
        data = self.columns.get(name, name)
        if name in QUANTITIES:
            number = Quantity.of(data).read(row)
            return "" if number is None else number
        return row.get(data) or ""


@dataclass(frozen=True)
class Rule:
    """Rows of the table ``source`` that ``match`` stand beside figures of ``table``, ``column``, whose rows are as in ``where``. ``same``: columns of the
    published row that have the value of a column of ours. ``system``: names ours, with its columns in braces."""

    table: str
    column: str
    source: str
    value: Quantity
    system: str
    comparable: str
    why: str = ""
    where: Mapping[str, object] = field(default_factory=dict)
    match: Mapping[str, object] = field(default_factory=dict)
    same: Mapping[str, str] = field(default_factory=dict)
    low: Quantity | None = None
    high: Quantity | None = None
    cpu: Quantity | None = None
    fixed: Mapping[str, str] = field(default_factory=dict)

    def applies(self, figure: Figure) -> bool:
        """Whether it says what stands beside a figure."""
        return (figure.table, figure.column) == (self.table, self.column) and published_matches(figure.row, self.where)

    def found(self, figure: Figure, rows: list[Record]) -> list[Record]:
        """The recorded rows that stand beside a figure."""
        wanted = dict(self.match) | {ours: figure.row[theirs] for theirs, ours in self.same.items()}
        if rows and "phase" in rows[0]:
            wanted.setdefault("phase", "")  # whole runs
        return [row for row in rows if recorded_matches(row, wanted) and not self.value.not_recorded(row)]

    def named(self, row: Record) -> str:
        """The name of ours."""
        try:
            return self.system.format(**row)
        except KeyError as error:
            raise RuleError(f"rule of {self.table}, {self.column}: {self.source} has no column {error}: correct system") from None


@dataclass(frozen=True)
class Headline:
    """A figure that stands at the top of the page."""

    title: str
    table: str
    column: str
    where: Mapping[str, object]

    def of(self, figures: list[Figure]) -> Figure:
        """Its figure. Raises RuleError if there is none, or another one."""
        found = [f for f in figures if (f.table, f.column) == (self.table, self.column) and published_matches(f.row, self.where)]
        if len(found) != 1:
            raise RuleError(f"headline {self.title!r}: {len(found)} figures of {self.table} are so: correct where")
        return found[0]


@dataclass(frozen=True)
class Check:
    """How a claim is judged: by the rows of a ``figure`` (``of``: their column ``ours`` or ``ratio``, or ``spread``, of each system of ours the largest divided by the
    smallest; with ``over`` divided by those of another figure), or by ``recorded`` rows: all numbers, times ``scale``, must be at ``least`` or at ``most`` so
    large. ``says``: what the number is. ``bound``: numbers are bounds on the side that fails, so they can confirm and not refute. ``cited``: why it is not judged."""

    claim: str
    cited: str = ""
    figure: Mapping[str, Any] = field(default_factory=dict)
    over: Mapping[str, Any] = field(default_factory=dict)
    recorded: Mapping[str, Any] = field(default_factory=dict)
    of: str = "ours"
    scale: float = 1.0
    least: float | None = None
    most: float | None = None
    says: str = ""
    bound: bool = False


@dataclass(frozen=True)
class Rules:
    """All rules, headlines, checks of claims, and sources."""

    rules: list[Rule]
    headlines: list[Headline]
    checks: list[Check]
    sources: Mapping[str, Source]


def load_rules(where: Path | None = None) -> Rules:
    """The rules of a folder (default: those of the project). Raises RuleError."""
    where = where or folder() / "ours"
    sources = {name: _made(Source, data, f"{SOURCES}, {name}") for name, data in read_toml(where / SOURCES).items()}
    rules: list[Rule] = []
    headlines: list[Headline] = []
    checks: list[Check] = []
    for path in sorted(where.glob("*.toml")):
        if path.name == SOURCES:
            continue
        data = read_toml(path)
        rules += [_rule(one, f"{path.name}, rule {number}", sources) for number, one in enumerate(data.get("rule", []), 1)]
        headlines += [_made(Headline, one, f"{path.name}, headline {number}") for number, one in enumerate(data.get("headline", []), 1)]
        checks += [_check(one, f"{path.name}, claim {number}") for number, one in enumerate(data.get("claim", []), 1)]
    return Rules(rules, headlines, checks, sources)


def _check(data: Json, place: str) -> Check:
    check = _made(Check, data, place)
    judged = bool(check.figure or check.recorded)
    if bool(check.cited) == judged or (judged and check.least is None and check.most is None):
        raise RuleError(f"{place}: it needs either cited, or figure or recorded with least or most")
    return check


def _rule(data: Json, place: str, sources: Mapping[str, Source]) -> Rule:
    quantities: Json = {name: Quantity.of(data[name]) for name in ("value", "low", "high", "cpu") if name in data}
    rule = _made(Rule, {**data, **quantities}, place)
    if rule.source not in sources:
        raise RuleError(f"{place}: no source {rule.source!r}: add it to {SOURCES}")
    if rule.comparable not in COMPARABLE:
        raise RuleError(f"{place}: comparable is {rule.comparable!r}: choose one of {', '.join(COMPARABLE)}")
    if rule.comparable != "yes" and not rule.why:
        raise RuleError(f"{place}: why is missing: say in one sentence how ours differs")
    return rule


def _made(kind: Callable[..., T], data: Json, place: str) -> T:
    unknown = set(data) - {one.name for one in fields(kind)}  # type: ignore[arg-type]
    if unknown:
        raise RuleError(f"{place}: unknown word {sorted(unknown)[0]!r}: correct it")
    try:
        return kind(**data)
    except TypeError as error:
        raise RuleError(f"{place}: {str(error).partition('() ')[2] or error}") from None
