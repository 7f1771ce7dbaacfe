"""Writing a share file does not change the shares in memory, also if MP-SPDZ's order is the same as ours."""

from __future__ import annotations

import numpy as np
import pytest
from keyquorum.backends.mpspdz.shares import decode, encode
from keyquorum.dsl import ShareVector
from keyquorum.model.domains import Domain

Q60 = 1152921504606584833


@pytest.mark.parametrize(("protocol", "parts"), [("shamir", 1), ("semi", 1), ("rep-field", 2)])
def test_field_shares_are_kept(protocol: str, parts: int) -> None:
    words = np.arange(1, 1 + 6 * parts, dtype=np.uint64).reshape(parts, 6)
    shares = ShareVector.from_words(words.copy())
    domain = Domain.parse(f"F_{Q60}")
    first, second = (encode(protocol, domain, shares) for _ in range(2))
    assert first == second and np.array_equal(shares.words, words)
    assert np.array_equal(decode(protocol, domain, first).words, words)


@pytest.mark.parametrize(("protocol", "parts"), [("semi2k", 1), ("ring", 2)])
def test_ring_shares_are_kept(protocol: str, parts: int) -> None:
    words = np.arange(1, 1 + 6 * parts, dtype=np.uint64).reshape(parts, 6)
    shares = ShareVector.from_words(words.copy())
    encode(protocol, Domain.parse("Z2^64"), shares)
    assert np.array_equal(shares.words, words)
