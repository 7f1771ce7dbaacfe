"""What members of a pool tell each other: something else is an error of the protocol, whose text has nothing of the message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from keyquorum._engine import ProtocolError
from keyquorum.plans.pools import CANNOT, TROUBLE, Pool

from .test_pools import committee, with_pool

REPORT = b'{"purpose": "fill 4 by 4"}'


class Lying:
    """A session whose party sends other bytes: with ``all_gather``, or in place of its report."""

    def __init__(self, session: Any, said: bytes | None = None, report: bytes | None = None) -> None:
        self._session, self._said, self._report = session, said, report

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def all_gather(self, data: bytes) -> Any:
        return self._session.all_gather(data if self._said is None else self._said)

    def send(self, party: int, data: bytes) -> None:
        self._session.send(party, data if self._report is None else self._report)


@pytest.mark.parametrize("said", [REPORT, b"\x00", CANNOT[:-1], CANNOT + b"x" * TROUBLE], ids=["a report", "a byte", "half a reason", "too long"])
def test_a_message_of_another_step_is_no_reason_of_a_full_disk(tmp_path: Path, said: bytes) -> None:
    def job(pool: Pool) -> bool:
        if pool.group.me == 1:
            pool.session = Lying(pool.session, said)
        with pytest.raises(ProtocolError, match=r"^party 1 did not say whether it can store items: the parties are out of step"):
            pool.fill(4, 4)
        return pool.left == 0

    assert with_pool(committee(tmp_path, "rep-field", 3), job) == [True] * 3


def test_a_party_without_a_report_is_named(tmp_path: Path) -> None:
    def job(pool: Pool) -> bool:
        if pool.group.me == 1:
            pool.session = Lying(pool.session, b"", b"no report")
            pool.agree("look")  # it believes what the others say
            return True
        with pytest.raises(ProtocolError, match=r"^party 1 sent no report of its pool"):
            pool.agree("look")
        return True

    assert with_pool(committee(tmp_path, "rep-field", 3), job) == [True] * 3
