"""The end of a served party: what runs is finished, what waits is refused with a line; SIGINT and SIGHUP in any shell."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum.model.committee import Committee
from keyquorum.serve.client import Refused, RefusedByPolicy, RefusedUnconnected, fetch, make_receiver
from keyquorum.serve.daemon import Service
from keyquorum.serve.limits import NAME
from keyquorum.serve.signals import Signals

from tests.commands import Forked

from .daemons import Threads

MESSAGES = np.array([1, 0, 1, 1])
SECONDS = 60.0


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Committee, Path, bytes]:
    """A committee of two with a key, a receiver, and ciphertexts."""
    folder = tmp_path_factory.mktemp("signals")
    committee = api.init(folder / "committee", 2, "semi")
    api.keygen(committee, "key", "lwe64-p2")
    identity, _ = make_receiver(committee, "alice")
    return committee, identity, api.encrypt(committee, "key", MESSAGES, folder / "x.lwe").path.read_bytes()


def test_a_party_that_stops_finishes_its_batch(made: tuple[Committee, Path, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """The request that runs is answered. One that waits, and one that comes, are refused, and the text says that the party is stopping."""
    committee, identity, data = made
    with Threads(committee, Service("key", keep=600, chunk=600)) as parties, ThreadPoolExecutor() as pool:
        assert np.array_equal(fetch(committee, identity, data).messages, MESSAGES)
        runs, goes_on = threading.Event(), threading.Event()
        daemon = parties._daemons[1]
        run = daemon.served_key.run

        def slow(*args: Any) -> list[bytes]:
            runs.set()
            assert goes_on.wait(SECONDS)
            return run(*args)

        monkeypatch.setattr(daemon.served_key, "run", slow)
        running = pool.submit(fetch, committee, identity, data)
        assert runs.wait(SECONDS)
        waiting = pool.submit(fetch, committee, identity, data)
        end = time.monotonic() + SECONDS
        while len(daemon.requests._waiting) < 2 and time.monotonic() < end:
            time.sleep(0.01)
        daemon.stop()
        with pytest.raises(RefusedUnconnected, match=r"^party 1: party 1 is stopping: send the request again when it is back$"):
            waiting.result(SECONDS)
        with pytest.raises(RefusedUnconnected, match="party 1 is stopping"):
            fetch(committee, identity, data)
        goes_on.set()
        assert np.array_equal(running.result(SECONDS).messages, MESSAGES)
        parties._threads[1].join(SECONDS)
        assert not parties._threads[1].is_alive()


def test_a_batch_that_is_cut_off_says_why(made: tuple[Committee, Path, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """A second signal interrupts the batch. That request may have been computed, so its client does not send it again by itself."""
    committee, identity, data = made
    parties = Threads(committee, Service("key", keep=600, chunk=600))
    with parties, ThreadPoolExecutor() as pool:
        assert np.array_equal(fetch(committee, identity, data).messages, MESSAGES)

        def interrupted(*args: Any) -> list[bytes]:
            raise KeyboardInterrupt

        monkeypatch.setattr(parties._daemons[1].served_key, "run", interrupted)
        with pytest.raises(Refused, match=r"the batch was interrupted \(.*party 1") as caught:
            pool.submit(fetch, committee, identity, data).result(SECONDS)
        assert not isinstance(caught.value, RefusedUnconnected)
    assert [type(error) for error in parties.failures] == [KeyboardInterrupt]


class Process:
    """A party as a process of its own, whose parent ignores SIGINT, as a shell that is not interactive does for background jobs."""

    def __init__(self, committee: Committee, party: int, log: Path) -> None:
        self._log = log
        code = "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); from keyquorum.cli import main; main()"
        arguments = ["serve", committee.folder, party, "key", "--keep", 600, "--chunk", 600]
        with log.open("wb") as file:
            self.child = Forked([sys.executable, "-c", code, *map(str, arguments)], stdout=file, stderr=subprocess.STDOUT)

    def says(self, text: str) -> None:
        """Waits until the log has a text."""
        end = time.monotonic() + SECONDS
        while text not in self._log.read_text():
            assert time.monotonic() < end and self.child.poll() is None, self._log.read_text()
            time.sleep(0.05)

    def ends(self, number: int) -> int:
        """The exit code after a signal."""
        self.child.send_signal(number)
        return self.child.wait(SECONDS)


@pytest.fixture()
def parties(made: tuple[Committee, Path, bytes], tmp_path: Path) -> Iterator[list[Process]]:
    """Both parties, connected."""
    committee = made[0]
    for party in range(2):
        (committee.party_folder(party) / "serve.json").unlink(missing_ok=True)
    processes = [Process(committee, party, tmp_path / f"{party}.log") for party in range(2)]
    try:
        for each in processes:
            each.says("connected to all parties")
        yield processes
    finally:
        for each in processes:
            each.child.kill()
            each.child.wait()
        (committee.party_folder(1) / NAME).unlink(missing_ok=True)


def test_sigint_and_sigterm_end_a_party_cleanly_and_sighup_reloads(made: tuple[Committee, Path, bytes], parties: list[Process]) -> None:
    committee, identity, data = made
    assert np.array_equal(fetch(committee, identity, data, wait=SECONDS).messages, MESSAGES)
    parties[1].child.send_signal(signal.SIGHUP)
    parties[1].says("reloaded the limits and 1 receivers")
    limits = committee.party_folder(1) / NAME
    limits.write_text('{"all": ["1 requests/h"]}')
    parties[1].child.send_signal(signal.SIGHUP)
    while parties[1]._log.read_text().count("reloaded the limits") < 2:
        time.sleep(0.05)
    assert np.array_equal(fetch(committee, identity, data).messages, MESSAGES)
    with pytest.raises(RefusedByPolicy, match="1 requests/h"):
        fetch(committee, identity, data)
    limits.write_text("{")
    parties[1].child.send_signal(signal.SIGHUP)
    parties[1].says("not reloaded: ")
    assert parties[1].ends(signal.SIGINT) == 0
    parties[0].says("not connected: ")
    assert parties[0].ends(signal.SIGTERM) == 0, "while it connects"
    for each in parties:
        assert "Traceback" not in each._log.read_text()


def test_a_second_signal_ends_at_once_and_a_stop_has_its_time() -> None:
    """The main thread gets a KeyboardInterrupt."""
    for drain, again in ((SECONDS, True), (0.5, False)):
        with pytest.raises(KeyboardInterrupt), Signals(drain) as signals:
            stopped, reloaded = threading.Event(), threading.Event()
            signals.go(stopped.set, reloaded.set)
            os.kill(os.getpid(), signal.SIGHUP)
            assert reloaded.wait(SECONDS) and not stopped.is_set()
            os.kill(os.getpid(), signal.SIGTERM)
            assert stopped.wait(SECONDS)
            if again:
                os.kill(os.getpid(), signal.SIGINT)
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                time.sleep(0.01)
