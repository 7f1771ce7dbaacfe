"""A party that lost its folder gets its shares again: they are the same, keys decrypt with stock libraries, wrong helpers are caught, and every refusal is typed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import api
from keyquorum._engine import CheckError, EngineError, ShareFile
from keyquorum.fhe.lwe import TFHE_SETS
from keyquorum.model import checkpoints
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CommitteeError, EpochError, KeyFileError, KeyQuorumError, ParameterError, PolicyError
from keyquorum.parties import run_in_process
from keyquorum.parties.epochs import Change, read_epoch
from keyquorum.parties.jobs import run_job
from keyquorum.plans.epochs import recover
from keyquorum.plans.epochs.orders import examine_epochs, status
from keyquorum.plans.examine import examine_keys
from keyquorum.plans.noise_check import failed_checks, set_failed_checks
from keyquorum.schemes.counts import DECRYPTIONS, decryptions_used, note_split, set_count
from keyquorum.schemes.holding import holding_of, shares_in
from keyquorum.schemes.key_folder import load_key

from tests.commands import command
from tests.fhe.dealer import tiny
from tests.parties.epochs.changes import Killed
from tests.plans.corrupted import ends_of
from tests.plans.test_own_primes import created
from tests.plans.test_refresh import public_files, refreshed, run, secrets, with_keys
from tests.schemes.test_tfhe import TINY

CASES = [
    ("rep-field", 3, ["lwe64-p2", "lwe53-p16", "prf-aes128", "toy-tfhe"], 0),
    ("rep-field", 3, ["bfv-4096"], 2),
    ("shamir", 3, ["lwe53-p16"], 1),
    ("shamir", 5, ["lwe53-p16"], 4),
    ("mal-shamir", 4, ["lwe53-p16"], 3),
]


def lose(committee: Committee, party: int) -> dict[str, bytes]:
    """Removes all of a party's folder but the identity; its files of shares and metadata as they were."""
    folder = committee.party_folder(party)
    identity = committee.identity_path(party).read_bytes()
    kept = {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.suffix in (".kqs", ".json")}
    shutil.rmtree(folder)
    folder.mkdir(mode=0o700)
    committee.identity_path(party).write_bytes(identity)
    committee.identity_path(party).chmod(0o600)
    return kept


def four(folder: Path, names: list[str]) -> Committee:
    """Four parties of which one may be malicious: 2t + 1 are left when one is lost."""
    committee = api.init(folder / "committee", 4, "mal-shamir", threshold=1)
    for number, name in enumerate(names):
        run(committee, api.keygen_job(f"key{number}" if number else "key", name))
    return committee


def recovered(committee: Committee, party: int | list[int], helpers: list[int] | None = None) -> list[str]:
    done = run(committee, api.recover_job(committee, party, helpers))
    assert all(result["keys"] == done[0]["keys"] for result in done)
    return list(done[0]["keys"])


@pytest.mark.parametrize("epochs", [0, 2])
@pytest.mark.parametrize(("protocol", "parties", "names", "lost"), CASES, ids=lambda case: str(case))
def test_the_same_shares_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, parties: int, names: list[str], lost: int, epochs: int
) -> None:
    """In epoch 0 and later: share files and metadata are byte-identical, the secret is what it was, and the next refresh works."""
    monkeypatch.setitem(TFHE_SETS, TINY.name, TINY)
    names = [TINY.name if name == "toy-tfhe" else name for name in names]
    committee = four(tmp_path, names) if protocol == "mal-shamir" else with_keys(tmp_path, protocol, parties, names)
    for _ in range(epochs):
        refreshed(committee)
    keys = sorted(path.name for path in (committee.party_folder(0) / "keys").iterdir())
    before = {key: (secrets(committee, key), public_files(committee, key)) for key in keys}
    kept = lose(committee, lost)
    assert recovered(committee, lost) == keys
    folder = committee.party_folder(lost)
    for name, data in kept.items():
        if name != "epoch.json" and "epochs/" not in name:
            assert (folder / name).read_bytes() == data, name
    assert read_epoch(folder) == read_epoch(committee.party_folder((lost + 1) % parties))
    for key in keys:
        assert (secrets(committee, key), public_files(committee, key)) == before[key]
        assert (committee.key_folder(lost, key).stat().st_mode & 0o777) == 0o700
    assert not (folder / "making").exists()
    assert all(finding.ok for finding in examine_keys(committee, range(parties)))
    assert all(finding.ok for finding in examine_epochs(committee, range(parties)))
    assert bool(status(committee, lost)["backups_before"]) == bool(epochs)
    assert recovered(committee, lost) == [], "nothing is missing any more"
    assert refreshed(committee)["epoch"] == epochs + 1
    assert {key: secrets(committee, key) for key in keys} == {key: secret for key, (secret, _) in before.items()}


def test_a_recovered_party_decrypts_what_seal_computed(tmp_path: Path) -> None:
    """On the command line, with a ciphertext of before the loss: the party that lost its folder is the receiver."""
    folder = tmp_path / "committee"
    committee = api.init(folder, 3, "rep-field")
    api.keygen(folder, "key", created("bfv", 4096, [36, 36, 37]))
    api.encrypt(folder, "key", np.arange(100), tmp_path / "0.ct")
    api.evaluate(folder, "key", "square", [tmp_path / "0.ct"], tmp_path / "1.ct")
    api.refresh_shares(folder)
    lose(committee, 2)
    done = command(tmp_path, "recover", folder, 2)
    assert done.returncode == 0, done.stderr
    assert "party 2 has its shares of key, in epoch 1" in done.stdout + done.stderr
    [output] = api.decrypt(folder, "key", [tmp_path / "1.ct"], 2, [tmp_path / "out"]).outputs
    assert api.decode(folder, "key", output)[:100].tolist() == [i * i for i in range(100)]
    refused = command(tmp_path, "recover", folder, 2, "--from", "1")
    assert refused.returncode == 1 and "1 helpers are too few" in refused.stderr


def test_two_lost_parties_of_five_come_back(tmp_path: Path) -> None:
    """Three helpers are enough; the other lost party takes part without a share, and is recovered next."""
    committee = with_keys(tmp_path, "shamir", 5, ["lwe53-p16"])
    refreshed(committee)
    before = secrets(committee)
    kept = {party: lose(committee, party) for party in (1, 3)}
    with pytest.raises((KeyFileError, EngineError), match="no key here, so there is nothing to recover"):
        recovered(committee, 1)
    for party in (1, 3):
        assert recovered(committee, party, [0, 2, 4]) == ["key"]
        share = next(name for name in kept[party] if name.endswith("share-0.kqs"))
        assert (committee.party_folder(party) / share).read_bytes() == kept[party][share]
    assert secrets(committee) == before


def test_one_lost_key_comes_back(tmp_path: Path) -> None:
    committee = with_keys(tmp_path, "rep-field", 3, ["lwe64-p2", "lwe53-p16"])
    refreshed(committee)
    shutil.rmtree(committee.key_folder(1, "key1"))
    assert recovered(committee, 1) == ["key1"]
    assert all(finding.ok for finding in examine_keys(committee, range(3)))


@pytest.mark.parametrize(("protocol", "parties"), [("rep-field", 3), ("mal-shamir", 4)])
def test_a_count_of_decryptions_comes_back(tmp_path: Path, protocol: str, parties: int) -> None:
    """The largest one of the helpers, and that of the checks of noise. Where parties may be malicious, one far above what others confirm is refused, and the checks are those that an honest one confirms."""
    committee = api.init(tmp_path / "committee", parties, protocol, threshold=1)
    run(committee, api.keygen_job("key", tiny("ckks"), relin=False, policy=api.FloodPolicy(bits=1, decryptions=200, noise_bits=8)))
    info = load_key(committee.key_folder(0, "key"))
    for party, used in ((0, 40), (1, 41)):
        set_count(committee.key_folder(party, "key"), info, used)
        set_failed_checks(committee.key_folder(party, "key"), info, used - 30)
    lose(committee, 2)
    assert recovered(committee, 2) == ["key"]
    assert decryptions_used(committee.key_folder(2, "key"), info) == 41
    assert failed_checks(committee.key_folder(2, "key"), info) == (11 if protocol == "rep-field" else 10)
    set_count(committee.key_folder(1, "key"), info, 100)
    shutil.rmtree(committee.key_folder(2, "key"))
    if protocol == "rep-field":
        assert recovered(committee, 2) == ["key"]
        assert decryptions_used(committee.key_folder(2, "key"), info) == 100
        return
    with pytest.raises((PolicyError, EngineError), match="party 1 reports 100 decryptions"):
        recovered(committee, 2)
    assert not committee.key_folder(2, "key").exists()
    for party in (0, 1):  # what both have noted for a standby, one may have counted alone
        note_split(committee.key_folder(party, "key"), info, {DECRYPTIONS: 100})
    assert recovered(committee, 2) == ["key"]
    assert decryptions_used(committee.key_folder(2, "key"), info) == 100


# -- wrong helpers ---------------------------------------------------------------------------------------------------------


class Lies:
    """Party 0 sends another first word of every message that has the length of a vector."""

    def __init__(self, length: int) -> None:
        self.length, self.begun, self.changed = length, False, 0

    def begin(self) -> None:
        self.begun = True

    def __call__(self, to: int, message: bytes) -> list[bytes]:
        if not self.begun or len(message) != self.length:
            return [message]
        self.changed += 1
        return [bytes([message[0] ^ 1]) + message[1:]]


@pytest.mark.parametrize("omitted", [(), ("RecoveredShares",)], ids=["checked", "ablated"])
def test_a_wrong_helper_is_caught(tmp_path: Path, omitted: tuple[str, ...]) -> None:
    """Nothing is stored. Without the check of the degree the party stores another share, and the secret is another one for who uses it."""
    committee = four(tmp_path, ["lwe53-p16"])
    refreshed(committee)
    before = secrets(committee)
    kept = lose(committee, 3)
    job, wire = api.recover_job(committee, 3), Lies(8 * load_key(committee.key_folder(0, "key")).secrets[0].length)
    ends = ends_of(committee, lambda context: run_job(context, job), omitted=omitted, wire=wire)
    assert wire.changed == 1
    share = next(name for name in kept if name.endswith("share-0.kqs"))
    if omitted:
        assert not any(isinstance(end, Exception) for end in ends), list(ends)
        assert (committee.party_folder(3) / share).read_bytes() != kept[share]
        return
    assert isinstance(ends[3], CheckError) and "is not of one polynomial" in str(ends[3])
    assert not committee.key_folder(3, "key").exists() and not (committee.party_folder(3) / "making").exists()
    assert recovered(committee, 3) == ["key"] and secrets(committee) == before
    assert (committee.party_folder(3) / share).read_bytes() == kept[share]


def test_helpers_that_hold_other_keys_are_refused(tmp_path: Path) -> None:
    """Another origin, a missing key, and a party in another epoch."""
    committee = four(tmp_path, ["lwe53-p16"])
    lose(committee, 3)
    path = committee.key_folder(1, "key") / "mac-0.kqs"
    header = holding_of(committee.key_folder(1, "key"), load_key(committee.key_folder(1, "key"))).share_header(1, 0)
    whole = path.read_bytes()
    ShareFile.write(str(path), {**header, "length": 1}, bytes(16))
    with pytest.raises((EpochError, EngineError), match="parties 0 and 1 are in other epochs, or hold other keys"):
        recovered(committee, 3)
    path.write_bytes(whole)
    public = committee.key_folder(0, "key") / next(iter(load_key(committee.key_folder(0, "key")).files))
    spoiled = bytearray(public.read_bytes())
    spoiled[-1] ^= 1
    public.write_bytes(spoiled)
    with pytest.raises((KeyFileError, EngineError), match="is damaged: copy it from another party"):
        recovered(committee, 3)


# -- refusals --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("protocol", "parties", "helpers", "said"),
    [
        ("semi", 3, None, "nobody knows anything of a lost share: restore a backup"),
        ("mascot", 2, None, "nobody knows anything of a lost share: restore a backup"),
        ("mal-rep-field", 3, [1], "1 helpers are too few, a share is recovered from 2 or more, of which 1 may send wrong shares: name 2"),
        (
            "mal-shamir",
            5,
            [1, 2, 3],
            "3 helpers are too few, a share is recovered from 4 or more, of which 2 may send wrong shares: name 4; if more parties are lost, recover them at once",
        ),
        ("rep-field", 3, [1], "1 helpers are too few, a share is recovered from 2 or more: name 2"),
        ("shamir", 5, [1, 2], "2 helpers are too few, a share is recovered from 3 or more: name 3"),
        ("shamir", 5, [0, 1, 2], "name other parties than 0"),
        ("shamir", 5, [1, 1, 2], "each once"),
        ("shamir", 5, [1, 2, 5], "name other parties than 0 of 0 to 4"),
        ("shamir", 11, None, "sets with a seed in common, above 130: name fewer with --from, at least 6"),
    ],
)
def test_what_is_refused(protocol: str, parties: int, helpers: list[int] | None, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        api.recover_job(api.in_process_committee(parties, protocol), 0, helpers)


def test_helpers_of_a_job_file_that_are_no_numbers_are_refused() -> None:
    helpers: Any = [1, "2", [3]]
    with pytest.raises(ParameterError, match=r"helpers \[1, '2', \[3\]\]: name other parties than 0"):
        recover.helpers_of(api.in_process_committee(5, "shamir"), 0, helpers)


def test_parties_that_are_none_are_refused() -> None:
    committee = api.in_process_committee(3, "shamir")
    with pytest.raises(ParameterError, match="the committee has parties 0 to 2"):
        api.recover_job(committee, 3)


def test_without_its_identity_no_party_is_recovered(tmp_path: Path) -> None:
    committee = with_keys(tmp_path, "shamir", 3, ["lwe53-p16"])
    lose(committee, 1)
    committee.identity_path(1).unlink()
    with pytest.raises(CommitteeError, match=r"identity\.pem: missing: restore it from its backup"):
        api.recover(committee, 1)


def test_an_unfinished_change_is_ended_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cure is named; after it the party comes back to the old epoch."""
    committee = with_keys(tmp_path, "rep-field", 3, ["lwe64-p2"])
    before = secrets(committee)

    def dies(name: str) -> None:
        if name == "epoch/voted/durable":
            raise Killed(name)

    monkeypatch.setattr(checkpoints, "hook", dies)
    with pytest.raises((Killed, KeyQuorumError, EngineError)):
        run_in_process(committee, lambda context: run_job(context, api.refresh_shares_job(committee)), timeout=20)
    monkeypatch.undo()
    lose(committee, 2)
    with pytest.raises(EpochError, match="unfinished: keyquorum epoch commit, or keyquorum epoch give-up --lost 2, before a recovery"):
        recovered(committee, 2)
    api.epoch_give_up(committee, [2])
    assert recovered(committee, 2) == ["key"] and secrets(committee) == before
    assert refreshed(committee)["epoch"] == 1 and secrets(committee) == before


def test_a_restored_backup_is_not_mixed_in(tmp_path: Path) -> None:
    """A party that has an older epoch, or files in the place of a key, is told what to move away."""
    committee = with_keys(tmp_path, "rep-field", 3, ["lwe64-p2"])
    backup = tmp_path / "backup"
    shutil.copytree(committee.party_folder(2), backup)
    refreshed(committee)
    before = secrets(committee)
    shutil.rmtree(committee.party_folder(2))
    shutil.copytree(backup, committee.party_folder(2))
    with pytest.raises((EpochError, EngineError), match=r"party 2 is in epoch 0 and the helpers in 1: .*move keys, epoch\.json"):
        recovered(committee, 2)
    shutil.rmtree(committee.party_folder(2) / "keys")
    place = committee.key_folder(2, "key")
    place.mkdir(parents=True)
    (place / "share-0.kqs").write_bytes(b"x")
    with pytest.raises(KeyFileError, match="there are files without a key"):
        recovered(committee, 2)
    shutil.rmtree(place)
    assert recovered(committee, 2) == ["key"] and secrets(committee) == before
    spoiled = shares_in(place) / "share-0.kqs"
    spoiled.write_bytes(spoiled.read_bytes()[:-1])
    with pytest.raises((KeyFileError, EngineError), match=r"its shares are damaged or missing .*move the folder away"):
        recovered(committee, 2)


# -- crashes ---------------------------------------------------------------------------------------------------------------

POINTS = ["recover/records", "recover/journal", "recover/epoch", "recover/written", "recover/published"]


@pytest.mark.parametrize("point", POINTS)
def test_a_recovery_that_is_cut_off_is_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    committee = with_keys(tmp_path, "shamir", 3, ["lwe53-p16", "lwe53-p16"])
    refreshed(committee)
    refreshed(committee)
    before = {key: secrets(committee, key) for key in ("key", "key1")}
    kept = lose(committee, 0)
    died = list[str]()

    def dies(name: str) -> None:
        if name == point and not died:
            died.append(name)
            raise Killed(name)

    monkeypatch.setattr(checkpoints, "hook", dies)
    monkeypatch.setattr(recover, "_clear", lambda making: None)  # a dead party clears nothing
    with pytest.raises((Killed, KeyQuorumError, EngineError)):
        run_in_process(committee, lambda context: run_job(context, api.recover_job(committee, 0)), timeout=20)
    monkeypatch.undo()
    assert died == [point]
    assert recovered(committee, 0) == (["key1"] if point == "recover/published" else ["key", "key1"])
    for name, data in kept.items():
        if name.endswith(".kqs"):
            assert (committee.party_folder(0) / name).read_bytes() == data
    assert {key: secrets(committee, key) for key in before} == before
    assert not (committee.party_folder(0) / "making").exists()
    change = Change.current(committee, 0)
    assert change is not None and change.standing.stage in ("committed", "erased")
    api.epoch_erase(committee)
    assert refreshed(committee)["epoch"] == 3
