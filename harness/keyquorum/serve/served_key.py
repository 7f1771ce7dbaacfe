"""The key that a served committee decrypts under: of any scheme whose decryptions take masks from a pool."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keyquorum.model.committee import Committee
from keyquorum.model.errors import CiphertextError
from keyquorum.model.plain import Json
from keyquorum.parties.context import PartyContext
from keyquorum.plans.masked import warn_of_rounding
from keyquorum.plans.pool_variants import variant_for
from keyquorum.schemes import scheme_of
from keyquorum.schemes.key_folder import check_made_by, load_key, load_shares
from keyquorum.sharing.rounding import RoundingGroup

Words = NDArray[np.uint64]


@dataclass(frozen=True)
class ParsedRequest:
    """The ciphertexts of a request. ``count``: pool items that it takes. ``digest``: SHA-256 of its body, equal at all parties that got the same
    request."""

    content: object
    count: int
    digest: str


class ServedKey:
    """One key with its rounding. ``limit``: bytes of the longest request; ``unit``: pool items that a ciphertext takes; ``batch``: most
    ciphertexts in a batch, unless the service has its own bound; ``sharing``: protocol and domain of the shares of the key."""

    def __init__(self, committee: Committee, party: int, key: str, rounding: str, width: int = 8, levels: int = 2) -> None:
        folder = committee.key_folder(party, key)
        self._info = load_key(folder)
        self._scheme = scheme_of(self._info)
        check_made_by(committee, self._info, folder)
        self._scheme.check_served(committee, rounding)
        self.variant = variant_for(committee, rounding, self._info.parameters, width, levels)
        warn_of_rounding(rounding, self._info.parameters)
        domain = self._info.secrets[0].domain
        ring = committee.ring_protocol if domain.startswith("Z2^") else None
        self.sharing = ring or committee.field_protocol, domain
        self.key_id = self._info.key_id
        self.unit, self.batch = self._scheme.unit(self._info.parameters), self._scheme.batch
        self.limit = self._scheme.request_limit(self._info.parameters)
        self._shares = load_shares(folder, self._info, party, self._scheme.vectors_needed([]))

    def read(self, head: Json, body: bytes | bytearray) -> ParsedRequest:
        """A checked request. Raises CiphertextError if the body is malformed, or encrypted under another key. Where the ciphertext does not name its
        key, the head of the message does."""
        if not self._scheme.names_key and head.get("key") != self.key_id:
            raise CiphertextError(f"the request is encrypted under another key ({head.get('key', '')}), not {self.key_id}")
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

    def close(self) -> None:
        """Wipes this party's shares of the key."""
        for share in self._shares:
            share.wipe()
