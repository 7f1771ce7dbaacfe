"""Five parties of `shamir` of which any three serve (`--parties any`): two at a time are killed or frozen, with clients, and come back."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from keyquorum import api
from keyquorum.parties import run_in_process
from keyquorum.parties.jobs import run_job
from keyquorum.serve.client import make_receiver
from keyquorum.serve.live.receiver import LiveReceiver

from tests.long import LONG

from . import test_served_kills
from .test_served_kills import Traffic, party_process

EVENTS = int(os.environ.get("KEYQUORUM_KILLS", "40" if LONG else "3"))
SIZE, THRESHOLD = 5, 2


@pytest.mark.timeout(7200 if LONG else 240)
def test_any_two_of_five_are_lost_while_they_serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No answer is wrong, no request hangs, no item serves twice, and after each loss the others answer. Every party serves at some time. Prints the counts."""
    monkeypatch.setattr(test_served_kills, "HUNG", 30.0)
    committee = api.init(tmp_path / "c", SIZE, "shamir", threshold=THRESHOLD, base_ot="curve25519")
    run_in_process(committee, lambda context: run_job(context, api.keygen_job("key", "lwe53-p16")), timeout=60)
    identity, _ = make_receiver(committee, "alice")
    paths = {count: api.encrypt(committee, "key", np.ones(count, dtype=np.int64), tmp_path / f"{count}.lwe").path for count in (1, 7)}
    rng = random.Random(2)
    traffic, back = Traffic(committee, identity, paths, receiver=lambda: LiveReceiver(committee, identity)), list[float]()
    parties = {party: party_process(committee, party, tmp_path, "--parties", "any") for party in range(SIZE)}
    try:
        with traffic.flows():
            traffic.more()
            for event in range(EVENTS):
                time.sleep(rng.uniform(0.5, 2.0))
                victims = (0, 1) if event == 0 else tuple(rng.sample(range(SIZE), THRESHOLD))
                fault = signal.SIGSTOP if event % 3 == 1 else signal.SIGKILL
                for victim in victims:
                    parties[victim].send_signal(fault)
                    time.sleep(rng.uniform(0, 0.5))
                back.append(traffic.more())
                for victim in victims:
                    if fault == signal.SIGSTOP:
                        parties[victim].send_signal(signal.SIGCONT)
                    else:
                        parties[victim].wait(60)
                        parties[victim] = party_process(committee, victim, tmp_path, "--parties", "any")
                traffic.more()
                assert all(process.poll() is None for process in parties.values()), [(tmp_path / f"{i}.log").read_text()[-600:] for i in parties]
    finally:
        for process in parties.values():
            process.kill()
            process.wait()
    used = [log.read_text().split() if (log := tmp_path / f"{party}.used").exists() else [] for party in range(SIZE)]
    views = {
        line.partition(": view ")[2].partition(": ")[2]
        for party in range(SIZE)
        for line in (tmp_path / f"{party}.log").read_text().splitlines()
        if ": view " in line
    }
    print(
        f"{EVENTS} losses of two, {traffic.right} right, {traffic.refused} refused, {len(traffic.wrong)} wrong, {len(traffic.hung)} hung, "
        f"back after {np.median(back):.1f} s, at most {max(back):.1f} s, {len(views)} sets of parties"
    )
    assert not traffic.wrong and not traffic.hung, (traffic.wrong[:3], traffic.hung)
    assert all(len(set(items)) == len(items) for items in used)
    assert len(views) > 1 and sum(bool(items) for items in used) > THRESHOLD + 1
