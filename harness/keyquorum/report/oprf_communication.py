"""Figure 4 of paper 003: communication of an evaluation of AES-128 against the threshold t, by the paper's two formulas; and ours, measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from keyquorum.model import published

TABLE = "003_section3_communication"
SYSTEMS = {"H": "the paper's system without a dealer", "native": "AES on shares"}
"""Systems of `bench toprf` beside it."""


@dataclass(frozen=True)
class Point:
    """``t``: servers that decrypt; of ours the number of parties. ``mb``: sent by all servers or parties in an evaluation of one block, MB."""

    series: str
    t: int
    mb: float


def largest_threshold() -> int:
    """The greatest t that the paper considers: 400."""
    return next(int(str(row["value"])) for row in published.load("003_sections3_4_parameters") if row["symbol"] == "t")


def formulas(thresholds: Iterable[int] | None = None) -> list[Point]:
    """The paper's lines (128 t + 64 MB at first, 2.25 t + 0.63 MB with seeds), from t = 1 to the greatest t.

    They are as printed. T = 2 servers need one transfer of a partial decryption, since the server that decrypts keeps its own: the formulas count t."""
    found = []
    for row in published.load(TABLE):
        if row["direction"] == "both" and row["mb_fixed"] is not None:
            each, fixed = float(str(row["mb_per_threshold"])), float(str(row["mb_fixed"]))
            for t in thresholds if thresholds is not None else range(1, largest_threshold() + 1):
                found.append(Point(f"paper 003, {row['version']}", t, each * t + fixed))
    return found


def ours(rows: Iterable[Mapping[str, str]]) -> list[Point]:
    """Our points from the rows of results/toprf.csv: one block, no simulated link. Rows that were measured before the table had the bytes of all parties are left
    out."""
    return [
        Point(f"ours, {SYSTEMS[row['system']]}, {row['method']}, {row['protocol']}", int(row["n"]), float(row["all_mb"]))
        for row in rows
        if row["system"] in SYSTEMS and (row["batch"], row["link"]) == ("1", "none") and row.get("all_mb")
    ]


__all__ = ["Point", "formulas", "largest_threshold", "ours"]
