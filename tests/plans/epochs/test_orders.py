"""What operators order about epochs: on one host, and between hosts by files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from keyquorum import api
from keyquorum.model.committee import Committee
from keyquorum.model.errors import EpochError
from keyquorum.parties.doctor import Finding
from keyquorum.parties.epochs import Change, erasure
from keyquorum.plans.epochs.orders import examine_epochs

from tests.parties.epochs.changes import OLD, bytes_below, committee_of, prepare, record_of, talk


def _hosts(folder: Path) -> list[Committee]:
    """A change for which all have voted, with each party on a host of its own."""
    committee = committee_of(folder)
    record = record_of(committee)
    for party in range(3):
        prepare(committee, party, record)
    return _apart(committee)


def _apart(committee: Committee) -> list[Committee]:
    """The same parties on three hosts."""
    hosts, folder = [], committee.folder.parent
    for party in range(3):
        shutil.copytree(committee.folder, folder / f"host-{party}")
        for other in {0, 1, 2} - {party}:
            shutil.rmtree(folder / f"host-{party}" / f"party-{other}")
        hosts.append(Committee.load(folder / f"host-{party}"))
    return hosts


def _said(found: list[Finding]) -> str:
    return "\n".join(f"{line.ok} {line.text}" for line in found)


def test_hosts_commit_and_erase_by_files(tmp_path: Path) -> None:
    hosts = _hosts(tmp_path)
    files = [tmp_path / f"{i}.json" for i in range(3)]
    for number, host in enumerate(hosts):
        assert api.epoch_commit(host, output=files[number])[0]["stage"] == "voted"
    ((unfinished,),) = (api.epoch_status(hosts[0]),)
    assert unfinished["number"] == 0 and unfinished["unfinished"]["votes_missing"] == ["party 1", "party 2"] and not unfinished["unerased"]
    assert "False party 0: UNFINISHED" in _said(list(examine_epochs(hosts[0], [0])))
    for number, host in enumerate(hosts):
        assert api.epoch_commit(host, files, files[number])[0]["stage"] == "committed"
    found = api.epoch_status(hosts[0])[0]
    assert (found["number"], found["unfinished"], len(found["unerased"])) == (1, None, 3) and not found["backups_before"]
    assert any("NOT ERASED" in line for line in api.epoch_lines(found))
    with pytest.raises(EpochError, match="not all new members have committed"):
        api.epoch_erase(hosts[0])
    assert api.epoch_erase(hosts[0], files)[0]["bytes"] == 3 * len(OLD) and bytes_below(hosts[0].folder, OLD) == 0
    assert _said(list(examine_epochs(hosts[0], [0]))).startswith("True party 0: epoch 1")
    found = api.epoch_status(hosts[0])[0]
    assert not found["unerased"] and found["backups_before"]
    assert [line["state"] for line in api.epoch_history(hosts[0]) if line["who"] == "party 0"] == ["proposed", "voted", "committed", "erased"]
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(EpochError, match=r"bad\.json: not statements"):
        api.epoch_erase(hosts[1], [*files, tmp_path / "bad.json"])
    assert bytes_below(hosts[1].folder, OLD) == 0, "what is wrong keeps nothing"


def test_two_hosts_give_up_a_lost_third(tmp_path: Path) -> None:
    hosts = _hosts(tmp_path)
    files = [tmp_path / "0.json", tmp_path / "1.json"]
    assert api.epoch_give_up(hosts[0], [2], output=files[0])[0]["stage"] == "frozen"
    assert api.epoch_give_up(hosts[1], [2], files[:1], files[1])[0]["stage"] == "given-up"
    assert api.epoch_commit(hosts[0], files[1:])[0]["stage"] == "given-up"
    assert api.epoch_commit(hosts[2], files)[0]["stage"] == "given-up"
    assert all(api.epoch_status(host)[0]["number"] == 0 and bytes_below(host.folder, OLD) == 3 for host in hosts)


def test_a_vote_that_comes_with_the_order_to_give_up_ends_the_change(tmp_path: Path) -> None:
    hosts = _hosts(tmp_path)
    files = [tmp_path / f"{i}.json" for i in range(3)]
    for number, host in enumerate(hosts):
        api.epoch_commit(host, output=files[number])
    with pytest.raises(EpochError, match="the votes of the lost parties are here"):
        api.epoch_give_up(hosts[1], [2], files[2:], files[1])
    assert api.epoch_give_up(hosts[0], [2], files[1:])[0]["stage"] == "committed"
    assert len(json.loads(files[1].read_text())["statements"]) == 2, "written all the same"


def test_one_file_that_cannot_be_erased_keeps_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of this party nor of another one; the error names it, and the order may be repeated."""
    committee = committee_of(tmp_path)
    record = record_of(committee)
    assert talk([prepare(committee, party, record) for party in range(3)]) == ["committed"] * 3
    stuck, overwrite = committee.key_folder(0, "k") / "share-0.kqs", erasure._overwrite

    def fails(path: Path) -> int:
        if path == stuck:
            raise PermissionError(13, "Permission denied")
        return overwrite(path)

    with monkeypatch.context() as patched:
        patched.setattr(erasure, "_overwrite", fails)
        with pytest.raises(EpochError, match=r"share-0\.kqs: not erased \(Permission denied\), and all others are"):
            api.epoch_erase(committee)
    assert stuck.read_bytes() == OLD and bytes_below(committee.folder, OLD) == 1
    assert len(api.epoch_erase(committee)) == 3 and bytes_below(committee.folder, OLD) == 0


def test_a_host_shows_all_changes_of_which_others_may_not_know_the_end(tmp_path: Path) -> None:
    """A party refuses two changes in a row; another one voted for the first, and never heard of the second."""
    committee = committee_of(tmp_path)
    record = record_of(committee)
    Change.propose(committee, 0, record).refuse()
    for party in (1, 2):
        prepare(committee, party, record)
    hosts = _apart(committee)
    Change.propose(hosts[0], 0, record_of(hosts[0])).refuse()
    file = tmp_path / "0.json"
    assert [change["stage"] for change in api.epoch_commit(hosts[0], output=file)] == ["refused", "refused"]
    assert [change["stage"] for change in api.epoch_commit(hosts[1], [file])] == ["given-up"]
    other = tmp_path / "other.json"
    other.write_bytes(file.read_bytes().splitlines()[1])
    with pytest.raises(EpochError, match=r"other\.json: statements of the change to epoch .*, and this is"):
        api.epoch_commit(hosts[2], [other])


def test_without_a_change_there_is_nothing_to_order(tmp_path: Path) -> None:
    committee = committee_of(tmp_path)
    for order in (api.epoch_commit, api.epoch_erase):
        with pytest.raises(EpochError, match="no change of an epoch"):
            order(committee)
    assert api.epoch_history(committee) == []
