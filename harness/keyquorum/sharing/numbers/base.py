"""Where the private numbers of a committee come from: the interface that plans call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import budget_lift, joint_summands
from keyquorum.dsl import ShareVector
from keyquorum.dsl.files.origin import Origin
from keyquorum.model.committee import Committee, CommitteeShape
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.shares import DomainRun, Run, Shares
from keyquorum.sharing.variants import Section

from .flooding import Flooding, FloodingDistribution, FloodingPolicy
from .lift import InputMasks, JointLiftMasks, Lifted, LiftMasks, input_bits, joint_bits
from .rounding import RoundingBits, RoundingMasks

Words = NDArray[np.uint64]


class PrivateNumbers(ABC):
    """Private numbers of a committee, unknown to any t parties. What the kind of committee decides, and nothing else: who gives the numbers, and
    what shows the others that they are right."""

    samples: ClassVar[int]
    """Samples of noise at a time: bounds memory."""
    samples_of_products: ClassVar[int]
    """The same where a sample takes some hundred products."""

    plain_shares: ClassVar[bool] = False
    """Whether a share is nothing but summands: a party can scale its share, or divide it, alone, and a receiver outside can add shares up."""
    one_ring: ClassVar[bool] = False
    """Whether exact decryptions are in one ring, where a parameter set allows it: what parties compute of their shares alone would lose its proof."""
    one_time_tables: ClassVar[str] = "are not made"
    """Why there are no one-time tables of AES; empty where there are."""
    least_prime_bits: ClassVar[int] = 0
    """Bits of the shortest prime under which keys are made."""
    inputs_masks_twice: ClassVar[bool] = False
    """Whether roundings may take masks that parties input in two domains, where nothing shows that they are the same."""

    def __init__(self, run: Run) -> None:
        self.run, self.context, self.committee = run, run.context, run.context.committee

    @property
    @abstractmethod
    def first_domain(self) -> DomainRun:
        """The domain in which numbers are made, before they are lifted to others: of 61 bits, or of more if MP-SPDZ has only wider rings."""

    @abstractmethod
    def ternary(self, size: int) -> Shares:
        """Shares of a secret s, uniform in {-1, 0, 1}^size, as segment ``secret`` over :attr:`first_domain`."""

    def lift(self, x: Shares, b: int) -> Lifted:
        """All values x over :attr:`first_domain`, -2^b < x < 2^``b``, for other domains. Its first segment may go to further ones alone."""
        return Lifted(x, b, self.masks)

    def masks(self, count: int) -> LiftMasks:
        """Masks for so many values over :attr:`first_domain`, which must be the same integers in every domain. What ensures it: see :mod:`.lift`."""
        bits, summands = self.mask_bits(self.committee), self.summands(self.committee)
        if summands and self.context.backend.takes_joint_integers:
            return JointLiftMasks(self.first_domain, count, bits, summands)
        return InputMasks(self.context, count, bits)

    @classmethod
    def summands(cls, committee: Committee) -> int:
        """Summands of the joint integers that mask what is lifted; 0 where t + 1 parties input masks. Joint integers are for committees of so few
        summands that masks have no fewer bits: three parties, one corrupted."""
        found = joint_summands(committee.field_protocol, committee.size, committee.threshold)
        return found if found and joint_bits(found) >= input_bits(committee.threshold) else 0

    @classmethod
    def mask_bits(cls, committee: Committee) -> int:
        """Bits of a mask of `lift_open`, of each of t + 1 parties, or of each summand of a joint integer: sums of them do not wrap."""
        summands = cls.summands(committee)
        return joint_bits(summands) if summands else input_bits(committee.threshold)

    # Statistical budget and memory of a key. A kind that opens, tests or stores more than masked values adds its own terms

    @classmethod
    def lift_leaks(cls, committee: Committee, values: int, mask_bits: int, prime_bits: int, bound: int) -> float:
        """Distance from independence of what is opened and sent for the lift of so many values of at most ``bound``, under masks of ``mask_bits``
        bits, from a domain of ``prime_bits`` bits."""
        return budget_lift(values, mask_bits)

    @classmethod
    def attempts(cls, prime_bits: int | None = None) -> float:
        """Probability that a wrong value is accepted in the life of a key, over a prime of so many bits (None: of those that the budget is for)."""
        return 0.0

    @classmethod
    def packed_words(cls, committee: Committee) -> int:
        """Words that a party holds of 64 shared bits."""
        return committee.share_parts

    @classmethod
    def test_bytes(cls, committee: Committee, values: int, domains: int) -> int:
        """Memory that the tests of a lift of so many values to so many domains take, and the products of their kind."""
        return 0

    # Flooding

    @abstractmethod
    def flooding(self, policy: FloodingPolicy, degree: int) -> Flooding:
        """The noise of one ciphertext of so many coefficients. Every party calls this."""

    @classmethod
    @abstractmethod
    def flooding_distribution(cls, policy: FloodingPolicy, degree: int, shape: CommitteeShape) -> FloodingDistribution:
        """The distribution of that noise, in a committee of this shape."""

    # Shares that are stored, and taken from a pool later

    element_words: ClassVar[int] = 1
    """64-bit words of a stored share."""
    bits_in_ring: ClassVar[bool] = False
    """Whether shared bits are elements of the ring that the values are in. Elsewhere they are stored modulo 2."""
    defers_checks: ClassVar[bool] = False
    """Whether online programs check their openings with what items have for it (:mod:`keyquorum.sharing.openings`)."""

    least_receivers: ClassVar[int] = 0
    """Parties of a committee, at least, each of which items may have something for."""

    @classmethod
    def stored(cls, section: Section) -> Section:
        """How a section is stored."""
        return section

    @classmethod
    def stored_parts(cls, group: RoundingGroup) -> int:
        """Components of a stored share: summands that a party knows."""
        return group.parts

    @classmethod
    @abstractmethod
    def begin(cls, group: RoundingGroup, origins: Sequence[Origin], purpose: bytes) -> list[Origin]:
        """What shows that items which are about to be used are the right ones at all parties, from the ``origins`` that came with the items; for
        :meth:`mark`. Nothing was sent under the items before. Every member calls this."""

    @classmethod
    @abstractmethod
    def mark(cls, shares: Shares, origins: Sequence[Origin], what: str) -> None:
        """Gives shares, which were put together locally, the origins that :meth:`begin` or the runs before have, so that a program refuses other
        shares."""

    @classmethod
    @abstractmethod
    def origins_of_all(cls, purpose: str, runs: Sequence[Sequence[Origin]]) -> list[Origin]:
        """The origins of items, from the origins of the runs that made them."""

    # Roundings

    @classmethod
    def of_summands(cls, runs: DomainRun, summands: Words) -> Shares:
        """Shares of the sums of summands that members computed from their shares of a phase, [parts, size]: the summands themselves."""
        return runs.shares(ShareVector.from_words(summands))

    @classmethod
    @abstractmethod
    def rounding_bits(cls, group: RoundingGroup, size: int, vectors: int) -> RoundingBits:
        """Vectors of random bits for ``size`` phases. Every member calls this."""

    @classmethod
    @abstractmethod
    def rounding_masks(cls, group: RoundingGroup, size: int, length: int, more: int = 0) -> RoundingMasks:
        """Masks of ``length`` bits for ``size`` phases, with ``more`` random bits each beside those of carries. Every member calls this."""
