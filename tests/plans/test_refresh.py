"""Refresh of shares: keys of every scheme and committee decrypt with new shares, old and new shares do not fit together, and nothing public changes."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from keyquorum import api
from keyquorum._engine import EngineError, ShareFile, StoreError
from keyquorum.fhe.lwe import TFHE_SETS
from keyquorum.model.committee import Committee
from keyquorum.model.domains import Domain
from keyquorum.model.errors import EpochError, KeyFileError, KeyQuorumError, ParameterError
from keyquorum.model.plain import Json
from keyquorum.parties import PartyContext, run_in_process
from keyquorum.parties.epochs import Change, read_epoch
from keyquorum.parties.jobs import check_alone, run_job
from keyquorum.plans.epochs import refresh
from keyquorum.plans.epochs.refresh import check_members
from keyquorum.plans.examine import examine_keys
from keyquorum.schemes import scheme_of
from keyquorum.schemes.holding import Holding, holding_of, shares_in
from keyquorum.schemes.key_folder import load_key, load_shares
from keyquorum.schemes.subset_keys import compare_key
from keyquorum.schemes.subset_shares import SUBSETS
from keyquorum.sharing.group import lagrange

from tests.schemes.test_tfhe import TINY

CASES = [
    ("rep-field", 3, ["lwe64-p2", "lwe53-p16", "prf-aes128"]),
    ("rep-field", 3, ["toy-tfhe"]),
    ("shamir", 5, ["lwe53-p16"]),
    ("semi", 3, ["lwe64-p2", "prf-aes128"]),
    ("mal-rep-field", 3, ["lwe64-p2"]),
    ("mal-shamir", 5, ["lwe53-p16"]),
]


def run(committee: Committee, job: Json) -> list[Json]:
    for party in range(committee.size):
        check_alone(committee, party, job)
    return cast(list[Json], run_in_process(committee, lambda context: run_job(context, job), timeout=60))


def refreshed(committee: Committee) -> Json:
    done = run(committee, api.refresh_shares_job(committee))
    assert all(result["name"] == done[0]["name"] for result in done)
    return done[0]


def secrets(committee: Committee, key: str = "key") -> list[list[int]]:
    """The secret vectors that all parties' shares give together."""
    place = committee.key_folder(0, key)
    found = []
    held = [load_shares(committee.key_folder(party, key), load_key(place), party) for party in range(committee.size)]
    for index, vector in enumerate(load_key(place).secrets):
        found.append(opened(committee, [shares[index].words for shares in held], vector.domain))
    return found


def words_of(committee: Committee, party: int) -> np.ndarray:
    """A copy of a party's share of the first vector, [parts, words]: the loaded one is wiped when it is dropped."""
    folder = committee.key_folder(party, "key")
    share = load_shares(folder, load_key(folder), party)[0]
    return np.array(share.words)


def opened(committee: Committee, words: list[np.ndarray], domain: str) -> list[int]:
    """A vector from the shares of parties 0 to t, or of all."""
    q = Domain.parse(domain).modulus
    numbers = [[[int(x) for x in part] for part in share] for share in words]
    sharing = committee.capabilities.sharing
    if sharing == "replicated":
        summands = [numbers[party][0] for party in range(3)]
        assert all(numbers[party][1] == numbers[party - 1][0] for party in range(3)), "copies of summands"
    elif sharing == "Shamir":
        points = [party + 1 for party in range(committee.threshold + 1)]
        summands = [[lagrange(points, i, q) * x for x in numbers[i][0]] for i in range(committee.threshold + 1)]
    else:
        summands = [share[0] for share in numbers]
    return [sum(column) % q for column in zip(*summands, strict=True)]


def public_files(committee: Committee, key: str = "key") -> dict[str, bytes]:
    folder = committee.key_folder(1, key)
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.suffix != ".kqs"}


def with_keys(folder: Path, protocol: str, parties: int, names: list[str]) -> Committee:
    committee = api.init(folder / "committee", parties, protocol)
    for number, name in enumerate(names):
        run(committee, api.keygen_job(f"key{number}" if number else "key", name))
    return committee


def share_bytes(committee: Committee) -> list[bytes]:
    """Bytes of each share file of all keys, without its header. Of large files more: those of bits have a bit in each word, and 20 bits are found elsewhere by chance."""
    folders = [path for party in range(committee.size) for path in (committee.party_folder(party) / "keys").iterdir()]
    files = [path.read_bytes() for folder in folders for path in shares_in(folder).glob("share-*.kqs")]
    return [data[-2200 if len(data) > 8000 else -200 : -32] for data in files]


@pytest.mark.parametrize(("protocol", "parties", "names"), CASES, ids=lambda case: str(case))
def test_new_shares_of_the_same_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str, parties: int, names: list[str]) -> None:
    """All vectors have their values, twice; public files are byte-identical, and no old share is left anywhere in a party's folder."""
    if names == ["toy-tfhe"]:
        monkeypatch.setitem(TFHE_SETS, TINY.name, TINY)
        names = [TINY.name]
    committee = with_keys(tmp_path, protocol, parties, names)
    keys = ["key", "key1", "key2"][: len(names)]
    before = {key: (secrets(committee, key), public_files(committee, key)) for key in keys}
    for number in (1, 2):
        old = share_bytes(committee)
        done = refreshed(committee)
        assert (done["epoch"], done["keys"]) == (number, keys)
        for key in keys:
            assert (secrets(committee, key), public_files(committee, key)) == before[key]
            assert holding_of(committee.key_folder(0, key), load_key(committee.key_folder(0, key))).epoch == number
        for party in range(parties):
            left = b"".join(path.read_bytes() for path in committee.party_folder(party).rglob("*") if path.is_file())
            assert not any(share in left for share in old)
    assert all(finding.ok for finding in examine_keys(committee, range(parties)))


def test_shares_of_two_epochs_do_not_fit(tmp_path: Path) -> None:
    """Any t old shares with new ones of the others give another vector; a party that was restored is refused before a share is used."""
    committee = with_keys(tmp_path, "shamir", 5, ["lwe53-p16"])
    info = load_key(committee.key_folder(0, "key"))
    old = [words_of(committee, party) for party in range(5)]
    saved = {path: path.read_bytes() for path in committee.party_folder(4).rglob("*") if path.is_file() and ("keys" in path.parts)}
    refreshed(committee)
    new = [words_of(committee, party) for party in range(5)]
    domain, truth = info.secrets[0].domain, secrets(committee)[0]
    assert opened(committee, old, domain) == opened(committee, new, domain) == truth
    for at in combinations(range(3), 2):
        mixed = [old[i] if i in at else new[i] for i in range(5)]
        assert opened(committee, mixed, domain) != truth
    for path, data in saved.items():
        path.write_bytes(data)
        path.chmod(0o600)
    for name in ("epoch.json", "epochs.journal"):
        (committee.party_folder(4) / name).unlink()

    def compared(context: PartyContext) -> None:
        compare_key(context, committee.key_folder(context.party, "key"), info)

    with pytest.raises((EpochError, EngineError), match=r"epoch 1 here, 0 at party 4|epoch 0 here, 1 at party 0"):
        run_in_process(committee, compared, timeout=20)


@pytest.mark.parametrize("protocol", ["rep-field", "shamir", "semi"])
def test_old_and_new_shares_of_a_party_are_independent(tmp_path: Path, protocol: str) -> None:
    """Quarters of old and new words of a party: independent by chi² (one false alarm in 10^6). Without shares of zero the same figure fails."""
    committee = with_keys(tmp_path, protocol, 3, ["lwe53-p16"])
    info = load_key(committee.key_folder(0, "key"))

    q = Domain.parse(info.secrets[0].domain).modulus
    old = words_of(committee, 1)[0]
    refreshed(committee)
    assert chi2(old, words_of(committee, 1)[0], q) < 56.5
    assert chi2(old, old, q) > 56.5


def chi2(old: np.ndarray, new: np.ndarray, q: int) -> float:
    """Of a table of 4 × 4 quarters: 15 degrees of freedom; above 56.5 by chance once in 10^6."""
    table = np.zeros((4, 4))
    for a, b in zip(old, new, strict=True):
        table[int(a) * 4 // q, int(b) * 4 // q] += 1
    mean = len(old) / 16
    return float(((table - mean) ** 2 / mean).sum())


def test_a_failure_before_the_vote_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    committee = with_keys(tmp_path, "rep-field", 3, ["lwe64-p2"])
    before = secrets(committee)
    whole, calls = refresh.refresh_key, []

    def fails(*given: object) -> None:
        calls.append(1)
        if len(calls) == 2:
            raise OSError("no space left")
        whole(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(refresh, "refresh_key", fails)
    with pytest.raises(Exception, match=r"no space left|party"):
        refreshed(committee)
    monkeypatch.undo()
    for party in range(3):
        assert read_epoch(committee.party_folder(party)).number == 0
        assert Change.unfinished(committee, party) is None
        assert not list(committee.key_folder(party, "key").glob("shares-*"))
    assert secrets(committee) == before
    assert refreshed(committee)["epoch"] == 1
    assert secrets(committee) == before


def test_shares_for_subsets_and_pools_do_not_outlive_their_epoch(tmp_path: Path) -> None:
    committee = with_keys(tmp_path, "semi", 3, ["lwe64-p2"])
    run(committee, {"kind": "share", "key": "key", "members": 2})
    run(committee, {"kind": "pool_fill", "parameters": "lwe64-p2", "rounding": "round_ltz_circuit", "width": 8, "levels": 2, "count": 8, "chunk": 8})
    refreshed(committee)
    folder = committee.key_folder(0, "key")
    assert not list(folder.glob("lisss*")) and not list(shares_in(folder).glob("lisss*"))
    assert not list((committee.party_folder(0) / "pools").glob("*/pool.json"))
    run(committee, {"kind": "share", "key": "key", "members": 2})
    assert (shares_in(folder) / SUBSETS).exists() and not (folder / SUBSETS).exists()
    refreshed(committee)
    assert not list(committee.party_folder(0).rglob("lisss*"))


def test_shares_of_another_epoch_are_foreign(tmp_path: Path) -> None:
    committee = with_keys(tmp_path, "rep-field", 3, ["lwe64-p2"])
    refreshed(committee)
    folder = committee.key_folder(0, "key")
    info = load_key(folder)
    held = holding_of(folder, info)
    assert Holding.from_json(json.loads(json.dumps(held.to_json()))) == held
    path = shares_in(folder) / "share-0.kqs"
    assert ShareFile.header(str(path))["epoch"] == 1
    ShareFile.write(str(path), Holding.as_made(info).share_header(0, 0), bytes(2 * 8 * info.secrets[0].length))
    with pytest.raises(StoreError, match="its epoch is 0, not 1"):
        load_shares(folder, info, 0)


def test_committees_that_are_refused() -> None:
    with pytest.raises(ParameterError, match="one MAC key"):
        check_members(api.in_process_committee(2, "mascot"))


def test_a_committee_without_keys_is_refused(tmp_path: Path) -> None:
    committee = api.init(tmp_path / "committee", 3, "rep-field")
    with pytest.raises(KeyFileError, match="nothing to refresh"):
        run(committee, api.refresh_shares_job(committee))


@pytest.mark.parametrize(
    ("name", "protocol", "refused"),
    [
        ("lwe64-p2", "shamir", "prime fields alone"),
        ("prf-aes128", "shamir", "prime fields alone"),
        ("lwe53-p16", "mascot", "not held with MACs"),
        ("lwe53-p16", "shamir", ""),
        ("lwe64-p2", "mascot", ""),
    ],
)
def test_which_committee_holds_which_key(tmp_path: Path, name: str, protocol: str, refused: str) -> None:
    made = with_keys(tmp_path, "rep-field", 3, [name])
    info, other = load_key(made.key_folder(0, "key")), api.in_process_committee(3, protocol)
    if refused:
        with pytest.raises(KeyQuorumError, match=refused):
            scheme_of(info).vectors_for(info, other)
    else:
        assert scheme_of(info).vectors_for(info, other) == info.secrets
