"""The working folder: rights, wiping, programs; and the certificates in it."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import _engine
from keyquorum.backends.mpspdz import certificates, workdir
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


@pytest.mark.parametrize("step", ["made", "opened", "locked"])
def test_a_folder_that_is_swept_while_it_is_made_is_given_up_for_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """Another run sweeps between two steps of making the folder. The replacement is private, and locked against the next sweep."""
    makes, opens, locks, swept = workdir.tempfile.mkdtemp, os.open, workdir.fcntl.flock, []

    def once() -> None:
        if not swept:
            swept.extend(tmp_path.iterdir())
            sweep(tmp_path)

    def mkdtemp(**options: Any) -> str:
        path = makes(**options)
        _ = once() if step == "made" else None
        return path

    def open_(path: Any, *rest: Any, **options: Any) -> int:
        descriptor = opens(path, *rest, **options)
        _ = once() if step == "opened" and Path(path).name == "lock" else None
        return descriptor

    def flock(descriptor: int, how: int) -> None:
        _ = once() if step == "locked" else None
        locks(descriptor, how)

    monkeypatch.setattr(workdir.tempfile, "mkdtemp", mkdtemp)
    monkeypatch.setattr(workdir.os, "open", open_)
    monkeypatch.setattr(workdir.fcntl, "flock", flock)
    with WorkFolder(tmp_path) as folder:
        assert len(swept) == 1
        folder.write_input(0, np.array([1]), [])
        sweep(tmp_path)
        assert folder.input_path(0).exists() and list(tmp_path.iterdir()) == [folder.path]
        assert folder.path.stat().st_mode & 0o777 == 0o700
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("step", ["before it is locked", "while it is removed"])
def test_two_runs_sweep_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    for i in range(3):
        (tmp_path / f"mp-spdz-{i}" / "Persistence" / "deep").mkdir(parents=True)
        (tmp_path / f"mp-spdz-{i}" / "Persistence" / "deep" / "shares").write_bytes(b"secret")
        os.link(tmp_path / f"mp-spdz-{i}" / "Persistence" / "deep" / "shares", tmp_path / f"watch{i}")
    opens, wipes, others = os.open, workdir.wipe_file, [0]

    def other() -> None:
        if others:
            others.pop()
            sweep(tmp_path)

    def open_(path: Any, *rest: Any, **options: Any) -> int:
        _ = other() if step == "before it is locked" and Path(path).name == "lock" else None
        return opens(path, *rest, **options)

    def wipe(path: Path) -> None:
        _ = other() if step == "while it is removed" else None
        wipes(path)

    monkeypatch.setattr(workdir.os, "open", open_)
    monkeypatch.setattr(workdir, "wipe_file", wipe)
    sweep(tmp_path)
    assert not others and sorted(p.name for p in tmp_path.iterdir()) == ["watch0", "watch1", "watch2"]
    assert all((tmp_path / f"watch{i}").read_bytes() == bytes(6) for i in range(3))


def test_runs_make_and_sweep_folders_at_once(tmp_path: Path) -> None:
    """No run fails, no folder in use is removed, and no folder is left."""

    def one(_: int) -> None:
        for _ in range(15):
            sweep(tmp_path)
            with WorkFolder(tmp_path) as folder:
                folder.write_input(0, np.arange(100), [])
                sweep(tmp_path)
                assert np.fromfile(folder.input_path(0), "<i8").tolist() == list(range(100))
                assert folder.path.stat().st_mode & 0o777 == 0o700

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(8)))
    sweep(tmp_path)
    assert not list(tmp_path.iterdir())


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


def handshake(server: ssl.SSLContext, client: ssl.SSLContext, name: str | None = None) -> None:
    """Both sides of a handshake in memory."""
    pipes = [ssl.MemoryBIO() for _ in range(2)]
    ends = [server.wrap_bio(pipes[0], pipes[1], server_side=True), client.wrap_bio(pipes[1], pipes[0], server_hostname=name)]
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
    before = (folders[0] / "P1.pem").read_text()
    lines = certificates[1].strip().splitlines()
    for bad, reason in (
        ("", "not one certificate"),
        ("nonsense", "not one certificate"),
        (certificates[1] + certificates[1], "not one certificate"),
        (certificates[1] + "x" * 20000, "not one certificate"),
        ("\n".join([lines[0], "!", lines[-1]]), "no base64"),
        ("\n".join([lines[0], "", lines[-1]]), "not of the form"),
        ("\n".join([lines[0], "AAAA", lines[-1]]), "not of the form"),
        ("\n".join([lines[0], lines[1], lines[-1]]), "not of the form"),
        (certificates[0], "not of the form"),  # of P0
        (changed(certificates[1], -1), "its own key did not sign"),
        (changed(certificates[1], 20), "its own key did not sign"),  # the serial number
    ):
        with pytest.raises(PartyError, match=f"party 1 .*{reason}.*: run the same version everywhere"):
            trust_certificate(folders[0], 1, bad)
    assert (folders[0] / "P1.pem").read_text() == before


def changed(certificate: str, at: int) -> str:
    """A certificate with one byte changed."""
    data = bytearray(ssl.PEM_cert_to_DER_cert(certificate))
    data[at] ^= 1
    return ssl.DER_cert_to_PEM_cert(bytes(data))


OPENSSL = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")


def openssl(*words: object) -> None:
    subprocess.run(["openssl", *map(str, words)], capture_output=True, check=True)


def sign_as_party_1(folder: Path) -> None:
    """A certificate of P2 that the key of P1 signs, whatever the certificate of P1 allows."""
    key, request, p1 = folder / "P2.key", folder / "P2.csr", folder / "P1"
    new = ("-new", "-newkey", "ed25519", "-nodes", "-subj", "/CN=P2")
    openssl("req", "-config", folder / "openssl.cnf", *new, "-keyout", key, "-out", request)
    authority = ("-CA", f"{p1}.pem", "-CAkey", f"{p1}.key", "-CAcreateserial")
    openssl("x509", "-req", "-in", request, *authority, "-days", 30, "-out", folder / "P2.pem")


@OPENSSL
@pytest.mark.parametrize(
    ("name", "key", "extensions", "passes_for"),
    [
        ("P1", "ed25519", ["basicConstraints=critical,CA:TRUE"], "P2 by a certificate that it signs"),
        ("P1", "ed25519", ["basicConstraints=critical,CA:FALSE", "subjectAltName=DNS:P1,DNS:P2"], "P2 by its own"),
        ("P1", "ed25519", ["basicConstraints=critical,CA:FALSE", "keyUsage=keyCertSign"], ""),
        ("P1", "rsa:2048", ["basicConstraints=critical,CA:FALSE"], ""),
        ("P2", "ed25519", ["basicConstraints=critical,CA:FALSE"], ""),
        ("p1", "ed25519", ["basicConstraints=critical,CA:FALSE"], ""),
        ("P1/CN=P2", "ed25519", ["basicConstraints=critical,CA:FALSE"], ""),
    ],
)
def test_certificates_by_which_a_party_passes_for_another_are_refused(
    tmp_path: Path, name: str, key: str, extensions: list[str], passes_for: str
) -> None:
    evil, honest = tmp_path / "evil", tmp_path / "honest"
    for i, folder in enumerate((honest, evil)):
        folder.mkdir()
        (folder / "openssl.cnf").write_text("[req]\ndistinguished_name=d\n[d]\n")
        trust_certificate(folder, 0, make_certificate(honest, 0)) if i else None
    words = [w for extension in extensions for w in ("-addext", extension)]
    openssl(
        "req", "-config", evil / "openssl.cnf", "-x509", "-newkey", key, "-nodes", "-subj", f"/CN={name}", "-days", 30,
        "-keyout", evil / "P1.key", "-out", evil / "P1.pem", *words,
    )  # fmt: skip
    with pytest.raises(PartyError, match=r"party 1 .*not of the form"):
        trust_certificate(honest, 1, (evil / "P1.pem").read_text())
    assert not (honest / "P1.pem").exists()
    if not passes_for:
        return
    # The attack would have worked if the certificate had been accepted.
    (honest / "P1.pem").write_text((evil / "P1.pem").read_text())
    (honest / f"{subject_hash('P1')}.0").symlink_to("P1.pem")
    presented = 1
    if "CA:TRUE" in extensions[0]:
        presented = 2
        sign_as_party_1(evil)
    client = context(honest, 0, False)
    client.check_hostname, client.hostname_checks_common_name = True, True  # as MP-SPDZ expects P2
    handshake(context(evil, presented, True), client, "P2")


@OPENSSL
def test_our_certificates_are_no_authorities(tmp_path: Path) -> None:
    """Without the extension or with it: a certificate that party 1 signed for P2 is not taken by party 0."""
    honest, evil = tmp_path / "honest", tmp_path / "evil"
    honest.mkdir()
    evil.mkdir()
    trust_certificate(honest, 1, make_certificate(evil, 1))
    trust_certificate(evil, 0, make_certificate(honest, 0))
    (evil / "openssl.cnf").write_text("[req]\ndistinguished_name=d\n[d]\n")
    text = subprocess.run(["openssl", "x509", "-in", str(evil / "P1.pem"), "-noout", "-text"], capture_output=True, text=True, check=True).stdout
    assert "CA:FALSE" in text and "Key Usage" not in text and "Alternative" not in text
    sign_as_party_1(evil)
    with pytest.raises(ssl.SSLError):
        handshake(context(evil, 2, True), context(honest, 0, False))


def test_no_key_is_left_beside_the_party_s_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file in which the engine writes key and certificate is overwritten and removed, also if something fails after it."""
    made = _engine.make_identity

    def watched(path: str, name: str) -> str:
        fingerprint = made(path, name)
        os.link(path, tmp_path / f"watch-{name}")
        return fingerprint

    monkeypatch.setattr(certificates._engine, "make_identity", watched)
    folder = tmp_path / "folder"
    folder.mkdir()
    make_certificate(folder, 0)
    kept = {"P0.key", "P0.pem", f"{subject_hash('P0')}.0"}
    assert {p.name for p in folder.iterdir()} == kept

    def fails(*_: object) -> None:
        raise PartyError("no luck")

    monkeypatch.setattr(certificates, "trust_certificate", fails)
    with pytest.raises(PartyError):
        make_certificate(folder, 1)
    monkeypatch.setattr(Path, "read_text", fails)
    with pytest.raises(PartyError):
        make_certificate(folder, 2)
    monkeypatch.undo()
    assert {p.name for p in folder.iterdir()} == kept
    for i in range(3):
        data = (tmp_path / f"watch-P{i}").read_bytes()
        assert data and data == bytes(len(data))
