"""Errors of the launcher of a local run: it reports the first real cause at once, and stops the other parties."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from keyquorum.cli import app
from keyquorum.model.errors import PartyError, PartyInterrupted
from keyquorum.parties import processes, run_processes
from typer.testing import CliRunner

from .deployment import START, decrypt_job, decrypts, keygen_job

pytestmark = pytest.mark.alone


@pytest.fixture(autouse=True)
def _started_parties(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the launcher itself, not forked as elsewhere in these tests."""
    monkeypatch.setattr(processes, "subprocess", subprocess)


CONNECT = 60.0
"""Far longer than a culprit may be hidden."""
SHARE, IDENTITY = "party-1/keys/before/share-0.kqs", "party-1/identity.pem"


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


SPOILT: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "share open to others": (SHARE, lambda path: path.chmod(0o644), "readable by others: chmod 600"),
    "share damaged": (SHARE, _flip, "corrupted"),
    "share missing": (SHARE, lambda path: path.unlink(), "No such file"),
    "identity open to others": (IDENTITY, lambda path: path.chmod(0o644), "run `chmod 600"),
    "identity damaged": (IDENTITY, lambda path: path.write_text("-----BEGIN nothing"), "it holds no certificate"),
}


@pytest.mark.parametrize("what", SPOILT)
def test_a_party_with_a_spoilt_file_is_named_at_once(folder: Path, what: str) -> None:
    """The error does not name the parties that wait for it, and comes long before they give up."""
    name, spoil, message = SPOILT[what]
    job = decrypt_job(folder)
    spoil(folder / name)
    start, started = time.monotonic(), list[subprocess.Popen[str]]()
    with pytest.raises(PartyError) as caught:
        run_processes(folder, job, connect_timeout=CONNECT, io_timeout=CONNECT, on_start=started.extend)
    assert time.monotonic() - start < START
    text = str(caught.value)
    assert text.startswith("party 1: ") and message in text and str(folder / name) in text and "\n" not in text, text
    assert len(started) == 3 and all(process.poll() is not None for process in started)


def _when_connecting(processes: list[subprocess.Popen[str]], number: int) -> None:
    """Sends a signal to party 1 during set-up: party 2 is stopped, so that set-up cannot end."""
    processes[2].send_signal(signal.SIGSTOP)
    time.sleep(3.0)
    processes[1].send_signal(number)


def test_a_party_killed_in_set_up_is_named_at_once(folder: Path) -> None:
    """kill -9 while all wait for one that hangs."""
    start = time.monotonic()
    with pytest.raises(PartyError, match=r"^party 1 was killed by signal 9"):
        run_processes(folder, keygen_job(), connect_timeout=CONNECT, io_timeout=CONNECT, on_start=lambda p: _when_connecting(p, signal.SIGKILL))
    assert time.monotonic() - start < START
    assert decrypts(folder)


def test_a_party_that_is_interrupted_is_named(folder: Path) -> None:
    """Ctrl-C at one party."""
    with pytest.raises(PartyInterrupted, match=r"^party 1 was interrupted$"):
        run_processes(folder, keygen_job(), connect_timeout=CONNECT, io_timeout=CONNECT, on_start=lambda p: _when_connecting(p, signal.SIGINT))
    assert decrypts(folder)


def test_ctrl_c_ends_all_parties(folder: Path) -> None:
    """At the launcher, as a terminal sends it: to all processes of its group. One line, exit code 130."""
    command = "from keyquorum.cli import main; main()"
    steps = [word for step in (1, 2, 4, 8, 16, 32, 64, 128) for word in ("-s", str(step))]  # so that it is not done when it is interrupted
    words = ["keygen", str(folder), "new", "-p", "ckks-16384-bench", *steps]
    process = subprocess.Popen(
        [sys.executable, "-c", command, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline().startswith("needs ")
    time.sleep(2.0)
    os.killpg(process.pid, signal.SIGINT)
    _, error = process.communicate(timeout=START)
    assert process.returncode == 130
    lines = error.strip().splitlines()
    assert len(lines) == 1 and lines[0].endswith("was interrupted; keys made before are untouched"), error
    assert not list(folder.glob("party-*/keys/new/key.json"))


DOCTOR: dict[str, tuple[str, Callable[[Path], object], str]] = {
    **{what: spoilt for what, spoilt in SPOILT.items() if what.startswith("share")},
    "share truncated": (SHARE, lambda path: path.write_bytes(path.read_bytes()[:-5]), "truncated"),
    "share of another party": (SHARE, lambda path: path.write_bytes((path.parents[3] / "party-2/keys/before/share-0.kqs").read_bytes()), "its party is 2"),
    "public key damaged": ("party-2/keys/before/public.key", _flip, "is damaged: copy it from another party"),
    "count missing": ("party-0/keys/before/decryptions.json", lambda path: path.unlink(), "is missing"),
    "folder open to others": ("party-0/keys/before", lambda path: path.chmod(0o755), "is open to others: run chmod 700"),
    "metadata of another key": (
        "party-2/keys/before/key.json", lambda path: path.write_text(path.read_text().replace('"noise_bits": 4', '"noise_bits": 5')),
        "its metadata is not that of party 0",
    ),
    "key gone": ("party-2/keys/before", lambda path: path.rename(path.parents[1] / "away"), "is missing, party 0 has this key"),
}  # fmt: skip


@pytest.mark.parametrize("what", DOCTOR)
def test_doctor_finds_spoilt_files(folder: Path, what: str) -> None:
    """The file is named, with the remedy, and doctor does not report success."""
    name, spoil, message = DOCTOR[what]
    spoil(folder / name)
    result = CliRunner().invoke(app, ["doctor", str(folder)])
    fixes = [line for line in result.output.splitlines() if line.startswith("FIX")]
    assert len(fixes) == 1 and message in fixes[0] and name.split("/")[0].replace("-", " ") in fixes[0], result.output
    assert "everything is in order" not in result.output and isinstance(result.exception, PartyError)


@pytest.mark.parametrize("closed", ["party-1", "party-1/keys"])
def test_doctor_finds_folders_that_cannot_be_written(folder: Path, closed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a volume that is mounted read-only: every job of the party would fail."""
    whole = tempfile.TemporaryFile

    def temporary(*args: Any, dir: Path, **options: Any) -> Any:
        if dir == folder / closed:
            raise OSError(errno.EROFS, "Read-only file system")
        return whole(*args, dir=dir, **options)

    monkeypatch.setattr("tempfile.TemporaryFile", temporary)
    result = CliRunner().invoke(app, ["doctor", str(folder), "--seconds", "2"])
    fixes = [line for line in result.output.splitlines() if line.startswith("FIX")]
    found, *others = fixes  # the others do not reach it, as it does not listen then
    assert f"party 1: {folder / closed} cannot be written: every job writes there" in found, result.output
    assert all("-> party 1" in line for line in others), result.output
    assert "everything is in order" not in result.output and isinstance(result.exception, PartyError)


def test_doctor_says_why_a_peer_is_not_reached(folder: Path) -> None:
    """Nobody listens there: refused, whatever time was left for the last attempt."""
    (folder / "party-1").rename(folder / "elsewhere")
    result = CliRunner().invoke(app, ["doctor", str(folder), "--seconds", "1"])
    lines = [line for line in result.output.splitlines() if "party 0 -> party 1" in line]
    assert len(lines) == 1 and "refused" in lines[0] and "has no address" not in result.output, result.output
