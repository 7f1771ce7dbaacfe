"""AES-128 on shared bits: the vectors of FIPS-197, and random blocks and keys beside another implementation."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from keyquorum.dsl.values.bit_circuits import traced
from keyquorum.dsl.values.bits import cbits
from numpy.typing import NDArray
from scipy import stats

from tests.long import LONG
from tests.protocols import EMULATE_RING, MAC_RING, REPLICATED_RING, SEMI_RING, SEMI_RING_4, VERIFIED_RING, Backend

from .distributions import CONFIDENCE
from .library import library
from .running import run


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
# Costs of headers are those of conversions to Z_2^64; modulo 2 there are none without MACs.
BITS = [b.over("Z2^1") for b in (EMULATE_RING, REPLICATED_RING, SEMI_RING, SEMI_RING_4)]
EVERY = pytest.mark.parametrize("backend", [*BITS, MAC_RING], ids=str)
METHODS = pytest.mark.parametrize("method", ["circuit", "table"])
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
    made = aes.key_schedule([np.array([byte >> j & 1], dtype=bool) for byte in key for j in range(8)])
    return np.array([row[0] for row in made]).astype(np.uint8)


def hot_vectors(r: NDArray[np.int64]) -> tuple[Bits, Bits]:
    """Masks and one-hot vectors of bytes, in the order of `aes_hot`."""
    masks = (r[None, :] >> np.arange(8)[:, None] & 1).astype(np.uint8)
    return masks.ravel(), (r[None, :] == np.arange(256)[:, None]).astype(np.uint8).ravel()


def of_blocks(
    method: str, backend: Backend, key: bytes, data: bytes, direction: str, destination: int | str, r: Any = None, check_costs: bool = False
) -> Any:
    """A run of the cipher by a method; the table method takes fresh masks, or those of the bytes `r`. The share file begins with another share."""
    size = len(data) // 16
    parts = [np.ones(1, np.uint8), rows(data).ravel(), schedule(key)]
    at = [1, 1 + 128 * size]
    if method == "table":
        parts += hot_vectors(RNG.integers(0, 256, 160 * size) if r is None else r)
        at += [at[1] + 1408, at[1] + 1408 + 1280 * size]
    names = ("blocks_at", "keys_at", "masks_at", "hot_at")
    arguments = {"size": size, "direction": direction, "destination": destination, **dict(zip(names, at, strict=False))}
    program = "aes_blocks" if method == "circuit" else "aes_blocks_table"
    return run(program, arguments, backend, shares=np.concatenate(parts), check_costs=check_costs)


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

    assert aes.s_box_table(True) == wanted.tolist()
    assert [aes.s_box_table(False)[y] for y in wanted] == values.tolist()


def test_circuits_have_the_ands_and_depths_of_the_documents() -> None:
    with library("logic") as modules:
        logic = modules.logic
    expected = [
        (aes.sub_byte, [8], 36, 4), (aes.inv_sub_byte, [8], 36, 4), (lambda bits: logic.one_hot(logic.Binary, bits), [8], 247, 3),
        (aes.key_schedule, [128], 1440, 40), (aes.whiten, [128, 128], 0, 0), (aes.after_s_boxes, [128, 128], 0, 0),
        (aes.after_inv_s_boxes, [128, 128], 0, 0), (aes.masked_bytes, [128, 128], 0, 0), (aes.by_bytes, [128], 0, 0),
    ]  # fmt: skip
    for function, counts, ands, depth in expected:
        circuit = traced(function, counts)
        assert (circuit.ands, circuit.depth) == (ands, depth)


@pytest.mark.parametrize(("key", "plain", "cipher"), VECTORS)
@METHODS
@RINGS
def test_the_vectors_of_the_standard_and_costs(backend: Backend, method: str, key: str, plain: str, cipher: str) -> None:
    for direction, given, wanted in (("encrypt", plain, cipher), ("decrypt", cipher, plain)):
        out = of_blocks(method, backend, bytes.fromhex(key), bytes.fromhex(given), direction, 0, check_costs=True)
        assert blocks(out.personal[0]) == bytes.fromhex(wanted)


@pytest.mark.parametrize("backend", [VERIFIED_RING.over("Z2^1"), MAC_RING], ids=str)
def test_the_vectors_with_malicious_parties(backend: Backend) -> None:
    """In the domains of the service, which encrypts by the circuit."""
    for key, plain, cipher in VECTORS:
        out = of_blocks("circuit", backend, bytes.fromhex(key), bytes.fromhex(plain), "encrypt", "share")
        assert blocks(out.shares) == bytes.fromhex(cipher)


def check_random_blocks(method: str, backend: Backend, size: int) -> None:
    key, data = RNG.bytes(16), RNG.bytes(16 * size)
    for direction, destination in (("encrypt", "all"), ("decrypt", "share")):
        out = of_blocks(method, backend, key, data, direction, destination)
        assert blocks(out.shares if destination == "share" else out.public) == reference(key, data, direction)


@pytest.mark.parametrize("size", [1, 65])
@EVERY
def test_random_blocks(backend: Backend, size: int) -> None:
    check_random_blocks("circuit", backend, size if backend != MAC_RING or LONG else min(size, 2))


@pytest.mark.parametrize("size", [1, 3, 65])
@pytest.mark.parametrize("backend", BITS, ids=str)
def test_random_blocks_by_tables(backend: Backend, size: int) -> None:
    check_random_blocks("table", backend, size)


def test_a_block_by_tables_with_macs() -> None:
    check_random_blocks("table", MAC_RING, 1)


@METHODS
def test_a_block_with_verified_products(method: str) -> None:
    check_random_blocks(method, VERIFIED_RING, 1)


@pytest.mark.skipif(not LONG, reason="minutes: KEYQUORUM_LONG=1")
@pytest.mark.parametrize("size", [63, 64, 4096, 10_000])
@METHODS
@pytest.mark.parametrize("backend", BITS, ids=str)
def test_many_random_blocks(backend: Backend, method: str, size: int) -> None:
    for first in range(0, size, 512 if method == "table" else size):
        check_random_blocks(method, backend, min(size - first, 512) if method == "table" else size)


@pytest.mark.parametrize("backend", [b.over("Z2^1") for b in (REPLICATED_RING, SEMI_RING)], ids=str)
def test_tables_with_every_mask(backend: Backend) -> None:
    """Each S-box of each round under all 256 masks: all blocks are the same, and so is the result."""
    key, block = RNG.bytes(16), RNG.bytes(16)
    for direction in ("encrypt", "decrypt"):
        r = (np.arange(160)[:, None] * 7 + np.arange(256)[None, :]) % 256
        out = of_blocks("table", backend, key, 256 * block, direction, "all", r.ravel())
        assert blocks(out.public) == 256 * reference(key, block, direction)


@pytest.mark.parametrize("size", [1, 2])
@RINGS
def test_one_hot_vectors_and_costs(backend: Backend, size: int) -> None:
    made = run("aes_hot", {"size": size}, backend).shares
    masks, hot = made[: 1280 * size].reshape(8, -1), made[1280 * size :].reshape(256, -1)
    r = (masks << np.arange(8)[:, None]).sum(0)
    assert np.array_equal(hot, r[None, :] == np.arange(256)[:, None])


def made_masks(backend: Backend, size: int, seed: bytes) -> NDArray[np.int64]:
    """The bytes of a run of `aes_hot` modulo 2, after a look at their one-hot vectors."""
    made = run("aes_hot", {"size": size}, backend, seed=seed, check_costs=False).shares & 1
    r: NDArray[np.int64] = (made[: 1280 * size].reshape(8, -1) << np.arange(8)[:, None]).sum(0)
    assert np.array_equal(made[1280 * size :].reshape(256, -1), r[None, :] == np.arange(256)[:, None])
    return r


def test_what_is_opened_is_uniform(monkeypatch: pytest.MonkeyPatch) -> None:
    """All blocks and keys are zeros. Chi-square on the opened bytes, on those of each round, and on sums of neighbours, with a false-alarm rate of 1 % in
    all: 64 blocks, with KEYQUORUM_LONG=1 6,400, which are 10^6 bytes."""
    opened: list[NDArray[np.int64]] = []
    plain = cbits.to_regint_by_bit

    def seen(bits: Any) -> Any:
        numbers = plain(bits)
        opened.append(np.array(numbers.data))
        return numbers

    monkeypatch.setattr(cbits, "to_regint_by_bit", seen)
    backend, size = EMULATE_RING.over("Z2^1"), 64
    for batch in range(100 if LONG else 1):
        masks = made_masks(REPLICATED_RING.over("Z2^1"), size, b"batch %d" % batch)
        of_blocks("table", backend, bytes(16), bytes(16 * size), "encrypt", "all", masks)
    y = np.array([(bits.reshape(8, -1) << np.arange(8)[:, None]).sum(0) for bits in opened])
    assert y.shape == (10 * (100 if LONG else 1), 16 * size)
    by_round = y.reshape(-1, 10, 16 * size)
    samples = [y.ravel(), (y[:, 1:] ^ y[:, :-1]).ravel(), *(by_round[:, r].ravel() for r in range(10))]
    for sample in samples:
        assert stats.chisquare(np.bincount(sample, minlength=256)).pvalue > (1 - CONFIDENCE) / len(samples)


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
