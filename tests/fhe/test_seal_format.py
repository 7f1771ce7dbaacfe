"""Reading ciphertexts: compression, every refusal, and damaged bytes."""

from __future__ import annotations

import struct
import zlib
from functools import cache

import numpy as np
import pytest
import seal
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from keyquorum.fhe.errors import (
    CiphertextSizeError,
    CoefficientRangeError,
    CorrectionFactorError,
    DecompressionError,
    FormError,
    HeaderError,
    LevelError,
    ScaleError,
    SealFormatError,
    SeedError,
    ShapeError,
    TruncatedError,
    WrongParametersError,
)
from keyquorum.fhe.keys import expand_a
from keyquorum.fhe.parameters import ParameterSet
from keyquorum.fhe.seal import context
from keyquorum.fhe.seal_format import (
    read_ciphertext,
    read_plaintext,
    read_secret_key,
    write_ciphertext,
    write_plaintext,
    write_secret_key,
)
from keyquorum.model.errors import CiphertextError

from .dealer import as_written, dealer, keys

HEADER = 16
SCHEMES = ["ckks", "bfv", "bgv"]
# Offsets in an uncompressed ciphertext: parms_id, NTT flag, size, N, primes, scale, correction factor, DynArray.
ID, NTT, SIZE, DEGREE, PRIMES, SCALE, CORRECTION, ARRAY = 16, 48, 49, 57, 65, 73, 81, 89


@cache
def fresh(scheme: str) -> tuple[ParameterSet, bytes]:
    """A set and a fresh ciphertext of stock SEAL."""
    name = f"tiny-{scheme}"
    parameters = dealer(name).parameters
    ctx = context(parameters)
    encryptor = seal.Encryptor(ctx, ctx.from_public_str(keys(name)[0]))
    if scheme == "ckks":
        plain = seal.CKKSEncoder(ctx).encode([1.0, 2.0, 3.0], parameters.scale)
    else:
        plain = seal.BatchEncoder(ctx).encode([1, 2, 3])
    return parameters, as_written(encryptor.encrypt(plain).to_string())


def header(mode: int, total: int, version: tuple[int, int] = (4, 1)) -> bytes:
    return struct.pack("<HBBBBHQ", 0xA15E, 16, *version, mode, 0, total)


def pack(mode: int, payload: bytes) -> bytes:
    """The object with this payload, as SEAL writes it in a compression mode."""
    if mode == 1:
        payload = zlib.compress(payload)
    elif mode == 2:
        compressor = zstandard.ZstdCompressor(write_content_size=False).compressobj()
        payload = compressor.compress(payload) + compressor.flush()
    return header(mode, HEADER + len(payload)) + payload


def patched(data: bytes, *changes: tuple[int, bytes]) -> bytes:
    result = bytearray(data)
    for offset, value in changes:
        result[offset : offset + len(value)] = value
    return bytes(result)


def u64(value: int) -> bytes:
    return struct.pack("<Q", value)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("mode", [0, 1, 2], ids=["none", "zlib", "zstd"])
def test_compression_modes(scheme: str, mode: int) -> None:
    parameters, data = fresh(scheme)
    plain, packed = read_ciphertext(parameters, data), read_ciphertext(parameters, pack(mode, data[HEADER:]))
    assert np.array_equal(plain.data, packed.data)
    assert (plain.scale, plain.is_ntt, plain.level_primes) == (packed.scale, packed.is_ntt, packed.level_primes)
    assert plain.size == 2
    assert plain.is_ntt == (scheme != "bfv")
    assert write_ciphertext(parameters, packed) == data
    loaded = context(parameters).from_cipher_str(write_ciphertext(parameters, packed))
    assert as_written(loaded.to_string()) == data


def test_zstd_frame_with_content_size_and_checksum() -> None:
    parameters, data = fresh("bfv")
    payload = zstandard.ZstdCompressor(write_checksum=True).compress(data[HEADER:])
    read_ciphertext(parameters, header(2, HEADER + len(payload)) + payload)


@pytest.mark.parametrize("mode", [1, 2], ids=["zlib", "zstd"])
def test_decompression_bombs_are_not_inflated(mode: int) -> None:
    """A gigabyte of zeros after a good ciphertext, and one instead of it: only the expected bytes are inflated."""
    import tracemalloc

    parameters, data = fresh("bfv")
    if mode == 1:
        compressor = zlib.compressobj(9)
        chunks = [compressor.compress(data[HEADER:])]
        chunks += [compressor.compress(bytes(1 << 22)) for _ in range(64)] + [compressor.flush()]
        zeros = zlib.compress(bytes(1 << 26), 9)
    else:
        zstd = zstandard.ZstdCompressor().compressobj()
        chunks = [zstd.compress(data[HEADER:])]
        chunks += [zstd.compress(bytes(1 << 22)) for _ in range(64)] + [zstd.flush()]
        zeros = zstandard.ZstdCompressor().compress(bytes(1 << 26))
    payload = b"".join(chunks)
    tracemalloc.start()
    try:
        with pytest.raises(TruncatedError, match="does not end with the object"):
            read_ciphertext(parameters, header(mode, HEADER + len(payload)) + payload)
        with pytest.raises(WrongParametersError):
            read_ciphertext(parameters, header(mode, HEADER + len(zeros)) + zeros)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 22


@pytest.mark.parametrize("mode", [1, 2], ids=["zlib", "zstd"])
def test_damaged_compressed_payloads(mode: int) -> None:
    parameters, data = fresh("bfv")
    packed = pack(mode, data[HEADER:])
    with pytest.raises(DecompressionError, match="payload is damaged"):
        read_ciphertext(parameters, packed[:HEADER] + b"\x55" * 100 + packed[HEADER + 100 :])
    cut = packed[: len(packed) // 2]
    with pytest.raises(TruncatedError, match="ends early"):
        read_ciphertext(parameters, header(mode, len(cut)) + cut[HEADER:])
    with pytest.raises(TruncatedError):
        read_ciphertext(parameters, header(mode, HEADER))


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (b"", TruncatedError, "0 bytes are too few"),
        (b"\0" * 200, HeaderError, "no SEAL object"),
        (header(0, 200, (3, 7)) + bytes(184), HeaderError, "SEAL 3.7"),
        (header(3, 200) + bytes(184), HeaderError, "compression mode 3"),
        (header(0, 15), HeaderError, "total size of 15"),
        (header(0, 200) + bytes(100), TruncatedError, "states 200 bytes and has 116"),
        (header(0, 200) + bytes(300), TruncatedError, "states 200 bytes and has 316"),
        (header(0, 40) + bytes(24), TruncatedError, "ends early"),
    ],
)
def test_headers(data: bytes, error: type[SealFormatError], message: str) -> None:
    with pytest.raises(error, match=message):
        read_ciphertext(fresh("bfv")[0], data)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_foreign_ciphertexts(scheme: str) -> None:
    parameters, _ = fresh(scheme)
    for other in SCHEMES:
        if other != scheme:
            with pytest.raises(WrongParametersError, match=f"than tiny-{scheme}"):
                read_ciphertext(parameters, fresh(other)[1])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_key_level_is_refused(scheme: str) -> None:
    parameters, _ = fresh(scheme)
    with pytest.raises(LevelError, match="key level"):
        read_ciphertext(parameters, keys(f"tiny-{scheme}")[0])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_size_three_is_refused(scheme: str) -> None:
    parameters, data = fresh(scheme)
    ctx = context(parameters)
    product = seal.Evaluator(ctx).square(ctx.from_cipher_str(data)).to_string()
    for mode in (0, 1, 2):
        with pytest.raises(CiphertextSizeError, match="has 3 parts, decryption takes 2: relinearise first"):
            read_ciphertext(parameters, pack(mode, product[HEADER:]))
    for size in (0, 1, 4, 1 << 60):
        with pytest.raises(CiphertextSizeError, match=f"has {size} parts"):
            read_ciphertext(parameters, patched(data, (SIZE, u64(size))))
    assert issubclass(CiphertextSizeError, CiphertextError)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_coefficients_out_of_range(scheme: str) -> None:
    parameters, data = fresh(scheme)
    q = parameters.moduli(parameters.levels)
    first, last = ARRAY + 24, len(data) - 8
    for offset, modulus in ((first, q[0]), (last, q[-1])):
        with pytest.raises(CoefficientRangeError, match="is not below"):
            read_ciphertext(parameters, patched(data, (offset, u64(modulus))))
        read_ciphertext(parameters, patched(data, (offset, u64(modulus - 1))))


def test_forms() -> None:
    for scheme, flag, message in (("ckks", 0, "CKKS has NTT form"), ("bfv", 1, "BFV has coefficient form")):
        parameters, data = fresh(scheme)
        with pytest.raises(FormError, match=message):
            read_ciphertext(parameters, patched(data, (NTT, bytes([flag]))))
    parameters, data = fresh("bgv")
    assert not read_ciphertext(parameters, patched(data, (NTT, b"\0"))).is_ntt
    with pytest.raises(ShapeError, match="NTT flag is 2"):
        read_ciphertext(parameters, patched(data, (NTT, b"\2")))


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf"), 5e-324, 2.0**200])
def test_scales_of_ckks(scale: float) -> None:
    parameters, data = fresh("ckks")
    with pytest.raises(ScaleError, match="scale"):
        read_ciphertext(parameters, patched(data, (SCALE, struct.pack("<d", scale))))


@pytest.mark.parametrize("scheme", ["bfv", "bgv"])
def test_exact_schemes_have_no_scale(scheme: str) -> None:
    parameters, data = fresh(scheme)
    with pytest.raises(ScaleError, match="has none"):
        read_ciphertext(parameters, patched(data, (SCALE, struct.pack("<d", 2.0))))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_correction_factors(scheme: str) -> None:
    parameters, data = fresh(scheme)
    for factor in (0, 65537, 1 << 63):
        with pytest.raises(CorrectionFactorError, match=f"correction factor {factor}"):
            read_ciphertext(parameters, patched(data, (CORRECTION, u64(factor))))
    changed = patched(data, (CORRECTION, u64(65536)))
    if scheme == "bgv":
        assert read_ciphertext(parameters, changed).correction_factor == 65536
    else:
        with pytest.raises(CorrectionFactorError):
            read_ciphertext(parameters, changed)


def test_stated_dimensions() -> None:
    parameters, data = fresh("bfv")
    for offset, value in ((DEGREE, 2048), (PRIMES, 2), (PRIMES, 1 << 40)):
        with pytest.raises(ShapeError, match="its identifier says"):
            read_ciphertext(parameters, patched(data, (offset, u64(value))))
    for count in (0, 1, 1 << 61):
        with pytest.raises(ShapeError, match=f"holds {count} coefficients"):
            read_ciphertext(parameters, patched(data, (ARRAY + 16, u64(count))))
    with pytest.raises(HeaderError, match="inner object is compressed"):
        read_ciphertext(parameters, patched(data, (ARRAY + 5, b"\1")))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_seeded_ciphertexts(scheme: str) -> None:
    """Symmetric encryptions: c1 comes from a seed. SEAL's own default generator (type 1) is refused."""
    parameters, data = fresh(scheme)
    seed = bytes(range(64))
    half = parameters.levels * parameters.ring_degree * 8
    array = struct.pack("<Q", half // 8) + data[ARRAY + 24 : ARRAY + 24 + half]
    body = data[HEADER:ARRAY] + header(0, HEADER + len(array)) + array
    good = pack(0, body + header(0, HEADER + 65) + b"\2" + seed)
    ciphertext = read_ciphertext(parameters, good)
    assert np.array_equal(ciphertext.data[1], expand_a(seed, parameters.ring_degree, parameters.moduli(parameters.levels)))
    loaded = context(parameters).from_cipher_str(good)
    assert as_written(loaded.to_string()) == write_ciphertext(parameters, ciphertext)
    with pytest.raises(SeedError, match="type 1"):
        read_ciphertext(parameters, pack(0, body + header(0, HEADER + 65) + b"\1" + seed))
    with pytest.raises(TruncatedError):
        read_ciphertext(parameters, pack(0, body))
    with pytest.raises(TruncatedError):
        read_ciphertext(parameters, pack(0, body + header(0, HEADER + 64) + b"\2" + seed))


def read_or_typed_error(parameters: ParameterSet, data: bytes) -> None:
    try:
        read_ciphertext(parameters, data)
    except SealFormatError as error:
        assert "\n" not in str(error)


@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from(SCHEMES), st.sampled_from([0, 1, 2]),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 7)), min_size=1, max_size=4),
    st.one_of(st.none(), st.integers(0, 400)),
)  # fmt: skip
def test_damaged_bytes_raise_nothing_else(scheme: str, mode: int, flips: list[tuple[int, int]], cut: int | None) -> None:
    parameters, plain = fresh(scheme)
    data = bytearray(packed(scheme, mode))
    for byte, bit in flips:
        data[byte] ^= 1 << bit
    read_or_typed_error(parameters, bytes(data[:cut]))
    inner = bytearray(plain[HEADER:])
    for byte, bit in flips:
        inner[byte] ^= 1 << bit
    read_or_typed_error(parameters, pack(mode, bytes(inner[:cut])))


@cache
def packed(scheme: str, mode: int) -> bytes:
    return pack(mode, fresh(scheme)[1][HEADER:])


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400), st.sampled_from([0, 1, 2]))
def test_arbitrary_bytes_raise_nothing_else(junk: bytes, mode: int) -> None:
    parameters, _ = fresh("bgv")
    read_or_typed_error(parameters, junk)
    read_or_typed_error(parameters, header(mode, HEADER + len(junk)) + junk)
    read_or_typed_error(parameters, pack(mode, junk))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([0, 1, 2]), st.floats(0, 1))
def test_truncation_anywhere_is_noticed(mode: int, where: float) -> None:
    parameters, _ = fresh("ckks")
    data = packed("ckks", mode)
    with pytest.raises(SealFormatError):
        read_ciphertext(parameters, data[: int(where * (len(data) - 1))])


def test_plaintexts() -> None:
    for scheme in SCHEMES:
        parameters, _ = fresh(scheme)
        ctx = context(parameters)
        if scheme == "ckks":
            theirs = seal.CKKSEncoder(ctx).encode([1.0], parameters.scale).to_bytes()
        else:
            theirs = seal.BatchEncoder(ctx).encode([1, 2]).to_bytes()
        plain = read_plaintext(parameters, theirs)
        assert write_plaintext(parameters, plain) == as_written(theirs)
        with pytest.raises(TruncatedError):
            read_plaintext(parameters, theirs[:-1])
        with pytest.raises(CoefficientRangeError):
            read_plaintext(parameters, patched(theirs, (len(theirs) - 8, b"\xff" * 8)))
        with pytest.raises(ShapeError):
            read_plaintext(parameters, patched(theirs, (48, u64(1 << 50))))
        with pytest.raises(WrongParametersError):
            read_plaintext(parameters, patched(theirs, (16, b"\x01" * 32)))


def test_secret_keys() -> None:
    for scheme in SCHEMES:
        d = dealer(f"tiny-{scheme}")
        data = write_secret_key(d.parameters, d.secret.coefficients)
        back = read_secret_key(d.parameters, data)
        assert np.array_equal(back.coefficients, d.secret.coefficients)
        assert np.array_equal(back.ntt, d.secret.ntt)
        loaded = context(d.parameters).from_secret_str(data)
        assert as_written(loaded.to_string()) == data
        assert str(int(back.ntt[0, 0])) not in repr(back)
        with pytest.raises(SealFormatError, match="not ternary"):
            read_secret_key(d.parameters, write_secret_key(d.parameters, d.secret.coefficients * 2))
