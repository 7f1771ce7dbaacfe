"""What a malicious receiver could learn if copies of replicated summands were not compared: summands of the key.

A receiver sends a summand of its point to two parties, with one byte changed at one of them. That party's part of a product of wires u, v has the error
d [v], where d is the change of u and [v] is the party's other summand of v: the receiver's own summand plus one of the key. If the receiver's is 0,
this is d times a summand of the key. The change is one that the linear part of the norm of an S-box (`Programs/Library/aes.py`) maps to 0. So there
are errors in the first products, and in the last ones, where [v] is uniform and 0 with probability 1/16. If d [v] is 0 in the first products, 1/16 of
the values are right. Else nearly none are. So the receiver tests equations in the bits of one summand of the key. With all three it has the key.
"""

from __future__ import annotations

from functools import reduce
from operator import xor

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from keyquorum import api
from keyquorum.dsl import ShareVector
from keyquorum.parties import run_in_process
from keyquorum.parties.context import PartyContext
from keyquorum.schemes.prf.evaluate import evaluate_shares
from keyquorum.schemes.prf.function import combined, held_by

from tests.long import LONG
from tests.programs.test_aes import aes, schedule

BLOCKS = 256


def image(columns: tuple[int, ...], x: int) -> int:
    """Of a linear map with these columns."""
    return reduce(xor, [c for i, c in enumerate(columns) if x >> i & 1], 0)


TOWER = [image(aes.INTO_TOWER, x) for x in range(256)]
CHANGE = next(x for x, t in enumerate(TOWER) if x and image(aes.SQUARE, t & 15) == image(aes.SQUARE_TIMES_8, t >> 4))
"""Of a byte: its halves (l, h) in the tower have l^2 + M h^2 = 0."""
KEY, POINT = bytes(range(16)), bytes(range(16, 32))


def right_values(key_summand: int, victim: int, number: int) -> int:
    """Values that are right, of :data:`BLOCKS` at one point, when the copy of summand ``number`` at the party ``victim`` has another first byte.
    ``key_summand``: 0 if the other summand of the key that this party holds is 0, else the seed from which it is drawn."""
    committee = api.in_process_committee(3)
    rng = np.random.default_rng(key_summand)
    bits = schedule(KEY).ravel().astype(np.uint64)
    (other,) = set(held_by(committee, victim)) - {number}
    third = 3 - number - other
    key = {
        number: rng.integers(0, 2, bits.size, np.uint64),
        other: (rng.integers(0, 2, bits.size, np.uint64) if key_summand else np.zeros_like(bits)),
    }
    key[third] = key[number] ^ key[other] ^ bits
    point = np.tile(np.frombuffer(POINT, np.uint8), (BLOCKS, 1))
    sent = {number: rng.integers(0, 256, point.shape, np.uint8), other: np.zeros_like(point)}
    sent[third] = sent[number] ^ point

    def job(context: PartyContext) -> bytes:
        held = held_by(committee, context.party)
        shares = np.stack([sent[j] for j in held])
        if context.party == victim:
            shares[held.index(number), :, 0] ^= CHANGE
        return evaluate_shares(context, ShareVector.from_words(np.stack([key[j] for j in held])), shares, b"attack").tobytes()

    encryptor = Cipher(algorithms.AES(KEY), modes.ECB()).encryptor()
    wanted, values = encryptor.update(POINT), combined(committee, run_in_process(committee, job, timeout=60), BLOCKS)
    return sum(values[16 * i : 16 * i + 16] == wanted for i in range(BLOCKS))


@pytest.mark.parametrize("victim", range(3) if LONG else (0,))
def test_what_copies_that_differ_would_tell(victim: int) -> None:
    """The same key and point: whether some values are right depends on how the key is shared. ``tests/serve/test_toprf.py`` sends such copies to served
    parties, which refuse them. A summand of 0 gives fewer than 4 right values with probability below 10^-4."""
    committee = api.in_process_committee(3)
    number = held_by(committee, victim)[1]
    counts = {seed: right_values(seed, victim, number) for seed in (0, 1, 2)}
    print(counts)
    assert counts[0] >= 4 and 0 in (counts[1], counts[2])
