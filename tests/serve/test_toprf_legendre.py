"""A committee evaluates the Legendre PRF: values are those of the key, copies are compared, and the policy counts, as for AES."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from keyquorum.cli import app
from keyquorum.model.errors import KeyQuorumError, ParameterError, PartyError
from keyquorum.schemes.prf.function import held_by
from keyquorum.schemes.prf.key import LEGENDRE, load_prf_key
from keyquorum.schemes.prf.legendre import LegendrePrf
from keyquorum.serve.client import Refused, RefusedByPolicy, make_receiver
from keyquorum.serve.daemon import Daemon, Service
from keyquorum.toprf.client import hkdf
from typer.testing import CliRunner

from tests.schemes.test_prf import committee_with_key
from tests.schemes.test_prf_legendre import legendre_key, reference

from .test_toprf import Served

PRF = LegendrePrf(LEGENDRE)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, list[int]]]:
    committee = committee_with_key(tmp_path_factory.mktemp("legendre"), "rep-field", 3, LEGENDRE.name)
    identity, _ = make_receiver(committee, "web")
    made = Served(committee, b"", load_prf_key(committee.key_folder(0, "prf")).key_id, identity)
    made.set(1_000_000)
    made.start()
    yield made, legendre_key(committee)
    made.stop()
    assert not made.failures


def test_values_are_those_of_the_key(served: tuple[Served, list[int]]) -> None:
    """In one batch with others, of both lengths, in domains, and derived keys."""
    parties, key = served
    inputs, before = [b"", b"a password", bytes(range(256)) * 100], parties.totals()
    with parties.client() as toprf:
        values = toprf.evaluate_many(inputs)
        assert values == [reference(key, data) for data in inputs] and toprf.evaluate(inputs[1]) == values[1]
        assert toprf.derive(b"a password", b"backup") == hkdf(reference(key, b"a password", derives=True), b"backup", b"", 32)
    with parties.client(domain=b"register", output_bytes=16) as toprf:
        assert toprf.evaluate(inputs[2]) == reference(key, inputs[2], b"register", 16)

    def ask(number: int) -> bool:
        with parties.client(output_bytes=16 if number % 2 else 32) as toprf:
            mine = [f"{number} {i}".encode() for i in range(1 + number % 3)]
            return toprf.evaluate_many(mine) == [reference(key, data, length=16 if number % 2 else 32) for data in mine]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(8)))
    assert parties.totals() == [total + 6 + sum(1 + n % 3 for n in range(8)) for total in before]


def test_requests_that_are_refused(served: tuple[Served, list[int]]) -> None:
    """Copies that differ, numbers that are no elements, and bodies of other lengths: nothing is counted, and the next request is answered."""
    parties, key = served
    committee, before = parties.committee, parties.totals()
    head, point = {"key": parties.key_id, "output": 32}, PRF.point(b"x", b"", 32)
    for party in range(3):
        for part in range(2):
            bodies = PRF.shared(committee, [point] * 3)
            changed = bytearray(bodies[party])
            changed[16 * 3 * part + 20] ^= 4
            bodies[party] = bytes(changed)
            with parties.client() as toprf, pytest.raises(Refused, match=r"got other shares of the inputs|has not got this request"):
                toprf._channels.ask(bodies, head)
    for wrong, message in (
        ([b"\xff" * 32] * 3, "shares of inputs that are no elements of the field"),
        ([body[:-1] for body in PRF.shared(committee, [point])], "bytes are no shares of inputs"),
    ):
        with parties.client() as toprf, pytest.raises(KeyQuorumError, match=message):
            toprf._channels.ask(wrong, head)
    assert parties.totals() == before
    with parties.client() as toprf:
        assert toprf.evaluate(b"x") == reference(key, b"x")


def test_answers_whose_copies_differ(served: tuple[Served, list[int]], monkeypatch: pytest.MonkeyPatch) -> None:
    """The receiver drops the result, and names the two parties."""
    parties, _ = served
    with parties.client() as toprf:
        ask = toprf._channels.ask

        def changed(*args: object) -> list[bytes]:
            answers = [bytearray(answer) for answer in ask(*args)]  # type: ignore[arg-type]
            answers[1][100] ^= 1
            return [bytes(answer) for answer in answers]

        monkeypatch.setattr(toprf._channels, "ask", changed)
        with pytest.raises(PartyError, match=r"parties \d and \d sent different copies of summand \d of the result"):
            toprf.evaluate(b"x")
    assert len(held_by(parties.committee, 1)) == 2


def test_commands_and_policy(served: tuple[Served, list[int]]) -> None:
    parties, key = served
    folder, who = str(parties.committee.folder), ["--identity", str(parties.identity)]

    def said(*words: str) -> str:
        result = CliRunner().invoke(app, ["toprf", *words], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout

    assert said("eval", folder, "prf", "a password", *who).split() == [reference(key, b"a password").hex()]
    status = json.loads(said("status", folder, "prf", "--json"))["parties"]
    assert [party["prf"] for party in status] == ["prf-legendre127"] * 3 and [party["total"] for party in status] == parties.totals()
    assert "party 0: prf-legendre127, " in said("status", folder, "prf")
    parties.stop()
    with pytest.raises(ParameterError, match="one-time tables are of AES"):
        Daemon(parties.committee, 0, Service("prf", method="table")).run()
    parties.set(parties.totals()[0] + 2)
    parties.start()
    with parties.client() as toprf, pytest.raises(RefusedByPolicy, match="are used: 3 more are refused until"):
        toprf.evaluate_many([b"1", b"2", b"3"])
