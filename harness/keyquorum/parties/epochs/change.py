"""One party's part in a change of an epoch, on its disk: every step is durable before anybody hears of it, and may be repeated after a crash.

The state machine is :mod:`keyquorum.model.epoch`. ``epochs.journal`` has a line for each statement that the party signed, and for each that it heard; from these lines a restart continues.
Order at a commit: ``epochs/E.votes``, then ``epoch.json`` (the commit point), then the line ``committed``. A crash in between is repaired when the change is opened again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

from keyquorum.model import epoch as rules
from keyquorum.model import journal
from keyquorum.model.checkpoints import reached
from keyquorum.model.committee import Committee, check_name, sync_folder, write_atomically
from keyquorum.model.epoch import BACK, ENDED, Stage, Standing, Who
from keyquorum.model.errors import EpochError
from keyquorum.model.plain import Json, json_loads

from .audited import audit_states
from .erasure import cut_off_files, erase_files, erase_folder, erase_pools, has_shares, is_another_key, old_files, remove_empty
from .lines import journal_label, journal_text, read_journal
from .record import EPOCH_FILE, JOURNAL, RECORDS, Epoch, Record, lost_journal, parse_epoch, read_epoch, require_journal, shares_name, write_epoch
from .statements import SIGNED, Statement, Statements, checked, read_votes, signed, standing_after


class Change:
    """A change at one party. ``standing``: what it signed last; ``record``: what the change is."""

    def __init__(self, committee: Committee, party: int, record: Record) -> None:
        self.record = record
        self._committee, self._party = committee, party
        self.party_folder = committee.party_folder(party)
        self._identity = committee.identity_path(party)
        self.me: Who = committee.parties[party].fingerprint
        self._statements = Statements(record)
        self.standing = Standing()
        self.follows = self.me in record.roles.absent
        """Whether this party was absent from the change, and follows those that made it: it signs nothing."""
        if self.me not in record.roles.everybody and not self.follows:
            raise EpochError(f"party {party} takes no part in the change to epoch {record.name}: name a committee that does")
        self.is_new, self.joins = self.me in record.roles.new, self.me not in record.roles.old and not self.follows
        self.leaves = not self.is_new and not self.follows
        self._replay()

    # -- beginnings ---------------------------------------------------------------------------------------------------

    @staticmethod
    def propose(committee: Committee, party: int, record: Record) -> Change:
        """Begins a change at this party, or opens it again: stores the record, and a line. Raises EpochError if the end of an earlier one is not settled, or ``record`` does not follow on this party's epoch."""
        folder = committee.party_folder(party)
        here = read_epoch(folder)
        under_way = Change.unfinished(committee, party)
        if under_way is not None:
            if under_way.record.data == record.data:
                return under_way
            Change.refuse_unvoted(committee, party)
        if committee.parties[party].fingerprint not in record.roles.old:
            if here.number:
                raise EpochError(
                    f"party {party} holds keys in epoch {here.number} already: keys are passed on to a new committee, keyquorum init --after"
                )
        elif (record.number, record.previous) != (here.number + 1, here.name):
            raise EpochError(
                f"party {party} is in epoch {here.number} ({here.name or 'as keygen left it'}), and the change to {record.name} follows epoch {record.number - 1} "
                f"({record.previous or 'as keygen left it'}): one of the two was restored from a backup, or missed a change: keyquorum epoch commit there"
            )
        for earlier in Change.recent(committee, party):
            earlier.check_settled()
        records = folder / RECORDS
        (folder / JOURNAL).touch(mode=0o600)  # before any record: who has records and no journal lost it
        records.mkdir(mode=0o700, exist_ok=True)
        sync_folder(folder)
        path = Record.path(folder, record.name)
        if path.exists() and path.read_bytes() != record.data:
            raise EpochError(f"{path}: another record of this name: begin again with a new name")
        write_atomically(path, record.data)
        reached("epoch/recorded")
        change = Change(committee, party, record)
        if change.standing.stage in ENDED:
            raise EpochError(f"party {party} has {change.standing.stage} the change to epoch {record.name}: begin again with a new name")
        change._write(True, {"kind": Stage.WAITING.value})
        return change

    @staticmethod
    def followed(committee: Committee, party: int, record: Record, statements: Iterable[Json]) -> Change:
        """Takes a party that was absent from a change, and has its record, to the new epoch, by the statements of those that made it (:func:`.restore.follow` has checked them)."""
        change = Change(committee, party, record)
        if record.name not in Change._proposed(committee, party):
            change._write(True, {"kind": Stage.WAITING.value})
        for said in statements:
            change._hear(said, "what the helpers showed")
        change.repair()
        change.advance()
        return change

    @staticmethod
    def refuse_unvoted(committee: Committee, party: int) -> None:
        """Refuses the unfinished change of this party if its process died before the vote. Raises EpochError if the party voted for it, or leaves by it."""
        under_way = Change.unfinished(committee, party)
        if under_way is not None and under_way.standing.stage == Stage.WAITING and under_way.is_new:
            under_way.refuse()
        elif under_way is not None:
            under_way.check_settled()

    @staticmethod
    def _proposed(committee: Committee, party: int) -> list[str]:
        """Names of the changes that this party proposed, the oldest first. Later lines may be of an older change, as of its erasure."""
        lines = read_journal(committee.party_folder(party) / JOURNAL, committee.parties[party].fingerprint)
        return [line["epoch"] for line in lines if line["own"] and line["said"]["kind"] == Stage.WAITING]

    @staticmethod
    def last(committee: Committee, party: int) -> Change | None:
        """The change that this party proposed last, as it is on the disk; None if there is none."""
        proposed = Change._proposed(committee, party)
        return Change(committee, party, Record.load(committee.party_folder(party), proposed[-1])) if proposed else None

    @staticmethod
    def recent(committee: Committee, party: int) -> list[Change]:
        """The change that led to this party's epoch, and all that it proposed from there, the oldest first. Other members may not know how these ended; of those before, all do. Raises EpochError where the journal
        is missing, or older than ``epoch.json``: what the party signed is not known then."""
        folder = committee.party_folder(party)
        here, proposed = read_epoch(folder), Change._proposed(committee, party)
        if here.number and here.name not in proposed:
            raise lost_journal(folder)
        require_journal(folder)
        records = (Record.load(folder, name) for name in reversed(proposed))
        found = list(takewhile(lambda record: record.number >= here.number, records))
        return [Change(committee, party, record) for record in reversed(found) if record.number > here.number or record.name == here.name]

    @staticmethod
    def passed_on(committee: Committee, party: int) -> list[Change]:
        """Changes before the recent ones by which this party joined, the oldest first. They are shown for ever: a member of the committee before that missed the end hears it from nobody else, and nobody signs
        that it erased its shares. Raises EpochError."""
        folder, me = committee.party_folder(party), committee.parties[party].fingerprint
        recent = {change.record.name for change in Change.recent(committee, party)}
        records = [Record.load(folder, name) for name in dict.fromkeys(Change._proposed(committee, party)) if name not in recent]
        return [Change(committee, party, record) for record in records if me not in record.old["parties"]]

    @staticmethod
    def unfinished(committee: Committee, party: int) -> Change | None:
        """The newest change, if the party does not know how it ended; repaired after a crash (:meth:`repair`)."""
        change = Change.last(committee, party)
        if change is not None:
            change.repair()
            audit_states(committee, party)
        return None if change is None or change.standing.stage in rules.DECIDED else change

    @staticmethod
    def current(committee: Committee, party: int) -> Change | None:
        """The change that led to this party's epoch, or by which it left; None as key generation left it."""
        folder = committee.party_folder(party)
        here = read_epoch(folder)
        return Change(committee, party, Record.load(folder, here.name)) if here.number else None

    def _replay(self) -> None:
        path = self.party_folder / JOURNAL
        for line in read_journal(path, self.me):
            if line["epoch"] != self.record.name:
                continue
            stage = Stage(line["said"]["kind"])
            if stage in SIGNED and not (line["own"] and self.follows):
                said = checked(self.record, line["said"], str(path))
                self._statements.add(said)
                if line["own"]:
                    self.standing = standing_after(self.standing, said)
            elif line["own"]:
                self.standing = replace(self.standing, stage=stage)

    def repair(self) -> None:
        """Finishes what a crash cut off: a commit whose line is missing, the way back to the old epoch, or shares of a dropped epoch that are still there. An ``epoch.json`` that is missing, damaged or
        older than the journal is made again. Not while another process has the change open."""
        votes = self.party_folder / RECORDS / f"{self.record.name}.votes"
        if votes.exists() and not self._statements.votes():
            for vote in read_votes(self.record, votes.read_bytes(), str(votes)):
                self._hear(vote.to_json(), str(votes))
        self._repair_epoch()
        if read_epoch(self.party_folder).name == self.record.name:
            if self.standing.stage == Stage.FROZEN or (self.standing.stage == Stage.WAITING and self.is_new):
                raise lost_journal(self.party_folder)
            if self.standing.stage in (Stage.WAITING, Stage.VOTED, Stage.THAWED):
                self._sign(replace(self.standing, stage=Stage.COMMITTED))
        if self.standing.stage in BACK:
            self._go_back()
        if rules.drops_new(self.standing):
            self._drop()

    def _repair_epoch(self) -> None:
        path = self.party_folder / EPOCH_FILE
        try:
            here = parse_epoch(path) if path.exists() else None
        except EpochError:
            here = None
        committed = self.standing.stage in (Stage.COMMITTED, Stage.ERASED)
        if committed and (here is None or self._is_before(here)):
            votes = self.party_folder / RECORDS / f"{self.record.name}.votes"
            if not self._statements.votes():
                raise EpochError(f"{votes}: missing, so {path} cannot be made again: copy the votes from another party")
            write_epoch(self.party_folder, self._epoch(here or self._before()))
        elif not committed and here is None and self.record.number > 1 and not self.joins and not self.follows:
            write_epoch(self.party_folder, self._before())

    def _is_before(self, here: Epoch) -> bool:
        """Whether a party with this epoch is not in the new one yet. A party that follows may have missed changes before this one, or have committed alone what the others gave up."""
        if self.follows:
            return here.number <= self.record.number and here.name != self.record.name
        return here.name == ("" if self.joins else self.record.previous)

    def _epoch(self, before: Epoch) -> Epoch:
        record = self.record
        past = None if self.joins or self.follows else before.without_past()
        return Epoch(record.number, record.name, record.new["digest"], record.keys, past, record.absent)

    def _before(self) -> Epoch:
        """The party's epoch before this change, by its record: who came back since is absent again, and whose shares are untested is not known. Raises EpochError if the record is missing."""
        if self.record.number == 1 or self.joins or self.follows:
            return Epoch()
        before = Record.load(self.party_folder, self.record.previous)
        return Epoch(before.number, before.name, before.new["digest"], before.keys, None, before.absent)

    # -- steps --------------------------------------------------------------------------------------------------------

    def folder(self, key: str) -> Path:
        """The folder for this party's new shares of a key, made if it is missing; at a party that joins, also the key's own. Raises EpochError after the vote."""
        if self.standing.stage != Stage.WAITING or key not in self.record.keys:
            raise EpochError(f"shares of {key} after {self.standing.stage}, or of a key that is not in the record: this is a bug, please report it")
        folder = self.party_folder / "keys" / check_name(key, "key name") / shares_name(self.record.name)
        for each in (*((folder.parent.parent, folder.parent) if self.joins else ()), folder):
            each.mkdir(mode=0o700, exist_ok=True)
            sync_folder(each.parent)
        return folder

    def vote(self) -> None:
        """Votes, when the shares of all keys are on the disk. From here on the party never decides alone. Raises EpochError if shares are missing."""
        after = rules.vote(self.record.roles, self.me, self.standing)
        for key in self.record.keys:
            folder = self.party_folder / "keys" / key / shares_name(self.record.name)
            if not folder.is_dir() or not any(folder.glob("share-*.kqs")):
                raise EpochError(f"{folder}: no shares of {key} for epoch {self.record.name}: the change cannot be voted for")
            sync_folder(folder)
        reached("epoch/stored")
        self._sign(after)

    def refuse(self) -> None:
        """Refuses before the vote, and erases the new shares and their pools; the old epoch goes on. Raises EpochError after the vote."""
        self._sign(rules.refuse(self.record.roles, self.me, self.standing))
        self._drop()

    def give_up(self, lost: Iterable[Who]) -> Stage:
        """Freezes, or refuses before the vote, since others are lost; goes on with what follows. Raises EpochError where the rules forbid it."""
        self._sign(rules.freeze(self.record.roles, self.me, self.standing, self._statements.seen, frozenset(lost)))
        if self.standing.stage == Stage.REFUSED:
            self._drop()
        return self.advance()

    def show(self) -> bytes:
        """All statements that this party has, to be given to the others."""
        said = [statement.to_json() for statement in self._statements]
        return json.dumps({"epoch": self.record.name, "statements": said}, separators=(",", ":")).encode()

    def hear(self, data: bytes, where: str = "a party's statements") -> None:
        """Takes what another participant showed. Every signature is verified, and new statements are on the disk before they count. Raises EpochError for what is damaged, of another change, or contradicts
        what is known, after all that is proper is taken: no corrupt participant can keep statements of others from being heard."""
        try:
            said = json_loads(data)
            name, statements = said["epoch"], list(said["statements"])
        except (ValueError, KeyError, TypeError):
            raise EpochError(f"{where}: not statements of a change of an epoch: run the same version everywhere") from None
        if name != self.record.name:
            raise EpochError(
                f"{where}: statements of the change to epoch {str(name)[:32]!r}, and this is {self.record.name}: bring those of this one"
            )
        count, errors = len(self._statements), list[EpochError]()
        for statement in statements:
            try:
                self._hear(statement, where)
            except EpochError as error:
                errors.append(error)
        if len(self._statements) > count:
            known = self._statements.contradictions(count)
            errors += [EpochError(f"{where}: {line}") for line in self.contradictions() if line not in known]
        if errors:
            raise errors[0]

    def contradictions(self) -> list[str]:
        """A line for each participant that is known to have contradicted itself."""
        return self._statements.contradictions()

    def _hear(self, data: Json, where: str) -> None:
        statement = checked(self.record, data, where)
        if self._statements.knows(statement):
            return
        if statement.who == self.me:
            raise EpochError(
                f"{where}: this party signed {statement.stage}, and its journal does not have it: the journal is an old backup; restore the newest one"
            )
        self._statements.add(statement)
        self._write(False, statement.to_json())

    def advance(self) -> Stage:
        """Does all that follows from what is known: commits, thaws, or drops the new epoch; returns the stage."""
        while True:
            after = rules.decide(self.record.roles, self.me, self.standing, self._statements.seen)
            if after == self.standing:
                if self.joins and after.stage == Stage.GONE_BACK and self.settled:
                    self._drop()  # nobody comes forward any more: beside the shares that the old committee keeps these would be an epoch without end
                return after.stage
            if after.stage == Stage.COMMITTED:
                self._commit()
            if after.stage in (Stage.THAWED, Stage.COMMITTED):
                self._keep_votes()
            self._sign(after)
            if after.stage in BACK:
                self._go_back()
            if rules.drops_new(after):
                self._drop()

    @property
    def settled(self) -> bool:
        """Whether the end of this change stays what it is for this party, whatever it hears."""
        return rules.settled(self.record.roles, self.standing, self._statements.seen)

    def check_settled(self) -> None:
        """Raises EpochError unless the change is settled: the party takes part in no other one before."""
        if self.settled:
            return
        who, name, missing = f"party {self._party}", self.record.name, self.uncommitted()
        if self.standing.stage == Stage.GONE_BACK:
            said = f"{who} went back from epoch {name}, and others may come forward to it"
        elif self.standing.stage in rules.DECIDED:
            said = f"{who}: {len(missing)} of the members have not said that they committed epoch {name}, the first {missing[0][:16]}"
        else:
            raise EpochError(
                f"{who}: the change to epoch {name} is unfinished: keyquorum epoch commit, or keyquorum epoch give-up, before another one"
            )
        raise EpochError(f"{said}: keyquorum epoch commit with the statements of all members, then again")

    def check_erasable(self) -> Standing:
        """The standing after the erasure. Raises EpochError while somebody may need the old shares, or a later change is under way."""
        after = rules.erase(self.record.roles, self.standing, self._statements.seen)
        newest = Change.last(self._committee, self._party)
        if newest is not None and newest.standing.stage not in rules.DECIDED:
            raise EpochError(f"party {self._party}: a change to epoch {newest.record.name} is under way: erase after it has ended")
        return after

    def erase(self, also: Sequence[Path] = ()) -> int:
        """Erases the old shares, and files that the caller names, after all new members have committed; returns the number of bytes. Raises EpochError before."""
        after = self.check_erasable()
        try:
            total = erase_files([*also, *self.old_files()])
        except OSError as error:
            raise EpochError(
                f"{error.filename}: not erased ({error.strerror}), and all others are: mend that, and run keyquorum epoch erase again"
            ) from None
        remove_empty(self.party_folder, self.record.keys, self.record.name)
        missed = list(self.old_files())
        if missed:
            raise EpochError(f"{missed[0]}: still there after it was erased: see who writes there, and run keyquorum epoch erase again")
        if self.standing != after:
            self._write(True, {"kind": after.stage.value, "bytes": total})
            self.standing = after
        return total

    def statements(self, stage: Stage) -> list[Statement]:
        """All statements of a kind that are here, in the order of participants."""
        return sorted((said for said in self._statements if said.stage == stage), key=lambda said: said.who)

    def missing(self) -> list[Who]:
        """New members whose vote is not here."""
        return sorted(self.record.roles.new - self._statements.of(Stage.VOTED))

    def uncommitted(self) -> list[Who]:
        """New members that have not said here that they committed."""
        return sorted(self.record.roles.new - self._statements.of(Stage.COMMITTED))

    def old_files(self) -> list[Path]:
        """Files with this party's shares of the keys that are not of the new epoch; of a member that leaves, all. Also what a recovery left that was cut off."""
        keep = frozenset[str]() if self.leaves else frozenset({self.record.name})
        keep |= self._kept_later()
        return [*old_files(self.party_folder, self.record.keys, keep), *cut_off_files(self.party_folder, self.record.keys)]

    def _kept_later(self) -> frozenset[str]:
        """Later changes from which this party went back: their shares stay until a change from the same epoch has ended, since others may have erased theirs of that epoch."""
        later = [change for change in Change.recent(self._committee, self._party) if change.record.number > self.record.number]
        return frozenset(change.record.name for change in later if change.standing.stage == Stage.GONE_BACK)

    # -- the disk -----------------------------------------------------------------------------------------------------

    def _sign(self, after: Standing) -> None:
        if self.follows:  # a step without a statement
            self._write(True, {"kind": after.stage.value})
            self.standing = after
            return
        statement = signed(self.record, self._identity, after.stage, after.lost)
        if statement.who != self.me:
            raise EpochError(f"{self._identity}: not the identity that the committee file lists for this party: restore it")
        self._statements.add(statement)
        self._write(True, statement.to_json())
        self.standing = after

    def _write(self, own: bool, said: Json) -> None:
        text = journal_text(self.record.name, own, said)
        journal.append(self.party_folder / JOURNAL, journal_label(self.me), text, f"epoch/{said['kind']}" if own else "epoch/heard")
        if own:
            audit_states(self._committee, self._party)

    def _keep_votes(self) -> None:
        votes = self._statements.votes()
        assert votes is not None, "who thaws or commits has all votes"
        write_atomically(self.party_folder / RECORDS / f"{self.record.name}.votes", votes)
        reached("epoch/votes")

    def _commit(self) -> None:
        """The commit point. A member that leaves is in the new epoch as well, whose keys another committee holds."""
        self._keep_votes()
        here = read_epoch(self.party_folder)
        if here.name != self.record.name:
            write_epoch(self.party_folder, self._epoch(here))
            reached("epoch/switched")

    def _go_back(self) -> None:
        """Returns to the epoch before, after the line ``gone-back``. The new shares stay: if all committed, the party comes forward again."""
        here = read_epoch(self.party_folder)
        if here.name == self.record.name:
            write_epoch(self.party_folder, here.before or self._before())
            reached("epoch/back")

    def _drop(self) -> None:
        """Erases the shares of the new epoch, and pools that were filled for it; at a party that joins, also what it got of the keys besides. Nothing else is touched: the old epoch never stopped."""
        folders = [self.party_folder / "keys" / key / shares_name(self.record.name) for key in self.record.keys]
        erase_files(path for folder in folders if folder.is_dir() for path in sorted(folder.rglob("*")) if path.is_file())
        for folder in folders:
            if folder.is_dir():
                folder.rmdir()
        erase_pools(self.party_folder, self.record.name)
        for key, held in self.record.keys.items() if self.joins else ():
            made = self.party_folder / "keys" / key
            ours = made.is_dir() and not is_another_key(made, held)
            if ours and not has_shares(made):  # with others it is no part of this change, whatever its metadata say
                erase_folder(made)
