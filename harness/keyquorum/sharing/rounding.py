"""Exact decryption: phases modulo q become messages modulo t by rounding inside the MPC (docs/pages/decryption.md).

The summands u_i of a phase w = sum of u_i mod q are scaled to z = t 2^l w/q + 2^(l-1) mod t 2^l by whoever knows them. Two runs of
programs remove the noise, one modulo 2^k and one modulo t. For `round_ltz_circuit` the summands of z are split at bit l, and the runs
compute the carry of the low parts; `round_mask_open` opens z under a mask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import addmod, mulmod_scalar, scale_round, submod
from keyquorum.backends.base import Backend
from keyquorum.dsl import Persistence
from keyquorum.dsl.persistence import KeyTest, wiped_on_failure
from keyquorum.model.domains import Field, Ring
from keyquorum.model.errors import ParameterError
from keyquorum.model.protocols import PROTOCOLS, Protocol
from keyquorum.parties.context import PartyContext
from keyquorum.programs import Call, Segment
from keyquorum.programs.signatures import (
    round_carry_odd_field,
    round_carry_odd_ring,
    round_mask_open_odd_field,
    round_mask_open_odd_ring,
    sum_inputs,
)
from keyquorum.sharing.joint import JointBits, JointMasks, named
from keyquorum.sharing.randomness import uniform_bits, wipe

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

LENGTH_MAX = 61
"""Largest l, for any number of summands."""
ROUNDINGS = ("round_ltz_circuit", "round_mask_open")
PORTIONS, LEAST_PORTION = 8, 8
"""Runs in which triples with MACs are made, and least items of one. Triples of 8 items take as long as the masks of 64, which take the same time for fewer."""


def check_rounds(protocol: Protocol, rounding: str) -> None:
    """Refuses roundings that a committee of this protocol does not have. Raises ParameterError."""
    if not protocol.names_runs:
        return
    if rounding != ROUNDINGS[0]:
        raise ParameterError(
            f"{protocol.name}: {rounding} takes masks that parties input twice, and nothing shows that they are the same: take {ROUNDINGS[0]}"
        )


@dataclass(frozen=True)
class RoundingGroup:
    """The parties that round, with shares of which each knows whole summands.

    All parties of the committee, unless it shares by Shamir's scheme: there t + 1 parties, the receiver among them, multiply their
    shares by Lagrange coefficients and go on with additive sharing, which tolerates t corruptions of t + 1.
    numbers: the members, by their numbers in the committee. me: our number among them (None: not a member). receiver: likewise.
    parts: summands that a party knows. held: their numbers, in the order of our parts (none if we are no member). summands: of a share. contributors: members that give masks. ring_protocol, field_protocol: of the
    two programs. points: x-coordinates of the members' Shamir shares, if it is one. verified: whether masks are joint integers, and products verified.
    pause: what all members do before each program (:class:`keyquorum.plans.pools.Slices`).
    """

    numbers: tuple[int, ...]
    me: int | None
    receiver: int
    parts: int
    held: tuple[int, ...]
    summands: int
    contributors: int
    ring_protocol: str
    field_protocol: str
    reshare: bool
    points: tuple[int, ...] = ()
    backend: Backend | None = field(default=None, repr=False)
    verified: bool = False
    pause: Callable[[], None] | None = field(default=None, repr=False, compare=False)

    @staticmethod
    def of(context: PartyContext, threshold: int, receiver: int) -> RoundingGroup:
        """The group of a committee for one receiver. Its members connect, every party calls this."""
        committee = context.committee
        check_rounds(committee.capabilities, ROUNDINGS[0])
        if committee.verifies_products and committee.ring_protocol is None:
            # All parties round, over prime fields alone: t + 1 that go on with additive shares could give any summand.
            field_protocol = committee.field_protocol
            return RoundingGroup(
                numbers=tuple(range(context.parties)), me=context.party, receiver=receiver, parts=1, held=(context.party,), summands=context.parties,
                contributors=threshold + 1, ring_protocol=field_protocol, field_protocol=field_protocol, reshare=False, backend=context.backend, verified=True,
            )  # fmt: skip
        ring_protocol, field_protocol = committee.rounding_protocols
        if committee.capabilities.quorum is None:
            return RoundingGroup(
                numbers=tuple(range(context.parties)),
                me=context.party,
                receiver=receiver,
                parts=committee.capabilities.values(committee.size, committee.threshold),  # a MAC is none
                held=committee.capabilities.held(context.party, committee.size, committee.threshold),
                summands=committee.summands,
                contributors=threshold + 1,
                ring_protocol=ring_protocol,
                field_protocol=field_protocol,
                reshare=committee.authenticated,
                backend=context.backend,
                verified=committee.capabilities.names_runs,
            )
        numbers = tuple((receiver + i) % context.parties for i in range(threshold + 1))
        me = numbers.index(context.party) if context.party in numbers else None
        return RoundingGroup(
            numbers=numbers,
            me=me,
            receiver=0,
            parts=1,
            held=() if me is None else (me,),
            summands=threshold + 1,
            contributors=threshold + 1,
            ring_protocol=ring_protocol,
            field_protocol=field_protocol,
            reshare=False,
            points=tuple(i + 1 for i in numbers),
            backend=None if me is None else context.backend.among(numbers),
        )

    @property
    def member(self) -> bool:
        """Whether we round."""
        return self.me is not None

    def summands_of(self, shares: Words, q: int) -> Words:
        """Our summands [parts, size] of vectors of which ``shares`` are our share modulo q."""
        if not self.points or self.me is None:
            return shares[: self.parts].copy()
        mine, factor = self.points[self.me], 1
        for other in self.points:
            if other != mine:
                factor = factor * other * pow(other - mine, -1, q) % q
        return mulmod_scalar(np.ascontiguousarray(shares[0]), factor, q)[None, :]

    def masks(self, size: int, length: int, seed: bytes | None = None) -> JointMasks:
        """Masks that are joint integers, among all parties."""
        assert self.backend is not None
        return JointMasks(self.backend, self.ring_protocol, len(self.numbers), self.contributors - 1, self.parts, size, length, seed)

    def bits(self, size: int, vectors: int, seed: bytes | None = None) -> JointBits:
        """Random bits that are joint integers, among all parties."""
        assert self.backend is not None
        return JointBits(self.backend, self.ring_protocol, len(self.numbers), self.contributors - 1, self.parts, size, vectors, seed)

    def portions(self, size: int) -> Iterator[int]:
        """Sizes of the runs in which a long program is made, so that others may pause between them: all at once where nobody pauses."""
        step = size if self.pause is None else max(LEAST_PORTION, -(-size // PORTIONS))
        return (min(step, size - first) for first in range(0, size, step))

    def run(self, protocol: str, domain: str, call: Call, **options: Any) -> Ints:
        """Runs a program among the members."""
        assert self.backend is not None
        if self.pause is not None:
            self.pause()
        threshold = None if self.points else self.contributors - 1
        return self.backend.run(protocol, domain, call, threshold=threshold, **options).words


def round_exactly(
    context: PartyContext, group: RoundingGroup, u: Words, q: int, t: int, rounding: str, seed: bytes | None = None, names: Sequence[KeyTest] = (),
) -> Ints:  # fmt: skip
    """Messages modulo t (centred) of phases modulo q, at the receiver; every member calls this. ``u``: [parts, size], our summands. ``names``: of the runs that made
    the phases, where runs have names."""
    length = rounding_length(q, t, group.summands)
    low, residues = scaled_words(group, u, q, t, length)
    if rounding == ROUNDINGS[0]:
        residues = high_words(low, residues, t, length)
    ring, field = Persistence.from_words(low), Persistence.from_words(residues)
    try:
        if group.reshare:
            # With MACs the summands become inputs of new sharings: what a party gives there is not tied to its share of the key.
            with context.phase("reshare"):
                ring = _reshared(group, ring, u.shape[1], length, seed)
        with context.phase("rounding"):
            if group.verified:
                check_rounds(PROTOCOLS[context.committee.protocol], rounding)
                return _carry_verified(group, ring, field, u.shape[1], length, t, seed, names)
            rounded = _carry if rounding == ROUNDINGS[0] else _mask_open
            return rounded(group, ring, field, u.shape[1], length, t, seed)
    finally:
        ring.wipe()
        field.wipe()


def _reshared(group: RoundingGroup, ring: Persistence, size: int, length: int, seed: bytes | None) -> Persistence:
    """A new sharing of the sum of the summands that ``ring`` holds, which every party inputs."""
    private, shares = ring.words[0].view(np.int64).copy(), Persistence()
    ring.wipe()
    inputs = sum_inputs(contributors=len(group.numbers), size=size)
    try:
        with wiped_on_failure(shares):
            group.run(group.ring_protocol, Ring(_ring_bits(group, length)), inputs, private=private, persistence=shares, seed=seed)
    finally:
        wipe(private)
    return shares


def scaled_words(group: RoundingGroup, u: Words, q: int, t: int, length: int) -> tuple[Words, Words]:
    """Our summands of t 2^l u/q + 2^(l-1) mod 2^l and mod t, [parts, size] each, locally: each summand is scaled and rounded by who knows it (of replicated
    shares two parties, alike)."""
    low, rest = [], []
    for part in u:
        z_low, z_t = scale_round(np.ascontiguousarray(part), t, length, q)
        low.append(z_low)
        rest.append(z_t)
    if 0 in group.held:  # summand 0 takes the offset, at every party that knows it
        part, half = group.held.index(0), 1 << (length - 1)
        low[part] = low[part] + np.uint64(half)
        rest[part] = addmod(rest[part], np.full_like(rest[part], half % t), t)
    ring, residues = np.stack(low) & np.uint64((1 << length) - 1), np.stack(rest)
    wipe(*low, *rest)
    return ring, residues


def high_words(low: Words, residues: Words, t: int, length: int) -> Words:
    """Our summands of floor(z / 2^l) modulo t, of those of z modulo 2^l and modulo t ([parts, size] each), locally. Wipes ``residues``."""
    low_modulo_t = low.ravel() % np.uint64(t)
    rest = submod(residues.ravel(), low_modulo_t, t)
    high = mulmod_scalar(rest, pow(2, -length, t), t).reshape(low.shape)
    wipe(low_modulo_t, rest, residues)
    return high


def _ring_bits(group: RoundingGroup, length: int) -> int:
    assert group.backend is not None
    return group.backend.ring_bits(length + max(1, (max(group.summands, group.contributors) - 1).bit_length()))


def _carry(group: RoundingGroup, ring: Persistence, field: Persistence, size: int, length: int, t: int, seed: bytes | None) -> Ints:
    """`round_carry_odd_ring` and `round_carry_odd_field`: the carry of the low parts is added to the high parts."""
    contributors, summands, bits = group.contributors, group.summands, _ring_bits(group, length)
    rows = (summands - 1).bit_length()
    private = uniform_bits(size * rows, 1) if group.me is not None and group.me < contributors else None
    first = round_carry_odd_ring(summands=summands, contributors=contributors, size=size, l=length, ring_length=bits)
    second = round_carry_odd_field(summands=summands, contributors=contributors, size=size, t=t, receiver=group.receiver)
    try:
        opened = group.run(group.ring_protocol, Ring(bits), first, private=private, persistence=ring, seed=seed)
        return group.run(group.field_protocol, Field(t), second, private=private, public=[opened & 1], persistence=field, seed=seed)
    finally:
        if private is not None:
            wipe(private)


def _carry_verified(
    group: RoundingGroup, ring: Persistence, field: Persistence, size: int, length: int, t: int, seed: bytes | None, names: Sequence[KeyTest],
) -> Ints:  # fmt: skip
    """The same against a corrupted party: what it sends is checked by the protocols, and no party inputs anything.

    z: each summand of a phase is held by two parties, one of whom is honest, and both scale and split it alike. So the honest parties hold shares of the low parts of one z modulo 2^k, and of its high
    parts modulo t, and the two belong to the same phase. Random bits: :mod:`keyquorum.sharing.joint`. Products and openings are checked before anything is opened that depends on them, and the
    receiver compares two copies of the summand that it lacks (``Source/mpc/src/protocol/verified``).
    """
    summands, bits = group.summands, _ring_bits(group, length)
    ring_domain, field_domain = Ring(bits), Field(t)
    joint = group.bits(size, (summands - 1).bit_length(), seed)
    named(ring, group.ring_protocol, ring_domain, "low parts of phases", names)
    named(field, group.field_protocol, field_domain, "high parts of phases modulo t", names)
    joint.append_sums(ring, group.ring_protocol, ring_domain)
    rows = Segment(size, ring.length - size)
    first = round_carry_odd_ring(
        summands=summands, contributors=joint.summands, size=size, l=length, ring_length=bits, masks="stored", r=rows
    )  # fmt: skip
    opened = group.run(group.ring_protocol, ring_domain, first, persistence=ring, seed=seed)
    joint.append_bits(field, group.field_protocol, field_domain)
    rows = Segment(size, field.length - size)
    second = round_carry_odd_field(
        summands=summands, contributors=joint.summands, size=size, t=t, receiver=group.receiver, masks="stored", r=rows
    )  # fmt: skip
    return group.run(group.field_protocol, field_domain, second, public=[opened & 1], persistence=field, seed=seed)


def _mask_open(group: RoundingGroup, ring: Persistence, residues: Persistence, size: int, length: int, t: int, seed: bytes | None) -> Ints:
    """`round_mask_open_odd_ring` and `round_mask_open_odd_field`: z is opened under a mask, modulo 2^l."""
    contributors, bits = group.contributors, _ring_bits(group, length)
    rows = max(1, (contributors - 1).bit_length())
    contributes = group.me is not None and group.me < contributors
    private = np.concatenate([uniform_bits(size, length), uniform_bits(size * rows, 1)]) if contributes else None
    first = round_mask_open_odd_ring(contributors=contributors, size=size, l=length, ring_length=bits)
    second = round_mask_open_odd_field(contributors=contributors, size=size, l=length, t=t, receiver=group.receiver)
    try:
        opened = group.run(group.ring_protocol, Ring(bits), first, private=private, persistence=ring, seed=seed)
        opened[:size] %= 1 << length
        opened[size:] &= 1
        return group.run(group.field_protocol, Field(t), second, private=private, public=[opened], persistence=residues, seed=seed)
    finally:
        if private is not None:
            wipe(private)


def rounding_length(q: int, t: int, summands: int = 3) -> int:
    """l of z = t 2^l w/q: enough that rounding is exact for every phase w modulo q, where that fits the words.

    z lies at least 2^l/(2q) from the next rounding border, and scaling each of the summands moves it by half a unit at most: with
    2^l > summands q every phase is rounded as the exact fraction would be. For three that is so for q of up to 59 bits and t of up
    to 125 - 2 log2 q bits. Beyond, noise must stay below (1/2 - summands/2^(l+1)) q/t.
    """
    carry = max(1, (summands - 1).bit_length())  # its bits and the l bits fit a word
    length = min(q.bit_length() + (summands - 1).bit_length(), LENGTH_MAX, 64 - carry, 127 - q.bit_length() - t.bit_length())
    if length < 8:
        raise ParameterError(f"plain modulus {t} and prime {q} are too wide for exact decryption: take smaller ones")
    return length
