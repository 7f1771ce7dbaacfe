"""Estimates of the noise of a BFV or BGV ciphertext from the operations that made it, without the secret key.

BGV is in :mod:`.noise_bgv`. BFV: the deviation of v in the phase (Q/t) m + v, for a uniform ternary secret and SEAL's error; a decryption is right
while |v| < Q / (2t). Operands count as equal. v is a polynomial of the secret: that of a product has one power more, and the powers s^i have i! times
the variance that independent factors would have. tests/fhe/test_noise_bound.py compares the estimate with measured noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from keyquorum.model.plain import Json

from . import noise_bgv
from .noise_bgv import BgvNoise
from .parameters import ParameterSet

ERROR_VARIANCE = 10.5
"""Largest variance of the error of keys, over both distributions."""
DEVIATIONS = 6.0
"""Bound on the largest coefficient, in standard deviations."""


@dataclass(frozen=True)
class NoiseEstimate:
    """``log2``: log2 of the standard deviation of v; ``primes``: primes of the ciphertext's level; ``power``: largest power of the secret in v."""

    log2: float
    primes: int
    power: int = 1

    @property
    def variance(self) -> float:
        """The variance of v, at most 2^1000: more than any modulus allows."""
        return math.pow(4.0, min(self.log2, 500.0))


def _of(variance: float, primes: int, power: int) -> NoiseEstimate:
    return NoiseEstimate(math.log2(variance) / 2, primes, power)


def _rounding(parameters: ParameterSet) -> float:
    """Variance of r0 + r1 s for roundings r, which every division by primes adds."""
    return (1 + 2 * parameters.ring_degree / 3) / 12


def fresh(parameters: ParameterSet) -> NoiseEstimate | BgvNoise | None:
    """The estimate of an encryption by SEAL, which encrypts with the special prime and divides by it, so that roundings remain. None for CKKS."""
    if parameters.scheme == "bgv":
        return noise_bgv.fresh(parameters)
    return _of(_rounding(parameters) + 1 / 12, parameters.levels, 1) if parameters.scheme == "bfv" else None


def _switched(parameters: ParameterSet, noise: NoiseEstimate, primes: int) -> NoiseEstimate:
    if primes >= noise.primes:
        return noise
    dropped = math.log2(math.prod(parameters.coeff_modulus[primes : noise.primes]))
    scaled = NoiseEstimate(noise.log2 - dropped, primes).variance
    return _of(scaled + _rounding(parameters), primes, noise.power)


def _key_switching(parameters: ParameterSet, primes: int) -> float:
    """Variance that a relinearisation or rotation adds: each digit, uniform from 0 to its prime, times an error of the key, over the special
    prime."""
    n, special = parameters.ring_degree, float(parameters.special_prime)
    digits = sum((q / special) ** 2 / 3 for q in parameters.moduli(primes))
    return n * ERROR_VARIANCE * digits + _rounding(parameters)


def _product(parameters: ParameterSet, x: NoiseEstimate, y: NoiseEstimate) -> float:
    """Variance of a product: t (k v' + k' v) with the quotients k of the phases by Q, m v' + m' v, and the roundings of the three parts, the last
    times s^2."""
    n, t = parameters.ring_degree, float(parameters.plain_modulus)
    equal, power = 2, max(x.power, y.power) + 1
    rounding = _rounding(parameters) + n * n * 4 / 9 / 12
    return equal * power * n * t * t * (_rounding(parameters) + 1 / 12) * (x.variance + y.variance) + rounding


def after(
    parameters: ParameterSet, operation: str, inputs: Sequence[NoiseEstimate | BgvNoise], primes: int, switches: int = 1
) -> NoiseEstimate | BgvNoise:
    """The estimate of the result of one of :data:`keyquorum.fhe.seal.OPERATIONS`, at a level of ``primes``. ``switches``: key switches of a
    rotation."""
    of_bgv = [noise for noise in inputs if isinstance(noise, BgvNoise)]
    if of_bgv:
        return noise_bgv.after(parameters, operation, of_bgv, primes, switches)
    return _after_bfv(parameters, operation, [noise for noise in inputs if isinstance(noise, NoiseEstimate)], primes, switches)


def _after_bfv(parameters: ParameterSet, operation: str, inputs: Sequence[NoiseEstimate], primes: int, switches: int) -> NoiseEstimate:
    known = [_switched(parameters, noise, primes) for noise in inputs]
    power = max(noise.power for noise in known)
    if operation in ("add", "subtract"):
        return _of(sum(math.sqrt(noise.variance) for noise in known) ** 2, primes, power)
    if operation in ("multiply", "square"):
        return _of(_product(parameters, known[0], known[-1]) + _key_switching(parameters, primes), primes, power + 1)
    if operation in ("rotate", "swap"):
        return _of(known[0].variance + switches * _key_switching(parameters, primes), primes, power)
    return known[0]


def final_budget(parameters: ParameterSet, noise: NoiseEstimate | BgvNoise) -> float:
    """Bits by which the noise may still grow, now and at the last level, where ciphertexts are decrypted jointly; below 0 a decryption may be
    wrong."""
    if isinstance(noise, BgvNoise):
        return noise_bgv.final_budget(parameters, noise)
    found = []
    for level in (noise, _switched(parameters, noise, 1)):
        largest = math.log2(math.prod(parameters.moduli(level.primes))) - 1 - math.log2(parameters.plain_modulus)
        found.append(largest - math.log2(DEVIATIONS) - level.log2)
    return min(found)


def to_json(noise: NoiseEstimate | BgvNoise) -> list[float | int] | Json:
    """See :func:`from_json`."""
    if isinstance(noise, BgvNoise):
        return noise_bgv.to_json(noise)
    return [round(noise.log2, 3), noise.primes, noise.power]


def from_json(parameters: ParameterSet, data: object) -> NoiseEstimate | BgvNoise | None:
    """Inverse of :func:`to_json`; None for data that are no estimate of a ciphertext of this set."""
    if parameters.scheme == "bgv":
        return noise_bgv.from_json(parameters, data)
    if parameters.scheme != "bfv" or not isinstance(data, list) or len(data) != 3:
        return None
    log2, primes, power = data
    if type(log2) not in (int, float) or type(primes) is not int or type(power) is not int:
        return None
    if not (0 <= log2 < 1e6 and 1 <= primes <= parameters.levels and 1 <= power < 1 << 20):
        return None
    return NoiseEstimate(float(log2), primes, power)
