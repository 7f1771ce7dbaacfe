"""Parties of a committee with MACs that are killed again and again while they fill a pool: the MAC key stays, and so does what was made under it."""

from __future__ import annotations

import os
import queue
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from keyquorum import api
from keyquorum.parties import mac_key
from keyquorum.parties.doctor import examine
from keyquorum.serve.mac_gauges import mac_key_gauges
from prometheus_client import CollectorRegistry, generate_latest

from tests.long import LONG

KILLS = int(os.environ.get("KEYQUORUM_KILLS", "200" if LONG else "6"))
ROOT = Path(__file__).resolve().parents[2]
SECONDS = 120.0
"""In which a party begins to fill on a busy machine."""


class Fillers:
    """The parties, as processes that can be killed."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "tests.faults.mac_filler", str(folder)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        self.lines: queue.Queue[str] = queue.Queue()
        self.broke: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line.strip())

    def order(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def await_lines(self, *starts: str) -> list[str]:
        """The first line of each kind that comes from now on."""
        found: dict[str, str] = {}
        end = time.monotonic() + SECONDS
        while len(found) < len(starts):
            if time.monotonic() > end:
                raise AssertionError(f"no {set(starts) - set(found)}; {self.broke[-5:]}")
            try:
                line = self.lines.get(timeout=1.0)
            except queue.Empty:
                continue
            if line.split(" ", 2)[1] == "broke":
                self.broke.append(line)
            found |= {start: line for start in starts if line.startswith(start) and start not in found}
        return [found[start] for start in starts]

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)


@pytest.mark.timeout(600 if not LONG else 7200)
def test_crash_guess_blocked_kills_while_a_pool_is_filled(tmp_path: Path) -> None:
    """Prints how many parties had a challenge or a check open when they were killed."""
    folder = tmp_path / "c"
    committee = api.init(folder, 2, "spdz2k")
    fillers = Fillers(folder)
    random.seed(1)
    before, challenges, unfinished = [0, 0], 0, 0
    try:
        for party in (0, 1):
            fillers.order(f"start {party}")
        for kill in range(KILLS):
            fillers.await_lines("0 filling", "1 filling")
            time.sleep(random.uniform(0.0, 3.0))
            victim = kill % 2
            fillers.order(f"kill {victim}")
            burned, cut_offs, open_ = (int(word) for word in fillers.await_lines(f"{victim} killed")[0].split()[2:])
            assert not burned, kill
            challenges += cut_offs > before[victim]
            before[victim] = cut_offs
            unfinished += open_ > 0
            print(f"kill {kill + 1}: {challenges} with an open challenge, {unfinished} with unfinished checks", flush=True)
            fillers.order(f"start {victim}")
            assert not any("burned" in line for line in fillers.broke), fillers.broke
        fillers.await_lines("0 filling", "1 filling")
    finally:
        fillers.close()
    print(f"{KILLS} kills, {challenges} with an open challenge, {unfinished} with unfinished checks, 0 keys burned")
    for party in (0, 1):
        assert not mac_key.state(committee.mac_key_path(party)).burned
    api.pool_fill(folder, "lwe64-p2", "round_mask_open", 32)  # a pool of its own
    for party in (0, 1):
        state = mac_key.state(committee.mac_key_path(party))
        assert not state.burned and not state.unfinished


def test_the_state_of_a_key_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By doctor and by the gauges."""
    committee = api.init(tmp_path / "c", 2, "spdz2k")
    path = committee.mac_key_path(0)
    mac_key.mac_key(path)
    registry = CollectorRegistry()
    mac_key_gauges(registry, path)

    def gauges() -> dict[str, float]:
        lines = [line.split() for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")]
        return {name.removeprefix("keyquorum_mac_key_"): float(value) for name, value in lines}

    assert gauges() == {"burned": 0, "cut_offs": 0, "unfinished": 0}
    path.with_name("mac.key.session").write_text(f"c{1:>10}{41:>10}\n")
    assert gauges() == {"burned": 0, "cut_offs": 42, "unfinished": 0}
    said = [finding for finding in examine(committee, [0], 0.1) if "MAC key" in finding.text]
    assert [f.ok for f in said] == [True] and "42 of at most 4,096 challenges were cut off" in said[0].text
    path.with_name("mac.key.burned").write_text('{"check":"a test","date":"2026-01-01T00:00:00Z"}\n')
    assert gauges() == {"burned": 1, "cut_offs": 0, "unfinished": 0}
    assert not next(f for f in examine(committee, [0], 0.1) if "MAC key" in f.text).ok
