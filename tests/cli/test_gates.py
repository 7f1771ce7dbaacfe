"""The baseline on LWE ciphertexts as commands: a key, items, and values among processes; mistakes have one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from keyquorum import api
from keyquorum.cli import app
from keyquorum.model.errors import CommitteeError, ParameterError
from keyquorum.schemes.prf_lwe.parameters import NAMES
from typer.testing import CliRunner

from tests.long import LONG
from tests.schemes.test_prf_lwe_jobs import aes_of

BLOCK = bytes.fromhex("00112233445566778899aabbccddeeff")


def call(*words: object) -> Any:
    result = CliRunner().invoke(app, ["gates", *map(str, words), "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.filterwarnings("ignore:.*for comparison only")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.skipif(
    not LONG, reason="a minute of processes: KEYQUORUM_LONG=1; tests/schemes/test_prf_lwe_jobs.py runs the commands on a key of threads"
)
def test_a_key_items_and_values(tmp_path: Path, name: str) -> None:
    """The values are AES of another library under the key that all shares give; of two blocks the items are used."""
    committee = api.init(tmp_path / "committee", 2, "semi2k")
    folder = committee.folder
    assert call("keygen", folder, "gates", "-p", name)["parameters"] == name
    assert call("fill", folder, "gates", "-n", 1)["left"] == 1
    done = call("eval", folder, "gates", BLOCK.hex(), "--to", 1)
    assert done["values"] == [aes_of(committee, BLOCK).hex()] and done["receiver"] == 1 and len(done["costs"]) == 2
    call("fill", folder, "gates", "-n", 2)
    (tmp_path / "blocks").write_text(f"{BLOCK.hex()}\n{bytes(16).hex()}\n")
    call("eval", folder, "gates", "--batch", tmp_path / "blocks", "-o", tmp_path / "values")
    assert (tmp_path / "values").read_text().split() == [aes_of(committee, block).hex() for block in (BLOCK, bytes(16))]


@pytest.mark.parametrize(
    ("words", "error", "why"),
    [
        (["eval", "committee", "key", "00"], ParameterError, "a block of 2 characters: give 32 hexadecimal digits"),
        (["eval", "committee", "key", "0x" * 16], ParameterError, "a block of 32 characters"),
        (["eval", "committee", "key"], ParameterError, "name blocks, or --batch FILE"),
        (["eval", "committee", "key", BLOCK.hex(), "--batch", "blocks"], ParameterError, "name blocks, or --batch FILE"),
        (["eval", "committee", "key", "--batch", "none"], ParameterError, "none: no such file"),
        (["eval", "committee", "key", "--batch", "empty"], ParameterError, "empty: no blocks"),
        (["eval", "committee", "key", BLOCK.hex()], CommitteeError, "no key 'key' at any party"),
        (["fill", "committee", "key", "-n", "1"], CommitteeError, "no key 'key' at any party"),
        (["keygen", "committee", "key", "-p", "lwe53-p16"], ParameterError, "lwe53-p16"),
    ],
)
def test_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], error: type[Exception], why: str) -> None:
    monkeypatch.chdir(tmp_path)
    api.init(tmp_path / "committee", 2, "semi2k")
    (tmp_path / "empty").touch()
    with pytest.raises(error, match=why):
        CliRunner().invoke(app, ["gates", *words], catch_exceptions=False)
