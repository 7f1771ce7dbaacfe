"""Who gets the keys of a resharing, and whose keys they are: a member knows the other committee by itself, since a job may have been changed on its way."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from keyquorum import api
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CommitteeError, KeyQuorumError, ParameterError
from keyquorum.model.plain import Json
from keyquorum.parties import worker
from keyquorum.schemes.key_folder import load_key

from tests.commands import command
from tests.plans.test_refresh import share_bytes, with_keys

from .reshared import secrets_of


@pytest.fixture(autouse=True)
def _without_syncs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)


def ended(members: Sequence[tuple[Committee, int]], job: Json, to: str | Path | None, old: str | Path | None = None) -> list[Json | Exception]:
    """Runs the members at once, over TLS: the result or the error of each. ``to``, ``old``: what each compares."""

    def one(member: tuple[Committee, int]) -> Json | Exception:
        committee, number = member
        try:
            return api.run_party(committee.folder, number, job, connect_timeout=10.0, io_timeout=10.0, to=to, old=old)
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(members)) as pool:
        return list(pool.map(one, members))


def swapped(old: Committee, job: Json, folder: Path) -> tuple[Committee, Json]:
    """An attacker's committee, with the name and protocol of the right one, and the job with it."""
    thief = api.init_after(folder, old, name="new")
    return thief, {**job, "new": thief.text}


def members_of(committee: Committee) -> list[tuple[Committee, int]]:
    """All members, for :func:`ended`."""
    return [(committee, number) for number in range(committee.size)]


def test_a_job_with_another_new_committee_is_refused_before_anything_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The attacker has changed the job on its way to the old members. Without the comparison its committee has all keys, and the old members have erased theirs."""
    old = with_keys(tmp_path, "rep-field", 3, ["lwe53-p16"])
    new = api.init_after(tmp_path / "new", old, name="new")
    thief, job = swapped(old, api.reshare_job(old, new), tmp_path / "thief")
    truth, shares = secrets_of(old), share_bytes(old)
    with monkeypatch.context() as patch:
        sent: list[str] = []
        for name in ("open_session", "_send_abort"):
            patch.setattr(worker, name, lambda *given, name=name: sent.append(name))
        for to in (new.digest.hex(), new.digest.hex().upper(), str(new.folder), new.folder):
            for error in ended(members_of(old), job, to):
                assert isinstance(error, CommitteeError) and "the job passes all keys on to new with digest" in str(error), error
                assert new.digest.hex()[:16] in str(error) and "nothing was sent; find out who changed the job" in str(error)
        for error in ended(members_of(old), job, None):
            assert isinstance(error, ParameterError) and "the job file alone says who gets all keys: give --to" in str(error)
            assert thief.digest.hex() not in str(error), "nobody takes the digest from the job"
        for error in ended(members_of(new), job, None):
            assert isinstance(error, CommitteeError) and "this committee file is neither" in str(error)
        assert not sent and share_bytes(old) == shares and not list(thief.folder.glob("party-*/keys/*"))
    monkeypatch.setattr(worker, "check_to", lambda *given: None)
    done = ended([*members_of(old), *members_of(thief)], job, new.digest.hex(), old.folder)
    assert all(isinstance(result, dict) for result in done), done
    assert secrets_of(thief) == truth and not list(old.folder.glob("party-*/keys/key/**/share-*.kqs"))


def test_a_job_with_another_old_committee_is_refused_before_anything_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The attacker has changed the job on its way to the new members, and knows the key that it passes on. Without the comparison they take it for that of the old committee, and clients of the new one encrypt for the attacker."""
    old, thief = (with_keys(tmp_path / name, "rep-field", 3, ["lwe53-p16"]) for name in ("old", "thief"))
    new = api.init_after(tmp_path / "new", old, name="new")
    job = api.reshare_job(thief, new)
    with monkeypatch.context() as patch:
        sent: list[str] = []
        for name in ("open_session", "_send_abort"):
            patch.setattr(worker, name, lambda *given, name=name: sent.append(name))
        for given in (old.digest.hex(), old.digest.hex().upper(), str(old.folder), old.folder):
            for error in ended(members_of(new), job, None, given):
                assert isinstance(error, CommitteeError), error
                assert f"the job passes on the keys of {thief.name} with digest {thief.digest.hex()[:16]}" in str(error)
                assert old.digest.hex()[:16] in str(error) and "nothing was taken; find out who changed the job" in str(error)
        for error in ended(members_of(new), job, new.folder, None):
            assert isinstance(error, ParameterError) and "the job file alone says whose keys come: give --from" in str(error)
            assert thief.digest.hex() not in str(error), "nobody takes the digest from the job"
        assert not sent and not list(new.folder.glob("party-*/keys/*"))
    monkeypatch.setattr(worker, "check_from", lambda *given: None)
    done = ended([*members_of(thief), *members_of(new)], job, new.digest.hex())
    assert all(isinstance(result, dict) for result in done), done
    assert load_key(new.key_folder(0, "key")).key_id != load_key(old.key_folder(0, "key")).key_id


def test_a_job_cannot_bring_its_own_digest(tmp_path: Path) -> None:
    old, new = (api.init(tmp_path / name, 3, "rep-field") for name in ("old", "new"))
    job = {**api.reshare_job(old, new), "local": {"to": new.digest.hex()}, "to": new.digest.hex()}
    for given in (job, {name: value for name, value in job.items() if name != "to"}):
        with pytest.raises(KeyQuorumError, match=r"give --to with the folder|has a field 'to'"):
            api.run_party(old.folder, 0, given)


def test_the_right_committee_gets_the_keys(tmp_path: Path) -> None:
    """Old members name its digest or folder, and new ones those of the old committee."""
    old = with_keys(tmp_path, "rep-field", 3, ["lwe53-p16"])
    new = api.init_after(tmp_path / "new", old)
    truth, job = secrets_of(old), api.reshare_job(old, new)
    with ThreadPoolExecutor(4) as pool:
        given = [
            ([(old, 0)], new.digest.hex(), None),
            ([(old, 1)], str(new.folder), old.folder),
            ([(old, 2)], f" {new.digest.hex().upper()}\n", None),
            (members_of(new), None, old.digest.hex()),
        ]
        done = [result for results in pool.map(lambda each: ended(each[0], job, *each[1:]), given) for result in results]
    assert all(isinstance(result, dict) for result in done), done
    assert secrets_of(new) == truth


def test_what_is_no_committee_is_refused(tmp_path: Path) -> None:
    old, new = (api.init(tmp_path / name, 3, "rep-field") for name in ("old", "new"))
    job = api.reshare_job(old, new)
    for to in (tmp_path / "none", "ab" * 31, ""):
        with pytest.raises(ParameterError, match="neither the folder of a committee nor a digest of 64 hexadecimal digits"):
            api.run_party(old.folder, 0, job, to=to)
    part = api.init(tmp_path / "part", 3, "rep-field", hosts=[f"127.0.0.1:{7100 + party}" for party in range(3)], me=[0])
    with pytest.raises(CommitteeError, match="fingerprint of party 1 is missing"):
        api.run_party(old.folder, 0, job, to=part.folder)
    with pytest.raises(CommitteeError, match="party 0 of new: the job passes all keys on to new"):
        api.run_party(new.folder, 0, job, to=old.folder)
    with pytest.raises(CommitteeError, match="party 0 of old: the job passes on the keys of old"):
        api.run_party(old.folder, 0, job, to=new.folder, old=new.folder)
    with pytest.raises(ParameterError, match=r"--from .*none: neither the folder of a committee nor a digest"):
        api.run_party(new.folder, 0, job, old=tmp_path / "none")
    with pytest.raises(ParameterError, match="--from is for reshare jobs"):
        api.run_party(old.folder, 0, api.keygen_job("key", "ckks-8192-demo"), old=new.folder)
    with pytest.raises(ParameterError, match="--to is for reshare jobs"):
        api.run_party(old.folder, 0, api.keygen_job("key", "ckks-8192-demo"), to=new.folder)


def test_each_operator_accepts_a_weaker_origin(tmp_path: Path) -> None:
    """A changed job alone does not make members accept it, nor leave it out."""
    old = with_keys(tmp_path, "rep-field", 3, ["lwe53-p16"])
    new = api.init_after(tmp_path / "new", old, protocol="mal-rep-field")
    job = api.reshare_job(old, new, accept_origin="semi-honest")
    for accepted in (None, "burned"):
        with pytest.raises(ParameterError, match=r"the job accepts a weaker origin of the keys, 'semi-honest', .* give --accept-origin semi-honest"):
            api.run_party(old.folder, 0, job, to=new.folder, accepted=accepted)
        with pytest.raises(ParameterError, match="the job accepts a weaker origin"):
            api.run_party(new.folder, 1, job, old=old.folder, accepted=accepted)
    like = api.init_after(tmp_path / "like", old)
    with pytest.raises(ParameterError, match="--accept-origin burned: the job accepts no origin"):
        api.run_party(old.folder, 0, api.reshare_job(old, like), to=like.folder, accepted="burned")
    said = command(tmp_path, "reshare", old.folder, new.folder, "--accept-origin", "semi-honest", "--job", "job.json")
    assert "at all members whose operators agree add --accept-origin semi-honest" in said.stdout


def test_the_digest_for_people(tmp_path: Path) -> None:
    """Of the commands that make the new committee and the job; ``keyquorum party`` asks for it."""
    old = api.init(tmp_path / "old", 2, "semi")
    made = command(tmp_path, "init", "new", "--after", "old", "--json")
    digest = Committee.load(tmp_path / "new").digest.hex()
    before = old.digest.hex()
    assert (json.loads(made.stdout)["digest"], json.loads(made.stdout)["digest_after"]) == (digest, before)
    written = command(tmp_path, "reshare", "old", "new", "--job", "job.json")
    assert f"--to {digest}, the digest of new" in written.stdout + written.stderr
    assert f"--from {before}, the digest of old" in written.stdout + written.stderr
    refused = command(tmp_path, "party", "new", 0, "job.json")
    assert refused.returncode == 1 and "party 0 of new: the job file alone says whose keys come: give --from" in refused.stderr
    refused = command(tmp_path, "party", "new", 1, "job.json", "--from", digest)
    assert refused.returncode == 1 and "party 1 of new: the job passes on the keys of old" in refused.stderr
    refused = command(tmp_path, "party", "old", 0, "job.json")
    assert refused.returncode == 1 and "party 0 of old: the job file alone says who gets all keys: give --to" in refused.stderr
    refused = command(tmp_path, "party", "old", 1, "job.json", "--to", old.digest.hex())
    assert refused.returncode == 1 and "party 1 of old: the job passes all keys on to new" in refused.stderr
    places = [word for port in (4000, 4001) for word in ("--host", f"localhost:{port}")]
    for party in range(2):
        command(tmp_path, "init", f"far-{party}", "-E", "semi", "-N", 2, *places, "--me", party, "--name", "far")
    fingerprint = command(tmp_path, "fingerprint", "far-1").stdout.strip()
    said = json.loads(command(tmp_path, "trust", "far-0", 1, fingerprint, "--json").stdout)
    assert said["digest"] == Committee.load(tmp_path / "far-0").digest.hex()
