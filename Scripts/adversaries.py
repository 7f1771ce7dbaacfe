"""Runs the matrix of adversaries (tests/adversaries): every deviation must end right, or with an error at the honest parties, and must go through where its check is left out.

Prints a line for each plan with the ends of its runs, a line for each check that is left out, then
``adversaries: ok cases=… wrong=0 hung=0 ablated=…``; exits with 1 otherwise. ``--quick``: at a few places of each plan. ``--only``: plans whose name contains a text, for a run in parts.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.adversaries.matrix import ABLATIONS, HUNG, ROWS, WRONG, successes, tally


def main() -> int:
    """Runs everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few places of each plan")
    parser.add_argument("--only", default="", help="plans whose name contains this text")
    options = parser.parse_args()
    quick = options.quick
    ends: Counter[str] = Counter()
    failures, ablated = [], 0
    for row in (row for row in ROWS if options.only in row.plan().name):
        if quick and not row.quick:
            continue
        start, found = time.monotonic(), tally(row, quick)
        by_end: Counter[str] = Counter()
        for (_, end), number in found.ends.items():
            by_end[end] += number
        ends += by_end
        failures += found.failures
        shown = " ".join(f"{end}={number}" for end, number in sorted(by_end.items()))
        print(f"plan={row.plan().name!r} cases={found.cases} {shown} seconds={time.monotonic() - start:.0f}", flush=True)
    ablations = [ablation for ablation in ABLATIONS if options.only in ablation.plan().name]
    for ablation in ablations:
        through = next(successes(ablation), None)
        ablated += through is not None
        left_out = ",".join(ablation.omitted) or "none: semi-honest plan"
        print(f"plan={ablation.plan().name!r} left out={left_out!r} goes through={'no' if through is None else 'yes'}", flush=True)
    for failure in failures:
        print(f"failed: {failure}")
    good = not failures and not ends[WRONG] and not ends[HUNG] and ablated == len(ablations)
    print(f"adversaries: {'ok' if good else 'failed'} cases={ends.total()} wrong={ends[WRONG]} hung={ends[HUNG]} ablated={ablated}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
