"""The transfer check of a resharing from or to a committee whose members may be malicious: every new member sees that what it got is what the old committee has (``Source/mpc/src/transfer.rs``).

1. Behind each vector masks are dealt (:meth:`Transfer.masks`). Members of a verifying old committee have theirs from seeds that sets of them have in common and compare; dealers of a semi-honest one draw their own.
2. All confirm that the new shares are on the disk. The caller does this, before :meth:`Transfer.run`.
3. All toss. Each old member states its share of random combinations of every vector, with a mask each, to every new member; so does each new member of what it got. Each new member opens both, as each
   committee's sharing is checked, and compares them.

A mask is used once: for one toss, under the name of one change. Whether the check fails depends on what somebody did wrong, and on the toss. Rounds: 1 for seeds and 1 for their comparison, 3 for the toss, 1 for statements, 1 for the end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from keyquorum._engine import MaskSeeds, ProtocolError, transfer_opened, transfer_own_masks, transfer_rows, transfer_stated
from keyquorum.model.bridge import Bridge
from keyquorum.model.committee import CommitteeShape
from keyquorum.model.epoch import NAME_DIGITS
from keyquorum.model.errors import EpochError
from keyquorum.model.protocols import PROTOCOLS
from keyquorum.model.subset import SUBSET_PROTOCOL
from keyquorum.parties.context import PartyContext
from keyquorum.plans.epochs.carried import MOST_SAID
from keyquorum.plans.epochs.macs import MacGroup
from keyquorum.plans.epochs.refresh import wipe_bytes
from keyquorum.schemes.key_folder import element_words

CHECK = "transfer check"
"""Name of the check in the record of a change."""
TOSS_BYTES = 32
UNFIT = "nothing was passed on, and the old committee goes on: see who of both deviates, then run keyquorum reshare again"


def checks_transfer(between: Bridge) -> bool:
    """Whether members of one of the committees may be malicious, so that the new ones check what they get."""
    return any(committee.malicious for committee in between.sides)


@dataclass(frozen=True)
class Carried:
    """A vector that is passed on. ``read``: gives this party's share of it, which the caller may overwrite."""

    key: str
    domain: str
    label: bytes
    read: Callable[[], bytes]


class Transfer:
    """One party's part. ``dealers``: numbers of the old members that deal, in increasing order; they are the first parties of the session. ``burned``: the old ones do not use their MACs."""

    def __init__(self, context: PartyContext, between: Bridge, dealers: Sequence[int], burned: bool = False) -> None:
        self.context, self.session, self.between = context, context.session, between
        self.old, self.new = between.sides
        self.dealers = tuple(dealers)
        own, self.number = between.place(context.party)
        self.shape: CommitteeShape = own.shape
        self.is_old = context.party in between.olds
        self.stating = tuple(between.olds) if self.old.malicious else tuple(range(len(self.dealers)))
        """Parties of the session that state shares of the old committee, or with MACs what it opened."""
        authenticated = own.authenticated and not (burned and self.is_old)
        self.macs = MacGroup(context, own, self.number, between.olds if self.is_old else between.news) if authenticated else None
        """The members of this party's committee, if it has MACs."""
        self._burned = burned
        self._seeds: MaskSeeds | None = None
        self._name = bytes(NAME_DIGITS // 2)
        self._masks: dict[bytes, bytearray] = {}

    def begin(self, name: bytes) -> None:
        """Draws seeds of masks among the old members, where these may be malicious. ``name``: of the change. Raises :class:`.CheckError` if members of a set have different seeds."""
        self._name = name
        if self.macs is not None:
            self.macs.open()
        if self.is_old and self.old.verifies_products:
            group = self.session.subgroup(list(self.between.olds))
            self._seeds = MaskSeeds.begin(group, self.old.protocol, self.old.threshold, self.context.seed)

    def masks(self, domain: str, label: bytes) -> bytes:
        """This old member's shares of the masks of a vector, which are kept for :meth:`run`. The caller overwrites what it gets."""
        rows = transfer_rows(domain)
        if self._seeds is not None:
            drawn = self._seeds.shares(domain, self._name, label, rows)
        else:
            drawn = transfer_own_masks(self.shape, domain, rows)
        self.keep(label, drawn)
        return bytes(drawn)

    def keep(self, label: bytes, masks: bytearray) -> None:
        """Takes this party's shares of the masks of a vector; each has one set."""
        if label in self._masks:
            raise EpochError("masks of a vector for the second time: this is a bug, please report it")
        self._masks[label] = masks

    def taken(self, label: bytes) -> bytearray:
        """Gives back what :meth:`keep` took; the caller overwrites it."""
        return self._masks.pop(label)

    def run(self, vectors: Sequence[Carried]) -> None:
        """The check, after all parties confirmed what they have. ``vectors``: all, in the same order at all parties. Raises EpochError at new members if something does not fit."""
        try:
            toss = self.session.toss(TOSS_BYTES)
            if self.is_old:
                if self.context.party in self.stating:
                    self._state(self._said(toss, vectors), self.between.news)
            else:
                mine = self._said(toss, vectors)
                stating = [self.context.party] if self.macs is not None else self.between.news  # with MACs all have opened the same
                self._state(mine, [party for party in stating if party != self.context.party])
                before = [self.session.recv(party, MOST_SAID) for party in self.stating]
                after = [mine if party == self.context.party else self.session.recv(party, MOST_SAID) for party in stating]
                self._judge(vectors, before, after, stating)
        finally:
            self._wipe_masks()
        self.session.compare(CHECK, hashlib.sha256(toss).digest())

    def wipe(self) -> None:
        """Overwrites masks, and shares with MACs, and forgets the seeds of masks."""
        self._wipe_masks()
        if self.macs is not None:
            self.macs.wipe()

    def _wipe_masks(self) -> None:
        for masks in self._masks.values():
            wipe_bytes(masks)
        self._masks.clear()
        self._seeds = None

    def _state(self, said: bytes, to: Sequence[int]) -> None:
        for party in to:
            self.session.send(party, said)

    def _said(self, toss: bytes, vectors: Sequence[Carried]) -> bytes:
        """What this party states of all vectors: uniform numbers."""
        said = bytearray()
        if self.macs is not None:
            return b"".join(self.macs.opened(toss, vector.domain, vector.label) for vector in vectors)
        for vector in vectors:
            masks, share = self._masks.pop(vector.label), vector.read()
            held = bytes(masks)
            try:
                said += transfer_stated(self.shape, vector.domain, (toss, vector.label), (share, held))
            finally:
                for secret in (masks, share, held):
                    wipe_bytes(secret)
        return bytes(said)

    def _judge(self, vectors: Sequence[Carried], before: Sequence[bytes], after: Sequence[bytes], stating: Sequence[int]) -> None:
        """Opens what both committees state, and compares it vector by vector. ``stating``: the new members of which something is in ``after``."""
        old, new = ((_Opened if committee.authenticated else _Statements)(committee.shape) for committee in self.between.sides)
        if self._burned:
            old = _Statements(CommitteeShape(SUBSET_PROTOCOL, self.old.size, self.old.threshold))
        for party, said in zip((*self.stating, *stating), (*before, *after), strict=True):
            (old if party in self.between.olds else new).add(self.between.title(party), said, vectors)
        dealers = None if self.old.malicious and not self._burned else self.dealers
        for index, vector in enumerate(vectors):
            try:
                y, other = old.opened(index, vector.domain, dealers), new.opened(index, vector.domain, None)
            except ProtocolError as error:
                raise EpochError(f"key {vector.key} over {vector.domain}: in the {CHECK} {error}: {UNFIT}") from None
            if y != other:
                raise EpochError(
                    f"key {vector.key} over {vector.domain}: the shares that {self.new.name} got are not of the secret that {self.old.name} has: a member passed on something else, or stated it: {UNFIT}"
                )


class _Statements:
    """What the members of a committee state of all vectors."""

    def __init__(self, shape: CommitteeShape) -> None:
        self._shape = shape
        self._parts: list[list[bytes]] = []
        self._titles: list[str] = []

    def add(self, title: str, said: bytes, vectors: Sequence[Carried]) -> None:
        """Takes the message of a member. Raises EpochError for another length."""
        sizes = [self._size(vector.domain) for vector in vectors]
        if len(said) != sum(sizes):
            raise EpochError(f"{title} stated {len(said)} bytes in the {CHECK}, not {sum(sizes)}: {UNFIT}")
        self._parts.append([said[end - size : end] for end, size in zip(accumulate(sizes), sizes, strict=True)])
        self._titles.append(title)

    def _size(self, domain: str) -> int:
        protocol, parties, threshold = self._shape
        return 8 * element_words(protocol, domain) * transfer_rows(domain) * PROTOCOLS[protocol].parts(parties, threshold)

    def opened(self, index: int, domain: str, dealers: Sequence[int] | None) -> bytes:
        """The combinations of a vector; ``dealers``: of a semi-honest old committee. Raises ProtocolError where statements do not fit together, with the members by name."""
        statements = [parts[index] for parts in self._parts]
        try:
            return transfer_opened(self._shape, domain, transfer_rows(domain), statements, dealers)
        except ProtocolError as error:
            raise type(error)(f"what {', '.join(self._titles)} state does not fit: {error}") from None


class _Opened(_Statements):
    """What members with MACs opened, each of whom checked it."""

    def _size(self, domain: str) -> int:
        return 8 * transfer_rows(domain)

    def opened(self, index: int, domain: str, dealers: Sequence[int] | None) -> bytes:
        first = self._parts[0][index]
        for title, parts in zip(self._titles, self._parts, strict=True):
            if parts[index] != first:
                raise ProtocolError(f"{self._titles[0]} and {title} state that they opened different values")
        return first


__all__ = ["CHECK", "Carried", "Transfer", "checks_transfer"]
