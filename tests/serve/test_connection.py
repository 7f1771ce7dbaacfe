"""Requests while the parties are not connected: refused at once, with the party that is away and since when."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from keyquorum import api
from keyquorum.model.committee import Committee
from keyquorum.serve import connection
from keyquorum.serve.client import Receiver, Refused, RefusedUnconnected, fetch, make_receiver
from keyquorum.serve.connection import Connection, NotConnected
from keyquorum.serve.daemon import Daemon, Service

from .daemons import Threads

MESSAGES = np.array([1, 0, 1, 1])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Committee, Path, bytes]:
    """A committee of two with a key, a receiver, and ciphertexts."""
    folder = tmp_path_factory.mktemp("connection")
    committee = api.init(folder / "committee", 2, "semi")
    api.keygen(committee, "key", "lwe64-p2")
    identity, _ = make_receiver(committee, "alice")
    return committee, identity, api.encrypt(committee, "key", MESSAGES, folder / "x.lwe").path.read_bytes()


def start(daemon: Daemon) -> threading.Thread:
    thread = threading.Thread(target=daemon.run, daemon=True)
    thread.start()
    return thread


def test_a_party_that_is_away_is_named_at_once(made: tuple[Committee, Path, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """Party 1 of two stops after its session. Requests are refused long before they are too late; one that may wait is answered once it is back."""
    monkeypatch.setattr(connection, "START_SECONDS", 60.0)
    committee, identity, data = made
    service = Service("key", keep=600, chunk=600, patience=60.0)
    with Threads(committee, service) as parties:
        assert np.array_equal(fetch(committee, identity, data).messages, MESSAGES)
        alone = [Receiver(committee, identity) for _ in range(2)]
        for each in alone:
            each._connect()
            each._channels = each._channels[:1]
        parties._daemons[1].stop()
        parties._threads[1].join(30)
        begin = time.monotonic()
        for each in alone:
            with pytest.raises(
                RefusedUnconnected, match=r"^party 0: party 1 is away since [0-9: -]+ UTC \(\d+ s\): send the request again when it is back$"
            ):
                each._ask([data] * 2, {})
            each.close()
        assert time.monotonic() - begin < 30
        back = Daemon(committee, 1, service)
        thread = start(back)
        try:
            patient = Receiver(committee, identity, wait=60.0)
            assert np.array_equal(patient.decrypt(data).messages, MESSAGES)
            patient.close()
        finally:
            back.stop()
            thread.join(30)


def test_what_a_refusal_says(monkeypatch: pytest.MonkeyPatch) -> None:
    state = Connection(lambda index: 10 + index)
    assert state.refusal() is None and not state.connected, "just started: requests wait"
    monkeypatch.setattr(state, "_requests_wait_until", 0.0)
    assert "the parties are not connected since" in str(state.refusal())
    state.up()
    assert state.refusal() is None and state.connected and state.away() == {}
    monkeypatch.setattr(connection, "GRACE_SECONDS", 0.0)
    state.down("party 2 closed the connection")
    state.begins()
    state.misses([0, 2])
    assert state.away() == {}, "a set-up that has just begun misses everybody"
    assert str(state.refusal()).endswith(": party 2 closed the connection: send the request again later")
    monkeypatch.setattr(connection, "SETTLED_SECONDS", 0.0)
    state.misses([2])
    assert re.fullmatch(r"party 12 is away since \S+ \S+ UTC \(0 s\): send the request again when it is back", str(state.refusal()))
    since = state.away()[12]
    time.sleep(0.02)
    state.down("another try failed")
    state.misses([0, 2])
    assert state.away()[12] == since < state.away()[10], "each has its own time"
    assert "party 12 since" in str(state.refusal()) and "party 10 since" in str(state.refusal())
    with pytest.raises(NotConnected, match="several parties are away"):
        state.require()
    monkeypatch.setattr(connection, "SETTLED_SECONDS", 60.0)
    state.down("party 2 has other options")
    assert "not connected since" in str(state.refusal()) and "party 2 has other options" in str(state.refusal()), "they are there"
    state.up()
    assert state.away() == {} and state.refusal() is None
    assert issubclass(RefusedUnconnected, Refused)
