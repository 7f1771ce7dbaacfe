"""A party that is killed at any point of counting, evaluating and answering: nothing is counted twice, and nothing is answered without a count."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from keyquorum.model.committee import Committee
from keyquorum.model.errors import KeyQuorumError
from keyquorum.schemes.prf.evaluations import JOURNAL, read_journal
from keyquorum.schemes.prf.function import combined, finalised, point_of, shared_points
from keyquorum.schemes.prf.key import load_prf_key
from keyquorum.serve.client import make_receiver
from keyquorum.toprf import Toprf, set_policy

from tests.schemes.test_prf import committee_with_key, key_of, reference

WORKER = Path(__file__).parent / "toprf_worker.py"
LONG = "KEYQUORUM_LONG" in os.environ
COUNTED = ("count/written", "count/durable", "toprf/evaluated")
"""Points at which the count is in the file."""
POINTS = ("count/before", "count/half", *COUNTED) if LONG else ("count/half", "count/durable", "toprf/evaluated")
VICTIMS = (1, 0) if LONG else (1,)


class Parties:
    """Two parties, each a process, and requests whose ids are known."""

    def __init__(self, committee: Committee, log: Path) -> None:
        self.committee, self.log = committee, log
        self.key_id = load_prf_key(committee.key_folder(0, "prf")).key_id
        self.running: dict[int, subprocess.Popen[bytes]] = {}
        self.asked = 0

    def start(self, party: int, kill_at: str = "-") -> None:
        (self.committee.party_folder(party) / "serve.json").unlink(missing_ok=True)
        with self.log.open("ab") as file:
            self.running[party] = subprocess.Popen(
                [sys.executable, str(WORKER), str(self.committee.folder), str(party), kill_at], stdout=file, stderr=file
            )
        end = time.monotonic() + 30
        while not (self.committee.party_folder(party) / "serve.json").exists():
            assert self.running[party].poll() is None and time.monotonic() < end, self.log.read_text()[-2000:]
            time.sleep(0.05)

    def ask(self, identity: Path) -> tuple[str, bytes | None]:
        """The id of a new request, and its value; None if it was refused."""
        self.asked += 1
        name = f"request{self.asked:04}"
        with Toprf(self.committee, "prf", identity, wait=10.0) as toprf:
            try:
                bodies = shared_points(self.committee, [point_of(b"x", b"", 16)])
                answers = toprf._channels.ask(bodies, {"key": self.key_id, "output": 16, "id": name})
            except KeyQuorumError as error:
                assert "\n" not in str(error)
                return name, None
        return name, finalised(b"x", b"", 16, combined(self.committee, answers, 1))

    def until_answered(self, identity: Path, wanted: bytes) -> str:
        """The id of the first request that is answered, rightly."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            name, value = self.ask(identity)
            if value is not None:
                assert value == wanted
                return name
            time.sleep(0.2)
        raise AssertionError(self.log.read_text()[-2000:])

    def counted(self, party: int) -> list[str]:
        return [line.id for line in read_journal(self.committee.key_folder(party, "prf") / JOURNAL).lines]

    def answered(self, party: int) -> list[str]:
        """The ids of requests for which the party's audit log has an answer."""
        text = (self.committee.party_folder(party) / "audit.jsonl").read_text()
        return [line["request"] for line in map(json.loads, text.splitlines()) if line["result"] == "answered"]


@pytest.mark.timeout(240)
@pytest.mark.parametrize("victim", VICTIMS)
def test_killed_anywhere(tmp_path: Path, victim: int) -> None:
    committee = committee_with_key(tmp_path, "semi", 2)
    identity, _ = make_receiver(committee, "web")
    for party in (0, 1):
        set_policy(committee, party, "prf", 1000)
    parties = Parties(committee, tmp_path / "log")
    try:
        parties.start(1 - victim)
        for point in POINTS:
            parties.start(victim, point)
            before, asked, end = parties.counted(victim), [], time.monotonic() + 60
            while parties.running[victim].poll() is None:  # the first requests may come before the parties are connected, the last after the death
                name, value = parties.ask(identity)
                assert value is None and time.monotonic() < end, (point, parties.log.read_text()[-2000:])
                asked.append(name)
            assert parties.running[victim].wait() == -signal.SIGKILL
            new = [name for name in parties.counted(victim) if name not in before]
            assert set(new) <= set(asked) and bool(new) == (point in COUNTED), (point, new, asked)
        parties.start(victim)
        received = parties.until_answered(identity, reference(key_of(committee), b"x", length=16))
        for party in (0, 1):
            counted = parties.counted(party)
            assert len(set(counted)) == len(counted)
            assert {received, *parties.answered(party)} <= set(counted)
            assert read_journal(committee.key_folder(party, "prf") / JOURNAL).total == len(counted)
    finally:
        for process in parties.running.values():
            process.kill()
            process.wait()
