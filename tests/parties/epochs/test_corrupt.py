"""What one corrupt member says, and files that are lost: honest parties keep shares that others need, and find each other again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from keyquorum import api
from keyquorum.model.committee import Committee
from keyquorum.model.epoch import Stage
from keyquorum.model.errors import EpochError
from keyquorum.parties.epochs import Change, read_epoch
from keyquorum.parties.epochs.statements import signed

from .changes import NEW, Killed, bytes_below, committee_of, is_usable, killed_at, prepare, record_of, talk


@pytest.fixture
def committee(tmp_path: Path) -> Committee:
    return committee_of(tmp_path)


def _voted(committee: Committee) -> list[Change]:
    record = record_of(committee)
    return [prepare(committee, party, record) for party in range(3)]


def _lie(committee: Committee, change: Change, stage: Stage, lost: tuple[int, ...] = (), party: int = 2) -> bytes:
    """A statement of a corrupt party."""
    named = [committee.parties[i].fingerprint for i in lost]
    said = signed(change.record, committee.identity_path(party), stage, named)
    return json.dumps({"epoch": change.record.name, "statements": [said.to_json()]}).encode()


@pytest.mark.parametrize("lost", [(), (2,), (0, 1), (0, 1, 2)])
def test_one_member_cannot_freeze_for_all(committee: Committee, lost: tuple[int, ...]) -> None:
    change = _voted(committee)[0]
    with pytest.raises(EpochError, match="as lost, itself or too many"):
        change.hear(_lie(committee, change, Stage.FROZEN, lost))
    assert change.advance() == "voted"


def test_who_went_back_on_a_lie_comes_forward_when_all_committed(committee: Committee) -> None:
    a, b, c = _voted(committee)
    for change in (a, b):
        change.hear(c.show())
    a.hear(b.show())
    b.hear(a.show())
    assert (a.advance(), b.advance()) == ("committed", "committed")
    a.hear(b.show())
    a.hear(_lie(committee, a, Stage.COMMITTED))
    a.erase()
    with pytest.raises(EpochError, match="signed both"):
        b.hear(_lie(committee, b, Stage.REFUSED))
    assert b.advance() == "gone-back" and bytes_below(b.party_folder, NEW) == 1 and read_epoch(b.party_folder).number == 0
    b.hear(a.show())
    assert b.advance() == "committed" and is_usable(committee, 1) and b.erase() > 0


def test_a_liar_is_kept_as_proof_and_does_not_block_honest_parties(committee: Committee) -> None:
    a, b, c = _voted(committee)
    a.hear(b.show())
    a.hear(c.show())
    assert a.advance() == "committed"
    with pytest.raises(EpochError, match="signed both"):
        b.hear(c.show())
        b.hear(_lie(committee, b, Stage.REFUSED))
    assert b.advance() == "given-up"
    with pytest.raises(EpochError, match="signed both"):
        a.hear(b.show())
    assert a.advance() == "gone-back" and a.contradictions() and read_epoch(a.party_folder).number == 0
    a.hear(b.show())
    again = Change.last(committee, 0)
    assert again is not None and again.standing.stage == "gone-back" and bytes_below(a.party_folder, NEW) == 1
    assert again.settled and [prepare(committee, party, record_of(committee)).standing.stage for party in (0, 1)] == ["voted", "voted"]


def test_who_went_back_joins_no_other_change_before_the_end_is_known(committee: Committee) -> None:
    """Party 2 refuses after its vote, and may still commit. When it shows this to one party, the other one must be able to follow."""
    a, b, c = _voted(committee)
    shown = [change.show() for change in (a, b, c)]
    for change in (a, b):
        for data in shown:
            change.hear(data)
        assert change.advance() == "committed"
    for change in (a, b):
        with pytest.raises(EpochError, match="signed both"):
            change.hear(_lie(committee, change, Stage.REFUSED))
        assert change.advance() == "gone-back"
    record = record_of(committee)
    for party in (0, 1):
        with pytest.raises(EpochError, match=rf"party {party} went back from epoch {a.record.name}, and others may come forward to it"):
            Change.propose(committee, party, record)
    a.hear(_lie(committee, a, Stage.COMMITTED))
    a.hear(b.show())
    assert a.advance() == "committed" and a.erase() > 0
    b.hear(a.show())
    assert b.advance() == "committed" and is_usable(committee, 1) and b.erase() > 0


def test_a_party_in_a_later_change_does_not_come_forward(committee: Committee) -> None:
    """More than t contradict themselves: the party stays where it is, and keeps the shares."""
    a, b, mine = _voted(committee)
    mine.hear(a.show())
    mine.hear(b.show())
    assert mine.advance() == "committed"
    for change in (a, b):
        change.give_up([mine.me])
    talk([a, b])
    mine.hear(a.show())
    assert mine.advance() == "gone-back" and mine.settled
    later = prepare(committee, 2, record_of(committee))
    for party in (0, 1):
        with pytest.raises(EpochError, match="signed both"):
            mine.hear(_lie(committee, mine, Stage.COMMITTED, party=party))
    assert mine.advance() == "gone-back" and later.standing.stage == "voted" and bytes_below(mine.party_folder, NEW) == 2


def test_an_erasure_does_not_hide_a_later_change(committee: Committee) -> None:
    first = _voted(committee)
    talk(first)
    second = _voted(committee)
    first[0]._write(True, {"kind": Stage.ERASED.value})  # as another process that had passed its check
    last = Change.last(committee, 0)
    assert last is not None and last.record.name == second[0].record.name
    with pytest.raises(EpochError, match="under way"):
        first[0].check_erasable()


def test_a_party_that_refused_can_show_it(committee: Committee) -> None:
    talk(_voted(committee))
    record = record_of(committee)
    Change.propose(committee, 0, record).refuse()
    waiting = [prepare(committee, party, record) for party in (1, 2)]
    api.epoch_commit(committee)
    assert [Change(committee, i + 1, change.record).standing.stage for i, change in enumerate(waiting)] == ["given-up"] * 2


@pytest.mark.parametrize("damage", ["missing", "damaged"])
def test_a_lost_epoch_file_is_made_again(committee: Committee, damage: str) -> None:
    changes = _voted(committee)
    talk(changes)
    path = committee.party_folder(0) / "epoch.json"
    before = path.read_bytes()
    path.unlink() if damage == "missing" else path.write_text("{")
    with pytest.raises(EpochError, match=f"{damage}.*keyquorum epoch commit"):
        read_epoch(committee.party_folder(0))
    api.epoch_commit(committee)
    assert path.read_bytes() == before


@pytest.mark.parametrize("lines", [0, 1, 3])
def test_a_lost_journal_costs_no_shares(committee: Committee, lines: int) -> None:
    """Its party is in the new epoch, and must not take itself for one that has not voted, or that froze."""
    changes = _voted(committee)
    changes[0].give_up([changes[2].me])
    talk(changes)
    path = committee.party_folder(0) / "epochs.journal"
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole[:lines]))
    if not lines:
        path.unlink()
    for order in (api.epoch_commit, api.epoch_erase):
        with pytest.raises(EpochError, match=r"epochs.journal: missing, or older than epoch\.json|its journal does not have it"):
            order(committee)
    assert is_usable(committee, 0)
    path.write_bytes(b"".join(whole))
    assert len(api.epoch_erase(committee)) == 3


def test_a_crash_on_the_way_back_is_repaired(committee: Committee) -> None:
    mine, b, c = _voted(committee)
    mine.hear(b.show())
    mine.hear(c.show())
    mine.advance()
    for change in (b, c):
        change.give_up([mine.me])
    talk([b, c])
    passed: list[str] = []
    mine.hear(b.show())
    with pytest.raises(Killed), killed_at(1, passed):
        mine.advance()
    assert passed[-1] == "epoch/gone-back/durable" and read_epoch(mine.party_folder).number == 1
    Change.unfinished(committee, 0)
    assert read_epoch(mine.party_folder).number == 0
