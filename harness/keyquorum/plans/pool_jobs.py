"""The jobs that fill pools."""

from __future__ import annotations

from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError
from keyquorum.model.plain import Json
from keyquorum.parties.context import PartyContext
from keyquorum.parties.epochs import read_epoch
from keyquorum.parties.jobs import party_job
from keyquorum.schemes.holding import check_hold
from keyquorum.schemes.prf.tables import aes_tables
from keyquorum.sharing.variants import PreprocessingKind

from .pool_variants import pool_group, variant_of
from .pools import Pool, pool_name

MOST_ITEMS = 1 << 40
"""Items that are asked for at once, at most."""


def check_parties(committee: Committee, party: int, job: Json) -> None:
    """Refuses parties that are not in the epoch of the others: items are of one. Raises EpochError."""
    check_hold(committee.members, read_epoch(committee.party_folder(party)))


@party_job(
    "pool_fill",
    {"parameters": str, "rounding": str, "width": int, "levels": int, "count": int, "chunk": int},
    check_parties,
    subsets=True,
    verified=True,
)
def pool_fill_job(context: PartyContext, job: Json) -> Json:
    """The job ``pool_fill``: makes ``count`` items, ``chunk`` at a time."""
    return fill(context, variant_of(context.committee, job), job["count"], job["chunk"])


@party_job("toprf_fill", {"count": int, "chunk": int}, subsets=True)
def toprf_fill_job(context: PartyContext, job: Json) -> Json:
    """The job ``toprf_fill``: one-time tables of AES for ``count`` blocks, ``chunk`` at a time."""
    return fill(context, aes_tables(context.committee), job["count"], job["chunk"])


def check_fill(count: int, chunk: int) -> None:
    """Raises ParameterError for numbers that no pool is filled by."""
    if not (1 <= count <= MOST_ITEMS and 1 <= chunk <= 1 << 20):
        raise ParameterError(f"{count} items by {chunk}: choose 1 to 2^40, and chunks of 1 to 2^20")


def fill(context: PartyContext, kind: PreprocessingKind, count: int, chunk: int) -> Json:
    """Makes ``count`` items of a kind, ``chunk`` at a time; every party calls this. The result has the items that are there."""
    check_fill(count, chunk)
    group, name = pool_group(context), pool_name(context.committee, kind)
    pool = Pool(context, group, kind) if group.member else None
    return {"pool": name, "available": fill_together(context, pool, name, (count, chunk))}


def fill_together(context: PartyContext, pool: Pool | None, name: str, items: tuple[int, int]) -> int:
    """Makes items of a pool of some parties of a session, and closes it; every party calls this, those that are no members without a pool. ``items``: how many, and how many at a time. Returns the
    items that are there."""
    count, chunk = items
    chunks, available = -(-count // chunk), 0
    try:
        if pool is not None:
            pool.store.require_room(count, len(pool.group.context.committee.local_parties()))
        with context.phase("fill", chunks) as step:
            for i in range(chunks):
                if pool is not None:
                    available = pool.fill(min(chunk, count - i * chunk), chunk)
                # Parties that are no members do not time out.
                context.session.compare("items made", f"{name} {i}".encode())
                step()
    finally:
        if pool is not None:
            pool.close()
    return available
