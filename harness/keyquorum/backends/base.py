"""What a plan asks of a backend."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from keyquorum.dsl import Persistence
from keyquorum.model.errors import BackendError
from keyquorum.programs import Call

Ints = NDArray[np.int64]


@dataclass
class ProgramOutput:
    """What a program gave this party: all it wrote by ``binary_output``, public or revealed to this party, centred
    int64."""

    words: Ints
    stats: dict[str, int] = field(default_factory=dict)
    unused: dict[str, int] = field(default_factory=dict)


class Backend(ABC):
    """One party's way to run programs jointly with the same party numbers of the others."""

    name: str
    most_targets: int | None = None
    """Most targets that one run of ``rlwe_switch_key`` takes; None if any number."""

    @abstractmethod
    def run(
        self,
        protocol: str,
        domain: str,
        call: Call,
        *,
        threshold: int | None = None,
        private: Ints | None = None,
        public: Sequence[Ints] = (),
        persistence: Persistence | None = None,
        seed: bytes | None = None,
        keep: bool = False,
        about: bytes = b"",
    ) -> ProgramOutput:
        """Runs one program (a call of :mod:`keyquorum.programs.signatures`); every party calls this alike.

        ``private``: this party's input words, in the order in which the program asks for them. ``public``: the words of
        ``fixinput``, joined. ``persistence``: the share file of this domain, read and appended to. ``seed``: INSECURE,
        tests. ``keep``: parties compare program and arguments before they run them, one exchange; with this they do so for
        protocol and domain only, once, and run this and later such programs on what they keep. For callers that
        have compared what they are about to do, or let the first messages of this run compare it: ``about`` (needs a backend that
        compares) must be the same at all, or they refuse each other's messages.
        """

    def among(self, members: Sequence[int]) -> Backend:
        """A backend for some of the parties, numbered in the order of ``members``; only they call this."""
        raise BackendError(f"the {self.name} backend cannot run a program among some of the parties: use the embedded one")

    def open_kept(self, protocol: str, domain: str, threshold: int | None = None) -> None:  # noqa: B027
        """Prepares for runs with ``keep``; every party calls this. A backend that keeps nothing does nothing."""

    @abstractmethod
    def ring_bits(self, least: int) -> int:
        """The smallest k >= ``least`` such that programs run modulo 2^k."""

    @abstractmethod
    def stats(self) -> dict[str, int]:
        """Counters since the beginning: bytes_sent, bytes_received, rounds; and of these, if the backend tells, what made
        correlated randomness: the same names and microseconds, after ``offline_``."""

    def unused(self) -> dict[str, int]:
        """Correlated randomness that was made and not used so far, by kind; empty where the backend does not tell."""
        return {}

    @abstractmethod
    def close(self) -> None:
        """Removes what the backend keeps on disk."""
