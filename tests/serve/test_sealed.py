"""The layer from ML-KEM in the channels of receivers: what TLS carries, other versions at either end, changed records, slow ends."""

from __future__ import annotations

import hashlib
import socket
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from keyquorum._engine import SEALED_TAG_BYTES, SEALING_ANSWER_BYTES, SEALING_OFFER_BYTES, make_identity
from keyquorum.model.errors import PartyError
from keyquorum.serve.listener import Receivers
from keyquorum.serve.sealed import LONGEST, MAGIC, SealedSocket, sealing
from keyquorum.serve.wire import certificate_of, client_context, connect, receive_message, send_message

SECRET = b"the share of a message, which nobody else may see"


@pytest.fixture()
def folder(tmp_path: Path) -> Path:
    for name in ("party", "alice"):
        make_identity(str(tmp_path / f"{name}.pem"), name)
    (tmp_path / "receivers").mkdir()
    (tmp_path / "receivers/alice.crt").write_text(certificate_of(tmp_path / "alice.pem"))
    return tmp_path


def context_of(folder: Path) -> ssl.SSLContext:
    """The party's."""
    return sealing(Receivers(folder / "party.pem", folder / "receivers").context())


@contextmanager
def pair(folder: Path) -> Iterator[tuple[Any, Any]]:
    """Both ends of a TLS channel, of which neither is sealed yet: receiver and party."""
    near, far = socket.socketpair()
    near.settimeout(10)
    far.settimeout(10)
    with ThreadPoolExecutor(1) as pool:
        accepted = pool.submit(context_of(folder).wrap_socket, far, True)
        receiver = sealing(client_context(folder / "alice.pem")).wrap_socket(near)
        party = accepted.result(20)
    with receiver, party:
        yield receiver, party


@contextmanager
def sealed_pair(folder: Path) -> Iterator[tuple[Any, Any]]:
    with pair(folder) as (receiver, party):
        with ThreadPoolExecutor(1) as pool:
            answering = pool.submit(party.answer_seal)
            receiver.offer_seal()
            answering.result(20)
        yield receiver, party


def carried(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """All that TLS is given to carry from now on: what is read by who recorded it, and breaks its key exchange."""
    seen: list[bytes] = []
    send = ssl.SSLSocket.send

    def spy(self: Any, data: Any, flags: int = 0) -> int:
        count = send(self, data, flags)
        seen.append(bytes(data)[:count])
        return count

    monkeypatch.setattr(ssl.SSLSocket, "send", spy)
    return seen


def exchange(receiver: Any, party: Any) -> None:
    send_message(receiver, {"id": "0123456789"}, SECRET)
    assert receive_message(party, 1000) == ({"id": "0123456789"}, SECRET)
    send_message(party, {"status": "ok"}, SECRET * 2)
    assert receive_message(receiver, 1000) == ({"status": "ok"}, SECRET * 2)


def test_receiver_link_blocked_who_reads_tls_reads_no_message(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = carried(monkeypatch)
    with sealed_pair(folder) as (receiver, party):
        exchange(receiver, party)
    text = b"".join(seen)
    assert len(text) > SEALING_OFFER_BYTES + SEALING_ANSWER_BYTES + 3 * len(SECRET)
    assert not any(part in text for part in (SECRET, SECRET[:8], b"0123456789", b"status"))


def test_receiver_link_ablated_without_the_layer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = carried(monkeypatch)
    with pair(folder) as (receiver, party):
        exchange(receiver, party)
    assert b"".join(seen).count(SECRET) == 3


def test_long_messages_cross(folder: Path) -> None:
    body = bytes(range(256)) * 2000  # several records, the last one not full
    with sealed_pair(folder) as (receiver, party):
        sending = threading.Thread(target=send_message, args=(receiver, {"id": "0123456789"}, body))
        sending.start()
        message = receive_message(party, 1 << 20)
        sending.join(20)
        assert message is not None and message[1] == body
        receiver.shutdown(socket.SHUT_RDWR)
        assert receive_message(party, 1 << 20) is None


def test_receiver_link_downgrade_blocked_at_the_party(folder: Path) -> None:
    """A receiver that does not seal: its first message is no offer."""
    with pair(folder) as (receiver, party):
        send_message(receiver, {"id": "0123456789"}, SECRET)
        with pytest.raises(ConnectionError, match="same version of KeyQuorum"):
            party.answer_seal()


def test_receiver_link_downgrade_ablated_by_a_party_that_does_not_insist(folder: Path) -> None:
    with pair(folder) as (receiver, party):
        send_message(receiver, {"id": "0123456789"}, SECRET)
        assert receive_message(party, 1000) is not None


def test_receiver_link_downgrade_blocked_at_the_receiver(folder: Path) -> None:
    """A party that does not seal takes the offer for a message, and closes the channel."""
    party = hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate_of(folder / "party.pem"))).hexdigest()
    context = context_of(folder)

    def serve(listener: socket.socket) -> None:
        raw, _ = listener.accept()
        with context.wrap_socket(raw, server_side=True) as channel, pytest.raises(ConnectionError, match="at most"):
            receive_message(channel, 1000)

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        serving = pool.submit(serve, listener)
        with pytest.raises(PartyError, match=r"party 0 .*same version of KeyQuorum"):
            connect(client_context(folder / "alice.pem"), 0, *listener.getsockname(), party, 10.0)
        serving.result(20)


@pytest.mark.parametrize(
    "record",
    [
        bytes(4),
        SEALED_TAG_BYTES.to_bytes(4, "little") + bytes(SEALED_TAG_BYTES),
        (20).to_bytes(4, "little") + bytes(20),
        (LONGEST + SEALED_TAG_BYTES + 1).to_bytes(4, "little"),
        b"\xff" * 4,
        (20).to_bytes(4, "little") + bytes(3),
    ],
)
def test_records_that_the_other_end_did_not_seal(folder: Path, record: bytes) -> None:
    with sealed_pair(folder) as (receiver, party):
        ssl.SSLSocket.sendall(receiver, record)
        receiver.shutdown(socket.SHUT_RDWR)
        with pytest.raises(ConnectionError):
            receive_message(party, 1000)


def test_offers_and_answers_that_are_no_keys(folder: Path) -> None:
    for offer in (MAGIC + b"\xff" * SEALING_OFFER_BYTES, MAGIC + bytes(7), b"GET / HTTP/1.1\r\n"):
        with pair(folder) as (receiver, party):
            ssl.SSLSocket.sendall(receiver, offer)
            receiver.shutdown(socket.SHUT_RDWR)
            with pytest.raises(ConnectionError):
                party.answer_seal()
    with pair(folder) as (receiver, party), ThreadPoolExecutor(1) as pool:
        offering = pool.submit(receiver.offer_seal)
        ssl.SSLSocket.sendall(party, bytes(SEALING_ANSWER_BYTES))  # gives keys that this end does not have
        offering.result(20)
        party.close()
        assert receiver._records is not None


def test_a_record_that_does_not_end_is_not_waited_for(folder: Path) -> None:
    with sealed_pair(folder) as (receiver, party):
        ssl.SSLSocket.sendall(receiver, (100).to_bytes(4, "little") + bytes(50))
        party.settimeout(0.2)
        with pytest.raises(TimeoutError):
            party.recv(10)
        assert party.gettimeout() == 0.2


def test_the_socket_is_the_one_of_both_contexts(folder: Path) -> None:
    with pair(folder) as (receiver, party):
        assert isinstance(receiver, SealedSocket) and isinstance(party, SealedSocket)
