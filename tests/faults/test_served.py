"""A served committee: right answers to concurrent receivers, refusals in one line, and a party that is restarted in the middle."""

from __future__ import annotations

import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum.fhe import seal
from keyquorum.fhe.lwe import encrypt, lwe_parameters
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CiphertextError, CommitteeError, KeyQuorumError, ParameterError, PartyError
from keyquorum.schemes.key_folder import load_key, read_share
from keyquorum.schemes.lwe.key import load_lwe_key
from keyquorum.serve import daemon
from keyquorum.serve.client import Receiver, Refused, fetch, local_addresses, make_receiver
from keyquorum.serve.daemon import Daemon, Service
from keyquorum.serve.plan import Plan, read_plan

from tests.commands import Forked

REQUESTS = int(os.environ.get("KEYQUORUM_SOAK", "240"))
CLIENTS = 8


class Served:
    """A committee of two whose daemons are threads; they speak TLS to each other and to receivers."""

    def __init__(self, folder: Path, keep: int, start: bool = True) -> None:
        self.committee: Committee = api.init(folder / "committee", 2, "semi")
        api.keygen(self.committee, "key", "lwe64-p2")
        self.info = load_lwe_key(self.committee.key_folder(0, "key"))
        self.identity, _ = make_receiver(self.committee, "alice")
        shares = [read_share(self.committee.key_folder(i, "key"), self.info, i, 0) for i in range(2)]
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


def test_answers_and_refusals(served: Callable[[int], Served], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = served(600)
    s.filled(600)
    data, messages = s.request(40, 1)
    assert np.array_equal(fetch(s.committee, s.identity, data).messages, messages)
    big, _ = s.request(4000, 2)
    with pytest.raises(Refused, match=r"needs 4,000 items, has \d"):
        fetch(s.committee, s.identity, big)
    monkeypatch.setattr("keyquorum.schemes.lwe.ciphertexts.MOST_CIPHERTEXTS", 16)  # three parts
    assert np.array_equal(fetch(s.committee, s.identity, data).messages, messages)
    monkeypatch.undo()
    foreign = encrypt(lwe_parameters("lwe64-p2"), s.secret, messages, np.random.default_rng(1)).to_bytes("00" * 16)
    with pytest.raises(Refused, match="encrypted under another key"):
        fetch(s.committee, s.identity, foreign)
    # A receiver that no party has admitted, and a party with another certificate.
    stranger = api.init(tmp_path / "other", 2, "semi")
    identity, _ = make_receiver(stranger, "eve")
    with pytest.raises(PartyError, match=r"party [01] does not admit this receiver"):
        fetch(s.committee, identity, data)
    with pytest.raises(PartyError, match=r"its certificate is not the one in committee\.toml"):
        fetch(stranger, s.identity, data, local_addresses(s.committee))
    with pytest.raises(CommitteeError, match="name each once, in their order"):
        fetch(s.committee, s.identity, data, local_addresses(s.committee)[:1])
    # Only one party gets a request: it is refused, and the receiver learns nothing.
    alone = Receiver(s.committee, s.identity)
    alone._connect()
    alone._channels = alone._channels[:1]
    with pytest.raises(Refused, match="party 0: party 1 has not got this request"):
        alone._ask([data] * 2, {})
    # Malformed bytes on the port of receivers have no effect.
    host, port = local_addresses(s.committee)[0]
    with socket.create_connection((host, port), 5) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\n\r\n")
    assert np.array_equal(fetch(s.committee, s.identity, data).messages, messages)


def test_no_receivers(tmp_path: Path) -> None:
    committee = api.init(tmp_path / "c", 2, "semi")
    api.keygen(committee, "key", "lwe64-p2")
    with pytest.raises(CommitteeError, match="no receiver may ask for decryptions"):
        Daemon(committee, 0, Service("key"))
    assert ssl.HAS_TLSv1_3


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"chunk": -1}, "chunk -1"), ({"chunk": 1 << 21}, "chunks of 1 to 2"), ({"keep": -1}, "keep -1"), ({"batch": -2}, "batch -2"),
        ({"patience": 0.0}, "a patience of 0 s"), ({"patience": float("nan")}, "a patience of nan s"), ({"rounding": "round_up"}, "round_up"),
    ],
)  # fmt: skip
def test_options_that_make_no_sense(tmp_path: Path, options: dict[str, Any], text: str) -> None:
    committee = api.init(tmp_path / "c", 2, "semi")
    api.keygen(committee, "key", "lwe64-p2")
    make_receiver(committee, "alice")
    with pytest.raises(ParameterError, match=text) as error:
        Daemon(committee, 0, Service("key", **options))
    assert "\n" not in str(error.value)


def test_options_that_differ_are_named_and_the_parties_try_again(tmp_path: Path) -> None:
    """Each log says which option differs, with both values; with the same options they connect without a restart of the other one."""
    s = Served(tmp_path, 600, start=False)
    said: list[str] = []
    first = Daemon(s.committee, 0, s.service, log=said.append)
    other = Daemon(s.committee, 1, replace(s.service, chunk=256), log=said.append)
    threads = [threading.Thread(target=each.run, daemon=True) for each in (first, other)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + 30
    while sum("where we have" in line for line in said) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    other.stop()
    threads[1].join(30)
    assert any('party 1 has chunk "256" where we have "512"' in line for line in said), said
    assert all(line.startswith("not connected: ") and line.endswith("; connecting again") and "run all parties again" not in line for line in said), (
        said
    )
    s.daemons[0] = first, threads[0]
    s.start(1)
    s.filled(600)
    assert "connected to all parties" in said
    for party in (0, 1):
        s.stop(party)
    assert not s.failures


def test_receivers_come_and_go_while_a_committee_serves(served: Callable[[int], Served]) -> None:
    s = served(600)
    s.filled(600)
    data, messages = s.request(3, 1)
    alice = Receiver(s.committee, s.identity)
    assert np.array_equal(alice.decrypt(data).messages, messages)
    bob, _ = make_receiver(s.committee, "bob")
    assert np.array_equal(fetch(s.committee, bob, data).messages, messages)
    for party in (0, 1):
        (s.committee.party_folder(party) / "receivers" / "receiver-alice.crt").unlink()
    with pytest.raises(KeyQuorumError, match="may not ask for decryptions any more"):
        alice._ask([data] * 2, {})  # over the channel that it has
    with pytest.raises(PartyError, match=r"party [01]"):
        fetch(s.committee, s.identity, data)
    assert np.array_equal(fetch(s.committee, bob, data).messages, messages)
    # No receiver is left: every request is refused, also while a file cannot be read.
    last = Receiver(s.committee, bob)
    assert np.array_equal(last.decrypt(data).messages, messages)
    folders = [s.committee.party_folder(party) / "receivers" for party in (0, 1)]
    certificate = (folders[0] / "receiver-bob.crt").read_bytes()
    for folder in folders:
        (folder / "receiver-bob.crt").unlink()
    with pytest.raises(KeyQuorumError, match="no receiver may ask for decryptions"):
        last._ask([data] * 2, {})
    for _ in range(3):
        with pytest.raises(PartyError, match="party 0"):
            fetch(s.committee, bob, data)
    for folder in folders:
        (folder / "receiver-bob.crt").write_text("half of it")
    for _ in range(2):
        with pytest.raises(PartyError, match="party 0"):
            fetch(s.committee, bob, data)
    with pytest.raises(CommitteeError, match=r"receiver-bob\.crt: not a certificate"):
        Daemon(s.committee, 0, s.service)
    for folder in folders:
        (folder / "receiver-bob.crt").write_bytes(certificate)
    assert np.array_equal(fetch(s.committee, bob, data).messages, messages)
    last.close()
    alice.close()


def test_a_pool_is_filled_by_whole_chunks(served: Callable[[int], Served]) -> None:
    """Each of several requests takes the pool below --keep: it is filled by whole chunks, or by what a request waits for, not by a few items."""
    s = served(600)
    s.filled(600)
    data, messages = s.request(200, 1)
    for _ in range(4):
        assert np.array_equal(fetch(s.committee, s.identity, data).messages, messages)
    s.filled(600)
    (pool,) = (s.committee.party_folder(0) / "pools").glob("*/pool.json")
    assert {chunk["count"] for chunk in json.loads(pool.read_text())["chunks"]} <= {512, *range(32, 201)}


def damage_pool(s: Served, party: int) -> None:
    for path in (s.committee.party_folder(party) / "pools").glob("*/chunk-*.kqs"):
        path.write_bytes(path.read_bytes()[:-8] + b"\0" * 8)


def lose_pool(s: Served, party: int) -> None:
    shutil.rmtree(s.committee.party_folder(party) / "pools")


def damage_list(s: Served, party: int) -> None:
    (path,) = (s.committee.party_folder(party) / "pools").glob("*/pool.json")
    path.write_text("{")


def lose_chunk(s: Served, party: int) -> None:
    for path in (s.committee.party_folder(party) / "pools").glob("*/chunk-*.kqs"):
        path.unlink()


@pytest.mark.parametrize("lose", [damage_pool, lose_pool, damage_list, lose_chunk])
def test_a_lost_pool_is_dropped_by_all_and_made_anew(tmp_path: Path, lose: Callable[[Served, int], None]) -> None:
    """A party without its pool, as after a backup without it: with --keep nobody has to do anything, and all say what they did."""
    s = Served(tmp_path, 600)
    try:
        s.filled(600)
        s.stop(1)
        lose(s, 1)
        said: list[str] = []
        s.daemons[0][0]._log = said.append
        s.start(1)
        until_right(s, 1, Path(os.devnull))
        s.filled(600)
        assert any("is dropped and made anew: parties 0 and 1 have different pools, or one of them has none" in line for line in said), said
    finally:
        for party in (0, 1):
            s.stop(party)
    assert not s.failures


def test_an_old_pool_is_dropped_by_all_and_its_items_are_not_used_again(tmp_path: Path) -> None:
    s = Served(tmp_path, 600)
    pools = s.committee.party_folder(1) / "pools"
    ids = []
    try:
        s.filled(600)
        for party in (0, 1):
            s.stop(party)
        ids.append(json.loads(next(pools.glob("*/pool.json")).read_text())["id"])
        shutil.copytree(pools, tmp_path / "backup")
        for party in (0, 1):
            s.start(party)
        for seed in range(3):
            until_right(s, seed, Path(os.devnull))
        s.stop(1)
        shutil.rmtree(pools)
        shutil.copytree(tmp_path / "backup", pools)
        said: list[str] = []
        s.daemons[0][0]._log = said.append
        s.start(1)
        until_right(s, 9, Path(os.devnull))
        assert any("is dropped and made anew: party 1 is back at item 0 of its pool" in line for line in said), said
        ids.append(json.loads(next(pools.glob("*/pool.json")).read_text())["id"])
    finally:
        for party in (0, 1):
            s.stop(party)
    assert not s.failures and ids[0] != ids[1]


def test_a_damaged_pool_that_is_not_kept_full_ends_the_daemon(tmp_path: Path) -> None:
    """Without --keep nobody would make it anew: its operators decide."""
    s = Served(tmp_path, 600)
    try:
        s.filled(600)
        for party in (0, 1):
            s.stop(party)
        damage_pool(s, 1)
        s.service = replace(s.service, keep=0)
        for party in (0, 1):
            s.start(party)
        data, _ = s.request(3, 1)
        with pytest.raises(KeyQuorumError):
            fetch(s.committee, s.identity, data, wait=30.0)  # until they are connected
        s.daemons[1][1].join(30)
        assert not s.daemons[1][1].is_alive()
        failure = s.failures.pop()
        assert type(failure).__name__ == "PoolLost" and "chunk-" in str(failure) and "keyquorum pool drop" in str(failure) and not s.failures
    finally:
        for party in (0, 1):
            s.stop(party)


def fills(s: Served, monkeypatch: pytest.MonkeyPatch, items: int, times: int) -> list[str]:
    """Party 0 proposes to fill ``items``, ``times`` times, and follows the protocol afterwards. Returns the log of party 1 in that time."""
    honest, log, left = s.daemons[0][0]._cycle, [], [times]

    def corrupted(context: Any, group: Any, pool: Any, running: list[str], filling: bool = False) -> None:
        if not left[0]:
            return honest(context, group, pool, running)
        left[0] -= 1
        context.session.send(1, Plan(items, [], []).to_bytes())
        s.daemons[0][0]._filling.slice = 0
        try:
            s.daemons[0][0]._filling.run(pool, items, lambda: honest(context, group, pool, running, True))
        except BaseException as error:
            left[0] = 0
            s.daemons[1][1].join(3.0)  # what befell us befalls the other party as well
            raise PartyError(str(error)) from None

    monkeypatch.setattr(s.daemons[1][0], "_log", log.append)
    monkeypatch.setattr(s.daemons[0][0], "_cycle", corrupted)
    end = time.monotonic() + 60
    while time.monotonic() < end and left[0] and s.daemons[1][1].is_alive():
        time.sleep(0.1)
    return log


@pytest.mark.parametrize(
    ("items", "times", "message"),
    [(1 << 62, 1, "party 0 would fill 4,611,686,018,427,387,904 items at once"), (512, 30, "would fill a pool that has ")],
)
def test_endless_filling_blocked(served: Callable[[int], Served], monkeypatch: pytest.MonkeyPatch, items: int, times: int, message: str) -> None:
    """The other party refuses, connects again, and serves."""
    s = served(600)
    s.filled(600)
    log = fills(s, monkeypatch, items, times)
    until_right(s, 1, Path(os.devnull))
    assert any(message in line for line in log), log


def test_endless_filling_ablated(served: Callable[[int], Served], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the bound the other party makes all items that party 0 proposes at once; here few enough for its memory."""
    monkeypatch.setattr(daemon, "read_plan", lambda data, most: read_plan(data))
    s = served(600)
    s.filled(600)
    log = fills(s, monkeypatch, 20_000, 1)
    s.filled(20_000)
    assert not any("would fill" in line for line in log)
    (pool,) = (s.committee.party_folder(1) / "pools").glob("*/pool.json")
    assert 20_000 in [chunk["count"] for chunk in json.loads(pool.read_text())["chunks"]]


@pytest.mark.timeout(900)
def test_many_receivers_and_a_restart(served: Callable[[int], Served]) -> None:
    """Every request is answered rightly or refused with a reason, while party 1 is stopped and started again."""
    s = served(2000)
    s.filled(1000)
    done: list[str] = []
    wrong: list[Any] = []

    def ask(number: int) -> None:
        receiver = Receiver(s.committee, s.identity)
        for i in range(REQUESTS // CLIENTS):
            data, messages = s.request(1 + i % 3, 1000 * number + i)
            try:
                if not np.array_equal(receiver.decrypt(data).messages, messages):
                    wrong.append((number, i))
                done.append("ok")
            except KeyQuorumError as error:
                done.append(str(error))
                time.sleep(0.2)
        receiver.close()

    clients = [threading.Thread(target=ask, args=(i,)) for i in range(CLIENTS)]
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
    end = time.monotonic() + 30  # one that party 0 refused while party 1 was away waits at party 1 until it is too late, 20 s
    for party in (0, 1):
        while s.daemons[party][0].requests._waiting:
            assert time.monotonic() < end
            time.sleep(0.05)


def process(s: Served, party: int, log: Path) -> Forked:
    """A party as a process of its own."""
    (s.committee.party_folder(party) / "serve.json").unlink(missing_ok=True)
    arguments = ["serve", s.committee.folder, party, "key", "--rounding", "round_mask_open", "--keep", 500, "--patience", 20]
    command = [sys.executable, "-c", "from keyquorum.cli import main; main()", *map(str, arguments)]
    with log.open("ab") as file:
        return Forked(command, stdout=file, stderr=subprocess.STDOUT)


def until_right(s: Served, seed: int, log: Path) -> list[str]:
    """Sends a request until the answer is right; returns the refusals before it. ``log``: the file that is shown if there is no answer."""
    refusals: list[str] = []
    end = time.monotonic() + 60
    while time.monotonic() < end:
        data, messages = s.request(7, seed)
        try:
            assert np.array_equal(fetch(s.committee, s.identity, data).messages, messages)
            return refusals
        except KeyQuorumError as error:
            refusals.append(str(error))
            time.sleep(0.2)
    raise AssertionError((refusals[-3:], log.read_text()[-2000:]))


@pytest.mark.timeout(200)
def test_killed_processes_come_back(tmp_path: Path) -> None:
    """kill -9 of either party under load, then a start: refusals in one line, right answers after it, no item twice."""
    s = Served(tmp_path, 0, start=False)
    log = tmp_path / "log"
    parties = {party: process(s, party, log) for party in (0, 1)}
    try:
        until_right(s, 1, log)
        for victim in (1, 0):
            stop = threading.Event()
            wrong: list[str] = []

            def load(stop: threading.Event = stop, wrong: list[str] = wrong) -> None:
                while not stop.is_set():
                    data, messages = s.request(3, 5)
                    try:
                        if not np.array_equal(fetch(s.committee, s.identity, data).messages, messages):
                            wrong.append("wrong")
                    except KeyQuorumError as error:
                        if "\n" in str(error):
                            wrong.append(str(error))

            clients = [threading.Thread(target=load) for _ in range(3)]
            for each in clients:
                each.start()
            time.sleep(1.0)
            parties[victim].kill()
            parties[victim].wait()
            stop.set()
            for each in clients:
                each.join(60)
                assert not each.is_alive()
            parties[victim] = process(s, victim, log)
            refusals = until_right(s, 2 + victim, log)
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


@pytest.mark.parametrize("protocol", ["rep-field", "shamir"])
def test_a_served_committee_decrypts_for_seal(tmp_path: Path, protocol: str) -> None:
    """BFV under a joint key: a receiver gets SEAL's plaintext, several at once; ciphertexts of another level or key are refused."""
    committee = api.init(tmp_path / "committee", 3, protocol)
    api.keygen(committee, "bfv", "bfv-4096", relin=False)
    info = load_key(committee.key_folder(0, "bfv"))
    public = api.load_public_file(committee.key_folder(0, "bfv"), info, "public.key")
    identity, _ = make_receiver(committee, "bob")
    with pytest.raises(ParameterError, match="a pool of 4095 items serves no request, a ciphertext takes 4096"):
        Daemon(committee, 0, Service("bfv", keep=4095))
    service = Service("bfv", keep=3 * 4096, chunk=4096, patience=30.0)
    daemons = [Daemon(committee, party, service) for party in range(3)]
    threads = [threading.Thread(target=daemon.run, daemon=True) for daemon in daemons]
    for thread in threads:
        thread.start()
    try:
        rng, evaluator = np.random.default_rng(3), seal.Evaluator(info.parameters)
        values = [rng.integers(0, info.parameters.plain_modulus, 4096) for _ in range(3)]
        data = [evaluator.last_level(seal.encrypt(info.parameters, public, v)) for v in values]
        with ThreadPoolExecutor(3) as pool:
            results = list(pool.map(lambda d: fetch(committee, identity, d, info=info), data))
        for result, clear in zip(results, values, strict=True):
            got = np.asarray(seal.decode(info.parameters, result.plaintext)).astype(np.int64)
            assert np.array_equal(got % info.parameters.plain_modulus, clear)
        with pytest.raises(CiphertextError, match="switch it to the last level first"):
            fetch(committee, identity, seal.encrypt(info.parameters, public, values[0]), info=info)
        receiver = Receiver(committee, identity)
        receiver._connect()
        with pytest.raises(Refused, match="encrypted under another key"):
            receiver._ask([data[0]] * 3, {"key": "00" * 16})
        receiver.close()
        # A receiver elsewhere has the metadata of the key, and no party.
        elsewhere = tmp_path / "elsewhere"
        (elsewhere / "keys" / "bfv").mkdir(parents=True)
        shutil.copy(committee.folder / "committee.toml", elsewhere)
        with pytest.raises(CommitteeError, match=r"copy its public files to .*elsewhere/keys/bfv"):
            api.key_folder(elsewhere, "bfv")
        shutil.copy(committee.key_folder(0, "bfv") / "key.json", elsewhere / "keys" / "bfv")
        assert load_key(api.key_folder(elsewhere, "bfv")) == info
        result = fetch(api.as_committee(elsewhere), identity, data[0], local_addresses(committee), info=info)
        assert np.array_equal(np.asarray(seal.decode(info.parameters, result.plaintext)) % info.parameters.plain_modulus, values[0])
    finally:
        for daemon in daemons:
            daemon.stop()
        for thread in threads:
            thread.join(30)
