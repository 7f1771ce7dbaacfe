"""AES on LWE ciphertexts by the parties of a committee, for one of them: values, empty pools, and refusals."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.baselines.toprf_lwe.__main__ import main
from bench.baselines.toprf_lwe.gates import GateKey, check_evaluate
from bench.baselines.toprf_lwe.run import gates_evaluate
from bench.baselines.toprf_lwe.stored import load_gate_key
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from keyquorum import api
from keyquorum.model.committee import Committee
from keyquorum.model.errors import KeyFileError, KeyQuorumError, ParameterError, PartyError, PoolTooSmall
from keyquorum.parties import run_in_process
from keyquorum.parties.jobs import run_job
from keyquorum.plans.pool_store import pool_status
from keyquorum.plans.pools import pools_folder
from keyquorum.schemes.key_folder import load_shares

from tests.schemes.test_prf_tables import opened

NAME = "lwe32-p2-seed003"
POINT = bytes(range(16))
pytestmark = pytest.mark.filterwarnings("ignore:.*for comparison only")


def with_gates(folder: Path, protocol: str, parties: int) -> Committee:
    committee = api.init(folder / "committee", parties, protocol)
    with_key(committee)
    return committee


def with_key(committee: Committee) -> None:
    run_in_process(committee, lambda context: run_job(context, {"kind": "bench:gates-keygen", "key": "gates", "parameters": NAME}), timeout=120)


def aes_of(committee: Committee, point: bytes) -> bytes:
    """By another library, under the key that the shares of all parties give."""
    shares = []
    for party in range(committee.size):
        folder = committee.key_folder(party, "gates")
        _, keys = load_shares(folder, load_gate_key(folder), party)  # they wipe themselves
        shares.append(keys.words.copy())
    bits = opened(committee, shares)[:128] & np.uint64(1)
    key = np.packbits(bits.astype(np.uint8), bitorder="little").tobytes()
    return Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(point)


@pytest.mark.timeout(120)
def test_blocks_of_one_party(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By processes: two blocks at once, one by a command, then none is left, and nothing is claimed of the pool that has enough."""
    committee = with_gates(tmp_path, "semi2k", 2)

    assert main(["fill", str(committee.folder), "gates", "-n", "3"]) == 0 and "items for 3 blocks" in capsys.readouterr().out
    points = [POINT, bytes(16)]
    values, reports = gates_evaluate(committee, "gates", points, receiver=1)
    assert values == [aes_of(committee, point) for point in points]
    online = next(phase for phase in reports[0].phases if phase.name == "online")
    assert online.rounds > 2 * 41
    key_id = load_gate_key(committee.key_folder(0, "gates")).key_id
    assert main(["eval", str(committee.folder), "gates", POINT.hex()]) == 0
    assert capsys.readouterr().out.splitlines()[0] == aes_of(committee, POINT).hex()
    with pytest.raises(PartyError, match=rf"{NAME}-gates-{key_id[:16]}: needs 1 items, has 0: fill the pools"):
        gates_evaluate(committee, "gates", [POINT])
    for name in (f"{NAME}-gates-{key_id[:16]}", f"{NAME}-round_ltz_circuit"):
        made, used = pool_status(pools_folder(committee, 0) / name)
        assert made == used == (3 if "gates" in name else 3 * (2 * 5760 + 128))


@pytest.mark.timeout(120)
def test_replicated_shares_and_a_pool_that_is_too_small(tmp_path: Path) -> None:
    """In the threads of this process. With too few items of the rounding no table is claimed."""
    committee = with_gates(tmp_path, "ring", 3)
    (tmp_path / "in").write_text(f"{POINT.hex()}\n")
    local = {"inputs": [str(tmp_path / "in")], "outputs": [str(tmp_path / "out")]}
    job = {"kind": "bench:gates-evaluate", "key": "gates", "rounding": "round_ltz_circuit", "receiver": 2, "count": 1, "local": local}

    def fill_tables(context: Any) -> None:
        with GateKey(context, "gates", "round_ltz_circuit") as key:
            key.tables.fill(1)

    run_in_process(committee, fill_tables, timeout=60)
    with pytest.raises(PoolTooSmall, match=r"round_ltz_circuit: needs 11,648 items, has 0"):
        run_in_process(committee, lambda context: run_job(context, job), timeout=60)
    assert not (tmp_path / "out").exists()
    run_in_process(
        committee, lambda context: run_job(context, {"kind": "bench:gates-fill", "key": "gates", "rounding": "round_ltz_circuit", "count": 1})
    )
    key_id = load_gate_key(committee.key_folder(0, "gates")).key_id
    assert pool_status(pools_folder(committee, 0) / f"{NAME}-gates-{key_id[:16]}") == (2, 0)
    run_in_process(committee, lambda context: run_job(context, job), timeout=60)
    assert (tmp_path / "out").read_text() == f"{aes_of(committee, POINT).hex()}\n" and stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o600


def test_refused(tmp_path: Path) -> None:
    committee = api.init(tmp_path / "committee", 2, "semi2k")
    for points in ([], [b"short"]):
        with pytest.raises(ParameterError, match="of 16 bytes each"):
            gates_evaluate(committee, "gates", points)
    with_key(committee)
    run_in_process(committee, lambda context: run_job(context, api.keygen_job("prf", "prf-aes128")))
    job = {
        "kind": "bench:gates-evaluate",
        "key": "gates",
        "rounding": "round_ltz_circuit",
        "receiver": 0,
        "count": 1,
        "local": {"inputs": ["/nowhere"]},
    }
    for more, reason in (
        ({"key": "prf"}, "a key of PRF: name a key that python -m bench.baselines.toprf_lwe keygen made"), ({"receiver": 2}, "there is no party 2"),
        ({"rounding": "round_mask_open"}, "is wrong with probability"), ({"count": 0}, "choose 1 to 1024"), ({}, "/nowhere: no such file"),
        ({"local": {}}, "needs a path under local, inputs"),
    ):  # fmt: skip
        with pytest.raises((KeyQuorumError, KeyFileError), match=reason):
            check_evaluate(committee, 0, {**job, **more})
    check_evaluate(committee, 1, job)
