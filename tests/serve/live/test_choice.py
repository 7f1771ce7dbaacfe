"""Which parties serve next: all parties together reach a view whatever is lost on the way, and never compute in two views at once."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from keyquorum.model.errors import PartyError
from keyquorum.serve.live.choice import Join, Patience, Propose, State, Statement, View, Wait, next_step, read_statement

OFFER, OTHER = "ab" * 32, "cd" * 32


def said(party: int, state: State = State.IDLE, view: View | None = None, proposed: View | None = None, offer: str = OFFER) -> Statement:
    return Statement(party, offer, state, view, proposed)


def test_the_lowest_live_party_proposes() -> None:
    """t + 1 parties, which are the lowest ones, and after failures others."""
    others = {party: said(party) for party in (2, 3, 4)}
    assert next_step(said(1), others, 3) == Propose(View(1, (1, 2, 3)))
    assert next_step(said(1), others, 3, failed=1) == Propose(View(1, (2, 3, 4)))
    assert next_step(said(1), others, 3, unusable={(1, 2, 3)}) == Propose(View(1, (2, 3, 4)))
    assert next_step(said(1), {2: said(2), 3: said(3)}, 3, unusable={(1, 2, 3)}) == Propose(View(1, (1, 2, 3)))  # there are no others
    assert next_step(said(2), {1: said(1), 3: said(3)}, 3) == Wait()
    assert next_step(said(1), {party: said(party) for party in (2,)}, 3) == Wait()
    assert next_step(said(1), {2: said(2), 3: said(3, offer=OTHER)}, 3) == Wait()  # with other options


def test_another_party_proposes_where_the_lowest_one_does_not() -> None:
    """It hears nobody, perhaps. Each party that had its time may propose, and takes those who follow it first."""
    others = {party: said(party) for party in (0, 2, 3, 4)}
    assert next_step(said(1), others, 3) == Wait() and next_step(said(2), {0: said(0), 1: said(1), 3: said(3)}, 3, waited=1) == Wait()
    assert next_step(said(1), others, 3, waited=1) == Propose(View(1, (1, 2, 3)))
    assert next_step(said(1), others, 3, failed=3, waited=7) == Propose(View(1, (0, 1, 4)))
    assert next_step(said(1), {0: said(0)}, 3, waited=9) == Wait()


def test_lower_parties_have_their_time_to_propose() -> None:
    """One after another; all of them anew when one proposes, while others serve, and after there were too few parties."""
    patience, live = Patience(10.0), {party: said(party) for party in (0, 1, 3, 4)}

    def at(now: float, live: dict[int, Statement] = live) -> int:
        return patience.waited(said(2), live, 3, now)

    patience.begin(5.0)
    assert [at(now) for now in (6.0, 15.0, 24.0, 25.0)] == [0, 1, 1, 2]
    assert at(26.0, {**live, 4: said(4, proposed=View(9, (2, 3, 4)))}) == 2, "a higher party"
    assert at(26.0, {**live, 1: said(1, proposed=View(4, (0, 1, 3)))}) == 0 and at(36.0, {**live, 1: said(1, proposed=View(4, (0, 1, 3)))}) == 1
    assert at(37.0, {**live, 1: said(1, proposed=View(5, (0, 1, 3)))}) == 0
    assert at(50.0, {**live, 3: said(3, State.SERVING, View(5, (0, 1, 3)))}) == 0 and at(59.0) == 0 and at(60.0) == 1
    assert at(61.0, {0: said(0), 3: said(3, offer=OTHER)}) == 0 and at(70.9) == 0


@pytest.mark.parametrize(("size", "needed"), [(3, 2), (5, 3), (7, 4), (9, 5)])
def test_all_members_are_proposed_in_the_end(size: int, needed: int) -> None:
    """Each set of them, since any may be the only one that can serve. Rows of parties are not enough: each row of three of five has one of parties 0 and 2."""
    live, wanted, found = {party: said(party) for party in range(1, size)}, math.comb(size, needed), set[tuple[int, ...]]()
    for failed in range(30 * wanted):
        step = next_step(said(0), live, needed, failed)
        assert isinstance(step, Propose)
        found.add(step.view.members)
        if failed == size - 1:
            assert len(found) == size, "each row once"
    assert len(found) == wanted


def test_numbers_of_views_grow() -> None:
    old = View(7, (0, 1, 2))
    assert next_step(said(1, view=old), {2: said(2, view=old), 3: said(3)}, 3) == Propose(View(8, (1, 2, 3)))
    assert next_step(said(1), {2: said(2), 3: said(3, proposed=View(9, (0, 3, 4)))}, 3) == Propose(View(10, (1, 2, 3)))


def test_the_newest_proposal_counts_once() -> None:
    """Of two with one number that of the lower party; not one whose members are not all live; and never again once it was joined."""
    view, rival, gone = View(3, (1, 2, 3)), View(3, (2, 3, 4)), View(9, (0, 2, 3))
    live = {1: said(1, proposed=view), 3: said(3, proposed=gone), 4: said(4, proposed=rival)}
    assert next_step(said(2), live, 3) == Join(view)
    assert next_step(said(2, view=view), live, 3) == Wait()  # the others have not joined
    joined = {party: said(party, State.JOINING if party != 4 else State.IDLE, view) for party in (1, 3, 4)}
    assert next_step(said(2, view=view), joined, 3) == Wait()


def test_others_serve() -> None:
    view = View(4, (1, 2, 3))
    live = {party: said(party, State.SERVING, view) for party in (1, 2, 3)}
    assert next_step(said(0), live, 3) == Wait(view)


@dataclass(eq=False)
class Party:
    """A party of the simulation. ``seen``: what it last heard of the others; ``deaf``: it hears nobody, and others hear it; ``idle``: its steps in no view."""

    number: int
    up: bool = True
    state: State = State.IDLE
    view: View | None = None
    proposed: View | None = None
    age: int = 0
    failed: int = 0
    deaf: bool = False
    idle: int = 0
    patience: Patience = field(default_factory=lambda: Patience(100))
    seen: dict[int, Statement] = field(default_factory=dict)

    def statement(self) -> Statement:
        return Statement(self.number, OFFER, self.state, self.view, self.proposed)


class Session:
    """Parties that opened a view together, and those of them that have not left."""

    def __init__(self, view: View, members: list[Party]) -> None:
        self.view, self.members, self.inside = view, members, list(members)


class Simulation:
    """Parties that hear one another late, and die and come back. A session exists once all members of a view have joined it, and ends for each member some time after one is lost."""

    def __init__(self, size: int, needed: int, seed: int) -> None:
        self.rng, self.needed = random.Random(seed), needed
        self.parties = [Party(number) for number in range(size)]
        self.sessions, self.opened = list[Session](), list[Session]()
        self.takes_over = True

    def step(self) -> None:
        party = self.rng.choice([party for party in self.parties if party.up])
        for other in self.parties:
            if other is not party and not party.deaf and self.rng.random() < 0.5:
                if other.up:
                    party.seen[other.number] = other.statement()
                else:
                    party.seen.pop(other.number, None)
        if party.state is State.IDLE:
            self._idle(party)
        else:
            self._in_view(party)

    def _idle(self, party: Party) -> None:
        if party.proposed is not None:
            party.age += 1
            if party.age > 40:
                party.proposed, party.failed = None, party.failed + 1
        party.idle += 1
        waited = party.patience.waited(party.statement(), party.seen, self.needed, party.idle) if self.takes_over else 0
        step = next_step(party.statement(), party.seen, self.needed, party.failed, waited=waited)
        if isinstance(step, Join):
            party.view, party.state, party.age = step.view, State.JOINING, 0
        elif isinstance(step, Propose):
            party.proposed, party.age = step.view, 0

    def _in_view(self, party: Party) -> None:
        assert party.view is not None
        members = [self.parties[number] for number in party.view.members]
        session = self._session_of(party)
        if session is not None:
            if any(member not in session.inside for member in members):
                self._leave(party)
        elif all(m.up and m.state is State.JOINING and m.view == party.view for m in members):
            self._open(Session(party.view, members))
        elif self.rng.random() < 0.2:
            party.state = State.IDLE

    def _open(self, session: Session) -> None:
        """Nobody is in two sessions, and nobody opens a view twice (a party that was started again is another one: it knows nothing of views before)."""
        for party in session.inside:
            assert self._session_of(party) is None, (party.number, session.view)
            assert not any(one.view == session.view and any(party is was for was in one.members) for one in self.opened), (party.number, session.view)
            party.state = State.SERVING
        self.sessions.append(session)
        self.opened.append(session)

    def _session_of(self, party: Party) -> Session | None:
        return next((session for session in self.sessions if party in session.inside), None)

    def _leave(self, party: Party) -> None:
        party.state = State.IDLE
        for session in self.sessions:
            session.inside = [other for other in session.inside if other is not party]

    def kill(self, number: int) -> None:
        """The others notice it when they take their next steps."""
        self._leave(self.parties[number])
        self.parties[number] = Party(number, up=False)

    def serving(self) -> list[Session]:
        """Sessions that no member has left."""
        return [session for session in self.sessions if len(session.inside) == len(session.members)]


@pytest.mark.parametrize(("size", "needed"), [(3, 2), (4, 2), (5, 3), (7, 4)])
def test_parties_serve_again_after_losses(size: int, needed: int) -> None:
    """Some die and come back at any time, as many as may be lost. Then, within a bounded number of steps, t + 1 parties serve together. No view opens twice (:meth:`Simulation._open`)."""
    for seed in range(25):
        sim = Simulation(size, needed, seed)
        for _ in range(4):
            for _ in range(sim.rng.randrange(200)):
                sim.step()
            for victim in sim.rng.sample(range(size), size - needed):
                sim.kill(victim)
            for _ in range(4000):
                sim.step()
                if sim.serving():
                    break
            assert sim.serving(), (size, seed)
            for party in sim.parties:
                party.up = True


@pytest.mark.parametrize("takes_over", [True, False], ids=["taken over", "ablated"])
@pytest.mark.parametrize(("size", "needed"), [(3, 2), (5, 3), (7, 4)])
def test_parties_that_hear_nobody_do_not_stop_the_others(size: int, needed: int, takes_over: bool) -> None:
    """As behind a firewall, or with wrong addresses of the others: all others hear that they are live, and they propose nothing. Where the next party does not propose for them, nobody ever serves."""
    for seed in range(25):
        sim = Simulation(size, needed, seed)
        sim.takes_over = takes_over
        for party in sim.parties:
            party.deaf = party.number < size - needed
            party.seen = {} if party.deaf else {other.number: other.statement() for other in sim.parties if other is not party}
        for _ in range(20_000 if takes_over else 4000):
            sim.step()
            if sim.serving():
                break
        assert bool(sim.serving()) == takes_over, (size, seed)


GOOD: dict[str, Any] = {"party": 1, "offer": OFFER, "state": "serving", "view": [3, [0, 1, 4]], "proposed": None}


def test_statements_are_read() -> None:
    assert read_statement(GOOD, 1, 5, 3) == said(1, State.SERVING, View(3, (0, 1, 4)))
    assert read_statement(said(2, proposed=View(1, (0, 1, 2))).to_json(), 2, 5, 3) == said(2, proposed=View(1, (0, 1, 2)))
    assert replace(said(2), state=State.IDLE).joined == 0


@pytest.mark.parametrize(
    "change",
    [
        {"party": 2}, {"party": True}, {"offer": "ab"}, {"offer": 5}, {"state": "busy"}, {"view": [3, [0, 1]]}, {"view": [3, [1, 0, 4]]}, {"view": [3, [0, 1, 5]]},
        {"view": [0, [0, 1, 4]]}, {"view": [2**60, [0, 1, 4]]}, {"view": [3, [0, 2, 4]]}, {"view": None}, {"view": 7}, {"proposed": [1, "012"]}, {"more": 1},
    ],
)  # fmt: skip
def test_other_statements_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(PartyError, match="party 1 sent no proper statement: run the same version everywhere"):
        read_statement({**GOOD, **change}, 1, 5, 3)
    with pytest.raises(PartyError):
        read_statement({name: value for name, value in GOOD.items() if name != next(iter(change), "")} if "more" not in change else {}, 1, 5, 3)
