"""Orders about epochs, and refreshes, beside jobs, daemons and users of pools: refused before anything changes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from keyquorum import api
from keyquorum._engine import EngineError
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CommitteeError, EpochError, KeyQuorumError, PoolError
from keyquorum.parties import PartyContext, queue, run_in_process
from keyquorum.parties.epochs import Epoch, read_epoch
from keyquorum.parties.epochs.record import write_epoch
from keyquorum.parties.jobs import run_job
from keyquorum.parties.queue import job_lock, serve_lock
from keyquorum.plans import pools
from keyquorum.plans.epochs import refresh
from keyquorum.plans.pool_store import _locked
from keyquorum.plans.pool_variants import pool_group, variant_of
from keyquorum.plans.pools import Pool, pools_folder
from keyquorum.serve import lending
from keyquorum.serve.client import make_receiver
from keyquorum.serve.daemon import Daemon
from keyquorum.serve.kinds import Service

from tests.parties.epochs.changes import committee_of, prepare, record_of
from tests.plans.test_refresh import run, with_keys

FILL = {"kind": "pool_fill", "parameters": "lwe64-p2", "rounding": "round_ltz_circuit", "width": 8, "levels": 2, "count": 8, "chunk": 8}
ORDERS: dict[str, Callable[[Committee], object]] = {
    "commit": api.epoch_commit,
    "give-up": lambda committee: api.epoch_give_up(committee, [2]),
    "erase": api.epoch_erase,
}


def _files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"}


@pytest.mark.parametrize("order", ORDERS)
def test_an_order_is_refused_beside_a_job_a_daemon_and_a_pool_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str) -> None:
    monkeypatch.setattr(queue, "LEND_SECONDS", 0.2)
    committee = committee_of(tmp_path)
    record = record_of(committee)
    for party in range(3):
        prepare(committee, party, record)
    before = _files(committee.folder)
    job, daemon = job_lock(committee, 1, "refresh_shares"), serve_lock(committee, 1, "key k")
    assert job.take()
    with pytest.raises(CommitteeError, match=r"^party 1 of .* is busy with refresh_shares \(process .*: try again when that has ended"):
        ORDERS[order](committee)
    job.release()
    assert daemon.take()
    with pytest.raises(CommitteeError, match=r"^party 1 of .* serves key k \(process .*: stop keyquorum serve there, then try again"):
        ORDERS[order](committee)
    daemon.release()
    pool = pools_folder(committee, 1) / "some"
    lock = _locked(pool, make=True)
    with pytest.raises(PoolError, match="another process uses this pool: stop it"):
        ORDERS[order](committee)
    assert _files(committee.folder) == before
    os.close(lock)
    ORDERS[order](committee)
    assert _files(committee.folder) != before


def test_no_refresh_beside_a_daemon_and_no_daemon_beside_a_refresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A daemon that does not lend its lock is named, and nothing changes. A daemon is kept out until the old shares are erased."""
    monkeypatch.setattr(queue, "LEND_SECONDS", 0.2)
    monkeypatch.setattr(lending, "START_SECONDS", 0.0)
    committee = with_keys(tmp_path, "rep-field", 3, ["lwe64-p2"])
    make_receiver(committee, "alice")
    daemon = Daemon(committee, 1, Service("key"))
    before = _files(committee.folder)
    with pytest.raises((KeyQuorumError, EngineError), match="stop keyquorum serve there"):
        run_in_process(committee, lambda context: run_job(context, api.refresh_shares_job(committee)), timeout=20)
    assert {path for path, data in before.items() if path.read_bytes() != data} <= {committee.party_folder(i) / "audit.jsonl" for i in range(3)}
    assert read_epoch(committee.party_folder(1)).number == 0 and not list(committee.folder.glob("*/keys/*/shares-*"))
    assert "epoch" not in daemon.served_key.audited
    daemon.stop()
    daemon.run()
    drop, seen = pools.drop_pools, list[str]()

    def late(*given: object) -> object:
        with pytest.raises(CommitteeError, match=r"is busy with refresh_shares \(process .*: try again when that has ended") as caught:
            Daemon(committee, 1, Service("key"))
        seen.append(str(caught.value))
        return drop(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(refresh, "drop_pools", late)
    run(committee, api.refresh_shares_job(committee))
    here = read_epoch(committee.party_folder(1))
    assert len(seen) == 3 and here.number == 1
    daemon = Daemon(committee, 1, Service("key"))
    assert daemon.served_key.audited["epoch"] == here.name
    daemon.stop()
    daemon.run()


def test_a_daemon_with_shares_of_another_epoch_ends(tmp_path: Path) -> None:
    """It does so when it connects, with a line, and not before its pool is that of the loaded shares."""
    committee = with_keys(tmp_path, "rep-field", 3, ["lwe64-p2"])
    make_receiver(committee, "alice")
    daemon, name = Daemon(committee, 0, Service("key")), "cd" * 16
    write_epoch(committee.party_folder(0), Epoch(1, name, committee.digest.hex(), {}))
    with pytest.raises(
        EpochError, match=f"the loaded shares are of the epoch of key generation, and the party is in epoch {name}: start keyquorum serve again"
    ):
        daemon.run()
    assert not (committee.party_folder(0) / "serve.lock").exists() and job_lock(committee, 0, "a test").take()


def test_a_pool_is_of_the_epoch_of_the_loaded_shares(tmp_path: Path) -> None:
    """A caller that loaded its shares before a change gets no pool of after it."""
    committee = with_keys(tmp_path, "rep-field", 3, ["lwe64-p2"])

    def opened(context: PartyContext) -> list[str]:
        group, found = pool_group(context), []
        for epoch in (None, "", "ab" * 16) if group.member else ():
            pool = Pool(context, group, variant_of(committee, FILL), epoch)
            found.append(str(pool.store.kind.get("epoch", "")))
            pool.close()
        return found

    for party in range(3):
        write_epoch(committee.party_folder(party), Epoch(1, "cd" * 16, committee.digest.hex(), {}))
    assert ["cd" * 16, "", "ab" * 16] in run_in_process(committee, opened, timeout=20)
