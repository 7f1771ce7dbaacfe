"""Summaries of the tables of ``keyquorum bench``: one row for each measurement, with medians and ranges over its runs."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from keyquorum.model.errors import KeyQuorumError
from keyquorum.model.idle import IDLE_CORES

CASE = ["suite", "name", "backend", "protocol", "parties", "parameters", "batch", "link", "rtt_ms", "mbit", "security"]
SUMS = ["seconds", "bytes_sent", "bytes_received", "rounds", "cpu_seconds", "offline_seconds", "offline_bytes_sent"]
OWN_TABLES = (
    "paper004",
    "ajax",
    "ajax_decryption",
    "toprf",
    "verified",
    "multikey",
    "ghs",
    "latency",
    "latency_macs",
    "throughput",
    "lisss",
    "peers",
)
"""Tables beside those of ``keyquorum bench``."""


class NoResultsError(KeyQuorumError):
    """There are no results to report."""


def load(folder: Path) -> pd.DataFrame:
    """All rows of the tables under ``folder/bench`` with figures. Raises NoResultsError if there are none."""
    paths = sorted((folder / "bench").glob("*.csv"))
    tables = [pd.read_csv(path, dtype={"link": str, "unused": str, "error": str, "commit": str, "backend_commit": str}) for path in paths]
    tables = [table[table["status"] == "ok"] for table in tables]
    tables = [table for table in tables if len(table)]
    if not tables:
        raise NoResultsError(f"{folder}/bench: no results: run keyquorum bench all --quick first")
    rows = _latest(pd.concat([table.assign(table=number) for number, table in enumerate(tables)], ignore_index=True))
    rows["link"] = rows["link"].fillna("")
    rows["loaded"] = _loaded(rows)
    rows.attrs |= {name: own_table(folder, name) for name in OWN_TABLES}
    return rows


def _latest(rows: pd.DataFrame) -> pd.DataFrame:
    """Of a measurement that several tables have, the rows of the table that measured it last; at the same time, of the first table."""
    case = ["suite", "name", "backend", "protocol", "parties", "parameters", "batch", "link"]
    last = rows.groupby([*case, "table"], dropna=False)["utc"].transform("max")
    latest = last.groupby([rows[name] for name in case], dropna=False).transform("max")
    rows = rows[last == latest]
    first = rows.groupby(case, dropna=False)["table"].transform("min")
    return rows[rows["table"] == first].drop(columns="table").reset_index(drop=True)


def own_table(folder: Path, name: str) -> list[dict[str, str]]:
    """The rows of ``NAME.csv``, measurements at the sizes of a paper; none if there is no such table."""
    path = folder / f"{name}.csv"
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def states(commits: Iterable[object]) -> str:
    """A sentence on the commits at which figures of ours were measured; empty if none is known. A "+" is explained."""
    known = sorted({str(commit) for commit in commits} - {"", "nan", "None"})
    if not known:
        return ""
    what = "commit" if len(known) == 1 else f"{len(known)} states of the code, so ratios between them are of several builds:"
    changed = " (+: recorded with changes that no commit has)" if any(commit.endswith("+") for commit in known) else ""
    return f" Ours: {what} {', '.join(known)}{changed}."


def _loaded(rows: pd.DataFrame) -> pd.Series:
    """Whether a measurement started on a busy machine: from the cores that were busy or, in tables without them, from the load of
    the minute before, which includes the sweep itself."""
    beside = rows["load"] > 1
    return beside.where(rows["busy"].isna(), rows["busy"] > IDLE_CORES) if "busy" in rows else beside


def skipped(folder: Path) -> list[str]:
    """Reasons why measurements were skipped or failed: distinct lines."""
    lines: dict[str, None] = {}
    for path in sorted((folder / "bench").glob("*.csv")):
        table = pd.read_csv(path, dtype=str)
        for _, row in table[table["status"] != "ok"].iterrows():
            lines[f"{row['suite']}, {row['status']}: {row['error']}"] = None
    return list(lines)


def runs(rows: pd.DataFrame) -> pd.DataFrame:
    """One row for each run: times of the slowest party, and mean and largest traffic and memory of the parties."""
    keys = [*CASE, "repeat"]
    parties = rows.groupby([*keys, "party"], dropna=False)[SUMS].sum()
    parties["peak_memory"] = rows.groupby([*keys, "party"], dropna=False)["peak_memory"].max()
    parties["loaded"] = rows.groupby([*keys, "party"], dropna=False)["loaded"].any()
    parties["commit"] = rows.groupby([*keys, "party"], dropna=False)["commit"].first()
    parties["machine"] = rows.assign(machine=_machines(rows)).groupby([*keys, "party"], dropna=False)["machine"].first()
    parties["online_seconds"] = parties["seconds"] - parties["offline_seconds"]
    grouped = parties.groupby(level=list(range(len(keys))), dropna=False)
    return pd.DataFrame(
        {
            "seconds": grouped["seconds"].max(),
            "offline_seconds": grouped["offline_seconds"].max(),
            "online_seconds": grouped["online_seconds"].max(),
            "sent_per_party": grouped["bytes_sent"].mean(),
            "cpu_seconds": grouped["cpu_seconds"].sum(),
            "rounds": grouped["rounds"].max(),
            "peak_memory": grouped["peak_memory"].max(),
            "loaded": grouped["loaded"].max(),
            "commit": grouped["commit"].first(),
            "machine": grouped["machine"].first(),
        }
    ).reset_index()


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """One row for each measurement, and for each phase of ``cnn`` and ``peers`` (as suite "cnn: PHASE"): medians, and for times the smallest and
    largest run (``_low``, ``_high``)."""
    phases = rows[rows["suite"].isin(["cnn", "peers"])].assign(suite=lambda t: t["suite"] + ": " + t["phase"])
    table = runs(pd.concat([rows, phases], ignore_index=True))
    grouped = table.groupby(CASE, dropna=False)
    result = grouped.median(numeric_only=True).drop(columns=["repeat", "loaded"], errors="ignore")
    result["loaded"], result["commit"], result["machine"] = grouped["loaded"].any(), grouped["commit"].first(), grouped["machine"].first()
    for name in ("seconds", "offline_seconds", "online_seconds"):
        result[f"{name}_low"], result[f"{name}_high"] = grouped[name].min(), grouped[name].max()
    result["runs"] = grouped.size()
    result = result.reset_index()
    result.attrs |= {"machine": machine(rows), **{name: rows.attrs.get(name, []) for name in OWN_TABLES}}
    return result


def machine(rows: pd.DataFrame) -> str:
    """Processor and cores, in words."""
    return machines(_machines(rows))


def _machines(rows: pd.DataFrame) -> pd.Series:
    return rows["machine"].astype(str) + ", " + rows["cores"].astype(str) + " cores"


def own_machine(row: Mapping[str, str]) -> str:
    """Where a row of a table of its own was measured, as far as the table says."""
    name = row.get("machine") or "processor not recorded"
    return f"{name}, {row['cores']} cores" if row.get("cores") else name


def machines(names: Iterable[str]) -> str:
    """Several machines in words, each once."""
    return "; ".join(sorted({name for name in names if name}))


def select(table: pd.DataFrame, **wanted: object) -> pd.DataFrame:
    """The rows whose columns have these values (for a list: one of its values)."""
    for name, value in wanted.items():
        chosen = value if isinstance(value, (list, tuple)) else [value]
        table = table[table[name].isin(chosen)]
    return table


def conditions(rows: pd.DataFrame) -> list[tuple[str, str]]:
    """The conditions of the results: names and texts."""

    def distinct(column: str, of: pd.DataFrame = rows) -> str:
        return ", ".join(sorted({str(v) for v in of[column].dropna()} - {""})) or "–"

    def by_suite() -> str:
        """The commits, and the suites that each measured if there are several."""
        suites = rows.assign(commit=rows["commit"].fillna("unknown").replace("", "unknown")).groupby("commit")["suite"].unique()
        return ", ".join(f"{name} ({', '.join(sorted(of))})" if len(suites) > 1 else str(name) for name, of in suites.items())

    mp_spdz = rows["backend"] == "mp-spdz"
    started = rows.drop_duplicates([*CASE])
    unknown = "busy" not in rows or bool(rows["busy"].isna().any())
    of_before = ", some by the load of the minute before, which counts the sweep's own work" if unknown else ""

    pairs: Sequence[tuple[str, str]] = [
        ("processor", distinct("machine")),
        ("cores", distinct("cores")),
        ("memory, GB", distinct("memory_gb")),
        ("commit", by_suite()),
        ("version", distinct("version")),
        ("Python", distinct("python")),
        ("MP-SPDZ commit", distinct("backend_commit", rows[mp_spdz])),
        ("other libraries", distinct("backend_commit", rows[~mp_spdz])),
        ("measurements that started under load", f"{int(started['loaded'].sum()):,} of {len(started):,}{of_before}"),
        ("dates", f"{rows['utc'].min()} to {rows['utc'].max()}"),
    ]
    return list(pairs)
