"""A change of an epoch on the disks of parties: its steps, a crash at every checkpoint, giving up, and going back."""

from __future__ import annotations

from pathlib import Path

import pytest
from keyquorum import api
from keyquorum.model.committee import Committee
from keyquorum.model.errors import EpochError
from keyquorum.parties.epochs import Change, Record, read_epoch

from .changes import NEW, OLD, Killed, bytes_below, committee_of, is_usable, killed_at, prepare, record_of, talk


@pytest.fixture
def committee(tmp_path: Path) -> Committee:
    return committee_of(tmp_path)


def test_three_changes_leave_one_sharing(committee: Committee) -> None:
    for number in (1, 2, 3):
        record = record_of(committee)
        changes = [prepare(committee, party, record) for party in range(3)]
        assert talk(changes) == ["committed"] * 3
        assert all(is_usable(committee, party) for party in range(3))
        old = 3 * len(OLD) if number == 1 else len(NEW)
        assert [change.erase() for change in changes] == [old] * 3
        assert [change.standing.stage for change in changes] == ["erased"] * 3
        epoch = read_epoch(committee.party_folder(2))
        assert (epoch.number, epoch.name, epoch.members) == (number, record.name, committee.digest.hex())
    assert bytes_below(committee.folder, OLD) == 0 and bytes_below(committee.folder, NEW) == 3
    assert not [p for p in committee.folder.rglob("shares-*") if not any(p.iterdir())]


def test_nobody_commits_or_erases_before_all(committee: Committee) -> None:
    record = record_of(committee)
    changes = [prepare(committee, party, record) for party in (0, 1)]
    assert talk(changes) == ["voted", "voted"] and read_epoch(committee.party_folder(0)).number == 0
    with pytest.raises(EpochError, match="voted, not committed"):
        changes[0].erase()
    changes.append(prepare(committee, 2, record))
    changes[0].hear(changes[1].show())
    changes[0].hear(changes[2].show())
    assert changes[0].advance() == "committed"
    with pytest.raises(EpochError, match="not all new members have committed"):
        changes[0].erase()
    assert bytes_below(committee.party_folder(0), OLD) == 3


def test_a_refusal_ends_the_change_everywhere(committee: Committee) -> None:
    record = record_of(committee)
    changes = [prepare(committee, party, record) for party in (0, 1)]
    changes.append(Change.propose(committee, 2, record))
    (changes[2].folder("k") / "share-0.kqs").write_bytes(NEW)
    changes[2].refuse()
    assert talk(changes) == ["given-up", "given-up", "refused"]
    assert bytes_below(committee.folder, NEW) == 0 and bytes_below(committee.folder, OLD) == 9
    with pytest.raises(EpochError, match="begin again with a new name"):
        Change.propose(committee, 2, record)
    assert talk([prepare(committee, party, again) for party, again in zip(range(3), [record_of(committee)] * 3, strict=True)]) == ["committed"] * 3


def test_no_further_change_after_a_vote_that_others_need(committee: Committee) -> None:
    """Only the statements of the last change leave a host. A change before whose vote the process died is refused, and others can be told."""
    record = record_of(committee)
    voted = prepare(committee, 0, record)
    Change.propose(committee, 1, record)
    with pytest.raises(EpochError, match=r"party 0: the change to epoch .* is unfinished: keyquorum epoch commit"):
        Change.refuse_unvoted(committee, 0)
    assert voted.standing.stage == "voted"
    Change.refuse_unvoted(committee, 1)
    Change.refuse_unvoted(committee, 2)
    refused = Change(committee, 1, record)
    voted.hear(refused.show())
    assert refused.standing.stage == "refused" and voted.advance() == "given-up"


def test_a_lost_party_is_given_up(committee: Committee) -> None:
    record = record_of(committee)
    a, b, lost = (prepare(committee, party, record) for party in range(3))
    named = [lost.me]
    assert a.give_up(named) == "frozen"
    with pytest.raises(EpochError, match="already"):
        a.give_up(named)
    assert talk([a, b]) == ["frozen", "voted"]
    b.give_up(named)
    assert talk([a, b]) == ["given-up", "given-up"] and bytes_below(committee.folder, NEW) == 1
    assert talk([lost, b]) == ["given-up", "given-up"] and bytes_below(committee.folder, NEW) == 0


def test_a_party_that_is_lost_later_is_named_as_well(tmp_path: Path) -> None:
    """Of five with t = 2. Until all that are left have named both, nobody gives up."""
    committee = api.init(tmp_path / "five", 5, "shamir")
    for party in range(5):
        committee.key_folder(party, "k").mkdir(parents=True)
    record = record_of(committee)
    a, b, c, second, first = (prepare(committee, party, record) for party in range(5))
    for change in (a, b, second):
        change.give_up([first.me])
    assert talk([a, b]) == ["frozen", "frozen"]
    with pytest.raises(EpochError, match="named lost parties already: name all of these again"):
        a.give_up([second.me])
    both = [first.me, second.me]
    for change in (a, c):
        change.give_up(both)
    assert talk([a, b, c]) == ["frozen"] * 3
    again = Change.unfinished(committee, 0)
    assert again is not None and again.standing.lost == frozenset(both) and not again.contradictions()
    with pytest.raises(EpochError, match="3 lost participants are more than a committee tolerates"):
        again.give_up([*both, c.me])
    b.give_up(both)
    assert talk([again, b, c]) == ["given-up"] * 3 and talk([second, first, again]) == ["given-up"] * 3


def test_who_committed_and_was_declared_lost_goes_back(committee: Committee) -> None:
    record = record_of(committee)
    a, b, lost = (prepare(committee, party, record) for party in range(3))
    lost.hear(a.show())
    lost.hear(b.show())
    assert lost.advance() == "committed" and read_epoch(lost.party_folder).number == 1
    a.give_up([lost.me])
    b.give_up([lost.me])
    assert talk([a, b]) == ["given-up"] * 2
    assert talk([lost, a]) == ["gone-back", "given-up"] and read_epoch(lost.party_folder).number == 0
    assert all(is_usable(committee, party) for party in range(3))
    assert [bytes_below(change.party_folder, NEW) for change in (a, b, lost)] == [0, 0, 1]  # it had committed, so it keeps them
    with pytest.raises(EpochError, match="gone-back, not committed"):
        lost.erase()
    record = record_of(committee)
    assert talk([prepare(committee, party, record) for party in range(3)]) == ["committed"] * 3
    again = Change.last(committee, 2)
    assert again is not None and again.erase() > 0 and bytes_below(lost.party_folder, NEW) == 1  # of the change after it


def test_a_frozen_party_commits_when_all_others_are_heard(committee: Committee) -> None:
    record = record_of(committee)
    a, b, back = (prepare(committee, party, record) for party in range(3))
    a.give_up([back.me])
    with pytest.raises(EpochError, match="nobody needs to give up"):
        b.hear(back.show())
        b.give_up([back.me])
    assert talk([a, b, back]) == ["committed"] * 3


def test_a_change_must_follow_on_the_epoch_of_the_party(committee: Committee) -> None:
    record = record_of(committee)
    changes = [prepare(committee, party, record) for party in (0, 1)]
    with pytest.raises(EpochError, match="is unfinished: keyquorum epoch commit"):
        Change.propose(committee, 0, record_of(committee))
    changes.append(prepare(committee, 2, record))
    talk(changes)
    (committee.party_folder(1) / "epoch.json").unlink()  # a restored backup
    (committee.party_folder(1) / "epochs.journal").unlink()
    with pytest.raises(EpochError, match=r"party 1 is in epoch 0 .* follows epoch 1"):
        Change.propose(committee, 1, record_of(committee))


def test_a_vote_needs_the_shares(committee: Committee) -> None:
    change = Change.propose(committee, 0, record_of(committee))
    with pytest.raises(EpochError, match="no shares of k"):
        change.vote()


def _whole_change(committee: Committee, record: Record) -> None:
    """All steps of party 0, as its process does them after each start; the others are there."""
    others = [Change.propose(committee, party, record) for party in (1, 2)]
    mine = prepare(committee, 0, record)
    for change in others:
        mine.hear(change.show())
    mine.advance()
    for change in others:
        change.hear(mine.show())
        change.advance()
        mine.hear(change.show())
    mine.erase()


def test_a_crash_at_any_checkpoint_is_repaired(tmp_path: Path) -> None:
    """The party dies at each checkpoint in turn, opens its files again, and ends the change; a usable share is there all the time."""
    place, names = 0, set[str]()
    while True:
        folder = tmp_path / str(place)
        folder.mkdir()
        committee = committee_of(folder)
        record, passed = record_of(committee), list[str]()
        for party in (1, 2):
            prepare(committee, party, record)
        try:
            with killed_at(place, passed):
                _whole_change(committee, record)
        except Killed:
            names.add(passed[-1])
            assert is_usable(committee, 0)
            again = Change.unfinished(committee, 0)
            if again is None or again.standing.stage != "erased":
                _finish(committee, record)
        else:
            break
        assert is_usable(committee, 0) and read_epoch(committee.party_folder(0)).number == 1
        assert bytes_below(committee.party_folder(0), OLD) == 0 and bytes_below(committee.party_folder(0), NEW) == 1
        place += 1
    assert {"epoch/recorded", "epoch/stored", "epoch/voted/half", "epoch/voted/durable", "epoch/heard/half", "epoch/votes", "epoch/switched"} <= names
    assert {"epoch/committed/half", "epoch/committed/durable", "erase/overwritten", "erase/unlinked", "epoch/erased/half"} <= names and place > 15


def _finish(committee: Committee, record: Record) -> None:
    mine = Change.unfinished(committee, 0)
    if mine is None:
        mine = Change.current(committee, 0) or prepare(committee, 0, record)
    if mine.standing.stage == "proposed":
        mine = prepare(committee, 0, record)
    others = [change for party in (1, 2) if (change := Change.last(committee, party)) is not None]
    assert set(talk([mine, *others])) <= {"committed", "erased"}
    mine.erase()


@pytest.mark.parametrize("end", ["refuse", "give up", "back"])
def test_a_crash_while_the_new_shares_are_dropped_is_repaired(tmp_path: Path, end: str) -> None:
    place = 0
    while True:
        folder = tmp_path / str(place)
        folder.mkdir()
        committee = committee_of(folder)
        record, passed = record_of(committee), list[str]()
        changes = [Change.propose(committee, 0, record), *(prepare(committee, party, record) for party in (1, 2))]
        (changes[0].folder("k") / "share-0.kqs").write_bytes(NEW)
        _before_the_end(changes, end)
        try:
            with killed_at(place, passed):
                _ending(changes, end)
        except Killed:
            again = Change.unfinished(committee, 0) or Change.last(committee, 0)
            assert again is not None
            if again.standing.stage == "proposed":
                again.refuse()
            elif again.standing.stage not in ("refused", "given-up", "gone-back"):
                _ending([again, *changes[1:]], end)
        else:
            break
        assert read_epoch(committee.party_folder(0)).number == 0 and is_usable(committee, 0)
        assert bytes_below(committee.party_folder(0), NEW) == (end == "back") and bytes_below(committee.party_folder(0), OLD) == 3
        place += 1
    assert place >= (3 if end == "back" else 4)


def _before_the_end(changes: list[Change], end: str) -> None:
    mine, b, c = changes
    if end == "refuse":
        return
    mine.vote()
    if end == "back":
        mine.hear(b.show())
        mine.hear(c.show())
        mine.advance()
        b.give_up([mine.me])
        c.give_up([mine.me])
        talk([b, c])
    else:
        b.give_up([c.me])


def _ending(changes: list[Change], end: str) -> None:
    mine, b, _ = changes
    if end == "refuse":
        mine.refuse()
        return
    if end == "give up" and mine.standing.stage == "voted":
        mine.give_up([changes[2].me])
    mine.hear(b.show())
    mine.advance()


def test_a_full_disk_is_an_error_and_the_line_is_cut_off(committee: Committee, monkeypatch: pytest.MonkeyPatch) -> None:
    record = record_of(committee)
    change = Change.propose(committee, 0, record)
    (change.folder("k") / "share-0.kqs").write_bytes(NEW)
    before = (change.party_folder / "epochs.journal").read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full)
        with pytest.raises(OSError, match="No space"):
            change.vote()
    assert (change.party_folder / "epochs.journal").read_bytes() == before
    again = Change.unfinished(committee, 0)
    assert again is not None and again.standing.stage == "proposed"
    again.vote()
