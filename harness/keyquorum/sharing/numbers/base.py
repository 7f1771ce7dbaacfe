"""Where the private numbers of a committee come from: the interface that plans call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from keyquorum._engine import joint_summands
from keyquorum.model.committee import Committee
from keyquorum.sharing.shares import DomainRun, Run, Shares

from .lift import InputMasks, JointMasks, Lifted, LiftMasks, input_bits, joint_bits


class PrivateNumbers(ABC):
    """Private numbers of a committee, unknown to any t parties. What the kind of committee decides, and nothing else: who gives the numbers, and
    what shows the others that they are right."""

    samples: ClassVar[int]
    """Samples of noise at a time: bounds memory."""
    samples_of_products: ClassVar[int]
    """The same where a sample takes some hundred products."""

    def __init__(self, run: Run) -> None:
        self.run, self.context, self.committee = run, run.context, run.context.committee

    @property
    @abstractmethod
    def first(self) -> DomainRun:
        """The domain in which numbers are made, before they are lifted to others: of 61 bits, or of more if MP-SPDZ has only wider rings."""

    @abstractmethod
    def ternary(self, size: int) -> Shares:
        """Shares of a secret s, uniform in {-1, 0, 1}^size, as segment ``secret`` over :attr:`first`."""

    def lift(self, x: Shares, b: int) -> Lifted:
        """All values x over :attr:`first`, -2^b < x < 2^``b``, for other domains. Its first segment may go to further ones alone."""
        return Lifted(x, b, self.masks)

    def masks(self, count: int) -> LiftMasks:
        """Masks for so many values over :attr:`first`, which must be the same integers in every domain. What ensures it: see :mod:`.lift`."""
        bits, summands = self.mask_bits(self.committee), self.summands(self.committee)
        if summands and self.context.backend.takes_joint_integers:
            return JointMasks(self.first, count, bits, summands)
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
