"""Exact decryption over prime fields alone: one mask in two fields, and phases at the borders of rounding."""

from __future__ import annotations

import numpy as np
import pytest

from tests.protocols import EMULATE_FIELD, FIELDS, Backend

from .running import run

RNG = np.random.default_rng(12)
QS = {"short": 1000003, "long": 1152921504606584833, "minus": 1000000007}
T, P = 65537, 65521
SIZE, SUMMANDS = 12, 3


def bits_of(numbers: np.ndarray, length: int) -> list[int]:
    """The lowest bits first, a vector each."""
    return [int(number) >> i & 1 for i in range(length) for number in numbers]


def one_hot(numbers: np.ndarray, low: int) -> list[int]:
    """[number mod 2^low = i] for each i, a vector each."""
    return [int(int(number) % (1 << low) == i) for i in range(1 << low) for number in numbers]


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
    sums = run("round_field_mask", {**arguments, "keep": "sum", "low": 0, "at": 0}, backend.over(f"F_{q}"), shares=stored)
    assert [int(v) % q for v in sums.shares] == [int(v) % q for v in wanted]
    rows = run("round_field_mask", {**arguments, "keep": "bits", "low": 0, "at": 0}, backend.over(f"F_{T}"), shares=stored)
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


@pytest.mark.parametrize("low", [1, 4])
@pytest.mark.parametrize("backend", FIELDS, ids=str)
def test_masks_with_the_one_hot_vector_of_low_bits(backend: Backend, low: int) -> None:
    q = QS["short"]
    length, (given, wanted) = q.bit_length(), masks(q)
    stored = [bit for numbers in given for bit in bits_of(numbers, length)]
    arguments = {"summands": SUMMANDS, "size": SIZE, "l": length, "q": q, "keep": "bits", "low": low, "at": 0}
    rows = run("round_field_mask", arguments, backend.over(f"F_{P}"), shares=stored)
    assert [int(v) % P for v in rows.shares] == bits_of(wanted, length) + one_hot(wanted, low)
    assert rows.public.tolist() == [int(v) < q for v in wanted.tolist()]


@pytest.mark.parametrize("destination", [0, "all", "share"])
@pytest.mark.parametrize(("size", "j"), [("short", 3), ("short", 1), ("long", 4), ("minus", 5)])
@pytest.mark.parametrize("backend", FIELDS[:6], ids=str)
def test_messages_of_bits_at_the_borders(backend: Backend, size: str, j: int, destination: int | str) -> None:
    """Every phase next to a border of rounding, among them those that are next to q and become message 0, under masks that wrap and that do not. One q is 1 modulo 2^j, two are not."""
    q, t = QS[size], 1 << j
    length, half = q.bit_length(), (q - 1) // 2
    w = [0, 1, q - 1, half, half + 1, *(((2 * m + 1) * q // (2 * t) + d) % q for m in (0, 2, t - 1) for d in (0, 1))]
    w += RNG.integers(0, q, SIZE - len(w)).tolist()
    v = [0, q - 1, 1, *RNG.integers(0, q, SIZE - 3).tolist()]
    opened = run("round_field_open", {"size": SIZE, "q": q, "t": t, "z_at": 0, "at": SIZE}, backend.over(f"F_{q}"), shares=[*w, *v])
    c = np.array([int(word) % q for word in opened.public], dtype=np.uint64)
    arguments = {"size": SIZE, "l": length, "q": q, "j": j, "destination": destination, "at": 0}
    masked = np.array(v, dtype=np.uint64)
    closed = run(
        "round_field_close_bits", arguments, backend.over(f"F_{P}"), public=np.array(bits_of(c, length), dtype=np.int64),
        shares=bits_of(masked, length) + one_hot(masked, j),
    )  # fmt: skip
    got = closed.shares if destination == "share" else closed.public if destination == "all" else closed.personal[0]
    assert [int(m) % P for m in got] == [(2 * t * x + q) // (2 * q) % t for x in w]


def test_every_phase_under_every_mask() -> None:
    """All pairs of a phase and a mask of a small prime, also of one that is not 1 modulo 2^j."""
    for q, j in ((17, 3), (17, 1), (19, 2), (31, 4)):
        t, length = 1 << j, q.bit_length()
        w, v = (part.reshape(-1) for part in np.meshgrid(np.arange(q, dtype=np.uint64), np.arange(q, dtype=np.uint64)))
        c = (np.uint64(t) * w + np.uint64((q - 1) // 2) + v) % np.uint64(q)
        arguments = {"size": w.size, "l": length, "q": q, "j": j, "destination": "all", "at": 0}
        closed = run(
            "round_field_close_bits", arguments, EMULATE_FIELD, public=np.array(bits_of(c, length), dtype=np.int64),
            shares=bits_of(v, length) + one_hot(v, j),
        )  # fmt: skip
        assert closed.public.tolist() == [(2 * t * int(x) + q) // (2 * q) % t for x in w]


def test_wrong_lengths_are_refused() -> None:
    for wrong in ({"keep": "sum", "low": 2}, {"keep": "bits", "low": 3}):
        with pytest.raises(Exception, match=r"belong to \d bits that are kept"):
            run("round_field_mask", {"summands": 1, "size": 1, "l": 2, "q": 3, **wrong, "at": 0}, EMULATE_FIELD, shares=[0, 0])
    with pytest.raises(Exception, match="is no odd number of 2 bits or more"):
        run("round_field_close_bits", {"size": 1, "l": 4, "q": 10, "j": 2, "destination": "all", "at": 0}, EMULATE_FIELD, shares=[0] * 8)
    with pytest.raises(Exception, match="1009 has not 11 bits"):
        run("round_field_mask", {"summands": 1, "size": 1, "l": 11, "q": 1009, "keep": "sum", "low": 0, "at": 0}, EMULATE_FIELD, shares=[0] * 11)
