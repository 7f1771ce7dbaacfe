"""Many programs in one file, with the expected prints and outputs of each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from .builder import Program
from .oracle import FILE, TAG, State
from .targets import Target

LINE = re.compile(r"^@(\d+)([ ~])(.*)$")


@dataclass
class Observed:
    """Result of a run: printed lines and words of the binary output of each party; parties without a known result are
    absent. ``error``: the reason why there is no result."""

    lines: dict[int, list[str]] = field(default_factory=dict)
    words: dict[int, list[int]] = field(default_factory=dict)
    error: str = ""


class Batch:
    """Programs one after another, for one target."""

    def __init__(self, programs: Sequence[Program], target: Target) -> None:
        self.programs, self.target = list(programs), target
        self.states: list[State] = []
        base, texts = 0, []
        for number, program in enumerate(self.programs):
            state = program.evaluate(target.domain, target.parties, base)
            self.states.append(state)
            texts.append(f"# program {number}\n" + program.text.replace(TAG, f"@{number}").replace(FILE, str(base)))
            base += len(state.shares)
        self.text = "\n".join(texts)

    def private(self, party: int) -> list[int]:
        """Words of a party's binary input."""
        return [w for s in self.states for w in s.private[party]]

    @property
    def listed(self) -> list[int]:
        """Numbers of the public input file."""
        return [w for s in self.states for w in s.listed]

    def differences(self, seen: Observed) -> dict[int, str]:
        """Deviations from the expected result, by program."""
        found: dict[int, str] = {}
        for party, lines in seen.lines.items():
            printed = _by_program(lines)
            for number, state in enumerate(self.states):
                wanted, got = state.lines[party], printed.get(number, [])
                if list(map(_comparable, wanted)) != list(map(_comparable, got)):
                    found.setdefault(number, f"party {party} prints\n  {got}\nnot\n  {wanted}")
        for party, words in seen.words.items():
            at = 0
            for number, state in enumerate(self.states):
                wanted_words = state.words[party]
                part = words[at : at + len(wanted_words)]
                at += len(wanted_words)
                if part != wanted_words:
                    found.setdefault(number, f"party {party} outputs\n  {part}\nnot\n  {wanted_words}")
            if at != len(words):
                found.setdefault(len(self.states) - 1, f"party {party} outputs {len(words) - at} words more")
        return found


def _by_program(lines: Sequence[str]) -> dict[int, list[str]]:
    printed: dict[int, list[str]] = {}
    for line in lines:
        match = LINE.match(line)
        if match:
            printed.setdefault(int(match[1]), []).append(("~" if match[2] == "~" else "") + match[3])
    return printed


def _comparable(line: str) -> object:
    """A line, or its numbers in order where they come in any order."""
    return ("~", sorted(int(x) for x in re.findall(r"-?\d+", line))) if line.startswith("~") else line
