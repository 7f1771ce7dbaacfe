"""From phases to SEAL plaintexts, and decryption in clear text as a reference (docs/pages/formats.md, SEAL's bytes).

The phase of a ciphertext is c0 + c1 s. CKKS: it is the plaintext. BFV: m = round(t phase / Q) mod t. BGV:
m = (centred phase mod t) / correction_factor mod t.
"""

from __future__ import annotations

from math import prod

import numpy as np

from . import _arith
from ._arith import Words
from .errors import CoefficientRangeError, FormError, ShapeError
from .parameters import ParameterSet
from .seal_format import Ciphertext, Plaintext, SecretKey, write_plaintext


def ckks_plaintext(parameters: ParameterSet, residues: Words, scale: float, is_ntt: bool = False) -> bytes:
    """SEAL's bytes of the CKKS plaintext with this phase; SEAL's CKKSEncoder decodes them.

    ``residues``: [k, N] uint64, modulo the first k primes, coefficients, or NTT form if ``is_ntt``. k may be smaller
    than the ciphertext's level if the phase fits: the plaintext is then at the level of k primes.

    Raises FormError (not a CKKS set), ShapeError, CoefficientRangeError.
    """
    if parameters.scheme != "ckks":
        raise FormError(f"{parameters.name} is a {parameters.scheme.upper()} set: its plaintexts are integers, use integer_plaintext")
    if residues.ndim != 2 or residues.shape[1] != parameters.ring_degree or not 1 <= residues.shape[0] <= parameters.levels:
        raise ShapeError(f"phase of shape {residues.shape}: expected [1 to {parameters.levels}, {parameters.ring_degree}]")
    count = residues.shape[0]
    moduli = parameters.moduli(count)
    if _arith.first_out_of_range(residues, moduli) is not None:
        raise CoefficientRangeError("a residue of the phase is not below its prime: reduce it first")
    data = residues if is_ntt else _arith.ntt(residues, moduli)
    return write_plaintext(parameters, Plaintext(count, data, scale))


def integer_plaintext(parameters: ParameterSet, coefficients: Words) -> bytes:
    """SEAL's bytes of the BFV or BGV plaintext with these coefficients, [at most N] uint64, each below t.

    Raises FormError (a CKKS set), ShapeError, CoefficientRangeError.
    """
    if parameters.scheme == "ckks":
        raise FormError(f"{parameters.name} is a CKKS set: its plaintexts are phases, use ckks_plaintext")
    if coefficients.ndim != 1 or not 1 <= coefficients.size <= parameters.ring_degree:
        raise ShapeError(f"coefficients of shape {coefficients.shape}: expected 1 to {parameters.ring_degree} of them")
    if int(coefficients.max()) >= parameters.plain_modulus:
        raise CoefficientRangeError(f"a coefficient is not below the plain modulus {parameters.plain_modulus}: reduce it first")
    used = np.flatnonzero(coefficients)
    length = int(used[-1]) + 1 if used.size else 1
    return write_plaintext(parameters, Plaintext(None, coefficients[:length], 1.0))


def undo_correction(coefficients: Words, correction_factor: int, plain_modulus: int) -> Words:
    """m = coefficients / correction_factor mod t, for BGV. [count], each below t."""
    inverse = pow(correction_factor, -1, plain_modulus)
    result: Words = _arith.scale(coefficients[np.newaxis], inverse, (plain_modulus,))[0]
    return result


def phase(parameters: ParameterSet, secret: SecretKey, ciphertext: Ciphertext) -> Words:
    """c0 + c1 s in clear text: coefficients, [level_primes, N]. For tests."""
    moduli = parameters.moduli(ciphertext.level_primes)
    c0, c1 = ciphertext.data
    if not ciphertext.is_ntt:
        c1 = _arith.ntt(c1, moduli)
    product = _arith.mul(c1, secret.ntt[: ciphertext.level_primes], moduli)
    if ciphertext.is_ntt:
        return _arith.intt(_arith.add(c0, product, moduli), moduli)
    return _arith.add(c0, _arith.intt(product, moduli), moduli)


def message_of_phase(parameters: ParameterSet, residues: Words, correction_factor: int = 1) -> Words:
    """The coefficients [N] mod t of a BFV or BGV phase [k, N] (coefficients), by exact integer arithmetic. For
    tests."""
    moduli, t = parameters.moduli(residues.shape[0]), parameters.plain_modulus
    centred, modulus = _arith.crt_centred(residues, moduli), prod(moduli)
    if parameters.scheme == "bfv":
        rounded: Words = (((2 * t * centred + modulus) // (2 * modulus)) % t).astype(np.uint64)
        return rounded
    return undo_correction((centred % t).astype(np.uint64), correction_factor, t)


def decrypt_reference(parameters: ParameterSet, secret: SecretKey, ciphertext: Ciphertext) -> bytes:
    """SEAL's bytes of the plaintext, decrypted in clear text with the secret. For tests."""
    residues = phase(parameters, secret, ciphertext)
    if parameters.scheme == "ckks":
        return ckks_plaintext(parameters, residues, ciphertext.scale)
    return integer_plaintext(parameters, message_of_phase(parameters, residues, ciphertext.correction_factor))


__all__ = ["ckks_plaintext", "decrypt_reference", "integer_plaintext", "message_of_phase", "phase", "undo_correction"]
