"""Keys, phases and flooding: bit-equal to the clear computation modulo q, at the cost stated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from keyquorum import _engine
from numpy.typing import NDArray

from tests.protocols import ALL, FIELDS, Q60, Backend

from .running import run

N, P = 64, 1152921504598720513
RNG = np.random.default_rng(3)
Words = NDArray[np.uint64]


def residues(values: Any) -> Words:
    return np.array([int(v) % Q60 for v in values], dtype=np.uint64)


def ntt(values: Any) -> Words:
    result: Words = _engine.Ntt(Q60, N).forward(residues(values))
    return result


def inverse(values: Words) -> Words:
    result: Words = _engine.Ntt(Q60, N).inverse(values)
    return result


def words(count: int) -> Words:
    return RNG.integers(0, Q60, count, dtype=np.uint64)


def automorphism(s: Any, g: int) -> list[int]:
    """Coefficients of s(X^g), by the definition."""
    out = [0] * N
    for k, v in enumerate(s):
        index = k * g % (2 * N)
        out[index % N] += -int(v) if index >= N else int(v)
    return out


def zero_encryption(a: Words, s: Words, e: Any, f: int) -> list[int]:
    """-(a s + f e) mod q, NTT form."""
    return [-(int(x) * int(y) + f * int(z)) % Q60 for x, y, z in zip(a, s, ntt(e), strict=True)]


@pytest.mark.parametrize("backend", FIELDS, ids=str)
@pytest.mark.parametrize("f", [1, 65537])
def test_public_key(backend: Backend, f: int) -> None:
    count = 2
    s, e, a = RNG.integers(-1, 2, N), RNG.integers(-21, 22, (count, N)), words(count * N)
    arguments = {"N": N, "q": Q60, "f": f, "count": count, "s_at": 0, "e_at": N + 3}
    shares = [*s, 1, 2, 3, *e.ravel()]
    out = run("rlwe_public_key", arguments, backend, public=a.view(np.int64), shares=shares)
    want = [v for k in range(count) for v in zero_encryption(a[k * N : (k + 1) * N], ntt(s), e[k], f)]
    assert residues(out.public).tolist() == want


@pytest.mark.parametrize("backend", FIELDS, ids=str)
@pytest.mark.parametrize("i", [0, 1, 2])
@pytest.mark.parametrize("targets", [["relin"], [3], ["relin", 9, 2 * N - 1]], ids=str)
def test_switch_key(backend: Backend, i: int, targets: list[Any]) -> None:
    digits, f = 2, 1
    count = digits * len(targets)
    s, e, a = RNG.integers(-1, 2, N), RNG.integers(-21, 22, (count, N)), words(count * N)
    arguments = {"N": N, "q": Q60, "f": f, "digits": digits, "i": i, "P": P % Q60, "s_at": 1, "e_at": N + 1, "targets": targets}
    out = run("rlwe_switch_key", arguments, backend, public=a.view(np.int64), shares=[5, *s, *e.ravel()])
    want = []
    for k in range(count):
        row = zero_encryption(a[k * N : (k + 1) * N], ntt(s), e[k], f)
        target = targets[k // digits]
        if k % digits == i:
            w = [int(v) ** 2 for v in ntt(s)] if target == "relin" else ntt(automorphism(s, target))
            row = [(x + P * int(y)) % Q60 for x, y in zip(row, w, strict=True)]
        want += row
    assert residues(out.public).tolist() == want


@pytest.mark.parametrize("backend", FIELDS, ids=str)
@pytest.mark.parametrize("form_in", ["ntt", "coeff"])
@pytest.mark.parametrize("form_out", ["ntt", "coeff"])
def test_phase(backend: Backend, form_in: str, form_out: str) -> None:
    s, c0, c1 = RNG.integers(-1, 2, N), words(N), words(N)
    w = np.array([(int(x) + int(y) * int(z)) % Q60 for x, y, z in zip(c0, c1, ntt(s), strict=True)], dtype=np.uint64)
    if form_in == "coeff":
        c0, c1 = inverse(c0), inverse(c1)
    arguments = {"N": N, "q": Q60, "form_in": form_in, "form_out": form_out, "s_at": 2}
    out = run("rlwe_phase", arguments, backend, public=np.concatenate([c0, c1]).view(np.int64), shares=[1, 1, *s])
    assert np.array_equal(residues(out.shares), inverse(w) if form_out == "coeff" else w)


@pytest.mark.parametrize("backend", ALL, ids=str)
@pytest.mark.parametrize("receiver", [0, "all"])
def test_flood(backend: Backend, receiver: Any) -> None:
    phase = RNG.integers(-(2**40), 2**40, N)
    noise = RNG.integers(-(2**50), 2**50, (2, N))
    arguments = {"contributors": 2, "N": N, "receiver": receiver, "at": 1}
    out = run("flood", arguments, backend, private=dict(enumerate(noise)), shares=[1, *phase])
    got = out.public if receiver == "all" else out.personal[0]
    assert np.array_equal(got, phase + noise.sum(0))
    assert all(not len(v) for i, v in out.personal.items() if i != receiver)


@pytest.mark.parametrize("backend", FIELDS, ids=str)
def test_flood_with_stored_noise(backend: Backend) -> None:
    phase, noise = RNG.integers(-(2**40), 2**40, N), RNG.integers(-(2**50), 2**50, N)
    arguments = {"contributors": 0, "N": N, "receiver": 0, "at": 0, "masks": "stored", "r_at": N}
    out = run("flood", arguments, backend, shares=[*phase, *noise])
    assert np.array_equal(out.personal[0], phase + noise)


def test_rings_of_many_sizes() -> None:
    """The transform agrees with the engine's for every degree."""
    for log in range(1, 15):
        n = 1 << log
        s, c1 = RNG.integers(-1, 2, n), RNG.integers(0, Q60, n, dtype=np.uint64)
        arguments = {"N": n, "q": Q60, "form_in": "ntt", "form_out": "ntt", "s_at": 0}
        out = run("rlwe_phase", arguments, FIELDS[0], public=np.concatenate([0 * c1, c1]).view(np.int64), shares=s)
        want = _engine.mulmod(c1, _engine.Ntt(Q60, n).forward(residues(s)), Q60)
        assert np.array_equal(residues(out.shares), want)
