"""Keys for SEAL from the values that the quorum opened (c0 polynomials and public seeds), and checks of a key before it is used.

A key with noise e, secret s and public a (docs/pages/formats.md, SEAL's bytes) is c0 = -(a s + f e), f = t for BGV, else 1, in
NTT form modulo all K primes. Digit i of a key-switching key for w adds (P mod q_i) w to residue i of c0. Everything
here is public.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from keyquorum.model.errors import ParameterError

from . import _arith
from ._arith import Words
from .errors import (
    CoefficientRangeError,
    KeyFormatError,
    MissingDigitError,
    MissingKeyError,
    SeedError,
    ShapeError,
)
from .parameters import ParameterSet
from .seal_format import (
    PublicKey,
    SwitchKeys,
    read_public_key,
    read_switch_keys,
    write_public_key,
    write_switch_keys,
)
from .seeds import SEED_BYTES, expand_a

RELIN_INDEX = 0
"""Index of the key for s^2 in RelinKeys."""


def galois_element(step: int, ring_degree: int) -> int:
    """The Galois element of a rotation by ``step`` to the left: 3^step mod 2N; 0 is conjugation or column swap: 2N - 1.

    ``step``: in (-N/2, N/2). Raises ParameterError outside.
    """
    if step == 0:
        return 2 * ring_degree - 1
    half = ring_degree // 2
    if not -half < step < half:
        raise ParameterError(f"rotation by {step}: ring degree {ring_degree} has steps from {1 - half} to {half - 1}")
    return pow(3, step % half, 2 * ring_degree)


def galois_index(element: int, ring_degree: int) -> int:
    """Index of a Galois element in GaloisKeys: (element - 1) / 2. Raises ParameterError unless odd, in [3, 2N)."""
    if element % 2 == 0 or not 3 <= element < 2 * ring_degree:
        raise ParameterError(f"Galois element {element}: choose an odd number from 3 to {2 * ring_degree - 1}")
    return (element - 1) // 2


def galois_elements(steps: Iterable[int], ring_degree: int) -> tuple[int, ...]:
    """Elements of several steps, each once, in order."""
    return tuple(dict.fromkeys(galois_element(step, ring_degree) for step in steps))


def _checked(parameters: ParameterSet, seed: bytes, c0: Words, what: str) -> PublicKey:
    shape = (len(parameters.coeff_modulus), parameters.ring_degree)
    if len(seed) != SEED_BYTES:
        raise SeedError(f"{what}: the seed has {len(seed)} bytes, SEAL's have {SEED_BYTES}")
    if c0.shape != shape or c0.dtype != np.uint64:
        raise ShapeError(f"{what}: c0 is {c0.dtype} of shape {c0.shape}, expected uint64 of shape {shape}")
    at = _arith.first_out_of_range(c0, parameters.coeff_modulus)
    if at is not None:
        raise CoefficientRangeError(
            f"{what}: coefficient {at[-1]} modulo prime {at[-2]} is not below {parameters.coeff_modulus[at[-2]]}: "
            "reduce it before the key is assembled"
        )
    return PublicKey(parameters.coeff_modulus, c0, bytes(seed))


def assemble_public_key(parameters: ParameterSet, seed: bytes, c0: Words) -> bytes:
    """SEAL's bytes of a seeded public key. ``seed``: 64 bytes; ``c0``: [K, N] uint64, NTT form.

    Raises SeedError, ShapeError, CoefficientRangeError.
    """
    return write_public_key(parameters, _checked(parameters, seed, c0, "public key"))


def assemble_switch_keys(parameters: ParameterSet, groups: Mapping[int, Sequence[tuple[bytes, Words]]]) -> bytes:
    """SEAL's bytes of seeded key-switching keys.

    ``groups``: index to the L digits of that key, each (seed, c0 [K, N]). Index 0 alone makes RelinKeys; GaloisKeys
    have :func:`galois_index`.

    Raises MissingKeyError, MissingDigitError, SeedError, ShapeError, CoefficientRangeError.
    """
    if not groups:
        raise MissingKeyError("key-switching keys without any key: give at least one")
    if min(groups) < 0 or max(groups) >= parameters.ring_degree:
        raise ShapeError(f"key index {max(groups)}: choose 0 to {parameters.ring_degree - 1}")
    keys = {}
    for index, digits in groups.items():
        _check_digits(parameters, index, len(digits), "key-switching key")
        keys[index] = tuple(_checked(parameters, seed, c0, f"key-switching key {index}, digit {i}") for i, (seed, c0) in enumerate(digits))
    return write_switch_keys(parameters, SwitchKeys(max(groups) + 1, keys))


def assemble_relin_keys(parameters: ParameterSet, digits: Sequence[tuple[bytes, Words]]) -> bytes:
    """RelinKeys for s^2: see :func:`assemble_switch_keys`."""
    return assemble_switch_keys(parameters, {RELIN_INDEX: digits})


def assemble_galois_keys(parameters: ParameterSet, elements: Mapping[int, Sequence[tuple[bytes, Words]]]) -> bytes:
    """GaloisKeys by Galois element: see :func:`assemble_switch_keys`."""
    n = parameters.ring_degree
    return assemble_switch_keys(parameters, {galois_index(g, n): digits for g, digits in elements.items()})


def _check_digits(parameters: ParameterSet, index: int, count: int, what: str) -> None:
    if count != parameters.levels:
        raise MissingDigitError(f"{what} {index} has {count} digits, {parameters.name} needs {parameters.levels}: make it again")


def _check_seeds(keys: Iterable[PublicKey], what: str) -> None:
    seeds: set[bytes] = set()
    for key in keys:
        if key.seed is None:
            continue
        if key.seed in seeds:
            raise KeyFormatError(f"{what} uses one seed for two polynomials, which gives noise away: make it again")
        seeds.add(key.seed)


def validate_public_key(parameters: ParameterSet, data: bytes | memoryview) -> PublicKey:
    """Reads a public key and refuses what SEAL would refuse or misuse. Raises SealFormatError and its subclasses."""
    return read_public_key(parameters, data)


def validate_switch_keys(parameters: ParameterSet, data: bytes | memoryview, indices: Collection[int], what: str = "key-switching key") -> SwitchKeys:
    """Reads key-switching keys, which must be exactly those of ``indices``, each with all L digits, no seed used twice.

    Raises MissingKeyError, MissingDigitError, KeyFormatError, and the SealFormatErrors of reading.
    """
    keys = read_switch_keys(parameters, data, what)
    missing, extra = sorted(set(indices) - set(keys.groups)), sorted(set(keys.groups) - set(indices))
    if missing:
        raise MissingKeyError(f"{what} {missing[0]} is not in the file: make it, or do not ask for it")
    if extra:
        raise MissingKeyError(f"{what} {extra[0]} is in the file, but was not asked for: use the file of this key")
    for index, digits in keys.groups.items():
        _check_digits(parameters, index, len(digits), what)
    _check_seeds((digit for digits in keys.groups.values() for digit in digits), what)
    return keys


def validate_relin_keys(parameters: ParameterSet, data: bytes | memoryview) -> SwitchKeys:
    """RelinKeys with the one key for s^2: see :func:`validate_switch_keys`."""
    keys = validate_switch_keys(parameters, data, [RELIN_INDEX], "relinearisation key")
    if keys.outer != 1:
        raise MissingKeyError(f"relinearisation keys for {keys.outer} powers: only s^2 is supported")
    return keys


def validate_galois_keys(parameters: ParameterSet, data: bytes | memoryview, elements: Collection[int]) -> SwitchKeys:
    """GaloisKeys for exactly these elements: see :func:`validate_switch_keys`."""
    indices = [galois_index(g, parameters.ring_degree) for g in elements]
    return validate_switch_keys(parameters, data, indices, "Galois key")


def key_bytes(parameters: ParameterSet) -> tuple[int, int]:
    """Bytes of the coefficients of a public key, and of a switching key, 8 for each: a public key has two polynomials over all primes, a switching key two for
    every prime of a ciphertext. Files that are seeded have half as much."""
    primes = len(parameters.coeff_modulus)
    public = 2 * parameters.ring_degree * primes * 8
    return public, (primes - 1) * public


def key_digest(data: bytes | memoryview) -> str:
    """SHA-256 of a key file, hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def transcript_digest(parts: Iterable[bytes | memoryview]) -> bytes:
    """SHA-256 of a sequence of byte strings, each with its length, so that the digest depends on their borders."""
    total = hashlib.sha256()
    for part in parts:
        view = memoryview(part)
        total.update(view.nbytes.to_bytes(8, "little"))
        total.update(view)
    return total.digest()


__all__ = [
    "RELIN_INDEX",
    "SEED_BYTES",
    "assemble_galois_keys",
    "assemble_public_key",
    "assemble_relin_keys",
    "assemble_switch_keys",
    "expand_a",
    "galois_element",
    "galois_elements",
    "galois_index",
    "key_bytes",
    "key_digest",
    "transcript_digest",
    "validate_galois_keys",
    "validate_public_key",
    "validate_relin_keys",
    "validate_switch_keys",
]
