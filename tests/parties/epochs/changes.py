"""Changes of an epoch among parties of a test, with files in the place of shares."""

from __future__ import annotations

import atexit
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from keyquorum.model import checkpoints
from keyquorum.model.committee import Committee
from keyquorum.model.epoch import NAME_DIGITS
from keyquorum.parties.epochs import Change, Record, committee_json, read_epoch, shares_folder
from keyquorum.parties.setup import init

OLD, NEW = b"old share " * 40, b"new share " * 40


class Killed(Exception):
    """A party died at a checkpoint."""


@contextmanager
def killed_at(place: int, passed: list[str]) -> Iterator[None]:
    """Stops at the checkpoint of this number; ``passed``: names of all that were reached."""

    def hook(name: str) -> None:
        passed.append(name)
        if len(passed) == place + 1:
            raise Killed(name)

    checkpoints.hook = hook
    try:
        yield
    finally:
        checkpoints.hook = None


@cache
def _identities() -> Path:
    """A committee that all tests of this process copy."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    return init(folder / "committee", 3, "rep-field").folder


def committee_of(folder: Path) -> Committee:
    """A committee with a key ``k``, whose share files are stand-ins."""
    shutil.copytree(_identities(), folder / "committee")
    committee = Committee.load(folder / "committee")
    for party in range(3):
        key = committee.key_folder(party, "k")
        key.mkdir(parents=True)
        (key / "key.json").write_text("{}")
        for name in ("share-0.kqs", "share-1.kqs", "lisss-0-1.kqs"):
            (key / name).write_bytes(OLD)
    return committee


def record_of(committee: Committee) -> Record:
    """The next change of this committee, to itself."""
    here, name, said = read_epoch(committee.party_folder(0)), secrets.token_hex(NAME_DIGITS // 2), committee_json(committee)
    return Record(name, here.number + 1, here.name, said, said, {"k": {"key_id": "ab" * 16, "sharing": name}})


def prepare(committee: Committee, party: int, record: Record) -> Change:
    """Proposes, stores shares and votes."""
    change = Change.propose(committee, party, record)
    if change.standing.stage == "proposed":
        (change.folder("k") / "share-0.kqs").write_bytes(NEW)
        change.vote()
    return change


def talk(changes: Sequence[Change]) -> list[str]:
    """Everybody hears everybody, until nothing new follows; the stages."""
    for _ in range(4):
        for change in changes:
            for other in changes:
                change.hear(other.show())
            change.advance()
    return [change.standing.stage.value for change in changes]


def bytes_below(folder: Path, found: bytes) -> int:
    """Files below a folder that have these bytes."""
    return sum(found[:30] in path.read_bytes() for path in folder.rglob("*") if path.is_file())


def is_usable(committee: Committee, party: int) -> bool:
    """Whether the share that the party's epoch names is whole."""
    number = read_epoch(committee.party_folder(party)).number
    return (shares_folder(committee.party_folder(party), "k") / "share-0.kqs").read_bytes() == (NEW if number else OLD)
