"""Private numbers that t + 1 parties input: for semi-honest committees. One of the parties is honest, and so uniform numbers of each add up to
uniform ones. Among three parties, one corrupted, masks of a lift are joint integers (:meth:`.PrivateNumbers.summands`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from keyquorum.dsl import wiped_on_failure
from keyquorum.dsl.files.origin import Origin
from keyquorum.model.committee import CommitteeShape
from keyquorum.programs.signatures import sample_ternary
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.randomness import uniform_trits, wipe
from keyquorum.sharing.shares import DomainRun, Shares

from .base import PrivateNumbers
from .flooding import Flooding, FloodingDistribution, FloodingPolicy, GaussianSum, InputNoise
from .lift import LIFT_BITS, MERSENNE
from .rounding import InputBits, InputMasks


class ContributedNumbers(PrivateNumbers):
    """Numbers that parties contribute. Nothing proves what a party gives, or that it gives the same in every domain."""

    samples, samples_of_products = 1 << 18, 1 << 15
    inputs_masks_twice = plain_shares = True
    one_time_tables = ""

    @property
    def first_domain(self) -> DomainRun:
        """A ring, if the committee has one."""
        if self.committee.ring_protocol is None:
            return self.run.field(MERSENNE)
        return self.run.ring(self.context.backend.ring_bits(LIFT_BITS))

    def ternary(self, size: int) -> Shares:
        """s = sum of u_p modulo 3, for uniform trits u_p of t + 1 parties p. Rounds and bytes: `sample_ternary`."""
        shares, contributors = self.first_domain.shares(), self.committee.threshold + 1
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

    def flooding(self, policy: FloodingPolicy, degree: int) -> Flooding:
        """Gaussian noise of t + 1 parties."""
        return InputNoise(self.context, degree, policy.sigma(degree))

    @classmethod
    def flooding_distribution(cls, policy: FloodingPolicy, degree: int, shape: CommitteeShape) -> FloodingDistribution:
        """A number of each of t + 1 parties."""
        return GaussianSum(shape.threshold + 1, policy.variance(degree))

    @classmethod
    def begin(cls, group: RoundingGroup, origins: Sequence[Origin], purpose: bytes) -> list[Origin]:
        """Nothing: the parties are semi-honest."""
        return []

    @classmethod
    def mark(cls, shares: Shares, origins: Sequence[Origin], what: str) -> None:
        """Shares have no origin."""

    @classmethod
    def origins_of_all(cls, purpose: str, runs: Sequence[Sequence[Origin]]) -> list[Origin]:
        """Runs state no origin."""
        return []

    @classmethod
    def rounding_bits(cls, group: RoundingGroup, size: int, vectors: int) -> InputBits:
        """Bits of t + 1 members."""
        return InputBits(group, size, vectors)

    @classmethod
    def rounding_masks(cls, group: RoundingGroup, size: int, length: int, more: int = 0) -> InputMasks:
        """Masks of t + 1 members."""
        return InputMasks(group, size, length, more)
