"""Which committee, and what it costs: the first picture of the report, and its table. A row for each committee that was measured."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pandas as pd
from matplotlib.ticker import NullFormatter

from keyquorum.model.protocols import COMMITTEES

from . import style
from .data import select, states
from .plots import Plot
from .threat_models import FAMILIES, committee_name, fewest_parties

SETS = ("bfv-8192", "ckks-8192", "ckks-4096-mac", "lwe64-p2", "lwe53-p16")
"""Sets of keys, the one that is preferred first. Most committees have keys of the first one measured."""


@dataclass(frozen=True)
class Job:
    """A column: rows of a suite whose names begin with ``name``; ``figure`` times ``scale``. ``sets``: parameter sets, the preferred one first."""

    title: str
    unit: str
    suite: str
    name: str
    figure: str
    scale: float
    sets: tuple[str, ...]


JOBS = (
    Job("keys", "seconds", "keygen", "", "seconds", 1.0, SETS),
    Job("keys", "MB a party sends", "keygen", "", "sent_per_party", 1e-6, SETS),
    Job("exact decryption, BFV", "seconds", "decrypt", "bfv round_ltz_circuit", "seconds", 1.0, ("bfv-4096",)),
    Job("decryption, CKKS", "seconds", "decrypt", "ckks", "seconds", 1.0, ("ckks-8192-demo",)),
    Job("exact decryption, LWE, online", "ms", "decrypt", "lwe round_ltz_circuit", "online_seconds", 1e3, ("lwe64-p2", "lwe53-p16")),
)
NOT_PICTURED = ("decryption, CKKS",)
"""Jobs of the table alone."""
ADVERSARIES = {"semi-honest": "#0072b2", "malicious": "#d55e00"}
"""Colours. In print the one is darker than the other, and the labels say it too."""


@dataclass(frozen=True)
class Cost:
    """A figure, and the set that it is of where it is not the preferred one."""

    value: float
    other_set: str
    loaded: bool

    def text(self) -> str:
        """For people."""
        number = f"{self.value:.3g}" if self.value < 1000 else f"{self.value:,.0f}"
        return f"{number} ({self.other_set})" if self.other_set else number


@dataclass(frozen=True)
class Row:
    """A committee. ``costs``: of each job of :func:`jobs_of`; None: not measured."""

    name: str
    tolerates: str
    adversary: str
    costs: tuple[Cost | None, ...]


def _plain(table: pd.DataFrame) -> pd.DataFrame:
    """One ciphertext or key at a time, on one machine without added delay."""
    plain = select(table, backend="embedded", batch=1, link="", suite=["keygen", "decrypt"])
    return plain.assign(protocol=plain["protocol"].replace(FAMILIES))


def jobs_of(table: pd.DataFrame) -> list[Job]:
    """The jobs of which there are figures, with the sets that were measured, the preferred one first."""
    plain, found = _plain(table), []
    for job in JOBS:
        rows = select(plain, suite=job.suite)
        measured = set(rows[rows["name"].str.startswith(job.name)]["parameters"])
        sets = (*(name for name in job.sets if name in measured), *sorted(measured - set(job.sets)))
        if sets:
            found.append(replace(job, sets=sets))
    return found


def rows_of(table: pd.DataFrame) -> list[Row]:
    """The committees that were measured, semi-honest ones first."""
    plain, jobs, found = _plain(table), jobs_of(table), []
    for protocol in style.protocols(plain["protocol"]):
        mine = plain[plain["protocol"] == protocol]
        keys = select(mine, suite="keygen")
        parties = fewest_parties(keys if len(keys) else mine)
        mine = mine[mine["parties"] == parties]
        tolerates = f"{COMMITTEES[protocol].most_corruptions(parties)} of {parties}"
        found.append(Row(committee_name(protocol), tolerates, COMMITTEES[protocol].adversary, tuple(_cost(mine, job) for job in jobs)))
    return sorted(found, key=lambda row: list(ADVERSARIES).index(row.adversary))


def _cost(mine: pd.DataFrame, job: Job) -> Cost | None:
    found = select(mine, suite=job.suite)
    found = found[found["name"].str.startswith(job.name)]
    for chosen in job.sets:
        of_set = found[found["parameters"] == chosen]
        if len(of_set):
            best = of_set.loc[of_set[job.figure].idxmin()]
            return Cost(float(best[job.figure]) * job.scale, "" if chosen == job.sets[0] else chosen, bool(best["loaded"]))
    return None


def committee_table(table: pd.DataFrame) -> pd.DataFrame:
    """A row for each committee; jobs that nobody measured have no column."""
    rows = rows_of(table)
    made = [{"committee": row.name, "corrupted parties": row.tolerates, "adversary": row.adversary} for row in rows]
    for number, job in enumerate(jobs_of(table)):
        for entry, row in zip(made, rows, strict=True):
            cost = row.costs[number]
            entry[f"{job.title}, {job.unit} ({job.sets[0]})"] = "not measured" if cost is None else cost.text()
    return pd.DataFrame(made)


def committees(table: pd.DataFrame) -> Plot | None:
    """Bars of the main jobs for each committee."""
    rows = rows_of(table)
    shown = [(number, job) for number, job in enumerate(jobs_of(table)) if job.title not in NOT_PICTURED]
    if not shown:
        return None
    made, axes = style.row_of_panels(len(shown), 2.3 + 2.35 * len(shown), 1.2 + 0.5 * len(rows))
    for axis, (number, job) in zip(axes, shown, strict=True):
        costs = [row.costs[number] for row in rows]
        for position, (row, cost) in enumerate(zip(rows, costs, strict=True)):
            if cost is None:
                axis.annotate("not measured", (0.02, position), xycoords=("axes fraction", "data"), va="center", fontsize=7, color="#777777")
                continue
            bars = axis.barh(position, cost.value, 0.62, color=ADVERSARIES[row.adversary], label=row.adversary)
            style.dot_loaded(bars, [cost.loaded])
            axis.annotate(cost.text().replace(" (", "\n("), (cost.value, position), (3, 0), textcoords="offset points", va="center", fontsize=7)
        style.decades(axis, "x")
        low, high = axis.get_xlim()
        axis.set_xlim(low, high * (high / low) ** 0.35)  # room for the figures beside the bars
        axis.xaxis.set_minor_formatter(NullFormatter())
        axis.set_title(f"{job.title}\n{job.sets[0]}", fontsize=8.5)
        axis.set_xlabel(job.unit)
        axis.grid(axis="y", visible=False)
    axes[0].set_yticks(range(len(rows)), [f"{row.name}\n{row.tolerates} corrupted, {row.adversary}" for row in rows], fontsize=7.5)
    axes[0].set_ylim(len(rows) - 0.4, -0.6)
    style.legend_below(made, axes, loaded=any(cost is not None and cost.loaded for row in rows for cost in row.costs))
    return made, (
        "What each committee tolerates, and what its main jobs cost with the fewest parties that were measured (three, where there are figures of three). Medians of the slowest party, all "
        "parties on one machine over TLS, without added delay; one ciphertext at a time. In brackets: another parameter set than the one above the panel. "
        f"malicious: static, with abort, for these jobs. Exact decryption of LWE: the online part, which takes preprocessing from a pool.{states(_plain(table)['commit'])}"
    )
