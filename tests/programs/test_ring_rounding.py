"""round_ltz_ring, in one run and with stored masks: exact for all phases between two borders, on clear text and with MACs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from keyquorum.sharing.variants import comparison_ands

from tests.protocols import EMULATE_RING, MAC_RING, REPLICATED_RING, SEMI_RING, SHAMIR_3, Backend

from .running import run

N = 16
CASES = [(65537, 47), (3, 62), (257, 40)]


Ciphertexts = tuple[list[int], np.ndarray, list[int]]


def _ciphertexts(t: int, k: int) -> Ciphertexts:
    """Two ciphertexts under a ternary secret, the secret, and the messages 0, 1, (t - 1)/2 and t - 1 with their lowest and highest phases."""
    rng = np.random.default_rng(t)
    m = np.resize([0, 1, t // 2, t - 1], 2 * N)
    lowest = [-(-(int(x) << k) // t) for x in m]
    highest = [-(-((int(x) + 1) << k) // t) - 1 for x in m]
    y = [a if i // 4 % 2 else b for i, (a, b) in enumerate(zip(lowest, highest, strict=True))]
    s = rng.integers(-1, 2, N)
    public: list[int] = []
    for i in range(2):
        c1 = [int(c) for c in rng.integers(0, 1 << k, N)]
        product = [sum(c1[(j - a) % N] * int(s[a]) * (1 if a <= j else -1) for a in range(N)) for j in range(N)]
        public += [(y[i * N + j] - product[j]) % (1 << k) for j in range(N)] + c1
    return public, s, m.tolist()


def _are(words: np.ndarray, k: int, messages: list[int]) -> None:
    unsigned = words.view(np.uint64)
    assert (unsigned >> np.uint64(k)).tolist() == messages
    assert (unsigned & np.uint64((1 << k) - 1)).max() == 0


@pytest.mark.parametrize("backend", [EMULATE_RING, MAC_RING], ids=str)
@pytest.mark.parametrize(("t", "k"), CASES)
def test_phases_at_both_borders(backend: Backend, t: int, k: int) -> None:
    public, s, messages = _ciphertexts(t, k)
    arguments: dict[str, Any] = {"N": N, "count": 2, "t": t, "k": k, "receiver": 0}
    out = run("round_ltz_ring", arguments, backend, public=public, shares=s)
    _are(out.personal[0], k, messages)


def _mask(r: np.ndarray, k: int, block: int) -> list[np.ndarray]:
    """r and its blocks, as `round_mask` with bits=blocks stores them."""
    blocks = [(r >> first & ((1 << block) - 1), min(block, k - first)) for first in range(0, k, block)]
    return [r, *((value >= v).astype(np.int64) for value, length in blocks for v in range(1, 1 << length))]


@pytest.mark.parametrize("block", [1, 3, 4])
@pytest.mark.parametrize("backend", [EMULATE_RING, MAC_RING], ids=str)
@pytest.mark.parametrize(("t", "k"), CASES)
def test_stored_masks(backend: Backend, t: int, k: int, block: int) -> None:
    """Phases have any multiple of 2^k that fits 64 bits, as those that `rlwe_phase_ring` makes."""
    if block != 3 and (t, k) != CASES[0]:
        pytest.skip("other blocks with one set")
    public, s, messages = _ciphertexts(t, k)
    made = run("rlwe_phase_ring", {"N": N, "count": 2, "k": k}, backend, public=public, shares=s)
    rng, size = np.random.default_rng(3), 2 * N
    stored = [made.shares]
    for _ in range(2):
        r = rng.integers(0, 1 << k, size)
        r[:4] = 0, (1 << k) - 1, 1, 1 << (k - 1)
        a, b = rng.integers(0, 2, (2, comparison_ands(-(-k // block)), size))
        triples = np.stack([a, b, a & b], axis=1).reshape(-1)
        stored += [*_mask(r, k, block), triples]
    shares = np.concatenate(stored)
    arguments: dict[str, Any] = {"size": size, "t": t, "k": k, "destination": "all", "z_at": 0, "at": size, "ring_length": 64, "block": block}
    out = run("round_ltz_ring_online", arguments, backend, shares=shares)
    _are(out.public, k, messages)


@pytest.mark.parametrize("backend", [EMULATE_RING, MAC_RING, SEMI_RING, REPLICATED_RING, SHAMIR_3], ids=str)
@pytest.mark.parametrize(("k", "block"), [(47, 3), (7, 4), (3, 3), (5, 1)])
def test_blocks_of_a_mask(backend: Backend, k: int, block: int) -> None:
    size = 6
    made = run("round_mask", {"size": size, "l": k, "bits": "blocks", "extra": 0, "block": block}, backend)
    words = made.shares.view(np.int64).reshape(-1, size)
    wanted = _mask(words[0], k, block)
    assert len(words) == len(wanted) and np.array_equal(words, wanted) and (words[0] >> k == 0).all()
    assert len(set(words[0].tolist())) > 1
