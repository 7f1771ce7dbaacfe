"""Resharing: all pairs of protocols whose parties follow them, every kind of key, and what is refused before anything is sent."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum._engine import EngineError
from keyquorum.fhe.fhew import FHEW_SETS
from keyquorum.fhe.lwe import TFHE_SETS
from keyquorum.model.committee import Committee
from keyquorum.model.domains import Domain
from keyquorum.model.errors import CommitteeError, KeyFileError, KeyQuorumError, MovedError, ParameterError
from keyquorum.model.plain import Json
from keyquorum.model.protocols import COMMITTEES
from keyquorum.parties.epochs import Record, read_epoch
from keyquorum.parties.jobs import check_alone
from keyquorum.plans.epochs import reshare
from keyquorum.plans.epochs.carried import keys_said
from keyquorum.plans.epochs.orders import examine_epochs, status
from keyquorum.plans.epochs.passage import Passage
from keyquorum.plans.epochs.reshare import bridge
from keyquorum.plans.epochs.stated import Stated, is_proper
from keyquorum.plans.epochs.tries import Tries
from keyquorum.plans.examine import examine_keys
from keyquorum.schemes.key_folder import check_made_by, load_held_key, load_key
from keyquorum.schemes.seal.key import load_seal_key
from keyquorum.schemes.subset_keys import load_key_as

from tests.commands import command
from tests.plans.test_own_primes import created
from tests.plans.test_refresh import public_files, refreshed, run, share_bytes, with_keys
from tests.schemes import test_fhew, test_tfhe

from .reshared import has_any, reshared, secrets_of

SIZES = {"ring": 3, "rep-field": 3, "shamir": 5, "semi": 3, "semi2k": 2}


@pytest.fixture(autouse=True)
def _without_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)


def chain(count: int) -> list[int]:
    """Numbers below ``count`` in an order in which every ordered pair, also of one number twice, follows one another once (de Bruijn)."""
    found = [number for first in range(count) for number in (first, *(each for second in range(first + 1, count) for each in (first, second)))]
    return [*found, found[0]]


def test_all_pairs_are_of_the_protocols_that_follow() -> None:
    follow = {p.name for p in COMMITTEES.values() if p.adversary == "semi-honest"}
    assert follow == set(SIZES)
    order = chain(len(SIZES))
    assert {(a, b) for a, b in pairwise(order)} == {(a, b) for a in range(5) for b in range(5)} and len(order) == 26


def test_all_pairs_of_protocols(tmp_path: Path) -> None:
    """One key goes through all 25 pairs: its secret and its public files stay, old members have no share any more, and refuse the key by the name of the next committee."""
    names = list(SIZES)
    order = [names[number] for number in chain(len(names))]
    old = with_keys(tmp_path, order[0], SIZES[order[0]], ["lwe53-p16"])
    truth, public = secrets_of(old), public_files(old)
    for number, protocol in enumerate(order[1:], 1):
        shares = share_bytes(old)
        new = api.init_after(tmp_path / f"after-{number}", old, protocol=protocol, parties=SIZES[protocol])
        done = reshared(old, new)
        assert {result["epoch"] for result, _ in done} == {number} and done[0][0]["keys"] == ["key"]
        assert (secrets_of(new), public_files(new)) == (truth, public), (old.protocol, protocol)
        assert not has_any(old.folder, shares) and not has_any(new.folder, shares)
        with pytest.raises(MovedError, match=f"moved: since epoch {number} the committee after-{number} holds this key"):
            check_made_by(old, load_key(old.key_folder(1, "key")), old.key_folder(1, "key"))
        old = new
    record = Record.load(old.party_folder(0), read_epoch(old.party_folder(0)).name)
    assert (
        len(record.origin) == 26
        and record.origin[0] == "committee: ring, 3 parties, threshold 1, semi-honest"
        and record.origin[-1].startswith("after-25: ring")
    )
    assert all(finding.ok for finding in (*examine_keys(old, range(3)), *examine_epochs(old, range(3))))
    assert refreshed(old)["epoch"] == 26 and secrets_of(old) == truth
    assert Record.load(old.party_folder(0), read_epoch(old.party_folder(0)).name).origin == record.origin, "a refresh keeps the origin"


KINDS = [
    ("rep-field", 3, ["ring", "rep-field"], ["lwe64-p2", "prf-aes128", "prf-legendre127", "tfhe-tiny"]),
    ("semi", 2, ["ring", "semi2k"], ["lwe64-p2", "prf-aes128", "tfhe-tiny"]),
    ("rep-field", 3, ["shamir", "semi"], ["fhew-tiny"]),
]


@pytest.mark.parametrize(("protocol", "parties", "others", "names"), KINDS, ids=lambda case: str(case))
def test_every_kind_of_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, parties: int, others: list[str], names: list[str]) -> None:
    monkeypatch.setitem(TFHE_SETS, test_tfhe.TINY.name, test_tfhe.TINY)
    monkeypatch.setitem(FHEW_SETS, test_fhew.TINY.name, test_fhew.TINY)
    old = with_keys(tmp_path, protocol, parties, names)
    keys = ["key", *(f"key{number}" for number in range(1, len(names)))]
    truth = {key: (secrets_of(old, key), public_files(old, key)) for key in keys}
    for other in others:
        new = api.init_after(tmp_path / other, old, protocol=other, parties=SIZES[other])
        reshared(old, new)
        assert {key: (secrets_of(new, key), public_files(new, key)) for key in keys} == truth
        assert all(finding.ok for finding in examine_keys(new, range(new.size)))
        assert not list(new.folder.rglob("making"))
        old = new


def test_a_key_of_fhew_is_used_where_none_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With additive shares: the products of its generation would take oblivious transfer, and a decryption has none."""
    monkeypatch.setitem(FHEW_SETS, test_fhew.TINY.name, test_fhew.TINY)
    old = with_keys(tmp_path, "rep-field", 3, [test_fhew.TINY.name])
    new = api.init_after(tmp_path / "semi", old, protocol="semi", parties=2)
    reshared(old, new)
    path, plain = tmp_path / "x.lwe", tmp_path / "x.plain"
    api.encrypt(new, "key", [3, 0, 5, 6], path)
    run(new, api.pool_fill_job(new, test_fhew.TINY.name, "round_ltz_circuit", 4))
    run(new, api.decrypt_job(new, "key", [path], 1, [plain]))
    assert api.decode(new, "key", plain).tolist() == [3, 0, 5, 6]
    with pytest.raises(ParameterError, match="contributed noise would grow 2 times"):
        api.keygen_needs(new, test_fhew.TINY.name)


def test_an_old_ciphertext_is_decrypted_by_the_new_committee(tmp_path: Path) -> None:
    """The commands, with stock SEAL. The first member of the old committee is lost; the files of one that takes part show what happened."""
    old, new = tmp_path / "old", tmp_path / "new"
    api.init(old, 3, "rep-field")
    api.keygen(old, "key", created("bfv", 1024, [36, 37], 12289, "none"), relin=False)
    api.encrypt(old, "key", np.arange(100), tmp_path / "0.ct")
    said = command(tmp_path, "init", new, "--after", old, "--protocol", "shamir", "--parties", 5, "--replace", "4=127.0.0.1:7999")
    assert said.returncode == 0 and "127.0.0.1:7999" in said.stdout + said.stderr, said.stderr
    done = command(tmp_path, "reshare", old, new, "--dealers", "1,2")
    assert done.returncode == 0, done.stderr
    assert f"epoch 1 ({read_epoch(new / 'party-0').name}): {new} has key" in done.stdout + done.stderr
    [output] = api.decrypt(new, "key", [tmp_path / "0.ct"], 4, [tmp_path / "out"]).outputs
    assert api.decode(new, "key", output)[:100].tolist() == list(range(100))
    refused = command(tmp_path, "decrypt", old, "key", tmp_path / "0.ct", "--to", 1, "-o", tmp_path / "no")
    assert refused.returncode == 1 and "moved: since epoch 1 the committee new holds this key: ask that one" in refused.stderr
    assert status(Committee.load(old), 1)["moved_to"] == "new" and status(Committee.load(old), 0)["moved_to"] == ""
    shown = command(tmp_path, "epoch", "status", old).stdout
    assert "party 1: moved: the committee new holds the keys since" in shown
    lines = [finding.text for finding in examine_epochs(Committee.load(new), [0])]
    assert "party 0: keys were made by old: rep-field, 3 parties, threshold 1, semi-honest" in lines and any(
        "correct: assumed" in line for line in lines
    )
    shown = command(tmp_path, "inspect", new / "party-0" / "epochs" / f"{read_epoch(new / 'party-0').name}.json").stdout
    assert "keys were passed on to new: shamir, 5 parties, threshold 2, semi-honest" in shown
    assert "held by 5 parties, shamir, threshold 2" in command(tmp_path, "inspect", new / "party-0" / "keys" / "key").stdout
    assert load_seal_key(new / "party-0" / "keys" / "key").protocol == "rep-field", "the metadata name who made the key"


def test_bytes_are_those_of_seeds_and_of_the_pieces_without(tmp_path: Path) -> None:
    """rep-field to shamir (5, 2): two dealers, t' members have seeds, the others n' - t' vectors of each."""
    old = with_keys(tmp_path, "rep-field", 3, ["lwe53-p16"])
    info = load_key(old.key_folder(0, "key"))
    new = api.init_after(tmp_path / "new", old, protocol="shamir", parties=5)
    done = reshared(old, new)
    files = sum((old.key_folder(0, "key") / name).stat().st_size for name in info.files)
    vector = 8 * info.secrets[0].length
    wanted = 2 * 3 * vector + 2 * 2 * 32 + 5 * files
    assert sum(phase.bytes_sent for _, report in done for phase in report.phases if phase.name == "shares") == wanted


def test_all_new_members_get_public_files_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Piece by piece, so that the last one does not wait for the files of all before it."""
    old = with_keys(tmp_path, "rep-field", 3, ["lwe53-p16"])
    folder, sent = old.key_folder(0, "key"), list[tuple[int, bytes]]()
    info = load_key(folder)
    (folder / "round-keys-1.lwe").write_bytes(bytes(5000))
    monkeypatch.setattr("keyquorum.plans.epochs.carried.PIECE", 1024)
    session = SimpleNamespace(send=lambda party, data: sent.append((party, data)))
    between, stated = SimpleNamespace(news=range(3, 6)), Stated({}, [], {"round-keys-1.lwe": (5000, "")}, False)
    passages = {"key": Passage(info.secrets, (Domain.parse(info.secrets[0].domain),), made=False)}
    run: Any = SimpleNamespace(
        old=old,
        new=old,
        number=0,
        context=SimpleNamespace(party=0),
        dealer=None,
        session=session,
        between=between,
        transfer=None,
        passages=passages,
        tries=Tries({}),
    )
    reshare._Run._deal(run, "key", info, stated)
    turns = [sent[i : i + 3] for i in range(0, len(sent), 3)]
    assert all([party for party, _ in turn] == [3, 4, 5] and len({data for _, data in turn}) == 1 for turn in turns)
    files = b"".join((folder / name).read_bytes() for name in sorted(info.files))
    whole = b"".join(turn[0][1] for turn in turns)
    assert len(turns) > len(files) / 1024 and whole.startswith(files) and whole.endswith(bytes(5000))


def test_who_holds_a_key_counts_not_who_made_it(tmp_path: Path) -> None:
    """Shares for subsets of a larger committee, the errors of decryptions, and the parties that may get results."""
    old = with_keys(tmp_path, "rep-field", 3, ["lwe64-p2"])
    new = api.init_after(tmp_path / "new", old, protocol="semi2k", parties=4)
    reshared(old, new)
    run(new, {"kind": "share", "key": "key", "members": 2})
    findings = list(examine_keys(new, range(4)))
    assert all(finding.ok for finding in findings) and sum("shares for every 2 parties" in finding.text for finding in findings) == 4
    folder = new.key_folder(3, "key")
    assert load_held_key(folder).shape == new.shape and load_key(folder).shape == old.shape
    with pytest.raises(MovedError, match="the committee new holds this key"):
        load_key_as(old, old.key_folder(0, "key"))


# -- counts ----------------------------------------------------------------------------------------------------------------


def test_counts_go_with_the_keys(tmp_path: Path) -> None:
    """The largest of the old members; evaluations of a function, too."""
    from keyquorum.plans.epochs.counts import counts_of, set_failed_checks
    from keyquorum.schemes.counts import set_count
    from keyquorum.schemes.prf.evaluations import start_evaluations

    old = with_keys(tmp_path, "rep-field", 3, ["prf-aes128"])
    run(old, api.keygen_job("ckks", "ckks-8192-demo", relin=False))
    info, prf = load_key(old.key_folder(0, "ckks")), load_key(old.key_folder(0, "key"))
    for party, used in ((0, 40), (1, 41), (2, 41)):
        set_count(old.key_folder(party, "ckks"), info, used)
        start_evaluations(old.key_folder(party, "key"), prf.key_id, 7 * party)
    set_failed_checks(old.key_folder(1, "ckks"), info, 3)
    new = api.init_after(tmp_path / "new", old)
    reshared(old, new)
    for party in range(3):
        assert counts_of(new.key_folder(party, "ckks"), info) == {"decryptions": 41, "refusals": 3, "proofs": 0, "evaluations": 0}
        assert counts_of(new.key_folder(party, "key"), prf)["evaluations"] == 14
    record = Record.load(new.party_folder(0), read_epoch(new.party_folder(0)).name)
    assert record.counts == {"ckks/decryptions": 41, "ckks/refusals": 3, "key/evaluations": 14}


def test_evaluations_of_the_last_hour_go_with_the_keys(tmp_path: Path) -> None:
    """Of whichever old member counted them: a receiver that has used its rate has used it at the new members, too. Lines of before that are in the count alone."""
    from keyquorum.model.errors import PolicyError
    from keyquorum.schemes.prf.evaluations import Counted, Evaluations, read_journal, start_evaluations
    from keyquorum.schemes.prf.policy import EvaluationPolicy

    old = with_keys(tmp_path, "rep-field", 3, ["prf-aes128"])
    info = load_key(old.key_folder(0, "key"))
    now, alice, bob = time.time(), "a1" * 32, "b0" * 32
    lines = [
        Counted(now - 9000, alice, "long-ago", 5),
        Counted(now - 60, alice, "request1", 6),
        Counted(now - 30, alice, "request2", 4),
        Counted(now - 40, bob, "request3", 1),
    ]
    for party, mine in enumerate((lines, [lines[1], lines[2]], [lines[0], replace(lines[1], time=now - 50)])):
        start_evaluations(old.key_folder(party, "key"), info.key_id, 20 - party, mine)
    new = api.init_after(tmp_path / "new", old)
    reshared(old, new)
    for party in range(3):
        folder = new.key_folder(party, "key")
        found = read_journal(folder / "evaluations.journal", info.key_id)
        assert found.total == 20 and found.lines == [replace(lines[1], time=now - 50), lines[3], lines[2]]
        count = Evaluations(folder, EvaluationPolicy(info.key_id, 10))
        refusal = count.refusal(alice, "request9", 1)
        assert isinstance(refusal, PolicyError) and "10 are used" in str(refusal)
        assert count.refusal(bob, "request9", 9) is None and count.refusal(alice, "request2", 0) is not None


def test_evaluations_are_more_than_a_control_message(tmp_path: Path) -> None:
    """A receiver that asks often does not hold a resharing up: what members state has no such length."""
    from keyquorum.schemes.prf.evaluations import Counted, read_journal, start_evaluations

    old, now = with_keys(tmp_path, "rep-field", 3, ["prf-aes128"]), time.time()
    info = load_key(old.key_folder(0, "key"))
    lines = [Counted(now - 60, "a1" * 32, f"request{number:024}", 1) for number in range(9000)]
    for party in range(3):
        start_evaluations(old.key_folder(party, "key"), info.key_id, 9000, lines)
    reshared(old, new := api.init_after(tmp_path / "new", old))
    assert len(read_journal(new.key_folder(1, "key") / "evaluations.journal", info.key_id).lines) == 9000


def test_lines_that_where_members_may_lie_one_has_alone(tmp_path: Path) -> None:
    """They do not count there; and what is no line is refused."""
    from keyquorum.plans.epochs.counts import agreed_recent

    info = load_key(with_keys(tmp_path, "rep-field", 3, ["prf-aes128"]).key_folder(0, "key"))
    one, two = ({"time": 1.0, "receiver": "a1" * 32, "id": name, "count": 2} for name in ("request1", "request2"))
    said: dict[int, object] = {0: [one], 1: [one, two], 2: []}
    assert agreed_recent(api.in_process_committee(3, "rep-field"), info, said) == [one, two]
    assert agreed_recent(api.in_process_committee(3, "mal-rep-field"), info, said) == [one]
    wrong: list[object] = [None, {}, [1], [{**one, "count": 0}], [{**one, "more": 1}], [{**one, "time": "now"}], [[one]]]
    for each in wrong:
        with pytest.raises(KeyQuorumError, match="party 2 sent something that is not evaluations"):
            agreed_recent(api.in_process_committee(3, "rep-field"), info, {0: [one], 2: each})


def test_one_member_changes_no_line(tmp_path: Path) -> None:
    """Neither time nor count of a line that others have, which would free or use up a limit; with MACs nobody confirms the word of another, so all must have counted the same."""
    from keyquorum.plans.epochs.counts import agreed_recent

    info = load_key(with_keys(tmp_path, "rep-field", 3, ["prf-aes128"]).key_folder(0, "key"))
    one: Json = {"time": 1.0, "receiver": "a1" * 32, "id": "request1", "count": 2}
    lie: Json = {**one, "time": 2.0**39, "count": 1 << 40}
    assert agreed_recent(api.in_process_committee(3, "mal-rep-field"), info, {0: [lie], 1: [one], 2: [one]}) == [one]
    assert agreed_recent(api.in_process_committee(3, "rep-field"), info, {0: [lie], 1: [one], 2: [one]}) == [lie]
    macs = api.in_process_committee(2, "spdz2k")
    assert agreed_recent(macs, info, {0: [one], 1: [{**one, "time": 3.0}]}) == [{**one, "time": 3.0}]
    different: list[list[Json]] = [[], [lie], [{**one, "id": "request2"}]]
    for each in different:
        with pytest.raises(KeyQuorumError, match=r"parties 0 and 1 .* counted different evaluations"):
            agreed_recent(macs, info, {0: [one], 1: each})


def test_lines_of_the_future_count_from_now_on(tmp_path: Path) -> None:
    from keyquorum.schemes.prf.evaluations import Counted, read_journal, start_evaluations

    start_evaluations(tmp_path, "ab" * 16, 0, [Counted(time.time() + 1e6, "a1" * 32, "request1", 2)])
    [line] = read_journal(tmp_path / "evaluations.journal").lines
    assert line.time <= time.time()


def test_counts_of_the_old_members(tmp_path: Path) -> None:
    """Where parties decrypt without the others, those that were away have old counts; elsewhere a count that nobody confirms is refused."""
    from keyquorum.plans.epochs.counts import agreed_counts

    committee = api.in_process_committee(3, "rep-field")
    info = load_key(with_keys(tmp_path, "rep-field", 3, ["lwe64-p2"]).key_folder(0, "key"))
    zero = {"decryptions": 0, "refusals": 0, "proofs": 0, "evaluations": 0}
    said: dict[int, object] = {0: zero, 1: {**zero, "decryptions": 100}, 2: zero}
    assert agreed_counts(committee, info, said, {})["decryptions"] == 100
    with pytest.raises(KeyQuorumError, match="party 1 reports 100 decryptions"):
        agreed_counts(api.in_process_committee(3, "semi"), info, said, {})
    wrong: list[object] = [{**zero, "proofs": -1}, {**zero, "proofs": True}, {}, None, [1]]
    for each in wrong:
        with pytest.raises(KeyQuorumError, match="party 2 sent something that is not counts"):
            agreed_counts(committee, info, {0: zero, 2: each}, {})


# -- refusals --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "dealers", "said"),
    [
        (("mal-rep-field", 3), ("rep-field", 3), [0, 1], "old is of mal-rep-field: without members 2 the others could not check what is passed on"),
        (("mal-shamir", 5), ("shamir", 3), [0, 2, 4], "old is of mal-shamir: without members 1, 3 the others could not check"),
        (("rep-field", 3), ("shamir", 3), [1], "rep-field: 1 dealers are too few, 3 parties pass a key on by 2 or more: name 2"),
        (("semi", 3), ("shamir", 3), [0, 1], "semi: 2 dealers are too few, 3 parties pass a key on by 3 or more"),
        (("shamir", 5), ("rep-field", 3), [0, 1], "shamir: 2 dealers are too few"),
        (("shamir", 5), ("rep-field", 3), [0, 1, 5], "name members of .* of 0 to 4, each once"),
        (("shamir", 5), ("rep-field", 3), [0, 1, 1], "each once"),
    ],
)
def test_committees_and_dealers_that_are_refused(
    tmp_path: Path, old: tuple[str, int], new: tuple[str, int], dealers: list[int] | None, said: str
) -> None:
    committees = [api.init(tmp_path / name, parties, protocol) for name, (protocol, parties) in (("old", old), ("new", new))]
    with pytest.raises(ParameterError, match=said):
        api.reshare_job(*committees, dealers)
    with pytest.raises(ParameterError, match=said):
        api.reshare(*committees, dealers)


def test_so_many_absent_members_that_they_have_the_key(tmp_path: Path) -> None:
    old, new = api.init(tmp_path / "old", 5, "shamir", 1), api.init(tmp_path / "new", 3)
    with pytest.raises(
        ParameterError, match="3 absent members keep their old shares, and more than 1 have the keys together: name 4 dealers or more"
    ):
        bridge(old, new, [0, 1])
    assert bridge(old, new, [0, 1, 3, 4]).numbers == (0, 1, 3, 4)


@pytest.mark.parametrize(
    ("name", "target", "said"),
    [
        ("lwe64-p2", "shamir", "prime fields alone"),
        ("prf-aes128", "shamir", "prime fields alone"),
        ("prf-legendre127", "semi", "no shares modulo primes of 127 bits"),
    ],
)
def test_keys_that_the_new_committee_cannot_hold(tmp_path: Path, name: str, target: str, said: str) -> None:
    """Refused by each old member alone, before it connects, and by each new one."""
    old = with_keys(tmp_path, "rep-field", 3, [name])
    new = api.init_after(tmp_path / "new", old, protocol=target)
    job, between = api.reshare_job(old, new), bridge(old, new)
    for party in between.olds:
        with pytest.raises(ParameterError, match=said):
            check_alone(between, party, job)
    assert not list((new.party_folder(0)).glob("keys/*"))


def test_new_committees_that_are_refused(tmp_path: Path) -> None:
    """One with a key, the old one itself, one with an identity of the old one, and one that is not complete."""
    old = with_keys(tmp_path, "rep-field", 3, ["lwe53-p16"])
    other = with_keys(tmp_path / "other", "rep-field", 3, ["lwe53-p16"])
    with pytest.raises(KeyFileError, match=r"there is a key key already, .* keyquorum init --after makes a new one"):
        reshared(old, other)
    with pytest.raises(CommitteeError, match=r"the same committee .* keyquorum refresh-shares"):
        reshared(old, Committee.load(old.folder))
    new = api.init_after(tmp_path / "new", old)
    new.identity_path(1).write_bytes(old.identity_path(2).read_bytes())
    text = (new.folder / "committee.toml").read_text().replace(new.parties[1].fingerprint, old.parties[2].fingerprint)
    (new.folder / "committee.toml").write_text(text)
    with pytest.raises(CommitteeError, match="party 1 has the identity of party 2 of committee: a member of both has one for each"):
        reshared(old, Committee.load(new.folder))
    hosts = [f"127.0.0.1:{7100 + party}" for party in range(3)]
    with pytest.raises(CommitteeError, match="fingerprint of party 1 is missing"):
        reshared(old, api.init(tmp_path / "part", 3, "rep-field", hosts=hosts, me=[0]))
    empty = api.init(tmp_path / "empty", 3, "rep-field")
    with pytest.raises((KeyFileError, EngineError), match="nothing to pass on"):
        reshared(empty, api.init_after(tmp_path / "late", empty))


def test_a_job_of_other_committees_is_refused(tmp_path: Path) -> None:
    old, new, other = (api.init(tmp_path / name, 3, "rep-field") for name in ("old", "new", "other"))
    job = api.reshare_job(old, new, [0, 2])
    with pytest.raises(CommitteeError, match="the job is between old and new, and this committee file is neither"):
        api.run_party(other.folder, 0, job)
    with pytest.raises(ParameterError, match="party 1 is not among the dealers 0, 2"):
        api.run_party(old.folder, 1, job)
    with pytest.raises(KeyQuorumError, match="no files of two committees"):
        api.run_party(old.folder, 0, {**job, "dealers": ["0"]})
    with pytest.raises(CommitteeError, match="committee of the job"):
        api.run_party(old.folder, 0, {**job, "new": "name = 3"})


def test_what_is_not_keys_is_refused(tmp_path: Path) -> None:
    """What old members say of their keys is checked before a new one uses it."""
    keys = keys_said(with_keys(tmp_path, "rep-field", 3, ["lwe53-p16"]), 0, "pass on")
    said: Json = {"epoch": [0, ""], "origin": ["committee"], "keys": keys}
    assert is_proper(said) and is_proper({**said, "epoch": [1, "ab" * 16]})
    key = keys["key"]
    assert not is_proper({**said, "keys": {"key": {**key, "origins": ["00" * 16, "00" * 16]}}})
    wrong: list[object] = [
        {}, 3, {**key, "sizes": {}}, {**key, "sizes": dict.fromkeys(key["sizes"], -1)}, {**key, "holding": {**key["holding"], "flags": ["x"]}},
        {**key, "holding": {**key["holding"], "vectors": 3}}, {**key, "origins": ["00"]}, {**key, "origins": 3}, {**key, "info": {**key["info"], "files": 3}},
    ]  # fmt: skip
    for each in wrong:
        assert not is_proper({**said, "keys": {"key": each}}), each
    for change in ({"epoch": [1, ""]}, {"epoch": [0]}, {"epoch": [0, "ab" * 16]}, {"origin": [3]}, {"origin": None}, {"keys": []}):
        assert not is_proper({**said, **change}), change


def test_encrypted_round_keys_for_which_the_disk_is_too_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The change is refused, and the old members keep their shares."""
    old = with_keys(tmp_path, "rep-field", 3, ["lwe53-p16"])
    (old.key_folder(0, "key") / "round-keys-1.lwe").write_bytes(bytes(5_000_000))
    new, shares = api.init_after(tmp_path / "new", old), share_bytes(old)
    monkeypatch.setattr("keyquorum.model.needs.available_disk", lambda folder: 3_000_000)
    with pytest.raises(KeyQuorumError, match=r"the copy of encrypted round keys needs 6\.00 MB of disk, 3\.00 MB are free there"):
        reshared(old, new)
    assert share_bytes(old) == shares and not list(new.folder.rglob("*.lwe"))
