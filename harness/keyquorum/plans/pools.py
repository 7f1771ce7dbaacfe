"""Pools that several parties use together. Before every claim the members agree on the items that there are, and on the next unused one.

Every member sends a report to the others: its chunks, the end of its last claim, the next item that it has not handed out, and a hash of all
its claims. It sends a digest of the report first, and the whole report if the digests differ. A pool that stays open claims ahead, as many items
as it has handed out before: then not every batch waits for the disk and for an exchange. The rest of a claim is given up when the pool is closed.

The messages of a batch carry a digest of the pool, the claim, the items and the purpose. Where a batch begins with an opening to all
members, a claim that was made ahead needs no other agreement: a member refuses a message with another digest. Until then it has opened
masked words only, under items that it never uses again. One of three parties with replicated shares may send its next message as well.

A member that died between agreeing and claiming is one claim behind. The claim of the others names the state before, and the items in doubt
are given up. Any other difference means that a member lost claims (an old backup) or made others (a copy that ran elsewhere): then the
pool is refused (PoolLost, the same at all members: all judge the same reports). If all members go back to old backups at once, no member can notice it.

A pool grows by chunks, each of which all members store or none. A chunk is made in slices, with other work of the same members in between (:class:`Slices`).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import ProtocolError, StoreError
from keyquorum.backends.embedded import Embedded
from keyquorum.model.checkpoints import reached
from keyquorum.model.committee import Committee, require_semi_honest
from keyquorum.model.errors import PoolCannotGrow, PoolError, PoolLost, PoolTooSmall, ResourceError
from keyquorum.model.plain import is_count, json_loads
from keyquorum.model.protocols import PROTOCOLS
from keyquorum.model.subset import Members
from keyquorum.parties import mac_key
from keyquorum.parties.context import PartyContext
from keyquorum.parties.epochs.record import is_pools_place, pools_place, read_epoch
from keyquorum.sharing.group import RoundingGroup
from keyquorum.sharing.numbers import kind_of
from keyquorum.sharing.variants import Destination, Preprocessing, PreprocessingKind, Variant, join_slices

from .pool_list import Chunk, read_pool
from .pool_store import Claim, PoolStore, drop_pool, require_unused

Words = NDArray[np.uint64]
CHUNK = 4096
"""Items that are made at a time."""
MOST_AHEAD = 256
"""Items that are claimed ahead at most."""
LONGEST_NAME = 64
"""Characters of a name (:func:`.check_name`)."""
REPORT_LIMIT = 1 << 26
"""Bytes of the longest report: some 45 for every chunk with items left."""
CANNOT, TROUBLE = b"cannot store: ", 400
"""Before the reason for which a member cannot store items, and bytes of both at most."""


@dataclass(frozen=True)
class Slices:
    """How a chunk is made. ``next``: the items of the next slice at most, the same at all members; 0: all that are missing. ``pause``: called at all members before each program of a slice runs, and before
    the chunk is stored. In it the members may do anything together, as long as they do the same."""

    next: Callable[[], int] = lambda: 0
    pause: Callable[[], None] | None = None


WHOLE = Slices()


@dataclass(frozen=True)
class Report:
    """The state of a member's pool. ``purpose``: the operation that follows, the same at all members; ``next``: the first item that it has not
    handed out; ``ahead``: items that it would claim at least; ``chunks``: ids and counts of those that it lists; ``gone``: chunks before them, and their items."""

    purpose: str
    pool_id: str
    chunks: list[tuple[str, int]]
    end: int
    chain: str
    before: list[tuple[int, str]]
    start: int
    next: int
    ahead: int
    nonce: str
    gone: tuple[int, int] = (0, 0)

    def digest(self, chunks: bytes) -> bytes:
        """Of everything but the nonce, and which chunks are listed; ``chunks``: a digest of all chunks."""
        said = [self.purpose, self.pool_id, chunks.hex(), self.end, self.chain, self.before, self.start, self.next, self.ahead]
        return hashlib.sha256(json.dumps(said).encode()).digest()


def read_report(data: bytes) -> Report:
    """The report of a member from its bytes. ValueError or TypeError if it is none."""
    report = Report(**json_loads(data))
    gone, items = report.gone
    chunks = [(name, count) for name, count in report.chunks]
    report = replace(report, before=[(end, chain) for end, chain in report.before], chunks=chunks, gone=(gone, items))
    numbers = [report.end, report.start, report.next, report.ahead, gone, items, *(end for end, _ in report.before), *(count for _, count in chunks)]
    texts = [report.purpose, report.pool_id, report.chain, report.nonce, *(name for name, _ in chunks), *(chain for _, chain in report.before)]
    if not (all(map(is_count, numbers)) and all(isinstance(text, str) for text in texts)):
        raise ValueError("entries of other types")
    return report


@dataclass(frozen=True)
class Agreement:
    """Where all stand: the next unused item, the end of the items that all have claimed, how many chunks all have and the end of their items, how many items
    may be claimed ahead, and a hash of all reports."""

    position: int
    end: int
    chunks: int
    items: int
    ahead: int
    chain: str


def judge(reports: Sequence[Report], names: Sequence[int]) -> Agreement:
    """The agreement that follows from the reports of all members (with these numbers in the committee). PoolLost if using the pool is not safe."""
    for name, report in zip(names, reports, strict=True):
        if report.purpose != reports[0].purpose:
            raise PoolError(f"party {names[0]} wants to {reports[0].purpose}, party {name} to {report.purpose}: give all the same job")
    digest = hashlib.sha256(json.dumps([vars(r) for r in reports]).encode()).hexdigest()
    if not any(r.chunks or r.end for r in reports):
        return Agreement(0, 0, 0, 0, 0, digest)  # nothing was ever made
    _require_one_pool([r.pool_id for r in reports], names)
    lead = max(range(len(reports)), key=lambda i: reports[i].end)
    last = reports[lead]
    for i, (name, report) in enumerate(zip(names, reports, strict=True)):
        state = (report.end, report.chain)
        allowed = [(last.end, last.chain), *([last.before[i]] if i < len(last.before) else [])]
        if state in allowed:
            continue
        known = last.before[i][0] if i < len(last.before) else last.end
        if report.end < known:
            raise PoolLost(
                f"party {name} is back at item {report.end} of its pool, party {names[lead]} knows that it had used {known}: its files were "
                "restored from an old backup; keyquorum pool drop at every party, then keyquorum pool fill"
            )
        raise PoolLost(
            f"the pools of parties {names[lead]} and {name} were used apart from each other (a party ran twice, or from a copy): "
            "keyquorum pool drop at every party, then keyquorum pool fill"
        )
    chunks, items = _common_chunks(reports, names)
    # Items of the last claim are given up if not all members made it, and up to the item that some member has, or may have, handed out.
    # A member whose journal was torn may give up more.
    together = all((report.end, report.chain) == (last.end, last.chain) for report in reports)
    position = max(report.next for report in reports)
    if not together:
        position = max(position, last.end)
    return Agreement(position, last.end, chunks, items, min(report.ahead for report in reports), digest)


def _require_one_pool(said: Sequence[object], names: Sequence[int]) -> None:
    """Raises PoolLost, with two parties, unless all said the same of their pools."""
    for name, each in zip(names, said, strict=True):
        if each != said[0]:
            raise PoolLost(
                f"parties {names[0]} and {name} have different pools, or one of them has none: "
                "keyquorum pool drop at every party, then keyquorum pool fill"
            )


def _common_chunks(reports: Sequence[Report], names: Sequence[int]) -> tuple[int, int]:
    """How many chunks all have, and the end of their items. A member may still list chunks that are used up at another one."""
    first = max(report.gone[0] for report in reports)
    skipped = [report.chunks[: first - report.gone[0]] for report in reports]
    # The same numbers of chunks and of items before the first that all list.
    _require_one_pool([(r.gone[0] + len(s), r.gone[1] + sum(count for _, count in s)) for r, s in zip(reports, skipped, strict=True)], names)
    lists, common = [report.chunks[len(s) :] for report, s in zip(reports, skipped, strict=True)], 0
    while all(len(chunks) > common and chunks[common] == lists[0][common] for chunks in lists):
        common += 1
    return first + common, reports[0].gone[1] + sum(count for _, count in [*skipped[0], *lists[0][:common]])


def pools_folder(committee: Committee, party: int, epoch: str | None = None) -> Path:
    """Where a party's pools of an epoch are, by its name; None: of the epoch in which the party is. Raises EpochError."""
    folder = committee.party_folder(party)
    return pools_place(folder, read_epoch(folder).name if epoch is None else epoch)


def _all_pools(committee: Committee, party: int) -> list[Path]:
    """Folders of a party's pools of all epochs."""
    beside = _folders(pools_folder(committee, party, ""))
    return [pool for folder in beside for pool in (_folders(folder) if is_pools_place(folder) else [folder])]


def _folders(place: Path) -> list[Path]:
    return sorted(path for path in place.glob("*") if path.is_dir())


def require_unused_pools(committee: Committee, party: int) -> None:
    """Raises PoolError if a process uses a pool of a party."""
    for folder in _all_pools(committee, party):
        require_unused(folder)


def old_pools(committee: Committee, party: int, keep: Collection[str] = ()) -> list[Path]:
    """Folders of a party's pools of another epoch than its own, and of pools of which a crash left items alone. ``keep``: names of further epochs whose pools are not listed. Raises EpochError."""
    kept = {name: pools_folder(committee, party, name) for name in {read_epoch(committee.party_folder(party)).name, *keep}}
    return [
        folder for folder in _all_pools(committee, party) if not any(folder.parent == place and _is_of(folder, name) for name, place in kept.items())
    ]


def _is_of(folder: Path, epoch: str) -> bool:
    """Whether a pool is of an epoch. One whose list is damaged is of none; without a list also one that has items."""
    try:
        found = read_pool(folder)
    except PoolError:
        return False
    return next(folder.glob("chunk-*"), None) is None if found is None else found.kind.get("epoch", "") == epoch


def drop_pools(committee: Committee, party: int, leaves: bool = False) -> None:
    """Erases a party's pools of other epochs than its own, when its shares have changed: their masks would join shares of two epochs. Of a party that ``leaves``
    the committee, all. Raises PoolError for one that is in use."""
    for folder in _all_pools(committee, party) if leaves else old_pools(committee, party):
        drop_pool(folder)
    for place in filter(is_pools_place, _folders(pools_folder(committee, party, ""))):
        with suppress(OSError):  # it has pools
            place.rmdir()


def pool_name(committee: Committee, kind: PreprocessingKind) -> str:
    """Name of a pool, and of its folder: that of its kind; at a subset also the numbers of its parties, whose shares the items are (of a long name a
    hash of them)."""
    if not isinstance(committee, Members):
        return kind.name
    name = f"{kind.name}.{'-'.join(map(str, committee.numbers))}"
    return name if len(name) <= LONGEST_NAME else f"{kind.name}.{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def parties_option(committee: Committee) -> str:
    """What commands for a subset have besides, for messages; empty for the whole committee."""
    return f" --parties {','.join(map(str, committee.numbers))}" if isinstance(committee, Members) else ""


def _wipe(items: Preprocessing) -> None:
    for words in items.arrays:
        if words.flags.writeable:
            words.fill(0)


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
        _wipe(self._given)
        bound = f"{self._bound} from {self._next - self._start}".encode(errors="surrogatepass")
        self._given = self._store.hand_out(self._next, self._next + count)
        self._next += count
        reached("take/read")
        return self._given, bound

    def close(self) -> None:
        """Wipes what was taken. What was not is never handed out."""
        _wipe(self._given)
        self._store.give_up(self._end)


class Pool:
    """One member's part of a pool. All members open it, fill it, use it and close it in step."""

    def __init__(self, context: PartyContext, group: RoundingGroup, variant: PreprocessingKind, epoch: str | None = None) -> None:
        """Opens the pool. ``epoch``: name of the epoch of the shares that the caller has loaded; None: of the party, for callers that hold its job lock."""
        if not isinstance(group.backend, Embedded):
            raise PoolError("pools need the embedded engine: leave out --backend")
        committee = context.committee
        if not variant.verified:
            require_semi_honest(committee, f"preprocessing of {variant.name}")
        mac_key.check_party(committee, context.party)
        self.group, self.variant, self.session = group, variant, group.backend.session
        kind = {
            "variant": variant.described, "sections": [[s.rows, s.bits] if s.words == 1 else [s.rows, s.bits, s.words] for s in variant.sections], "protocol": group.pool_protocol,
            "committee": committee.digest.hex(), "members": [committee.number_of(number) for number in group.members], "parties": len(group.members),
            "threshold": len(group.members) - 1 if group.points else committee.threshold, "party": group.me,
        }  # fmt: skip
        if PROTOCOLS[group.pool_protocol].macs:
            kind["tests of MAC keys"] = True
        if epoch is None:
            epoch = read_epoch(committee.party_folder(context.party)).name
        if epoch:
            kind["epoch"] = epoch  # masks of another epoch would join shares of both
        self.name = pool_name(committee, variant)
        self._names = [committee.number_of(number) for number in group.members]
        """Numbers of the members in the whole committee, for messages."""
        self._option = parties_option(committee)
        folder = pools_folder(committee, context.party, epoch) / self.name
        self.store = PoolStore(folder, kind, variant.sections, variant.parts(group))
        self._agreed, self._handed_out = Agreement(self.store.next, self.store.claim.end, self.store.chunks.number, self.store.chunks.items, 0, ""), 0
        self._claimed_together = 0
        """End of the items of claims that all agreed on, and we made, since we opened this pool."""

    def close(self) -> None:
        """Releases the lock."""
        self.store.close()

    def _report(self, purpose: str) -> Report:
        s = self.store
        ahead, nonce = min(self._handed_out, MOST_AHEAD), os.urandom(16).hex()
        chunks, gone = [(c.id, c.count) for c in s.chunks.listed], (s.chunks.gone, s.chunks.gone_items)
        return Report(purpose, s.id, chunks, s.claim.end, s.claim.chain, s.claim.before, s.claim.start, s.next, ahead, nonce, gone)

    def agree(self, purpose: str) -> tuple[Agreement, list[Report]]:
        """Compares the reports of all members. One exchange, or two if the digests differ."""
        mine = self._report(purpose)
        digest = mine.digest(self.store.chunks.digest)
        reached("agree/before")
        said = self.session.all_gather(digest + bytes.fromhex(mine.nonce))
        if all(other[:32] == digest and len(other) == 48 for other in said):
            chain = hashlib.sha256(b"".join(said)).hexdigest()
            chunks = self.store.chunks
            self._agreed, reports = Agreement(mine.next, mine.end, chunks.number, chunks.items, mine.ahead, chain), [mine] * len(said)
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
                raise ProtocolError(f"party {name} sent no report of its pool: run the same version everywhere, or see what became of it") from None
        return reports

    @property
    def left(self) -> int:
        """Items left that all members have, as far as the last agreement goes: after it only what we fill and use together changes that."""
        return max(0, self._agreed.items - max(self._agreed.position, self.store.next))

    def drop(self) -> None:
        """Gives all items up, and deletes the files. Every member calls this, or loses its pool when the members agree next."""
        self.store.drop()
        self._agreed, self._handed_out, self._claimed_together = Agreement(0, 0, 0, 0, 0, ""), 0, 0

    # -- filling ------------------------------------------------------------------------------------------------------

    def fill(self, count: int, chunk: int = CHUNK, slices: Slices = WHOLE) -> int:
        """Makes ``count`` items more; every member calls this. Returns the items there are. Raises PoolCannotGrow, at all members, if one of them cannot store them; they
        go on with what they had."""
        self._all(lambda: self.store.require_room(count))
        agreement, reports = self.agree(f"fill {count} by {chunk}")
        if not self.store.id or len({r.pool_id for r in reports}) > 1:
            name = hashlib.sha256(b"keyquorum pool" + agreement.chain.encode()).hexdigest()[:32]
            self._all(lambda: self.store.start(name))
            self._claimed_together = self._handed_out = 0
            reached("fill/started")
            self.session.compare("new pool", self.store.id.encode())
        self._all(lambda: self.store.keep(agreement.chunks))  # chunks that a member lacks are made again
        done = 0
        while done < count:
            size = min(chunk, count - done)
            made = Chunk(self.session.toss(16).hex(), size)
            reached("fill/tossed")
            preprocessing = self._make(size, slices)
            reached("fill/made")
            self._store(made, preprocessing)
            done += size
        self._end("end of the filling")
        self._agreed = replace(self._agreed, chunks=self.store.chunks.number, items=self.store.chunks.items)
        return self.left

    def _make(self, size: int, slices: Slices) -> Preprocessing:
        """The items of a chunk, which are in memory alone until all members store them."""
        group = self.group if slices.pause is None else replace(self.group, pause=slices.pause)
        parts, left = list[Preprocessing](), size
        try:
            while left:
                step = min(slices.next() or left, left)
                parts.append(self.variant.make(group, step))
                left -= step
            if slices.pause is not None:
                slices.pause()
            if len(parts) == 1:
                return parts[0]
            return join_slices(parts, kind_of(group.context.committee).origins_of_all("slices of items", [part.origins for part in parts]))
        except BaseException:
            for part in parts:
                _wipe(part)
            raise

    def _store(self, made: Chunk, preprocessing: Preprocessing) -> None:
        """Stores a chunk, and counts it, at all members or at none. Wipes the items."""
        try:
            self._all(lambda: self.store.write(made, preprocessing))
        except PoolCannotGrow:
            self.store.discard(made)
            raise
        finally:
            _wipe(preprocessing)
        reached("fill/stored")
        self.session.compare("stored material", bytes.fromhex(made.id))
        reached("fill/compared")
        before = self.store.chunks.number
        try:
            self._all(lambda: self.store.add(made))
        except PoolCannotGrow:
            with suppress(OSError):  # the list in memory is right; on the disk it is one chunk longer here than elsewhere, which does not count
                self.store.keep(before)
            raise
        reached("fill/added")

    def _all(self, action: Callable[[], None]) -> None:
        """Does something that takes room on the disk. If it fails at one member, all raise PoolCannotGrow. One exchange. Raises ProtocolError for a member that says something else."""
        trouble = b""
        try:
            action()
        except (OSError, ResourceError, StoreError) as error:
            trouble = CANNOT + (str(error) or type(error).__name__).encode(errors="replace")
        said = self.session.all_gather(trouble[:TROUBLE])
        for name, text in zip(self._names, said, strict=True):
            if len(text) > TROUBLE or not text.startswith(CANNOT if text else b""):
                raise ProtocolError(f"party {name} did not say whether it can store items: the parties are out of step, see what became of it")
        for name, text in zip(self._names, said, strict=True):
            if text:
                raise PoolCannotGrow(f"party {name}: {text.removeprefix(CANNOT).decode(errors='replace')}")

    def _end(self, label: str) -> None:
        self.session.compare(label, self.store.chunks.digest)

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
        available = agreement.items - agreement.position
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

    def decrypt(self, z: Words, purpose: str, to: Destination = "share") -> Words | None:
        """Rounds phases z, whose last axis counts words, in a pool of a rounding: see :meth:`Variant.use`."""
        assert isinstance(self.variant, Variant)
        count = z.shape[-1] // self.variant.words
        with self.claimed(count, f"{purpose}, for {to}") as items:
            preprocessing, bound = items.take(count)
            reached("decrypt/before")
            result = self.variant.use(self.group, z, preprocessing, to, bound)
            reached("decrypt/after")
        reached("decrypt/removed")
        return result
