"""A standby: all keys go to a new committee, and the old one keeps its shares. Both have the key; what is counted is split; the standby passes the key on when the old committee is lost."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from keyquorum import api
from keyquorum._engine import EngineError
from keyquorum.model.committee import Committee
from keyquorum.model.errors import KeyFileError, KeyQuorumError, ParameterError, PolicyError
from keyquorum.parties import PartyContext, run_in_process
from keyquorum.parties.epochs import Change, read_epoch
from keyquorum.parties.epochs.record import Record, standbys
from keyquorum.parties.jobs import run_job
from keyquorum.parties.worker import run_party
from keyquorum.plans.epochs import prove, reshare
from keyquorum.plans.epochs.counts import counts_of, split
from keyquorum.plans.epochs.orders import examine_epochs, status
from keyquorum.schemes.counts import DECRYPTIONS, PROOFS, REFUSALS, SPLIT_FILE, claim_decryptions, note_split, noted_split, set_count
from keyquorum.schemes.key_folder import load_key

from tests.fhe.dealer import tiny
from tests.plans.test_refresh import refreshed, share_bytes, with_keys

from .reshared import reshared, secrets_of


@pytest.fixture(autouse=True)
def _without_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)


def counts(committee: Committee, party: int = 0) -> dict[str, int]:
    folder = committee.key_folder(party, "key")
    return counts_of(folder, load_key(folder))


@pytest.mark.parametrize(("protocol", "standby", "size"), [("semi", "mal-shamir", 5), ("rep-field", "semi", 2), ("mal-rep-field", "shamir", 3)])
def test_both_have_the_key_and_the_standby_brings_a_lost_one_back(tmp_path: Path, protocol: str, standby: str, size: int) -> None:
    """The old committee stays in its epoch, with the same shares, and refreshes them later. When its disks are lost, the standby passes the key on to a new committee of its kind."""
    old = with_keys(tmp_path, protocol, 3, ["lwe53-p16"])
    secret, shares = secrets_of(old), share_bytes(old)
    new = api.init_after(tmp_path / "standby", old, protocol=standby, parties=size)
    done = reshared(old, new, keep_old=True)
    assert done[0][0]["bytes_erased"] == 0
    assert secrets_of(old) == secrets_of(new) == secret and share_bytes(old) == shares
    assert all(read_epoch(old.party_folder(party)).number == 0 and Change.last(old, party) is None for party in range(3))
    record = Record.load(new.party_folder(0), done[0][0]["name"])
    assert record.kept and not record.roles.old and [each.data for each in standbys(old.party_folder(1))] == [record.data]
    said = [finding.text for finding in examine_epochs(old, [0])]
    assert any("STANDBY: the committee standby" in line and "they fall if either does" in line for line in said)
    assert status(old, 0)["standbys"][0]["digest"] == new.digest.hex()
    assert any("made by a committee that keeps its shares, committee: " in finding.text for finding in examine_epochs(new, [0]))
    if not old.authenticated:
        refreshed(old)
        assert secrets_of(old) == secrets_of(new) == secret
    shutil.rmtree(old.folder)
    third = api.init_after(tmp_path / "third", new, protocol=protocol, parties=3)
    reshared(new, third)
    assert secrets_of(third) == secret and not standbys(third.party_folder(0))


def test_what_is_counted_is_split(tmp_path: Path) -> None:
    """Of a key whose policy allows 90 more decryptions each committee has 45. Together they never have more than one would have alone, whatever was used."""
    old = api.init(tmp_path / "c", 3, "rep-field", base_ot="curve25519")
    job = api.keygen_job("key", tiny("ckks"), relin=False, policy=api.FloodPolicy(bits=1, decryptions=100, noise_bits=8))
    run_in_process(old, lambda context: run_job(context, job), timeout=60)
    for party in range(3):
        folder = old.key_folder(party, "key")
        set_count(folder, load_key(folder), 10 - (party == 2))  # a crash between two writes
    new = api.init_after(tmp_path / "standby", old)
    reshared(old, new, keep_old=True)
    here, there = [counts(old, party) for party in range(3)], [counts(new, party) for party in range(3)]
    assert {each[DECRYPTIONS] for each in (*here, *there)} == {55}
    assert all(each[PROOFS] == each[REFUSALS] == 8 for each in (*here, *there))
    info = load_key(old.key_folder(0, "key"))
    for used in range(102):
        mine, theirs = split(info, {**here[0], DECRYPTIONS: used})
        assert max(0, 100 - mine[DECRYPTIONS]) + max(0, 100 - theirs[DECRYPTIONS]) <= max(0, 100 - used)


class CutOff(Exception):
    """A party died."""


def counted(committee: Committee) -> None:
    """A decryption and a test of shares are counted, of all parties."""

    def party(context: PartyContext) -> None:
        folder = committee.key_folder(context.party, "key")
        info = load_key(folder)
        claim_decryptions(context, folder, info, 1)
        prove._agreed(context, info, prove.proofs_run(folder, info), noted_split(folder, info).get(PROOFS, 0))

    run_in_process(committee, party, timeout=60)


@pytest.mark.parametrize(("protocol", "standby"), [("semi", "shamir"), ("mal-rep-field", "rep-field")])
@pytest.mark.parametrize(("place", "used"), [("note_split", 0), ("note_standby", 0), ("claim_split", 50)])
def test_one_crash_at_the_split_leaves_the_old_key_usable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, standby: str, place: str, used: int
) -> None:
    """Whatever one party alone wrote: nobody counts before all have noted it, and who did not count then knows by its note that the others may. So a decryption and a second try succeed."""
    old = api.init(tmp_path / "c", 3, protocol, base_ot="curve25519")
    job = api.keygen_job("key", tiny("ckks"), relin=False, policy=api.FloodPolicy(bits=1, decryptions=100, noise_bits=8))
    run_in_process(old, lambda context: run_job(context, job), timeout=60)
    right = getattr(reshare, place)

    def failing(folder: Path, *given: object) -> None:
        one_alone = folder.is_relative_to(old.party_folder(0))
        if one_alone == (place != "claim_split"):
            raise CutOff
        right(folder, *given)

    monkeypatch.setattr(reshare, place, failing)
    with pytest.raises((CutOff, KeyQuorumError, EngineError)):
        reshared(old, api.init_after(tmp_path / "first", old, protocol=standby, parties=3), keep_old=True)
    monkeypatch.setattr(reshare, place, right)
    assert [counts(old, party)[DECRYPTIONS] for party in range(3)] == [used, 0, 0]
    counted(old)
    assert {counts(old, party)[DECRYPTIONS] for party in range(3)} == {used + 1}
    new = api.init_after(tmp_path / "standby", old, protocol=standby, parties=3)
    reshared(old, new, keep_old=True)
    half = used + 1 + (100 - used - 1) // 2
    assert {counts(old, party)[DECRYPTIONS] for party in range(3)} == {half} and counts(new)[DECRYPTIONS] >= 100 - half + used
    counted(old)


def test_a_try_right_after_a_crash_at_the_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a decryption in between. What one party alone says counts no more than before."""
    old = api.init(tmp_path / "c", 3, "semi", base_ot="curve25519")
    job = api.keygen_job("key", tiny("ckks"), relin=False, policy=api.FloodPolicy(bits=1, decryptions=100, noise_bits=8))
    run_in_process(old, lambda context: run_job(context, job), timeout=60)
    folders = [old.key_folder(party, "key") for party in range(3)]
    info = load_key(folders[0])
    for folder in folders[:2]:
        note_split(folder, info, {DECRYPTIONS: 50})
    set_count(folders[0], info, 50)
    with pytest.raises((PolicyError, EngineError), match="only 0 are confirmed by another party"):
        reshared(old, api.init_after(tmp_path / "first", old, protocol="shamir", parties=3), keep_old=True)
    with pytest.raises((PolicyError, EngineError), match="only 0 are confirmed by another party"):
        counted(old)
    note_split(folders[2], info, {DECRYPTIONS: 50})
    reshared(old, api.init_after(tmp_path / "standby", old, protocol="shamir", parties=3), keep_old=True)
    assert {counts(old, party)[DECRYPTIONS] for party in range(3)} == {75}
    (folders[1] / SPLIT_FILE).write_text("{}")
    with pytest.raises(KeyFileError, match=r"split.json is damaged"):
        noted_split(folders[1], info)


def test_keys_of_prfs_have_no_standby(tmp_path: Path) -> None:
    old = with_keys(tmp_path, "rep-field", 3, ["prf-aes128"])
    new = api.init_after(tmp_path / "standby", old)
    with pytest.raises(PolicyError, match="a second committee would count its evaluations apart"):
        reshared(old, new, keep_old=True)
    assert not standbys(old.party_folder(0)) and read_epoch(new.party_folder(0)).number == 0


@pytest.mark.parametrize("kept", [True, False])
def test_each_operator_agrees(tmp_path: Path, kept: bool) -> None:
    """A job that was changed on its way neither leaves shares that were to be erased, nor erases those that were to stay."""
    old = with_keys(tmp_path, "rep-field", 3, ["lwe53-p16"])
    new = api.init_after(tmp_path / "standby", old)
    job = api.reshare_job(old, new, keep_old=kept)
    for committee, other in ((old, {"to": new.digest.hex()}), (new, {"old": old.digest.hex()})):
        with pytest.raises(
            ParameterError, match="give --keep-old if you agree" if kept else "--keep-old: by the job the old committee erases its shares"
        ):
            run_party(committee.folder, 0, job, keep_old=not kept, **other)  # type: ignore[arg-type]


@pytest.mark.parametrize("place", ["check_stored", "note_standby"])
def test_a_standby_that_fails_leaves_the_old_committee_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """Before the vote. A second try succeeds. A note of the first one may stay: nobody knows what a new member kept."""
    old = with_keys(tmp_path, "rep-field", 3, ["lwe53-p16"])
    shares, right = share_bytes(old), getattr(reshare, place)
    new = api.init_after(tmp_path / "standby", old)

    def failing(*given: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(reshare, place, failing)
    with pytest.raises((OSError, KeyQuorumError, EngineError)):
        reshared(old, new, keep_old=True)
    assert share_bytes(old) == shares and not any(read_epoch(new.party_folder(party)).number for party in range(3))
    monkeypatch.setattr(reshare, place, right)
    reshared(old, new, keep_old=True)
    assert secrets_of(new) == secrets_of(old) and len(standbys(old.party_folder(0))) == 1
