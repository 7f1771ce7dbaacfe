"""Parties of a served committee that are killed, stopped and frozen again and again, with clients and with a pool that is filled meanwhile."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from keyquorum import api
from keyquorum.model.committee import Committee
from keyquorum.model.errors import KeyQuorumError
from keyquorum.parties import mac_key
from keyquorum.schemes.lwe.ciphertexts import LweDecrypted
from keyquorum.serve.client import Receiver, make_receiver

from tests.commands import Forked
from tests.long import LONG

EVENTS = int(os.environ.get("KEYQUORUM_KILLS", "40" if LONG else "3"))
ROOT = Path(__file__).resolve().parents[2]
COUNTS = (1, 7, 60)
"""Ciphertexts of a request of each client."""
KEPT = 512 if LONG else 128
"""Items of a pool."""
HUNG = 60.0
"""A request that takes longer hangs."""
FROZEN = 5.0
FAULTS = (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP)


@dataclass
class Traffic:
    """Clients that ask until they are stopped, and what became of their requests."""

    committee: Committee
    identity: Path
    paths: dict[int, Path]
    right: int = 0
    refused: int = 0
    wrong: list[str] = field(default_factory=list)
    hung: list[float] = field(default_factory=list)
    receiver: Callable[[], Receiver] | None = None
    """Makes the receiver of a client (default: one that asks all parties of the committee)."""
    _stop: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def _ask(self, count: int) -> None:
        make = self.receiver or (lambda: Receiver(self.committee, self.identity, wait=HUNG))
        receiver, data = make(), self.paths[count].read_bytes()
        while not self._stop.is_set():
            begin, right = time.monotonic(), False
            try:
                result = receiver.decrypt(data)
                assert isinstance(result, LweDecrypted)
                right = bool((result.messages == 1).all())
                if not right:
                    self.wrong.append(f"{result.messages}")
            except KeyQuorumError as error:
                if "\n" in str(error):
                    self.wrong.append(str(error))
            took = time.monotonic() - begin
            with self._lock:
                self.right, self.refused = self.right + right, self.refused + (not right)
                self.hung += [took] if took > HUNG + 5 else []
            if not right:
                time.sleep(0.2)
        receiver.close()

    @contextmanager
    def flows(self) -> Iterator[None]:
        threads = [threading.Thread(target=self._ask, args=(count,), daemon=True) for count in self.paths]
        for each in threads:
            each.start()
        try:
            yield
        finally:
            self._stop.set()
            for each in threads:
                each.join(2 * HUNG)
                assert not each.is_alive()

    def more(self, seconds: float = 120.0) -> float:
        """Seconds until one more request is answered."""
        begin, before = time.monotonic(), self.right
        while self.right == before:
            assert time.monotonic() < begin + seconds, "no answer"
            time.sleep(0.02)
        return time.monotonic() - begin


def party_process(committee: Committee, party: int, folder: Path, *options: str) -> Forked:
    arguments = [folder / f"{party}.used", committee.folder, party, "key", "--keep", KEPT, "--chunk", 64, *options]
    with (folder / f"{party}.log").open("ab") as log:
        command = [sys.executable, "-m", "tests.faults.served_party", *map(str, arguments)]
        return Forked(command, stdout=log, stderr=log, cwd=ROOT)


@pytest.mark.timeout(300 if not LONG else 7200)
@pytest.mark.parametrize(("protocol", "size"), [("spdz2k", 2), ("semi2k", 2), ("rep-field", 3)] if LONG else [("spdz2k", 2)])
def test_faults_of_served_parties(tmp_path: Path, protocol: str, size: int) -> None:
    """No answer is wrong, no request hangs, no item serves twice, no MAC key burns, and the committee answers again. Prints the counts."""
    committee = api.init(tmp_path / "c", size, protocol)
    api.keygen(committee, "key", "lwe64-p2")
    identity, _ = make_receiver(committee, "alice")
    paths = {count: api.encrypt(committee, "key", np.ones(count, dtype=np.int64), tmp_path / f"{count}.lwe").path for count in COUNTS}
    random.seed(1)
    traffic, back = Traffic(committee, identity, paths), list[float]()
    parties = {party: party_process(committee, party, tmp_path) for party in range(size)}
    try:
        with traffic.flows():
            traffic.more()
            for event in range(EVENTS):
                time.sleep(random.uniform(0.5, 3.0))
                victim, fault = event % size, FAULTS[0] if event % 4 < 2 else FAULTS[event % 4 - 1]
                parties[victim].send_signal(fault)
                if fault == signal.SIGSTOP:
                    time.sleep(FROZEN)
                    parties[victim].send_signal(signal.SIGCONT)
                else:
                    parties[victim].wait(60)
                    parties[victim] = party_process(committee, victim, tmp_path)
                back.append(traffic.more())
                assert all(process.poll() is None for process in parties.values()), [(tmp_path / f"{i}.log").read_text()[-600:] for i in parties]
    finally:
        for process in parties.values():
            process.kill()
            process.wait()
    used = [(tmp_path / f"{party}.used").read_text().split() for party in range(size)]
    print(
        f"{protocol}: {EVENTS} faults, {traffic.right} right, {traffic.refused} refused, {len(traffic.wrong)} wrong, {len(traffic.hung)} hung, "
        f"{len(used[0])} items, back after {np.median(back):.1f} s, at most {max(back):.1f} s"
    )
    assert not traffic.wrong and not traffic.hung, (traffic.wrong[:3], traffic.hung)
    assert all(len(set(items)) == len(items) for items in used)
    assert not committee.authenticated or not any(mac_key.state(committee.mac_key_path(party)).burned for party in range(size))
