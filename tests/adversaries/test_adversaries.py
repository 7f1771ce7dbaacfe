"""A part of the matrix of adversaries, the same at every run: `make adversaries` runs all of it."""

from __future__ import annotations

import pytest
from keyquorum import _engine

from tests.long import LONG

from .matrix import ABLATIONS, HUNG, ROWS, WRONG, Ablation, Row, successes, tally


@pytest.mark.parametrize("row", [row for row in ROWS if row.quick], ids=lambda row: row.plan().name)
def test_no_deviation_gives_an_honest_party_a_wrong_result(row: Row) -> None:
    """Every kind of deviation by every party, at a few places: honest parties have the right result or an error whose class the kind of deviation may have."""
    found = tally(row, quick=True)
    assert found.cases > 0 and not found.failures, found.failures[:5]
    assert found.count(WRONG) == found.count(HUNG) == 0
    assert found.count("check") > 0


@pytest.mark.parametrize(
    "ablation",
    [a for a in ABLATIONS if LONG or not a.slow],
    ids=lambda a: f"{a.plan().name}-{'-'.join(a.omitted) or 'semi-honest'}-{'-'.join(a.kinds)}",
)
def test_deviations_ablated_go_through_without_the_check(ablation: Ablation) -> None:
    """The same deviations, where honest parties leave the check out, give a wrong result at one place at least."""
    assert next(successes(ablation), None) is not None


def test_deviations_are_for_parties_of_one_process() -> None:
    """Sessions over a network have neither a function that changes messages, nor checks that are left out."""
    for name in ("tamper", "omitted"):
        with pytest.raises(TypeError, match=name):
            _engine.Session.tls(0, "identity.pem", [], b"", "", **{name: []})
    with pytest.raises(_engine.UsageError, match='there is no check "Everything"'):
        _engine.tampered_sessions([None, None], ["Everything"])
