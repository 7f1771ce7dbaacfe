"""Runs a plan with one corrupted party, and says what the honest parties got."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from keyquorum import _engine
from keyquorum._engine import Session
from keyquorum.model.errors import KeyQuorumError

from .changes import ABOVE, WIRE, Change, DeviatingSession, Deviation, Message, Wire

DEADLINE = 60.0
"""Seconds after which a party that has not ended counts as hung: every wait of the engine ends much earlier."""
PATIENCE = 20.0
"""Seconds of a wait for a message that will come."""
IMPATIENCE = 0.5
"""Seconds of a wait where a message is not sent."""
SET_UPS = 10
"""Tries to set up the sessions of a run."""
CLASSES = ("right", "check", "protocol", "network", "refused", "internal")
"""How a run ends for the honest parties. right: nothing fails, and results are right. check: a check finds that a party cheats. protocol: the parties disagree, or a message breaks the
protocol. network: a message does not come, has another length, or a party broke off. refused: the harness refuses something. internal: none of these."""
WRONG, HUNG = "wrong", "hung"
"""A run in which an honest party gets a wrong result, or does not end."""


class Begin:
    """A plan's party calls it when its set-up is done: changes count from there."""

    def __init__(self, wire: Wire | None) -> None:
        self._wire = wire

    def __call__(self) -> None:
        if self._wire is not None:
            self._wire.begin()

    def end(self) -> None:
        """The plan has ended: what is sent from here on only judges it."""
        if self._wire is not None:
            self._wire.begun = False


Job = Callable[[Any, Deviation, Begin, int], Any]
"""One party of a plan: session, deviation, the call that begins it, and the number of a party that is honest."""


@dataclass(frozen=True)
class Plan:
    """A program or plan. parties: their number. job: of each. right: whether the results of these honest parties are right, by party; parties that failed are missing."""

    name: str
    parties: int
    job: Job
    right: Callable[[Mapping[int, Any]], bool]


@dataclass
class Outcome:
    """What a run gave: the class of its end, the reason in words, the corrupted party's messages and calls, and whether it deviated at all."""

    end: str
    reason: str
    sent: list[Message]
    calls: dict[str, int]
    deviated: bool


@dataclass(frozen=True)
class Case:
    """A plan, its corrupted party, and how it deviates. omitted: checks that the honest parties leave out."""

    plan: Plan
    party: int
    change: Change | None
    omitted: tuple[str, ...] = ()
    other_session: tuple[Message, ...] = field(default=(), repr=False)

    @property
    def named(self) -> str:
        """For messages."""
        change = "honest" if self.change is None else f"{self.change.kind} {self.change.index}"
        return f"{self.plan.name}: party {self.party}, {change}" + (f", without {', '.join(self.omitted)}" if self.omitted else "")


def _class_of(error: BaseException) -> str:
    if isinstance(error, _engine.CheckError):
        return "check"
    if isinstance(error, _engine.ProtocolError | _engine.BurnedError | _engine.StoreError):
        return "protocol"
    if isinstance(error, _engine.NetworkError):
        return "network"
    return "refused" if isinstance(error, KeyQuorumError) else "internal"


def _sessions(tamper: list[Wire | None], omitted: Sequence[str], patience: float) -> list[Session]:
    """The parties' sessions. Nothing deviates before a plan begins, so a set-up that was too slow for an impatient party is tried again."""
    for _ in range(SET_UPS - 1):
        try:
            return _engine.tampered_sessions(tamper, list(omitted), patience)
        except _engine.NetworkError:
            continue
    return _engine.tampered_sessions(tamper, list(omitted), patience)


def run(case: Case) -> Outcome:
    """Runs a case. The reason is that of the first honest party, in the order of :data:`CLASSES`, that did not just lose another one."""
    plan, corrupt = case.plan, case.party
    wire, deviation = Wire(case.change, case.other_session), Deviation(case.change)
    above = bool(case.omitted) and case.change is not None and not case.change.on_wire
    tamper = [wire if party == corrupt and not above else None for party in range(plan.parties)]
    lost = case.change is not None and case.change.kind == "drop"
    sessions = _sessions(tamper, case.omitted, IMPATIENCE if lost else PATIENCE)
    honest = next(party for party in range(plan.parties) if party != corrupt)
    results: dict[int, Any] = {}
    errors: dict[int, BaseException] = {}

    def one(session: Session) -> None:
        party = session.party
        bad = party == corrupt
        try:
            own = DeviatingSession(session, deviation) if bad else session
            results[party] = plan.job(own, deviation if bad else Deviation(), Begin(wire if bad else None), honest)
            session.close()
        except BaseException as error:
            errors[party] = error
            session.abort(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=one, args=(session,), daemon=True) for session in sessions]
    end = time.monotonic() + DEADLINE
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    calls, deviated = deviation.calls, wire.done or deviation.done
    if any(thread.is_alive() for thread in threads):
        return Outcome(HUNG, "a party did not end", wire.sent, calls, deviated)
    got = {party: result for party, result in results.items() if party != corrupt}
    failed = {_class_of(error): error for party, error in errors.items() if party != corrupt}
    if got and not plan.right(got):
        return Outcome(WRONG, f"results {sorted(got)} are not right", wire.sent, calls, deviated)
    first = next((name for name in ("internal", *CLASSES) if name in failed), "right")
    reason = f"{failed[first]}" if first in failed else ""
    return Outcome(first, reason, wire.sent, calls, deviated)


NOTICED = frozenset({"check", "protocol", "network"})
ALLOWED: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(WIRE, NOTICED | {"right"}),
    **dict.fromkeys(("shorter", "longer", "hash"), NOTICED),
    **dict.fromkeys(("joint", "numbers", "shares", "input", "public"), NOTICED | {"right"}),
}
"""Ends of a run with each kind of change. ``right``: the message or value concerns no honest party, or it is another one that the party may choose. A message of another length, and another
digest, are noticed always."""


def honest_run(plan: Plan, party: int) -> Outcome:
    """The messages and calls of a party that follows the plan. Raises AssertionError if the plan does not give right results."""
    outcome = run(Case(plan, party, None))
    assert outcome.end == "right", f"{plan.name}: {outcome.end}: {outcome.reason}"
    return outcome


def cases(plan: Plan, party: int, kinds: Iterable[str] = (*WIRE, *ABOVE), at_most: int = 0) -> list[Case]:
    """All cases of a corrupted party, of each kind at every place, or at ``at_most`` places spread over the plan."""
    followed = honest_run(plan, party)
    found = []
    for kind in kinds:
        count = len(followed.sent) if kind in WIRE else followed.calls[kind]
        places = range(count) if not at_most or count <= at_most else sorted({(2 * i + 1) * count // (2 * at_most) for i in range(at_most)})
        found += [Case(plan, party, Change(kind, place), other_session=tuple(followed.sent)) for place in places]
    return found


@dataclass
class Tally:
    """Counts of ends by kind of change; failures in words."""

    ends: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    cases: int = 0

    def add(self, case: Case, outcome: Outcome) -> None:
        """Judges an outcome: nothing wrong, nothing hung, and an end that the kind of change may have."""
        assert case.change is not None
        self.cases += 1
        self.ends[case.change.kind, outcome.end] += 1
        # A run may have fewer messages than the honest one before it, as drawing numbers below a prime is repeated at times: then it has no such place, and is another honest run.
        if outcome.end not in ALLOWED[case.change.kind] | (frozenset() if outcome.deviated else {"right"}):
            self.failures.append(f"{case.named}: {outcome.end}: {outcome.reason}")

    def count(self, end: str) -> int:
        """Runs that ended so."""
        return sum(number for (_, found), number in self.ends.items() if found == end)
