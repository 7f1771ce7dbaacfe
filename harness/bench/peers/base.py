"""What a library is measured for, and the interface of libraries. A library that is new here is a file with a :class:`Peer`, and a line of ``PEERS``."""

from __future__ import annotations

import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

R = TypeVar("R")


@dataclass(frozen=True)
class Setting:
    """``parameters``: one of our sets, which fixes the ring degree; ``cores``: on which the library and all our parties run; ``runs``: those that count."""

    parameters: str
    parties: int
    cores: int
    runs: int


@dataclass
class Spent:
    """Seconds and CPU seconds of several runs of one operation, of all parties together for CPU. ``sent``: bytes that all parties send; None if nothing is sent."""

    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    sent: int | None = None

    def add(self, seconds: float, cpu: float, sent: int | None = None) -> None:
        """Adds a run."""
        self.seconds.append(seconds)
        self.cpu.append(cpu)
        self.sent = sent

    @property
    def median(self) -> float:
        """The median of the seconds."""
        return statistics.median(self.seconds)

    @property
    def median_cpu(self) -> float:
        """The median of the CPU seconds."""
        return statistics.median(self.cpu)


@dataclass(frozen=True)
class Pair:
    """One operation, theirs and ours. ``log2_q``: bits of their modulus and of ours. ``differs``: one sentence on what is not the same."""

    operation: str
    ring_degree: int
    plain_modulus: int
    log2_q: tuple[float, float]
    theirs: Spent
    ours: Spent
    differs: str


class Peer(ABC):
    """Another library."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name in the table."""

    @property
    @abstractmethod
    def sets(self) -> Sequence[str]:
        """Our parameter sets beside which it is measured."""

    @property
    def quick_sets(self) -> Sequence[str]:
        """The sets of a quick run."""
        return self.sets[:1]

    def counts(self, parties: Sequence[int]) -> Sequence[int]:
        """Numbers of parties, of those that are asked for."""
        return parties

    @abstractmethod
    def model(self, parameters: str) -> str:
        """What protects its key, in one word."""

    @abstractmethod
    def version(self) -> str:
        """Name and version; empty if it is not installed."""

    @abstractmethod
    def pairs(self, setting: Setting) -> Iterator[Pair]:
        """Measures. Raises PeerMissingError where the library is not installed or refuses the setting."""


def timed(run: Callable[[], R], runs: int) -> tuple[Spent, R]:
    """What several runs in this process took, after one that does not count, and the last result."""
    spent, result = Spent(), run()
    for _ in range(runs):
        start, cpu = time.perf_counter(), time.process_time()
        result = run()
        spent.add(time.perf_counter() - start, time.process_time() - cpu)
    return spent, result


__all__ = ["Pair", "Peer", "Setting", "Spent", "timed"]
