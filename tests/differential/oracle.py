"""State of the oracle: a program's values as lists of Python integers, what it consumed, and what it must print.

sint and cint: canonical elements of the domain. regint: signed 64-bit integers. sbits and cbits: one unsigned integer.
Rows of bits (sbitvec, lists of sbits): a list of such. Containers: one flat list of elements. Personal: as cint.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .domain import Domain, signed_bits

TAG, FILE = "@TAG", "@FILE"
"""Stand in the text of a program for its number in a batch, and for the length of the share file when it starts."""


@dataclass
class State:
    """One evaluation. ``file_base``: shares in the file before the program. ``pools``: numbers that inputs take."""

    domain: Domain
    parties: int
    pools: dict[str, Sequence[int]]
    file_base: int = 0
    values: dict[str, Any] = field(default_factory=dict)
    lines: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))
    words: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    private: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    listed: list[int] = field(default_factory=list)
    shares: list[int] = field(default_factory=list)
    _taken: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self.values[name] = value

    def take(self, pool: str, count: int) -> list[int]:
        """The next numbers of a pool, which starts again at its end."""
        numbers, start = self.pools[pool], self._taken[pool]
        self._taken[pool] += count
        return [numbers[i % len(numbers)] for i in range(start, start + count)]

    def take_private(self, party: int, pool: str, count: int) -> list[int]:
        """Numbers that become the next words of a party's binary input."""
        taken = self.take(pool, count)
        self.private[party] += taken
        return taken

    def take_public(self, pool: str, count: int) -> list[int]:
        """Numbers that become the next words of every party's binary input."""
        taken = self.take(pool, count)
        for party in range(max(self.parties, 3)):  # emulation has the inputs of three
            self.private[party] += taken
        return taken

    def take_listed(self, pool: str, count: int) -> list[int]:
        """Numbers that become the next ones of the public input file."""
        taken = self.take(pool, count)
        self.listed += taken
        return taken

    def print(self, text: str, mark: str = "") -> None:
        """A line at every party, after the program's tag. ``mark``: ``~`` for a line whose numbers come in any order."""
        for party in range(self.parties):
            self.lines[party].append(f"{mark}{text}")

    def print_to(self, party: int, text: str) -> None:
        """A line at one party."""
        self.lines[self._place(party)].append(text)

    def _place(self, party: int) -> int:
        return 0 if self.parties == 1 else party  # emulation: one process stands for all

    def output(self, values: Sequence[int], party: int | None = None) -> None:
        """Words of the binary output of all parties, or of one."""
        for p in range(self.parties) if party is None else (self._place(party),):
            self.words[p] += values


Action = Callable[[State], Any]


def listed(items: Sequence[object]) -> str:
    """How a vector is printed: a single element without brackets."""
    return str(items[0]) if len(items) == 1 else bracketed(items)


def bracketed(items: Sequence[object]) -> str:
    """How a list is printed."""
    return f"[{', '.join(map(str, items))}]"


def nested(values: Sequence[int], shape: Sequence[int]) -> str:
    """How a matrix is printed."""
    if len(shape) == 1:
        return bracketed(values)
    step = len(values) // shape[0]
    return bracketed([nested(values[i : i + step], shape[1:]) for i in range(0, len(values), step)])


def bits_text(value: int, n: int) -> str:
    """How opened bits are printed."""
    return str(signed_bits(value, n))
