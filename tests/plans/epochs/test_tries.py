"""Tries to make a vector that the old committee of a resharing does not have: when they are counted and by whom, what ends them for nothing, and what is left for recoveries."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from keyquorum import api
from keyquorum._engine import EngineError
from keyquorum.fhe.errors import SecurityWarning
from keyquorum.model import checkpoints
from keyquorum.model.committee import Committee
from keyquorum.model.errors import PolicyError
from keyquorum.parties.jobs import check_alone, run_job
from keyquorum.plans.epochs import tries
from keyquorum.plans.epochs.origins import SEMI_HONEST
from keyquorum.plans.epochs.prove import proofs_run, raise_count, set_proofs
from keyquorum.plans.epochs.reshare import bridge
from keyquorum.plans.epochs.tries import MOST_TRIES
from keyquorum.schemes.key_folder import load_key
from keyquorum.sharing.numbers import lift

from tests.parties.epochs.changes import Killed
from tests.plans.corrupted import BreaksOff, Ends, Other, ends_of
from tests.plans.epochs.test_prove import committee_with, proven
from tests.plans.epochs.test_recover import four, lose, recovered
from tests.plans.epochs.test_reshare_macs import secrets
from tests.plans.test_own_primes import small
from tests.plans.test_refresh import with_keys

from .reshared import reshared

pytestmark = pytest.mark.filterwarnings("ignore::keyquorum.fhe.errors.SecurityWarning")


@pytest.fixture(autouse=True)
def _without_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)


def counts(committee: Committee, key: str = "key") -> list[int]:
    folders = [committee.key_folder(party, key) for party in range(committee.size)]
    return [proofs_run(folder, load_key(folder)) for folder in folders]


def set_counts(committee: Committee, runs: Sequence[int]) -> None:
    for party, count in enumerate(runs):
        folder = committee.key_folder(party, "key")
        set_proofs(folder, load_key(folder), count)


def broken_off(old: Committee, place: str, liar: int = 0, dealers: Sequence[int] | None = None, keep_old: bool = False) -> Ends:
    """A resharing to a new committee with MACs that a party ends before it confirms ``place``."""
    number = len(list(old.folder.parent.glob("try-*")))
    new = api.init_after(old.folder.parent / f"try-{number}", old, protocol="mascot", parties=2)
    between, job = bridge(old, new, dealers), api.reshare_job(old, new, dealers, SEMI_HONEST, keep_old)
    for party in range(between.size):
        check_alone(between, party, job)

    def session(raw: Any) -> Any:
        def compare(what: str, data: bytes) -> None:
            if what == place:
                raise BreaksOff("as the adversary wants it")
            raw.compare(what, data)

        return Other(raw, compare=compare) if raw.party == liar else raw

    ends = ends_of(between, lambda context: run_job(context, job), session=session, patience=30)
    assert all(isinstance(end, Exception) for end in ends)
    return ends


# -- when a try is counted --------------------------------------------------------------------------------------------------


def test_a_count_that_one_member_exaggerates_is_taken_with_the_try(tmp_path: Path) -> None:
    """A corrupt member states two more than the others have, and breaks off before the transfer check: they keep their counts. After it the two count, with the try."""
    old = with_keys(tmp_path, "rep-field", 3, [small("bfv")])  # type: ignore[list-item]
    set_counts(old, [3, 1, 1])
    broken_off(old, "new shares on the disk", 0)
    assert counts(old) == [3, 1, 1]
    broken_off(old, "last vectors", 0)
    assert counts(old) == [4, 4, 4]


@pytest.mark.parametrize(("place", "runs"), [("new shares on the disk", 0), ("transfer check", 0), ("last vectors", 1)])
def test_who_breaks_off_before_the_transfer_is_checked_uses_up_nothing(tmp_path: Path, place: str, runs: int) -> None:
    old = with_keys(tmp_path, "mal-rep-field", 3, [small("bfv")])  # type: ignore[list-item]
    broken_off(old, place)
    assert counts(old) == [runs] * 3


def test_nothing_is_opened_before_all_have_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One old member is slow with its disk."""
    old, seen = with_keys(tmp_path, "mal-rep-field", 3, [small("bfv")]), list[list[int]]()  # type: ignore[list-item]
    honest = lift.integers_of

    def noted(*given: Any) -> Any:
        seen.append(counts(old))
        return honest(*given)

    def slow(folder: Path, info: Any, runs: int) -> None:
        if runs and folder.is_relative_to(old.party_folder(2)):
            time.sleep(2)
        raise_count(folder, info, runs)

    monkeypatch.setattr(lift, "integers_of", noted)
    monkeypatch.setattr(tries, "raise_count", slow)
    reshared(old, api.init_after(tmp_path / "new", old, protocol="mascot", parties=2))
    assert seen and all(found == [1, 1, 1] for found in seen)


def test_a_crash_after_the_count_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, died = with_keys(tmp_path, "rep-field", 3, [small("bfv")]), list[str]()  # type: ignore[list-item]
    new = api.init_after(tmp_path / "new", old, protocol="mascot", parties=2)

    def dies(name: str) -> None:
        if name == "reshare/counted" and not died:
            died.append(name)
            raise Killed(name)

    monkeypatch.setattr(checkpoints, "hook", dies)
    with pytest.raises((Killed, Exception)):
        reshared(old, new, timeout=20)
    monkeypatch.undo()
    assert died and max(counts(old)) == 1
    reshared(old, new)
    assert counts(new) == [2, 2]


# -- who has counted --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep_old", [False, True])
def test_dealers_that_take_turns_count_together(tmp_path: Path, keep_old: bool) -> None:
    """Two of three each time: one of them was among the last that counted."""
    old = with_keys(tmp_path, "shamir", 3, [small("bfv")])  # type: ignore[list-item]
    for dealers, found in (([0, 1], [1, 1, 0]), ([0, 2], [2, 1, 2]), ([1, 2], [2, 3, 3])):
        broken_off(old, "last vectors", dealers=dealers, keep_old=keep_old)
        assert counts(old) == found


def test_honest_parties_stay_together(tmp_path: Path) -> None:
    """One that was cut off while others counted comes up to them in the next try, also if that one ends before it is counted."""
    old = with_keys(tmp_path, "mal-rep-field", 3, [small("bfv")])  # type: ignore[list-item]
    set_counts(old, [3, 2, 3])
    broken_off(old, "counts of tries")
    assert counts(old) == [3, 3, 3]


def test_a_recovered_party_knows_what_the_others_counted(tmp_path: Path) -> None:
    """Dealers 0 and 1 try three times; party 0 comes back from 1 and 2, and 1 from 0 and 2: without what they counted dealers 0 and 2 would begin anew, and parties would not test shares together."""
    old = committee_with(tmp_path, "shamir", 3)
    for _ in range(3):
        broken_off(old, "last vectors", dealers=[0, 1])
    lose(old, 0)
    assert recovered(old, 0, [1, 2]) == ["key"] and counts(old) == [3, 3, 0]
    broken_off(old, "last vectors", dealers=[0, 2])
    assert counts(old) == [4, 3, 4]
    lose(old, 1)
    assert recovered(old, 1, [0, 2]) == ["key"] and counts(old) == [4, 4, 4]
    lose(old, 2)
    assert recovered(old, 2) == ["key"] and proven(old) == [5, 5, 5]


def test_a_helper_does_not_use_up_the_tests(tmp_path: Path) -> None:
    """Where parties may be malicious: a count that the others deny is refused, and one that they confirm comes back."""
    committee = four(tmp_path, ["lwe53-p16"])
    set_counts(committee, [3, 16, 3, 3])
    lose(committee, 3)
    with pytest.raises((PolicyError, EngineError), match=r"party 1 reports 16 tests of shares .*, only 3 are confirmed"):
        recovered(committee, 3)
    folder = committee.key_folder(1, "key")
    set_proofs(folder, load_key(folder), 3)
    assert recovered(committee, 3) == ["key"] and counts(committee) == [3] * 4


# -- what is left -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("runs", [8, MOST_TRIES])
def test_tries_leave_tests_for_recoveries(tmp_path: Path, runs: int) -> None:
    """Who ends every try can use up the tries of a key, and not the tests that bring a lost share back."""
    old = committee_with(tmp_path, "mal-rep-field", 3)
    set_counts(old, [runs] * 3)
    if runs == MOST_TRIES:
        with pytest.raises(PolicyError, match="4 of 16 tests are kept back for recoveries: choose a committee without MACs"):
            reshared(old, api.init_after(tmp_path / "new", old, protocol="mascot", parties=2))
    before = secrets(old)
    for number, lost in enumerate((0, 1, 2), runs + 1):
        lose(old, lost)
        assert recovered(old, lost) == ["key"] and counts(old) == [number] * 3
    assert secrets(old) == before


def test_a_standby_has_tries_left(tmp_path: Path) -> None:
    """It begins with half of all tests, and passes the key on to a committee with MACs when the old one is lost."""
    old = with_keys(tmp_path, "mascot", 2, [small("bfv")])  # type: ignore[list-item]
    truth = secrets(old)
    standby = api.init_after(tmp_path / "standby", old, protocol="mal-shamir", parties=3)
    reshared(old, standby, keep_old=True)
    assert counts(old) == [8, 8] and counts(standby) == [8] * 3
    third = api.init_after(tmp_path / "third", standby, protocol="mascot", parties=2)
    reshared(standby, third)
    assert secrets(third) == truth and counts(third) == [9, 9]


def test_short_primes_are_warned_of(tmp_path: Path) -> None:
    """As in key generation, at old and at new members."""
    old = with_keys(tmp_path, "rep-field", 3, [small("bfv")])  # type: ignore[list-item]
    new = api.init_after(tmp_path / "new", old, protocol="mascot", parties=2)
    with pytest.warns(SecurityWarning, match=r"key key: .* has a prime of 36 bits: with MACs a wrong value passes with 2\^-") as found:
        reshared(old, new)
    assert sum("has a prime of 36 bits" in str(each.message) for each in found) >= 5
