"""A committee evaluates a pseudorandom function: equal values for all sharings, policies, malformed requests, many clients, and restarts."""

from __future__ import annotations

import json
import os
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from keyquorum.cli import app
from keyquorum.inspection import examine
from keyquorum.model.committee import Committee
from keyquorum.model.errors import KeyQuorumError, ParameterError, PartyError, PolicyError
from keyquorum.schemes.prf.evaluations import JOURNAL, read_journal
from keyquorum.schemes.prf.function import combined, finalised, held_by, point_of, shared_points
from keyquorum.schemes.prf.key import load_prf_key
from keyquorum.schemes.prf.policy import POLICY
from keyquorum.serve.client import Refused, RefusedByPolicy, make_receiver
from keyquorum.serve.daemon import Daemon, Service
from keyquorum.serve.plan import Plan, read_plan
from keyquorum.serve.wire import receive_message, send_message
from keyquorum.toprf import Toprf, set_policy
from keyquorum.toprf.client import hkdf
from typer.testing import CliRunner

from tests.long import LONG
from tests.schemes.test_prf import committee_with_key, key_of, reference

CLIENTS = 100 if LONG else 20


@dataclass
class Served:
    """A committee whose parties are threads of this process; they speak TLS to one another and to receivers."""

    committee: Committee
    key: bytes
    key_id: str
    identity: Path
    options: dict[str, Any] = field(default_factory=dict)
    """Of the service."""
    daemons: dict[int, tuple[Daemon, threading.Thread]] = field(default_factory=dict)
    failures: list[BaseException] = field(default_factory=list)

    def start(self, *parties: int, patience: float = 40.0) -> None:
        for party in parties or range(self.committee.size):
            daemon = Daemon(self.committee, party, Service("prf", patience=patience, **self.options))

            def run(daemon: Daemon = daemon) -> None:
                try:
                    daemon.run()
                except BaseException as error:
                    self.failures.append(error)

            thread = threading.Thread(target=run, daemon=True)
            thread.start()
            self.daemons[party] = daemon, thread

    def stop(self, *parties: int) -> None:
        stopped = [self.daemons.pop(party) for party in parties or list(self.daemons)]
        for daemon, _ in stopped:
            daemon.stop()
        for _, thread in stopped:
            thread.join(30)
            assert not thread.is_alive()

    def client(self, **options: Any) -> Toprf:
        return Toprf(self.committee, "prf", self.identity, wait=20.0, **options)

    def totals(self) -> list[int]:
        return [read_journal(self.committee.key_folder(party, "prf") / JOURNAL).total for party in range(self.committee.size)]

    def set(self, rate: int, total: int | None = None, receivers: list[str] | None = None) -> None:
        """Another policy at all parties, which are not running."""
        for party in range(self.committee.size):
            set_policy(self.committee, party, "prf", rate, total, receivers)


def served(folder: Path, protocol: str, parties: int, **options: Any) -> Served:
    committee = committee_with_key(folder, protocol, parties)
    identity, _ = make_receiver(committee, "web")
    made = Served(committee, key_of(committee), load_prf_key(committee.key_folder(0, "prf")).key_id, identity, options)
    made.set(1_000_000)
    return made


@pytest.fixture(scope="module", params=[("rep-field", 3), ("semi", 2)], ids=lambda value: value[0])
def both(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Served]:
    """Running parties, for tests that do not stop them."""
    made = served(tmp_path_factory.mktemp("toprf"), *request.param)
    made.start()
    yield made
    made.stop()
    assert not made.failures


@pytest.fixture
def ring(tmp_path: Path) -> Iterator[Served]:
    """Three parties that do not run yet."""
    made = served(tmp_path, "rep-field", 3)
    yield made
    made.stop()


def test_values_are_those_of_the_key(both: Served) -> None:
    """Two sharings of an input give the value that AES of another library gives under the reconstructed key; so do other domains and lengths."""
    inputs = [b"", b"a password", bytes(range(256)) * 100]
    with both.client() as toprf:
        values = toprf.evaluate_many(inputs)
        assert values == [reference(both.key, data) for data in inputs] and toprf.evaluate(inputs[1]) == values[1]
    with both.client(domain=b"register", output_bytes=16) as toprf:
        assert toprf.evaluate(inputs[2]) == reference(both.key, inputs[2], b"register", 16)
    assert len(set(both.totals())) == 1


def test_concurrent_clients(both: Served) -> None:
    """They share batches: fewer of them than requests. Every value is right, and every evaluation is counted once at every party."""
    before = both.totals()

    def ask(number: int) -> bool:
        with both.client() as toprf:
            inputs = [f"{number} {i}".encode() for i in range(1 + number % 3)]
            # A party takes 64 handshakes from one address at a time; who is displaced asks again.
            values: list[bytes] = eventually(lambda: toprf.evaluate_many(inputs))
            return values == [reference(both.key, data) for data in inputs]

    with ThreadPoolExecutor(CLIENTS) as pool:
        assert all(pool.map(ask, range(CLIENTS)))
    asked = sum(1 + number % 3 for number in range(CLIENTS))
    assert both.totals() == [total + asked for total in before]
    metrics = urllib.request.urlopen(f"http://127.0.0.1:{both.daemons[0][0].metrics.port}/metrics", timeout=10).read().decode()
    numbers = {line.split()[0]: float(line.split()[1]) for line in metrics.splitlines() if not line.startswith("#")}
    assert numbers['keyquorum_batches_total{result="done"}'] < numbers['keyquorum_requests_total{result="answered"}']
    assert numbers["keyquorum_evaluations_total"] >= 2 * asked and numbers["keyquorum_decryptions_total"] == 0


def test_malformed_requests(both: Served) -> None:
    """Each is refused in one line, counts nothing, and leaves the committee as it was."""
    committee, before = both.committee, both.totals()
    bodies = shared_points(committee, [point_of(b"x", b"", 32)])
    head = {"key": both.key_id, "output": 32}
    for wrong, more, message in (
        ([body[:-1] for body in bodies], head, "bytes are no shares of inputs"),
        ([b""] * committee.size, head, "0 bytes are no shares of inputs"),
        (
            [bytes(16 * len(held_by(committee, p)) * 1024) + bytes(16) for p in range(committee.size)],
            head,
            "too long|closed|refused|nothing was learned",
        ),
        (bodies, {**head, "output": 24}, "values of 24 bytes: ask for 16 or 32"),
        (bodies, {**head, "output": "32"}, "values of 32 bytes"),
        (bodies, {**head, "key": "00" * 16}, "the request is for another key"),
        (bodies, {"output": 32}, "the request names no key"),
        (bodies, {**head, "id": "short"}, "a request needs an id"),
    ):
        with both.client() as toprf, pytest.raises(KeyQuorumError, match=message) as error:
            toprf._channels.ask(wrong, more)
        assert "\n" not in str(error.value)
    # Parties that got other numbers of inputs, or other lengths of values, compute nothing.
    two = shared_points(committee, [bytes(16)] * 2)
    with both.client() as toprf, pytest.raises(Refused, match="has not got this request, or another one, or refuses it"):
        toprf._channels.ask([bodies[0], *two[1:]], head)
    assert both.totals() == before
    # Random shares are shares of some point: their sender gets a value of no use to it, and nobody else notices.
    if committee.size == 2:
        with both.client() as toprf:
            assert len(toprf._channels.ask([os.urandom(16), os.urandom(16)], head)[0]) == 32
    with both.client() as toprf:
        assert toprf.evaluate(b"x") == reference(both.key, b"x")


def test_copies_of_a_summand_that_differ_are_refused(both: Served) -> None:
    """Nothing is computed with them: the errors of such products would depend on summands of the key."""
    committee, before = both.committee, both.totals()
    if committee.summands == committee.size and len(held_by(committee, 0)) == 1:
        pytest.skip("every summand is at one party")
    head = {"key": both.key_id, "output": 32}
    for party in range(committee.size):
        for part in range(2):
            bodies = shared_points(committee, [bytes(16)] * 3)
            changed = bytearray(bodies[party])
            changed[16 * 3 * part + 20] ^= 4
            bodies[party] = bytes(changed)
            with both.client() as toprf, pytest.raises(Refused, match=r"got other shares of the inputs|has not got this request"):
                toprf._channels.ask(bodies, head)
    assert both.totals() == before


def test_a_replayed_id(both: Served) -> None:
    """A request whose id was counted is refused at every party, also with other shares."""
    committee, before = both.committee, both.totals()
    head = {"key": both.key_id, "output": 16, "id": "0123456789abcdef"}
    with both.client() as toprf:
        toprf._channels.ask(shared_points(committee, [bytes(16)]), head)
    for _ in range(2):
        with both.client() as toprf, pytest.raises(Refused, match="a request of this id was counted already: take another id"):
            toprf._channels.ask(shared_points(committee, [bytes(16)]), head)
    assert both.totals() == [total + 1 for total in before]


def test_commands(both: Served, tmp_path: Path) -> None:
    """eval of a text, of standard input and of a file, derive, status and fill give what the Python interface gives."""
    folder, who = str(both.committee.folder), ["--identity", str(both.identity)]

    def said(*words: str, given: str = "") -> str:
        result = CliRunner().invoke(app, ["toprf", *words], input=given, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout

    assert said("eval", folder, "prf", "a password", *who).split() == [reference(both.key, b"a password").hex()]
    words = ["eval", folder, "prf", "--stdin", "--domain", "d", "--output-bytes", "16", "--json", *who]
    assert json.loads(said(*words, given="two\nlines\n"))["values"] == [reference(both.key, b"two\nlines\n", b"d", 16).hex()]
    lines, target = [b"1", b"", b"\xff\xfe", b"1"], tmp_path / "values"
    (tmp_path / "lines").write_bytes(b"1\n\n\xff\xfe\r\n1\n")
    said("eval", folder, "prf", "--batch", str(tmp_path / "lines"), "-o", str(target), *who)
    assert target.read_text().split("\n") == [*(reference(both.key, line).hex() for line in lines), ""]
    assert target.stat().st_mode & 0o777 == 0o600 and examine(target).details == {"count": 4}
    said("derive", folder, "prf", "a password", "--info", "backup", "--salt", "0a0b", "--length", "48", "-o", str(tmp_path / "key"), *who)
    assert (tmp_path / "key").read_bytes() == hkdf(reference(both.key, b"a password", derives=True), b"backup", b"\x0a\x0b", 48)
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "key").read_bytes() != hkdf(reference(both.key, b"a password"), b"backup", b"\x0a\x0b", 48)  # of what eval prints
    status = json.loads(said("status", folder, "prf", "--json"))["parties"]
    assert [party["total"] for party in status] == both.totals() and all(len(party["last_hour"]) >= 1 for party in status)
    assert said("status", folder, "prf").startswith("party 0: ") and said("fill", folder, "-n", "5", "--method", "circuit", "--json")
    before = both.totals()
    for wrong in (["--output-bytes", "24"], ["-o", str(tmp_path / "missing" / "file")], ["--wait", "-1"]):
        assert CliRunner().invoke(app, ["toprf", "eval", folder, "prf", "x", *wrong, *who]).exit_code == 1
    assert both.totals() == before


def test_rate_and_restart(ring: Served) -> None:
    """The refusal names the limit and its end, at once and after a restart; other receivers are served meanwhile."""
    other, _ = make_receiver(ring.committee, "other")
    stranger, _ = make_receiver(ring.committee, "stranger")
    ring.set(5, 9, ["web", "other"])
    ring.start()
    with ring.client() as toprf:
        toprf.evaluate_many([b"1", b"2", b"3"])
        with pytest.raises(
            RefusedByPolicy, match=r"^party \d: the policy allows this receiver 5 evaluations an hour and 3 are used: 3 more are refused until 20"
        ):
            toprf.evaluate_many([b"1", b"2", b"3"])
        with pytest.raises(RefusedByPolicy, match="send fewer at a time"):
            toprf.evaluate_many([b"1"] * 6)
    ring.stop()
    ring.start()
    with ring.client() as toprf:
        toprf.evaluate_many([b"4", b"5"])
        with pytest.raises(RefusedByPolicy, match="5 are used: 1 more are refused until"):
            toprf.evaluate(b"6")
    with Toprf(ring.committee, "prf", other) as toprf:
        assert toprf.evaluate(b"1") == reference(ring.key, b"1")
        with pytest.raises(RefusedByPolicy, match="has fewer than 4 of its evaluations left"):
            toprf.evaluate_many([b"1"] * 4)
    with Toprf(ring.committee, "prf", stranger) as toprf, pytest.raises(RefusedByPolicy, match="may not evaluate under key"):
        toprf.evaluate(b"1")
    assert ring.totals() == [6, 6, 6]
    lines = [json.loads(line) for line in (ring.committee.party_folder(0) / "audit.jsonl").read_text().splitlines()]
    # A client asks again after NotConnected: the parties may still be looking for one another after a restart.
    refusals = {line["type"] for line in lines if line["result"] == "refused"} - {"NotConnected"}
    assert refusals == {"PolicyError"} and lines[0]["method"] == "circuit"
    assert all(line["sha256"] is None for line in lines)  # of a share: with it and its own shares another party could search the input


def test_a_receiver_that_asks_one_party_alone_delays_nobody(ring: Served) -> None:
    """Its requests are proposed for two seconds, then refused. Those of others are evaluated meanwhile."""
    other, _ = make_receiver(ring.committee, "other")
    ring.start()
    lone = [Toprf(ring.committee, "prf", other, wait=20.0) for _ in range(4)]
    with ring.client() as toprf:
        toprf.evaluate(b"x")
        body = shared_points(ring.committee, [bytes(16)])[0]
        for number, client in enumerate(lone):
            client._channels._connect()
            send_message(client._channels._channels[0], {"key": ring.key_id, "output": 16, "id": f"request{number}"}, body)
            start = time.monotonic()
            assert toprf.evaluate(b"x") == reference(ring.key, b"x")
            assert time.monotonic() - start < 1.5
    for client in lone:
        answer = receive_message(client._channels._channels[0], 1000)
        assert answer is not None and "has not got this request" in answer[0]["error"]
        client.close()
    assert ring.totals() == [5, 5, 5]


def test_a_request_that_comes_late_to_a_party_is_evaluated(ring: Served) -> None:
    ring.start()
    head = {"key": ring.key_id, "output": 16, "id": "request1"}
    bodies = shared_points(ring.committee, [point_of(b"x", b"", 16)])
    with ring.client() as toprf:
        toprf.evaluate(b"x")
        channels = toprf._channels._channels
        for channel, body in zip(channels, bodies, strict=True):
            send_message(channel, head, body)
            time.sleep(0.4)
        answers = [receive_message(channel, 1000) for channel in channels]
    blocks = combined(ring.committee, [answer[1] for answer in answers if answer is not None], 1)
    assert finalised(b"x", b"", 16, blocks) == reference(ring.key, b"x", length=16) and ring.totals() == [2, 2, 2]


def test_a_file_that_is_longer_than_the_rate(ring: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was computed before the refusal is written, and the error says what is missing."""
    monkeypatch.setattr("keyquorum.toprf.client.MOST_INPUTS", 2)
    ring.set(5)
    ring.start()
    (tmp_path / "lines").write_bytes(b"".join(b"%d\n" % i for i in range(7)))
    wanted = [reference(ring.key, b"%d" % i).hex() for i in range(4)]
    command = [
        "toprf",
        "eval",
        str(ring.committee.folder),
        "prf",
        "--batch",
        str(tmp_path / "lines"),
        "--identity",
        str(ring.identity),
        "--wait",
        "20",
    ]
    result = CliRunner().invoke(app, [*command, "-o", str(tmp_path / "values")])
    assert result.exit_code == 1 and (tmp_path / "values").read_text().split() == wanted
    said = str(result.exception)
    assert said.startswith("party ") and said.endswith(f"the first 4 of 7 values are in {tmp_path / 'values'}: send the other lines later")
    assert "5 evaluations an hour and 4 are used: 2 more are refused until" in said and ring.totals() == [4, 4, 4]
    result = CliRunner().invoke(app, command)  # nothing was computed: nothing is written
    assert result.exit_code == 1 and result.stdout == "" and "values are" not in str(result.exception)


def test_a_policy_is_not_changed_under_a_party_that_serves(ring: Served) -> None:
    """--rate is for the next start; a second process of the party is refused before it writes."""
    ring.set(5)
    ring.start()
    path = ring.committee.key_folder(0, "prf") / POLICY
    before = path.read_bytes()
    result = CliRunner().invoke(app, ["toprf", "serve", str(ring.committee.folder), "0", "prf", "--rate", "1000/h"])
    assert result.exit_code == 1 and "serves already" in str(result.exception) and path.read_bytes() == before


def test_concurrent_requests_do_not_pass_a_limit(ring: Served) -> None:
    """They come before any of them is counted."""
    ring.set(4)
    ring.start()

    def ask(number: int) -> str:
        with ring.client() as toprf:
            try:
                return "right" if toprf.evaluate(b"x") == reference(ring.key, b"x") else "wrong"
            except RefusedByPolicy:
                return "refused"

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(ask, range(8))) == ["refused"] * 4 + ["right"] * 4
    assert ring.totals() == [4, 4, 4]


def test_the_strictest_policy_holds(ring: Served) -> None:
    set_policy(ring.committee, 1, "prf", 1)
    ring.start()
    with ring.client() as toprf:
        toprf.evaluate(b"x")
        with pytest.raises(Refused, match="party 1"):
            toprf.evaluate(b"x")
    assert ring.totals() == [1, 1, 1]


def test_a_plan_with_a_request_twice_is_refused() -> None:
    """It would be counted twice."""
    plan = Plan(0, [("key/request1", "00"), ("key/request2", "00")], [])
    assert read_plan(plan.to_bytes()) == plan
    with pytest.raises(PartyError, match="has a request twice"):
        read_plan(Plan(0, [*plan.decrypt, plan.decrypt[0]], []).to_bytes())


def test_parties_that_do_not_serve(tmp_path: Path) -> None:
    committee = committee_with_key(tmp_path, "semi", 2)
    identity, _ = make_receiver(committee, "web")
    with pytest.raises(PolicyError, match="this party has no policy for the key"):
        Daemon(committee, 0, Service("prf"))
    set_policy(committee, 0, "prf", 5)
    for options, message in (
        ({"keep": 5}, "takes nothing from a pool"),
        ({"method": "table", "keep": -1}, "none negative"),
        ({"width": 4}, "--width is for decryptions"),
    ):
        with pytest.raises(ParameterError, match=message):
            Daemon(committee, 0, Service("prf", **options))  # type: ignore[arg-type]
    for wrong, message in (({"output_bytes": 24}, "choose 16 or 32"), ({"domain": bytes(256)}, "at most 255")):
        with pytest.raises(ParameterError, match=message):
            Toprf(committee, "prf", identity, **wrong)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="no such identity"):
        Toprf(committee, "prf", tmp_path / "none.pem")
    with (
        pytest.raises(PartyError, match="is keyquorum toprf serve running there"),
        Toprf(committee, "prf", identity, [("127.0.0.1", 9)] * 2) as toprf,
    ):
        toprf.evaluate(b"x")


def eventually(action: Callable[[], Any], seconds: float = 60.0) -> Any:
    """The result of an action, which may be refused for a while."""
    end = time.monotonic() + seconds
    while True:
        try:
            return action()
        except KeyQuorumError as error:
            assert "\n" not in str(error)
            if time.monotonic() > end:
                raise
            time.sleep(0.3)


def test_a_party_stops_and_starts(ring: Served) -> None:
    ring.start()
    with ring.client() as toprf:
        first = toprf.evaluate(b"x")
    ring.stop(2)
    ring.start(2)
    with ring.client() as toprf:
        assert eventually(lambda: toprf.evaluate(b"x")) == first == reference(ring.key, b"x")
    assert len(set(ring.totals())) == 1
