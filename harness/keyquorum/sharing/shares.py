"""Runs of programs on shares, as plans write them: what is the same for all programs of a plan is given once (:class:`Run`), and shares know
protocol, domain and segments (:class:`Shares`).

A plan reads ``with run.field(q).shares() as x: x.run(sample_cbd(size=n), appends="noise")``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import JointIntegers
from keyquorum.backends.base import Backend, Mode, OpeningMasks
from keyquorum.dsl import ShareVector
from keyquorum.dsl.files.origin import Origin
from keyquorum.model.domains import Domain, Field, Ring, Sharing
from keyquorum.model.errors import ParameterError
from keyquorum.parties.context import PartyContext
from keyquorum.programs import Call, Layout, Segment

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]


@dataclass(frozen=True)
class Run:
    """The programs of one plan at one party."""

    context: PartyContext

    def field(self, prime: int) -> DomainRun:
        """Programs modulo a prime, by the committee's protocol for prime fields."""
        return self.over(Sharing(self.context.committee.field_protocol, Field(prime)))

    def ring(self, bits: int) -> DomainRun:
        """Programs modulo 2^``bits``, by the committee's protocol for rings. Raises ParameterError if it has none."""
        protocol = self.context.committee.ring_protocol
        if protocol is None:
            raise ParameterError(f"{self.context.committee.protocol} shares over prime fields alone")
        return self.over(Sharing(protocol, Ring(bits)))

    def over(self, sharing: Sharing) -> DomainRun:
        """Programs by any protocol, over any domain."""
        committee = self.context.committee
        return DomainRun(self.context, sharing, self.context.backend, committee.threshold, committee.share_parts)


@dataclass(frozen=True)
class DomainRun:
    """The programs of a plan over one domain, among the parties of ``backend``: all, or those that round (:class:`.RoundingGroup`).

    threshold: of their sharing (None: the protocol's own). parts: elements that a party holds of a share. pause: what all of them do before each
    program."""

    context: PartyContext
    sharing: Sharing
    backend: Backend = field(repr=False)
    threshold: int | None
    parts: int
    pause: Callable[[], None] | None = field(default=None, repr=False, compare=False)

    @property
    def domain(self) -> Domain:
        """The domain of the shares."""
        return self.sharing.domain

    @property
    def modulus(self) -> int:
        """Number of elements of the domain."""
        return self.domain.modulus

    def run(
        self, call: Call, file: ShareVector, private: Ints | None = None, public: Sequence[Ints] = (), keep: bool = False, purpose: bytes = b"",
        masks: OpeningMasks | None = None,
    ) -> Ints:  # fmt: skip
        """The words that a program opens to this party; every party calls this. ``file``: the shares that it reads, and to which it appends.
        ``purpose``: the context of the messages. ``private``, ``public``, ``keep``, ``masks``: see :meth:`.Backend.run`."""
        if self.pause is not None:
            self.pause()
        return self.backend.run(
            *self.sharing, call, private=private, public=public, shares=file,
            mode=Mode(threshold=self.threshold, seed=self.context.seed, keep=keep, purpose=purpose, masks=masks),
        ).words  # fmt: skip

    def shares(self, file: ShareVector | None = None, **lengths: int) -> Shares:
        """Shares over this domain: those of a share file, of which the caller gives up the ownership, or none yet. ``lengths``: the segments that
        are there."""
        return Shares(self, ShareVector() if file is None else file, Layout(**lengths))

    def joint_integers(self, count: int, bits: int, terms: int = 1) -> JointIntegers:
        """``count`` joint integers (``Source/mpc/src/joint.rs``): each is the sum of ``terms`` numbers of ``bits`` bits of each set of parties. If
        ``bits`` is 0, each is the sum of a number of each set, uniform in {0, 1, 2}. Rounds: those of a toss where draws have names, else none.
        Raises ParameterError for a backend without joint integers."""
        if not self.backend.takes_joint_integers:
            raise ParameterError(
                f"{self.sharing.protocol}: the {self.backend.name} backend takes no joint integers, which this committee needs: leave out --backend"
            )
        if self.backend is not self.context.backend:
            raise ParameterError(f"{self.sharing.protocol}: joint integers are drawn by all parties, and this is a run of some of them")
        drawn: JointIntegers = self.context.session.joint_integers(self.sharing.protocol, count, bits, terms, self.threshold, self.context.seed)
        return drawn


class Shares:
    """One party's shares of one protocol and domain, as named segments of a share file. A ``with`` block wipes them at its end."""

    def __init__(self, runs: DomainRun, file: ShareVector, layout: Layout) -> None:
        self.runs, self.file, self.layout = runs, file, layout

    def __repr__(self) -> str:
        return f"Shares({self.length} shares of {self.runs.sharing.protocol} over {self.runs.domain})"

    def __enter__(self) -> Shares:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self.wipe()

    def __getitem__(self, name: str) -> Segment:
        """A segment. Raises ParameterError if there is none of this name."""
        return self.layout[name]

    @property
    def length(self) -> int:
        """Number of shares."""
        return self.file.length

    def run(
        self, call: Call, private: Ints | None = None, public: Sequence[Ints] = (), appends: str | None = None, keep: bool = False,
        purpose: bytes = b"", masks: OpeningMasks | None = None,
    ) -> Ints:  # fmt: skip
        """Runs a program on these shares (:meth:`DomainRun.run`). ``appends``: the name of the segment that it appends."""
        before = self.length
        if appends is not None and self.layout.length != before:
            raise ParameterError(f"{before - self.layout.length} shares have no name yet: name them before {call.program} appends {appends}")
        opened = self.runs.run(call, self.file, private, public, keep, purpose, masks)
        if appends is not None:
            self.name(appends, self.length - before)
        return opened

    def name(self, name: str, length: int) -> Segment:
        """Names the next ``length`` shares that have no name yet. Raises ParameterError if there are not as many, or if there is a segment of that
        name."""
        if self.layout.length + length > self.length:
            raise ParameterError(f"there are {self.length - self.layout.length} shares after the named ones: {name} cannot have {length}")
        return self.layout.add(name, length)

    def derive_origin(self, purpose: str, origins: Sequence[Origin]) -> None:
        """Gives shares that were computed locally from shares of these origins an origin of their own (:meth:`.ShareVector.derive_origin`)."""
        self.file.derive_origin(*self.runs.sharing, purpose, origins)

    def append_joint(self, integers: bytearray, drawn: JointIntegers) -> None:
        """Appends shares of joint integers, which ``drawn`` computed for this domain, and wipes ``integers``."""
        self.file.append_joint(*self.runs.sharing, integers, self.runs.parts, drawn.name)

    def tail(self, count: int) -> Words:
        """A copy of the last ``count`` words of each part, [parts, count]."""
        return self.file.tail(count)

    def head(self, length: int) -> ShareVector:
        """A copy of the first ``length`` shares, as a share file."""
        return self.file.head(length)

    def wipe(self) -> None:
        """Overwrites the shares with zeros and removes them."""
        self.file.wipe()


__all__ = ["DomainRun", "Run", "Shares"]
