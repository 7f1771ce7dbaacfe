"""LWE from the command line, end to end: joint key, encryption with its public key alone, joint decryption by every rounding that the set admits."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from keyquorum import api
from keyquorum.fhe.errors import ValuesError
from keyquorum.fhe.lwe import lwe_parameters
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CiphertextError, KeyFileError, KeyQuorumError, ParameterError
from keyquorum.plans.examine import examine_keys
from keyquorum.schemes.lwe.key import load_lwe_key
from keyquorum.schemes.lwe.variant import LweVariant
from keyquorum.serve.kinds.decryption import ServedKey

from tests.commands import started
from tests.long import some

from .test_pools import call

EXACT = ("round_ltz_circuit", "round_mask_open")
TABLES = (*EXACT, "round_ltz_table")
COMMITTEES = [
    ("rep-field", 3, "lwe64-p16", TABLES), ("rep-field", 3, "lwe53-p16", EXACT), ("semi", 2, "lwe64-p2", TABLES),
    ("shamir", 3, "lwe53-p16", TABLES), ("mascot", 2, "lwe64-p32", EXACT),
]  # fmt: skip


@pytest.mark.parametrize(("protocol", "parties", "name", "roundings"), some(COMMITTEES, 2), ids=lambda v: str(v) if isinstance(v, str) else "")
def test_what_anybody_encrypts_the_quorum_decrypts(tmp_path: Path, protocol: str, parties: int, name: str, roundings: tuple[str, ...]) -> None:
    """60 values by each rounding, 0 wrong. The encryptor has a folder with only public files."""
    folder, parameters = tmp_path / "committee", lwe_parameters(name)
    api.init(folder, parties, protocol)
    assert "public.lwepk" in call("keygen", folder, "key", "-p", name)
    committee = Committee.load(folder)
    elsewhere = tmp_path / "elsewhere"
    assert "key.json, public.lwepk of key" in call("export", folder, "key", "-o", elsewhere)
    assert {path.name for path in elsewhere.rglob("*") if path.is_file()} == {"committee.toml", "key.json", "public.lwepk"}
    values, path = tmp_path / "x.json", tmp_path / "x.lwe"
    for rounding in roundings:
        messages = np.random.default_rng().integers(0, 1 << parameters.plain_bits, 60).tolist()
        values.write_text(json.dumps(messages))
        assert "under key " + load_lwe_key(elsewhere / "keys" / "key").key_id in call("encrypt", elsewhere, "key", values, "-o", path)
        call("pool", "fill", folder, "-p", name, "-n", 60, "--rounding", rounding)
        call("decrypt", folder, "key", path, "--to", 1, "--rounding", rounding)
        plain = tmp_path / "x.lwe.plain"
        assert json.loads(plain.read_text()) == messages
        assert call("decode", folder, "key", plain, "-n", 3).split()[:3] == [str(m) for m in messages[:3]]
    found = list(examine_keys(committee, committee.local_parties()))
    assert all(f.ok for f in found) and any("a share of LWE, public.lwepk" in f.text for f in found)


@pytest.mark.parametrize("name", ["lwe64-p16", "lwe53-p16"])
def test_flooding_is_refused_what_is_encrypted_with_public_keys(tmp_path: Path, name: str) -> None:
    """The noise of public keys is too large for `round_flood`, also under sets that allow it: refused at the caller, at every party, and at a served
    committee."""
    folder = tmp_path / "committee"
    committee = api.init(folder, 2, "semi")
    api.keygen(committee, "key", name)
    path = api.encrypt(committee, "key", [1, 2, 3], tmp_path / "x.lwe").path
    with pytest.raises(CiphertextError, match=r"states noise of up to 2\^[0-9.]+, round_flood hides 2\^\d+ of"):
        call("decrypt", folder, "key", path, "--to", 1, "--rounding", "round_flood")
    job = {
        "kind": "decrypt", "key": "key", "receiver": 0, "sha256": [hashlib.sha256(path.read_bytes()).hexdigest()], "rounding": "round_flood",
        "width": 8, "levels": 2, "pool": True, "backend": "embedded", "local": {"ciphertexts": [str(path)], "outputs": [str(tmp_path / "out")]},
    }  # fmt: skip
    with pytest.raises(KeyQuorumError, match="round_flood hides"):
        api.run_processes(folder, job)
    served = ServedKey(committee, 0, "key", "round_flood", 8, 2)
    assert isinstance(served.variant, LweVariant)
    with pytest.raises(CiphertextError, match="the request states noise"):
        served.read({}, path.read_bytes())
    served.close()


def test_a_job_for_several_hosts(tmp_path: Path) -> None:
    """Every party is started by itself, from the job file; each has the same public key."""
    api.init(tmp_path / "committee", 2, "semi")
    assert "start keyquorum party" in call("keygen", tmp_path / "committee", "key", "-p", "lwe64-p2", "--job", tmp_path / "job.json")
    parties = [started(tmp_path, "keyquorum", "party", "committee", i, "job.json", "--json") for i in range(2)]
    done = [party.ended() for party in parties]
    assert len({json.loads(each.stdout)["key_id"] for each in done}) == 1 and all(each.returncode == 0 for each in done)
    assert len({(tmp_path / f"committee/party-{i}/keys/key/public.lwepk").read_bytes() for i in range(2)}) == 1
    with pytest.raises(ParameterError, match="keys of LWE are made on the embedded engine: leave out --backend"):
        call("keygen", tmp_path / "committee", "other", "-p", "lwe64-p2", "--backend", "mp-spdz")


def test_output_as_json(tmp_path: Path) -> None:
    """keygen, its job, encrypt, decrypt and decode print one document each, with the results."""
    folder, path = tmp_path / "committee", tmp_path / "x.lwe"
    committee = api.init(folder, 2, "semi")
    (tmp_path / "x.json").write_text("[1, 0, 1]")
    assert json.loads(call("keygen", folder, "key", "-p", "lwe64-p2", "--job", tmp_path / "job.json", "--json")) == {
        "job": str(tmp_path / "job.json")
    }
    made = json.loads(call("keygen", folder, "key", "-p", "lwe64-p2", "--json"))
    assert made["parameters"] == "lwe64-p2" and Path(made["public"]).is_file() and len(made["costs"]) == 2
    written = json.loads(call("encrypt", folder, "key", tmp_path / "x.json", "-o", path, "--json"))
    key_id = load_lwe_key(committee.key_folder(0, "key")).key_id
    assert written == {"output": str(path), "bytes": path.stat().st_size, "key_id": key_id}
    api.pool_fill(committee, "lwe64-p2", "round_ltz_circuit", 3)
    done = json.loads(call("decrypt", folder, "key", path, "--to", 1, "--json"))
    assert done["outputs"] == [f"{path}.plain"]
    assert json.loads(call("decode", folder, "key", f"{path}.plain", "-n", 2, "--json")) == {
        "values": [1, 0], "of": 3, "largest_error": None, "types": ["block", "block"],
    }  # fmt: skip


@pytest.mark.parametrize("options", [("-s", 1), ("--flood-bits", 40), ("--decryptions", 2), ("--noise-bits", 10), ("--approvals",)])
def test_options_without_effect_are_refused(tmp_path: Path, options: tuple[object, ...]) -> None:
    committee = api.init(tmp_path / "committee", 2, "semi")
    with pytest.raises(ParameterError, match=r"leave (it )?out"):
        call("keygen", tmp_path / "committee", "key", "-p", "lwe64-p2", *options)
    assert not committee.key_folder(0, "key").exists()


def test_refusals(tmp_path: Path) -> None:
    folder = tmp_path / "committee"
    committee = api.init(folder, 2, "semi")
    api.keygen(committee, "key", "lwe64-p2")
    values, output = tmp_path / "x.json", tmp_path / "x.lwe"
    for text, said in (("[2]", "a value is outside 0 to 1"), ("[0.5]", "encrypts integers from 0 to 1")):
        values.write_text(text)
        with pytest.raises(ValuesError, match=said):
            call("encrypt", folder, "key", values, "-o", output)
    values.write_text("[0, 1]")
    with pytest.raises(ParameterError, match="--bound is for CKKS"):
        call("encrypt", folder, "key", values, "-o", output, "--bound", 1)
    assert not output.exists()
    keys = committee.key_folder(0, "key")
    public, info = keys / "public.lwepk", keys / "key.json"
    data = public.read_bytes()
    assert hashlib.sha256(data).hexdigest() == json.loads(info.read_text())["files"]["public.lwepk"]
    public.write_bytes(data[:-50] + bytes([data[-50] ^ 1]) + data[-49:])
    with pytest.raises(KeyFileError, match=r"public\.lwepk is damaged: copy it from another party"):
        call("encrypt", folder, "key", values, "-o", output)
    assert any(not f.ok and "public.lwepk is damaged" in f.text for f in examine_keys(committee, [0]))
    public.unlink()
    with pytest.raises(KeyFileError, match=r"public\.lwepk is missing: copy it from another party"):
        call("encrypt", folder, "key", values, "-o", output)
    old = {k: v for k, v in json.loads(info.read_text()).items() if k != "files"}
    info.write_text(json.dumps(old))
    with pytest.raises(KeyFileError, match=r"this LWE key has no public key, .*: make a new one with keyquorum keygen -p lwe64-p2"):
        call("encrypt", folder, "key", values, "-o", output)
    (tmp_path / "bad.plain").write_text('["1"]')
    with pytest.raises(CiphertextError, match="no messages of LWE"):
        call("decode", folder, "key", tmp_path / "bad.plain")
