"""`keyquorum tfhe` passes its arguments to the bridge, and says how to build it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from keyquorum import api, cli
from keyquorum.cli import tfhe
from keyquorum.deploy import tfhe_bridge
from keyquorum.fhe.lwe import TFHE_SETS
from keyquorum.schemes.key_folder import write_public_files
from keyquorum.schemes.tfhe.keygen import TfheRequest


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
    code, out, _ = run(capsys, monkeypatch, "encrypt", "a", "uint8", "7", "b", "--json")
    assert code == 0 and json.loads(out) == {"command": "encrypt", "lines": ["[encrypt a uint8 7 b]"]}
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
