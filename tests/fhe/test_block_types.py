"""Values of blocks as TFHE-rs has them: unsigned, two's complement, bool; and types in files of LWE ciphertexts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from keyquorum.fhe.block_types import typed_values
from keyquorum.fhe.lwe import TFHE_SETS, LweCiphertexts, messages_to_bytes, read_lwe, read_messages
from keyquorum.fhe.tfhe_files import HEADER, VALUES, cure, read_header
from keyquorum.model.errors import CiphertextError, ParameterError

SET = TFHE_SETS["tfhers-2-2"]


def blocks(value: int, bits: int, block_bits: int = 2) -> list[int]:
    """The blocks of a value modulo 2^bits, the lowest first."""
    return [(value >> at) & ((1 << block_bits) - 1) for at in range(0, bits, block_bits)]


@pytest.mark.parametrize("bits", [2, 4, 8, 10, 16, 32, 64, 128, 160, 256, 512, 2048])
def test_integers_of_all_widths(bits: int) -> None:
    rng = np.random.default_rng(bits)
    random = int.from_bytes(rng.bytes(256), "little") % (1 << bits)
    for value in (0, 1, random, (1 << bits) - 1, 1 << (bits - 1)):
        assert typed_values([f"uint{bits}"], blocks(value, bits), 2, "x") == [value]
        signed = value - (1 << bits) if value >> (bits - 1) else value
        assert typed_values([f"int{bits}"], blocks(value, bits), 2, "x") == [signed]
    assert typed_values([f"int{bits}"], blocks(-1, bits) + blocks(1, bits), 2, "x") == [-1, 1 if bits > 1 else -1]


def test_several_types_follow_one_another() -> None:
    messages = [*blocks(200, 8), 1, *blocks(-3, 16), 13]
    values = typed_values(["uint8", "bool", "int16", "block"], messages, 2, "x")
    assert values == [200, True, -3, 13] and isinstance(values[1], bool)
    assert typed_values(["uint8"], blocks(77, 8, 4), 4, "x") == [77], "sets with blocks of four bits"


@pytest.mark.parametrize(
    ("names", "messages", "error", "why"),
    [
        (["uint8"], [1, 2, 3, 4, 0], ParameterError, "5 blocks, and uint8 takes 4 of 2 bits"),
        (["uint8", "uint8"], [1, 2, 3, 4], ParameterError, "takes 8 of 2 bits"),
        (["uint8"], [4, 0, 0, 0], CiphertextError, "a block has the value 4, and one of uint8 has at most 3"),
        (["bool"], [2], CiphertextError, "one of bool has at most 1"),
        (["uint7"], [1, 1, 1, 1], ParameterError, "choose a type of a multiple of 2 bits"),
        (["uint0"], [1], ParameterError, "unknown type 'uint0'"),
        (["uint2050"], [1], ParameterError, "uintN or intN of 2 to 2048 bits"),
        (["float"], [1], ParameterError, "unknown type 'float'"),
    ],
)  # fmt: skip
def test_what_is_refused(names: list[str], messages: list[int], error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        typed_values(names, messages, 2, "x")


def ciphertexts(types: tuple[str, ...], count: int = 5) -> LweCiphertexts:
    rng = np.random.default_rng(1)
    words = rng.integers(0, 1 << 63, (count, SET.dimension + 1), dtype=np.uint64)
    return LweCiphertexts(SET, words[:, 1:].copy(), words[:, 0].copy(), 58.0, types)


def test_files_keep_the_types(tmp_path: Path) -> None:
    """And files without types are what they were, also to readers that know none."""
    made = ciphertexts(("uint8", "bool"))
    found, key_id = read_lwe(made.to_bytes("ab" * 16), "x")
    assert found.types == ("uint8", "bool") and key_id == "ab" * 16 and found.part(0, 2).types == ()
    plain = replace(made, types=()).to_bytes("ab" * 16)
    assert b"types" not in plain and read_lwe(plain, "x")[0].types == ()
    for wrong in (("uint8",), ("uint16", "bool"), ("what",)):
        with pytest.raises(CiphertextError, match="or a damaged one"):
            read_lwe(ciphertexts(wrong).to_bytes("ab" * 16), "x")
    path = tmp_path / "x.plain"
    for types in ((), ("uint8", "bool")):
        path.write_bytes(messages_to_bytes(np.array([1, 2, 3, 0, 1]), types))
        assert read_messages(path) == ([1, 2, 3, 0, 1], types)
    for text in ('{"messages": [1]}', '{"messages": [1], "types": [1]}', '{"messages": [-1], "types": []}', '{"types": []}'):
        path.write_text(text)
        with pytest.raises(CiphertextError, match="no messages of LWE"):
            read_messages(path)


def tfhe_file(name: str, mode: int = 0) -> bytes:
    """The beginning of a file as TFHE-rs's safe_serialize writes it (tfhe-safe-serialize 0.1, bincode with integers of fixed length)."""
    text = lambda t: len(t).to_bytes(8, "little") + t.encode()  # noqa: E731
    return text("0.5") + mode.to_bytes(4, "little") + text("0.1" if mode == 0 else "1.8.2") + text(name) + bytes(100)


def test_headers_of_tfhe_rs() -> None:
    header = read_header(tfhe_file("high_level_api::FheUint"))
    assert header is not None and (header.type, header.version, header.versioned) == ("FheUint", "0.1", True)
    for name in ("FheInt", "FheBool", "CompressedFheUint"):
        header = read_header(tfhe_file(f"high_level_api::{name}", 1))
        assert header is not None and not header.versioned and header.type == name and (name in VALUES) == (cure(name) == "name a ciphertext")
    whole = tfhe_file("high_level_api::FheUint")
    for data in (b"", b"KQLWE002", bytes(64), whole[:30], whole[:40], b"\xff" * HEADER, tfhe_file("no module"), tfhe_file("a::\x01")):
        assert read_header(data) is None


def test_headers_are_those_of_real_files() -> None:
    """The first bytes of an FheInt8 and of a block that TFHE-rs 1.8.2 wrote."""
    integer = "0300000000000000302e35000000000300000000000000302e311600000000000000686967685f6c6576656c5f6170693a3a466865496e"
    block = "0300000000000000302e35000000000300000000000000302e31140000000000000073686f7274696e743a3a436970686572746578"
    for name, real in (("high_level_api::FheInt", integer), ("shortint::Ciphertext", block)):
        assert tfhe_file(name)[: len(real) // 2] == bytes.fromhex(real)
