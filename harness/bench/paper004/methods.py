"""``make bench-paper004``: sampling, conversion and key generation beside the figures of GMPFHE (params/published/004_*.csv).

Every party is a process of this host, over TLS, semi-honest with a dishonest majority (`semi2k`, `semi`), correlated randomness
included. Every row of tables 2 to 4 is measured with each method that takes less than minutes, among them the paper's own: medians of
several runs, with a mark at the fastest. Rows of one size are for one result of a batch. Our prime has 60 bits, the paper's 64.

Ends with lines ``paper004: table=… ours=… paper=… ratio=…``; a ratio is the paper's figure divided by ours. The paper used other
hardware (see params/published/README.md), so the columns are no race. Its communication is that of one party: in tables 2 and 3 it grows as n - 1, what one
of n exchanges with the others, in table 4 as the sum of 2^i - 1 for i up to log2 n, what one exchanges in a tree. So our figure is what one party
sends and receives; the table also has the total of all parties.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from keyquorum.dsl import ShareVector
from keyquorum.model import published
from keyquorum.model.chosen_committees import ADDITIVE, ADDITIVE_RING
from keyquorum.model.plain import Json
from keyquorum.parties import run_processes
from keyquorum.parties.context import PartyContext
from keyquorum.parties.jobs import party_job
from keyquorum.programs import Call
from keyquorum.programs.signatures import (
    lift_close,
    lift_open,
    sample_fixed_weight,
    sample_gaussian,
    z2_to_zq,
    z3_to_zq,
    zq_to_z2_circuit,
    zq_to_z2_mask,
)
from keyquorum.sweep.operands import Ints, summand_rows_of
from keyquorum.terminal.output import console

from .runner import Arguments, Bench, Options, Row, committee_of, new_key

Q60 = 1152921504606584833
RING, FIELD = "Z2^64", f"F_{Q60}"
KEYGEN_SET, QUICK_SET = "ckks-16384-seed004", "ckks-4096"
BATCH, QUICK_BATCH = 1 << 15, 1 << 8
WEIGHT = 64
MASK_BITS = 50
"""Statistical security of a mask of ``lift``."""


class Runs:
    """Runs the programs of one measured method at one party, with fresh private inputs."""

    def __init__(self, context: PartyContext) -> None:
        self.context, self.parties = context, context.parties
        self._rng = np.random.default_rng()

    def uniform(self, below: int, size: int) -> Ints:
        """Private words."""
        return self._rng.integers(0, below, size, dtype=np.int64)

    def ring(self, call: Call, **rest: Any) -> Ints:
        """A program modulo 2^64."""
        return self.context.backend.run(ADDITIVE_RING, RING, call, **rest).words

    def field(self, call: Call, **rest: Any) -> Ints:
        """A program modulo the prime."""
        return self.context.backend.run(ADDITIVE, FIELD, call, **rest).words

    def lift(self, shares: ShareVector, size: int, bits: int) -> None:
        """Lifts shares from the ring to the field."""
        masks = self.uniform(1 << (bits + MASK_BITS), size)
        opening = lift_open(contributors=self.parties, size=size, b=bits, lam=MASK_BITS, modulus=1 << 64)
        opened = self.ring(opening, private=masks, shares=shares)
        self.field(lift_close(contributors=self.parties, size=size, b=bits), private=masks, public=[opened])


@dataclass(frozen=True)
class Method:
    """A method for a row of the paper: ``run(runs, size)`` makes ``size`` results. Figures are for one result; ``match``: the paper's row."""

    table: str
    row: str
    name: str
    match: dict[str, object]
    time: str
    traffic: str
    run: Callable[[Runs, int], None]
    size: int = BATCH
    quick: int = QUICK_BATCH
    batch: bool = True
    """Whether a run makes ``size`` results. Otherwise it makes one result of that size, which is the paper's size unless the run is quick."""


def _z2_poly(runs: Runs, size: int) -> None:
    runs.field(z2_to_zq(contributors=runs.parties, size=size, method="poly"), private=runs.uniform(2, size))


def _z2_bits(runs: Runs, size: int) -> None:
    shares = ShareVector()
    runs.ring(z2_to_zq(contributors=runs.parties, size=size, method="bits"), private=runs.uniform(2, size), shares=shares)
    runs.lift(shares, size, 1)


def _z3(method: Literal["bilinear", "poly", "bits"]) -> Callable[[Runs, int], None]:
    def run(runs: Runs, size: int) -> None:
        trits = runs.uniform(3, size)
        if method == "bits":
            shares, indicators = ShareVector(), np.concatenate([trits == 1, trits == 2]).astype(np.int64)
            runs.ring(z3_to_zq(contributors=runs.parties, size=size, method=method), private=indicators, shares=shares)
            runs.lift(shares, size, 2)
        else:
            both = np.concatenate([trits, np.where(trits == 2, -1, trits)])
            runs.field(z3_to_zq(contributors=runs.parties, size=size, method=method, modulus=Q60), private=both)

    return run


def _zq(runs: Runs, size: int) -> None:
    rows = summand_rows_of(runs.context.party, runs.parties, runs.uniform(Q60, size), Q60)
    runs.ring(zq_to_z2_circuit(contributors=runs.parties, size=size, q=Q60, out=0, adder="ripple"), private=rows)


def _zq_mask(runs: Runs, size: int) -> None:
    shares = ShareVector.from_words(runs.uniform(Q60, size).astype(np.uint64).reshape(1, -1))
    runs.field(zq_to_z2_mask(size=size, q=Q60, out=0, adder="ripple"), shares=shares)


def _fixed_weight(runs: Runs, length: int) -> None:
    width = (length - 1).bit_length()
    indices = [int(runs.uniform(length - i, 1)[0]) for i in range(WEIGHT)]
    rows = np.array([j >> b & 1 for b in range(width) for j in indices], dtype=np.int64)
    runs.ring(sample_fixed_weight(method="bits", N=length, weight=WEIGHT, contributors=runs.parties), private=rows)


def methods() -> list[Method]:
    """All rows except key generation."""
    gaussian = ("2", "discrete Gaussian")
    made = [
        Method(*gaussian, "Z_2^64", {}, "ms", "communication_kb", lambda r, m: void(r.ring(sample_gaussian(size=m, method="bits")))),
        Method(*gaussian, "F_q", {}, "ms", "communication_kb", lambda r, m: void(r.field(sample_gaussian(size=m, method="bits")))),
    ]
    for length in (23040, 46080):
        match: dict[str, object] = {"phi_m": length, "hamming_weight": WEIGHT}
        name = f"Hamming weight {WEIGHT} of {length}"
        made.append(Method("3", name, "bits", match, "seconds", "communication_mb", _fixed_weight, length, length // 20, False))
    conversions: list[tuple[str, str, Callable[[Runs, int], None]]] = [
        ("Z2 to Zq", "poly", _z2_poly),
        ("Z2 to Zq", "bits and lift", _z2_bits),
        ("Z3 to Zq", "poly", _z3("poly")),
        ("Z3 to Zq", "bilinear", _z3("bilinear")),
        ("Z3 to Zq", "bits and lift", _z3("bits")),
        ("Zq to bits", "circuit", _zq),
        ("Zq to bits", "mask", _zq_mask),
    ]
    for row, name, run in conversions:
        made.append(Method("4", row, name, {"operation": row}, "us", "communication_kb", run))
    return made


def void(_: Ints) -> None:
    """Ignores the output of a program."""


@party_job("bench:paper004", {"row": int, "quick": bool, "repeats": int})
def paper004_job(context: PartyContext, job: Json) -> Json:
    """The job ``bench:paper004``: method number ``row``, ``repeats`` times after one run that is not counted (it loads code, and the
    first run of a session makes base OTs). Returns the costs at this party."""
    method, runs, measured = methods()[job["row"]], Runs(context), []
    for _ in range(1 + job["repeats"]):
        before, start = context.backend.stats(), time.monotonic()
        method.run(runs, method.quick if job["quick"] else method.size)
        seconds, after = time.monotonic() - start, context.backend.stats()
        measured.append({"seconds": seconds, "sent": after["bytes_sent"] - before["bytes_sent"]})
    return {"runs": measured[1:]}


TABLES = {"2": "004_table2_gaussian", "3": "004_table3_fixed_weight", "4": "004_table4_conversion", "5": "004_table5_cnn"}
SCALE = {"seconds": 1.0, "ms": 1e3, "us": 1e6, "communication_kb": 1e-3, "communication_mb": 1e-6, "communication_gb": 1e-9}


def paper_figure(table: str, match: dict[str, object], parties: int, quantity: str) -> float | None:
    """The paper's figure on its local network, in the unit of ``quantity``; None if the paper has no legible figure."""
    wanted = {"parties": parties, "network": "LAN", **match}
    for row in published.load(TABLES[table]):
        if all(row[k] == v for k, v in wanted.items()):
            value = row[quantity]
            return float(value) if isinstance(value, int | float) else None
    return None


def compare(row: Row, quantity: str, ours: float, paper: float | None, in_all: float | None = None) -> Row:
    """A row of the table. ``ours``, and ``in_all`` (of all parties together), are in seconds or bytes."""
    scaled = ours * SCALE[quantity]
    return row | {
        "quantity": quantity,
        "ours": float(f"{scaled:.4g}"),
        "ours_all_parties": "" if in_all is None else float(f"{in_all * SCALE[quantity]:.4g}"),
        "paper": "" if paper is None else paper,
        "ratio": "" if paper is None else float(f"{paper / scaled:.3g}"),
    }


def measure(committee: Path, parties: int, index: int, quick: bool, repeats: int) -> tuple[float, list[Row]]:
    """One method: median of the seconds of the slowest party, and its two rows."""
    method = methods()[index]
    job = {"kind": "bench:paper004", "row": index, "quick": quick, "repeats": repeats}
    results = [r["runs"] for r in run_processes(committee, job, io_timeout=900)]
    count = 1 if not method.batch else method.quick if quick else method.size
    seconds = statistics.median(max(r[i]["seconds"] for r in results) for i in range(repeats)) / count
    total = sum(r[-1]["sent"] for r in results) / count
    row: Row = {"table": method.table, "row": method.row, "method": method.name, "best": "no", "parties": parties}
    paper = {q: paper_figure(method.table, method.match, parties, q) for q in (method.time, method.traffic)}
    if quick and not method.batch:
        row["row"], paper = f"{method.row.rsplit(' ', 1)[0]} {method.quick}", dict.fromkeys(paper)
    rows = [
        compare(row, method.time, seconds, paper[method.time]),
        compare(row, method.traffic, 2 * total / parties, paper[method.traffic], total),
    ]
    return seconds, rows


def measure_methods(parties: int, quick: bool, repeats: int) -> list[Row]:
    """All rows for a number of parties; the fastest method of each is marked."""
    found: dict[str, list[tuple[float, list[Row]]]] = {}
    with committee_of(ADDITIVE, parties) as committee:
        for index, method in enumerate(methods()):
            seconds, rows = measure(committee.folder, parties, index, quick, repeats)
            found.setdefault(method.row, []).append((seconds, rows))
    for tried in found.values():
        for row in min(tried, key=lambda t: t[0])[1]:
            row["best"] = "yes"
    return [row for tried in found.values() for _, rows in tried for row in rows]


def measure_keygen(parties: int, quick: bool) -> list[Row]:
    """Key generation of section 6.2.1: public key and one relinearisation key, Gaussian error. From the start of the processes to
    the files on disk, one run."""
    name = QUICK_SET if quick else KEYGEN_SET
    result, seconds, _ = new_key(ADDITIVE, parties, name, error_law="gaussian")
    sent = sum(r.total.bytes_sent for r in result.reports)
    memory = sum(r.peak_memory for r in result.reports)
    console.print(
        f"key generation, {name}, {parties} parties: {seconds:.1f} s, {sent / 1e9:.2f} GB sent, {memory / 1e9:.2f} GB of memory in all",
        markup=False, highlight=False,
    )  # fmt: skip
    row: Row = {"table": "5", "row": f"key generation {name}", "method": "plan", "best": "yes", "parties": parties}
    paper = {q: None if quick else paper_figure("5", {"operation": "KeyGen"}, parties, q) for q in ("seconds", "communication_gb")}
    return [
        compare(row, "seconds", seconds, paper["seconds"]),
        compare(row, "communication_gb", 2 * sent / parties, paper["communication_gb"], sent),
    ]


def job(parties: int, given: Options) -> list[Row]:
    """The rows of a number of parties: all methods and key generation."""
    return [*measure_methods(parties, given.quick, given.repeats), *measure_keygen(parties, given.quick)]


OPTIONS: Arguments = {
    "parties": {"default": "2,4", "help": "comma-separated (2, 4, 8, 16)"},
    "repeats": {"type": int, "default": 5, "help": "runs of each method (default 5)"},
    "quick": {"action": "store_true", "help": "small batches, vectors and keys: whether it runs, not how fast; no table is written"},
}
COLUMNS = (
    "table", "row", "method", "best", "parties", "quantity", "ours", "ours_all_parties", "paper", "ratio", "version", "commit", "busy", "machine", "cores", "command",
)  # fmt: skip
SHOWN = ("table", "row", "method", "best", "parties", "quantity", "ours", "paper", "ratio")
BENCH = Bench(
    "paper004", lambda given: [int(parties) for parties in given.parties.split(",")], job, COLUMNS, shown=SHOWN, label=str, options=OPTIONS, restricting=("quick",),
)  # fmt: skip

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
