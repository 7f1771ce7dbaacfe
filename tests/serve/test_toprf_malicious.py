"""A committee that verifies products evaluates for receivers: AES and the Legendre PRF, with a party that cheats in the evaluation, in its answer, or by the receiver's summands."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum._engine import CheckError
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CommitteeError, KeyQuorumError, ParameterError, PartyError
from keyquorum.parties.jobs import check_alone
from keyquorum.schemes.prf import function
from keyquorum.schemes.prf import legendre as legendre_prf
from keyquorum.schemes.prf.function import held_by, point_of
from keyquorum.schemes.prf.functions import inner_of
from keyquorum.schemes.prf.key import LEGENDRE, load_prf_key, sharing_of
from keyquorum.serve import sessions
from keyquorum.serve.client import Refused, make_receiver
from keyquorum.serve.kinds.toprf import ToprfKind

from tests.schemes import test_prf_legendre as legendre
from tests.schemes.test_prf import committee_with_key, key_of, reference

from .test_toprf import Served


def not_compared(committee: Committee, answers: Sequence[bytes], blocks: int, size: int = 16) -> list[Any]:
    """As ``summands_of``, with the first copy of each summand."""
    found: dict[int, Any] = {}
    for party, answer in enumerate(answers):
        for number, mine in zip(held_by(committee, party), np.frombuffer(bytes(answer), np.uint8).reshape(2, -1), strict=True):
            found.setdefault(number, mine)
    return list(found.values())


SETS = [("mal-rep-ring", "prf-aes128"), ("mal-rep-field", LEGENDRE.name)]


class Known(Served):
    """A served committee whose values a test can compute."""

    def value(self, data: bytes) -> bytes:
        """With the key from all share files."""
        if inner_of(load_prf_key(self.committee.key_folder(0, "prf")).parameters).answer_bytes == 16:
            return reference(self.key, data)
        return legendre.reference(legendre.legendre_key(self.committee), data)


def started(folder: Path, protocol: str, name: str) -> Known:
    committee = committee_with_key(folder, protocol, 3, name)
    identity, _ = make_receiver(committee, "web")
    made = Known(committee, b"" if name == LEGENDRE.name else key_of(committee), load_prf_key(committee.key_folder(0, "prf")).key_id, identity)
    made.set(1_000_000)
    made.start()
    return made


def stopped(made: Known) -> bool:
    """Whether a party stops, as a check failed."""
    end = time.monotonic() + 20
    while time.monotonic() < end and not any(isinstance(failure, CheckError) for failure in made.failures):
        time.sleep(0.1)
    return any(isinstance(failure, CheckError) for failure in made.failures)


@pytest.fixture(scope="module", params=SETS, ids=["aes", "legendre"])
def served(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Known]:
    made = started(tmp_path_factory.mktemp("malicious"), *request.param)
    yield made
    made.stop()
    assert not made.failures, made.failures


def test_values_are_those_of_the_key(served: Known) -> None:
    inputs, before = [b"", b"a password", bytes(300)], served.totals()
    with served.client() as toprf:
        assert toprf.evaluate_many(inputs) == [served.value(data) for data in inputs]
    assert served.totals() == [total + 3 for total in before]
    committee = served.committee
    assert sharing_of(committee, load_prf_key(committee.key_folder(0, "prf")).parameters)[0] in ("mal-rep-ring", "mal-rep-field")


def test_summands_of_a_receiver_that_differ(served: Known) -> None:
    """Every copy of every summand: the two holders find it, one of them at least is honest, and nothing is computed."""
    committee, before = served.committee, served.totals()
    inner = inner_of(load_prf_key(committee.key_folder(0, "prf")).parameters)
    for party in range(3):
        for part in range(2):
            bodies = inner.shared(committee, [inner.point(b"x", b"", 32)])
            changed = bytearray(bodies[party])
            changed[16 * part] ^= 1
            bodies[party] = bytes(changed)
            with served.client() as toprf, pytest.raises(Refused, match=r"got other shares of the inputs|has not got this request"):
                toprf._channels.ask(bodies, {"key": served.key_id, "output": 32})
    assert served.totals() == before
    with served.client() as toprf:
        assert toprf.evaluate(b"x") == served.value(b"x")


def test_an_answer_that_is_wrong(served: Known, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each summand of each party. The other holder of it is honest, so the receiver drops the result. Without the comparison it takes a wrong value: the ablation."""

    def cheated(party: int, part: int) -> bytes:
        with served.client() as toprf:
            ask = toprf._channels.ask

            def changed(*args: Any) -> list[bytes]:
                answers = [bytearray(answer) for answer in ask(*args)]
                for i in range(part * len(answers[party]) // 2, (part + 1) * len(answers[party]) // 2, 16):
                    answers[party][i] ^= 1
                return [bytes(answer) for answer in answers]

            monkeypatch.setattr(toprf._channels, "ask", changed)
            return toprf.evaluate(b"z")

    for party in range(3):
        for part in range(2):
            with pytest.raises(PartyError, match=r"parties \d and \d sent different copies of summand \d of the result"):
                cheated(party, part)
    for module in (function, legendre_prf):
        monkeypatch.setattr(module, "summands_of", not_compared)
    assert cheated(0, 0) != served.value(b"z")


@pytest.mark.parametrize(("protocol", "name"), SETS, ids=["aes", "legendre"])
def test_a_party_that_computes_with_another_share(protocol: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It computes with another summand of the key: a check fails, no answer leaves, and the honest parties stop serving until whoever runs them starts them again."""
    monkeypatch.setattr(sessions, "MOST_SESSIONS", 1)  # the others stop too, without connecting again
    made = started(tmp_path, protocol, name)
    try:
        with made.client() as toprf:
            assert toprf.evaluate(b"before") == made.value(b"before")
        kind: Any = made.daemons[1][0].served_key
        for position in (0, 1):
            kind._key.words[position, :] ^= np.uint64(1)
        with made.client(timeout=20.0) as toprf, pytest.raises(KeyQuorumError):
            toprf.evaluate(b"after")
        assert stopped(made)
    finally:
        made.stop()


def test_without_the_comparison_a_receiver_stops_the_parties(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ablation of the comparison of summands: shares of the honest parties are inconsistent then, so the check of products fails, and honest parties take each other for a cheat."""
    monkeypatch.setattr(sessions, "MOST_SESSIONS", 1)
    made = started(tmp_path, *SETS[0])
    try:
        monkeypatch.setattr(ToprfKind, "_compared", lambda self, context, have: [None] * len(have))
        bodies = function.shared_points(made.committee, [point_of(b"x", b"", 32)])
        bodies[1] = bytes([bodies[1][0] ^ 1]) + bodies[1][1:]
        with made.client(timeout=20.0) as toprf:
            try:
                answers = toprf._channels.ask(bodies, {"key": made.key_id, "output": 32})
            except KeyQuorumError:
                answers = []
        assert not answers and stopped(made)
    finally:
        made.stop()


def test_sessions_that_break_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each gives another attempt, so after some of them, here after the first, the honest parties stop."""
    monkeypatch.setattr(sessions, "MOST_SESSIONS", 1)
    made = started(tmp_path, *SETS[1])
    try:

        def broken(*arguments: Any) -> Any:
            raise PartyError("a test: broke off")

        with made.client() as toprf:
            assert toprf.evaluate(b"before") == made.value(b"before")
        monkeypatch.setattr(made.daemons[1][0].served_key, "run", broken)
        with made.client(timeout=20.0) as toprf, pytest.raises(KeyQuorumError):
            toprf.evaluate(b"after")
        for _, thread in made.daemons.values():
            thread.join(20)
            assert not thread.is_alive()
        assert len(made.failures) == 3
    finally:
        made.stop()


def test_what_is_refused(tmp_path: Path, served: Known) -> None:
    with pytest.raises(ParameterError, match=r"mal-rep-.*: one-time tables are semi-honest so far|one-time tables are of AES"):
        inner_of(load_prf_key(served.committee.key_folder(0, "prf")).parameters).check(served.committee, "table")
    with pytest.raises(CommitteeError, match="the job share is semi-honest so far"):
        check_alone(served.committee, 0, {"kind": "share", "key": "prf", "members": 2})
    assert len(held_by(served.committee, 0)) == 2
    shamir = api.init(tmp_path / "shamir", 3, "mal-shamir")
    for name in ("prf-aes128", LEGENDRE.name):
        with pytest.raises(ParameterError, match=r"mal-shamir shares over prime fields alone|mal-shamir has no shares modulo primes of 127 bits"):
            api.keygen(shamir, "prf", name)
