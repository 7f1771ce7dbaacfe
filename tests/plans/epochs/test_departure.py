"""A member whose keys are being passed on uses none of them before it knows the end."""

from __future__ import annotations

import json
import secrets
from pathlib import Path

import pytest
from keyquorum import api
from keyquorum.fhe.lwe import TFHE_SETS
from keyquorum.model.committee import Committee
from keyquorum.model.epoch import NAME_DIGITS, Stage
from keyquorum.model.errors import EpochError
from keyquorum.model.plain import Json
from keyquorum.parties.epochs import Change, Record, committee_json
from keyquorum.parties.epochs import change as change_module
from keyquorum.parties.epochs import record as record_module
from keyquorum.parties.epochs.statements import signed
from keyquorum.parties.jobs import check_alone
from keyquorum.plans.epochs.orders import status
from keyquorum.plans.epochs.refresh import held_keys
from keyquorum.plans.examine import examine_keys
from keyquorum.schemes import key_folder
from keyquorum.schemes.subset_keys import load_key_as

from tests.parties.epochs.changes import Killed, killed_at
from tests.plans.test_refresh import run, with_keys
from tests.schemes.test_tfhe import TINY

from .reshared import reshared, secrets_of
from .test_prove import TOY, committee_with

UNKNOWN = "the keys are being passed on to new, and the end of this is not known here"


@pytest.fixture(autouse=True)
def _without_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)


def leave(old: Committee, new: Committee) -> Record:
    """Every member of a committee has the record of a resharing, and nothing else."""
    name = secrets.token_hex(NAME_DIGITS // 2)
    record = Record(name, 1, "", committee_json(old), committee_json(new), {"key": {"key_id": "ab" * 16, "sharing": name}})
    for party in range(old.size):
        Change.propose(old, party, record)
    return record


@pytest.mark.parametrize("ablated", [False, True], ids=["checked", "ablated"])
@pytest.mark.parametrize("work", ["prove", "encrypt"])
def test_no_job_uses_a_key_that_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: str, ablated: bool) -> None:
    """Each job refuses it before the party connects. Without the check it does not."""
    monkeypatch.setitem(TFHE_SETS, TINY.name, TINY)
    old = committee_with(tmp_path, "rep-field", 3, TOY) if work == "prove" else with_keys(tmp_path, "rep-field", 3, ["prf-aes128", TINY.name])
    jobs: dict[str, Json] = {
        "prove": {"kind": "epoch_prove", "key": "key"},
        "encrypt": {"kind": "toprf_encrypt", "key": "key", "tfhe": "key1"},
    }
    check_alone(old, 0, jobs[work])
    leave(old, api.init_after(tmp_path / "new", old))
    if ablated:
        monkeypatch.setattr(key_folder, "require_no_departure", lambda folder: None)
        check_alone(old, 0, jobs[work])
        return
    for party in range(3):
        with pytest.raises(EpochError, match=UNKNOWN):
            check_alone(old, party, jobs[work])


def test_a_key_that_leaves_is_passed_on_and_examined(tmp_path: Path) -> None:
    """What goes on with the change needs its keys, and doctor uses nothing of them."""
    old = with_keys(tmp_path, "rep-field", 3, ["lwe53-p16"])
    leave(old, api.init_after(tmp_path / "new", old))
    assert list(held_keys(old, 0)) == ["key"]
    assert all(finding.ok for finding in examine_keys(old, range(3)))
    for party in range(3):
        change = Change.last(old, party)
        assert change is not None and change.standing.stage == "proposed"
    with pytest.raises(EpochError, match=r"the change to epoch .* is unfinished"):
        run(old, {"kind": "refresh_shares"})


@pytest.mark.parametrize("ablated", [False, True], ids=["checked", "ablated"])
def test_a_lost_journal_does_not_bring_a_key_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ablated: bool) -> None:
    """In epoch 0 nothing but the records shows that there was a change. Without the check its keys are used, and another change begins."""
    old = with_keys(tmp_path, "rep-field", 3, ["lwe53-p16"])
    leave(old, api.init_after(tmp_path / "new", old))
    (old.party_folder(1) / "epochs.journal").unlink()
    folder = old.key_folder(1, "key")
    if ablated:
        for module in (record_module, change_module):
            monkeypatch.setattr(module, "require_journal", lambda folder: None)
        assert load_key_as(old, folder) and Change.recent(old, 1) == []
        return
    for use in (lambda: load_key_as(old, folder), lambda: Change.recent(old, 1), lambda: api.epoch_commit(old), lambda: status(old, 1)):
        with pytest.raises(EpochError, match=r"epochs\.journal: missing, and epochs beside it has records of changes"):
            use()


def test_a_crash_before_the_first_line_is_no_lost_journal(tmp_path: Path) -> None:
    old = with_keys(tmp_path, "rep-field", 3, ["lwe53-p16"])
    with pytest.raises(Killed), killed_at(0, passed := list[str]()):
        leave(old, api.init_after(tmp_path / "new", old))
    assert passed == ["epoch/recorded"] and list(old.party_folder(0).glob("epochs/*.json"))
    assert load_key_as(old, old.key_folder(0, "key")) and Change.recent(old, 0) == [] and status(old, 0)["unfinished"] is None


@pytest.mark.parametrize("ablated", [False, True], ids=["dropped", "ablated"])
def test_a_new_member_that_went_back_for_good_keeps_no_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ablated: bool) -> None:
    """A corrupt new member votes towards one other alone, and refuses towards all others. The one goes back, and its share, of the epoch that never was, must not outlive the refreshes of the old committee."""
    old = with_keys(tmp_path, "rep-field", 3, ["lwe53-p16"])
    new = api.init_after(tmp_path / "new", old)
    record = leave(old, new)
    joined = [Change.propose(new, party, record) for party in range(3)]
    for change in joined:
        (change.folder("key") / "share-0.kqs").write_bytes(b"new share")
        change.vote()
    share = new.key_folder(0, "key") / f"shares-{record.name}" / "share-0.kqs"
    for other in joined[1:]:
        joined[0].hear(other.show())
    assert joined[0].advance() == Stage.COMMITTED
    said = signed(record, new.identity_path(2), Stage.REFUSED, ())
    lie = json.dumps({"epoch": record.name, "statements": [said.to_json()]}).encode()
    joined[1].hear(lie)
    assert joined[1].advance() == Stage.GIVEN_UP
    if ablated:
        monkeypatch.setattr(Change, "_drop", lambda self: None)
    with pytest.raises(EpochError, match="signed both"):
        joined[0].hear(lie)
    assert joined[0].advance() == Stage.GONE_BACK and not joined[0].settled and share.exists()
    joined[0].hear(joined[1].show())
    assert joined[0].advance() == Stage.GONE_BACK and joined[0].settled
    assert share.exists() == ablated


def test_a_destroyed_new_committee_is_given_up(tmp_path: Path) -> None:
    """All of it is named, at all old members; its members come back afterwards. A part of it above t' is refused, and so is the whole together with an old member."""
    old = with_keys(tmp_path, "rep-field", 3, ["lwe53-p16"])
    new, truth = api.init_after(tmp_path / "new", old), secrets_of(old)
    record = leave(old, new)
    returned = Change.propose(new, 0, record)
    named: list[int | str] = [party.fingerprint[:16] for party in new.parties]
    for some in (named[:2], [*named, 0]):
        with pytest.raises(
            EpochError, match=r"more than a committee tolerates, so the others cannot give up: .* name all of a new committee that is"
        ):
            api.epoch_give_up(old, some)
    assert {change["stage"] for change in api.epoch_give_up(old, named, output=tmp_path / "old.said")} == {"given-up"}
    assert all(status(old, party)["unfinished"] is None for party in range(3)) and secrets_of(old) == truth
    assert load_key_as(old, old.key_folder(0, "key"))
    returned.hear((tmp_path / "old.said").read_bytes().splitlines()[0])
    assert returned.advance() == "given-up"
    reshared(old, second := api.init_after(tmp_path / "second", old))
    assert secrets_of(second) == truth
