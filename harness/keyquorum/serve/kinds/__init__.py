"""What a served committee does under a key: a kind of service for each use of keys. This module finds the kind of a key."""

from __future__ import annotations

from keyquorum.model.committee import Committee
from keyquorum.model.errors import ParameterError
from keyquorum.schemes.key_folder import load_key
from keyquorum.schemes.prf.key import PrfKeyInfo

from ..answers import Answers
from .base import Own, ServedKind, Service
from .decryption import ServedKey
from .decryption_macs import PaddedServedKey
from .toprf import ToprfKind
from .toprf_macs import MaskedToprfKind


def open_kind(committee: Committee, party: int, service: Service) -> ServedKind:
    """The kind of service for a key, with this party's shares loaded."""
    usual, padded = Service(service.key), Answers.of(committee) is Answers.PADDED
    if isinstance(load_key(committee.key_folder(party, service.key)), PrfKeyInfo):
        for name in ("rounding", "width", "levels"):
            if getattr(service, name) != getattr(usual, name):
                raise ParameterError(f"--{name} is for decryptions, and key {service.key} is one of a PRF: leave it out")
        return (MaskedToprfKind if padded else ToprfKind)(committee, party, service)
    if service.method != usual.method:
        raise ParameterError(f"method {service.method} is for keys of a PRF, and key {service.key} decrypts: leave it out")
    kind = PaddedServedKey if padded else ServedKey
    return kind(committee, party, service.key, service.rounding, service.width, service.levels)


__all__ = ["Own", "ServedKey", "ServedKind", "Service", "ToprfKind", "open_kind"]
