"""The parser of MP-SPDZ's output."""

from __future__ import annotations

import pytest
from keyquorum.backends.mpspdz.report import failure_line, parse_report

GOOD = """\
Default bit length for compilation: 63
Program requires at most:
        4096 integer triples
Expected communication is 0.06912 MB online and 0 MB offline.
Starting timer 1 at 0 (0 MB, 0 rounds) after 4.2e-06
Stopped timer 1 at 0.0186525 (0.295504 MB, 61 rounds)
Spent 0.0057357 seconds (0.02304 MB, 6 rounds) on the online phase and 1.5e-02 seconds (1.27246e+02 MB, 55 rounds) on the preprocessing/offline phase.
The following benchmarks are including preprocessing (offline phase).
Time = 0.0257731 seconds 
Time1 = 0.0186525 seconds (0.295504 MB, 61 rounds)
Time12 = 3e-05 seconds (0 MB)
Data sent = 2.5 MB in ~61 rounds (party 0 only)
Global data sent = 7.500001 MB (all parties)
"""


def test_costs() -> None:
    report = parse_report(GOOD)
    total = report.result.total
    assert (total.seconds, total.bytes_sent, total.rounds) == (0.0257731, 2_500_000, 61)
    assert {i: (t.seconds, t.bytes_sent, t.rounds) for i, t in report.timers.items()} == {
        1: (0.0186525, 295504, 61),
        12: (3e-05, 0, 0),
    }
    assert report.online is not None and report.offline is not None
    assert (report.online.seconds, report.online.bytes_sent, report.online.rounds) == (0.0057357, 23040, 6)
    assert (report.offline.seconds, report.offline.bytes_sent, report.offline.rounds) == (0.015, 127246000, 55)
    assert (total.offline_seconds, total.offline_bytes_sent, total.offline_rounds) == (0.015, 127246000, 55)
    assert report.bytes_global == 7500001


def test_phases_without_communication() -> None:
    report = parse_report("Spent 6.7e-05 seconds on the online phase and 2 seconds on the preprocessing/offline phase.\n")
    assert report.online is not None and report.online.seconds == 6.7e-05 and report.online.rounds == 0
    assert report.offline is not None and report.offline.seconds == 2 and report.result.total.offline_seconds == 2


def test_the_lines_are_those_of_the_embedded_engine() -> None:
    lines = parse_report(GOOD).result.lines()
    assert lines[0] == "Time = 0.0257731 seconds" and lines[1].startswith("Time1 = 0.0186525 seconds (0.295504 MB, 61 rounds)")
    assert "1.5e-02" not in lines[3] and "0.015 seconds (127.246 MB, 55 rounds) on the preprocessing/offline phase" in lines[3]
    assert lines[-1] == "Data sent = 2.5 MB in 61 rounds"


def test_what_is_missing_stays_open() -> None:
    report = parse_report("Time = 1.5 seconds \n")
    assert report.result.total.seconds == 1.5 and report.bytes_global is None and report.offline is None
    assert parse_report("").result.total.seconds == 0


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("Compiling\nFatal error: use_private_key_file\nRunning x\n", "Fatal error: use_private_key_file"),
        ('Traceback (most recent call last):\n  File "a.py", line 3\nCompiler.exceptions.CompilerError: no\n', "Compiler.exceptions.CompilerError: no"),
        ("terminate called after throwing\n  what():  mac_fail\n=== Party 1\nUsing security\n", "what(): mac_fail"),
        ("something\nlast  words\n\n", "last words"),
        ("", "it printed nothing"),
    ],
)  # fmt: skip
def test_the_line_that_says_most(output: str, line: str) -> None:
    assert failure_line(output) == line


def test_long_lines_are_cut() -> None:
    assert len(failure_line("error: " + "x" * 10000)) == 400
