"""Names of shares that were computed locally from others, where runs have names (:attr:`.Protocol.names_runs`)."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from keyquorum.dsl import ShareVector
from keyquorum.dsl.files.share_vector import KeyTest
from keyquorum.model.errors import ParameterError
from keyquorum.model.protocols import PROTOCOLS


def named(shares: ShareVector, protocol: str, domain: str, purpose: str, names: Sequence[KeyTest]) -> ShareVector:
    """Gives ``shares``, which were computed locally from shares with these names (:attr:`.ShareVector.key_tests`), a name of their own: a hash of
    ``purpose`` and the names. All parties compare it before a program uses the shares. Without effect where runs have no names. Returns ``shares``."""
    shares.bind(protocol, domain)
    if PROTOCOLS[protocol].names_runs:
        if not names:
            raise ParameterError(f"shares of {protocol} without the name of a run are not used: make the key again")
        shares.key_tests = [joined_name(purpose, names)]
    return shares


def joined_name(purpose: str, names: Sequence[KeyTest]) -> KeyTest:
    """A hash of a purpose and of names, as long as one of these (at least one)."""
    said = b"".join(len(name).to_bytes(4, "little") + name.tobytes() for name in names)
    digest = hashlib.sha256(b"keyquorum shares computed from others" + purpose.encode() + b"\0" + said).digest()
    return np.frombuffer(digest[: names[0].size], dtype=np.uint8).copy()


__all__ = ["joined_name", "named"]
