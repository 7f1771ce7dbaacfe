"""A served party with MACs stops long before challenges that are cut off burn its key, and names who was lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from keyquorum import _engine, api
from keyquorum.inspection import examine
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CommitteeError, ParameterError
from keyquorum.parties import mac_key
from keyquorum.serve import daemon, sessions
from keyquorum.serve.client import make_receiver
from keyquorum.serve.kinds import Service
from keyquorum.toprf import set_policy, toprf_keygen

LOST = _engine.NetworkError("opening (round 7): party 0 closed the connection")
LIMIT = 3


@pytest.fixture(scope="module")
def committee(tmp_path_factory: pytest.TempPathFactory) -> Committee:
    made = api.init(tmp_path_factory.mktemp("cut") / "committee", 2, "spdz2k")
    toprf_keygen(made, "prf")
    make_receiver(made, "web")
    set_policy(made, 1, "prf", 1000)
    return made


class Cut:
    """A session that ends with this error, in the middle of a challenge or not, as the engine notes it beside the MAC key."""

    def __init__(self, path: Path, error: Exception, challenge: bool) -> None:
        self._path, self._error, self._challenge = path, error, challenge
        self.party, self.parties = 1, 2

    def set_mac_key(self, key: bytes, path: str | None = None) -> None:
        raise self._error

    def abort(self, reason: str) -> None:
        if self._challenge:
            note(self._path, mac_key.state(self._path).cut_offs + 1)

    def close(self) -> None: ...


def note(path: Path, cut_offs: int, state: str = "o") -> None:
    path.with_name("mac.key.session").write_text(f"{state}{1:>10}{cut_offs:>10}\n")


class Alone:
    """Party 1, whose sessions are given: whether each cuts a challenge off. After the last one nobody is there, and the party is stopped."""

    def __init__(self, committee: Committee, monkeypatch: pytest.MonkeyPatch) -> None:
        self.committee, self.key = committee, committee.mac_key_path(1)
        self.record = committee.party_folder(1) / sessions.NAME
        self.tries = list[bool]()
        monkeypatch.setattr(daemon, "open_session", self.open)
        monkeypatch.setattr(sessions, "MOST_CUT_OFFS", LIMIT)
        note(self.key, 0)
        self.record.unlink(missing_ok=True)

    def open(self, *arguments: Any) -> Any:
        if not self.tries:
            raise ParameterError("a test: no more sessions")
        return Cut(self.key, LOST, self.tries.pop(0))

    def run(self, *tries: bool) -> None:
        """Raises ParameterError where it goes on after all of them."""
        self.tries[:] = tries
        daemon.Daemon(self.committee, 1, Service("prf")).run()

    @property
    def count(self) -> int:
        return sessions.read_sessions(self.record)[0]


@pytest.fixture
def alone(committee: Committee, monkeypatch: pytest.MonkeyPatch) -> Iterator[Alone]:
    made = Alone(committee, monkeypatch)
    yield made
    made.record.unlink(missing_ok=True)


def test_cut_offs_blocked_by_a_party_that_stops(alone: Alone) -> None:
    """Over starts of the party, at the limit, with the peer and the cure; and the MAC key is whole. Sessions that cut no challenge off do not count."""
    with pytest.raises(ParameterError):
        alone.run(True, False, False, True)
    assert alone.count == 2
    with pytest.raises(CommitteeError) as stopped:
        alone.run(False, True, True)
    assert alone.tries == [True] and alone.count == LIMIT
    with pytest.raises(CommitteeError) as refused:
        daemon.Daemon(alone.committee, 1, Service("prf"))
    for error in (stopped, refused):
        text = str(error.value)
        assert f"{alone.record}: 3 challenges of MAC checks were cut off, the limit is 3, and at 4,096 in all (3 now) the MAC key burns" in text
        assert "The last one: opening (round 7): party 0 closed the connection: find out who, and remove the file to serve again" in text
        assert "\n" not in text
    assert not mac_key.state(alone.key).burned
    assert any("challenges of MAC checks that were cut off: 3" in line for line in examine(alone.record).lines)
    alone.record.unlink()
    with pytest.raises(ParameterError):
        alone.run(True, True)
    assert alone.count == 2 and mac_key.state(alone.key).cut_offs == 5


def test_cut_offs_ablated_without_the_limit(alone: Alone, monkeypatch: pytest.MonkeyPatch) -> None:
    """The party connects again and again, until a session of the engine burns the key."""
    monkeypatch.setattr(sessions, "MOST_CUT_OFFS", 1 << 20)
    with pytest.raises(ParameterError):
        alone.run(*[True] * (LIMIT + 2))
    assert alone.count == LIMIT + 2


def test_cut_offs_blocked_near_the_limit_of_the_key(alone: Alone) -> None:
    """Whoever removes the record again and again does not serve until the key burns."""
    note(alone.key, 4096 - 256)
    for _ in range(2):
        with pytest.raises(CommitteeError, match="3,840 challenges of MAC checks were cut off in all, and at 4,096 the MAC key burns"):
            alone.run(True)
        alone.record.unlink(missing_ok=True)
    assert alone.tries == [True]
    note(alone.key, 4096 - 257)
    with pytest.raises(ParameterError):
        alone.run(False)


def test_cut_offs_of_a_party_that_died(alone: Alone) -> None:
    """The engine left the challenge open on the disk, and the next session counts it. Those of other jobs between two starts count as well."""
    with pytest.raises(ParameterError):
        alone.run(False)
    note(alone.key, 1, "c")
    with pytest.raises(ParameterError):
        alone.run()
    assert alone.count == 2
    note(alone.key, 3)
    with pytest.raises(CommitteeError, match="The last one: this party ended in the middle of it: find out who"):
        alone.run()


def test_a_damaged_record_is_refused(alone: Alone) -> None:
    for text in ("{", '{"broken": 0, "failed": ""}', '{"broken": 0, "failed": "", "cut_offs": -1, "last": ""}'):
        alone.record.write_text(text)
        with pytest.raises(CommitteeError, match="damaged") as refused:
            daemon.Daemon(alone.committee, 1, Service("prf"))
        assert str(alone.record) in str(refused.value) and "remove the file" in str(refused.value)
