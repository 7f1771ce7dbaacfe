"""A row of the comparison, and what a run of it gave."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Outcome:
    """What a run gave: appended shares (opened), public words, words of each receiver; all centred modulo the modulus."""

    appended: list[int]
    public: list[int]
    personal: dict[int, list[int]]


@dataclass(frozen=True)
class Case:
    """One row: a program with arguments and inputs. ``shares``: clear values of the share file at the start; ``private``:
    each party's words; ``check`` judges one outcome where the program is random (default: all outcomes are equal)."""

    program: str
    variant: str
    args: tuple[str, ...]
    domain: str
    private: dict[int, Ints] = field(default_factory=dict)
    public: Ints | None = None
    shares: Ints | None = None
    appended: int = 0
    check: Callable[[Outcome], str] | None = None

    @property
    def label(self) -> str:
        """Program and variant."""
        return f"{self.program} {self.variant}".strip()

    @property
    def modulus(self) -> int:
        """Of the domain."""
        return domain_modulus(self.domain)


@dataclass
class Measured:
    """Runs of a case on one engine: the outcome of the last, seconds of each, MB sent by all parties, rounds."""

    outcome: Outcome
    seconds: list[float]
    sent_mb: float
    rounds: int


def wrong(case: Case, got: Outcome, clear: Outcome) -> str:
    """What is wrong with an outcome of a case whose clear evaluation gave ``clear``, or ""."""
    if case.check is not None:
        return case.check(got) or ("" if len(got.appended) == len(clear.appended) else "another length")
    if got.appended != clear.appended:
        return "other shares than the reference"
    words = got.public or [w for _, vector in sorted(got.personal.items()) for w in vector]
    wanted = clear.public or [w for vector in clear.personal.values() for w in vector]
    return "" if words == wanted else "other outputs than the reference"


def domain_modulus(domain: str) -> int:
    """2^k or the prime."""
    return 1 << int(domain[3:]) if domain.startswith("Z2^") else int(domain[2:])


def centred(values: Iterable[int], modulus: int) -> list[int]:
    """Representatives in [-modulus/2, modulus/2)."""
    half = modulus // 2
    return [(int(v) + half) % modulus - half for v in values]
