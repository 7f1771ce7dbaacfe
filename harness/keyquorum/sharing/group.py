"""The parties that round, and the programs that they run."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import mulmod_scalar
from keyquorum.backends.base import Backend
from keyquorum.model.domains import Field, Ring, Sharing
from keyquorum.model.errors import ParameterError
from keyquorum.parties.context import PartyContext
from keyquorum.sharing.shares import DomainRun

Words = NDArray[np.uint64]

PORTIONS, LEAST_PORTION = 8, 8
"""Runs in which triples with MACs are made, and least items of one. Triples of 8 items take as long as the masks of 64, which take the same time for
fewer."""


@dataclasses.dataclass(frozen=True)
class RoundingGroup:
    """The parties that round, with shares of which each knows whole summands.

    All parties of the committee, unless it has a quorum: of Shamir's scheme t + 1 parties, the receiver among them, multiply their shares by Lagrange
    coefficients and continue with additive sharing, which tolerates t corruptions of t + 1.

    members: by their numbers in the committee. me: our number among them (None: not a member). receiver: likewise.
    parts: summands that a party knows. held: their numbers, in the order of our parts (none if we are no member). summands: of a share.
    contributors: members that give masks. ring_protocol, field_protocol: of the two programs (ring_protocol None: the sharing has no ring).
    points: x-coordinates of the members' Shamir shares, if a quorum rounds. pause: what all members do before each program
    (:class:`keyquorum.plans.pools.Slices`).
    """

    context: PartyContext = dataclasses.field(repr=False)
    members: tuple[int, ...]
    me: int | None
    receiver: int
    parts: int
    held: tuple[int, ...]
    summands: int
    contributors: int
    ring_protocol: str | None
    field_protocol: str
    points: tuple[int, ...] = ()
    backend: Backend | None = dataclasses.field(default=None, repr=False)
    pause: Callable[[], None] | None = dataclasses.field(default=None, repr=False, compare=False)

    @staticmethod
    def of(context: PartyContext, threshold: int, receiver: int) -> RoundingGroup:
        """The group of a committee for one receiver. Its members connect, every party calls this."""
        committee, can = context.committee, context.committee.capabilities
        if can.quorum is not None:
            members = tuple((receiver + i) % context.parties for i in range(threshold + 1))
            me = members.index(context.party) if context.party in members else None
            return RoundingGroup(
                context=context, members=members, me=me, receiver=0, parts=1, held=() if me is None else (me,), summands=threshold + 1,
                contributors=threshold + 1, ring_protocol=can.quorum[0], field_protocol=can.quorum[1], points=tuple(i + 1 for i in members),
                backend=None if me is None else context.backend.among(members),
            )  # fmt: skip
        # Where a sharing without rings has no quorum, all parties round, over prime fields alone: t + 1 with additive shares could give any summand.
        return RoundingGroup(
            context=context, members=tuple(range(context.parties)), me=context.party, receiver=receiver,
            parts=can.values(committee.size, committee.threshold),  # a MAC is none
            held=can.held(context.party, committee.size, committee.threshold), summands=committee.summands or context.parties,
            contributors=threshold + 1, ring_protocol=committee.ring_protocol, field_protocol=committee.plain_field_protocol,
            backend=context.backend,
        )  # fmt: skip

    @property
    def pool_protocol(self) -> str:
        """The protocol that pools name."""
        return self.ring_protocol or self.field_protocol

    @property
    def member(self) -> bool:
        """Whether we round."""
        return self.me is not None

    @property
    def contributes(self) -> bool:
        """Whether we give masks, where members give them."""
        return self.me is not None and self.me < self.contributors

    def summands_of(self, shares: Words, q: int) -> Words:
        """Our summands [parts, size] of vectors of which ``shares`` are our share modulo q."""
        if not self.points or self.me is None:
            return shares[: self.parts].copy()
        return mulmod_scalar(np.ascontiguousarray(shares[0]), lagrange(self.points, self.me, q), q)[None, :]

    def portions(self, size: int) -> Iterator[int]:
        """Sizes of the runs in which a long program is made, so that others may pause between them: all at once where nobody pauses."""
        step = size if self.pause is None else max(LEAST_PORTION, -(-size // PORTIONS))
        return (min(step, size - first) for first in range(0, size, step))

    def ring(self, bits: int) -> DomainRun:
        """Programs among the members, modulo 2^``bits``. Raises ParameterError if their sharing has no ring."""
        if self.ring_protocol is None:
            raise ParameterError(f"{self.field_protocol} shares over prime fields alone")
        return self.over(Sharing(self.ring_protocol, Ring(bits)))

    def field(self, prime: int) -> DomainRun:
        """Programs among the members, modulo a prime."""
        return self.over(Sharing(self.field_protocol, Field(prime)))

    def over(self, sharing: Sharing) -> DomainRun:
        """Programs among the members, by any protocol, over any domain."""
        assert self.backend is not None
        return DomainRun(self.context, sharing, self.backend, None if self.points else self.contributors - 1, self.parts, self.pause)

    def word_bits(self, length: int) -> int:
        """k of the ring in which sums of ``length`` bits of all members do not wrap."""
        assert self.backend is not None
        return self.backend.ring_bits(length + max(1, (max(self.summands, self.contributors) - 1).bit_length()))


def lagrange(points: Sequence[int], index: int, q: int) -> int:
    """By what the share at ``points[index]`` is multiplied modulo the prime q, so that the products at all points add up to the value at 0 of a polynomial of lower degree than there are points."""
    mine, factor = points[index], 1
    for other in points:
        if other != mine:
            factor = factor * other * pow(other - mine, -1, q) % q
    return factor


__all__ = ["LEAST_PORTION", "PORTIONS", "RoundingGroup", "lagrange"]
