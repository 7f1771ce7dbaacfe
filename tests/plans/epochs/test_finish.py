"""The exchange of statements at the end of a refresh, with one party that sends something else."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from keyquorum.model.errors import EpochError
from keyquorum.plans.epochs.refresh import finish

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
