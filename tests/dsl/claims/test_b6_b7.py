"""Opening the low bits and looking up; reading MP-SPDZ's output."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from keyquorum.backends.mpspdz.report import parse_report

from ..running import RINGS, Backend, name, printed
from .spdz import FIELD, NEEDED, Q60, Work, encrypted, needs, work

__all__ = ["work"]

LOOK_UP = """
k, n, L = 8, 5, 256
z = sint([3, 255, 256 + 7, -1, 0])
r = sint([250, 1, 0, 2, 255])
opened = ((z + r) << (64 - k)).reveal() >> (64 - k)
T = sint.Array(n * L)
T.assign_vector(sint(regint.inc(n * L)))
break_point()
found = T.get(regint(opened) + regint.inc(n, 0, L))
print_ln('%s %s', opened, found.reveal())
"""
LOOK_UP_PRINTED = ["[253, 0, 7, 1, 255] [253, 256, 519, 769, 1279]"]


@NEEDED
@pytest.mark.parametrize(("protocol", "parties"), [("ring", 3), ("semi2k", 2), ("spdz2k", 2)])
def test_look_up(tmp_path: Path, protocol: str, parties: int) -> None:
    needs(protocol)
    assert Work(tmp_path, parties).lines(protocol, LOOK_UP, run_time=encrypted(protocol)) == LOOK_UP_PRINTED


@pytest.mark.parametrize("backend", RINGS, ids=name)
def test_look_up_here(tmp_path: Path, backend: Backend) -> None:
    assert printed(tmp_path, LOOK_UP, backend) == LOOK_UP_PRINTED


@NEEDED
def test_reports(work: Work) -> None:
    """Times, traffic, phases; a timer includes what it starts in preprocessing. The parser: tests/backends/test_report.py."""
    text = """
        x = sint([1, 2, 3])
        start_timer(1)
        y = (x * x).reveal()
        stop_timer(1)
        start_timer(2)
        b = sint.get_random_bit(size=1000)
        stop_timer(2)
        print_ln('%s %s', y, (b * (b - 1)).sum().reveal())
        """
    done = work.run("rep-field", text, run_time=[*FIELD, "-v"])
    assert not done.failed
    for pattern in (
        r"^Time = \S+ seconds", r"^Time1 = \S+ seconds \(\S+ MB, \d+ rounds\)", r"^Time2 = \S+ seconds \(\S+ MB, \d+ rounds\)",
        r"^Data sent = \S+ MB in ~\d+ rounds \(party 0 only", r"^Global data sent = \S+ MB",
        r"^Spent \S+ seconds \(\S+ MB, \d+ rounds\) on the online phase and \S+ seconds \(\S+ MB, \d+ rounds\) on the preprocessing/offline",
    ):  # fmt: skip
        assert re.search(pattern, done.output, re.M), pattern
    report = parse_report(done.output)
    assert report.timers[2].bytes_sent > 1000 and report.offline and report.offline.bytes_sent > 1000


@NEEDED
def test_printing(work: Work) -> None:
    """Centred; of a regint vector the first element alone; comparisons after conversion to regint. The embedded engine:
    tests/dsl/test_expressions.py and test_inputs_outputs.py."""
    text = f"""
        x = cint([{Q60 - 1}, {Q60 // 2 + 1}, 5])
        print_ln('%s %s', x, regint(x))
        print_ln('%s', cint(regint(x) < 0))
        """
    assert work.lines("rep-field", text, run_time=FIELD) == [f"[-1, {-(Q60 // 2)}, 5] -1", "[1, 1, 0]"]
