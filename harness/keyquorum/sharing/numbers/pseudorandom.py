"""Private numbers that come from streams of sets of parties (``Source/mpc/src/joint.rs``): for committees that verify products. No party inputs
anything, so no party can give something else. Every set has an honest member, so in every domain the honest parties' shares are of the same integers:
a lift needs no test."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from keyquorum._engine import joint_summands
from keyquorum.backends.embedded import Embedded
from keyquorum.dsl.files.origin import Origin
from keyquorum.model.committee import Committee, CommitteeShape
from keyquorum.model.errors import ParameterError, ProgramError
from keyquorum.programs import Segment
from keyquorum.programs.signatures import sample_ternary
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.shares import DomainRun, Shares

from . import rounding
from .base import PrivateNumbers
from .flooding import Flooding, FloodingDistribution, FloodingPolicy, GaussianSum, JointNoise
from .lift import MERSENNE, JointLiftMasks, LiftMasks
from .rounding import JointBits


class PseudorandomNumbers(PrivateNumbers):
    """Joint integers: of some set of parties all members are honest, and its summand hides the sum. Verified products are remembered until they are
    checked, which bounds the samples at a time."""

    samples = samples_of_products = 1 << 15
    plain_shares = True
    one_time_tables = "are semi-honest so far"

    @property
    def first_domain(self) -> DomainRun:
        """A prime field: its products are verified faster than those modulo 2^k, which take an extension ring."""
        return self.run.field(MERSENNE)

    def ternary(self, size: int) -> Shares:
        """s = sum of u_A modulo 3, for joint trits u_A of sets A, by verified products: no party has a choice. Rounds and bytes are those of
        `sample_ternary` with stored trits, without messages for the trits themselves."""
        runs = self.first_domain
        summands, joint = self.summands(self.committee), runs.joint_integers(size, 0)  # 0 bits: trits
        with runs.shares() as trits:
            for summand in range(summands):
                for value in (1, 2):
                    trits.append_joint(joint.indicators(runs.domain, summand, value), joint)
            trits.run(sample_ternary(contributors=summands, N=size, trits="stored", indicators=Segment(0, trits.length)))
            return runs.shares(trits.head(size), secret=size)

    def masks(self, count: int) -> LiftMasks:
        """Joint integers alone. Raises ParameterError where there are none: a party could input other masks in every domain."""
        summands = self.summands(self.committee)
        if not summands or not self.context.backend.takes_joint_integers:
            raise ParameterError(
                f"{self.committee.protocol} on {self.context.backend.name} has no joint integers, and nobody may input masks: take the embedded engine"
            )
        return JointLiftMasks(self.first_domain, count, self.mask_bits(self.committee), summands)

    @classmethod
    def summands(cls, committee: Committee) -> int:
        """All masks are joint integers: a party could input other ones in every domain."""
        return joint_summands(committee.field_protocol, committee.size, committee.threshold)

    @classmethod
    def begin(cls, group: RoundingGroup, origins: Sequence[Origin], purpose: bytes) -> list[Origin]:
        """The names of the items' draws, once all parties have agreed on the items and their purpose: one exchange of a digest of 256 bits. Raises
        ProgramError for items without a name."""
        if not origins or not isinstance(group.backend, Embedded):
            raise ProgramError("items of a committee that verifies products lack the name of their draw: take them from a pool of this version")
        said = b"".join(len(part).to_bytes(8, "little") + part for part in (purpose, *map(bytes, origins)))
        group.backend.session.compare("items of the pool, and their purpose", hashlib.sha256(said).digest())
        return list(origins)

    @classmethod
    def mark(cls, shares: Shares, origins: Sequence[Origin], what: str) -> None:
        """Shares have a name of their own, a hash of what they were computed from."""
        shares.derive_origin(what, origins)

    @classmethod
    def origins_of_all(cls, purpose: str, runs: Sequence[Sequence[Origin]]) -> list[Origin]:
        """One name, a hash of the names of all runs, which all parties compare before they use the items. So honest parties use items of one draw.
        Items without a name are refused then."""
        origins = [origin for run in runs for origin in run]
        return [Origin.derived(purpose, origins)] if origins else []

    def flooding(self, policy: FloodingPolicy, degree: int) -> Flooding:
        """Gaussian noise of every set of parties, from its stream."""
        return JointNoise(self.context, degree, policy.variance(degree))

    @classmethod
    def flooding_distribution(cls, policy: FloodingPolicy, degree: int, shape: CommitteeShape) -> FloodingDistribution:
        """A number of every set of n - t parties, C(n, t) in all (three pairs of three parties). Any t parties know all but one at most."""
        return GaussianSum(joint_summands(*shape), policy.variance(degree))

    @classmethod
    def rounding_bits(cls, group: RoundingGroup, size: int, vectors: int) -> JointBits:
        """Joint integers of all parties."""
        return JointBits(group.ring(1), size, vectors)

    @classmethod
    def rounding_masks(cls, group: RoundingGroup, size: int, length: int, more: int = 0) -> rounding.JointRoundingMasks:
        """Joint integers of all parties."""
        return rounding.JointRoundingMasks(group.ring(1), size, length, more)
