"""The exchanges of statements at the end and at the beginning of a refresh, with one party that sends something else."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from keyquorum.model.errors import EpochError
from keyquorum.parties.epochs import Change
from keyquorum.plans.epochs.refresh import confirm_epoch, finish

from tests.parties.epochs.changes import committee_of, prepare, record_of


def test_a_bad_statement_of_party_0_does_not_keep_others_unheard(tmp_path: Path) -> None:
    committee = committee_of(tmp_path)
    record = record_of(committee)
    _, mine, other = (prepare(committee, party, record) for party in range(3))
    session = SimpleNamespace(all_gather=lambda data: [b"{}", data, other.show()])
    context: Any = SimpleNamespace(session=session, party=1)
    with pytest.raises(EpochError, match="party 0: not statements"):
        finish(context, mine)
    assert mine.missing() == [committee.parties[0].fingerprint]


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

    def confirm(shown: list[bytes]) -> None:
        context: Any = SimpleNamespace(session=SimpleNamespace(all_gather=lambda data: shown), party=0, committee=committee)
        confirm_epoch(context)

    withheld = [change.show() for change in (first, second)] + [votes[2]]
    with pytest.raises(EpochError, match="party 0: 1 of the members have not said that they committed"):
        confirm(withheld)
    second.hear(third.show())
    confirm([first.show(), second.show(), votes[2]])
    current = Change.current(committee, 0)
    assert current is not None and not current.uncommitted()
