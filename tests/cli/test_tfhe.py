"""`keyquorum tfhe` passes its arguments to the bridge, and says how to build it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from keyquorum import api, cli
from keyquorum.cli import tfhe
from keyquorum.deploy import tfhe_bridge
from keyquorum.fhe.block_types import typed_values
from keyquorum.fhe.lwe import TFHE_SETS, LweCiphertexts, messages_to_bytes, read_lwe
from keyquorum.model.committee import Committee
from keyquorum.model.errors import KeyQuorumError, ParameterError
from keyquorum.schemes import encryption_of
from keyquorum.schemes.key_folder import write_public_files
from keyquorum.schemes.seal.keygen import SealRequest
from keyquorum.schemes.tfhe.key import TfheKeyInfo
from keyquorum.schemes.tfhe.keygen import TfheRequest
from typer.testing import CliRunner

from tests.fhe.test_block_types import tfhe_file


def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[int, str, str]:
    """Exit code, output and errors of the command line."""
    monkeypatch.setattr(sys, "argv", ["keyquorum", "tfhe", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out, said.err


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in the place of the bridge."""
    path = tmp_path / "bridge"
    path.write_text('#!/bin/sh\n[ "$1" = fail ] && { echo "error: x.kqt: damaged" >&2; exit 1; }\n[ "$1" = die ] && exit 3\necho "[$@]"\n')
    path.chmod(0o700)
    monkeypatch.setenv(tfhe_bridge.VARIABLE, str(path))
    return path


def test_arguments_and_errors_pass_through(program: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(capsys, monkeypatch) == (0, "[--help]\n", "")
    assert run(capsys, monkeypatch, "eval", "server", "add", "--odd", "x") == (0, "[eval server add --odd x]\n", "")
    code, out, _ = run(capsys, monkeypatch, "encrypt", "a", "int8", "-7", "b", "--json")
    assert code == 0 and json.loads(out) == {"command": "encrypt", "lines": ["[encrypt a int8 -7 b]"]}
    assert run(capsys, monkeypatch, "fail") == (1, "", "error: x.kqt: damaged\n")
    assert run(capsys, monkeypatch, "die") == (1, "", "error: keyquorum-tfhe ended with code 3: run it again\n")


def test_files_that_are_not_those_of_the_key_are_refused(
    tmp_path: Path, program: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody put the files of a key of his own in the place of the committee's, with its id: the digests in key.json differ."""
    from tests.schemes.test_tfhe import TINY, changed

    monkeypatch.setitem(TFHE_SETS, TINY.name, TINY)
    material = api.keygen_in_process(api.in_process_committee(2, "semi"), TfheRequest(TINY))[0]
    info = write_public_files(tmp_path, material.info, material.public)
    (tmp_path / "key.json").write_text(json.dumps(info.to_json()))
    for command in tfhe.KEYED:
        assert run(capsys, monkeypatch, command, str(tmp_path), "x")[0] == 0
    (tmp_path / "compact.kqt").write_bytes(changed(material.public["compact.kqt"], seed="12" * 16))
    for command in tfhe.KEYED:
        code, out, err = run(capsys, monkeypatch, command, str(tmp_path), "x")
        assert code == 1 and not out and "compact.kqt is damaged: copy it from another party" in err and err.count("\n") == 1


def tfhe_key(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Committee, TfheKeyInfo]:
    """A committee of this host with the public files of a small key."""
    from tests.schemes.test_tfhe import TINY

    monkeypatch.setitem(TFHE_SETS, TINY.name, TINY)
    material = api.keygen_in_process(api.in_process_committee(2, "semi"), TfheRequest(TINY))[0]
    committee = api.init(folder / "committee", 2, "semi")
    place = committee.key_folder(0, "key")
    place.mkdir(parents=True)
    info = write_public_files(place, material.info, material.public)
    (place / "key.json").write_text(json.dumps(info.to_json()))
    assert isinstance(info, TfheKeyInfo)
    return committee, info


def test_decrypt_takes_the_files_of_tfhe_rs(
    tmp_path: Path, program: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bridge makes LWE ciphertexts of them, with the type of the value, and the job has these; the type goes with them to the one who decodes."""
    committee, info = tfhe_key(tmp_path, monkeypatch)
    block = info.parameters.block_bits
    messages = np.array([3, 2, 1, 0][: 8 // block] if block == 2 else [1] * (8 // block))
    rng = np.random.default_rng(2)
    a, b = (rng.integers(0, 1 << 63, shape, dtype=np.uint64) for shape in ((messages.size, info.parameters.dimension), messages.size))
    program.write_text(f'#!/bin/sh\n[ "$1" = to-lwe ] && cp {tmp_path}/made "$4" && echo "$@" >> {tmp_path}/asked\n')
    for name, type_name in (("FheUint", "uint8"), ("FheInt", "int8")):
        (tmp_path / "made").write_bytes(LweCiphertexts(info.parameters, a, b, 58.0, (type_name,)).to_bytes(info.key_id))
        (tmp_path / "x").write_bytes(tfhe_file(f"high_level_api::{name}"))
        CliRunner().invoke(
            cli.app,
            ["decrypt", str(committee.folder), "key", str(tmp_path / "x"), "--to", "0", "--job", str(tmp_path / "job.json")],
            catch_exceptions=False,
        )
        job = json.loads((tmp_path / "job.json").read_text())
        assert job["local"]["ciphertexts"] == ["x.lwe"] and f"{committee.key_folder(0, 'key')} {tmp_path}/x " in (tmp_path / "asked").read_text()
        ciphertexts, _ = read_lwe((tmp_path / "x.lwe").read_bytes(), "x")
        assert ciphertexts.types == (type_name,)
        decrypted = encryption_of(info).plaintexts(info, [ciphertexts], messages.astype(np.uint64))[0]
        assert json.loads(decrypted.plaintext)["types"] == [type_name]
        (tmp_path / "x.plain").write_bytes(messages_to_bytes(messages, ciphertexts.types))
        said = CliRunner().invoke(cli.app, ["decode", str(committee.folder), "key", str(tmp_path / "x.plain"), "--json"], catch_exceptions=False)
        found = json.loads(said.stdout)
        assert found["types"] == [type_name] and found["values"] == typed_values([type_name], messages.tolist(), block, "x")
    shown = CliRunner().invoke(
        cli.app, ["decode", str(committee.folder), "key", str(tmp_path / "x.plain"), "--type", "block"], catch_exceptions=False
    )
    assert shown.stdout.split() == [str(m) for m in messages]


def test_what_is_no_value_of_tfhe_rs_is_not_decrypted(
    tmp_path: Path, program: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    committee, _ = tfhe_key(tmp_path, monkeypatch)

    def refused(*words: object) -> str:
        with pytest.raises(KeyQuorumError) as caught:
            CliRunner().invoke(cli.app, ["decrypt", str(committee.folder), "key", str(tmp_path / "x"), *map(str, words)], catch_exceptions=False)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    for name, what in (
        ("CompactCiphertextList", "expand it, and write each value by safe_serialize"),
        ("CompressedFheInt", "decompress it first"),
        ("SquashedNoiseFheUint", "write the value before its noise is squashed"),
        ("FheAsciiString", "write each character as FheUint8"),
        ("ClientKey", "name a ciphertext"),
    ):
        (tmp_path / "x").write_bytes(tfhe_file(f"high_level_api::{name}"))
        said = refused("--to", 0)
        assert said == f"{tmp_path}/x: a {name} of TFHE-rs, and decrypt takes FheUint, FheInt, FheBool and shortint blocks: {what}"
    (tmp_path / "x").write_bytes(bytes(8) + b"what bincode alone writes of a ciphertext has no header")
    assert "neither LWE ciphertexts nor a ciphertext that TFHE-rs's safe_serialize wrote: write it by safe_serialize" in refused("--to", 0)
    (tmp_path / "x").write_bytes(tfhe_file("high_level_api::FheUint"))
    program.chmod(0o600)
    assert "which is no program" in refused("--to", 0)
    monkeypatch.delenv(tfhe_bridge.VARIABLE)
    monkeypatch.setattr(tfhe_bridge, "BUILT", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    for words in (("--to", 0), ("--to", 0, "--job", tmp_path / "job.json"), ("--committee", "--identity", tmp_path / "x")):
        assert "keyquorum-tfhe, the bridge to TFHE-rs, is not built: run make tfhe-bridge" in refused(*words)
    place = committee.key_folder(0, "bfv")
    place.mkdir(parents=True)
    made = api.keygen_in_process(api.in_process_committee(2, "semi"), SealRequest(api.load_parameters("bfv-4096"), relin=False))[0]
    (place / "key.json").write_text(json.dumps(write_public_files(place, made.info, made.public).to_json()))
    with pytest.raises(ParameterError, match="'bfv' is not a key for TFHE-rs"):
        CliRunner().invoke(cli.app, ["decrypt", str(committee.folder), "bfv", str(tmp_path / "x"), "--to", "0"], catch_exceptions=False)
    with pytest.raises(ParameterError, match="--type is for keys of LWE and TFHE"):
        CliRunner().invoke(cli.app, ["decode", str(committee.folder), "bfv", str(tmp_path / "x"), "--type", "uint8"], catch_exceptions=False)


def test_it_says_how_to_build_the_bridge(program: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    program.chmod(0o600)
    for named in (program, program.parent):
        monkeypatch.setenv(tfhe_bridge.VARIABLE, str(named))
        code, _, err = run(capsys, monkeypatch, "keys")
        assert code == 1 and "which is no program" in err and err.count("\n") == 1
    monkeypatch.delenv(tfhe_bridge.VARIABLE)
    monkeypatch.setattr(tfhe_bridge, "BUILT", ())
    monkeypatch.setenv("PATH", str(program.parent))
    code, _, err = run(capsys, monkeypatch, "keys")
    assert code == 1 and "run make tfhe-bridge in a checkout" in err and err.count("\n") == 1
    (program.parent / tfhe_bridge.BRIDGE).symlink_to("bridge")
    program.chmod(0o700)
    assert tfhe_bridge.bridge() == program.parent / tfhe_bridge.BRIDGE
