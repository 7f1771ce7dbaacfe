"""The noise that is estimated from operations, compared with the noise that is measured with a dealer's secret key."""

from __future__ import annotations

import math

import numpy as np
import pytest
from keyquorum.fhe import seal
from keyquorum.fhe.noise import ciphertext_noise
from keyquorum.fhe.noise_bound import NoiseEstimate, after, final_budget, fresh, from_json, to_json
from keyquorum.fhe.seal_format import read_ciphertext

from .dealer import Dealer, dealer


def measured(d: Dealer, data: bytes) -> float:
    """log2 of the root mean square of v."""
    v = np.array(ciphertext_noise(d.parameters, d.secret, read_ciphertext(d.parameters, data)), dtype=np.float64)
    return math.log2(math.sqrt(float(np.mean(v * v))) / d.parameters.plain_modulus)


@pytest.mark.parametrize(
    "operations",
    [
        ["rotate", "subtract", "multiply", "next-level", "square", "add", "last-level"],
        ["square", "rotate", "square", "last-level"],
        ["next-level", "multiply", "add", "add", "swap"],
    ],
)
def test_estimates_beside_measured_noise(operations: list[str]) -> None:
    """After every operation, on equal and on independent operands: at most a quarter of a bit below the measured noise, and at most three bits
    above."""
    d = dealer("bfv-8192")
    parameters, t = d.parameters, d.parameters.plain_modulus
    public, relin, galois = d.public_key(), d.relin_keys(), d.galois_keys([3, 2 * parameters.ring_degree - 1])
    rng = np.random.default_rng(7)
    data, other = (seal.encrypt(parameters, public, rng.integers(-(t // 2), t // 2, parameters.slots)) for _ in range(2))
    first = fresh(parameters)
    assert first is not None
    estimates, pair = [first, first], [data, other]
    for operation in operations:
        two = operation in ("add", "subtract", "multiply")
        results = []
        for i in range(2):
            operands = [pair[i], pair[1 - i]] if two else [pair[i]]
            results.append(seal.evaluate(parameters, operation, operands, relin, galois, 1))
        primes = read_ciphertext(parameters, results[0]).level_primes
        estimate = after(parameters, operation, estimates if two else estimates[:1], primes)
        estimates, pair = [estimate, estimate], results
        for result in results:
            assert -0.25 < estimate.log2 - measured(d, result) < 3, operation


def test_exhausted_is_found() -> None:
    """Squares until the plaintext is wrong: the estimate falls below 0 no later than that, and at most one square before."""
    d = dealer("bfv-8192")
    parameters = d.parameters
    public, relin = d.public_key(), d.relin_keys()
    data, wrong, refused = seal.encrypt(parameters, public, np.full(parameters.slots, 2)), 0, 0
    noise = fresh(parameters)
    assert noise is not None and final_budget(parameters, noise) > 10
    for i in range(1, 9):
        data = seal.evaluate(parameters, "square", [data], relin)
        found = read_ciphertext(parameters, data)
        noise = after(parameters, "square", [noise], found.level_primes)
        largest = max(abs(int(v)) for v in ciphertext_noise(parameters, d.secret, found)) / math.prod(parameters.moduli(found.level_primes))
        wrong = wrong or (i if largest > 0.45 else 0)
        refused = refused or (i if final_budget(parameters, noise) < 0 else 0)
    assert 0 < refused <= wrong <= refused + 1


def test_what_a_receipt_may_say() -> None:
    """An estimate is read back; other data give None. Noise beyond the range of floats is accepted. CKKS has no such estimate; BGV has another
    one."""
    parameters = dealer("bfv-8192").parameters
    noise = NoiseEstimate(31.25, 2, 3)
    assert from_json(parameters, to_json(noise)) == noise
    for data in (None, {}, [1.0], [1.0, 0, 1], [1.0, 99, 1], [True, 1, 1], [-1.0, 1, 1], [1.0, 1, 1 << 40], ["1", 1, 1], [1.0, 1.0, 1]):
        assert from_json(parameters, data) is None
    huge = NoiseEstimate(600.0, parameters.levels)
    assert final_budget(parameters, after(parameters, "square", [huge], parameters.levels)) < 0
    assert fresh(dealer("ckks-8192-demo").parameters) is None
    for name in ("bgv-8192", "ckks-8192-demo"):
        assert from_json(dealer(name).parameters, to_json(noise)) is None
