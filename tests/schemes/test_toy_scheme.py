"""A scheme that lies outside of the package: keys, export, pools, decryption, a served committee's requests, doctor, with nothing else edited."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import keyquorum.schemes
import numpy as np
import pytest
from keyquorum import api
from keyquorum.fhe.errors import SecurityWarning
from keyquorum.inspection import examine
from keyquorum.model.errors import CiphertextError, KeyFileError, KeyQuorumError, ParameterError
from keyquorum.parties.jobs import check_alone, check_job
from keyquorum.plans.examine import examine_keys
from keyquorum.plans.pool_store import pool_status
from keyquorum.plans.pools import pools_folder
from keyquorum.schemes.key_folder import load_key, load_public_file
from keyquorum.serve.kinds.decryption import ServedKey

from .in_threads import on_disk, run
from .test_schemes import OLD

MORE = Path(__file__).parent / "more"


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The package of toys is where schemes are looked for."""
    monkeypatch.setattr(keyquorum.schemes, "__path__", [*keyquorum.schemes.__path__, str(MORE)])
    keyquorum.schemes.schemes.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecurityWarning)
        yield
    monkeypatch.undo()
    keyquorum.schemes.schemes.cache_clear()


@pytest.mark.parametrize(("protocol", "parties"), [("semi", 2), ("rep-field", 3)])
def test_a_scheme_from_outside(toys: None, tmp_path: Path, protocol: str, parties: int) -> None:
    members = on_disk(tmp_path, protocol, parties)
    assert "toy-3" in api.parameter_set_names() and api.keygen_needs(members, "toy-3", noise="4") == api.Needs(10**6, 1000)
    with pytest.warns(SecurityWarning, match="a toy hides nothing"):
        job = api.keygen_job("key", "toy-3", noise="4")
    made = run(members, job)
    folder = members.key_folder(0, "key")
    info = load_key(folder)
    assert {m["key_id"] for m in made} == {info.key_id} and info.to_json()["noise"] == 4
    with pytest.raises(KeyFileError, match="there is a key of this name already"):
        run(members, job)
    assert all(finding.ok for finding in examine_keys(members, range(parties)))

    assert load_public_file(folder, info, "toy.large") == b"KQTOY001" * 1000 and set(info.files) == {"toy.public", "toy.large"}
    where, exported = api.export_key(members, "key", folder, tmp_path / "elsewhere")
    assert exported == info and {path.name for path in where.iterdir()} == {"key.json", "toy.public", "toy.large"}
    assert examine(folder).details["files"] == info.files and examine(where / "toy.large").lines == ["a file of toys"]
    (where / "toy.large").write_bytes(b"KQTOY001" * 999)
    with pytest.raises(KeyFileError, match=r"toy\.large is damaged: copy it from another party"):
        examine(where)

    paths, messages = [tmp_path / "a.toy", tmp_path / "b.toy"], [[7, 0, 5], list(range(8)) * 4]
    for path, values in zip(paths, messages, strict=True):
        assert api.encrypt(members, "key", values, path).info == info
    for rounding in ("round_ltz_circuit", "round_mask_open"):
        run(members, {"kind": "pool_fill", "parameters": "toy-3", "rounding": rounding, "width": 8, "levels": 2, "count": 40, "chunk": 16})
        outputs = [tmp_path / f"{path.name}.{rounding}" for path in paths]
        results = run(members, api.decrypt_job(members, "key", paths, 1, outputs, rounding))
        assert results[1]["outputs"] == list(map(str, outputs)) and "outputs" not in results[0]
        assert [api.decode(members, "key", output).tolist() for output in outputs] == messages
        assert pool_status(pools_folder(members, 0) / f"toy-3-{rounding}") == (40, 35)

    served = ServedKey(members, 0, "key", "round_ltz_circuit")
    asked = served.read({"key": info.key_id}, paths[0].read_bytes())
    assert (asked.count, asked.digest) == (3, hashlib.sha256(paths[0].read_bytes()).hexdigest())
    with pytest.raises(CiphertextError, match="encrypted under another key"):
        served.read({"key": "00" * 16}, paths[0].read_bytes())
    served.close()


def test_what_it_refuses(toys: None, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="noise 12: choose 1 to 9"):
        api.keygen_job("key", "toy-2", noise=12)
    job = api.keygen_job("key", "toy-2")
    with pytest.raises(KeyQuorumError, match="the keygen job has no 'noise', or not as a int"):
        check_job({**job, "noise": "3"})
    for members, said in ((api.in_process_committee(3, "shamir"), "over rings"), (api.in_process_committee(2, "mascot"), "without MACs")):
        with pytest.raises(ParameterError, match=said):
            check_alone(replace(members, folder=tmp_path), 0, job)
    lwe = load_key(OLD / "party-0" / "lwe")
    with pytest.raises(CiphertextError, match="not a file of LWE ciphertexts"):
        keyquorum.schemes.scheme_of(lwe).parse(lwe, b"KQTOY001" + bytes(100), "the file", "round_ltz_circuit")
    with pytest.raises(
        ParameterError,
        match=r"there is no parameter set 'toy-4': choose one of .*; for LWE lwe64-p2.*; for TFHE tfhers-2-2; for FHEW ajax53; for PRF prf-aes128, prf-legendre127.*; for toys toy-2, toy-3",
    ):
        api.load_parameters("toy-4")


def test_it_is_gone_afterwards() -> None:
    assert "toys" not in [scheme.title for scheme in keyquorum.schemes.schemes()]
    with pytest.raises(KeyQuorumError, match="unknown scheme 'toy'"):
        check_job({"kind": "keygen", "key": "key", "parameters": {"scheme": "toy"}, "backend": "embedded", "local": {}})
    assert np.all([name[:3] != "toy" for name in api.parameter_set_names()])


@pytest.mark.parametrize("options", [{"noise": 3}, {"relin": False, "dance": 1}])
@pytest.mark.parametrize("name", ["bfv-4096", "lwe64-p2"])
def test_options_that_a_scheme_does_not_know_are_refused(name: str, options: dict[str, object]) -> None:
    with pytest.raises(ParameterError, match=r"(noise|dance) is no option of keys (for SEAL|of LWE)"):
        api.keygen_job("key", name, **options)  # type: ignore[arg-type]
