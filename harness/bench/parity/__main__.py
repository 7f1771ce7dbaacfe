"""``make parity``: every program on every protocol that has what it needs, on both engines.

Writes results/parity.csv after each protocol (of some protocols: their part of it), prints the table, and ends with ``parity: rows=… differences=… skipped=… worst_ratio=…``: rows compared
(among the two engines and with the clear reference), rows whose outputs differ, rows that one engine does not have, and the
largest time of the embedded engine divided by that of MP-SPDZ.
"""

from __future__ import annotations

import argparse
import csv
import os
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import keyquorum
from keyquorum.backends.mpspdz import Checkout
from keyquorum.backends.mpspdz.commands import STATISTICAL_SECURITY
from keyquorum.model.domains import Domain
from keyquorum.model.errors import KeyQuorumError
from keyquorum.model.protocols import COMMITTEES
from keyquorum.model.protocols import PROTOCOLS as ALL
from keyquorum.programs.header import header
from keyquorum.sweep.rows import commit, machine
from keyquorum.terminal.output import console

from ..runner import Row
from .cases import PARTIES, PROTOCOLS, cases
from .embedded import EmbeddedRows
from .mpspdz import MpSpdzRows
from .outcome import Case, Measured, Outcome, wrong
from .reference import reference


@dataclass(frozen=True)
class Compared:
    """A row with what was measured on each engine (None: this engine does not have it), and the difference ("": none)."""

    protocol: str
    case: Case
    ours: Measured | None
    theirs: Measured | None
    difference: str

    @property
    def ratio(self) -> float | None:
        """Our time divided by MP-SPDZ's, medians."""
        if self.ours is None or self.theirs is None:
            return None
        return statistics.median(self.ours.seconds) / statistics.median(self.theirs.seconds)

    def row(self) -> Row:
        """For the table."""
        row: Row = {
            "protocol": self.protocol,
            "parties": PARTIES[self.protocol],
            "program": self.case.program,
            "variant": self.case.variant,
            "arguments": " ".join(self.case.args),
            "domain": self.case.domain,
        }
        for name, measured in (("embedded", self.ours), ("mpspdz", self.theirs)):
            row[f"{name}_ms"] = "" if measured is None else round(statistics.median(measured.seconds) * 1e3, 2)
            row[f"{name}_mb"] = "" if measured is None else round(measured.sent_mb, 3)
            row[f"{name}_rounds"] = "" if measured is None else measured.rounds
        row["ratio"] = "" if self.ratio is None else round(self.ratio, 3)
        row["difference"] = self.difference
        return row


def difference(case: Case, clear: Outcome, ours: Measured | None, theirs: Measured | None) -> str:
    """What is wrong with the outcomes, or ""."""
    for name, measured in (("embedded", ours), ("MP-SPDZ", theirs)):
        text = wrong(case, measured.outcome, clear) if measured is not None else ""
        if text:
            return f"{name}: {text}"
    return ""


SPLIT_OF_WORDS = "sample_carries"
"""The program that takes the bits of summands: ``split`` of MP-SPDZ's machines for replicated sharing modulo 2^k, but not of those that check it against malicious parties."""


def without_peer(protocol: str, case: Case) -> bool:
    """Whether MP-SPDZ does not have a row of a protocol with malicious parties and without MACs: its primes are as long as its statistical security there, and
    summands are not split."""
    domain = Domain.parse(case.domain)
    short = domain.prime is not None and domain.bits < STATISTICAL_SECURITY
    return ALL[protocol].verifies_products and (short or case.program == SPLIT_OF_WORDS)


def compare(checkout: Checkout, protocol: str, repeats: int, only: str, show: Callable[[Compared], None]) -> list[Compared]:
    """All rows of a protocol, each on one engine right after the other."""
    theirs = MpSpdzRows(checkout, protocol, repeats)
    ours = EmbeddedRows(protocol, repeats) if protocol in COMMITTEES else None
    done = []
    try:
        for index, case in enumerate(cases(protocol)):
            if only not in case.label:
                continue
            here = ours is not None and header(case.program).runs_on(COMMITTEES[protocol], case.variant)
            mine = ours.measure(index, case) if ours is not None and here else None
            other = None if without_peer(protocol, case) else theirs.measure(case)
            compared = Compared(protocol, case, mine, other, difference(case, reference(case), mine, other))
            show(compared)
            done.append(compared)
    finally:
        theirs.close()
        if ours is not None:
            ours.close()
    return done


def summary(rows: list[Row]) -> str:
    """The closing line."""
    ratios = [float(r["ratio"]) for r in rows if r["ratio"] != ""]
    wrong = sum(r["difference"] != "" for r in rows)
    skipped = sum(r["embedded_ms"] == "" for r in rows)
    worst = f"{max(ratios):.2f}" if ratios else "none"
    return f"parity: rows={len(rows)} differences={wrong} skipped={skipped} worst_ratio={worst}"


def table(done: list[Compared]) -> str:
    """Side by side, embedded engine | MP-SPDZ: milliseconds, MB sent by all parties, rounds."""
    lines = [f"{'':42} {'ms':>19} {'MB':>19} {'rounds':>11} {'ratio':>6}"]
    for compared in done:
        row = compared.row()
        pairs = [f"{row[f'embedded_{u}']!s:>{w}} | {row[f'mpspdz_{u}']!s:>{w}}" for u, w in (("ms", 8), ("mb", 8), ("rounds", 4))]
        ratio = f"{row['ratio']:>6}  {compared.difference}"
        lines.append(f"{compared.protocol:10} {compared.case.label:31} {' '.join(pairs)} {ratio}".rstrip())
    return "\n".join(lines)


def merged(path: Path, done: list[Compared], checkout: Checkout) -> list[Row]:
    """The rows of this run, and those that the file has of other protocols."""
    origin: Row = {
        "version": keyquorum.__version__,
        "mpspdz_commit": checkout.commit,
        "machine": machine(),
        "cores": os.cpu_count() or 0,
        "commit": commit(),
    }
    measured = {c.protocol for c in done}
    rows: list[Row] = [{**c.row(), **origin} for c in done]
    if path.exists():
        with path.open(newline="") as file:
            kept = [row for row in csv.DictReader(file) if row["protocol"] not in measured]
        rows += [{k: row.get(k, "") for k in rows[0]} for row in kept]
    return sorted(rows, key=lambda row: PROTOCOLS.index(str(row["protocol"])))


def write(path: Path, rows: list[Row]) -> None:
    """The table as CSV, with where it comes from."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def main() -> int:
    """Exit code 1 if outputs differ."""
    parser = argparse.ArgumentParser(prog="make parity", description=__doc__)
    parser.add_argument("--protocols", default=",".join(PROTOCOLS), help="comma-separated")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--mp-spdz", default=None, help="the checkout (default: MP_SPDZ_HOME)")
    parser.add_argument("--output", type=Path, default=Path("results/parity.csv"))
    options = parser.parse_args()
    try:
        checkout = Checkout.find(options.mp_spdz)
        done: list[Compared] = []

        def show(c: Compared) -> None:
            ratio = "" if c.ratio is None else f"ratio {c.ratio:.2f}"
            console.print(f"{c.protocol:10} {c.case.label:32} {ratio:12} {c.difference}", markup=False, highlight=False)

        for protocol in options.protocols.split(","):
            checkout.binary(protocol)
            done += compare(checkout, protocol, options.repeats, options.only, show)
            if done and not options.only and options.output.parent.is_dir():
                write(options.output, merged(options.output, done, checkout))
    except KeyQuorumError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    rows = merged(options.output, done, checkout) if not options.only else [c.row() for c in done]
    print(table(done))
    print(summary(rows))
    return int(any(row["difference"] != "" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
