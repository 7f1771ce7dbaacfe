"""Parties of Shamir's sharing for malicious parties fall silent after others lost their shares, or were absent: those that are left recover them in one run, with a test of all that take part. What the silent ones hold is not used again."""

from __future__ import annotations

import shutil
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum._engine import CheckError, EngineError
from keyquorum.fhe.parameters import load
from keyquorum.model.committee import Committee
from keyquorum.model.errors import EpochError, KeyQuorumError, ParameterError
from keyquorum.model.subset import present_of
from keyquorum.parties import PartyContext, run_in_process
from keyquorum.parties.epochs import Epoch, read_epoch
from keyquorum.parties.epochs.record import write_epoch
from keyquorum.parties.jobs import check_alone, run_job, runs
from keyquorum.plans.epochs import recover, untested
from keyquorum.plans.epochs.helpers import helpers_of, must_test
from keyquorum.plans.epochs.orders import examine_epochs, status
from keyquorum.plans.epochs.prove import proofs_run, raise_count
from keyquorum.plans.epochs.reshare import bridge
from keyquorum.plans.noise_check import failed_checks, set_failed_checks
from keyquorum.schemes.seal.fit import check_fit
from keyquorum.schemes.seal.key import SealKeyInfo

from tests.plans.epochs.test_absent import refreshed_without
from tests.plans.epochs.test_prove import TOY, at_zero, info_of, shifted
from tests.plans.epochs.test_recover import lose, recovered
from tests.plans.test_refresh import refreshed, run, secrets

pytestmark = pytest.mark.filterwarnings("ignore::keyquorum.fhe.errors.SecurityWarning")


@pytest.fixture(autouse=True)
def _without_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)


def committee_of(folder: Path, parties: int) -> Committee:
    """t = 2."""
    committee = api.init(folder / "committee", parties, "mal-shamir", threshold=2)
    run(committee, api.keygen_job("key", TOY, relin=False))
    return committee


def recovered_without(committee: Committee, lost: list[int], absent: list[int]) -> list[str]:
    job = api.recover_job(committee, lost, absent=absent)
    there = runs(committee, job)
    for party in range(there.size):
        check_alone(there, party, job)
    return list(run_in_process(there, lambda context: run_job(context, job), timeout=60)[0]["keys"])


@pytest.mark.parametrize("epochs", [0, 1])
def test_two_lost_of_six_come_back_together(tmp_path: Path, epochs: int) -> None:
    """Four have shares, which are fewer than 2t + 1, and all six take part in the test."""
    committee = committee_of(tmp_path, 6)
    for _ in range(epochs):
        refreshed(committee)
    before, kept = secrets(committee), {party: lose(committee, party) for party in (4, 5)}
    with pytest.raises(ParameterError, match=r"4 helpers are too few, a share is recovered from 5 or more.*recover them at once"):
        api.recover_job(committee, 4, [0, 1, 2, 3])
    assert recovered(committee, [4, 5]) == ["key"]
    for party, files in kept.items():
        for name, data in files.items():
            assert not name.endswith(".kqs") or (committee.party_folder(party) / name).read_bytes() == data, name
    assert secrets(committee) == before
    assert {proofs_run(committee.key_folder(party, "key"), info_of(committee)) for party in range(6)} == {1}
    assert all(status(committee, party)["untested"] == [] for party in range(6)), "all took part"
    assert refreshed(committee)["epoch"] == epochs + 1


@pytest.mark.parametrize("ablated", [False, True], ids=["tested", "ablated"])
def test_a_wrong_helper_of_six_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ablated: bool) -> None:
    """f + c (x - 2)(x - 3): with two honest helpers of four it is a polynomial of degree 2, and parties 0 and 3 are corrupt. Without the test it is stored."""
    committee = committee_of(tmp_path, 6)
    before, kept = secrets(committee), {party: lose(committee, party) for party in (4, 5)}
    shifted(committee, 0, [at_zero(2) for _ in TOY.coeff_modulus])
    shifted(committee, 3, [at_zero(2) for _ in TOY.coeff_modulus])
    if ablated:
        monkeypatch.setattr(recover, "prove", lambda *arguments: None)
        assert recovered(committee, [4, 5]) == ["key"] and secrets(committee) != before
        return
    with pytest.raises((CheckError, EngineError), match="are not those of the secret of the public key"):
        recovered(committee, [4, 5])
    assert not any(committee.key_folder(party, "key").exists() for party in kept)


def test_the_last_three_of_seven_bring_two_absent_ones_back(tmp_path: Path) -> None:
    """Parties 5 and 6 missed a refresh, and then 0 and 1 fall silent. The five decrypt; 0 and 1 are used again after a refresh without them."""
    folder = tmp_path / "committee"
    committee = committee_of(tmp_path, 7)
    api.encrypt(folder, "key", np.arange(100), tmp_path / "x.ct")
    before = secrets(committee)
    refreshed_without(committee, 5, 6)
    for party in (0, 1):
        shutil.move(committee.party_folder(party), tmp_path / f"away{party}")
    with pytest.raises(ParameterError, match="3 helpers are too few"):
        api.recover_job(committee, 5, [2, 3, 4], absent=[0, 1])
    assert recovered_without(committee, [5, 6], [0, 1]) == ["key"]

    def decrypts(parties: list[int]) -> None:
        output = tmp_path / f"out{len(list(tmp_path.iterdir()))}"
        api.decrypt(folder, "key", [tmp_path / "x.ct"], 4, [output], parties=parties)
        assert api.decode(folder, "key", output)[:100].tolist() == list(range(100))

    decrypts([2, 3, 4, 5, 6])
    for party in (0, 1):
        shutil.move(tmp_path / f"away{party}", committee.party_folder(party))
    with pytest.raises(KeyQuorumError, match=r"party 0 took no part in the test after which shares of epoch 1 were recovered|party 5 was absent"):
        decrypts([0, 2, 3, 4, 5])
    with pytest.raises((EpochError, EngineError), match=r"keyquorum refresh-shares COMMITTEE --absent 0,1 first"):
        recovered(committee, 6, [0, 1, 2, 3, 4])
    with pytest.raises((EpochError, EngineError), match=r"party 0 took no part|party 5 was absent"):
        refreshed(committee)
    assert any(not finding.ok and "UNTESTED: what parties 0,1 hold" in finding.text for finding in examine_epochs(committee, [2]))
    with pytest.raises((EpochError, EngineError), match=r"party 0 took no part.*or move its folder of key key away"):
        recovered(committee, 0, [2, 3, 4, 5, 6])
    refreshed_without(committee, 0, 1)
    assert recovered(committee, 0, [2, 3, 4, 5, 6]) == recovered(committee, 1, [2, 3, 4, 5, 6]) == ["key"]
    decrypts([0, 1, 2, 3, 4])
    assert secrets(committee) == before and all(finding.ok for finding in examine_epochs(committee, range(7)))


def test_who_was_absent_has_no_share_before_the_test(tmp_path: Path) -> None:
    """It has the key's other files, so that its shares alone are put in their place: after the test as well."""
    committee = committee_of(tmp_path, 7)
    refreshed_without(committee, 5, 6)
    shifted(committee, 2, [at_zero(1) for _ in TOY.coeff_modulus])
    with pytest.raises((CheckError, EngineError)):
        recovered_without(committee, [5, 6], [0, 1])
    for party in (5, 6):
        assert not list(committee.key_folder(party, "key").rglob("share-*.kqs"))
    assert read_epoch(committee.party_folder(4)).untested == (0, 1), "noted before anything was sent"
    shifted(committee, 2, [at_zero(-1) for _ in TOY.coeff_modulus])
    assert recovered_without(committee, [5, 6], [0, 1]) == ["key"]


def test_shares_of_two_polynomials_are_not_mixed(tmp_path: Path) -> None:
    """In epoch 0, which has a file for this. Corrupt parties 2 and 3 bring 5 and 6 onto f + x (x - 5): the secret is the same, so the test passes. With 0 and 1, who are on f, they could make 5 accept another secret."""
    committee = committee_of(tmp_path, 7)
    before = secrets(committee)
    for party in (5, 6):
        lose(committee, party)
    for party, value in ((2, -6), (3, -4)):
        shifted(committee, party, [at_zero(value) for _ in TOY.coeff_modulus])
    assert recovered_without(committee, [5, 6], [0, 1]) == ["key"]
    for party in range(2, 7):
        assert read_epoch(committee.party_folder(party)) == Epoch(untested=(0, 1), recovered=(5, 6))
    job = {"kind": "epoch_prove", "key": "key"}
    with pytest.raises((EpochError, EngineError), match="party 0 took no part in the test"):
        run(committee, job)
    refreshed_without(committee, 0, 1)
    for party in (0, 1):
        assert recovered(committee, party, [2, 3, 4, 5, 6]) == ["key"]
    run(committee, job)
    assert secrets(committee) == before


def away(committee: Committee, party: int) -> None:
    """Its folder of the key is moved away."""
    committee.key_folder(party, "key").rename(committee.folder / f"moved-{party}")


@pytest.mark.parametrize("tested", [False, True])
def test_untested_parties_come_back_as_lost_ones(tmp_path: Path, tested: bool) -> None:
    """0 and 1 took no part when 5 and 6 came back, and then these two (``tested``), or none, are gone. Without shares of before 0 and 1 are recovered, and used again."""
    committee = committee_of(tmp_path, 7)
    before = secrets(committee)
    for party in (5, 6):
        lose(committee, party)
    assert recovered_without(committee, [5, 6], [0, 1]) == ["key"]
    for party in (0, 1):
        away(committee, party)
    if tested:
        assert recovered_without(committee, [0, 1], [5, 6]) == ["key"]
        assert {read_epoch(committee.party_folder(party)).untested for party in range(5)} == {(5, 6)}
        for party in (5, 6):
            away(committee, party)
        assert [recovered(committee, party, [0, 1, 2, 3, 4]) for party in (5, 6)] == [["key"]] * 2
    else:
        assert [recovered(committee, party, [2, 3, 4, 5, 6]) for party in (0, 1)] == [["key"]] * 2
    assert {read_epoch(committee.party_folder(party)).untested for party in range(7)} == {()}
    run(committee, {"kind": "epoch_prove", "key": "key"})
    assert secrets(committee) == before


def breaks_off(monkeypatch: pytest.MonkeyPatch, party: int, tests: int = 0) -> None:
    """After so many tests, in the next one, before it has counted it."""
    original, passed = recover.prove, count()

    def proved(context: PartyContext, *arguments: Any) -> None:
        if context.committee.number_of(context.party) == party and next(passed) == tests:
            raise EpochError("breaks off")
        original(context, *arguments)

    monkeypatch.setattr(recover, "prove", proved)


@pytest.mark.parametrize("opened", [False, True], ids=["before", "after"])
def test_one_that_breaks_off_leaves_all_others_as_they_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: bool) -> None:
    """5 and 6 missed a refresh. In their recovery without 0 and 1 party 5 breaks off: before the test opens anything, or after it. Before it nobody can have passed, and 0 to 4 have the right shares."""
    committee = committee_of(tmp_path, 7)
    before = secrets(committee)
    refreshed_without(committee, 5, 6)
    with monkeypatch.context() as patched:
        if opened:
            shifted(committee, 2, [at_zero(1) for _ in TOY.coeff_modulus])
        else:
            breaks_off(patched, 5)
        with pytest.raises((KeyQuorumError, EngineError)):
            recovered_without(committee, [5, 6], [0, 1])
    if opened:
        assert [read_epoch(committee.party_folder(party)).untested for party in (2, 3, 4)] == [(0, 1)] * 3
        return
    assert {read_epoch(committee.party_folder(party)).untested for party in range(7)} == {()}
    assert recovered_without(committee, [6], [5]) == ["key"], "with 0 to 4, without 5"
    assert recovered(committee, 5, [0, 1, 2, 3, 4]) == ["key"]
    assert secrets(committee) == before


def test_a_note_stays_after_the_first_of_two_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lost parties keep shares of the first key, and then one breaks off before the test of the second one is counted."""
    committee = committee_of(tmp_path, 7)
    run(committee, api.keygen_job("other", TOY, relin=False))
    refreshed_without(committee, 5, 6)
    with monkeypatch.context() as patched:
        breaks_off(patched, 5, tests=1)
        with pytest.raises((KeyQuorumError, EngineError)):
            recovered_without(committee, [5, 6], [0, 1])
    assert {read_epoch(committee.party_folder(party)).untested for party in range(2, 7)} == {(0, 1)}
    assert recovered_without(committee, [5, 6], [0, 1]) == ["other"]


def failed_by_party_2(folder: Path) -> tuple[Committee, list[list[int]]]:
    """The recovery of 5 and 6 without 0 and 1 fails in its test, by party 2, which falls silent then. 0, 1, 3 and 4 have the shares of before. Also the secret."""
    committee = committee_of(folder, 7)
    before = secrets(committee)
    refreshed_without(committee, 5, 6)
    shifted(committee, 2, [at_zero(1) for _ in TOY.coeff_modulus])
    with pytest.raises((CheckError, EngineError)):
        recovered_without(committee, [5, 6], [0, 1])
    shifted(committee, 2, [at_zero(-1) for _ in TOY.coeff_modulus])
    return committee, before


def test_nobody_is_untested_when_all_that_were_recovered_are_lost_again(tmp_path: Path) -> None:
    """5 and 6 again, with 0 and 1, and without 2."""
    committee, before = failed_by_party_2(tmp_path)
    assert [read_epoch(committee.party_folder(party)).untested for party in (3, 4)] == [(0, 1)] * 2
    assert recovered_without(committee, [5, 6], [2]) == ["key"]
    known = [read_epoch(committee.party_folder(party)) for party in (0, 1, 3, 4, 5, 6)]
    assert {(each.untested, each.recovered) for each in known} == {((), ())}
    assert secrets(committee) == before


def test_who_was_recovered_and_falls_silent_is_untested_alone(tmp_path: Path) -> None:
    """5 falls silent as well as 2: it may have a share of another polynomial. 0, 1, 3 and 4 recover 6."""
    committee, before = failed_by_party_2(tmp_path)
    assert recovered_without(committee, [6], [2, 5]) == ["key"]
    known = [read_epoch(committee.party_folder(party)) for party in (0, 1, 3, 4, 6)]
    assert {each.untested for each in known} == {(), (5,)} and known[2].untested == known[3].untested == known[4].untested == (5,)
    assert recovered(committee, 5, [0, 1, 3, 4, 6]) == ["key"] and secrets(committee) == before


def test_who_is_recovered_beside_a_note_keeps_it_alive(tmp_path: Path) -> None:
    """2 and 3 bring 5 and 6 onto f + x (x - 5), and then these bring 0 onto it. 5 and 6 are lost again, and 1 is still on f: with 0 it would accept another secret."""
    committee = committee_of(tmp_path, 7)
    for party in (5, 6):
        lose(committee, party)
    for party, value in ((2, -6), (3, -4)):
        shifted(committee, party, [at_zero(value) for _ in TOY.coeff_modulus])
    assert recovered_without(committee, [5, 6], [0, 1]) == ["key"]
    away(committee, 0)
    assert recovered_without(committee, [0], [1]) == ["key"]
    for party in (5, 6):
        lose(committee, party)
    assert recovered_without(committee, [5, 6], [1]) == ["key"]
    known = [read_epoch(committee.party_folder(party)) for party in (0, 2, 3, 4, 5, 6)]
    assert {(each.untested, each.recovered) for each in known} == {((1,), (0, 5, 6))}


def test_helpers_are_not_untested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """3 of 7 help, and party 2 says that the two others are untested."""
    committee = committee_of(tmp_path, 7)
    for party in (5, 6):
        lose(committee, party)
    original = untested.HeardNotes.add
    monkeypatch.setattr(untested.HeardNotes, "add", lambda notes, party, data: original(notes, party, b"[[3, 4], []]" if party == 2 else data))
    assert recovered_without(committee, [5, 6], [0, 1]) == ["key"]
    assert {read_epoch(committee.party_folder(party)).untested for party in range(2, 7)} == {(0, 1)}


def test_in_epoch_0_it_is_noted_who_was_recovered(tmp_path: Path) -> None:
    committee = committee_of(tmp_path, 5)
    for party in (3, 4):
        lose(committee, party)
    assert recovered(committee, [3, 4]) == ["key"]
    assert all(status(committee, party)["recovered"] == [3, 4] for party in range(5))
    assert refreshed(committee)["epoch"] == 1 and status(committee, 0)["recovered"] == []


def test_who_was_recovered_and_keeps_a_share_undoes_nothing(tmp_path: Path) -> None:
    """5 and 6 were recovered without 0 and 1. Then 6 loses its share again, and 5 does not."""
    committee = committee_of(tmp_path, 7)
    for party in (5, 6):
        lose(committee, party)
    assert recovered_without(committee, [5, 6], [0, 1]) == ["key"]
    assert any("RECOVERED: shares of parties 5,6 may be others" in finding.text and not finding.ok for finding in examine_epochs(committee, [2]))
    lose(committee, 6)
    with pytest.raises((EpochError, EngineError), match="party 0 took no part"):
        recovered_without(committee, [5, 6], [2])


@pytest.mark.parametrize("believed", [False, True])
def test_a_helper_alone_makes_nobody_untested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, believed: bool) -> None:
    """Party 2 says that 0 is untested. If it were believed (the ablation), party 6 would refuse it."""
    committee = committee_of(tmp_path, 7)
    lose(committee, 6)
    original = untested.HeardNotes.add

    def add(notes: untested.HeardNotes, party: int, data: bytes) -> None:
        notes._needed = 1 if believed else notes._needed
        original(notes, party, b"[[0], []]" if party == 2 else data)

    monkeypatch.setattr(untested.HeardNotes, "add", add)
    assert recovered(committee, 6, [1, 2, 3, 4, 5]) == ["key"]
    assert read_epoch(committee.party_folder(6)).untested == ((0,) if believed else ())


@pytest.mark.parametrize("said", [b"", b"{}", b"[[0]]", b"[[0], 1]", b"[[4], []]", b"[[true], []]", b"[[0], [[1]]]"])
def test_notes_that_are_none_are_refused(said: bytes) -> None:
    with pytest.raises(EpochError, match="party 2 sent something that is not numbers of parties"):
        untested.HeardNotes(api.in_process_committee(4, "mal-shamir", 1), [0, 1, 2]).add(2, said)


def test_what_a_party_knows_holds_for_keys_that_it_keeps(tmp_path: Path) -> None:
    """Party 4 alone knows that 0 is untested. It loses one key of two, and then both."""
    committee = committee_of(tmp_path, 7)
    run(committee, api.keygen_job("other", TOY, relin=False))
    folder = committee.party_folder(4)
    for keys, noted in ((["other"], (0,)), (["key", "other"], ())):
        write_epoch(folder, replace(read_epoch(folder), untested=(0,)))
        for key in keys:
            shutil.rmtree(committee.key_folder(4, key))
        assert recovered(committee, 4, [1, 2, 3, 5, 6]) == keys
        assert read_epoch(folder).untested == noted


def test_four_of_seven_determine_what_was_before(tmp_path: Path) -> None:
    """2t helpers: two honest ones and the secret. f + x (x - 5) of the corrupt parties 1 and 2 passes at party 4 alone, and the test fails. So nobody is untested."""
    committee = committee_of(tmp_path, 7)
    before = secrets(committee)
    refreshed_without(committee, 5, 6)
    lose(committee, 0)
    for party, value in ((1, -6), (2, -6)):
        shifted(committee, party, [at_zero(value) for _ in TOY.coeff_modulus])
    with pytest.raises((CheckError, EngineError)):
        recovered_without(committee, [0], [5, 6])
    for party in (1, 2):
        shifted(committee, party, [at_zero(6) for _ in TOY.coeff_modulus])
    assert recovered_without(committee, [0], [5, 6]) == ["key"]
    assert {read_epoch(committee.party_folder(party)).untested for party in range(5)} == {()}
    lose(committee, 0)
    assert recovered_without(committee, [5, 6], [0]) == ["key"]
    assert recovered(committee, 0, [1, 2, 3, 4, 5]) == ["key"]
    assert {read_epoch(committee.party_folder(party)).untested for party in range(7)} == {()}
    assert secrets(committee) == before


@pytest.mark.parametrize(
    ("parties", "lost", "also", "absent", "helpers", "tested"),
    [
        (7, 5, [6], [0, 1], [2, 3, 4], True),
        (7, 5, [], [0], [1, 2, 3, 4, 6], False),
        (6, 4, [5], [], [0, 1, 2, 3], True),
        (6, 4, [5], [3], [0, 1, 2], True),
        (5, 4, [], [], [0, 1, 2, 3], True),
    ],
)
def test_helpers_decide_whether_shares_are_tested(
    parties: int, lost: int, also: list[int], absent: list[int], helpers: list[int], tested: bool
) -> None:
    committee = api.in_process_committee(parties, "mal-shamir", 2)
    assert helpers_of(committee, lost, None, also, absent) == helpers and must_test(committee, helpers) == tested


@pytest.mark.parametrize(
    ("lost", "absent", "said"),
    [
        ([5, 6], [], "recover one lost party after the other"),
        ([5, 6], [0, 1, 2], "2 may be absent"),
        ([4, 5, 6], [0, 1], "at most 2 lost parties are recovered"),
    ],
)
def test_what_is_refused_of_seven(lost: list[int], absent: list[int], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        api.recover_job(api.in_process_committee(7, "mal-shamir", 2), lost, absent=absent)


@pytest.mark.parametrize("name", ["bfv-8192", "ckks-8192", "ckks-16384-bench"])
def test_sets_that_are_shipped_have_a_test_among_five_of_seven(name: str) -> None:
    """Masks of five are longer than those of seven, who have none. What the generation of the key revealed is that of seven."""
    committee = api.in_process_committee(7, "mal-shamir", 2)
    info = SealKeyInfo(
        key_id="0" * 32, transcript="0" * 64, parameters=load(name), protocol="mal-shamir", parties=7, threshold=2, files={},
        error_law="cbd", relin=True, galois_elements=tuple(range(3, 17, 2)), policy=api.FloodPolicy(),
    )  # fmt: skip
    check_fit(info, present_of(committee, [0, 1]))
    with pytest.raises(ParameterError, match=r"tests? of shares against the public key"):
        check_fit(info, committee)
    for t, parties in ((2, 6), (2, 5), (1, 3), (1, 4)):
        check_fit(info, api.in_process_committee(parties, "mal-shamir", t))
    with pytest.raises(ParameterError, match="masks are too short"):
        check_fit(info, api.in_process_committee(7, "mal-shamir", 3))


def test_who_is_out_of_date_about_an_absent_party_notes_it(tmp_path: Path) -> None:
    """Party 5 missed the refresh, and has shares again. Parties 0 and 1 lose their folders, and have from the record of the epoch that 5 was absent. Of the others 3 and 4 may be corrupt."""
    committee = committee_of(tmp_path, 6)
    refreshed_without(committee, 5)
    assert recovered(committee, 5) == ["key"]
    for party in (0, 1):
        lose(committee, party)
    assert recovered_without(committee, [0, 1], [5]) == ["key"]
    assert [read_epoch(committee.party_folder(party)).untested for party in range(5)] == [(5,)] * 5
    with pytest.raises((EpochError, EngineError), match="party 5 took no part in the test"):
        refreshed(committee)


def test_who_has_shares_of_a_later_key_is_noted(tmp_path: Path) -> None:
    """Party 5 has no share of the old key, and one of a key that was made since, of which all know that it was made by all."""
    committee = committee_of(tmp_path, 6)
    refreshed_without(committee, 5)
    run(committee, api.keygen_job("later", TOY, relin=False))
    for party in (0, 1):
        lose(committee, party)
    assert recovered_without(committee, [0, 1], [5]) == ["key", "later"]
    assert [read_epoch(committee.party_folder(party)).untested for party in range(5)] == [(5,)] * 5
    with pytest.raises((EpochError, EngineError), match="party 5 took no part in the test"):
        run(committee, {"kind": "epoch_prove", "key": "later"})


def test_counts_of_an_absent_party_become_the_largest(tmp_path: Path) -> None:
    """It has the key, and counts of before: those of the others come with its shares."""
    committee = committee_of(tmp_path, 7)
    refreshed_without(committee, 5, 6)
    info = info_of(committee)
    for party in range(5):
        raise_count(committee.key_folder(party, "key"), info, 2)
        set_failed_checks(committee.key_folder(party, "key"), info, 3)
    assert recovered(committee, 5, [0, 1, 2, 3, 4]) == ["key"]
    assert (proofs_run(committee.key_folder(5, "key"), info), failed_checks(committee.key_folder(5, "key"), info)) == (2, 3)


def test_who_goes_back_knows_who_is_untested() -> None:
    before = Epoch(missing=(2,), untested=(0, 1))
    after = Epoch.of(Epoch(1, "ab" * 16, "cd" * 32, {}, before).to_json())
    assert after.before == before and before.without_past() == before


def test_untested_parties_pass_no_key_on(tmp_path: Path) -> None:
    old = committee_of(tmp_path, 5)
    new = api.init_after(tmp_path / "new", old, protocol="mal-rep-field", parties=3)
    folder = old.party_folder(3)
    write_epoch(folder, replace(read_epoch(folder), untested=(1,)))
    with pytest.raises(EpochError, match="party 1 took no part in the test"):
        check_alone(bridge(old, new), 3, api.reshare_job(old, new))


def test_who_lost_its_folder_hears_who_is_untested(tmp_path: Path) -> None:
    """Party 4 knew it, and its folder is gone."""
    committee = committee_of(tmp_path, 7)
    for party in (5, 6):
        lose(committee, party)
    assert recovered_without(committee, [5, 6], [0, 1]) == ["key"]
    lose(committee, 4)
    assert recovered_without(committee, [4], [0, 1]) == ["key"]
    assert read_epoch(committee.party_folder(4)).untested == (0, 1)
