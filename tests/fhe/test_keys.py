"""Assembling and validating keys: agreement with SEAL, and every refusal."""

from __future__ import annotations

import hashlib
import struct
from typing import Any

import numpy as np
import pytest
import seal
from hypothesis import example, given, settings
from hypothesis import strategies as st
from keyquorum.fhe import _arith
from keyquorum.fhe.errors import (
    CoefficientRangeError,
    KeyFormatError,
    MissingDigitError,
    MissingKeyError,
    SealFormatError,
    SeedError,
    ShapeError,
    TruncatedError,
    WrongParametersError,
)
from keyquorum.fhe.keys import (
    assemble_galois_keys,
    assemble_public_key,
    assemble_relin_keys,
    assemble_switch_keys,
    expand_a,
    galois_element,
    galois_elements,
    galois_index,
    key_digest,
    transcript_digest,
    validate_galois_keys,
    validate_public_key,
    validate_relin_keys,
    validate_switch_keys,
)
from keyquorum.fhe.seal import context
from keyquorum.fhe.seal_format import (
    PublicKey,
    SwitchKeys,
    read_public_key,
    read_switch_keys,
    write_public_key,
    write_switch_keys,
)
from keyquorum.model.errors import KeyFileError, ParameterError

from .dealer import as_written, dealer, find_primes, keys

NAME = "tiny-bfv"
PARAMETERS = dealer(NAME).parameters
N = PARAMETERS.ring_degree
K = len(PARAMETERS.coeff_modulus)
SEED = hashlib.sha512(b"test").digest()
C0 = np.zeros((K, N), dtype=np.uint64)
HEADER, METADATA = 16, 73


@pytest.mark.parametrize("name", ["tiny-ckks", "tiny-bgv", "bfv-4096", "ckks-8192"])
def test_seal_expands_seeds_to_the_same_polynomials(name: str) -> None:
    parameters = dealer(name).parameters
    ctx = context(parameters)
    public, relin, galois = keys(name)
    loaded = read_public_key(parameters, ctx.from_public_str(public).to_string())
    ours = read_public_key(parameters, public)
    assert loaded.seed is None
    assert ours.seed is not None
    assert np.array_equal(loaded.c0, ours.c0)
    assert np.array_equal(loaded.a, ours.a)
    for data, load in ((relin, ctx.from_relin_str), (galois, ctx.from_galois_str)):
        mine, theirs = read_switch_keys(parameters, data), read_switch_keys(parameters, load(data).to_string())
        assert mine.groups.keys() == theirs.groups.keys()
        for index, digits in mine.groups.items():
            for a, b in zip(digits, theirs.groups[index], strict=True):
                assert np.array_equal(a.c0, b.c0)
                assert np.array_equal(a.a, b.a)


@settings(max_examples=20, deadline=None)
@given(st.binary(min_size=64, max_size=64))
def test_expansion_is_bit_equal_to_seal(seed: bytes) -> None:
    ctx = context(PARAMETERS)
    data = assemble_public_key(PARAMETERS, seed, C0)
    theirs = read_public_key(PARAMETERS, ctx.from_public_str(data).to_string())
    assert np.array_equal(theirs.a, expand_a(seed, N, PARAMETERS.coeff_modulus))


def test_expansion_replaces_words_that_would_be_biased() -> None:
    """A 63-bit modulus rejects almost half of all words: the replacements are read in order from the stream."""
    moduli = ((1 << 62) + (1 << 61) + 3, (1 << 63) - 25)
    result = expand_a(SEED, 1024, moduli)
    stream = b"".join(hashlib.shake_256(SEED + struct.pack("<Q", i)).digest(4096) for i in range(64))
    words = [w for (w,) in struct.iter_unpack("<Q", stream)]
    spare = iter(words[2048:])
    for row, q in enumerate(moduli):
        limit = (2**64 - 1) - (2**64 - 1) % q - 1
        for k in range(1024):
            value = words[row * 1024 + k]
            while value >= limit:
                value = next(spare)
            assert int(result[row, k]) == value % q


def test_expansion_refuses_short_seeds() -> None:
    with pytest.raises(SeedError, match="63 bytes"):
        expand_a(SEED[:63], N, PARAMETERS.coeff_modulus)


@given(st.sampled_from([1024, 4096, 32768]), st.data())
def test_galois_elements(n: int, data: Any) -> None:
    step = data.draw(st.integers(1 - n // 2, n // 2 - 1))
    g = galois_element(step, n)
    assert g % 2 == 1
    assert 0 < g < 2 * n
    if step:
        assert g * galois_element(-step, n) % (2 * n) == 1
        assert seal.GaloisKeys.get_index(g) == galois_index(g, n)
    else:
        assert g == 2 * n - 1


def test_galois_elements_of_seal() -> None:
    generator, galois = seal.KeyGenerator(context(PARAMETERS)), seal.GaloisKeys()
    steps = (1, -1, 2, -3, 511, 0)
    generator.create_galois_keys(list(steps), galois)
    assert all(galois.has_key(g) for g in galois_elements(steps, N))
    theirs = read_switch_keys(PARAMETERS, galois.to_string())
    assert set(theirs.groups) == {galois_index(g, N) for g in galois_elements(steps, N)}


def test_galois_refusals() -> None:
    for step in (512, -512, 10**9):
        with pytest.raises(ParameterError, match="steps from -511 to 511"):
            galois_element(step, N)
    for g in (1, 4, 2048, 2049, -3):
        with pytest.raises(ParameterError, match="odd number from 3 to 2047"):
            galois_index(g, N)


def test_keys_are_validated() -> None:
    public, relin, galois = keys(NAME)
    elements = galois_elements((1, -3, 0), N)
    assert validate_public_key(PARAMETERS, public).seed
    assert set(validate_relin_keys(PARAMETERS, relin).groups) == {0}
    assert set(validate_galois_keys(PARAMETERS, galois, elements).groups) == {(g - 1) // 2 for g in elements}
    assert set(validate_switch_keys(PARAMETERS, relin, [0]).groups) == {0}


def test_keys_of_seal_are_validated() -> None:
    generator = seal.KeyGenerator(context(PARAMETERS))
    validate_public_key(PARAMETERS, generator.create_public_key().to_string())
    validate_relin_keys(PARAMETERS, generator.create_relin_keys().to_string())


def test_unseeded_keys_round_trip() -> None:
    ctx = context(PARAMETERS)
    theirs = as_written(ctx.from_relin_str(keys(NAME)[1]).to_string())
    assert write_switch_keys(PARAMETERS, read_switch_keys(PARAMETERS, theirs)) == theirs
    public = as_written(ctx.from_public_str(keys(NAME)[0]).to_string())
    assert write_public_key(PARAMETERS, read_public_key(PARAMETERS, public)) == public


@pytest.mark.parametrize(
    ("seed", "c0", "error"),
    [
        (SEED[:-1], C0, SeedError),
        (SEED, C0[:-1], ShapeError),
        (SEED, C0[:, :-1], ShapeError),
        (SEED, C0.astype(np.int64), ShapeError),
        (SEED, C0 + np.uint64(PARAMETERS.coeff_modulus[0]), CoefficientRangeError),
    ],
)
def test_assembly_refusals(seed: bytes, c0: Any, error: type[SealFormatError]) -> None:
    with pytest.raises(error):
        assemble_public_key(PARAMETERS, seed, c0)
    with pytest.raises(error):
        assemble_relin_keys(PARAMETERS, [(seed, c0)] * PARAMETERS.levels)


def test_assembly_of_groups_refusals() -> None:
    with pytest.raises(MissingDigitError, match="has 2 digits, tiny-bfv needs 3"):
        assemble_relin_keys(PARAMETERS, [(SEED, C0)] * 2)
    with pytest.raises(MissingKeyError):
        assemble_switch_keys(PARAMETERS, {})
    with pytest.raises(ShapeError):
        assemble_switch_keys(PARAMETERS, {N: [(SEED, C0)] * 3})
    with pytest.raises(ParameterError):
        assemble_galois_keys(PARAMETERS, {2: [(SEED, C0)] * 3})


def digits_of(count: int, start: int = 0) -> tuple[PublicKey, ...]:
    seeds = [hashlib.sha512(bytes([start + i])).digest() for i in range(count)]
    return tuple(PublicKey(PARAMETERS.coeff_modulus, C0, seed) for seed in seeds)


def test_a_missing_digit_is_refused_though_seal_loads_it() -> None:
    data = write_switch_keys(PARAMETERS, SwitchKeys(1, {0: digits_of(2)}))
    with pytest.raises(MissingDigitError, match="has 2 digits, tiny-bfv needs 3"):
        validate_relin_keys(PARAMETERS, data)
    assert issubclass(MissingDigitError, KeyFileError)


def test_missing_and_foreign_keys_are_refused() -> None:
    data = write_switch_keys(PARAMETERS, SwitchKeys(5, {1: digits_of(3), 4: digits_of(3, 3)}))
    with pytest.raises(MissingKeyError, match="Galois key 2 is not in the file"):
        validate_galois_keys(PARAMETERS, data, [3, 5, 9])
    with pytest.raises(MissingKeyError, match="Galois key 4 is in the file"):
        validate_galois_keys(PARAMETERS, data, [3])
    longer = write_switch_keys(PARAMETERS, SwitchKeys(2, {0: digits_of(3)}))
    with pytest.raises(MissingKeyError, match="2 powers"):
        validate_relin_keys(PARAMETERS, longer)


def test_a_seed_used_twice_is_refused() -> None:
    data = assemble_relin_keys(PARAMETERS, [(SEED, C0)] * 3)
    with pytest.raises(KeyFormatError, match="one seed for two polynomials"):
        validate_relin_keys(PARAMETERS, data)


def test_other_parameters_and_levels_are_refused() -> None:
    other = dealer("tiny-bgv").parameters
    for read, data in ((validate_public_key, keys(NAME)[0]), (validate_relin_keys, keys(NAME)[1])):
        with pytest.raises(WrongParametersError):
            read(other, data)
    public = bytearray(keys(NAME)[0])
    public[HEADER : HEADER + 32] = PARAMETERS.parms_id(PARAMETERS.levels)
    public[HEADER + 49 : HEADER + 57] = struct.pack("<Q", PARAMETERS.levels)
    with pytest.raises(WrongParametersError, match="level of 3 primes"):
        validate_public_key(PARAMETERS, bytes(public))
    relin = bytearray(keys(NAME)[1])
    relin[HEADER : HEADER + 32] = PARAMETERS.parms_id(PARAMETERS.levels)
    with pytest.raises(WrongParametersError, match="not at the key level"):
        validate_relin_keys(PARAMETERS, bytes(relin))


def test_coefficients_out_of_range_are_refused() -> None:
    for which, validate in ((0, validate_public_key), (1, validate_relin_keys)):
        data = bytearray(keys(NAME)[which])
        data[-200:-192] = b"\xff" * 8
        with pytest.raises(CoefficientRangeError, match="is not below"):
            validate(PARAMETERS, bytes(data))


def test_other_generators_are_refused() -> None:
    for kind in (0, 1, 3, 255):
        data = bytearray(keys(NAME)[0])
        data[-65] = kind
        with pytest.raises(SeedError, match=f"type {kind}:"):
            validate_public_key(PARAMETERS, bytes(data))


@pytest.mark.parametrize(
    ("offset", "value"),
    [(32, b"\0"), (33, struct.pack("<Q", 3)), (57, struct.pack("<d", 2.0)), (65, struct.pack("<Q", 2))],
    ids=["coefficient form", "size 3", "scale", "correction factor"],
)
def test_metadata_of_keys(offset: int, value: bytes) -> None:
    data = bytearray(keys(NAME)[0])
    data[HEADER + offset : HEADER + offset + len(value)] = value
    with pytest.raises(KeyFormatError, match=r"a key has 2, 1, 1\.0 and 1"):
        validate_public_key(PARAMETERS, bytes(data))


def test_lengths_of_keys() -> None:
    public, relin, _ = keys(NAME)
    for data, validate in ((public, validate_public_key), (relin, validate_relin_keys)):
        for damaged in (data[:-1], data + b"\0", data[:15], b"", data[: len(data) // 2]):
            with pytest.raises(TruncatedError):
                validate(PARAMETERS, damaged)
    for at, value, error in (
        (HEADER + 32, N + 1, ShapeError),
        (HEADER + 40, 4, ShapeError),
        (HEADER + 48 + 8, 10**9, TruncatedError),
    ):
        damaged_keys = bytearray(relin)
        damaged_keys[at : at + 8] = struct.pack("<Q", value)
        with pytest.raises(error):
            validate_relin_keys(PARAMETERS, bytes(damaged_keys))


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 1), st.integers(0, 8 * 1000), st.booleans())
@example(1, 8 * (HEADER + 32), True)
def test_flipped_bits_in_keys_raise_nothing_else(which: int, bit: int, from_the_end: bool) -> None:
    data = bytearray(keys(NAME)[which])
    byte = bit // 8
    data[-1 - byte if from_the_end else byte] ^= 1 << bit % 8
    try:
        (validate_public_key, validate_relin_keys)[which](PARAMETERS, bytes(data))
    except SealFormatError as error:
        assert "\n" not in str(error)


def test_digests() -> None:
    assert key_digest(b"") == hashlib.sha256(b"").hexdigest()
    assert transcript_digest([b"a", b"bc"]) != transcript_digest([b"ab", b"c"])
    assert transcript_digest([C0.data.cast("B")]) == transcript_digest([C0.tobytes()])


def test_arithmetic_agrees_with_python() -> None:
    moduli = tuple(find_primes(1024, 60, 1) + find_primes(1024, 30, 1))
    rng = np.random.default_rng(0)
    a, b = (np.stack([rng.integers(0, q, 1024, dtype=np.uint64) for q in moduli]) for _ in range(2))
    for i, q in enumerate(moduli):
        x, y = [int(v) for v in a[i]], [int(v) for v in b[i]]
        assert _arith.mul(a, b, moduli)[i].tolist() == [u * v % q for u, v in zip(x, y, strict=True)]
        assert _arith.sub(a, b, moduli)[i].tolist() == [(u - v) % q for u, v in zip(x, y, strict=True)]
    assert np.array_equal(_arith.intt(_arith.ntt(a, moduli), moduli), a)
    total = moduli[0] * moduli[1]
    values = _arith.crt_centred(a, moduli)
    assert all(-total < 2 * int(v) <= total for v in values)
    assert all(int(v) % q == int(r) for q, row in zip(moduli, a, strict=True) for v, r in zip(values, row, strict=True))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 561, 7919, 65537, 2**31 - 1, 3215031751, 2**61 - 1, 2**60 - 1])
def test_primality(n: int) -> None:
    expected = n > 1 and n not in (561, 3215031751, 2**60 - 1, 4)
    assert _arith.is_prime(n) is expected
