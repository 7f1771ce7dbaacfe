"""The channel between a receiver and a party: mutual TLS 1.3 with pinned certificates, and messages of a JSON head and a body.

A message: 4 bytes length of the head, 8 bytes length of the body (little endian), the head, the body.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
import re
import socket
import ssl
import threading
from pathlib import Path
from typing import Any

from keyquorum.model.errors import CommitteeError, PartyError
from keyquorum.model.plain import json_loads
from keyquorum.parties.traces import sweep_copies

HEAD_LIMIT = 1 << 16
_PKCS8_SEED = bytes.fromhex("302e020100300506032b657004220420")
"""PKCS #8 of an Ed25519 seed."""


def certificate_of(identity: Path) -> str:
    """The PEM certificate in an identity file."""
    found = re.search(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n?", identity.read_text(), re.S)
    if found is None:
        raise CommitteeError(f"{identity}: no certificate in it: make the identity again")
    return found.group(0)


def _load_identity(context: ssl.SSLContext, identity: Path) -> None:
    """Loads key and certificate. OpenSSL reads PKCS #8 without the public key alone, so the key is written anew for it."""
    sweep_copies(identity)
    text = identity.read_text()
    body = re.search(r"-----BEGIN PRIVATE KEY-----(.*?)-----END PRIVATE KEY-----", text, re.S)
    key = base64.b64decode(body.group(1)) if body else b""
    at = key.find(bytes.fromhex("04220420"))
    if at < 0 or len(key) < at + 36:
        raise CommitteeError(f"{identity}: no Ed25519 key in it: make the identity again")
    plain = base64.b64encode(_PKCS8_SEED + key[at + 4 : at + 36]).decode()
    temporary = identity.with_name(f".{identity.name}.{os.getpid()}.{os.urandom(4).hex()}")
    pem = f"-----BEGIN PRIVATE KEY-----\n{plain}\n-----END PRIVATE KEY-----\n{certificate_of(identity)}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # what nobody has locked is swept
            file.write(pem.encode())
            file.flush()
            context.load_cert_chain(temporary)
    finally:
        temporary.unlink(missing_ok=True)


def server_context(identity: Path, receivers: Path) -> ssl.SSLContext:
    """For a party: clients must show one of the certificates in the folder ``receivers``."""
    files = sorted(receivers.glob("*.crt"))
    if not files:
        raise CommitteeError(f"{receivers}: no receiver may ask for decryptions: keyquorum receiver makes one, or copy its .crt there")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    _load_identity(context, identity)
    context.verify_mode = ssl.CERT_REQUIRED
    for file in files:
        try:
            context.load_verify_locations(file)
        except ssl.SSLError:
            raise CommitteeError(f"{file}: not a certificate: copy the receiver's .crt again, or remove it") from None
    return context


class Receivers:
    """Who may ask a party: the certificates in the folder ``receivers``, which is looked at again when it has changed."""

    def __init__(self, identity: Path, folder: Path) -> None:
        self._identity, self._folder = identity, folder
        self._lock = threading.Lock()
        self._load()

    def _load(self) -> None:
        stamp = self._folder_stamp()
        context = server_context(self._identity, self._folder)
        certificates = (ssl.PEM_cert_to_DER_cert(certificate_of(path)) for path in self._folder.glob("*.crt"))
        admitted = {hashlib.sha256(certificate).hexdigest() for certificate in certificates}
        # Last, and together: while the folder cannot be read as a whole, nobody is served as it was before.
        self._stamp, self._context, self._admitted = stamp, context, admitted

    def _folder_stamp(self) -> tuple[tuple[str, int, int], ...]:
        stats = ((path.name, path.stat()) for path in sorted(self._folder.glob("*.crt")))
        return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats)

    def context(self) -> ssl.SSLContext:
        """For the next channel. CommitteeError if nobody may ask."""
        with self._lock:
            if self._folder_stamp() != self._stamp:
                self._load()
            return self._context

    def require(self, fingerprint: str) -> None:
        """Refuses who may not ask any more: channels outlive the folder's content."""
        self.context()
        if fingerprint not in self._admitted:
            raise CommitteeError("this receiver may not ask for decryptions any more: its certificate was taken away")


def client_context(identity: Path) -> ssl.SSLContext:
    """For a receiver. The party's certificate is pinned: see :func:`connect`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # nobody signs for a party: its fingerprint is compared
    _load_identity(context, identity)
    return context


def connect(context: ssl.SSLContext, party: int, host: str, port: int, fingerprint: str, timeout: float) -> ssl.SSLSocket:
    """A channel to a party with this certificate."""
    try:
        channel = context.wrap_socket(socket.create_connection((host, port), timeout))
    except OSError as error:
        raise PartyError(f"party {party} at {host}:{port}: {error}: is keyquorum serve running there, with this receiver?") from None
    certificate = channel.getpeercert(binary_form=True) or b""
    if hashlib.sha256(certificate).hexdigest() != fingerprint:
        channel.close()
        raise PartyError(f"{host}:{port} is not party {party}: its certificate is not the one in committee.toml")
    return channel


def send_message(channel: ssl.SSLSocket, head: dict[str, Any], body: bytes = b"") -> None:
    """Sends one message."""
    text = json.dumps(head).encode()
    channel.sendall(len(text).to_bytes(4, "little") + len(body).to_bytes(8, "little") + text)
    if body:
        channel.sendall(body)


def _exactly(channel: ssl.SSLSocket, size: int) -> bytearray:
    """Memory grows with what has come, never on the word of a header."""
    data = bytearray()
    while len(data) < size:
        part = channel.recv(min(size - len(data), 1 << 20))
        if not part:
            raise ConnectionError("the channel was closed in the middle of a message")
        data += part
    return data


def receive_message(channel: ssl.SSLSocket, limit: int) -> tuple[dict[str, Any], bytes] | None:
    """The next message; None if the channel ends. ConnectionError for anything malformed, or a body above ``limit`` bytes."""
    first = channel.recv(1)
    if not first:
        return None
    sizes = first + bytes(_exactly(channel, 11))
    head_size, size = int.from_bytes(sizes[:4], "little"), int.from_bytes(sizes[4:], "little")
    if head_size > HEAD_LIMIT or size > limit:
        raise ConnectionError(f"a message of {head_size} and {size} bytes is too long: at most {limit} bytes")
    try:
        head = json_loads(bytes(_exactly(channel, head_size)))
    except ValueError:
        raise ConnectionError("a message without a readable head") from None
    if not isinstance(head, dict):
        raise ConnectionError("a message without a readable head")
    return head, bytes(_exactly(channel, size))
