"""The exact noise of a key, computed with the secret, for tests of key quality.

Noise of a ciphertext is the distance of its phase from the message; of a key, it is the polynomial e of
c0 = -(a s + f e) (+ (P mod q_i) w for digit i). It must be the same small integer modulo all primes.
"""

from __future__ import annotations

from math import prod

import numpy as np

from . import _arith
from ._arith import Ints, Objects, Words
from .decode import phase
from .errors import KeyNoiseError
from .keys import RELIN_INDEX, galois_index
from .parameters import ParameterSet
from .seal_format import Ciphertext, PublicKey, SecretKey, SwitchKeys

NOISE_MAX = 1 << 20
"""Key noise above this means that key and secret do not belong together."""


def zero_encryption_noise(parameters: ParameterSet, secret: SecretKey, key: PublicKey) -> Ints:
    """e [N] of the public key, centred. Raises KeyNoiseError if residues disagree or e is not small."""
    return _noise(parameters, secret, key, None, 0, "public key")


def relin_noise(parameters: ParameterSet, secret: SecretKey, keys: SwitchKeys) -> Ints:
    """e [L, N] of the key for s^2, centred. Raises KeyNoiseError."""
    squared = _arith.mul(secret.ntt, secret.ntt, parameters.coeff_modulus)
    return _switch_noise(parameters, secret, keys, RELIN_INDEX, squared, "relinearisation key")


def galois_noise(parameters: ParameterSet, secret: SecretKey, keys: SwitchKeys, element: int) -> Ints:
    """e [L, N] of the key for s(X^element), centred. Raises KeyNoiseError."""
    moduli = parameters.coeff_modulus
    rotated = _arith.ntt(_arith.automorphism(_arith.small(secret.coefficients, moduli), element, moduli), moduli)
    index = galois_index(element, parameters.ring_degree)
    return _switch_noise(parameters, secret, keys, index, rotated, f"Galois key of element {element}")


def _switch_noise(parameters: ParameterSet, secret: SecretKey, keys: SwitchKeys, index: int, target: Words, what: str) -> Ints:
    digits = keys.groups.get(index, ())
    if len(digits) != parameters.levels:
        raise KeyNoiseError(f"{what} has {len(digits)} digits, {parameters.levels} expected: make it again")
    return np.stack([_noise(parameters, secret, key, target, i, f"{what}, digit {i}") for i, key in enumerate(digits)])


def _noise(parameters: ParameterSet, secret: SecretKey, key: PublicKey, target: Words | None, digit: int, what: str) -> Ints:
    moduli = parameters.coeff_modulus
    total = _arith.add(key.c0, _arith.mul(key.a, secret.ntt, moduli), moduli)
    if target is not None:
        one = moduli[digit : digit + 1]
        gadget = _arith.scale(target[digit : digit + 1], parameters.special_prime, one)
        total[digit : digit + 1] = _arith.sub(total[digit : digit + 1], gadget, one)
    negated = _arith.intt(total, moduli)
    result: Ints | None = None
    for i, q in enumerate(moduli):
        inverse = pow(-parameters.noise_factor, -1, q)
        e = _arith.centred(_arith.scale(negated[i : i + 1], inverse, (q,))[0], q)
        if int(np.abs(e).max()) > NOISE_MAX:
            raise KeyNoiseError(f"{what}: noise modulo prime {i} is not small: the key is not of this secret")
        if result is not None and not np.array_equal(e, result):
            raise KeyNoiseError(f"{what}: the noise modulo primes 0 and {i} differs: the key was not made consistently")
        result = e if result is None else result
    if result is None:
        raise KeyNoiseError(f"{what} has no primes: give a key of a parameter set")
    return result


def ciphertext_noise(parameters: ParameterSet, secret: SecretKey, ciphertext: Ciphertext, expected: Words | None = None) -> Objects:
    """Noise of a ciphertext [N], Python integers.

    CKKS: phase - expected, where ``expected`` [level_primes, N] is the encoded message in coefficient form (0 if
    None). BFV: t·phase - Q·m, in units of 1/t (so a decryption is right while |noise| < Q/2); BGV: the centred phase
    itself.
    """
    moduli = parameters.moduli(ciphertext.level_primes)
    residues = phase(parameters, secret, ciphertext)
    if parameters.scheme == "ckks":
        return _arith.crt_centred(residues if expected is None else _arith.sub(residues, expected, moduli), moduli)
    centred, modulus = _arith.crt_centred(residues, moduli), prod(moduli)
    if parameters.scheme == "bgv":
        return centred
    scaled = centred * parameters.plain_modulus
    distance: Objects = (scaled + modulus // 2) % modulus - modulus // 2
    return distance


__all__ = ["NOISE_MAX", "ciphertext_noise", "galois_noise", "relin_noise", "zero_encryption_noise"]
