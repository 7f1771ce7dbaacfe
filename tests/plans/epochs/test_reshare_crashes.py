"""A resharing in which a party dies at any checkpoint: with the statements of the others each change ends, nothing is lost, and old shares go when the new ones hold."""

from __future__ import annotations

import shutil
import threading
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
from keyquorum import api
from keyquorum._engine import EngineError
from keyquorum.model import checkpoints
from keyquorum.model.committee import Committee
from keyquorum.model.errors import EpochError, KeyQuorumError, MovedError, PartyError
from keyquorum.parties import run_processes
from keyquorum.parties.epochs import Change, read_epoch
from keyquorum.plans.epochs import reshare
from keyquorum.plans.epochs.orders import examine_epochs, status
from keyquorum.plans.epochs.reshare import bridge
from keyquorum.plans.examine import examine_keys
from keyquorum.schemes.subset_keys import load_key_as

from tests.parties.epochs.changes import Killed
from tests.plans.test_refresh import public_files, refreshed, share_bytes, with_keys

from .reshared import has_any, reshared, secrets_of
from .test_recover import lose, recovered

POINTS = [
    "epoch/recorded", "epoch/proposed/half", "epoch/proposed/durable", "reshare/written", "reshare/stored", "reshare/prepared", "epoch/stored", "epoch/voted/half", "epoch/voted/durable",
    "epoch/heard/durable", "epoch/votes", "epoch/switched", "epoch/committed/half", "epoch/committed/durable", "erase/overwritten", "erase/unlinked", "epoch/erased/half", "epoch/erased/durable",
]  # fmt: skip
ROLES = ["an old member", "a new member"]


@pytest.fixture(autouse=True)
def _without_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)


class Deaths:
    """Kills the first party of a role that reaches a checkpoint: nothing of its code runs any more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, point: str, role: str) -> None:
        self.point, self.is_old, self.died = point, role == ROLES[0], list[int]()
        self._runs = dict[int, reshare._Run]()
        begin, refuse = reshare._Run.__init__, Change.refuse

        def begun(run: reshare._Run, *options: Any) -> None:
            begin(run, *options)
            self._runs[threading.get_ident()] = run

        def refused(change: Change) -> None:
            if threading.get_ident() not in self.died:
                refuse(change)

        monkeypatch.setattr(reshare._Run, "__init__", begun)
        monkeypatch.setattr(Change, "refuse", refused)
        monkeypatch.setattr(checkpoints, "hook", self._hook)

    @property
    def number(self) -> int:
        """The number of the dead party in its committee."""
        return self._runs[self.died[0]].number

    def _hook(self, name: str) -> None:
        me = threading.get_ident()
        if name == self.point and not self.died and me in self._runs and self._runs[me].is_old == self.is_old:
            self.died.append(me)
            raise Killed(name)


def cure(folder: Path, *committees: Committee) -> None:
    """Statements go around by files, as between hosts."""
    for _ in range(2):
        for committee in committees:
            files = [path for path in folder.glob("*.said") if path.stem != committee.folder.name]
            with suppress(EpochError):  # nothing is under way there, or a party has yet to hear something
                api.epoch_commit(committee, files, folder / f"{committee.folder.name}.said")


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("point", POINTS)
def test_a_party_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str, role: str) -> None:
    old = with_keys(tmp_path, "rep-field", 3, ["lwe53-p16"])
    new = api.init_after(tmp_path / "new", old, protocol="shamir")
    truth, public, shares = secrets_of(old), public_files(old), share_bytes(old)
    deaths = Deaths(monkeypatch, point, role)
    with suppress(Killed, KeyQuorumError, EngineError):
        reshared(old, new, timeout=20)
    monkeypatch.undo()
    monkeypatch.setattr("os.fsync", lambda _: None)
    if not deaths.died:
        assert (point, role) in UNREACHED
        return
    for party in range(3):
        change = Change.last(old, party)
        if change is not None and change.standing.stage == "proposed":
            moved = read_epoch(old.party_folder(party)).number == 1
            assert not moved or (role == ROLES[0] and point in ("epoch/switched", "epoch/committed/half")), "it died between this file and its line"
            said = (
                r"moved: since epoch 1 the committee new" if moved else r"the keys are being passed on to new, and the end of this is not known here"
            )
            with pytest.raises(EpochError, match=said):
                load_key_as(old, old.key_folder(party, "key"))
    cure(tmp_path, old, new)
    numbers = {read_epoch(new.party_folder(party)).number for party in range(3)}
    assert len(numbers) == 1, "all new members are in one epoch"
    if numbers == {0}:
        assert {read_epoch(old.party_folder(party)).number for party in range(3)} == {0}
        assert all(load_key_as(old, old.key_folder(party, "key")) for party in range(3))
        assert secrets_of(old) == truth and not any(new.folder.rglob("share-*.kqs")) and not any(new.folder.rglob("key.json"))
        assert all(status(old, party)["unfinished"] is None for party in range(3))
        reshared(old, new)
    else:
        said = [tmp_path / f"{name}.said" for name in ("committee", "new")]
        api.epoch_erase(old, [said[1]])
        api.epoch_erase(new, [said[0]])
    assert (secrets_of(new), public_files(new)) == (truth, public)
    assert not has_any(old.folder, shares) and not list(old.folder.rglob("share-*.kqs"))
    findings = [*examine_keys(new, range(3)), *examine_epochs(new, range(3)), *examine_epochs(old, range(3))]
    assert all(finding.ok for finding in findings), [finding.text for finding in findings if not finding.ok]
    assert refreshed(new)["epoch"] == 2 and secrets_of(new) == truth


UNREACHED = {
    *((point, ROLES[0]) for point in ("reshare/written", "reshare/stored", "epoch/stored", "epoch/voted/half", "epoch/voted/durable")),
    *((point, ROLES[1]) for point in ("erase/overwritten", "erase/unlinked")),
}
"""What a role does not do: old members store and vote for nothing, and new ones have nothing to erase."""


def test_a_new_member_that_never_returns_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It died when it had voted, before anybody heard it. Members of both committees name it, the old ones by its fingerprint, and the old epoch goes on."""
    old = with_keys(tmp_path, "rep-field", 3, ["lwe53-p16"])
    new = api.init_after(tmp_path / "new", old)
    truth = secrets_of(old)
    deaths = Deaths(monkeypatch, "epoch/voted/durable", ROLES[1])
    with pytest.raises((Killed, KeyQuorumError, EngineError)):
        reshared(old, new, timeout=20)
    monkeypatch.undo()
    lost = deaths.number
    new.party_folder(lost).rename(tmp_path / "gone")
    who = new.parties[lost].fingerprint
    with pytest.raises(EpochError, match="--lost 0123456789abcdef: give the number of a party, or 16 digits or more"):
        api.epoch_give_up(old, ["0123456789abcdef"])
    for _ in range(2):
        for committee, named in ((new, lost), (old, who[:16])):
            files = [path for path in tmp_path.glob("*.said") if path.stem != committee.folder.name]
            with suppress(EpochError):
                api.epoch_give_up(committee, [named], files, tmp_path / f"{committee.folder.name}.said")
    assert all(status(old, party)["unfinished"] is None for party in range(3)) and secrets_of(old) == truth
    assert not any(new.folder.rglob("share-*.kqs"))
    reshared(old, api.init_after(tmp_path / "second", old))
    assert secrets_of(Committee.load(tmp_path / "second")) == truth


def test_a_resharing_that_is_run_again_brings_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new member died before its vote, when another one had voted. Neither that one nor the old members know the refusal before the next resharing begins, and nobody runs another command."""
    old = with_keys(tmp_path, "rep-field", 3, ["lwe53-p16"])
    new = api.init_after(tmp_path / "new", old)
    truth, prepared = secrets_of(old), threading.Barrier(3)
    vote = Change.vote

    def voted(change: Change) -> None:
        prepared.wait(20)  # else the end of one session would let others refuse
        if change._party == 2:
            raise Killed("before its vote")
        vote(change)

    monkeypatch.setattr(Change, "vote", voted)
    with pytest.raises((Killed, KeyQuorumError, EngineError)):
        reshared(old, new, timeout=20)
    monkeypatch.undo()
    monkeypatch.setattr("os.fsync", lambda _: None)
    stages = [change.standing.stage.value for party in range(3) if (change := Change.last(new, party)) is not None]
    assert stages == ["voted", "voted", "proposed"]
    reshared(old, new)
    assert secrets_of(new) == truth and not list(old.folder.rglob("share-*.kqs"))
    assert all(finding.ok for finding in (*examine_epochs(old, range(3)), *examine_epochs(new, range(3))))


@pytest.mark.parametrize("ablated", [False, True], ids=["told", "ablated"])
@pytest.mark.parametrize("onwards", ["refreshed", "passed on"])
def test_a_member_that_missed_the_end_hears_it_after_the_next_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, onwards: str, ablated: bool
) -> None:
    """The new committee goes on without it, and is in a later epoch when its statements are brought. Where they are of recent changes alone, the old shares stay for ever."""
    old = with_keys(tmp_path, "rep-field", 3, ["lwe53-p16"])
    new, third = api.init_after(tmp_path / "new", old), api.init(tmp_path / "third", 3, "rep-field")
    truth, shares = secrets_of(old), share_bytes(old)
    deaths = Deaths(monkeypatch, "epoch/votes", ROLES[0])
    with pytest.raises((Killed, KeyQuorumError, EngineError)):
        reshared(old, new, timeout=20)
    monkeypatch.undo()
    monkeypatch.setattr("os.fsync", lambda _: None)
    with suppress(EpochError):
        api.epoch_commit(new)
    last = new
    if onwards == "refreshed":
        assert refreshed(new)["epoch"] == 2
    else:
        reshared(new, third)
        last = third
    assert status(old, deaths.number)["unfinished"] is not None and has_any(old.folder, shares)
    if ablated:
        monkeypatch.setattr(Change, "passed_on", lambda *_: [])
    cure(tmp_path, old, new)
    with pytest.raises(EpochError) if ablated else nullcontext():
        api.epoch_erase(old, [tmp_path / "new.said"])
    assert has_any(old.folder, shares) == ablated
    assert secrets_of(last) == truth
    if not ablated:
        assert all(finding.ok for finding in (*examine_epochs(old, range(3)), *examine_epochs(last, range(3))))


def test_a_killed_member_is_named(tmp_path: Path) -> None:
    """As processes: the old members keep what they have, and the resharing works when it is run again."""
    old = with_keys(tmp_path, "semi2k", 2, ["lwe64-p2"])
    new = api.init_after(tmp_path / "new", old)
    truth, between = secrets_of(old), bridge(old, new)
    with pytest.raises(PartyError, match="party 3 was killed by signal 9"):
        run_processes(between, api.reshare_job(old, new), on_start=lambda processes: processes[3].kill())
    assert secrets_of(old) == truth and {status(old, party)["number"] for party in range(2)} == {0}
    reshared(old, new)
    assert secrets_of(new) == truth


def test_an_old_member_with_a_damaged_share_deals_nothing(tmp_path: Path) -> None:
    """The new members refuse, and the old committee goes on once the share is back."""
    old = with_keys(tmp_path, "shamir", 3, ["lwe53-p16"])
    new = api.init_after(tmp_path / "new", old)
    path = old.key_folder(1, "key") / "share-0.kqs"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises((KeyQuorumError, EngineError), match=r"share-0\.kqs"):
        reshared(old, new, timeout=20)
    assert {Change.last(new, party).standing.stage.value for party in range(3)} == {"refused"}  # type: ignore[union-attr]
    assert all(Change.last(old, party) is None for party in range(3))
    path.write_bytes(whole)
    truth = secrets_of(old)
    reshared(old, new)
    assert secrets_of(new) == truth


def test_members_in_other_epochs_do_not_pass_keys_on(tmp_path: Path) -> None:
    old = with_keys(tmp_path, "shamir", 3, ["lwe53-p16", "lwe53-p16"])
    new = api.init_after(tmp_path / "new", old)
    folder = old.key_folder(2, "key1")
    folder.rename(tmp_path / "away")
    with pytest.raises((EpochError, EngineError), match="party 0 of committee and party 2 of committee are in other epochs, or hold other keys"):
        reshared(old, new, timeout=20)
    reshared(old, new, [0, 1])
    assert sorted(path.name for path in (new.party_folder(2) / "keys").iterdir()) == ["key", "key1"]


def test_a_recovery_after_a_resharing(tmp_path: Path) -> None:
    """The record of the epoch before is with the old members alone, and is not needed."""
    old = with_keys(tmp_path, "rep-field", 3, ["lwe53-p16"])
    refreshed(old)
    new = api.init_after(tmp_path / "new", old, protocol="shamir")
    reshared(old, new)
    truth = secrets_of(new)
    kept = lose(new, 1)
    assert recovered(new, 1) == ["key"]
    share = next(name for name in kept if name.endswith("share-0.kqs"))
    assert (new.party_folder(1) / share).read_bytes() == kept[share] and secrets_of(new) == truth
    shutil.rmtree(new.key_folder(0, "key"))
    assert recovered(new, 0) == ["key"] and refreshed(new)["epoch"] == 3
    with pytest.raises(MovedError, match="since epoch 2 the committee new holds this key"):
        reshared(old, api.init_after(tmp_path / "again", old))
