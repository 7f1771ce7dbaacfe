"""Rounding in two parts: masks and tables made before, and online programs that use them. Exact at both borders, in as many rounds and
bits as the papers say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.long import LONG
from tests.protocols import EMULATE_RING, FIELDS, Q60, REPLICATED_RING, RING, SEMI_RING, SEMI_RING_4, Backend

from .costs import below_ands
from .running import Outcome, run

RNG = np.random.default_rng(11)
ALL_RINGS = [EMULATE_RING, REPLICATED_RING, SEMI_RING, SEMI_RING_4]
RINGS = pytest.mark.parametrize("ring", ALL_RINGS, ids=str)
SHAPES = [(6, 2, 6, 1), (5, 1, 2, 2), (63, 1, 8, 2), (58, 6, 4, 3), (20, 3, 3, 3), (9, 4, 1, 4)]
OF_FOUR = SHAPES if LONG else SHAPES[2::3]
"""Of tables of four parties, whose products cost most: those of the longest noise, and those of most levels."""
TABLES = pytest.mark.parametrize(
    ("ring", "ell", "j", "b", "levels"),
    [pytest.param(ring, *shape, id=f"{ring}-{shape}") for ring in ALL_RINGS for shape in (OF_FOUR if ring is SEMI_RING_4 else SHAPES)],
)


def phases(ell: int, j: int) -> tuple[list[int], np.ndarray]:
    """z = 2^l m + e + 2^(l-1) mod 2^64, noises at both borders, and m; the bits above l + j are random."""
    half = 1 << (ell - 1)
    noises = [-half, -half + 1, -1, 0, 1, half - 2, half - 1]
    messages = [0, 1, 2**j - 1, 2 ** (j - 1)]
    high = 64 - ell - j
    z = [(2**ell * m + e + half + (int(RNG.integers(0, 2**high)) << (ell + j) if high else 0)) % 2**64 for m in messages for e in noises]
    return z, np.repeat(np.array(messages), len(noises))


def mask(ring: Backend, size: int, ell: int, bits: str = "sum", extra: int = 0) -> list[int]:
    arguments = {"size": size, "l": ell, "bits": bits, "extra": extra}
    made = [int(v) % 2**64 for v in run("round_mask", arguments, ring).shares]
    if bits == "all":
        rows = np.array(made[size:], dtype=object).reshape(ell + extra, size)
        assert set(rows.ravel()) <= {0, 1}
        assert made[:size] == [sum(int(rows[i][c]) << i for i in range(ell)) for c in range(size)]
    assert max(made[:size]) < 2**ell
    return made


def message(words: np.ndarray, j: int) -> np.ndarray:
    return words.astype(np.int64).view(np.uint64) >> np.uint64(64 - j)


@TABLES
@pytest.mark.parametrize("method", ["binary", "arith"])
def test_tables_are_exact(ring: Backend, ell: int, j: int, b: int, levels: int, method: str) -> None:
    if method == "arith" and (ell > 20 or ring is SEMI_RING_4):
        pytest.skip("the products of large tables take long, and are the same")
    z, messages = phases(ell, j)
    made = mask(ring, len(z), ell, "all")
    r, bits = made[: len(z)], made[len(z) :]
    arguments: dict[str, Any] = {
        "size": len(z), "l": ell, "b": b, "levels": levels, "method": method, "at": 0, "masks": "stored",
    }  # fmt: skip
    tables = [int(v) % 2**64 for v in run("ltz_tables", arguments, ring, shares=bits).shares]
    for to in (0, "share") if method == "binary" else (0,):
        arguments = {"size": len(z), "l": ell, "j": j, "b": b, "levels": levels, "destination": to}
        out = run("round_ltz_table_online", arguments, ring, shares=[*z, *r, *tables])
        assert np.array_equal(message(out.shares if to == "share" else out.personal[0], j), messages)


@TABLES
def test_tables_make_masks_of_their_own(ring: Backend, ell: int, j: int, b: int, levels: int) -> None:
    z, messages = phases(ell, j)
    arguments: dict[str, Any] = {
        "size": len(z), "l": ell, "b": b, "levels": levels, "method": "binary", "at": 0, "masks": "made",
    }  # fmt: skip
    made = [int(v) % 2**64 for v in run("ltz_tables", arguments, ring).shares]
    assert max(made[: len(z)]) < 2**ell and len(set(made[: len(z)])) > 1
    arguments = {"size": len(z), "l": ell, "j": j, "b": b, "levels": levels, "destination": 0}
    out = run("round_ltz_table_online", arguments, ring, shares=[*z, *made])
    assert np.array_equal(message(out.personal[0], j), messages)


@RINGS
@pytest.mark.parametrize(("ell", "j"), [(6, 2), (63, 1), (58, 6)])
def test_circuit_with_stored_masks_is_exact(ring: Backend, ell: int, j: int) -> None:
    z, messages = phases(ell, j)
    made = mask(ring, len(z), ell, "all", 1)
    for to in (0, "share"):
        arguments: dict[str, Any] = {
            "size": len(z), "l": ell, "j": j, "destination": to, "z_at": 0, "at": len(z), "ring_length": 64, "triples": 0,
        }  # fmt: skip
        out = run("round_ltz_circuit_online", arguments, ring, shares=[*z, *made])
        assert np.array_equal(message(out.shares if to == "share" else out.personal[0], j), messages)


@pytest.mark.parametrize("ring", [EMULATE_RING, REPLICATED_RING, SEMI_RING, SEMI_RING_4], ids=str)
@pytest.mark.parametrize(("ell", "j"), [(6, 2), (63, 1)])
def test_circuit_with_stored_triples_is_exact(ring: Backend, ell: int, j: int) -> None:
    z, messages = phases(ell, j)
    size, count = len(z), below_ands(ell)
    made = mask(ring, size, ell, "all", 1)
    triples = np.array([int(v) & 1 for v in run("and_triples", {"size": size, "count": count}, ring).shares]).reshape(count, 3, size)
    assert np.array_equal(triples[:, 2], triples[:, 0] & triples[:, 1])
    assert abs(triples[:, :2].mean() - 0.5) < 5 * 0.5 / np.sqrt(2 * count * size)
    arguments: dict[str, Any] = {
        "size": size, "l": ell, "j": j, "destination": 0, "z_at": 0, "at": size, "ring_length": 64, "triples": 1,
    }  # fmt: skip
    out = run("round_ltz_circuit_online", arguments, ring, shares=[*z, *made, *triples.ravel().tolist()])
    assert np.array_equal(message(out.personal[0], j), messages)


@RINGS
def test_mask_open_fails_exactly_where_it_says(ring: Backend) -> None:
    ell, j, size = 10, 8, 2048
    messages, e = RNG.integers(0, 2**j, size), RNG.integers(-16, 17, size)
    z = [int(v) for v in (2**ell * messages + e + 2 ** (ell - 1)) % 2 ** (ell + j)]
    r = mask(ring, size, ell)
    low = np.array(r)
    error = np.where(e + low < 0, -1, 0) + np.where(e + low >= 2**ell, 1, 0)
    assert 0 < np.count_nonzero(error) < size // 8
    for to in (0, "share"):
        arguments: dict[str, Any] = {"size": size, "l": ell, "j": j, "destination": to}
        out = run("round_mask_open_online", arguments, ring, shares=[*z, *r])
        assert np.array_equal(message(out.shares if to == "share" else out.personal[0], j), (messages + error) % 2**j)


def opened_to_one(backend: Backend, z: Sequence[int], r: Sequence[int], ell: int, k: int, j: int, to: int | str) -> tuple[Outcome, Outcome]:
    """Both runs of `round_mask_open_one`, of which the second has z less the output of the first."""
    low = [[v % 2**ell for v in values] for values in (z, r)]
    first = run("round_mask_open_one_ring_online", {"size": len(z), "l": ell}, backend.over(f"Z2^{ell}"), shares=[*low[0], *low[1]])
    masked = first.personal[0] & (1 << ell) - 1
    arguments: dict[str, Any] = {"size": len(z), "l": ell, "j": j, "destination": to, "x_at": 0, "at": len(z), "ring_length": k}
    return first, run(
        "round_mask_open_one_online", arguments, backend.over(f"Z2^{k}"), shares=[*(v - int(m) for v, m in zip(z, masked, strict=True)), *r]
    )


@RINGS
@pytest.mark.parametrize("to", [1, "share"])
def test_mask_open_to_one_gives_what_mask_open_gives(ring: Backend, to: int | str) -> None:
    """With its errors. What party 0 sees is uniform, and nobody else sees anything; without masks it is not uniform."""
    if ring is EMULATE_RING and to == 1:
        to = 0
    ell, k, j, size = 16, 20, 4, 2048
    messages, e = RNG.integers(0, 2**j, size), RNG.integers(-200, 201, size)
    z = [int(v) for v in (2**ell * messages + e + 2 ** (ell - 1)) % 2**k]
    r = RNG.integers(0, 2**ell, size)
    error = np.where(e + r < 0, -1, 0) + np.where(e + r >= 2**ell, 1, 0)
    seen, out = opened_to_one(ring, z, r.tolist(), ell, k, j, to)
    words = (out.shares if to == "share" else out.personal[int(to)]) % 2**k
    assert np.any(error) and np.array_equal(words, ((messages + error) % 2**j) << (k - j))
    others = [] if to == "share" else [(opened_to_one(ring, z, [0] * size, ell, k, j, to)[0], False)]
    for calm, uniform in ((seen, True), *others):
        places = np.bincount((calm.personal[0] & (1 << ell) - 1) >> 10, minlength=64)
        assert (stats.chisquare(places).pvalue > 1e-6) == uniform
        assert all(calm.personal[party].size == 0 for party in range(1, ring.parties)) and calm.public.size == 0


@pytest.mark.parametrize("parties", [2, 4, 7])
def test_mask_open_to_one_takes_a_hundred_bits_of_a_party(parties: int) -> None:
    """48 + 52 bits in whole bytes: 104, for any number of parties; in two rounds. Party 0 sends 52 of them, and the receiver, party 1, 48."""
    size = 100
    seen, out = opened_to_one(Backend("semi2k", parties, RING, parties - 1), [0] * size, [0] * size, 48, 52, 4, 1)
    assert seen.rounds + out.rounds == 2
    assert 8 * (seen.sent + out.sent) == size * ((parties - 2) * 104 + 48 + 56)


@pytest.mark.parametrize("backend", [EMULATE_RING, REPLICATED_RING, SEMI_RING, *FIELDS], ids=str)
def test_flooding_adds_noise_of_its_range(backend: Backend) -> None:
    size, f = 500, 20
    z = RNG.integers(0, 2**50, size)
    flooding = [int(v) for v in run("round_mask", {"size": size, "l": f + 1, "bits": "sum", "extra": 0}, backend).shares]
    for to in (0, "share"):
        out = run("round_flood", {"size": size, "f": f, "destination": to}, backend, shares=[*map(int, z), *flooding])
        noise = (out.shares if to == "share" else out.personal[0]) - z
        assert noise.min() >= -(2**f) and noise.max() < 2**f and noise.std() > 2**f / 2


@pytest.mark.parametrize("ring", [REPLICATED_RING, SEMI_RING, SEMI_RING_4], ids=str)
@pytest.mark.parametrize(("program", "rounds"), [("round_ltz_table_online", 3), ("round_mask_open_online", 2)])
def test_rounds_and_bits_are_those_of_the_paper(ring: Backend, program: str, rounds: int) -> None:
    """l + (d + 1) + k, and l + k bits a decryption that a party sends to each other party (the last k to the receiver alone)."""
    ell, j, b, size = 63, 1, 8, 800
    z = RNG.integers(0, 2**63, size, dtype=np.int64)
    arguments: dict[str, Any] = {"size": size, "l": ell, "j": j}
    bits, shares = ell + 64, [*map(int, z), *[0] * size]
    if program == "round_ltz_table_online":
        arguments |= {"b": b, "levels": 2}
        bits += 8 + 1
        shares = shares + [0] * ((7 * 256 + 128 + 1 + 512) * size)
    out = run(program, {**arguments, "destination": 0}, ring, shares=shares)
    n = ring.parties
    others = 1 if ring.protocol == "ring" else n - 1  # of replicated shares each other party lacks one summand
    last = 1 if ring.protocol == "ring" else n - 1
    paper = size / 8 * ((bits - 64) * n * others + 64 * last)
    assert out.rounds == rounds
    assert abs(out.sent - paper) <= 0.01 * paper


@RINGS
def test_lwe_phase(ring: Backend) -> None:
    n, count, block = 37, 50, 16
    a = RNG.integers(-(2**63), 2**63, (count, n), dtype=np.int64)
    b = RNG.integers(-(2**63), 2**63, count, dtype=np.int64)
    s = RNG.integers(0, 2, n)
    public = np.concatenate([np.concatenate([a[i : i + block].ravel(), b[i : i + block]]) for i in range(0, count, block)])
    arguments = {"n": n, "count": count, "offset": 32, "s_at": 0, "block": block}
    assert np.array_equal(run("lwe_phase", arguments, ring, shares=s, public=public).shares, b - a @ s + 32)


@pytest.mark.parametrize("field", FIELDS, ids=str)
def test_lwe_phase_over_fields(field: Backend) -> None:
    n, count = 37, 20
    a, b = RNG.integers(0, Q60, (count, n)), RNG.integers(0, Q60, count)
    s = RNG.integers(0, 2, n)
    arguments = {"n": n, "count": count, "offset": 0, "s_at": 0, "block": 64}
    got = run("lwe_phase", arguments, field, shares=s, public=np.concatenate([a.ravel(), b])).shares
    assert [int(v) % Q60 for v in got] == [int(v) % Q60 for v in (b.astype(object) - a.astype(object) @ s)]


@pytest.mark.parametrize("backend", [EMULATE_RING, REPLICATED_RING, SEMI_RING, *FIELDS], ids=str)
def test_bits_are_bits(backend: Backend) -> None:
    bits = run("sample_bits", {"size": 4096, "chunk": 1000}, backend).shares
    assert set(bits.tolist()) == {0, 1} and abs(bits.mean() - 0.5) < 5 * 0.5 / 64


def test_low_openings_keep_the_bits_above() -> None:
    """`(x << s).reveal()` takes ceil(n * (64 - s) / 8) bytes, and equals what the whole opening would give."""
    assert RING == "Z2^64"
    z, r = RNG.integers(0, 2**63, 100), [0] * 100
    arguments: dict[str, Any] = {"size": 100, "l": 7, "j": 50, "destination": "share"}
    assert run("round_mask_open_online", arguments, SEMI_RING, shares=[*map(int, z), *r]).sent == 2 * ((100 * 7 + 7) // 8)


@pytest.mark.parametrize("ring", [REPLICATED_RING, SEMI_RING], ids=str)
@pytest.mark.parametrize(("ell", "e"), [(10, 64), (8, -50), (6, 1)])
def test_mask_open_fails_as_often_as_it_says(ring: Backend, ell: int, e: int) -> None:
    """Failures among 40,000 are binomial of probability |e| / 2^l; fixed seeds, in the 99 % interval."""
    size, j = 40_000, 4
    z = [(3 << ell) + e + (1 << (ell - 1))] * size
    r = mask(ring, size, ell)
    arguments: dict[str, Any] = {"size": size, "l": ell, "j": j, "destination": 0}
    wrong = message(run("round_mask_open_online", arguments, ring, shares=[*z, *r]).personal[0], j) != 3
    low, high = stats.binom.interval(0.99, size, abs(e) / 2**ell)
    assert low <= np.count_nonzero(wrong) <= high
