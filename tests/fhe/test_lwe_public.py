"""Public keys of LWE: noise within its bound, which every exact rounding takes; files; refusals."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from keyquorum.fhe.errors import SeedError, ValuesError
from keyquorum.fhe.lwe import LWE_SETS, LweParameters, decrypt_clear, encode, lwe_parameters, read_lwe
from keyquorum.fhe.lwe_public import (
    LwePublicKey,
    expand_mask,
    integers,
    public_noise,
    read_lwe_public_key,
    residues,
    rows_of,
    tuniform,
)
from keyquorum.model.errors import CiphertextError, KeyFileError, ParameterError
from scipy import stats

SETS = pytest.mark.parametrize("parameters", LWE_SETS.values(), ids=LWE_SETS)
NOISES = pytest.mark.parametrize("parameters", {(p.modulus, p.deviation): p for p in LWE_SETS.values()}.values(), ids=lambda p: p.name)
"""A set of each modulus and noise."""
ID = "ab" * 16


def key_of(parameters: LweParameters, secret: np.ndarray, noise: np.ndarray | None = None, seed: bytes = bytes(64)) -> LwePublicKey:
    """A public key, made with the secret: exact arithmetic, Karatsuba in Python's integers."""
    n, q = parameters.dimension, parameters.modulus
    mask = [int(v) for v in expand_mask(parameters, seed)]
    # all coefficients of a in one integer, 96 bits each: shifts by the places of s's ones are a times s
    width, packed = 96, 0
    packed = int.from_bytes(b"".join(v.to_bytes(width // 8, "little") for v in mask), "little")
    total = sum(packed << (width * int(j)) for j in np.flatnonzero(secret))
    product = [(total >> (width * k)) & ((1 << width) - 1) for k in range(2 * n)]
    e = tuniform(n, public_noise(parameters).bound_bits) if noise is None else noise
    body = [(product[k] - product[n + k] + int(e[k])) % q for k in range(n)]
    return LwePublicKey(parameters, ID, seed, np.array(body, dtype=np.uint64))


def errors_of(parameters: LweParameters, secret: np.ndarray, messages: np.ndarray, key: LwePublicKey) -> np.ndarray:
    """The noise of fresh ciphertexts, signed, in units of q."""
    q = parameters.modulus
    made = key.encrypt(messages)
    products = made.a @ secret.astype(np.uint64)
    found = [(int(b) - int(p) - int(d)) % q for b, p, d in zip(made.b, products, encode(parameters, messages), strict=True)]
    return np.array([float(v - q if 2 * v > q else v) for v in found])


@SETS
def test_bounds_leave_every_rounding_its_room(parameters: LweParameters) -> None:
    noise = public_noise(parameters)
    variance = (2 ** (2 * noise.bound_bits + 1) + 1) / 6
    assert parameters.deviation <= math.sqrt(variance) < 2.5 * parameters.deviation
    assert noise.largest == (2 * parameters.dimension + 1) * 2**noise.bound_bits < parameters.delta // 2
    assert 6 * noise.deviation < noise.largest
    assert noise.largest / parameters.delta < 2**-10  # exact roundings have all of D/2


@NOISES
def test_fresh_noise_is_as_stated(parameters: LweParameters) -> None:
    """Given the key's noise e, that of coefficient k has the mean (e * ones)_k / 2, as r has bits, and the variance |e|^2 / 4 + v (1 + ones of s).
    Over 30 encryptions, whose r and e1 are fresh: its deviation is 9 %, and the test takes 50 %, as encryption has no seed."""
    rng, n, noise = np.random.default_rng(4), parameters.dimension, public_noise(parameters)
    secret, e, v = rng.integers(0, 2, n), tuniform(n, noise.bound_bits), (2 ** (2 * noise.bound_bits + 1) + 1) / 6
    key, count = key_of(parameters, secret, e), 64
    halves = np.array([float(e[: k + 1].sum() - e[k + 1 :].sum()) / 2 for k in range(count)])
    found = np.stack([errors_of(parameters, secret, rng.integers(0, 1 << parameters.plain_bits, count), key) for _ in range(30)])
    variance = float((e.astype(float) ** 2).sum()) / 4 + v * (1 + int(secret.sum()))
    assert np.abs(found).max() <= noise.largest
    assert abs(((found - halves) ** 2).mean() / variance - 1) < 0.5
    # of all keys: n v / 4 + n v / 4 for e r, n v / 2 for e1 s, v for e2
    assert abs(variance / v + n / 4 - (noise.deviation**2 / v)) < 0.1 * n


@SETS
def test_noise_keeps_to_its_bound_for_the_worst_key(parameters: LweParameters) -> None:
    """The largest noise of the key, and a secret of ones."""
    n, noise = parameters.dimension, public_noise(parameters)
    ones, worst = np.ones(n, np.int64), np.full(n, 1 << noise.bound_bits)
    messages = np.zeros(n, np.int64)
    e = errors_of(parameters, ones, messages, key_of(parameters, ones, worst))
    assert noise.largest // 8 < np.abs(e).max() <= noise.largest


@SETS
@pytest.mark.parametrize("count", [1, 5, 3000])
def test_what_was_encrypted_comes_back(parameters: LweParameters, count: int) -> None:
    rng = np.random.default_rng(count)
    secret, messages = rng.integers(0, 2, parameters.dimension), rng.integers(0, 1 << parameters.plain_bits, count)
    key = read_lwe_public_key(key_of(parameters, secret).to_bytes(), "key")
    made, key_id = read_lwe(key.encrypt(messages).to_bytes(key.key_id), "x.lwe")
    got, error = decrypt_clear(made, secret)
    assert key_id == ID and np.array_equal(got, messages)
    assert error.max() < public_noise(parameters).largest / parameters.delta + 1e-6
    assert made.noise_bits is not None and 2**made.noise_bits >= 0.999 * public_noise(parameters).largest
    again = key.encrypt(messages)
    assert not np.any(again.b == made.b) and len(np.unique(made.a[0])) > parameters.dimension - 5


def test_rows_are_a_negacyclic_product() -> None:
    parameters = lwe_parameters("lwe53-p16")
    x = np.zeros(2048, dtype=np.uint64)
    x[1] = 5  # 5 X
    y = np.zeros(2048, dtype=np.uint64)
    y[2047] = 1
    product = rows_of(parameters, x, 2048) @ y % np.uint64(parameters.prime)
    assert product[0] == parameters.prime - 5 and not product[1:].any()
    assert residues(parameters, np.array([-1, 2])).tolist() == [parameters.prime - 1, 2]


@SETS
def test_masks_are_uniform_and_of_their_seed(parameters: LweParameters) -> None:
    mask = expand_mask(parameters, b"x" * 64)
    assert np.array_equal(mask, expand_mask(parameters, b"x" * 64)) and not np.array_equal(mask, expand_mask(parameters, b"y" * 64))
    assert mask.size == parameters.dimension and int(mask.max()) < parameters.modulus
    assert stats.kstest(mask.astype(float) / parameters.modulus, "uniform").pvalue > 0.001
    with pytest.raises(SeedError, match="a seed of 63 bytes"):
        expand_mask(parameters, bytes(63))


def test_tuniform_of_the_system() -> None:
    """Chi squared, false alarms 0.01 %."""
    counts = np.bincount(tuniform(40_000, 2) + 4, minlength=9)
    assert counts.size == 9 and stats.chisquare(counts, 40_000 * np.array([1, 2, 2, 2, 2, 2, 2, 2, 1]) / 16).pvalue > 1e-4
    assert np.abs(tuniform(1000, 40)).max() <= 2**40


def test_damaged_keys_are_refused() -> None:
    parameters = lwe_parameters("lwe53-p16")
    data = key_of(parameters, np.zeros(2048, np.int64)).to_bytes()
    damaged = bytearray(data)
    damaged[-100] ^= 1
    for bad in (b"", data[:-1], data + b"\0", b"KQLWE002" + data[8:], bytes(damaged)):
        with pytest.raises(KeyFileError, match=r"key: not a public key of LWE, or a damaged one: copy it from another party"):
            read_lwe_public_key(bad, "key")
    large = LwePublicKey(parameters, ID, bytes(64), np.full(2048, parameters.prime, np.uint64))
    for key in (large, replace(large, body=np.zeros(2047, np.uint64)), replace(large, key_id="x"), replace(large, seed=bytes(63))):
        with pytest.raises(KeyFileError, match="not a public key of LWE"):
            read_lwe_public_key(key.to_bytes(), "key")


def test_a_changed_bit_of_a_ciphertext_is_noticed() -> None:
    parameters = lwe_parameters("lwe64-p2")
    data = bytearray(key_of(parameters, np.zeros(1024, np.int64)).encrypt(np.array([1, 0])).to_bytes(ID))
    data[len(data) // 2] ^= 1
    with pytest.raises(CiphertextError, match=r"x\.lwe: not a file of LWE ciphertexts, or a damaged one"):
        read_lwe(data, "x.lwe")


def test_stated_noise_counts() -> None:
    """`round_flood` is refused for ciphertexts that state more noise than its bound, and for no others; the statement is part of the digest."""
    parameters = lwe_parameters("lwe64-p16")
    made = key_of(parameters, np.zeros(2048, np.int64)).encrypt(np.array([1, 15]))
    with pytest.raises(
        CiphertextError, match=r"x states noise of up to 2\^26\.0, round_flood hides 2\^17 of lwe64-p16: decrypt it by a rounding without"
    ):
        made.check_rounding("round_flood", "x")
    for rounding in ("round_ltz_circuit", "round_ltz_table", "round_mask_open"):
        made.check_rounding(rounding, "x")
    silent = replace(made, noise_bits=None)
    silent.check_rounding("round_flood", "x")
    replace(made, noise_bits=17).check_rounding("round_flood", "x")
    assert silent.digest() != made.digest() and made.part(0, 2).digest() == made.digest()
    with pytest.raises(CiphertextError, match="damaged"):
        read_lwe(replace(made, noise_bits=65).to_bytes(ID), "x")


@pytest.mark.parametrize("name", ["lwe53-p16", "lwe53-p16-eta52"])
def test_the_limit_of_stated_noise_is_in_units_of_q(name: str) -> None:
    """Phases modulo a prime of 53 bits are scaled to 62 or 52 bits, or not at all: in each case half the distance of two messages is 2^48 units of q."""
    parameters = lwe_parameters(name)
    assert parameters.delta // 2 < 2**48 < parameters.delta and parameters.noise_length - 1 != 48
    made = key_of(parameters, np.zeros(2048, np.int64)).encrypt(np.array([1, 15]))
    replace(made, noise_bits=48.0).check_rounding("round_ltz_circuit", "x")
    with pytest.raises(CiphertextError, match=rf"x states noise of up to 2\^48\.1, no rounding takes more than 2\^48 of {name}: make it anew"):
        replace(made, noise_bits=48.1).check_rounding("round_ltz_circuit", "x")


def test_values() -> None:
    parameters = lwe_parameters("lwe64-p16")
    assert integers(parameters, [0, 15.0, 3]).tolist() == [0, 15, 3]
    for bad in ([], [0.5], [[1]], ["a"], [1j], [float("nan")]):
        with pytest.raises(ValuesError, match="encrypts integers from 0 to 15: give a list of them"):
            integers(parameters, bad)
    for bad in ([16], [-1], [2**63], [float("inf")]):
        with pytest.raises(ValuesError, match="a value is outside 0 to 15, the messages of lwe64-p16"):
            integers(parameters, bad)
    with pytest.raises(ValuesError, match="65,537 values: at most 65,536 go in one file of lwe64-p16, encrypt them in parts"):
        integers(parameters, np.zeros(65_537))
    with pytest.raises(ParameterError, match="needs a power of 2"):
        public_noise(replace(parameters, dimension=2047))
    with pytest.raises(ParameterError, match="is too small for the noise of public keys"):
        public_noise(replace(parameters, deviation=2.0**50))
