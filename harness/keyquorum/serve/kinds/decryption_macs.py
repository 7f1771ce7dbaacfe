"""Decryption by a served committee whose shares have MACs, for receivers who check what they get (:mod:`keyquorum.sharing.receivers`)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from keyquorum.model.checkpoints import reached
from keyquorum.model.committee import Committee
from keyquorum.model.domains import Ring, Sharing
from keyquorum.model.errors import ParameterError
from keyquorum.parties.context import PartyContext
from keyquorum.plans.pools import Pool
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.randomness import wipe
from keyquorum.sharing.receivers import Wanted, answers_for_receivers

from .base import Asked
from .decryption import ServedKey


class PaddedServedKey(ServedKey):
    """One key with its rounding, whose messages are opened under pads of their receivers. An item has its pads beside the masks of the rounding, so one claim, on the disk before anything is
    sent, is for both: after a crash neither is used again."""

    def __init__(self, committee: Committee, party: int, key: str, rounding: str, width: int = 8, levels: int = 2) -> None:
        super().__init__(committee, party, key, rounding, width, levels)
        padded = self.variant.padded
        if padded is None:
            raise ParameterError(f"{committee.protocol}: {rounding} has no pads for receivers outside: serve with round_ltz_circuit")
        assert committee.ring_protocol is not None
        self.sharing = Sharing(committee.ring_protocol, Ring(padded.bits))
        if self.sharing[1] not in {secret.domain for secret in self._info.secrets}:
            self.close()
            raise ParameterError(
                f"key {self.key_id} has no secret modulo 2^{padded.bits}, and decryptions under it are semi-honest: make a new key, with a plain modulus of at most some 21 bits"
            )

    def run(self, context: PartyContext, group: RoundingGroup, pool: Pool | None, batch: Sequence[Asked]) -> list[bytes]:
        """See :class:`.ServedKind`: this party's shares of the pads of each request, and what all parties opened. Raises PoolTooSmall before anything is claimed."""
        assert pool is not None
        requests = [parsed for _, parsed in batch]
        digest = hashlib.sha256("".join(f"{key} {parsed.digest} {parsed.count} " for key, parsed in batch).encode()).digest()
        wanted = [Wanted(key, parsed.count) for key, parsed in batch]
        count = sum(request.count for request in requests)
        z = self.phases(context, group, requests)
        try:
            with pool.claimed(count, f"{digest.hex()}, for receivers") as items:
                preprocessing, bound = items.take(count)
                reached("decrypt/before")
                answers = answers_for_receivers(group, self.variant, z, preprocessing, bound, wanted, hashlib.sha256(digest + bound).digest())
                reached("decrypt/after")
            reached("decrypt/removed")
        finally:
            wipe(z)
        return answers


__all__ = ["PaddedServedKey"]
