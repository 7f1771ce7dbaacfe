"""LWE decryption by any t parties: every subset has the right messages, by every rounding, with a pool of its own; and what is refused."""

from __future__ import annotations

import json
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from keyquorum import api
from keyquorum._engine import EngineError, ShareFile, StoreError
from keyquorum.fhe.lwe import TFHE_SETS, LweParameters, encrypt
from keyquorum.model.committee import Committee
from keyquorum.model.errors import KeyFileError, KeyQuorumError, ParameterError, PoolError
from keyquorum.model.plain import Json
from keyquorum.model.subset import members_of, subset_of
from keyquorum.parties import PartyContext, run_in_process
from keyquorum.parties.jobs import check_job, run_job
from keyquorum.plans.decrypt import check_decrypt
from keyquorum.plans.examine import examine_keys
from keyquorum.plans.pool_store import pool_status
from keyquorum.plans.pools import pool_name, pools_folder
from keyquorum.schemes.key_folder import load_key
from keyquorum.schemes.lwe.key import load_lwe_key, load_lwe_public_key
from keyquorum.schemes.lwe.variant import LweVariant
from keyquorum.schemes.subset_shares import SUBSETS, load_subset_shares, own_subsets
from keyquorum.schemes.tfhe import keygen as tfhe_keygen

from tests.schemes.test_tfhe import TINY

POOL = "lwe64-p2-round_ltz_circuit"


def run(committee: Committee, job: Json, locals_: Sequence[Json] | None = None, timeout: float = 60) -> list[Json]:
    """A job among the parties that it names, as threads; ``locals_``: the local part at each of them."""
    members = members_of(committee, job.get("subset"))
    mine = locals_ or [{}] * members.size
    done = run_in_process(members, lambda context: run_job(context, {**job, "local": mine[context.party]}), timeout=timeout)
    return cast(list[Json], done)


def with_key(folder: Path, protocol: str, parties: int, name: str = "lwe64-p2", key: str = "key") -> Committee:
    committee = api.init(folder / "committee", parties, protocol) if not (folder / "committee").exists() else Committee.load(folder / "committee")
    run(committee, api.keygen_job(key, name))
    return committee


def share(committee: Committee, members: int, key: str = "key") -> None:
    run(committee, {"kind": "share", "key": key, "members": members})


def fill(committee: Committee, numbers: Sequence[int] | None, count: int, rounding: str = "round_ltz_circuit") -> None:
    job = {"kind": "pool_fill", "parameters": "lwe64-p2", "rounding": rounding, "width": 8, "levels": 2, "count": count, "chunk": 64}
    run(committee, job if numbers is None else {**job, "subset": list(numbers)})


def encrypted(committee: Committee, folder: Path, messages: Sequence[int], key: str = "key") -> Path:
    place = committee.key_folder(0, key)
    public, path = load_lwe_public_key(place, load_lwe_key(place)), folder / f"{key}.lwe"
    path.write_bytes(public.encrypt(np.array(messages)).to_bytes(public.key_id))
    return path


def decrypt(committee: Committee, path: Path, numbers: Sequence[int], to: int, rounding: str = "round_ltz_circuit", key: str = "key") -> list[int]:
    """The messages that the receiver writes."""
    output = path.with_name("out.plain")
    output.unlink(missing_ok=True)
    run_in_process(
        subset_of(committee, numbers),
        lambda context: run_job(context, api.decrypt_job(committee, key, [path], to, [output], rounding, parties=numbers)),
        timeout=60,
    )
    return cast(list[int], json.loads(output.read_text()))


@pytest.mark.filterwarnings("ignore:round_mask_open is sometimes wrong")
@pytest.mark.parametrize(
    ("protocol", "parties", "members", "rounding"),
    [("semi", 3, 2, "round_ltz_circuit"), ("semi2k", 4, 3, "round_ltz_table"), ("semi", 4, 2, "round_mask_open")],
)
def test_every_subset_decrypts_the_same(tmp_path: Path, protocol: str, parties: int, members: int, rounding: str) -> None:
    """To the first and to the last member; items are claimed in the pool of the subset alone."""
    committee = with_key(tmp_path, protocol, parties)
    share(committee, members)
    messages = np.random.default_rng(parties).integers(0, 2, 12).tolist()
    path = encrypted(committee, tmp_path, messages)
    variant = LweVariant(rounding, cast(LweParameters, load_key(committee.key_folder(0, "key")).parameters))
    done: list[tuple[int, ...]] = []
    for numbers in combinations(range(parties), members):
        fill(committee, numbers, 30, rounding)
        for receiver in (numbers[0], numbers[-1]):
            assert decrypt(committee, path, numbers, receiver, rounding) == messages
        done.append(numbers)
        for other in done:
            name = pool_name(subset_of(committee, other), variant)
            assert {pool_status(pools_folder(committee, party) / name) for party in other} == {(30, 24)}
    assert not any((pools_folder(committee, party) / variant.name).exists() for party in range(parties))


def shares_at(committee: Committee, party: int) -> list[np.ndarray]:
    """The shares of a party in each subset of two that has it."""
    folder, found = committee.key_folder(party, "key"), list[np.ndarray]()
    for numbers in own_subsets(committee.size, 2, party):
        _, (share_,) = load_subset_shares(folder, load_key(folder), subset_of(committee, numbers), numbers.index(party))
        found.append(share_.words[0].copy())
    return found


def secret_in(committee: Committee, numbers: tuple[int, ...], size: int = 1024) -> np.ndarray:
    total = np.zeros(size, np.uint64)
    for index, number in enumerate(numbers):
        folder = committee.key_folder(number, "key")
        _, (mine,) = load_subset_shares(folder, load_key(folder), subset_of(committee, numbers), index)
        total += mine.words[0]
    return total


def test_the_files_of_each_subset_are_shares_of_the_key(tmp_path: Path) -> None:
    """All subsets have one binary secret. A share alone is uniform modulo 2^64: its 65,536 bits have as many ones as zeros, within 7 deviations."""
    committee = with_key(tmp_path, "semi", 4)
    share(committee, 3)
    secrets = [secret_in(committee, numbers) for numbers in combinations(range(4), 3)]
    assert set(secrets[0].tolist()) == {0, 1} and all(np.array_equal(one, secrets[0]) for one in secrets)
    for numbers in combinations(range(4), 3):
        for index, number in enumerate(numbers):
            folder = committee.key_folder(number, "key")
            _, (mine,) = load_subset_shares(folder, load_key(folder), subset_of(committee, numbers), index)
            assert abs(int(np.bitwise_count(mine.words).sum()) - 32768) < 7 * 128


@pytest.mark.parametrize("ablated", [False, True])
def test_the_files_of_one_party_do_not_depend_on_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ablated: bool) -> None:
    """Exhaustive, two of three parties: secrets and summands are multiples of 2^62, a group of four elements. Entry j of the vectors has the j-th of the
    64 choices of the three summands. What the files of a party have is the same for all secrets, entry after entry in another order. With the summand of
    parties 1 and 2 left out it is not."""
    committee = with_key(tmp_path, "semi", 3)
    choices = np.array(list(product(range(4), repeat=3)) * 16, np.uint64) << np.uint64(62)
    if ablated:
        choices[:, 2] = 0
    mine, running = {0: choices[:, :2], 1: choices[:, 2:], 2: choices[:, :0]}, threading.local()
    monkeypatch.setattr("keyquorum.plans.share.os", SimpleNamespace(urandom=lambda size: np.ascontiguousarray(mine[running.party].T).tobytes()))

    def job(context: PartyContext) -> Json:
        running.party = context.party
        return run_job(context, {"kind": "share", "key": "key", "members": 2})

    views: list[list[Counter[tuple[int, ...]]]] = []
    for secret in range(4):
        for party in range(3):
            folder = committee.key_folder(party, "key")
            words = np.full(1024, (secret << 62) * (party == 0), "<u8")
            ShareFile.write(str(folder / "share-0.kqs"), load_key(folder).share_header(party, 0), words.tobytes())
        run_in_process(committee, job, timeout=60)
        assert np.array_equal(secret_in(committee, (0, 2)), np.full(1024, secret << 62, np.uint64))
        views.append([Counter(map(tuple, np.stack(shares_at(committee, party)).T.tolist())) for party in range(3)])
    same = all(view[party] == views[0][party] for view in views for party in range(3))
    assert same != ablated


def test_another_pool_is_refused(tmp_path: Path) -> None:
    """That of another subset, and that of the whole committee, under the name of the right one. The items would be no shares of anything."""
    committee = with_key(tmp_path, "semi", 3)
    share(committee, 2)
    path = encrypted(committee, tmp_path, [1, 0, 1])
    for numbers in ((0, 2), None):
        fill(committee, numbers, 4)
        name = POOL if numbers is None else f"{POOL}.0-2"
        wrong = pools_folder(committee, 0) / f"{POOL}.0-1"
        shutil.copytree(pools_folder(committee, 0) / name, wrong)
        with pytest.raises(PoolError, match=r"made with another .*committee, members"):
            decrypt(committee, path, (0, 1), 0)
        assert pool_status(pools_folder(committee, 0) / name) == (4, 0)
        shutil.rmtree(wrong)
    with pytest.raises(PoolError, match=rf"{POOL}.0-1: needs 3 items, has 0: keyquorum pool fill --parties 0,1"):
        decrypt(committee, path, (0, 1), 0)
    assert decrypt(committee, path, (0, 2), 0) == [1, 0, 1]


def _remove_file(folder: Path) -> None:
    next(folder.glob("lisss-*.kqs")).unlink()


def _remove_list(folder: Path) -> None:
    (folder / SUBSETS).unlink()


def _damage(folder: Path) -> None:
    file = next(folder.glob("lisss-*.kqs"))
    data = bytearray(file.read_bytes())
    data[-40] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize(
    ("harm", "error", "message"),
    [(_remove_file, StoreError, "lisss-0-"), (_remove_list, KeyFileError, "no shares for subsets: make them with keyquorum share"),
     (_damage, StoreError, "lisss-0-.*")],
)  # fmt: skip
def test_missing_and_damaged_shares_are_refused_before_connecting(
    tmp_path: Path, harm: Callable[[Path], None], error: type[Exception], message: str
) -> None:
    committee = with_key(tmp_path, "semi", 3)
    share(committee, 2)
    path = encrypted(committee, tmp_path, [1])
    job = api.decrypt_job(committee, "key", [path], 0, [tmp_path / "o"], parties=(0, 2))
    check_decrypt(subset_of(committee, (0, 2)), 1, job)
    harm(committee.key_folder(2, "key"))
    with pytest.raises(error, match=message):
        check_decrypt(subset_of(committee, (0, 2)), 1, job)


def test_shares_of_another_key_or_run_are_refused(tmp_path: Path) -> None:
    """Of another key: by the party alone. Of an earlier run of the sharing: by the others, before items are claimed, and with the comparison left out
    the messages are noise, which shows what it is for."""
    committee = with_key(tmp_path, "semi", 3)
    with_key(tmp_path, "semi", 3, key="other")
    share(committee, 2)
    share(committee, 2, "other")
    messages = [1, 0] * 32
    path = encrypted(committee, tmp_path, messages)
    fill(committee, (0, 1), 200)
    mine, theirs, aside = committee.key_folder(1, "key"), committee.key_folder(1, "other"), tmp_path / "aside"
    shutil.copytree(mine, aside)
    shutil.copy(theirs / SUBSETS, mine / SUBSETS)
    with pytest.raises(KeyFileError, match="is of another key: make new shares with keyquorum share"):
        decrypt(committee, path, (0, 1), 0)
    file = next(aside.glob("lisss-*.kqs"))
    shutil.copy(aside / SUBSETS, mine / SUBSETS)
    shutil.copy(next(theirs.glob("lisss-*.kqs")), mine / file.name)
    with pytest.raises(StoreError, match="foreign file, its key id is"):
        decrypt(committee, path, (0, 1), 0)
    share(committee, 2)
    for old in mine.glob("lisss*"):
        old.unlink()
    for old in aside.glob("lisss*"):
        shutil.copy(old, mine)
    with pytest.raises(EngineError, match="sharing among subsets"):
        decrypt(committee, path, (0, 1), 0)
    assert pool_status(pools_folder(committee, 0) / f"{POOL}.0-1") == (200, 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("keyquorum.plans.decrypt.compare_key", lambda context, folder, info: None)
        assert decrypt(committee, path, (0, 1), 0) != messages


def test_doctor_finds_shares_of_two_runs(tmp_path: Path) -> None:
    """And missing files."""
    committee = with_key(tmp_path, "semi", 3)
    assert all(finding.ok for finding in examine_keys(committee, (0, 1, 2)))
    share(committee, 2)
    said = [finding.text for finding in examine_keys(committee, (0, 1, 2))]
    assert len(said) == 3 and all(text.endswith(", shares for every 2 parties") for text in said)
    folder, aside = committee.key_folder(1, "key"), tmp_path / "aside"
    shutil.copytree(folder, aside)
    share(committee, 2)
    for file in folder.glob("lisss*"):
        file.unlink()
    for file in aside.glob("lisss*"):
        shutil.copy(file, folder)
    bad = [finding.text for finding in examine_keys(committee, (0, 1, 2)) if not finding.ok]
    assert bad == ["party 1: key key: its shares for subsets are not of the run that those of party 0 are of: keyquorum share makes them anew"]
    next(folder.glob("lisss-*.kqs")).unlink()
    assert [finding.ok for finding in examine_keys(committee, (1,))] == [False]


def test_refused(tmp_path: Path) -> None:
    committee = with_key(tmp_path, "semi", 3)
    path = encrypted(committee, tmp_path, [1])
    with pytest.raises(ParameterError, match="party 1 is none of parties 0, 2, which do this without the others"):
        api.decrypt_job(committee, "key", [path], 1, [tmp_path / "o"], parties=(0, 2))
    with pytest.raises(ParameterError, match="name two parties or more"):
        api.decrypt_job(committee, "key", [path], 0, [tmp_path / "o"], parties=(0, 3))
    for members in (1, 3):
        with pytest.raises(ParameterError, match="choose 2 to 2"):
            api.share_job(committee, "key", members)
    for more, message in (({"subset": [0, "2"]}, "no list of parties"), ({"subset": 2}, "no list of parties"), ({"subset": [True, 2]}, "no list")):
        with pytest.raises(KeyQuorumError, match=message):
            check_job({"kind": "toprf_fill", "count": 1, "chunk": 1, **more})
    with pytest.raises(KeyQuorumError, match="or is run by all parties"):
        check_job({"kind": "share", "key": "key", "members": 2, "subset": [0, 1]})
    with pytest.raises(ParameterError, match="other parties than those that are connected"):
        run_in_process(committee, lambda context: run_job(context, {"kind": "toprf_fill", "count": 1, "chunk": 1, "subset": [0, 1]}), timeout=20)
    share(committee, 2)
    with pytest.raises(ParameterError, match=r"parties 0, 1, 2: at most 2 parties have shares of their own"):
        decrypt(committee, path, (0, 1, 2), 0)
    run(committee, api.keygen_job("field", "lwe53-p16"))
    with pytest.raises(ParameterError, match=r"over prime fields: subsets have shares modulo 2\^k alone"):
        api.share_job(committee, "field", 2)
    run(committee, api.keygen_job("bfv", "bfv-4096", relin=False))
    with pytest.raises(ParameterError, match="a key of BFV: shares for subsets are made of keys of LWE, TFHE, PRF alone"):
        api.share_job(committee, "bfv", 2)
    macs = with_key(tmp_path / "macs", "spdz2k", 2)
    with pytest.raises(ParameterError, match="shares of subsets have no MACs"):
        api.share_job(macs, "key", 2)


def test_tfhe_ciphertexts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the two secrets of a TFHE key only the one that decrypts is shared. Ciphertexts have the noise of evaluated ones."""
    monkeypatch.setitem(TFHE_SETS, TINY.name, TINY)
    monkeypatch.setattr(tfhe_keygen, "BOOTSTRAPPING_CHUNK", 4 * 2 * TINY.pbs_level * TINY.dimension)
    committee = with_key(tmp_path, "semi", 3, TINY.name)
    share(committee, 2)
    assert len(list(committee.key_folder(0, "key").glob("lisss-*.kqs"))) == 1
    info, secret = load_key(committee.key_folder(0, "key")), secret_in(committee, (1, 2), TINY.dimension).astype(np.int64)
    rng = np.random.default_rng(3)
    messages, noise = rng.integers(0, 16, 20), rng.integers(-(1 << 57), 1 << 57, 20)
    path = tmp_path / "x.lwe"
    path.write_bytes(replace(encrypt(TINY, secret, messages, rng, noise), noise_bits=58).to_bytes(info.key_id))
    job = {"kind": "pool_fill", "parameters": TINY.name, "rounding": "round_ltz_circuit", "width": 8, "levels": 2, "count": 20, "chunk": 20}
    run(committee, {**job, "subset": [0, 2]})
    assert decrypt(committee, path, (0, 2), 2) == messages.tolist()
