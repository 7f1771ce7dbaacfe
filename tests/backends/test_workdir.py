"""The working folder: rights, wiping, programs; and the certificates in it."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
from pathlib import Path

import numpy as np
import pytest
from keyquorum.backends.mpspdz.certificates import make_certificate, subject_hash, trust_certificate
from keyquorum.backends.mpspdz.checkout import Checkout
from keyquorum.backends.mpspdz.workdir import WorkFolder, sweep, wipe_file, write_secret
from keyquorum.model.errors import BackendError, PartyError

from .fake import fake_checkout


def test_only_its_owner_reads_it(tmp_path: Path) -> None:
    with WorkFolder(tmp_path) as folder:
        assert folder.path.stat().st_mode & 0o777 == 0o700
        folder.write_input(0, np.array([1, -2]), [np.array([3])])
        assert np.fromfile(folder.input_path(0), "<i8").tolist() == [1, -2, 3], "private words come first"
        make_certificate(folder.player_data, 0)
        for path in (folder.input_path(0), folder.player_data / "P0.key"):
            assert path.stat().st_mode & 0o777 == 0o600
    assert not list(tmp_path.iterdir())


def test_wiping_overwrites(tmp_path: Path) -> None:
    secret, second = tmp_path / "secret", tmp_path / "same"
    write_secret(secret, b"secret" * 1000)
    os.link(secret, second)
    wipe_file(secret)
    assert not secret.exists() and second.read_bytes() == bytes(6000)
    link = tmp_path / "link"
    second.write_bytes(b"kept")
    link.symlink_to(second)
    wipe_file(link)
    assert not link.is_symlink() and second.read_bytes() == b"kept", "a link is removed, not followed"
    wipe_file(tmp_path / "nothing")


def test_closing_wipes(tmp_path: Path) -> None:
    folder = WorkFolder(tmp_path)
    places = ["Player-Data/Input-Binary-P0-0", "Player-Data/2-p-60/Player-MAC-Keys-p-P0", "Persistence/Transactions-P0.data"]
    for i, place in enumerate(places):
        (folder.path / place).parent.mkdir(exist_ok=True)
        (folder.path / place).write_bytes(b"secret")
        os.link(folder.path / place, tmp_path / f"watch{i}")
    folder.close()
    assert not folder.path.exists()
    assert all((tmp_path / f"watch{i}").read_bytes() == bytes(6) for i in range(3))


def test_folders_of_dead_processes_are_swept_and_others_are_not(tmp_path: Path) -> None:
    alive = WorkFolder(tmp_path)
    dead = tmp_path / "mp-spdz-dead"
    (dead / "Persistence").mkdir(parents=True)
    (dead / "Persistence" / "Transactions-P0.data").write_bytes(b"secret")
    os.link(dead / "Persistence" / "Transactions-P0.data", tmp_path / "watch")
    (tmp_path / "identity.pem").write_text("untouched")
    sweep(tmp_path)
    assert alive.path.exists() and not dead.exists() and (tmp_path / "watch").read_bytes() == bytes(6)
    assert (tmp_path / "identity.pem").read_text() == "untouched"
    alive.close()


def test_a_run_starts_without_the_files_of_the_last(tmp_path: Path) -> None:
    with WorkFolder(tmp_path) as folder:
        folder.write_input(1, np.array([1]), [])
        folder.shares_path(1).write_bytes(b"shares")
        key = folder.player_data / "2-p-60" / "Player-MAC-Keys-p-P1"
        key.parent.mkdir()
        key.write_text("2\n5")
        folder.clear_run([1])
        assert not any(p.exists() for p in (folder.input_path(1), folder.shares_path(1), key))


def test_programs(tmp_path: Path) -> None:
    checkout = Checkout.find(fake_checkout(tmp_path / "mp"))
    mine, other = tmp_path / "mine.mpc", tmp_path / "sub" / "mine.mpc"
    other.parent.mkdir()
    mine.write_text("1")
    other.write_text("2")
    with WorkFolder(tmp_path) as folder:
        source = folder.path / "Programs" / "Source"
        assert folder.link_program("sample_cbd", checkout) == "sample_cbd"
        assert (source / "sample_cbd.mpc").read_text().startswith("#")
        assert (source / ".." / "Library" / "arguments.py").exists()
        assert folder.link_program(str(mine), checkout) == "mine" and (source / "mine.mpc").read_text() == "1"
        assert folder.link_program(str(other), checkout) == "mine" and (source / "mine.mpc").read_text() == "2"
        theirs = checkout.path / "Programs" / "Source"
        (theirs / "mine.mpc").symlink_to(mine)
        assert folder.link_program(str(mine), checkout) == "mine"
        assert not (source / "mine.mpc").exists(), "linked into the checkout for plain use: it must not be found twice"
        with pytest.raises(BackendError, match="rename yours"):
            folder.link_program(str(other), checkout)
        (theirs / "sample_cbd.py").write_text("")
        with pytest.raises(BackendError, match="program sample_cbd of its own"):
            folder.link_program("sample_cbd", checkout)


def test_names_of_certificates() -> None:
    assert [subject_hash(f"P{i}") for i in range(3)] == ["690ad341", "0c19e31f", "786af600"]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_openssl_agrees(tmp_path: Path) -> None:
    make_certificate(tmp_path, 11)
    command = ["openssl", "x509", "-in", str(tmp_path / "P11.pem"), "-noout", "-hash"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == subject_hash("P11")


def context(folder: Path, party: int, server: bool) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_REQUIRED
    made.load_cert_chain(folder / f"P{party}.pem", folder / f"P{party}.key")
    made.load_verify_locations(capath=str(folder))
    return made


def handshake(server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    """Both sides of a handshake in memory."""
    pipes = [ssl.MemoryBIO() for _ in range(2)]
    ends = [server.wrap_bio(pipes[0], pipes[1], server_side=True), client.wrap_bio(pipes[1], pipes[0])]
    waiting = [True, True]
    for _ in range(20):
        for i, end in enumerate(ends):
            if waiting[i]:
                try:
                    end.do_handshake()
                    waiting[i] = False
                except ssl.SSLWantReadError:
                    pass
    assert waiting == [False, False]


def test_parties_with_exchanged_certificates_accept_each_other_and_nobody_else(tmp_path: Path) -> None:
    folders = [tmp_path / str(i) for i in range(3)]
    certificates = []
    for i, folder in enumerate(folders):
        folder.mkdir()
        certificates.append(make_certificate(folder, min(i, 1)))  # the third calls itself P1 as well
    trust_certificate(folders[0], 1, certificates[1])
    for folder in folders[1:]:
        trust_certificate(folder, 0, certificates[0])
    server = context(folders[0], 0, True)
    handshake(server, context(folders[1], 1, False))
    with pytest.raises(ssl.SSLError):
        handshake(server, context(folders[2], 1, False))
    for bad in ("", "nonsense", certificates[1] + certificates[1], certificates[1] + "x" * 20000):
        with pytest.raises(PartyError, match="party 1"):
            trust_certificate(folders[0], 1, bad)
