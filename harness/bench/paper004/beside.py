"""A measured figure beside the paper's: the columns of the table, and what the paper has that was not measured."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from keyquorum.model import published
from keyquorum.model.links import SHARED
from keyquorum.model.plain import Json

from ..runner import Row

TABLES = {
    "2": "004_table2_gaussian", "3": "004_table3_fixed_weight", "4": "004_table4_conversion", "5": "004_table5_cnn", "6": "004_table6_key_sizes",
    "A": "004_appendix_a_binary_keygen",
}  # fmt: skip
SCALE = {
    "seconds": 1.0, "ms": 1e3, "us": 1e6, "communication_kb": 1e-3, "communication_mb": 1e-6, "communication_gb": 1e-9, "mb": 2.0**-20, "total_and_gates": 1.0,
    "saved_percent": 1.0, "count": 1.0,
}  # fmt: skip
"""Seconds, bytes or numbers of our measurements in the unit of a quantity. The paper's sizes of keys are MiB: its 18 "MB" are those of nine primes."""
COUNTS = ("total_and_gates", "count")
LARGER_IS_BETTER = "saved_percent"
NETWORKS = {"none": "LAN", "paper004-lan": "LAN", "paper004-wan": "WAN"}
"""Our links, and the network of the paper whose figures are beside them. Without a simulated link they are those of the LAN."""
CNN_ONLY = ("Enc", "Eval")
"""Rows of table 5 that have no message between parties: `keyquorum bench cnn` measures them."""


@dataclass(frozen=True)
class Asked:
    """Parties, the links between them, and how often each row is measured."""

    parties: int
    link: str
    repeats: int
    quick: bool

    @property
    def network(self) -> str:
        """The paper's name of its network."""
        return NETWORKS[self.link]

    @property
    def job(self) -> Json:
        """The links as a job names them: a party's links share the bandwidth, as those of the paper's machines do."""
        return {} if self.link == "none" else {"link": f"{self.link},{SHARED}"}

    @property
    def columns(self) -> Row:
        """The columns of every row."""
        return {"parties": self.parties, "link": self.link, "shared_link": "" if self.link == "none" else "yes", "runs": self.repeats}


@dataclass(frozen=True)
class Cost:
    """Of one result: seconds of the slowest party and CPU seconds of the busiest, medians over the runs; the most bytes that a party sends, and those that all
    parties send, of the last run."""

    seconds: float
    cpu: float
    sent: float
    sent_by_all: float

    @classmethod
    def of(cls, results: Sequence[Sequence[Mapping[str, float]]], count: int = 1) -> Cost:
        """From the runs of each party, which make ``count`` results."""
        runs = list(zip(*results, strict=True))
        sent = [one["sent"] / count for one in runs[-1]]
        return cls(
            statistics.median(max(one["seconds"] for one in run) for run in runs) / count,
            statistics.median(max(one["cpu"] for one in run) for run in runs) / count,
            max(sent),
            sum(sent),
        )


def paper_figure(table: str, match: Mapping[str, object], parties: int, quantity: str, network: str = "LAN") -> float | None:
    """The paper's figure, in the unit of ``quantity``; None if the paper has no legible figure."""
    wanted = {"parties": parties, "network": network, **match}
    for row in published.load(TABLES[table]):
        if all(row[k] == v for k, v in wanted.items() if k in row):
            value = row.get(quantity)
            return float(value) if isinstance(value, int | float) else None
    return None


def compare(
    row: Row, quantity: str, ours: float, paper: float | None, more: Mapping[str, float] | None = None
) -> Row:  # fmt: skip
    """A row of the table. ``ours``, and the values of ``more``, are in seconds, bytes or numbers; the table has all of them in the unit of ``quantity``. The ratio
    is above 1 if ours is better."""
    scaled = ours * SCALE[quantity]
    ratio = None if paper is None or not scaled else scaled / paper if quantity == LARGER_IS_BETTER else paper / scaled
    extra: Row = {name: float(f"{value * SCALE[quantity]:.4g}") for name, value in (more or {}).items()}
    return {
        "ours_all_parties": "", "sent_by_a_party": "", "cpu_party": "", **row, **extra, "quantity": quantity, "ours": int(scaled) if quantity in COUNTS else float(f"{scaled:.4g}"),
        "paper": "" if paper is None else paper, "ratio": "" if ratio is None else float(f"{ratio:.3g}"),
    }  # fmt: skip


def time_and_traffic(row: Row, asked: Asked, match: Mapping[str, object] | None, quantities: tuple[str, str], cost: Cost) -> list[Row]:
    """The two rows of a measurement. ``match``: the row of the paper's table, None if it has none of this kind. Traffic is what one party sends and
    receives."""
    table = str(row["table"])
    paper = [None if match is None else paper_figure(table, match, asked.parties, quantity, asked.network) for quantity in quantities]
    time, traffic = quantities
    return [
        compare(row, time, cost.seconds, paper[0], {"cpu_party": cost.cpu}),
        compare(row, traffic, 2 * cost.sent_by_all / asked.parties, paper[1], {"ours_all_parties": cost.sent_by_all, "sent_by_a_party": cost.sent}),
    ]


def cells() -> Iterator[tuple[str, str, str, str, float]]:
    """Every figure of tables 2 to 5: table, text of its row, parties, network, value; without Enc and Eval."""
    for table in "2345":
        for row in published.load(TABLES[table]):
            if row.get("operation") not in CNN_ONLY:
                name = str(row.get("operation") or (f"Hamming weight 64 of {row['phi_m']}" if "phi_m" in row else "discrete Gaussian"))
                for quantity in SCALE:
                    if isinstance(row.get(quantity), int | float):
                        yield table, f"{name} {quantity}", str(row["parties"]), str(row["network"]), float(str(row[quantity]))


def better(row: Row) -> bool:
    """Whether ours is below the paper's figure; of what is saved, at least as much."""
    ours, paper = float(row["ours"]), float(row["paper"])
    return ours >= paper if row["quantity"] == LARGER_IS_BETTER else ours < paper


def summary(rows: Sequence[Row]) -> Iterator[str]:
    """What was compared and is below the paper's figure; every row that is not; and the figures of the paper beside which no row stands."""
    compared = [row for row in rows if row["paper"] != "" and row["best"] == "yes"]
    above = [row for row in compared if not better(row)]
    have = {(str(row["table"]), f"{row['cell']} {row['quantity']}", str(row["parties"]), NETWORKS.get(str(row["link"]), "")) for row in compared}
    absent = [cell for cell in cells() if cell[:4] not in have]
    alone = sum(row["best"] == "yes" and row["paper"] == "" for row in rows)
    yield (
        f"paper004: compared={len(compared)} below={len(compared) - len(above)} not_below={len(above)} without_a_figure_of_the_paper={alone} "
        f"figures_of_the_paper_without_ours={len(absent)}"
    )
    for row in above:
        cpu = f", CPU of a party {row['cpu_party']}" if row["cpu_party"] != "" else ""
        yield f"paper004: not below: {row['row']}, {row['parties']} parties, link {row['link']}: {row['ours']} {row['quantity']}, paper {row['paper']}{cpu}"
    for table, name in dict.fromkeys(cell[:2] for cell in absent):
        where = [f"{parties} {network}" for t, n, parties, network, _ in absent if (t, n) == (table, name)]
        yield f"paper004: without ours: table {table}, {name}: {', '.join(where)}"
    yield "paper004: Enc and Eval of table 5 have no messages between parties: keyquorum bench cnn measures them"


__all__ = ["NETWORKS", "SCALE", "TABLES", "Asked", "Cost", "cells", "compare", "paper_figure", "summary", "time_and_traffic"]
