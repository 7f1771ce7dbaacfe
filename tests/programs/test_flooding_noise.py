"""Noise of `sample_flooding`: on every protocol of its header, the exact distribution of its sum and of its pieces; and `flood`, which adds pieces up."""

from __future__ import annotations

import numpy as np
import pytest
from keyquorum.sharing.numbers.uniform_noise import UniformNoise
from numpy.typing import NDArray

from tests.long import LONG
from tests.plans.distributions import chi_square_p
from tests.protocols import ADDITIVE, ALL, MAC_FIELD, MAC_RING, REPLICATED_FIELD, Backend

from .running import run

Ints = NDArray[np.int64]
SHORT = Backend("mascot", 2, "F_68719230977", 1)


def sums_of(weights: list[int]) -> NDArray[np.float64]:
    """The probabilities of 0, 1, ... for a sum of random bits with these weights."""
    law = np.ones(1)
    for weight in weights:
        law = np.convolve(law, np.bincount([0, weight]) / 2)
    return law


def distribution(weights: list[int], centre: int) -> dict[int, float]:
    """The same, of what is left when ``centre`` is taken off."""
    return {value - centre: float(p) for value, p in enumerate(sums_of(weights)) if p > 0}


def pieces_of(backend: Backend, noise: UniformNoise, size: int, **options: int) -> Ints:
    """The pieces of ``size`` numbers, [pieces, size]."""
    arguments = {"size": size, "fine": noise.fine, "wide": noise.wide, "width": noise.width, "chunk": 4096, **options}
    return run("sample_flooding", arguments, backend, seed=b"flooding").shares.reshape(noise.pieces, size)


@pytest.mark.parametrize("backend", [*ALL, MAC_RING, MAC_FIELD, SHORT], ids=str)
def test_the_sum_and_its_pieces_have_their_distributions(backend: Backend) -> None:
    """A number of 4 + 11 bits, in pieces of 3: every value has its probability. Chi-square; false alarm 10^-6 for each of four."""
    noise = UniformNoise(4, 11, 3)
    macs = backend.protocol in ("spdz2k", "mascot")
    size = 1 << (11 if macs else 12 if backend in ADDITIVE else 14)
    found = pieces_of(backend, noise, size)
    for j in range(noise.pieces):
        assert chi_square_p(found[j], distribution(noise.weights(j), noise.centres[j])) > 1e-6
        assert np.abs(found[j]).max() < 1 << noise.piece_bits
    total = sum(found[j] << noise.width * j for j in range(noise.pieces))
    assert chi_square_p(total, distribution([1 << place for place in noise.places], noise.centre)) > 1e-6


def test_a_wide_number_has_its_variance() -> None:
    """94 bits, as the default policy takes: mean and variance of 2^16 numbers within 3.3 deviations of the estimate, and of every piece; 2^20 with KEYQUORUM_LONG=1. False alarm 0.1 % each."""
    noise, size = UniformNoise(12, 82, 12), 1 << (20 if LONG else 16)
    found = pieces_of(REPLICATED_FIELD, noise, size).astype(np.float64)
    total = sum(found[j] * 2.0 ** (noise.width * j) for j in range(noise.pieces)) / noise.variance**0.5
    assert noise.variance == pytest.approx(4.0**12 * (4.0**28 + 2 * 4.0**27) / 12, rel=1e-6)
    assert abs(total.mean()) < 3.3 / size**0.5 and abs(total.var() - 1) < 3.3 * (2 / size) ** 0.5
    for j, row in enumerate(found):
        assert abs(row.mean() + noise.centres[j] - sum(noise.weights(j)) / 2) < 3.3 * row.std() / size**0.5
        assert row.var() < 1.05 * noise.piece_square


@pytest.mark.parametrize("chunk", [1, 7, 40, 41])
def test_chunks_cover_the_numbers(chunk: int) -> None:
    noise = UniformNoise(0, 8, 2)
    found = pieces_of(REPLICATED_FIELD, noise, 40, chunk=chunk)
    assert found.shape == (2, 40) and all(np.abs(row).max() < 8 and row.std() > 0 for row in found)


@pytest.mark.parametrize("backend", [REPLICATED_FIELD, MAC_FIELD, SHORT], ids=str)
def test_flood_adds_pieces_up(backend: Backend) -> None:
    """Also where a weight is above the modulus."""
    rng = np.random.default_rng(3)
    phase, pieces = rng.integers(0, 1 << 30, 20), rng.integers(-100, 100, (4, 20))
    arguments = {"contributors": 0, "N": 20, "receiver": 1, "at": 80, "masks": "stored", "r_at": 0, "pieces": 4, "width": 13}
    out = run("flood", arguments, backend, shares=np.concatenate([pieces.reshape(-1), phase]))
    wanted = phase + sum(pieces[j] << 13 * j for j in range(4))
    q = backend.modulus
    assert [int(v) % q for v in out.personal[1]] == [int(v) % q for v in wanted]
