"""Refresh while parties are absent: the others have new shares of the same secret, the absent ones are refused by name, and come into the new epoch when they are recovered, whatever they missed."""

from __future__ import annotations

import shutil
import warnings
from contextlib import suppress
from itertools import combinations
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from keyquorum import api
from keyquorum._engine import EngineError, UsageError, local_sessions
from keyquorum.model import checkpoints
from keyquorum.model.committee import Committee
from keyquorum.model.domains import Domain
from keyquorum.model.epoch import Stage
from keyquorum.model.errors import EpochError, KeyFileError, KeyQuorumError, ParameterError
from keyquorum.model.plain import Json
from keyquorum.parties import run_in_process
from keyquorum.parties.epochs import Change, Record, committee_json, read_epoch
from keyquorum.parties.jobs import check_alone, check_job, run_job, runs
from keyquorum.parties.worker import run_party
from keyquorum.plans.epochs import recover, refresh
from keyquorum.plans.epochs.orders import examine_epochs, status
from keyquorum.schemes.holding import shares_in
from keyquorum.schemes.key_folder import load_key
from keyquorum.schemes.subset_keys import load_key_as
from keyquorum.serve.client import make_receiver
from keyquorum.serve.kinds import Service
from keyquorum.sharing.group import lagrange

from tests.fhe.dealer import tiny
from tests.parties.epochs.changes import Killed
from tests.plans.corrupted import ends_of
from tests.plans.epochs.test_recover import four, lose, recovered
from tests.plans.test_refresh import chi2, public_files, refreshed, run, with_keys, words_of
from tests.serve.live.test_live import VALUES, Live, asked

NAME = "lwe53-p16"


def refreshed_without(committee: Committee, *absent: int) -> Json:
    job = api.refresh_shares_job(committee, absent)
    there = runs(committee, job)
    for party in range(there.size):
        check_alone(there, party, job)
    done = cast(list[Json], run_in_process(there, lambda context: run_job(context, job), timeout=60))
    assert all(result["name"] == done[0]["name"] for result in done)
    return done[0]


def made(folder: Path, protocol: str) -> Committee:
    return with_keys(folder, "shamir", 5, [NAME]) if protocol == "shamir" else four(folder, [NAME])


def secret_from(committee: Committee, parties: tuple[int, ...]) -> list[int]:
    """The secret that the shares of t + 1 parties give, at their points."""
    q = Domain.parse(load_key(committee.key_folder(parties[0], "key")).secrets[0].domain).modulus
    points = [party + 1 for party in parties]
    summands = [[lagrange(points, i, q) * int(x) for x in words_of(committee, party)[0]] for i, party in enumerate(parties)]
    return [sum(column) % q for column in zip(*summands, strict=True)]


@pytest.mark.parametrize(("protocol", "absent"), [("shamir", (4,)), ("shamir", (1, 3)), ("mal-shamir", (1,))])
def test_those_present_have_new_shares_and_the_absent_come_back(tmp_path: Path, protocol: str, absent: tuple[int, ...]) -> None:
    committee = made(tmp_path, protocol)
    there = [party for party in range(committee.size) if party not in absent]
    t, public = committee.threshold, public_files(committee)
    truth = secret_from(committee, tuple(range(t + 1)))
    old = {party: words_of(committee, party) for party in range(committee.size)}
    assert refreshed_without(committee, *absent)["epoch"] == 1
    for chosen in combinations(there, t + 1):
        assert secret_from(committee, chosen) == truth
    for party in there:
        assert not np.array_equal(words_of(committee, party), old[party])
    mixed = (absent[0], *there[:t])
    assert secret_from(committee, mixed) != truth, "an old share fits new ones"
    found = status(committee, there[0])
    assert found["missing"] == list(absent)
    assert any(not finding.ok and f"party {absent[0]} has no shares of this epoch" in finding.text for finding in examine_epochs(committee, there))
    with pytest.raises(EpochError, match=f"party {absent[0]} was absent when the shares of epoch 1 were made, and has none: keyquorum recover"):
        load_key_as(committee, committee.key_folder(there[0], "key"))
    with pytest.raises((EpochError, EngineError), match=f"party {absent[0]} was absent"):
        refreshed(committee)
    before = [path.read_bytes()[-200:-32] for party in absent for path in shares_in(committee.key_folder(party, "key")).glob("share-*.kqs")]
    for place, party in enumerate(absent):
        assert recovered(committee, party, [p for p in range(committee.size) if p not in absent[place:]]) == ["key"]
        assert recovered(committee, party, there) == []
    for chosen in combinations(range(committee.size), t + 1):
        assert secret_from(committee, chosen) == truth
    for party in range(committee.size):
        left = b"".join(path.read_bytes() for path in committee.party_folder(party).rglob("*") if path.is_file())
        assert not any(share in left for share in before), "an old share is still there"
        assert status(committee, party)["missing"] == [] and status(committee, party)["unerased"] == []
    assert all(finding.ok for finding in examine_epochs(committee, range(committee.size)))
    assert public_files(committee) == public
    assert refreshed(committee)["epoch"] == 2
    assert secret_from(committee, tuple(range(committee.size - t - 1, committee.size))) == truth


def test_a_party_that_missed_two_epochs_and_one_that_lost_its_disk(tmp_path: Path) -> None:
    committee = with_keys(tmp_path, "shamir", 5, [NAME])
    truth = secret_from(committee, (0, 1, 2))
    refreshed(committee)
    refreshed_without(committee, 4)
    with pytest.raises(EpochError, match=r"party 4 was absent .*or name it with --absent as well"):
        refreshed_without(committee, 3)
    refreshed_without(committee, 3, 4)
    lose(committee, 3)
    with pytest.raises((EpochError, EngineError), match=r"party 4 was absent .*name other helpers with --from"):
        recovered(committee, 3)
    assert recovered(committee, 3, [0, 1, 2]) == ["key"]
    with pytest.raises(EpochError, match="party 4 was absent"):
        refreshed(committee)
    assert recovered(committee, 4, [1, 2, 3]) == ["key"]
    assert {read_epoch(committee.party_folder(party)).number for party in range(5)} == {3}
    for chosen in combinations(range(5), 3):
        assert secret_from(committee, chosen) == truth
    lose(committee, 4)
    assert recovered(committee, 4) == ["key"] and secret_from(committee, (2, 3, 4)) == truth
    assert refreshed_without(committee, 0)["epoch"] == 4
    assert recovered(committee, 0) == ["key"] and secret_from(committee, (0, 3, 4)) == truth


@pytest.mark.parametrize("committed", [False, True], ids=["voted", "committed alone"])
def test_what_an_absent_party_voted_for_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, committed: bool) -> None:
    """It voted for a change, or committed it alone, that the others gave up, and these then made another one without it."""
    committee = with_keys(tmp_path, "shamir", 5, [NAME])
    truth = secret_from(committee, (0, 1, 2))
    refreshed(committee)

    def dies(name: str) -> None:
        if name == "epoch/voted/durable":
            raise Killed(name)

    monkeypatch.setattr(checkpoints, "hook", dies)
    with pytest.raises((Killed, KeyQuorumError, EngineError)):
        run_in_process(committee, lambda context: run_job(context, api.refresh_shares_job(committee)), timeout=20)
    monkeypatch.undo()
    if committed:
        votes = [change.show() for party in range(4) if (change := Change.last(committee, party)) is not None]
        alone = Change.last(committee, 4)
        assert alone is not None
        for shown in votes:
            alone.hear(shown)
        assert alone.advance() == Stage.COMMITTED and read_epoch(committee.party_folder(4)).number == 2
    away = tmp_path / "away"
    shutil.move(committee.party_folder(4), away)
    api.epoch_give_up(committee, [4])
    refreshed_without(committee, 4)
    shutil.move(away, committee.party_folder(4))
    assert (Change.unfinished(committee, 4) is None) == committed
    assert recovered(committee, 4) == ["key"]
    assert status(committee, 4)["unfinished"] is None and status(committee, 4)["unerased"] == []
    assert secret_from(committee, (0, 3, 4)) == truth
    assert refreshed(committee)["epoch"] == 3


def test_an_absent_party_follows_only_when_all_others_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before that it keeps its old share: the others may go back. An order about that change is refused there."""
    committee = four(tmp_path, [NAME])

    def silent(change: Change) -> bytes:
        return b'{"epoch":"' + change.record.name.encode() + b'","statements":[]}'

    refreshed_without(committee, 3)
    monkeypatch.setattr(Change, "show", silent)
    with pytest.raises((EpochError, EngineError), match="not all members that were present have said that they committed epoch"):
        recovered(committee, 3)
    assert read_epoch(committee.party_folder(3)).number == 0 and shares_in(committee.key_folder(3, "key")) == committee.key_folder(3, "key")
    assert words_of(committee, 3).size
    monkeypatch.undo()
    assert recovered(committee, 3) == ["key"]


@pytest.mark.parametrize(
    "point",
    [
        "recover/records",
        "epoch/proposed",
        "epoch/heard",
        "epoch/votes",
        "epoch/switched",
        "recover/epoch",
        "erase/overwritten",
        "erase/unlinked",
        "recover/written",
        "recover/published",
        "recover/noted",
    ],
)
def test_a_return_that_is_cut_off_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    committee = four(tmp_path, [NAME])
    truth = secret_from(committee, (0, 1))
    refreshed(committee)
    refreshed_without(committee, 2)
    job, dead = api.recover_job(committee, 2), list[str]()

    def dies(name: str) -> None:
        if name.startswith(point) and not dead:
            dead.append(name)
            raise Killed(name)

    monkeypatch.setattr(checkpoints, "hook", dies)
    monkeypatch.setattr(recover, "_clear", lambda making: None)  # a dead party clears nothing
    with pytest.raises((Killed, EngineError, KeyQuorumError)):
        run_in_process(committee, lambda context: run_job(context, job), timeout=20)
    monkeypatch.undo()
    assert dead
    recovered(committee, 2)
    for chosen in combinations(range(4), 2):
        assert secret_from(committee, chosen) == truth
    assert status(committee, 2)["unerased"] == [] and status(committee, 0)["missing"] == []
    assert refreshed(committee)["epoch"] == 3


@pytest.mark.parametrize(
    ("protocol", "parties", "absent", "reason"),
    [
        ("rep-field", 3, [1], "no party may be absent, as all are needed"),
        ("mal-rep-field", 3, [1], "no party may be absent"),
        ("semi", 3, [1], "no party may be absent"),
        ("shamir", 3, [0, 1], "of 3 parties of which 1 may be corrupt 1 may be absent"),
        ("mal-shamir", 5, [0], "of 5 parties of which 2 may be malicious none may be absent"),
        ("shamir", 5, [5], "name parties of the whole committee, of 0 to 4"),
        ("shamir", 5, [1, 1], "each once"),
    ],
)
def test_absent_parties_that_are_refused(protocol: str, parties: int, absent: list[int], reason: str) -> None:
    with pytest.raises(ParameterError, match=reason):
        api.refresh_shares_job(api.in_process_committee(parties, protocol), absent)


@pytest.mark.parametrize(
    ("protocol", "parties", "absent", "warned"), [("shamir", 5, (3, 4), True), ("shamir", 5, (4,), False), ("mal-shamir", 7, (5, 6), False)]
)
def test_the_last_shares_are_said(protocol: str, parties: int, absent: tuple[int, ...], warned: bool) -> None:
    """At the command, and at every party of a job file."""
    committee = api.in_process_committee(parties, protocol, 2)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        job = api.refresh_shares_job(committee, absent)
        with suppress(KeyQuorumError, OSError):
            refresh.check_refresh(runs(committee, job), 0, job)
    said = ["the next lost disk is a lost key, until absent parties (3, 4) are recovered" in str(each.message) for each in seen]
    assert said == [True] * 2 * warned


def test_fields_of_a_job_file_that_are_no_parties_are_refused() -> None:
    with pytest.raises(KeyQuorumError, match="'absent' that is no list of parties"):
        check_job({"kind": "refresh_shares", "absent": ["1"]})


@pytest.mark.parametrize(("named", "agreed"), [((3,), ()), ((2, 3), (3,)), ((), (3,)), ((2,), (3,))])
@pytest.mark.parametrize("kind", ["refresh", "recover"])
def test_each_operator_agrees(tmp_path: Path, kind: str, named: tuple[int, ...], agreed: tuple[int, ...]) -> None:
    """A job that was changed on its way leaves no live party out, which would keep its old share when the others have erased theirs."""
    committee = with_keys(tmp_path, "shamir", 7, [])
    job = api.refresh_shares_job(committee, named) if kind == "refresh" else api.recover_job(committee, 4, absent=named)
    said = f"by the job parties {','.join(map(str, named))} take no part" if named else "--absent 3: by the job all parties take part"
    with pytest.raises(ParameterError, match=said):
        run_party(committee.folder, 0, job, connect_timeout=0.2, absent=agreed)


def test_a_record_with_other_absent_members_is_refused(tmp_path: Path) -> None:
    committee = four(tmp_path, [NAME])
    refreshed_without(committee, 3)
    folder = committee.party_folder(0)
    record = Record.load(folder, read_epoch(folder).name)
    assert record.absent == (3,) and len(record.voters) == 3 and Record.parse(record.data, "it") == record
    for absent in (b"[4]", b"[2,3]", b"[-1]", b"[3, 3]"):
        with pytest.raises(EpochError, match="not a record"):
            Record.parse(record.data.replace(b'"absent": [\n  3\n ]', b'"absent": ' + absent), "it")


def test_a_record_of_parties_that_may_be_malicious_leaves_2t_and_one(tmp_path: Path) -> None:
    for protocol, refused in (("shamir", False), ("mal-shamir", True)):
        said = committee_json(api.init(tmp_path / protocol, 5, protocol))
        data = Record("0" * 32, 1, "", said, said, {}, absent=(4,)).data
        if refused:
            with pytest.raises(EpochError, match="its absent members are not proper"):
                Record.parse(data, "it")
        else:
            assert Record.parse(data, "it").absent == (4,)


class Forgets:
    """Party 0 says that nobody is absent any more."""

    changed = 0

    def begin(self) -> None:
        pass

    def __call__(self, to: int, message: bytes) -> list[bytes]:
        self.changed += b", [4]]" in message
        return [message.replace(b", [4]]", b", []]")]


def test_an_old_epoch_file_keeps_what_it_knows(tmp_path: Path) -> None:
    """A party that was recovered is not absent again when a file that is older than the journal is made anew."""
    committee = four(tmp_path, [NAME])
    refreshed_without(committee, 3)
    assert recovered(committee, 3) == ["key"]
    path = committee.party_folder(0) / "epoch.json"
    old = path.read_bytes()
    refreshed(committee)
    path.write_bytes(old)
    Change.unfinished(committee, 0)
    here = read_epoch(committee.party_folder(0))
    assert here.number == 2 and here.before is not None and here.before.missing == ()


def test_one_party_does_not_make_others_forget_who_is_absent(tmp_path: Path) -> None:
    """Where one may be malicious, two must say so. The old share of party 4 is still there."""
    committee = api.init(tmp_path / "committee", 5, "mal-shamir", threshold=1)
    run(committee, api.keygen_job("key", NAME))
    refreshed_without(committee, 4)
    lose(committee, 3)
    job, wire = api.recover_job(committee, 3, absent=[4]), Forgets()
    ends = ends_of(runs(committee, job), lambda context: run_job(context, job), wire=wire)
    assert wire.changed == 3 and all(isinstance(end, dict) for end in ends), list(ends)
    assert all(status(committee, party)["missing"] == [4] for party in range(1, 4))


def test_a_party_forgets_when_two_of_the_others_do(tmp_path: Path) -> None:
    """Of two absent ones the first is recovered while the second is away, and comes back knowing nothing of this."""
    committee = api.init(tmp_path / "committee", 7, "mal-shamir", threshold=2)
    run(committee, api.keygen_job("key", NAME))
    refreshed_without(committee, 5, 6)
    job = api.recover_job(committee, 5, absent=[6])
    run_in_process(runs(committee, job), lambda context: run_job(context, job), timeout=60)
    assert recovered(committee, 6) == ["key"]
    assert all(status(committee, party)["missing"] == [] for party in range(7))


def test_a_party_that_was_present_does_not_follow(tmp_path: Path) -> None:
    """A backup of a party that took part is refused as before: its statements count."""
    committee = with_keys(tmp_path, "shamir", 5, [NAME])
    shutil.copytree(committee.party_folder(3), tmp_path / "backup")
    refreshed_without(committee, 4)
    shutil.rmtree(committee.party_folder(3))
    shutil.move(tmp_path / "backup", committee.party_folder(3))
    with pytest.raises((EpochError, EngineError, KeyFileError), match="party 3 is in epoch 0 and the helpers in 1"):
        recovered(committee, 3, [0, 1, 2])


def test_members_of_a_session_are_said_once_and_properly() -> None:
    """In increasing order, as many as there are parties, before the first engine; shares of zero need more than t of Shamir's sharing."""
    sessions = local_sessions(2, 20.0)
    for numbers in ([1, 0], [0, 4], [1, 1], [0, 1, 2]):
        with pytest.raises(UsageError, match="in increasing order"):
            sessions[0].set_members(numbers, 4)
    for session in sessions:
        session.set_members([1, 3], 5)
        with pytest.raises(UsageError, match="say it once"):
            session.set_members([1, 3], 5)
        for protocol in ("shamir", "mal-shamir"):
            with pytest.raises(UsageError, match="2 of 5 parties of which 2 may be corrupt make no shares of zero without the others"):
                session.zero_shares(protocol, 2)
        with pytest.raises(UsageError, match="make no shares of zero without the others"):
            session.zero_shares("semi", 4)
        session.abort("the test has ended")
    there = local_sessions(3, 20.0)
    there[0].set_members([0, 2, 3], 4)
    with pytest.raises(UsageError, match="members of a committee name the threshold of its sharing"):
        there[0].engine("mal-shamir", "F_9007199254740881", "nothing", None, None)
    for session in there:
        session.abort("the test has ended")


def test_the_others_are_served(tmp_path: Path) -> None:
    """With ``--parties any``, also beside the daemon of a party that was absent and is back in its old epoch."""
    committee = api.init(tmp_path / "committee", 3, "shamir", base_ot="curve25519")
    run(committee, api.keygen_job("key", tiny("bfv", 2), relin=False))
    make_receiver(committee, "alice")
    api.encrypt(committee, "key", VALUES, tmp_path / "x.ct")
    refreshed_without(committee, 1)
    served = Live(committee, Service("key", keep=512, chunk=256, patience=20.0))
    served.start(0, 1, 2)
    try:
        assert asked(served) == VALUES
    finally:
        served.stop(0, 1, 2)
    assert not served.failures


def test_a_disk_is_lost_while_another_party_is_absent(tmp_path: Path) -> None:
    """Before a refresh without it, and after."""
    committee = with_keys(tmp_path, "shamir", 5, [NAME])
    truth = secret_from(committee, (0, 1, 2))
    shutil.move(committee.party_folder(1), tmp_path / "away")

    def recovered_without(lost: int, absent: int) -> list[str]:
        job = api.recover_job(committee, lost, absent=[absent])
        there = runs(committee, job)
        for party in range(there.size):
            check_alone(there, party, job)
        return list(run_in_process(there, lambda context: run_job(context, job), timeout=60)[0]["keys"])

    lose(committee, 3)
    assert recovered_without(3, 1) == ["key"] and secret_from(committee, (0, 2, 3)) == truth
    refreshed_without(committee, 1)
    lose(committee, 4)
    assert recovered_without(4, 1) == ["key"] and secret_from(committee, (0, 3, 4)) == truth
    assert {party: status(committee, party)["missing"] == [1] for party in (0, 2, 3, 4)} == dict.fromkeys((0, 2, 3, 4), True)
    shutil.move(tmp_path / "away", committee.party_folder(1))
    assert recovered(committee, 1) == ["key"] and secret_from(committee, (1, 3, 4)) == truth
    for lost, absent, said in ((3, [3], "who is recovered takes part"), (3, [1, 2, 4], "2 may be absent"), (3, [1, 1], "each once")):
        with pytest.raises(ParameterError, match=said):
            api.recover_job(committee, lost, absent=absent)
    with pytest.raises(ParameterError, match="name other parties than 1, 3 of 0 to 4"):
        api.recover_job(committee, 3, [0, 1, 2], absent=[1])


@pytest.mark.parametrize("absent", [(), (2,)], ids=["all", "one absent"])
def test_parties_deal_new_shares_where_sets_are_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, absent: tuple[int, ...]) -> None:
    """As in a committee of thirteen; a smaller one is made to do so. Old and new shares of a party are independent, and a piece of another vector does not fit."""
    assert refresh.deals(api.in_process_committee(13, "shamir")) and not refresh.deals(api.in_process_committee(9, "mal-shamir"))
    monkeypatch.setattr(refresh, "MOST_SETS", 2)
    committee = with_keys(tmp_path, "shamir", 5, [NAME])
    there = [party for party in range(5) if party not in absent]
    truth, old = secret_from(committee, (0, 1, 2)), {party: words_of(committee, party) for party in there}
    refreshed_without(committee, *absent)
    record = Record.load(committee.party_folder(0), read_epoch(committee.party_folder(0)).name)
    assert record.dealers == tuple(there[:3]) and record.checks == ()
    for chosen in combinations(there, 3):
        assert secret_from(committee, chosen) == truth
    q = Domain.parse(load_key(committee.key_folder(0, "key")).secrets[0].domain).modulus
    for party in there:
        assert chi2(old[party][0], words_of(committee, party)[0], q) < 56.5
    for party in absent:
        assert recovered(committee, party) == ["key"] and secret_from(committee, (party, *there[-2:])) == truth
