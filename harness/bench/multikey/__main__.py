"""Multi-key BGV, each party with a key of its own, beside paper 001 and beside joint keys: ``make bench-multikey``.

W1 and W2 are additions and products without relinearisation, in all readings of tables 1 and 2 of paper 001 that its text allows; W2r relinearises, also in the form of the MK-CKKS that paper 004 quotes. W3 is one row of an RGSW
product (tables 3 and 4), W3all all rows (``--full``). Then bytes, keys and relinearised products of multi-key and joint keys, and decryption by the parties.
All but decryption and the quorum's keys is one process. Every result is decrypted and compared.

    python -m bench.multikey [--parties 2,10] [--workload W1,W2] [--full]
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from keyquorum.fhe.parameters import ParameterSet

from ..runner import CIRCUMSTANCES, Arguments, Bench, Options, Row
from . import comparison, decryption, sets, workloads

PARTIES = (2, 3, 4, 5, 8, 10, 16)
MOST_OF_QUORUM, MOST_DECRYPTING = 5, 4
"""Parties of committees that are measured without ``--full``: pairs of parties make their oblivious transfers, so the work grows as n^2."""
BIT_PARTIES = (2, 3)
"""Parties for which W2r is measured with the bit gadget, whose evaluation keys have 137 MB a party at N = 8192."""

PARTIES_OF_FIGURE_6 = (2, 4, 8)
"""Parties for which W2r is measured in the form of MK-CKKS, for figure 6 of paper 004."""


@dataclass(frozen=True)
class Case:
    """A workload, the parties (1: of RGSW products, which are under one key; 0: of table 6, all), a gadget and threads."""

    workload: str
    parties: int
    gadget: str = "rns"
    threads: int = 1


def cases(options: Options) -> list[Case]:
    """All that is measured."""
    parties = PARTIES[:2] if options.quick else PARTIES
    found = [Case(workload, k) for workload in ("W1", "W2", "W2r") for k in parties]
    found += [Case("W2r", k, "bits") for k in (parties[:1] if options.quick else BIT_PARTIES)]
    found += [] if options.quick else [Case("W2r-ckks", k) for k in PARTIES_OF_FIGURE_6]
    found += [Case("W3", 1, gadget, threads) for gadget, threads in (("rns", 1), ("rns", 2), ("bits", 1), ("bits", 2))]
    found += [Case("W3all", 1, "bits")] if options.full else []
    found += [Case("sizes", k) for k in parties] + [Case("table6", 0)]
    found += [Case("comparison", k) for k in parties]
    most = max(PARTIES) if options.full else MOST_DECRYPTING
    return found + [Case("decryption", k) for k in parties if k <= most]


Workload = Callable[[ParameterSet, Case, Options], Iterator[Row]]
WORKLOADS: dict[str, Workload] = {
    "W1": lambda main, case, options: workloads.additions(main, case.parties, options.runs),
    "W2": lambda main, case, options: workloads.products(main, case.parties, options.runs),
    "W2r": lambda main, case, options: workloads.relinearised_products(_of_gadget(main, case), case.gadget, case.parties, options.runs),
    "W2r-ckks": lambda main, case, options: workloads.relinearised_products(sets.OF_CKKS_SET2, "rns", case.parties, options.runs),
    "W3": lambda main, case, options: workloads.rgsw_row(main, case.gadget, case.threads, options.runs),
    "W3all": lambda main, case, options: workloads.rgsw_all(main),
    "sizes": lambda main, case, options: comparison.sizes(main, case.parties),
    "table6": lambda main, case, options: comparison.ckks_sizes(),
    "comparison": lambda main, case, options: comparison.keys_and_products(
        main, case.parties, options.runs, with_quorum=options.full or case.parties <= MOST_OF_QUORUM
    ),
    "decryption": lambda main, case, options: decryption.decryptions(main, case.parties, options.runs),
}
"""What measures each workload with a set of parameters."""


def _of_gadget(main: ParameterSet, case: Case) -> ParameterSet:
    """The set with which a relinearised product is measured: a smaller one for bits, whose evaluation keys are large."""
    return sets.SMALL_BGV if case.gadget == "bits" and main is not sets.QUICK else main


M_TRIM_THRESHOLD, M_MMAP_MAX, MOST = -1, -4, (1 << 31) - 1
"""Parameters of ``mallopt`` of the GNU C library, and the largest value."""


def keep_memory() -> None:
    """Lets the C library keep freed memory, where it can. Otherwise it maps and zeroes arrays of megabytes anew at every operation, which takes longer than the operation."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_TRIM_THRESHOLD, MOST)
        mallopt(M_MMAP_MAX, 0)


def job(case: Case, options: Options) -> Iterator[Row]:
    """The rows of a case."""
    keep_memory()
    return WORKLOADS[case.workload](sets.QUICK if options.quick else sets.BGV, case, options)


def failed(rows: Sequence[Row]) -> bool:
    """Whether a decryption by parties is wrong; all other wrong results are errors."""
    return any(row.get("wrong") for row in rows)


OPTIONS: Arguments = {
    "runs": {"type": int, "default": 5, "help": "runs that count, after one that does not (default 5)"},
    "full": {"action": "store_true", "help": "also all rows of an RGSW product, and committees of up to 16 parties; hours"},
    "quick": {"action": "store_true", "help": "an insecure set of N = 1024: whether it runs, not how fast; no table is written"},
}
COLUMNS = (
    "workload", "reading", "parameters", "gadget", "parties", "threads", "quantity", "ours", "low", "high", "runs", "cpu_ms", "wrong", "table", "paper",
    "ratio", *CIRCUMSTANCES, "command",
)  # fmt: skip
SHOWN = ("workload", "reading", "parameters", "gadget", "parties", "threads", "quantity", "ours", "cpu_ms", "table", "paper", "ratio", "wrong")
BENCH = Bench(
    "multikey", cases, job, COLUMNS, shown=SHOWN, axes=("workload", "parties"), options=OPTIONS, restricting=("runs", "quick"), failed=failed,
)  # fmt: skip

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
