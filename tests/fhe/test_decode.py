"""Keys made outside SEAL, used by stock SEAL, decrypted outside SEAL: every scheme, every level."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import seal
from hypothesis import given, settings
from hypothesis import strategies as st
from keyquorum.fhe import _arith
from keyquorum.fhe.decode import (
    ckks_plaintext,
    decrypt_reference,
    integer_plaintext,
    message_of_phase,
    phase,
    undo_correction,
)
from keyquorum.fhe.errors import CoefficientRangeError, FormError, ShapeError
from keyquorum.fhe.noise import ciphertext_noise
from keyquorum.fhe.seal import context, decode
from keyquorum.fhe.seal_format import (
    Ciphertext,
    read_ciphertext,
    read_plaintext,
    write_ciphertext,
    write_secret_key,
)
from keyquorum.schemes.seal.noise import products

from .dealer import T, dealer, keys

pytestmark = pytest.mark.filterwarnings("ignore::keyquorum.fhe.errors.SecurityWarning")
STEPS = (1, -3)
CKKS = ["tiny-ckks", "ckks-4096-narrow", "ckks-8192", "ckks-8192-demo", "ckks-16384-bench", "ckks-16384"]
EXACT = ["tiny-bfv", "tiny-bgv", "bfv-4096", "bfv-8192", "bgv-4096", "bgv-8192", "bfv-16384", "bgv-16384"]


class Stock:
    """Stock SEAL with the dealer's keys; ``reference`` has the secret too."""

    def __init__(self, name: str) -> None:
        self.dealer = dealer(name)
        self.parameters = self.dealer.parameters
        public, relin, galois = keys(name)
        self.context = context(self.parameters)
        self.relin = self.context.from_relin_str(relin)
        self.galois = self.context.from_galois_str(galois)
        self.encryptor = seal.Encryptor(self.context, self.context.from_public_str(public))
        self.evaluator = seal.Evaluator(self.context)
        secret = write_secret_key(self.parameters, self.dealer.secret.coefficients)
        self.reference = seal.Decryptor(self.context, self.context.from_secret_str(secret))

    def read(self, ciphertext: Any) -> Ciphertext:
        return read_ciphertext(self.parameters, ciphertext.to_string())

    def values(self, ciphertext: Any) -> Any:
        """Our decryption in clear text, decoded by SEAL."""
        return decode(self.parameters, decrypt_reference(self.parameters, self.dealer.secret, self.read(ciphertext)))

    def level(self, ciphertext: Any) -> int:
        return int(self.context.get_context_data(ciphertext.parms_id()).chain_index())


@pytest.mark.parametrize("name", CKKS)
def test_ckks(name: str) -> None:
    stock = Stock(name)
    parameters, evaluator = stock.parameters, stock.evaluator
    encoder = seal.CKKSEncoder(stock.context)
    rng = np.random.default_rng(3)
    x, y = rng.uniform(-1, 1, (2, parameters.slots))
    # A slot is a sum of N coefficients times roots of unity; noise of a few operations is below 2^8 a coefficient.
    tolerance = parameters.ring_degree * 2.0**8 / parameters.scale

    def check(ciphertext: Any, expected: Any) -> None:
        ours = stock.values(ciphertext)
        assert np.abs(ours - expected).max() < tolerance
        assert np.array_equal(ours, encoder.decode(stock.reference.decrypt(ciphertext)))

    a = stock.encryptor.encrypt(encoder.encode(x, parameters.scale))
    b = stock.encryptor.encrypt(encoder.encode(y, parameters.scale))
    check(a, x)
    check(evaluator.add(a, b), x + y)
    z, w = evaluator.multiply(a, b), x * y
    evaluator.relinearize_inplace(z, stock.relin)
    evaluator.rescale_to_next_inplace(z)
    check(z, w)
    for step in STEPS:
        check(evaluator.rotate_vector(z, step, stock.galois), np.roll(w, -step))
    check(evaluator.complex_conjugate(z, stock.galois), w)
    for _ in range(products(parameters) - 1):
        evaluator.square_inplace(z)
        w = w * w
        evaluator.relinearize_inplace(z, stock.relin)
        evaluator.rescale_to_next_inplace(z)
        check(z, w)


@pytest.mark.parametrize("name", CKKS)
def test_ckks_fresh_noise_keeps_its_bound(name: str) -> None:
    """SEAL encrypts at the key level and divides by P: the remaining noise is rounding, with variance (1 + 2N/3) / 12 for a
    coefficient.

    |noise| < 7 sigma fails with probability below 2N · 1.3e-12.
    """
    stock = Stock(name)
    parameters = stock.parameters
    encoder = seal.CKKSEncoder(stock.context)
    plain = encoder.encode(np.random.default_rng(4).uniform(-1, 1, parameters.slots), parameters.scale)
    encoded = read_plaintext(parameters, plain.to_bytes())
    expected = _arith.intt(encoded.data, parameters.moduli(parameters.levels))
    ciphertext = stock.read(stock.encryptor.encrypt(plain))
    noise = ciphertext_noise(parameters, stock.dealer.secret, ciphertext, expected).astype(np.float64)
    n, special = parameters.ring_degree, parameters.special_prime
    sigma = np.sqrt((1 + 2 * n / 3) / 12 + 10.5 * (1 + 4 * n / 3) / float(special) ** 2)
    assert np.abs(noise).max() < 7 * sigma
    assert 0.5 < noise.std() / sigma < 1.5


@pytest.mark.parametrize("name", EXACT)
def test_bfv_and_bgv(name: str) -> None:
    stock = Stock(name)
    parameters, evaluator = stock.parameters, stock.evaluator
    t, n, half = parameters.plain_modulus, parameters.ring_degree, parameters.ring_degree // 2
    encoder = seal.BatchEncoder(stock.context)
    rng = np.random.default_rng(3)
    x, y = rng.integers(-(t // 2), t // 2 + 1, (2, n))

    def centred(values: Any) -> Any:
        return (values + t // 2) % t - t // 2

    def check(ciphertext: Any, expected: Any) -> None:
        ours = stock.values(ciphertext)
        assert np.array_equal(ours, centred(expected))
        assert np.array_equal(ours, encoder.decode(stock.reference.decrypt(ciphertext)))

    a, b = stock.encryptor.encrypt(encoder.encode(x)), stock.encryptor.encrypt(encoder.encode(y))
    check(a, x)
    check(evaluator.sub(a, b), x - y)
    check(evaluator.mod_switch_to(a, stock.context.last_parms_id()), x)
    z, w = evaluator.multiply(a, b), x * y % t
    evaluator.relinearize_inplace(z, stock.relin)
    check(z, w)
    for step in STEPS:
        rotated = np.concatenate([np.roll(w[:half], -step), np.roll(w[half:], -step)])
        check(evaluator.rotate_rows(z, step, stock.galois), rotated)
    check(evaluator.rotate_columns(z, stock.galois), np.concatenate([w[half:], w[:half]]))
    while stock.level(z) > 0:
        evaluator.mod_switch_to_next_inplace(z)
        check(z, w)


def test_bgv_correction_factors_change_without_primes_that_are_one_mod_t() -> None:
    stock = Stock("tiny-bgv")
    encoder = seal.BatchEncoder(stock.context)
    ciphertext = stock.encryptor.encrypt(encoder.encode(np.arange(100)))
    switched = stock.evaluator.mod_switch_to_next(ciphertext)
    assert stock.read(ciphertext).correction_factor == 1
    assert stock.read(switched).correction_factor > 1


def test_bgv_in_coefficient_form() -> None:
    """Files of SEAL 4.0: coefficient form, marked by the flag."""
    stock = Stock("tiny-bgv")
    parameters = stock.parameters
    values = np.arange(200) - 100
    ciphertext = stock.read(stock.encryptor.encrypt(seal.BatchEncoder(stock.context).encode(values)))
    moduli = parameters.moduli(ciphertext.level_primes)
    plain = Ciphertext(ciphertext.level_primes, _arith.intt(ciphertext.data, moduli), False, 1.0, 1)
    back = read_ciphertext(parameters, write_ciphertext(parameters, plain))
    assert not back.is_ntt
    assert np.array_equal(phase(parameters, stock.dealer.secret, back), phase(parameters, stock.dealer.secret, ciphertext))
    assert np.array_equal(decode(parameters, decrypt_reference(parameters, stock.dealer.secret, back))[:200], values)
    loaded = stock.context.from_cipher_str(write_ciphertext(parameters, plain))
    assert np.array_equal(stock.values(loaded)[:200], values)


def test_ckks_plaintext_with_fewer_primes_than_the_ciphertext() -> None:
    """A decryption may stop at the first primes that hold the phase."""
    stock = Stock("ckks-16384-bench")
    parameters = stock.parameters
    values = np.linspace(-1, 1, parameters.slots)
    encoded = seal.CKKSEncoder(stock.context).encode(values, parameters.scale)
    residues = phase(parameters, stock.dealer.secret, stock.read(stock.encryptor.encrypt(encoded)))
    for count in (1, 2, 3):
        result = decode(parameters, ckks_plaintext(parameters, residues[:count], parameters.scale))
        assert np.abs(result - values).max() < 1e-5
    ntt, scale = _arith.ntt(residues, parameters.moduli(parameters.levels)), parameters.scale
    assert ckks_plaintext(parameters, ntt, scale, is_ntt=True) == ckks_plaintext(parameters, residues, scale)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, T - 1), min_size=1, max_size=1024))
def test_integer_plaintext_round_trip(coefficients: list[int]) -> None:
    for name in ("tiny-bfv", "tiny-bgv"):
        parameters = dealer(name).parameters
        data = integer_plaintext(parameters, np.array(coefficients, dtype=np.uint64))
        plain = context(parameters).from_plain_str(data)
        back = read_plaintext(parameters, plain.to_bytes()).data
        padded = np.zeros(len(coefficients), dtype=np.uint64)
        padded[: back.size] = back
        assert padded.tolist() == coefficients


@settings(max_examples=50, deadline=None)
@given(st.integers(0, T - 1), st.integers(-(10**6), 10**6))
def test_message_of_phase_is_exact_integer_arithmetic(message: int, noise: int) -> None:
    parameters = dealer("tiny-bfv").parameters
    moduli = parameters.moduli(2)
    total = moduli[0] * moduli[1]
    value = (message * total // T + noise) % total
    residues = np.array([[value % q] * 1024 for q in moduli], dtype=np.uint64)
    assert set(message_of_phase(parameters, residues).tolist()) == {message}


@given(st.integers(0, T - 1), st.integers(1, T - 1))
def test_undo_correction(message: int, factor: int) -> None:
    data = np.array([message * factor % T], dtype=np.uint64)
    assert undo_correction(data, factor, T).tolist() == [message]


def test_plaintext_refusals() -> None:
    ckks, bfv = dealer("tiny-ckks").parameters, dealer("tiny-bfv").parameters
    words = np.zeros((2, 1024), dtype=np.uint64)
    with pytest.raises(FormError, match="use integer_plaintext"):
        ckks_plaintext(bfv, words, 1.0)
    with pytest.raises(FormError, match="use ckks_plaintext"):
        integer_plaintext(ckks, words[0])
    with pytest.raises(ShapeError):
        ckks_plaintext(ckks, np.zeros((4, 1024), dtype=np.uint64), 2.0**40)
    with pytest.raises(ShapeError):
        integer_plaintext(bfv, np.zeros(1025, dtype=np.uint64))
    with pytest.raises(CoefficientRangeError):
        ckks_plaintext(ckks, words + np.uint64(1 << 46), 2.0**40)
    with pytest.raises(CoefficientRangeError):
        integer_plaintext(bfv, words[0] + np.uint64(T))
