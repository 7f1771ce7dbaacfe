"""What parties write into their audit logs of refreshes, tests, recoveries and resharings, in chains that verify."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from keyquorum import api
from keyquorum._engine import CheckError, ShareFile
from keyquorum.model.committee import Committee
from keyquorum.parties.audit.verify import verify
from keyquorum.schemes.holding import holding_of
from keyquorum.schemes.key_folder import load_key

from tests.plans.epochs.reshared import reshared
from tests.plans.epochs.test_prove import committee_with, proven
from tests.plans.epochs.test_recover import lose, recovered
from tests.plans.test_refresh import refreshed, with_keys

pytestmark = pytest.mark.filterwarnings("ignore::keyquorum.fhe.errors.SecurityWarning")


@pytest.fixture(autouse=True)
def _without_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)


def lines_of(committee: Committee, party: int) -> list[dict[str, Any]]:
    path = committee.party_folder(party) / "audit.jsonl"
    assert verify([path], committee.parties[party].fingerprint).unsigned == 0
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_refresh_and_a_recovery(tmp_path: Path) -> None:
    committee = with_keys(tmp_path, "rep-field", 3, ["lwe53-p16"])
    done = refreshed(committee)
    lose(committee, 1)
    assert recovered(committee, 1) == ["key"]
    key_id = load_key(committee.key_folder(0, "key")).key_id
    helper, lost = lines_of(committee, 0), lines_of(committee, 1)
    assert [line["state"] for line in helper] == ["proposed", "voted", "committed", "erased", "recovered"]
    assert [line["state"] for line in lost] == ["proposed", "voted", "committed", "erased", "recovered"], "of the day on which it was recovered"
    assert all(line["keys"] == {"key": key_id} and line["epoch"] == done["name"] for line in helper)
    assert helper[3]["bytes_erased"] == done["bytes_erased"] > 0 and lost[3]["bytes_erased"] == 0
    assert (helper[4]["recovered"], lost[4]["recovered"], lost[4]["result"]) == (1, 1, "recovered")
    assert helper[0]["checks"] == ["seeds compared"] and helper[4]["helpers"] == [0, 2]


def test_a_resharing(tmp_path: Path) -> None:
    old = with_keys(tmp_path, "rep-field", 3, ["lwe53-p16"])
    new = api.init_after(tmp_path / "new", old, protocol="shamir", parties=3)
    reshared(old, new, [0, 2])
    left, joined = lines_of(old, 0), lines_of(new, 2)
    assert [(line["state"], line["result"]) for line in left] == [("proposed", "open"), ("passed on", "moved"), ("erased", "old shares erased")]
    assert [(line["state"], line["result"]) for line in joined][:3] == [("proposed", "open"), ("voted", "open"), ("committed", "new epoch")]
    assert all((line["from"], line["to"], line["dealers"]) == (old.digest.hex(), new.digest.hex(), [0, 2]) for line in (*left, *joined))
    assert not (old.party_folder(1) / "audit.jsonl").exists()


def test_tests_of_shares(tmp_path: Path) -> None:
    """That fit, and that do not."""
    committee = committee_with(tmp_path, "rep-field", 3)
    assert proven(committee) == [1] * 3
    for party, part in ((0, 0), (1, 1)):  # a summand that both holders have wrong
        held, path = (
            holding_of(committee.key_folder(party, "key"), load_key(committee.key_folder(party, "key"))),
            committee.key_folder(party, "key") / "share-0.kqs",
        )
        header = held.share_header(party, 0)
        data = bytearray(ShareFile.read(str(path), header))
        at = part * (len(data) // 2)
        data[at] ^= 1
        path.unlink()
        ShareFile.write(str(path), header, bytes(data))
    with pytest.raises(CheckError):
        proven(committee)
    found = [(line["state"], line["result"], line["runs"], line["epoch"]) for line in lines_of(committee, 2)]
    assert found == [("proved", "fits", 1, ""), ("proved", "does not fit", 2, "")]
