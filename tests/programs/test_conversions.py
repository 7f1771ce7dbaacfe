"""z2_to_zq, z3_to_zq and lift: every backend agrees with clear arithmetic, at the cost stated."""

from __future__ import annotations

import numpy as np
import pytest

from .running import ALL, FIELDS, Backend, run

RNG = np.random.default_rng(1)


def trit_inputs(trits: np.ndarray) -> dict[int, np.ndarray]:
    """Each party's trits, in both forms."""
    return {i: np.concatenate([a, np.where(a == 2, -1, a)]) for i, a in enumerate(trits)}


@pytest.mark.parametrize("backend", ALL, ids=str)
@pytest.mark.parametrize("dealers", [1, 2, 3])
def test_z2_to_zq(backend: Backend, dealers: int) -> None:
    bits = RNG.integers(0, 2, (dealers, 200))
    out = run("z2_to_zq", {"dealers": dealers, "size": 200}, backend, private=dict(enumerate(bits)))
    assert np.array_equal(out.shares, bits.sum(0) % 2)


@pytest.mark.parametrize("backend", ALL, ids=str)
@pytest.mark.parametrize("dealers", [2, 3])
@pytest.mark.parametrize("method", ["bilinear", "poly"])
def test_z3_to_zq(backend: Backend, dealers: int, method: str) -> None:
    if method == "poly" and backend not in FIELDS:
        pytest.skip("1/24 does not exist modulo 2^k")
    trits = RNG.integers(0, 3, (dealers, 9 * 7))
    for i in range(dealers):        # all combinations of the first two, and of the others
        trits[i, :9] = (np.arange(9) // 3**i) % 3
    arguments = {"dealers": dealers, "size": 63, "method": method, "modulus": backend.modulus if method == "poly" else 0}
    out = run("z3_to_zq", arguments, backend, private=trit_inputs(trits))
    assert np.array_equal(out.shares, trits.sum(0) % 3)


LIFTS = [(a, b) for a in ALL for b in ALL if a.protocol == b.protocol and a.parties == b.parties]


@pytest.mark.parametrize(("source", "target"), LIFTS, ids=str)
@pytest.mark.parametrize("dealers", [1, 2, 3])
def test_lift(source: Backend, target: Backend, dealers: int) -> None:
    b, lam, size = 5, 40, 100
    x = RNG.integers(-(2**b), 2**b, size)
    x[:2] = -(2**b), 2**b - 1
    masks = dict(enumerate(RNG.integers(0, 2 ** (b + lam), (dealers, size))))
    arguments = {"role": "open", "dealers": dealers, "size": size, "b": b, "lam": lam, "modulus": source.modulus, "at": 3}
    opened = run("lift", arguments, source, private=masks, shares=[7, 7, 7, *x]).public
    assert opened.min() >= 0 and opened.max() < source.modulus // 2
    assert np.array_equal(opened, x + 2**b + sum(masks.values()))
    arguments = {"role": "close", "dealers": dealers, "size": size, "b": b}
    assert np.array_equal(run("lift", arguments, target, private=masks, public=opened).shares, x)


def test_lift_between_small_domains() -> None:
    """Domains with just enough room: Z_2^48 to a 50-bit prime."""
    x = RNG.integers(-32, 32, 50)
    masks = dict(enumerate(RNG.integers(0, 2**45, (2, 50))))
    ring = Backend("ring", 3, "Z2^48", 1)
    arguments = {"role": "open", "dealers": 2, "size": 50, "b": 5, "lam": 40, "modulus": 2**48, "at": 0}
    opened = run("lift", arguments, ring, private=masks, shares=x).public
    prime = Backend("rep-field", 3, "F_1125899904679937", 1)
    out = run("lift", {"role": "close", "dealers": 2, "size": 50, "b": 5}, prime, private=masks, public=opened)
    assert np.array_equal(out.shares, x)


