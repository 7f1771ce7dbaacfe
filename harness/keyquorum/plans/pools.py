"""Pools that several parties use together. Before every claim the members agree on the items that there are, and on the next unused one.

Every member sends a report to the others: its chunks, the end of its last claim, the next item that it has not handed out, and a hash of all
its claims. It sends a digest of the report first, and the whole report if the digests differ. A pool that stays open claims ahead, as many items
as it has handed out before: then not every batch waits for the disk and for an exchange. The rest of a claim is given up when the pool is closed.

The messages of a batch carry a digest of the pool, the claim, the items and the purpose. Where a batch begins with an opening to all
members, a claim that was made ahead needs no other agreement: a member refuses a message with another digest. Until then it has opened
masked words only, under items that it never uses again. One of three parties with replicated shares may send its next message as well.

A member that died between agreeing and claiming is one claim behind. The claim of the others names the state before, and the items in doubt
are given up. Any other difference means that a member lost claims (an old backup) or made others (a copy that ran elsewhere): then the
pool is refused. If all members go back to old backups at once, no member can notice it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from keyquorum.backends.embedded import Embedded
from keyquorum.model.checkpoints import reached
from keyquorum.model.committee import Committee, require_semi_honest
from keyquorum.model.errors import PoolError, PoolTooSmall
from keyquorum.model.plain import is_count, json_loads
from keyquorum.model.protocols import PROTOCOLS
from keyquorum.model.subset import Subset
from keyquorum.parties import mac_key
from keyquorum.parties.context import PartyContext
from keyquorum.sharing.rounding import RoundingGroup
from keyquorum.sharing.variants import Destination, Preprocessing, PreprocessingKind, Variant

from .pool_store import Chunk, Claim, PoolStore

Words = NDArray[np.uint64]
CHUNK = 4096
"""Items that are made at a time."""
MOST_AHEAD = 256
"""Items that are claimed ahead at most."""
LONGEST_NAME = 64
"""Characters of a name (:func:`.check_name`)."""
REPORT_LIMIT = 1 << 26
"""Bytes of the longest report: 36 for every chunk that the pool ever had."""


@dataclass(frozen=True)
class Report:
    """The state of a member's pool. ``purpose``: the operation that follows, the same at all members; ``next``: the first item that it has not
    handed out; ``ahead``: items that it would claim at least."""

    purpose: str
    pool_id: str
    chunks: list[str]
    end: int
    chain: str
    before: list[tuple[int, str]]
    start: int
    next: int
    ahead: int
    nonce: str

    def digest(self, chunks: bytes) -> bytes:
        """Of everything but the nonce; ``chunks``: a digest of the chunks."""
        said = [self.purpose, self.pool_id, chunks.hex(), self.end, self.chain, self.before, self.start, self.next, self.ahead]
        return hashlib.sha256(json.dumps(said).encode()).digest()


def read_report(data: bytes) -> Report:
    """The report of a member from its bytes. ValueError or TypeError if it is none."""
    report = Report(**json_loads(data))
    report = replace(report, before=[(end, chain) for end, chain in report.before])
    numbers = [report.end, report.start, report.next, report.ahead, *(end for end, _ in report.before)]
    texts = [report.purpose, report.pool_id, report.chain, report.nonce, *report.chunks, *(chain for _, chain in report.before)]
    if not (all(map(is_count, numbers)) and all(isinstance(text, str) for text in texts) and isinstance(report.chunks, list)):
        raise ValueError("entries of other types")
    return report


@dataclass(frozen=True)
class Agreement:
    """Where all stand: the next unused item, the end of the items that all have claimed, the chunks that all have, how many items
    may be claimed ahead, and a hash of all reports."""

    position: int
    end: int
    chunks: int
    ahead: int
    chain: str


def judge(reports: Sequence[Report], names: Sequence[int]) -> Agreement:
    """The agreement that follows from the reports of all members (with these numbers in the committee). PoolError if using the pool is not safe."""
    for name, report in zip(names, reports, strict=True):
        if report.purpose != reports[0].purpose:
            raise PoolError(f"party {names[0]} wants to {reports[0].purpose}, party {name} to {report.purpose}: give all the same job")
    digest = hashlib.sha256(json.dumps([vars(r) for r in reports]).encode()).hexdigest()
    if not any(r.chunks or r.end for r in reports):
        return Agreement(0, 0, 0, 0, digest)  # nothing was ever made
    with_pool = [r.pool_id for r in reports]
    if len(set(with_pool)) != 1:
        other = next(n for n, p in zip(names, with_pool, strict=True) if p != with_pool[0])
        raise PoolError(
            f"parties {names[0]} and {other} have different pools, or one of them has none: "
            "keyquorum pool drop at every party, then keyquorum pool fill"
        )
    lead = max(range(len(reports)), key=lambda i: reports[i].end)
    last = reports[lead]
    for i, (name, report) in enumerate(zip(names, reports, strict=True)):
        state = (report.end, report.chain)
        allowed = [(last.end, last.chain), *([last.before[i]] if i < len(last.before) else [])]
        if state in allowed:
            continue
        known = last.before[i][0] if i < len(last.before) else last.end
        if report.end < known:
            raise PoolError(
                f"party {name} is back at item {report.end} of its pool, party {names[lead]} knows that it had used {known}: its files were "
                "restored from an old backup; keyquorum pool drop at every party, then keyquorum pool fill"
            )
        raise PoolError(
            f"the pools of parties {names[lead]} and {name} were used apart from each other (a party ran twice, or from a copy): "
            "keyquorum pool drop at every party, then keyquorum pool fill"
        )
    common = 0
    while all(len(r.chunks) > common and r.chunks[common] == reports[0].chunks[common] for r in reports):
        common += 1
    # Items of the last claim are given up if not all members made it, and up to the item that some member has, or may have, handed out.
    # A member whose journal was torn may give up more.
    together = all((report.end, report.chain) == (last.end, last.chain) for report in reports)
    position = max(report.next for report in reports)
    if not together:
        position = max(position, last.end)
    return Agreement(position, last.end, common, min(report.ahead for report in reports), digest)


def pools_folder(committee: Committee, party: int) -> Path:
    """Where a party's pools are."""
    return committee.party_folder(party) / "pools"


def pool_name(committee: Committee, kind: PreprocessingKind) -> str:
    """Name of a pool, and of its folder: that of its kind; at a subset also the numbers of its parties, whose shares the items are (of a long name a
    hash of them)."""
    if not isinstance(committee, Subset):
        return kind.name
    name = f"{kind.name}.{'-'.join(map(str, committee.numbers))}"
    return name if len(name) <= LONGEST_NAME else f"{kind.name}.{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def parties_option(committee: Committee) -> str:
    """What commands for a subset have besides, for messages; empty for the whole committee."""
    return f" --parties {','.join(map(str, committee.numbers))}" if isinstance(committee, Subset) else ""


class ClaimedItems:
    """Items that all members have claimed for one purpose, in a ``with`` block of :meth:`Pool.claimed`. ``failed`` is called if the block fails."""

    def __init__(self, store: PoolStore, start: int, end: int, bound: str, failed: Callable[[], None]) -> None:
        self._store, self._next, self._start, self._end, self._bound, self._failed = store, start, start, end, bound, failed
        self._given = Preprocessing([])

    def __enter__(self) -> ClaimedItems:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if kind is not None:
            self._failed()
        self.close()
        if kind is None:
            self._store.remove_used()

    def take(self, count: int) -> tuple[Preprocessing, bytes]:
        """The next ``count`` items, and the context of the messages that use them (:meth:`.Backend.run`). What was taken before is wiped."""
        if count > self._end - self._next:
            raise PoolError(f"{count} items of {self._end - self._next} that are claimed: this is a bug")
        self._wipe()
        bound = f"{self._bound} from {self._next - self._start}".encode(errors="surrogatepass")
        self._given = self._store.hand_out(self._next, self._next + count)
        self._next += count
        reached("take/read")
        return self._given, bound

    def _wipe(self) -> None:
        for words in [*self._given, *self._given.key_tests]:
            if words.flags.writeable:
                words.fill(0)

    def close(self) -> None:
        """Wipes what was taken. What was not is never handed out."""
        self._wipe()
        self._store.give_up(self._end)


class Pool:
    """One member's part of a pool. All members open it, fill it, use it and close it in step."""

    def __init__(self, context: PartyContext, group: RoundingGroup, variant: PreprocessingKind) -> None:
        if not isinstance(group.backend, Embedded):
            raise PoolError("pools need the embedded engine: leave out --backend")
        committee = context.committee
        if not variant.verified:
            require_semi_honest(committee, f"preprocessing of {variant.name}")
        mac_key.check_party(committee, context.party)
        self.group, self.variant, self.session = group, variant, group.backend.session
        kind = {
            "variant": variant.described, "sections": [[s.rows, s.bits] if s.words == 1 else [s.rows, s.bits, s.words] for s in variant.sections], "protocol": group.ring_protocol,
            "committee": committee.digest.hex(), "members": [committee.number_of(number) for number in group.numbers], "parties": len(group.numbers),
            "threshold": len(group.numbers) - 1 if group.points else committee.threshold, "party": group.me,
        }  # fmt: skip
        if PROTOCOLS[group.ring_protocol].macs:
            kind["tests of MAC keys"] = True
        self.name = pool_name(committee, variant)
        self._names = [committee.number_of(number) for number in group.numbers]
        """Numbers of the members in the whole committee, for messages."""
        self._option = parties_option(committee)
        folder = pools_folder(committee, context.party) / self.name
        self.store = PoolStore(folder, kind, variant.sections, variant.parts(group))
        self._agreed, self._handed_out = Agreement(self.store.next, self.store.claim.end, len(self.store.chunks), 0, ""), 0
        self._claimed_together = 0
        """End of the items of claims that all agreed on, and we made, since we opened this pool."""

    def close(self) -> None:
        """Releases the lock."""
        self.store.close()

    def _report(self, purpose: str) -> Report:
        s = self.store
        ahead, nonce = min(self._handed_out, MOST_AHEAD), os.urandom(16).hex()
        return Report(purpose, s.id, [c.id for c in s.chunks], s.claim.end, s.claim.chain, s.claim.before, s.claim.start, s.next, ahead, nonce)

    def agree(self, purpose: str) -> tuple[Agreement, list[Report]]:
        """Compares the reports of all members. One exchange, or two if the digests differ."""
        mine = self._report(purpose)
        digest = mine.digest(self.store.chunks_digest)
        reached("agree/before")
        said = self.session.all_gather(digest + bytes.fromhex(mine.nonce))
        if all(other[:32] == digest and len(other) == 48 for other in said):
            chain = hashlib.sha256(b"".join(said)).hexdigest()
            self._agreed, reports = Agreement(mine.next, mine.end, len(mine.chunks), mine.ahead, chain), [mine] * len(said)
        else:
            reports = self._all_reports(mine)
            self._agreed = judge(reports, self._names)
        reached("agree/after")
        return self._agreed, reports

    def _all_reports(self, mine: Report) -> list[Report]:
        reports, text = [], json.dumps(vars(mine)).encode()
        others = [i for i in range(self.session.parties) if i != self.session.party]
        for i in others:
            self.session.send(i, text)
        for i, name in enumerate(self._names):
            data = self.session.recv(i, REPORT_LIMIT) if i in others else text
            try:
                reports.append(read_report(data))
            except (ValueError, TypeError):
                raise PoolError(f"party {name} sent no report of its pool: run the same version everywhere") from None
        return reports

    @property
    def left(self) -> int:
        """Items left that all members have, as far as the last agreement goes: after it only what we fill and use together changes that."""
        common = sum(chunk.count for chunk in self.store.chunks[: self._agreed.chunks])
        return max(0, common - max(self._agreed.position, self.store.next))

    # -- filling ------------------------------------------------------------------------------------------------------

    def fill(self, count: int, chunk: int = CHUNK, seed: bytes | None = None) -> int:
        """Makes ``count`` items more; every member calls this. Returns the items there are. ``seed``: INSECURE, tests."""
        self.store.require_room(count)
        agreement, reports = self.agree(f"fill {count} by {chunk}")
        if not self.store.id or len({r.pool_id for r in reports}) > 1:
            self.store.start(hashlib.sha256(b"keyquorum pool" + agreement.chain.encode()).hexdigest()[:32])
            self._claimed_together = self._handed_out = 0
            reached("fill/started")
            self.session.compare("new pool", self.store.id.encode())
        self.store.keep(agreement.chunks)  # chunks that a member lacks are made again
        done = 0
        while done < count:
            size = min(chunk, count - done)
            made = Chunk(self.session.toss(16).hex(), size)
            reached("fill/tossed")
            preprocessing = self.variant.make(self.group, size, seed)
            reached("fill/made")
            self.store.write(made, preprocessing)
            for words in [*preprocessing, *preprocessing.key_tests]:
                words.fill(0)
            reached("fill/stored")
            self.session.compare("stored material", bytes.fromhex(made.id))
            reached("fill/compared")
            self.store.add(made)
            reached("fill/added")
            done += size
        self._end("end of the filling")
        self._agreed = replace(self._agreed, chunks=len(self.store.chunks))
        return self.left

    def _end(self, label: str) -> None:
        self.session.compare(label, hashlib.sha256(json.dumps([c.id for c in self.store.chunks]).encode()).digest())

    # -- use ----------------------------------------------------------------------------------------------------------

    def take(self, count: int, purpose: str) -> tuple[Preprocessing, bytes]:
        """The items of ``count`` operations, which the caller wipes, and the context of their messages (:meth:`.Backend.run`). See :meth:`claimed`."""
        return self.claimed(count, purpose).take(count)

    def claimed(self, count: int, purpose: str) -> ClaimedItems:
        """The items of ``count`` operations, for a ``with`` block. Every member claims all of them before it uses one. One or two exchanges and a
        write to the disk. No write if the items were claimed ahead; then no exchange either, if the operation begins with an opening.

        ``purpose``: of the operations, the same at all members. Raises PoolTooSmall, before anything is claimed, if there are not enough items. If the
        block fails, all its items count as used, and the members agree anew before the next ones."""
        what, start = f"use {count} items, {purpose}", self.store.next
        if start + count > self._claimed_together or not self.variant.begins_with_opening:
            start = self._claim(count, what)
        else:
            self.store.check(start, start + count)
        self._handed_out += count
        claim = self.store.claim
        bound = f"{self.store.id} {claim.start} {claim.end} {claim.chain} {start} {what}"
        return ClaimedItems(self.store, start, start + count, bound, self._stands_apart)

    def _stands_apart(self) -> None:
        """After a failure: members may stand at different items, and agree before the next ones."""
        self._claimed_together = 0

    def _claim(self, count: int, what: str) -> int:
        """Agrees with all members, and claims the items unless they were claimed ahead. Returns the first item."""
        agreement, reports = self.agree(what)
        available = sum(c.count for c in self.store.chunks[: agreement.chunks]) - agreement.position
        if count > available:
            raise PoolTooSmall(
                f"{self.name}: needs {count:,} items, has {max(0, available):,}: keyquorum pool fill{self._option}, or a smaller request"
            )
        start, end = agreement.position, agreement.position + count
        self.store.check(start, end)
        if end > agreement.end:
            before = [(r.end, r.chain) for r in reports]
            ahead = start + min(agreement.ahead, available)
            self.store.claim_items(Claim(agreement.end, max(end, ahead), agreement.chain, before))
            self._claimed_together = self.store.claim.end
        return start

    def decrypt(self, z: Words, purpose: str, to: Destination = "share", seed: bytes | None = None) -> Words | None:
        """Rounds phases z, whose last axis counts words, in a pool of a rounding: see :meth:`Variant.use`."""
        assert isinstance(self.variant, Variant)
        count = z.shape[-1] // self.variant.words
        with self.claimed(count, f"{purpose}, for {to}") as items:
            preprocessing, bound = items.take(count)
            reached("decrypt/before")
            result = self.variant.use(self.group, z, preprocessing, to, seed, bound)
            reached("decrypt/after")
        reached("decrypt/removed")
        return result
