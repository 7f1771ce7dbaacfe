"""Exact decryption over prime fields alone: one mask in two fields, and phases at the borders of rounding."""

from __future__ import annotations

import numpy as np
import pytest

from .running import EMULATE_FIELD, FIELDS, Backend, run

RNG = np.random.default_rng(12)
QS = {"short": 1000003, "long": 1152921504606584833}
T = 65537
SIZE, SUMMANDS = 12, 3


def bits_of(numbers: np.ndarray, length: int) -> list[int]:
    """The lowest bits first, a vector each."""
    return [int(number) >> i & 1 for i in range(length) for number in numbers]


def masks(q: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of several summands, and their XOR; some XORs are 0, q - 1, q and 2^l - 1."""
    length = q.bit_length()
    given = RNG.integers(0, 1 << length, (SUMMANDS, SIZE), dtype=np.uint64)
    wanted = np.bitwise_xor.reduce(given)
    wanted[:4] = 0, q - 1, q, (1 << length) - 1
    given[0] = wanted ^ given[1] ^ given[2]
    return given, wanted


@pytest.mark.parametrize("backend", FIELDS, ids=str)
def test_both_fields_have_the_same_mask(backend: Backend) -> None:
    q = QS["short"]
    length, (given, wanted) = q.bit_length(), masks(q)
    stored = [bit for numbers in given for bit in bits_of(numbers, length)]
    arguments = {"summands": SUMMANDS, "size": SIZE, "l": length, "q": q}
    sums = run("round_field_mask", {**arguments, "keep": "sum", "at": 0}, backend.over(f"F_{q}"), shares=stored)
    assert [int(v) % q for v in sums.shares] == [int(v) % q for v in wanted]
    rows = run("round_field_mask", {**arguments, "keep": "bits", "at": 0}, backend.over(f"F_{T}"), shares=stored)
    assert [int(v) % T for v in rows.shares] == bits_of(wanted, length)
    assert rows.public.tolist() == [int(v) < q for v in wanted.tolist()]


@pytest.mark.parametrize("destination", [0, "all", "share"])
@pytest.mark.parametrize("size", QS)
@pytest.mark.parametrize("backend", FIELDS[:6], ids=str)
def test_phases_at_the_borders(backend: Backend, size: str, destination: int | str) -> None:
    """Every phase next to a border of rounding is rounded as the exact fraction, under masks that wrap and that do not."""
    q = QS[size]
    length, half = q.bit_length(), (q - 1) // 2
    w = [0, 1, q - 1, half, half + 1, *(((2 * m + 1) * q // (2 * T) + d) % q for m in (0, 5, T - 1) for d in (0, 1))]
    w += RNG.integers(0, q, SIZE - len(w)).tolist()
    v = [0, q - 1, 1, *RNG.integers(0, q, SIZE - 3).tolist()]
    opened = run("round_field_open", {"size": SIZE, "q": q, "t": T, "z_at": 0, "at": SIZE}, backend.over(f"F_{q}"), shares=[*w, *v])
    c = np.array([int(word) % q for word in opened.public], dtype=np.uint64)
    assert c.tolist() == [(T * x + half + y) % q for x, y in zip(w, v, strict=True)]
    arguments = {"size": SIZE, "l": length, "q": q, "t": T, "destination": destination, "at": 0}
    digits = np.array(bits_of(c, length), dtype=np.int64)
    closed = run("round_field_close", arguments, backend.over(f"F_{T}"), public=digits, shares=bits_of(np.array(v, dtype=np.uint64), length))
    got = closed.shares if destination == "share" else closed.public if destination == "all" else closed.personal[0]
    assert [int(m) % T for m in got] == [(2 * T * x + q) // (2 * q) % T for x in w]


def test_wrong_lengths_are_refused() -> None:
    with pytest.raises(Exception, match="1009 has not 11 bits"):
        run("round_field_mask", {"summands": 1, "size": 1, "l": 11, "q": 1009, "keep": "sum", "at": 0}, EMULATE_FIELD, shares=[0] * 11)
