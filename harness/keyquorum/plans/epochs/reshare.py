"""Resharing: all keys of a committee go to a new one, which may have another protocol and other members. No secret is rebuilt anywhere; public files, metadata and ciphertexts stay as they are.

1. Every party checks alone what it can. The old members state a hash of keys, holdings and epoch, and their counts; all state the same keys. The new members get metadata and refuse keys that they cannot hold.
2. All toss the name of the epoch, and compare the record of the change. Nothing of a share was sent so far.
3. Dealers, some or all of the old members, deal their summands to the new ones (``Source/mpc/src/resharing.rs``). These write shares, public files and counts, and read them back; shares with MACs after step 4.
4. All compare that this is done. Where members of one of the committees may be malicious, the new members check what they got (:class:`.Transfer`). With MACs they then make a vector that the old committee does not have
   (:meth:`.KeyScheme.make_last`), after all old members have counted this (:class:`.Tries`).
5. The old members store the record, the new ones vote and commit, and all hear it (:class:`.Change`). Then the old members erase their shares.

*A standby.* Where the old committee keeps its shares (``keep_old``), it takes no part in the change of the new one: it notes the record, gives away half of what its keys may still be used for, and goes on in its epoch. All that before a new
member may vote.

A new member that fails before its vote refuses, and the old epoch goes on. Sources: Desmedt, Jajodia 1997, for the change of a committee; Herzberg, Jarecki, Krawczyk, Yung, CRYPTO 1995.
Rounds: 2 for earlier changes, 1 for keys and 1 for counts, 1 for metadata, 3 for the toss, 1 for the record, 1 for seeds and shares, those of the check, 2 for the count of tries and those of what is made, 2 for what is stored (3 beside a standby), 2 for the statements.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from keyquorum._engine import Dealer, Dealt, ShareFile, dealers_needed, transfer_rows
from keyquorum.model.bridge import ACCEPTED, DEALERS, KEPT, NEW, OLD, Bridge, bridge_between
from keyquorum.model.checkpoints import reached
from keyquorum.model.committee import Committee, check_name, sync_folder
from keyquorum.model.domains import Domain
from keyquorum.model.epoch import NAME_DIGITS, Stage
from keyquorum.model.errors import BurnedKeyError, EpochError, KeyFileError, ParameterError
from keyquorum.model.needs import require_disk
from keyquorum.model.plain import Json, json_loads
from keyquorum.model.subset import Subset
from keyquorum.parties import mac_key
from keyquorum.parties.context import PartyContext
from keyquorum.parties.epochs import Change, Record, committee_json, read_epoch
from keyquorum.parties.epochs.record import note_standby, origin_of, origin_text
from keyquorum.parties.jobs import party_job
from keyquorum.plans.epochs.alone import shares_alone
from keyquorum.plans.epochs.carried import MOST_SAID, digest_of, keys_said, label_of, parsed, receive_files, send_file, send_files
from keyquorum.plans.epochs.counts import Counts, claim_split, counts_of, split, start_counts
from keyquorum.plans.epochs.macs import values_of
from keyquorum.plans.epochs.origins import BURNED, BURNED_ORIGIN, KEPT_ORIGIN, check_origin, made_flags, origin_weaknesses
from keyquorum.plans.epochs.passage import Passage, passage
from keyquorum.plans.epochs.refresh import check_stored, finish, held_keys, settle, wipe_bytes
from keyquorum.plans.epochs.stated import Stated, agreed, is_proper, statement
from keyquorum.plans.epochs.transfer import CHECK, Carried, Transfer, checks_transfer
from keyquorum.plans.epochs.tries import Tries
from keyquorum.plans.pools import drop_pools
from keyquorum.plans.weakness import warn_all
from keyquorum.schemes import scheme_of
from keyquorum.schemes.counts import note_split
from keyquorum.schemes.holding import Holding, check_hold, holding_of
from keyquorum.schemes.key_folder import load_key, write_info
from keyquorum.schemes.keys import KeyInfo
from keyquorum.schemes.origin_file import OriginFile
from keyquorum.schemes.subset_keys import info_in

MASKS = b"masks of "
"""Before the label of a vector: that of its masks."""


def bridge(old: Committee, new: Committee, dealers: Sequence[int] | None = None) -> Bridge:
    """The parties of a resharing. ``dealers``: the old members that take part, by default all. Refuses committees between which keys are not passed on, and dealers that are too few. Raises ParameterError and
    CommitteeError."""
    for committee in (old, new):
        if isinstance(committee, Subset):
            raise ParameterError("keys are passed on by whole committees: leave out --parties")
    between = bridge_between(old, new, dealers)
    needed, there = dealers_needed(old.shape), len(between.numbers)
    if there < needed:
        raise ParameterError(f"{old.protocol}: {there} dealers are too few, {old.size} parties pass a key on by {needed} or more: name {needed}")
    absent = old.size - there
    if absent and old.malicious:
        missing = ", ".join(str(number) for number in range(old.size) if number not in between.numbers)
        raise ParameterError(
            f"{old.name} is of {old.protocol}: without members {missing} the others could not check what is passed on, as {old.threshold} of them may be malicious: name all {old.size}, or leave out --dealers; recover members that lost their disks (keyquorum recover)"
        )
    if absent > old.threshold:
        raise ParameterError(
            f"{old.name}: {absent} absent members keep their old shares, and more than {old.threshold} have the keys together: name {old.size - old.threshold} dealers or more"
        )
    return between


def check_reshare(committee: Committee, party: int, job: Json) -> None:
    """The checks of the job ``reshare`` that a party makes alone."""
    between = _bridge(committee)
    check_origin(*between.sides, job.get(ACCEPTED))
    warn_all(origin_weaknesses(*between.sides, job.get(ACCEPTED)))
    own, number = between.place(party)
    _check_mac_key(own, number, party in between.olds, job.get(ACCEPTED))
    if party in between.olds:
        check_hold(between.numbers, read_epoch(own.party_folder(number)), "or name other dealers")
        found = held_keys(own, number, "pass on")
        _check_keys(between, {name: (info, held.to_json()["vectors"]) for name, (info, held) in found.items()}, job.get(ACCEPTED) == BURNED)
        for name, (info, _) in found.items() if job.get(KEPT) else ():
            split(info, counts_of(own.key_folder(number, name), info))
    with shares_alone(own, [number], "reshare"):
        if party in between.news:
            _check_joins(own, number)


def _check_mac_key(own: Committee, number: int, is_old: bool, accepted: str | None) -> None:
    """Refuses a party with a burned MAC key, but an old member if this is accepted."""
    if is_old and accepted == BURNED:
        return
    try:
        mac_key.check_party(own, number)
    except BurnedKeyError as error:
        raise BurnedKeyError(f"{error}; keyquorum reshare --accept-origin {BURNED} passes keys on without MACs" if is_old else str(error)) from None


def _bridge(committee: Committee) -> Bridge:
    if not isinstance(committee, Bridge):
        raise ParameterError("the reshare job is between two committees, and names none: write it again with keyquorum reshare --job")
    old, new = committee.sides
    bridge(old, new, committee.numbers)
    return committee


def _check_keys(between: Bridge, held: Mapping[str, tuple[KeyInfo, Sequence[object]]], burned: bool) -> None:
    """Refuses keys that the new committee cannot hold, or not decrypt with, and warns of those that are weaker there; with each the vectors of which there are shares, as a record has them. ``burned``: the
    old members do not use their MACs. Raises ParameterError or PolicyError."""
    new = between.sides[1]
    for name, (info, vectors) in held.items():
        passage(between, name, info, vectors, burned)
        warn_all(f"key {name}: {text}" for text in scheme_of(info).weaknesses_in(info, new))
        reason = scheme_of(info).undecryptable(info_in(info, new), new)
        if reason:
            raise ParameterError(f"key {name}: {new.name} could not decrypt under it: {reason}")
        if new.malicious and not getattr(scheme_of(info), "verified", True):
            raise ParameterError(
                f"key {name}: {new.protocol} is for malicious parties, and has no plan for keys of {info.parameters.scheme} that promises this: choose another protocol"
            )


def _check_joins(new: Committee, number: int) -> None:
    """Refuses a new member that has keys, or files in their places. Removes what a change that was cut off before its vote left. The end of one for which the member voted is heard first (:func:`.settle`)."""
    under_way = Change.unfinished(new, number)
    if under_way is not None and under_way.standing.stage != Stage.WAITING:
        return
    Change.refuse_unvoted(new, number)
    folder = new.party_folder(number)
    there = sorted(path.name for path in (folder / "keys").glob("*") if path.is_dir() and any(path.iterdir()))
    if there:
        raise KeyFileError(
            f"{folder}: there is a key {there[0]} already, and keys are passed on to a committee without any: keyquorum init --after makes a new one"
        )


@party_job("reshare", {OLD: str, NEW: str, DEALERS: list}, check=check_reshare, verified=True, optional={ACCEPTED: str, KEPT: bool})
def reshare_job(context: PartyContext, job: Json) -> Json:
    """The job ``reshare``: passes all keys of the old committee on to the new one. Raises CommitteeError beside a daemon of this party."""
    between = _bridge(context.committee)
    check_origin(*between.sides, job.get(ACCEPTED))
    own, number = between.place(context.party)
    with shares_alone(own, [number], "reshare"):
        if context.party in between.news:
            _check_joins(own, number)
        return _Run(context, job.get(ACCEPTED) == BURNED, job.get(KEPT, False)).run()


class _Run:
    """One party's part. ``burned``: old members do not use their MACs; ``kept``: they keep their shares."""

    def __init__(self, context: PartyContext, burned: bool, kept: bool) -> None:
        self.context, self.session = context, context.session
        self.between = _bridge(context.committee)
        self.old, self.new = self.between.sides
        self.own, self.number = self.between.place(context.party)
        self.is_old = context.party in self.between.olds
        self.dealers = self.between.numbers[: dealers_needed(self.old.shape)]
        """Numbers of the old members that deal; they are the first parties of the session."""
        self.passages: dict[str, Passage] = {}
        self.tries = Tries({})
        self.dealer: Dealer | None = None
        self.dealt: Dealt | None = None
        self.burned, self.kept = burned, kept
        self.transfer = Transfer(context, self.between, self.dealers, burned) if checks_transfer(self.between) else None

    def run(self) -> Json:
        with self.context.phase("statements"):
            settle(self.context, (self.own, self.number))
            if not self.is_old:
                _check_joins(self.own, self.number)
            said = self._exchange()
            infos = {name: parsed(held["info"]) for name, held in sorted(said["keys"].items())}
            stated = agreed(self.between, infos, self._stated(statement(self.old, self.number, infos) if self.is_old else b""), not self.burned)
            self.passages = {
                name: passage(self.between, name, info, said["keys"][name]["holding"]["vectors"], self.burned) for name, info in infos.items()
            }
            self.tries = Tries.of(infos, stated, {name: passed.made for name, passed in self.passages.items()})
            halves = {name: split(infos[name], each.counts) for name, each in stated.items()} if self.kept else {}
            stated = {name: replace(each, counts=halves[name][1] if self.kept else each.counts) for name, each in stated.items()}
            stated = {name: self.tries.counted(name, each) for name, each in stated.items()}
            record = self._record(said, infos, stated)
            said_alike = json.dumps({name: [each.beside, each.recent] for name, each in stated.items()}, sort_keys=True).encode()
            self.session.compare("record of the change", hashlib.sha256(record.data + said_alike).digest())
        change = None if self.is_old else Change.propose(self.own, self.number, record)
        try:
            with self.context.phase("shares", len(infos)) as step:
                self._seeds(bytes.fromhex(record.name))
                for name, info in infos.items():
                    if change is None:
                        self._deal(name, info, stated[name])
                    else:
                        self._take(change, name, info, said["keys"][name], stated[name])
                    step()
            # Nobody tosses before all have said so. With MACs they are in memory.
            self.session.compare("new shares on the disk", bytes.fromhex(record.digest))
            if self.transfer is not None:
                with self.context.phase("check"):
                    self.transfer.run(self._carried(record, change))
            self._make_last(infos, record)
            if change is not None and self.transfer is not None and self.transfer.macs is not None:
                for name, info in infos.items():
                    self._complete(change, name, info)
            if self.kept:
                self._split(record, infos, {name: here for name, (here, _) in halves.items()})
            elif change is None:
                change = Change.propose(self.own, self.number, record)
            self.session.compare("record on the disk", bytes.fromhex(record.digest))
            reached("reshare/prepared")
        except BaseException:
            if change is not None and change.is_new:
                change.refuse()
            raise
        finally:
            if self.transfer is not None:
                self.transfer.wipe()
        if change is None:  # it keeps its shares
            return {"epoch": record.number, "name": record.name, "keys": sorted(infos), "bytes_erased": 0}
        with self.context.phase("commit"):
            if change.is_new:
                change.vote()
            finish(self.context, change, self.between.news if self.kept else None)
            change.check_erasable()
            drop_pools(self.own, self.number, leaves=self.is_old)
            erased = change.erase()
        return {"epoch": record.number, "name": record.name, "keys": sorted(infos), "bytes_erased": erased}

    def _split(self, record: Record, infos: Mapping[str, KeyInfo], counts: Mapping[str, Counts]) -> None:
        """What old members that keep their shares have on their disks before a new one may vote: that there may be a standby, and counts without what that may use. All have noted these before the first one counts so: a crash
        sets members apart, and the note shows each that the others are right. Rounds: 1."""
        if self.is_old:
            for name, info in infos.items():
                note_split(self.old.key_folder(self.number, name), info, counts[name])
            note_standby(self.old.party_folder(self.number), record)
            reached("reshare/noted")
        self.session.compare("standby noted", bytes.fromhex(record.digest))
        for name, info in infos.items() if self.is_old else ():
            claim_split(self.old.key_folder(self.number, name), info, counts[name])
            reached("reshare/split")

    # -- statements ---------------------------------------------------------------------------------------------------

    def _exchange(self) -> Json:
        """What the old members say of their keys and epoch, the same, checked by the new members."""
        said: Json = {}
        if self.is_old:
            folder = self.old.party_folder(self.number)
            here = read_epoch(folder)
            said = {
                "epoch": [here.number, here.name],
                "origin": list(origin_of(self.old, folder)),
                "keys": keys_said(self.old, self.number, "pass on"),
            }
        stated = self.session.all_gather(digest_of(said) if said else b"")
        expected = stated[0]
        for party in self.between.olds:
            if len(expected) != hashlib.sha256().digest_size or stated[party] != expected:
                raise EpochError(
                    f"{self.between.title(0)} and {self.between.title(party)} are in other epochs, or hold other keys: keyquorum epoch status at both; leave out one that was restored with --dealers"
                )
        if self.context.party == 0:
            for party in self.between.news:
                self.session.send(party, json.dumps(said).encode())
        if not self.is_old:
            said = self._admitted(self.session.recv(0, MOST_SAID), expected)
        return said

    def _stated(self, mine: bytes) -> list[bytes]:
        """What the old members that take part say of their keys, by their places in the session: one after the other, as a message has all evaluations of the last hour. All compare later what they heard."""
        said = list[bytes]()
        for teller in self.between.olds:
            if self.context.party != teller:
                said.append(self.session.recv(teller, MOST_SAID))
                continue
            for party in (*self.between.olds, *self.between.news):
                if party != teller:
                    self.session.send(party, mine)
            said.append(mine)
        return said

    def _admitted(self, content: bytes, expected: bytes) -> Json:
        """What the first dealer sent, if it is what all stated and this member can hold it."""
        try:
            said = json_loads(content)
        except ValueError:
            said = None
        if not isinstance(said, dict) or digest_of(said) != expected:
            raise EpochError(f"{self.between.title(0)} sent other keys than it stated: see what became of it")
        if not is_proper(said):
            raise EpochError(f"{self.between.title(0)} sent something that is not keys of a committee: run the same version everywhere")
        if said["origin"][-1:] != [origin_text(self.old)]:
            raise EpochError(f"{self.old.name}: its members say that another committee holds the keys: see what became of them")
        keys = said["keys"].items()
        _check_keys(
            self.between, {check_name(name, "key name"): (parsed(each["info"]), each["holding"]["vectors"]) for name, each in keys}, self.burned
        )
        sizes = sum(sum(each["sizes"].values()) for _, each in keys)
        require_disk("public files of the keys", sizes, self.own.party_folder(self.number))
        return said

    def _record(self, said: Json, infos: dict[str, KeyInfo], stated: Mapping[str, Stated]) -> Record:
        name, (number, previous), members = self.session.toss(NAME_DIGITS // 2).hex(), said["epoch"], self.new.digest.hex()
        keys = {}
        for key, info in infos.items():
            passed = self.passages[key]
            flags = made_flags(info, said["keys"][key]["holding"], said["origin"], passed, stated[key].correct)
            keys[key] = Holding(info.key_id, *self.new.shape, passed.vectors, flags, number + 1, name, members).to_json()
        flat = {f"{key}/{what}": count for key, found in stated.items() for what, count in found.counts.items() if count}
        *before, last = said["origin"]
        last = f"{KEPT_ORIGIN if self.kept else ''}{last}{f', {BURNED_ORIGIN}' if self.burned else ''}"
        origin = (*before, last, origin_text(self.new))
        checks = (CHECK,) if self.transfer is not None else ()
        sides = committee_json(self.old), committee_json(self.new)
        return Record(name, number + 1, previous, *sides, keys, flat, self.dealers, checks, origin, kept=self.kept)

    # -- shares -------------------------------------------------------------------------------------------------------

    def _seeds(self, name: bytes) -> None:
        """Seeds of masks, among the old members; then those of the pieces that are not sent: one message of each dealer to each new member."""
        if self.transfer is not None:
            self.transfer.begin(name)
        if self.is_old and self.number in self.dealers:
            self.dealer = Dealer(self.old.shape, self.new.shape, self.dealers, self.number, name)
            for receiver, party in enumerate(self.between.news):
                seeds = self.dealer.seeds(receiver)
                self._send_secret(party, seeds)
        elif not self.is_old:
            seeds_of: list[bytes | bytearray] = []
            try:
                seeds_of += [self.session.recv(party, MOST_SAID) for party in range(len(self.dealers))]
                self.dealt = Dealt(self.new.shape, self.number, [bytes(seeds) for seeds in seeds_of], name)
            finally:
                for data in seeds_of:
                    wipe_bytes(data)

    def _send_secret(self, to: int, data: bytearray) -> None:
        message = bytes(data)
        try:
            self.session.send(to, message)
        finally:
            wipe_bytes(data)
            wipe_bytes(message)

    def _deal(self, key: str, info: KeyInfo, stated: Stated) -> None:
        """Sends what this old member has for a key: the first one the public files, dealers their shares and masks."""
        folder = self.old.key_folder(self.number, key)
        held, beside = holding_of(folder, info), stated.beside
        if self.context.party == 0:
            send_files(self.session, self.between.news, folder, info)
            for name in sorted(beside):
                send_file(self.session, self.between.news, folder / name)
        for index, domain in enumerate(self.passages[key].dealt):
            label, masked = label_of(held, key, index), MASKS + label_of(held, key, index)
            if self.transfer is not None and self.transfer.macs is not None:
                values, masks = self.transfer.macs.masked(held, held.folder(folder), index, label, domain)
                self._deal_vector(domain, masked, masks)
                self._deal_vector(domain, label, values)
                continue
            if self.transfer is not None and self.context.party in self.transfer.stating:
                masks = self.transfer.masks(domain, label)
                self._deal_vector(domain, masked, masks)
            if self.dealer is not None:
                self._deal_vector(domain, label, values_of(held, held.folder(folder), self.number, index, domain))

    def _deal_vector(self, domain: str, label: bytes, shares: bytes) -> None:
        """Sends the pieces of a vector, if this member deals; overwrites its shares."""
        secret: list[bytes | bytearray] = [shares]
        try:
            dealt = [] if self.dealer is None else self.dealer.dealt(domain, label, shares)
            secret += dealt
            for party, sent in zip(self.between.news, dealt, strict=False):
                self._send_secret(party, sent)  # empty where all comes from seeds
        finally:
            for data in secret:
                wipe_bytes(data)

    def _take(self, change: Change, key: str, info: KeyInfo, said: Json, stated: Stated) -> None:
        """Writes what this new member gets of a key; the metadata last, when all else is there and was read back. ``said``: what the old members say of it."""
        shares_folder, held = change.folder(key), Holding.from_json(change.record.keys[key])
        folder = shares_folder.parent
        receive_files(self.session, 0, folder, info.files, said["sizes"])
        sizes = {name: size for name, (size, _) in stated.beside.items()}
        require_disk("the copy of encrypted round keys", sum(sizes.values()), folder)
        receive_files(self.session, 0, folder, {name: digest for name, (_, digest) in stated.beside.items()}, sizes)
        for index, (domain, vector) in enumerate(zip(self.passages[key].dealt, held.vectors, strict=False)):
            label, header = label_of(held, key, index), held.share_header(self.number, index)
            if self.transfer is not None:
                self.transfer.keep(label, self._taken(domain, MASKS + label, transfer_rows(domain)))
            share = self._taken(domain, label, vector.length)
            if self.transfer is not None and self.transfer.macs is not None:
                self._authenticate(Domain.parse(vector.domain), domain, label, share)
                continue
            stored = bytes(share)
            try:
                ShareFile.write(str(shares_folder / f"share-{index}.kqs"), header, stored)
            finally:
                wipe_bytes(share)
                wipe_bytes(stored)
            stated_name = bytes.fromhex((said["origins"][index : index + 1] or [change.record.name])[0])
            beside = OriginFile(shares_folder, index, header)
            beside.write(beside.binding.carried(stated_name, f"reshare to epoch {change.record.name}: {key} {index}"))
            reached("reshare/written")
        start_counts(folder, info, stated.counts, stated.recent)
        scheme_of(info).check_public(folder, info)
        if self.transfer is None or self.transfer.macs is None:
            self._complete(change, key, info)

    def _authenticate(self, domain: Domain, dealt: Domain, label: bytes, share: bytearray) -> None:
        """Makes shares with MACs of what this new member got of a vector and of its masks."""
        assert self.transfer is not None and self.transfer.macs is not None, "committees with MACs check what they get"
        masks = self.transfer.taken(label)
        summands = b"".join((share, masks))
        try:
            self.transfer.macs.authenticate(domain, dealt, label, summands)
        finally:
            for secret in (share, masks, summands):
                wipe_bytes(secret)

    def _make_last(self, infos: Mapping[str, KeyInfo], record: Record) -> None:
        """New members with MACs make shares of vectors that the old committee does not have. Old ones wait: no change of theirs begins before. Rounds: those of :meth:`.KeyScheme.make_last`, and 3."""
        if not self.tries.runs:
            return
        with self.context.phase("last vectors", len(self.tries.runs)) as step:
            self.tries.count(self.context, (self.old, self.number) if self.is_old else None, infos, bytes.fromhex(record.digest))
            for name in self.tries.runs if not self.is_old else ():
                assert self.transfer is not None and self.transfer.macs is not None
                held = Holding.from_json(record.keys[name])
                self.transfer.macs.make_last(infos[name], held, [label_of(held, name, index) for index in range(len(held.vectors))])
                step()
            self.session.compare("last vectors", bytes.fromhex(record.digest))

    def _complete(self, change: Change, key: str, info: KeyInfo) -> None:
        """Reads back what this new member wrote of a key, or writes shares with MACs; then the metadata."""
        shares_folder, held = change.folder(key), Holding.from_json(change.record.keys[key])
        folder = shares_folder.parent
        if self.transfer is not None and self.transfer.macs is not None:
            for index in range(len(held.vectors)):
                self.transfer.macs.store(held, shares_folder, index, label_of(held, key, index))
                reached("reshare/written")
        check_stored(held, shares_folder, self.number)
        write_info(folder, info)
        sync_folder(folder)
        reached("reshare/stored")

    def _taken(self, domain: str, label: bytes, count: int) -> bytearray:
        """This new member's shares of a vector, from what all dealers send."""
        data: list[bytes | bytearray] = []
        assert self.dealt is not None, "seeds come before shares"
        try:
            for party in range(len(self.dealers)):
                data.append(self.session.recv(party, MOST_SAID))
            return self.dealt.taken(domain, label, count, [bytes(sent) for sent in data])
        finally:
            for each in data:
                wipe_bytes(each)

    def _carried(self, record: Record, change: Change | None) -> list[Carried]:
        """All vectors, with this party's shares of each: those that an old member has, and those that a new one got. ``change``: of a new member."""
        found = []
        for key in record.keys:
            if change is not None:
                held, shares_folder = Holding.from_json(record.keys[key]), change.folder(key)
            else:
                folder = self.old.key_folder(self.number, key)
                held = holding_of(folder, load_key(folder))
                shares_folder = held.folder(folder)
            for index, domain in enumerate(self.passages[key].dealt):
                found.append(Carried(key, domain, label_of(held, key, index), partial(values_of, held, shares_folder, self.number, index, domain)))
        return found


__all__ = ["bridge", "check_reshare", "reshare_job"]
