"""A party that is killed at any point of an evaluation on LWE ciphertexts: no item of either pool is used twice, and the next evaluation is right."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from keyquorum.model.committee import Committee
from keyquorum.parties import run_in_process
from keyquorum.parties.jobs import run_job
from keyquorum.plans.pool_store import pool_status
from keyquorum.plans.pools import pools_folder

from tests.long import LONG
from tests.schemes.test_prf_lwe_jobs import POINT, aes_of, with_gates

from .workers import run_workers

ALL = ("agree/after@3", "claim/before", "claim/half", "claim/durable", "claim/half@2", "claim/durable@2", "gates/claimed", "gates/taken", "take/read@2",
       "take/read@20", "gates/block", "gates/removed")  # fmt: skip
"""The first claim is of the tables, the second one of the rounding's items."""
POINTS = ALL if LONG else ("claim/half", "claim/durable@2", "take/read@20")
VICTIMS = (0, 1) if LONG else (1,)
pytestmark = pytest.mark.filterwarnings("ignore:.*for comparison only")


def killed(folder: Path, points: Sequence[str], victims: Sequence[int], *options: str) -> Committee:
    """A committee after each victim was killed at each of the points, and after an evaluation that ended well."""
    committee = with_gates(folder, "semi2k", 2)
    job = {"kind": "bench:gates-fill", "key": "gates", "rounding": "round_ltz_circuit", "count": len(points) * len(victims) + 1}
    run_in_process(committee, lambda context: run_job(context, job), timeout=120)
    for point in points:
        for victim in victims:
            other = run_workers("gates_worker", committee.folder, {victim: point}, *options)[1 - victim]
            assert other is not None and ("party" in other.get("error", "") or "value" in other), (point, other)
    done = run_workers("gates_worker", committee.folder, {}, *options)
    assert done[0] == {"value": aes_of(committee, POINT).hex()}
    return committee


def used(committee: Committee, party: int) -> list[str]:
    return (committee.folder / f"used-{party}").read_text().split()


@pytest.mark.timeout(240)
def test_no_item_is_used_twice(tmp_path: Path) -> None:
    committee = killed(tmp_path, POINTS, VICTIMS)
    for party in (0, 1):
        items = used(committee, party)
        assert len(items) > 2 * 5760 and len(set(items)) == len(items)
        claimed = sum(pool_status(folder)[1] for folder in pools_folder(committee, party).iterdir())
        assert len(items) <= claimed


@pytest.mark.timeout(120)
def test_without_claims_on_the_disk_items_are_used_twice(tmp_path: Path) -> None:
    """The test above, with the claims taken out: it would fail."""
    committee = killed(tmp_path, ["take/read@20"], (1,), "unclaimed")
    for party in (0, 1):
        assert len(set(used(committee, party))) < len(used(committee, party))
