"""Circuits as bootstraps of TFHE-rs, and shared bits that the parties encrypt for them. `make test-tfhe-bridge` evaluates with TFHE-rs."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from keyquorum import api
from keyquorum.fhe.lwe import TFHE_SETS, decrypt_clear, read_lwe
from keyquorum.model.errors import KeyFileError, ParameterError
from keyquorum.schemes.circuit import Circuit, Wire, aes_circuit
from keyquorum.schemes.key_folder import load_key, load_shares
from keyquorum.schemes.tfhe.boolean import MOST_SQUARES, MOST_VALUE, Schedule, Sum, bootstraps_of, fits
from keyquorum.schemes.tfhe.encryption import round_keys_file
from keyquorum.toprf import write_circuit

from tests.programs.test_aes import VECTORS, blocks, rows, schedule
from tests.schemes.test_tfhe import TINY, on_disk, run


def check_limits(made: Schedule) -> None:
    """Values and noise of every bootstrap, as the bridge checks them, and only ciphertexts that are there."""
    assert len(set(made.bootstraps)) == len(made.bootstraps)  # equal ones have equal noise
    for number, bootstrap in enumerate(made.bootstraps, made.inputs):
        weights = [weight for weight, _ in bootstrap.inputs]
        assert sum(weights) <= MOST_VALUE and sum(w * w for w in weights) <= MOST_SQUARES and bootstrap.table < 1 << (MOST_VALUE + 1)
        assert all(i < number for _, i in bootstrap.inputs) and len({i for _, i in bootstrap.inputs}) == len(weights)


def test_aes_as_bootstraps_gives_the_vectors_of_the_standard(tmp_path: Path) -> None:
    made = bootstraps_of(aes_circuit())
    check_limits(made)
    for key, plain, cipher in VECTORS:
        bits = [*rows(bytes.fromhex(plain)).ravel().tolist(), *schedule(bytes.fromhex(key)).tolist()]
        assert blocks(np.array(made.evaluate(bits))[:, None]) == bytes.fromhex(cipher)
    file = tmp_path / "aes.txt"
    assert write_circuit(file) == len(made.bootstraps) <= 14_200
    lines = file.read_text().splitlines()
    assert lines[0] == "inputs 1536" and lines.count("level") == len(made.levels()) and len(lines[-1].split()) == 129


def replay(lines: list[str], bits: list[int]) -> list[int]:
    """What the bridge does with the text, in clear."""
    values, waiting = list(bits), list[int]()
    for line in lines[1:]:
        first, *others = line.split()
        if first == "outputs":
            return [[*values, *waiting][int(i)] for i in others]
        if first == "level":
            values, waiting = [*values, *waiting], []
        else:
            total = sum(int(weight) * values[int(i)] for weight, i in (word.split(":") for word in others))
            waiting.append(int(first, 16) >> total & 1)
    raise AssertionError("no outputs")


def mixed(x: list[Wire]) -> list[Wire]:
    """Short and long sums, on both sides of ANDs, also with the same bits."""
    total = x[0]
    for wire in x[1:]:
        total = total ^ wire
    return [
        x[0] & x[1],
        ~x[0] & (x[1] ^ x[2]),
        (x[0] ^ x[1]) & ~(x[1] ^ x[2]),
        total & x[3],
        ~(total & (x[0] ^ x[3])),
        total,
        ~x[2],
        (x[0] & x[1]) ^ total,
    ]


@pytest.mark.parametrize("count", [4, 18])
def test_all_inputs_of_small_circuits(count: int) -> None:
    circuit = Circuit.of(mixed, count)
    made = bootstraps_of(circuit)
    check_limits(made)
    lines, rng = list(made.lines()), np.random.default_rng(1)
    every = product((0, 1), repeat=count) if count == 4 else rng.integers(0, 2, (500, count)).tolist()
    for bits in map(list, every):
        x, total = bits, sum(bits) & 1
        right = [
            x[0] & x[1], (1 - x[0]) & (x[1] ^ x[2]), (x[0] ^ x[1]) & (1 - (x[1] ^ x[2])), total & x[3], 1 - (total & (x[0] ^ x[3])), total, 1 - x[2], (x[0] & x[1]) ^ total,
        ]  # fmt: skip
        assert made.evaluate(bits) == right == replay(lines, bits)


def test_sums_that_do_not_fit_a_bootstrap() -> None:
    def of(*terms: int) -> Sum:
        return Sum(frozenset(terms))

    assert fits(of(0), of(1)) and fits(of(0), of(1, 2, 3)) and fits(of(0, 1), of(2, 3))
    assert not fits(of(0), of(1, 2, 3, 4)) and not fits(of(0, 1, 2), of(3, 4, 5))
    with pytest.raises(ParameterError, match="no bits"):
        bootstraps_of(Circuit.of(lambda x: [x[0] ^ x[0]], 1))


@pytest.mark.parametrize(("protocol", "parties"), [("rep-field", 3), ("semi", 2)])
def test_round_keys_are_encrypted_under_the_shared_secret(tmp_path: Path, protocol: str, parties: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TFHE_SETS, TINY.name, TINY)
    members = on_disk(tmp_path, protocol, parties)
    run(members, api.keygen_job("tfhe", TINY.name))
    run(members, api.keygen_job("prf", "prf-aes128"))
    job = {"kind": "toprf_encrypt", "key": "prf", "tfhe": "tfhe"}
    [made, *others] = run(members, job)
    assert all(other == made for other in others)
    folders = [members.key_folder(party, "tfhe") for party in range(parties)]
    data = {(folder / made["file"]).read_bytes() for folder in folders}
    assert len(data) == 1
    infos = {name: load_key(members.key_folder(0, name)) for name in ("tfhe", "prf")}
    found, key_id = read_lwe(data.pop(), "it")
    assert key_id == infos["tfhe"].key_id and made["file"] == round_keys_file(infos["prf"].key_id) and found.noise_bits == TINY.glwe_noise

    def combined(name: str, index: int) -> np.ndarray:
        shares = [load_shares(members.key_folder(party, name), infos[name], party) for party in range(parties)]
        return np.sum([share[index].words[0] for share in shares], axis=0)

    ring, keys = combined("tfhe", 0).astype(np.int64), (combined("prf", 0) & np.uint64(1)).astype(np.int64)
    messages, error = decrypt_clear(found, ring)
    assert np.array_equal(messages, keys) and 0 < keys.sum() < keys.size
    assert 0 < error.max() <= 2.0 ** (TINY.glwe_noise - TINY.noise_length)
    again = run(members, job)
    assert again[0]["sha256"] != made["sha256"]  # other masks and noise

    for wrong, said in (({**job, "key": "tfhe"}, "not of a PRF"), ({**job, "tfhe": "prf"}, "not of TFHE")):
        with pytest.raises(KeyFileError, match=said):
            run(members, wrong)
