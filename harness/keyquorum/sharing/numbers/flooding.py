"""Flooding noise: numbers of many bits, one for each coefficient, that hide the noise of a result. The same integers modulo every prime of a
level."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import ClassVar, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import JointIntegers
from keyquorum.dsl.files.origin import Origin
from keyquorum.model.errors import ParameterError
from keyquorum.parties.context import PartyContext
from keyquorum.programs import Segment
from keyquorum.sharing.randomness import HALF_BITS, discrete_gaussian, gaussian_of_words, gaussian_words, wipe
from keyquorum.sharing.shares import Run, Shares

from .lift import MERSENNE

Ints = NDArray[np.int64]


class FloodingPolicy(Protocol):
    """How much noise there must be: statistical security of all decryptions together, how many they are, and the noise that is hidden, in bits."""

    @property
    def bits(self) -> int: ...
    @property
    def decryptions(self) -> int: ...
    @property
    def noise_bits(self) -> int: ...
    def sigma(self, ring_degree: int) -> float:
        """Deviation of a Gaussian number that is enough."""

    def variance(self, ring_degree: int) -> int:
        """Its square."""


class FloodingDistribution(Protocol):
    """The distribution of the noise of a coefficient."""

    @property
    def variance(self) -> float: ...
    @property
    def largest(self) -> float:
        """What the absolute value hardly ever exceeds."""


@dataclass(frozen=True)
class GaussianSum:
    """A sum of independent discrete Gaussian numbers, of contributors or of sets of parties. Each is sub-Gaussian with the deviation sigma (Canonne,
    Kamath, Steinke: The Discrete Gaussian for Differential Privacy, NeurIPS 2020), so a sum of c is with sqrt(c) sigma: 8 deviations are exceeded
    with probability 2^-45 a coefficient."""

    summands: int
    one: int
    """Variance of one of them."""

    @property
    def variance(self) -> float:
        """Of the sum."""
        return self.summands * self.one

    @property
    def largest(self) -> float:
        """Eight deviations."""
        return 8 * math.sqrt(self.one) * math.sqrt(self.summands)


class Flooding(ABC):
    """The noise of one ciphertext, in a ``with`` block, which wipes it, as the program `flood` takes it. ``contributors``: parties that input
    noise, 0 where it is stored; ``private``: this party's input; ``pieces``, ``width``: of which numbers the noise is the sum."""

    where: ClassVar[Literal["inputs", "stored"]]
    contributors: int = 0
    private: Ints | None = None
    pieces: int = 1
    width: int = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self.wipe()

    @abstractmethod
    def store(self, files: Sequence[Shares]) -> list[Segment | None]:
        """Appends the noise to shares modulo each prime of a level, where noise is stored, and returns where it is. Every party calls this, before
        anything is opened with the noise."""

    def wipe(self) -> None:  # noqa: B027
        """Overwrites the noise at this party. The default is for noise that no party has."""


class InputNoise(Flooding):
    """Each of t + 1 parties inputs Gaussian noise modulo every prime; one of them is honest. Nothing shows that it is the same, and not too large."""

    where = "inputs"

    def __init__(self, context: PartyContext, size: int, sigma: float) -> None:
        self.contributors = context.committee.threshold + 1
        if context.party < self.contributors:
            self.private = discrete_gaussian(size, sigma)

    def store(self, files: Sequence[Shares]) -> list[Segment | None]:
        """Stores nothing."""
        return [None for _ in files]

    def wipe(self) -> None:
        """Overwrites this party's noise."""
        if self.private is not None:
            wipe(self.private)


class JointNoise(Flooding):
    """Flooding noise of a committee that verifies products: F = sum of F_A over sets A of parties, each F_A discrete Gaussian of ``variance``,
    independent of the others, and known to the members of A alone. With replicated shares the sets are the pairs of parties, with Shamir's all sets
    of n - t parties: C(n, t) of them.

    All members compute F_A from uniform words of their common stream, and write shares of the sum modulo every prime (pseudo-random secret sharing:
    Cramer, Damgard, Ishai, TCC 2005). So in every domain the honest parties' shares are those of one F, of the size that its distribution has: no
    party has a choice, and nothing is sent for the shares. Of some set all members are honest, so any t parties know all F_A but one, at most.
    ``size`` numbers for one use: F is appended once modulo each prime. Rounds: those of a toss, which names the draw, and one in which members
    compare seeds where sets have three and more; the name of the noise is a hash of the name of the draw and of ``variance``. Memory: 8 (2 s + 1)
    bytes for each number and each set of this party, where s tables make a number (:func:`.gaussian_words`)."""

    where = "stored"

    def __init__(self, context: PartyContext, size: int, variance: int) -> None:
        protocol, rows = context.committee.field_protocol, gaussian_words(variance)
        self._parts, self._size = context.committee.share_parts, size
        drawn = Run(context).field(MERSENNE).joint_integers(rows * size, HALF_BITS)
        self._drawn: JointIntegers | None = drawn  # wiped when nobody holds it
        self.known: list[int] = drawn.known
        """The sets of this party, by their numbers."""
        if drawn.name is None:
            raise ParameterError(
                f"{protocol}: joint noise has the name of its draw, which this protocol does not make: take mal-rep-field or mal-shamir"
            )
        self._name = bytes(Origin.derived(f"gaussian {variance}", [Origin(drawn.name)]))
        self._noise = np.zeros((len(self.known), size), dtype=np.int64)
        self._appended: set[str] = set()
        for row, summand in zip(self._noise, self.known, strict=True):
            words = np.frombuffer(drawn.numbers(summand), dtype="<u8")
            try:
                found = gaussian_of_words(variance, words.reshape(rows, size))
                row[:] = found
                wipe(found)
            finally:
                wipe(words)

    def store(self, files: Sequence[Shares]) -> list[Segment | None]:
        """Modulo every prime, without messages."""
        places = [Segment(file.length, self._size) for file in files]
        for file in files:
            self.append_to(file)
        return [*places]

    def append_to(self, shares: Shares) -> None:
        """Appends F modulo the prime of ``shares``. Raises ParameterError the second time, as two results under one F show their difference without
        noise, and once the noise is wiped."""
        protocol, domain = shares.runs.sharing
        if self._drawn is None:
            raise ParameterError(f"{protocol}: this joint noise is wiped: draw another one")
        if domain in self._appended:
            raise ParameterError(f"{protocol}: this joint noise is used modulo {domain.modulus} already: draw another one for each ciphertext")
        self._appended.add(domain)
        shares.file.append_joint(protocol, domain, self._drawn.shares_of(domain, self._noise), self._parts, self._name)

    def wipe(self) -> None:
        """Overwrites the noise, and what it was made of."""
        self._drawn = None
        if hasattr(self, "_noise"):
            wipe(self._noise)

    def __del__(self) -> None:
        self.wipe()


__all__ = ["Flooding", "FloodingDistribution", "FloodingPolicy", "GaussianSum", "InputNoise", "JointNoise"]
