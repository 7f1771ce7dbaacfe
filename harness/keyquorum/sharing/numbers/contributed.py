"""Private numbers that t + 1 parties input: for semi-honest committees. One of the parties is honest, and so uniform numbers of each add up to
uniform ones. Among three parties, one corrupted, masks of a lift are joint integers (:meth:`.PrivateNumbers.summands`)."""

from __future__ import annotations

import numpy as np

from keyquorum.dsl import wiped_on_failure
from keyquorum.programs.signatures import sample_ternary
from keyquorum.sharing.randomness import uniform_trits, wipe
from keyquorum.sharing.shares import DomainRun, Shares

from .base import PrivateNumbers
from .lift import LIFT_BITS, MERSENNE


class ContributedNumbers(PrivateNumbers):
    """Numbers that parties contribute. Nothing proves what a party gives, or that it gives the same in every domain."""

    samples, samples_of_products = 1 << 18, 1 << 15

    @property
    def first(self) -> DomainRun:
        """A ring, if the committee has one."""
        if self.committee.ring_protocol is None:
            return self.run.field(MERSENNE)
        return self.run.ring(self.context.backend.ring_bits(LIFT_BITS))

    def ternary(self, size: int) -> Shares:
        """s = sum of u_p modulo 3, for uniform trits u_p of t + 1 parties p. Rounds and bytes: `sample_ternary`."""
        shares, contributors = self.first.shares(), self.committee.threshold + 1
        in_bits = shares.runs.domain.prime is None
        trits = uniform_trits(size)
        forms = [trits == 1, trits == 2] if in_bits else [trits, np.where(trits == 2, -1, trits)]
        private = np.concatenate(forms, dtype=np.int64, casting="unsafe")
        try:
            call = sample_ternary(contributors=contributors, N=size, method="bits" if in_bits else "bilinear")
            with wiped_on_failure(shares.file):
                shares.run(call, private if self.context.party < contributors else None, appends="secret")
        finally:
            wipe(trits, private, *forms)
        return shares
