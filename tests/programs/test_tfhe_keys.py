"""The programs of keys for TFHE-rs: every opened body satisfies the formula of its row (docs/pages/formats.md, "Keys for TFHE-rs")."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from keyquorum import _engine
from numpy.typing import NDArray

from tests.protocols import ALL, EMULATE_FIELD, EMULATE_RING, MAC_FIELD, MAC_RING, REPLICATED_RING, SEMI_RING, SEMI_RING_4, Backend

from .running import run

Words = NDArray[np.uint64]
RNG = np.random.default_rng(23)
EVERY = pytest.mark.parametrize("backend", [*ALL, MAC_RING, MAC_FIELD], ids=str)
RINGS = pytest.mark.parametrize("backend", [EMULATE_RING, REPLICATED_RING, SEMI_RING, SEMI_RING_4, MAC_RING], ids=str)


def words(*shape: int) -> Words:
    return RNG.integers(0, 2**64, shape, dtype=np.uint64)


def bits(count: int) -> Words:
    return RNG.integers(0, 2, count, dtype=np.uint64)


def noise(count: int, b: int) -> Words:
    return RNG.integers(-(2**b), 2**b + 1, count).astype(np.uint64)


def product(a: Words, s: Words) -> Words:
    """a s modulo X^n + 1 and 2^64, by the schoolbook."""
    out = np.zeros_like(a)
    for j, factor in enumerate(s):
        out[j:] += factor * a[: len(a) - j]
        out[:j] -= factor * a[len(a) - j :]
    return out


def signed(*parts: Any) -> list[int]:
    """Words of the share file."""
    return [int(v) for part in parts for v in np.asarray(part).ravel()]


def bodies(*args: Any, public: Words, **rest: Any) -> Words:
    return run(*args, public=public.ravel().view(np.int64), **rest).public.view(np.uint64)


@RINGS
@pytest.mark.parametrize(("n", "count", "base_log", "levels", "block"), [(9, 5, 4, 4, 1024), (4, 3, 1, 1, 2), (16, 7, 16, 4, 5)])
def test_key_switching(backend: Backend, n: int, count: int, base_log: int, levels: int, block: int) -> None:
    s, m, e, a = bits(n), bits(count), noise(count * levels, 10), words(count * levels, n)
    arguments = {"n": n, "count": count, "base_log": base_log, "levels": levels, "s_at": 1, "m_at": n + 1, "e_at": n + count + 1, "block": block}
    got = bodies("lwe_switch_key", arguments, backend, public=a, shares=signed([7], s, m, e)).reshape(count, levels)
    plain = ((a * s).sum(axis=1) + e).reshape(count, levels)
    for j, level in enumerate(range(levels, 0, -1)):
        assert np.array_equal(got[:, j], plain[:, j] + m * np.uint64(1 << (64 - base_log * level)))


@RINGS
@pytest.mark.parametrize(("count", "n", "base_log", "levels"), [(3, 16, 23, 1), (2, 8, 7, 3), (1, 2, 1, 1), (2, 5, 8, 8)])
def test_bootstrapping(backend: Backend, count: int, n: int, base_log: int, levels: int) -> None:
    """Also of degrees without transforms, where the product is that of a matrix."""
    s, z, e, a = bits(count), bits(n), noise(count * levels * 2 * n, 17), words(count, levels, 2, n)
    s[0] = 1
    arguments = {"count": count, "N": n, "base_log": base_log, "levels": levels, "s_at": 0, "z_at": count, "e_at": count + n, "block": 3}
    got = bodies("glwe_bootstrap_key", arguments, backend, public=a, shares=signed(s, z, e)).reshape(a.shape)
    errors = e.reshape(a.shape)
    for i in range(count):
        for j, level in enumerate(range(levels, 0, -1)):
            g = np.uint64(1 << (64 - base_log * level))
            assert np.array_equal(got[i, j, 0], product(a[i, j, 0], z) + errors[i, j, 0] - g * s[i] * z)
            constant = np.zeros(n, dtype=np.uint64)
            constant[0] = g * s[i]
            assert np.array_equal(got[i, j, 1], product(a[i, j, 1], z) + errors[i, j, 1] + constant)


@pytest.mark.parametrize("backend", [EMULATE_RING, REPLICATED_RING, SEMI_RING], ids=str)
def test_bootstrapping_with_the_degree_of_the_set(backend: Backend) -> None:
    count, n = 2, 2048
    s, z, e, a = np.array([1, 0], dtype=np.uint64), bits(n), noise(count * 2 * n, 17), words(count, 1, 2, n)
    arguments = {"count": count, "N": n, "base_log": 23, "levels": 1, "s_at": 0, "z_at": count, "e_at": count + n}
    got = bodies("glwe_bootstrap_key", arguments, backend, public=a, shares=signed(s, z, e)).reshape(a.shape)
    errors, g = e.reshape(a.shape), np.uint64(1 << 41)
    for i in range(count):
        assert np.array_equal(got[i, 0, 0], product(a[i, 0, 0], z) + errors[i, 0, 0] - g * s[i] * z)
        constant = np.zeros(n, dtype=np.uint64)
        constant[0] = g * s[i]
        assert np.array_equal(got[i, 0, 1], product(a[i, 0, 1], z) + errors[i, 0, 1] + constant)


@EVERY
@pytest.mark.parametrize("n", [1, 16, 33])
def test_compact_key_of_the_reversed_secret(backend: Backend, n: int) -> None:
    a, s, e = RNG.integers(0, 2**40, n), RNG.integers(0, 2, n), RNG.integers(-50, 50, n)
    arguments = {"n": n, "s_at": 0, "e_at": n, "block": 7, "reverse": 1}
    got = run("lwe_public_key", arguments, backend, public=a, shares=[*s, *e]).public
    full = np.convolve(a, s[::-1])
    wanted = full[:n] - np.append(full[n:], 0) + e
    assert np.array_equal(got, wanted)


@pytest.mark.parametrize(
    ("program", "arguments", "error"),
    [
        ("lwe_switch_key", {"n": 2, "count": 1, "base_log": 13, "levels": 5, "s": 0, "m": 2, "e": 3}, "base_log \\* levels is at most 64"),
        ("glwe_bootstrap_key", {"count": 1, "N": 2, "base_log": 65, "levels": 1, "s": 0, "z": 1, "e": 3}, "base_log \\* levels is at most 64"),
    ],
)
def test_digits_beyond_the_ring_are_refused(program: str, arguments: dict[str, int], error: str) -> None:
    with pytest.raises(Exception, match=error):
        run(program, arguments, EMULATE_RING, shares=[0] * 20)


def test_a_field_is_refused() -> None:
    arguments = {"n": 2, "count": 1, "base_log": 4, "levels": 1, "s": 0, "m": 2, "e": 3}
    with pytest.raises(Exception, match="run it over a ring"):
        run("lwe_switch_key", arguments, EMULATE_FIELD, shares=[0] * 20)


def test_masks_are_the_stream_of_the_formats() -> None:
    seed = bytes(range(16))
    first = _engine.expand_aes_ctr(seed, 0, 4)
    assert [f"{int(v):016x}" for v in first[:2]] == ["825b8f87373ba1c6", "79d8c8a162814f6f"]
    assert np.array_equal(_engine.expand_aes_ctr(seed, 1, 3), first[1:]) and first.dtype == np.uint64
    assert _engine.expand_aes_ctr(seed, 5, 0).size == 0
    with pytest.raises(_engine.UsageError, match="16 bytes, not 3"):
        _engine.expand_aes_ctr(b"abc", 0, 1)
