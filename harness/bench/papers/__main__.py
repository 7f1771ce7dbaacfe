"""Measures what stands on the page of published figures: ``make papers``, and ``make papers-full`` for what takes hours.

Steps run one after another, each a process of its own with a time limit and a log in build/papers. A step that fails is named, and the others follow; the exit code
is 1 then. A step is left out if its rows are of this state of the code: of HEAD, or of a commit before it since which no measured file changed. So the same
command continues after an interruption. Ends with plots and ``keyquorum report --papers``.

    python -m bench.papers [--full] [--only paper004] [--minutes 30] [--list]
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from keyquorum.terminal.output import console, fail

from .state import DONE, STALE, Progress
from .steps import NEEDS, STEPS, Step

REPORTS = (("report", "-q"), ("report", "--papers"))
REPORT_MINUTES = 10


def chosen(only: str, full: bool) -> list[Step]:
    """The steps in whose names all words occur."""
    return [step for step in STEPS if (full or not step.full) and all(word in step.name for word in only.split())]


def command(step: Step, state: str) -> list[str]:
    """The command of a step; a sweep starts anew where its table is of another state of the code."""
    return [sys.executable, "-m", *step.words, *(["--fresh"] if step.sweep and state == STALE else [])]


def run(step: Step, progress: Progress, state: str) -> str:
    """Runs a step; returns why it failed, or nothing. Its processes are a group, which ends with it."""
    progress.mark(step).touch()
    with progress.log(step).open("w") as log:
        process = subprocess.Popen(command(step, state), cwd=progress.root, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            code = process.wait(60 * step.limit)
        except subprocess.TimeoutExpired:
            return f"it took more than {step.limit:g} minutes"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if code:
        return f"exit code {code}"
    progress.mark(step).unlink()
    return ""


def shown(step: Step, state: str) -> str:
    """The line of a step in ``--list``."""
    return (
        f"papers: step={step.name.replace(' ', '-')} minutes={step.minutes:g} state={state} table=results/{step.table}{' full' if step.full else ''}"
    )


def measure(steps: Sequence[Step], progress: Progress, minutes: float) -> list[str]:
    """Runs the steps that are not done; returns the names of those that failed. ``minutes``: a step that is expected to take longer than what is left does not start."""
    failed, deadline = [], time.monotonic() + 60 * minutes
    for number, step in enumerate(steps, 1):
        state = progress.state(step)
        name = f"papers: {number}/{len(steps)} {step.name}"
        if state == DONE:
            console.print(f"{name}: done before", markup=False)
        elif step.needs and not NEEDS[step.needs]():
            console.print(f"{name}: left out: it needs {step.needs}", markup=False, soft_wrap=True)
        elif time.monotonic() + 60 * step.minutes > deadline:
            console.print(f"{name}: left out: about {step.minutes:g} minutes do not fit into the time that is left", markup=False, soft_wrap=True)
        else:
            start = time.monotonic()
            why = run(step, progress, state)
            ended = f"failed: {why}" if why else "ok"
            console.print(f"{name}: {ended}, {(time.monotonic() - start) / 60:.1f} minutes, log {progress.log(step)}", markup=False, soft_wrap=True)
            failed += [step.name] if why else []
    return failed


def report(progress: Progress) -> int:
    """Plots, and the page of published figures; its last line is the last one."""
    codes = [
        subprocess.run([sys.executable, "-m", "keyquorum", *words], cwd=progress.root, timeout=60 * REPORT_MINUTES, check=False).returncode
        for words in REPORTS
    ]
    return max(codes)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 1 if a step or a report failed, 2 after a mistake of the user."""
    parser = argparse.ArgumentParser(prog="python -m bench.papers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="also what takes hours: more parties, links for all, long counts")
    parser.add_argument("--only", default="", help="steps in whose names all these words occur")
    parser.add_argument("--list", action="store_true", help="the steps, their minutes, and whether they are done")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="starts no step that would end after so many minutes")
    options = parser.parse_args(arguments)
    root = Path(__file__).resolve().parents[3]
    progress = Progress(root, root / "build" / "papers")
    steps = chosen(options.only, options.full)
    if not steps:
        fail(f"no step has {options.only!r} in its name: --list shows all{'' if options.full else ', with --full those that take hours too'}")
        return 2
    if options.list:
        for step in steps:
            console.print(shown(step, progress.state(step)), markup=False, soft_wrap=True)
        return 0
    changes = progress.uncommitted()
    if changes:
        fail(f"{changes[0][3:]} has changes that no commit has, and rows measured with them would count nowhere: commit them first")
        return 2
    progress.logs.mkdir(parents=True, exist_ok=True)
    failed = measure(steps, progress, options.minutes)
    code = report(progress)
    if failed:
        fail(f"{len(failed)} steps failed, the first: {failed[0]}: see its log; the same command continues")
    return int(bool(failed or code))


if __name__ == "__main__":
    raise SystemExit(main())
