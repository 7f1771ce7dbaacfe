"""A process that gets SIGKILL while pools of the new epoch are filled: they are erased, and the old epoch goes on with its own."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from keyquorum import api
from keyquorum.model.committee import Committee
from keyquorum.parties.epochs import read_epoch

from tests.commands import started
from tests.plans.epochs.test_hold import NAME, POOL, chunks, decrypt, fill, pools
from tests.plans.test_refresh import with_keys

ROOT = Path(__file__).resolve().parents[2]


def _refresh(committee: Committee, kill: str) -> list[int]:
    """Exit codes of the parties' processes, of which party 1 dies at a checkpoint."""
    workers = []
    for party in range(committee.size):
        asked = {"folder": str(committee.folder), "party": party, "job": api.refresh_shares_job(committee, hold=True), "to": None, "old": None}
        place = committee.folder.parent / f"asked-{party}.json"
        place.write_text(
            json.dumps({**asked, "kill": kill if party == 1 else "-", "full": "-", "passed": str(place.with_suffix(".passed")), "ablated": False})
        )
        workers.append(started(ROOT, "tests.faults.epoch_worker", place))
    return [worker.ended(60).returncode for worker in workers]


@pytest.mark.parametrize("point", ["hold/agreed", "fill/stored", "fill/added@2", "hold/filled", "refresh/prepared", "epoch/voted/durable"])
def test_a_killed_party_leaves_no_pool_of_an_epoch_that_never_came(tmp_path: Path, point: str) -> None:
    committee = with_keys(tmp_path, "rep-field", 3, [NAME])
    fill(committee, 20)
    old = chunks(committee)
    assert _refresh(committee, point)[1] == -signal.SIGKILL
    api.epoch_commit(committee)
    if point == "epoch/voted/durable":  # after it nobody decides alone, and all voted here
        assert [pools(committee, party) for party in range(3)] == [{POOL: (20, 0)}] * 3
        api.epoch_erase(committee)
    else:
        assert chunks(committee) == old and not list(committee.folder.rglob("epoch-*"))
        assert decrypt(committee, tmp_path) == [1, 0, 3]
        assert _refresh(committee, "-") == [0, 0, 0]
        assert [pools(committee, party) for party in range(3)] == [{POOL: (17, 0)}] * 3
    assert {read_epoch(committee.party_folder(party)).number for party in range(3)} == {1} and len(chunks(committee)) == 9
    assert decrypt(committee, tmp_path) == [1, 0, 3]
