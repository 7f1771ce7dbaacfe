"""Identities, certificates, share files and MAC keys: description and check. Their secrets are not printed."""

from __future__ import annotations

import hashlib
import re
import ssl
from pathlib import Path

from keyquorum import _engine
from keyquorum.dsl.files.share_files import CLAIM, CLAIMED
from keyquorum.model.committee import MAC_KEY, Committee
from keyquorum.model.errors import BurnedKeyError, CommitteeError, KeyFileError
from keyquorum.model.inspected import Candidate, Kind, Report, openness, require, sha256_of
from keyquorum.parties import mac_key
from keyquorum.serve.wire import certificate_of

SHARE_MAGIC = b"KQSHARE\0"
_PREFIX = 16
_DIGEST = 32
AGAIN = "restore it from a backup"
_MARK = re.compile(rb"[ocr] {0,9}\d{1,10}( {0,9}\d{1,10})?\n")


def check_share_file(path: Path) -> dict[str, object]:
    """The header of a share file. Raises EngineError or KeyFileError if its length or checksum is wrong."""
    header: dict[str, object] = _engine.ShareFile.header(str(path))
    total = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(_PREFIX)
        at = _PREFIX + int.from_bytes(start[12:], "little")
        file.seek(at)
        length = int.from_bytes(file.read(8), "little")
        require(at + 8 + length + _DIGEST == total, path, f"truncated or extended, {AGAIN}")
        file.seek(total - _DIGEST)
        digest = file.read(_DIGEST)
    require(sha256_of(path, total - _DIGEST) == digest, path, f"its checksum is wrong, {AGAIN}")
    return header


def _share(candidate: Candidate) -> Report:
    header = check_share_file(candidate.path)
    lines = [
        f"share file of party {header['party']} of {header['parties']}, {header['protocol']}, threshold {header['threshold']}",
        f"{header['length']} elements of {header['domain']}, key {header['key_id']}",
    ]
    return Report([*lines, *openness(candidate.path)], "sha256", header)


def check_identity(path: Path) -> str:
    """The fingerprint of an identity. Raises CommitteeError or EngineError if key and certificate do not fit, others may read the file, or the
    committee file lists another fingerprint for the party."""
    fingerprint: str = _engine.identity_fingerprint(str(path))
    root, party = path.absolute().parent.parent, re.fullmatch(r"party-(\d+)", path.absolute().parent.name)
    if party and (root / "committee.toml").is_file():
        known = {p.index: p.fingerprint for p in Committee.load(root).parties}.get(int(party[1]))
        if known and known != fingerprint:
            raise CommitteeError(f"{path}: its fingerprint is not that of party {party[1]} in {root / 'committee.toml'}: {AGAIN}")
    return fingerprint


def _identity(candidate: Candidate) -> Report:
    fingerprint = check_identity(candidate.path)
    lines = [f"identity of a party or receiver (secret key and certificate), certificate {fingerprint}"]
    return Report(lines, "key against certificate", {"fingerprint": fingerprint})


def _certificate(candidate: Candidate) -> Report:
    path, again = candidate.path, "copy the receiver's .crt again"
    try:
        der = ssl.PEM_cert_to_DER_cert(certificate_of(path))
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=der)
    except (ValueError, ssl.SSLError):
        raise CommitteeError(f"{path}: not a certificate, or a damaged one: {again}") from None
    fingerprint = hashlib.sha256(der).hexdigest()
    identity = path.with_suffix(".pem")
    own = identity.is_file()
    if own and _engine.identity_fingerprint(str(identity)) != fingerprint:
        raise CommitteeError(f"{path}: not the certificate of {identity}: {again}")
    lines = [f"certificate of a receiver, fingerprint {fingerprint}"]
    return Report(lines, "identity beside it" if own else "structure", {"fingerprint": fingerprint})


def _mac_key(candidate: Candidate) -> Report:
    burned = ""
    try:
        mac_key.mac_key(candidate.path)
    except BurnedKeyError as error:
        burned = str(error)
    return Report([burned or "key of a party's MACs, which is not burned"], details={"burned": bool(burned)})


def _is_mac_key(candidate: Candidate) -> bool:
    return candidate.named(MAC_KEY) or (not candidate.is_folder and re.fullmatch(r"MAC-Key-P\d+", candidate.path.name) is not None)


def _burned(candidate: Candidate) -> Report:
    require(candidate.has("check", "date"), candidate.path, "the MAC key beside it is burned all the same: make a new committee and new keys")
    return Report([f"mark of a burned MAC key: {candidate.json['check']}, {candidate.json['date']}"], details={"check": str(candidate.json["check"])})


def _session(candidate: Candidate) -> Report:
    require(_MARK.fullmatch(candidate.data), candidate.path, "leave it to the party, whose next session decides")
    state, count = candidate.data[:1], int(candidate.data[11:21].strip() or b"0")
    said = {b"r": "a check was OPEN", b"c": "a challenge was open"}.get(state, "nothing was open")
    lines = [f"state of the session that used a MAC key last: {said}", f"challenges that were cut off before: {count:,}"]
    return Report(lines, details={"open": state == b"r", "cut_offs": count})


CHECKS_BYTES = 64 << 13
"""Size of a file of MAC checks: slots of 8 KiB (``Source/core/src/mac_key/checks.rs``)."""


def _checks(candidate: Candidate) -> Report:
    require(candidate.path.stat().st_size == CHECKS_BYTES, candidate.path, "the next session makes it anew if it has no check, and refuses it else")
    key = candidate.path.with_name(candidate.path.name.removesuffix(".checks"))
    return Report([f"MAC checks of the last session that used a MAC key: {mac_key.state(key).unfinished} unfinished"])


def _claim(candidate: Candidate) -> Report:
    require(candidate.data == CLAIMED, candidate.path, "the shares beside it are not used all the same")
    return Report(["mark of shares that a run used and did not come to its end: programs with verified products refuse them"])


def folder_lines(folder: Path) -> list[str]:
    """A line with the number of share files in a folder. Raises for a damaged one."""
    shares = sorted(folder.glob("*.kqs"))
    for path in shares:
        check_share_file(path)
    return [f"{len([p for p in shares if p.name.startswith('share-')])} share files"]


def burned_line(key: Path, party: int) -> str:
    """A line with the state of a party's MAC key."""
    try:
        return f"party {party}: {mac_key.state(key)}"
    except KeyFileError as error:
        return f"party {party}: {error}"


KINDS = (
    Kind(
        "share file",
        lambda c: c.head[:8] == SHARE_MAGIC,
        _share,
        (
            "schemes/key_folder",
            "plans/pool_store",
            "dsl/files/share_vector",
            "plans/epochs/refresh",
            "plans/epochs/reshare",
            "plans/epochs/macs",
            "schemes/origin_file",
        ),
    ),
    Kind("MAC key", _is_mac_key, _mac_key, ("parties/mac_key",)),
    Kind("mark of a burned MAC key", lambda c: not c.is_folder and c.path.name.endswith(".burned"), _burned, ("parties/mac_key",)),
    Kind("checks of a MAC key", lambda c: not c.is_folder and c.path.name.endswith(".checks"), _checks, ("parties/mac_key",)),
    Kind("session of a MAC key", lambda c: not c.is_folder and c.path.name.endswith(".session"), _session, ("parties/mac_key",)),
    Kind("mark of used shares", lambda c: not c.is_folder and c.path.name.endswith(CLAIM), _claim, ("dsl/files/share_files",)),
    Kind(
        "identity",
        lambda c: c.head.startswith(b"-----BEGIN PRIVATE KEY") or c.path.suffix == ".pem",
        _identity,
        ("parties/setup", "serve/client", "serve/wire"),
    ),
    Kind("certificate", lambda c: c.head.startswith(b"-----BEGIN CERT") or c.path.suffix == ".crt", _certificate, ("serve/client",)),
)
