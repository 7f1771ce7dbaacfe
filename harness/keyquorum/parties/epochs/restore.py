"""The files of epochs of a party that lost its folder, from what the other members show: records, signed statements, and its own ones among these.

Order: records and votes, then the journal in one rename, then ``epoch.json``. A crash in between leaves either no journal, and the work begins again, or a journal that says how to make
``epoch.json`` (:meth:`.Change.repair`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from keyquorum.model import journal
from keyquorum.model.checkpoints import reached
from keyquorum.model.committee import Committee, sync_folder, write_atomically
from keyquorum.model.epoch import Stage, Standing, Who, decide
from keyquorum.model.errors import EpochError
from keyquorum.model.plain import json_loads

from .change import Change
from .lines import journal_label, journal_text
from .record import JOURNAL, RECORDS, Record, read_epoch
from .statements import Statement, Statements, checked, standing_after

_ORDER = (Stage.VOTED, Stage.FROZEN, Stage.THAWED, Stage.GIVEN_UP, Stage.GONE_BACK, Stage.COMMITTED)
"""Statements that a party which is in the new epoch may have signed, in their order."""


def public_records(committee: Committee, party: int) -> list[str]:
    """The records of the change that led to a party's epoch, and of the one before it: the newest last; none in epoch 0. Raises EpochError."""
    folder = committee.party_folder(party)
    here = read_epoch(folder)
    if not here.number:
        return []
    record = Record.load(folder, here.name)
    was_here = committee.parties[party].fingerprint in record.old["parties"]
    before = [Record.load(folder, record.previous)] if record.number > 1 and was_here else []
    return [each.data.decode() for each in (*before, record)]


def restore(committee: Committee, party: int, records: Sequence[str], shown: Mapping[int, bytes]) -> Change:
    """Puts a party without an epoch into that of ``records`` (:func:`public_records` of another member). ``shown``: what members showed of the last change (:meth:`.Change.show`). Raises EpochError
    unless all members voted for it and the party would stay in it, before anything is written or signed, and for records that are not of this committee or do not follow one another."""
    folder, me = committee.party_folder(party), committee.parties[party].fingerprint
    parsed = _parsed(records)
    record = parsed[-1]
    _check_records(committee, parsed, me)
    statements = _heard(record, shown, me)
    votes = statements.votes()
    own = sorted(
        (said for said in statements if said.who == me and said.stage in _ORDER), key=lambda said: (_ORDER.index(said.stage), len(said.lost))
    )
    if votes is None:
        raise EpochError(f"not all members voted for epoch {record.name}, as far as the helpers show: keyquorum epoch commit at theirs, then again")
    standing = _decided(record, me, own, statements)
    if me in statements.of(Stage.REFUSED) or standing.stage not in (Stage.COMMITTED, Stage.ERASED):
        raise EpochError(
            f"by what the helpers show, party {party} would be {standing.stage} in the change to epoch {record.name}: keyquorum epoch commit at theirs, or name other helpers with --from"
        )
    (folder / RECORDS).mkdir(mode=0o700, exist_ok=True)
    sync_folder(folder)
    for each in parsed:
        write_atomically(Record.path(folder, each.name), each.data)
    write_atomically(folder / RECORDS / f"{record.name}.votes", votes)
    reached("recover/records")
    others = [said for said in statements if said.who != me]
    lines = [(True, {"kind": Stage.WAITING.value}), *((False, said.to_json()) for said in others), *((True, said.to_json()) for said in own)]
    texts = (journal_text(record.name, mine, said) for mine, said in lines)
    write_atomically(folder / JOURNAL, b"".join(journal.to_line(journal_label(me), text) for text in texts), 0o600)
    reached("recover/journal")
    change = Change(committee, party, record)
    change.repair()
    change.advance()
    reached("recover/epoch")
    return change


def follow(committee: Committee, party: int, records: Sequence[str], shown: Mapping[int, bytes]) -> Change:
    """Takes a party that was absent from the change to the epoch of ``records`` there, from an earlier epoch. What it began before, and does not know the end of, is over: the others are in a later epoch. May be repeated after a crash.
    An epoch of the same number is one that the party committed alone: no honest other one was in it, or it would not have made this one from the epoch before.
    ``shown``: see :func:`restore`. Raises EpochError unless all that were present voted and committed, before anything is written: then nobody goes back, and nobody needs a share of an earlier epoch."""
    folder, me = committee.party_folder(party), committee.parties[party].fingerprint
    parsed = _parsed(records)
    record = parsed[-1]
    _check_records(committee, parsed, me)
    if not was_absent(records, committee, party) or read_epoch(folder).number > record.number:
        raise EpochError(f"party {party} was not absent from the change to epoch {record.name}, or is in a later one: keyquorum epoch commit there")
    statements = _heard(record, shown, me)
    if _decided(record, me, (), statements).stage != Stage.COMMITTED:
        raise EpochError(
            f"not all members that were present have said that they committed epoch {record.name}: keyquorum epoch commit at theirs, then again"
        )
    (folder / JOURNAL).touch(mode=0o600)
    (folder / RECORDS).mkdir(mode=0o700, exist_ok=True)
    sync_folder(folder)
    for each in parsed:
        write_atomically(Record.path(folder, each.name), each.data)
    reached("recover/records")
    change = Change.followed(committee, party, record, [said.to_json() for said in statements])
    reached("recover/epoch")
    return change


def was_absent(records: Sequence[str], committee: Committee, party: int) -> bool:
    """Whether a party was absent from the change of the last of these records."""
    return bool(records) and committee.parties[party].fingerprint in _parsed(records[-1:])[0].roles.absent


def _parsed(records: Sequence[str]) -> list[Record]:
    return [Record.parse(text.encode(), "the record that the helpers sent") for text in records]


def _check_records(committee: Committee, parsed: Sequence[Record], me: Who) -> None:
    record = parsed[-1]
    if record.new["digest"] != committee.digest.hex() or me not in record.new["parties"]:
        raise EpochError(f"the record of epoch {record.name} is of another committee: take the committee file of that epoch")
    if [before.name for before in parsed[:-1]] != ([record.previous] if record.previous and me in record.old["parties"] else []):
        raise EpochError(f"the records that the helpers sent do not lead to epoch {record.name}: run the same version everywhere")


def _decided(record: Record, me: Who, own: Sequence[Statement], statements: Statements) -> Standing:
    """What the party would be, with its own statements and what follows from all."""
    standing = reduce(standing_after, own, Standing())
    while (after := decide(record.roles, me, standing, statements.seen)) != standing:
        standing = after
    return standing


def _heard(record: Record, shown: Mapping[int, bytes], me: Who) -> Statements:
    """What the helpers showed. A statement that another participant may not sign, or that contradicts an earlier one of its own, counts for nothing, as at every party: it cannot keep others from being recovered."""
    found = Statements(record)
    for helper, data in shown.items():
        where = f"party {helper}, which may be left out with --from"
        try:
            said = json_loads(data)
            name, statements = said["epoch"], list(said["statements"])
        except (ValueError, KeyError, TypeError):
            raise EpochError(f"{where}: it showed no statements of a change of an epoch: run the same version everywhere") from None
        if name != record.name:
            raise EpochError(f"{where}: it showed statements of epoch {str(name)[:32]!r}, and the record is of {record.name}")
        for each in statements:
            statement = checked(record, each, where)
            try:
                found.add(statement)
            except EpochError as error:
                if statement.who == me:
                    raise EpochError(f"{where}: {error}") from None
    return found
