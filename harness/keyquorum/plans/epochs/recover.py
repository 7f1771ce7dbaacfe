"""Recovery of a party that lost its folder: the others help it to its shares of all keys, in the epoch in which they are. The secret is nowhere.

1. Every party checks alone that the committee can recover a share, and that nothing is unfinished. The helpers state a hash of keys, holdings, origins and records; all of them state the same.
2. The lost party takes the records and statements of its epoch (:func:`.restore`), and says which keys it lacks.
3. The helpers draw seeds in common (``Source/mpc/src/recovery.rs``). Each sends its blinded share of every vector; the lost party interpolates, after it has checked the degree.
4. Where that does not show whether helpers sent the right shares (:func:`must_test`), all parties test their shares against the public key (:func:`.prove`).
5. Shares and public files are written in a folder of their own, read back, and moved to their place, key after key. A run that was cut off is repeated: it goes on with the keys that are missing.

Paper: Herzberg, Jarecki, Krawczyk, Yung, CRYPTO 1995, section on lost shares. Rounds: 1 and 1 for statements, those of :meth:`.Recovery.begin`, 1 for the shares, 1 for the end.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from math import comb
from pathlib import Path

from keyquorum._engine import Recovery, ShareFile
from keyquorum.model.checkpoints import reached
from keyquorum.model.committee import Committee, check_name, sync_folder
from keyquorum.model.errors import EpochError, KeyFileError, ParameterError
from keyquorum.model.plain import Json, is_count, json_loads
from keyquorum.model.subset import Subset, decrypts_apart
from keyquorum.parties.context import PartyContext
from keyquorum.parties.epochs import JOURNAL, Change, read_epoch
from keyquorum.parties.epochs.audited import audit
from keyquorum.parties.epochs.erasure import MAKING, erase_folder
from keyquorum.parties.epochs.restore import public_records, restore
from keyquorum.parties.jobs import party_job
from keyquorum.plans.epochs.alone import shares_alone
from keyquorum.plans.epochs.carried import MOST_SAID, digest_of, keys_said, label_of, parsed, receive_files, send_files
from keyquorum.plans.epochs.prove import check_left, prove
from keyquorum.plans.epochs.refresh import MOST_SETS, check_stored, held_keys, wipe_bytes
from keyquorum.plans.noise_check import failed_checks, set_failed_checks
from keyquorum.schemes import scheme_of
from keyquorum.schemes.counts import agreed_count, decryptions_used, set_count
from keyquorum.schemes.holding import Holding
from keyquorum.schemes.key_folder import holds_a_key, load_shares, read_vector, write_info
from keyquorum.schemes.keys import KeyInfo
from keyquorum.schemes.origin_file import OriginFile
from keyquorum.schemes.quorum_shares import counting_parties


def helpers_of(committee: Committee, lost: int, helpers: Sequence[int] | None = None) -> list[int]:
    """The helpers of a recovery in increasing order; None: all other parties. Refuses committees and helpers by which no share is recovered. Raises ParameterError."""
    if isinstance(committee, Subset):
        raise ParameterError("shares are recovered among the whole committee: leave out --parties")
    sharing, n, t = committee.capabilities.sharing, committee.size, committee.threshold
    if not is_count(lost) or lost >= n:
        raise ParameterError(f"party {lost}: the committee has parties 0 to {n - 1}")
    chosen = [party for party in range(n) if party != lost] if helpers is None else list(helpers)
    if not all(is_count(party) and party < n and party != lost for party in chosen) or len(set(chosen)) < len(chosen):
        raise ParameterError(f"helpers {str(chosen)[:100]}: name other parties than {lost} of 0 to {n - 1}, each once")
    chosen.sort()
    if sharing not in ("replicated", "Shamir"):
        raise ParameterError(
            f"{committee.protocol}: all {n} parties are needed, and nobody knows anything of a lost share: restore a backup of party {lost} of this epoch; without one the keys are lost"
        )
    verified = committee.capabilities.verifies_products
    needed = n - 1 if sharing == "replicated" or must_test(committee) else 2 * t + 1 if verified else t + 1
    if len(chosen) < needed:
        why = f", of which {t} may send wrong shares" if verified else ""
        raise ParameterError(
            f"{committee.protocol}: {len(chosen)} helpers are too few, a share is recovered from {needed} or more{why}: name {needed}"
        )
    sets = comb(n, len(chosen) + 1 - t)
    if sharing == "Shamir" and sets > MOST_SETS:
        raise ParameterError(
            f"{committee.protocol}: {len(chosen)} helpers have {sets:,} sets with a seed in common, above {MOST_SETS}: name fewer with --from, at least {needed}"
        )
    return chosen


def must_test(committee: Committee) -> bool:
    """Whether what helpers send does not show that it is right, since the honest ones of n - 1 do not determine a share: then all parties test their shares against the public key before the lost one stores its own."""
    return committee.capabilities.verifies_products and (
        committee.capabilities.sharing == "replicated" or committee.size <= 2 * committee.threshold + 1
    )


def check_recover(committee: Committee, party: int, job: Json) -> None:
    """The checks of the job ``recover`` that a party makes alone."""
    _check(committee, party, job)
    with shares_alone(committee, [party], "recover"):
        pass


def _check(committee: Committee, party: int, job: Json) -> list[int]:
    """The same without the locks; the helpers."""
    lost, helpers = job["party"], helpers_of(committee, job["party"], job["helpers"])
    if Change.unfinished(committee, party) is not None:
        raise EpochError(
            f"party {party}: a change of the epoch is unfinished: keyquorum epoch commit, or keyquorum epoch give-up --lost {lost}, before a recovery"
        )
    if party in helpers:
        held_keys(committee, party, "recover")
    elif party == lost:
        _check_lost(committee, party)
    return helpers


def _check_lost(committee: Committee, party: int) -> None:
    """Refuses a lost party that has files without keys in the places of keys."""
    for folder in sorted(path for path in (committee.party_folder(party) / "keys").glob("*") if path.is_dir()):
        if not holds_a_key(folder) and any(folder.iterdir()):
            raise KeyFileError(f"{folder}: there are files without a key (no key.json): move them away, then recover again")


@party_job("recover", {"party": int, "helpers": list}, check=check_recover, verified=True)
def recover_job(context: PartyContext, job: Json) -> Json:
    """The job ``recover``: a party that lost its folder, but not its identity, gets its shares of all keys again. Raises CommitteeError beside a daemon of this party."""
    with shares_alone(context.committee, [context.party], "recover"):
        helpers = _check(context.committee, context.party, job)
        return _Run(context, job["party"], helpers).run()


class _Run:
    """One party's part in a recovery."""

    def __init__(self, context: PartyContext, lost: int, helpers: list[int]) -> None:
        self.context, self.lost, self.helpers = context, lost, helpers
        self.committee, self.party, self.session = context.committee, context.party, context.session
        self.helps, self.is_lost = context.party in helpers, context.party == lost

    def run(self) -> Json:
        said = _said(self.committee, self.party) if self.helps else None
        with self.context.phase("statements"):
            said, shown, counts = self._exchange(said)
            if self.is_lost:
                self._enter(said, shown)
            keys = self._missing(said)
            for key in keys if must_test(self.committee) else ():
                self._check_testable(key, parsed(said["keys"][key]["info"]))
        with self.context.phase("seeds"):
            tested, threshold = must_test(self.committee), self.committee.threshold
            recovery = Recovery.begin(self.session, self.committee.protocol, (self.lost, self.helpers), tested, threshold, self.context.seed)
        for key in keys:
            if self.helps:
                self._help(recovery, key)
            elif self.is_lost:
                self._recover(recovery, key, said["keys"][key], [mine[key] for mine in counts])
        self.session.compare("end of the recovery", hashlib.sha256(json.dumps([self.lost, keys]).encode()).digest())
        self._audit(keys)
        return {"party": self.lost, "keys": keys, "epoch": said["epoch"][0] if said else None, "name": said["epoch"][1] if said else None}

    def _audit(self, keys: list[str]) -> None:
        here = read_epoch(self.committee.party_folder(self.party))
        ids = {
            key: parsed(json_loads((self.committee.key_folder(self.party, key) / "key.json").read_text())).key_id
            for key in keys
            if self.helps or self.is_lost
        }
        said = {"epoch": here.name, "epoch_number": here.number, "recovered": self.lost, "helpers": self.helpers, "keys": ids, "result": "recovered"}
        audit(self.committee, self.party, "recovered", said)

    # -- statements ---------------------------------------------------------------------------------------------------

    def _exchange(self, said: Json | None) -> tuple[Json, list[bytes], list[Json]]:
        """What the helpers say of their keys and epoch, the same; at the lost party also the statements that each shows, and its counts."""
        stated = self.session.all_gather(b"" if said is None else digest_of(said))
        first, expected = self.helpers[0], stated[self.helpers[0]]
        for party in self.helpers:
            if len(expected) != hashlib.sha256().digest_size or stated[party] != expected:
                raise EpochError(
                    f"parties {first} and {party} are in other epochs, or hold other keys: keyquorum epoch status at both; a party that was restored is not a helper"
                )
        if self.helps:
            change = Change.current(self.committee, self.party)
            self.session.send(self.lost, b"" if change is None or not said or not said["epoch"][0] else change.show())
            self.session.send(self.lost, json.dumps(_counts(self.committee, self.party, said["keys"] if said else {})).encode())
            if self.party == first:
                self.session.send(self.lost, json.dumps(said).encode())
            return said or {}, [], []
        if not self.is_lost:
            return {}, [], []
        shown, counts, content = list[bytes](), list[Json](), b""
        for party in self.helpers:
            shown.append(self.session.recv(party, MOST_SAID))
            counts.append(self._parsed_counts(party, self.session.recv(party, MOST_SAID)))
            if party == first:
                content = self.session.recv(party, MOST_SAID)
        try:
            found = json_loads(content)
        except ValueError:
            found = None
        if not isinstance(found, dict) or digest_of(found) != expected:
            raise EpochError(f"party {first} sent other keys than it stated: see what became of it, or leave it out with --from")
        if any(set(mine) != set(found["keys"]) for mine in counts):
            raise EpochError("a helper sent counts of other keys than it stated: run the same version everywhere")
        return found, shown, counts

    def _parsed_counts(self, party: int, data: bytes) -> Json:
        try:
            found = json_loads(data)
            if not all((used is None or is_count(used)) and is_count(failed) for used, failed in found.values()):
                raise ValueError("no counts")
        except (ValueError, TypeError, AttributeError):
            raise EpochError(f"party {party} sent something that is no counts: run the same version everywhere") from None
        return dict(found)

    def _enter(self, said: Json, shown: Sequence[bytes]) -> None:
        """Takes the lost party to the epoch of the others, if it has none."""
        folder = self.committee.party_folder(self.party)
        here, (number, name) = read_epoch(folder), said["epoch"]
        if here.name == name:
            return
        fresh = not here.number and not (folder / JOURNAL).exists() and not any(map(holds_a_key, (folder / "keys").glob("*")))
        if not fresh:
            raise EpochError(
                f"party {self.party} is in epoch {here.number} and the helpers in {number}: it was restored or missed a change: keyquorum epoch commit there with --from; "
                "if its new shares are gone, move keys, epoch.json, epochs.journal and epochs of its folder away, then recover again"
            )
        change = restore(self.committee, self.party, said["records"], dict(zip(self.helpers, shown, strict=True)))
        if not change.uncommitted():
            change.erase()  # nothing is there: notes since when backups of before must be gone

    def _missing(self, said: Json) -> list[str]:
        """The keys that the lost party lacks, as it says. It refuses a key of the name that is another one, or whose shares are damaged."""
        missing = list[str]()
        if self.is_lost:
            for key, held in sorted(said["keys"].items()):
                folder = self.committee.key_folder(self.party, check_name(key, "key name"))
                _clear(self.committee.party_folder(self.party) / MAKING / key)
                if holds_a_key(folder):
                    self._check_there(folder, held)
                else:
                    missing.append(key)
        stated = self.session.all_gather(json.dumps(missing).encode() if self.is_lost else b"")[self.lost]
        try:
            names = json_loads(stated)
            proper = isinstance(names, list) and len(set(names)) == len(names) and (not said or all(name in said["keys"] for name in names))
        except (ValueError, TypeError):
            proper = False
        if not proper:
            raise EpochError(f"party {self.lost} asked for keys that are not there: run the same version everywhere")
        return list(names)

    def _check_there(self, folder: Path, said: Json) -> None:
        info = parsed(said["info"])
        mine, held = held_keys(self.committee, self.party, "recover")[folder.name]
        if mine.digest != info.digest:
            raise KeyFileError(f"{folder}: another key than that of the helpers: move the folder away, then recover again")
        try:
            check_stored(held, held.folder(folder), self.party)
        except Exception as error:
            raise KeyFileError(f"{folder}: its shares are damaged or missing ({error}): move the folder away, then recover again") from None

    def _check_testable(self, key: str, info: KeyInfo) -> None:
        """Refuses a key whose shares cannot be tested, before anything of it is sent. Raises ParameterError or PolicyError."""
        try:
            scheme_of(info).check_fit(info, self.committee)
        except ParameterError as error:
            raise ParameterError(
                f"key {key}: in {self.committee.protocol} of {self.committee.size} nothing else shows whether helpers send right shares: {error}"
            ) from None
        if self.helps:
            check_left(self.committee.key_folder(self.party, key), info)

    # -- shares -------------------------------------------------------------------------------------------------------

    def _help(self, recovery: Recovery, key: str) -> None:
        """Sends what this helper has for a key of the lost party."""
        folder = self.committee.key_folder(self.party, key)
        info, held = held_keys(self.committee, self.party, "recover")[key]
        with self.context.phase("shares"):
            if self.party == self.helpers[0]:
                send_files(self.session, [self.lost], folder, info)
            if self.party in recovery.senders:
                self._send_shares(recovery, key, held)
        if must_test(self.committee):
            prove(self.context, info, load_shares(folder, info, self.party), folder)

    def _send_shares(self, recovery: Recovery, key: str, held: Holding) -> None:
        folder = self.committee.key_folder(self.party, key)
        for index, vector in enumerate(held.vectors):
            secret: list[bytes | bytearray] = []
            try:
                secret.append(ShareFile.read(str(held.folder(folder) / f"share-{index}.kqs"), held.share_header(self.party, index)))
                sent = recovery.sent(vector.domain, label_of(held, key, index), bytes(secret[0]))
                message = bytes(sent)
                secret += [sent, message]
                self.session.send(self.lost, message)
            finally:
                for data in secret:
                    wipe_bytes(data)

    def _count(self, info: KeyInfo, counts: Sequence[int]) -> int:
        """The count of decryptions from those of the helpers. Where parties decrypt without the others, absent ones lag behind, and the largest count has all decryptions if one helper was among the last that counted. Raises ParameterError where none may be."""
        if not decrypts_apart(self.committee):
            used = dict(zip(self.helpers, counts, strict=True))
            return agreed_count([used.get(party, 0) for party in range(self.committee.size)], self.committee.threshold, 0, info)
        needed = self.committee.size - counting_parties(self.committee) + 1
        if len(self.helpers) < needed:
            raise ParameterError(
                f"key {info.key_id}: its decryptions are counted, and {len(self.helpers)} helpers may not know of all: name {needed} or more with --from"
            )
        return max(counts)

    def _recover(self, recovery: Recovery, key: str, said: Json, counts: Sequence[tuple[int | None, int]]) -> None:
        """Makes a key's folder from what the helpers send, and moves it to its place. ``counts``: of each helper, of decryptions and of refusals by checks of noise."""
        info, party_folder = parsed(said["info"]), self.committee.party_folder(self.party)
        held = _held(self.committee, self.party, key, info)
        used = self._count(info, [used or 0 for used, _ in counts]) if info.counted else 0
        making = party_folder / MAKING / key
        folder = making / secrets.token_hex(8)
        held.folder(folder).mkdir(parents=True, mode=0o700)
        folder.chmod(0o700)
        try:
            with self.context.phase("shares"):
                receive_files(self.session, self.helpers[0], folder, info.files, said["sizes"])
                self._receive_shares(recovery, held, (folder, key), said["origins"])
            if info.counted:
                set_count(folder, info, used)
            failed = max(failed for _, failed in counts)
            if failed and decrypts_apart(self.committee):  # elsewhere all parties take part in a check, and the others remember
                set_failed_checks(folder, info, failed)
            scheme_of(info).check_public(folder, info)
            write_info(folder, info)
            check_stored(held, held.folder(folder), self.party)
            if must_test(self.committee):
                shares = [read_vector(held, held.folder(folder), self.party, index) for index in range(len(held.vectors))]
                prove(self.context, info, shares, folder)
            reached("recover/written")
            target = self.committee.key_folder(self.party, key)
            target.parent.mkdir(mode=0o700, exist_ok=True)
            for place in {held.folder(folder), folder}:
                sync_folder(place)
            os.rename(folder, target)  # never onto a folder that is not empty
            sync_folder(target.parent)
        finally:
            _clear(making)
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


def _counts(committee: Committee, party: int, keys: Json) -> Json:
    """This party's counts of each key: of decryptions (None for keys whose are not counted), and of refusals by checks of noise."""
    places = {name: (committee.key_folder(party, name), parsed(held["info"])) for name, held in keys.items()}
    return {name: (decryptions_used(folder, info) if info.counted else None, failed_checks(folder, info)) for name, (folder, info) in places.items()}


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


__all__ = ["check_recover", "helpers_of", "must_test", "recover_job"]
