"""Private numbers that all parties input and prove: for committees with MACs. What a party gave is checked before it is used, and tests show that it
is the same in every domain (:mod:`keyquorum.sharing.lifted`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import CheckError
from keyquorum.model.errors import ProgramError
from keyquorum.programs import Segment
from keyquorum.programs.signatures import sample_ternary, trit_inputs
from keyquorum.sharing.lifted import LiftedDomain, LiftTests, pieces_of
from keyquorum.sharing.randomness import uniform_below, uniform_trits, wipe
from keyquorum.sharing.shares import DomainRun, Shares

from .base import PrivateNumbers
from .lift import MERSENNE, Lifted, LiftMasks

Ints = NDArray[np.int64]


class ProvenNumbers(PrivateNumbers):
    """Numbers of all parties, with proofs. Every bit has a MAC, which bounds the samples at a time."""

    samples = samples_of_products = 1 << 14

    @property
    def first(self) -> DomainRun:
        """A prime field, over which the proofs are."""
        return self.run.field(MERSENNE)

    def ternary(self, size: int) -> Shares:
        """s = sum of u_p modulo 3, uniform if one party is honest: all see that the u_p are trits, and products with MACs add them up. Raises
        :class:`.CheckError`, which names a party that gave something else. Rounds and bytes are those of `trit_inputs` and of `sample_ternary` with
        stored trits."""
        runs, contributors = self.first, self.committee.size
        private = _proven_trits(size)
        with runs.shares() as trits:
            try:
                opened = trits.run(trit_inputs(contributors=contributors, N=size), private)
            finally:
                wipe(private)
            _judge_trits(opened.reshape(contributors, -1))
            trits.run(sample_ternary(contributors=contributors, N=size, trits="stored", indicators=Segment(0, trits.length)))
            return runs.shares(trits.first(size), secret=size)

    def lift(self, x: Shares, b: int) -> Lifted:
        """The same, with :meth:`.Lifted.prove`."""
        return ProvenLifted(x, b, self.masks)


class ProvenLifted(Lifted):
    """Values that are lifted to all domains at once, and tested before anything is computed with them."""

    def __init__(self, x: Shares, b: int, draw: Callable[[int], LiftMasks]) -> None:
        super().__init__(x, b, draw)
        self._alone = x.layout.first.length
        self._cuts = pieces_of(x.length, self._alone)
        self._tested: dict[DomainRun, Shares] = {}

    def _begin(self, wiping: ExitStack) -> None:
        super()._begin(wiping)
        self._tests = wiping.enter_context(LiftTests(self._x.runs.context, self._cuts, self._x.runs.modulus, 1 << self._b))
        self._tests.input_masks(LiftedDomain(self._x, len(self._cuts)))

    def prove(self, whole: Sequence[DomainRun], first: Sequence[DomainRun] = ()) -> bytes:
        """See :meth:`.Lifted.prove`. Raises :class:`.CheckError` if a value is another one in some domain; the MAC key is burned then; ProgramError
        if it was called before. Rounds: those of `lift_close` in every domain, and of the tests."""
        self._tests.require_unused()
        lifted: dict[DomainRun, Shares] = {}
        with self._x.runs.context.phase("lift test"):
            for count, cuts, domains in ((self._count, len(self._cuts), whole), (self._alone, len(pieces_of(self._alone, self._alone)), first)):
                for runs in domains:
                    lifted[runs] = self._wiping.enter_context(self._close(runs, count))
                    self._tests.input_masks(LiftedDomain(lifted[runs], cuts))
            opened = self._tests.run()
        self._tested = lifted
        return opened

    def over(self, runs: DomainRun) -> Shares:
        """What was tested over this domain. Raises :class:`.ProgramError` for a domain in which nothing was tested."""
        if runs not in self._tested:
            raise ProgramError(f"values that were lifted to {runs.domain} are used before they are tested there: call prove first")
        return self._tested[runs]


def _proven_trits(size: int) -> Ints:
    """The private input of `trit_inputs` for fresh uniform trits, over the field in which secrets are made: 7 * size words in [0, 2^61 - 1). Its
    masks x and y are uniform there, and used once: the program opens e = r u + x. Arrays that held trits or masks on the way are wiped."""
    private = np.empty((7, size), dtype=np.int64)
    u, v, x, y, xu, yv, xv = private
    trits = uniform_trits(size)
    np.bitwise_and(trits, 1, out=u)
    np.right_shift(trits, 1, out=v)
    wipe(trits)
    for mask in (x, y):
        drawn = uniform_below(size, MERSENNE)
        mask[:] = drawn
        wipe(drawn)
    np.multiply(x, u, out=xu)
    np.multiply(y, v, out=yv)
    np.multiply(x, v, out=xv)
    return private.reshape(-1)


def _judge_trits(opened: Ints) -> None:
    """Refuses what is not the indicators of a trit: rows of what `trit_inputs` opened, one a contributor."""
    for party, words in enumerate(opened):
        if words.any():
            raise CheckError(f"party {party} gave no trits for the secret: it cheats, make the key without it")
