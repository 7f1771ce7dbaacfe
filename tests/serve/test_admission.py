"""Receivers that a party admits: one bad file keeps nobody else out, and a request does not read the whole folder."""

from __future__ import annotations

import hashlib
import os
import ssl
import time
from pathlib import Path

import pytest
from keyquorum._engine import make_identity
from keyquorum.model.errors import CommitteeError
from keyquorum.serve.admission import FULL_SECONDS, Receivers
from keyquorum.serve.wire import certificate_of

from .test_listener import Party


def made(folder: Path, names: list[str]) -> dict[str, str]:
    """Identities in ``folder``; the SHA-256 of their certificates."""
    fingerprints = {}
    for name in names:
        make_identity(str(folder / f"{name}.pem"), name)
        fingerprints[name] = hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate_of(folder / f"{name}.pem"))).hexdigest()
    return fingerprints


@pytest.fixture()
def folder(tmp_path: Path) -> Path:
    (tmp_path / "receivers").mkdir()
    return tmp_path


def admit(folder: Path, name: str) -> Path:
    path = folder / "receivers" / f"{name}.crt"
    path.write_text(certificate_of(folder / f"{name}.pem"))
    return path


@pytest.mark.parametrize(
    "content", [b"", b"half of it", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", b"\xff\xfe", b"x" * 100_000]
)
def test_a_bad_file_is_skipped_and_named_and_the_others_are_served(tmp_path: Path, content: bytes) -> None:
    """While the party serves, on an open channel and a new one."""
    party = Party(tmp_path)
    said: list[str] = []
    party.receivers._log = said.append
    try:
        with party.channel() as old:
            assert party.asks(old)
            (tmp_path / "receivers" / "bad.crt").write_bytes(content)
            assert party.asks(old) and party.serves() and party.asks(old)
        assert len(said) == 1 and "bad.crt: not a certificate: copy the receiver's .crt again, or remove it" in said[0]
        assert party.receivers.counts == (1, 1)
        (tmp_path / "receivers" / "bad.crt").unlink()
        assert party.receivers.counts == (1, 0) and party.serves()
    finally:
        party.listener.close()


def test_a_file_that_is_cut_in_place_is_noticed(folder: Path) -> None:
    """That does not change the folder. Its receiver is refused, the others are not."""
    ids = made(folder, ["party", "alice", "bob"])
    paths = {name: admit(folder, name) for name in ("alice", "bob")}
    receivers = Receivers(folder / "party.pem", folder / "receivers")
    receivers.require(ids["bob"])
    os.truncate(paths["bob"], 0)
    end = time.monotonic() + 20 * FULL_SECONDS
    while receivers.counts != (1, 1) and time.monotonic() < end:
        receivers.require(ids["alice"])
        time.sleep(0.05)
    receivers.require(ids["alice"])
    with pytest.raises(CommitteeError, match="its certificate was taken away"):
        receivers.require(ids["bob"])


def test_other_things_in_the_folder_are_skipped(folder: Path) -> None:
    ids = made(folder, ["party", "alice"])
    admit(folder, "alice")
    (folder / "receivers" / "folder.crt").mkdir()
    os.mkfifo(folder / "receivers" / "pipe.crt")
    (folder / "receivers" / "nowhere.crt").symlink_to(folder / "gone")
    receivers = Receivers(folder / "party.pem", folder / "receivers")
    receivers.require(ids["alice"])
    assert receivers.counts == (1, 2) and receivers.name(ids["alice"]) == "alice" and receivers.name("00" * 32) == ""


def test_a_request_does_not_look_at_every_certificate(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are looked at once a second. Who is added or removed counts at once all the same."""
    ids = made(folder, ["party", *(f"r{i}" for i in range(30))])
    for name in list(ids)[1:]:
        admit(folder, name)
    receivers = Receivers(folder / "party.pem", folder / "receivers")
    looked: list[str] = []
    stat = Path.stat

    def counting(path: Path, **options: bool) -> os.stat_result:
        looked.append(path.name)
        return stat(path, **options)

    monkeypatch.setattr(Path, "stat", counting)
    start, calls = time.monotonic(), 0
    while time.monotonic() < start + 0.3:
        receivers.require(ids["r7"])
        receivers.context()
        calls += 2
    assert calls >= 10 and not any(name.endswith(".crt") for name in looked)
    (folder / "receivers" / "r7.crt").unlink()
    with pytest.raises(CommitteeError, match="its certificate was taken away"):
        receivers.require(ids["r7"])
    admit(folder, "r7")
    receivers.require(ids["r7"])


def test_a_lack_of_descriptors_locks_nobody_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure that passes is not taken for a bad file."""
    ids = made(folder, ["party", "alice", "bob"])
    admit(folder, "alice")
    receivers = Receivers(folder / "party.pem", folder / "receivers")
    admit(folder, "bob")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_text", lambda *args, **options: (_ for _ in ()).throw(OSError(24, "Too many open files")))
        with pytest.raises(OSError, match="Too many open files"):
            receivers.require(ids["bob"])
    receivers.require(ids["bob"])
    receivers.require(ids["alice"])
