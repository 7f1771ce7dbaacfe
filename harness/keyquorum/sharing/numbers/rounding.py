"""Private numbers of exact roundings: random bits and masks, the same in two domains.

A mask that a party inputs modulo 2^l and once more modulo t need not be the same number twice, and nothing proves that it is. The summands of a joint
integer come from streams that sets of parties have in common: pairs, or with Shamir's sharing all sets of n - t. Each set has an honest member, so in
every domain the honest parties' shares are those of the same integer, whatever a corrupted party does with its own. No message is sent for the shares
(``Source/mpc/src/joint.rs``)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import joint_summands
from keyquorum.programs import Segment
from keyquorum.programs.signatures import sum_inputs
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.randomness import uniform_bits, wipe
from keyquorum.sharing.shares import DomainRun, Shares

Ints = NDArray[np.int64]


class _Numbers(ABC):
    """Numbers for one rounding, in a ``with`` block, which wipes them. ``contributors``: summands of a number. ``where``: whether programs read them
    from the share file."""

    contributors: int
    where: ClassVar[Literal["inputs", "stored"]]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self.wipe()

    @abstractmethod
    def wipe(self) -> None:
        """Overwrites the numbers."""


class RoundingBits(_Numbers):
    """Vectors of random bits, each the XOR of a bit of each contributor. A bit hides one value."""

    private: Ints | None
    """The input of this party, in both domains."""

    @abstractmethod
    def append_sums(self, shares: Shares) -> Segment | None:
        """Stores the vectors of sums of bits, as `round_carry_odd_ring` reads them, if bits are stored."""

    @abstractmethod
    def append_bits(self, shares: Shares) -> Segment | None:
        """Stores of each contributor its bits, as `round_carry_odd_field` reads them, if bits are stored."""


class RoundingMasks(_Numbers):
    """Masks of one rounding: R, a sum of numbers uniform in [0, 2^length), and vectors of random bits: one for each bit of the carry of R, and
    further ones. A mask hides one value."""

    words: Ints | None
    """The input of this party, as `round_mask_odd_field` and `round_mask_open_odd_ring` take it."""
    bits: Ints | None
    """The same as `round_mask_odd_bits` takes it: the bits of R, the lowest one first, then the random bits."""

    @abstractmethod
    def append_sum(self, shares: Shares) -> None:
        """Stores R modulo 2^length. Rounds and bytes: those of `sum_inputs`, where parties input their numbers."""

    @abstractmethod
    def append_places(self, shares: Shares) -> Segment | None:
        """Stores the bits of R and the random bits, as `round_mask_odd_bits` reads them, if masks are stored."""

    @abstractmethod
    def append_words(self, shares: Shares) -> Segment | None:
        """Stores R and the random bits, as `round_mask_odd_field` reads them, if masks are stored."""


class InputBits(RoundingBits):
    """Members of the group draw bits, and input them in both domains. One of them is honest. Nothing here shows that a party inputs the same bits
    twice."""

    where = "inputs"

    def __init__(self, group: RoundingGroup, size: int, vectors: int) -> None:
        self.contributors = group.contributors
        self.private = uniform_bits(size * vectors, 1) if group.contributes else None

    def append_sums(self, shares: Shares) -> None:
        """Stores nothing."""

    def append_bits(self, shares: Shares) -> None:
        """Stores nothing."""

    def wipe(self) -> None:
        """Overwrites this party's bits."""
        if self.private is not None:
            wipe(self.private)


class InputMasks(RoundingMasks):
    """Members of the group draw masks, and input them in all domains. One of them is honest. Nothing here shows that a party inputs the same masks
    twice."""

    where = "inputs"

    def __init__(self, group: RoundingGroup, size: int, length: int, more: int) -> None:
        self.contributors, self._size, self._length = group.contributors, size, length
        self.words = self.bits = None
        if group.contributes:
            vectors = (self.contributors - 1).bit_length() + more
            drawn, rows = uniform_bits(size, length), uniform_bits(size * vectors, 1)
            self.words = np.concatenate([drawn, rows])
            wipe(drawn, rows)

    def append_sum(self, shares: Shares) -> None:
        """By `sum_inputs`."""
        shares.run(sum_inputs(contributors=self.contributors, size=self._size), None if self.words is None else self.words[: self._size])

    def append_places(self, shares: Shares) -> None:
        """Stores nothing, and makes :attr:`bits`."""
        if self.words is None:
            return
        size, length = self._size, self._length
        self.bits = bits = np.empty((length - 1) * size + self.words.size, dtype=np.int64)
        for place in range(length):
            np.right_shift(self.words[:size], place, out=bits[place * size : (place + 1) * size])
        bits[length * size :] = self.words[size:]
        bits &= 1

    def append_words(self, shares: Shares) -> None:
        """Stores nothing."""

    def wipe(self) -> None:
        """Overwrites this party's masks."""
        wipe(*(secret for secret in (self.words, self.bits) if secret is not None))


class JointBits(RoundingBits):
    """Joint integers, which no party inputs. Rounds: those of a toss, which names the draw."""

    where, private = "stored", None

    def __init__(self, runs: DomainRun, size: int, vectors: int) -> None:
        self.contributors = _summands(runs)
        self._drawn = runs.joint_integers(vectors * size, 1)

    def append_sums(self, shares: Shares) -> Segment:
        """Stores the vectors of sums of bits."""
        start = shares.length
        shares.append_joint(self._drawn.shares(shares.runs.domain), self._drawn)
        return Segment(start, shares.length - start)

    def append_bits(self, shares: Shares) -> Segment:
        """Stores of each summand its bits."""
        start = shares.length
        for summand in range(self.contributors):
            shares.append_joint(self._drawn.indicators(shares.runs.domain, summand, 1), self._drawn)
        return Segment(start, shares.length - start)

    def wipe(self) -> None:
        """Gives up the joint integers: the engine wipes them when nobody holds them."""
        del self._drawn


class JointRoundingMasks(RoundingMasks):
    """Joint integers, which no party inputs. Rounds: those of two tosses, which name the draws."""

    where, words, bits = "stored", None, None

    def __init__(self, runs: DomainRun, size: int, length: int, more: int) -> None:
        self.contributors, self._length = _summands(runs), length
        self._drawn = runs.joint_integers(size, length)
        self._random = JointBits(runs, size, (self.contributors - 1).bit_length() + more)

    def append_sum(self, shares: Shares) -> None:
        """R of the stream, without messages."""
        shares.append_joint(self._drawn.shares(shares.runs.domain), self._drawn)

    def append_places(self, shares: Shares) -> Segment:
        """Stores of each summand of R its bits, the lowest one first, then the sums of the random bits."""
        start = shares.length
        for summand in range(self.contributors):
            for place in range(self._length):
                shares.append_joint(self._drawn.bits(shares.runs.domain, summand, place), self._drawn)
        self._random.append_sums(shares)
        return Segment(start, shares.length - start)

    def append_words(self, shares: Shares) -> Segment:
        """Stores R, then of each summand its random bits."""
        start = shares.length
        self.append_sum(shares)
        self._random.append_bits(shares)
        return Segment(start, shares.length - start)

    def wipe(self) -> None:
        """Gives up the joint integers: the engine wipes them when nobody holds them."""
        self._random.wipe()
        del self._drawn


def _summands(runs: DomainRun) -> int:
    context = runs.context
    return joint_summands(runs.sharing.protocol, context.parties, context.committee.threshold)


__all__ = ["InputBits", "InputMasks", "JointBits", "JointRoundingMasks", "RoundingBits", "RoundingMasks"]
