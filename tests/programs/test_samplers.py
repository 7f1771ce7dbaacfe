"""Samplers: exact distributions (chi-square, mean and variance on 2^20 samples, 99 % each), range, and costs."""

from __future__ import annotations

from collections import Counter
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

from tests.long import LONG
from tests.protocols import (
    ADDITIVE,
    ALL,
    BINARY,
    EMULATE_FIELD,
    EMULATE_RING,
    FIELD,
    FIELDS,
    REPLICATED_FIELD,
    REPLICATED_RING,
    RING,
    SEMI_FIELD,
    SEMI_FIELD_3,
    SEMI_RING,
    SHAMIR_3,
    SHAMIR_5,
    VERIFIED,
    Backend,
)

from .distributions import centred_binomial, check_distribution, exact_gaussian, uniform_ternary
from .running import run
from .test_conversions import indicator_inputs, trit_inputs

SAMPLES = 1 << 20
VERIFIED_SAMPLES = 1 << 16
"""Of protocols that verify products: the samples are those of the protocol beneath, which has SAMPLES, and time goes into the checks."""
MERSENNE = f"F_{2**61 - 1}"
RNG = np.random.default_rng(5)


@pytest.mark.parametrize("backend", ALL, ids=str)
def test_ternary_is_uniform_whatever_all_but_one_give(backend: Backend) -> None:
    size = 1 << 13 if backend in ADDITIVE or backend in VERIFIED else SAMPLES  # the trits are given, and every sum is compared
    trits = np.stack([np.random.default_rng(len(str(backend))).integers(0, 3, size), np.zeros(size, dtype=np.int64)])
    trits[1, ::2] = 2
    arguments = {"contributors": 2, "N": size, "method": "bilinear", "modulus": 0}
    out = run("sample_ternary", arguments, backend, private=trit_inputs(trits))
    total = trits.sum(0) % 3
    assert np.array_equal(out.shares, np.where(total == 2, -1, total))
    check_distribution(out.shares, uniform_ternary())


@pytest.mark.parametrize("backend", FIELDS, ids=str)
@pytest.mark.parametrize("contributors", [2, 3])
def test_ternary_by_polynomial(backend: Backend, contributors: int) -> None:
    trits = RNG.integers(0, 3, (contributors, 300))
    arguments = {"contributors": contributors, "N": 300, "method": "poly", "modulus": backend.modulus}
    total = trits.sum(0) % 3
    out = run("sample_ternary", arguments, backend, private=trit_inputs(trits))
    assert np.array_equal(out.shares, np.where(total == 2, -1, total))


CBD = [(b, "bits", 1 << 16 if b in ADDITIVE else VERIFIED_SAMPLES if b in VERIFIED else SAMPLES) for b in BINARY] + [
    (SEMI_RING, "arith", 1 << 13),
    (SEMI_FIELD_3, "arith", 1 << 12),
    (EMULATE_RING, "arith", SAMPLES),
    (REPLICATED_FIELD, "arith", 1 << 16),
    (SHAMIR_3.over(MERSENNE), "arith", SAMPLES if LONG else 1 << 16),
    (SHAMIR_5, "arith", 1 << 14),
]


@pytest.mark.parametrize(("backend", "method", "size"), CBD, ids=str)
def test_centred_binomial(backend: Backend, method: str, size: int) -> None:
    chunk = 1 << 18 if method == "bits" else 1 << 16
    out = run("sample_cbd", {"size": size, "method": method, "chunk": chunk}, backend, seed=b"centred binomial, 2")
    assert len(out.shares) == size
    check_distribution(out.shares, centred_binomial())


@pytest.mark.parametrize("backend", [REPLICATED_RING, REPLICATED_FIELD], ids=str)
@pytest.mark.parametrize(("size", "chunk"), [(1000, 1000), (1000, 1001), (1000, 300), (64, 1)])
def test_chunks_cover_the_vector(backend: Backend, size: int, chunk: int) -> None:
    out = run("sample_cbd", {"size": size, "method": "bits", "chunk": chunk}, backend)
    assert len(out.shares) == size and np.abs(out.shares).max() <= 21


@pytest.mark.parametrize(
    "backend",
    [
        Backend("ring", 3, "Z2^20", 1),
        Backend("ring", 3, "Z2^48", 1),
        Backend("rep-field", 3, "F_65537", 1),
        Backend("semi2k", 2, "Z2^20", 1),
        Backend("semi2k", 3, "Z2^48", 2),
        Backend("semi", 5, "F_65537", 4),
        Backend("shamir", 4, FIELD, 1),
        Backend("shamir", 7, FIELD, 3),
    ],
    ids=str,
)
def test_other_domains_and_committees(backend: Backend) -> None:
    """Small domains and other numbers of parties, with their own costs."""
    method = "arith" if backend.protocol == "shamir" else "bits"
    out = run("sample_cbd", {"size": 5000, "method": method, "chunk": 1 << 13}, backend)
    assert np.abs(out.shares).max() <= 21 and abs(out.shares.var() - 10.5) < 1
    out = run("sample_gaussian", {"size": 500, "method": method, "s": 3200, "bits": 40, "tail": 23, "chunk": 1 << 13}, backend)
    assert np.abs(out.shares).max() <= 23
    indices = np.stack([[RNG.integers(0, 20 - i) for i in range(3)] for _ in range(4)])[: backend.parties]
    arguments = {"method": "knuth", "N": 20, "weight": 3, "contributors": len(indices)}
    out = run("sample_fixed_weight", arguments, backend, private=knuth_inputs(indices, 20))
    assert np.abs(out.shares).tolist() == clear_knuth(20, 3, indices.sum(0) % (20 - np.arange(3)))


LARGE = [Backend("semi2k", 6, RING, 5), Backend("semi", 7, FIELD, 6), Backend("shamir", 9, FIELD, 4)]


@pytest.mark.parametrize("backend", LARGE if LONG else LARGE[-1:], ids=str)
def test_more_than_five_parties(backend: Backend) -> None:
    """All samplers, at the cost stated; every party contributes, and the distributions are those of the paper."""
    parties, method = backend.parties, "arith" if backend.protocol == "shamir" else "bits"
    size = 1 << 10
    out = run("sample_cbd", {"size": size, "method": method, "chunk": 1 << 11}, backend)
    check_distribution(out.shares, centred_binomial())
    arguments = {"size": size // 2, "method": method, "sigma_milli": 3200, "bits": 40, "tail": 23, "chunk": 1 << 11}
    out = run("sample_gaussian", arguments, backend)
    check_distribution(out.shares, {v: float(p) for v, p in exact_gaussian(3200, 23).items()})
    trits = np.random.default_rng(parties).integers(0, 3, (parties, size))
    total = trits.sum(0) % 3
    arguments = {"contributors": parties, "N": size, "method": "bilinear", "modulus": 0}
    out = run("sample_ternary", arguments, backend, private=trit_inputs(trits))
    assert np.array_equal(out.shares, np.where(total == 2, -1, total))
    if backend.protocol == "semi2k":
        arguments["method"] = "bits"
        out = run("sample_ternary", arguments, backend, private=indicator_inputs(trits))
        assert np.array_equal(out.shares, np.where(total == 2, -1, total))
    indices = np.stack([[RNG.integers(0, 12 - i) for i in range(2)] for _ in range(parties)])
    wanted = clear_knuth(12, 2, indices.sum(0) % (12 - np.arange(2)))
    for shuffle in ("knuth", "bits") if method == "bits" else ("knuth",):
        arguments = {"method": shuffle, "N": 12, "weight": 2, "contributors": parties}
        out = run("sample_fixed_weight", arguments, backend, private=knuth_inputs(indices, 12), check_costs=shuffle == "knuth")
        assert np.abs(out.shares).tolist() == wanted and set(out.shares.tolist()) <= {-1, 0, 1}
    out = run("sample_fixed_weight", {"method": "shuffle", "N": 8, "weight": 3, "contributors": parties}, backend)
    assert np.abs(out.shares).sum() == 3 and np.abs(out.shares).max() == 1


GAUSSIAN = [
    (b, "bits", 1 << (14 if b.parties == 2 or LONG else 12) if b in ADDITIVE else VERIFIED_SAMPLES if b in VERIFIED else SAMPLES) for b in BINARY
] + [
    (SEMI_FIELD, "arith", 1 << 10),
    (EMULATE_FIELD, "arith", 1 << 16),
    (REPLICATED_RING, "arith", 1 << 14),
    (SHAMIR_3, "arith", 1 << 12),
    (SHAMIR_5, "arith", 1 << 11),
]


@pytest.mark.parametrize(("backend", "method", "size"), GAUSSIAN, ids=str)
def test_gaussian(backend: Backend, method: str, size: int) -> None:
    chunk = 1 << 18 if method == "bits" else 1 << 12
    arguments = {"size": size, "method": method, "sigma_milli": 3200, "bits": 40, "tail": 23, "chunk": chunk}
    out = run("sample_gaussian", arguments, backend)
    assert len(out.shares) == size
    check_distribution(out.shares, {v: float(p) for v, p in exact_gaussian(3200, 23).items()})


@pytest.mark.parametrize(("sigma_milli", "bits", "tail"), [(700, 32, 4), (20000, 40, 120), (3200, 13, 10)])
def test_gaussian_of_other_widths(sigma_milli: int, bits: int, tail: int) -> None:
    arguments = {"size": 1 << 15, "method": "bits", "sigma_milli": sigma_milli, "bits": bits, "tail": tail, "chunk": 0}
    out = run("sample_gaussian", arguments, REPLICATED_RING, check_costs=False)
    exact = exact_gaussian(sigma_milli, 12 * sigma_milli // 1000 + 40)
    distribution = {v: float(exact[v]) for v in range(-tail + 1, tail)}
    distribution[tail] = distribution[-tail] = float(sum(p for v, p in exact.items() if v >= tail))
    check_distribution(out.shares, distribution)


def clear_knuth(length: int, weight: int, steps: Any) -> list[int]:
    """GMPFHE, figure 3, before the signs."""
    v = [1] * weight + [0] * (length - weight)
    for i, j in enumerate(steps):
        v[i], v[i + j] = v[i + j], v[i]
    return v


def knuth_inputs(indices: np.ndarray, length: int) -> dict[int, np.ndarray]:
    """Each contributor's bits of its indices [contributor, step]."""
    width = max(1, (length - 1).bit_length())
    return {d: np.concatenate([(rows >> b) & 1 for b in range(width)]) for d, rows in enumerate(indices)}


@pytest.mark.parametrize("backend", ALL, ids=str)
@pytest.mark.parametrize(("length", "weight", "contributors"), [(16, 5, 2), (13, 13, 2), (100, 7, 3), (2, 1, 2), (1, 1, 1), (9, 4, 1)])
def test_knuth_shuffle_is_that_of_the_paper(backend: Backend, length: int, weight: int, contributors: int) -> None:
    indices = np.stack([[RNG.integers(0, length - i) for i in range(weight)] for _ in range(contributors)])
    arguments = {"method": "knuth", "N": length, "weight": weight, "contributors": contributors}
    out = run("sample_fixed_weight", arguments, backend, private=knuth_inputs(indices, length))
    steps = indices.sum(0) % (length - np.arange(weight))
    assert np.abs(out.shares).tolist() == clear_knuth(length, weight, steps)
    assert set(out.shares.tolist()) <= {-1, 0, 1}


@pytest.mark.parametrize("backend", [EMULATE_RING, EMULATE_FIELD, *ADDITIVE], ids=str)
@pytest.mark.parametrize(("length", "weight", "contributors"), [(16, 5, 2), (100, 7, 3), (130, 64, 1), (2, 1, 2), (9, 9, 2)])
def test_knuth_shuffle_in_the_binary_domain(backend: Backend, length: int, weight: int, contributors: int) -> None:
    """The same vector from the same indices."""
    contributors = max(1, min(contributors, backend.parties)) if backend.parties > 1 else contributors
    indices = np.stack([[RNG.integers(0, length - i) for i in range(weight)] for _ in range(contributors)])
    arguments = {"method": "bits", "N": length, "weight": weight, "contributors": contributors}
    out = run("sample_fixed_weight", arguments, backend, private=knuth_inputs(indices, length), check_costs=False)
    steps = indices.sum(0) % (length - np.arange(weight))
    assert np.abs(out.shares).tolist() == clear_knuth(length, weight, steps)
    assert set(out.shares.tolist()) <= {-1, 0, 1}


def test_knuth_shuffle_is_uniform() -> None:
    """Over all choices of the indices, every vector of weight 3 and length 6 comes out equally often."""
    hits = Counter(tuple(clear_knuth(6, 3, steps)) for steps in product(range(6), range(5), range(4)))
    assert set(hits) == set(permutations([1, 1, 1, 0, 0, 0])) and len(set(hits.values())) == 1


@pytest.mark.parametrize("backend", ALL, ids=str)
def test_shuffled_weight(backend: Backend) -> None:
    for length, weight in ((100, 10), (8, 8), (1, 1)):
        arguments = {"method": "shuffle", "N": length, "weight": weight, "contributors": 2}
        out = run("sample_fixed_weight", arguments, backend)
        assert len(out.shares) == length and np.abs(out.shares).sum() == weight and np.abs(out.shares).max() == 1
