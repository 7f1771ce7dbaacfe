"""Published figures of papers, as rows, to compare the project's own measurements with.

One CSV file a table in ``params/published``; its README gives each file's paper, place, hardware and columns. Values are
as printed: a unit is part of a column's name, and nothing is converted.
"""

from __future__ import annotations

import csv
import difflib
import re
from itertools import islice
from pathlib import Path

from keyquorum.model.errors import KeyQuorumError
from keyquorum.model.resources import resource_folder

Cell = str | int | float | None
Row = dict[str, Cell]

TEXT_COLUMNS = frozenset(
    {
        "context",
        "direction",
        "formula",
        "gate",
        "key",
        "network",
        "note",
        "operation",
        "phase",
        "protocol",
        "quantity",
        "ring",
        "symbol",
        "version",
    }
)
"""The columns that hold text. Every other column holds numbers, so a new column of text is named here."""

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?(e-?[0-9]+)?")


class UnknownTableError(KeyQuorumError):
    """No table of published figures has this name."""


class MalformedTableError(KeyQuorumError):
    """A file of published figures is no table: the text names the file, the line and the column."""


def tables() -> list[str]:
    """The names of all tables, sorted: ``004_table2_gaussian``, ...

    Raises KeyQuorumError if the installation lacks the folder.
    """
    return sorted(path.stem for path in resource_folder("params/published").glob("[0-9][0-9][0-9]_*.csv"))


def load(name: str) -> list[Row]:
    """The rows of a table, in the paper's order; all have the same keys.

    A cell of one of TEXT_COLUMNS is a string. Any other is an int or, with a point or an exponent, a float. An empty
    cell is None: the paper prints no figure there, or one for all values of that column, or one that is illegible.

    Raises UnknownTableError if there is no such table, MalformedTableError if its file is damaged.
    """
    known = tables()
    if name not in known:
        close = difflib.get_close_matches(name, known, n=3, cutoff=0.4) or known[:3]
        raise UnknownTableError(f"no published table {name!r}: tables() lists all of them, for instance {', '.join(close)}")
    return read_table(resource_folder("params/published") / f"{name}.csv")


def read_table(path: Path) -> list[Row]:
    """The rows of a CSV file in the form that :func:`load` describes. Raises MalformedTableError."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.reader(file, strict=True)
            lines = [(reader.line_num, cells) for cells in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise MalformedTableError(f"{path}: not readable as CSV in UTF-8 ({error}): reinstall keyquorum") from error
    if len(lines) < 2:
        raise MalformedTableError(f"{path}: no header and rows: reinstall keyquorum")
    header = lines[0][1]
    if "" in header or len(set(header)) < len(header):
        raise MalformedTableError(f"{path}, line 1: a column without a name or named twice: correct the header")
    rows: list[Row] = []
    for number, cells in islice(lines, 1, None):
        if len(cells) != len(header):
            raise MalformedTableError(f"{path}, line {number}: {len(cells)} cells, but the header has {len(header)}: correct it")
        rows.append({column: _cell(path, number, column, text) for column, text in zip(header, cells, strict=True)})
    return rows


def _cell(path: Path, line: int, column: str, text: str) -> Cell:
    if text == "":
        return None
    if column in TEXT_COLUMNS:
        return text
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise MalformedTableError(f"{path}, line {line}, column {column}: {text!r} is no number: correct it or leave it empty")
    return float(text) if match[1] or match[2] else int(text)


def ajax_bits(kind: str) -> str:
    """Bits that a party sends for a decryption by Ajax, for any number of parties: of its ``theory`` or its ``implementation``."""
    found = next(row for row in load("002_sections2_4_communication") if row["protocol"] == f"Ajax ({kind})")
    return str(found["online_bits_per_party"] or found["online_bits_per_threshold"])
