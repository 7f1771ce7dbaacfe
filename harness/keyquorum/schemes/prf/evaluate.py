"""Evaluation of AES on shares of points, by a circuit on shared bits, or by one-time tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from keyquorum.dsl import ShareVector
from keyquorum.dsl.files.share_vector import Unsigned
from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError
from keyquorum.parties.context import PartyContext
from keyquorum.programs import Call, Layout
from keyquorum.programs.signatures import aes_blocks, aes_blocks_table
from keyquorum.sharing.numbers import kind_of
from keyquorum.sharing.shares import Run
from keyquorum.sharing.variants import Preprocessing

from .function import BLOCK, Bytes, blocks_of, rows_of
from .key import ROUND_KEY_BITS, sharing_of
from .tables import HOT, MASKS

METHODS = ("circuit", "table")
"""How AES is evaluated: by ANDs, or with one-time tables."""


def check_evaluation(committee: Committee, method: str) -> None:
    """Refuses a committee or a method with which nothing is evaluated for receivers. Raises ParameterError."""
    if method not in METHODS:
        raise ParameterError(f"unknown method {method!r}: choose one of {', '.join(METHODS)}")
    sharing_of(committee)
    refused = kind_of(committee).one_time_tables
    if refused and method == "table":
        raise ParameterError(f"{committee.protocol}: one-time tables {refused}: serve with --method circuit")


def evaluate_shares(context: PartyContext, key: ShareVector, points: Bytes, purpose: bytes) -> Bytes:
    """This party's shares of AES under the key, from its shares of points, [summands held, blocks, 16] each; every party calls this.

    Rounds and bytes are those of `aes_blocks`. Points are padded with zeros to a power of two blocks: the engine keeps a program for each size.
    ``purpose``: bound to the messages; parties with other ones refuse each other's.
    """
    count = points.shape[1]
    size = 1 << (count - 1).bit_length()
    padded = np.concatenate([points, np.zeros((points.shape[0], size - count, BLOCK), np.uint8)], axis=1)
    layout = Layout(points=8 * BLOCK * size, key=ROUND_KEY_BITS)
    call = aes_blocks(size=size, direction="encrypt", destination="share", blocks=layout["points"], keys=layout["key"])
    try:
        return _evaluated(context, call, key, padded, [], purpose)[:, :count]
    finally:
        padded.fill(0)


def evaluate_by_tables(context: PartyContext, key: ShareVector, points: Bytes, tables: Preprocessing, purpose: bytes) -> Bytes:
    """As :func:`evaluate_shares`, with an item of :class:`.AesTables` for each block, which serves once: the caller has claimed them, and they are wiped.
    Rounds and bytes are those of `aes_blocks_table`. Not padded: a block without an item would open its state.
    """
    count = points.shape[1]
    if tables[0].shape[2] != count:
        raise ParameterError(f"{tables[0].shape[2]} items for {count} blocks: each takes one")
    layout = Layout(points=8 * BLOCK * count, key=ROUND_KEY_BITS, masks=MASKS * count, hot=HOT * count)
    call = aes_blocks_table(
        size=count, direction="encrypt", destination="share", blocks=layout["points"], keys=layout["key"], masks=layout["masks"], hot=layout["hot"]
    )
    flat = [np.ascontiguousarray(section).reshape(section.shape[0], -1) for section in tables]
    try:
        return _evaluated(context, call, key, points, flat, purpose)
    finally:
        for mine in flat:
            mine.fill(0)


def _evaluated(context: PartyContext, call: Call, key: ShareVector, points: Bytes, sections: Sequence[Unsigned], purpose: bytes) -> Bytes:
    """The blocks that a program appends to a share file of points, key and further sections."""
    rows, result = rows_of(points), None
    try:
        with (
            Run(context)
            .over(sharing_of(context.committee))
            .shares(ShareVector.from_sections([rows, key.words, *sections], key.element_words)) as working
        ):
            working.derive_origin(f"AES of points {purpose.hex()}", key.origins)
            working.run(call, keep=True, purpose=purpose)
            result = working.tail(rows.shape[1])
        return blocks_of(result)
    finally:
        for secret in (rows, *([] if result is None else [result])):
            secret.fill(0)


def second_blocks(points: Bytes, held: tuple[int, ...]) -> Bytes:
    """Shares of x and x xor 1 for each point x, [summands held, 2 blocks, 16]. A public value is added to summand 0."""
    doubled = np.repeat(points, 2, axis=1)
    if 0 in held:
        doubled[held.index(0), 1::2, -1] ^= 1
    return doubled


__all__ = ["METHODS", "check_evaluation", "evaluate_by_tables", "evaluate_shares", "second_blocks"]
