"""A member whose keys are being passed on uses none of them before it knows the end."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest
from keyquorum import api
from keyquorum.fhe.lwe import TFHE_SETS
from keyquorum.model.committee import Committee
from keyquorum.model.epoch import NAME_DIGITS
from keyquorum.model.errors import EpochError
from keyquorum.model.plain import Json
from keyquorum.parties.epochs import Change, Record, committee_json
from keyquorum.parties.jobs import check_alone
from keyquorum.plans.epochs.refresh import held_keys
from keyquorum.plans.examine import examine_keys
from keyquorum.schemes import key_folder

from tests.plans.test_refresh import run, with_keys
from tests.schemes.test_tfhe import TINY

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
    with pytest.raises(EpochError, match="the change to epoch .* is unfinished"):
        run(old, {"kind": "refresh_shares"})
