"""The programs of an LWE key's public key: bounded noise of the stated distribution, and a negacyclic product."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tests.protocols import ALL, EMULATE_RING, MAC_FIELD, MAC_RING, REPLICATED_RING, Backend

from .running import run

RNG = np.random.default_rng(17)
EVERY = pytest.mark.parametrize("backend", [*ALL, MAC_RING, MAC_FIELD], ids=str)


def negacyclic(a: np.ndarray, s: np.ndarray, modulus: int) -> list[int]:
    """a s modulo X^n + 1 and the modulus, by the schoolbook."""
    n, total = len(a), [0] * len(a)
    for i in range(n):
        for j in range(n):
            total[(i + j) % n] += int(a[i]) * int(s[j]) * (1 if i + j < n else -1)
    return [value % modulus for value in total]


@EVERY
@pytest.mark.parametrize(("n", "block"), [(1, 128), (16, 5), (33, 128)])
def test_the_body_is_a_times_s_plus_e(backend: Backend, n: int, block: int) -> None:
    modulus = backend.modulus
    a = RNG.integers(0, min(modulus, 1 << 62), n)
    s, e = RNG.integers(0, 2, n), RNG.integers(-50, 50, n)
    arguments = {"n": n, "s_at": 0, "e_at": n + 2, "block": block}
    got = run("lwe_public_key", arguments, backend, public=a, shares=[*s, 7, 7, *e]).public
    wanted = [(v + int(w)) % modulus for v, w in zip(negacyclic(a, s, modulus), e, strict=True)]
    assert [int(v) % modulus for v in got] == wanted
    got = run("lwe_public_key", {"n": n}, backend, public=a, shares=[*s, *e]).public  # the noise lies behind the secret
    assert [int(v) % modulus for v in got] == wanted


@EVERY
def test_tuniform_keeps_to_its_bound(backend: Backend) -> None:
    e = run("sample_tuniform", {"size": 300, "b": 5, "chunk": 128}, backend).shares
    assert e.size == 300 and np.abs(e).max() <= 32 and abs(e.mean()) < 5 * np.sqrt((2**11 + 1) / 6 / 300)


@pytest.mark.parametrize("backend", [EMULATE_RING, REPLICATED_RING], ids=str)
def test_tuniform_has_its_distribution(backend: Backend) -> None:
    """Chi squared of 40,000 values of TUniform(2), fixed seed, false alarms 0.1 %: 1/16, 1/8 (seven times), 1/16."""
    e = run("sample_tuniform", {"size": 40_000, "b": 2, "chunk": 16384}, backend).shares
    counts = np.bincount(e + 4, minlength=9)
    wanted = 40_000 * np.array([1, 2, 2, 2, 2, 2, 2, 2, 1]) / 16
    assert counts.size == 9 and stats.chisquare(counts, wanted).pvalue > 0.001
    assert abs((e.astype(float) ** 2).mean() / ((2**5 + 1) / 6) - 1) < 0.03
