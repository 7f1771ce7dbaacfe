"""Jobs of one committee that are started at the same time run one after the other, each correctly; files of dead processes block no job."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum.fhe import seal
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CommitteeError, KeyFileError, PartyError
from keyquorum.model.locks import FileLock
from keyquorum.parties import run_in_process, run_processes
from keyquorum.parties.queue import hold, job_lock
from keyquorum.plans import keygen
from keyquorum.schemes.key_folder import NewKey, load_key

from tests.commands import Forked

from .deployment import decrypt_job, keygen_job

HOLDING = """
import sys, time
from pathlib import Path
from keyquorum.model.locks import FileLock
lock = FileLock(Path(sys.argv[1]), "a long job")
assert lock.take()
print("held", flush=True)
time.sleep(60)
"""


def command(*words: object) -> subprocess.Popen[str]:
    """A command of the command line, not waited for."""
    line = [sys.executable, "-c", "from keyquorum.cli import main; main()", *map(str, words)]
    return Forked(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit code and standard error."""
    _, errors = process.communicate(timeout=120)
    return process.returncode, errors


def holding(path: Path) -> subprocess.Popen[str]:
    """A process that holds a lock."""
    process = Forked([sys.executable, "-c", HOLDING, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    return process


def key_ids(folder: Path, name: str) -> list[str]:
    """The id of a key at each of three parties."""
    return [load_key(folder / f"party-{party}" / "keys" / name).key_id for party in range(3)]


def test_one_of_two_key_generations_of_a_name_gets_it(folder: Path) -> None:
    """Both start at once: one makes the key, the other is refused, and the key that was announced is the one that is there."""
    for attempt in range(3):
        name = f"new-{attempt}"
        runs = [command("keygen", folder, name, "-p", "ckks-4096", "--no-relin") for _ in range(2)]
        said = [(*run.communicate(timeout=120), run.returncode) for run in runs]
        won = [out for out, _, code in said if code == 0]
        lost = [err for _, err, code in said if code == 1]
        assert len(won) == len(lost) == 1, said
        assert "there is a key" in lost[0]
        ids = key_ids(folder, name)
        assert len(set(ids)) == 1 and f"({ids[0]})" in won[0]


def test_two_decryptions_at_once_wait_for_each_other(folder: Path, tmp_path: Path) -> None:
    """Both are right and both are counted; the waiting job names the other one."""
    where = api.key_folder(folder, "before")
    info = load_key(where)
    paths = [tmp_path / f"{i}.ct" for i in range(3)]
    for i, path in enumerate(paths):
        path.write_bytes(seal.encrypt(info.parameters, api.load_public_file(where, info, "public.key"), [0.5, float(i)]))
    runs = [command("decrypt", folder, "before", path, "--to", "0") for path in paths]
    said = [ended(run) for run in runs]
    assert [code for code, _ in said] == [0] * 3, said
    assert sum("is busy with decrypt of key before (process " in err for _, err in said) >= 1
    for i, path in enumerate(paths):
        values = seal.decode(info.parameters, path.with_name(path.name + ".plain").read_bytes())
        assert np.allclose(values[:2], [0.5, i], atol=1e-2)
    counts = [json.loads((folder / f"party-{p}" / "keys" / "before" / "decryptions.json").read_text())["used"] for p in range(3)]
    assert counts == [3] * 3


def test_committees_do_not_wait_for_each_other(folder: Path, tmp_path: Path) -> None:
    """The lock of another committee has no effect."""
    other = api.init(tmp_path / "other", 3)
    with hold(other, range(3), {"kind": "keygen"}):
        run_processes(folder, decrypt_job(folder), patience=0.0)


def test_a_busy_committee_is_refused_with_the_holder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """After the patience, in one line; said once before. Nothing of the job was started."""
    holder = holding(folder / "party-1" / "job.lock")
    try:
        words = f"is busy with a long job (process {holder.pid} on "
        with pytest.raises(CommitteeError) as caught:
            run_processes(folder, keygen_job(), patience=0.5)
        assert f"party 1 of {folder} {words}" in str(caught.value) and "\n" not in str(caught.value)
        assert capsys.readouterr().err.count(words) == 1
        with pytest.raises(CommitteeError, match="is busy with a long job"):
            api.run_party(folder, 1, keygen_job(), connect_timeout=0.3)
        assert not (folder / "party-0" / "keys" / "new").exists()
    finally:
        holder.kill()
        holder.wait()
    run_processes(folder, keygen_job(), patience=0.5)  # a killed process holds nothing, whatever the file says
    assert len(set(key_ids(folder, "new"))) == 1


def test_the_lock_of_a_killed_run_lasts_as_long_as_its_parties(folder: Path) -> None:
    """Parties inherit it: no job starts beside parties that still run, and none waits for long."""
    run = command("keygen", folder, "new", "-p", "ckks-16384")
    lock = job_lock(Committee.load(folder), 2, "test")
    while lock.take():
        lock.release()
        time.sleep(0.05)
    time.sleep(0.5)
    os.kill(run.pid, signal.SIGKILL)
    run.communicate()
    run_processes(folder, keygen_job(), patience=30.0)
    assert len(set(key_ids(folder, "new"))) == 1


def test_a_claim_names_its_holder_and_ends_with_it(folder: Path) -> None:
    """A name that another process claimed at one party is refused by all; the claim of a dead process is taken over and removed."""
    making = folder / "party-1" / "making"
    left = making / "new" / "0123456789abcdef"
    left.mkdir(parents=True)
    (left / "share-0.kqs").write_bytes(b"half")
    holder = holding(making / ".new.claim")
    try:
        with pytest.raises(PartyError, match=rf"party 1: .*is being made, by a long job \(process {holder.pid} on .*choose another name"):
            run_processes(folder, keygen_job())
    finally:
        holder.kill()
        holder.wait()
    assert (making / ".new.claim").exists() and left.exists()
    run_processes(folder, keygen_job())
    assert len(set(key_ids(folder, "new"))) == 1
    assert not [path for party in range(3) for path in (folder / f"party-{party}" / "making").iterdir()]


def context(folder: Path, party: int = 0) -> Any:
    """What a claim needs of a job's context, where no other party objects."""
    return SimpleNamespace(committee=Committee.load(folder), party=party, session=SimpleNamespace(compare=lambda label, digest: None))


def test_a_key_is_published_whole_and_once(folder: Path) -> None:
    """A claim excludes a second one in the same process, too; a key that came to be in the meantime is never overwritten."""
    target = folder / "party-0" / "keys" / "new"
    with NewKey(context(folder), "new") as first:
        with pytest.raises(KeyFileError, match="is being made"), NewKey(context(folder), "new"):
            pass
        (first.folder / "key.json").write_text("first")
        assert not target.exists()
        first.publish()
        assert (target / "key.json").read_text() == "first"
    with pytest.raises(KeyFileError, match="there is a key of this name already"), NewKey(context(folder), "new"):
        pass
    with pytest.raises(KeyFileError, match="there is a key of this name already"), NewKey(context(folder), "late") as late:
        (late.folder / "key.json").write_text("late")
        (target.parent / "late").mkdir()
        (target.parent / "late" / "key.json").write_text("from elsewhere")
        late.publish()
    assert (target.parent / "late" / "key.json").read_text() == "from elsewhere"


def test_a_failed_key_generation_leaves_nothing(folder: Path) -> None:
    """Neither files nor a claim; files without a key are not touched."""
    with pytest.raises(RuntimeError), NewKey(context(folder), "new") as new:
        for name in ("share-0.kqs", ".tmp0a1b2c"):
            (new.folder / name).write_bytes(b"half")
            (folder / f"copy{name}").hardlink_to(new.folder / name)
        raise RuntimeError
    assert [copy.read_bytes() for copy in folder.glob("copy*")] == [bytes(4)] * 2, "the bytes on the disk"
    assert not list((folder / "party-0" / "making").iterdir())
    lost = folder / "party-0" / "keys" / "lost"
    lost.mkdir()
    (lost / "share-0.kqs").write_bytes(b"a share")
    with pytest.raises(KeyFileError, match=r"files without a key \(no key.json\): move them away"), NewKey(context(folder), "lost"):
        pass
    assert (lost / "share-0.kqs").read_bytes() == b"a share"


def test_lwe_keys_are_claimed_alike(tmp_path: Path) -> None:
    """Two generations of one name among threads, which no lock of a party keeps apart: at most one key, the same at all parties."""
    committee = api.init(tmp_path / "c", 2, "semi")
    job = api.keygen_job("key", "lwe64-p2")

    def make(_: int) -> str:
        try:
            return str(run_in_process(committee, lambda context: keygen.keygen_job(context, job), timeout=20.0)[0]["key_id"])
        except KeyFileError as error:
            return str(error)

    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(make, range(2)))
    made = [text for text in said if len(text) == 32]
    ids = {json.loads(path.read_text())["key_id"] for path in (tmp_path / "c").glob("party-*/keys/key/key.json")}
    assert len(made) <= 1 and ids == set(made), said
    assert all("is being made" in text or "already" in text for text in said if text not in made)


def test_a_lock_that_was_removed_meanwhile_is_not_held(tmp_path: Path) -> None:
    """A process that opened the file before its holder removed it has no lock: a third process may have locked the new file."""
    first, second = (FileLock(tmp_path / "claim", name, remove=True) for name in ("first", "second"))
    assert first.take() and not second.take()
    descriptor = os.open(tmp_path / "claim", os.O_RDWR)
    first.release()
    assert second.take()
    assert not first._is_the_file(descriptor)
    os.close(descriptor)
    second.release()
    assert not (tmp_path / "claim").exists()
