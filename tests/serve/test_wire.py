"""Messages between receivers and parties: what is written at once."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from keyquorum.serve import wire
from keyquorum.serve.wire import send_message

from .test_listener import Party


class Written:
    """A channel that keeps what is written, write by write."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []

    def sendall(self, data: Any) -> None:
        self.writes.append(bytes(data))


@pytest.mark.parametrize("size", [0, 1, 16000, 1 << 20])
def test_head_and_body_are_one_write(size: int) -> None:
    channel: Any = Written()
    send_message(channel, {"id": "0123456789"}, bytes(size))
    (message,) = channel.writes
    assert message[12:].startswith(b'{"id": "0123456789"}') and len(message) == 12 + 20 + size


def test_the_rest_of_a_long_body_is_not_copied() -> None:
    channel: Any = Written()
    body = b"a" * wire.ONE_WRITE + b"b" * 10
    send_message(channel, {}, body)
    first, rest = channel.writes
    assert first[14:] + rest == body and rest == b"b" * 10


def test_a_receiver_does_not_wait_for_acknowledgements(tmp_path: Path) -> None:
    party = Party(tmp_path)
    try:
        with party.channel() as channel:
            assert channel.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
            assert party.asks(channel)
    finally:
        party.listener.close()
