"""Files of epochs at a party: ``epoch.json``, which says in which epoch the party is, and ``epochs/E.json``, the public record of a change.

``epoch.json`` is the commit point: one atomic rename takes a party from one epoch to the next. A party without it is in epoch 0, and its shares lie where key generation left them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from keyquorum.model.committee import Committee, check_name, sync_folder, write_atomically
from keyquorum.model.epoch import DECIDED, NAME_DIGITS, Roles, Stage, Who
from keyquorum.model.errors import CommitteeError, EpochError
from keyquorum.model.plain import Json, is_count, is_hex, json_loads, read_text
from keyquorum.model.protocols import PROTOCOLS

FORMAT = 1
EPOCH_FILE = "epoch.json"
JOURNAL = "epochs.journal"
"""File in a party's folder."""
RECORDS = "epochs"
"""Folder of a party with the records and votes of all changes. They are public, and kept: with them a party that missed the end of a change finishes it, also years later."""

POOLS, POOLS_OF = "pools", "epoch-"
"""Folder of a party with its pools, and in it what begins the names of folders with those of an epoch."""


LISTS = ("missing", "untested", "recovered")
"""Fields of an epoch that are numbers of members."""


@dataclass(frozen=True)
class Epoch:
    """In which epoch a party is. ``name``: empty in epoch 0; ``members``: digest of the committee; ``keys``: of each key that was passed on, how it is held, with at least
    ``key_id`` and ``sharing``. A key that is not listed was made in this epoch, and lies in its place. ``before``: the epoch before, to which a party goes back that hears that the change was given up.
    ``missing``: numbers of members that were absent from the change, and are not known here to be recovered since: they have no shares. ``untested``: numbers of members without which shares were recovered and tested: what they hold may not fit, and is used again only after a refresh without them.
    ``recovered``: numbers of members that had their shares in such a recovery: they may be others than before, and no older copy may come back before a refresh."""

    number: int = 0
    name: str = ""
    members: str = ""
    keys: Mapping[str, Json] = field(default_factory=dict)
    before: Epoch | None = None
    missing: tuple[int, ...] = ()
    untested: tuple[int, ...] = ()
    recovered: tuple[int, ...] = ()

    def to_json(self) -> Json:
        """As it is stored."""
        before = None if self.before is None else self.before.without_past().to_json()
        found = {"format": FORMAT, "number": self.number, "epoch": self.name, "members": self.members, "keys": dict(self.keys), "before": before}
        lists = {name: getattr(self, name) for name in LISTS}
        return {**found, **{name: list(numbers) for name, numbers in lists.items() if numbers}}

    def without_past(self) -> Epoch:
        """The same without the epoch before."""
        return replace(self, before=None)

    @staticmethod
    def of(data: Json, last: bool = False) -> Epoch:
        """From its JSON. Raises ValueError, TypeError or KeyError. ``last``: refuses an epoch before."""
        number, name = data["number"], data["epoch"]
        proper = data["format"] == FORMAT and is_count(number) and (is_hex(name, NAME_DIGITS) if number else name == "")
        proper = proper and (is_hex(data["members"], 64) if number else data["members"] == "")
        before = None if data["before"] is None else Epoch.of(data["before"], last=True)
        lists = {name: tuple(data.get(name, ())) for name in LISTS}
        proper = proper and all(all(map(is_count, each)) and list(each) == sorted(set(each)) for each in lists.values())
        if not proper or (last and before is not None) or (before is not None and before.number != number - 1):
            raise ValueError("its numbers or names are not proper")
        return Epoch(number, name, data["members"], checked_keys(data["keys"]), before, **lists)


def checked_keys(data: Json) -> Json:
    """Keys of an epoch, by name. Raises ValueError, TypeError or KeyError."""
    for name, held in data.items():
        try:
            check_name(name, "key name")
        except CommitteeError as error:
            raise ValueError(str(error)) from None
        if not is_hex(held["key_id"], 32) or not is_hex(held["sharing"], NAME_DIGITS):
            raise ValueError(f"key {name} has no proper id or sharing")
    return dict(data)


STANDBYS = "standbys"
"""Folder of a party with the records of changes in which its committee kept its keys."""


def read_epoch(party_folder: Path) -> Epoch:
    """The epoch of a party. Raises EpochError for a damaged file, and for one that is missing after a commit: the shares of epoch 0 are old then."""
    path = party_folder / EPOCH_FILE
    if path.exists():
        return parse_epoch(path)
    if _has_committed(party_folder):
        raise EpochError(f"{path}: missing, and {JOURNAL} beside it says that this party committed: keyquorum epoch commit makes it again")
    return Epoch()


def _has_committed(party_folder: Path) -> bool:
    """Whether a party's journal says that it committed, and did not go back. Checksums need the party's identity, so the reader that continues a change verifies them."""
    path = party_folder / JOURNAL
    committed = set[str]()
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            entry = json_loads(line.partition(b" ")[2])
            if entry["own"] and entry["said"]["kind"] == Stage.COMMITTED:
                committed.add(entry["epoch"])
            elif entry["own"] and entry["said"]["kind"] == Stage.GONE_BACK:
                committed.discard(entry["epoch"])
        except (ValueError, KeyError, TypeError):
            continue  # a torn end, or damage that the other reader reports
    return bool(committed)


def lost_journal(party_folder: Path, known: str = f"or older than {EPOCH_FILE} beside it") -> EpochError:
    """The error of a party whose journal is missing. ``known``: what shows this."""
    return EpochError(f"{party_folder / JOURNAL}: missing, {known}, so what this party signed is not known: restore the newest backup of this file")


def require_journal(party_folder: Path) -> None:
    """Refuses a party that has records of changes and no journal: it may have voted, or its keys may be with another committee. Raises EpochError."""
    if not (party_folder / JOURNAL).exists() and any((party_folder / RECORDS).glob("*.json")):
        raise lost_journal(party_folder, f"and {RECORDS} beside it has records of changes")


def require_no_departure(party_folder: Path) -> None:
    """Refuses a party whose keys are being passed on to another committee, and that does not know how this ended: the others may use and count them already. Raises EpochError, also for a lost journal."""
    require_journal(party_folder)
    path = party_folder / JOURNAL
    under_way = ""
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            entry = json_loads(line.partition(b" ")[2])
            if entry["own"] and entry["said"]["kind"] == Stage.WAITING:
                under_way = entry["epoch"]
            elif entry["own"] and entry["epoch"] == under_way and entry["said"]["kind"] in DECIDED:
                under_way = ""
        except (ValueError, KeyError, TypeError):
            continue  # as above
    record = Record.load(party_folder, under_way) if under_way else None
    if record is not None and record.old["digest"] != record.new["digest"]:
        raise EpochError(
            f"{party_folder}: the keys are being passed on to {record.new['name']}, and the end of this is not known here: keyquorum epoch commit with the statements of that committee"
        )


def parse_epoch(path: Path) -> Epoch:
    """The content of an ``epoch.json``. Raises EpochError."""
    try:
        return Epoch.of(json_loads(read_text(path)))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise EpochError(f"{path}: damaged ({error}): keyquorum epoch commit makes it again from the record and the journal") from None


def write_epoch(party_folder: Path, epoch: Epoch) -> None:
    """Takes a party to an epoch, with one rename. Epoch 0 has no file, but for notes of members."""
    path = party_folder / EPOCH_FILE
    if epoch.number or epoch.untested or epoch.recovered:
        write_atomically(path, json.dumps(epoch.to_json(), indent=1).encode() + b"\n", 0o600)
    else:
        path.unlink(missing_ok=True)
        sync_folder(party_folder)


def shares_name(sharing: str) -> str:
    """Name of the folder, in a key's, with the shares of an epoch."""
    return f"shares-{sharing}"


def pools_place(party_folder: Path, epoch: str) -> Path:
    """Where a party's pools of an epoch are, whichever one it is in: so none is moved when the epoch changes. The empty name is that of epoch 0."""
    place = party_folder / POOLS
    return place / f"{POOLS_OF}{epoch}" if epoch else place


def is_pools_place(folder: Path) -> bool:
    """Whether a folder beside pools of epoch 0 is that of another epoch, by its name, which no pool has."""
    return folder.name.startswith(POOLS_OF) and is_hex(folder.name.removeprefix(POOLS_OF), NAME_DIGITS)


def shares_folder(party_folder: Path, key: str) -> Path:
    """The folder with a party's shares of a key in its epoch: the key's own, or ``shares-E`` in it. Raises EpochError."""
    folder = party_folder / "keys" / check_name(key, "key name")
    held = read_epoch(party_folder).keys.get(key)
    return folder if held is None else folder / shares_name(held["sharing"])


def committee_json(committee: Committee) -> Json:
    """What a record says of a committee: all that its digest depends on, and the digest. Addresses are not part of it."""
    parties = [p.fingerprint for p in committee.parties]
    return {
        "name": committee.name,
        "protocol": committee.protocol,
        "threshold": committee.threshold,
        "parties": parties,
        "digest": committee.digest.hex(),
    }


def origin_text(committee: Committee) -> str:
    """A committee, for :attr:`Record.origin`."""
    return f"{committee.name}: {committee.protocol}, {committee.size} parties, threshold {committee.threshold}, {committee.capabilities.adversary}"


def origin_of(committee: Committee, party_folder: Path) -> tuple[str, ...]:
    """The committees that held the keys of a party so far, this one last. Raises EpochError."""
    here = read_epoch(party_folder)
    before = Record.load(party_folder, here.name).origin if here.number else ()
    return before or (origin_text(committee),)


def standbys(party_folder: Path) -> list[Record]:
    """Records of changes in which this party's committee passed its keys on and kept them: the new committees may hold them as well. Raises EpochError for a damaged one."""
    return [Record.parse(path.read_bytes(), str(path)) for path in sorted((party_folder / STANDBYS).glob("*.json"))]


def note_standby(party_folder: Path, record: Record) -> None:
    """Keeps the record of such a change, before a new member may vote: whether it succeeded is not this committee's matter."""
    folder = party_folder / STANDBYS
    folder.mkdir(mode=0o700, exist_ok=True)
    sync_folder(party_folder)
    write_atomically(folder / f"{record.name}.json", record.data)


def _check_committee(data: Json) -> None:
    proper = isinstance(data["name"], str) and isinstance(data["protocol"], str) and is_count(data["threshold"], 1) and is_hex(data["digest"], 64)
    parties = data["parties"]
    if not proper or not isinstance(parties, list) or not parties or not all(is_hex(p, 64) for p in parties) or len(set(parties)) < len(parties):
        raise ValueError("a committee in it is not proper")


def _check_absent(record: Record) -> None:
    """Absent members are of a committee that stays, at most as many as may be corrupt, and more than these are left, or 2t + 1 where parties may be malicious."""
    absent, there = record.absent, len(record.new["parties"])
    if not absent:
        return
    proper = all(map(is_count, absent)) and list(absent) == sorted(set(absent)) and absent[-1] < there and record.old == record.new
    t = record.new["threshold"]
    protocol = PROTOCOLS.get(record.new["protocol"])
    least = 2 * t + 1 if protocol is None or protocol.adversary == "malicious" else t + 1
    if not proper or len(absent) > t or there - len(absent) < least:
        raise ValueError("its absent members are not proper")


@dataclass(frozen=True)
class Record:
    """The public record of a change, the same bytes at all participants.

    ``previous``: name of the epoch before, empty for epoch 0; ``old``, ``new``: the committees (:func:`committee_json`); ``keys``: of each key how it is held afterwards; ``counts``: from where the new
    members go on, by ``KEY/WHAT``; ``dealers``: members of the old committee that passed shares on; ``checks``: what was verified; ``origin``: every committee so far (:func:`origin_text`);
    ``absent``: numbers of members of a refreshed committee that took no part, and have no shares afterwards; ``kept``: the old committee keeps its shares and goes on in its epoch, and takes no part in the change: the new
    one is a standby, and the keys fall if either does. The record has these two entries only where they say something."""

    name: str
    number: int
    previous: str
    old: Json
    new: Json
    keys: Mapping[str, Json]
    counts: Mapping[str, int] = field(default_factory=dict)
    dealers: tuple[int, ...] = ()
    checks: tuple[str, ...] = ()
    origin: tuple[str, ...] = ()
    absent: tuple[int, ...] = ()
    kept: bool = False

    @property
    def roles(self) -> Roles:
        """Participants by fingerprint."""
        away = frozenset(self.new["parties"][number] for number in self.absent)
        old, new = (frozenset(side["parties"]) - away for side in (self.old, self.new))
        return Roles(frozenset() if self.kept else old, new, (self.old["threshold"], self.new["threshold"]), away)

    @property
    def voters(self) -> list[Who]:
        """The new members that vote, in their order."""
        return [who for number, who in enumerate(self.new["parties"]) if number not in self.absent]

    @property
    def data(self) -> bytes:
        """The file ``epochs/E.json``."""
        said = {
            "format": FORMAT, "epoch": self.name, "number": self.number, "previous": self.previous, "from": self.old, "to": self.new, "keys": dict(self.keys),
            "counts": dict(self.counts), "dealers": list(self.dealers), "checks": list(self.checks), "origin": list(self.origin),
            **({"absent": list(self.absent)} if self.absent else {}),
            **({"kept": True} if self.kept else {}),
        }  # fmt: skip
        return json.dumps(said, indent=1, sort_keys=True).encode() + b"\n"

    @property
    def digest(self) -> str:
        """SHA-256 of the file, 64 hexadecimal digits: what votes sign."""
        return hashlib.sha256(self.data).hexdigest()

    @staticmethod
    def path(party_folder: Path, name: str) -> Path:
        """Where a party keeps the record of a change."""
        return party_folder / RECORDS / f"{name}.json"

    @staticmethod
    def parse(data: bytes, where: str) -> Record:
        """From the bytes of a file or a peer; ``where`` begins the error. Raises EpochError, also for bytes that another build would write otherwise: votes are of the bytes."""
        try:
            said = json_loads(data)
            record = Record(
                said["epoch"], said["number"], said["previous"], said["from"], said["to"], checked_keys(said["keys"]), said["counts"],
                tuple(said["dealers"]), tuple(said["checks"]), tuple(said["origin"]), tuple(said.get("absent", ())), said.get("kept", False) is True,
            )  # fmt: skip
            proper = is_hex(record.name, NAME_DIGITS) and is_count(record.number, 1) and said["format"] == FORMAT
            proper = proper and (is_hex(record.previous, NAME_DIGITS) if record.number > 1 else record.previous == "")
            proper = (
                proper
                and all(map(is_count, [*record.dealers, *record.counts.values()]))
                and all(isinstance(t, str) for t in (*record.checks, *record.origin))
            )
            _check_committee(record.old)
            _check_committee(record.new)
            _check_absent(record)
            if not proper or record.data != data:
                raise ValueError("its entries are not proper")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise EpochError(f"{where}: not a record of an epoch, or a damaged one ({error}): copy epochs/E.json again from another party") from None
        return record

    @staticmethod
    def load(party_folder: Path, name: str) -> Record:
        """The record of a change that a party has. Raises EpochError."""
        path = Record.path(party_folder, name)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise EpochError(f"{path}: missing: copy it from another party, where it has the same bytes") from None
        record = Record.parse(data, str(path))
        if record.name != name:
            raise EpochError(f"{path}: the record of epoch {record.name}: copy that of {name} from another party")
        return record
