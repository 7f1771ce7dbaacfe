"""Plans in one process of which some parties are corrupted: what every party ends with, with the checks of the others and without."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from threading import Barrier, Semaphore
from typing import Any

import pytest
from keyquorum import _engine
from keyquorum.backends import open_backend
from keyquorum.model.committee import Committee
from keyquorum.model.errors import BurnedKeyError, CommitteeError, KeyQuorumError
from keyquorum.model.subset import Present
from keyquorum.parties import PartyContext, mac_key
from keyquorum.parties.sessions import prepare

Change = Callable[[str, str, dict[str, Any]], None]
"""Gets the name of a program, its domain and the options of its run, and changes them in place."""
Proxy = Callable[[Any], Any]
"""Gets a session, and returns it or another one."""


class BreaksOff(CommitteeError):
    """Ends the party that raises it, as the adversary wants it: the others see that its connections are closed."""


class Other:
    """Something with other methods, such as a session."""

    def __init__(self, core: Any, **methods: Any) -> None:
        self.core, self.methods = core, methods

    def __getattr__(self, name: str) -> Any:
        return self.methods.get(name) or getattr(self.core, name)


def nothing(program: str, domain: str, options: dict[str, Any]) -> None:
    """A change that changes nothing."""


def same(session: Any) -> Any:
    """A proxy that changes nothing."""
    return session


def deviating(context: PartyContext, change: Change = nothing, session: Proxy = same) -> PartyContext:
    """The same context of a party that changes what it gives to programs, or what it does with its session."""

    def run(protocol: str, domain: str, call: Any, **options: Any) -> Any:
        change(call.program, domain, options)
        return backend.run(protocol, domain, call, **options)

    changed, backend = copy(context), context.backend
    changed.session = session(context.session)
    if change is not nothing:
        changed.backend = Other(backend, run=run)  # type: ignore[assignment]
    return changed


def breaks_off_after_toss(session: Any) -> Any:
    """The party stops when it has seen what is tossed under the MAC key: the subsets of the tests."""
    begun: list[bool] = []

    def begin() -> None:
        begun.append(True)
        session.begin_under_mac_key()

    def toss(count: int) -> bytes:
        tossed: bytes = session.toss(count)
        if begun:
            raise BreaksOff("as the adversary wants it")
        return tossed

    return Other(session, begin_under_mac_key=begin, toss=toss)


def unnoted(session: Any) -> Any:
    """The party does not note that it uses its MAC key."""
    return Other(session, begin_under_mac_key=lambda: None)


class Ends(list[Any]):
    """What each party ends with: a result, or its own error. ``corrupt``: the corrupted parties."""

    corrupt: Collection[int] = ()

    def found(self, said: str, kind: type[Exception] = _engine.CheckError) -> None:
        """No honest party has a result, and the reason is this."""
        honest = [end for party, end in enumerate(self) if party not in self.corrupt]
        assert all(isinstance(end, Exception) for end in honest), honest
        assert any(isinstance(end, kind) and said in str(end) for end in honest), honest


def ends_of(
    committee: Committee,
    job: Callable[[PartyContext], Any],
    corrupt: Mapping[int, Change] | None = None,
    session: Proxy = same,
    omitted: Sequence[str] = (),
    wire: Any = None,
    apart: Collection[int] = (),
    silent: bool = True,
    patience: float = 60,
) -> Ends:
    """Runs a plan. ``corrupt``: what these parties change. ``silent``: they tell nobody what they found, and stay until the others have ended, who find it themselves. ``session``: what each party
    does with its session. ``omitted``: checks that nobody makes. ``wire``: sees and changes the messages of party 0. None of the parties ``apart`` breaks off before all of them have an error.
    ``patience``: in seconds, of each wait."""
    corrupt, others = corrupt or {}, Semaphore(0)
    failed = Barrier(max(len(apart), 1), timeout=patience)

    def one(raw: Any) -> Any:
        party, mute = raw.party, silent and raw.party in corrupt
        try:
            if committee.authenticated:
                mac_key.use_in_process(raw, committee)
            if isinstance(committee, Present):
                prepare(raw, committee)
            context = PartyContext(raw, committee, None, open_backend("embedded", raw, committee, None, ""), "")
            return job(deviating(context, corrupt.get(party, nothing), session))
        except (_engine.EngineError, KeyQuorumError) as error:
            if party in apart:
                failed.wait()
            if not mute or isinstance(error, BreaksOff):
                raw.abort(str(error))
            return error
        except BaseException as error:
            raw.abort(f"a test failed: {error!r}")
            raise
        finally:
            if party not in corrupt:
                others.release(max(len(corrupt), 1))
            elif mute:
                assert all(others.acquire(timeout=patience) for _ in range(committee.size - len(corrupt)))

    sessions = _engine.tampered_sessions([wire, *[None] * (committee.size - 1)], list(omitted), patience)
    if wire is not None:
        wire.begin()
    with ThreadPoolExecutor(committee.size) as pool:
        ends = Ends(pool.map(one, sessions))
    ends.corrupt = corrupt
    for each in sessions:  # errors keep sessions alive, and with them the use of their MAC keys
        if any(isinstance(end, Exception) for end in ends):
            each.abort("the run has ended")
        else:
            each.close()
    return ends


def check_the_toss_burns_the_key(committee: Committee, job: Callable[[PartyContext], Any], corrupt: int, ablated: bool) -> None:
    """The corrupted one of two parties breaks off when it has seen the subsets of the tests: the MAC key of the other one is burned. ``ablated``: the other one does not note the toss, and keeps its key."""
    session = {corrupt: breaks_off_after_toss, 1 - corrupt: unnoted if ablated else same}
    ends = ends_of(committee, job, {corrupt: nothing}, lambda raw: session[raw.party](raw))
    assert all(isinstance(end, Exception) for end in ends) and isinstance(ends[corrupt], BreaksOff)
    key = committee.mac_key_path(1 - corrupt)
    if ablated:
        mac_key.check(key)
    else:
        with pytest.raises(BurnedKeyError):
            mac_key.check(key)
