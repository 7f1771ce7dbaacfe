"""LWE ciphertexts: reference encryption, files, refusals."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keyquorum.fhe.lwe import LWE_SETS, LweParameters, decrypt_clear, encrypt, flooding_bits, lwe_parameters, read_lwe
from keyquorum.model.errors import CiphertextError, ParameterError

SETS = pytest.mark.parametrize("parameters", LWE_SETS.values(), ids=LWE_SETS)


@SETS
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_what_was_encrypted_comes_back(parameters: LweParameters, seed: int) -> None:
    rng = np.random.default_rng(seed)
    secret = rng.integers(0, 2, parameters.dimension)
    messages = rng.integers(0, 1 << parameters.plain_bits, 50)
    got, error = decrypt_clear(encrypt(parameters, secret, messages, rng), secret)
    assert np.array_equal(got, messages)
    assert error.max() < min(0.25, 8 * parameters.deviation / parameters.delta + 1e-9)


@SETS
def test_noise_up_to_the_border(parameters: LweParameters) -> None:
    rng = np.random.default_rng(3)
    secret = rng.integers(0, 2, parameters.dimension)
    half = parameters.delta // 2
    noise = np.array([half - 2, -half + 2, 0, 1, -1])
    messages = rng.integers(0, 1 << parameters.plain_bits, noise.size)
    got, error = decrypt_clear(encrypt(parameters, secret, messages, rng, noise), secret)
    assert np.array_equal(got, messages) and error.max() <= 0.5


def _rehashed(data: bytes) -> bytes:
    """With the digest of what it has."""
    return data[:-32] + hashlib.sha256(data[:-32]).digest()


def test_files() -> None:
    parameters, rng = lwe_parameters("lwe53-p16"), np.random.default_rng(5)
    made = encrypt(parameters, rng.integers(0, 2, 2048), rng.integers(0, 16, 3), rng)
    data = made.to_bytes("ab" * 16)
    back, key_id = read_lwe(data, "x.lwe")
    assert key_id == "ab" * 16 and np.array_equal(back.a, made.a) and back.digest() == made.digest()
    for bad in (b"", data[:-1], data + b"\0", b"KQLWE009" + data[8:]):
        with pytest.raises(CiphertextError, match=r"x\.lwe: "):
            read_lwe(bad, "x.lwe")
    with pytest.raises(ParameterError, match="unknown LWE parameter set 'lwe99-p16'"):
        read_lwe(_rehashed(data.replace(b"lwe53-p16", b"lwe99-p16")), "x.lwe")
    with pytest.raises(CiphertextError, match="below the modulus"):
        read_lwe(_rehashed(data[:-40] + (parameters.prime).to_bytes(8, "little") + data[-32:]), "x.lwe")


def test_refusals() -> None:
    with pytest.raises(ParameterError, match="choose one of lwe64-p2"):
        lwe_parameters("lwe32")
    with pytest.raises(ParameterError, match="messages of lwe64-p2 are 0 to 1"):
        encrypt(lwe_parameters("lwe64-p2"), np.zeros(1024, np.int64), np.array([2]), np.random.default_rng(1))
    assert flooding_bits(lwe_parameters("lwe64-p32"), 39) == 56
    assert flooding_bits(lwe_parameters("lwe64-p16"), 40) == 57
    with pytest.raises(ParameterError, match="lwe64-p32 is too small for flooding with 40 bits of security: that needs a modulus of 65 bits"):
        flooding_bits(lwe_parameters("lwe64-p32"), 40)
    with pytest.raises(ParameterError, match="is too small for flooding with 40 bits of security"):
        flooding_bits(lwe_parameters("lwe64-p2"), 40)
