"""The job that fills a pool."""

from __future__ import annotations

from keyquorum.model.errors import ParameterError
from keyquorum.model.plain import Json
from keyquorum.parties.context import PartyContext
from keyquorum.parties.jobs import party_job

from .pool_variants import pool_group, variant_of
from .pools import Pool


@party_job("pool_fill", {"parameters": str, "rounding": str, "width": int, "levels": int, "count": int, "chunk": int})
def pool_fill_job(context: PartyContext, job: Json) -> Json:
    """The job ``pool_fill``: makes ``count`` items, ``chunk`` at a time."""
    variant = variant_of(context.committee, job)
    if not (1 <= job["count"] <= 1 << 40 and 1 <= job["chunk"] <= 1 << 20):
        raise ParameterError(f"{job['count']} items by {job['chunk']}: choose 1 to 2^40, and chunks of 1 to 2^20")
    group = pool_group(context)
    pool = Pool(context, group, variant) if group.member else None
    chunks = -(-job["count"] // job["chunk"])
    available = 0
    try:
        if pool is not None:
            pool.store.require_room(job["count"], len(context.committee.local_parties()))
        with context.phase("fill", chunks) as step:
            for i in range(chunks):
                if pool is not None:
                    available = pool.fill(min(job["chunk"], job["count"] - i * job["chunk"]), job["chunk"])
                # Parties that are no members do not time out.
                context.session.compare("items made", f"{variant.name} {i}".encode())
                step()
    finally:
        if pool is not None:
            pool.close()
    return {"pool": variant.name, "available": available}
