"""Which t + 1 parties serve, as a function of what every live party says.

A *view* is a number and t + 1 members. The lowest live party proposes views, with larger and larger numbers, while nobody serves. Where it does not, since it hears nobody, the next one does. A member joins the
proposed view with the largest number, once, and serves in it until its session breaks. The session compares the view. So members of two views never compute together, whatever parties believe of one another: a wrong
belief costs time alone.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

from keyquorum.model.errors import PartyError
from keyquorum.model.plain import Json, is_count, is_hex

MOST_VIEWS = 1 << 53
"""Largest number of a view."""
DRAWN = 16
"""Sets of members that are drawn after those in a row came to nothing, each time."""
NO_OFFER = "0" * 64
"""The offer of a party that cannot serve now."""


@dataclass(frozen=True)
class View:
    """A number, and the members in ascending order, by their numbers in the committee."""

    number: int
    members: tuple[int, ...]


class State(StrEnum):
    """What a party does."""

    IDLE = "idle"
    JOINING = "joining"
    SERVING = "serving"


@dataclass(frozen=True)
class Statement:
    """What a party says of itself. ``offer``: 64 hexadecimal digits, a digest of all on which the parties of a session must agree but the view; ``view``: the last one that it joined;
    ``proposed``: the view that it proposes."""

    party: int
    offer: str
    state: State = State.IDLE
    view: View | None = None
    proposed: View | None = None

    def to_json(self) -> Json:
        """See :func:`read_statement`."""
        views = {
            name: None if view is None else [view.number, list(view.members)] for name, view in (("view", self.view), ("proposed", self.proposed))
        }
        return {"party": self.party, "offer": self.offer, "state": str(self.state), **views}

    @property
    def joined(self) -> int:
        """The number of the last view that it joined; 0: none."""
        return 0 if self.view is None else self.view.number


def _view_from(data: object, size: int, needed: int) -> View | None:
    if data is None:
        return None
    if not isinstance(data, list) or len(data) != 2:
        raise ValueError("a view is a number and members")
    number, members = data
    if not (is_count(number, 1) and number <= MOST_VIEWS and isinstance(members, list) and len(members) == needed):
        raise ValueError("a view has another form")
    if not all(is_count(member) and member < size for member in members) or any(a >= b for a, b in pairwise(members)):
        raise ValueError("members of a view are parties in ascending order")
    return View(number, tuple(members))


def read_statement(data: Json, party: int, size: int, needed: int) -> Statement:
    """Inverse of :meth:`Statement.to_json`, for the statement of a party of a committee of ``size``, of which ``needed`` serve. Raises PartyError for anything else."""
    try:
        said = Statement(
            data["party"], data["offer"], State(data["state"]), _view_from(data["view"], size, needed), _view_from(data["proposed"], size, needed)
        )
        if type(said.party) is not int or said.party != party or not is_hex(said.offer, 64) or set(data) != set(said.to_json()):
            raise ValueError("entries of other types")
        if said.state is not State.IDLE and (said.view is None or party not in said.view.members):
            raise ValueError("a party serves in a view of which it is a member")
    except (ValueError, TypeError, KeyError):
        raise PartyError(f"party {party} sent no proper statement: run the same version everywhere") from None
    return said


@dataclass(frozen=True)
class Join:
    """Connect to the other members of a view."""

    view: View


@dataclass(frozen=True)
class Propose:
    """Propose a view."""

    view: View


@dataclass(frozen=True)
class Wait:
    """Do nothing. ``serving``: the view in which others serve."""

    serving: View | None = None


def next_step(
    me: Statement, live: Mapping[int, Statement], needed: int, failed: int = 0, unusable: Collection[tuple[int, ...]] = (), waited: int = 0
) -> Join | Propose | Wait:
    """What a party does that is in no session. ``live``: statements of the other live parties, by their numbers; those with another offer count as absent. ``failed``: views that this party proposed
    in a row, and that came to nothing: then it proposes other members. ``unusable``: members that cannot serve together, as far as this party knows; it proposes them where it has no others.
    ``waited``: how many lower live parties had the time to propose, and did not."""
    others = {number: said for number, said in live.items() if said.offer == me.offer}
    known = {me.party: me, **others}
    proposals = [said.proposed for _, said in sorted(known.items()) if said.proposed is not None and set(said.proposed.members) <= set(known)]
    newest = max(proposals, key=lambda view: view.number, default=None)  # of two with one number that of the lowest party
    if newest is not None and me.party in newest.members and newest.number > me.joined:
        return Join(newest)
    for said in others.values():
        if said.state is State.SERVING:
            return Wait(said.view)
    if any(said.state is State.JOINING for said in others.values()):
        return Wait()
    if newest is not None and any(known[member].joined < newest.number for member in newest.members):
        return Wait()  # its members have not all heard of it
    order = sorted(known)
    if order.index(me.party) > waited or len(known) < needed:
        return Wait()
    candidates = list(_candidates(order, needed, failed + order.index(me.party)))
    members = next((members for members in candidates if members not in unusable), candidates[0])
    number = 1 + max(max(said.joined, 0 if said.proposed is None else said.proposed.number) for said in known.values())
    return Propose(View(number, members))


class Patience:
    """How long a party has left it to lower ones to propose a view. ``turn``: seconds that each of them has."""

    def __init__(self, turn: float) -> None:
        self._turn, self._since, self._newest = turn, 0.0, 0

    def begin(self, now: float) -> None:
        """All lower parties have their time from now on, as the party serves, or has just started."""
        self._since = now

    def waited(self, me: Statement, live: Mapping[int, Statement], needed: int, now: float) -> int:
        """How many lower live parties had their time, and did not propose; see :func:`next_step`. All have it anew when one of them proposes, while others serve, and when there were too few parties."""
        others = [said for said in live.values() if said.offer == me.offer]
        newest = max((said.proposed.number for said in others if said.party < me.party and said.proposed is not None), default=0)
        if newest > self._newest or len(others) + 1 < needed or any(said.state is State.SERVING for said in others):
            self._since = now
        self._newest = max(newest, self._newest)
        return int((now - self._since) / self._turn)


def _candidates(order: Sequence[int], needed: int, turn: int) -> Iterator[tuple[int, ...]]:
    """Sets of members to propose, the best first: parties in a row, each row once; then drawn ones. Rows alone are not enough: of five of which three serve, each has one of parties 0 and 2."""
    if turn >= len(order):
        draw = random.Random(turn)  # no secret: any choice is safe
        for _ in range(DRAWN):
            yield tuple(sorted(draw.sample(list(order), needed)))
    for more in range(len(order)):
        yield tuple(sorted(order[(turn + more + i) % len(order)] for i in range(needed)))


__all__ = ["NO_OFFER", "Join", "Patience", "Propose", "State", "Statement", "View", "Wait", "next_step", "read_statement"]
