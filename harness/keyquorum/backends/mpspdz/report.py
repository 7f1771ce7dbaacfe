"""Parser of MP-SPDZ's output about time and communication, into the reports of the embedded engine."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from keyquorum.dsl.control.control import Timer
from keyquorum.dsl.control.runner import ProgramResult

_NUMBER = r"([0-9][0-9.]*(?:e[+-]?[0-9]+)?)"
_TIME = re.compile(rf"^Time = {_NUMBER} seconds", re.M)
_TIMER = re.compile(rf"^Time([1-9][0-9]*) = {_NUMBER} seconds \({_NUMBER} MB(?:, ([0-9]+) rounds)?\)", re.M)
_SENT = re.compile(rf"^Data sent = {_NUMBER} MB in ~([0-9]+) rounds", re.M)
_GLOBAL = re.compile(rf"^Global data sent = {_NUMBER} MB", re.M)
_PHASE = rf"{_NUMBER} seconds(?: \({_NUMBER} MB, ([0-9]+) rounds\))?"
_SPENT = re.compile(rf"^Spent {_PHASE} on the online phase and {_PHASE} on the preprocessing/offline phase", re.M)


@dataclass(frozen=True)
class MpSpdzReport:
    """Cost of a run, from the output of one party.

    result: total and timers (this party's traffic), in the form of the embedded engine. online, offline: the two phases, if the option for
    details (``-v``) was given. bytes_global: bytes that all parties sent together; None if the output has no such line (``emulate``).
    """

    result: ProgramResult
    online: Timer | None = None
    offline: Timer | None = None
    bytes_global: int | None = None
    timers: dict[int, Timer] = field(default_factory=dict)


def _bytes(megabytes: str) -> int:
    return round(float(megabytes) * 1e6)


def parse_report(output: str) -> MpSpdzReport:
    """Reads the output of one party. The last of repeated lines counts. Missing values stay zero or None."""
    total = Timer()
    for match in _TIME.finditer(output):
        total.seconds = float(match.group(1))
    for match in _SENT.finditer(output):
        total.bytes_sent, total.rounds = _bytes(match.group(1)), int(match.group(2))
    timers = {int(number): Timer(float(seconds), _bytes(sent), int(rounds or 0)) for number, seconds, sent, rounds in _TIMER.findall(output)}
    online = offline = None
    for match in _SPENT.finditer(output):
        s, mb, rounds, prep_s, prep_mb, prep_rounds = match.groups()
        online = Timer(float(s), _bytes(mb or "0"), int(rounds or 0))
        offline = Timer(float(prep_s), _bytes(prep_mb or "0"), int(prep_rounds or 0))
        total.offline_seconds, total.offline_bytes_sent = offline.seconds, offline.bytes_sent
        total.offline_rounds = offline.rounds
    everyone = _GLOBAL.findall(output)
    return MpSpdzReport(ProgramResult(total, timers), online, offline, _bytes(everyone[-1]) if everyone else None, timers)


_INFORMATIVE = re.compile(
    r"fatal error|\berror:|CompilerError|terminate called|what\(\):|exception|not compatible|cannot |Cannot |"
    r"mismatch|not compiled for|insufficient|Assertion .* failed|Segmentation|Killed|No such|Use './compile.py",
    re.I,
)
_NOISE = re.compile(r"^\s*(File \"|Traceback|\^|Running |=== Party|The following benchmarks|Using |Trying to run|Connection took )")


_CHECK = re.compile(r"\bmac|check|consisten|sacrific|cheat|commit|hash|mismatch", re.I)


def check_failed(line: str) -> bool:
    """Whether a line of :func:`failure_line` may come from a check that fails if a party cheats. MP-SPDZ has no list of such messages, so this looks
    for words that they have in common, and may be true for other lines."""
    return bool(_CHECK.search(line))


def failure_line(output: str) -> str:
    """The most informative line of a failed run: the last line that looks like an error, else the last line."""
    lines = [" ".join(line.split()) for line in output.splitlines() if line.strip() and not _NOISE.match(line)]
    informative = [line for line in lines if _INFORMATIVE.search(line)]
    return (informative or lines or ["it printed nothing"])[-1][:400]
