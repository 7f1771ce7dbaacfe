"""Runs the attacks of the security reviews: each must be blocked, and must succeed when its remedy is removed.

Tests are named ``finding_NN_blocked_…`` and ``finding_NN_ablated_…``, in Rust and in Python. Other attacks have a
name instead of the number (``two_element_keys_blocked_…``). A finding is blocked if all of its ``blocked`` tests pass, and its ablated
attack succeeds if all of its ``ablated`` tests pass. A finding without tests of a kind counts as failed.

Prints ``audit: finding=… attack_blocked=… ablated_attack_succeeds=…`` for every numbered finding, the same with ``attack=`` for every
other attack, then ``audit: ok findings=16``; exits with 1 otherwise.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FINDINGS = range(1, 17)
KINDS = ("blocked", "ablated")

TEST = r"(\w+?)_(blocked|ablated)(?:_\w*)?"
Outcomes = dict[tuple[str, str], list[bool]]


def _run(command: list[str], folder: Path) -> str:
    """The output of a test runner. Its exit code is ignored: the lines of the tests are enough."""
    environment = {**os.environ, "CARGO_PROFILE_RELEASE_LTO": "off", "CARGO_PROFILE_RELEASE_DEBUG": "0"}
    result = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return result.stdout.decode(errors="replace")


def _note(outcomes: Outcomes, text: str, line: str) -> int:
    """Adds the outcomes of the tests in these lines; returns their number."""
    found = re.findall(line, text, re.MULTILINE)
    for number, kind, outcome in found:
        outcomes.setdefault((number, kind), []).append(outcome.lower() in ("ok", "passed"))
    return len(found)


def main() -> int:
    """Runs all attacks."""
    outcomes: Outcomes = {}
    cargo = ["cargo", "test", "--release", "--locked", "--workspace", "--lib", "--tests", "--no-fail-fast", "--", "_blocked_", "_ablated_"]
    rust = _run(cargo, ROOT / "Source")
    pytest = [sys.executable, "-m", "pytest", "-k", "_blocked or _ablated", "-v", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header"]
    python = _run(pytest, ROOT)
    many = _note(outcomes, rust, rf"^test (?:\S+::)?{TEST} (?:- should panic )?\.\.\. (\w+)")
    more = _note(outcomes, python, rf"::test_{TEST}(?:\[.*?\])?(?: <-.*?)? (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)")
    if not many or not more:
        print(rust[-3000:] if not many else python[-3000:])
    first = [f"finding_{number:02}" for number in FINDINGS]
    later = sorted({name for name, _ in outcomes} - set(first))
    good = 0
    for name in [*first, *later]:
        said = {kind: bool(outcomes.get((name, kind))) and all(outcomes[name, kind]) for kind in KINDS}
        words = {kind: "yes" if said[kind] else "no" for kind in KINDS}
        shown = f"finding={int(name.removeprefix('finding_'))}" if name in first else f"attack={name}"
        print(f"audit: {shown} attack_blocked={words['blocked']} ablated_attack_succeeds={words['ablated']}")
        good += all(said.values())
    if good < len(first) + len(later):
        failed = re.findall(r"^(?:test )?\S*_(?:blocked|ablated)\S* .*(?:FAILED|ERROR).*$", rust + python, re.MULTILINE)
        print("\n".join(failed))
        print(f"audit: FAILED, {good} of {len(first) + len(later)} findings and attacks are as they should be")
        return 1
    print(f"audit: ok findings={len(first)} later={len(later)} attacks={sum(map(len, outcomes.values()))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
