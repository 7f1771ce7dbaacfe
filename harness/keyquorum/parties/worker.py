"""One party of a committee in this process, over TLS; and the worker process that a local run starts for each party."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

from keyquorum import _engine
from keyquorum.backends import open_backend
from keyquorum.fhe.errors import SecurityWarning
from keyquorum.model.committee import Committee
from keyquorum.model.errors import KeyQuorumError
from keyquorum.model.links import parse

from . import mac_key
from .context import PartyContext, Progress
from .jobs import backend_of, link_of, run_job
from .shaping import shaping

YOUNG_OBJECTS = 20_000
"""Objects of Python between two searches for cycles. Programs make many short-lived objects and few cycles; at Python's default the
searches take a twentieth of the time."""


def job_digest(job: dict[str, Any]) -> str:
    """Text that all parties of a job must have in common: its kind, and a hash of everything but the party's own paths."""
    common = {k: v for k, v in job.items() if k != "local"}
    digest = hashlib.sha256(json.dumps(common, sort_keys=True).encode()).hexdigest()[:32]
    return f"{job['kind']} {digest}"


def open_session(
    committee: Committee, party: int, job: dict[str, Any], connect_timeout: float, io_timeout: float
) -> _engine.Session:
    """Connects to all other parties (mutual TLS 1.3, pinned certificates) and compares what each is about to run."""
    committee.check_complete()
    link = shaping(link_of(job))
    identity = committee.identity_path(party)
    if not identity.exists():
        raise KeyQuorumError(f"{identity}: the identity of party {party} is not on this host: run keyquorum init there")
    session = _engine.Session.tls(
        party,
        str(identity),
        [(p.host, p.port, p.fingerprint) for p in committee.parties],
        committee.digest,
        # Parties that shape in two ways would delay some messages twice.
        job_digest(job) + (" netem" if link.by_kernel else ""),
        None,
        connect_timeout,
        io_timeout,
        parse(link.engine).shape if link.engine else None,
    )
    session.set_openings(committee.openings)
    return session


def run_party(
    folder: Path,
    party: int,
    job: dict[str, Any],
    progress: Progress | None = None,
    connect_timeout: float = 30.0,
    io_timeout: float = 120.0,
) -> dict[str, Any]:
    """Runs one party of ``job`` and returns its result, with the key ``report`` added. Tells the others if it fails."""
    committee = Committee.load(folder)
    if not 0 <= party < committee.size:
        raise KeyQuorumError(f"there is no party {party} in {folder}: choose 0 to {committee.size - 1}")
    mac_key.check_party(committee, party)
    session = open_session(committee, party, job, connect_timeout, io_timeout)
    backend = None
    try:
        if committee.authenticated:
            mac_key.use(session, committee.mac_key_path(party))
        name, mp_spdz = backend_of(job)
        backend = open_backend(name, session, committee, mp_spdz, shaping(link_of(job)).engine)
        context = PartyContext(session, committee, progress, backend, link_of(job))
        result = run_job(context, job)
        result["report"] = context.report.to_json()
        if link_of(job):
            result["links"] = shaping(link_of(job)).notice
    except BaseException as error:
        session.abort(f"party {party} failed: {error}")
        raise
    finally:
        if backend is not None:
            backend.close()
    session.close()
    return result


def _emit(event: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def _die_with_parent() -> None:
    """Ends this process when the process that started it ends: its end of our standard input closes."""
    sys.stdin.read()
    os._exit(3)


def search_cycles_less() -> None:
    """For a process that does nothing but run a party."""
    gc.set_threshold(YOUNG_OBJECTS)


def main() -> int:
    """Entry of the worker process: ``python -m keyquorum.parties``; the task is one line of JSON on standard input.

    Writes one JSON object a line: progress, then result or error. Exit code 0, or 1 after an error.
    """
    search_cycles_less()
    # Who started us has warned; what we write there is told as the reason if we die.
    warnings.simplefilter("ignore", SecurityWarning)
    task = json.loads(sys.stdin.readline())
    threading.Thread(target=_die_with_parent, daemon=True).start()

    def progress(phase: str, done: int, total: int) -> None:
        _emit({"event": "progress", "phase": phase, "done": done, "total": total})

    try:
        result = run_party(
            Path(task["folder"]), task["party"], task["job"], progress, task["connect_timeout"], task["io_timeout"]
        )
    except (KeyQuorumError, _engine.EngineError, OSError) as error:
        network = isinstance(error, _engine.NetworkError)
        _emit({"event": "error", "type": type(error).__name__, "message": str(error), "secondary": network})
        return 1
    _emit({"event": "result", "result": result})
    return 0
