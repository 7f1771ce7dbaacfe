"""Requests that a receiver sends to some parties alone, or late, hold up nobody: refusals that come first, and pools that are filled meanwhile."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
from keyquorum.model.errors import PoolTooSmall
from keyquorum.serve import requests
from keyquorum.serve.daemon import Daemon, Service
from keyquorum.serve.filling import Filling
from keyquorum.serve.kinds.base import ParsedRequest
from keyquorum.serve.metrics import Metrics
from keyquorum.serve.requests import Requests

SMALL, LARGE = "receiver/small", "receiver/large"


def asking(count: int) -> ParsedRequest:
    return ParsedRequest(None, count, "ab" * 32)


def test_a_refusal_waits_for_its_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for long, once, and for that request alone; nothing waits for the request."""
    waiting, error = Requests(60.0), PoolTooSmall("needs 9 items")
    start = time.monotonic()
    waiting.refuse(LARGE, error)
    assert time.monotonic() - start < 0.5 and not waiting.wait(0.0)
    late = waiting.add(LARGE, asking(9))
    assert late.done.exception(0) is error and not waiting.wait(0.0)
    assert not waiting.add(SMALL, asking(1)).done.done() and not waiting.add(LARGE, asking(9)).done.done()
    waiting.refuse(LARGE, error)
    assert [r.key for r in waiting.wait(0.0)] == [SMALL]
    monkeypatch.setattr(requests, "LATE_SECONDS", -1.0)
    waiting.refuse(LARGE, error)
    assert not waiting.add(LARGE, asking(9)).done.done()


def test_refusals_that_wait_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest gives way."""
    monkeypatch.setattr(requests, "MOST_LATE", 3)
    waiting, error = Requests(60.0), PoolTooSmall("needs 9 items")
    for number in range(4):
        waiting.refuse(str(number), error)
    assert [waiting.add(str(number), asking(9)).done.done() for number in range(4)] == [False, True, True, True]


def test_a_late_request_is_told_what_it_waited_for() -> None:
    """A party is missing, or the pool has too few items: the parties are all there then."""
    waiting, said = Requests(0.01), []
    for left in (None, 3):
        waiting.left = left
        late = waiting.add(f"receiver/{left}", asking(9))
        time.sleep(0.02)
        waiting.wait(0)
        said.append(str(late.done.exception(timeout=1)))
    assert "a party is missing" in said[0]
    assert (
        said[1]
        == "not answered within 0.01 s: it needs 9 items of the pool, which has 3 and is being filled; send it again later, or fewer at a time"
    )


@pytest.mark.parametrize(
    ("asked", "deferred", "left", "served", "fills"),
    [
        ({SMALL: 2}, [], 6, [SMALL], False),
        ({SMALL: 2}, [SMALL], 6, [SMALL], True),  # one party has it: without this it keeps the pool as it is
        ({SMALL: 2, LARGE: 18}, [], 6, [SMALL], True),  # many small requests would keep the large one waiting
        ({SMALL: 2, LARGE: 18}, [SMALL], 20, [LARGE, SMALL], False),
        ({LARGE: 18}, [], 6, [], True),
        ({}, [], 6, [], True),
        ({}, [], 20, [], False),
    ],
)
def test_what_party_0_proposes(asked: dict[str, int], deferred: list[str], left: int, served: list[str], fills: bool) -> None:
    daemon: Any = object.__new__(Daemon)
    daemon.service, daemon.served_key = Service("key", keep=20, chunk=8), SimpleNamespace(variant=object())
    daemon.requests, daemon._deferred, daemon._most = Requests(60.0), dict.fromkeys(deferred, time.monotonic()), 100
    daemon._filling = Filling(daemon.service, lambda line: None, Metrics(None))
    for key, count in asked.items():
        daemon.requests.add(key, asking(count))
    plan = daemon._propose(SimpleNamespace(left=left), False)
    assert ([key for key, _ in plan.decrypt], plan.fill, plan.refuse) == (served, 8 if fills else 0, [])
    meanwhile = daemon._propose(SimpleNamespace(left=left), True)
    assert (meanwhile.decrypt, meanwhile.fill, meanwhile.refuse) == (plan.decrypt, 0, []), "while items are made"
    daemon._filling.trouble = "party 1: the disk is full"
    plan = daemon._propose(SimpleNamespace(left=left), False)
    assert [key for key, _ in plan.decrypt] == served
    assert plan.refuse == [(key, count, left) for key, count in asked.items() if count > left], "it need not wait for items that nobody makes"
