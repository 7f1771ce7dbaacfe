"""Pools of the new epoch that are filled before the parties vote (``--hold``): then nobody serves with empty pools after the change.

1. Every party shows which pools it has in its epoch, as far as a key of the committee uses them, and how many items are left. A pool is filled if all its parties have it, with as many items as the party with the fewest has. All compare the list.
2. The parties of each pool make its items in this session, one pool after another, with fresh randomness, in the folder of the new epoch (:func:`.pools_place`). Parties that serve use those of their epoch meanwhile.
3. A party votes after all pools are filled. Before that, a change that ends erases them with the new shares (:meth:`.Change.refuse`), also after a crash. No pool is moved: the commit alone decides which ones are used.

Pools of some parties are filled where these share additively (:class:`.Subset`): a session for malicious parties has no groups.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from keyquorum.backends.embedded import Embedded
from keyquorum.model.checkpoints import reached
from keyquorum.model.committee import Committee
from keyquorum.model.errors import EpochError, KeyQuorumError, ParameterError, PoolCannotGrow, PoolError, ResourceError
from keyquorum.model.plain import is_count, json_loads
from keyquorum.model.subset import subset_of
from keyquorum.parties.context import PartyContext
from keyquorum.parties.sessions import prepare
from keyquorum.plans.pool_jobs import MOST_ITEMS, fill_together
from keyquorum.plans.pool_list import PoolList, read_pool
from keyquorum.plans.pool_store import pool_status
from keyquorum.plans.pool_variants import pool_group, variant_for
from keyquorum.plans.pools import CHUNK, Pool, pool_name, pools_folder
from keyquorum.schemes import scheme_of
from keyquorum.schemes.base import Scheme
from keyquorum.schemes.keys import Parameters
from keyquorum.schemes.prf.tables import aes_tables
from keyquorum.sharing.variants import VARIANTS, PreprocessingKind

TABLES = re.compile(r"-(\d{1,2})x(\d)$")
"""Width and levels at the end of the text of a rounding with tables."""


@dataclass(frozen=True, order=True)
class Held:
    """A pool to be filled. ``numbers``: its parties, of a subset; empty: it is the whole committee's. ``count``: its items, ``chunk`` at a time."""

    name: str
    numbers: tuple[int, ...]
    count: int
    chunk: int


@dataclass(frozen=True)
class Mine:
    """A pool of this party in its epoch."""

    said: Held
    committee: Committee
    kind: PreprocessingKind


def fill_held(context: PartyContext, keys: Sequence[Parameters], epoch: str) -> dict[str, int]:
    """Fills pools of an epoch that is not there yet, as the parties have them in theirs; every party calls this. ``keys``: parameter sets of the keys. Returns the items by name of the pool. Raises
    PoolCannotGrow, with nothing changed in the party's own epoch, if a party has no room; the caller refuses the change then, which erases what was filled."""
    if not isinstance(context.backend, Embedded):
        raise PoolError("pools need the embedded engine: leave out --backend")
    mine = {(each.said.name, each.said.numbers): each for each in _here(context, keys)}
    said = [[each.said.name, each.said.numbers, each.said.count, each.said.chunk] for each in mine.values()]
    shown = [_parsed(context.committee, *told) for told in enumerate(context.session.all_gather(json.dumps(said).encode()))]
    wanted = _agreed(context.committee, shown)
    context.session.compare("pools to fill", hashlib.sha256(repr(wanted).encode()).digest())
    reached("hold/agreed")
    for held in wanted:
        try:
            _fill(context, held, mine.get((held.name, held.numbers)), epoch)
        except ResourceError as error:
            raise PoolCannotGrow(f"pool {held.name} of the new epoch: {error}: the old epoch goes on; make room, or refresh without --hold") from None
        reached("hold/filled")
    return {held.name: held.count for held in wanted}


def _here(context: PartyContext, keys: Sequence[Parameters]) -> Iterator[Mine]:
    """The pools of this party in its epoch that have items left, are of parties of the session, and are of use for a key. One that is damaged is nobody's."""
    whole, number = context.committee.whole, context.committee.number_of(context.party)
    for folder in sorted(path for path in pools_folder(whole, number).glob("*") if path.is_dir()):
        with suppress(PoolError):
            found = read_pool(folder)
            if found is None:
                continue
            made, used = pool_status(folder)
            committee = _committee_of(context.committee, found)
            kind = None if committee is None else _kind_of(committee, folder, found, keys)
            if committee is not None and kind is not None and made > used:
                numbers = () if committee is context.committee else tuple(found.kind["members"])
                chunk = min(CHUNK, max((chunk.count for chunk in found.chunks.listed), default=CHUNK))
                yield Mine(Held(folder.name, numbers, made - used, chunk), committee, kind)


def _committee_of(present: Committee, found: PoolList) -> Committee | None:
    """The parties of a pool: those of the session, or a subset of them. None for others."""
    if found.kind.get("committee") == present.digest.hex():
        return present
    with suppress(KeyQuorumError, TypeError):
        subset = subset_of(present.whole, found.kind["members"])
        there = {present.number_of(party) for party in range(present.size)}
        if found.kind.get("committee") == subset.digest.hex() and there.issuperset(subset.numbers):
            return subset
    return None


def _kind_of(committee: Committee, folder: Path, found: PoolList, keys: Sequence[Parameters]) -> PreprocessingKind | None:
    """What a pool has items of, for one of these keys; None if none of them uses it."""
    for kind in (kind for parameters in keys for kind in _kinds(committee, parameters, str(found.kind.get("variant")))):
        if pool_name(committee, kind) == folder.name and kind.described == found.kind["variant"]:
            return kind
    return None


def _kinds(committee: Committee, parameters: Parameters, described: str) -> Iterator[PreprocessingKind]:
    tables = TABLES.search(described)
    shape = (int(tables[1]), int(tables[2])) if tables else ()
    if not isinstance(scheme_of(parameters), Scheme):
        with suppress(ParameterError):
            yield aes_tables(committee)
        return
    for rounding in VARIANTS:
        if rounding in described:
            with suppress(ParameterError):
                yield variant_for(committee, rounding, parameters, *shape)


def _parsed(committee: Committee, party: int, data: bytes) -> dict[tuple[str, tuple[int, ...]], Held]:
    """The pools that a party showed. Raises EpochError."""
    try:
        said = json_loads(data)
        shown = [Held(name, tuple(numbers), count, chunk) for name, numbers, count, chunk in said]
        proper = isinstance(said, list) and all(isinstance(held.name, str) and _is_subset(committee, held.numbers) for held in shown)
        proper = proper and all(
            is_count(held.count, 1) and held.count <= MOST_ITEMS and is_count(held.chunk, 1) and held.chunk <= CHUNK for held in shown
        )
    except (ValueError, TypeError):
        proper = False
    if not proper:
        raise EpochError(f"party {committee.number_of(party)} sent something that is no list of its pools: run the same version everywhere")
    return {(held.name, held.numbers): held for held in shown}


def _is_subset(committee: Committee, numbers: Sequence[int]) -> bool:
    """Whether pools of parties with these numbers are filled in a session of this committee: some of it, or all (none is named)."""
    there = {committee.number_of(party) for party in range(committee.size)}
    proper = all(map(is_count, numbers)) and there.issuperset(numbers) and list(numbers) == sorted(set(numbers))
    return not numbers or (proper and len(numbers) > 1 and not committee.malicious)


def _agreed(committee: Committee, shown: Sequence[Mapping[tuple[str, tuple[int, ...]], Held]]) -> list[Held]:
    """The pools that all their parties have."""
    found = []
    for name, numbers in sorted({pool for pools in shown for pool in pools}):
        said = [shown[party].get((name, numbers)) for party in _members(committee, numbers)]
        having = [held for held in said if held is not None]
        if len(having) == len(said):
            found.append(Held(name, numbers, min(held.count for held in having), min(held.chunk for held in having)))
    return found


def _members(committee: Committee, numbers: Sequence[int]) -> list[int]:
    """Parties of the session that have a pool: those of a subset, all, or the t + 1 that round (:func:`.pool_group`)."""
    if numbers:
        return [committee.index_of(number) for number in numbers]
    return list(range(committee.size if committee.capabilities.quorum is None else committee.threshold + 1))


def _fill(context: PartyContext, held: Held, mine: Mine | None, epoch: str) -> None:
    pool = None
    if mine is not None:
        members = context if not held.numbers else _among(context, mine.committee, _members(context.committee, held.numbers))
        pool = Pool(members, pool_group(members), mine.kind, epoch)
    fill_together(context, pool, held.name, (held.count, held.chunk))


def _among(context: PartyContext, committee: Committee, members: Sequence[int]) -> PartyContext:
    """The context of some parties of the session, all of which call this. Its secrets are new, and its costs count in the session."""
    backend = context.backend.among(members)
    assert isinstance(backend, Embedded)
    prepare(backend.session, committee)
    return PartyContext(backend.session, committee, None, backend)


__all__ = ["fill_held"]
