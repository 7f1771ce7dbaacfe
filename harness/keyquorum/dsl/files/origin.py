"""The origin of shares: what is stored with them, so that parties which have shares of different runs see it before they use them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from keyquorum.model.errors import ProgramError

NO_ORIGIN = "the shares do not state the run that made them: if MP-SPDZ made them, use them there; if an earlier build stored them, they cannot be used, make new ones"


class Origin:
    """Where the shares of one party come from, as the engine states it (``Engine.origin``). Where products are verified: the name of the run that made or
    last changed the shares, 16 bytes, which all parties compare before they use the shares. With MACs: the name, and this party's shares of random
    elements, with which a session tests that its MAC keys are those of the shares. Semi-honest parties store none.

    ``words``: the bytes, of shape [bytes], which belong to this object."""

    def __init__(self, data: bytes | NDArray[np.uint8]) -> None:
        self.words: NDArray[np.uint8] = data if isinstance(data, np.ndarray) else np.frombuffer(data, dtype=np.uint8).copy()
        if not self.words.size:
            raise ProgramError(NO_ORIGIN)

    @classmethod
    def derived(cls, purpose: str, origins: Sequence[Origin]) -> Origin:
        """The origin of shares that were computed locally from shares of these origins (at least one), which are names: a hash of ``purpose`` and the
        names, as long as one of them."""
        said = b"".join(len(data).to_bytes(4, "little") + data for data in map(bytes, origins))
        digest = hashlib.sha256(b"keyquorum shares computed from others" + purpose.encode() + b"\0" + said).digest()
        return cls(digest[: origins[0].words.size])

    def __bytes__(self) -> bytes:
        return self.words.tobytes()

    def copy(self) -> Origin:
        """An independent copy."""
        return Origin(self.words.copy())

    def wipe(self) -> None:
        """Overwrites the bytes with zeros: with MACs they are secret."""
        self.words.fill(0)


__all__ = ["NO_ORIGIN", "Origin"]
