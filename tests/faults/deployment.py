"""Party processes over TLS that a test can disturb one by one, with the final message of each."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keyquorum import api
from keyquorum.fhe import seal
from keyquorum.parties import run_processes
from keyquorum.schemes.key_folder import load_key
from keyquorum.schemes.seal.policy import FloodPolicy

from tests.commands import Forked

PARAMETERS = api.load_parameters("ckks-4096")
POLICY = FloodPolicy(bits=4, decryptions=1000, noise_bits=4)
CONNECT_TIMEOUT = 6.0
IO_TIMEOUT = 6.0
START = 20.0
"""Seconds that a busy machine may take to start a process."""


@dataclass(frozen=True)
class Outcome:
    """How a party process ended. ``message``: its error, or empty; ``seconds``: from :meth:`Parties.mark` to its end."""

    code: int
    kind: str
    message: str
    stderr: str
    seconds: float


class Parties:
    """One worker process a party, each with a job (None: it is not started) and a folder of its own choice."""

    def __init__(
        self,
        folders: Sequence[Path],
        jobs: Sequence[dict[str, Any] | None],
        io_timeout: float = IO_TIMEOUT,
        on_event: Callable[[Parties, int, dict[str, Any]], None] | None = None,
    ) -> None:
        self.processes: dict[int, subprocess.Popen[str]] = {}
        self._events: dict[int, list[dict[str, Any]]] = {}
        self._errors: dict[int, list[str]] = {}
        self._ends: dict[int, float] = {}
        self._threads: dict[int, list[threading.Thread]] = {}
        self._on_event = on_event
        self._marked = time.monotonic()
        for party, (folder, job) in enumerate(zip(folders, jobs, strict=True)):
            if job is None:
                continue
            process = Forked(
                [sys.executable, "-m", "keyquorum.parties"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            task = {"folder": str(folder), "party": party, "job": job}
            task |= {"connect_timeout": CONNECT_TIMEOUT, "io_timeout": io_timeout}
            assert process.stdin is not None
            process.stdin.write(json.dumps(task) + "\n")
            process.stdin.flush()
            self.processes[party] = process
            self._events[party], self._errors[party] = [], []
            readers = (self._read_events, self._read_errors)
            self._threads[party] = [threading.Thread(target=read, args=(party,), daemon=True) for read in readers]
            for thread in self._threads[party]:
                thread.start()

    def _read_events(self, party: int) -> None:
        stream = self.processes[party].stdout
        assert stream is not None
        for line in stream:
            event = json.loads(line)
            self._events[party].append(event)
            if self._on_event is not None:
                self._on_event(self, party, event)
        self._ends[party] = time.monotonic()

    def _read_errors(self, party: int) -> None:
        stream = self.processes[party].stderr
        assert stream is not None
        self._errors[party].extend(stream)

    def mark(self) -> None:
        """Starts the clock of :class:`Outcome`."""
        self._marked = time.monotonic()

    def signal(self, party: int, number: int = signal.SIGKILL) -> None:
        """Sends a signal to a party that still runs, and starts the clock."""
        self.mark()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.processes[party].pid, number)

    def wait(self, *parties: int, seconds: float = START + CONNECT_TIMEOUT + IO_TIMEOUT) -> dict[int, Outcome]:
        """Waits for these parties (default: all). A party that has not ended by then hangs: the test fails."""
        outcomes = {}
        for party in parties or tuple(self.processes):
            code = self.processes[party].wait(timeout=seconds)
            for thread in self._threads[party]:
                thread.join(timeout=5)
            errors = [e for e in self._events[party] if e["event"] == "error"]
            outcomes[party] = Outcome(
                code,
                errors[0]["type"] if errors else "",
                errors[0]["message"] if errors else "",
                "".join(self._errors[party]),
                self._ends[party] - self._marked,
            )
        return outcomes

    def __enter__(self) -> Parties:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()


def keygen_job(key: str = "new") -> dict[str, Any]:
    """A small key, with everything that keygen makes."""
    return api.keygen_job(key, PARAMETERS, True, api.galois_elements(PARAMETERS, (1,)), policy=POLICY)


def decrypt_job(folder: Path, receiver: int = 0) -> dict[str, Any]:
    """Decryption of a ciphertext under the key `before`, which it encrypts."""
    where = api.key_folder(folder, "before")
    public = api.load_public_file(where, load_key(where), "public.key")
    path = folder / "half.ct"
    path.write_bytes(seal.encrypt(PARAMETERS, public, [0.5] * PARAMETERS.slots))
    return api.decrypt_job(folder, "before", [path], receiver, [folder / "half.out"])


def decrypts(folder: Path) -> bool:
    """Whether the key `before` still works."""
    job = decrypt_job(folder)
    output = folder / "half.out"
    output.unlink(missing_ok=True)
    run_processes(folder, job, connect_timeout=CONNECT_TIMEOUT + START, io_timeout=IO_TIMEOUT + START)
    values = seal.decode(PARAMETERS, output.read_bytes())
    return bool(abs(values - 0.5).max() < 0.01)


def blamed(outcomes: dict[int, Outcome], culprit: int, *words: str) -> None:
    """Every other party ended with code 1 and one line that names the culprit and has one of ``words``; no traceback."""
    for party, outcome in outcomes.items():
        assert outcome.code == (-signal.SIGKILL if outcome.code < 0 else 1), outcome
        if party == culprit:
            continue
        assert f"party {culprit}" in outcome.message, (party, outcome)
        assert not words or any(word in outcome.message for word in words), (party, outcome)
        assert "\n" not in outcome.message and outcome.stderr == "", (party, outcome)


@contextlib.contextmanager
def started(folder: Path, job: dict[str, Any], only: Sequence[int] = (0, 1, 2), **options: Any) -> Iterator[Parties]:
    """All parties, or some, with the same job."""
    with Parties([folder] * 3, [job if party in only else None for party in range(3)], **options) as parties:
        yield parties
