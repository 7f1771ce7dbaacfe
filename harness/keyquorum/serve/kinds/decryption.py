"""Decryption by a served committee, under a key of any scheme whose decryptions take masks from a pool."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from keyquorum.model.committee import Committee
from keyquorum.model.domains import Domain, Sharing
from keyquorum.model.errors import CiphertextError
from keyquorum.model.plain import Json
from keyquorum.parties.context import PartyContext
from keyquorum.plans.masked import warn_of_rounding
from keyquorum.plans.pool_variants import variant_for
from keyquorum.plans.pools import Pool
from keyquorum.schemes import encryption_of
from keyquorum.schemes.holding import holding_of
from keyquorum.schemes.subset_keys import info_in, load_key_as
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.randomness import wipe
from keyquorum.sharing.variants import Variant

from ..copies import answer_of
from .base import Asked, ParsedRequest, ServedKind, check_named

Words = NDArray[np.uint64]


class ServedKey(ServedKind):
    """One key with its rounding. Items are those of the pool; the digest of a request is the SHA-256 of its body."""

    counter = "decryptions"
    variant: Variant

    def __init__(self, committee: Committee, party: int, key: str, rounding: str, width: int = 8, levels: int = 2) -> None:
        folder = committee.key_folder(party, key)
        stored = load_key_as(committee, folder)
        self._committee, self._info = committee, info_in(stored, committee, holding_of(folder, stored))
        self._scheme = encryption_of(self._info)
        self._scheme.check_served(committee, rounding)
        self.variant = variant_for(committee, rounding, self._info.parameters, width, levels)
        warn_of_rounding(rounding, self._info.parameters)
        domain = Domain.parse(self._info.secrets[0].domain)
        ring = committee.ring_protocol if domain.prime is None else None
        self.sharing = Sharing(ring or committee.field_protocol, domain)
        self.key_id = self._info.key_id
        self.unit, self.batch = self._scheme.unit(self._info.parameters), self._scheme.batch
        self.limit = self._scheme.request_limit(self._info.parameters)
        self.audited, self.compared = {"rounding": rounding}, {}
        self._shares = self.load(committee, folder, stored, party, self._scheme.vectors_needed(self._info, []))

    def read(self, head: Json, body: bytes | bytearray) -> ParsedRequest:
        """A checked request. Raises CiphertextError if the body is malformed, or encrypted under another key. Where the ciphertext does not name its
        key, the head of the message does."""
        if not self._scheme.names_key and head.get("key") != self.key_id:
            served = f"the {self._info.parameters.scheme.upper()} key {self.key_id}, which is served here"
            if not isinstance(head.get("key"), str):
                raise CiphertextError(
                    f"the request names no key, as those of LWE and TFHE do, and not {served}: ask the committee that serves its key"
                )
            raise CiphertextError(f"the request is encrypted under another key ({head['key']}), not {served}")
        check_named(self.named, head)
        ciphertext = self._scheme.parse(self._info, bytes(body), "the request", self.variant.rounding)
        self._scheme.check_decryption(self._info, [ciphertext], 0, self.variant.rounding)
        count, most = self._scheme.item_count(self._info, ciphertext), self._scheme.most_asked
        if count > most * self.unit:
            raise CiphertextError(f"{count // self.unit} ciphertexts in one request: at most {most}")
        return ParsedRequest(ciphertext, count, hashlib.sha256(body).hexdigest())

    def phases(self, context: PartyContext, group: RoundingGroup, asked: Sequence[ParsedRequest]) -> Words:
        """This party's summands of the phases of the requests, one request after another, in the form that the variant takes."""
        contents = [a.content for a in asked]
        return self._scheme.phases(context, group, self._info, self._shares, self.variant, contents, keep=True)

    def run(self, context: PartyContext, group: RoundingGroup, pool: Pool | None, batch: Sequence[Asked]) -> list[bytes]:
        """This party's shares of the messages of each request (:func:`.answer_of`). Raises PoolTooSmall before anything is claimed."""
        assert pool is not None
        requests = [parsed for _, parsed in batch]
        z = self.phases(context, group, requests)
        purpose = _purpose(batch)
        try:
            shares = pool.decrypt(z, purpose)
        finally:
            wipe(z)
        assert shares is not None
        answers, at = [], 0
        for request in requests:
            answers.append(answer_of(self._committee, shares[:, at : at + request.count]))
            at += request.count
        shares.fill(0)
        return answers

    def close(self) -> None:
        """Wipes this party's shares of the key."""
        for share in self._shares:
            share.wipe()


def _purpose(batch: Sequence[Asked]) -> str:
    """What the parties compare before they open anything: the requests of a batch in their order. Each with its key, as bodies may be equal: shares of two sharings of one message do not belong together."""
    return hashlib.sha256(" ".join(f"{key} {parsed.digest} {parsed.count}" for key, parsed in batch).encode()).hexdigest()
