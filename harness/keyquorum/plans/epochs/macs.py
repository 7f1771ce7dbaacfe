"""Committees with MACs in a resharing: their members compute in a session of their own, over the channels of all parties, under their own MAC keys.

* *Old members* pass on the values of their shares, which are additive; MACs stay where they are. Masks are sums of uniform numbers that each member inputs. Combinations of the transfer check are opened among the
  old members, with the check of their MACs, and every member states them to every new one.
* *New members* get summands as those of additive shares. Each inputs its own, and the sums are shares with MACs of the new committee. Combinations are opened among the new members, with the check of their MACs.
  Shares are written when they are those of the old committee.

*Correctness.* What is summed up has MACs before anybody tosses: x + d for the secret x, whatever members dealt or input, with d fixed. The opened combinations are those of x + d, or the check of MACs fails. One honest
old member states only what its own check passed. So the transfer check sees d != 0 as it does without MACs (``Source/mpc/src/transfer.rs``), in every domain for itself.
*Privacy.* An honest member's input is under a mask that it alone knows. Combinations are uniform, since the numbers of an honest old member are. Modulo 2^64 they are opened under masks of what is above 2^64
(``Source/protocols/src/authenticated/openings.rs``), so carries of summands stay hidden.
*Bits.* Committees without MACs hold the bits of a key modulo 2, and those with MACs modulo 2^64. Summands are dealt modulo 2. Each new member inputs its own, shows that they are bits, and products add them up modulo 2. An old committee with MACs deals the lowest bits of its shares. Of opened
combinations the lowest bits count, and all else is under masks: new members add twice a uniform number of each of them, those of old ones are uniform. A member that inputs something else than a bit is found by what it knows: one member knows a summand alone, so neither this check nor the
transfer check fails or passes with a bit of the key, whichever comes first. (Of sums of inputs of several members the test of bits would tell one: b + 1 is a bit for b = 0 alone.)
*Burned keys.* An old committee with a burned MAC key can pass its keys on without MACs, if this is accepted: values of shares were never opened. Then its members pass on and state what they like, as in a
semi-honest committee. So new members with MACs get from them what any other committee has: shares modulo primes, of which they make and test those modulo 2^64, and bits modulo 2.
*MAC keys.* A check that fails burns the key of the committee whose check it is, and one that is cut off counts as always (:mod:`keyquorum.parties.mac_key`).
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import CheckError, ShareFile, transfer_factors, transfer_rows
from keyquorum.model.committee import Committee
from keyquorum.model.domains import Domain
from keyquorum.model.errors import EpochError
from keyquorum.model.protocols import PROTOCOLS
from keyquorum.parties import mac_key
from keyquorum.parties.context import PartyContext
from keyquorum.plans.epochs.refresh import wipe_bytes
from keyquorum.programs import Segment
from keyquorum.programs.signatures import bit_inputs, lift_test, sum_inputs
from keyquorum.schemes import scheme_of
from keyquorum.schemes.holding import Holding
from keyquorum.schemes.key_folder import element_words, read_vector
from keyquorum.schemes.keys import KeyInfo
from keyquorum.schemes.origin_file import OriginFile
from keyquorum.sharing.randomness import uniform_below, wipe
from keyquorum.sharing.shares import DomainRun, Run, Shares

Ints = NDArray[np.int64]


class MacGroup:
    """The members of a committee with MACs at one party. ``number``: of this party there; ``members``: all of them, by their place in the session of ``context``."""

    def __init__(self, context: PartyContext, committee: Committee, number: int, members: Sequence[int]) -> None:
        self._outer, self._committee, self._number, self._members = context, committee, number, list(members)
        self._context: PartyContext | None = None
        self._files: dict[bytes, Shares] = {}

    def open(self) -> None:
        """Begins the session of the members, under this party's MAC key, which is made if there is none. Raises BurnedKeyError or KeyInUseError."""
        session = self._outer.session.subgroup(self._members, apart=True)  # members of the other committee must not burn this one's keys
        session.set_openings(self._committee.openings)
        session.set_base_ot(self._committee.base_ot)
        session.set_lpn(self._committee.lpn)
        mac_key.use(session, self._committee.mac_key_path(self._number))
        self._context = PartyContext(session, self._committee)
        self._context.seed = self._outer.seed

    def _runs(self, domain: Domain) -> DomainRun:
        assert self._context is not None, "the session begins before shares are there"
        run = Run(self._context)
        return run.ring(domain.bits) if domain.prime is None else run.field(domain.prime)

    def _keep(self, label: bytes, shares: Shares) -> None:
        if label in self._files:
            raise EpochError("shares of a vector for the second time: this is a bug, please report it")
        self._files[label] = shares

    def masked(self, held: Holding, folder: Path, index: int, label: bytes, dealt: Domain) -> tuple[bytes, bytes]:
        """At an old member: the values of its shares of a vector, and of masks behind it that are made here, as share files without MACs have them, in the domain in which they are ``dealt``. The caller overwrites what it gets. ``folder``: of the share files.
        Rounds: those of the inputs. Raises KeyFileError or StoreError for a damaged file."""
        domain, width = Domain.parse(held.vectors[index].domain), element_words(held.protocol, held.vectors[index].domain)
        rows = transfer_rows(dealt)
        shares = self._runs(domain).shares(read_vector(held, folder, self._number, index))
        self._keep(label, shares)
        values, drawn = _lowest(shares.file.words, width, dealt), _uniform(domain, rows)
        try:
            shares.run(sum_inputs(contributors=self._committee.size, size=rows), private=drawn)
        except BaseException:
            wipe_bytes(values)
            raise
        finally:
            wipe(drawn)
        masks = shares.tail(rows * width)
        try:
            return values, _lowest(masks, width, dealt)
        finally:
            wipe(masks)

    def authenticate(self, domain: Domain, dealt: Domain, label: bytes, summands: bytes) -> None:
        """At a new member: makes shares with MACs of the sum of what all members give, the elements of a vector and of its masks, which were ``dealt`` in the same domain or modulo 2. Rounds: those of the inputs.
        Raises :class:`.CheckError` if a member gives something else than bits."""
        given = np.frombuffer(summands, dtype="<i8").astype(np.int64)
        shares = self._runs(domain).shares()
        self._keep(label, shares)
        try:
            if domain == dealt:
                shares.run(sum_inputs(contributors=self._committee.size, size=given.size), private=given)
            else:
                self._authenticate_bits(shares, given, transfer_rows(dealt))
        finally:
            wipe(given)

    def _authenticate_bits(self, shares: Shares, given: Ints, rows: int) -> None:
        """The same of bits, whose last ``rows`` are masks. Of a mask the lowest bit is opened with a combination of the others, so that its bits above are uniform."""
        contributors, size = self._committee.size, given.size - rows
        words = shares.run(bit_inputs(contributors=contributors, size=size), private=given[:size])
        _judge_bits(self._committee, words.reshape(contributors, -1))
        masks = _uniform(shares.runs.domain, rows)
        masks <<= 1
        masks |= given[size:]
        try:
            shares.run(sum_inputs(contributors=contributors, size=rows), private=masks)
        finally:
            wipe(masks)

    def opened(self, toss: bytes, domain: str, label: bytes) -> bytes:
        """The combinations of a vector that is dealt in this domain, opened among the members with the check of their MACs. Rounds: 1 and those of the check. Raises :class:`.CheckError` if it fails: the MAC key is burned then."""
        shares, rows, modulus = self._files[label], transfer_rows(domain), Domain.parse(domain).modulus
        size = shares.length - rows
        factors = np.frombuffer(transfer_factors(domain, (toss, label), size, rows), dtype="<i8").astype(np.int64)
        call = lift_test(size=size, tests=rows, offset=0, x=Segment(0, size), s=Segment(size, rows))
        words = shares.run(call, public=[factors])
        return b"".join((int(word) % modulus).to_bytes(8, "little") for word in words)

    def make_last(self, info: KeyInfo, held: Holding, labels: Sequence[bytes]) -> None:
        """At a new member, after the transfer check: makes shares of the last vector from those of the others. ``labels``: of all. Rounds: those of :meth:`.KeyScheme.make_last`. Raises :class:`.CheckError`."""
        assert self._context is not None, "the session begins before shares are there"
        with ExitStack() as wiping:
            others = [
                wiping.enter_context(self._runs(Domain.parse(vector.domain)).shares(self._files[label].head(vector.length), secret=vector.length))
                for vector, label in zip(held.vectors[:-1], labels[:-1], strict=True)
            ]
            self._keep(labels[-1], scheme_of(info).make_last(self._context, info, others))

    def store(self, held: Holding, folder: Path, index: int, label: bytes) -> None:
        """At a new member: writes its shares of a vector with what their MACs need, and reads them back. Raises KeyFileError or StoreError."""
        header, kept = held.share_header(self._number, index), self._files[label].head(held.vectors[index].length)
        data = kept.export()
        try:
            ShareFile.write(str(folder / f"share-{index}.kqs"), header, data)
            OriginFile(folder, index, header).write(kept.export_mac())
        finally:
            wipe_bytes(data)
            kept.wipe()
        read_vector(held, folder, self._number, index).wipe()

    def wipe(self) -> None:
        """Overwrites all shares, and ends the session of the group: its MAC key is free again."""
        for shares in self._files.values():
            shares.wipe()
        self._files.clear()
        if self._context is not None:
            self._context.session.close()
            self._context = None


def values_of(held: Holding, folder: Path, party: int, index: int, dealt: Domain) -> bytes:
    """A party's shares of a vector without their MACs, in the domain in which they are ``dealt``; the caller overwrites them. ``folder``: of the share files. Raises KeyFileError or StoreError."""
    if not PROTOCOLS[held.protocol].macs:
        return ShareFile.read(str(folder / f"share-{index}.kqs"), held.share_header(party, index))
    share = read_vector(held, folder, party, index)
    try:
        return _lowest(share.words, share.element_words, dealt)
    finally:
        share.wipe()


def _lowest(words: NDArray[np.uint64], width: int, dealt: Domain) -> bytes:
    """The values of shares [parts, elements * width]: of a ring the lowest words, modulo 2^64 or 2."""
    values = words[0, ::width].astype("<u8")
    if dealt.prime is None:
        values &= np.uint64(dealt.modulus - 1)
    try:
        return values.tobytes()
    finally:
        wipe(values)


def _judge_bits(committee: Committee, opened: Ints) -> None:
    """Refuses what is not bits: rows of what `bit_inputs` opened, one a member."""
    for party, words in enumerate(opened):
        if words.any():
            raise CheckError(
                f"party {party} of {committee.name} gave something else than the bits that it got: it cheats, make the committee without it"
            )


def _uniform(domain: Domain, count: int) -> Ints:
    if domain.prime is not None:
        return uniform_below(count, domain.prime)
    return np.frombuffer(secrets.token_bytes(8 * count), dtype="<i8").astype(np.int64)


__all__ = ["MacGroup", "values_of"]
