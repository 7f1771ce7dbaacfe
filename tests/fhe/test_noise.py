"""The noise helpers are exact on the dealer's keys, and find SEAL's own distribution in SEAL's own keys."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import seal
from keyquorum.fhe.errors import KeyNoiseError
from keyquorum.fhe.keys import galois_element, validate_galois_keys, validate_public_key, validate_relin_keys
from keyquorum.fhe.noise import ciphertext_noise, galois_noise, relin_noise, zero_encryption_noise
from keyquorum.fhe.seal import context
from keyquorum.fhe.seal_format import (
    PublicKey,
    read_ciphertext,
    read_public_key,
    read_secret_key,
    read_switch_keys,
    write_secret_key,
)

from .dealer import Dealer, dealer, keys, tiny

SCHEMES = ["ckks", "bfv", "bgv"]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_noise_of_the_dealer_is_found_exactly(scheme: str) -> None:
    d = Dealer(tiny(scheme, ring_degree=1024), seed=5)  # type: ignore[arg-type]
    parameters, n = d.parameters, d.parameters.ring_degree
    elements = [galois_element(1, n), galois_element(0, n)]
    public = validate_public_key(parameters, d.public_key())
    relin = validate_relin_keys(parameters, d.relin_keys())
    galois = validate_galois_keys(parameters, d.galois_keys(elements), elements)
    levels = parameters.levels
    assert np.array_equal(zero_encryption_noise(parameters, d.secret, public), d.errors[0])
    assert np.array_equal(relin_noise(parameters, d.secret, relin), d.errors[1 : 1 + levels])
    for i, g in enumerate(elements):
        begin = 1 + levels * (i + 1)
        assert np.array_equal(galois_noise(parameters, d.secret, galois, g), d.errors[begin : begin + levels])


@pytest.mark.parametrize("name", ["ckks-8192-demo", "bfv-8192", "bgv-8192"])
def test_variance_of_seal_is_that_of_its_distribution(name: str) -> None:
    """SEAL's default error is centred binomial, 21 + 21 bits: variance 10.5, kurtosis 3 - 1/21.

    The variance of the sample variance over m values is 10.5^2 (2 - 1/21) / m; the interval is 6 sigma: a false alarm
    in 5e8 runs.
    """
    parameters = dealer(name).parameters
    ctx = context(parameters)
    generator = seal.KeyGenerator(ctx)
    secret = read_secret_key(parameters, generator.secret_key().to_string())
    g = galois_element(1, parameters.ring_degree)
    galois = seal.GaloisKeys()
    generator.create_galois_keys([1], galois)  # takes steps, not elements
    public = read_public_key(parameters, generator.create_public_key().to_string())
    relin = read_switch_keys(parameters, generator.create_relin_keys().to_string())
    rotation = read_switch_keys(parameters, galois.to_string())
    noise = np.concatenate(
        [
            zero_encryption_noise(parameters, secret, public),
            relin_noise(parameters, secret, relin).reshape(-1),
            galois_noise(parameters, secret, rotation, g).reshape(-1),
        ]
    )
    deviation = 10.5 * np.sqrt((2 - 1 / 21) / noise.size)
    assert abs(np.mean(noise.astype(np.float64) ** 2) - 10.5) < 6 * deviation
    assert np.abs(noise).max() <= 21
    trits = Counter(secret.coefficients.tolist())
    assert set(trits) == {-1, 0, 1}
    n = parameters.ring_degree
    assert all(abs(count - n / 3) < 6 * np.sqrt(n * 2 / 9) for count in trits.values())


def test_foreign_secret_and_inconsistent_key_are_noticed() -> None:
    d, other = dealer("tiny-bfv"), Dealer(tiny("bfv", ring_degree=1024), seed=9)
    parameters = d.parameters
    key = validate_public_key(parameters, keys("tiny-bfv")[0])
    with pytest.raises(KeyNoiseError, match="not of this secret"):
        zero_encryption_noise(parameters, other.secret, key)
    c0 = key.c0.copy()
    c0[1] = (c0[1] + np.uint64(1)) % np.uint64(parameters.coeff_modulus[1])
    with pytest.raises(KeyNoiseError, match="primes 0 and 1 differs"):
        zero_encryption_noise(parameters, d.secret, PublicKey(key.moduli, c0, key.seed))
    relin = read_switch_keys(parameters, keys("tiny-bfv")[1])
    with pytest.raises(KeyNoiseError, match="has 0 digits"):
        galois_noise(parameters, d.secret, relin, galois_element(1, 1024))


@pytest.mark.parametrize("scheme", ["bfv", "bgv"])
def test_ciphertext_noise_agrees_with_the_budget_of_seal(scheme: str) -> None:
    d = dealer(f"tiny-{scheme}")
    parameters = d.parameters
    ctx = context(parameters)
    secret = ctx.from_secret_str(write_secret_key(parameters, d.secret.coefficients))
    encryptor = seal.Encryptor(ctx, ctx.from_public_str(keys(f"tiny-{scheme}")[0]))
    ciphertext = encryptor.encrypt(seal.BatchEncoder(ctx).encode(np.arange(1024)))
    budget = seal.Decryptor(ctx, secret).invariant_noise_budget(ciphertext)
    noise = ciphertext_noise(parameters, d.secret, read_ciphertext(parameters, ciphertext.to_string()))
    total = 1
    for q in parameters.moduli(parameters.levels):
        total *= q
    largest = max(abs(int(e)) for e in noise)
    assert abs(total.bit_length() - largest.bit_length() - 1 - budget) <= 1
