"""The channel between a receiver and a party: mutual TLS 1.3 with pinned certificates, sealed (:mod:`.sealed`), and messages of a JSON head and a body.

A message: 4 bytes length of the head, 8 bytes length of the body (little endian), the head, the body.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
import re
import select
import socket
import ssl
import threading
import time
from collections import Counter
from pathlib import Path

from keyquorum.model.committee import place_text
from keyquorum.model.errors import CommitteeError, PartyError
from keyquorum.model.plain import Json, json_loads
from keyquorum.parties.traces import sweep_copies

from .sealed import sealed, sealing

HEAD_LIMIT = 1 << 16
SLOWEST = 1 << 20
"""Least rate of a channel, bytes a second, for which a long message is not cut off."""
ONE_WRITE = 1 << 20
"""Bytes of a body that are copied behind their head, to be written together; the rest is not copied."""
COPIES = 2
"""Copies of a message in memory: received, and parsed."""
_PKCS8_SEED = bytes.fromhex("302e020100300506032b657004220420")
"""PKCS #8 of an Ed25519 seed."""
ADMITTING_SECONDS = 5.0
"""Longest wait for the first bytes of a party."""


def _text_of(identity: Path) -> str:
    try:
        return identity.read_text("ascii")
    except ValueError:
        raise CommitteeError(f"{identity} is no identity: name the file that keyquorum receiver made") from None


def certificate_of(identity: Path) -> str:
    """The PEM certificate in an identity file."""
    found = re.search(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n?", _text_of(identity), re.S)
    if found is None:
        raise CommitteeError(f"{identity}: no certificate in it: make the identity again")
    return found.group(0)


def load_identity(context: ssl.SSLContext, identity: Path) -> None:
    """Loads key and certificate. OpenSSL reads PKCS #8 only without the public key, so the key is written to a temporary file in that form."""
    sweep_copies(identity)
    text = _text_of(identity)
    body = re.search(r"-----BEGIN PRIVATE KEY-----(.*?)-----END PRIVATE KEY-----", text, re.S)
    try:
        key = base64.b64decode(body.group(1)) if body else b""
    except ValueError:
        key = b""
    at = key.find(bytes.fromhex("04220420"))
    if at < 0 or len(key) < at + 36:
        raise CommitteeError(f"{identity}: no Ed25519 key in it: make the identity again")
    plain = base64.b64encode(_PKCS8_SEED + key[at + 4 : at + 36]).decode()
    temporary = identity.with_name(f".{identity.name}.{os.getpid()}.{os.urandom(4).hex()}")
    pem = f"-----BEGIN PRIVATE KEY-----\n{plain}\n-----END PRIVATE KEY-----\n{certificate_of(identity)}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # unlocked temporary files are removed as leftovers (parties.traces)
            file.write(pem.encode())
            file.flush()
            context.load_cert_chain(temporary)
    except ssl.SSLError as error:
        raise CommitteeError(f"{identity}: key and certificate do not fit ({error.reason}): make the identity again") from None
    finally:
        temporary.unlink(missing_ok=True)


def client_context(identity: Path) -> ssl.SSLContext:
    """For a receiver. The party's certificate is pinned: see :func:`connect`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # no authority signs certificates of parties: the fingerprint is compared
    load_identity(context, identity)
    return context


def connect(
    context: ssl.SSLContext, party: int, host: str, port: int, fingerprint: str, timeout: float, server: str = "keyquorum serve"
) -> ssl.SSLSocket:
    """A channel to a party with this certificate. ``server``: the command that serves, which errors name."""
    try:
        raw = socket.create_connection((host, port), timeout)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        channel = sealing(context).wrap_socket(raw)
        try:
            certificate = channel.getpeercert(binary_form=True) or b""
            if hashlib.sha256(certificate).hexdigest() != fingerprint:
                raise PartyError(f"{place_text(host, port)} is not party {party}: its certificate is not the one in committee.toml")
            _check_admitted(channel, party, timeout)
            sealed(channel).offer_seal()
        except BaseException:
            channel.close()
            raise
    except (OSError, OverflowError, UnicodeError) as error:
        raise PartyError(f"party {party} at {place_text(host, port)}: {error}: is {server} running there?") from None
    return channel


NOT_ADMITTED = re.compile("alert (unknown ca|bad certificate|certificate unknown|certificate required|access denied)")
"""Errors of OpenSSL when a party refused the receiver's certificate."""


def _check_admitted(channel: ssl.SSLSocket, party: int, seconds: float) -> None:
    """Raises unless the party admits our certificate. In TLS 1.3 its refusal comes after our handshake, and a client that writes before may never
    read it. A party that admits us sends session tickets at that point."""
    readable = select.poll()
    readable.register(channel, select.POLLIN)
    readable.poll(1e3 * min(seconds, ADMITTING_SECONDS))
    channel.settimeout(0)
    try:
        ended = channel.recv(1) == b""
    except ssl.SSLWantReadError:
        ended = False
    except OSError as error:
        if NOT_ADMITTED.search(str(error)) is None:
            raise
        raise PartyError(
            f"party {party} does not admit this receiver: put its certificate (.crt) into the folder party-{party}/receivers there"
        ) from None
    if ended:
        raise ConnectionError("it closed the channel")
    channel.settimeout(seconds)


def send_message(channel: ssl.SSLSocket, head: Json, body: bytes = b"") -> None:
    """Sends one message. Head and body are one write, up to :data:`ONE_WRITE` bytes of the body: a body that is written apart waits for the peer's
    acknowledgement of the head where Nagle's algorithm is on."""
    text = json.dumps(head).encode()
    channel.sendall(len(text).to_bytes(4, "little") + len(body).to_bytes(8, "little") + text + body[:ONE_WRITE])
    if len(body) > ONE_WRITE:
        channel.sendall(memoryview(body)[ONE_WRITE:])


class MessageTooLong(ConnectionError):
    """The body of a message is above the limit, and was not received. ``head``: of the message; ``size``: bytes of the body."""

    def __init__(self, head: Json, size: int, limit: int) -> None:
        super().__init__(f"a message of {size:,} bytes is too long: at most {limit:,} bytes")
        self.head, self.size = head, size


def drop(channel: ssl.SSLSocket, size: int, seconds: float) -> None:
    """Reads ``size`` bytes and drops them, for some seconds at most: a sender that is still writing then gets to read its answer."""
    until = time.monotonic() + seconds
    while size > 0 and (left := until - time.monotonic()) > 0:
        channel.settimeout(left)
        part = len(channel.recv(min(size, 1 << 20)))
        if not part:
            return
        size -= part


class Budget:
    """Bytes that messages may take in memory at a time: ``most`` in all, and ``share`` those of one owner."""

    def __init__(self, most: int, share: int) -> None:
        self._most, self._share = most, share
        self._held: Counter[str] = Counter()
        self._lock = threading.Lock()

    def take(self, owner: str, size: int) -> bool:
        """Adds ``size`` bytes to those of an owner. False, without a change, if they are too many."""
        with self._lock:
            if self._held.total() + size > self._most or self._held[owner] + size > self._share:
                return False
            self._held[owner] += size
            return True

    def give(self, owner: str, size: int) -> None:
        """Gives bytes of an owner back."""
        with self._lock:
            self._held[owner] -= size
            if not self._held[owner]:
                del self._held[owner]


class MessageMemory:
    """Memory of one message in a :class:`Budget`, until the end of the ``with`` block."""

    def __init__(self, budget: Budget, owner: str) -> None:
        self._budget, self._owner, self._size = budget, owner, 0
        self._full = False

    def __enter__(self) -> MessageMemory:
        return self

    def __exit__(self, *_: object) -> None:
        self._budget.give(self._owner, self._size)
        self._size = 0

    def take(self, size: int) -> bool:
        """Whether the message may grow by ``size`` bytes. After the first False all memory is given back, and every later call gives False."""
        self._full = self._full or not self._budget.take(self._owner, COPIES * size)
        if self._full:
            self.__exit__()
        else:
            self._size += COPIES * size
        return not self._full


def _exactly(channel: ssl.SSLSocket, size: int, deadline: float | None = None, memory: MessageMemory | None = None) -> bytearray | None:
    """Reads ``size`` bytes. Memory grows with the bytes received, not with the size that a header announces. None if the budget has no memory for
    them: they were read and dropped."""
    data, missing, kept = bytearray(), size, True
    while missing:
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise ConnectionError("a message took too long")
            channel.settimeout(left)
        part = channel.recv(min(missing, 1 << 20))
        if not part:
            raise ConnectionError("the channel was closed in the middle of a message")
        missing -= len(part)
        kept = kept and (memory is None or memory.take(len(part)))
        if kept:
            data += part
        else:
            data = bytearray()
    return data if kept else None


def receive_message(
    channel: ssl.SSLSocket, limit: int, seconds: float | None = None, memory: MessageMemory | None = None, head_limit: int = HEAD_LIMIT
) -> tuple[Json, bytearray] | None:
    """The next message; None if the channel ends. Raises ConnectionError for a malformed message, :class:`MessageTooLong` for a body above ``limit`` bytes, and PartyError if
    the budget has no memory for the body. ``seconds``: bound on the whole message after its first byte, plus one second for each
    :data:`SLOWEST` bytes (ConnectionError); it changes the timeout of the channel. ``head_limit``: most bytes of the head."""
    first = channel.recv(1)
    if not first:
        return None
    deadline = None if seconds is None else time.monotonic() + seconds
    sizes = first + bytes(_exactly(channel, 11, deadline) or b"")
    head_size, size = int.from_bytes(sizes[:4], "little"), int.from_bytes(sizes[4:], "little")
    if head_size > head_limit:
        raise ConnectionError(f"a message with a head of {head_size} bytes: at most {head_limit} bytes")
    if deadline is not None:
        deadline += min(size, limit) / SLOWEST
    try:
        head = json_loads(bytes(_exactly(channel, head_size, deadline) or b""))
    except ValueError:
        raise ConnectionError("a message without a readable head") from None
    if not isinstance(head, dict):
        raise ConnectionError("a message without a readable head")
    if size > limit:
        raise MessageTooLong(head, size, limit)
    body = _exactly(channel, size, deadline, memory)
    if body is None:
        raise PartyError(f"no memory for a request of {size:,} bytes beside the others: send it again later, or in parts")
    return head, body
