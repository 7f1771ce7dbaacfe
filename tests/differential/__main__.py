"""``python -m tests.differential``: random programs on the oracle, the embedded engine and, with MP_SPDZ_HOME, MP-SPDZ."""

from __future__ import annotations

import argparse
import os
import re
import secrets
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from keyquorum.backends.mpspdz import Checkout
from keyquorum.backends.mpspdz.workdir import WorkFolder

from . import embedded, refusals
from .builder import Program
from .campaign import Runner, Tally, TextRunner, check, check_refusals, report
from .generate import collect
from .spdz import MpSpdz
from .targets import EMBEDDED, MORE_SPDZ, SPDZ, Target

SEED = 1
"""Of the programs that the tests run too."""


def seed_of(text: str | None) -> int:
    """A number; ``fresh``: a new one; nothing: the one of the tests."""
    return secrets.randbits(32) if text == "fresh" else int(text or SEED)


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", help="a number, or fresh", default=os.environ.get("SEED"))
    parser.add_argument("--targets", help="regular expression of the names of targets", default="")
    parser.add_argument("--all", action="store_true", help="further targets of MP-SPDZ")
    parser.add_argument("--refusals", type=int, default=2, help="pairs of programs, one to be refused, of every family")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Runs everything; the last line is a summary. Returns 1 if there are differences."""
    options = _arguments(words)
    seed = seed_of(options.seed)
    print(f"seed {seed}", flush=True)
    programs, pairs = collect(options.programs, seed), refusals.collect(options.refusals, seed)
    tally, wrong = Tally(), []
    with ExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="kq-differential-")))
        runners: dict[str, Runner] = {"embedded": embedded.run_batch}
        texts: dict[str, TextRunner] = {"embedded": embedded.run_text}
        targets = list(EMBEDDED)
        if os.environ.get("MP_SPDZ_HOME"):
            checkout = Checkout.find()
            mp_spdz = MpSpdz(checkout, closing.enter_context(WorkFolder(folder)))
            runners["mp-spdz"], texts["mp-spdz"] = mp_spdz.run_batch, mp_spdz.run_text
            wanted = SPDZ + (MORE_SPDZ if options.all else [])
            targets += [t for t in wanted if checkout.has(t.protocol)]
            for target in wanted:
                if target not in targets:
                    print(f"{target.name}: not run, {target.protocol} is not built")
        else:
            print("mp-spdz: not run, MP_SPDZ_HOME is not set")
        targets = [t for t in targets if re.search(options.targets, t.name)]
        for target in targets:
            wrong += _run(target, runners[target.engine], texts[target.engine], folder, programs, pairs, tally)
        if tally.differences:
            print(report(tally, runners, folder))
        print("\n".join(wrong), end="\n" if wrong else "")
    differences = len(tally.differences) + len(wrong)
    print(f"differential: programs={len(programs)} backends={len(targets)} differences={differences} skipped={tally.skipped}")
    return 1 if differences else 0


def _run(
    target: Target, run: Runner, run_text: TextRunner, folder: Path, programs: Sequence[Program],
    pairs: Sequence[refusals.Refusal], tally: Tally,
) -> list[str]:  # fmt: skip
    start, before = time.monotonic(), len(tally.differences)
    check(programs, target, run, folder, tally)
    wrong = check_refusals(pairs, target, run_text, folder) if target.shows_refusals else []
    found = len(tally.differences) - before + len(wrong)
    seconds = time.monotonic() - start
    print(f"{target.name:<28}{tally.runs[target.name]:>6} programs {found:>4} differences {seconds:>7.1f} s", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
