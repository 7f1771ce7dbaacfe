"""Proof, for protocols with MACs, that what `lift` brings to other domains is the same there, and nothing else.

`lift` opens c = x + 2^b + r in the domain in which x was computed, and every other domain takes c - 2^b - r. Each party inputs its part of r once in every domain. A
corrupted one can input other numbers in each, and a MAC only shows that shares stay what they were. So before anything is computed with them:

1. Every party inputs masks in all domains, :data:`TESTS` a piece of values.
2. All parties toss a seed. It determines for each test a random subset of the piece.
3. Every domain opens v = (sum of the subset) + (sum of the parties' masks) + offset, with MACs checked. The v of all domains must be one integer: the one that the first
   domain gives in [0, M), modulo every other modulus.

**Soundness.** M is the modulus of the first domain, in which |x_j| <= B for every j: programs without private inputs made x there. All values and masks of all domains
are fixed when the seed is tossed. Let the values x_j and y_j of entry j in the first and in another domain, a prime field or Z_2^k, differ: y_j is not x_j modulo the modulus m
of the other domain. Take any subset of the other entries. Suppose that the test passes with j and without j. Honest openings lie in a range of length below M - B, and the parties
refuse others. The two integers v and v' lie in this range. Their difference d is x_j modulo M, and |d - x_j| < M, so d = x_j. It is also y_j modulo m, a contradiction. So at most one of the two
passes. Entry j is in the subset with probability 1/2, independently of the others: a test passes with at most 1/2, and all with 2^-TESTS, whatever else differs. Nothing is
inverted, so zero divisors modulo 2^k do no harm. Two other domains need no test of each other. A union over entries is not needed: one that differs suffices.

*Several first domains.* Where x is there modulo several primes, and no program of these parties made it (a key that another committee passed on), these domains determine v together: M is the product of the primes, and v the
integer in [0, M) with the residues that they opened. The argument is the same. Without a bound on x, it says that every entry that passes is residues of one integer, the difference of two that lie in the range: so the entries
are the same short integers in all domains.

The result is exact. There is no slack, unlike with proofs that a number is short: the parts of r themselves are not proven, only what depends on them.

**What tests reveal.** v is a sum of small values under the masks of all parties. An honest party's mask is the sum of four uniform numbers; the distance from independence of all tests of a key
is in its budget (``Source/core/src/budget.rs``, `lift_tests`). Whether a test fails depends on v and on what corrupted parties chose: as c and v are opened, they know every
difference that they made. So a failure says no more than the openings.

**Aborts.** Who sees the seed first, and does not like it, could break off and try again. So from the toss on a session that ends burns the MAC key, like one that ends in cut and choose, and so does a
test that fails.

The cost is TESTS inputs of each party and TESTS openings for a piece and domain: 41 for up to 65,536 values, beside one input of each party for every value. Cut and choose of the parts of r (edaBits
of Escudero, Ghosh, Keller, Rachuri, Scholl, CRYPTO 2020, without bits) takes two to three tests for every value, and proves the length with a slack of some 40 bits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import LIFT_TESTS, CheckError
from keyquorum.model.errors import ProgramError
from keyquorum.parties.context import PartyContext
from keyquorum.programs import Segment
from keyquorum.programs.signatures import lift_test, sum_inputs

from ..randomness import uniform_below, wipe
from ..shares import Shares
from .lift import integers_of

Ints = NDArray[np.int64]

TESTS: int = LIFT_TESTS
"""Tests of a piece: a difference passes with 2^-41."""
PIECE = 1 << 16
"""Values of a piece, at most: bounds memory."""
TERMS = 4
"""Uniform numbers whose sum is a mask."""


@dataclass(frozen=True)
class LiftedDomain:
    """Shares of the values in one domain, from position ``start`` on; masks are stored behind them. ``pieces``: the first of all pieces that this domain has."""

    shares: Shares
    pieces: int
    start: int = 0


def mask_width(parties: int, modulus: int, bound: int) -> int:
    """Masks of a party are below this: the sums of a piece of values of at most ``bound`` and of all masks, with their offset, lie in a range of length below
    ``modulus - bound``."""
    return (modulus - 3 * PIECE * bound) // parties // TERMS * TERMS


def pieces_of(count: int, first: int) -> list[Segment]:
    """The first ``first`` of ``count`` values as pieces of their own, then the others."""
    cuts = sorted({*range(0, first, PIECE), *range(first, count, PIECE), count})
    return [Segment(a, b - a) for a, b in pairwise(cuts)]


class LiftTests:
    """The tests of one vector of values, in a ``with`` block, which wipes this party's masks whatever happens. ``modulus``: of the domain where they were computed, or a number below it; ``bound``: on the
    absolute value of each there; ``first``: domains, the first ones, that take the place of that domain together; ``tests``: of each piece (None: :data:`TESTS`)."""

    def __init__(self, context: PartyContext, pieces: Sequence[Segment], modulus: int, bound: int, first: int = 1, tests: int | None = None) -> None:
        self._context, self._pieces, self._bound, self._first = context, list(pieces), bound, first
        self._tests = TESTS if tests is None else tests
        self._domains: list[LiftedDomain] = []
        self._used = False
        self._masks_at: list[int] = []
        count, width = self._tests * len(self._pieces), mask_width(context.parties, modulus, bound)
        self._range = context.parties * width + 2 * bound * PIECE
        assert self._range <= modulus - bound, "mask_width leaves room"
        self._masks = uniform_below(count, width // TERMS)
        for _ in range(TERMS - 1):
            more = uniform_below(count, width // TERMS)
            self._masks += more
            wipe(more)

    def __enter__(self) -> LiftTests:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        wipe(self._masks)

    def input_masks(self, domain: LiftedDomain) -> None:
        """Every party inputs its masks in a domain; first in those where the values were computed. One round. Raises ProgramError after :meth:`run`."""
        self.require_unused()
        count = self._tests * domain.pieces
        self._masks_at.append(domain.shares.length)
        self._domains.append(domain)
        domain.shares.run(sum_inputs(contributors=self._context.parties, size=count), private=self._masks[:count])

    def run(self) -> bytes:
        """Tests all domains, whose shares are all in place. Returns what was opened, for a transcript. Rounds: those of a toss, and one for each piece and domain, with its check of MACs.

        Raises :class:`.CheckError` if a value is another one in some domain; the MAC key is burned then; ProgramError if it ran before."""
        self.require_unused()
        self._used = True
        session, backend = self._context.session, self._context.backend
        wipe(self._masks)
        # From the toss on: who does not like the subsets must not try again.
        session.begin_under_mac_key()
        backend.keep_note(True)
        opened = self._tested()
        backend.keep_note(False)  # after a failure it stays, and so does the note
        session.end_under_mac_key()
        return opened

    def require_unused(self) -> None:
        """Raises ProgramError after :meth:`run`: then the masks are gone, and sums would be opened bare."""
        if self._used:
            raise ProgramError("the masks of a test of lifted values serve once: make new tests")

    def _tested(self) -> bytes:
        session = self._context.session
        toss, opened = session.toss(64), bytearray()
        for number, piece in enumerate(self._pieces):
            subsets = self._subsets(toss, number, piece.length)
            places = [(at, domain) for at, domain in zip(self._masks_at, self._domains, strict=True) if number < domain.pieces]
            first, others = places[: self._first], places[self._first :]
            residues = [self._opened(domain, number, piece, at, subsets) for at, domain in first]
            expected = integers_of(residues, [domain.shares.runs.modulus for _, domain in first])
            for (_, domain), sums in zip(first, residues, strict=True):
                self._judge(domain, sums, expected)
            opened += b"".join(v.to_bytes(8, "little") for v in expected)
            for at, domain in others:
                self._judge(domain, self._opened(domain, number, piece, at, subsets), expected)
        return bytes(opened)

    def _subsets(self, toss: bytes, number: int, size: int) -> Ints:
        """Rows of a word 0 or 1 for each value of a piece, one for each test."""
        count = self._tests * size
        stream = hashlib.shake_256(b"keyquorum subsets of lifted values" + toss + number.to_bytes(8, "little")).digest((count + 7) // 8)
        return np.unpackbits(np.frombuffer(stream, dtype=np.uint8), count=count).astype(np.int64)

    def _opened(self, domain: LiftedDomain, number: int, piece: Segment, masks_at: int, subsets: Ints) -> list[int]:
        x, s = Segment(domain.start + piece.start, piece.length), Segment(masks_at + self._tests * number, self._tests)
        call = lift_test(size=piece.length, tests=self._tests, offset=self._bound * PIECE, x=x, s=s)
        modulus = domain.shares.runs.modulus
        return [int(v) % modulus for v in domain.shares.run(call, public=[subsets])]

    def _judge(self, domain: LiftedDomain, sums: Sequence[int], expected: Sequence[int]) -> None:
        """Refuses sums that are not those of the first domain."""
        lifted = domain.shares.runs.domain
        if all(v < self._range and (w - v) % lifted.modulus == 0 for v, w in zip(expected, sums, strict=True)):
            return
        cause = f"values that were lifted to {lifted} are others there: one of the parties cheats, the key must not be used"
        raise CheckError(f"{cause}; {self._context.session.burn_mac_key(cause)}")


__all__ = ["PIECE", "TESTS", "LiftTests", "LiftedDomain", "mask_width", "pieces_of"]
