"""Parties as separate processes of this host, over TLS."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from keyquorum.model.committee import Committee
from keyquorum.model.errors import CommitteeError, PartyError

from . import mac_key
from .context import Progress
from .queue import PATIENCE, hold


class _Worker:
    """One party process: its events are read by a thread."""

    def __init__(
        self, folder: Path, party: int, job: dict[str, Any], progress: Progress | None, timeouts: tuple[float, float], locks: Sequence[int] = ()
    ):
        self.party = party
        self.result: dict[str, Any] | None = None
        self.error: dict[str, Any] | None = None
        self._progress = progress
        self.process = subprocess.Popen(
            [sys.executable, "-m", "keyquorum.parties"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            pass_fds=locks,  # held until the last of the parties has ended, even if this process is killed
            # Parties share the cores of this host, and idle threads of BLAS wait by spinning.
            env={"OPENBLAS_NUM_THREADS": "1", **os.environ},
        )
        task = {
            "folder": str(folder),
            "party": party,
            "job": job,
            "connect_timeout": timeouts[0],
            "io_timeout": timeouts[1],
            "locked": bool(locks),
        }
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(task) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # The process died at once; its exit code and standard error tell why.
        self._stderr: list[str] = []
        self._threads = [threading.Thread(target=f, daemon=True) for f in (self._read_events, self._read_errors)]
        for thread in self._threads:
            thread.start()

    def _read_events(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            try:
                event = json.loads(line)
            except json.JSONDecodeError:
                continue
            if event.get("event") == "progress" and self._progress is not None:
                self._progress(event["phase"], event["done"], event["total"])
            elif event.get("event") == "result":
                self.result = event["result"]
            elif event.get("event") == "error":
                self.error = event

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self._stderr.extend(self.process.stderr)

    def wait(self) -> None:
        self.process.wait()
        for thread in self._threads:
            thread.join(timeout=5)

    def failure(self) -> tuple[bool, str] | None:
        """(only told by others, text), or None if the party succeeded."""
        if self.error is not None:
            return bool(self.error["secondary"]), f"party {self.party}: {self.error['message']}"
        if self.result is None:
            code = self.process.returncode
            reason = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
            last = next((line.strip() for line in reversed(self._stderr) if line.strip()), "")
            return False, f"party {self.party} {reason}" + (f": {last}" if last else "")
        return None


def run_processes(
    folder: Path,
    job: dict[str, Any],
    progress: Progress | None = None,
    connect_timeout: float = 30.0,
    io_timeout: float = 120.0,
    on_start: Any = None,
    patience: float = PATIENCE,
) -> list[dict[str, Any]]:
    """Starts one process a party (all identities must be on this host) and returns their results in party order.

    Waits for at most ``patience`` seconds for another job of the committee, and names it on standard error. ``on_start`` is called with the list of processes, for tests that disturb them. Raises :class:`PartyError` with the
    reason of the party that failed first hand.
    """
    committee = Committee.load(folder)
    missing = sorted(set(range(committee.size)) - set(committee.local_parties()))
    if missing:
        raise CommitteeError(
            f"party {missing[0]} is not on this host: run every party on its own host with keyquorum party {folder} INDEX"
        )
    for party in range(committee.size):
        mac_key.check_party(committee, party)
    timeouts = (connect_timeout, io_timeout)
    workers: list[_Worker] = []
    with hold(committee, range(committee.size), job, patience) as locks:
        try:
            for party in range(committee.size):
                told = progress if party == 0 else None
                workers.append(_Worker(folder, party, job, told, timeouts, [lock.descriptor for lock in locks]))
            if on_start is not None:
                on_start([w.process for w in workers])
            for worker in workers:
                worker.wait()
        finally:
            for worker in workers:
                if worker.process.poll() is None:
                    worker.process.kill()
                    worker.wait()
    failures = [f for f in (w.failure() for w in workers) if f is not None]
    if failures:
        own = [text for secondary, text in failures if not secondary]
        raise PartyError((own or [text for _, text in failures])[0])
    return [w.result or {} for w in workers]
