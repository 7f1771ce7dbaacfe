"""Refresh of shares among the same members: new shares of all keys, of which t do not fit to t of before. Public files, metadata and ciphertexts stay as they are.

1. Every party checks alone that the committee can refresh, and that it holds each of its keys. The parties show each other what they know of earlier changes, and compare keys, epoch and holdings.
2. Seeds of shares of zero for sets of members, drawn in this session, which began after the refresh was asked for; the members compare them. Then all toss the name of the new epoch (``Source/mpc/src/handover.rs``).
3. Every party adds shares of zero to its shares of every vector, locally, and stores the sums beside the old shares. Until then parties serve.
   With more sets of members than have seeds t + 1 parties deal new shares instead (:mod:`.dealing`), where all follow the protocol.
   Parties of Shamir's sharing may be absent (``absent``): the others make the new epoch, in which these have no shares until they are recovered (:mod:`.recover`).
   With ``hold`` the parties then fill pools of the new epoch (:mod:`.hold`).
4. Daemons lend their locks: they end their sessions, and serve in the new epoch when it is there. When all have, the parties vote, commit and erase (:class:`.Change`). A party that fails before its vote refuses, and the
   old epoch goes on.

Paper: Herzberg, Jarecki, Krawczyk, Yung, CRYPTO 1995, here without dealing. Rounds: 2 for earlier changes, 1 and 1 for comparisons, those of :meth:`Session.zero_shares`, 2 for the statements.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from math import comb
from pathlib import Path

from keyquorum._engine import EngineError, ShareFile, ZeroShares
from keyquorum.model.checkpoints import reached
from keyquorum.model.committee import Committee, require_semi_honest
from keyquorum.model.errors import EpochError, KeyFileError, ParameterError
from keyquorum.model.plain import Json
from keyquorum.model.protocols import PROTOCOLS
from keyquorum.model.subset import ABSENT, Subset, numbers_text
from keyquorum.parties.context import PartyContext
from keyquorum.parties.epochs import Change, Epoch, Record, committee_json, read_epoch
from keyquorum.parties.epochs.exchange import MOST_SHOWN, hear_all, show_all
from keyquorum.parties.epochs.record import origin_of
from keyquorum.parties.jobs import party_job
from keyquorum.plans.epochs.alone import shares_alone
from keyquorum.plans.epochs.dealing import Dealing, wipe_bytes
from keyquorum.plans.epochs.hold import fill_held
from keyquorum.plans.pools import drop_pools
from keyquorum.plans.weakness import warn_all
from keyquorum.schemes import scheme_of
from keyquorum.schemes.holding import Holding, check_hold, holding_of
from keyquorum.schemes.key_folder import check_made_by, element_words, holds_a_key, load_key
from keyquorum.schemes.keys import KeyInfo
from keyquorum.schemes.origin_file import OriginFile

MOST_SETS = 130
"""Sets of n − t + 1 members of Shamir's sharing that have seeds in common, at most (``Source/protocols/src/shamir/prss.rs``)."""
Held = Mapping[str, tuple[KeyInfo, Holding]]
"""Keys of a party by name, and how it holds them."""


def check_members(committee: Committee) -> None:
    """Refuses committees whose shares are not refreshed in place. Raises ParameterError."""
    if isinstance(committee, Subset):
        raise ParameterError("shares are refreshed by the whole committee: leave out --parties")
    if committee.capabilities.macs:
        raise ParameterError(
            f"{committee.protocol}: one MAC key is for all keys of a folder, so shares with MACs are not refreshed in place: keyquorum reshare passes them on to a new folder of the same hosts"
        )


def deals(committee: Committee) -> bool:
    """Whether those present have too many sets of members for common seeds, so that t + 1 parties deal new shares (:class:`.Dealing`). All follow the protocol in such a committee."""
    sets = comb(committee.size, committee.threshold - 1)
    if committee.capabilities.sharing != "Shamir" or sets <= MOST_SETS:
        return False
    require_semi_honest(committee, "a refresh in which t + 1 parties deal new shares")
    return True


def held_keys(committee: Committee, party: int, work: str = "refresh") -> dict[str, tuple[KeyInfo, Holding]]:
    """The keys of a party, for this work. Raises KeyFileError, EpochError or ParameterError for a key that the committee does not hold, and if there is none."""
    found: dict[str, tuple[KeyInfo, Holding]] = {}
    for folder in sorted(path for path in (committee.party_folder(party) / "keys").glob("*") if holds_a_key(path)):
        info = load_key(folder)
        check_made_by(committee, info, folder, leaving=True)
        held = holding_of(folder, info)
        if scheme_of(info).vectors_for(info, committee) != held.vectors:
            raise KeyFileError(f"{folder}: {committee.protocol} holds this key with other vectors than the key was made with: make a new key")
        found[folder.name] = (info, held)
    if not found:
        raise KeyFileError(f"{committee.party_folder(party)}: no key here, so there is nothing to {work}: make one with keyquorum keygen")
    return found


def absent_from(committee: Committee) -> tuple[int, ...]:
    """Numbers of the parties of the whole committee that are not among these."""
    return tuple(number for number in range(committee.whole.size) if number not in committee.members)


def absent_weaknesses(there: Committee) -> list[str]:
    """What a refresh by these parties leaves at risk: without absent ones nothing."""
    left = there.threshold + 1
    if there.size == there.whole.size or there.size > left:
        return []
    return [
        f"{left} parties have shares of the new epoch, which are all that a key takes: the next lost disk is a lost key, until absent parties ({numbers_text(absent_from(there))}) are recovered"
    ]


def check_refresh(committee: Committee, party: int, job: Json) -> None:
    """The checks of the job ``refresh_shares`` that a party makes alone. A change before whose vote its process died is refused."""
    check_members(committee)
    warn_all(absent_weaknesses(committee))
    whole, number = committee.whole, committee.number_of(party)
    check_hold(committee.members, read_epoch(whole.party_folder(number)), "or name it with --absent as well")
    held_keys(whole, number)
    Change.refuse_unvoted(whole, number)


HOLD = "hold"
"""Field of a job: whether pools of the new epoch are filled before the parties vote (missing: no)."""


@party_job("refresh_shares", {}, check=check_refresh, verified=True, optional={ABSENT: list, HOLD: bool})
def refresh_job(context: PartyContext, job: Json) -> Json:
    """The job ``refresh_shares``: new shares of all keys of the committee, in a new epoch, with pools where it says :data:`HOLD`; the old shares are erased, and pools of other epochs. Raises CommitteeError beside a daemon of this party that does not lend its lock."""
    committee, party = context.committee.whole, context.committee.number_of(context.party)
    with ExitStack() as alone:
        stop = [lambda: alone.enter_context(shares_alone(committee, [party], "refresh_shares"))]
        if not all(change.settled for change in Change.recent(committee, party)):  # the end of an earlier change is another epoch
            stop.pop()()
        return _refresh(context, lambda: stop.pop()() if stop else None, job.get(HOLD, False))


def _refresh(context: PartyContext, stop_serving: Callable[[], None], hold: bool) -> Json:
    """``stop_serving``: after this nobody uses the party's shares or pools, but this job. ``hold``: fills pools of the new epoch before that."""
    check_members(context.committee)
    committee, party = context.committee.whole, context.committee.number_of(context.party)
    settle(context, (committee, party))
    held, here = held_keys(committee, party), read_epoch(committee.party_folder(party))
    check_hold(context.committee.members, here, "or name it with --absent as well")
    said = [here.number, here.name, {name: [info.digest.hex(), holding.to_json()] for name, (info, holding) in held.items()}]
    context.session.compare("keys and epoch of the committee", hashlib.sha256(json.dumps(said, sort_keys=True).encode()).digest())
    with context.phase("seeds"):
        dealing = Dealing(context) if deals(context.committee) else None
        zeros = dealing or context.session.zero_shares(committee.protocol, committee.threshold, context.seed)
    record = replace(
        _record(committee, held, here, zeros.name.hex(), origin_of(committee, committee.party_folder(party))), absent=absent_from(context.committee)
    )
    if dealing is not None:
        record = replace(record, dealers=dealing.dealers, checks=())
    change = Change.propose(committee, party, record)
    try:
        with context.phase("new shares", len(held)) as step:
            for name, (_, old) in held.items():
                folder = committee.key_folder(party, name)
                refresh_key(old, folder, change.folder(name), Holding.from_json(record.keys[name]), party, zeros)
                step()
        for name, holding in ((name, Holding.from_json(said)) for name, said in record.keys.items()):
            check_stored(holding, change.folder(name), party)
        pools = fill_held(context, [info.parameters for info, _ in held.values()], record.name) if hold else {}
        with context.phase("parties stop to serve"):
            stop_serving()
        context.session.compare("new shares on the disk", bytes.fromhex(record.digest))
        reached("refresh/prepared")
    except BaseException:
        change.refuse()
        raise
    with context.phase("commit"):
        change.vote()
        finish(context, change)
        change.check_erasable()
        drop_pools(committee, party)
        erased = change.erase()
    return {"epoch": record.number, "name": record.name, "keys": sorted(held), "bytes_erased": erased, "pools": pools}


def settle(context: PartyContext, of: tuple[Committee, int] | None = None) -> None:
    """Takes what any party shows of the changes before, and goes on only if the end of each is settled here: then it stays what it is, whatever becomes of the next one. A wrong statement counts for nothing.
    ``of``: committee and number of this party, where the session is of more than its committee. Raises EpochError."""
    changes = Change.recent(*(of or (context.committee, context.party)))
    mine = next((change for change in changes if not change.settled), None)  # there is one at most
    asked = context.session.all_gather(b"" if mine is None else mine.record.name.encode())
    shown = context.session.all_gather(show_all(change for change in changes if change.record.name.encode() in asked))
    if mine is None:
        return
    for party, data in enumerate(shown):
        if party != context.party:
            hear_all([mine], data, f"party {party}")
    mine.advance()
    mine.check_settled()


def _record(committee: Committee, held: Held, here: Epoch, name: str, origin: tuple[str, ...]) -> Record:
    number, previous = here.number + 1, here.name
    members, said = committee.digest.hex(), committee_json(committee)
    keys = {key: replace(old, epoch=number, sharing=name, members=members).to_json() for key, (_, old) in held.items()}
    checks = () if committee.capabilities.sharing == "additive" else ("seeds compared",)  # a pair has nobody to compare with
    return Record(name, number, previous, said, said, keys, dealers=(), checks=checks, origin=origin)


def refresh_key(old: Holding, key_folder: Path, new_folder: Path, new: Holding, party: int, zeros: ZeroShares | Dealing) -> None:
    """Writes this party's new shares of a key, from the old ones and shares of zero, or from what dealers send. Raises KeyFileError or StoreError for damaged or foreign files."""
    source = old.folder(key_folder)
    for index, vector in enumerate(new.vectors):
        label = f"{old.key_id} {key_folder.name} {index}".encode()
        secret: list[bytes | bytearray] = []
        try:
            before = ShareFile.read(str(source / f"share-{index}.kqs"), old.share_header(party, index))
            secret.append(before)
            after = zeros.refreshed(vector.domain, label, before)
            stored = bytes(after)
            secret += [after, stored]
            ShareFile.write(str(new_folder / f"share-{index}.kqs"), new.share_header(party, index), stored)
        finally:
            for data in secret:
                wipe_bytes(data)
        target = OriginFile(new_folder, index, new.share_header(party, index))
        OriginFile(source, index, old.share_header(party, index)).carry(target, f"refresh to epoch {new.sharing}")
        reached("refresh/written")


def check_stored(new: Holding, folder: Path, party: int) -> None:
    """Reads a key's new files back before the vote, after which the old shares may be erased. Raises KeyFileError, or StoreError for a damaged or missing file."""
    protocol = PROTOCOLS[new.protocol]
    parts = protocol.parts(new.parties, new.threshold)
    for index, vector in enumerate(new.vectors):
        header, path = new.share_header(party, index), folder / f"share-{index}.kqs"
        data = ShareFile.read(str(path), header)
        there, size = len(data), 8 * element_words(new.protocol, vector.domain) * vector.length * parts
        wipe_bytes(data)
        if there != size:
            raise KeyFileError(f"{path}: {there} bytes of shares, not {size}: the old shares stay; see what wrote there, and refresh again")
        OriginFile(folder, index, header).check()


def finish(context: PartyContext, change: Change, among: Iterable[int] | None = None) -> None:
    """Exchanges statements twice: after the first time every party has all votes and commits, after the second it knows that all have committed. Raises EpochError after all others were heard: a party that is
    silent, or shows statements that are not of this change, does not keep honest ones unheard. ``among``: the parties of the session that take part in the change, by default all."""
    errors, others = list[Exception](), [party for party in (range(context.committee.size) if among is None else among) if party != context.party]
    for _ in range(2):
        shown = change.show()
        for party in others:
            with _noted(errors):
                context.session.send(party, shown)
        for party in others:
            with _noted(errors):
                errors += hear_all([change], context.session.recv(party, MOST_SHOWN), f"party {party}")
        change.advance()
    if errors:
        raise EpochError(f"{errors[0]}; the change to epoch {change.record.name}: keyquorum epoch status, then keyquorum epoch commit at all parties")


@contextmanager
def _noted(errors: list[Exception]) -> Iterator[None]:
    try:
        yield
    except EngineError as error:
        errors.append(error)


__all__ = [
    "HOLD",
    "absent_from",
    "absent_weaknesses",
    "check_members",
    "check_refresh",
    "check_stored",
    "deals",
    "held_keys",
    "refresh_job",
    "refresh_key",
    "settle",
    "wipe_bytes",
]
