"""Masks of receivers outside, where shares have MACs: what the parties send a receiver, and how it checks that these are the true ones.

A receiver cannot check MACs, and its input has none. So the parties make random bits w of which nobody knows any, with MACs (program `client_masks`): for each input a
mask of 128 bits, and a pad for each block of its value. With them come a random element k of GF(2^64) for each input, and the products of k with w, 64 bits at a time.
The receiver gets the shares of all of it, adds them up, and goes on only if the products are right. Then it sends x xor mask to all parties, who compare what they got.
They compute the blocks, and open block xor pad among themselves, with MACs checked. Each sends that to the receiver, who compares all copies.

Corrupted parties may add (d, e, h) to (w, k, w k). The receiver goes on if d k + w e + d e = h. If d or e is not 0, this holds for one value of k or w, given the other:
with probability 2^-64 for each element, as both are uniform for all but the receiver. So with this bound the masks are the true ones, and whether the receiver breaks off
tells nothing of them. Over a ring modulo 2^l instead of the field, e = 2^(l-1) would tell the lowest bit of w.

Source: Damgard, Damgard, Nielsen, Nordholt, Toft, Confidential Benchmarking based on Multiparty Computation (FC 2016, eprint 2015/1006).

An answer with shares of masks: words of 8 bytes, little endian, of all inputs one after another for each row: the words of w (2 of the mask, 2 of each pad), k, and the
products.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from keyquorum.dsl import ShareVector
from keyquorum.dsl.files.origin import Origin
from keyquorum.model.committee import Committee
from keyquorum.model.errors import PartyError
from keyquorum.parties.context import PartyContext
from keyquorum.programs import Layout
from keyquorum.programs.signatures import aes_blocks_masked, client_masks
from keyquorum.sharing.shares import Run

from .function import BLOCK, Bytes, Words
from .key import ROUND_KEY_BITS, sharing_of

BITS, ROWS = 64, 8 * BLOCK
"""Of an element of GF(2^64), and of a block."""
TAIL = np.uint64(0x1B)
"""X^64 in GF(2^64): X^4 + X^3 + X + 1."""
MOST_MASKED = 64
"""Most inputs of one request."""


def words_of(blocks: int) -> int:
    """Words of the mask of an input, and of the pads of its blocks."""
    return 2 + 2 * blocks


def answer_words(blocks: int) -> int:
    """Words of a party's answer for one input."""
    return 2 * words_of(blocks) + 1


def times(a: Words, b: Words) -> Words:
    """Products of elements of GF(2^64)."""
    total, one = np.zeros(np.broadcast_shapes(a.shape, b.shape), np.uint64), np.uint64(1)
    for i in range(BITS):
        total ^= a * (b >> np.uint64(i) & one)
        a = a << one ^ TAIL * (a >> np.uint64(BITS - 1))
    return total


def right_products(words: Words, key: Words, products: Words) -> bool:
    """Whether ``products`` are those of words, [words, inputs], with the element k of their input, [inputs]: what a receiver checks."""
    return bool(np.array_equal(times(words, key[None, :]), products))


@dataclass(frozen=True)
class OpenedMasks:
    """What a receiver knows: masks [inputs, 16] and pads [inputs, blocks, 16]."""

    masks: Bytes
    pads: Bytes


def opened_masks(committee: Committee, answers: Sequence[bytes | bytearray], inputs: int, blocks: int) -> OpenedMasks:
    """The masks of which the parties sent these shares. Raises PartyError if they are not the true ones, but with probability 2^-64 for each word."""
    size, total = answer_words(blocks), np.zeros((answer_words(blocks), inputs), np.uint64)
    for party, answer in enumerate(answers):
        if len(answer) != 8 * size * inputs:
            raise PartyError(
                f"party {committee.number_of(party)} sent {len(answer)} bytes for the masks of {inputs} inputs: run the same version everywhere"
            )
        total ^= np.frombuffer(bytes(answer), "<u8").astype(np.uint64).reshape(size, inputs)
    count = words_of(blocks)
    words, key, products = total[:count], total[count], total[count + 1 :]
    if not right_products(words, key, products):
        raise PartyError("a party sent wrong shares of the masks: nothing of the inputs was sent; ask who runs the parties")
    by_input = np.ascontiguousarray(words.T).astype("<u8").view(np.uint8).reshape(inputs, 1 + blocks, BLOCK)
    return OpenedMasks(by_input[:, 0], by_input[:, 1:])


def same_values(committee: Committee, answers: Sequence[bytes | bytearray], size: int) -> bytes:
    """What all parties sent alike, ``size`` bytes. Raises PartyError, which names two parties, if one sent something else: at least one is honest."""
    for party, answer in enumerate(answers):
        if len(answer) != size:
            raise PartyError(f"party {committee.number_of(party)} sent {len(answer)} bytes for {size}: run the same version everywhere")
        if answer != answers[0]:
            raise PartyError(
                f"parties {committee.number_of(0)} and {committee.number_of(party)} sent different values, so one of them cheats: the result was dropped; ask who runs them"
            )
    return bytes(answers[0])


@dataclass
class KeptMasks:
    """A party's shares with MACs of the masks of some inputs, until they are used or given up: [2 parts, 128, inputs, words of an element], and pads
    [2, blocks, 128, inputs, words]."""

    masks: Words
    pads: Words
    origins: list[Origin]

    @property
    def inputs(self) -> int:
        """How many."""
        return int(self.masks.shape[2])

    @property
    def blocks(self) -> int:
        """Of each input."""
        return int(self.pads.shape[1])

    def part(self, first: int, count: int) -> KeptMasks:
        """A copy of those of some inputs."""
        inputs = slice(first, first + count)
        return KeptMasks(self.masks[:, :, inputs].copy(), self.pads[:, :, :, inputs].copy(), [origin.copy() for origin in self.origins])

    def wipe(self) -> None:
        """Overwrites the shares."""
        self.masks.fill(0)
        self.pads.fill(0)
        for origin in self.origins:
            origin.wipe()


def make_masks(context: PartyContext, inputs: int, blocks: int, purpose: bytes) -> tuple[KeptMasks, Words]:
    """Masks of ``inputs`` inputs of ``blocks`` blocks each, and this party's answer, [words, inputs]; every party calls this. Rounds and bytes are those of
    `client_masks`. ``purpose``: bound to the messages."""
    count, shares = words_of(blocks), ShareVector()
    try:
        Run(context).over(sharing_of(context.committee)).run(client_masks(size=inputs, words=count), shares, keep=True, purpose=purpose)
        width = shares.element_words
        rows = shares.words.reshape(2, BITS * (2 * count + 1), inputs, width)
        bits = (rows[0, :, :, 0] & np.uint64(1)).astype(np.uint8)
        packed = np.packbits(bits.reshape(-1, BITS, inputs), axis=1, bitorder="little")
        answer = np.ascontiguousarray(packed.transpose(0, 2, 1)).view("<u8")[:, :, 0].astype(np.uint64)
        bits.fill(0)
        packed.fill(0)
        pads = rows[:, ROWS : ROWS * (1 + blocks)].reshape(2, blocks, ROWS, inputs, width)
        return KeptMasks(rows[:, :ROWS].copy(), pads.copy(), [origin.copy() for origin in shares.origins]), answer
    finally:
        shares.wipe()


def evaluate_masked(context: PartyContext, key: ShareVector, kept: Sequence[KeptMasks], points: Sequence[Bytes], purpose: bytes) -> list[bytes]:
    """The blocks xor pads of AES at masked points, [inputs, 16] for each object of masks, which serve once and are wiped; every party calls this, and all get the same
    bytes, with MACs checked. Rounds and bytes are those of `aes_blocks_masked`."""
    masks = np.concatenate([_repeated(one.masks, one.blocks) for one in kept], axis=2)
    pads = np.concatenate([one.pads.transpose(0, 2, 3, 1, 4).reshape(2, ROWS, -1, one.pads.shape[4]) for one in kept], axis=2)
    given = np.concatenate([_of_blocks(c, one.blocks) for one, c in zip(kept, points, strict=True)])
    size, width = masks.shape[2], masks.shape[3]
    layout = Layout(masks=ROWS * size, key=ROUND_KEY_BITS, pads=ROWS * size)
    call = aes_blocks_masked(size=size, masks=layout["masks"], keys=layout["key"], pads=layout["pads"])
    working = ShareVector.from_sections([masks.reshape(2, -1), key.words, pads.reshape(2, -1)], width)
    working.take_mac(key)
    origins = {bytes(origin): origin for one in [key.origins, *(k.origins for k in kept)] for origin in one}
    working.take_origins(list(origins.values()))
    bits = np.unpackbits(given, axis=1, bitorder="little").T.ravel().astype(np.int64)
    try:
        opened = Run(context).over(sharing_of(context.committee)).run(call, working, public=[bits], keep=True, purpose=purpose)
    finally:
        working.wipe()
        for shares in (masks, pads):
            shares.fill(0)
        for one in kept:
            one.wipe()
    made = np.packbits((opened.reshape(ROWS, size) & 1).astype(np.uint8).T, axis=1, bitorder="little")
    answers, at = [], 0
    for one in kept:
        answers.append(made[at : at + one.inputs * one.blocks].tobytes())
        at += one.inputs * one.blocks
    return answers


def _repeated(masks: Words, blocks: int) -> Words:
    """The mask of each input for each of its blocks: x and x xor 1 have one mask."""
    return np.repeat(masks, blocks, axis=2)


def _of_blocks(points: Bytes, blocks: int) -> Bytes:
    """Masked points of all blocks, from those of inputs."""
    made = np.repeat(points, blocks, axis=0)
    if blocks > 1:
        made[1::2, -1] ^= 1
    return made


__all__ = [
    "MOST_MASKED", "KeptMasks", "OpenedMasks", "answer_words", "evaluate_masked", "make_masks", "opened_masks", "right_products", "same_values", "times", "words_of",
]  # fmt: skip
