"""All states of one change, and of two in a row, among three members of which one signs anything, to anybody, at any time: no honest one erases shares that the other still needs, and both find each other again.

A party may see any subset of what the other honest party ever signed, and forget it again, so the search has more states than runs of the protocol. The second change begins from the old epoch after the first
one ended there, or from the new epoch; at a party it begins when the first change is settled there, and what settles it is not forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import combinations, product

import pytest
from keyquorum.model import epoch
from keyquorum.model.epoch import BACK, DROPPED, Roles, Seen, Stage, Standing
from keyquorum.model.errors import EpochError

A, B, C = "abc"
ROLES = Roles(frozenset((A, B, C)), frozenset((A, B, C)), (1, 1))
Said = frozenset[tuple[Stage, frozenset[str]]]
Part = tuple[Standing | None, Said]
"""Of an honest party in a change: where it is, None before the change begins for it, and all that it ever signed."""
World = tuple[int, int, int, int]
"""Numbers of parts: of party a in both changes, then of party b."""
IN_NEW = (Stage.COMMITTED, Stage.ERASED)
SECOND = {"from the old epoch": BACK, "from the new epoch": IN_NEW}
"""Stages of the first change in which the second one begins, and in which a party stays during it."""
LOST = [None, *(frozenset(lost) for lost in (A, B, A + B + C))]
"""Whom the corrupt member names, properly or not."""


def _lies(refuses: bool) -> Iterator[Said]:
    for refused, lost, committed in product((0, 1) if refuses else (0,), LOST, (None, frozenset[str](), frozenset(A))):
        said = {(Stage.GIVEN_UP, frozenset[str]()), (Stage.VOTED, frozenset[str]())}  # without them fewer steps follow
        said |= {(Stage.REFUSED, frozenset[str]())} if refused else set()
        said |= {(Stage.FROZEN, lost)} if lost is not None else set()
        said |= {(Stage.COMMITTED, committed)} if committed is not None else set()
        yield frozenset(said)


def _seen(said: dict[str, Said]) -> Seen:
    def of(stage: Stage) -> frozenset[str]:
        return frozenset(who for who, all_of in said.items() if any(kind == stage for kind, _ in all_of))

    frozen = {who: frozenset(lost for kind, lost in all_of if kind == Stage.FROZEN) for who, all_of in said.items()}
    direct = frozenset(who for who, all_of in said.items() if (Stage.COMMITTED, frozenset()) in all_of)
    frozen = {who: named for who, named in frozen.items() if named}
    return Seen(of(Stage.VOTED), of(Stage.REFUSED), frozen, of(Stage.THAWED), of(Stage.COMMITTED), direct, of(Stage.GIVEN_UP))


class Search:
    """``second``: stages of the first change from which a second one begins; without any there is one change. ``begins``: the rule of the beginning."""

    def __init__(self, refuses: bool, second: tuple[Stage, ...] = (), begins: Callable[[Roles, Standing, Seen], bool] = epoch.settled) -> None:
        self.refuses, self.second, self.begins, self.lies = refuses, second, begins, list(_lies(refuses))
        self._parts: list[Part] = []
        self._numbers: dict[Part, int] = {}
        self._after: dict[tuple[int, int, int, bool], tuple[int, ...]] = {}
        self._followed: dict[tuple[int, int, Said], tuple[set[Standing], set[Standing]]] = {}
        self._begun: dict[tuple[int, int, int], bool] = {}
        self._checked: set[tuple[int, int]] = set()
        self._absent, self._first = self._number((None, frozenset())), self._number((Standing(), frozenset()))

    def _number(self, part: Part) -> int:
        if part not in self._numbers:
            self._numbers[part] = len(self._parts)
            self._parts.append(part)
        return self._numbers[part]

    def run(self) -> int:
        start: World = (self._first, self._absent, self._first, self._absent)
        seen, todo = {start}, [start]
        while todo:
            world = todo.pop()
            for after in self._moves(world):
                if after not in seen:
                    self._check(after)
                    seen.add(after)
                    todo.append(after)
        return len(seen)

    def _moves(self, world: World) -> Iterator[World]:
        for place, part in enumerate(world):
            i, other = place // 2, world[place ^ 2]
            first, begun = place % 2 == 0, world[place | 1] != self._absent
            for after in self._steps(i, part, other, first and begun):
                yield _changed(world, place, after)
            if first and not begun and self._may_begin(i, part, other):
                yield _changed(world, place + 1, self._first)

    def _heard(self, i: int, part: int, other: int) -> tuple[set[Standing], set[Standing]]:
        """What may follow from all that a party can have seen, and from that of it which settles the change."""
        others, found = self._parts[other][1], (set[Standing](), set[Standing]())
        for some in (frozenset(some) for size in range(len(others) + 1) for some in combinations(sorted(others, key=str), size)):
            if (i, part, some) not in self._followed:
                self._followed[i, part, some] = self._follow(i, part, some)
            for all_of, more in zip(found, self._followed[i, part, some], strict=True):
                all_of |= more
        return found

    def _follow(self, i: int, part: int, some: Said) -> tuple[set[Standing], set[Standing]]:
        (mine, said), me, peer = self._parts[part], "ab"[i], "ba"[i]
        assert mine is not None
        all_of, settled = set[Standing](), set[Standing]()
        for lies in self.lies:
            seen = _seen({me: said, peer: some, C: lies})
            after = {epoch.decide(ROLES, me, mine, seen)}
            with suppress(EpochError):
                after.add(epoch.erase(ROLES, mine, seen))
            all_of |= after
            settled |= after if self.begins(ROLES, mine, seen) else set()
        return all_of, settled

    def _steps(self, i: int, part: int, other: int, settled: bool) -> tuple[int, ...]:
        """What may follow. ``settled``: the party has seen what settles the change."""
        key, (mine, said) = (i, part, other, settled), self._parts[part]
        if mine is None:
            return ()
        if key not in self._after:
            me, peer, found = "ab"[i], "ba"[i], set(self._heard(i, part, other)[settled])
            if mine.stage == Stage.WAITING:
                found |= {epoch.vote(ROLES, me, mine)} | ({epoch.refuse(ROLES, me, mine)} if self.refuses else set())
            for lost in (frozenset(peer), frozenset(C)):
                with suppress(EpochError):
                    found.add(epoch.freeze(ROLES, me, mine, _seen({me: said}), lost))
            after = [(s, said if s.stage == Stage.ERASED else said | {(s.stage, s.lost)}) for s in found - {mine}]
            self._after[key] = tuple(map(self._number, after))
        return self._after[key]

    def _may_begin(self, i: int, part: int, other: int) -> bool:
        mine, key = self._parts[part][0], (i, part, other)
        if mine is None or mine.stage not in self.second:
            return False
        if key not in self._begun:
            self._begun[key] = bool(self._heard(i, part, other)[1])
        return self._begun[key]

    def _check(self, world: World) -> None:
        for pair in (world[0::2], world[1::2]):
            if pair not in self._checked:
                self._check_change(*(self._parts[part] for part in pair))
                self._checked.add(pair)
        for first, second in (world[:2], world[2:]):
            if second != self._absent:
                said = f"in two changes: {self._parts[first]}, {self._parts[second]}"
                assert self._parts[first][0].stage in self.second, said  # type: ignore[union-attr]

    def _check_change(self, a: Part, b: Part) -> None:
        standings = [standing or Standing() for standing, _ in (a, b)]
        if any(s.stage == Stage.ERASED for s in standings):
            assert not any(epoch.drops_new(s) for s in standings), f"lost: one erased its old shares, another its new ones: {a}, {b}"
            seen = _seen({A: a[1], B: b[1], C: frozenset({(Stage.COMMITTED, frozenset[str]())})})
            ends = [epoch.decide(ROLES, who, s, seen).stage for who, s in zip((A, B), standings, strict=True)]
            assert all(stage in IN_NEW for stage in ends), f"split for ever: {a}, {b}"
        if not self.refuses and any(s.stage in DROPPED for s in standings):
            assert any(kind in (Stage.FROZEN, Stage.REFUSED) for kind, _ in a[1] | b[1]), f"given up by the corrupt one alone: {a}, {b}"


def _changed(world: World, place: int, part: int) -> World:
    a, b, c, d = (part if place == number else each for number, each in enumerate(world))
    return a, b, c, d


@pytest.mark.parametrize("refuses", [False, True])
def test_a_corrupt_member_does_not_destroy_the_key(refuses: bool) -> None:
    assert Search(refuses).run() > 50


@pytest.mark.parametrize("second", SECOND)
def test_two_changes_in_a_row_do_not_destroy_the_key(second: str) -> None:
    assert Search(True, SECOND[second]).run() > 1000


@pytest.mark.parametrize("second", SECOND)
def test_a_change_that_begins_before_the_end_of_another_is_settled_mixes_epochs(second: str) -> None:
    with pytest.raises(AssertionError, match="in two changes"):
        Search(True, SECOND[second], begins=lambda *_: True).run()


def test_who_never_comes_forward_stays_without_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epoch, "settled", lambda *_: True)
    with pytest.raises(AssertionError, match="split for ever"):
        Search(True).run()


def test_without_the_check_of_frozen_one_statement_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epoch, "may_name", lambda *_: True)
    with pytest.raises(AssertionError, match="given up by the corrupt one alone"):
        Search(False).run()


def test_erasure_of_new_shares_after_a_commit_loses_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epoch, "drops_new", lambda standing: standing.stage in BACK)
    with pytest.raises(AssertionError, match="lost"):
        Search(True).run()
