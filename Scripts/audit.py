"""Runs the attacks of the security reviews: each must be blocked, and must succeed when its remedy is removed.

Tests are named ``ATTACK_blocked_…`` and ``ATTACK_ablated_…``, in Rust and in Python: ``two_element_keys_blocked_by_the_check_of_keys``. An attack is
blocked if all of its ``blocked`` tests pass, and its ablation succeeds if all of its ``ablated`` tests pass. An attack without tests of a kind counts
as failed.

Prints ``audit: attack=… attack_blocked=… ablated_attack_succeeds=…`` for every attack, then ``audit: ok findings=16 later=… attacks=…``: attacks of the
first review, later ones, and tests; exits with 1 otherwise.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIRST = (
    "revealed_pads",
    "failed_check",
    "factor_bets",
    "small_flooding",
    "rounding_errors",
    "crowds",
    "torn_claims",
    "repeated_bets",
    "toss",
    "lift_masks",
    "missing_parts",
    "every_check",
    "short_masks",
    "searched_sets",
    "timing",
    "dual_words",
)
"""The attacks of the first review, which must be there. Later ones are found by their tests."""
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
    for attack, kind, outcome in found:
        outcomes.setdefault((attack, kind), []).append(outcome.lower() in ("ok", "passed"))
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
    later = sorted({name for name, _ in outcomes} - set(FIRST))
    good = 0
    for name in [*FIRST, *later]:
        said = {kind: bool(outcomes.get((name, kind))) and all(outcomes[name, kind]) for kind in KINDS}
        words = {kind: "yes" if said[kind] else "no" for kind in KINDS}
        print(f"audit: attack={name} attack_blocked={words['blocked']} ablated_attack_succeeds={words['ablated']}")
        good += all(said.values())
    if good < len(FIRST) + len(later):
        failed = re.findall(r"^(?:test )?\S*_(?:blocked|ablated)\S* .*(?:FAILED|ERROR).*$", rust + python, re.MULTILINE)
        print("\n".join(failed))
        print(f"audit: FAILED, {good} of {len(FIRST) + len(later)} findings and attacks are as they should be")
        return 1
    print(f"audit: ok findings={len(FIRST)} later={len(later)} attacks={sum(map(len, outcomes.values()))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
