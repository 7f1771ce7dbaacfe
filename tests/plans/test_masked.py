"""`round_mask_open`: what its errors tell of the secret, and where it is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum.fhe.errors import SecurityWarning
from keyquorum.fhe.lwe import lwe_parameters
from keyquorum.model.errors import ParameterError
from keyquorum.parties import run_in_process
from keyquorum.parties.jobs import run_job
from keyquorum.plans.masked import warn_of_rounding
from keyquorum.schemes.seal.masked import RATIO, estimate_ratio, most_masked
from keyquorum.serve.kinds.decryption import ServedKey

from .quorum import committee

DEGREE = 256


def toy(distance: int) -> Any:
    """A set with this q/t: small ones make many errors."""
    return SimpleNamespace(ring_degree=DEGREE, coeff_modulus=(distance * 257,), plain_modulus=257)


def attacked(distance: int, decryptions: int, seed: int = 5) -> tuple[float, float]:
    """Share of the coefficients of a secret that the attack finds, and mean over deviation of its estimate. It sees which coefficients are wrong, and
    the row r1 of every ciphertext, nothing else."""
    rng = np.random.default_rng(seed)
    secret = rng.integers(-1, 2, DEGREE)
    twist = np.exp(1j * np.pi * np.arange(DEGREE) / DEGREE)
    of_secret, total = np.fft.fft(secret * twist), np.zeros(DEGREE)
    for _ in range(decryptions):
        row = rng.random(DEGREE) - 0.5
        of_row = np.fft.fft(row * twist)
        e = (np.fft.ifft(of_row * of_secret) / twist).real + rng.random(DEGREE) - 0.5
        seen = np.where(rng.random(DEGREE) < np.abs(e) / distance, np.sign(e), 0.0)
        total += (np.fft.ifft(np.conj(of_row) * np.fft.fft(seen * twist)) / twist).real
    estimate = total / (decryptions * DEGREE / 12 / distance)
    return float((np.clip(np.rint(estimate), -1, 1) == secret).mean()), 1 / float((estimate - secret).std())


def test_the_attack_finds_the_secret_beyond_the_limit() -> None:
    """At a ratio of 10 all of it, without any chosen ciphertext: that is what the limit is for. The ratio is that of the formula."""
    decryptions = math.ceil((10 / estimate_ratio(toy(256), 1)) ** 2)
    share, ratio = attacked(256, decryptions)
    assert share > 0.99 and ratio == pytest.approx(estimate_ratio(toy(256), decryptions), rel=0.15)


def test_the_attack_finds_nothing_within_the_limit() -> None:
    """32 keys, each with as many decryptions as the limit allows: no more is found than by guessing."""
    limit = most_masked(toy(1 << 18))
    assert limit > 16 and estimate_ratio(toy(1 << 18), limit) <= RATIO
    assert float(np.mean([attacked(1 << 18, limit, seed)[0] for seed in range(32)])) < 0.38


def test_limits_of_shipped_sets() -> None:
    """A tenth of a million times as many decryptions read the key off."""
    for name, limit in (("bfv-4096", 36), ("bgv-4096", 28), ("bfv-8192", 3268), ("bgv-8192", 3261), ("bfv-16384", 73951), ("bgv-16384", 73915)):
        parameters = api.load_parameters(name)
        assert most_masked(parameters) == limit
        assert estimate_ratio(parameters, limit) <= RATIO < estimate_ratio(parameters, limit + 1)
        assert estimate_ratio(parameters, 102_400 * limit) <= 10


def test_the_default_is_silent_and_the_other_warns() -> None:
    """LWE as well, where nothing counts."""
    for parameters, text in (
        (api.load_parameters("bfv-4096"), "at most 36 ciphertexts"),
        (lwe_parameters("lwe64-p2"), "LWE decryptions are not counted"),
    ):
        warn_of_rounding("round_ltz_circuit", parameters)
        with pytest.warns(
            SecurityWarning, match=f"its errors tell a receiver of the noise, .*{text}.*round_ltz_circuit, the default, is never wrong"
        ):
            warn_of_rounding("round_mask_open", parameters)


def test_served_committees_refuse_it_for_bfv(tmp_path: Path) -> None:
    """They count nothing. LWE is served with it, and warned of."""
    members = replace(committee("semi-2"), folder=tmp_path)
    for key, job in (
        ("bfv", api.keygen_job("bfv", api.load_parameters("bfv-4096"), False)),
        ("lwe", api.keygen_job("lwe", "lwe64-p2")),
    ):
        run_in_process(members, lambda context, job=job: run_job(context, job), timeout=20.0)  # type: ignore[misc]
        assert members.key_folder(0, key).exists()
    with pytest.raises(ParameterError, match="a served committee counts no decryptions, so BFV and BGV are served with round_ltz_circuit alone"):
        ServedKey(members, 0, "bfv", "round_mask_open", 8, 2)
    ServedKey(members, 0, "bfv", "round_ltz_circuit", 8, 2).close()
    with pytest.warns(SecurityWarning, match="LWE decryptions are not counted"):
        ServedKey(members, 0, "lwe", "round_mask_open", 8, 2).close()
