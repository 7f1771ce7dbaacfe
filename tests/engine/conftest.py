"""In-process parties for engine tests."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from keyquorum import _engine

Q60 = 1152921504606584833
MERSENNE = 2**61 - 1
CASES = [
    ("emulate", 1, "Z2^64"),
    ("emulate", 1, f"F_{Q60}"),
    ("ring", 3, "Z2^64"),
    ("ring", 3, "Z2^72"),
    ("ring", 3, "Z2^41"),
    ("rep-field", 3, f"F_{Q60}"),
    ("rep-field", 3, "F_65537"),
    ("mal-rep-ring", 3, "Z2^64"),
    ("mal-rep-ring", 3, "Z2^72"),
    ("mal-rep-ring", 3, "Z2^41"),
    ("mal-rep-field", 3, f"F_{Q60}"),
    ("mal-rep-field", 3, "F_65537"),
    ("shamir", 3, f"F_{Q60}"),
    ("shamir", 3, f"F_{MERSENNE}"),
    ("shamir", 4, "F_65537"),
    ("shamir", 5, f"F_{MERSENNE}"),
    ("shamir", 7, f"F_{Q60}"),
    ("shamir", 11, f"F_{MERSENNE}"),
    ("shamir", 13, f"F_{Q60}"),
    ("mal-shamir", 3, f"F_{Q60}"),
    ("mal-shamir", 4, "F_65537"),
    ("mal-shamir", 5, f"F_{MERSENNE}"),
    ("mal-shamir", 7, f"F_{Q60}"),
    ("semi2k", 2, "Z2^64"),
    ("semi2k", 3, "Z2^72"),
    ("semi2k", 4, "Z2^41"),
    ("semi", 2, f"F_{Q60}"),
    ("semi", 3, "F_65537"),
    ("semi", 4, f"F_{MERSENNE}"),
    ("spdz2k", 2, "Z2^64"),
    ("spdz2k", 3, "Z2^72"),
    ("mascot", 2, f"F_{Q60}"),
    ("mascot", 3, f"F_{MERSENNE}"),
]


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
