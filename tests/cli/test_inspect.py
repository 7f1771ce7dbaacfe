"""`keyquorum inspect` knows every kind of file and folder that the project writes, and notices when one is damaged."""

from __future__ import annotations

import ast
import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from keyquorum import cli
from keyquorum._engine import EngineError
from keyquorum.inspection import KINDS, describe, examine
from keyquorum.model.errors import KeyQuorumError
from keyquorum.model.inspected import STRUCTURE

from tests.fhe.test_block_types import tfhe_file

from .world import HIT, KEYS, POOL, ROOT, SAMPLES, build, own_set

NAMES = [kind.name for kind in KINDS]
PACKAGE = ROOT / "harness" / "keyquorum"
UNTOUCHED = {"temporary file", "lock", "file of TFHE-rs"}
"""What says nothing of its content, may be empty, or is read by another library."""
EMPTY_AT_FIRST = {"audit log"}
"""What is empty until something happens."""
LOOSE = {"weights of the CNN"}
"""Archives, of whose own headers not every byte counts."""
ELSEWHERE = {
    "inspection": "reads", "backends/mpspdz": "work folders of MP-SPDZ, which are removed",
    "sweep/party": "programs of a run, which are removed", "sweep/measure": "the same",
    "parties/traces": "removes", "model/outputs": "has others write", "parties/processes": "logs of a run, which are removed",
    "plans/program": "inputs that were typed, for a run, which are removed",
}  # fmt: skip
"""Modules that write files which nobody keeps, and why."""
WRITES = {"write_atomically", "save_file", "write_text", "write_bytes", "savez_compressed", "make_identity", "savefig", "save_all"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """See :mod:`.world`."""
    folder = tmp_path_factory.mktemp("world")
    build(folder)
    return folder


def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: object) -> tuple[int, str, str]:
    """Exit code, output and errors of the command line."""
    monkeypatch.setattr(sys, "argv", ["keyquorum", "inspect", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    said = capsys.readouterr()
    code = ended.value.code
    return (code if isinstance(code, int) else 0), said.out, said.err


def test_every_kind_is_tried() -> None:
    assert len(set(NAMES)) == len(NAMES) and set(SAMPLES) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_recognised(world: Path, name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    path = world / SAMPLES[name]
    code, out, _ = run(capsys, monkeypatch, path)
    assert code == 0 and 2 <= len(out.strip().splitlines()) <= 15 and "checked: " in out
    assert list(describe(path)) == out.strip().splitlines()[:-1]
    code, out, _ = run(capsys, monkeypatch, path, "--json")
    said = json.loads(out)
    assert code == 0 and said["kind"] == name and said["path"] == str(path) and said["lines"] and said["checked"]


def _copy(world: Path, folder: Path) -> Path:
    shutil.copytree(world, folder / "copy", symlinks=True)
    return folder / "copy"


def _target(folder: Path, name: str) -> Path:
    path = folder / SAMPLES[name]
    return path / HIT[name] if name in HIT else path


@pytest.mark.parametrize("name", [name for name in NAMES if name not in UNTOUCHED])
def test_a_cut_file_is_noticed(world: Path, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of it, and a byte less than half, are one line of error and exit code 1."""
    folder = _copy(world, tmp_path)
    target = _target(folder, name)
    data = target.read_bytes()
    for size in (len(data) // 2, len(data) // 2 - 1, *([] if name in EMPTY_AT_FIRST else [0])):
        target.write_bytes(data[:size])
        code, out, err = run(capsys, monkeypatch, folder / SAMPLES[name])
        assert code == 1 and out == "" and err.startswith("error: ") and len(err.strip().splitlines()) == 1, (size, err)
        assert "Traceback" not in err


@pytest.mark.parametrize("name", NAMES)
def test_a_changed_byte_is_noticed_where_there_is_a_hash(world: Path, name: str, tmp_path: Path) -> None:
    checked = examine(world / SAMPLES[name]).checked
    if checked == STRUCTURE or "against" in checked or name in LOOSE or name == "certificate":
        assert name in NAMES
        return
    folder = _copy(world, tmp_path)
    target = _target(folder, name)
    if name == "receipt":  # whose hash is that of the ciphertext
        target = target.with_suffix("")
    data, rng = target.read_bytes(), np.random.default_rng(3)
    for place in (0, 1, 9, len(data) // 2, len(data) - 1, *map(int, rng.integers(0, len(data), 15))):
        changed = bytearray(data)
        changed[place] ^= 1 << int(rng.integers(0, 8))
        target.write_bytes(changed)
        with pytest.raises(Exception) as caught:  # of the engine or the package
            examine(folder / SAMPLES[name])
        assert "\n" not in str(caught.value), place
    target.write_bytes(data)
    examine(folder / SAMPLES[name])


def test_own_parameter_sets_are_found_near_a_file(world: Path, tmp_path: Path) -> None:
    """A TOML file or a key beside a ciphertext of SEAL has its parameters; without them the metadata are described, and nothing is claimed of the numbers."""
    data = (world / SAMPLES["SEAL object of other parameters"]).read_bytes()
    (tmp_path / "x.ct").write_bytes(data)
    alone = examine(tmp_path / "x.ct")
    assert alone.lines[0] == "SEAL ciphertext of 2 parts, N = 4096, 2 primes, coefficient form, scale 1" and "were not checked" in alone.lines[1]
    (tmp_path / "bad.toml").write_text("name = 1")
    (tmp_path / "own.toml").write_text(own_set().to_toml())
    known = examine(tmp_path / "x.ct")
    assert known.kind == "SEAL ciphertext" and known.lines[0].startswith("SEAL ciphertext, own, N = 4096, 2 primes")
    (tmp_path / "x.ct").write_bytes(data[:200])
    with pytest.raises(KeyQuorumError, match=r"x\.ct"):
        examine(tmp_path / "x.ct")


def test_damaged_objects_of_known_sets_are_no_foreign_ones(world: Path, tmp_path: Path) -> None:
    """A coefficient that is too large, a key folder or a receipt beside it: what should be readable and is not is damaged."""
    data = (world / SAMPLES["SEAL ciphertext"]).read_bytes()
    (tmp_path / "x.ct").write_bytes(data[:-8] + b"\xff" * 8)
    with pytest.raises(KeyQuorumError, match=r"x\.ct: a damaged file of SEAL"):
        examine(tmp_path / "x.ct")
    (tmp_path / "x.ct").write_bytes(data[:16] + bytes(32) + data[48:])
    assert examine(tmp_path / "x.ct").kind == "SEAL object of other parameters"
    shutil.copy(f"{world / SAMPLES['SEAL ciphertext']}.json", tmp_path / "x.ct.json")
    with pytest.raises(KeyQuorumError, match=r"x\.ct: a damaged file of SEAL"):
        examine(tmp_path / "x.ct")


def test_files_of_tfhe_rs_are_named(tmp_path: Path) -> None:
    for name, expected in (
        ("FheUint", "keyquorum decrypt takes it"),
        ("ClientKey", "it has a SECRET key"),
        ("ServerKey", "its content was not read"),
    ):
        (tmp_path / "x.bin").write_bytes(tfhe_file(f"high_level_api::{name}"))
        found = examine(tmp_path / "x.bin")
        assert found.kind == "file of TFHE-rs" and name in found.lines[0] and any(expected in line for line in found.lines)


def test_hashes_are_verified(world: Path) -> None:
    for name, said in {
        "share file": "sha256", "LWE ciphertexts": "sha256", "public key of LWE": "sha256, also of key.json", "journal of a pool": "checksum of every line",
        "SEAL public key": "sha256 of key.json", "SEAL key-switching keys": "sha256 of key.json", "SEAL ciphertext": "sha256 of its receipt",
        "receipt": "sha256 of the ciphertext", "key folder": "sha256 of public files and share files", "plot": "checksum of every part",
        "pool folder": "journal, and sha256 of its share files",
        "identity": "key against certificate", "certificate": "identity beside it",
    }.items():  # fmt: skip
        assert examine(world / SAMPLES[name]).checked == said


@pytest.mark.parametrize("name", NAMES)
def test_whatever_is_in_a_file_is_one_line(world: Path, name: str, tmp_path: Path) -> None:
    """Bytes that are changed, removed, inserted or from another file give a report, or a typed error of one line."""
    folder = _copy(world, tmp_path)
    target, rng = _target(folder, name), np.random.default_rng(len(name))
    data, other = target.read_bytes(), rng.bytes(60) + b'{"a": [null, "\xc3\xa4"], "kind": {}}\n[1, 2\n,"'
    for _ in range(40):
        at, length = int(rng.integers(0, len(data))), int(rng.integers(0, 20))
        cut = int(rng.integers(0, len(other)))
        how = rng.integers(0, 4)
        changed = [
            data[:at] + other[cut : cut + length] + data[at + length :],
            data[:at] + data[at + length :],
            data[:at] + other[cut:] + data[at:],
            other[cut:],
        ][how]
        target.write_bytes(changed)
        try:
            examine(folder / SAMPLES[name])
        except (KeyQuorumError, EngineError) as error:
            assert str(error).isprintable() and str(error)


def test_folders_look_at_every_file(world: Path, tmp_path: Path) -> None:
    """A changed byte in any share, public file or chunk."""
    folder = _copy(world, tmp_path)
    chunk = next((folder / POOL).glob("chunk-*.kqs"))
    for path in (*sorted((folder / KEYS / "bfv").glob("*.k*")), *sorted((folder / KEYS / "lwe").glob("*.*k*")), chunk):
        data = path.read_bytes()
        path.write_bytes(data[:-7] + bytes([data[-7] ^ 4]) + data[-6:])
        with pytest.raises(Exception, match=r"damaged|corrupted|not the metadata"):
            examine(path.parent)
        path.write_bytes(data)
        assert examine(path.parent).lines


def test_copies_of_public_files(world: Path, tmp_path: Path) -> None:
    """The files of a host that only encrypts: missing files are reported, and existing ones are verified."""
    for key, names in {"bfv": ["key.json", "public.key"], "ckks": ["key.json", "public.key"], "lwe": ["key.json", "public.lwepk"]}.items():
        (tmp_path / key).mkdir()
        for name in names:
            shutil.copy(world / KEYS / key / name, tmp_path / key)
        assert "0 share files" in list(describe(tmp_path / key))
    assert any(line.startswith("relin.key sha256 ") and line.endswith(", which is not here") for line in describe(tmp_path / "bfv"))
    (tmp_path / "bfv" / "public.key").unlink()
    with pytest.raises(KeyQuorumError, match=r"public\.key is missing: copy it from another party"):
        examine(tmp_path / "bfv")


def test_pipes_and_unknown_folders_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, said in ((tmp_path / "pipe", "a device or a pipe"), (tmp_path, "neither a committee"), (tmp_path / "no", "no such file or folder")):
        with pytest.raises(KeyQuorumError, match=said):
            examine(path)


def test_a_foreign_identity_is_noticed(world: Path, tmp_path: Path) -> None:
    folder = _copy(world, tmp_path)
    parties = [folder / "committee" / f"party-{i}" / "identity.pem" for i in range(2)]
    texts = [path.read_text() for path in parties]
    parties[0].write_text(texts[1])
    for path in (parties[0], parties[0].parent, folder / "committee"):
        with pytest.raises(KeyQuorumError, match="its fingerprint is not that of party 0"):
            examine(path)
    key, certificate = texts[1].split("-----BEGIN CERT")[0], texts[0].split("-----BEGIN CERT")[1]
    parties[0].write_text(f"{key}-----BEGIN CERT{certificate}")
    with pytest.raises(EngineError, match="its certificate does not belong to its private key"):
        examine(parties[0])


def test_everything_in_the_world_is_known(world: Path) -> None:
    """Also files that no list has: all files that the commands wrote."""
    paths = [p for p in world.rglob("*") if p.is_file()]
    assert len(paths) > 40
    unknown = []
    for path in paths:
        try:
            examine(path)
        except KeyQuorumError as error:
            if "mac.key" not in path.name:
                unknown.append(f"{path}: {error}")
    assert not unknown


@pytest.mark.parametrize("folder", ["results", "params"])
def test_what_the_repository_has_is_known(folder: str) -> None:
    for path in (p for p in (ROOT / folder).rglob("*") if p.is_file() and p.name != "README.md"):
        assert examine(path).kind in NAMES, path


def test_secrets_stay_secret(world: Path) -> None:
    """No line has a message, or a part of a private or MAC key."""
    said = {name: json.dumps([examine(world / place).lines, examine(world / place).details], default=str) for name, place in SAMPLES.items()}
    pem = (world / SAMPLES["identity"]).read_text().splitlines()
    assert not any(line in said["identity"] or line in said["party folder"] for line in pem[1:3])
    assert json.loads((world / SAMPLES["messages of LWE"]).read_text()) == [0, 1, 1]
    assert "0, 1" not in said["messages of LWE"] and "0 1" not in said["messages of LWE"]
    assert (world / SAMPLES["MAC key"]).read_bytes().hex() not in said["MAC key"]


def test_open_secrets_are_told(world: Path, tmp_path: Path) -> None:
    folder = _copy(world, tmp_path)
    for name in ("share file", "messages of LWE", "count of decryptions"):
        (folder / SAMPLES[name]).chmod(0o644)
        assert any("WARNING: others may read it" in line for line in describe(folder / SAMPLES[name])), name


def test_a_burned_key_is_told(world: Path) -> None:
    assert any("this MAC key is burned (a test" in line for line in describe(world / "authenticated" / "party-1" / "mac.key"))
    assert examine(world / SAMPLES["mark of a burned MAC key"]).details == {"check": "a test"}


def test_an_audit_log_counts(world: Path, tmp_path: Path) -> None:
    """An empty one is whole; a line that was cut off and ended is named. Before three requests there is a test of shares."""
    data = (world / SAMPLES["audit log"]).read_bytes()
    log = tmp_path / "audit.jsonl"
    for text, counts in ((b"", (0, 0)), (data, (3, 0))):
        log.write_bytes(text)
        assert examine(log).details == dict(zip(("answered", "refused"), counts, strict=True))
    for changed in (data.replace(b"answered", b"refused", 1), data + data):
        log.write_bytes(changed)
        with pytest.raises(KeyQuorumError, match="the chain breaks here"):
            examine(log)
    log.write_bytes(data + data[:40] + b"\n" + data)
    with pytest.raises(KeyQuorumError, match="line 5 is cut off or changed: "):
        examine(log)


def test_the_page_names_every_kind() -> None:
    page = (ROOT / "docs" / "pages" / "files.md").read_text()
    table = [line.split("|")[1] for line in page.splitlines() if line.startswith("| ")]
    listed = {name.strip() for cell in table[1:] for name in cell.split(",")} - {"---", "", "kind"}
    assert listed == set(NAMES)


def _writes(path: Path) -> bool:
    """Whether a module calls a function that writes files."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        owner = getattr(getattr(node.func, "value", None), "id", "")
        mode = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        if name in WRITES or (name == "write" and owner == "ShareFile") or (name == "open" and any(m[0] in "wax" for m in mode if m)):
            return True
        if name == "open" and owner == "os" and "O_CREAT" in ast.dump(node):
            return True
    return False


def test_no_writer_is_forgotten() -> None:
    """If this fails: the named module writes a file. Add its kind to keyquorum/inspection, or the reason why the file does not stay to ELSEWHERE."""
    listed = {writer for kind in KINDS for writer in kind.writers}
    writers = {str(path.relative_to(PACKAGE).with_suffix("")) for path in PACKAGE.rglob("*.py") if "_share" not in path.parts and _writes(path)}
    assert len(writers) > 30
    forgotten = {w for w in writers - listed if not any(w == place or w.startswith(f"{place}/") for place in ELSEWHERE)}
    assert not forgotten
    assert all((PACKAGE / f"{writer}.py").is_file() for writer in listed)
