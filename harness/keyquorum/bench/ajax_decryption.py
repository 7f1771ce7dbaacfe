"""Table 1 of Ajax (params/published/002_table1_decryption.csv) with our decryptions: ``python -m keyquorum.bench.decrypt --table ajax1``.

t + 1 = 2, 4 and 14 additive parties of a dishonest majority, each a process of this host over TLS, over the paper's links, simulated: ``lan`` 1 ms and
1 Gbit/s, ``wan`` 100 ms and 100 Mbit/s. A batch of 20,000, as in the paper; times are for one ciphertext. ``total`` is online and offline time: the
preprocessing of the same batch, with its random bits, conversions and triples. The paper has a machine of 8 vCPU for every party, and ours share the
cores of this host, so the columns are no race.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from keyquorum.model import published
from keyquorum.model.chosen_committees import ADDITIVE
from keyquorum.model.idle import busy_cores
from keyquorum.terminal.output import console

from .decryption import Configuration, measure
from .keygen import Row, write_table

PUBLISHED = "002_table1_decryption"
TABLE = Path("results") / "ajax_decryption.csv"
PARTIES = (2, 4, 14)
LINKS = {"lan": "LAN", "wan": "WAN"}
"""Names of our links, and of the paper's networks."""
BATCH = 20_000
PIECES = {14: 5_000}
"""Ciphertexts at a time where the parties on this host are many: 20,000 take 330 MB of each."""
SHAPES = (("round_mask_open", "lwe53-p16-eta52"), ("round_mask_open", "lwe53-p16"), ("round_ltz_circuit", "lwe53-p16"))
"""Roundings and sets: the paper's with its ring of 2^52 and with ours of 2^62, and the exact one."""
PAPER = (("ajax", "Ajax"), ("noah", "Noah's Ark"))
"""Columns and the paper's names of its protocols."""


def rows(items: int | None = None) -> list[Configuration]:
    """The configurations. ``items``: decryptions, all in one batch; None: as in the paper."""
    count = items or BATCH
    return [
        Configuration(rounding, 8, 2, parameters, ADDITIVE, n, count, batch=count, piece=PIECES.get(n, 0), link=link)
        for n in PARTIES
        for link in LINKS
        for rounding, parameters in SHAPES
    ]


def printed(parties: int, link: str) -> Row:
    """The paper's online and total milliseconds for t + 1 = ``parties``, as printed; empty where it has none."""
    found: Row = {}
    for column, protocol in PAPER:
        row = next(
            r for r in published.load(PUBLISHED)
            if (r["protocol"], r["corruption_threshold"], r["network"]) == (protocol, parties - 1, LINKS[link])
        )  # fmt: skip
        for name in ("online_ms", "total_ms"):
            found[f"{column}_{name}"] = "" if row[name] is None else str(row[name])
    return found


def line(row: Configuration, values: Row, busy: float | None) -> Row:
    """A row of the table, from the values of :func:`.decryption.measure`. ``busy``: cores that other work took when it began."""
    online, offline = float(values["online_us"]) / 1e3, float(values["offline_us"]) / 1e3
    kept = {name: values[name] for name in ("n", "variant", "parameters", "items", "rounds", "bits", "online_cpu_us", "offline_cpu_us", "wrong")}
    return {
        "t": row.parties - 1, "link": row.link, **kept, "online_ms": round(online, 5), "total_ms": round(online + offline, 5),
        **printed(row.parties, row.link), "busy": "" if busy is None else f"{busy:.2f}",
        **{name: values[name] for name in ("cores", "machine", "version")},
    }  # fmt: skip


def run(items: int | None, only: Sequence[str]) -> int:
    """Measures the rows whose name contains every text of ``only``; writes the table if these are all, with the paper's batch, and the folder is there."""
    chosen = [r for r in rows(items) if all(text in f"{r.name} {r.parameters} n={r.parties} {r.link}" for text in only)]
    if not chosen:
        console.print("error: no row has that name: leave out --only to see all", markup=False)
        return 1
    made = []
    for row in chosen:
        busy = busy_cores()
        made.append(line(row, measure(row)[1], busy))
        names = ("t", "link", "variant", "parameters", "online_ms", "total_ms", "bits", "wrong", "busy", *printed(row.parties, row.link))
        console.print(
            "ajax1: " + " ".join(f"{name}={made[-1][name] if made[-1][name] != '' else 'none'}" for name in names), markup=False, soft_wrap=True
        )
    if not only and items is None and TABLE.parent.is_dir():
        write_table(TABLE, made)
    return 0


__all__ = ["rows", "run"]
