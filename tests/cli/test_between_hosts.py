"""Commands for committees on several hosts: fingerprints, addresses, the public part of a key, certificates of receivers."""

from __future__ import annotations

import json
import re
import socket
import ssl
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from keyquorum import api
from keyquorum.fhe import seal
from keyquorum.fhe.lwe import encrypt, lwe_parameters
from keyquorum.model.committee import Committee, write_atomically
from keyquorum.model.errors import CiphertextError, CommitteeError, KeyFileError, PartyError
from keyquorum.parties.setup import fingerprint, move
from keyquorum.plans.public import export_key
from keyquorum.schemes.key_folder import load_key
from keyquorum.serve.client import Receiver, admit, make_receiver
from keyquorum.serve.daemon import Daemon
from keyquorum.serve.kinds import Service
from keyquorum.serve.kinds.decryption import ServedKey
from keyquorum.serve.wire import connect

from .test_commands import keyquorum

ELSEWHERE = ["a:1", "b:1", "c:1"]
"""Addresses of parties of other hosts."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a committee of this host and a BFV key."""
    folder = tmp_path_factory.mktemp("hosts")
    committee = api.init(folder / "committee")
    api.keygen(committee, "key", "bfv-4096", relin=False)
    return folder


def test_the_fingerprint_is_printed_alone(tmp_path: Path) -> None:
    """For keyquorum trust PARTY $(...), and to be read out."""
    addresses = [word for port in (4000, 4001, 4002) for word in ("--host", f"localhost:{port}")]
    said = keyquorum("init", "committee", *addresses, "--me", 1, folder=tmp_path)
    printed = keyquorum("fingerprint", "committee", folder=tmp_path)
    assert re.fullmatch(r"[0-9a-f]{64}\n", printed) and printed.strip() in said
    with pytest.raises(CommitteeError, match="party 0 is not on this host: ask on its host"):
        fingerprint(tmp_path / "committee", 0)


def test_several_parties_of_a_host_have_to_be_named(made: Path) -> None:
    known = [p.fingerprint for p in Committee.load(made / "committee").parties]
    assert [fingerprint(made / "committee", i) for i in range(3)] == known
    assert "this host has parties 0, 1, 2: name one of them" in keyquorum("fingerprint", "committee", folder=made, ok=False)


def test_a_moved_party_has_the_same_keys(tmp_path: Path) -> None:
    """Parties do not compare addresses."""
    before = api.init(tmp_path / "committee")
    assert "party 2 listens at elsewhere:4321" in keyquorum("move", "committee", 2, "elsewhere:4321", folder=tmp_path)
    after = Committee.load(tmp_path / "committee")
    assert (after.parties[2].host, after.parties[2].port) == ("elsewhere", 4321) and after.parties[:2] == before.parties[:2]
    assert after.digest == before.digest
    for party, place, reason in ((3, "a:1", "no party 3"), (2, "elsewhere", "write HOST:PORT"), (2, "a:0", "choose one from 1 to 65535")):
        with pytest.raises(CommitteeError, match=reason):
            move(tmp_path / "committee", party, place)
    assert Committee.load(tmp_path / "committee") == after


def test_the_exported_folder_is_all_that_stock_seal_needs(made: Path, tmp_path: Path) -> None:
    """parms and public.key, with SEAL's own loaders; what it encrypts, the committee decrypts."""
    import seal as stock

    assert "key.json, parms, public.key of key" in keyquorum("export", made / "committee", "key", "-o", "public", folder=tmp_path)
    folder = tmp_path / "public" / "keys" / "key"
    assert sorted(path.name for path in folder.iterdir()) == ["key.json", "parms", "public.key"]
    parms = stock.EncryptionParameters(stock.scheme_type.bfv)
    parms.load(str(folder / "parms"))
    context = stock.SEALContext(parms)
    public_key = stock.PublicKey()
    public_key.load(context, str(folder / "public.key"))
    values = [5, -7, 11]
    ciphertext = stock.Encryptor(context, public_key).encrypt(stock.BatchEncoder(context).encode(values))
    ciphertext.save(str(tmp_path / "x.ct"))
    api.decrypt(made / "committee", "key", [tmp_path / "x.ct"], 1, [tmp_path / "x.plain"])
    info = load_key(folder)
    assert list(seal.decode(info.parameters, (tmp_path / "x.plain").read_bytes())[:3]) == values


def test_the_exported_folder_has_nothing_secret_and_is_a_committee_folder(made: Path, tmp_path: Path) -> None:
    target = tmp_path / "public"
    committee = Committee.load(made / "committee")
    export_key(committee, "key", committee.key_folder(0, "key"), target)
    names = {str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()}
    assert names == {"committee.toml", "keys/key/key.json", "keys/key/parms", "keys/key/public.key"}
    (tmp_path / "x.json").write_text("[1, 2]")
    assert "under key" in keyquorum("encrypt", "public", "key", "x.json", "-o", "x.ct", folder=tmp_path)
    make_receiver(Committee.load(target), "reader")
    again = keyquorum("export", made / "committee", "key", "-o", "public", folder=tmp_path, ok=False)
    assert "there is a key 'key' already: name a new folder" in again


@pytest.mark.parametrize("place", ["http://a:1", "a/b:1", "a b:1", "[a]x:1", "[:1", "user@a:1", "::g:1", "-:1", ".:1"])
def test_what_is_no_host_is_refused(place: str) -> None:
    with pytest.raises(CommitteeError, match=r"is no address: write HOST:PORT"):
        api.address(place)


def test_ipv6_addresses_are_shown_in_brackets(tmp_path: Path) -> None:
    """As they are written: HOST:PORT of ::1:5000 could be read in two ways."""
    assert api.address("[::1]:5000") == api.address("::1:5000") == ("::1", 5000)
    assert api.address("party-0.example.org:1") == ("party-0.example.org", 1)
    said = keyquorum("init", "committee", *[w for i in range(3) for w in ("--host", f"[fe80::1]:{5000 + i}")], folder=tmp_path)
    assert "party 1  [fe80::1]:5001" in said and " fe80::1:5001" not in said
    assert "party 2 listens at [fe80::2]:7" in keyquorum("move", "committee", 2, "[fe80::2]:7", folder=tmp_path)
    assert "[fe80::1]:5000" in keyquorum("inspect", "committee", folder=tmp_path)
    with pytest.raises(PartyError, match=r"party 0 at \[::1\]:9: .* is keyquorum toprf serve running there\?"):
        connect(ssl.create_default_context(), 0, "::1", 9, "ab" * 32, 5.0, "keyquorum toprf serve")
    with pytest.raises(CommitteeError, match=r"have the same address \[::1\]:5"):
        api.init(tmp_path / "same", 2, "semi", hosts=["[::1]:5", "[::1]:5"])


def test_a_party_is_no_receiver(made: Path) -> None:
    """Its own identity is at hand on its host, and would be admitted as a receiver called identity."""
    committee = Committee.load(made / "committee")
    with pytest.raises(CommitteeError, match="the certificate of party 0, which is not a receiver: keyquorum receiver makes an identity"):
        admit(committee, committee.identity_path(0))
    assert not (committee.party_folder(1) / "receivers" / "identity.crt").exists()


def test_damaged_and_foreign_folders_are_not_exported(made: Path, tmp_path: Path) -> None:
    committee = Committee.load(made / "committee")
    source = tmp_path / "source"
    source.mkdir()
    for name in ("key.json", "public.key"):
        (source / name).write_bytes((committee.key_folder(0, "key") / name).read_bytes())
    (source / "public.key").write_bytes(b"x")
    with pytest.raises(KeyFileError, match=r"public\.key is damaged"):
        export_key(committee, "key", source, tmp_path / "public")
    assert not (tmp_path / "public").exists()
    with pytest.raises(CommitteeError, match="a folder with parties"):
        export_key(committee, "other", committee.key_folder(0, "key"), made / "committee")
    other = api.init(tmp_path / "other", me=[], hosts=ELSEWHERE)
    with pytest.raises(CommitteeError, match="the folder of another committee"):
        export_key(committee, "key", committee.key_folder(0, "key"), other.folder)


def test_a_certificate_from_elsewhere_is_admitted(made: Path, tmp_path: Path) -> None:
    committee = Committee.load(made / "committee")
    elsewhere = api.init(tmp_path / "elsewhere", me=[], hosts=ELSEWHERE)
    identity, certificate = make_receiver(elsewhere, "reader")
    said = keyquorum("admit", made / "committee", certificate, folder=tmp_path)
    inspected = re.search(r"certificate ([0-9a-f]{64})$", keyquorum("inspect", identity, folder=tmp_path), re.M)
    assert inspected and inspected[1] in said and "admitted at party 0, 1, 2" in said
    for party in range(3):
        folder = committee.party_folder(party) / "receivers"
        assert folder.stat().st_mode & 0o077 == 0
        assert "PRIVATE" not in (folder / "receiver-reader.crt").read_text()
    admit(committee, certificate)  # again: nothing changes
    (tmp_path / "again").mkdir()
    another = make_receiver(api.init(tmp_path / "again" / "committee", me=[], hosts=ELSEWHERE), "reader")[1]
    with pytest.raises(CommitteeError, match="another receiver of this name"):
        admit(committee, another)
    (tmp_path / "bad.crt").write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    for path, reason in ((tmp_path / "bad.crt", "not a certificate"), (tmp_path / "none.crt", "no such file")):
        with pytest.raises(CommitteeError, match=reason):
            admit(committee, path)
    with pytest.raises(CommitteeError, match="no party of the committee is on this host"):
        admit(elsewhere, certificate)


def test_a_receiver_waits_for_parties_that_start_late(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--wait: the receiver connects when the party listens."""
    committee = Committee.load(made / "committee")
    identity, _ = make_receiver(committee, "late")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        place = probe.getsockname()[:2]
    opened: list[float] = []
    start = time.monotonic()

    def late() -> None:
        time.sleep(1.0)
        with socket.create_server(place):
            opened.append(time.monotonic())
            time.sleep(2.0)

    def connect(*_: object) -> object:
        raise ssl.SSLError("reached")

    monkeypatch.setattr("keyquorum.serve.client.connect", connect)
    with pytest.raises(ssl.SSLError, match="reached"):
        Receiver(committee, identity, [place] * 3).decrypt(*_ciphertext(made))
    assert time.monotonic() - start < 1.0, "without it nobody waits"
    thread = threading.Thread(target=late)
    thread.start()
    with pytest.raises(ssl.SSLError, match="reached"):
        Receiver(committee, identity, [place] * 3, wait=20.0).decrypt(*_ciphertext(made))
    assert opened
    thread.join()


def test_a_receiver_that_waits_reads_addresses_again(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A party that was stopped may start anew at another port, also one that was killed and left its old address behind."""
    committee = Committee.load(made / "committee")
    identity, _ = make_receiver(committee, "patient")
    with socket.create_server(("127.0.0.1", 0)) as old:
        gone = old.getsockname()[1]
    files = [committee.party_folder(party) / "serve.json" for party in range(3)]
    for file in files:
        file.write_text(json.dumps({"host": "127.0.0.1", "port": gone}))
    reached: list[int] = []

    def connect(context: object, party: int, host: str, port: int, *_: object) -> object:
        reached.append(port)
        raise ssl.SSLError("reached")

    monkeypatch.setattr("keyquorum.serve.client.connect", connect)
    with socket.create_server(("127.0.0.1", 0)) as server:
        now = server.getsockname()[1]
        again = threading.Timer(1.0, lambda: [write_atomically(file, json.dumps({"host": "127.0.0.1", "port": now}).encode()) for file in files])
        again.start()
        with pytest.raises(ssl.SSLError, match="reached"):
            Receiver(committee, identity, wait=30.0).decrypt(*_ciphertext(made))
        again.join()
    assert reached == [now]
    for file in files:
        file.unlink()


def test_a_party_that_ends_takes_its_address_with_it(made: Path) -> None:
    """Or receivers ask at a port that is another program's by then."""
    committee = Committee.load(made / "committee")
    make_receiver(committee, "asker")
    address = committee.party_folder(0) / "serve.json"
    served = Daemon(committee, 0, Service("key"))
    assert json.loads(address.read_text())["port"] == served.listener.port
    served.stop()
    served.run()
    assert not address.exists()
    with pytest.raises(CommitteeError, match=r"party 0 does not serve on this host: start keyquorum serve there, or name all addresses"):
        Receiver(committee, committee.folder / "receiver-asker.pem").decrypt(*_ciphertext(made))


@pytest.mark.parametrize("seconds", ["-1", "nan", "inf", "1e300"])
def test_nobody_waits_forever(made: Path, seconds: str) -> None:
    (made / "any.ct").write_bytes(b"x")
    said = keyquorum("decrypt", "committee", "key", "any.ct", "--committee", "--identity", "any.ct", "--wait", seconds, folder=made, ok=False)
    assert "--wait" in said and "choose 0 to 86400 seconds" in said


def test_a_file_of_another_key_is_refused_with_both_keys(made: Path, tmp_path: Path) -> None:
    """LWE files name their key. The receiver has the metadata of the key that the user named, so no party is asked."""
    identity, _ = make_receiver(Committee.load(made / "committee"), "lost")
    parameters = lwe_parameters("lwe64-p2")
    secret, rng = np.zeros(parameters.dimension, np.int64), np.random.default_rng(1)
    (tmp_path / "x.lwe").write_bytes(encrypt(parameters, secret, np.array([1]), rng).to_bytes("ab" * 16))
    said = keyquorum("decrypt", made / "committee", "key", "x.lwe", "--committee", "--identity", identity, folder=tmp_path, ok=False)
    assert f"x.lwe: ciphertexts of LWE under key {'ab' * 16}, and 'key' is the BFV key" in said


def test_a_server_names_the_key_that_it_serves(made: Path) -> None:
    committee = Committee.load(made / "committee")
    served = ServedKey(committee, 0, "key", "round_ltz_circuit")
    try:
        for head, why in (
            ({}, "names no key, as those of LWE and TFHE do, and not the BFV key"),
            ({"key": "00" * 16}, "encrypted under another key \\(0000"),
        ):
            with pytest.raises(CiphertextError, match=why):
                served.read(head, b"")
    finally:
        served.close()


def test_waiting_is_for_served_committees(made: Path) -> None:
    said = keyquorum("decrypt", "committee", "key", "any.ct", "--to", "0", "--wait", "5", folder=made, ok=False)
    assert "--wait is for a served committee: add --committee, or leave it out" in said


def test_json_of_what_goes_from_host_to_host(made: Path, tmp_path: Path) -> None:
    committee = Committee.load(made / "committee")

    def said(*words: object) -> dict[str, object]:
        document: dict[str, object] = json.loads(keyquorum(*words, "--json", folder=tmp_path))
        return document

    assert said("fingerprint", made / "committee", 1) == {"fingerprint": committee.parties[1].fingerprint}
    found = said("export", made / "committee", "key", "-o", "public")
    assert found == {
        "folder": "public/keys/key",
        "files": ["key.json", "parms", "public.key"],
        "key_id": load_key(committee.key_folder(0, "key")).key_id,
    }
    api.init(tmp_path / "other", me=[], hosts=ELSEWHERE)
    assert said("move", "other", 2, "d:5") == {"party": 2, "host": "d", "port": 5}
    certificate = make_receiver(Committee.load(tmp_path / "other"), "json")[1]
    assert said("admit", made / "committee", certificate)["parties"] == [0, 1, 2]


def _ciphertext(made: Path) -> tuple[bytes, object]:
    """A ciphertext at the last level, and the metadata of its key."""
    (made / "values.json").write_text(json.dumps([1]))
    info = load_key(made / "committee" / "party-0" / "keys" / "key")
    public = (made / "committee" / "party-0" / "keys" / "key" / "public.key").read_bytes()
    data = seal.encrypt(info.parameters, public, [1])
    return seal.Evaluator(info.parameters).last_level(data), info
