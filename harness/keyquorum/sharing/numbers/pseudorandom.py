"""Private numbers that come from streams of sets of parties (``Source/mpc/src/joint.rs``): for committees that verify products. No party inputs
anything, so no party can give something else. Every set has an honest member, so in every domain the honest parties' shares are of the same integers:
a lift needs no test."""

from __future__ import annotations

from keyquorum._engine import joint_summands
from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError
from keyquorum.programs import Segment
from keyquorum.programs.signatures import sample_ternary
from keyquorum.sharing.shares import DomainRun, Shares

from .base import PrivateNumbers
from .lift import MERSENNE, JointMasks, LiftMasks


class PseudorandomNumbers(PrivateNumbers):
    """Joint integers: of some set of parties all members are honest, and its summand hides the sum. Verified products are remembered until they are
    checked, which bounds the samples at a time."""

    samples = samples_of_products = 1 << 15

    @property
    def first(self) -> DomainRun:
        """A prime field: its products are verified faster than those modulo 2^k, which take an extension ring."""
        return self.run.field(MERSENNE)

    def ternary(self, size: int) -> Shares:
        """s = sum of u_A modulo 3, for joint trits u_A of sets A, by verified products: no party has a choice. Rounds and bytes are those of
        `sample_ternary` with stored trits, without messages for the trits themselves."""
        runs = self.first
        summands, joint = self.summands(self.committee), runs.joint_integers(size, 0)  # 0 bits: trits
        with runs.shares() as trits:
            for summand in range(summands):
                for value in (1, 2):
                    trits.append_joint(joint.indicators(runs.domain, summand, value), joint)
            trits.run(sample_ternary(contributors=summands, N=size, trits="stored", indicators=Segment(0, trits.length)))
            return runs.shares(trits.first(size), secret=size)

    def masks(self, count: int) -> LiftMasks:
        """Joint integers alone. Raises ParameterError where there are none: a party could input other masks in every domain."""
        summands = self.summands(self.committee)
        if not summands or not self.context.backend.takes_joint_integers:
            raise ParameterError(
                f"{self.committee.protocol} on {self.context.backend.name} has no joint integers, and nobody may input masks: take the embedded engine"
            )
        return JointMasks(self.first, count, self.mask_bits(self.committee), summands)

    @classmethod
    def summands(cls, committee: Committee) -> int:
        """All masks are joint integers: a party could input other ones in every domain."""
        return joint_summands(committee.field_protocol, committee.size, committee.threshold)
