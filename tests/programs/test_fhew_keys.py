"""The programs of FHEW keys: every opened body satisfies the formula of its row (docs/pages/formats.md, "Keys of FHEW")."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
import pytest
from keyquorum._engine import Ntt, expand_aes_ctr, expand_uniform, expanded_products
from keyquorum._engine import UsageError as EngineUsageError
from keyquorum.dsl.control.program import Program

from tests.protocols import (
    ALL,
    EMULATE_FIELD,
    EMULATE_RING,
    FIELDS,
    MAC_FIELD,
    MAC_RING,
    Q60,
    REPLICATED_FIELD,
    REPLICATED_RING,
    SHAMIR_3,
    SHAMIR_5,
    Backend,
)

from .distributions import check_distribution
from .running import run

RNG = np.random.default_rng(41)
Q53 = 9007199254614017
EVERY = pytest.mark.parametrize("backend", [*ALL, MAC_RING, MAC_FIELD], ids=str)
PRIMES = pytest.mark.parametrize("backend", [*FIELDS, MAC_FIELD, SHAMIR_3.over(f"F_{Q53}"), REPLICATED_FIELD.over(f"F_{Q53}")], ids=str)


def uniform(q: int, *shape: int) -> np.ndarray:
    return RNG.integers(0, q, shape)


def modulo(values: Any, q: int) -> np.ndarray:
    """Residues, as Python integers."""
    return np.vectorize(lambda v: int(v) % q, otypes=[object])(np.asarray(values, dtype=object))


@EVERY
def test_samples(backend: Backend) -> None:
    x, e = uniform(2**50, 20), RNG.integers(-9, 10, 20)
    got = run("lwe_samples", {"count": 20, "x_at": 1, "e_at": 21}, backend, shares=[7, *x, *e]).public
    assert np.array_equal(modulo(got, backend.modulus), modulo(x + e, backend.modulus))


@pytest.mark.parametrize("q", [257, Q53, 2**61 - 1, 2**64 - 59])
def test_products_with_masks_that_are_not_stored(q: int) -> None:
    """Two vectors with rows from residue 35 on: more rows than are expanded at a time, by rows that are stored."""
    n, rows, seed = 7, 3000, b"0123456789abcdef"
    vectors = np.random.default_rng(3).integers(0, q, (2, n), dtype=np.uint64)
    a = expand_uniform(seed, 5 * n, rows * n, q).reshape(rows, n).astype(object)
    found = expanded_products(seed, 5 * n, rows, vectors.ravel(), n, q).reshape(2, rows)
    assert np.array_equal(found.astype(object), vectors.astype(object) @ a.T % q)
    with pytest.raises(EngineUsageError, match="residues modulo q, of the width of a row"):
        expanded_products(seed, 0, 1, vectors.ravel()[1:], n, q)


@PRIMES
@pytest.mark.parametrize(("n", "count", "base_log", "levels", "block"), [(9, 5, 4, 4, 1024), (4, 3, 1, 52, 50), (16, 7, 13, 4, 5)])
def test_key_switching(backend: Backend, n: int, count: int, base_log: int, levels: int, block: int) -> None:
    q = backend.modulus
    a, s, m, e = uniform(q, count * levels, n), RNG.integers(0, 2, n), RNG.integers(-1, 2, count), RNG.integers(-9, 10, count * levels)
    arguments = {
        "n": n, "count": count, "base_log": base_log, "levels": levels, "s_at": 1, "m_at": n + 1, "e_at": n + count + 1, "block": block, "q": q,
    }  # fmt: skip
    got = run("lwe_switch_key", arguments, backend, public=a.ravel(), shares=[7, *s, *m, *e]).public
    weights = [1 << (q.bit_length() - base_log * level) for level in range(levels, 0, -1)]
    plain = (a.astype(object) @ s + e).reshape(count, levels) + np.multiply.outer(m.astype(object), np.array(weights, dtype=object))
    assert np.array_equal(modulo(got, q), modulo(plain.ravel(), q))


@PRIMES
@pytest.mark.parametrize("noise", ["coefficients", "transformed"])
@pytest.mark.parametrize(("count", "n", "base_log", "levels"), [(3, 16, 6, 8), (2, 8, 13, 4), (1, 2, 1, 1)])
def test_bootstrapping(backend: Backend, noise: str, count: int, n: int, base_log: int, levels: int) -> None:
    q = backend.modulus
    ntt = Ntt(q, n)
    s, z, e = RNG.integers(0, 2, count), RNG.integers(-1, 2, n), RNG.integers(-20, 21, (count, levels, 2, n))
    s[0] = 1
    a = uniform(q, count, levels, 2, n)
    transformed = ntt.forward((e % q).astype(np.uint64).ravel()).reshape(e.shape)
    arguments = {
        "count": count, "N": n, "q": q, "base_log": base_log, "levels": levels, "s_at": n, "z_at": 0, "e_at": n + count, "noise": noise,
    }  # fmt: skip
    shares = [*z, *s, *(transformed if noise == "transformed" else e).ravel()]
    got = modulo(run("rgsw_bodies", arguments, backend, public=a.ravel(), shares=shares).public, q).reshape(a.shape)
    values = ntt.forward((z % q).astype(np.uint64)).astype(object)
    for i in range(count):
        for j, level in enumerate(range(levels, 0, -1)):
            g = int(s[i]) << (q.bit_length() - base_log * level)
            for row, plain in ((0, -g * values), (1, np.full(n, g, dtype=object))):
                wanted = a[i, j, row].astype(object) * values + transformed[i, j, row].astype(object) + plain
                assert np.array_equal(got[i, j, row], modulo(wanted, q)), (i, j, row)


@pytest.mark.parametrize("backend", [SHAMIR_3, REPLICATED_FIELD], ids=str)
def test_bootstrapping_without_transforms_of_the_engine(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on MP-SPDZ: the program transforms the noise itself, and gives the same bodies."""
    s, z, e, a = [1, 0], RNG.integers(-1, 2, 16), RNG.integers(-20, 21, 2 * 2 * 3 * 16), uniform(Q60, 2 * 2 * 3 * 16)
    arguments = {"count": 2, "N": 16, "q": Q60, "base_log": 6, "levels": 3, "s_at": 16, "z_at": 0, "e_at": 18}
    native = run("rgsw_bodies", arguments, backend, public=a, shares=[*z, *s, *e]).public
    monkeypatch.setattr(Program, "transform", None)
    assert np.array_equal(run("rgsw_bodies", arguments, backend, public=a, shares=[*z, *s, *e]).public, native)


@pytest.mark.parametrize("backend", [SHAMIR_3.over(f"F_{Q53}"), SHAMIR_5.over(f"F_{Q53}"), REPLICATED_FIELD.over(f"F_{Q53}")], ids=str)
def test_bootstrapping_with_the_degree_of_the_set(backend: Backend) -> None:
    count, n, levels = 2, 2048, 8
    ntt = Ntt(Q53, n)
    s, z, e, a = np.array([1, 0]), RNG.integers(-1, 2, n), RNG.integers(-20, 21, count * 2 * levels * n), uniform(Q53, count * 2 * levels * n)
    arguments = {"count": count, "N": n, "q": Q53, "base_log": 6, "levels": levels, "s_at": n, "z_at": 0, "e_at": n + count}
    got = run("rgsw_bodies", arguments, backend, public=a, shares=[*z, *s, *e]).public
    values = ntt.forward((z % Q53).astype(np.uint64)).astype(object)
    noise = ntt.forward((e % Q53).astype(np.uint64)).astype(object).reshape(count, levels, 2, n)
    wanted = a.astype(object).reshape(count, levels, 2, n) * values + noise
    for j in range(levels):
        wanted[0, j, 0] -= values << (5 + 6 * j)
        wanted[0, j, 1] += 1 << (5 + 6 * j)
    assert np.array_equal(modulo(got, Q53), modulo(wanted.ravel(), Q53))


@pytest.mark.parametrize("half", [1, 2, 7, 26])
@pytest.mark.parametrize(
    ("backend", "method"), [(REPLICATED_FIELD, "bits"), (REPLICATED_RING, "bits"), (SHAMIR_3, "arith"), (EMULATE_RING, "arith")], ids=str
)
def test_centred_binomial_of_other_widths(backend: Backend, method: str, half: int) -> None:
    arguments = {"size": 20000, "method": method, "chunk": 1 << 14, "half": half}
    out = run("sample_cbd", arguments, backend, seed=b"other widths")
    check_distribution(out.shares, {v: comb(2 * half, v + half) / 4**half for v in range(-half, half + 1)})


@pytest.mark.parametrize(
    ("program", "arguments", "error"),
    [
        ("lwe_switch_key", {"n": 2, "count": 1, "base_log": 13, "levels": 5, "s": 0, "m": 2, "e": 3, "block": 1, "q": Q60}, "is at most 60"),
        ("rgsw_bodies", {"count": 1, "N": 2, "q": Q60, "base_log": 6, "levels": 11, "s": 0, "z": 1, "e": 3}, "base_log \\* levels is at most 60"),
        (
            "rgsw_bodies",
            {"count": 1, "N": 2, "q": Q60, "base_log": 6, "levels": 1, "s": 0, "z": 1, "e": 3, "noise": "none"},
            "coefficients or transformed",
        ),
    ],
)
def test_wrong_arguments_are_refused(program: str, arguments: dict[str, Any], error: str) -> None:
    with pytest.raises(Exception, match=error):
        run(program, arguments, EMULATE_FIELD, shares=[0] * 20)


def test_masks_are_uniform_and_found_one_by_one() -> None:
    seed = bytes(range(16))
    low = expand_aes_ctr(seed, 0, 1000) & np.uint64((1 << 53) - 1)
    assert np.array_equal(expand_uniform(seed, 0, 1000, Q53), low)  # none of these is too large
    small = expand_uniform(seed, 0, 30000, 5)
    check_distribution(small.astype(np.int64), dict.fromkeys(range(5), 0.2))
    assert all(np.array_equal(expand_uniform(seed, first, 7, 5), small[first : first + 7]) for first in range(0, 100, 9))
    for wrong, said in (((b"abc", 0, 1, 5), "16 bytes, not 3"), ((seed, 0, 1, 0), "no residues modulo 0")):
        with pytest.raises(EngineUsageError, match=said):
            expand_uniform(*wrong)
