"""Wrong certificates, files and jobs at one party, and peers that break the protocol: named, in one line, everywhere."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import socket
import threading
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from keyquorum import _engine, api
from keyquorum.fhe import seal
from keyquorum.model import builds
from keyquorum.model.builds import build_text
from keyquorum.model.committee import Committee
from keyquorum.model.errors import KeyQuorumError
from keyquorum.model.resources import resource_folder
from keyquorum.parties.worker import open_session

from tests.long import some

from .deployment import (
    CONNECT_TIMEOUT,
    PARAMETERS,
    Outcome,
    Parties,
    blamed,
    decrypt_job,
    decrypts,
    keygen_job,
    started,
)


def test_a_wrong_certificate_is_named(folder: Path, tmp_path: Path) -> None:
    """Party 1 has a new identity that only its own committee file lists: both sides name the wrong certificate."""
    listed = Committee.load(folder).parties[1].fingerprint
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    path = other / "party-1" / "identity.pem"
    path.unlink()
    fingerprint = _engine.make_identity(str(path), "party-1")
    file = other / "committee.toml"
    file.write_text(file.read_text().replace(listed, fingerprint))
    with Parties([folder, other, folder], [keygen_job()] * 3) as parties:
        outcomes = parties.wait()
    blamed(outcomes, 1, f"party 1 showed the certificate {fingerprint}, but the parties file lists {listed}")
    assert "refused our certificate" in outcomes[1].message and "\n" not in outcomes[1].message
    assert decrypts(folder)


def test_an_identity_that_is_not_listed_is_refused(folder: Path) -> None:
    """Party 1 has a new identity, and finds that its own committee file lists another: the others cannot reach it."""
    path = Committee.load(folder).identity_path(1)
    kept = path.with_suffix(".kept")
    path.rename(kept)
    _engine.make_identity(str(path), "party-1")
    with started(folder, keygen_job()) as parties:
        outcomes = parties.wait()
    blamed(outcomes, 1, "cannot connect to party 1")
    assert "fingerprint" in outcomes[1].message or "certificate" in outcomes[1].message
    kept.replace(path)
    assert decrypts(folder)


def _flip(position: int) -> Callable[[Path, Path], None]:
    def flip(path: Path, folder: Path) -> None:
        data = bytearray(path.read_bytes())
        data[position] ^= 1
        path.write_bytes(bytes(data))

    return flip


def _keep(size: int) -> Callable[[Path, Path], None]:
    def keep(path: Path, folder: Path) -> None:
        path.write_bytes(path.read_bytes()[:size])

    return keep


def _copy(source: str) -> Callable[[Path, Path], None]:
    def copy(path: Path, folder: Path) -> None:
        shutil.copy(folder / source, path)

    return copy


def _append(path: Path, folder: Path) -> None:
    path.write_bytes(path.read_bytes() + b"0")


DAMAGE: dict[str, tuple[Callable[[Path, Path], None], str]] = {
    "missing": (lambda path, folder: path.unlink(), "No such file"),
    "truncated": (_keep(-1), "truncated or extended"),
    "flipped share": (_flip(5000), "corrupted"),
    "of another party": (_copy("party-2/keys/before/share-0.kqs"), "its party is 2, not 1"),
    "of another prime": (_copy("party-1/keys/before/share-1.kqs"), "foreign file, its domain is"),
    "open to others": (lambda path, folder: path.chmod(0o644), "readable by others: chmod 600"),
    "empty": (_keep(0), "truncated in its header"),
    "half": (_keep(20000), "truncated or extended"),
    "extended": (_append, "truncated or extended"),
    "flipped checksum": (_flip(-1), "corrupted"),
    "flipped magic": (_flip(0), "not a share file"),
    "flipped version": (_flip(8), "format version"),
}


@pytest.mark.parametrize("damage", some(DAMAGE, 6))
def test_a_damaged_share_file_is_named(folder: Path, damage: str) -> None:
    """Its owner names the file, the others its owner; with the file restored the key works."""
    spoil, message = DAMAGE[damage]
    path = folder / "party-1" / "keys" / "before" / "share-0.kqs"
    kept = path.with_suffix(".kept")
    shutil.copy2(path, kept)
    spoil(path, folder)
    job = decrypt_job(folder)
    with started(folder, job) as parties:
        outcomes = parties.wait()
    blamed(outcomes, 1, "share file")
    assert outcomes[1].kind == "StoreError" and message in outcomes[1].message and str(path) in outcomes[1].message
    assert not (folder / "half.out").exists()
    kept.replace(path)
    assert decrypts(folder)


def test_a_share_file_of_another_key_is_named(folder: Path) -> None:
    """Same party, same prime, other key."""
    api.keygen(folder, "second", "ckks-4096", relin=False)
    shutil.copy(folder / "party-0/keys/second/share-1.kqs", folder / "party-0/keys/before/share-1.kqs")
    with started(folder, decrypt_job(folder)) as parties:
        outcomes = parties.wait()
    blamed(outcomes, 0, "its key id is")
    assert outcomes[0].kind == "StoreError"


def at_one_party(folder: Path, odd: int, right: dict[str, Any], wrong: dict[str, Any]) -> dict[int, Outcome]:
    """Party ``odd`` runs another job than the others."""
    with Parties([folder] * 3, [wrong if party == odd else right for party in range(3)]) as parties:
        return parties.wait()


def disagreed(outcomes: dict[int, Outcome], odd: int) -> None:
    """The others name the party with the different job, and that party reports that the others differ."""
    blamed(outcomes, odd, "where we have", "has another", "aborted")
    assert "party" in outcomes[odd].message and "\n" not in outcomes[odd].message


@pytest.mark.parametrize("odd", [0, 2])
def test_wrong_parameters_at_one_party(folder: Path, odd: int) -> None:
    """Another parameter set, found when the parties greet each other."""
    other = api.keygen_job("new", api.load_parameters("bfv-4096"))
    disagreed(at_one_party(folder, odd, keygen_job(), other), odd)
    assert not list(folder.glob("party-*/keys/new"))
    assert decrypts(folder)


def test_another_job_at_one_party(folder: Path) -> None:
    """Decryption at one party, keygen at the others."""
    disagreed(at_one_party(folder, 1, keygen_job(), decrypt_job(folder)), 1)
    assert decrypts(folder)


def test_a_weaker_policy_at_one_party(folder: Path) -> None:
    """Everything in a job is compared."""
    job = keygen_job()
    disagreed(at_one_party(folder, 2, job, {**job, "policy": {**job["policy"], "bits": 1}}), 2)


MALFORMED: list[tuple[dict[str, Any], str]] = [
    ({"kind": "dance"}, "unknown job 'dance': choose one of"),
    ({"parameters": {"name": "x"}}, "not a parameter set"),
    ({"parameters": 5}, "'parameters'"),
    ({"policy": {"bits": 1, "years": 2}}, "policy"),
    ({"galois_elements": ["3"]}, "Galois element"),
    ({"relin": "yes"}, "'relin'"),
    ({"key": "../other"}, "key name '../other'"),
    ({"error_law": "uniform"}, "unknown error law 'uniform'"),
    ({"years": 2}, "the keygen job has a field 'years', which it does not know"),
]


@pytest.mark.parametrize(("fields", "message"), MALFORMED, ids=[m for _, m in MALFORMED])
def test_a_malformed_job_is_refused(folder: Path, fields: dict[str, Any], message: str) -> None:
    """The same malformed job at all parties: one line each, no traceback."""
    with started(folder, {**keygen_job(), **fields}) as parties:
        outcomes = parties.wait()
    for outcome in outcomes.values():
        assert outcome.code == 1 and message in outcome.message, outcome
        assert "\n" not in outcome.message and outcome.stderr == ""


def test_another_committee_file_at_one_party(folder: Path, tmp_path: Path) -> None:
    """Party 1 has a committee.toml with another name: found when the parties greet each other."""
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    file = other / "committee.toml"
    file.write_text(file.read_text().replace('name = "c"', 'name = "d"'))
    with Parties([folder, other, folder], [keygen_job()] * 3) as parties:
        outcomes = parties.wait()
    disagreed(outcomes, 1)
    assert any("committee" in outcomes[party].message for party in (0, 2))
    assert decrypts(folder)


def test_another_build_at_one_party(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same version number with other programs: named with both texts when the parties greet each other, not by transcripts or timeouts later."""
    committee, job = Committee.load(folder), keygen_job()
    texts = {0: "0.1.0, programs aaaa, code cccc", 1: "0.1.0, programs bbbb, code cccc", 2: "0.1.0, programs aaaa, code cccc"}
    local = threading.local()
    monkeypatch.setattr(
        "keyquorum.parties.worker.build_entries", lambda: [("version and programs (install the same everywhere)", texts[local.party])]
    )
    errors: dict[int, str] = {}

    def party(index: int) -> None:
        local.party = index
        try:
            open_session(committee, index, job, 20.0, 20.0).abort("it should not connect")
        except (KeyQuorumError, _engine.EngineError) as error:
            errors[index] = str(error)

    threads = [threading.Thread(target=party, args=(index,)) for index in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    named = 'has version and programs (install the same everywhere) "0.1.0, programs'
    assert set(errors) == {0, 1, 2} and "\n" not in "".join(errors.values())
    seen = [text for text in errors.values() if named in text]
    assert seen and all("aaaa" in text and "bbbb" in text for text in seen), errors


def test_the_build_is_that_of_programs_and_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed byte of a program or of a set changes the text; folders above do not."""
    text = build_text()
    assert text.startswith(_engine.__version__)
    root = resource_folder("Programs").parent
    copy = tmp_path / "elsewhere"
    for name in ("Programs", "params"):
        shutil.copytree(root / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(builds, "resource_folder", lambda name: copy / name)
    again = build_text.__wrapped__
    assert again() == text
    for path in (
        copy / "Programs" / "Source" / "rlwe_phase.mpc",
        next((copy / "Programs" / "Library").rglob("*.py")),
        copy / "params" / "bfv-4096.toml",
    ):
        before = path.read_bytes()
        path.write_bytes(before + b"\n")
        assert again() != text and again().split(", ")[2] == text.split(", ")[2]
        path.write_bytes(before)


def _three_parts(path: Path) -> bytes:
    context = seal.context(PARAMETERS)
    ciphertext = context.from_cipher_str(path.read_bytes())
    ciphertext.scale(2.0**28)  # the scale of the square fits the modulus
    return bytes(seal.require_seal().Evaluator(context).square(ciphertext).to_string())


def _of_another_key(path: Path) -> bytes:
    generator = seal.require_seal().KeyGenerator(seal.context(PARAMETERS))
    return seal.encrypt(PARAMETERS, generator.create_public_key().to_string(), [0.5])


def _of_other_parameters(path: Path) -> bytes:
    parameters = api.load_parameters("bfv-4096")
    generator = seal.require_seal().KeyGenerator(seal.context(parameters))
    return seal.encrypt(parameters, generator.create_public_key().to_string(), [1])


WRONG_CIPHERTEXTS: dict[str, tuple[Callable[[Path], bytes], str]] = {
    "three parts": (_three_parts, "has 3 parts, decryption takes 2: relinearise first"),
    "another key": (_of_another_key, "the result is noise: the ciphertext is of another key"),
    "other parameters": (_of_other_parameters, "is of other encryption parameters than ckks-4096"),
    "truncated": (lambda path: path.read_bytes()[:-1], "half.ct"),
}


@pytest.mark.parametrize("what", WRONG_CIPHERTEXTS)
def test_a_wrong_ciphertext_is_refused_by_all(folder: Path, what: str) -> None:
    """Every party process fails with the reason and writes nothing; the interface refuses what can be seen beforehand."""
    make, message = WRONG_CIPHERTEXTS[what]
    job, path, output = decrypt_job(folder, receiver=1), folder / "half.ct", folder / "half.out"
    path.write_bytes(make(path))
    job["sha256"] = [sha256(path.read_bytes()).hexdigest()]
    with started(folder, job) as parties:
        outcomes = parties.wait()
    for party, outcome in outcomes.items():
        assert outcome.code == 1 and message in outcome.message, outcome
        assert "\n" not in outcome.message and outcome.stderr == ""
        assert what != "another key" or party == 1 or "party 1" in outcome.message
    assert not output.exists()
    if what != "another key":
        with pytest.raises(KeyQuorumError, match=re.escape(message)):
            api.decrypt(folder, "before", [path], 1, [output])
    assert decrypts(folder)


def test_strangers_at_the_port_do_no_harm(folder: Path) -> None:
    """Random bytes, silence and closed connections on every party's port while keygen runs: it succeeds."""
    stop = threading.Event()
    ports = [party.port for party in Committee.load(folder).parties]

    def knock() -> None:
        while not stop.is_set():
            for port in ports:
                try:
                    with socket.create_connection(("127.0.0.1", port), timeout=0.2) as stranger:
                        stranger.sendall(b"GET / HTTP/1.0\r\n\r\n" * 20)
                except OSError:
                    pass
            stop.wait(0.05)

    thread = threading.Thread(target=knock, daemon=True)
    thread.start()
    try:
        with started(folder, keygen_job()) as parties:
            outcomes = parties.wait()
    finally:
        stop.set()
        thread.join()
    assert all(outcome.code == 0 for outcome in outcomes.values()), outcomes
    assert decrypts(folder)


@pytest.mark.parametrize("message", [b"", b"\x00" * 31, b"\xff" * 100_000])
def test_a_peer_that_breaks_the_protocol_is_named(folder: Path, message: bytes) -> None:
    """Party 1 has its certificate and greets as it should, then sends what no party sends."""
    committee, job = Committee.load(folder), keygen_job()
    with started(folder, job, only=(0, 2)) as parties:
        session = open_session(committee, 1, job, CONNECT_TIMEOUT, CONNECT_TIMEOUT)
        for peer in (0, 2):
            with contextlib.suppress(_engine.EngineError):  # the party may have closed the connection already
                session.send(peer, message)
        outcomes = parties.wait()
    blamed(outcomes, 1)
    assert decrypts(folder)


def test_a_share_header_is_read_with_care(folder: Path) -> None:
    """A header that claims another length or format does not bring the reader down."""
    path = folder / "party-1" / "keys" / "before" / "share-0.kqs"
    data = path.read_bytes()
    size = int.from_bytes(data[12:16], "little")
    header = json.loads(data[16 : 16 + size])
    for changed in ({**header, "length": 1 << 60}, {**header, "extra": 1}, {"protocol": 5}):
        text = json.dumps(changed).encode()
        path.write_bytes(data[:12] + len(text).to_bytes(4, "little") + text + data[16 + size :])
        with pytest.raises(_engine.StoreError, match="share file"):
            _engine.ShareFile.read(str(path), header)
