"""The change of an epoch as a state machine: what a participant may sign next, given what it signed before and what it has seen of the others.

An *epoch* of a committee is one sharing of each of its keys. A change passes every key from an old committee to a new one, which may be the same. Its decision is a commit protocol: every
new member votes, and who has all votes commits. A two-phase commit blocks if one participant never returns (Gray 1978; Skeen 1981). Here the others *freeze* instead: a frozen participant
promises not to commit alone, and when all but the lost ones have frozen, they give the change up.

Members that sign anything cannot destroy the key, however many they are. An honest party erases old shares only after all new members signed that they committed, so all honest ones among them did.
An honest party that signed this keeps its new shares, also if it goes back to the old epoch, and comes forward again when it sees the statements of all. With t of n ≥ 2t + 1 corrupt, no honest party gives
up unless somebody refused or an honest party froze: at most t may be named as lost, so a proof has statements of n − t > t. Corrupt members can delay a change, block erasure, and block the changes after it.

A participant takes part in no other change before the end of this one is :func:`settled`: a party that is in a later change could not come forward any more, or would be taken back from it.

This module has no input or output. :mod:`keyquorum.parties.epochs` stores what it decides, and a test searches all states of small committees with these functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from .errors import EpochError

Who = str
"""A participant: the fingerprint of its certificate."""
NAME_DIGITS = 32
"""Hexadecimal digits of the name of an epoch."""
NOBODY: frozenset[Who] = frozenset()


class Stage(StrEnum):
    """Where a participant is. All stages are on its disk before anybody hears of them."""

    WAITING = "proposed"
    """It has not voted. An old member that is not a new one has no vote: it keeps its shares."""
    VOTED = "voted"
    """Its new shares are on its disk. From here on it never decides alone."""
    FROZEN = "frozen"
    """It promised not to commit alone, since others are lost."""
    THAWED = "thawed"
    """It was frozen, and has all votes: it will not give up on its own."""
    COMMITTED = "committed"
    """It has all votes, and serves in the new epoch. Of an old member that leaves: it knows that the new epoch holds."""
    ERASED = "erased"
    """It erased its shares of the old epoch, after all new members had committed."""
    REFUSED = "refused"
    """It refused before it voted, so that there never are all votes."""
    GIVEN_UP = "given-up"
    """It never committed, and dropped the new epoch. The old one goes on."""
    GONE_BACK = "gone-back"
    """It had committed, and is in the old epoch again. Others may have erased old shares, so it keeps its new ones."""


DROPPED = (Stage.REFUSED, Stage.GIVEN_UP)
"""Stages of a participant that never committed, and erased its new shares."""
BACK = (*DROPPED, Stage.GONE_BACK)
"""Stages of a participant in the old epoch."""
ENDED = (*BACK, Stage.ERASED)
"""Stages after which nothing follows, but that one who went back may come forward again."""
DECIDED = (*BACK, Stage.COMMITTED, Stage.ERASED)
"""Stages of a participant that knows how the change ended."""


@dataclass(frozen=True)
class Roles:
    """Who takes part: members of the old committee, and of the new one. Who is in both has one identity in both. ``thresholds``: how many corrupt members each tolerates.

    ``absent``: members of both committees that take no part, and get no shares. They sign nothing, and nobody waits for them. One that is back follows when all others committed (:func:`decide`)."""

    old: frozenset[Who]
    new: frozenset[Who]
    thresholds: tuple[int, int]
    absent: frozenset[Who] = NOBODY

    @property
    def everybody(self) -> frozenset[Who]:
        """All participants."""
        return self.old | self.new


@dataclass(frozen=True)
class Standing:
    """What a participant signed. ``lost``: whom it named when it froze last. When more are lost it names them as well; what it signed before is never taken back."""

    stage: Stage = Stage.WAITING
    lost: frozenset[Who] = NOBODY


@dataclass(frozen=True)
class Seen:
    """What a participant has seen signed by all participants, itself included. A statement is for ever: who thawed is still among the ``frozen``.

    ``frozen``: whom each one named as lost, each time. ``committed``: who committed; ``direct``: who did without being frozen before, so that it never was."""

    voted: frozenset[Who] = NOBODY
    refused: frozenset[Who] = NOBODY
    frozen: Mapping[Who, frozenset[frozenset[Who]]] = field(default_factory=dict)
    thawed: frozenset[Who] = NOBODY
    committed: frozenset[Who] = NOBODY
    direct: frozenset[Who] = NOBODY
    given_up: frozenset[Who] = NOBODY


def all_voted(roles: Roles, seen: Seen) -> bool:
    """Whether there are the votes of all new members."""
    return roles.new <= seen.voted


def may_name(roles: Roles, who: Who, lost: frozenset[Who]) -> bool:
    """Whether a participant may name these as lost: of each committee at most as many as may be corrupt, and not itself. Or a whole new committee, with no member of the old one: then nobody is left who could
    commit, and all old members must freeze.

    Then more than t of a committee with n ≥ 2t + 1 must freeze, among them an honest one. With n < 2t + 1 (additive shares) no bound does this: there all are taken to follow the protocol."""
    old, new = roles.thresholds
    few = len(lost & roles.old) <= old and len(lost & roles.new) <= new
    return bool(lost) and lost <= roles.everybody - {who} and (few or (lost == roles.new and not roles.new & roles.old))


def is_given_up(roles: Roles, seen: Seen) -> bool:
    """Whether the change cannot succeed: somebody refused, or all but the lost ones have frozen for the same ones. That somebody says it gave up proves nothing alone."""
    frozen = {(who, lost) for who, named in seen.frozen.items() for lost in named if may_name(roles, who, lost)}
    return bool(seen.refused) or any(all((who, lost) in frozen for who in roles.everybody - lost) for _, lost in frozen)


def may_freeze(roles: Roles, seen: Seen, lost: frozenset[Who]) -> bool:
    """Whether the vote of a lost new member is not known. If it is, the change can go on without the lost ones."""
    return bool((lost & roles.new) - seen.voted)


def nobody_gives_up(roles: Roles, seen: Seen, me: Who, lost: frozenset[Who]) -> bool:
    """Whether a thawed participant may commit: nobody can have given up, nor ever will.

    Either all others thawed or committed. Or one that ``me`` did not name as lost committed and never froze: then nobody has the statements of all but the lost ones, whoever they are."""
    return seen.thawed | seen.committed | {me} >= roles.everybody or bool(seen.direct - seen.frozen.keys() - lost - {me})


def may_erase(roles: Roles, seen: Seen) -> bool:
    """Whether all new members have committed. Then nobody needs the old shares, and the new epoch holds, whatever else somebody signed: no honest one has erased its new shares, or will."""
    return roles.new <= seen.committed


def may_follow(roles: Roles, seen: Seen) -> bool:
    """Whether an absent member takes up the new epoch. It signs nothing, so it could not come forward again, and must know that nobody goes back."""
    return all_voted(roles, seen) and may_erase(roles, seen)


def settled(roles: Roles, mine: Standing, seen: Seen) -> bool:
    """Whether nothing that a participant may hear changes how this change ended for it. It takes part in no other one before.

    Who committed must know that all did. Who went back must know that an honest new member never did, since then nobody erases old shares: more than t say that they dropped the epoch. With n < 2t + 1
    one is enough, as all are taken to follow the protocol."""
    if mine.stage != Stage.GONE_BACK:
        return mine.stage in DROPPED or (mine.stage in DECIDED and may_erase(roles, seen))
    size, corrupt = len(roles.new), roles.thresholds[1]
    return len(roles.new & (seen.refused | seen.given_up)) > (corrupt if size > 2 * corrupt else 0)


def decide(roles: Roles, me: Who, mine: Standing, seen: Seen) -> Standing:
    """The next standing of a participant after what it has seen; the same one if nothing follows. The steps that somebody orders are :func:`vote`, :func:`refuse`,
    :func:`freeze` and :func:`erase`."""
    stage = mine.stage
    if me in roles.absent:
        return replace(mine, stage=Stage.COMMITTED) if stage == Stage.WAITING and may_follow(roles, seen) else mine
    if stage == Stage.GONE_BACK and may_erase(roles, seen) and not settled(roles, mine, seen):
        return replace(mine, stage=Stage.COMMITTED)
    if stage in ENDED or (stage == Stage.COMMITTED and may_erase(roles, seen)):
        return mine
    promised = stage in (Stage.THAWED, Stage.COMMITTED)
    if is_given_up(roles, seen) and (seen.refused or seen.given_up or not promised):
        return replace(mine, stage=Stage.GONE_BACK if stage == Stage.COMMITTED else Stage.GIVEN_UP)
    if stage == Stage.COMMITTED or not all_voted(roles, seen):
        return mine
    return replace(mine, stage=_with_all_votes(roles, me, mine, seen))


def _with_all_votes(roles: Roles, me: Who, mine: Standing, seen: Seen) -> Stage:
    if mine.stage == Stage.FROZEN:
        return Stage.THAWED
    if mine.stage == Stage.THAWED and not nobody_gives_up(roles, seen, me, mine.lost):
        return Stage.THAWED
    return Stage.COMMITTED


def drops_new(standing: Standing) -> bool:
    """Whether a participant erases its new shares: it dropped the epoch, and never signed that it committed."""
    return standing.stage in DROPPED


def vote(roles: Roles, me: Who, mine: Standing) -> Standing:
    """The standing after a vote. Raises EpochError for one who has no vote, or may not vote any more."""
    if me not in roles.new:
        raise EpochError("a member that leaves the committee has no vote: this is a bug, please report it")
    if mine.stage != Stage.WAITING:
        raise EpochError(f"a vote after {mine.stage}: this is a bug, please report it")
    return replace(mine, stage=Stage.VOTED)


def refuse(roles: Roles, me: Who, mine: Standing) -> Standing:
    """The standing after a refusal, which is possible before the vote alone. Raises EpochError."""
    if me not in roles.new or mine.stage != Stage.WAITING:
        raise EpochError(f"this party has {mine.stage} and cannot refuse the change alone: keyquorum epoch commit, or keyquorum epoch give-up")
    return replace(mine, stage=Stage.REFUSED)


def freeze(roles: Roles, me: Who, mine: Standing, seen: Seen, lost: frozenset[Who]) -> Standing:
    """The standing after the order to give up without the lost ones. A new member that has not voted refuses; a frozen one that names more lost ones freezes for all of them. Raises EpochError."""
    if me in roles.absent:
        raise EpochError("this party took no part in the change, so nobody waits for it: run the command at the others, then keyquorum recover")
    if not lost or not lost < roles.everybody:
        raise EpochError("name at least one lost participant of the change, and not all of them")
    if me in lost:
        raise EpochError("this party is among the lost ones: leave it out, or run the command at the others")
    if mine.stage == Stage.WAITING and me in roles.new:
        return refuse(roles, me, mine)
    if mine.stage == Stage.FROZEN and not mine.lost < lost:
        raise EpochError("this party named lost parties already: name all of these again, and those that are lost since")
    if mine.stage not in (Stage.WAITING, Stage.VOTED, Stage.FROZEN):
        raise EpochError(f"this party has {mine.stage} already: keyquorum epoch status says what follows")
    if not may_name(roles, me, lost):
        raise EpochError(
            f"{len(lost)} lost participants are more than a committee tolerates, so the others cannot give up: bring one of them back, or name all of a new committee that is destroyed"
        )
    if not may_freeze(roles, seen, lost):
        raise EpochError(
            "the votes of the lost parties are here, so nobody needs to give up: keyquorum epoch commit, as soon as all other votes are here"
        )
    return Standing(Stage.FROZEN, lost)


def erase(roles: Roles, mine: Standing, seen: Seen) -> Standing:
    """The standing of a member of the old committee that erases its old shares. Raises EpochError before all new members have committed."""
    if mine.stage == Stage.ERASED:
        return mine
    if mine.stage != Stage.COMMITTED:
        raise EpochError(f"this party has {mine.stage}, not committed: the old shares are still needed")
    if not may_erase(roles, seen):
        missing = ", ".join(sorted(who[:16] for who in roles.new - seen.committed))
        raise EpochError(
            f"not all new members have committed ({missing} have not said so): keyquorum epoch commit at theirs, and bring their files here"
        )
    return replace(mine, stage=Stage.ERASED)
