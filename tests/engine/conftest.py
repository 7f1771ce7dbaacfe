"""In-process parties for engine tests."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from keyquorum import _engine

from tests.protocols import CASES


def run_parties(
    protocol: str,
    parties: int,
    domain: str,
    body: Callable[[Any, int], Any],
    threshold: int | None = None,
    seed: bytes | None = None,
) -> list[Any]:
    """Runs ``body(engine, party)`` for every party; returns their results."""
    sessions = _engine.local_sessions(parties, 30.0)

    def one(session: Any) -> Any:
        try:
            engine = session.engine(protocol, domain, "test", threshold, seed)
            return body(engine, session.party)
        except Exception as error:
            session.abort(str(error))
            raise

    with ThreadPoolExecutor(parties) as pool:
        futures = [pool.submit(one, s) for s in sessions]
        return [f.result() for f in futures]


@pytest.fixture(params=CASES, ids=lambda c: f"{c[0]}-{c[1]}-{c[2]}")
def case(request: pytest.FixtureRequest) -> tuple[str, int, str]:
    param: tuple[str, int, str] = request.param
    return param
