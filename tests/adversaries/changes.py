"""How a corrupted party deviates: a message that it changes on the wire, or something that it does above the transport."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from keyquorum._engine import Session
from keyquorum.backends.base import OpeningMasks
from keyquorum.dsl import ShareVector
from keyquorum.sharing.randomness import HALF_BITS
from numpy.typing import NDArray

WIRE = ("drop", "flip", "random", "replay", "shorter", "longer", "other-session", "equivocate")
"""Kinds of changes of one message. drop: it is not sent. flip: one bit of its payload. random: a random payload of the same length. replay: the message before to the
same receiver is sent again, besides. shorter, longer: a byte less, or more. other-session: what the party sent at this place in another session. equivocate: the payload of
the last message to another receiver; where all receivers get the same, another one for this receiver."""
ABOVE = ("joint", "numbers", "shares", "input", "hash", "public")
"""Kinds above the transport. joint: shares of another joint integer in one domain. numbers: another number of one summand in all. shares: another share file, of a key or of what a program reads. input: another private input of one program. hash: another
digest in a comparison. public: another public input of one program."""
TAG = 8
"""Bytes of the tag of a message between engines."""

Message = tuple[int, bytes]
"""Receiver and bytes."""


@dataclass(frozen=True)
class Change:
    """One deviation: a kind of :data:`WIRE` with the index of the message, counted from the beginning of the plan, or one of :data:`ABOVE` with the index of the call."""

    kind: str
    index: int

    @property
    def on_wire(self) -> bool:
        """Whether a message is changed."""
        return self.kind in WIRE


class Wire:
    """The messages of a corrupted party. Those before :meth:`begin` belong to the set-up. ``sent``: all after it, as they should be."""

    def __init__(self, change: Change | None, other_session: Sequence[Message] = ()) -> None:
        self.change, self.other_session = change, other_session
        self.sent: list[Message] = []
        self.begun = self.done = False

    def begin(self) -> None:
        """The plan begins."""
        self.begun = True

    def __call__(self, to: int, message: bytes) -> list[bytes]:
        """What is sent instead of a message."""
        if not self.begun:
            return [message]
        index = len(self.sent)
        self.sent.append((to, message))
        if self.change is None or not self.change.on_wire or index != self.change.index:
            return [message]
        instead = self._instead(index, to, message)
        self.done = instead != [message]
        return instead

    def _instead(self, index: int, to: int, message: bytes) -> list[bytes]:
        assert self.change is not None
        before = [earlier for receiver, earlier in self.sent[:-1] if receiver == to]
        others = [earlier for receiver, earlier in self.sent[:-1] if receiver != to]
        tag, payload = (message[:TAG], message[TAG:]) if len(message) > TAG else (b"", message)
        match self.change.kind:
            case "drop":
                return []
            case "flip":
                return [tag + bytes([payload[0] ^ 1]) + payload[1:]] if payload else [message]
            case "random":
                return [tag + random.Random(index).randbytes(len(payload))]
            case "replay":
                return [*before[-1:], message]
            case "shorter":
                return [message[:-1]]
            case "longer":
                return [message + b"\0"]
            case "other-session":
                found = self.other_session[index][1] if index < len(self.other_session) else message
                return [tag + found[len(tag) :]]
            case "equivocate":
                other = others[-1][len(tag) :] if others else payload
                mixed = (other + payload[len(other) :])[: len(payload)]
                return [tag + (mixed if mixed != payload else bytes(byte ^ 1 for byte in payload))]
        raise AssertionError(f"no change on the wire: {self.change.kind}")


class Deviation:
    """What a corrupted party does above the transport: honest parties have one of no change. ``calls``: the calls of each kind so far."""

    def __init__(self, change: Change | None = None) -> None:
        self.change = change
        self.calls: dict[str, int] = dict.fromkeys(ABOVE, 0)
        self.done = False
        self._changed: list[tuple[NDArray[Any], NDArray[Any]]] = []

    def _now(self, kind: str) -> bool:
        index, self.calls[kind] = self.calls[kind], self.calls[kind] + 1
        now = self.change is not None and (kind, index) == (self.change.kind, self.change.index)
        self.done |= now
        return now

    def words(self, kind: str, words: NDArray[Any] | None) -> NDArray[Any] | None:
        """Private or public words as the party uses them: the first one is another, in its lowest bit."""
        if words is None or not words.size or not self._now(kind):
            return words
        changed = words.copy()
        changed.flat[0] ^= 1
        return changed

    def stored(self, shares: ShareVector) -> None:
        """Shares of a file as the party uses them: the lowest bit of the first one and of the last one is another, in each part."""
        if shares.length and self._now("shares"):
            for place in {0, shares.words.shape[1] - 1}:
                right = shares.words[:, place].copy()
                shares.words[:, place] ^= np.uint64(1)
                self._changed.append((shares.words[:, place].copy(), right))

    def undo(self, shares: ShareVector) -> None:
        """Words that :meth:`stored` changed as they were before, wherever they are now: for a judge of results."""
        for changed, right in self._changed:
            for place in np.flatnonzero((shares.words == changed[:, None]).all(axis=0)):
                shares.words[:, place] = right

    def opening_masks(self, masks: OpeningMasks | None) -> None:
        """Shares of a file for openings (:class:`.OpeningMasks`): of the first random element, and of the first one of the receiver."""
        if masks is not None and self._now("shares"):
            for shares in (masks.hidden, masks.masks):
                if shares is not None:
                    shares[0, 0] ^= np.uint64(1)

    def joint(self, shares: bytearray) -> bytearray:
        """Shares of joint integers in one domain: the lowest bit of each, in each part, is another."""
        if self._now("joint"):
            for place in range(0, len(shares), 8):
                shares[place] ^= 1
        return shares

    def numbers(self, words: bytearray) -> bytearray:
        """Words of one summand, of which noise is made: in the first half, the highest bit of each is another."""
        if self._now("numbers"):
            for place in range(7, len(words) // 2, 8):
                words[place] ^= 1 << (HALF_BITS - 1) % 8
        return words

    def digest(self, digest: bytes) -> bytes:
        """A digest that is compared."""
        return bytes([digest[0] ^ 1]) + digest[1:] if self._now("hash") else digest


class DeviatingJoint:
    """Joint integers of which a party takes other shares in one domain."""

    def __init__(self, joint: Any, deviation: Deviation) -> None:
        self._joint, self._deviation = joint, deviation

    def __len__(self) -> int:
        return len(self._joint)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._joint, name)

    def shares(self, domain: str, start: int = 0, count: int | None = None) -> bytearray:
        """See ``JointIntegers.shares``."""
        return self._deviation.joint(self._joint.shares(domain, start, count))

    def numbers(self, summand: int) -> bytearray:
        """See ``JointIntegers.numbers``."""
        return self._deviation.numbers(self._joint.numbers(summand))

    def shares_of(self, domain: str, computed: NDArray[np.int64]) -> bytearray:
        """See ``JointIntegers.shares_of``."""
        return self._deviation.joint(self._joint.shares_of(domain, computed))

    def indicators(self, domain: str, summand: int, value: int) -> bytearray:
        """See ``JointIntegers.indicators``."""
        return self._deviation.joint(self._joint.indicators(domain, summand, value))

    def bits(self, domain: str, summand: int, place: int) -> bytearray:
        """See ``JointIntegers.bits``."""
        return self._deviation.joint(self._joint.bits(domain, summand, place))


class DeviatingSession:
    """A session whose party compares other digests, or takes other joint integers. Everything else is that of the session."""

    def __init__(self, session: Session, deviation: Deviation) -> None:
        self._session, self._deviation = session, deviation

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def compare(self, label: str, digest: bytes) -> None:
        """See ``Session.compare``."""
        self._session.compare(label, self._deviation.digest(digest))

    def joint_integers(self, *arguments: Any, **named: Any) -> DeviatingJoint:
        """See ``Session.joint_integers``."""
        return DeviatingJoint(self._session.joint_integers(*arguments, **named), self._deviation)
