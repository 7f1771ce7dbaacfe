"""The interface of schemes: what is found, and that keys of version 0.1.0 stay of use."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path

import keyquorum.schemes
import numpy as np
import pytest
from keyquorum import api
from keyquorum.fhe.lwe import LWE_SETS, decrypt_clear, lwe_parameters, read_lwe
from keyquorum.inspection import examine
from keyquorum.model.errors import KeyFileError, KeyQuorumError, ParameterError
from keyquorum.parties.jobs import check_job, find_job, job_kinds
from keyquorum.plans.examine import examine_keys
from keyquorum.schemes import load_parameters, parameter_set_names, recognise, scheme_named, scheme_of, schemes
from keyquorum.schemes.key_folder import load_key, load_shares
from keyquorum.schemes.lwe.key import load_lwe_key
from keyquorum.schemes.seal.key import load_seal_key

OLD = Path(__file__).parent / "keys-0.1.0"
"""Key folders of version 0.1.0: an LWE key of two parties, and the metadata of a BFV key."""
BFV_DIGEST = "f070e7613705958350c92d1f52f7286eeaec1f487d89cfd56310257b8e1238e6"
"""Of that key, by version 0.1.0."""


def test_schemes_are_found_and_their_names_are_apart() -> None:
    assert [scheme.title for scheme in schemes()][:5] == ["SEAL", "LWE", "TFHE", "FHEW", "PRF"]
    folders = {path.parent.name for path in Path(keyquorum.schemes.__file__).parent.glob("*/scheme.py")}
    assert {type(scheme).__module__.split(".")[-2] for scheme in schemes()} == folders
    names = [name for scheme in schemes() for name in scheme.names]
    assert {"bfv", "bgv", "ckks", "fhew", "lwe", "prf", "tfhe"} <= set(names) and all(name in scheme_named(name).names for name in names)
    assert len(set(names)) == len(names) and len({scheme.order for scheme in schemes()}) == len(schemes())
    assert len(set(parameter_set_names())) == len(parameter_set_names()) > len(LWE_SETS)
    for name in parameter_set_names():
        chosen = load_parameters(name, warn=False)
        assert chosen.name == name and scheme_of(chosen) is scheme_named(chosen.scheme)
        line, details = scheme_of(chosen).texts.parameter_set(chosen)
        assert details["scheme"] == chosen.scheme and line
    with pytest.raises(ParameterError, match="unknown scheme 'bfw': choose one of bfv, bgv, ckks, lwe, tfhe, fhew, prf"):
        scheme_named("bfw")
    assert recognise(b"KQLWE002") is scheme_named("lwe") and recognise(b"\x5e\xa1") is None


@pytest.mark.parametrize("name", ["bfv-4096", "ckks-8192-demo", "lwe64-p2", "lwe53-p16", "tfhers-2-2", "ajax53", "prf-aes128", "prf-legendre127"])
def test_a_request_survives_its_job(name: str) -> None:
    job = json.loads(json.dumps(api.keygen_job("key", name)))
    assert check_job(job) == "keygen"
    request = scheme_named(job["parameters"]["scheme"]).request_from_job(job)
    assert request.parameters == load_parameters(name) and json.loads(json.dumps(request.to_json())).items() <= job.items()
    with pytest.raises(ParameterError):
        find_job("keygen").more_fields({"parameters": {"scheme": "dance"}})


def test_jobs_of_benchmarks_are_apart() -> None:
    assert set(job_kinds()) == {
        "keygen",
        "decrypt",
        "pool_fill",
        "toprf_fill",
        "share",
        "toprf_encrypt",
        "program",
        "refresh_shares",
        "recover",
        "reshare",
        "epoch_prove",
    } and all(kind.startswith("sweep:") for kind in job_kinds("sweep"))
    for kind in [*job_kinds(), *job_kinds("sweep")]:
        assert callable(find_job(kind).run)
    for kind in ("sweep:", "sweep:dance", "elsewhere:x", "decrypt:", "os:path", "lwe_keygen", 3, None):
        with pytest.raises(
            KeyQuorumError,
            match=r"unknown job .*: choose one of keygen, decrypt, pool_fill, toprf_fill, share, toprf_encrypt, refresh_shares, recover, reshare, epoch_prove, program",
        ):
            find_job(kind)


def test_an_lwe_key_of_0_1_0_is_of_use(tmp_path: Path) -> None:
    """Its shares are of the secret under its public key, and parties agree on it. Its metadata are written byte by byte."""
    committee = replace(api.in_process_committee(2, "semi"), folder=tmp_path / "committee")
    for party in range(2):
        shutil.copytree(OLD / f"party-{party}" / "lwe", committee.key_folder(party, "key"))
        for path in (committee.key_folder(party, "key"), *committee.key_folder(party, "key").glob("*.kqs")):
            path.chmod(0o700 if path.is_dir() else 0o600)
    folders = [committee.key_folder(party, "key") for party in range(2)]
    infos = [load_key(folder) for folder in folders]
    assert infos[0] == infos[1] == load_lwe_key(folders[0]) and infos[0].parameters == lwe_parameters("lwe64-p2")
    assert (infos[0].key_id, infos[0].transcript) == ("3af475487b5dc6bbd943f8d0f4842d74", "")
    shares = [load_shares(folder, infos[0], party)[0] for party, folder in enumerate(folders)]
    secret = sum(share.words[0] for share in shares).astype(np.int64)
    assert set(secret.tolist()) == {0, 1}
    messages = [1, 0, 1, 1]
    made = scheme_of(infos[0]).encrypt_to(folders[0], infos[0], messages, tmp_path / "x.lwe")
    assert decrypt_clear(read_lwe(made.data, "x")[0], secret)[0].tolist() == messages
    assert all(finding.ok for finding in examine_keys(committee, [0, 1]))
    with pytest.raises(KeyFileError, match="a key of LWE, which SEAL has no use for"):
        load_seal_key(folders[0])
    seen = examine(folders[0])
    assert seen.kind == "key folder" and seen.lines[0].startswith(f"LWE key {infos[0].key_id}, lwe64-p2") and "1 share files" in seen.lines
    assert examine(folders[0] / "key.json").kind == "metadata of a key"
    assert examine(folders[0] / "public.lwepk").checked == "sha256, also of key.json"
    assert infos[0].to_json()["parameters"] == asdict(lwe_parameters("lwe64-p2"))
    assert (folders[0] / "key.json").read_text() == json.dumps(infos[0].to_json(), indent=1) + "\n"


def test_an_lwe_key_of_another_set_of_this_name_is_refused(tmp_path: Path) -> None:
    data = load_key(OLD / "party-0" / "lwe").to_json()
    data["parameters"]["dimension"] = 512
    (tmp_path / "key.json").write_text(json.dumps(data))
    with pytest.raises(KeyFileError, match="the parameter set lwe64-p2 is not that of this version"):
        load_key(tmp_path)


def test_metadata_for_seal_are_those_of_0_1_0() -> None:
    """Read, and written byte by byte."""
    info = load_seal_key(OLD / "bfv")
    assert info.digest.hex() == BFV_DIGEST
    assert (OLD / "bfv" / "key.json").read_text() == json.dumps(info.to_json(), indent=1) + "\n"
    with pytest.raises(KeyFileError, match="a key of BFV, not of LWE"):
        load_lwe_key(OLD / "bfv")
