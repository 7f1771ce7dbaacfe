"""LWE and BFV with pools from the command line: key, pool, decryption, status, drop, and their refusals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from keyquorum import api
from keyquorum.cli import app
from keyquorum.fhe.lwe import encrypt, lwe_parameters
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CiphertextError, KeyFileError, KeyQuorumError, ParameterError, PartyError, PoolError
from keyquorum.schemes.key_folder import read_share
from keyquorum.schemes.lwe.key import load_lwe_key
from typer.testing import CliRunner

from tests.plans.quorum import reconstruct

RUNNER = CliRunner()


def call(*arguments: object) -> str:
    result = RUNNER.invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def secret_of(committee: Committee, key: str) -> np.ndarray:
    """The secret, from the additive shares modulo 2^64 of all parties."""
    folders = [committee.key_folder(i, key) for i in range(committee.size)]
    shares = [read_share(folder, load_lwe_key(folder), i, 0) for i, folder in enumerate(folders)]  # they wipe themselves
    return np.asarray(sum(share.words[0] for share in shares)).astype(np.int64)


def test_lwe_by_hand(tmp_path: Path) -> None:
    folder = tmp_path / "committee"
    committee = api.init(folder, 2, "semi")
    call("keygen", folder, "key", "-p", "lwe64-p2")
    with pytest.raises(KeyQuorumError, match="there is a key 'key' already: choose another name"):
        call("keygen", folder, "key", "-p", "lwe64-p2")
    with pytest.raises(KeyQuorumError, match="there is a key 'key' already: choose another name"):
        call("keygen", folder, "key", "-p", "bfv-4096")
    with pytest.raises(KeyFileError, match="a key of LWE, which SEAL has no use for"):
        call("eval", folder, "key", "square", tmp_path / "x.ct", "-o", tmp_path / "y.ct")
    secret, rng = secret_of(committee, "key"), np.random.default_rng(2)
    assert set(secret.tolist()) == {0, 1}
    parameters, messages = lwe_parameters("lwe64-p2"), rng.integers(0, 2, 20)
    path = tmp_path / "x.lwe"
    path.write_bytes(encrypt(parameters, secret, messages, rng).to_bytes(load_lwe_key(committee.key_folder(0, "key")).key_id))
    assert "no pools" in call("pool", "status", folder)
    with pytest.raises(PartyError, match=r"needs 20 items, has 0: keyquorum pool fill"):
        call("decrypt", folder, "key", path, "--to", 1)
    assert "party 1: lwe64-p2-round_ltz_circuit: 30 items left of 30" in call("pool", "fill", folder, "-n", 30)
    call("decrypt", folder, "key", path, "--to", 1)
    output = tmp_path / "x.lwe.plain"
    assert json.loads(output.read_text()) == messages.tolist() and output.stat().st_mode & 0o077 == 0
    assert "10 items left of 30" in call("pool", "status", folder)
    assert "pool lwe64-p2-round_ltz_circuit: 10 items of the new epoch" in call("refresh-shares", folder, "--hold")
    assert "party 1: lwe64-p2-round_ltz_circuit: 10 items left of 10" in call("pool", "status", folder)
    call("refresh-shares", folder, "--hold", "--job", tmp_path / "refresh.json")
    assert json.loads((tmp_path / "refresh.json").read_text()) == {"kind": "refresh_shares", "hold": True}
    path.write_bytes(encrypt(parameters, secret, messages, rng).to_bytes("00" * 16))
    with pytest.raises(CiphertextError, match="encrypted under another key"):
        call("decrypt", folder, "key", path, "--to", 1)
    assert "party 0: dropped" in call("pool", "drop", folder, "lwe64-p2-round_ltz_circuit")
    with pytest.raises(PoolError, match="no pool 'lwe64-p2-round_ltz_circuit'"):
        call("pool", "drop", folder, "lwe64-p2-round_ltz_circuit")
    with pytest.raises(ParameterError, match="is too small for flooding"):
        call("pool", "fill", folder, "-n", 1, "--rounding", "round_flood")


@pytest.mark.parametrize(("protocol", "parties", "name"), [("semi", 4, "lwe64-p2"), ("shamir", 5, "lwe53-p16")])
def test_lwe_with_star_openings(tmp_path: Path, protocol: str, parties: int, name: str) -> None:
    """Of a committee of shamir t + 1 round: parties 0 to 2."""
    folder = tmp_path / "committee"
    call("init", folder, "-N", parties, "-E", protocol, "--openings", "star")
    committee, parameters = Committee.load(folder), lwe_parameters(name)
    call("keygen", folder, "key", "-p", name)
    folders = [committee.key_folder(i, "key") for i in range(parties)]
    info = load_lwe_key(folders[0])
    shares = [read_share(path, info, i, 0) for i, path in enumerate(folders)]  # they wipe themselves
    secret = reconstruct(protocol, committee.threshold, [s.words[:, : parameters.dimension] for s in shares], parameters.modulus)
    assert set(secret.tolist()) == {0, 1}
    rng, path = np.random.default_rng(4), tmp_path / "x.lwe"
    call("pool", "fill", folder, "-p", name, "-n", 40)
    for count, receiver in ((1, 0), (30, 2)):
        messages = rng.integers(0, 1 << parameters.plain_bits, count)
        path.write_bytes(encrypt(parameters, secret, messages, rng).to_bytes(info.key_id))
        call("decrypt", folder, "key", path, "--to", receiver)
        assert json.loads((tmp_path / "x.lwe.plain").read_text()) == messages.tolist()


def test_bfv_with_a_pool_by_hand(tmp_path: Path) -> None:
    folder, values = tmp_path / "committee", tmp_path / "x.json"
    api.init(folder, 3, "shamir")
    call("keygen", folder, "key", "-p", "bfv-4096", "--no-relin")
    values.write_text("[1, 2, -3]")
    path = tmp_path / "x.ct"
    call("encrypt", folder, "key", values, "-o", path)
    with pytest.raises(PartyError, match=r"bfv-4096-round_ltz_circuit: needs 4,096 items, has 0: keyquorum pool fill"):
        call("decrypt", folder, "key", path, "--to", 1, "--pool")
    assert "party 1: bfv-4096-round_ltz_circuit: 5,000 items left of 5,000" in call("pool", "fill", folder, "-p", "bfv-4096", "-n", 5000)
    call("decrypt", folder, "key", path, "--to", 1, "--pool")
    assert "1 2 -3 0" in call("decode", folder, "key", tmp_path / "x.ct.plain", "-n", 4)
    assert "904 items left of 5,000" in call("pool", "status", folder)
    with pytest.raises(ParameterError, match="with a pool parties 0 to 1 round: choose one of them as the receiver, not 2"):
        call("decrypt", folder, "key", path, "--to", 2, "--pool")
    with pytest.raises(ParameterError, match="pools are the embedded engine's: leave out --backend, or --pool"):
        call("decrypt", folder, "key", path, "--to", 0, "--pool", "--backend", "mp-spdz")
    with pytest.raises(ParameterError, match=r"there is no parameter set 'lwe64-p3': choose one of .*; for LWE lwe64-p2"):
        call("pool", "fill", folder, "-p", "lwe64-p3", "-n", 1)
    with pytest.raises(ParameterError, match="CKKS has no exact messages"):
        call("pool", "fill", folder, "-p", "ckks-8192-demo", "-n", 1)


def test_parties_that_do_not_round_compare_every_chunk(tmp_path: Path) -> None:
    """Without messages during a long fill they would assume that the others are gone: after each chunk every party sends its number to both others."""
    folder = tmp_path / "committee"
    api.init(folder, 3, "shamir")
    reports = api.pool_fill(folder, "lwe53-p16", "round_mask_open", 7, chunk=2)
    sent = {phase.name: phase.bytes_sent for phase in reports[2].phases}
    assert sent == {"fill": 4 * 2 * len("lwe53-p16-round_mask_open 0")}
    assert "party 0: lwe53-p16-round_mask_open: 7 items left of 7" in call("pool", "status", folder)
