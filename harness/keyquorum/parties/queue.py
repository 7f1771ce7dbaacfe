"""One job at a time at a party: the jobs of a committee share the addresses and the counters of its parties.

The lock is on ``job.lock`` in the folder of the party. A local run takes the locks of all parties, in their order, before it starts any of them,
and the processes of the parties inherit the locks. ``keyquorum serve`` holds the lock only while it connects: afterwards jobs can run at the
same time. It holds ``serve.lock`` as long as it runs. A job that changes shares takes both (:func:`unserved`). It holds ``change.lock`` while it wants or has the second one: then a daemon ends its session, lends the
lock, and serves again when it is back.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from keyquorum.model.committee import Committee
from keyquorum.model.errors import CommitteeError
from keyquorum.model.locks import PAUSE as LOCK_PAUSE
from keyquorum.model.locks import FileLock, Say, say_on_stderr
from keyquorum.model.plain import Json

FILE = "job.lock"
SERVE_FILE = "serve.lock"
CHANGE_FILE = "change.lock"
SERVES = "key "
"""Begins what a daemon says of itself in its lock, which it lends."""
WISH_SECONDS = 1.0
"""Longest wait for who looks whether a daemon's lock is wanted. Another job that wants it has the party's job lock."""
LEND_SECONDS = 40.0
"""Longest wait for a daemon that is to lend its lock: it ends its batch first, in which it may wait for a message of another party."""
PATIENCE = 600.0
"""Seconds that a local run waits for the jobs before it."""


def job_lock(committee: Committee, party: int, what: str) -> FileLock:
    """The lock of a party, not taken yet."""
    return FileLock(committee.party_folder(party) / FILE, what)


def serve_lock(committee: Committee, party: int, what: str) -> FileLock:
    """The lock that a daemon of a party holds from its start to its end, not taken yet."""
    return FileLock(committee.party_folder(party) / SERVE_FILE, what, remove=True)


def change_lock(committee: Committee, party: int, what: str) -> FileLock:
    """The lock of who wants a daemon's, not taken yet."""
    return FileLock(committee.party_folder(party) / CHANGE_FILE, what, remove=True)


def describe_job(job: Json) -> str:
    """A description of a job, for messages of processes that wait for its end."""
    return f"{job.get('kind', 'a job')} of key {job['key']}" if isinstance(job.get("key"), str) else f"{job.get('kind', 'a job')}"


@contextmanager
def hold(committee: Committee, parties: Sequence[int], job: Json, patience: float = PATIENCE, say: Say = say_on_stderr) -> Iterator[list[FileLock]]:
    """Holds the locks of parties of this host while a job runs. Waits for an earlier job, and names it. Raises CommitteeError after ``patience``
    seconds."""
    until, taken = time.monotonic() + patience, list[FileLock]()
    try:
        for party in sorted(parties):
            if not committee.party_folder(party).is_dir():  # a party of another host: the caller refuses it
                continue
            lock = job_lock(committee, party, describe_job(job))
            lock.wait(until, f"party {committee.number_of(party)} of {committee.folder}", say)
            taken.append(lock)
        yield taken
    finally:
        for lock in taken:
            lock.release()


@contextmanager
def unserved(committee: Committee, parties: Sequence[int], what: str) -> Iterator[None]:
    """Keeps daemons of parties of this host from serving: one that runs ends its session, and lends its lock until the end of the block. Raises CommitteeError if one does not lend it within :data:`LEND_SECONDS`, and at
    once beside what lends none. ``what``: the work, which the daemons name. Two works at a party exclude each other by its job lock."""
    until, here = time.monotonic() + LEND_SECONDS, [party for party in sorted(parties) if committee.party_folder(party).is_dir()]
    with ExitStack() as taken:
        for party in here:
            wish = change_lock(committee, party, what)
            wish.wait(time.monotonic() + WISH_SECONDS, f"party {committee.number_of(party)} of {committee.folder}", lambda line: None)
            taken.callback(wish.release)
        for party in here:
            taken.callback(_lent(committee, party, what, until).release)
        yield


def _lent(committee: Committee, party: int, what: str, until: float) -> FileLock:
    lock = serve_lock(committee, party, what)
    while not lock.take():
        holder = lock.holder()
        if lock.path.exists() and (time.monotonic() >= until or not holder.startswith(SERVES)):
            raise CommitteeError(
                f"party {committee.number_of(party)} of {committee.folder} serves {holder}: stop keyquorum serve there, then try again"
            )
        time.sleep(LOCK_PAUSE)
    return lock
