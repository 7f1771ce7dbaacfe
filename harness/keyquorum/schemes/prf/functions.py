"""AES behind the interface of functions under a shared key, and the function of a parameter set."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from keyquorum.dsl import ShareVector
from keyquorum.model.committee import Committee
from keyquorum.parties.context import PartyContext

from .evaluate import check_evaluation, evaluate_shares, second_blocks
from .function import BLOCK, Bytes, combined, held_by, point_of, shared_points
from .inner import InnerPrf
from .key import LegendreParameters, PrfParameters
from .legendre import LegendrePrf


class AesPrf(InnerPrf):
    """AES-128: one block of x, or the blocks of x' and x' xor 1."""

    answer_bytes = BLOCK

    def point(self, data: bytes, domain: bytes, length: int) -> bytes:
        return point_of(data, domain, length)

    def shared(self, committee: Committee, points: Sequence[bytes]) -> list[bytes]:
        # The summands are modulo 2.
        return shared_points(committee, points)

    def combined(self, committee: Committee, answers: Sequence[bytes | bytearray], blocks: int) -> bytes:
        return combined(committee, answers, blocks)

    def check(self, committee: Committee, method: str) -> None:
        check_evaluation(committee, method)

    def check_points(self, shares: Bytes) -> None:
        pass  # all bytes are summands

    def evaluated(self, context: PartyContext, key: ShareVector, points: Bytes, blocks: Sequence[int], purpose: bytes) -> Bytes:
        # The circuit is evaluated. Rounds and bytes are those of `aes_blocks`.
        return evaluate_shares(context, key, points_of_blocks(context.committee, context.party, points, blocks), purpose)


def points_of_blocks(committee: Committee, party: int, points: Bytes, blocks: Sequence[int]) -> Bytes:
    """A party's shares of the points of all blocks under AES, from those of the points of values."""
    held = held_by(committee, party)
    pieces, at = [], 0
    for count, run in groupby(blocks):
        piece = points[:, at : at + sum(1 for _ in run)]
        at += piece.shape[1]
        pieces.append(second_blocks(piece, held) if count > 1 else piece)
    return np.concatenate(pieces, axis=1)


def inner_of(parameters: PrfParameters) -> InnerPrf:
    """The function of a parameter set."""
    return LegendrePrf(parameters) if isinstance(parameters, LegendreParameters) else AesPrf()


__all__ = ["AesPrf", "inner_of", "points_of_blocks"]
