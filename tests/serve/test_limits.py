"""Receivers get their turn, however many requests another one has, and a party may limit what each asks."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum.model.errors import ParameterError, PolicyError
from keyquorum.serve import limits
from keyquorum.serve.client import RefusedByPolicy, fetch, make_receiver
from keyquorum.serve.daemon import Daemon, Service
from keyquorum.serve.filling import Filling
from keyquorum.serve.kinds.base import ParsedRequest
from keyquorum.serve.limits import NAME, Limit, Limits, Meter, parse_limit, read_limits
from keyquorum.serve.metrics import Metrics
from keyquorum.serve.requests import Requests

from .daemons import Threads


def asking(count: int) -> ParsedRequest:
    return ParsedRequest(None, count, "ab" * 32)


def proposed(requests: Requests, batch: int) -> list[str]:
    """What party 0 proposes next; it is answered."""
    daemon: Any = object.__new__(Daemon)
    daemon.service, daemon.served_key = Service("key", keep=20, chunk=8), SimpleNamespace(variant=object())
    daemon.requests, daemon._deferred, daemon._most = requests, {}, batch
    daemon._filling = Filling(daemon.service, lambda line: None, Metrics(None))
    plan = daemon._propose(SimpleNamespace(left=100_000), False)
    for key, _ in plan.decrypt:
        requests.answer(key, b"")
    return [key for key, _ in plan.decrypt]


def test_a_receiver_with_large_requests_does_not_starve_another() -> None:
    """Six requests of 2,000 of eve are there before the first of alice. Alice waits for one of them at most, each time."""
    waiting = Requests(60.0)
    for number in range(6):
        waiting.add(f"eve/{number}", asking(2000))
    assert proposed(waiting, 1024) == ["eve/0"]
    for number in range(4):
        waiting.add(f"alice/{number}", asking(1))
        waiting.add(f"eve/{10 + number}", asking(2000))
        assert proposed(waiting, 1024) == [f"alice/{number}"]
        assert proposed(waiting, 1024) == [f"eve/{1 + number}"]


def test_small_requests_of_all_receivers_are_one_batch() -> None:
    waiting = Requests(60.0)
    for key in ("eve/0", "eve/1", "eve/2", "bob/0", "alice/0"):
        waiting.add(key, asking(10))
    assert proposed(waiting, 1024) == ["eve/0", "bob/0", "alice/0", "eve/1", "eve/2"]
    for key in ("eve/3", "alice/1", "bob/1"):
        waiting.add(key, asking(10))
    assert proposed(waiting, 10) == ["bob/1"], "bob was answered longest ago"
    assert proposed(waiting, 10) == ["alice/1"]


def test_default_batches_are_short() -> None:
    """A batch of 4,096 ciphertexts holds up the next request for most of a second."""
    from keyquorum.schemes.lwe.scheme import LweScheme

    assert LweScheme.batch <= 1024


@pytest.mark.parametrize(
    ("text", "limit"), [("20 requests/s", Limit(20, "requests", "s")), ("5 items/day", Limit(5, "items", "day")), ("8 waiting", Limit(8, "waiting"))]
)
def test_limits_as_text(text: str, limit: Limit) -> None:
    assert parse_limit(text) == limit and str(limit) == text


@pytest.mark.parametrize(
    "text", ["", "20", "0 waiting", "-1 items/s", "1e3 items/s", "9 waiting/s", "20 requests", "20 items/week", "٣ waiting", "9" * 17 + " waiting"]
)
def test_what_is_no_limit(text: str) -> None:
    with pytest.raises(ParameterError, match="is no limit: write") as caught:
        parse_limit(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"al": []}', '{"all": "1 waiting"}', '{"all": [1]}', '{"receivers": []}', '{"receivers": {"a": 1}}', '{"all": ["1"]}', "\xff"],
)
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / NAME
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ParameterError, match=r"limits\.json: ") as caught:
        read_limits(path)
    assert "\n" not in str(caught.value)
    path.unlink()
    assert read_limits(path) == Limits()


def test_counts_by_receiver(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(limits.time, "monotonic", lambda: now[0])
    meter = Meter(Limits((Limit(10, "items", "min"), Limit(3, "requests", "h"), Limit(2, "waiting")), {"vip": ()}))
    meter.take("aa", "alice", 8, 0)
    with pytest.raises(PolicyError, match=r"^the limit of this receiver is 10 items/min: send the request again in 6 s$"):
        meter.take("aa", "alice", 3, 0)
    meter.take("bb", "bob", 10, 0)  # another receiver
    for _ in range(50):
        meter.take("cc", "vip", 1000, 50)
    with pytest.raises(PolicyError, match="the request has 11 items, the limit of this receiver is 10 items/min: send it in parts"):
        meter.take("aa", "alice", 11, 0)
    with pytest.raises(PolicyError, match="2 requests of this receiver wait, its limit is 2 waiting"):
        meter.take("aa", "alice", 1, 2)
    now[0] += 6
    meter.take("aa", "alice", 3, 1)
    now[0] += 60
    meter.take("aa", "alice", 1, 0)
    with pytest.raises(PolicyError, match=r"3 requests/h: send the request again in [\d,]+ s$"):
        meter.take("aa", "alice", 1, 0)
    meter.replace(Limits((Limit(3, "items", "h"),)))
    meter.take("aa", "alice", 3, 9)


def test_a_party_refuses_what_is_beyond_its_limits(tmp_path: Path) -> None:
    """The error is that of a policy, and names the limit. Other receivers are served."""
    committee = api.init(tmp_path / "committee", 2, "semi")
    api.keygen(committee, "key", "lwe64-p2")
    alice, bob = (make_receiver(committee, name)[0] for name in ("alice", "bob"))
    data = api.encrypt(committee, "key", np.array([1, 0, 1]), tmp_path / "x.lwe").path.read_bytes()
    (committee.party_folder(1) / NAME).write_text('{"receivers": {"receiver-alice": ["5 items/day"]}}')
    with Threads(committee, Service("key", keep=600, chunk=600)):
        assert fetch(committee, alice, data).messages.tolist() == [1, 0, 1]
        with pytest.raises(RefusedByPolicy, match=r"party 1: the limit of this receiver is 5 items/day: send the request again in"):
            fetch(committee, alice, data)
        for _ in range(2):
            assert fetch(committee, bob, data).messages.tolist() == [1, 0, 1]
    (committee.party_folder(1) / NAME).write_text('{"all": ["5 items"]}')
    with pytest.raises(ParameterError, match=r"limits\.json: '5 items' is no limit"):
        Daemon(committee, 1, Service("key"))
