"""The baseline on LWE ciphertexts as a script: a key, items, and values among processes; mistakes have one line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bench.baselines.toprf_lwe.__main__ import main
from bench.baselines.toprf_lwe.parameters import NAMES
from keyquorum import api

from tests.long import LONG
from tests.schemes.test_prf_lwe_jobs import aes_of

BLOCK = bytes.fromhex("00112233445566778899aabbccddeeff")


@pytest.mark.filterwarnings("ignore:.*for comparison only")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.skipif(not LONG, reason="a minute of processes: KEYQUORUM_LONG=1; test_prf_lwe_jobs.py runs the script on a key of threads")
def test_a_key_items_and_values(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The values are AES of another library under the key that all shares give."""
    committee = api.init(tmp_path / "committee", 2, "semi2k")
    (tmp_path / "blocks").write_text(f"{BLOCK.hex()}\n{bytes(16).hex()}\n")
    for words in (("keygen", "-p", name), ("fill", "-n", "2"), ("eval", "--batch", str(tmp_path / "blocks"), "--to", "1")):
        assert main([words[0], str(committee.folder), "gates", *words[1:]]) == 0
    printed = [line for line in capsys.readouterr().out.splitlines() if re.fullmatch("[0-9a-f]{32}", line)]
    assert printed == [aes_of(committee, block).hex() for block in (BLOCK, bytes(16))]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["eval", "committee", "key", "00"], "a block of 2 characters: give 32 hexadecimal digits"),
        (["eval", "committee", "key", "0x" * 16], "a block of 32 characters"),
        (["eval", "committee", "key"], "name blocks, or --batch FILE"),
        (["eval", "committee", "key", BLOCK.hex(), "--batch", "blocks"], "name blocks, or --batch FILE"),
        (["eval", "committee", "key", "--batch", "none"], "none: no such file"),
        (["eval", "committee", "key", "--batch", "empty"], "0 blocks: give 1 to 1024"),
        (["eval", "committee", "key", BLOCK.hex()], "no key 'key' at any party"),
        (["fill", "committee", "key", "-n", "1"], "no key 'key' at any party"),
        (["keygen", "committee", "key", "-p", "lwe53-p16"], "unknown parameter set 'lwe53-p16'"),
    ],
)
def test_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    api.init(tmp_path / "committee", 2, "semi2k")
    (tmp_path / "empty").touch()
    assert main(words) == 1 and why in capsys.readouterr().err
