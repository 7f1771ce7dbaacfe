"""The noise of keys for TFHE-rs has exactly the distribution TUniform(b): its variance, and every cell of its range."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from keyquorum import _engine, api
from keyquorum.dsl import ProgramIO, ShareVector, run_program
from keyquorum.fhe.lwe_sets import TFHE_SETS
from keyquorum.model.resources import program_path
from keyquorum.schemes.tfhe import keygen
from keyquorum.schemes.tfhe.noise import carried
from numpy.typing import NDArray
from scipy import stats

from tests.long import LONG
from tests.protocols import EMULATE_RING, REPLICATED_RING, SEMI_RING, Backend

from .costs import expected
from .running import run

SAMPLES = 1 << (22 if LONG else 17)
CELLS = 256


def by_carries(b: int) -> NDArray[np.int64]:
    """Noise from `sample_carries`, put together by every party from its own shares, at the cost of the header."""
    length, committee = b + 1, api.in_process_committee(3, "rep-field")

    def one(session: Any) -> NDArray[np.int64]:
        engine, made = session.engine("ring", "Z2^64", "sample_carries", 1, b"sixteen bytes, 1"), ShareVector()
        run_program(engine, program_path("sample_carries"), [str(SAMPLES), str(length)], ProgramIO(shares=made))
        stats = engine.stats()
        assert stats["rounds"] == expected("sample_carries", "rounds", "ring", 3, 1, "Z2^64", {"size": SAMPLES, "length": length})
        e = carried(made.words, length, committee.capabilities.held(session.party, 3, 1))
        engine = session.engine("ring", "Z2^64", "open", 1, None)
        share = ShareVector.from_words(e)
        opened: NDArray[np.int64] = engine.read(engine.open(engine.import_(share.export(0, SAMPLES), SAMPLES))).view(np.int64)
        return opened

    with ThreadPoolExecutor(3) as pool:
        first, *others = pool.map(one, _engine.local_sessions(3, 60.0))
    assert all(np.array_equal(first, other) for other in others)
    return first


@pytest.mark.parametrize("b", [17, 45])
@pytest.mark.parametrize("backend", [REPLICATED_RING, SEMI_RING, None], ids=str)
def test_variance_and_cells(backend: Backend | None, b: int) -> None:
    """2^17 samples; 2^22 with KEYQUORUM_LONG=1, whose variance is known within 0.14 %. Without a backend: by carries."""
    noise = by_carries(b) if backend is None else run("sample_tuniform", {"size": SAMPLES, "b": b, "chunk": 1 << 14}, backend).shares
    assert np.abs(noise).max() <= 1 << b
    # The fourth moment of a uniform variable is 9/5 of the square of its variance.
    spread = stats.norm.isf(0.0005) * np.sqrt(0.8 / SAMPLES)
    variance = (2.0 ** (2 * b + 1) + 1) / 6
    assert abs((noise.astype(np.float64) ** 2).mean() / variance - 1) < spread < (0.005 if LONG else 0.01)
    # Shifted by half a step, both ends together are one cell of full probability.
    cells = np.bincount(((noise + (1 << b)) % (1 << (b + 1))) >> (b + 1 - 8), minlength=CELLS)
    assert stats.chisquare(cells).pvalue > 1e-5
    assert stats.chisquare(np.bincount(noise & 63, minlength=64)).pvalue > 1e-5


@pytest.mark.parametrize("backend", [REPLICATED_RING, EMULATE_RING], ids=str)
@pytest.mark.parametrize("length", [2, 18, 46])
def test_carries_are_those_of_three_summands(backend: Backend, length: int) -> None:
    r, carry, v = np.split(run("sample_carries", {"size": 5000, "length": length}, backend).shares, 3)
    assert set(carry.tolist()) <= ({0} if backend is EMULATE_RING else {0, 1, 2}) and set(v.tolist()) == {0, 1} and np.unique(r).size == 5000
    if backend is REPLICATED_RING:  # the sum of three uniform numbers in [0, 1) is below 1 and above 2 with probability 1/6
        law = np.array([1 + 3 / 2**length + 2 / 4**length, 4 - 4 / 4**length, 1 - 3 / 2**length + 2 / 4**length]) / 6
        assert stats.chisquare(np.bincount(carry, minlength=3), law * 5000).pvalue > 1e-3


def test_a_party_sends_less_than_150_mb_for_a_key_by_carries() -> None:
    """The programs' formulas at full size, beside what a key generation was measured to send, 145.7 MB."""
    p = TFHE_SETS["tfhers-2-2"]
    rows, each = p.lwe_dimension * 2 * p.dimension, keygen.CARRY_CHUNK // (2 * p.dimension)
    ring = ("bytes", "ring", 3, 1, "Z2^64")
    total = 0
    for first in range(0, p.lwe_dimension, each):
        count = min(each, p.lwe_dimension - first)
        total += expected("sample_carries", *ring, {"size": count * 2 * p.dimension, "length": p.glwe_noise + 1})
        key = {"count": count, "N": p.dimension, "base_log": p.pbs_base_log, "levels": p.pbs_level}
        total += expected("glwe_bootstrap_key", *ring, key)
    switching = p.dimension * p.ks_level
    total += expected("sample_tuniform", *ring, {"size": switching, "b": p.lwe_noise, "chunk": switching}) + 3 * 8 * switching
    assert rows == 3_760_128 and 0.97 * 145.7e6 < total / 3 < 145.7e6 < 0.15e9
