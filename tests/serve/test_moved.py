"""Old members of a committee that passed its keys on: they answer ``moved`` with what proves it, and receivers believe t + 1 of them."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from keyquorum import api
from keyquorum._engine import EngineError
from keyquorum.model.committee import Committee
from keyquorum.model.epoch import NAME_DIGITS, Stage, Standing
from keyquorum.model.errors import EpochError, KeyQuorumError, MovedError
from keyquorum.model.plain import Json
from keyquorum.parties.epochs import Change, Record, committee_json
from keyquorum.parties.epochs import moved as proofs
from keyquorum.parties.epochs.moved import checked_move, proof_of_move
from keyquorum.parties.epochs.statements import signed
from keyquorum.serve.client import Receiver, Refused, fetch, make_receiver
from keyquorum.serve.daemon import Daemon, served
from keyquorum.serve.kinds import Own, Service
from keyquorum.serve.live.daemon import live_served
from keyquorum.serve.live.keeper import Keeper
from keyquorum.serve.live.options import LiveOwn
from keyquorum.serve.live.receiver import fetch_live
from keyquorum.serve.moved import MovedParty
from keyquorum.serve.successor import Moved

from tests.plans.epochs.reshared import reshared
from tests.plans.test_refresh import with_keys

Moving = tuple[Committee, Committee, bytes]


@pytest.fixture
def staying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Moving:
    """A committee of three with a key, one to which that may go, and a ciphertext."""
    monkeypatch.setattr("os.fsync", lambda _: None)
    old = with_keys(tmp_path, "rep-field", 3, ["lwe53-p16"])
    make_receiver(old, "alice")
    api.encrypt(old, "key", [1, 0, 3], tmp_path / "x.lwe")
    return old, api.init_after(tmp_path / "new", old), (tmp_path / "x.lwe").read_bytes()


@pytest.fixture
def moving(staying: Moving) -> Moving:
    """The same, after the key went there."""
    reshared(*staying[:2])
    return staying


@contextmanager
def serving(committee: Committee, parties: list[int], live: bool = False) -> Iterator[list[MovedParty]]:
    """Parties that their operators start as before."""
    service, own, found = Service("key", rounding="round_ltz"), Own(ports=(0, None)), list[MovedParty]()
    for party in parties:
        if live:
            one = live_served(committee, party, service, own, lambda line: None, LiveOwn())
        else:
            one = served(committee, party, service, own, lambda line: None, lambda party=party: Daemon(committee, party, service, own))
        assert isinstance(one, MovedParty)
        found.append(one)
    threads = [threading.Thread(target=one.run, daemon=True) for one in found]
    for thread in threads:
        thread.start()
    try:
        yield found
    finally:
        for one, thread in zip(found, threads, strict=True):
            one.stop()
            thread.join(20)
            assert not thread.is_alive()


@pytest.mark.parametrize("parties", [[0, 1, 2], [2]], ids=["all", "the last one alone"])
def test_a_receiver_learns_where_the_keys_are(moving: Moving, parties: list[int]) -> None:
    """One old member that is served is enough: it shows what the others signed. Each request has its line in the audit log, without its digest."""
    old, new, data = moving
    with serving(old, parties), pytest.raises(Moved) as caught:
        fetch(old, old.folder / "receiver-alice.pem", data)
    assert caught.value.committee == committee_json(new) and caught.value.epoch == 1
    assert caught.value.leads_to(new) and not caught.value.leads_to(old)
    assert (
        f"the committee new (rep-field, 3 parties) with the digest {new.digest.hex()} holds the keys, as 3 members of committee have signed"
        in str(caught.value)
    )
    lines = [json.loads(line) for line in (old.party_folder(parties[0]) / "audit.jsonl").read_text().splitlines()]
    asked = [line for line in lines if "receiver" in line]
    assert asked and {line["type"] for line in asked} == {"MovedError"} and {line["sha256"] for line in asked} == {None}
    assert not (old.party_folder(parties[0]) / "serve.json").exists()


def test_a_receiver_of_live_parties_learns_it(moving: Moving) -> None:
    old, new, data = moving
    with serving(old, [0, 2], live=True), pytest.raises(Moved) as caught:
        fetch_live(old, old.folder / "receiver-alice.pem", data)
    assert caught.value.leads_to(new)


def test_the_new_committee_passes_them_on_again(moving: Moving, tmp_path: Path) -> None:
    """Its members answer with their own change, and the first ones still with theirs."""
    old, new, data = moving
    third = api.init_after(tmp_path / "third", new)
    reshared(new, third)
    make_receiver(new, "alice")
    for committee, following in ((old, new), (new, third)):
        with serving(committee, [1]), pytest.raises(Moved) as caught:
            fetch(committee, committee.folder / "receiver-alice.pem", data)
        assert caught.value.leads_to(following)


def test_nothing_is_said_before_all_have_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that does not know it does not serve at all, as before."""
    monkeypatch.setattr("os.fsync", lambda _: None)
    old = with_keys(tmp_path, "rep-field", 3, ["lwe53-p16"])
    new = api.init_after(tmp_path / "new", old)
    reshared(old, new)
    make_receiver(old, "alice")
    service = Service("key", rounding="round_ltz")
    monkeypatch.setattr(Change, "uncommitted", lambda change: [new.parties[0].fingerprint])
    assert proof_of_move(old, 0) == b""
    with pytest.raises(MovedError, match="since epoch 1 the committee new holds this key"):
        served(old, 0, service, Own(), lambda line: None, lambda: Daemon(old, 0, service))


@pytest.fixture
def unheard(staying: Moving, monkeypatch: pytest.MonkeyPatch) -> Moving:
    """The same, cut off at the end: nobody has erased, and old member 2 has not heard that the new ones committed."""
    (old, new, _), hear = staying, Change._hear
    joining = {party.fingerprint for party in new.parties}

    def heard(change: Change, data: Json, where: str) -> None:
        if change.me != old.parties[2].fingerprint or data["kind"] != Stage.COMMITTED or data["who"] not in joining:
            hear(change, data, where)

    def killed(change: Change) -> int:
        raise CutOff

    check, ended = Change.check_erasable, threading.Barrier(old.size + new.size)

    def checked_together(change: Change) -> Standing:
        ended.wait(30)  # who fails first cuts off those that have yet to hear something
        return check(change)

    with monkeypatch.context() as patch:
        patch.setattr(Change, "_hear", heard)
        patch.setattr(Change, "check_erasable", checked_together)
        patch.setattr(Change, "erase", killed)
        with pytest.raises((CutOff, KeyQuorumError, EngineError)):
            reshared(old, new)
    assert proof_of_move(old, 0) and not proof_of_move(old, 2)
    return staying


class CutOff(Exception):
    """The process of a party died."""


def shares_of(committee: Committee, party: int) -> list[Path]:
    return list(committee.party_folder(party).rglob("share-*.kqs"))


def test_an_old_member_lends_its_lock_to_the_end_of_the_change(unheard: Moving) -> None:
    """A resharing that was killed before its erasure ends while old members answer ``moved``."""
    old, new, data = unheard
    with serving(old, [0, 1]):
        assert shares_of(old, 0)
        api.epoch_commit(old)
        api.epoch_erase(old)
        assert not any(shares_of(old, party) for party in range(3))
        with pytest.raises(Moved) as caught:
            fetch(old, old.folder / "receiver-alice.pem", data)
    assert caught.value.leads_to(new)


@pytest.mark.parametrize("keeps", [True, False], ids=["goes on", "ablated"])
def test_a_live_old_member_ends_the_change_by_itself(unheard: Moving, monkeypatch: pytest.MonkeyPatch, keeps: bool) -> None:
    """It has committed, and does not know that all others have: it hears it from live ones, erases its shares, and answers ``moved``. Until then requests are refused."""
    old, new, data = unheard
    if not keeps:
        monkeypatch.setattr(Keeper, "step", lambda keeper, epoch: False)
    with serving(old, [2], live=True):
        with pytest.raises(KeyQuorumError) as early:
            fetch_live(old, old.folder / "receiver-alice.pem", data, wait=1.0)
        assert not isinstance(early.value, Moved) and shares_of(old, 2)
        with serving(old, [0], live=True):
            until = time.monotonic() + (30.0 if keeps else 5.0)
            while shares_of(old, 2) and time.monotonic() < until:
                time.sleep(0.1)
            assert bool(shares_of(old, 2)) == bool(shares_of(old, 0)) == (not keeps)
            if keeps:
                with pytest.raises(Moved) as caught:
                    fetch_live(old, old.folder / "receiver-alice.pem", data)
                assert caught.value.leads_to(new)


def evil(old: Committee, folder: Path, liars: list[int]) -> bytes:
    """What these old members could show of a change to a committee of their own, whose members all signed."""
    theirs = api.init(folder / "evil", 3, "rep-field")
    name = secrets.token_hex(NAME_DIGITS // 2)
    record = Record(name, 1, "", committee_json(old), committee_json(theirs), {"key": {"key_id": "ab" * 16, "sharing": name}})
    identities = [*(theirs.identity_path(party) for party in range(3)), *(old.identity_path(party) for party in liars)]
    said = [signed(record, identity, Stage.COMMITTED, []).to_json() for identity in identities]
    return json.dumps({"record": record.data.decode(), "statements": said}).encode()


@pytest.mark.parametrize("ablated", [False, True], ids=["checked", "ablated"])
def test_a_false_successor(moving: Moving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ablated: bool) -> None:
    """t members of the old committee cannot lead a receiver to their own one. Without the count of signatures they do."""
    old, new, data = moving
    if ablated:
        monkeypatch.setattr(proofs, "_enough", lambda committee, signed: bool(signed))
    forged = evil(old, tmp_path, [0])
    with serving(old, [0]) as parties:
        parties[0].listener._key.refusal = MovedError("moved: to us", forged)  # type: ignore[attr-defined]
        with pytest.raises(Moved if ablated else EpochError) as caught:
            fetch(old, old.folder / "receiver-alice.pem", data)
    if ablated:
        assert caught.value.committee["name"] == "evil"  # type: ignore[attr-defined]
    else:
        assert (
            "party 0 said that the keys moved to another committee, and not 2 members of committee and all new ones have signed this: believe nobody"
            in str(caught.value)
        )
    with serving(old, [0, 1]) as parties:
        parties[0].listener._key.refusal = MovedError("moved: to us", forged)  # type: ignore[attr-defined]
        if not ablated:
            with pytest.raises(Moved) as found:
                fetch(old, old.folder / "receiver-alice.pem", data)
            assert found.value.leads_to(new), "what an honest member shows counts, whoever lies beside it"


def test_what_proves_nothing(moving: Moving, tmp_path: Path) -> None:
    """A record that was changed, statements of another committee, too few of them, no JSON, and members of the new committee that have not committed."""
    old, _, _ = moving
    proof = json.loads(proof_of_move(old, 0))
    assert checked_move(old, {"a": json.dumps(proof).encode()}).signed == 3
    other = api.init(tmp_path / "other", 3, "rep-field")
    by_old = [said for said in proof["statements"] if said["who"] in {p.fingerprint for p in old.parties}]
    by_new = [said for said in proof["statements"] if said not in by_old]
    changed = Record.parse(proof["record"].encode(), "test")
    for committee, shown in (
        (old, {**proof, "record": replace(changed, new=committee_json(other)).data.decode()}),
        (other, proof),
        (old, {**proof, "statements": [*by_new, by_old[0]]}),
        (old, {**proof, "statements": [*by_new, by_old[0], by_old[0]]}),
        (old, {**proof, "statements": [*by_old, *by_new[:2]]}),
        (old, {**proof, "statements": "x"}),
        (old, ["no object"]),
        (old, {}),
    ):
        with pytest.raises(EpochError, match="party 0 said that the keys moved"):
            checked_move(committee, {"party 0": json.dumps(shown).encode()})
    with pytest.raises(EpochError):
        checked_move(old, {"party 0": b"\xff"})
    together = {"party 0": {**proof, "statements": [*by_new, by_old[0]]}, "party 1": {**proof, "statements": [by_old[1]]}}
    assert checked_move(old, {who: json.dumps(shown).encode() for who, shown in together.items()}).signed == 2


def test_a_receiver_that_is_not_admitted_learns_nothing(moving: Moving) -> None:
    old, _, data = moving
    with serving(old, [0, 1, 2]):
        (old.party_folder(0) / "receivers" / "receiver-alice.crt").unlink()
        receiver = Receiver(old, old.folder / "receiver-alice.pem")
        with pytest.raises(KeyQuorumError) as caught:
            receiver.decrypt(data)
        receiver.close()
    assert not isinstance(caught.value, Refused)
