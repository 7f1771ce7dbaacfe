"""Files of a refresh: new ones are read back before the vote, old ones and pools are erased, a new key of an old name is not, and a crash at any step has a cure."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from keyquorum import api
from keyquorum._engine import EngineError, ShareFile
from keyquorum.model import checkpoints
from keyquorum.model.committee import Committee
from keyquorum.model.errors import KeyFileError, KeyQuorumError
from keyquorum.parties import PartyContext, run_in_process
from keyquorum.parties.epochs import Change, Epoch, Record, committee_json, read_epoch
from keyquorum.parties.epochs import change as change_module
from keyquorum.parties.epochs.record import write_epoch
from keyquorum.parties.jobs import run_job
from keyquorum.plans import pools
from keyquorum.plans.epochs import refresh
from keyquorum.plans.epochs.orders import examine_epochs, status
from keyquorum.plans.epochs.refresh import check_stored, wipe_bytes
from keyquorum.plans.pools import pools_folder
from keyquorum.schemes.holding import holding_of, shares_in
from keyquorum.schemes.key_folder import load_key
from keyquorum.schemes.subset_shares import remove_others

from tests.parties.epochs.changes import NEW, OLD, Killed, bytes_below, committee_of, prepare, record_of, talk
from tests.plans.test_refresh import refreshed, run, secrets, with_keys, words_of

FILL = {"kind": "pool_fill", "parameters": "lwe64-p2", "rounding": "round_ltz_circuit", "width": 8, "levels": 2, "count": 8, "chunk": 8}


def _chunks(committee: Committee) -> list[Path]:
    return sorted(committee.folder.rglob("chunk-*.kqs"))


# -- H2: a new key of a name -----------------------------------------------------------------------------------------------


def test_an_erasure_spares_a_new_key_of_the_name(tmp_path: Path) -> None:
    """Also if it is repeated, and the status counts none of its files as old."""
    committee = committee_of(tmp_path)
    record = record_of(committee)
    changes = [prepare(committee, party, record) for party in range(3)]
    assert talk(changes) == ["committed"] * 3
    folder = committee.key_folder(0, "k")
    assert len(status(committee, 0)["unerased"]) == 3
    shutil.rmtree(folder)
    folder.mkdir()
    (folder / "key.json").write_text(json.dumps({"key_id": "cd" * 16}))
    (folder / "share-0.kqs").write_bytes(NEW)
    assert not status(committee, 0)["unerased"]
    api.epoch_erase(committee)
    api.epoch_erase(committee)
    assert (folder / "share-0.kqs").read_bytes() == NEW and bytes_below(committee.party_folder(1) / "keys", NEW) == 1


@pytest.mark.parametrize("ablated", [False, True], ids=["kept", "ablated"])
def test_a_change_that_was_refused_erases_no_key_without_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ablated: bool) -> None:
    """A member that refused to join drops what it got at every later command, in case a crash cut that off. A key that was made there since has the name, and its metadata are lost: its shares stay, so that a copy of the metadata brings it back."""
    old = committee_of(tmp_path)
    new, name = api.init_after(tmp_path / "new", old), "ef" * 16
    change = Change.propose(new, 0, Record(name, 1, "", committee_json(old), committee_json(new), {"k": {"key_id": "ab" * 16, "sharing": name}}))
    (change.folder("k") / "share-0.kqs").write_bytes(NEW)
    change.refuse()
    folder = new.key_folder(0, "k")
    assert not folder.exists()
    folder.mkdir(parents=True)
    (folder / "share-0.kqs").write_bytes(NEW)
    if ablated:
        monkeypatch.setattr(change_module, "has_shares", lambda folder: False)
    assert Change.unfinished(new, 0) is None and folder.exists() != ablated


@pytest.mark.parametrize("ablated", [False, True], ids=["erased", "ablated"])
def test_an_erasure_takes_what_a_recovery_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ablated: bool) -> None:
    """A recovery was killed, and the party got its key back from a backup: a share of the old epoch is in the folder in which keys are made."""
    committee = committee_of(tmp_path)
    making = committee.party_folder(0) / "making" / "k" / "0123456789abcdef" / "shares-x"
    making.mkdir(parents=True)
    (making / "share-0.kqs").write_bytes(OLD)
    record = record_of(committee)
    assert talk([prepare(committee, party, record) for party in range(3)]) == ["committed"] * 3
    if ablated:
        monkeypatch.setattr(change_module, "cut_off_files", lambda folder, keys: ())
    api.epoch_erase(committee)
    assert bytes_below(committee.folder, OLD) == int(ablated)


def test_no_key_is_made_with_a_name_of_the_epoch(tmp_path: Path) -> None:
    committee = with_keys(tmp_path, "rep-field", 3, ["lwe64-p2"])
    refreshed(committee)
    for party in range(3):
        shutil.rmtree(committee.key_folder(party, "key"))
    with pytest.raises((KeyQuorumError, EngineError), match="epoch 1 of this party has a key of this name: choose another name, or restore"):
        run(committee, api.keygen_job("key", "lwe64-p2"))
    assert not committee.key_folder(0, "key").exists()


# -- M3: jobs with shares compare epochs -----------------------------------------------------------------------------------


def _other_epoch(committee: Committee, party: int, key: str) -> None:
    """Lists a key at one party as one of epoch 1."""
    folder = committee.key_folder(party, key)
    held = {**holding_of(folder, load_key(folder)).to_json(), "epoch": 1, "sharing": "cd" * 16, "members": committee.digest.hex()}
    write_epoch(committee.party_folder(party), Epoch(1, "cd" * 16, committee.digest.hex(), {key: held}))
    shutil.copytree(folder, folder.parent / f"{key}-copy")
    (folder.parent / f"{key}-copy").rename(folder / f"shares-{'cd' * 16}")


def test_shares_for_subsets_compare_epochs(tmp_path: Path) -> None:
    committee = with_keys(tmp_path, "semi", 3, ["lwe64-p2"])
    _other_epoch(committee, 2, "key")
    with pytest.raises((KeyQuorumError, EngineError), match=r"epoch 0 here, 1 at party 2|epoch 1 here, 0 at party"):
        run(committee, {"kind": "share", "key": "key", "members": 2})


@pytest.mark.parametrize("key", ["key", "key1"])
def test_round_keys_compare_epochs_of_both_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    from keyquorum.fhe.lwe import TFHE_SETS
    from keyquorum.plans.round_keys import encrypt_job

    from tests.schemes.test_tfhe import TINY

    monkeypatch.setitem(TFHE_SETS, TINY.name, TINY)
    committee = with_keys(tmp_path, "rep-field", 3, ["prf-aes128", TINY.name])
    _other_epoch(committee, 2, key)

    def job(context: PartyContext) -> object:
        return encrypt_job(context, {"key": "key", "tfhe": "key1"})

    with pytest.raises((KeyQuorumError, EngineError), match=r"epoch 0 here, 1 at party 2|epoch 1 here, 0 at party"):
        run_in_process(committee, job, timeout=20)


# -- M4: before the vote ---------------------------------------------------------------------------------------------------


def _cut(path: Path, header: dict[str, object]) -> None:
    ShareFile.write(str(path), header, ShareFile.read(str(path), header)[:-8])


def _flip(path: Path, header: dict[str, object]) -> None:
    data = bytearray(path.read_bytes())
    data[-40] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(("protocol", "file"), [("rep-field", "share-0.kqs"), ("mal-rep-field", "mac-0.kqs")])
def test_files_are_read_back_before_the_vote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, file: str) -> None:
    """A file that is missing, damaged or too short: nobody votes, and the old shares are used again."""
    committee = with_keys(tmp_path, protocol, 3, ["lwe64-p2"])
    before, whole = secrets(committee), refresh.refresh_key
    spoils: list[Callable[[Path, dict[str, object]], None]] = [lambda path, header: path.unlink(), _flip]
    for spoil in [*spoils, _cut] if file.startswith("share") else spoils:

        def spoiled(old: object, key: Path, new_folder: Path, new: object, party: int, zeros: object, spoil: object = spoil) -> None:
            whole(old, key, new_folder, new, party, zeros)  # type: ignore[arg-type]
            if party == 1:
                spoil(new_folder / file, new.share_header(party, 0))  # type: ignore[attr-defined, operator]

        monkeypatch.setattr(refresh, "refresh_key", spoiled)
        with pytest.raises((KeyQuorumError, EngineError, OSError), match=f"{file}"):
            refreshed(committee)
        assert {Change.last(committee, party).standing.stage.value for party in range(3)} == {"refused"}  # type: ignore[union-attr]
    assert secrets(committee) == before
    monkeypatch.undo()
    refreshed(committee)
    holding = holding_of(committee.key_folder(0, "key"), load_key(committee.key_folder(0, "key")))
    check_stored(holding, shares_in(committee.key_folder(0, "key")), 0)


def test_an_old_share_without_its_origin_is_not_carried_on(tmp_path: Path) -> None:
    committee = with_keys(tmp_path, "mal-rep-field", 3, ["lwe64-p2"])
    path = committee.key_folder(2, "key") / "mac-0.kqs"
    path.unlink()
    with pytest.raises((KeyFileError, EngineError), match=r"mac-0\.kqs: missing: restore it from a backup"):
        refreshed(committee)
    assert all(read_epoch(committee.party_folder(party)).number == 0 for party in range(3))


# -- L1, L5: masks and copies ----------------------------------------------------------------------------------------------


def test_pools_of_another_epoch_are_listed_and_overwritten_and_others_stay(tmp_path: Path) -> None:
    committee = with_keys(tmp_path, "rep-field", 3, ["lwe64-p2"])
    run(committee, FILL)
    old = _chunks(committee)
    copies = [path.with_name("copy") for path in old]
    for path, copy in zip(old, copies, strict=True):
        copy.hardlink_to(path)
        copy.rename(tmp_path / f"copy-{path.parents[2].name}")
    kept = {path: (path.parent / "pool.json").read_bytes() for path in old}
    refreshed(committee)
    assert not _chunks(committee)
    for copy in tmp_path.glob("copy-*"):
        assert not any(copy.read_bytes()), "the bytes on the disk"
    run(committee, FILL)
    new = _chunks(committee)
    api.epoch_erase(committee)
    assert _chunks(committee) == new
    for path, listed in kept.items():  # of before a crash
        folder = path.parent.with_name("before")
        folder.mkdir()
        (folder / "pool.json").write_bytes(listed)
        (folder / path.name).write_bytes(b"masks")
        torn = path.parent.with_name("torn")
        torn.mkdir()
        (torn / path.name).write_bytes(b"masks")
    said = [line.text for line in examine_epochs(committee, [0]) if not line.ok]
    places = [pools_folder(committee, 0, "") / name for name in ("before", "torn")]
    assert said == [f"party 0: NOT ERASED: the pool {place} is of another epoch: keyquorum epoch erase" for place in places]
    api.epoch_erase(committee)
    assert _chunks(committee) == new and not list(committee.folder.rglob("before"))


def test_shares_for_subsets_that_are_replaced_are_overwritten(tmp_path: Path) -> None:
    folder = committee_of(tmp_path).key_folder(0, "k")
    (tmp_path / "copy").hardlink_to(folder / "lisss-0-1.kqs")
    remove_others(folder, None)
    assert not list(folder.glob("lisss-*")) and not any((tmp_path / "copy").read_bytes())


def test_copies_of_shares_are_wiped_also_after_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytes(bytearray(b"secret share"))
    wipe_bytes(data)
    assert data == bytes(12)
    committee = with_keys(tmp_path, "rep-field", 3, ["lwe64-p2"])
    seen = list[bytes]()

    class Fails:
        def refreshed(self, domain: str, label: bytes, shares: bytes) -> bytearray:
            seen.append(shares)
            assert any(shares)
            raise OSError("no memory")

    folder = committee.key_folder(0, "key")
    old = holding_of(folder, load_key(folder))
    with pytest.raises(OSError, match="no memory"):
        refresh.refresh_key(old, folder, tmp_path, old, 0, Fails())  # type: ignore[arg-type]
    assert not any(seen[0])


# -- M6: labels and crashes ------------------------------------------------------------------------------------------------


def test_shares_of_zero_of_two_vectors_and_of_two_keys_differ(tmp_path: Path) -> None:
    """Copies of one vector under two names, with one id, and two vectors of one key: what is added differs, in more than 9 words of 10."""
    committee = with_keys(tmp_path, "rep-field", 3, ["lwe64-p2"])
    folder = committee.key_folder(0, "key")
    vector = holding_of(folder, load_key(folder)).vectors[0]
    zero = bytes(2 * 8 * vector.length)

    def added(context: PartyContext) -> list[bytes]:
        zeros = context.session.zero_shares(committee.protocol, committee.threshold, context.seed)
        written = list[bytes]()

        class Logged:
            def refreshed(self, domain: str, label: bytes, shares: bytes) -> bytearray:
                written.append(bytes(zeros.refreshed(domain, label, zero)))
                return zeros.refreshed(domain, label, shares)

        for key in ("key", "other"):
            source = tmp_path / f"{context.party}" / key
            source.mkdir(parents=True)
            held = holding_of(committee.key_folder(context.party, "key"), load_key(committee.key_folder(context.party, "key")))
            held = held.__class__(**{**vars(held), "vectors": (vector, vector)})
            for index in range(2):
                ShareFile.write(str(source / f"share-{index}.kqs"), held.share_header(context.party, index), zero)
            target = source / "new"
            target.mkdir()
            refresh.refresh_key(held, source, target, held, context.party, Logged())  # type: ignore[arg-type]
        return written

    for written in run_in_process(committee, added, timeout=20):
        words = [np.frombuffer(data, "<u8") for data in written]
        assert len(words) == 4
        for i in range(4):
            assert all(np.mean(words[i] != words[j]) > 0.9 for j in range(i))


POINTS = ["refresh/written", "refresh/prepared", "epoch/switched", "epoch/committed/durable", "pools/dropped", "erase/overwritten"]


@pytest.mark.parametrize("point", POINTS)
def test_a_party_that_dies_in_a_refresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """Either the old epoch goes on at all, or an error names the cure, after which the new one does; no masks of before are left then."""
    committee = with_keys(tmp_path, "rep-field", 3, ["lwe64-p2"])
    before, old = secrets(committee), words_of(committee, 0)
    run(committee, FILL)
    died, drop = list[str](), pools.drop_pools

    def dies(name: str) -> None:
        if name == point and not died:
            died.append(name)
            raise Killed(name)

    def dropped(*given: object) -> None:
        drop(*given)  # type: ignore[arg-type]
        checkpoints.reached("pools/dropped")

    monkeypatch.setattr(Change, "refuse", lambda change: None)  # a dead party refuses nothing
    monkeypatch.setattr(refresh, "drop_pools", dropped)
    monkeypatch.setattr(checkpoints, "hook", dies)
    with pytest.raises((Killed, KeyQuorumError, EngineError)):
        run_in_process(committee, lambda context: run_job(context, api.refresh_shares_job(committee)), timeout=20)
    monkeypatch.undo()
    assert died == [point]
    committed = [read_epoch(committee.party_folder(party)).number for party in range(3)]
    if point.startswith("refresh/"):
        assert committed == [0, 0, 0] and secrets(committee) == before
        waiting = [party for party in range(3) if Change.last(committee, party).standing.stage == "proposed"]  # type: ignore[union-attr]
        if len(waiting) < 3:  # others voted before they heard of it
            with pytest.raises((KeyQuorumError, EngineError), match="keyquorum epoch commit, or keyquorum epoch give-up"):
                refreshed(committee)
            stages = {done["stage"] for done in api.epoch_commit(committee)}  # it hears who refused
            assert "given-up" in stages and stages <= {"given-up", "refused"}
        refreshed(committee)
    else:
        said = "\n".join(line.text for party in range(3) for line in examine_epochs(committee, [party]) if not line.ok)
        assert "keyquorum epoch commit" in said or "keyquorum epoch erase" in said
        assert {done["stage"] for done in api.epoch_commit(committee)} <= {"committed", "erased"}
        api.epoch_erase(committee)
    assert secrets(committee) == before and not np.array_equal(words_of(committee, 0), old)
    assert not _chunks(committee) and not any(status(committee, party)["unerased"] for party in range(3))
    assert [read_epoch(committee.party_folder(party)).number for party in range(3)] == [1, 1, 1]
