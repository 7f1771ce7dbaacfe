"""How private numbers come from the domain where they were computed to others.

For x of b bits c = x + 2^b + r is opened in the first domain, under a mask r (`lift_open`), and every other domain takes x = c - 2^b - r
(`lift_close`). The mask must be the same integer everywhere. A joint integer is the same whatever a corrupted party does
(``Source/mpc/src/joint.rs``). A sum of masks that t + 1 parties input in each domain is the same if these parties follow the protocol. With MACs
tests show that x is the same (:meth:`Lifted.prove`).

Where parties have x modulo several primes already, each too short for long masks, c is opened modulo each, and is the integer that these residues determine together."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import CheckError
from keyquorum.dsl import ShareVector, wiped_on_failure
from keyquorum.parties.context import PartyContext
from keyquorum.programs import Segment
from keyquorum.programs.signatures import lift_close, lift_open
from keyquorum.sharing.randomness import uniform_bits, wipe
from keyquorum.sharing.shares import DomainRun, Shares

Ints = NDArray[np.int64]

LIFT_BITS = 61
"""Size of the domain in which what is lifted is sampled and masked. The masks fill it; the leakage of all values of a key together is checked
against the budget of its life."""
MERSENNE = 2**61 - 1
"""Auxiliary prime for what is lifted, of protocols without a ring: square roots are cheap modulo it."""
SMOOTH = 4
"""Uniform numbers whose sum is a mask: with one, values leak at the ends of the mask, and the leakage adds up."""
SMOOTH_BITS = 2
"""Bits by which such a sum is longer than its terms."""
LIFTED = 1 << 23
"""Masks of all contributors in one run of `lift_open`."""


def input_bits(threshold: int) -> int:
    """Bits of a mask of `lift_open` that each of t + 1 parties inputs: their sum does not wrap."""
    return LIFT_BITS - 2 - threshold.bit_length()


def joint_bits(summands: int) -> int:
    """Bits of each summand of a joint integer that masks: their sum does not wrap."""
    return LIFT_BITS - 1 - summands.bit_length()


def lift_masks(size: int, bits: int) -> Ints:
    """Masks of `lift` below 2^bits, of one party: sums of four uniform numbers of bits - 2 bits."""
    masks = uniform_bits(size, bits - SMOOTH_BITS)
    for _ in range(SMOOTH - 1):
        more = uniform_bits(size, bits - SMOOTH_BITS)
        masks += more
        wipe(more)
    return masks


def lifted_at_a_time(threshold: int) -> int:
    """Values in one run of `lift_open`."""
    return LIFTED // (threshold + 1)


def integers_of(residues: Sequence[Sequence[int] | Ints], moduli: Sequence[int]) -> list[int]:
    """The integers in [0, product of the primes ``moduli``) with these residues modulo each: Chinese remainders."""
    whole = math.prod(moduli)
    factors = [whole // q * pow(whole // q, -1, q) for q in moduli]
    return [sum(int(r) % q * factor for r, q, factor in zip(row, moduli, factors, strict=True)) % whole for row in zip(*residues, strict=True)]


class LiftMasks(ABC):
    """r for a vector of values: sums of ``contributors`` numbers below 2^``bits``. ``where``: whether programs read them from the share file."""

    contributors: int
    bits: int
    where: ClassVar[Literal["inputs", "stored"]]

    @abstractmethod
    def append_to(self, shares: Shares) -> int | None:
        """Stores shares of r over their domain, if masks are stored, and returns the position of the first."""

    @abstractmethod
    def private(self, piece: Segment) -> Ints | None:
        """The private input of this party for some of the values."""

    @abstractmethod
    def wipe(self) -> None:
        """Overwrites the masks."""


class InputMasks(LiftMasks):
    """Each of t + 1 parties draws masks, and inputs them in every domain. One of the parties is honest, so the sum hides what is lifted. Nothing here
    shows that a party inputs the same masks twice."""

    where = "inputs"

    def __init__(self, context: PartyContext, count: int, bits: int) -> None:
        self.contributors, self.bits = context.committee.threshold + 1, bits
        self._words = lift_masks(count, bits) if context.party < self.contributors else None

    def append_to(self, shares: Shares) -> None:
        """Stores nothing."""

    def private(self, piece: Segment) -> Ints | None:
        """This party's masks."""
        return None if self._words is None else self._words[piece.slice]

    def wipe(self) -> None:
        """Overwrites this party's masks."""
        if self._words is not None:
            wipe(self._words)


class JointLiftMasks(LiftMasks):
    """Joint integers, which no party inputs: the honest parties hold shares of the same integers in every domain. Masks of roundings have
    a class of their own (:mod:`keyquorum.sharing.numbers.rounding`)."""

    where = "stored"

    def __init__(self, runs: DomainRun, count: int, bits: int, summands: int) -> None:
        self.contributors, self.bits = summands, bits
        self._drawn = runs.joint_integers(count, bits - SMOOTH_BITS, SMOOTH)

    def append_to(self, shares: Shares) -> int:
        """Stores shares of all masks."""
        start = shares.length
        shares.append_joint(self._drawn.shares(shares.runs.domain), self._drawn)
        return start

    def private(self, piece: Segment) -> None:
        """Nobody inputs any."""

    def wipe(self) -> None:
        """Gives up the joint integers: the engine wipes them when nobody holds them."""
        del self._drawn


class Lifted:
    """Values x in all domains that ask for them, in a ``with`` block, which begins with the opening of c and ends with the masks wiped. ``x``:
    shares of all values, -2^b < x < 2^``b``; ``draw``: makes masks for so many values; ``more``: shares of x modulo other primes, which with ``x`` determine c. Rounds: those of `lift_open`, in each of
    these domains. Raises :class:`.CheckError` if the residues of c in these are not of one short integer."""

    opened: Ints
    """c, for all values."""

    def __init__(self, x: Shares, b: int, draw: Callable[[int], LiftMasks], more: Sequence[Shares] = ()) -> None:
        self._x, self._b, self._draw, self._count = x, b, draw, x.length
        self._files = (x, *more)
        self._modulus = math.prod(file.runs.modulus for file in self._files)

    def __enter__(self) -> Self:
        with ExitStack() as wiping:
            self._begin(wiping)
            self._wiping = wiping.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self._wiping.close()

    def _begin(self, wiping: ExitStack) -> None:
        self._masks = masks = self._draw(self._count)
        wiping.callback(masks.wipe)
        starts = [masks.append_to(file) for file in self._files]
        opened = []
        for piece in self._pieces(self._count):
            found = []
            for file, start in zip(self._files, starts, strict=True):
                call = lift_open(
                    contributors=masks.contributors, size=piece.length, b=self._b, lam=masks.bits - self._b, modulus=self._modulus, x=piece,
                    masks=masks.where, r=None if start is None else Segment(start + piece.start, piece.length),
                )  # fmt: skip
                found.append(file.run(call, masks.private(piece)))
            opened.append(found[0] if len(found) == 1 else self._integers(found))
        self.opened = np.concatenate(opened)

    def _integers(self, found: Sequence[Ints]) -> Ints:
        """c, from what was opened in each of several domains."""
        integers = integers_of(found, [file.runs.modulus for file in self._files])
        if max(integers) >> 63:
            raise CheckError(
                "values that are to be lifted are not the same short integers modulo all primes: one of the parties cheats, or whoever passed them on"
            )
        return np.array(integers, dtype=np.int64)

    def _pieces(self, count: int) -> list[Segment]:
        step = lifted_at_a_time(self._x.runs.context.committee.threshold)
        return [Segment(at, min(step, count - at)) for at in range(0, count, step)]

    def prove(self, whole: Sequence[DomainRun], first_segment_in: Sequence[DomainRun] = ()) -> bytes | None:
        """Proves that x is the same integers in the domains ``whole``, and its first segment in those of ``first_segment_in``, where this committee needs a
        proof: what was opened for it, for a transcript. None where there is none. Before it nothing may be computed with x in these domains."""
        return None

    def over(self, runs: DomainRun) -> Shares:
        """Shares of x = c - 2^b - r over another domain, with the segments of x. Rounds: those of `lift_close`."""
        shares = self._empty(runs)
        with wiped_on_failure(shares.file):
            self._close(shares, self._count)
        return shares

    def _empty(self, runs: DomainRun) -> Shares:
        """Shares over another domain, in which the values will have the segments of x."""
        return Shares(runs, ShareVector(), self._x.layout.copy())

    def _close(self, shares: Shares, count: int) -> None:
        """Appends the first ``count`` values to shares over another domain."""
        masks = self._masks
        start = masks.append_to(shares)
        for piece in self._pieces(count):
            call = lift_close(
                contributors=masks.contributors, size=piece.length, b=self._b, masks=masks.where,
                r=None if start is None else Segment(start + piece.start, piece.length),
            )  # fmt: skip
            shares.run(call, masks.private(piece), [self.opened[piece.slice]])
