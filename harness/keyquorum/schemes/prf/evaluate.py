"""Evaluation of AES on shares of points, by a circuit on shared bits."""

from __future__ import annotations

import numpy as np

from keyquorum.dsl import Persistence
from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError
from keyquorum.parties.context import PartyContext
from keyquorum.programs import Layout
from keyquorum.programs.signatures import aes_blocks

from .function import BLOCK, Bytes, blocks_of, rows_of
from .key import ROUND_KEY_BITS, sharing_of

METHODS = ("circuit", "table")
"""How AES is evaluated: by ANDs, or with one-time tables (not yet)."""


def check_evaluation(committee: Committee, method: str) -> None:
    """Refuses a committee or a method with which nothing is evaluated for receivers. Raises ParameterError."""
    if method not in METHODS:
        raise ParameterError(f"unknown method {method!r}: choose one of {', '.join(METHODS)}")
    if method != "circuit":
        raise ParameterError(f"method {method}: its one-time material is not made yet: take circuit")
    sharing_of(committee)
    if committee.authenticated:
        raise ParameterError(
            f"{committee.protocol}: a receiver outside the committee cannot check MACs, and its input has none: serve with a committee of rep-field or semi"
        )


def evaluate_shares(context: PartyContext, key: Persistence, points: Bytes, purpose: bytes, seed: bytes | None = None) -> Bytes:
    """This party's shares of AES under the key, from its shares of points, [summands held, blocks, 16] each; every party calls this.

    Rounds and bytes are those of `aes_blocks`. Points are padded with zeros to a power of two blocks: the engine keeps a program for each size.
    ``purpose``: bound to the messages; parties with other ones refuse each other's. ``seed``: INSECURE, tests.
    """
    committee, count = context.committee, points.shape[1]
    protocol, domain = sharing_of(committee)
    size = 1 << (count - 1).bit_length()
    padded = np.concatenate([points, np.zeros((points.shape[0], size - count, BLOCK), np.uint8)], axis=1)
    rows, layout = rows_of(padded), Layout(points=8 * BLOCK * size, key=ROUND_KEY_BITS)
    working = Persistence.from_sections([rows, key.words], key.element_words)
    call = aes_blocks(size=size, direction="encrypt", destination="share", blocks=layout["points"], keys=layout["key"])
    result = None
    try:
        context.backend.run(
            protocol, domain, call, threshold=committee.threshold, persistence=working, seed=seed, keep=seed is None,
            context=purpose if seed is None else b"",
        )  # fmt: skip
        result = working.tail(8 * BLOCK * size)
        return blocks_of(result)[:, :count]
    finally:
        working.wipe()
        for secret in (rows, padded, *([] if result is None else [result])):
            secret.fill(0)


def second_blocks(points: Bytes, held: tuple[int, ...]) -> Bytes:
    """Shares of x and x xor 1 for each point x, [summands held, 2 blocks, 16]. A public value is added to summand 0."""
    doubled = np.repeat(points, 2, axis=1)
    if 0 in held:
        doubled[held.index(0), 1::2, -1] ^= 1
    return doubled


__all__ = ["METHODS", "check_evaluation", "evaluate_shares", "second_blocks"]
