"""All parties as threads of this process: for tests and notebooks."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from keyquorum import _engine
from keyquorum._engine import Session
from keyquorum.backends import check_backend, open_backend
from keyquorum.model.committee import Committee
from keyquorum.model.errors import PartyError
from keyquorum.model.links import check_link, parse

from . import mac_key
from .context import PartyContext, Progress
from .sessions import prepare

Job = Callable[[PartyContext], Any]


def run_in_process(
    committee: Committee,
    job: Job,
    timeout: float = 300.0,
    progress: Progress | None = None,
    backend: str = "embedded",
    mp_spdz: str | Path | None = None,
    link: str | None = None,
) -> list[Any]:
    """Runs ``job(context)`` for every party in a thread of its own; returns the results in party order.

    The error is that of the first party whose failure no other party caused.
    ``timeout`` is in seconds, for each wait. ``link``: simulated links, see :mod:`keyquorum.model.links`.
    """
    check_backend(backend, committee, mp_spdz)
    check_link(link)
    sessions = _engine.local_sessions(committee.size, timeout, parse(link).shape if link else None)
    for session in sessions:
        prepare(session, committee)

    def one(session: Session) -> Any:
        chosen = None
        try:
            mac_key.use_in_process(session, committee)
            chosen = open_backend(backend, session, committee, mp_spdz, link or "")
            return job(PartyContext(session, committee, progress if session.party == 0 else None, chosen, link or ""))
        except BaseException as error:
            session.abort(f"{error}")
            raise
        finally:
            if chosen is not None:
                chosen.close()

    with ThreadPoolExecutor(committee.size) as pool:
        futures = [pool.submit(one, session) for session in sessions]
        errors = [future.exception() for future in futures]
    failed = [error for error in errors if error is not None]
    if failed:
        first = next((error for error in failed if not isinstance(error, _engine.NetworkError)), failed[0])
        for session in sessions:  # all sessions: the error's traceback keeps them alive, and with them the use of their MAC keys
            session.abort(f"{first}")
        raise first
    for session in sessions:
        session.close()
    return [future.result() for future in futures]


__all__ = ["Job", "PartyError", "run_in_process"]
