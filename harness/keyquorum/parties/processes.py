"""Parties as separate processes of this host, over TLS."""

from __future__ import annotations

import json
import math
import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from keyquorum.model.bridge import ACCEPTED, KEPT, Bridge
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CommitteeError, PartyError, PartyInterrupted
from keyquorum.model.plain import Json
from keyquorum.model.subset import ABSENT

from . import mac_key
from .context import Progress
from .jobs import PACKAGES, runs
from .queue import PATIENCE, hold

LAST_SECONDS = 2.0
"""Seconds that the others have to end by themselves after the first party failed; then they are stopped."""


class _Worker:
    """One party process: its events are read by a thread."""

    def __init__(self, task: Json, party: int, progress: Progress | None, changed: threading.Event, locks: Sequence[int] = ()):
        self.party = party  # its number for messages
        self.result: Json | None = None
        self.error: Json | None = None
        self.failed_at = math.inf
        self.stopped = False
        self._changed = changed
        self._progress = progress
        self.process = subprocess.Popen(
            [sys.executable, "-m", "keyquorum.parties"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            pass_fds=locks,  # held until the last of the parties has ended, even if this process is killed
            # Parties share the cores of this host, and idle threads of BLAS spin.
            env={"OPENBLAS_NUM_THREADS": "1", **os.environ},
        )
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(task) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # the process died at once: its exit code and standard error have the reason
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
                self._fails()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(LAST_SECONDS)  # it has closed its output: it ends
        if self.result is None and not self.stopped:
            self._fails()
        self._changed.set()

    def _fails(self) -> None:
        self.failed_at = min(self.failed_at, time.monotonic())
        self._changed.set()

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self._stderr.extend(self.process.stderr)

    def wait(self) -> None:
        self.process.wait()
        for thread in self._threads:
            thread.join(timeout=5)

    def stop(self) -> None:
        """Stops a party that cannot succeed any more."""
        self.stopped = True
        self.process.kill()
        self.wait()

    @property
    def running(self) -> bool:
        """Whether the process runs, or its output has not been read to the end."""
        return self.process.poll() is None or self._threads[0].is_alive()

    def failure(self) -> tuple[bool, str] | None:
        """(whether another party caused the failure, text), or None if the party succeeded, or was stopped because of another one."""
        if self.error is not None:
            message = str(self.error["message"])
            said = message if message.startswith(f"party {self.party} ") else f"party {self.party}: {message}"
            return bool(self.error["secondary"]), said
        if self.result is None and not self.stopped:
            code = self.process.returncode
            reason = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
            last = next((line.strip() for line in reversed(self._stderr) if line.strip()), "")
            return False, f"party {self.party} {reason}" + (f": {last}" if last else "")
        return None


def run_processes(
    of: Path | Committee,
    job: Json,
    progress: Progress | None = None,
    connect_timeout: float = 30.0,
    io_timeout: float = 120.0,
    on_start: Callable[[list[subprocess.Popen[str]]], None] | None = None,
    patience: float = PATIENCE,
) -> list[Json]:
    """Starts one process a party (all identities must be on this host) and returns their results in party order; of a job of a subset, its parties. ``of``: the folder of the committee, or the parties
    themselves.

    Waits at most ``patience`` seconds for another job of the committee, and names it on standard error. ``on_start`` is called with the
    list of processes, for tests that disturb them. Raises :class:`PartyError` with the reason of the first party whose failure no other party
    caused; the others are stopped.
    """
    committee = of if isinstance(of, Committee) else runs(Committee.load(of), job)
    missing = sorted(set(range(committee.size)) - set(committee.local_parties()))
    if missing:
        raise CommitteeError(
            f"party {committee.number_of(missing[0])} is not on this host: write the job with --job FILE, and run keyquorum party {shlex.quote(str(committee.folder))} INDEX FILE on every host"
        )
    for party in range(committee.size):
        mac_key.check_party(committee, party)
    common = {"job": job, "connect_timeout": connect_timeout, "io_timeout": io_timeout, "packages": PACKAGES, "absent": job.get(ABSENT) or []}
    if isinstance(of, Bridge):  # the caller has the folders of both committees, so the job is not the only one that names them
        common["old"], common["to"] = (side.digest.hex() for side in of.sides)
        common["accepted"], common["keep_old"] = job.get(ACCEPTED), job.get(KEPT, False)
    workers: list[_Worker] = []
    changed = threading.Event()
    with hold(committee, range(committee.size), job, patience) as locks:
        held = [lock.descriptor for lock in locks]
        try:
            for party in range(committee.size):
                folder, number = committee.started_by(party)
                task = {**common, "folder": str(folder), "party": number, "locked": bool(held)}
                workers.append(_Worker(task, committee.number_of(party), progress if party == 0 else None, changed, held))
            if on_start is not None:
                on_start([w.process for w in workers])
            _wait(workers, changed)
        finally:
            for worker in workers:
                if worker.process.poll() is None:
                    worker.stop()
        for worker in workers:
            worker.wait()
    if all(w.result is not None for w in workers):
        return [w.result or {} for w in workers]
    found = [(w, f) for w in sorted(workers, key=lambda w: w.failed_at) if (f := w.failure()) is not None]
    own = [(w, text) for w, (secondary, text) in found if not secondary]
    culprit, text = own[0] if own else (found[0][0], found[0][1][1])
    interrupted = culprit.error is not None and culprit.error["type"] == PartyInterrupted.__name__
    raise (PartyInterrupted if interrupted else PartyError)(text)


def _wait(workers: list[_Worker], changed: threading.Event) -> None:
    """Waits until all parties have ended, or :data:`LAST_SECONDS` after the first one failed. In this time the others receive the reason from that
    party, and a party that is itself the cause reports it."""
    end = math.inf
    while any(worker.running for worker in workers) and time.monotonic() < end:
        changed.wait(min(end - time.monotonic(), 0.2))
        changed.clear()
        end = min(end, min(worker.failed_at for worker in workers) + LAST_SECONDS)
