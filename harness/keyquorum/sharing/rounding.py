"""Exact decryption: phases modulo q become messages modulo t by rounding inside the MPC (docs/pages/decryption.md).

The summands u_i of a phase w = sum of u_i mod q are scaled to z = t 2^l w/q + 2^(l-1) mod t 2^l by whoever knows them. Two runs of
programs remove the noise, one modulo 2^k and one modulo t. For `round_ltz_circuit` the summands of z are split at bit l, and the runs
compute the carry of the low parts; `round_mask_open` opens z under a mask. Where the random bits and the masks come from is up to the kind of
committee (:mod:`keyquorum.sharing.numbers`). Sharings without a ring that verify products round over prime fields alone
(:mod:`keyquorum.sharing.field_variant`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import addmod, mulmod_scalar, scale_round, submod
from keyquorum.dsl import ShareVector
from keyquorum.dsl.files.origin import Origin
from keyquorum.model.errors import ParameterError
from keyquorum.model.protocols import Protocol
from keyquorum.programs.signatures import (
    round_carry_odd_field,
    round_carry_odd_ring,
    round_mask_open_odd_field,
    round_mask_open_odd_ring,
)
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.numbers import PrivateNumbers, kind_of, kind_of_protocol
from keyquorum.sharing.randomness import wipe
from keyquorum.sharing.shares import Shares

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
Kind = type[PrivateNumbers]

LENGTH_MAX = 61
"""Largest l, for any number of summands."""
ROUNDINGS = ("round_ltz_circuit", "round_mask_open")


def check_rounds(protocol: Protocol, rounding: str) -> None:
    """Refuses roundings that a committee of this protocol does not have. Raises ParameterError."""
    if rounding != ROUNDINGS[0] and not kind_of_protocol(protocol).inputs_masks_twice:
        raise ParameterError(
            f"{protocol.name}: {rounding} takes masks that parties input twice, and nothing shows that they are the same: take {ROUNDINGS[0]}"
        )


def round_exactly(group: RoundingGroup, u: Words, q: int, t: int, rounding: str, origins: Sequence[Origin] = ()) -> Ints:
    """Messages modulo t (centred) of phases modulo q, at the receiver; every member calls this. ``u``: [parts, size], our summands. ``origins``: of the
    phases."""
    committee, length = group.context.committee, rounding_length(q, t, group.summands)
    check_rounds(committee.capabilities, rounding)
    kind, carries = kind_of(committee), rounding == ROUNDINGS[0]
    low, residues = scaled_words(group, u, q, t, length)
    if carries:
        residues = high_words(low, residues, t, length)
    try:
        with (
            kind.of_summands(group.ring(group.word_bits(length)), low) as ring,
            group.field(t).shares(ShareVector.from_words(residues)) as field,
            group.context.phase("rounding"),
        ):
            if carries:
                ring.derive_origin("low parts of phases", origins)
                field.derive_origin("high parts of phases modulo t", origins)
                return _carry(kind, group, ring, field, length)
            return _mask_open(kind, group, ring, field, length)
    finally:
        wipe(low, residues)


def scaled_words(group: RoundingGroup, u: Words, q: int, t: int, length: int) -> tuple[Words, Words]:
    """Our summands of t 2^l u/q + 2^(l-1) mod 2^l and mod t, [parts, size] each, locally: each summand is scaled and rounded by who knows it (of
    replicated shares two parties, alike)."""
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


def _carry(kind: Kind, group: RoundingGroup, ring: Shares, field: Shares, length: int) -> Ints:
    """`round_carry_odd_ring` and `round_carry_odd_field`: the carry of the low parts is added to the high parts.

    Against a corrupted party: each summand of a phase is held by two parties with replicated shares, one of whom is honest, and both scale and split
    it alike. So the honest parties hold shares of the low parts of one z modulo 2^k, and of its high parts modulo t, and the two belong to the same
    phase. The random bits are then joint integers, and no party inputs anything. Products and openings are checked before anything is opened that
    depends on them, and the receiver compares two copies of the summand that it lacks (``Source/protocols/src/verified``). Members that input the
    random bits could input other ones in each domain: such committees are semi-honest."""
    summands, size = group.summands, field.length
    with kind.rounding_bits(group, size, (summands - 1).bit_length()) as bits:
        first = round_carry_odd_ring(
            summands=summands, contributors=bits.contributors, size=size, l=length, ring_length=ring.runs.domain.bits, masks=bits.where,
            r=bits.append_sums(ring),
        )  # fmt: skip
        opened = ring.run(first, bits.private)
        second = round_carry_odd_field(
            summands=summands, contributors=bits.contributors, size=size, t=field.runs.modulus, receiver=group.receiver, masks=bits.where,
            r=bits.append_bits(field),
        )  # fmt: skip
        return field.run(second, bits.private, [opened & 1])


def _mask_open(kind: Kind, group: RoundingGroup, ring: Shares, field: Shares, length: int) -> Ints:
    """`round_mask_open_odd_ring` and `round_mask_open_odd_field`: z is opened under a mask, modulo 2^l. Members input the mask in both runs
    (:func:`check_rounds`)."""
    size = field.length
    with kind.rounding_masks(group, size, length) as masks:
        first = round_mask_open_odd_ring(contributors=masks.contributors, size=size, l=length, ring_length=ring.runs.domain.bits)
        second = round_mask_open_odd_field(
            contributors=masks.contributors, size=size, l=length, t=field.runs.modulus, receiver=group.receiver
        )  # fmt: skip
        opened = ring.run(first, masks.words)
        opened[:size] %= 1 << length
        opened[size:] &= 1
        return field.run(second, masks.words, [opened])


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


__all__ = ["LENGTH_MAX", "ROUNDINGS", "check_rounds", "high_words", "round_exactly", "rounding_length", "scaled_words"]
