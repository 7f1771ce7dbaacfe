"""What must not run beside a change of shares: daemons, which have the shares of an epoch in memory and lend their locks meanwhile, and users of pools, whose masks are of one epoch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from keyquorum.model.committee import Committee
from keyquorum.parties.queue import hold, unserved
from keyquorum.plans.pools import require_unused_pools


@contextmanager
def shares_alone(committee: Committee, parties: Sequence[int], what: str) -> Iterator[None]:
    """Holds the serve locks of parties of this host, after it has seen that nobody uses their pools. ``what``: the work. Raises CommitteeError and PoolError, before
    anything changes."""
    with unserved(committee, parties, what):
        for party in parties:
            require_unused_pools(committee, party)
        yield


@contextmanager
def orders_alone(committee: Committee, what: str) -> Iterator[None]:
    """The same for all parties of this host, and no job runs at them. Waits for no job: an order is not heard while what it orders about changes. Daemons first, as they are jobs while they connect."""
    parties = committee.local_parties()
    with shares_alone(committee, parties, what), hold(committee, parties, {"kind": what}, patience=0.0):
        yield


__all__ = ["orders_alone", "shares_alone"]
