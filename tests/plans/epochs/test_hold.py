"""A refresh with ``--hold``: pools of the new epoch are full when it begins, are used with shares of this epoch alone, and are erased with the change if it comes to nothing."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from keyquorum import api
from keyquorum._engine import EngineError
from keyquorum.model import checkpoints
from keyquorum.model.committee import Committee
from keyquorum.model.epoch import Stage
from keyquorum.model.errors import EpochError, KeyQuorumError, PoolCannotGrow, PoolError, PoolLost
from keyquorum.model.plain import Json
from keyquorum.parties import run_in_process
from keyquorum.parties.epochs import Change, read_epoch
from keyquorum.parties.jobs import check_job, run_job, runs
from keyquorum.plans.epochs import hold, refresh
from keyquorum.plans.epochs.orders import status
from keyquorum.plans.pool_list import read_pool
from keyquorum.plans.pool_store import PoolStore, pool_status
from keyquorum.plans.pools import pools_folder

from tests.parties.epochs.changes import Killed
from tests.plans.epochs.test_absent import refreshed_without
from tests.plans.test_refresh import run, secrets, with_keys

NAME = "lwe53-p16"
POOL = f"{NAME}-round_ltz_circuit"


def fill(committee: Committee, count: int, numbers: Sequence[int] | None = None, rounding: str = "round_ltz_circuit", width: int = 8) -> None:
    job = api.pool_fill_job(committee, NAME, rounding, count, width, 2, 8, parties=numbers)
    run_in_process(runs(committee, job), lambda context: run_job(context, job), timeout=60)


def decrypt(committee: Committee, folder: Path, numbers: Sequence[int] | None = None) -> object:
    api.encrypt(committee, "key", [1, 0, 3], folder / "x.lwe")
    job = api.decrypt_job(committee, "key", [folder / "x.lwe"], 0, [folder / "x.plain"], pool=True, parties=numbers)
    run_in_process(runs(committee, job), lambda context: run_job(context, job), timeout=60)
    found = json.loads((folder / "x.plain").read_text())
    (folder / "x.plain").unlink()
    return found


def held(committee: Committee) -> Json:
    """A refresh that fills pools; what it says at party 0."""
    done = run(committee, api.refresh_shares_job(committee, hold=True))
    assert all(result["pools"] == done[0]["pools"] for result in done)
    return done[0]


def pools(committee: Committee, party: int) -> dict[str, tuple[int, int]]:
    """Items made and used of the pools of a party's epoch."""
    return {path.parent.name: pool_status(path.parent) for path in sorted(pools_folder(committee, party).glob("*/pool.json"))}


def chunks(committee: Committee) -> list[Path]:
    return sorted(committee.folder.rglob("chunk-*"))


@pytest.mark.parametrize(
    ("protocol", "parties", "members"), [("rep-field", 3, 3), ("semi", 3, 3), ("shamir", 5, 3), ("mal-rep-field", 3, 3), ("mal-shamir", 3, 3)]
)
def test_pools_are_full_after_the_change(tmp_path: Path, protocol: str, parties: int, members: int) -> None:
    """Twice, as many items as were left, with which the committee decrypts. Of the epoch before nothing is left."""
    committee = with_keys(tmp_path, protocol, parties, [NAME])
    before = secrets(committee)
    fill(committee, 20)
    assert decrypt(committee, tmp_path) == [1, 0, 3]
    for number, left in ((1, 17), (2, 14)):
        old = chunks(committee)
        assert held(committee)["pools"] == {POOL: left}
        assert [pools(committee, party) for party in range(parties)] == [{POOL: (left, 0)}] * members + [{}] * (parties - members)
        assert not any(path.exists() for path in old) and len(chunks(committee)) == -(-left // 8) * members
        assert read_epoch(committee.party_folder(0)).number == number and secrets(committee) == before
        assert decrypt(committee, tmp_path) == [1, 0, 3]
        assert pools(committee, 1) == {POOL: (left, 3)}
        assert not any(status(committee, party)["old_pools"] for party in range(parties))
    run(committee, api.refresh_shares_job(committee))
    assert not chunks(committee) and not list(committee.folder.rglob("epoch-*"))


def test_which_pools_are_filled(tmp_path: Path) -> None:
    """Those that all their parties have and a key uses, also of subsets and of tables; those of others, damaged ones and empty ones are not."""
    committee = with_keys(tmp_path, "rep-field", 3, [NAME, "prf-aes128"])
    assert held(committee)["pools"] == {}
    fill(committee, 9, [0, 2])
    fill(committee, 4, [1, 2])
    fill(committee, 5, rounding="round_ltz_table", width=4)
    fill(committee, 3)
    fill(committee, 6, rounding="round_mask_open")
    run(committee, {"kind": "toprf_fill", "count": 2, "chunk": 1})
    run(committee, {**api.pool_fill_job(committee, "lwe64-p2", "round_mask_open", 3)})  # of no key
    shutil.rmtree(pools_folder(committee, 1) / f"{NAME}-round_mask_open")
    (pools_folder(committee, 1) / f"{POOL}.1-2" / "pool.json").write_text("{}")
    assert decrypt(committee, tmp_path) == [1, 0, 3]
    assert decrypt(committee, tmp_path, [0, 2]) == [1, 0, 3]
    table = f"{NAME}-round_ltz_table-4x2"
    assert held(committee)["pools"] == {f"{POOL}.0-2": 6, table: 5, "prf-aes128-table": 2}
    assert pools(committee, 0) == {f"{POOL}.0-2": (6, 0), table: (5, 0), "prf-aes128-table": (2, 0)}
    assert pools(committee, 1) == {table: (5, 0), "prf-aes128-table": (2, 0)}
    assert decrypt(committee, tmp_path, [0, 2]) == [1, 0, 3]
    assert pools(committee, 2)[f"{POOL}.0-2"] == (6, 3)


def test_the_party_with_the_fewest_items_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A party may have given up more than the others. Each chunk has at most as many items as the pool's largest."""
    committee = with_keys(tmp_path, "rep-field", 3, [NAME])
    fill(committee, 20)
    given, mine = list[int](), hold._here

    def fewer(context: object, keys: object) -> object:
        for each in mine(context, keys):  # type: ignore[arg-type]
            given.append(each.said.count)
            yield hold.Mine(hold.Held(POOL, (), 20 - context.party, 8), each.committee, each.kind)  # type: ignore[attr-defined]

    monkeypatch.setattr(hold, "_here", fewer)
    assert held(committee)["pools"] == {POOL: 18} and given == [20] * 3
    found = read_pool(pools_folder(committee, 0) / POOL)
    assert found is not None and [chunk.count for chunk in found.chunks.listed] == [8, 8, 2]


def test_subsets_of_those_present(tmp_path: Path) -> None:
    """With an absent party pools of the others alone."""
    committee = with_keys(tmp_path, "shamir", 5, [NAME])
    for numbers in ([0, 1, 2], [1, 3, 4], None):
        fill(committee, 8, numbers)
    job = api.refresh_shares_job(committee, [2], hold=True)
    done = run_in_process(runs(committee, job), lambda context: run_job(context, job), timeout=60)
    assert [result["pools"] for result in done] == [{f"{POOL}.1-3-4": 8}] * 4
    api.encrypt(committee, "key", [2], tmp_path / "y.lwe")
    decryption = api.decrypt_job(committee, "key", [tmp_path / "y.lwe"], 3, [tmp_path / "y.plain"], pool=True, parties=[1, 3, 4])
    run_in_process(runs(committee, decryption), lambda context: run_job(context, decryption), timeout=60)
    assert json.loads((tmp_path / "y.plain").read_text()) == [2]
    assert refreshed_without(committee, 2)["pools"] == {}


def test_those_present_of_a_committee_for_malicious_parties(tmp_path: Path) -> None:
    """A session of all has no groups there, so pools of some are filled where these are the session."""
    committee = with_keys(tmp_path, "mal-shamir", 4, [NAME])
    fill(committee, 8, [0, 1, 3])
    fill(committee, 5)
    assert held(committee)["pools"] == {POOL: 5}
    fill(committee, 8, [0, 1, 3])
    job = api.refresh_shares_job(committee, [2], hold=True)
    done = run_in_process(runs(committee, job), lambda context: run_job(context, job), timeout=60)
    assert [result["pools"] for result in done] == [{f"{POOL}.0-1-3": 8}] * 3
    assert decrypt(committee, tmp_path, [0, 1, 3]) == [1, 0, 3]


# -- items of one epoch ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("forwards", [True, False])
def test_items_of_another_epoch_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forwards: bool) -> None:
    """Pools of the new epoch that were moved to the place of the old one, and the other way round."""
    committee = with_keys(tmp_path, "rep-field", 3, [NAME])
    fill(committee, 8)
    saved = [tmp_path / str(party) for party in range(3)]
    for party in range(3):
        shutil.copytree(pools_folder(committee, party), saved[party])
    if forwards:
        held(committee)
    else:
        _dies(committee, monkeypatch, "hold/filled")
        for party in range(3):
            (place,) = (committee.party_folder(party) / "pools").glob("epoch-*")
            shutil.rmtree(saved[party])
            shutil.copytree(place, saved[party])
    for party in range(3):
        place = pools_folder(committee, party)
        shutil.rmtree(place / POOL)
        shutil.copytree(saved[party] / POOL, place / POOL)
    with pytest.raises((PoolLost, EngineError), match="this pool was made with another" if not forwards else "this pool was made with another epoch"):
        decrypt(committee, tmp_path)


def test_items_are_fresh(tmp_path: Path) -> None:
    """No chunk has the bytes of another one, but for those that were made together, as parties have summands in common."""
    committee = with_keys(tmp_path, "rep-field", 3, [NAME])
    for numbers in ([0, 1], [0, 2], None):
        fill(committee, 16, numbers)
    found = [(path.name, path.read_bytes()) for path in chunks(committee)]
    held(committee)
    found += [(path.name, path.read_bytes()) for path in chunks(committee)]
    data = [(name, np.frombuffer(each[-160:-40], np.uint8)) for name, each in found]
    assert len(data) == 28 and len({name for name, _ in data}) == 12
    for name, mine in data:  # where no party contributes, a summand is zero
        assert all(np.mean((mine == other) & (mine != 0)) < 0.1 for another, other in data if another != name)


# -- changes that come to nothing ------------------------------------------------------------------------------------------


def _dies(committee: Committee, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """A party dies at a checkpoint, and nobody refuses anything."""
    died = list[str]()

    def dies(name: str) -> None:
        if name == point and not died:
            died.append(name)
            raise Killed(name)

    with monkeypatch.context() as patch:
        patch.setattr(Change, "refuse", lambda change: None)
        patch.setattr(checkpoints, "hook", dies)
        with pytest.raises((Killed, KeyQuorumError, EngineError)):
            run_in_process(committee, lambda context: run_job(context, api.refresh_shares_job(committee, hold=True)), timeout=20)
    assert died == [point]


@pytest.mark.parametrize("point", ["hold/agreed", "fill/started", "fill/stored", "fill/added", "hold/filled", "refresh/prepared"])
def test_a_party_that_dies_while_pools_are_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """It refuses when it goes on, and all erase what was filled. The old epoch goes on with its pools, and a refresh succeeds."""
    committee = with_keys(tmp_path, "rep-field", 3, [NAME])
    fill(committee, 8)
    old = chunks(committee)
    _dies(committee, monkeypatch, point)
    filled = [path for path in chunks(committee) if path not in old]
    assert bool(filled) == (point not in ("hold/agreed", "fill/started"))
    assert decrypt(committee, tmp_path) == [1, 0, 3]
    assert not any(status(committee, party)["old_pools"] for party in range(3)), "an unfinished change keeps its pools"
    for path in filled:
        path.with_name("copy").hardlink_to(path)
        path.with_name("copy").rename(tmp_path / path.parents[3].name)
    api.epoch_commit(committee)
    assert {Change.last(committee, party).standing.stage for party in range(3)} <= {Stage.REFUSED, Stage.GIVEN_UP}  # type: ignore[union-attr]
    assert chunks(committee) == old and not list(committee.folder.rglob("epoch-*"))
    assert not any(any((tmp_path / path.parents[3].name).read_bytes()) for path in filled), "the bytes on the disk"
    assert held(committee)["pools"] == {POOL: 5}
    assert decrypt(committee, tmp_path) == [1, 0, 3]


def test_an_erasure_that_was_cut_off_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    committee = with_keys(tmp_path, "rep-field", 3, [NAME])
    fill(committee, 8)
    old = chunks(committee)
    _dies(committee, monkeypatch, "hold/filled")
    with monkeypatch.context() as patch:
        patch.setattr("keyquorum.parties.epochs.change.erase_pools", lambda *given: (_ for _ in ()).throw(Killed("erase")))
        with pytest.raises(Killed):
            Change.refuse_unvoted(committee, 0)
    assert len(chunks(committee)) == 6
    for party in range(3):
        Change.refuse_unvoted(committee, party)
        assert Change.unfinished(committee, party) is None
    assert chunks(committee) == old


def test_a_later_refresh_erases_what_a_dead_party_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    committee = with_keys(tmp_path, "rep-field", 3, [NAME])
    fill(committee, 8)
    _dies(committee, monkeypatch, "hold/filled")
    names = {path.parents[1].name for path in chunks(committee)}
    assert len(names) == 2
    held(committee)
    assert {path.parents[1].name for path in chunks(committee)} == {f"epoch-{read_epoch(committee.party_folder(0)).name}"} and len(
        chunks(committee)
    ) == 3


def _no_room(store: PoolStore, *given: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("place", ["start", "write", "add"])
def test_no_room_for_pools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """One party's disk is full: all refuse, the error names it and the cure, and the old epoch goes on with its pools."""
    committee = with_keys(tmp_path, "rep-field", 3, [NAME])
    fill(committee, 8)
    before, old, whole = secrets(committee), chunks(committee), getattr(PoolStore, place)

    def full(store: PoolStore, *given: object) -> None:
        (_no_room if store.kind["party"] == 1 else whole)(store, *given)

    with monkeypatch.context() as patch:
        patch.setattr(PoolStore, place, full)
        with pytest.raises(
            PoolCannotGrow, match=rf"pool {POOL} of the new epoch: party 1: .*No space left on device: the old epoch goes on; make room"
        ):
            held(committee)
    assert {Change.last(committee, party).standing.stage for party in range(3)} == {Stage.REFUSED}  # type: ignore[union-attr]
    assert chunks(committee) == old and secrets(committee) == before
    assert not list(committee.folder.rglob("epoch-*")) and decrypt(committee, tmp_path) == [1, 0, 3]


def test_a_change_that_was_committed_keeps_its_pools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A party died after its commit: the pools are of its epoch, and the others come to theirs."""
    committee = with_keys(tmp_path, "rep-field", 3, [NAME])
    fill(committee, 8)
    _dies(committee, monkeypatch, "epoch/switched")
    api.epoch_commit(committee)
    api.epoch_erase(committee)
    assert [pools(committee, party) for party in range(3)] == [{POOL: (8, 0)}] * 3 and len(chunks(committee)) == 3
    assert decrypt(committee, tmp_path) == [1, 0, 3]


# -- lists of pools --------------------------------------------------------------------------------------------------------

BAD: list[object] = [
    {}, 3, [3], [["a", [], 1]], [["a", [], 0, 1]], [["a", [], 1, 0]], [["a", [], 1 << 41, 1]], [["a", [], 1, 4097]], [[1, [], 1, 1]], [["a", [0], 1, 1]],
    [["a", [1, 0], 1, 1]], [["a", [0, 0], 1, 1]], [["a", [0, 3], 1, 1]], [["a", [[0], 1], 1, 1]], [["a", {}, True, 1]], [["a", [0, True], 1, 1]],
]  # fmt: skip


@pytest.mark.parametrize("said", BAD, ids=str)
def test_lists_of_pools_are_checked(said: object) -> None:
    committee = api.in_process_committee(3, "rep-field")
    good = hold._parsed(committee, 1, json.dumps([["a", [], 1, 1], ["a", [0, 2], 2, 4096]]).encode())
    assert good == {("a", ()): hold.Held("a", (), 1, 1), ("a", (0, 2)): hold.Held("a", (0, 2), 2, 4096)}
    for data in (json.dumps(said).encode(), b"{"):
        with pytest.raises(EpochError, match="party 1 sent something that is no list of its pools"):
            hold._parsed(committee, 1, data)


def test_no_pools_of_groups_of_malicious_parties() -> None:
    with pytest.raises(EpochError, match="no list of its pools"):
        hold._parsed(api.in_process_committee(3, "mal-rep-field"), 1, json.dumps([["a", [1, 2], 1, 1]]).encode())


def test_different_lists_are_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A party that shows each other one another list: they compare what follows."""
    committee = with_keys(tmp_path, "rep-field", 3, [NAME])
    fill(committee, 8)
    agreed: Callable[..., list[hold.Held]] = hold._agreed
    seen = list[int]()

    def other(*given: object) -> list[hold.Held]:
        seen.append(1)
        return agreed(*given)[: len(seen) % 2]

    monkeypatch.setattr(hold, "_agreed", other)
    with pytest.raises((KeyQuorumError, EngineError), match="pools to fill"):
        held(committee)
    assert {Change.last(committee, party).standing.stage for party in range(3)} == {Stage.REFUSED}  # type: ignore[union-attr]


def test_the_job(tmp_path: Path) -> None:
    assert "hold" not in api.refresh_shares_job(api.in_process_committee(3, "rep-field"))
    check_job({"kind": "refresh_shares", "hold": True})
    with pytest.raises(KeyQuorumError, match="no 'hold', or not as a bool"):
        check_job({"kind": "refresh_shares", "hold": 1})
    assert refresh.HOLD == "hold"
    committee = with_keys(tmp_path, "rep-field", 3, [NAME])

    def elsewhere(context: object) -> None:
        context.backend = object()  # type: ignore[attr-defined]
        hold.fill_held(context, [], "ab" * 16)  # type: ignore[arg-type]

    with pytest.raises(PoolError, match="pools need the embedded engine"):
        run_in_process(committee, elsewhere, timeout=20)
