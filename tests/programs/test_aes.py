"""AES-128 on shared bits: the vectors of FIPS-197, and random blocks and keys beside another implementation."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from .running import EMULATE_RING, MAC_RING, REPLICATED_RING, SEMI_RING, SEMI_RING_4, Backend, run


def _library() -> Any:
    """Programs/Library/aes.py, whose rows may be arrays of bools as well. It is no module of the tests."""
    path = Path(__file__).resolve().parents[2] / "Programs" / "Library" / "aes.py"
    spec = importlib.util.spec_from_file_location("tests.programs.aes_in_clear", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


aes = _library()

Bits = NDArray[np.uint8]
RNG = np.random.default_rng(197)
RINGS = pytest.mark.parametrize("backend", [EMULATE_RING, REPLICATED_RING, SEMI_RING, SEMI_RING_4], ids=str)
# Costs of headers are those of conversions to Z_2^64; modulo 2 they are lower. With MACs a share does not split, and bits are taken from a larger ring.
EVERY = pytest.mark.parametrize("backend", [*(b.over("Z2^1") for b in (EMULATE_RING, REPLICATED_RING, SEMI_RING, SEMI_RING_4)), MAC_RING], ids=str)
VECTORS = [
    ("2b7e151628aed2a6abf7158809cf4f3c", "3243f6a8885a308d313198a2e0370734", "3925841d02dc09fbdc118597196a0b32"),  # appendix B
    ("000102030405060708090a0b0c0d0e0f", "00112233445566778899aabbccddeeff", "69c4e0d86a7b0430d8cdb78070b4c55a"),  # appendix C.1
]


def rows(blocks: bytes) -> Bits:
    """[128, number of blocks]: row 8 i + j has bit j of byte i."""
    return np.unpackbits(np.frombuffer(blocks, np.uint8).reshape(-1, 16), axis=1, bitorder="little").T


def blocks(bits: NDArray[Any]) -> bytes:
    """The inverse of `rows`, of the lowest bits of a vector."""
    return np.packbits((bits.reshape(128, -1).T & 1).astype(np.uint8), axis=1, bitorder="little").tobytes()


def schedule(key: bytes) -> Bits:
    """The round keys of a key in clear text, by the library of the programs."""
    made = aes.key_schedule([[np.array([byte >> j & 1], dtype=bool) for j in range(8)] for byte in key])
    return np.array([row[0] for round_key in made for row in aes.in_rows(round_key)]).astype(np.uint8)


def reference(key: bytes, data: bytes, direction: str) -> bytes:
    cipher = Cipher(algorithms.AES(key), modes.ECB())
    worker = cipher.encryptor() if direction == "encrypt" else cipher.decryptor()
    return worker.update(data) + worker.finalize()


def test_the_s_box_on_all_values() -> None:
    """Beside inverses by search in GF(256), and the affine map of FIPS-197, section 5.1.1."""

    def times(a: int, b: int) -> int:
        total = 0
        for i in range(8):
            total ^= (a << i) * (b >> i & 1)
        for i in reversed(range(8, 16)):
            total ^= (0x11B << (i - 8)) * (total >> i & 1)
        return total

    def affine(x: int) -> int:
        return sum((bin(x & sum(1 << (i + s) % 8 for s in (0, 4, 5, 6, 7))).count("1") + (0x63 >> i) & 1) << i for i in range(8))

    inverses = [next((y for y in range(256) if times(x, y) == 1), 0) for x in range(256)]
    wanted = np.array([affine(x) for x in inverses])
    values = np.arange(256)
    found = aes.sub_byte([(values >> i & 1).astype(bool) for i in range(8)])
    assert np.array_equal(sum(row.astype(int) << i for i, row in enumerate(found)), wanted)
    back = aes.inv_sub_byte(found)
    assert np.array_equal(sum(row.astype(int) << i for i, row in enumerate(back)), values)


@pytest.mark.parametrize(("key", "plain", "cipher"), VECTORS)
@RINGS
def test_the_vectors_of_the_standard(backend: Backend, key: str, plain: str, cipher: str) -> None:
    for direction, given, wanted in (("encrypt", plain, cipher), ("decrypt", cipher, plain)):
        arguments = {"size": 1, "direction": direction, "destination": 0, "blocks_at": 0, "keys_at": 128}
        shares = [*rows(bytes.fromhex(given)).ravel(), *schedule(bytes.fromhex(key))]
        assert blocks(run("aes_blocks", arguments, backend, shares=shares).personal[0]) == bytes.fromhex(wanted)


@pytest.mark.parametrize("size", [1, 65])
@EVERY
def test_random_blocks(backend: Backend, size: int) -> None:
    key, data = RNG.bytes(16), RNG.bytes(16 * size)
    for direction, destination in (("encrypt", "all"), ("decrypt", "share")):
        arguments = {"size": size, "direction": direction, "destination": destination, "blocks_at": 1, "keys_at": 1 + 128 * size}
        out = run("aes_blocks", arguments, backend, shares=[1, *rows(data).ravel(), *schedule(key)], check_costs=False)
        assert blocks(out.shares if destination == "share" else out.public) == reference(key, data, direction)


@RINGS
def test_costs_of_keys(backend: Backend) -> None:
    bits = run("aes_keys", {"size": 2}, backend).shares
    assert np.array_equal(bits.reshape(1408, 2)[:, 0], schedule(blocks(bits[:256])[:16]))


@pytest.mark.parametrize("size", [1, 3])
@EVERY
def test_keys(backend: Backend, size: int) -> None:
    """Every key has the round keys of its first 16 bytes, and other runs have other keys."""
    made = [run("aes_keys", {"size": size}, backend, seed=seed, check_costs=False).shares & 1 for seed in (b"one", b"another")]
    for bits in made:
        for number, key in enumerate(zip(*[iter(blocks(bits[: 128 * size]))] * 16, strict=True)):
            assert np.array_equal(bits.reshape(1408, size)[:, number], schedule(bytes(key)))
    keys = [blocks(bits[: 128 * size]) for bits in made]
    assert len({key[at : at + 16] for key in keys for at in range(0, 16 * size, 16)}) == 2 * size
    assert 0.25 < np.mean([bin(byte).count("1") / 8 for key in keys for byte in key]) < 0.75
