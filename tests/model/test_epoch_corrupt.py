"""All states of a change among three members of which one signs anything, to anybody, at any time: no honest one erases shares that the other still needs.

A party may see any subset of what the other honest party ever signed, and forget it again, so the search has more states than runs of the protocol."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import combinations, product

import pytest
from keyquorum.model import epoch
from keyquorum.model.epoch import DROPPED, Roles, Seen, Stage, Standing
from keyquorum.model.errors import EpochError

A, B, C = "abc"
ROLES = Roles(frozenset((A, B, C)), frozenset((A, B, C)), (1, 1))
Said = frozenset[tuple[Stage, frozenset[str]]]
World = tuple[tuple[Standing, Said], tuple[Standing, Said]]
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

    frozen = {who: lost for who, all_of in said.items() for kind, lost in all_of if kind == Stage.FROZEN}
    direct = frozenset(who for who, all_of in said.items() if (Stage.COMMITTED, frozenset()) in all_of)
    return Seen(of(Stage.VOTED), of(Stage.REFUSED), frozen, of(Stage.THAWED), of(Stage.COMMITTED), direct, of(Stage.GIVEN_UP))


class Search:
    def __init__(self, refuses: bool) -> None:
        self.refuses, self.lies = refuses, list(_lies(refuses))
        self._after: dict[object, set[Standing]] = {}

    def run(self) -> int:
        start: World = ((Standing(), frozenset()), (Standing(), frozenset()))
        seen, todo = {start}, [start]
        while todo:
            world = todo.pop()
            for i in (0, 1):
                (mine, said), (_, others) = world[i], world[1 - i]
                for standing in self._steps(i, mine, said, others):
                    now = (standing, said if standing.stage == Stage.ERASED else said | {(standing.stage, standing.lost)})
                    after: World = (now, world[1]) if i == 0 else (world[0], now)
                    if after not in seen:
                        self._check(after)
                        seen.add(after)
                        todo.append(after)
        return len(seen)

    def _steps(self, i: int, mine: Standing, said: Said, others: Said) -> set[Standing]:
        key = (i, mine, said, others)
        if key in self._after:
            return self._after[key]
        me, peer, found = "ab"[i], "ba"[i], set[Standing]()
        if mine.stage == Stage.WAITING:
            found |= {epoch.vote(ROLES, me, mine)} | ({epoch.refuse(ROLES, me, mine)} if self.refuses else set())
        heard = [frozenset(some) for size in range(len(others) + 1) for some in combinations(sorted(others, key=str), size)]
        for lies, some in product(self.lies, heard):
            seen = _seen({me: said, peer: some, C: lies})
            found.add(epoch.decide(ROLES, me, mine, seen))
            with suppress(EpochError):
                found.add(epoch.erase(ROLES, mine, seen))
        for lost in (frozenset(peer), frozenset(C)):
            with suppress(EpochError):
                found.add(epoch.freeze(ROLES, me, mine, _seen({me: said}), lost))
        self._after[key] = found - {mine}
        return self._after[key]

    def _check(self, world: World) -> None:
        standings = [standing for standing, _ in world]
        if any(s.stage == Stage.ERASED for s in standings):
            assert not any(epoch.drops_new(s) for s in standings), f"lost: one erased its old shares, another its new ones: {world}"
            seen = _seen({A: world[0][1], B: world[1][1], C: frozenset({(Stage.COMMITTED, frozenset[str]())})})
            ends = [epoch.decide(ROLES, who, s, seen).stage for who, s in zip((A, B), standings, strict=True)]
            assert all(stage in (Stage.COMMITTED, Stage.ERASED) for stage in ends), f"split for ever: {world}"
        if not self.refuses and any(s.stage in DROPPED for s in standings):
            assert any(kind in (Stage.FROZEN, Stage.REFUSED) for _, said in world for kind, _ in said), f"given up by the corrupt one alone: {world}"


@pytest.mark.parametrize("refuses", [False, True])
def test_a_corrupt_member_does_not_destroy_the_key(refuses: bool) -> None:
    assert Search(refuses).run() > 50


def test_without_the_check_of_frozen_one_statement_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epoch, "may_name", lambda *_: True)
    with pytest.raises(AssertionError, match="given up by the corrupt one alone"):
        Search(False).run()


def test_erasure_of_new_shares_after_a_commit_loses_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epoch, "drops_new", lambda standing: standing.stage in DROPPED)
    with pytest.raises(AssertionError, match="lost"):
        Search(True).run()
