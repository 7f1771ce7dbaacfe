"""A served committee: right answers to concurrent receivers, refusals in one line, and a party that is restarted in the middle."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum.fhe.lwe import encrypt, lwe_parameters
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CommitteeError, KeyQuorumError, PartyError
from keyquorum.plans.lwe_keys import load_lwe_key, load_lwe_share
from keyquorum.serve.client import Receiver, Refused, fetch, local_places, make_receiver
from keyquorum.serve.daemon import Daemon, Service

REQUESTS = int(os.environ.get("KEYQUORUM_SOAK", "240"))
CLIENTS = 8


class Served:
    """A committee of two whose daemons are threads; they speak TLS to each other and to receivers."""

    def __init__(self, folder: Path, keep: int, start: bool = True) -> None:
        self.committee: Committee = api.init(folder / "committee", 2, "semi")
        api.lwe_keygen(self.committee, "key", "lwe64-p2")
        self.info = load_lwe_key(self.committee.key_folder(0, "key"))
        self.identity, _ = make_receiver(self.committee, "alice")
        shares = [load_lwe_share(self.committee.key_folder(i, "key"), self.info, i) for i in range(2)]
        self.secret = np.asarray(sum(share.words[0, :1024] for share in shares)).astype(np.int64)
        self.service = Service("key", "round_mask_open", keep=keep, chunk=512, patience=20.0)
        self.daemons: dict[int, tuple[Daemon, threading.Thread]] = {}
        self.failures: list[BaseException] = []
        for party in (0, 1) if start else ():
            self.start(party)

    def start(self, party: int) -> None:
        daemon = Daemon(self.committee, party, self.service)

        def run() -> None:
            try:
                daemon.run()
            except BaseException as error:
                self.failures.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        self.daemons[party] = daemon, thread

    def stop(self, party: int) -> None:
        daemon, thread = self.daemons.pop(party)
        daemon.stop()
        thread.join(30)
        assert not thread.is_alive()

    def request(self, count: int, seed: int) -> tuple[bytes, np.ndarray]:
        rng = np.random.default_rng(seed)
        messages = rng.integers(0, 2, count)
        return encrypt(lwe_parameters("lwe64-p2"), self.secret, messages, rng).to_bytes(self.info.key_id), messages

    def filled(self, items: int) -> None:
        end = time.monotonic() + 30
        while time.monotonic() < end:
            text = urllib.request.urlopen(f"http://127.0.0.1:{self.daemons[0][0].metrics.port}/metrics", timeout=5).read().decode()
            values = {line.split()[0]: float(line.split()[1]) for line in text.splitlines() if line and line[0] != "#"}
            if values["keyquorum_pool_items"] >= items:
                assert values["keyquorum_connected"] == 1
                return
            time.sleep(0.1)
        raise AssertionError("the pool was not filled")


@pytest.fixture()
def served(tmp_path: Path) -> Iterator[Callable[[int], Served]]:
    made: list[Served] = []

    def make(keep: int) -> Served:
        made.append(Served(tmp_path, keep))
        return made[-1]

    yield make
    for each in made:
        for party in list(each.daemons):
            each.stop(party)
        assert not each.failures, each.failures


def test_answers_and_refusals(served: Callable[[int], Served], tmp_path: Path) -> None:
    s = served(600)
    s.filled(600)
    data, messages = s.request(40, 1)
    assert np.array_equal(fetch(s.committee, s.identity, data), messages)
    big, _ = s.request(5000, 2)
    with pytest.raises(Refused, match=r"needs 5,000 items, has \d"):
        fetch(s.committee, s.identity, big)
    foreign = encrypt(lwe_parameters("lwe64-p2"), s.secret, messages, np.random.default_rng(1)).to_bytes("00" * 16)
    with pytest.raises(Refused, match="encrypted under another key"):
        fetch(s.committee, s.identity, foreign)
    # A receiver whom nobody has admitted, and a party with another certificate.
    stranger = api.init(tmp_path / "other", 2, "semi")
    identity, _ = make_receiver(stranger, "eve")
    with pytest.raises(PartyError, match="party 0"):
        fetch(s.committee, identity, data)
    with pytest.raises(PartyError, match=r"its certificate is not the one in committee\.toml"):
        fetch(stranger, s.identity, data, local_places(s.committee))
    with pytest.raises(CommitteeError, match="name each once, in their order"):
        fetch(s.committee, s.identity, data, local_places(s.committee)[:1])
    # One party alone gets a request: refused, and nothing is learned.
    alone = Receiver(s.committee, s.identity)
    alone._connect()
    alone._channels = alone._channels[:1]
    with pytest.raises(Refused, match="party 0: party 1 has not got this request"):
        alone._ask(data)
    # Nonsense on the port of receivers does no harm.
    host, port = local_places(s.committee)[0]
    with socket.create_connection((host, port), 5) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\n\r\n")
    assert np.array_equal(fetch(s.committee, s.identity, data), messages)


def test_no_receivers(tmp_path: Path) -> None:
    committee = api.init(tmp_path / "c", 2, "semi")
    api.lwe_keygen(committee, "key", "lwe64-p2")
    with pytest.raises(CommitteeError, match="no receiver may ask for decryptions"):
        Daemon(committee, 0, Service("key"))
    assert ssl.HAS_TLSv1_3


@pytest.mark.timeout(900)
def test_many_receivers_and_a_restart(served: Callable[[int], Served]) -> None:
    """Every request is answered rightly or refused with a reason, while party 1 is stopped and started again."""
    s = served(2000)
    s.filled(1000)
    done: list[str] = []
    wrong: list[Any] = []

    def client(number: int) -> None:
        receiver = Receiver(s.committee, s.identity)
        for i in range(REQUESTS // CLIENTS):
            data, messages = s.request(1 + i % 3, 1000 * number + i)
            try:
                if not np.array_equal(receiver.decrypt(data), messages):
                    wrong.append((number, i))
                done.append("ok")
            except KeyQuorumError as error:
                done.append(str(error))
                time.sleep(0.2)
        receiver.close()

    clients = [threading.Thread(target=client, args=(i,)) for i in range(CLIENTS)]
    for thread in clients:
        thread.start()
    while len(done) < REQUESTS // 3:
        time.sleep(0.05)
    s.stop(1)
    time.sleep(0.5)
    s.start(1)
    for thread in clients:
        thread.join(600)
        assert not thread.is_alive()
    assert not wrong and len(done) == REQUESTS
    refused = [text for text in done if text != "ok"]
    assert len(refused) < REQUESTS // 2 and all("party" in text and "\n" not in text for text in refused), refused[:5]
    assert done[-1] == "ok"
    for party in (0, 1):
        assert not s.daemons[party][0].requests._waiting


def process(s: Served, party: int, log: Path) -> subprocess.Popen[bytes]:
    """A party as a process of its own."""
    (s.committee.party_folder(party) / "serve.json").unlink(missing_ok=True)
    arguments = ["serve", s.committee.folder, party, "key", "--rounding", "round_mask_open", "--keep", 500, "--patience", 20]
    command = [sys.executable, "-c", "from keyquorum.cli import main; main()", *map(str, arguments)]
    with log.open("ab") as file:
        return subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)


def until_right(s: Served, seed: int) -> list[str]:
    """Asks until the answer is right; returns the refusals on the way."""
    refusals: list[str] = []
    end = time.monotonic() + 60
    while time.monotonic() < end:
        data, messages = s.request(7, seed)
        try:
            assert np.array_equal(fetch(s.committee, s.identity, data), messages)
            return refusals
        except KeyQuorumError as error:
            refusals.append(str(error))
            time.sleep(0.2)
    raise AssertionError(refusals[-3:])


@pytest.mark.timeout(200)
def test_killed_processes_come_back(tmp_path: Path) -> None:
    """kill -9 of either party under load, then a start: refusals in one line, right answers after it, no item twice."""
    s = Served(tmp_path, 0, start=False)
    log = tmp_path / "log"
    parties = {party: process(s, party, log) for party in (0, 1)}
    try:
        until_right(s, 1)
        for victim in (1, 0):
            stop = threading.Event()
            wrong: list[str] = []

            def load(stop: threading.Event = stop, wrong: list[str] = wrong) -> None:
                while not stop.is_set():
                    data, messages = s.request(3, 5)
                    try:
                        if not np.array_equal(fetch(s.committee, s.identity, data), messages):
                            wrong.append("wrong")
                    except KeyQuorumError as error:
                        if "\n" in str(error):
                            wrong.append(str(error))

            clients = [threading.Thread(target=load) for _ in range(3)]
            for client in clients:
                client.start()
            time.sleep(1.0)
            parties[victim].kill()
            parties[victim].wait()
            stop.set()
            for client in clients:
                client.join(60)
                assert not client.is_alive()
            parties[victim] = process(s, victim, log)
            refusals = until_right(s, 2 + victim)
            assert not wrong and all("\n" not in r for r in refusals)
        claims = []
        for party in (0, 1):
            (journal,) = (s.committee.party_folder(party) / "pools").glob("*/cursor.journal")
            text = journal.read_text()
            ranges = [(c["start"], c["end"]) for c in (json.loads(line.partition(" ")[2]) for line in text.splitlines())]
            assert all(a[1] <= b[0] for a, b in pairwise(ranges))
            claims.append(ranges[-1])
        assert claims[0] == claims[1]
    finally:
        for child in parties.values():
            child.kill()
            child.wait()
