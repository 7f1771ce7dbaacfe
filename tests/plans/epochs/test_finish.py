"""The exchanges of statements at the end and at the beginning of a refresh, with one party that sends something else."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from keyquorum._engine import EngineError
from keyquorum.model.committee import Committee
from keyquorum.model.errors import EpochError
from keyquorum.parties.epochs import Change
from keyquorum.plans.epochs.orders import examine_epochs, status
from keyquorum.plans.epochs.refresh import finish, settle

from tests.parties.epochs.changes import committee_of, prepare, record_of


def test_a_bad_statement_of_party_0_does_not_keep_others_unheard(tmp_path: Path) -> None:
    committee = committee_of(tmp_path)
    record = record_of(committee)
    _, mine, other = (prepare(committee, party, record) for party in range(3))
    said: list[bytes | None] = [b"{}", None, other.show()]
    with pytest.raises(EpochError, match=r"party 0: not statements .* keyquorum epoch commit at all parties"):
        finish(_context(committee, 1, said), mine)
    assert mine.missing() == [committee.parties[0].fingerprint]


def test_a_party_that_is_silent_does_not_keep_others_unheard(tmp_path: Path) -> None:
    committee = committee_of(tmp_path)
    record = record_of(committee)
    first, mine, other = (prepare(committee, party, record) for party in range(3))
    other.hear(first.show())
    said: list[bytes | None] = [None, None, other.show()]
    with pytest.raises(EpochError, match=r"party 0 is silent; the change to epoch .* keyquorum epoch commit at all parties"):
        finish(_context(committee, 1, said), mine)
    assert mine.standing.stage == "committed"


def _context(committee: Committee, party: int, said: list[bytes | None]) -> Any:
    """A session in which others say this, or are silent."""

    def recv(frm: int, most: int) -> bytes:
        data = said[frm]
        if data is None:
            raise EngineError(f"party {frm} is silent")
        return data

    return SimpleNamespace(session=SimpleNamespace(send=lambda to, data: None, recv=recv), party=party, committee=committee)


def _settle(committee: Committee, party: int, shown: list[bytes], asked: str = "") -> list[bytes]:
    """What the party asked for, and what it showed, where another one asks for the change of this name."""
    answers, said = iter([[asked.encode()] * 3, shown]), list[bytes]()

    def all_gather(data: bytes) -> list[bytes]:
        said.append(data)
        return next(answers)

    context: Any = SimpleNamespace(session=SimpleNamespace(all_gather=all_gather), party=party, committee=committee)
    settle(context)
    return said


def test_no_further_change_begins_before_all_are_known_to_have_committed(tmp_path: Path) -> None:
    """Else a refusal that is heard later takes a party back to an epoch that others have erased. Any party can show it who committed."""
    committee = committee_of(tmp_path)
    record = record_of(committee)
    first, second, third = changes = [prepare(committee, party, record) for party in range(3)]
    votes = [change.show() for change in changes]
    for change in changes:
        for shown in votes:
            change.hear(shown)
        change.advance()

    withheld = [change.show() for change in (first, second)] + [votes[2]]
    with pytest.raises(EpochError, match="party 0: 1 of the members have not said that they committed"):
        _settle(committee, 0, withheld)
    second.hear(third.show())
    _settle(committee, 0, [first.show(), second.show(), votes[2]])
    current = Change.current(committee, 0)
    assert current is not None and not current.uncommitted()


def test_who_went_back_hears_of_the_end_in_the_next_refresh(tmp_path: Path) -> None:
    """It committed alone, and knows of one party only that it gave up: another one that committed as well may be in the new epoch."""
    committee = committee_of(tmp_path)
    record = record_of(committee)
    first, second, third = (prepare(committee, party, record) for party in range(3))
    for change in (first, second):
        third.hear(change.show())
    assert third.advance() == "committed"
    first.give_up([third.me])
    frozen = first.show()
    second.hear(frozen)
    assert second.give_up([third.me]) == "given-up"
    with pytest.raises(EpochError, match=rf"party 2 went back from epoch {record.name}, and others may come forward to it"):
        _settle(committee, 2, [frozen, second.show(), b""])
    assert status(committee, 2)["went_back"] == [record.name]
    assert any(not line.ok and "WENT BACK" in line.text for line in examine_epochs(committee, [2]))
    first.hear(second.show())
    assert first.advance() == "given-up" and _settle(committee, 0, [b""] * 3) == [b"", b""]
    assert _settle(committee, 0, [b""] * 3, record.name) == [b"", first.show() + b"\n"]
    assert _settle(committee, 2, [b"{}\n" + first.show(), second.show(), b""])[0] == record.name.encode()
    assert status(committee, 2)["went_back"] == [] and not status(committee, 2)["unerased"]
    prepare(committee, 2, record_of(committee))
