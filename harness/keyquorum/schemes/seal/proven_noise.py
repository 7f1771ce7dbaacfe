"""Flooding noise of a committee with MACs: no party inputs any, and all primes have the same.

1. `sample_flooding`: random bits of the protocol, put together to short pieces of the noise (:mod:`.uniform_noise`). At a level of one prime that is all: the pieces are sampled there.
2. For several primes the pieces are sampled modulo 2^61 - 1. `lift_open` opens them under masks, `lift_close` makes shares of them modulo each prime.
3. Random subset sums prove that they are the same integers there (:mod:`keyquorum.sharing.lifted`), before anything is computed with them. The masks of the lift are private inputs that nothing
   proves, as in key generation; the tests concern what was made with them.

`flood` adds the pieces up, to the phase, and opens the sum to the receiver. A failed test, or a session that ends from the toss of the subsets on, burns the MAC key.
"""

from __future__ import annotations

from collections.abc import Sequence

from keyquorum.dsl import Persistence
from keyquorum.parties.context import PartyContext
from keyquorum.programs import Segment
from keyquorum.programs.signatures import lift_close, lift_open, sample_flooding
from keyquorum.sharing.lifted import LiftedDomain, LiftTests, pieces_of
from keyquorum.sharing.numbers.lift import MERSENNE, input_bits, lift_masks
from keyquorum.sharing.randomness import wipe
from keyquorum.sharing.shares import Run, Shares

from .uniform_noise import UniformNoise


class ProvenNoise:
    """The noise of one ciphertext. ``size``: coefficients; ``moduli``: the primes of its level. Every party calls this."""

    def __init__(self, context: PartyContext, noise: UniformNoise, size: int, moduli: Sequence[int], seed: bytes | None = None) -> None:
        self._context, self._noise, self._size, self._moduli, self._run = context, noise, size, list(moduli), Run(context, seed)
        self._count = noise.pieces * size
        self._sampler = sample_flooding(size=size, fine=noise.fine, wide=noise.wide, width=noise.width)

    def append_to(self, files: Sequence[Persistence]) -> list[Segment]:
        """Appends the pieces to the share file of each prime, and returns where they are. Rounds and bytes: those of `sample_flooding`, and for several primes of `lift_open`, of `lift_close` for
        each, and of the tests. Raises :class:`.CheckError` if the pieces are others modulo some prime; the MAC key is burned then."""
        found = [Segment(file.length, self._count) for file in files]
        if len(self._moduli) == 1:
            self._run.field(self._moduli[0]).run(self._sampler, files[0])
            return found
        with self._run.field(MERSENNE).shares() as first:
            first.run(self._sampler)
            self._lift(first, files, found)
        return found

    def _lift(self, first: Shares, files: Sequence[Persistence], places: Sequence[Segment]) -> None:
        context, b, bits = self._context, self._noise.piece_bits, input_bits(self._context.committee.threshold)
        masks = lift_masks(self._count, bits)
        with LiftTests(context, cuts := pieces_of(self._count, self._count), MERSENNE, 1 << b) as tests:
            try:
                call = lift_open(contributors=context.parties, size=self._count, b=b, lam=bits - b, modulus=MERSENNE, x=Segment(0, self._count))
                opened = first.run(call, masks)
                tests.input_masks(LiftedDomain(first, len(cuts)))
                for q, file, place in zip(self._moduli, files, places, strict=True):
                    shares = self._run.field(q).shares(file)
                    shares.run(lift_close(contributors=context.parties, size=self._count, b=b), masks, [opened])
                    tests.input_masks(LiftedDomain(shares, len(cuts), place.start))
            finally:
                wipe(masks)
            tests.run()


__all__ = ["ProvenNoise"]
