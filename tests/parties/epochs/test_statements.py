"""Attacks on the files and statements of a change: damaged, replayed, of another record, contradicting; each is refused by an error of one line, and nothing is decided."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from keyquorum.model.committee import Committee
from keyquorum.model.epoch import Stage
from keyquorum.model.errors import EpochError
from keyquorum.parties.epochs import Change, Record, read_epoch
from keyquorum.parties.epochs.statements import read_votes, signed

from .changes import committee_of, prepare, record_of, talk

Said = dict[str, Any]


@pytest.fixture(scope="module")
def committee(tmp_path_factory: pytest.TempPathFactory) -> Committee:
    return committee_of(tmp_path_factory.mktemp("statements"))


@pytest.fixture(scope="module")
def changes(committee: Committee) -> list[Change]:
    record = record_of(committee)
    return [prepare(committee, party, record) for party in range(3)]


def _flipped(said: Said) -> Said:
    digit = said["signature"][7]
    return {**said, "signature": said["signature"][:7] + ("0" if digit != "0" else "1") + said["signature"][8:]}


ATTACKS: dict[str, tuple[Callable[[Said], object], str]] = {
    "another signature": (_flipped, "did not sign this"),
    "another kind": (lambda said: {**said, "kind": "committed"}, "did not sign this"),
    "named lost": (lambda said: {**said, "kind": "frozen", "lost": ["ab" * 32]}, "did not sign this"),
    "named lost twice": (lambda said: {**said, "kind": "frozen", "lost": ["ab" * 32] * 2}, "not a statement"),
    "named lost by a vote": (lambda said: {**said, "lost": ["ab" * 32]}, "not a statement"),
    "another party": (lambda said: {**said, "who": "ab" * 32}, "is not one of this change's"),
    "another certificate": (lambda said: {**said, "certificate": said["certificate"] + "00"}, "is not one of this change's"),
    "no kind": (lambda said: {**said, "kind": "proposed"}, "not a statement"),
    "unknown kind": (lambda said: {**said, "kind": "maybe"}, "not a statement"),
    "an entry more": (lambda said: {**said, "more": 1}, "not a statement"),
    "no signature": (lambda said: {k: v for k, v in said.items() if k != "signature"}, "not a statement"),
    "a list": (lambda said: [said], "not a statement"),
    "a number": (lambda said: {**said, "signature": 7}, "not a statement"),
    "long": (lambda said: {**said, "certificate": "00" * (1 << 14)}, "not a statement"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_changed_statement_is_refused(changes: list[Change], name: str) -> None:
    change, error = ATTACKS[name]
    data = json.loads(changes[1].show())
    data["statements"] = [change(said) for said in data["statements"]]
    with pytest.raises(EpochError, match=error) as caught:
        changes[0].hear(json.dumps(data).encode(), "a file")
    assert "\n" not in str(caught.value) and str(caught.value).startswith("a file: ")
    assert changes[0].advance() == "voted"


@pytest.mark.parametrize("data", [b"", b"{}", b"[1]", b'{"epoch": 1, "statements": 3}', b"\xff", b'{"epoch": "x", "statements": []}'])
def test_what_is_not_statements_is_refused(changes: list[Change], data: bytes) -> None:
    with pytest.raises(EpochError):
        changes[0].hear(data)


def test_a_vote_replayed_from_another_change_is_refused(tmp_path: Path) -> None:
    committee = committee_of(tmp_path)
    first = record_of(committee)
    old = [Change.propose(committee, party, first) for party in range(3)]
    votes = [signed(first, committee.identity_path(party), Stage.VOTED, ()) for party in range(3)]
    for change in old:
        change.refuse()
    second = record_of(committee)
    change = prepare(committee, 0, second)
    replayed = {"epoch": second.name, "statements": [votes[1].to_json()]}
    with pytest.raises(EpochError, match=r"did not sign this for the record .* another change"):
        change.hear(json.dumps(replayed).encode())
    assert change.missing() == sorted(p.fingerprint for p in committee.parties[1:])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((Stage.VOTED, ()), (Stage.REFUSED, ())),
        ((Stage.REFUSED, ()), (Stage.VOTED, ())),
        ((Stage.FROZEN, (0,)), (Stage.FROZEN, (2,))),
        ((Stage.FROZEN, (0,)), (Stage.COMMITTED, ())),
        ((Stage.COMMITTED, ()), (Stage.REFUSED, ())),
        ((Stage.THAWED, (0,)), (Stage.FROZEN, (2,))),
        ((Stage.GIVEN_UP, ()), (Stage.COMMITTED, ())),
        ((Stage.GONE_BACK, ()), (Stage.GIVEN_UP, ())),
    ],
)
def test_who_contradicts_itself_is_named(tmp_path: Path, first: Any, second: Any) -> None:
    committee = committee_of(tmp_path)
    change = prepare(committee, 0, record_of(committee))
    said = [
        signed(change.record, committee.identity_path(1), stage, [committee.parties[i].fingerprint for i in lost]) for stage, lost in (first, second)
    ]
    with pytest.raises(EpochError, match=f"{committee.parties[1].fingerprint[:16]} signed both"):
        change.hear(json.dumps({"epoch": change.record.name, "statements": [s.to_json() for s in said]}).encode())
    assert read_epoch(change.party_folder).number == 0


@pytest.mark.parametrize("stage", [Stage.VOTED, Stage.REFUSED])
def test_who_votes_names_nobody_as_lost(tmp_path: Path, stage: Stage) -> None:
    """Else the votes of a change have other bytes at each party."""
    committee = committee_of(tmp_path)
    change = prepare(committee, 0, record_of(committee))
    said = signed(change.record, committee.identity_path(1), stage, [committee.parties[2].fingerprint])
    with pytest.raises(EpochError, match="not a statement"):
        change.hear(json.dumps({"epoch": change.record.name, "statements": [said.to_json()]}).encode())


def test_that_somebody_gave_up_proves_nothing_alone(tmp_path: Path) -> None:
    committee = committee_of(tmp_path)
    changes = [prepare(committee, party, record) for party, record in enumerate([record_of(committee)] * 3)]
    talk(changes)
    lie = signed(changes[0].record, committee.identity_path(1), Stage.GIVEN_UP, ())
    with pytest.raises(EpochError, match="signed both"):
        changes[0].hear(json.dumps({"epoch": changes[0].record.name, "statements": [lie.to_json()]}).encode())
    assert changes[0].advance() == "committed" and read_epoch(changes[0].party_folder).number == 1


def test_a_journal_that_was_restored_is_noticed(tmp_path: Path) -> None:
    """It forgets the party's own freeze, which the others have."""
    committee = committee_of(tmp_path)
    a, b, lost = (prepare(committee, party, record) for party, record in enumerate([record_of(committee)] * 3))
    path = a.party_folder / "epochs.journal"
    backup = path.read_bytes()
    a.give_up([lost.me])
    b.hear(a.show())
    path.write_bytes(backup)
    again = Change.unfinished(committee, 0)
    assert again is not None and again.standing.stage == "voted"
    with pytest.raises(EpochError, match="this party signed frozen, and its journal does not have it"):
        again.hear(b.show())


def test_a_damaged_journal_is_refused_and_a_torn_end_is_not(tmp_path: Path) -> None:
    committee = committee_of(tmp_path)
    change = prepare(committee, 0, record_of(committee))
    path = change.party_folder / "epochs.journal"
    data = path.read_bytes()
    path.write_bytes(data + b"0123456789abcdef torn")
    again = Change.last(committee, 0)
    assert again is not None and again.standing.stage == "voted"
    again.give_up([committee.parties[2].fingerprint])
    assert path.read_bytes().startswith(data) and b"torn" not in path.read_bytes()
    for place in (3, 60, len(data) - 2):
        path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(EpochError, match=r"epochs\.journal: a line is damaged"):
            Change.last(committee, 0)


def test_votes_and_records_are_checked(tmp_path: Path) -> None:
    committee = committee_of(tmp_path)
    changes = [prepare(committee, party, record) for party, record in enumerate([record_of(committee)] * 3)]
    talk(changes)
    record, folder = changes[0].record, committee.party_folder(0) / "epochs"
    votes = (folder / f"{record.name}.votes").read_bytes()
    assert len(read_votes(record, votes, "x")) == 3 and votes == (committee.party_folder(2) / "epochs" / f"{record.name}.votes").read_bytes()
    other = Record.parse(record.data.replace(b'"number": 1', b'"number": 2').replace(b'"previous": ""', b'"previous": "' + b"ab" * 16 + b'"'), "x")
    said = json.loads(votes)
    for error, data in {
        "votes for another record": json.dumps({**said, "record": other.digest}),
        "not one vote of every new member": json.dumps({**said, "votes": said["votes"][:2]}),
        "not one vote of every": json.dumps({**said, "votes": [said["votes"][0], *said["votes"][:2]]}),
        "not votes of an epoch": "{}",
        "did not sign": json.dumps({**said, "votes": [_flipped(v) for v in said["votes"]]}),
    }.items():
        with pytest.raises(EpochError, match=error):
            read_votes(record, data.encode(), "x")
    for bad in (record.data[:-1], record.data + b" ", b"{}", record.data.replace(b'"number": 1', b'"number": 0'), b"\xff"):
        with pytest.raises(EpochError, match="not a record of an epoch"):
            Record.parse(bad, "x")
    path = committee.party_folder(0) / "epoch.json"
    for text in ("{}", "[", path.read_text().replace('"number": 1', '"number": -1'), path.read_text().replace("ab" * 16, "ab" * 15)):
        path.write_text(text)
        with pytest.raises(EpochError, match=r"epoch\.json: damaged"):
            read_epoch(committee.party_folder(0))
