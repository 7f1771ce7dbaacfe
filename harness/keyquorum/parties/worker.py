"""One party of a committee in this process, over TLS; and the worker process that a local run starts for each party."""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from keyquorum import _engine
from keyquorum.backends import check_backend, open_backend
from keyquorum.fhe.errors import SecurityWarning
from keyquorum.model.arguments import checked
from keyquorum.model.bridge import check_accepted, check_from, check_kept, check_to
from keyquorum.model.builds import build_entries
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CommitteeError, KeyQuorumError, PartyError, PartyInterrupted, describe_os_error
from keyquorum.model.links import parse
from keyquorum.model.plain import Json
from keyquorum.model.subset import ABSENT, check_absent

from . import mac_key
from .context import PartyContext, Progress
from .jobs import add_package, backend_of, check_alone, check_job, job_entries, link_of, run_job, runs
from .queue import hold
from .sessions import prepare
from .shaping import shaping
from .traces import forbid_core_dumps, sweep

YOUNG_OBJECTS = 20_000
"""New Python objects between two runs of the garbage collector. Programs make many short-lived objects and few reference cycles; at Python's
default the collector takes a twentieth of the time."""
INTERRUPTED = 130
"""Exit code after Ctrl-C."""


ABORT_SECONDS = 3.0
"""Seconds for which a party that cannot run a job tries to send the reason to the others."""

Waiting = Callable[[list[int]], None]
"""Called about ten times a second with the parties that are not connected yet."""
Failed = Callable[[BaseException], None]
"""Called with the reason of a failure, before it is sent to the others, which may take seconds."""


def description(committee: Committee, job: Json, by_kernel: bool = False) -> str:
    """Everything that the parties of a job must agree on, a line ``name=value`` each: the first line in which two parties differ is named in the
    error."""
    entries = [*build_entries(), *job_entries(job), *committee.entries()]
    # Parties that shape in two ways would delay some messages twice.
    entries += [("links shaped by", "tc netem")] if by_kernel else []
    return "\n".join(f"{name}={value}" for name, value in entries)


def open_session(
    committee: Committee, party: int, job: Json, connect_timeout: float, io_timeout: float, waiting: Waiting | None = None
) -> _engine.Session:
    """Connects to all other parties (mutual TLS 1.3, pinned certificates) and compares the jobs."""
    committee.check_complete()
    link = shaping(link_of(job))
    session = _engine.Session.tls(
        party,
        str(identity_of(committee, party)),
        [(p.host, p.port, p.fingerprint) for p in committee.parties],
        committee.digest,
        description(committee, job, link.by_kernel),
        None,
        connect_timeout,
        io_timeout,
        parse(link.engine).shape if link.engine else None,
        waiting,
    )
    prepare(session, committee)
    return session


def identity_of(committee: Committee, party: int) -> Path:
    """The path of a party's identity. Raises CommitteeError or EngineError if the identity is missing, readable by others, or not the one that the
    committee file lists."""
    path = committee.identity_path(party)
    if not path.exists():
        raise CommitteeError(f"{path}: the identity of party {committee.number_of(party)} is not on this host: run keyquorum init there")
    fingerprint, listed = _engine.identity_fingerprint(str(path)), committee.parties[party].fingerprint
    if listed and fingerprint != listed:
        raise CommitteeError(
            f"{path} has the fingerprint {fingerprint}, but committee.toml lists {listed} for party {committee.number_of(party)}: restore the identity, or correct "
            "the file at all parties"
        )
    return path


def check_party(committee: Committee, party: int, job: Json) -> None:
    """Refuses a job that this party cannot run, from what is on this host alone."""
    check_job(job)
    identity_of(committee, party)
    mac_key.check_party(committee, party)
    link_of(job)
    check_backend(backend_of(job)[0], committee, backend_of(job)[1])
    check_alone(committee, party, job)


def reason_of(party: int, error: BaseException) -> str:
    """The text about a failure that is sent to the others."""
    if isinstance(error, (KeyboardInterrupt, PartyInterrupted)):
        return f"party {party} was interrupted"
    text = str(error)
    return text if text.startswith(f"party {party} ") else f"party {party} failed: {text}"


def _send_abort(committee: Committee, party: int, job: Json, error: BaseException) -> None:
    """Connects to the parties that listen, and sends them the reason why this party does not run the job."""
    reason, until = reason_of(committee.number_of(party), error), time.monotonic() + ABORT_SECONDS

    def waiting(missing: list[int]) -> None:
        if time.monotonic() > until:
            raise PartyError(reason)

    with suppress(KeyQuorumError, _engine.EngineError, OSError):
        open_session(committee, party, job, 2 * ABORT_SECONDS, 2 * ABORT_SECONDS, waiting).abort(reason)


@checked
def run_party(
    folder: Path,
    party: int,
    job: Json,
    progress: Progress | None = None,
    connect_timeout: float = 30.0,
    io_timeout: float = 120.0,
    *,
    waiting: Waiting | None = None,
    failed: Failed | None = None,
    locked: bool = False,
    to: str | Path | None = None,
    old: str | Path | None = None,
    accepted: str | None = None,
    keep_old: bool = False,
    absent: Sequence[int] = (),
) -> Json:
    """Runs one party of ``job`` and returns its result, with the key ``report`` added. Sends the reason of a failure to the others.

    Files, hashes, key, shares and policy are checked before the party connects. ``connect_timeout``: seconds to wait for another job at this party,
    which is named on standard error, and again seconds to wait for the other parties. ``io_timeout``: seconds to wait for a message. ``locked``: the
    process that started this one holds the party's lock. ``to``: of a ``reshare`` job, at old members: the folder of the new committee, or its digest (64 hexadecimal digits); a job for another one is
    refused before the party connects, see :func:`.check_to`. ``old``: the same at new members, of the old committee (:func:`.check_from`). ``accepted``: the origin that such a job may accept (:func:`.check_accepted`). ``keep_old``: whether such a job may leave the old committee its shares (:func:`.check_kept`). ``absent``: the parties without which the job may run, exactly those that it names (:func:`.check_absent`). Raises PartyInterrupted after Ctrl-C.
    """
    committee = Committee.load(folder)
    if not 0 <= party < committee.size:
        raise CommitteeError(f"there is no party {party} in {folder}: choose 0 to {committee.size - 1}")
    check_job(job)
    committee = runs(committee, job)
    party = committee.index_of(party)
    check_to(committee, party, to)
    check_from(committee, party, old)
    check_accepted(committee, job, accepted)
    check_kept(committee, job, keep_old)
    check_absent(job.get(ABSENT) or (), absent)
    with hold(committee, [] if locked else [party], job, connect_timeout):
        sweep(committee.party_folder(party))
        return _run(committee, party, job, progress, (connect_timeout, io_timeout), waiting, failed)


def _run(
    committee: Committee,
    party: int,
    job: Json,
    progress: Progress | None,
    timeouts: tuple[float, float],
    waiting: Waiting | None,
    failed: Failed | None,
) -> Json:
    """See :func:`run_party`; the party's lock is held."""
    session, backend, number = None, None, committee.number_of(party)
    try:
        check_party(committee, party, job)
        session = open_session(committee, party, job, *timeouts, waiting)
        mac_key.use_kept(session, committee, party)
        name, mp_spdz = backend_of(job)
        backend = open_backend(name, session, committee, mp_spdz, shaping(link_of(job)).engine)
        context = PartyContext(session, committee, progress, backend, link_of(job))
        result = run_job(context, job)
        result["report"] = context.report.to_json()
        if link_of(job):
            result["links"] = shaping(link_of(job)).notice
    except BaseException as error:
        seen = PartyInterrupted(f"party {number} was interrupted") if isinstance(error, KeyboardInterrupt) else error
        if failed is not None:
            failed(seen)
        if session is not None:
            session.abort(reason_of(number, seen))
        elif not isinstance(error, (_engine.NetworkError, KeyboardInterrupt)):
            _send_abort(committee, party, job, seen)
        if seen is error:
            raise
        raise seen from None
    finally:
        if backend is not None:
            backend.close()
    session.close()
    return result


def _emit(event: Json) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def _die_with_parent() -> None:
    """Ends this process when the process that started it ends, which closes our standard input."""
    sys.stdin.read()
    os._exit(3)


def collect_garbage_less() -> None:
    """Sets the threshold of the garbage collector, see :data:`YOUNG_OBJECTS`. For a process that only runs a party."""
    gc.set_threshold(YOUNG_OBJECTS)


def main() -> int:
    """Entry of the worker process: ``python -m keyquorum.parties``; the task is one line of JSON on standard input, from the process that starts it. It
    names the packages that have jobs.

    Writes one JSON object a line: progress, then result or error. Exit code 0, 1 after an error, 130 after Ctrl-C.
    """
    forbid_core_dumps()
    collect_garbage_less()
    # The parent process has warned already, and it takes our last line on standard error as the reason if we die.
    warnings.simplefilter("ignore", SecurityWarning)
    task = json.loads(sys.stdin.readline())
    threading.Thread(target=_die_with_parent, daemon=True).start()

    def progress(phase: str, done: int, total: int) -> None:
        _emit({"event": "progress", "phase": phase, "done": done, "total": total})

    def failed(error: BaseException) -> None:
        # A network error is secondary: another party caused it.
        secondary = isinstance(error, _engine.NetworkError) and not isinstance(error, _engine.LocalError)
        message = describe_os_error(error) if isinstance(error, OSError) else str(error)
        _emit({"event": "error", "type": type(error).__name__, "message": message, "secondary": secondary})

    reported: list[BaseException] = []

    def failed_once(error: BaseException) -> None:
        if not reported:
            reported.append(error)
            failed(error)

    try:
        for prefix, package in task.get("packages", {}).items():
            add_package(prefix, package)
        result = run_party(
            Path(task["folder"]), task["party"], task["job"], progress, task["connect_timeout"], task["io_timeout"], failed=failed_once,
            locked=bool(task.get("locked")), to=task.get("to"), old=task.get("old"), accepted=task.get("accepted"), keep_old=bool(task.get("keep_old")), absent=task.get("absent", ()),
        )  # fmt: skip
    except (KeyQuorumError, _engine.EngineError, OSError) as error:
        failed_once(error)
        return INTERRUPTED if isinstance(error, PartyInterrupted) else 1
    except KeyboardInterrupt:
        failed_once(PartyInterrupted(f"party {task['party']} was interrupted"))
        return INTERRUPTED
    _emit({"event": "result", "result": result})
    return 0
