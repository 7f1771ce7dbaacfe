"""Parties that die, hang or never connect: every other party reports it within its timeout, and no key is lost."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest
from keyquorum import api
from keyquorum.model.errors import CommitteeError, PartyError
from keyquorum.parties import run_processes

from tests.long import some

from .deployment import (
    CONNECT_TIMEOUT,
    IO_TIMEOUT,
    PARAMETERS,
    POLICY,
    Outcome,
    Parties,
    blamed,
    decrypt_job,
    decrypts,
    keygen_job,
    started,
)

pytestmark = pytest.mark.alone
GONE = ("closed the connection", "cannot connect", "connection to party", "kept us waiting")
PHASES = ("set-up", "secret", "noise", "lift", "keys", "check")


def killed_in(folder: Path, victim: int, phase: str, done: int) -> dict[int, Outcome]:
    """Keygen, where ``victim`` is killed (-9) when it reports that step ``done`` of ``phase`` is over."""
    lock, seen = threading.Lock(), threading.Event()

    def on_event(parties: Parties, party: int, event: dict[str, Any]) -> None:
        with lock:
            if party == victim and event.get("phase") == phase and event["done"] == done and not seen.is_set():
                seen.set()
                parties.signal(victim)

    with Parties([folder] * 3, [keygen_job()] * 3, on_event=on_event) as parties:
        outcomes = parties.wait()
    assert seen.is_set()
    return outcomes


@pytest.mark.parametrize(("victim", "phase"), list(zip((0, 1, 2, 0, 1, 2), PHASES, strict=True)))
def test_a_party_killed_in_each_phase_is_named(folder: Path, victim: int, phase: str) -> None:
    """kill -9 at the beginning of a phase: the others name it at once, make no key, and can start again."""
    outcomes = killed_in(folder, victim, phase, 0)
    assert outcomes[victim].code == -signal.SIGKILL
    blamed(outcomes, victim, *GONE)
    assert all(outcome.seconds < IO_TIMEOUT for party, outcome in outcomes.items() if party != victim)
    assert not list(folder.glob("party-*/keys/new/key.json"))
    assert decrypts(folder)


@pytest.mark.parametrize("seed", some(range(6), 2))
def test_a_party_killed_at_a_random_moment(folder: Path, seed: int) -> None:
    """kill -9 after a random time, from before the connections to after the end: the others succeed, or name it and exit
    with code 1 within the timeout. The old key works; a key of another name can be made."""
    random = Random(seed)
    victim, delay = random.randrange(3), random.uniform(0.1, 1.0)
    with started(folder, keygen_job()) as parties:
        time.sleep(delay)
        parties.signal(victim)
        outcomes = parties.wait()
    others = {party: outcome for party, outcome in outcomes.items() if party != victim}
    if any(outcome.code for outcome in others.values()):
        failed = {party: outcome for party, outcome in others.items() if outcome.code}
        blamed(failed, victim, *GONE)
    assert all(outcome.seconds < CONNECT_TIMEOUT + IO_TIMEOUT + 10 for outcome in others.values())
    assert decrypts(folder)


def test_one_of_five_is_killed(tmp_path: Path) -> None:
    """shamir, n = 5: the four others name the victim, and the key made before still decrypts."""
    folder = tmp_path / "c"
    api.init(folder, 5, "shamir")
    api.keygen(folder, "before", PARAMETERS, False, policy=POLICY)

    def on_event(parties: Parties, party: int, event: dict[str, Any]) -> None:
        if party == 4 and event.get("phase") == "keys" and event["done"] == 0:
            parties.signal(4)

    with Parties([folder] * 5, [keygen_job()] * 5, on_event=on_event) as parties:
        outcomes = parties.wait()
    assert len(outcomes) == 5 and outcomes[4].code == -signal.SIGKILL
    blamed(outcomes, 4, *GONE)
    assert decrypts(folder)


def test_what_the_caller_of_a_local_run_sees(folder: Path) -> None:
    """``run_processes`` names the process that was killed, not those that noticed."""

    def kill(processes: list[subprocess.Popen[str]]) -> None:
        time.sleep(Random(1).uniform(0.0, 0.5))
        processes[1].kill()

    with pytest.raises(PartyError, match=r"^party 1 was killed by signal 9") as caught:
        run_processes(folder, keygen_job(), connect_timeout=CONNECT_TIMEOUT, io_timeout=IO_TIMEOUT, on_start=kill)
    assert "\n" not in str(caught.value)
    assert decrypts(folder)


def test_a_party_killed_during_decryption(folder: Path) -> None:
    """The count is kept, no output is left behind, and the same ciphertext can be decrypted again."""
    job, seen = decrypt_job(folder, receiver=0), threading.Event()

    def on_event(parties: Parties, party: int, event: dict[str, Any]) -> None:
        if party == 2 and event.get("phase") == "decrypt" and not seen.is_set():
            seen.set()
            parties.signal(2)

    with Parties([folder] * 3, [job] * 3, on_event=on_event) as parties:
        outcomes = parties.wait()
    assert seen.is_set()
    blamed(outcomes, 2, *GONE)
    assert decrypts(folder)


def test_a_party_that_hangs_is_named(folder: Path) -> None:
    """SIGSTOP in the middle: the others wait for their timeout, and not longer."""
    seen = threading.Event()

    def on_event(parties: Parties, party: int, event: dict[str, Any]) -> None:
        if party == 1 and event.get("phase") == "secret" and not seen.is_set():
            seen.set()
            parties.signal(1, signal.SIGSTOP)

    with Parties([folder] * 3, [keygen_job()] * 3, io_timeout=2.0, on_event=on_event) as parties:
        outcomes = parties.wait(0, 2)
        parties.signal(1)
    blamed(outcomes, 1, "kept us waiting")
    assert all(outcome.seconds < 2.0 + 5.0 for outcome in outcomes.values())
    assert decrypts(folder)


def test_a_party_that_never_comes_is_named(folder: Path) -> None:
    """The others give up after the connect timeout."""
    with started(folder, keygen_job(), only=(0, 1)) as parties:
        outcomes = parties.wait()
    blamed(outcomes, 2, *GONE)
    assert decrypts(folder)


def test_a_worker_ends_with_its_parent(folder: Path) -> None:
    """A party whose parent is gone does not stay behind: its standard input closes."""
    with started(folder, keygen_job(), only=(0,)) as parties:
        stdin = parties.processes[0].stdin
        assert stdin is not None
        stdin.close()
        assert parties.wait(0)[0].code != 0


def test_names_are_not_taken_twice(folder: Path) -> None:
    """A key that exists is never overwritten, by the interface or by a party."""
    with pytest.raises(CommitteeError, match="there is a key 'before' already: choose another name"):
        api.keygen(folder, "before", "ckks-4096")
    job = {**keygen_job(), "key": "before"}
    before = {p: p.read_bytes() for p in folder.glob("party-*/keys/before/*") if p.suffix != ".lock"}
    with started(folder, job) as parties:
        outcomes = parties.wait()
    for outcome in outcomes.values():
        assert outcome.code == 1 and "there is a key of this name already: choose another name" in outcome.message
    assert {p: p.read_bytes() for p in before} == before
