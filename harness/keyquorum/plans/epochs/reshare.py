"""Resharing: all keys of a committee go to a new one, which may have another protocol and other members. No secret is rebuilt anywhere; public files, metadata and ciphertexts stay as they are.

1. Every party checks alone what it can. The old members state a hash of keys, holdings and epoch, and their counts; all state the same keys. The new members get metadata and refuse keys that they cannot hold.
2. All toss the name of the epoch, and compare the record of the change. Nothing of a share was sent so far.
3. Dealers, some or all of the old members, deal their summands to the new ones (``Source/mpc/src/resharing.rs``). These write shares, public files and counts, and read them back.
4. All compare that this is done. The old members store the record, the new ones vote and commit, and all hear it (:class:`.Change`). Then the old members erase their shares.

A new member that fails before its vote refuses, and the old epoch goes on. Sources: Desmedt, Jajodia 1997, for the change of a committee; Herzberg, Jarecki, Krawczyk, Yung, CRYPTO 1995.
Rounds: 2 for earlier changes, 1 for keys and 1 for counts, 1 for metadata, 3 for the toss, 1 for the record, 1 for seeds and shares, 2 for what is stored, 2 for the statements.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from keyquorum._engine import Dealer, Dealt, ShareFile, dealers_needed
from keyquorum.model.bridge import DEALERS, NEW, OLD, Bridge, bridge_between
from keyquorum.model.checkpoints import reached
from keyquorum.model.committee import Committee, check_name, sync_folder
from keyquorum.model.epoch import NAME_DIGITS, Stage
from keyquorum.model.errors import EpochError, KeyFileError, ParameterError
from keyquorum.model.inspected import sha256_of
from keyquorum.model.needs import require_disk
from keyquorum.model.plain import Json, is_count, is_hex, json_loads
from keyquorum.model.subset import Subset
from keyquorum.parties.context import PartyContext
from keyquorum.parties.epochs import Change, Record, committee_json, read_epoch
from keyquorum.parties.epochs.record import origin_of, origin_text
from keyquorum.parties.jobs import party_job
from keyquorum.plans.epochs.alone import shares_alone
from keyquorum.plans.epochs.carried import MOST_SAID, digest_of, keys_said, label_of, parsed, receive_files, send_file, send_files
from keyquorum.plans.epochs.counts import Counts, agreed_counts, counts_of, start_counts
from keyquorum.plans.epochs.refresh import check_stored, finish, held_keys, settle, wipe_bytes
from keyquorum.plans.pools import drop_pools
from keyquorum.schemes import scheme_of
from keyquorum.schemes.holding import FLAGS, Holding, holding_of
from keyquorum.schemes.key_folder import write_info
from keyquorum.schemes.keys import KeyInfo
from keyquorum.schemes.subset_keys import info_in

BESIDE = "round-keys-*.lwe"
"""Public files beside a key that its metadata do not list."""


def bridge(old: Committee, new: Committee, dealers: Sequence[int] | None = None) -> Bridge:
    """The parties of a resharing. ``dealers``: the old members that take part, by default all. Refuses committees between which keys are not passed on, and dealers that are too few. Raises ParameterError and
    CommitteeError."""
    for committee in (old, new):
        if isinstance(committee, Subset):
            raise ParameterError("keys are passed on by whole committees: leave out --parties")
        if committee.capabilities.adversary == "malicious":
            raise ParameterError(
                f"{committee.name} is of {committee.protocol}: keys are passed on among committees whose parties follow the protocol, as nothing shows a wrong share yet: make new keys in a new committee"
            )
    between = bridge_between(old, new, dealers)
    needed, there = dealers_needed(old.shape), len(between.numbers)
    if there < needed:
        raise ParameterError(f"{old.protocol}: {there} dealers are too few, {old.size} parties pass a key on by {needed} or more: name {needed}")
    absent = old.size - there
    if absent > old.threshold:
        raise ParameterError(
            f"{old.name}: {absent} absent members keep their old shares, and more than {old.threshold} have the keys together: name {old.size - old.threshold} dealers or more"
        )
    return between


def check_reshare(committee: Committee, party: int, job: Json) -> None:
    """The checks of the job ``reshare`` that a party makes alone."""
    between = _bridge(committee)
    own, number = between.place(party)
    if party in between.olds:
        _check_keys(between, {name: (info, held.to_json()["vectors"]) for name, (info, held) in held_keys(own, number, "pass on").items()})
    with shares_alone(own, [number], "reshare"):
        if party in between.news:
            _check_joins(own, number)


def _bridge(committee: Committee) -> Bridge:
    if not isinstance(committee, Bridge):
        raise ParameterError("the reshare job is between two committees, and names none: write it again with keyquorum reshare --job")
    old, new = committee.sides
    bridge(old, new, committee.numbers)
    return committee


def _check_keys(between: Bridge, held: Mapping[str, tuple[KeyInfo, object]]) -> None:
    """Refuses keys that the new committee cannot hold, or not decrypt with; with each the vectors of which there are shares, as a record has them. Raises ParameterError or PolicyError."""
    old, new = between.sides
    for name, (info, vectors) in held.items():
        if [[vector.domain, vector.length] for vector in scheme_of(info).vectors_for(info, new)] != vectors:
            raise ParameterError(f"key {name}: {new.protocol} holds it with other vectors than {old.protocol}: choose another protocol")
        reason = scheme_of(info).undecryptable(info_in(info, new), new)
        if reason:
            raise ParameterError(f"key {name}: {new.name} could not decrypt under it: {reason}")


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


@party_job("reshare", {OLD: str, NEW: str, DEALERS: list}, check=check_reshare)
def reshare_job(context: PartyContext, job: Json) -> Json:
    """The job ``reshare``: passes all keys of the old committee on to the new one. Raises CommitteeError beside a daemon of this party."""
    between = _bridge(context.committee)
    own, number = between.place(context.party)
    with shares_alone(own, [number], "reshare"):
        if context.party in between.news:
            _check_joins(own, number)
        return _Run(context).run()


class _Run:
    """One party's part."""

    def __init__(self, context: PartyContext) -> None:
        self.context, self.session = context, context.session
        self.between = _bridge(context.committee)
        self.old, self.new = self.between.sides
        self.own, self.number = self.between.place(context.party)
        self.is_old = context.party in self.between.olds
        self.dealers = self.between.numbers[: dealers_needed(self.old.shape)]
        """Numbers of the old members that deal; they are the first parties of the session."""
        self.dealer: Dealer | None = None
        self.dealt: Dealt | None = None

    def run(self) -> Json:
        with self.context.phase("statements"):
            settle(self.context, (self.own, self.number))
            if not self.is_old:
                _check_joins(self.own, self.number)
            said = self._exchange()
            infos = {name: parsed(held["info"]) for name, held in sorted(said["keys"].items())}
            counts = self._counts(infos)
            record = self._record(said, infos, counts)
            self.session.compare("record of the change", bytes.fromhex(record.digest))
        change = None if self.is_old else Change.propose(self.own, self.number, record)
        try:
            with self.context.phase("shares", len(infos)) as step:
                self._seeds(bytes.fromhex(record.name))
                for name, info in infos.items():
                    if change is None:
                        self._deal(name, info)
                    else:
                        self._take(change, name, info, said["keys"][name]["sizes"], counts[name])
                    step()
            self.session.compare("new shares on the disk", bytes.fromhex(record.digest))
            if change is None:
                change = Change.propose(self.own, self.number, record)
            self.session.compare("record on the disk", bytes.fromhex(record.digest))
            reached("reshare/prepared")
        except BaseException:
            if change is not None and change.is_new:
                change.refuse()
            raise
        with self.context.phase("commit"):
            if change.is_new:
                change.vote()
            finish(self.context, change)
            change.check_erasable()
            drop_pools(self.own, self.number, leaves=self.is_old)
            erased = change.erase()
        return {"epoch": record.number, "name": record.name, "keys": sorted(infos), "bytes_erased": erased}

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

    def _admitted(self, content: bytes, expected: bytes) -> Json:
        """What the first dealer sent, if it is what all stated and this member can hold it."""
        try:
            said = json_loads(content)
        except ValueError:
            said = None
        if not isinstance(said, dict) or digest_of(said) != expected:
            raise EpochError(f"{self.between.title(0)} sent other keys than it stated: see what became of it")
        if not _is_proper(said):
            raise EpochError(f"{self.between.title(0)} sent something that is not keys of a committee: run the same version everywhere")
        keys = said["keys"].items()
        _check_keys(self.between, {check_name(name, "key name"): (parsed(each["info"]), each["holding"]["vectors"]) for name, each in keys})
        sizes = sum(sum(each["sizes"].values()) for _, each in keys)
        require_disk("public files of the keys", sizes, self.own.party_folder(self.number))
        return said

    def _counts(self, infos: dict[str, KeyInfo]) -> dict[str, Counts]:
        """The counts of each key from which the new members go on."""
        mine = {name: counts_of(self.old.key_folder(self.number, name), info) for name, info in infos.items()} if self.is_old else {}
        said = self.session.all_gather(json.dumps(mine).encode())
        found = list[Json]()
        for party in self.between.olds:
            try:
                found.append(dict(json_loads(said[party])))
            except (ValueError, TypeError):
                raise EpochError(f"{self.between.title(party)} sent no counts of keys: run the same version everywhere") from None
        numbers = self.between.numbers
        return {name: agreed_counts(self.old, info, {number: found[i].get(name) for i, number in enumerate(numbers)}) for name, info in infos.items()}

    def _record(self, said: Json, infos: dict[str, KeyInfo], counts: dict[str, Counts]) -> Record:
        name, (number, previous), members = self.session.toss(NAME_DIGITS // 2).hex(), said["epoch"], self.new.digest.hex()
        keys = {}
        for key, info in infos.items():
            flags, vectors = tuple(said["keys"][key]["holding"]["flags"]), scheme_of(info).vectors_for(info, self.new)
            keys[key] = Holding(info.key_id, *self.new.shape, vectors, flags, number + 1, name, members).to_json()
        flat = {f"{key}/{what}": count for key, found in counts.items() for what, count in found.items() if count}
        origin = (*said["origin"], origin_text(self.new))
        return Record(name, number + 1, previous, committee_json(self.old), committee_json(self.new), keys, flat, self.dealers, (), origin)

    # -- shares -------------------------------------------------------------------------------------------------------

    def _seeds(self, name: bytes) -> None:
        """Seeds of the pieces that are not sent: one message of each dealer to each new member."""
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

    def _deal(self, key: str, info: KeyInfo) -> None:
        """Sends what this old member has for a key: the first one the public files, dealers their shares."""
        folder = self.old.key_folder(self.number, key)
        held = holding_of(folder, info)
        if self.context.party == 0:
            beside = {path.name: [path.stat().st_size, sha256_of(path).hex()] for path in sorted(folder.glob(BESIDE))}
            send_files(self.session, self.between.news, folder, info)
            for party in self.between.news:
                self.session.send(party, json.dumps(beside).encode())
            for name in sorted(beside):
                send_file(self.session, self.between.news, folder / name)
        for index, vector in enumerate(held.vectors) if self.dealer is not None else ():
            secret: list[bytes | bytearray] = []
            try:
                secret.append(ShareFile.read(str(held.folder(folder) / f"share-{index}.kqs"), held.share_header(self.number, index)))
                assert self.dealer is not None
                dealt = self.dealer.dealt(vector.domain, label_of(held, key, index), bytes(secret[0]))
                secret += dealt
                for party, sent in zip(self.between.news, dealt, strict=True):
                    self._send_secret(party, sent)  # empty where all comes from seeds
            finally:
                for data in secret:
                    wipe_bytes(data)

    def _beside(self, content: bytes) -> tuple[dict[str, str], dict[str, int]]:
        """Hashes and sizes of the files that come with a key besides those of its metadata."""
        try:
            said = json_loads(content)
            digests, sizes = {name: digest for name, (_, digest) in said.items()}, {name: size for name, (size, _) in said.items()}
            proper = all(Path(name).name == name and Path(name).match(BESIDE) for name in said)
            proper = proper and all(is_hex(digest, 64) for digest in digests.values()) and all(map(is_count, sizes.values()))
        except (ValueError, TypeError, AttributeError):
            proper = False
        if not proper:
            raise KeyFileError(f"{self.between.title(0)} sent something that is not public files of a key: run the same version everywhere")
        return digests, sizes

    def _take(self, change: Change, key: str, info: KeyInfo, sizes: dict[str, int], counts: Counts) -> None:
        """Writes what this new member gets of a key; the metadata last, when all else is there and was read back."""
        shares_folder, held = change.folder(key), Holding.from_json(change.record.keys[key])
        folder = shares_folder.parent
        receive_files(self.session, 0, folder, info.files, sizes)
        digests, lengths = self._beside(self.session.recv(0, MOST_SAID))
        require_disk("the copy of encrypted round keys", sum(lengths.values()), folder)
        receive_files(self.session, 0, folder, digests, lengths)
        for index, vector in enumerate(held.vectors):
            data: list[bytes | bytearray] = []
            assert self.dealt is not None, "seeds come before shares"
            try:
                for party in range(len(self.dealers)):
                    data.append(self.session.recv(party, MOST_SAID))
                share = self.dealt.taken(vector.domain, label_of(held, key, index), vector.length, [bytes(sent) for sent in data])
                data.append(share)
                stored = bytes(share)
                data.append(stored)
                ShareFile.write(str(shares_folder / f"share-{index}.kqs"), held.share_header(self.number, index), stored)
            finally:
                for each in data:
                    wipe_bytes(each)
            reached("reshare/written")
        start_counts(folder, info, counts)
        scheme_of(info).check_public(folder, info)
        check_stored(held, shares_folder, self.number)
        write_info(folder, info)
        sync_folder(folder)
        reached("reshare/stored")


def _is_proper(said: Json) -> bool:
    """Whether what old members say has the entries that :meth:`_Run._exchange` writes, of their types."""
    try:
        (number, name), origin = said["epoch"], said["origin"]
        proper = is_count(number) and (is_hex(name, NAME_DIGITS) if number else name == "") and all(isinstance(text, str) for text in origin)
        for key in said["keys"].values():
            sizes, flags = key["sizes"], key["holding"]["flags"]
            proper = proper and isinstance(key["holding"]["vectors"], list) and set(flags) <= set(FLAGS) and set(sizes) == set(key["info"]["files"])
            proper = proper and all(map(is_count, sizes.values()))
    except (KeyError, TypeError, ValueError, AttributeError):
        return False
    return proper


__all__ = ["bridge", "check_reshare", "reshare_job"]
