"""Plans in one process of which one party is corrupted: what every party ends with, and a backend that changes what the party gives to programs."""

from __future__ import annotations

from collections.abc import Callable
from threading import Semaphore
from typing import Any

from keyquorum import _engine, api
from keyquorum.model.errors import CommitteeError
from keyquorum.parties import PartyContext, run_in_process

Change = Callable[[str, str, dict[str, Any]], None]
"""Gets the name of a program, its domain and the options of its run, and changes them in place."""


class Backend:
    """A backend that changes what its party gives to programs."""

    takes_joint_integers, most_targets, name = True, None, "embedded"

    def __init__(self, core: Any, change: Change) -> None:
        self.core, self.change = core, change

    def __getattr__(self, name: str) -> Any:
        return getattr(self.core, name)

    def run(self, protocol: str, domain: str, call: Any, **options: Any) -> Any:
        self.change(call.program, domain, options)
        return self.core.run(protocol, domain, call, **options)


def ends_of(protocol: str, parties: int, corrupt: int, job: Callable[[PartyContext], Any], timeout: float = 60) -> list[Any]:
    """What each party ends with: a result, or its own error. The corrupted party tells nobody what it found, and stays until the others have ended: they find it
    themselves."""
    others = Semaphore(0)

    def one(context: PartyContext) -> Any:
        try:
            return job(context)
        except (_engine.EngineError, CommitteeError) as error:
            if context.party != corrupt:
                context.session.abort(str(error))
            return error
        finally:
            if context.party != corrupt:
                others.release()
            else:
                assert all(others.acquire(timeout=timeout) for _ in range(parties - 1))

    return run_in_process(api.in_process_committee(parties, protocol), one)
