"""Five parties of `shamir` of which any three serve (`--parties any`), with eight clients: two at a time are killed at random times and come back, and the epoch changes meanwhile."""

from __future__ import annotations

import random
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from keyquorum import api
from keyquorum.model.committee import Committee
from keyquorum.model.epoch import Stage
from keyquorum.model.errors import KeyQuorumError
from keyquorum.parties import run_in_process
from keyquorum.parties.epochs import Change
from keyquorum.parties.jobs import run_job
from keyquorum.schemes.lwe.ciphertexts import LweDecrypted
from keyquorum.serve.client import make_receiver
from keyquorum.serve.live.receiver import LiveReceiver

from tests.commands import Forked
from tests.long import LONG

from .test_served_kills import ROOT, party_process

SIZE, THRESHOLD, CLIENTS = 5, 2, 8
REQUESTS = 2000 if LONG else 80
PROMISED, TRY = 3.0, 2.4
"""Seconds within which a request is answered, or refused; and those that a receiver gives a try: eight clients and ten processes share the processors."""


class OneTry(LiveReceiver):
    """Does not ask again: each request is answered, or refused."""

    def __init__(self, committee: Committee, identity: Path) -> None:
        super().__init__(committee, identity, timeout=TRY)
        self._wait = 0.0


@dataclass
class Clients:
    """Ask for messages of their own, until there were :data:`REQUESTS` in all, and longer if the events are not over."""

    committee: Committee
    identity: Path
    right: int = 0
    refused: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def _ask(self, client: int, folder: Path) -> None:
        messages = np.full(1 + 3 * (client % 2), client + 1, dtype=np.int64)
        data = api.encrypt(self.committee, "key", messages, folder / f"client-{client}.lwe").path.read_bytes()
        receiver = OneTry(self.committee, self.identity)
        while not self.stop.is_set() or len(self.seconds) < REQUESTS:
            begin, error = time.monotonic(), ""
            try:
                result = receiver.decrypt(data)
                assert isinstance(result, LweDecrypted)
                if not np.array_equal(result.messages, messages):
                    self.wrong.append(f"{result.messages} for {messages}")
            except KeyQuorumError as refusal:
                error = str(refusal)
            took = time.monotonic() - begin
            with self._lock:
                self.seconds.append(took)
                self.right += not error
                self.refused += [error] if error else []
            if error:
                time.sleep(0.1)
        receiver.close()

    @contextmanager
    def flows(self, folder: Path) -> Iterator[None]:
        threads = [threading.Thread(target=self._ask, args=(client, folder), daemon=True) for client in range(CLIENTS)]
        for each in threads:
            each.start()
        try:
            yield
            self.more()
        finally:
            self.stop.set()
            for each in threads:
                each.join(600)
                assert not each.is_alive(), "a client hangs"

    def more(self, count: int = 1, seconds: float = 120.0) -> None:
        """Waits for so many more right answers."""
        until, aim = time.monotonic() + seconds, self.right + count
        while self.right < aim:
            assert time.monotonic() < until, f"no answer; {self.refused[-3:]}"
            time.sleep(0.02)


@dataclass
class Hosts:
    """The processes of the parties: each one that serves, and the job of a refresh, if there is one."""

    committee: Committee
    folder: Path
    serving: dict[int, Forked] = field(default_factory=dict)
    jobs: dict[int, Forked] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    killed: int = 0

    def serve(self, party: int) -> None:
        self.serving[party] = party_process(self.committee, party, self.folder, "--parties", "any")

    def kill_two(self, rng: random.Random) -> None:
        """Kills all processes of two parties, at different times, and starts them to serve again later."""
        victims = rng.sample(range(SIZE), THRESHOLD)
        for victim in victims:
            with self.lock:
                for process in (self.serving[victim], *([self.jobs[victim]] if victim in self.jobs else [])):
                    process.send_signal(signal.SIGKILL)
            time.sleep(rng.uniform(0, 0.3))
        time.sleep(rng.uniform(0, 1.5))
        for victim in victims:
            self.serving[victim].wait(60)
            self.serve(victim)
        self.killed += THRESHOLD

    def refresh(self) -> bool:
        """One try at all parties: a job at each, as their operators' timers start it. Whether all processes ended well."""
        job = self.folder / "refresh.json"
        job.unlink(missing_ok=True)
        api.write_job(job, api.refresh_shares_job(self.committee))
        with self.lock:
            for party in range(SIZE):
                command = [sys.executable, "-m", "keyquorum", "party", self.committee.folder, party, job, "--connect-timeout", 10, "--io-timeout", 10]
                with (self.folder / f"{party}.job.log").open("ab") as log:
                    self.jobs[party] = Forked([str(each) for each in command], stdout=log, stderr=log, cwd=ROOT)
        codes = [process.wait(120) for process in self.jobs.values()]
        with self.lock:
            self.jobs.clear()
        return not any(codes)

    def logs(self) -> list[str]:
        return [(self.folder / f"{party}.log").read_text()[-800:] for party in range(SIZE)]

    def end(self) -> None:
        for process in [*self.serving.values(), *self.jobs.values()]:
            process.kill()
            process.wait()


def ended(committee: Committee) -> set[tuple[str, bool]]:
    """Epochs in which the parties are, and whether each has erased the shares of before and settled all."""
    found = set()
    for party in range(SIZE):
        changes = Change.recent(committee, party)
        done = all(change.settled and (change.standing.stage != Stage.COMMITTED) for change in changes)
        found.add((changes[0].record.name if changes and changes[0].standing.stage == Stage.ERASED else "", done))
    return found


@pytest.mark.alone
@pytest.mark.timeout(3600 if LONG else 300)
def test_the_epoch_changes_while_any_two_of_five_are_killed(tmp_path: Path) -> None:
    """No answer is wrong, each request is answered or refused within :data:`PROMISED`, no item serves twice. Parties that were killed in a change end it by themselves. Prints the counts."""
    committee = api.init(tmp_path / "c", SIZE, "shamir", threshold=THRESHOLD, base_ot="curve25519")
    run_in_process(committee, lambda context: run_job(context, api.keygen_job("key", "lwe53-p16")), timeout=60)
    clients, rng = Clients(committee, make_receiver(committee, "alice")[0]), random.Random(5)
    hosts, tries, changed = Hosts(committee, tmp_path), 0, 0
    try:
        for party in range(SIZE):
            hosts.serve(party)
        with clients.flows(tmp_path):
            clients.more(4)
            while True:
                refreshing = threading.Thread(target=hosts.refresh)
                if tries < (6 if LONG else 1):  # parties are killed in the middle of it, at a random time
                    refreshing.start()
                    time.sleep(rng.uniform(0, 4.0))
                    hosts.kill_two(rng)
                    refreshing.join(200)
                    tries += 1
                else:  # and this one ends
                    while not hosts.refresh():
                        tries += 1
                        time.sleep(1.0)
                    changed += 1
                clients.more(4)
                assert all(process.poll() is None for process in hosts.serving.values()), hosts.logs()
                if changed and (clients.right + len(clients.refused) >= REQUESTS or not LONG):
                    break
                if LONG:
                    time.sleep(rng.uniform(2.0, 8.0))
                    hosts.kill_two(rng)
                    time.sleep(rng.uniform(2.0, 8.0))
            until = time.monotonic() + 60
            while len(found := ended(committee)) > 1 or not next(iter(found))[0] or not next(iter(found))[1]:
                assert time.monotonic() < until, (found, hosts.logs())
                time.sleep(0.2)
    finally:
        hosts.end()
    used = [log.read_text().split() if (log := tmp_path / f"{party}.used").exists() else [] for party in range(SIZE)]
    late = sorted(seconds for seconds in clients.seconds if seconds > PROMISED)
    print(
        f"{len(clients.seconds)} requests, {clients.right} right, {len(clients.refused)} refused, {len(clients.wrong)} wrong, longest {max(clients.seconds):.1f} s, "
        f"{len(late)} above {PROMISED:g} s, {hosts.killed} killed, {tries} tries of a change that were disturbed, {changed} that were not, epoch {api.epoch_status(committee)[0]['number']}"
    )
    assert not clients.wrong and not late, (clients.wrong[:3], late)
    assert all(len(set(items)) == len(items) for items in used)
