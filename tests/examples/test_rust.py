"""The Rust example, where `make tfhe-example` built it: with the keys of a committee it encrypts and evaluates, and the committee decrypts what it writes."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from keyquorum import api, cli
from keyquorum.deploy.tfhe_bridge import bridge, run_bridge
from keyquorum.model.errors import KeyQuorumError
from typer.testing import CliRunner

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "pages" / "rust.md"
TEMPERATURES = (-5, 31, -12, 18)


@pytest.fixture(scope="module")
def program() -> Path:
    """The compiled example, beside the bridge."""
    try:
        found = bridge().with_name("keyquorum-tfhe-example")
    except KeyQuorumError as error:
        pytest.skip(str(error))
    if not found.exists():
        pytest.skip(f"{found} is not built: run make tfhe-example")
    return found


@pytest.fixture(scope="module")
def committee(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A committee with a key of full size, and TFHE-rs's keys in the folder `out` beside it."""
    folder = tmp_path_factory.mktemp("rust") / "committee"
    made = api.keygen(api.init(folder, 3, "rep-field"), "key", "tfhers-2-2")
    run_bridge(["keys", str(made.folder), str(folder.parent / "out")])
    return folder


def decrypted(committee: Path, *files: Path) -> list[tuple[int | bool, str]]:
    """What the commands `keyquorum decrypt` and `keyquorum decode` give for files of TFHE-rs: value and type of each."""
    api.pool_fill(committee, "tfhers-2-2", "round_ltz_circuit", sum(file.stat().st_size // 16_000 + 1 for file in files))
    runner = CliRunner()
    runner.invoke(cli.app, ["decrypt", str(committee), "key", *map(str, files), "--to", "0"], catch_exceptions=False)
    found = []
    for file in files:
        said = runner.invoke(cli.app, ["decode", str(committee), "key", f"{file}.plain", "--json"], catch_exceptions=False)
        read = json.loads(said.stdout)
        assert read["of"] == 1
        found.append((read["values"][0], read["types"][0]))
    return found


def test_it_computes_under_the_keys_of_a_committee(tmp_path: Path, program: Path, committee: Path) -> None:
    out = committee.parent / "out"
    for command in (
        ["encrypt", out / "CompactPublicKey.bin", tmp_path / "list", *TEMPERATURES],
        ["evaluate", out / "ServerKey.bin", tmp_path / "list", tmp_path / "x"],
    ):
        done = subprocess.run([str(program), *map(str, command)], capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0 and not done.stdout, done.stderr
    results = [tmp_path / f"x.{name}" for name in ("total", "highest", "frost")]
    assert decrypted(committee, *results) == [(sum(TEMPERATURES), "int32"), (max(TEMPERATURES), "int16"), (True, "bool")]
    for arguments, said in (
        (["encrypt", out / "CompactPublicKey.bin", tmp_path / "y", "99999"], "99999 is not a number from -32768 to 32767"),
        (["encrypt", tmp_path / "none", tmp_path / "y", "1"], f"{tmp_path}/none: No such file"),
        (["evaluate", out / "ServerKey.bin", out / "CompactPublicKey.bin", tmp_path / "y"], "expected type high_level_api::CompactCiphertextList"),
        (["evaluate"], "give encrypt CompactPublicKey.bin"),
    ):  # fmt: skip
        done = subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 1 and said in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_values_of_all_widths_are_decrypted(tmp_path: Path, committee: Path) -> None:
    """Of every type that the bridge encrypts: the smallest, the largest and a random value, decrypted by the committee."""
    rng = np.random.default_rng(5)
    public, asked = str(committee.parent / "out" / "CompactPublicKey.bin"), list[tuple[Path, int, str]]()
    for bits in (2, 4, 6, 8, 10, 12, 14, 16, 24, 32, 64, 128, 256):
        random = int.from_bytes(rng.bytes(bits // 8 + 1), "little") % (1 << bits)
        half = 1 << (bits - 1)
        for kind, values in ((f"uint{bits}", ((1 << bits) - 1, random)), (f"int{bits}", (-half, random - half))):
            for value in values:
                file = tmp_path / f"{kind}.{len(asked)}"
                run_bridge(["encrypt", public, kind, str(value), str(file)])
                asked.append((file, value, kind))
    wide = (tmp_path / "wide", -(3**1290), "int2048")
    run_bridge(["encrypt", public, "int2048", str(wide[1]), str(wide[0])])
    asked.append(wide)
    assert decrypted(committee, *(file for file, _, _ in asked)) == [(value, kind) for _, value, kind in asked]


def test_the_page_shows_the_commands_that_ran() -> None:
    """docs/pages/rust.md names the commands of the example with the same number of arguments."""
    text = PAGE.read_text()
    assert re.search(r"example encrypt \S+/CompactPublicKey.bin \S+ -5 31 -12 18\n", text)
    assert re.search(r"example evaluate \S+/ServerKey.bin \S+ \S+\n", text)
