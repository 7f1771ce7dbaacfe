"""Runs the matrix of adversaries (tests/adversaries): every deviation must end right, or with an error at the honest parties, and must go through where its check is left out.

Prints a line for each plan with the ends of its runs, a line for each check that is left out, then
``adversaries: ok cases=… wrong=0 hung=0 ablated=…``; exits with 1 otherwise. ``--quick``: at a few places of each plan. ``--only``: plans whose name contains a text, for a run in parts.
``--jobs``: plans at a time, each in a process of its own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.adversaries.matrix import ABLATIONS, HUNG, ROWS, WRONG, successes, tally


def run_row(number: int, quick: bool) -> tuple[str, Counter[str], list[str]]:
    """The cases of a row: a line about them, how many ended how, and what failed."""
    row, start = ROWS[number], time.monotonic()
    found = tally(row, quick)
    ends: Counter[str] = Counter()
    for (_, end), count in found.ends.items():
        ends[end] += count
    shown = " ".join(f"{end}={count}" for end, count in sorted(ends.items()))
    return f"plan={row.plan().name!r} cases={found.cases} {shown} seconds={time.monotonic() - start:.0f}", ends, found.failures


def run_ablation(number: int) -> tuple[str, bool]:
    """A check left out: a line about it, and whether a deviation goes through."""
    ablation = ABLATIONS[number]
    through = next(successes(ablation), None) is not None
    left_out = ",".join(ablation.omitted) or "none: semi-honest plan"
    return f"plan={ablation.plan().name!r} left out={left_out!r} goes through={'yes' if through else 'no'}", through


def main() -> int:
    """Runs everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few places of each plan")
    parser.add_argument("--only", default="", help="plans whose name contains this text")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="plans at a time (one for each processor)")
    options = parser.parse_args()
    rows = [number for number, row in enumerate(ROWS) if options.only in row.plan().name and (row.quick or not options.quick)]
    ablations = [number for number, ablation in enumerate(ABLATIONS) if options.only in ablation.plan().name]
    ends: Counter[str] = Counter()
    failures, ablated = list[str](), 0
    with ProcessPoolExecutor(max(options.jobs, 1), multiprocessing.get_context("spawn")) as pool:
        attacked = [pool.submit(run_row, number, options.quick) for number in rows]
        left_out = [pool.submit(run_ablation, number) for number in ablations]
        for row in as_completed(attacked):
            line, by_end, failed = row.result()
            ends += by_end
            failures += failed
            print(line, flush=True)
        for ablation in as_completed(left_out):
            line, through = ablation.result()
            ablated += through
            print(line, flush=True)
    for failure in failures:
        print(f"failed: {failure}")
    good = not failures and not ends[WRONG] and not ends[HUNG] and ablated == len(ablations)
    print(f"adversaries: {'ok' if good else 'failed'} cases={ends.total()} wrong={ends[WRONG]} hung={ends[HUNG]} ablated={ablated}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
