"""Three parties with MACs, of which a corrupted one tells two honest ones other requests: they stop before anything is counted or opened."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from keyquorum import _engine, api
from keyquorum.model.committee import Committee
from keyquorum.model.errors import BurnedKeyError
from keyquorum.parties import mac_key
from keyquorum.parties.context import PartyContext
from keyquorum.schemes.prf.evaluations import JOURNAL, read_journal
from keyquorum.serve.daemon import Service
from keyquorum.serve.kinds import toprf_macs
from keyquorum.serve.kinds.base import Asked
from keyquorum.serve.kinds.toprf_macs import MaskedToprfKind
from keyquorum.toprf import set_policy, toprf_keygen

from tests.long import LONG

pytestmark = [pytest.mark.timeout(300), pytest.mark.skipif(not LONG, reason="keys of three parties with MACs: KEYQUORUM_LONG=1")]
BATCH = "requests of a batch"
A, B = "a" * 64, "b" * 64
"""Receivers."""
MASKS, USE = "masks000", "use00000"
"""Ids of requests."""


class Parties:
    """All parties in this process, with one session."""

    def __init__(self, folder: Path) -> None:
        self.committee: Committee = api.init(folder / "committee", 3, "spdz2k")
        toprf_keygen(self.committee, "prf")
        for party in range(3):
            set_policy(self.committee, party, "prf", 1000, None, None)
        self.kinds = [MaskedToprfKind(self.committee, party, Service("prf")) for party in range(3)]
        self.sessions: list[Any] = _engine.local_sessions(3)
        for party, session in enumerate(self.sessions):
            mac_key.use(session, self.committee.mac_key_path(party))

    def asked(self, party: int, receiver: str, name: str, body: bytes = b"", **head: object) -> Asked:
        kind = self.kinds[party]
        return f"{receiver}/{name}", kind.read({"key": kind.key_id, "output": 16, **head}, body)

    def run(self, batches: list[list[Asked]], compares: bool = True) -> list[Any]:
        """What each party ends with. ``compares``: or the comparison of batches is left out."""

        def one(party: int) -> Any:
            session = self.sessions[party]
            context = PartyContext(session if compares else NotCompared(session), self.committee)  # type: ignore[arg-type]
            try:
                self.kinds[party]._session = context.session  # masks of the run before stay
                return self.kinds[party].run(context, None, None, batches[party])  # type: ignore[arg-type]
            except Exception as error:
                session.abort(str(error))
                return error

        with ThreadPoolExecutor(3) as pool:
            return list(pool.map(one, range(3)))

    def totals(self) -> list[int]:
        return [read_journal(self.committee.key_folder(party, "prf") / JOURNAL).total for party in range(3)]

    def close(self) -> None:
        for kind in self.kinds:
            kind.close()
        for session in self.sessions:
            with suppress(_engine.EngineError):
                session.close()


class NotCompared:
    """A session that does not compare the requests of a batch."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def compare(self, label: str, digest: bytes) -> None:
        if label != BATCH:
            self._session.compare(label, digest)


@pytest.fixture
def parties(tmp_path: Path) -> Any:
    made = Parties(tmp_path)
    yield made
    made.close()


def stopped(ends: list[Any], compares: bool) -> None:
    """All parties end with an error. With the comparison, each honest party names the other one, whatever the corrupted one says."""
    assert all(isinstance(end, _engine.EngineError) for end in ends)
    assert (f"{BATCH}: party 2 computed another value than party 1" in str(ends[1])) == compares
    assert (BATCH in str(ends[2]) and "party 1 computed another value than party 2" in str(ends[2])) == compares


@pytest.mark.parametrize("compares", [True, False])
def test_requests_for_masks(parties: Parties, compares: bool) -> None:
    """Party 1 runs the request of one receiver, and party 2 that of another one: nothing is counted. Without the comparison the purpose of the messages stops them, after each
    has counted another request."""
    ends = parties.run([[parties.asked(party, B if party == 2 else A, MASKS, masks=1)] for party in range(3)], compares)
    stopped(ends, compares)
    assert parties.totals() == [0 if compares else 1] * 3


@pytest.mark.parametrize("compares", [True, False])
def test_masked_points(parties: Parties, compares: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same of requests with masked points. Without the comparison, and without a purpose of messages, they compute with shares of two inputs: a check of MACs fails, and burns
    the key. With the comparison the key stays of use."""
    if not compares:
        monkeypatch.setattr(toprf_macs, "_purpose", lambda what, batch: bytes(32))
    made = parties.run([[parties.asked(party, receiver, MASKS, masks=1) for receiver in (A, B)] for party in range(3)])
    assert all(len(end) == 2 for end in made), made
    points = {A: bytes(16), B: bytes([1]) * 16}
    chosen = [A, A, B]
    ends = parties.run([[parties.asked(party, chosen[party], USE, points[chosen[party]], use=MASKS)] for party in range(3)], compares)
    stopped(ends, compares)
    assert any(isinstance(end, _engine.CheckError) for end in ends[1:]) == (not compares)
    for party in (1, 2):
        if compares:
            mac_key.check_party(parties.committee, party)
        else:
            with pytest.raises(BurnedKeyError):
                mac_key.check_party(parties.committee, party)
