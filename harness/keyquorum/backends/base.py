"""The interface of backends, which plans call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import Engine
from keyquorum.dsl import ShareVector
from keyquorum.dsl.files.share_vector import Unsigned
from keyquorum.model.errors import BackendError
from keyquorum.programs import Call

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]


@dataclass
class ProgramOutput:
    """The output of a program at this party: ``words`` are all values of ``binary_output``, public or revealed to this party, centred
    int64."""

    words: Ints
    stats: dict[str, int] = field(default_factory=dict)
    unused: dict[str, int] = field(default_factory=dict)


@dataclass
class OpeningMasks:
    """What the openings of a run with MACs take beside the values, from a pool (:program:`opening_masks`); each element serves once. ``hidden``: shares of random
    elements, [parts, words], one for each value that is opened, in the order of the openings. ``receiver``, ``masks``, ``known``: the party to which
    values are opened, shares of the elements under which that is done, and these elements at the receiver, zeros elsewhere; None if nobody gets
    values alone."""

    hidden: Unsigned
    receiver: int | None = None
    masks: Unsigned | None = None
    known: Words | None = None

    def give(self, engine: Engine) -> None:
        """Gives the elements to an engine that knows the tests of their MAC keys. The caller wipes them."""
        width = engine.share_parts * engine.element_bytes
        hidden = _contiguous(self.hidden)
        engine.give_random(hidden.view(np.uint8).ravel(), hidden.nbytes // width)
        _wipe_copy(hidden, self.hidden)
        if self.receiver is not None:
            assert self.masks is not None and self.known is not None
            masks, known = _contiguous(self.masks), _contiguous(self.known)
            engine.give_mask(self.receiver, masks.view(np.uint8).ravel(), known)
            _wipe_copy(masks, self.masks)
            _wipe_copy(known, self.known)

    def wipe(self) -> None:
        """Overwrites the elements with zeros."""
        for words in (self.hidden, self.masks, self.known):
            if words is not None:
                words.fill(0)


def _contiguous(words: Unsigned) -> Words:
    """As 64-bit words one after another: the same memory if it has this form, as there are many."""
    return np.ascontiguousarray(words, dtype=np.uint64)


def _wipe_copy(copy: Words, words: Unsigned) -> None:
    if not np.shares_memory(copy, words):
        copy.fill(0)


@dataclass(frozen=True)
class Mode:
    """How a program runs. Only the embedded backend has ``seed``, ``purpose`` and ``masks``."""

    threshold: int | None = None
    """The threshold of the shares; None: the default of the protocol."""
    seed: bytes | None = None
    """INSECURE, tests: all randomness is drawn from it."""
    keep: bool = False
    """Without it, parties compare program and arguments before each run, in one exchange. With it, they compare protocol and domain once, and use the same
    engine for this and later runs with ``keep``. It is for callers that have compared their work already, or that compare it by ``purpose``."""
    purpose: bytes = b""
    """What the run is for: the context that is bound to the messages of the run. Parties with different contexts refuse each other's messages."""
    masks: OpeningMasks | None = None
    """For protocols with MACs, what openings take, from a pool. Then checks of openings are deferred, which the header of the program must allow
    (``checks: deferred``), and the words are returned when all are verified."""


ONCE = Mode()


class Backend(ABC):
    """Runs programs at one party, jointly with the backends of the other parties. Party numbers are those of the committee or of a subset."""

    name: str
    takes_joint_integers: bool = False
    """Whether programs read joint integers of the session, which plans append to share files."""
    most_targets: int | None = None
    """Most targets that one run of ``rlwe_switch_key`` takes; None if any number."""

    @abstractmethod
    def run(
        self,
        protocol: str,
        domain: str,
        call: Call,
        *,
        private: Ints | None = None,
        public: Sequence[Ints] = (),
        shares: ShareVector | None = None,
        mode: Mode = ONCE,
    ) -> ProgramOutput:
        """Runs one program (a call of :mod:`keyquorum.programs.signatures`). Every party calls this with the same call and protocol.

        ``private``: this party's input words, in the order in which the program asks for them. ``public``: the words of
        ``fixinput``, joined. ``shares``: the share file of this domain, read and appended to.
        """

    def among(self, members: Sequence[int]) -> Backend:
        """A backend for some of the parties, numbered in the order of ``members``; only these parties call this."""
        raise BackendError(f"the {self.name} backend cannot run a program among some of the parties: use the embedded one")

    def open_kept(self, protocol: str, domain: str, threshold: int | None = None) -> None:  # noqa: B027
        """Opens the engine for runs with ``keep``; every party calls this. The default, for backends without such engines, does nothing."""

    def keep_note(self, kept: bool) -> None:  # noqa: B027
        """Whether a caller has noted that a check under the MAC key is open (``Session.begin_under_mac_key``), over several runs. Runs leave that note as it is then. The default, for
        backends whose runs make no such note, does nothing."""

    @abstractmethod
    def ring_bits(self, least: int) -> int:
        """The smallest k >= ``least`` such that programs run modulo 2^k."""

    @abstractmethod
    def stats(self) -> dict[str, int]:
        """Counters since the beginning: bytes_sent, bytes_received, rounds. If the backend reports them, the names with ``offline_`` (and
        offline_microseconds) have the part that made correlated randomness."""

    def unused(self) -> dict[str, int]:
        """Items of correlated randomness that were made and not used so far, by kind; empty where the backend does not report it."""
        return {}

    @abstractmethod
    def close(self) -> None:
        """Removes the files of the backend."""
