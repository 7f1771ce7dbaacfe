"""Exact decryption: phases modulo q become messages modulo t by rounding inside the MPC (docs/pages/decryption.md).

The summands u_i of a phase w = sum of u_i mod q are scaled to z = t 2^l w/q + 2^(l-1) mod t 2^l by whoever knows them. The programs of
the roundings `round_ltz_circuit` and `round_mask_open` remove the noise: one run modulo 2^l, and one modulo t.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import addmod, mulmod_scalar, scale_round
from keyquorum.backends.base import Backend
from keyquorum.dsl import Persistence
from keyquorum.dsl.persistence import KeyTest
from keyquorum.model.errors import ParameterError
from keyquorum.model.protocols import PROTOCOLS, Protocol
from keyquorum.parties.context import PartyContext
from keyquorum.programs import Call, Segment
from keyquorum.programs.signatures import (
    round_ltz_circuit_odd_field,
    round_ltz_circuit_odd_ring,
    round_mask_open_odd_field,
    round_mask_open_odd_ring,
    sum_inputs,
)
from keyquorum.sharing.joint import JointMasks, named
from keyquorum.sharing.randomness import uniform_bits, wipe

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

LENGTH_MAX = 61
"""Largest l: the masked sum needs one bit more in a 64-bit word."""
ROUNDINGS = ("round_ltz_circuit", "round_mask_open")


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

    def run(self, protocol: str, domain: str, call: Call, **options: Any) -> Ints:
        """Runs a program among the members."""
        assert self.backend is not None
        threshold = None if self.points else self.contributors - 1
        return self.backend.run(protocol, domain, call, threshold=threshold, **options).words


def round_exactly(
    context: PartyContext, group: RoundingGroup, u: Words, q: int, t: int, rounding: str, seed: bytes | None = None, names: Sequence[KeyTest] = (),
) -> Ints:  # fmt: skip
    """Messages modulo t (centred) of phases modulo q, at the receiver; every member calls this. ``u``: [parts, size], our summands. ``names``: of the runs that made
    the phases, where runs have names."""
    length = rounding_length(q, t, group.summands)
    ring, residues = map(Persistence.from_words, scaled_words(group, u, q, t, length))
    if group.reshare:
        # With MACs the summands become inputs of new sharings: what a party gives there is not tied to its share of the key.
        with context.phase("reshare"):
            private, ring = ring.words[0].view(np.int64).copy(), Persistence()
            inputs = sum_inputs(contributors=len(group.numbers), size=u.shape[1])
            domain = f"Z2^{_ring_bits(group, length)}"
            group.run(group.ring_protocol, domain, inputs, private=private, persistence=ring, seed=seed)
            wipe(private)
    with context.phase("rounding"):
        if group.verified:
            check_rounds(PROTOCOLS[context.committee.protocol], rounding)
            return _round_verified(group, ring, residues, u.shape[1], length, t, seed, names)
        return _round(group, ring, residues, u.shape[1], length, t, rounding, seed)


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


def _ring_bits(group: RoundingGroup, length: int) -> int:
    assert group.backend is not None
    numbers = group.summands if group.verified else group.contributors  # of which the mask is the sum
    return group.backend.ring_bits(length + max(1, (numbers - 1).bit_length()))


def _round(
    group: RoundingGroup, ring: Persistence, residues: Persistence, size: int, length: int, t: int, rounding: str,
    seed: bytes | None,
) -> Ints:  # fmt: skip
    contributors, contributes = group.contributors, group.me is not None and group.me < group.contributors
    compares = rounding == "round_ltz_circuit"
    rows = max(1, (contributors - 1).bit_length()) + int(compares)
    in_ring, in_field = (
        (round_ltz_circuit_odd_ring, round_ltz_circuit_odd_field) if compares else (round_mask_open_odd_ring, round_mask_open_odd_field)
    )
    private = np.concatenate([uniform_bits(size, length), uniform_bits(size * rows, 1)]) if contributes else None
    ring_bits = _ring_bits(group, length)
    opened = group.run(
        group.ring_protocol, f"Z2^{ring_bits}", in_ring(contributors=contributors, size=size, l=length, ring_length=ring_bits),
        private=private, persistence=ring, seed=seed,
    )  # fmt: skip
    opened[:size] %= 1 << length
    opened[size:] &= 1
    result = group.run(
        group.field_protocol, f"F_{t}", in_field(contributors=contributors, size=size, l=length, t=t, receiver=group.receiver),
        private=private, public=[opened], persistence=residues, seed=seed,
    )  # fmt: skip
    if private is not None:
        wipe(private)
    return result


def _round_verified(
    group: RoundingGroup, ring: Persistence, residues: Persistence, size: int, length: int, t: int, seed: bytes | None,
    names: Sequence[KeyTest],
) -> Ints:  # fmt: skip
    """The same against a corrupted party: what it sends is checked by the protocols, and no party inputs anything.

    z: each summand of a phase is held by two parties, one of whom is honest, and both scale it alike. So the honest parties hold shares of one z in each of the two domains, and the
    two belong to the same phase. Masks: :mod:`keyquorum.sharing.joint`. Products and openings are checked before anything is opened that depends on them, and the receiver compares
    two copies of the summand that it lacks (``Source/mpc/src/protocol/verified``).
    """
    bits = _ring_bits(group, length)
    ring_domain, field_domain = f"Z2^{bits}", f"F_{t}"
    masks = group.masks(size, length, seed)
    named(ring, group.ring_protocol, ring_domain, "phases modulo 2^l", names)
    named(residues, group.field_protocol, field_domain, "phases modulo t", names)
    try:
        masks.append_words(ring, group.ring_protocol, ring_domain)
        masks.append_sums(ring, group.ring_protocol, ring_domain)
        first = round_ltz_circuit_odd_ring(
            contributors=masks.summands, size=size, l=length, ring_length=bits, masks="stored", r=Segment(size, (masks.vectors + 1) * size)
        )
        opened = group.run(group.ring_protocol, ring_domain, first, persistence=ring, seed=seed)
        opened[:size] %= 1 << length
        opened[size:] &= 1
        masks.append_words(residues, group.field_protocol, field_domain)
        masks.append_bits(residues, group.field_protocol, field_domain)
        second = round_ltz_circuit_odd_field(
            contributors=masks.summands, size=size, l=length, t=t, receiver=group.receiver, masks="stored",
            r=Segment(size, (masks.vectors * masks.summands + 1) * size),
        )  # fmt: skip
        return group.run(group.field_protocol, field_domain, second, public=[opened], persistence=residues, seed=seed)
    finally:
        ring.wipe()
        residues.wipe()


def rounding_length(q: int, t: int, summands: int = 3) -> int:
    """l of z = t 2^l w/q: enough that rounding is exact for every phase w modulo q, where that fits the words.

    z lies at least 2^l/(2q) from the next rounding border, and scaling each of the summands moves it by half a unit at most: with
    2^l > summands q every phase is rounded as the exact fraction would be. For three that is so for q of up to 59 bits and t of up
    to 125 - 2 log2 q bits. Beyond, noise must stay below (1/2 - summands/2^(l+1)) q/t.
    """
    length = min(q.bit_length() + (summands - 1).bit_length(), LENGTH_MAX, 127 - q.bit_length() - t.bit_length())
    if length < 8:
        raise ParameterError(f"plain modulus {t} and prime {q} are too wide for exact decryption: take smaller ones")
    return length
