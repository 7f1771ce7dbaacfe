"""Metadata of TFHE keys, their public files, and the sharing of their secrets."""

from __future__ import annotations

from dataclasses import dataclass

from keyquorum.fhe.lwe import TfheParameters
from keyquorum.fhe.tfhe import KEY_FILES
from keyquorum.model.committee import Committee
from keyquorum.model.domains import Sharing
from keyquorum.model.errors import ParameterError
from keyquorum.schemes.lwe.key import domain_of
from keyquorum.schemes.seeded_keys import SeededKeyInfo, SeededKeys
from keyquorum.sharing.numbers import kind_of

from .noise import macs_refused


@dataclass(frozen=True, kw_only=True)
class TfheKeyInfo(SeededKeyInfo[TfheParameters]):
    """Metadata of a TFHE key."""


TFHE_KEYS = SeededKeys("TFHE", TfheKeyInfo, KEY_FILES, "tfhers-2-2")
"""Keys of TFHE, and their files."""


def sharing_of(committee: Committee, parameters: TfheParameters) -> Sharing:
    """Protocol and domain of the secrets' shares; refuses a committee that cannot make keys."""
    if committee.ring_protocol is None:
        raise ParameterError(
            f"{committee.protocol} shares over prime fields alone, {parameters.name} is modulo 2^64: take a committee of rep-field or semi"
        )
    if not kind_of(committee).plain_shares:
        raise ParameterError(macs_refused(parameters, committee.protocol, committee.size))
    return Sharing(committee.ring_protocol, domain_of(parameters))


__all__ = ["TFHE_KEYS", "TfheKeyInfo", "sharing_of"]
