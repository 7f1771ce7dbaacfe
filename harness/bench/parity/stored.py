"""Rows of the roundings in two parts, and of LWE."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from keyquorum.programs import Layout, Segment, signatures
from keyquorum.schemes.prf.client_masks import times

from .outcome import Case, Outcome
from .reference import reference

Ints = NDArray[np.int64]
LENGTH, MESSAGE, BLOCK, LEVELS = 12, 4, 4, 2
"""l, j, b and levels: three blocks, one group of three signs."""
DIRECTIONS: tuple[Literal["encrypt", "decrypt"], ...] = ("encrypt", "decrypt")
KEYS, BLOCKS, SPARSE = 64, 512, 4
"""Of AES; blocks by tables, which have 42,240 shares each."""


def _bits(outcome: Outcome) -> str:
    return "" if set(outcome.appended) <= {0, 1} else "something else than bits"


def _within(bound: int) -> Callable[[Outcome], str]:
    def check(outcome: Outcome) -> str:
        return "" if all(abs(int(v)) <= bound for v in outcome.appended) else f"noise above {bound}"

    return check


def _triples(size: int, count: int) -> Callable[[Outcome], str]:
    def check(outcome: Outcome) -> str:
        a, b, c = np.moveaxis(np.array([int(v) & 1 for v in outcome.appended]).reshape(count, 3, size), 1, 0)
        return "" if np.array_equal(c, a & b) else "triples that are none"

    return check


def _products(size: int, words: int) -> Callable[[Outcome], str]:
    def check(outcome: Outcome) -> str:
        bits = np.array([int(v) & 1 for v in outcome.appended], np.uint8).reshape(2 * words + 1, 64, size)
        elements = np.ascontiguousarray(np.packbits(bits, axis=1, bitorder="little").transpose(0, 2, 1)).view("<u8")[:, :, 0].astype(np.uint64)
        return "" if np.array_equal(times(elements[:words], elements[words]), elements[words + 1 :]) else "products that are none"

    return check


def _opening_masks(words: dict[int, np.ndarray], size: int, count: int) -> Callable[[Outcome], str]:
    def check(outcome: Outcome) -> str:
        rows = np.array([int(v) % 2**64 for v in outcome.appended], dtype=object).reshape(count + len(words), size)
        if not all(row.tolist() == [int(v) % 2**64 for v in words[i]] for i, row in enumerate(rows[count:])):
            return "elements that are not those of the parties"
        return "" if len(set(rows[:count].ravel())) > count * size * 0.99 else "elements that are not random"

    return check


def _masks(size: int, length: int) -> Callable[[Outcome], str]:
    def check(outcome: Outcome) -> str:
        rows = np.array(outcome.appended, dtype=object).reshape(1 + length, size)
        if not set(rows[1:].ravel()) <= {0, 1}:
            return "something else than bits"
        total = sum(2**i * row for i, row in enumerate(rows[1:]))
        return "" if np.array_equal(rows[0], total) else "masks that are not the sums of their bits"

    return check


def _tables(size: int, bits: Ints) -> Callable[[Outcome], str]:
    """Signs of x - r_i for every block, and for the group whether y - mask is negative."""

    def check(outcome: Outcome) -> str:
        blocks, group = LENGTH // BLOCK, 2 << (LENGTH // BLOCK)
        values = np.array(outcome.appended)
        signs = values[: (blocks << BLOCK) * size].reshape(1 << BLOCK, blocks, size)
        digits = (bits.reshape(blocks, BLOCK, size) << np.arange(BLOCK)[None, :, None]).sum(1)
        if not np.array_equal(signs, np.sign(np.arange(1 << BLOCK)[:, None, None] - digits)):
            return "wrong signs"
        rest = values[(blocks << BLOCK) * size :].reshape(1 + group, size)
        negative = (np.arange(group)[:, None] - rest[0]) % group >= group // 2
        return "" if np.array_equal(rest[1:], negative) else "wrong table of the group"

    return check


def _round_keys(size: int) -> Callable[[Outcome], str]:
    """The words of a key schedule that need no S-box are sums of two earlier ones."""

    def check(outcome: Outcome) -> str:
        words = np.array([int(v) for v in outcome.appended]).reshape(44, 32, size)
        if not set(words.ravel()) <= {0, 1}:
            return "something else than bits"
        sums = all(np.array_equal(words[i], words[i - 4] ^ words[i - 1]) for i in range(4, 44) if i % 4)
        return "" if sums else "round keys that are none"

    return check


def _uniform(modulus: int) -> Callable[[Outcome], str]:
    """Distinct numbers whose mean is within 6 standard errors of that of uniform elements."""

    def check(outcome: Outcome) -> str:
        values = [int(v) % modulus for v in outcome.appended]
        mean, count = sum(values) / len(values) / modulus, len(values)
        return (
            "" if len(set(values)) == count and abs(mean - 0.5) < 6 * (12 * count) ** -0.5 else f"{count} elements of mean {mean:.3f} of the modulus"
        )

    return check


def _one_hot(size: int) -> Callable[[Outcome], str]:
    def check(outcome: Outcome) -> str:
        made = np.array([int(v) for v in outcome.appended])
        masks, hot = made[: 1280 * size].reshape(8, -1), made[1280 * size :].reshape(256, -1)
        r = (masks << np.arange(8)[:, None]).sum(0)
        return "" if np.array_equal(hot, r == np.arange(256)[:, None]) else "no one-hot vectors of the masks"

    return check


def _aes(builder: Any) -> Iterator[Case]:
    """Round keys are random: the cipher does not ask where they come from."""
    yield from builder.case(signatures.aes_keys(size=KEYS), appended=KEYS * 1408, check=_round_keys(KEYS))
    shares = builder.rng.integers(0, 2, BLOCKS * 128 + 1408)
    layout = Layout(blocks=BLOCKS * 128, keys=1408)
    for direction in DIRECTIONS:
        call = signatures.aes_blocks(size=BLOCKS, direction=direction, destination="all", blocks=layout["blocks"], keys=layout["keys"])
        yield from builder.case(call, "" if direction == "encrypt" else direction, shares=shares)
    layout = Layout(masks=BLOCKS * 128, keys=1408, pads=BLOCKS * 128)
    masked = signatures.aes_blocks_masked(size=BLOCKS, masks=layout["masks"], keys=layout["keys"], pads=layout["pads"])
    bits = builder.rng.integers(0, 2, BLOCKS * 256 + 1408)
    yield from builder.case(masked, public=builder.rng.integers(0, 2, BLOCKS * 128), shares=bits)
    yield from builder.case(signatures.client_masks(size=SPARSE, words=3), appended=64 * 7 * SPARSE, check=_products(SPARSE, 3))
    size = SPARSE
    yield from builder.case(signatures.aes_hot(size=size), appended=42240 * size, check=_one_hot(size))
    r = builder.rng.integers(0, 256, 160 * size)
    masks, hot = (r >> np.arange(8)[:, None]) & 1, (r == np.arange(256)[:, None]).astype(np.int64)
    shares = np.concatenate([builder.rng.integers(0, 2, size * 128 + 1408), masks.ravel(), hot.ravel()])
    layout = Layout(blocks=size * 128, keys=1408, masks=1280 * size, hot=40960 * size)
    for direction in DIRECTIONS:
        call = signatures.aes_blocks_table(
            size=size, direction=direction, destination="all", blocks=layout["blocks"], keys=layout["keys"], masks=layout["masks"], hot=layout["hot"]
        )
        yield from builder.case(call, "" if direction == "encrypt" else direction, shares=shares)


def _gate_bits(size: int) -> Callable[[Outcome], str]:
    def check(outcome: Outcome) -> str:
        r0, r1, *table = np.array([int(v) for v in outcome.appended]).reshape(6, size)
        if not set(r0) | set(r1) <= {0, 1}:
            return "masks that are no bits"
        wanted = [(u ^ r0) & (v ^ r1) for u in (0, 1) for v in (0, 1)]
        return "" if np.array_equal(table, wanted) else "other tables than the masks give"

    return check


def _encrypted_tables(builder: Any, secret: Ints, n: int) -> Iterator[Case]:
    """Messages of tables, and their encryption."""
    rng, degree = builder.rng, len(secret)
    yield from builder.case(signatures.lwe_gate_bits(size=n), appended=6 * n, check=_gate_bits(n))
    layout = Layout(s=degree, m=n, e=n)
    bodies = signatures.lwe_bodies(n=degree, count=n, shift=31, s=layout["s"], m=layout["m"], e=layout["e"], block=100)
    shares = np.concatenate([secret, rng.integers(0, 2, n), rng.integers(-50, 50, n)])
    yield from builder.case(bodies, public=rng.integers(0, 1 << 32, n * degree), shares=shares)


def _carries(size: int) -> Callable[[Outcome], str]:
    """Random elements, what the low bits of their three summands carry, and bits."""

    def check(outcome: Outcome) -> str:
        r, carry, v = np.array([int(value) for value in outcome.appended], dtype=object).reshape(3, size)
        if not (set(v) <= {0, 1} and set(carry) <= {0, 1, 2}):
            return "carries or bits out of range"
        return "" if len(set(r)) > size // 2 else "elements that are not random"

    return check


def _tfhe_keys(builder: Any, secret: Ints) -> Iterator[Case]:
    rng, degree, count, levels = builder.rng, len(secret), 3, 2
    bits, size = rng.integers(0, 2, count), count * levels
    layout = Layout(s=degree, m=count, e=2 * size * degree)
    noise = rng.integers(-50, 50, 2 * size * degree)
    shares, words = np.concatenate([secret, bits, noise]), rng.integers(0, 1 << 60, 2 * size * degree)
    switch = signatures.lwe_switch_key(
        n=degree, count=count, base_log=4, levels=levels, s=layout["s"], m=layout["m"], e=Segment(layout["e"].start, size), block=4,
        q=builder.modulus if builder.in_field else 0,
    )  # fmt: skip
    yield from builder.case(switch, public=words[: size * degree], shares=shares)
    bootstrap = signatures.glwe_bootstrap_key(count=count, N=degree, base_log=7, levels=levels, s=layout["m"], z=layout["s"], e=layout["e"])
    yield from builder.case(bootstrap, public=words, shares=shares)
    samples = signatures.lwe_samples(count=degree, x=layout["s"], e=Segment(layout["e"].start, degree))
    yield from builder.case(samples, shares=shares)
    if builder.in_field:
        rgsw = signatures.rgsw_bodies(
            count=count, N=degree, q=builder.modulus, base_log=7, levels=levels, s=layout["m"], z=layout["s"], e=layout["e"]
        )
        yield from builder.case(rgsw, public=words, shares=shares)


def stored_roundings(builder: Any, n: int) -> Iterator[Case]:
    """``builder``: of the cases of one protocol; ``n``: vector length."""
    rng, n = builder.rng, min(n, 256)
    yield from builder.case(signatures.sample_bits(size=n), appended=n, check=_bits)
    if builder.in_field:
        keys = signatures.legendre_keys(bits=n, degree=2)
        yield from builder.case(keys, appended=2 * n, check=_uniform(builder.modulus))
    yield from builder.case(signatures.and_triples(size=n, count=3), appended=9 * n, check=_triples(n, 3))
    known = builder.inputs(lambda: rng.integers(-(2**62), 2**62, n))
    opening = signatures.opening_masks(contributors=len(known), size=n, count=2)
    yield from builder.case(opening, private=known, appended=(2 + len(known)) * n, check=_opening_masks(known, n, 2))
    degree, modulus = 64, 1 << 60
    a, b = rng.integers(0, modulus, (n, degree)), rng.integers(0, modulus, n)
    public = np.concatenate([part for i in range(0, n, 100) for part in (a[i : i + 100].ravel(), b[i : i + 100])])
    phases = signatures.lwe_phase(n=degree, count=n, offset=1 << 40, block=100)
    yield from builder.case(phases, public=public, shares=rng.integers(0, 2, degree), appended=n)
    words, secret, noise = rng.integers(0, modulus, degree), rng.integers(0, 2, degree), rng.integers(-50, 50, degree)
    yield from builder.case(signatures.lwe_public_key(n=degree, block=24), public=words, shares=np.concatenate([secret, noise]))
    reverse = signatures.lwe_public_key(n=degree, reverse=1)
    yield from builder.case(reverse, public=words, shares=np.concatenate([secret, noise]))
    yield from _tfhe_keys(builder, secret)
    yield from _aes(builder)
    yield from _encrypted_tables(builder, secret, n)
    yield from builder.case(signatures.sample_tuniform(size=n, b=13), appended=n, check=_within(1 << 13))
    yield from builder.case(signatures.sample_carries(size=n, length=14), appended=3 * n, check=_carries(n))
    wide = signatures.sample_wide_noise(size=n, half=4, weight=900, b=9)
    yield from builder.case(wide, appended=n, check=_within(4 * 900 + (1 << 9)))
    pieces = signatures.sample_flooding(size=n, fine=3, wide=20, width=5)
    yield from builder.case(pieces, appended=2 * n, check=_within(1 << 6))
    check = _masks(n, LENGTH)
    yield from builder.case(signatures.round_mask(size=n, l=LENGTH, bits="all"), appended=(1 + LENGTH) * n, check=check)
    phase, flooding = rng.integers(-(2**30), 2**30, n), rng.integers(0, 2**41, n)
    flooded = signatures.round_flood(size=n, f=40, destination=1)
    yield from builder.case(flooded, shares=np.concatenate([phase, flooding]))

    half = 1 << (LENGTH - 1)
    e = rng.integers(-half, half, n)
    z = (rng.integers(0, 1 << MESSAGE, n) << LENGTH) + e + half
    bits = rng.integers(0, 2, (LENGTH, n))
    r = (bits << np.arange(LENGTH)[:, None]).sum(0)
    masked = signatures.round_mask_open_online(size=n, l=LENGTH, j=MESSAGE, destination=1)
    yield from builder.case(masked, shares=np.concatenate([z - e + e % 2, r]))
    one = signatures.round_mask_open_one_online(size=n, l=LENGTH, j=MESSAGE, destination=1)
    yield from builder.case(one, shares=np.concatenate([z - e + e % 2 - half, r]))
    yield from builder.case(signatures.round_mask_open_one_ring_online(size=n, l=LENGTH), shares=np.concatenate([z, r]))
    shares = np.concatenate([z, r, bits.ravel(), rng.integers(0, 2, n)])
    circuit = signatures.round_ltz_circuit_online(size=n, l=LENGTH, j=MESSAGE, destination=1)
    yield from builder.case(circuit, shares=shares)
    tables = signatures.ltz_tables(size=n, l=LENGTH, b=BLOCK, levels=LEVELS)
    count = (((LENGTH // BLOCK) << BLOCK) + 1 + (2 << (LENGTH // BLOCK))) * n
    flat = bits.ravel()
    yield from builder.case(tables, shares=flat, appended=count, check=_tables(n, bits))
    made = reference(Case(tables.program, "", tables.words, "Z2^64", shares=flat)).appended
    online = signatures.round_ltz_table_online(size=n, l=LENGTH, j=MESSAGE, b=BLOCK, levels=LEVELS, destination=1)
    yield from builder.case(online, shares=np.concatenate([z, r, made]))
