"""client_masks and aes_blocks_masked: bits with the products that check them, and blocks under masks and pads."""

from __future__ import annotations

import numpy as np
import pytest
from keyquorum.dsl.values.bit_circuits import traced
from keyquorum.schemes.prf.client_masks import times

from tests.long import LONG
from tests.protocols import EMULATE_RING, MAC_RING, REPLICATED_RING, SEMI_RING, VERIFIED_RING, Backend

from .library import library
from .running import run
from .test_aes import RNG, VECTORS, blocks, reference, rows, schedule

BITS = [b.over("Z2^1") for b in (EMULATE_RING, REPLICATED_RING, SEMI_RING, VERIFIED_RING)]
WITH_MACS = pytest.param(MAC_RING, marks=pytest.mark.skipif(not LONG, reason="seconds of oblivious transfer: KEYQUORUM_LONG=1"), id="spdz2k")


def product(a: int, b: int) -> int:
    """In GF(2^64), by definition."""
    total = 0
    for i in range(64):
        total ^= (a << i) * (b >> i & 1)
    for i in reversed(range(64, 127)):
        total ^= (total >> i & 1) * (0x1000000000000001B << (i - 64))
    return total


def test_products_in_the_field() -> None:
    """Those of the receiver, and the circuit with its cost."""
    a, b = RNG.integers(0, 1 << 64, 50, np.uint64), RNG.integers(0, 1 << 64, 50, np.uint64)
    a[:3], b[3:6] = (0, 1, 1 << 63), (0, 1, (1 << 64) - 1)
    assert times(a, b).tolist() == [product(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    assert product(1 << 63, 2) == 0x1B
    with library("gf64") as modules:
        circuit = traced(modules.gf64.multiply, [64, 64])
    assert (circuit.ands, circuit.depth) == (729, 1)


@pytest.mark.parametrize("backend", [EMULATE_RING, REPLICATED_RING, SEMI_RING, *BITS, WITH_MACS], ids=str)
def test_products_of_random_bits_and_costs(backend: Backend) -> None:
    size, words = 3, 4
    out = run("client_masks", {"size": size, "words": words}, backend, check_costs=backend.domain == "Z2^64" and backend != MAC_RING)
    bits = np.asarray(out.shares).reshape(2 * words + 1, 64, size)
    assert set(bits.ravel().tolist()) <= {0, 1, -1}
    elements = [[sum((int(bits[w, j, i]) & 1) << j for j in range(64)) for i in range(size)] for w in range(2 * words + 1)]
    for w in range(words):
        assert elements[words + 1 + w] == [product(x, k) for x, k in zip(elements[w], elements[words], strict=True)]
    flat = [x for row in elements for x in row]
    assert len(set(flat)) == len(flat)


@pytest.mark.parametrize("backend", [EMULATE_RING, REPLICATED_RING, SEMI_RING, *BITS, WITH_MACS], ids=str)
def test_blocks_under_masks_and_pads(backend: Backend) -> None:
    """The vectors of FIPS-197, each with its key, and random blocks."""
    for key, given, size in [*((bytes.fromhex(k), bytes.fromhex(p), 1) for k, p, _ in VECTORS[:1]), (RNG.bytes(16), RNG.bytes(16 * 65), 65)]:
        masks, pads = RNG.integers(0, 2, (128, size), np.uint8), RNG.integers(0, 2, (128, size), np.uint8)
        shares = np.concatenate([np.ones(1, np.uint8), masks.ravel(), schedule(key).ravel(), pads.ravel()]).astype(np.int64)
        at = {"size": size, "masks_at": 1, "keys_at": 1 + 128 * size, "pads_at": 1 + 128 * size + 1408}
        public = (rows(given) ^ masks).ravel().astype(np.int64)
        costs = backend.domain == "Z2^64" and backend != MAC_RING
        out = run("aes_blocks_masked", at, backend, shares=shares, public=public, check_costs=costs)
        assert blocks(np.asarray(out.public) & 1 ^ pads.ravel()) == reference(key, given, "encrypt")
