"""Which parties serve next: all parties together reach a view whatever is lost on the way, and never compute in two views at once."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from keyquorum.model.errors import PartyError
from keyquorum.serve.live.choice import Join, Propose, State, Statement, View, Wait, next_step, read_statement

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


@dataclass
class Party:
    """A party of the simulation. ``seen``: what it last heard of the others."""

    number: int
    up: bool = True
    state: State = State.IDLE
    view: View | None = None
    proposed: View | None = None
    age: int = 0
    failed: int = 0
    seen: dict[int, Statement] = field(default_factory=dict)

    def statement(self) -> Statement:
        return Statement(self.number, OFFER, self.state, self.view, self.proposed)


class Simulation:
    """Parties that hear one another late, and die and come back. A session exists once all members of a view have joined it, and ends for each member some time after one is lost."""

    def __init__(self, size: int, needed: int, seed: int) -> None:
        self.rng, self.needed = random.Random(seed), needed
        self.parties = [Party(number) for number in range(size)]

    def step(self) -> None:
        party = self.rng.choice([party for party in self.parties if party.up])
        for other in self.parties:
            if other is not party and self.rng.random() < 0.5:
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
        step = next_step(party.statement(), party.seen, self.needed, party.failed)
        if isinstance(step, Join):
            party.view, party.state, party.age = step.view, State.JOINING, 0
        elif isinstance(step, Propose):
            party.proposed, party.age = step.view, 0

    def _in_view(self, party: Party) -> None:
        assert party.view is not None
        members = [self.parties[number] for number in party.view.members]
        there = all(m.up and m.state is not State.IDLE and m.view == party.view for m in members)
        if there:
            party.state = State.SERVING
        elif party.state is State.SERVING or self.rng.random() < 0.2:
            party.state = State.IDLE

    def serving(self) -> set[View]:
        """Views in which all members serve."""
        found = {party.view for party in self.parties if party.up and party.state is State.SERVING and party.view is not None}
        return {
            view
            for view in found
            if all(self.parties[n].up and self.parties[n].state is State.SERVING and self.parties[n].view == view for n in view.members)
        }


@pytest.mark.parametrize(("size", "needed"), [(3, 2), (4, 2), (5, 3), (7, 4)])
def test_parties_serve_again_after_losses(size: int, needed: int) -> None:
    """Some die and come back at any time, as many as may be lost. Then, within a bounded number of steps, t + 1 parties serve together, and others never share a member with them."""
    for seed in range(25):
        sim = Simulation(size, needed, seed)
        for _ in range(4):
            for _ in range(sim.rng.randrange(200)):
                sim.step()
            for victim in sim.rng.sample(sim.parties, size - needed):
                sim.parties[victim.number] = Party(victim.number, up=False)
            for _ in range(4000):
                sim.step()
                if sim.serving():
                    break
            views = sim.serving()
            assert views, (size, seed)
            members = [number for view in views for number in view.members]
            assert len(set(members)) == len(members)
            for party in sim.parties:
                party.up = True


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
