"""Outputs that cannot be written and full disks: refused before the decryption is counted, or the result is kept elsewhere. The error names the file,
and no partial file is left."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum.fhe import seal
from keyquorum.model import needs as resources
from keyquorum.model import outputs as outputs_module
from keyquorum.model.committee import write_atomically
from keyquorum.model.errors import OutputError, PartyError, ResourceError
from keyquorum.model.needs import require_disk
from keyquorum.model.outputs import Output, reserved, save_all, save_file
from keyquorum.parties import mac_key, run_in_process
from keyquorum.plans import pools
from keyquorum.plans.decrypt import decrypt_job
from keyquorum.plans.pool_jobs import pool_fill_job
from keyquorum.schemes.key_folder import load_key

from tests.commands import run


@pytest.fixture()
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)], capture_output=True, check=False).returncode:
        pytest.skip("no right to mount a file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> None:
    """Fills the disk."""
    with (folder / "filler").open("wb", buffering=0) as file:
        for size in (4096, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError as error:
                assert error.errno == errno.ENOSPC


def ciphertext(folder: Path, path: Path) -> None:
    """An encryption of [0.5, 0.25, -1]."""
    where = api.key_folder(folder, "before")
    info = load_key(where)
    path.write_bytes(seal.encrypt(info.parameters, api.load_public_file(where, info, "public.key"), [0.5, 0.25, -1]))


def counted(folder: Path) -> list[int]:
    """Decryptions on record at every party."""
    return [json.loads((folder / f"party-{p}" / "keys" / "before" / "decryptions.json").read_text())["used"] for p in range(3)]


def command(*words: object) -> str:
    """The one line of error of a command that must fail, without warnings about the weak policy of tests."""
    line = [sys.executable, "-c", "from keyquorum.cli import main; main()", *map(str, words)]
    done = run(line, Path.cwd())
    lines = [line for line in done.stderr.strip().splitlines() if not line.startswith(("WARNING: ", "progress: "))]
    assert done.returncode == 1 and len(lines) == 1, done
    return lines[0]


def test_an_output_without_a_place_is_refused_before_anything_is_counted(folder: Path, tmp_path: Path) -> None:
    """No folder, a folder in the file's place, the ciphertext itself, twice the same: one line, nothing counted, nothing left."""
    path = tmp_path / "x.ct"
    ciphertext(folder, path)
    (tmp_path / "place").mkdir()
    before = sorted(p.name for p in tmp_path.iterdir())
    for output, text in (
        (tmp_path / "nowhere" / "x", "is no folder that we may write to: name another place with --output"),
        (tmp_path / "place", "is no file that can be replaced: name another output"),
        (path, "is a ciphertext of this job: name another output"),
    ):
        with pytest.raises(PartyError, match=text):
            api.decrypt(folder, "before", [path], 0, [output])
    with pytest.raises(PartyError, match="two results would go to the same file"):
        api.decrypt(folder, "before", [path, path], 0, [tmp_path / "y", tmp_path / "y"])
    assert counted(folder) == [0, 0, 0]
    assert sorted(p.name for p in tmp_path.iterdir()) == before
    (tmp_path / "y").write_text("an older result")
    api.decrypt(folder, "before", [path], 0, [tmp_path / "y"])
    info = load_key(api.key_folder(folder, "before"))
    assert np.allclose(seal.decode(info.parameters, (tmp_path / "y").read_bytes())[:3], [0.5, 0.25, -1], atol=1e-2)
    assert (tmp_path / "y").stat().st_mode & 0o777 == 0o600 and counted(folder) == [1, 1, 1]


def test_a_full_disk_costs_no_decryption(folder: Path, small_disk: Path) -> None:
    """The ciphertext is on a full disk, where its plaintext would go."""
    path = small_disk / "x.ct"
    ciphertext(folder, path)
    fill(small_disk)
    before = sorted(p.name for p in small_disk.iterdir())
    text = command("decrypt", folder, "before", path, "--to", "0")
    assert f"{path}.plain: cannot be written (No space left on device): free " in text and "nothing was decrypted or counted" in text
    assert counted(folder) == [0, 0, 0] and sorted(p.name for p in small_disk.iterdir()) == before


def test_files_of_commands_are_whole_or_not_there(folder: Path, small_disk: Path, tmp_path: Path) -> None:
    """encrypt, eval, and jobs onto a full disk: the file is named, and what was there before stays."""
    (tmp_path / "x.json").write_text("[0.5, 0.25, -1]")
    old = small_disk / "x.ct"
    old.write_bytes(b"old")
    fill(small_disk)
    good = tmp_path / "x.ct"
    ciphertext(folder, good)
    before = sorted(p.name for p in small_disk.iterdir())
    for words, target in (
        (["encrypt", folder, "before", tmp_path / "x.json", "-o", old], old),
        (["eval", folder, "before", "add", good, good, "-o", old], old),
        (["decrypt", folder, "before", good, "--to", 0, "--job", small_disk / "job.json"], small_disk / "job.json"),
    ):
        assert command(*words) == f"error: {target}: No space left on device: make room on that disk"
    assert old.read_bytes() == b"old" and sorted(p.name for p in small_disk.iterdir()) == before


def test_a_result_that_cannot_be_put_in_its_place_is_kept(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rename fails after a decryption that was counted: the error names the file that has the result."""
    path, output = tmp_path / "x.ct", tmp_path / "x.plain"
    ciphertext(folder, path)
    job = api.decrypt_job(folder, "before", [path], 0, [output])
    replace = os.replace

    def failing(source: Any, target: Any) -> None:
        if Path(target) == output:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        replace(source, target)

    monkeypatch.setattr(outputs_module.os, "replace", failing)
    committee = api.as_committee(folder)
    with pytest.raises(OutputError, match=r"Read-only file system\); the result is kept in .*: move it from there") as caught:
        run_in_process(committee, lambda context: decrypt_job(context, job), timeout=20.0)
    kept = Path(str(caught.value).partition("kept in ")[2].partition(": move")[0])
    info = load_key(api.key_folder(folder, "before"))
    assert np.allclose(seal.decode(info.parameters, kept.read_bytes())[:3], [0.5, 0.25, -1], atol=1e-2)
    assert kept.stat().st_mode & 0o777 == 0o600 and not output.exists() and counted(folder) == [1, 1, 1]


@pytest.mark.parametrize("spare_works", [True, False])
def test_a_result_goes_elsewhere_if_it_does_not_fit(small_disk: Path, tmp_path: Path, spare_works: bool) -> None:
    """Longer than what was reserved, on a disk that is full by then: kept in the spare folder, or else with temporary files."""
    spare = tmp_path / "spare"
    if not spare_works:
        spare.write_text("no folder")
    data = bytes(range(256)) * 400
    output = Output(small_disk / "result", 4096, spare)
    fill(small_disk)
    with pytest.raises(OutputError, match=r"result: cannot be written \(No space left on device\); the result is kept in ") as caught:
        output.save(data)
    kept = Path(str(caught.value).partition("kept in ")[2].partition(": move")[0])
    output.discard()
    assert kept.read_bytes() == data and kept.stat().st_mode & 0o777 == 0o600
    assert (kept.parent == spare) == spare_works
    assert [p.name for p in small_disk.iterdir()] == ["filler"]
    kept.unlink()


def test_the_other_results_are_saved_after_one_that_is_not(tmp_path: Path) -> None:
    """The second of three results cannot be written."""
    paths = [tmp_path / name for name in "abc"]
    with pytest.raises(OutputError, match=r"/b: cannot be written .* kept in") as caught, reserved(paths, [9] * 3, tmp_path / "spare") as places:
        paths[1].mkdir()
        save_all(places, [b"one", b"two", b"three"])
    assert paths[0].read_bytes() == b"one" and paths[2].read_bytes() == b"three"
    assert Path(str(caught.value).partition("kept in ")[2].partition(": move")[0]).read_bytes() == b"two"


def test_links_devices_and_modes(tmp_path: Path) -> None:
    """A file that the user named is written through a link and keeps its mode; a pipe is not replaced by a file."""
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target)
    save_file(link, b"new")
    assert link.is_symlink() and target.read_bytes() == b"new" and target.stat().st_mode & 0o777 == 0o640
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    save_file(pipe, b"through")
    assert os.read(reader, 100) == b"through" and pipe.is_fifo()
    os.close(reader)


def test_a_failed_write_names_its_file(small_disk: Path) -> None:
    """Also where the system does not; and a MAC key that was not written whole is not there."""
    fill(small_disk)
    before = sorted(p.name for p in small_disk.iterdir())
    with pytest.raises(OSError, match="No space left") as caught:
        write_atomically(small_disk / "secret", bytes(5000))
    assert caught.value.filename == str(small_disk / "secret") and caught.value.errno == errno.ENOSPC
    with pytest.raises(OSError, match="No space left") as caught:
        mac_key.mac_key(small_disk / "mac.key")
    assert sorted(p.name for p in small_disk.iterdir()) == before


def test_key_generation_needs_its_disk(folder: Path, small_disk: Path, tmp_path: Path) -> None:
    """Refused before it starts, with what it needs and what is free; at the party that has less, too, and nothing is left anywhere."""
    with pytest.raises(ResourceError, match=r"key generation needs 9\.00 MB of disk, 8\.00 MB are free there: free more, or ask for less"):
        require_disk("key generation", 8_000_000, tmp_path, available=8_000_000)
    require_disk("key generation", 7_000_000, tmp_path, available=8_000_000)
    shutil.copytree(folder / "party-2", small_disk / "party-2", ignore=shutil.ignore_patterns("keys"))
    shutil.rmtree(folder / "party-2")
    (folder / "party-2").symlink_to(small_disk / "party-2")
    with pytest.raises(PartyError, match=r"party 2: .*party-2: key generation needs \d\.\d\d MB of disk, 0\.\d\d MB are free there"):
        api.keygen(folder, "new", "ckks-4096", False)
    assert not list(folder.glob("party-*/keys/new")) and not list(folder.glob("party-*/making/*"))


def test_too_little_disk_is_refused_before_anything_starts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All parties of this host together."""
    monkeypatch.setattr(resources, "available_disk", lambda folder: 1_200_000)
    with pytest.raises(ResourceError, match=r"key generation of 3 parties needs \d\.\d\d MB of disk, 1\.20 MB are free there"):
        api.keygen(folder, "new", "ckks-4096", False)


def test_a_count_that_cannot_be_written_is_no_count_anywhere(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A party whose disk is full stops the decryption before any other party has counted."""
    path = tmp_path / "x.ct"
    ciphertext(folder, path)
    job = api.decrypt_job(folder, "before", [path], 0, [tmp_path / "x.plain"])
    full = str(folder / "party-2")
    monkeypatch.setattr(resources, "available_disk", lambda where: 100 if str(where).startswith(full) else 10**9)
    with pytest.raises(ResourceError, match=r"party-2.*the count of decryptions needs"):
        run_in_process(api.as_committee(folder), lambda context: decrypt_job(context, job), timeout=20.0)
    assert counted(folder) == [0, 0, 0] and not (tmp_path / "x.plain").exists()


def test_a_pool_needs_its_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused before items are made, for all parties of this host; nothing is left but an empty pool."""
    committee = api.init(tmp_path / "c", 2, "semi")
    job = {
        "kind": "pool_fill", "parameters": "lwe64-p2", "rounding": "round_mask_open", "width": 8, "levels": 2, "count": 1_000_000, "chunk": 512,
    }  # fmt: skip
    monkeypatch.setattr(resources, "available_disk", lambda where: 3_000_000)
    monkeypatch.setattr(pools.Pool, "fill", lambda *_: pytest.fail("items were made"))
    with pytest.raises(ResourceError, match=r"a pool of 1,000,000 items more needs \d+\.\d\d MB of disk, 3\.00 MB are free there"):
        run_in_process(committee, lambda context: pool_fill_job(context, job), timeout=20.0)
    assert not list((tmp_path / "c").glob("party-*/pools/*/chunk-*"))
