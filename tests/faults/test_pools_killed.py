"""A party that is killed at any point of filling and decrypting: no mask is ever used twice, and the next run goes on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from keyquorum.api import init
from keyquorum.model.committee import Committee
from keyquorum.plans.pool_store import pool_status
from keyquorum.plans.pools import pools_folder

from tests.long import LONG

from .workers import run_workers

POINTS = [
    "agree/before", "agree/after", "fill/started", "fill/tossed", "fill/made", "fill/stored", "fill/compared", "fill/added", "claim/before",
    "claim/half", "claim/written", "claim/durable", "take/read", "decrypt/before", "decrypt/after", "decrypt/removed",
    "agree/before@4", "claim/durable@2", "take/read@3", "decrypt/after@3", "agree/after@4", "take/read@4", "claim/durable@3", "take/read@5",
]  # fmt: skip


def used(folder: Path, party: int) -> list[str]:
    log = folder / f"used-{party}"
    return log.read_text().split() if log.exists() else []


@pytest.mark.timeout(240)
def test_killed_anywhere(tmp_path: Path) -> None:
    """Long tests kill each party at each point, others the parties in turn."""
    folder = tmp_path / "committee"
    committee: Committee = init(folder, 2, "semi")
    killed = 0
    for number, point in enumerate(POINTS):
        for party in (0, 1) if LONG else (number % 2,):
            if point == "fill/started" and party == 1:
                continue  # a pool starts once
            if point == "fill/started":
                for index in (0, 1):
                    for path in (committee.party_folder(index) / "pools").glob("*/*"):
                        path.unlink()
            done = run_workers("pool_worker", folder, {party: point})
            assert done[party] is None, (point, party, done)
            killed += 1
            other = done[1 - party]
            assert other is not None
            # The other party ends with a clear error, or with the right result if it had received all messages.
            assert other.get("messages") == [0, 1, 0] or "party" in str(other["error"]), (point, other)
    assert killed >= (47 if LONG else len(POINTS))
    assert run_workers("pool_worker", folder, {}) == [{"messages": [0, 1, 0]}] * 2
    for party in (0, 1):
        masks = used(folder, party)
        assert len(masks) > 3 and len(set(masks)) == len(masks)


SUBSET_POINTS = (
    POINTS if LONG else ["agree/after", "claim/half", "claim/durable", "decrypt/before", "decrypt/after", "claim/durable@2", "take/read@3"]
)


def killed_subset(folder: Path, points: Sequence[str], *options: str) -> Committee:
    """A committee of three of which parties 0 and 2 fill and decrypt, after each was killed at each of the points, and a last run that ends well."""
    committee, parties = init(folder, 3, "semi"), (0, 2)
    for point in points:
        for party in parties:
            if point == "fill/started":
                continue  # a pool starts once
            done = run_workers("pool_worker", folder, {party: point}, "0,2", *options, parties=parties)
            assert done[parties.index(party)] is None, (point, party, done)
            other = done[1 - parties.index(party)]
            assert other is not None and (other.get("messages") == [0, 1, 0] or "party" in str(other["error"])), (point, other)
    assert run_workers("pool_worker", folder, {}, "0,2", *options, parties=parties) == [{"messages": [0, 1, 0]}] * 2
    return committee


@pytest.mark.timeout(240)
def test_no_mask_of_a_subset_is_used_twice(tmp_path: Path) -> None:
    """In the pool of the subset, which is all that there is: the third party has none."""
    committee = killed_subset(tmp_path / "committee", SUBSET_POINTS)
    for party in (0, 2):
        masks = used(committee.folder, party)
        assert len(masks) > 3 and len(set(masks)) == len(masks)
        folder = pools_folder(committee, party) / "lwe64-p2-round_mask_open.0-2"
        assert [path.name for path in pools_folder(committee, party).iterdir()] == [folder.name] and len(masks) <= pool_status(folder)[1]
    assert not pools_folder(committee, 1).exists()


@pytest.mark.timeout(120)
def test_without_claims_on_the_disk_a_subset_uses_masks_twice(tmp_path: Path) -> None:
    """The test above, with the claims taken out: it would fail."""
    committee = killed_subset(tmp_path / "committee", ["decrypt/before"], "unclaimed")
    for party in (0, 2):
        masks = used(committee.folder, party)
        assert len(set(masks)) < len(masks)
