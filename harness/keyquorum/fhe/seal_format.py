"""SEAL's bytes: ciphertexts, public and key-switching keys, plaintexts, secret keys (docs/pages/formats.md, SEAL's bytes). One file, since all
objects share headers, metadata and arrays.

Readers get the parameter set, check all values that they use against it before they allocate memory, and raise only
SealFormatError and its subclasses. Files of SEAL 4 in compression modes none, zlib and zstd are read. Files are written in mode none,
which every build of SEAL reads.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from . import _arith
from ._arith import Ints, Words
from ._stream import HEADER_BYTES, PlainSource, Source, header, nested_header, open_object
from .errors import (
    CiphertextSizeError,
    CoefficientRangeError,
    CorrectionFactorError,
    FormError,
    KeyFormatError,
    LevelError,
    ScaleError,
    SeedError,
    ShapeError,
    TruncatedError,
    WrongParametersError,
)
from .parameters import ParameterSet
from .seeds import SEED_BYTES, expand_a

SHAKE256 = 2
"""SEAL's number of the SHAKE256 generator, the only one read and written here."""
ZERO_ID = bytes(32)
"""parms_id of plaintexts in coefficient form."""

_METADATA = struct.Struct("<32sBQQQdQ")
_SEEDED_HEADER_BYTES = HEADER_BYTES + 1 + SEED_BYTES
CIPHERTEXT_HEADERS = (0, HEADER_BYTES + _METADATA.size)
"""Places of the headers of an uncompressed ciphertext without a seed: its own, and that of its residues."""


def _check_range(data: Words, moduli: Sequence[int], what: str) -> None:
    at = _arith.first_out_of_range(data, moduli)
    if at is not None:
        raise CoefficientRangeError(
            f"{what}: coefficient {at[-1]} modulo prime {at[-2]} is not below {moduli[at[-2]]}: the file is damaged or of other parameters"
        )


def _dyn_array(data: Words) -> list[bytes | memoryview]:
    flat = np.ascontiguousarray(data, dtype="<u8").reshape(-1)
    return [header(HEADER_BYTES + 8 + flat.nbytes), struct.pack("<Q", flat.size), flat.data.cast("B")]


def _wrap(parts: Sequence[bytes | memoryview]) -> bytes:
    total = HEADER_BYTES + sum(len(part) for part in parts)
    return b"".join([header(total), *parts])


def _read_array(source: Source, counts: Sequence[int], what: str) -> Words:
    """A DynArray whose number of words is one of ``counts``."""
    total = nested_header(source, what)
    (count,) = struct.unpack("<Q", source.take(8))
    if count not in counts or total != HEADER_BYTES + 8 + 8 * count:
        expected = " or ".join(map(str, counts))
        raise ShapeError(f"{what} holds {count} coefficients, expected {expected}: it is damaged or of other parameters")
    return np.frombuffer(source.take(8 * count), dtype="<u8").astype(np.uint64)  # a copy: the bytes are not aligned


def _read_seed(source: Source, what: str) -> bytes:
    if nested_header(source, what) != _SEEDED_HEADER_BYTES:
        raise TruncatedError(f"{what}: the seed has a wrong length: fetch the file again")
    kind = source.take(1)[0]
    if kind != SHAKE256:
        raise SeedError(f"{what} is compressed with a seed of generator type {kind}: only type {SHAKE256} (SHAKE256) is read, save it unseeded")
    return bytes(source.take(SEED_BYTES))


@dataclass(frozen=True)
class _Metadata:
    """Fields before the coefficients of a ciphertext or public key."""

    primes: int
    is_ntt: bool
    size: int
    scale: float
    correction_factor: int


def _read_metadata(parameters: ParameterSet, source: Source, what: str) -> _Metadata:
    values = _METADATA.unpack(source.take(_METADATA.size))
    parms_id, is_ntt, size, degree, primes, scale, correction_factor = values
    level = parameters.primes_of(parms_id)
    if level is None:
        raise WrongParametersError(f"{what} is of other encryption parameters than {parameters.name}: use the parameter set that it was made with")
    if is_ntt > 1:
        raise ShapeError(f"{what}: the NTT flag is {is_ntt}, expected 0 or 1: the file is damaged")
    if degree != parameters.ring_degree or primes != level:
        raise ShapeError(
            f"{what} states ring degree {degree} and {primes} primes, its identifier says {parameters.ring_degree} and {level}: the file is damaged"
        )
    return _Metadata(level, bool(is_ntt), size, scale, correction_factor)


def _pack_metadata(parms_id: bytes, is_ntt: bool, size: int, n: int, primes: int, scale: float, correction: int) -> bytes:
    return _METADATA.pack(parms_id, is_ntt, size, n, primes, scale, correction)


# Ciphertexts


@dataclass(frozen=True)
class Ciphertext:
    """A two-part ciphertext.

    ``data``: [2, level_primes, N], residues; coefficients or, if ``is_ntt``, NTT form in SEAL's order.
    ``level_primes``: number of primes of the level. ``scale``: 1.0 for BFV and BGV. ``correction_factor``: in [1, t) for
    BGV, else 1.
    """

    level_primes: int
    data: Words = field(repr=False)
    is_ntt: bool
    scale: float
    correction_factor: int

    @property
    def size(self) -> int:
        """Number of parts, always 2."""
        return int(self.data.shape[0])


def _check_ciphertext_metadata(parameters: ParameterSet, meta: _Metadata, what: str) -> None:
    scheme = parameters.scheme
    if meta.primes > parameters.levels:
        raise LevelError(f"{what} is at the key level, where no ciphertext can be: encrypt with the public key")
    if meta.size != 2:
        cure = "relinearise first" if meta.size == 3 else "encrypt again"
        raise CiphertextSizeError(f"{what} has {meta.size} parts, decryption takes 2: {cure}")
    if meta.is_ntt != (scheme == "ckks") and scheme != "bgv":
        have, want = ("NTT", "coefficient") if meta.is_ntt else ("coefficient", "NTT")
        raise FormError(f"{what} is in {have} form, {scheme.upper()} has {want} form: transform it back before saving")
    if scheme == "ckks":
        if not (math.isfinite(meta.scale) and meta.scale >= np.finfo(np.float64).tiny):
            raise ScaleError(f"{what} has scale {meta.scale}, which is not positive and finite: encode again")
        bits = math.prod(parameters.moduli(meta.primes)).bit_length()
        if math.log2(meta.scale) >= bits:
            raise ScaleError(f"{what} has scale 2^{math.log2(meta.scale):.1f}, its level has {bits} bits: rescale earlier")
    elif meta.scale != 1.0:
        raise ScaleError(f"{what} has scale {meta.scale}, {scheme.upper()} has none (1.0): the file is damaged")
    highest = parameters.plain_modulus if scheme == "bgv" else 2
    if not 1 <= meta.correction_factor < highest:
        allowed = f"in [1, {highest})" if scheme == "bgv" else "1"
        raise CorrectionFactorError(f"{what} has correction factor {meta.correction_factor}, it must be {allowed}: the file is damaged")


def read_ciphertext(parameters: ParameterSet, data: bytes | memoryview, what: str = "ciphertext") -> Ciphertext:
    """A ciphertext of this parameter set, at any of its data levels.

    The parms_id is recomputed for each level and compared. Seeded (symmetrically encrypted) ciphertexts are expanded
    if their generator is SHAKE256. ``what`` is the subject of error messages. BGV ciphertexts of SEAL 4.0 are in
    coefficient form: see
    ``is_ntt``.

    Raises SealFormatError: WrongParametersError, LevelError (key level), CiphertextSizeError (size 3: relinearise
    first), CoefficientRangeError, FormError, ScaleError, CorrectionFactorError, SeedError, HeaderError,
    TruncatedError, ShapeError, DecompressionError.
    """
    source = open_object(data, what)
    meta = _read_metadata(parameters, source, what)
    _check_ciphertext_metadata(parameters, meta, what)
    moduli, n = parameters.moduli(meta.primes), parameters.ring_degree
    half = meta.primes * n
    words = _read_array(source, (2 * half, half), what)
    if words.size == half:
        seed = _read_seed(source, what)
        words = np.concatenate([words, expand_a(seed, n, moduli).reshape(-1)])
    source.finish()
    polynomials = words.reshape(2, meta.primes, n)
    _check_range(polynomials, moduli, what)
    return Ciphertext(meta.primes, polynomials, meta.is_ntt, meta.scale, meta.correction_factor)


def write_ciphertext(parameters: ParameterSet, ciphertext: Ciphertext) -> bytes:
    """SEAL's bytes of a ciphertext, uncompressed."""
    size, primes, n = ciphertext.data.shape
    metadata = _pack_metadata(parameters.parms_id(primes), ciphertext.is_ntt, size, n, primes, ciphertext.scale, ciphertext.correction_factor)
    return _wrap([metadata, *_dyn_array(ciphertext.data)])


# Keys


@dataclass(frozen=True)
class PublicKey:
    """A zero encryption (c0, a) at the key level, NTT form: the public key, or one digit of a key-switching key.

    ``c0``: [K, N]. ``seed``: the 64 bytes from which a is expanded, or None where the file has a itself.
    """

    moduli: tuple[int, ...]
    c0: Words = field(repr=False)
    seed: bytes | None
    stored_a: Words | None = field(default=None, repr=False)

    @cached_property
    def a(self) -> Words:
        """The public polynomial a, [K, N], expanded at its first use."""
        if self.stored_a is not None:
            return self.stored_a
        if self.seed is None:
            raise SeedError("a key has neither a seed nor its second polynomial: read it from a file")
        return expand_a(self.seed, self.c0.shape[-1], self.moduli)


@dataclass(frozen=True)
class SwitchKeys:
    """Key-switching keys. ``groups``: index to the L digits of that key. RelinKeys have index 0 (for s^2); GaloisKeys
    have index (element - 1) / 2. ``outer``: length of the outer vector in the file."""

    outer: int
    groups: Mapping[int, tuple[PublicKey, ...]] = field(repr=False)


def _read_public_key(parameters: ParameterSet, source: Source, what: str) -> PublicKey:
    meta = _read_metadata(parameters, source, what)
    count, n = len(parameters.coeff_modulus), parameters.ring_degree
    if meta.primes != count:
        raise WrongParametersError(f"{what} is at a level of {meta.primes} primes, keys have all {count}: make it at the key level")
    if meta.size != 2 or not meta.is_ntt or meta.scale != 1.0 or meta.correction_factor != 1:
        raise KeyFormatError(
            f"{what} has size {meta.size}, NTT flag {int(meta.is_ntt)}, scale {meta.scale} and correction factor "
            f"{meta.correction_factor}: a key has 2, 1, 1.0 and 1, fetch it again"
        )
    half = count * n
    words = _read_array(source, (2 * half, half), what)
    _check_range(words.reshape(-1, count, n), parameters.coeff_modulus, what)
    if words.size == half:
        return PublicKey(parameters.coeff_modulus, words.reshape(count, n), _read_seed(source, what))
    c0, a = words.reshape(2, count, n)
    return PublicKey(parameters.coeff_modulus, c0, None, a)


def read_public_key(parameters: ParameterSet, data: bytes | memoryview, what: str = "public key") -> PublicKey:
    """A public key of this parameter set, seeded or not. Raises SealFormatError."""
    source = open_object(data, what)
    key = _read_public_key(parameters, source, what)
    source.finish()
    return key


def _public_key_parts(parameters: ParameterSet, c0: Words, seed: bytes | None, a: Words | None) -> list[bytes | memoryview]:
    primes, n = c0.shape
    parts: list[bytes | memoryview] = [_pack_metadata(parameters.key_parms_id, True, 2, n, primes, 1.0, 1)]
    if seed is not None:
        parts += _dyn_array(c0)
        parts += [header(_SEEDED_HEADER_BYTES), bytes([SHAKE256]), seed]
    elif a is not None:
        parts += _dyn_array(np.stack([c0, a]))
    return [header(HEADER_BYTES + sum(len(part) for part in parts)), *parts]


def write_public_key(parameters: ParameterSet, key: PublicKey) -> bytes:
    """SEAL's bytes of a public key; seeded if it has a seed."""
    return b"".join(_public_key_parts(parameters, key.c0, key.seed, key.stored_a))


def read_switch_keys(parameters: ParameterSet, data: bytes | memoryview, what: str = "key-switching key") -> SwitchKeys:
    """RelinKeys or GaloisKeys of this parameter set. Raises SealFormatError. Keys with fewer than L digits are returned unchanged:
    :func:`keyquorum.fhe.keys.validate_switch_keys` refuses them."""
    source = open_object(data, what)
    parms_id = bytes(source.take(32))
    if parms_id != parameters.key_parms_id:
        raise WrongParametersError(f"{what} is not at the key level of {parameters.name}: use the parameter set that it was made with")
    (outer,) = struct.unpack("<Q", source.take(8))
    if outer > parameters.ring_degree:
        raise ShapeError(f"{what} states {outer} keys, there are at most {parameters.ring_degree}: the file is damaged")
    keys: dict[int, tuple[PublicKey, ...]] = {}
    for index in range(outer):
        (count,) = struct.unpack("<Q", source.take(8))
        if count > parameters.levels:
            raise ShapeError(f"{what} {index} states {count} digits, there are {parameters.levels}: the file is damaged")
        digits = []
        for digit in range(count):
            name = f"{what} {index}, digit {digit}"
            total = nested_header(source, name)
            sizes = _public_key_sizes(parameters)
            if total not in sizes:
                raise TruncatedError(f"{name} states {total} bytes, expected {sizes[0]} or {sizes[1]}: fetch the file again")
            inner = PlainSource(source.take(total - HEADER_BYTES), name)
            digits.append(_read_public_key(parameters, inner, name))
            inner.finish()
        if digits:
            keys[index] = tuple(digits)
    source.finish()
    return SwitchKeys(outer, keys)


def _public_key_sizes(parameters: ParameterSet) -> tuple[int, int]:
    polynomial = 8 * len(parameters.coeff_modulus) * parameters.ring_degree
    fixed = HEADER_BYTES + _METADATA.size + HEADER_BYTES + 8
    return fixed + 2 * polynomial, fixed + polynomial + _SEEDED_HEADER_BYTES


def write_switch_keys(parameters: ParameterSet, keys: SwitchKeys) -> bytes:
    """SEAL's bytes of key-switching keys; digits are seeded if they have a seed."""
    parts: list[bytes | memoryview] = [parameters.key_parms_id, struct.pack("<Q", keys.outer)]
    for index in range(keys.outer):
        digits = keys.groups.get(index, ())
        parts.append(struct.pack("<Q", len(digits)))
        for digit in digits:
            parts += _public_key_parts(parameters, digit.c0, digit.seed, digit.stored_a)
    return _wrap(parts)


# Plaintexts and secret keys


@dataclass(frozen=True)
class Plaintext:
    """``primes`` is None for coefficients modulo t ([count], BFV and BGV), else the level of NTT data [primes, N]
    (CKKS)."""

    primes: int | None
    data: Words = field(repr=False)
    scale: float


def write_plaintext(parameters: ParameterSet, plaintext: Plaintext) -> bytes:
    """SEAL's bytes of a plaintext."""
    parms_id = ZERO_ID if plaintext.primes is None else parameters.parms_id(plaintext.primes)
    fields = struct.pack("<32sQd", parms_id, plaintext.data.size, plaintext.scale)
    return _wrap([fields, *_dyn_array(plaintext.data)])


def _read_plaintext(parameters: ParameterSet, data: bytes | memoryview, what: str, most_primes: int) -> Plaintext:
    source = open_object(data, what)
    parms_id, count, scale = struct.unpack("<32sQd", source.take(48))
    n = parameters.ring_degree
    if parms_id == ZERO_ID:
        if parameters.scheme == "ckks" or count > n:
            raise ShapeError(f"{what} holds {count} plain coefficients, {parameters.name} cannot have that: it is of other parameters")
        words = _read_array(source, (count,), what)
        source.finish()
        _check_range(words.reshape(1, count), (parameters.plain_modulus,), what)
        return Plaintext(None, words, scale)
    primes = parameters.primes_of(parms_id)
    if primes is None or primes > most_primes:
        raise WrongParametersError(f"{what} is of other encryption parameters than {parameters.name}: use the set that it was made with")
    if count != primes * n:
        raise ShapeError(f"{what} holds {count} coefficients, its level has {primes * n}: the file is damaged")
    words = _read_array(source, (count,), what).reshape(primes, n)
    source.finish()
    _check_range(words, parameters.moduli(primes), what)
    return Plaintext(primes, words, scale)


def read_plaintext(parameters: ParameterSet, data: bytes | memoryview, what: str = "plaintext") -> Plaintext:
    """A plaintext of this parameter set. Raises SealFormatError."""
    plaintext = _read_plaintext(parameters, data, what, parameters.levels)
    if parameters.scheme == "ckks" and not (math.isfinite(plaintext.scale) and plaintext.scale > 0):
        raise ScaleError(f"{what} has scale {plaintext.scale}, which is not positive and finite: encode again")
    return plaintext


@dataclass(frozen=True)
class SecretKey:
    """NTT(s) modulo every prime, [K, N]. For tests and references only: no process of a quorum ever has it."""

    ntt: Words = field(repr=False)
    coefficients: Ints = field(repr=False)


def read_secret_key(parameters: ParameterSet, data: bytes | memoryview) -> SecretKey:
    """A secret key that SEAL's own KeyGenerator saved; for tests. Raises SealFormatError."""
    plaintext = _read_plaintext(parameters, data, "secret key", len(parameters.coeff_modulus))
    if plaintext.primes != len(parameters.coeff_modulus):
        raise WrongParametersError("secret key is not at the key level: save SEAL's SecretKey itself")
    q = parameters.coeff_modulus[0]
    coefficients = _arith.centred(_arith.intt(plaintext.data[:1], (q,))[0], q)
    if np.abs(coefficients).max() > 1:
        raise KeyFormatError("secret key is not ternary: save SEAL's SecretKey itself")
    return SecretKey(plaintext.data, coefficients)


def write_secret_key(parameters: ParameterSet, coefficients: Ints) -> bytes:
    """SEAL's bytes of a ternary secret [N]; for tests."""
    data = _arith.ntt(_arith.small(coefficients, parameters.coeff_modulus), parameters.coeff_modulus)
    return write_plaintext(parameters, Plaintext(len(parameters.coeff_modulus), data, 1.0))


__all__ = [
    "Ciphertext",
    "Plaintext",
    "PublicKey",
    "SecretKey",
    "SwitchKeys",
    "read_ciphertext",
    "read_plaintext",
    "read_public_key",
    "read_secret_key",
    "read_switch_keys",
    "write_ciphertext",
    "write_plaintext",
    "write_public_key",
    "write_secret_key",
    "write_switch_keys",
]
