"""The public polynomials that SEAL expands from seeds (docs/pages/formats.md, SEAL's bytes)."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence

import numpy as np

from ._arith import Words
from .errors import SeedError

SEED_BYTES = 64
"""Length of a seed of SEAL's generators."""

_SHAKE_BLOCK = 4096
_WORDS_PER_BLOCK = _SHAKE_BLOCK // 8


def _stream(seed: bytes, first: int, blocks: int) -> Words:
    """The words of ``blocks`` blocks of a seed's stream, from block ``first`` on."""
    data = b"".join(hashlib.shake_256(seed + struct.pack("<Q", counter)).digest(_SHAKE_BLOCK) for counter in range(first, first + blocks))
    return np.frombuffer(data, dtype="<u8").astype(np.uint64)


def expand_words(seed: bytes, count: int) -> Words:
    """``count`` words uniform modulo 2^64: the first of the same stream.

    Raises SeedError if the seed does not have 64 bytes.
    """
    if len(seed) != SEED_BYTES:
        raise SeedError(f"a seed of {len(seed)} bytes: SEAL's seeds have {SEED_BYTES}")
    return _stream(seed, 0, -(-count // _WORDS_PER_BLOCK))[:count]


def expand_a(seed: bytes, ring_degree: int, moduli: Sequence[int]) -> Words:
    """The public polynomial that SEAL expands from a seed (generator type 2), [len(moduli), N], exactly uniform modulo each q_i.

    The stream is SHAKE256(seed || u64 block counter) in blocks of 4096 bytes. The first len(moduli) · N words fill
    the polynomial. Then words that are too large to be reduced without bias are replaced, in order, by the following words.

    Raises SeedError if the seed does not have 64 bytes.
    """
    if len(seed) != SEED_BYTES:
        raise SeedError(f"a seed of {len(seed)} bytes: SEAL's seeds have {SEED_BYTES}")
    count = len(moduli) * ring_degree
    blocks = 0

    def more(number: int) -> Words:
        nonlocal blocks
        blocks += number
        return _stream(seed, blocks - number, number)

    words = more(-(-count // _WORDS_PER_BLOCK))
    result, spare, used = words[:count].reshape(len(moduli), ring_degree), words[count:], 0
    for row, q in zip(result, moduli, strict=True):
        largest = (1 << 64) - 1
        limit = largest - largest % q - 1
        for position in np.flatnonzero(row >= np.uint64(limit)):
            while row[position] >= np.uint64(limit):
                if used == len(spare):
                    spare, used = more(1), 0
                row[position] = spare[used]
                used += 1
        row %= np.uint64(q)
    return result
