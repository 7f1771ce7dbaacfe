"""Recovery of a party that lost its folder: the others help it to its shares of all keys, in the epoch in which they are. The secret is nowhere.

1. Every party checks alone that the committee can recover a share, and that nothing is unfinished. The helpers state a hash of keys, holdings, origins and records; all of them state the same.
2. The lost party takes the records and statements of its epoch (:func:`.restore`), and says which keys it lacks.
3. The helpers draw seeds in common (``Source/mpc/src/recovery.rs``). Each sends its blinded share of every vector; the lost party interpolates, after it has checked the degree.
   Where fewer than 2t + 1 helpers are left of a committee for malicious parties, all lost parties are recovered in one run (``also``).
4. Where that does not show whether helpers sent the right shares (:func:`.must_test`), all that take part test their shares against the public key (:func:`.prove`).
   Where fewer than 2t help, the recovered shares may be of another polynomial than before (:func:`.determines`): the others are noted as untested until a refresh without them, or until they are recovered in their turn.
5. Shares and public files are written in a folder of their own, read back, and moved to their place, key after key. A run that was cut off is repeated: it goes on with the keys that are missing.

Paper: Herzberg, Jarecki, Krawczyk, Yung, CRYPTO 1995, section on lost shares. Rounds: 1 and 1 for statements, those of :meth:`.Recovery.begin`, 1 for the shares, 1 for the end.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from keyquorum._engine import Recovery, ShareFile
from keyquorum.dsl import ShareVector
from keyquorum.model.checkpoints import reached
from keyquorum.model.committee import Committee, check_name, sync_folder
from keyquorum.model.epoch import Stage
from keyquorum.model.errors import EpochError, KeyFileError, ParameterError
from keyquorum.model.plain import Json, json_loads
from keyquorum.model.subset import ABSENT
from keyquorum.parties.context import PartyContext
from keyquorum.parties.epochs import JOURNAL, Change, read_epoch
from keyquorum.parties.epochs.audited import audit
from keyquorum.parties.epochs.erasure import MAKING, erase_folder
from keyquorum.parties.epochs.record import write_epoch
from keyquorum.parties.epochs.restore import follow, public_records, restore, was_absent
from keyquorum.parties.jobs import party_job
from keyquorum.plans.epochs.alone import shares_alone
from keyquorum.plans.epochs.carried import MOST_SAID, digest_of, keys_said, label_of, parsed, receive_files, send_files
from keyquorum.plans.epochs.helpers import ALSO, determines, helpers_of, lost_in, must_test
from keyquorum.plans.epochs.prove import check_left, proofs_run, prove
from keyquorum.plans.epochs.refresh import absent_from, check_stored, held_keys, wipe_bytes
from keyquorum.plans.epochs.restored_counts import RestoredCounts, Said, parsed_counts, said_counts
from keyquorum.plans.epochs.untested import HeardNotes, Notes, check_helpers, for_recovery, said_notes
from keyquorum.plans.pools import drop_pools
from keyquorum.schemes import scheme_of
from keyquorum.schemes.holding import Holding, holding_of
from keyquorum.schemes.key_folder import holds_a_key, load_key, load_shares, read_vector, write_info
from keyquorum.schemes.keys import KeyInfo
from keyquorum.schemes.origin_file import OriginFile


def check_recover(committee: Committee, party: int, job: Json) -> None:
    """The checks of the job ``recover`` that a party makes alone."""
    whole, number = committee.whole, committee.number_of(party)
    _check(whole, number, job)
    with shares_alone(whole, [number], "recover"):
        pass


def _check(committee: Committee, party: int, job: Json) -> list[int]:
    """The same without the locks; the helpers."""
    lost = lost_in(job)
    helpers = helpers_of(committee, job["party"], job["helpers"], job.get(ALSO, ()), job.get(ABSENT, ()))
    if party not in lost:  # who was absent from a later change follows that one
        _check_ended(committee, party, lost)
    if party in helpers:
        absent = job.get(ABSENT, ())
        check_helpers(committee, helpers, for_recovery(read_epoch(committee.party_folder(party)), lost, absent), {*absent, *lost})
        held_keys(committee, party, "recover")
    elif party in lost:
        _check_lost(committee, party)
    return helpers


def _check_ended(committee: Committee, party: int, lost: Sequence[int]) -> None:
    if Change.unfinished(committee, party) is not None:
        raise EpochError(
            f"party {party}: a change of the epoch is unfinished: keyquorum epoch commit, or keyquorum epoch give-up --lost {','.join(map(str, lost))}, before a recovery"
        )


def _check_lost(committee: Committee, party: int) -> None:
    """Refuses a lost party that has files without keys in the places of keys."""
    for folder in sorted(path for path in (committee.party_folder(party) / "keys").glob("*") if path.is_dir()):
        if not holds_a_key(folder) and any(folder.iterdir()):
            raise KeyFileError(f"{folder}: there are files without a key (no key.json): move them away, then recover again")


@party_job("recover", {"party": int, "helpers": list}, check=check_recover, verified=True, optional={ALSO: list, ABSENT: list})
def recover_job(context: PartyContext, job: Json) -> Json:
    """The job ``recover``: a party that lost its folder, but not its identity, gets its shares of all keys again. Raises CommitteeError beside a daemon of this party."""
    whole, number = context.committee.whole, context.committee.number_of(context.party)
    with shares_alone(whole, [number], "recover"):
        helpers = _check(whole, number, job)
        return _Run(context, lost_in(job), helpers).run()


class _Run:
    """One party's part in a recovery."""

    def __init__(self, context: PartyContext, lost: list[int], helpers: list[int]) -> None:
        self.context, self.lost, self.helpers = context, lost, helpers
        self.committee, self.party, self.session = context.committee.whole, context.committee.number_of(context.party), context.session
        self.helps, self.is_lost = self.party in helpers, self.party in lost
        self.tested, self.opened = must_test(self.committee, helpers), False
        self.heard = HeardNotes(self.committee, helpers)
        noted = self.tested and not determines(self.committee, helpers)
        self.notes = Notes(self.committee, self.party, lost, absent_from(context.committee), noted)

    def _at(self, number: int) -> int:
        """The place of a party in the session, where others may be absent."""
        return self.context.committee.index_of(number)

    def run(self) -> Json:
        said = _said(self.committee, self.party) if self.helps else None
        with self.context.phase("statements"):
            said, shown, counts = self._exchange(said)
            if self.tested:
                self._check_lacking(said)
            if self.is_lost:
                self._enter(said, shown)
            missing = self._missing(said)
            if self.is_lost:
                self.notes.hear(self.heard, missing, said["keys"])
            elif self.helps:
                self.notes.agree(missing, said["keys"], self.helpers)
            keys = sorted({key for lacking in missing.values() for key in lacking})
            for key in keys if self.tested else ():
                self._check_testable(key, parsed(said["keys"][key]["info"]))
        if keys:
            self.notes.begin()
        try:
            self._recover_all(said, missing, counts)
        except BaseException:
            if not self.opened:
                self.notes.take_back()
            raise
        self.session.compare("end of the recovery", hashlib.sha256(json.dumps([self.lost, keys]).encode()).digest())
        self._note(keys)
        self._audit(keys)
        return {
            "party": self.lost[0],
            "parties": self.lost,
            "keys": keys,
            "epoch": said["epoch"][0] if said else None,
            "name": said["epoch"][1] if said else None,
        }

    def _recover_all(self, said: Json, missing: Mapping[int, list[str]], counts: Sequence[dict[str, Said]]) -> None:
        """All keys that the lost parties lack."""
        with self.context.phase("seeds"):
            recoveries = {
                lost: Recovery.begin(
                    self.session,
                    self.committee.protocol,
                    (self._at(lost), list(map(self._at, self.helpers))),
                    self.tested,
                    self.committee.threshold,
                    self.context.seed,
                )
                for lost in self.lost
            }
        for key in sorted({key for lacking in missing.values() for key in lacking}):
            lacking = {lost: recoveries[lost] for lost in self.lost if key in missing[lost]}
            if self.helps:
                self._help(lacking, key)
            elif self.party in lacking:
                self._recover(lacking[self.party], key, said["keys"][key], [mine[key] for mine in counts])
            elif self.is_lost and self.tested:
                self._test(key)

    def _note(self, keys: Sequence[str]) -> None:
        """Notes who has shares that fit again. No lost party is untested any more. Of those that had been absent: the lost parties, and those that any party of this epoch knows of, or t + 1 of them where one may be malicious. Nothing is used because of it. A party that ends before this refuses the others by name,
        until these are recovered once more."""
        folder = self.committee.party_folder(self.party)
        here = read_epoch(folder)
        missing, lists = set(here.missing) - set(self.lost), list[set[int]]()
        for said in self.session.all_gather(json.dumps([here.name, sorted(missing)]).encode()):
            with suppress(ValueError, TypeError):
                name, known = json_loads(said)
                lists += [set(known)] if name == here.name else []
        needed = self.committee.threshold + 1 if self.committee.malicious else 1
        missing = {number for number in missing if sum(number not in known for known in lists) < needed}
        if keys:
            self.notes.end(missing)
        elif missing != set(here.missing):
            write_epoch(folder, replace(here, missing=tuple(sorted(missing))))
        reached("recover/noted")

    def _audit(self, keys: list[str]) -> None:
        here = read_epoch(self.committee.party_folder(self.party))
        ids = {
            key: parsed(json_loads((self.committee.key_folder(self.party, key) / "key.json").read_text())).key_id
            for key in keys
            if self.helps or self.is_lost
        }
        said = {
            "epoch": here.name,
            "epoch_number": here.number,
            "recovered": self.lost[0] if len(self.lost) == 1 else self.lost,
            "helpers": self.helpers,
            "keys": ids,
            "result": "recovered",
        }
        audit(self.committee, self.party, "recovered", said)

    # -- statements ---------------------------------------------------------------------------------------------------

    def _exchange(self, said: Json | None) -> tuple[Json, list[bytes], list[dict[str, Said]]]:
        """What the helpers say of their keys and epoch, the same; at the lost party also the statements that each shows, and its counts."""
        stated = self.session.all_gather(b"" if said is None else digest_of(said))
        first, expected = self.helpers[0], stated[self._at(self.helpers[0])]
        for party in self.helpers:
            if len(expected) != hashlib.sha256().digest_size or stated[self._at(party)] != expected:
                raise EpochError(
                    f"parties {first} and {party} are in other epochs, or hold other keys: keyquorum epoch status at both; a party that was restored is not a helper"
                )
        if self.helps:
            change = Change.current(self.committee, self.party)
            for lost in map(self._at, self.lost):
                self.session.send(lost, b"" if change is None or not said or not said["epoch"][0] else change.show())
                self.session.send(lost, json.dumps(said_counts(self.committee, self.party, said["keys"] if said else {})).encode())
                self.session.send(lost, said_notes(read_epoch(self.committee.party_folder(self.party))))
                if self.party == first:
                    self.session.send(lost, json.dumps(said).encode())
            return said or {}, [], []
        if not self.is_lost:
            return {}, [], []
        shown, counts, content = list[bytes](), list[dict[str, Said]](), b""
        for party in self.helpers:
            shown.append(self.session.recv(self._at(party), MOST_SAID))
            counts.append(parsed_counts(party, self.session.recv(self._at(party), MOST_SAID)))
            self.heard.add(party, self.session.recv(self._at(party), MOST_SAID))
            if party == first:
                content = self.session.recv(self._at(party), MOST_SAID)
        try:
            found = json_loads(content)
        except ValueError:
            found = None
        if not isinstance(found, dict) or digest_of(found) != expected:
            raise EpochError(f"party {first} sent other keys than it stated: see what became of it, or leave it out with --from")
        if any(set(mine) != set(found["keys"]) for mine in counts):
            raise EpochError("a helper sent counts of other keys than it stated: run the same version everywhere")
        return found, shown, counts

    def _enter(self, said: Json, shown: Sequence[bytes]) -> None:
        """Takes the lost party to the epoch of the others, if it has none."""
        folder = self.committee.party_folder(self.party)
        Change.unfinished(self.committee, self.party)  # repaired after a crash
        here, (number, name) = read_epoch(folder), said["epoch"]
        follows = was_absent(said["records"], self.committee, self.party)
        if not follows or here.name == name:
            _check_ended(self.committee, self.party, self.lost)
        if here.name == name:
            self._erase_before()
            return
        fresh = not here.number and not (folder / JOURNAL).exists() and not any(map(holds_a_key, (folder / "keys").glob("*")))
        if follows and not fresh:
            follow(self.committee, self.party, said["records"], dict(zip(self.helpers, shown, strict=True)))
            self._erase_before()
            return
        if not fresh:
            raise EpochError(
                f"party {self.party} is in epoch {here.number} and the helpers in {number}: it was restored or missed a change: keyquorum epoch commit there with --from; "
                "if its new shares are gone, move keys, epoch.json, epochs.journal and epochs of its folder away, then recover again"
            )
        change = restore(self.committee, self.party, said["records"], dict(zip(self.helpers, shown, strict=True)))
        if not change.uncommitted():
            change.erase()  # nothing is there: notes since when backups of before must be gone

    def _erase_before(self) -> None:
        """Erases what a party that was absent has of earlier epochs, and drops pools of these. Its old shares are of no use: all that were present have newer ones."""
        change = Change.current(self.committee, self.party)
        if change is not None and change.follows and change.standing.stage != Stage.ERASED:
            drop_pools(self.committee, self.party)
            change.erase()

    def _missing(self, said: Json) -> dict[int, list[str]]:
        """The keys that each lost party lacks, as it says. It refuses a key of the name that is another one, or whose shares are damaged."""
        missing = list[str]()
        if self.is_lost:
            for key, held in sorted(said["keys"].items()):
                folder = self.committee.key_folder(self.party, check_name(key, "key name"))
                _clear(self.committee.party_folder(self.party) / MAKING / key)
                if holds_a_key(folder) and not self._was_absent(folder, held):
                    self._check_there(folder, held)
                else:
                    missing.append(key)
        stated = self.session.all_gather(json.dumps(missing).encode() if self.is_lost else b"")
        return {lost: self._asked(lost, stated[self._at(lost)], said) for lost in self.lost}

    def _asked(self, lost: int, stated: bytes, said: Json) -> list[str]:
        try:
            names = json_loads(stated)
            proper = isinstance(names, list) and len(set(names)) == len(names) and (not said or all(name in said["keys"] for name in names))
        except (ValueError, TypeError):
            proper = False
        if not proper:
            raise EpochError(f"party {lost} asked for keys that are not there: run the same version everywhere")
        return list(names)

    def _was_absent(self, folder: Path, said: Json) -> bool:
        """Whether this is the key of the helpers, and the party was absent when its shares were made, and has none."""
        change = Change.current(self.committee, self.party)
        if change is None or not change.follows or folder.name not in change.record.keys:
            return False
        shares = holding_of(folder, load_key(folder)).folder(folder)
        return load_key(folder).digest == parsed(said["info"]).digest and not any(shares.glob("*"))

    def _check_there(self, folder: Path, said: Json) -> None:
        info = parsed(said["info"])
        mine, held = held_keys(self.committee, self.party, "recover")[folder.name]
        if mine.digest != info.digest:
            raise KeyFileError(f"{folder}: another key than that of the helpers: move the folder away, then recover again")
        try:
            check_stored(held, held.folder(folder), self.party)
        except Exception as error:
            raise KeyFileError(f"{folder}: its shares are damaged or missing ({error}): move the folder away, then recover again") from None

    def _check_lacking(self, said: Json) -> None:
        """Refuses keys that cannot come back before a lost party says again that it committed their epoch: with this word others may erase the last shares. Two rounds; all that take part help or are lost."""
        folders = {key: self.committee.key_folder(self.party, check_name(key, "key name")) for key in said["keys"]}
        lacking = sorted(key for key, folder in folders.items() if not holds_a_key(folder))
        stated = self.session.all_gather(json.dumps(lacking).encode() if self.is_lost else b"")
        asked = sorted({key for lost in self.lost for key in self._asked(lost, stated[self._at(lost)], said)})
        for key in asked:
            self._check_testable(key, parsed(said["keys"][key]["info"]))
        self.session.compare("keys whose shares are to be tested", hashlib.sha256(json.dumps(asked).encode()).digest())

    def _check_testable(self, key: str, info: KeyInfo) -> None:
        """Refuses a key whose shares cannot be tested, before anything of it is sent. Raises ParameterError or PolicyError."""
        try:
            scheme_of(info).check_fit(info, self.context.committee)
        except ParameterError as error:
            raise ParameterError(
                f"key {key}: in {self.committee.protocol} of {self.committee.size} nothing else shows whether helpers send right shares: {error}"
            ) from None
        if self.helps:
            check_left(self.committee.key_folder(self.party, key), info)

    # -- shares -------------------------------------------------------------------------------------------------------

    def _help(self, recoveries: Mapping[int, Recovery], key: str) -> None:
        """Sends what this helper has for a key of the lost parties that lack it."""
        folder = self.committee.key_folder(self.party, key)
        info, held = held_keys(self.committee, self.party, "recover")[key]
        with self.context.phase("shares"):
            if self.party == self.helpers[0]:
                send_files(self.session, list(map(self._at, recoveries)), folder, info)
            for lost, recovery in recoveries.items():
                if self.context.party in recovery.senders:
                    self._send_shares(lost, recovery, key, held)
        if self.tested:
            self._test(key)

    def _test(self, key: str) -> None:
        """Takes part in the test of all parties' shares of a key with its own."""
        folder = self.committee.key_folder(self.party, key)
        info = load_key(folder)
        self._prove(info, load_shares(folder, info, self.party), folder)

    def _prove(self, info: KeyInfo, shares: Sequence[ShareVector], folder: Path) -> None:
        """The test, and whether it got so far that a party may have passed it: the run is counted before anything is opened, and nobody passes without what this party opens."""
        before, opened, self.opened = proofs_run(folder, info), self.opened, True
        try:
            prove(self.context, info, shares, folder)
        finally:
            self.opened = opened or proofs_run(folder, info) != before

    def _send_shares(self, lost: int, recovery: Recovery, key: str, held: Holding) -> None:
        folder = self.committee.key_folder(self.party, key)
        for index, vector in enumerate(held.vectors):
            secret: list[bytes | bytearray] = []
            try:
                secret.append(ShareFile.read(str(held.folder(folder) / f"share-{index}.kqs"), held.share_header(self.party, index)))
                sent = recovery.sent(vector.domain, label_of(held, key, index), bytes(secret[0]))
                message = bytes(sent)
                secret += [sent, message]
                self.session.send(self._at(lost), message)
            finally:
                for data in secret:
                    wipe_bytes(data)

    def _recover(self, recovery: Recovery, key: str, said: Json, said_of_it: Sequence[Said]) -> None:
        """Makes a key's folder from what the helpers send, and moves it to its place. ``said_of_it``: the counts of each helper."""
        info, party_folder = parsed(said["info"]), self.committee.party_folder(self.party)
        held = _held(self.committee, self.party, key, info)
        counts = RestoredCounts.of(self.committee, info, dict(zip(self.helpers, said_of_it, strict=True)))
        making = party_folder / MAKING / key
        folder = making / secrets.token_hex(8)
        held.folder(folder).mkdir(parents=True, mode=0o700)
        folder.chmod(0o700)
        try:
            with self.context.phase("shares"):
                receive_files(self.session, self._at(self.helpers[0]), folder, info.files, said["sizes"])
                self._receive_shares(recovery, held, (folder, key), said["origins"])
            target = self.committee.key_folder(self.party, key)
            check_stored(held, held.folder(folder), self.party)
            there = holds_a_key(target)  # it was absent, and has all but the shares
            if not there:
                counts.start(folder, info)
                scheme_of(info).check_public(folder, info)
                write_info(folder, info)
            if self.tested:
                shares = [read_vector(held, held.folder(folder), self.party, index) for index in range(len(held.vectors))]
                self._prove(info, shares, target if there else folder)
            self.notes.end()
            if there:
                self._publish_shares(held, folder, target, counts)
                return
            reached("recover/written")
            target.parent.mkdir(mode=0o700, exist_ok=True)
            for place in {held.folder(folder), folder}:
                sync_folder(place)
            os.rename(folder, target)  # never onto a folder that is not empty
            sync_folder(target.parent)
        finally:
            _clear(making)
        reached("recover/published")

    def _publish_shares(self, held: Holding, folder: Path, target: Path, counts: RestoredCounts) -> None:
        """Moves the shares of a key to a party's folder of it, after its counts."""
        counts.raise_there(target, load_key(target))
        reached("recover/written")
        sync_folder(held.folder(folder))
        os.rename(held.folder(folder), held.folder(target))
        sync_folder(target)
        reached("recover/published")

    def _receive_shares(self, recovery: Recovery, held: Holding, place: tuple[Path, str], origins: Sequence[str]) -> None:
        folder = held.folder(place[0])
        for index, vector in enumerate(held.vectors):
            header, data = held.share_header(self.party, index), list[bytes | bytearray]()
            try:
                for sender in recovery.senders:
                    data.append(self.session.recv(sender, MOST_SAID))
                share = recovery.recovered(vector.domain, vector.length, [bytes(sent) for sent in data])
                data.append(share)
                stored = bytes(share)
                data.append(stored)
                ShareFile.write(str(folder / f"share-{index}.kqs"), header, stored)
            finally:
                for each in data:
                    wipe_bytes(each)
            OriginFile(folder, index, header).restore(origins)


def _said(committee: Committee, party: int) -> Json:
    """What a helper says of its keys and its epoch: the same at all honest ones."""
    here = read_epoch(committee.party_folder(party))
    return {"epoch": [here.number, here.name], "records": public_records(committee, party), "keys": keys_said(committee, party, "recover")}


def _held(committee: Committee, party: int, key: str, info: KeyInfo) -> Holding:
    """How the lost party holds a key in its epoch. Raises KeyFileError for a key that the committee does not hold."""
    listed = read_epoch(committee.party_folder(party)).keys.get(key)
    held = Holding.as_made(info) if listed is None else Holding.from_json(listed)
    if held.key_id != info.key_id or held.shape != committee.shape or scheme_of(info).vectors_for(info, committee) != held.vectors:
        raise KeyFileError(f"key {key}: the helpers sent a key that this committee does not hold in epoch {held.epoch}: see what became of them")
    return held


def _clear(making: Path) -> None:
    """Erases what a run that was cut off left."""
    if making.is_dir():
        erase_folder(making)
        with suppress(OSError):  # another key is being made
            making.parent.rmdir()


__all__ = ["ALSO", "check_recover", "helpers_of", "must_test", "recover_job"]
