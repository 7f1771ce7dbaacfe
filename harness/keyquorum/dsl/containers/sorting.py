"""Sorting networks: the order of comparisons depends on the length alone, so nothing about the values is opened.

Merge exchange: Knuth, The Art of Computer Programming, volume 3, section 5.2.2, algorithm M (Batcher's odd-even merge sort for any length).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..context import Ints


def layers(n: int) -> Iterator[tuple[Ints, Ints]]:
    """Pairs of indices to compare and exchange, smaller value first, for ``n`` values: t (t + 1) / 2 layers, t = ceil(log2 n)."""
    if n < 2:
        return
    top = 1 << ((n - 1).bit_length() - 1)
    p = top
    while p:
        q, r, d = top, 0, p
        while True:
            low = np.arange(n - d, dtype=np.int64)
            low = low[(low & p) == r]
            if low.size:
                yield low, low + d
            if q == p:
                break
            d, q, r = q - p, q // 2, p
        p //= 2
