"""What a served committee decrypts: files of LWE ciphertexts, or a SEAL ciphertext of BFV or BGV. A kind reads requests and computes phases."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from keyquorum.fhe.lwe import LweCiphertexts, lwe_parameters, read_lwe
from keyquorum.fhe.seal_format import Ciphertext, read_ciphertext
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CiphertextError, KeyFileError, ParameterError
from keyquorum.model.plain import Json
from keyquorum.parties.context import PartyContext
from keyquorum.plans.decrypt import check_decryption
from keyquorum.plans.keys import check_made_by, load_key, read_share
from keyquorum.plans.lwe_decrypt import lwe_phases
from keyquorum.plans.lwe_keys import load_lwe_key, load_lwe_share, sharing_of
from keyquorum.plans.masked import MASKED, warn_of_rounding
from keyquorum.plans.phases import exact_summands
from keyquorum.plans.pool_variants import AnyVariant, odd_variant, variant_for
from keyquorum.plans.randomness import wipe
from keyquorum.plans.rounding import RoundingGroup, scaled_words

Words = NDArray[np.uint64]
MOST_CIPHERTEXTS = 4096
"""Most LWE ciphertexts of a request: up to 64 MiB. Receivers send longer files in parts."""


@dataclass(frozen=True)
class Asked:
    """What a request asks for. ``count``: items of the pool that it takes; ``digest``: the same at all parties that were asked the same."""

    content: Any
    count: int
    digest: str


class Kind(Protocol):
    """One key and rounding. ``limit``: bytes of the longest request; ``unit``: items of the pool that a ciphertext takes; ``batch``: most
    ciphertexts of a batch, if the service does not say; ``sharing``: protocol and domain of the shares of the key."""

    variant: AnyVariant
    key_id: str
    limit: int
    unit: int
    batch: int
    sharing: tuple[str, str]

    def read(self, head: Json, body: bytes | bytearray) -> Asked:
        """A request, checked; CiphertextError if it is none, or for another key."""

    def phases(self, context: PartyContext, group: RoundingGroup, asked: Sequence[Asked]) -> Words:
        """Our summands of the phases of some requests one after another, as the variant takes them."""

    def close(self) -> None:
        """Wipes our shares of the key."""


def _check_key_id(given: str, ours: str) -> None:
    if given != ours:
        raise CiphertextError(f"the request is encrypted under another key ({given}), not {ours}")


class LweKind:
    """Files of LWE ciphertexts."""

    unit, batch = 1, 4096

    def __init__(self, committee: Committee, party: int, key: str, rounding: str, width: int, levels: int) -> None:
        folder = committee.key_folder(party, key)
        self._info = load_lwe_key(folder)
        check_made_by(committee, self._info, folder)
        self._parameters = lwe_parameters(self._info.parameters)
        self.variant: AnyVariant = variant_for(committee, rounding, self._parameters, width, levels)
        warn_of_rounding(rounding, self._parameters)
        if committee.authenticated:
            raise ParameterError(
                f"{committee.protocol}: a receiver outside the committee cannot check MACs: decrypt to a party (--to), or serve with another committee"
            )
        self.sharing = sharing_of(committee, self._parameters)
        self.key_id = self._info.key_id
        self.limit = MOST_CIPHERTEXTS * 8 * (self._parameters.dimension + 1) + 4096
        self._share = load_lwe_share(folder, self._info, party)

    def read(self, head: Json, body: bytes | bytearray) -> Asked:
        """See :class:`Kind`."""
        ciphertexts, key_id = read_lwe(body, "the request")
        _check_key_id(key_id, self.key_id)
        if ciphertexts.parameters != self._parameters:
            raise CiphertextError(f"the request is of the set {ciphertexts.parameters.name}, not {self._parameters.name}")
        ciphertexts.check_rounding(self.variant.rounding, "the request")
        if ciphertexts.count > MOST_CIPHERTEXTS:
            raise CiphertextError(f"{ciphertexts.count} ciphertexts in one request: at most {MOST_CIPHERTEXTS}")
        return Asked(ciphertexts, ciphertexts.count, ciphertexts.digest().hex())

    def phases(self, context: PartyContext, group: RoundingGroup, asked: Sequence[Asked]) -> Words:
        """See :class:`Kind`."""
        all_ = [a.content for a in asked]
        joined = all_[0] if len(all_) == 1 else LweCiphertexts(
            self._parameters, np.concatenate([c.a for c in all_]), np.concatenate([c.b for c in all_])
        )  # fmt: skip
        return lwe_phases(context, group, self._share, joined)

    def close(self) -> None:
        """See :class:`Kind`."""
        self._share.wipe()


class SealKind:
    """One BFV or BGV ciphertext at the last level, in SEAL's format; an item of the pool for each coefficient."""

    batch = 16

    def __init__(self, committee: Committee, party: int, key: str, rounding: str) -> None:
        folder = committee.key_folder(party, key)
        self._info = load_key(folder)
        check_made_by(committee, self._info, folder)
        if rounding == MASKED:
            raise ParameterError(
                f"{MASKED} is sometimes wrong, and its errors tell of the secret key: a served committee counts no decryptions, so BFV and BGV are "
                "served with round_ltz_circuit alone"
            )
        self._odd = odd_variant(committee, rounding, self._info.parameters)
        self.variant: AnyVariant = self._odd
        self.key_id = self._info.key_id
        self.unit = self._info.parameters.ring_degree
        self.limit = 64 * self.unit + 65536
        self.sharing = committee.field_protocol, f"F_{self._info.parameters.coeff_modulus[0]}"
        self._share = read_share(folder, self._info, party, 0)

    def read(self, head: Json, body: bytes | bytearray) -> Asked:
        """See :class:`Kind`. SEAL's bytes do not tell the key: the head does."""
        _check_key_id(str(head.get("key", "")), self.key_id)
        ciphertext: Ciphertext = read_ciphertext(self._info.parameters, bytes(body), "the request")
        check_decryption(self._info, [ciphertext], 0, self._odd.rounding)
        return Asked(ciphertext, self.unit, hashlib.sha256(body).hexdigest())

    def phases(self, context: PartyContext, group: RoundingGroup, asked: Sequence[Asked]) -> Words:
        """See :class:`Kind`."""
        set_ = self._info.parameters
        u = exact_summands(context, self._info, self._share, group, [a.content for a in asked], keep=True)
        try:
            return np.stack(scaled_words(group, u, set_.coeff_modulus[0], set_.plain_modulus, self._odd.length))
        finally:
            wipe(u)

    def close(self) -> None:
        """See :class:`Kind`."""
        self._share.wipe()


def open_kind(committee: Committee, party: int, key: str, rounding: str, width: int, levels: int) -> Kind:
    """The kind of a key of this party."""
    if (committee.key_folder(party, key) / "key.json").exists():
        return SealKind(committee, party, key, rounding)
    if not (committee.key_folder(party, key) / "lwe.json").exists():
        raise KeyFileError(f"{committee.key_folder(party, key)}: no key here: make one with keyquorum keygen")
    return LweKind(committee, party, key, rounding, width, levels)
