"""Rows of the roundings for odd plaintext moduli in two parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keyquorum.programs import signatures

from .outcome import Case, Outcome
from .reference import reference

LENGTH = 12
"""l."""


def _bits_of_sum(numbers: NDArray[np.int64], further: NDArray[np.int64]) -> Callable[[Outcome], str]:
    """The bits of the sum of the contributors' masks, and the XOR of their further bits."""

    def check(outcome: Outcome) -> str:
        rows = np.array([int(v) & 1 for v in outcome.appended]).reshape(LENGTH + 1, -1)
        total = (numbers.sum(0) >> np.arange(LENGTH)[:, None]) & 1
        return "" if np.array_equal(rows[:-1], total) and np.array_equal(rows[-1], further) else "other bits than those of the sum"

    return check


def odd_roundings(builder: Any, contributors: int, size: int, modulus: int) -> Iterator[Case]:
    """``builder``: of the cases of one protocol; ``modulus``: t."""
    rng, n, t, field = builder.rng, min(size, 256), modulus, f"F_{modulus}"
    carries = (contributors - 1).bit_length()
    masks, rows = rng.integers(0, 1 << LENGTH, (contributors, n)), rng.integers(0, 2, (contributors, carries + 1, n))
    positions = np.arange(LENGTH)[:, None]
    bits = {i: np.concatenate([((m >> positions) & 1).ravel(), r.ravel()]) for i, (m, r) in enumerate(zip(masks, rows, strict=True))}
    words = {i: np.concatenate([m, r.ravel()]) for i, (m, r) in enumerate(zip(masks, rows, strict=True))}
    further = rows[:, -1].sum(0) % 2
    first = signatures.round_mask_odd_bits(contributors=contributors, size=n, l=LENGTH, keep="all")
    check = _bits_of_sum(masks, further)
    yield from builder.case(first, private=bits, appended=(LENGTH + 1) * n, check=check)
    opened = np.array(reference(Case(first.program, "", first.words, "Z2^64", private=bits)).public)
    second = signatures.round_mask_odd_field(contributors=contributors, size=n, l=LENGTH, t=t, keep="all")
    yield from builder.case(second, domain=field, private=words, public=opened, appended=2 * n)
    half = 1 << (LENGTH - 1)
    e = rng.integers(-half, half, n)
    z, r = (rng.integers(0, t, n) << LENGTH) + e + half, masks.sum(0) % (1 << LENGTH)
    low = np.concatenate([z % (1 << LENGTH), r])
    mask = {False: [r], True: [r, further]}
    for compares in (False, True):
        shares = np.concatenate([low, ((r >> positions) & 1).ravel(), further]) if compares else low
        ring_online, field_online = (
            (signatures.round_ltz_circuit_odd_ring_online, signatures.round_ltz_circuit_odd_field_online)
            if compares
            else (signatures.round_mask_open_odd_ring_online, signatures.round_mask_open_odd_field_online)
        )
        ring = ring_online(size=n, l=LENGTH)
        yield from builder.case(ring, shares=shares)
        public = np.array(reference(Case(ring.program, "", ring.words, "Z2^64", shares=shares)).public)
        rounded = field_online(size=n, l=LENGTH, t=t, destination=1)
        yield from builder.case(rounded, domain=field, public=public, shares=np.concatenate([z % t, *mask[compares]]))
