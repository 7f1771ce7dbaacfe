"""`noise_check`: one bit a ciphertext says whether all its noise is below half its border; nothing else is opened."""

from __future__ import annotations

import numpy as np
import pytest
from keyquorum.model.errors import ProgramError

from tests.protocols import EMULATE_RING, MAC_RING, REPLICATED_RING, SEMI_RING, VERIFIED_RING, Backend

from .running import run

RNG = np.random.default_rng(41)
BACKENDS = [EMULATE_RING, REPLICATED_RING, VERIFIED_RING, SEMI_RING, MAC_RING, Backend("semi2k", 3, "Z2^64", 2)]


def sums(noise: np.ndarray, ell: int, summands: int) -> list[int]:
    """Sums of low parts, in [0, summands 2^l), of phases with this noise: coefficient by coefficient."""
    low = (noise + (1 << (ell - 1))) % (1 << ell)
    return (low + (RNG.integers(0, summands, low.shape) << ell)).T.ravel().tolist()


@pytest.mark.parametrize("backend", BACKENDS, ids=str)
@pytest.mark.parametrize(("ell", "degree", "count"), [(3, 8, 5), (46, 32, 2), (60, 16, 1)])
def test_every_border(backend: Backend, ell: int, degree: int, count: int) -> None:
    """Noise right at both borders, in one place of one ciphertext after another; the others are as large as they may be. Rounds and bytes are the header's."""
    half, quarter = 1 << (ell - 1), 1 << (ell - 2)
    most = np.where(RNG.integers(0, 2, (count, degree)) == 1, quarter - 1, -quarter)
    for i, value in enumerate((quarter - 1, -quarter, quarter, -quarter - 1, half - 1, -half)):
        noise, place = most.copy(), (0, degree // 2, degree - 1)[i % 3]
        noise[i % count, place] = value
        expected = [int(((row >= -quarter) & (row < quarter)).all()) for row in noise]
        found = run("noise_check", {"count": count, "N": degree, "l": ell}, backend, shares=sums(noise, ell, 3))
        assert found.public.tolist() == expected


def test_noise_that_fills_the_phase() -> None:
    """Of 6400 ciphertexts with uniform noise in 8 coefficients, one in 256 passes: 25, and from 5 to 52 but once in 10^6 runs with other seeds."""
    noise = RNG.integers(-(1 << 19), 1 << 19, (6400, 8))
    found = run("noise_check", {"count": 6400, "N": 8, "l": 20}, REPLICATED_RING, shares=sums(noise, 20, 3))
    assert 5 <= found.public.sum() <= 52
    assert found.public.tolist() == ((noise >= -(1 << 18)) & (noise < 1 << 18)).all(1).astype(int).tolist()


@pytest.mark.parametrize("degree", [1024, 2048, 4096, 8192, 16384, 32768])
def test_ring_degrees_of_seal(degree: int) -> None:
    """Rounds and bytes are the header's, for one coefficient that is too large, and none."""
    noise = np.zeros((2, degree), np.int64)
    noise[0, 5] = 1 << 10
    assert run("noise_check", {"count": 2, "N": degree, "l": 12}, REPLICATED_RING, shares=sums(noise, 12, 3)).public.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"count": 1, "N": 12, "l": 10}, "12 coefficients: they must be a power of two"),
        ({"count": 1, "N": 8, "l": 10, "at": 0, "ring_length": 10}, "must be above 10"),
    ],
)
def test_refused_arguments(words: dict[str, int], message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        run("noise_check", words, EMULATE_RING, shares=[0] * 12)
