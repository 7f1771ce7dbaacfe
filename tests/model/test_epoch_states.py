"""All states of a change of an epoch, reached with the functions that parties run (:mod:`keyquorum.model.epoch`): the key is never lost, never in use in two epochs, and nobody waits for ever.

One participant fails, or two of five: it is lost for ever, or away and back, at any point. The others stay, and may restart at any point. What a message says may be old, and messages may come one by one. An operator
gives up at the others while the failed one is away, or later; of two that fail, it names one first, or both. Members that were absent from the change come back at any point. Each rule that the argument needs is taken out once, and the search finds the failure.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from itertools import combinations
from typing import NamedTuple

import pytest
from keyquorum.model import epoch
from keyquorum.model.epoch import BACK, DECIDED, Roles, Seen, Stage, Standing
from keyquorum.model.errors import EpochError

from tests.long import LONG

KEPT_VOTES = (Stage.THAWED, Stage.COMMITTED, Stage.ERASED)
"""Stages in which all votes are on the participant's disk."""
IN_NEW = (Stage.COMMITTED, Stage.ERASED)


class Place(Enum):
    """Of one that fails."""

    HERE, AWAY, BACK, LOST = range(4)


class Member(NamedTuple):
    """``voted``, ``frozen``: what it ever signed; ``heard``: failing ones whose votes it has, which are on its disk before they count."""

    standing: Standing = Standing()
    voted: bool = False
    frozen: frozenset[frozenset[str]] = frozenset()
    heard: frozenset[int] = frozenset()


class World(NamedTuple):
    """``places``: of those that fail."""

    members: tuple[Member, ...]
    places: tuple[Place, ...]


@dataclass(frozen=True)
class Case:
    """``failing``: indices of those that fail, as many as may be corrupt; ``quorums``: members whose shares are the key, in the old committee and in the new one."""

    old: tuple[int, ...]
    new: tuple[int, ...]
    failing: tuple[int, ...]
    returns: bool
    quorums: tuple[int, int] = (2, 2)
    forgetful: bool = False
    """Whether a restart forgets that the participant froze."""
    voted: tuple[int, ...] = ()
    """Who has voted when the search begins; of those that fail, the others are lost by then."""
    absent: tuple[int, ...] = ()
    """Members that take no part; they come back at any point, with their old shares."""
    destroyed: bool = False
    """Whether all new members may be lost, while the old ones do not have the votes of all among them. With these they commit, and the key is with the new ones alone."""

    @property
    def roles(self) -> Roles:
        corrupt = 1 if self.destroyed else len(self.failing)
        return Roles(frozenset(map(str, self.old)), frozenset(map(str, self.new)), (corrupt, corrupt), frozenset(map(str, self.absent)))

    @property
    def size(self) -> int:
        return len({*self.old, *self.new, *self.absent})


SAME = (0, 1, 2)
SAME_LOST, SAME_AWAY = Case(SAME, SAME, (0,), False), Case(SAME, SAME, (0,), True)
JOINED_LOST = Case((3,), SAME, (0,), False, (1, 2))
LEFT_LOST = Case((3, 4), SAME, (3,), False, (1, 2))
FIVE = (0, 1, 2, 3, 4)
DESTROYED = Case((2, 3), (0, 1), (0, 1), False, (2, 1), destroyed=True)
DESTROYED_FEW = Case((2,), (0, 1), (0, 1), False, (1, 1), destroyed=True)
LARGE = "two and two, all new ones lost"
"""Only in long tests."""
TWO_LOST = Case(FIVE, FIVE, (0, 1), False, (3, 3), voted=(1, 2, 3, 4))
ABSENT_LOST, ABSENT_AWAY = (replace(case, absent=(3,)) for case in (SAME_LOST, SAME_AWAY))
TWO_ABSENT = replace(SAME_AWAY, absent=(3, 4))
STANDBY_LOST, STANDBY_AWAY = Case((), SAME, (0,), False, (0, 2)), Case((), SAME, (0,), True, (0, 2))
"""The old members keep their shares, and take no part."""
CASES = {
    "same members, one lost": (SAME_LOST, 508),
    "same members, one away": (SAME_AWAY, 1097),
    "apart, a new one lost": (JOINED_LOST, 2444),
    "apart, an old one lost": (LEFT_LOST, 168),
    "apart, all new ones lost": (DESTROYED_FEW, 5142),
    LARGE: (DESTROYED, 41309),
    "same members and an absent one, one lost": (ABSENT_LOST, 668),
    "same members and an absent one, one away": (ABSENT_AWAY, 1545),
    "same members and two absent ones, one away": (TWO_ABSENT, 2217),
    "five, one lost before its vote, and then another": (TWO_LOST, 2776),
    "a standby, one lost": (STANDBY_LOST, 428),
    "a standby, one away": (STANDBY_AWAY, 893),
}
"""With the number of states."""


def _order(member: Member) -> tuple[object, ...]:
    frozen = sorted(map(sorted, member.frozen))
    return member.standing.stage.value, sorted(member.standing.lost), member.voted, frozen, sorted(member.heard)


class Search:
    """Visits every state of a case, breadth first."""

    def __init__(self, case: Case) -> None:
        self.case, self.roles = case, case.roles
        self._decided: dict[object, Standing] = {}
        others = range(case.size)
        roles = [(i in case.old, i in case.new) for i in others]
        self._alike = [[i for i in others if roles[i] == role and i not in case.failing] for role in set(roles)]
        everybody = frozenset(others)
        few = [frozenset({j}) for j in others] + [everybody - {j} for j in (others if case.size == 3 else case.failing)]
        self._sources = [frozenset[int](), *few, everybody - set(case.failing), everybody]
        self._named = [frozenset(map(str, some)) for size in range(1, 3) for some in combinations(case.failing, size)]

    def run(self) -> int:
        """The number of states. AssertionError names a state in which an invariant fails."""
        case = self.case
        members = tuple(Member(Standing(Stage.VOTED), voted=True) if i in case.voted else Member() for i in range(case.size))
        start = World(members, tuple(Place.LOST if case.voted and i not in case.voted else Place.HERE for i in case.failing))
        seen, todo = {start}, [start]
        while todo:
            world = todo.pop()
            moved = False
            for surely, after in self._moves(world):
                moved |= surely
                after = self._sorted(after)
                if after not in seen:
                    self._check(after)
                    seen.add(after)
                    todo.append(after)
            if not moved:
                self._check_end(world)
        return len(seen)

    def _sorted(self, world: World) -> World:
        """The same state but for the numbers of participants that have the same roles and do not fail."""
        members = list(world.members)
        for alike in self._alike:
            for i, member in zip(alike, sorted((members[i] for i in alike), key=_order), strict=True):
                members[i] = member
        return world._replace(members=tuple(members))

    def _moves(self, world: World) -> Iterator[tuple[bool, World]]:
        """(whether the move happens if everybody goes on trying, the state after it)."""
        places = world.places
        olds = [world.members[i] for i in self.case.old]
        known = {new for m in olds for new in (self.case.new if m.standing.stage in KEPT_VOTES else m.heard)}
        held = self.case.destroyed and set(self.case.new) <= known
        for k, place in enumerate(places):
            first = not self.case.destroyed or Place.HERE not in places[:k]  # they are alike: the first one is lost first
            if place == Place.HERE and first and not held:
                yield False, world._replace(places=(*places[:k], Place.AWAY if self.case.returns else Place.LOST, *places[k + 1 :]))
            if place == Place.AWAY:
                yield True, world._replace(places=(*places[:k], Place.BACK, *places[k + 1 :]))
        absent = self._in(world, Place.AWAY, Place.LOST)
        for i, member in enumerate(world.members):
            if i in absent:
                continue
            for surely, after in self._steps(world, i, member):
                if after != member:
                    yield surely, world._replace(members=(*world.members[:i], after, *world.members[i + 1 :]))

    def _in(self, world: World, *places: Place) -> frozenset[int]:
        """The failing ones in these places."""
        return frozenset(i for i, place in zip(self.case.failing, world.places, strict=True) if place in places)

    def _steps(self, world: World, i: int, member: Member) -> Iterator[tuple[bool, Member]]:
        standing, case, absent = member.standing, self.case, self._in(world, Place.AWAY, Place.LOST)
        if standing.stage in epoch.ENDED:
            return
        if standing.stage == Stage.WAITING and i in case.new:
            yield True, member._replace(standing=epoch.vote(self.roles, str(i), standing), voted=True)
            yield True, member._replace(standing=epoch.refuse(self.roles, str(i), standing))
        for failing in case.failing:
            if i not in case.absent and self._tells_the_vote(world, i, failing):
                yield True, member._replace(heard=member.heard | {failing})
        if case.forgetful and standing.stage == Stage.FROZEN:
            yield False, member._replace(standing=Standing(Stage.VOTED))
        missed = frozenset(map(str, set(case.failing) - self._in(world, Place.HERE)))
        for lost in self._named:
            if lost <= missed and str(i) not in lost:
                with suppress(EpochError):
                    after = epoch.freeze(self.roles, str(i), standing, self._seen(world, i, frozenset({i}), True), lost)
                    yield True, member._replace(standing=after, frozen=member.frozen | ({lost} if after.stage == Stage.FROZEN else set()))
        for sources in self._sources:
            surely = not sources & absent
            for votes in (False, True):
                yield surely, member._replace(standing=self._decide(i, standing, self._seen(world, i, sources | {i}, votes)))
            if i in case.old or i in case.absent:
                with suppress(EpochError):
                    yield surely, member._replace(standing=epoch.erase(self.roles, standing, self._seen(world, i, sources | {i}, True)))

    def _tells_the_vote(self, world: World, i: int, failing: int) -> bool:
        """Whether somebody who is here has the vote of a failing one."""
        if not world.members[failing].voted:
            return False
        absent = self._in(world, Place.AWAY, Place.LOST)
        here = [m for j, m in enumerate(world.members) if j not in absent and j not in (i, failing)]
        return failing not in absent or any(failing in m.heard or m.standing.stage in KEPT_VOTES for m in here)

    def _seen(self, world: World, i: int, sources: frozenset[int], votes: bool) -> Seen:
        """What participant i has seen: statements of the sources, and with ``votes`` every vote that it can have."""
        said = [(j, world.members[j]) for j in sorted(sources - set(self.case.absent))]  # absent ones sign nothing
        given_up = frozenset(str(j) for j, m in said if m.standing.stage == Stage.GIVEN_UP)
        everybody = list(enumerate(world.members))
        shown = everybody if given_up else said  # who gave up shows why
        mine = world.members[i]
        unknown = set[int]() if mine.standing.stage in KEPT_VOTES else self._in(world, Place.AWAY, Place.LOST) - mine.heard - {i}
        return Seen(
            frozenset(str(j) for j, m in enumerate(world.members) if m.voted and votes and j not in unknown),
            frozenset(str(j) for j, m in shown if m.standing.stage == Stage.REFUSED),
            {str(j): m.frozen for j, m in shown if m.frozen},
            frozenset(str(j) for j, m in said if m.standing.stage == Stage.THAWED),
            frozenset(str(j) for j, m in said if m.standing.stage in IN_NEW),
            frozenset(str(j) for j, m in said if m.standing.stage in IN_NEW and not m.standing.lost),
            given_up,
        )

    def _decide(self, i: int, standing: Standing, seen: Seen) -> Standing:
        key = (i, standing, *(tuple(sorted(v.items())) if isinstance(v, dict) else v for v in vars(seen).values()))
        if key not in self._decided:
            self._decided[key] = epoch.decide(self.roles, str(i), standing, seen)
        return self._decided[key]

    def _check(self, world: World) -> None:
        case, stages = self.case, [m.standing.stage for m in world.members]
        if any(stage in BACK for stage in stages):
            assert not any(stages[i] in IN_NEW for i in case.absent), f"one that was absent follows a change that is given up: {world}"
        if any(stage in BACK for stage in stages):
            assert Stage.ERASED not in stages, f"lost: old shares were erased, and the new ones dropped: {world}"
            new = set(case.new) - (self._in(world, Place.LOST) if case.destroyed else set())
            assert sum(stages[i] in IN_NEW for i in new) < case.quorums[1], f"split: both epochs are in use: {world}"
        left = [i for i in range(case.size) if i not in self._in(world, Place.LOST)]
        old = sum(stages[i] != Stage.ERASED for i in left if i in case.old)
        new = sum(stages[i] not in (*BACK, Stage.WAITING) for i in left if i in case.new)
        assert old >= case.quorums[0] or new >= case.quorums[1], f"lost: too few shares of either epoch: {world}"

    def _check_end(self, world: World) -> None:
        """Of a state in which nothing happens any more without a restart."""
        case = self.case
        lost = self._in(world, Place.LOST)
        left = [i for i in range(case.size) if i not in lost and i not in case.absent]
        stages = {i: world.members[i].standing.stage for i in left}
        assert all(stage in DECIDED for stage in stages.values()), f"somebody waits for ever: {world}"
        assert len({stage in BACK for stage in stages.values()}) == 1, f"split for ever: {world}"
        if not lost & set(case.new) and stages[left[0]] not in BACK:
            assert all(stages[i] == Stage.ERASED for i in left if i in case.old), f"old shares stay: {world}"
            assert all(world.members[i].standing.stage == Stage.ERASED for i in case.absent), f"one that was absent does not follow: {world}"
        if not lost:
            everything = [(i, self._seen(world, i, frozenset(left), True)) for i in left]
            assert all(epoch.settled(self.roles, world.members[i].standing, seen) for i, seen in everything), f"no other change begins: {world}"


@pytest.mark.parametrize("name", [name for name in CASES if LONG or name != LARGE])
def test_no_state_loses_splits_or_waits(name: str) -> None:
    case, states = CASES[name]
    assert Search(case).run() == states


def _most_voted(roles: Roles, seen: Seen) -> bool:
    return len(roles.new & seen.voted) >= len(roles.new) - 1


def _thawed_or_voted(roles: Roles, seen: Seen, me: str, lost: frozenset[str]) -> bool:
    return seen.thawed | seen.committed | seen.voted | {me} >= roles.everybody


_freeze = epoch.freeze


def _frozen_once(roles: Roles, me: str, mine: Standing, seen: Seen, lost: frozenset[str]) -> Standing:
    if mine.stage == Stage.FROZEN:
        raise EpochError("frozen already")
    return _freeze(roles, me, mine, seen, lost)


def _few_alone(roles: Roles, who: str, lost: frozenset[str]) -> bool:
    return bool(lost) and lost <= roles.everybody - {who} and len(lost & roles.old) <= 1 and len(lost & roles.new) <= 1


def _one_frozen(roles: Roles, seen: Seen) -> bool:
    return bool(seen.refused) or any(roles.new in named for named in seen.frozen.values())


ABLATIONS = {
    "commit before all votes": ("all_voted", _most_voted, SAME_AWAY, "split|lost"),
    "frozen commits without the others": ("nobody_gives_up", lambda *_: True, SAME_AWAY, "split"),
    "thawed commits beside one that only voted": ("nobody_gives_up", _thawed_or_voted, SAME_AWAY, "split"),
    "erasure at the votes alone": ("may_erase", epoch.all_voted, SAME_AWAY, "lost"),
    "a freeze although the vote is known": ("may_freeze", lambda *_: True, SAME_LOST, "waits|split"),
    "a destroyed committee is not named": ("may_name", _few_alone, DESTROYED, "waits"),
    "one frozen member gives up for a destroyed committee": ("is_given_up", _one_frozen, DESTROYED, "split|lost"),
    "one that was absent follows votes": ("may_follow", epoch.all_voted, ABSENT_AWAY, "follows"),
    "one that was absent never follows": ("may_follow", lambda *_: False, ABSENT_AWAY, "does not follow"),
    "frozen for good": ("freeze", _frozen_once, TWO_LOST, "waits"),
}


@pytest.mark.parametrize("name", ABLATIONS)
def test_without_a_rule_the_search_finds_the_failure(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rule, instead, case, error = ABLATIONS[name]
    monkeypatch.setattr(epoch, rule, instead)
    with pytest.raises(AssertionError, match=error):
        Search(case).run()


def test_a_freeze_that_a_crash_forgets_splits() -> None:
    with pytest.raises(AssertionError, match="split"):
        Search(replace(SAME_AWAY, forgetful=True)).run()


@pytest.mark.skipif(not LONG, reason="minutes: KEYQUORUM_LONG=1")
@pytest.mark.parametrize("failing", [0, 3])
@pytest.mark.parametrize("returns", [False, True])
def test_no_state_of_three_and_three(failing: int, returns: bool) -> None:
    assert Search(Case((3, 4, 5), SAME, (failing,), returns)).run() > 500
