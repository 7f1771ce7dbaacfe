"""Decryption by any t + 1 parties of Shamir's scheme while the folders of the others are gone; and what is refused."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from keyquorum import api
from keyquorum.fhe.lwe import FHEW_SETS
from keyquorum.model.committee import Committee
from keyquorum.model.errors import CommitteeError, ParameterError, PoolError
from keyquorum.model.subset import subset_of
from keyquorum.parties import run_in_process
from keyquorum.parties.jobs import run_job
from keyquorum.plans.pool_store import pool_status
from keyquorum.plans.pools import pools_folder
from keyquorum.schemes.key_folder import load_key
from keyquorum.schemes.quorum_shares import LagrangeShares
from keyquorum.schemes.subset_shares import check_subsets
from keyquorum.serve.client import fetch, make_receiver
from keyquorum.serve.kinds import Service

from tests.long import LONG
from tests.schemes.test_fhew import TINY
from tests.serve.daemons import Threads

from .epochs.test_recover import lose
from .test_subset_decryption import decrypt, encrypted, run

LWE, AJAX, COUNT = "lwe53-p16", "ajax53", 1000 if LONG else 24
BFV_COUNT, PIECE = (1000, 10) if LONG else (1, 1)
MOST_SECONDS = 3300.0
"""After so many no more of them begin."""
POOL = f"{LWE}-round_ltz_circuit"
SUBSETS = ((0, 1, 2), (1, 3, 4))
TRIED = tuple(combinations(range(5), 3)) if LONG else SUBSETS


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> Committee:
    """Five parties, of which two may be corrupted, with a key of LWE (``key``) and one of BFV (``bfv``)."""
    committee = api.init(tmp_path_factory.mktemp("five") / "committee", 5, "shamir", threshold=2, base_ot="curve25519")
    for key, name in (("key", LWE), ("bfv", "bfv-4096")):
        run(committee, api.keygen_job(key, name, relin=False))
    return committee


@contextmanager
def without_others(committee: Committee, numbers: Sequence[int]) -> Iterator[None]:
    """The folders of all other parties are somewhere else."""
    others = [committee.party_folder(party) for party in range(committee.size) if party not in numbers]
    for folder in others:
        folder.rename(folder.with_suffix(".away"))
    try:
        yield
    finally:
        for folder in others:
            folder.with_suffix(".away").rename(folder)


def fill(committee: Committee, numbers: Sequence[int], count: int) -> None:
    run(committee, api.pool_fill_job(committee, LWE, "round_ltz_circuit", count, parties=numbers))


def test_lwe_by_subsets(five: Committee, tmp_path: Path) -> None:
    """The same file by two (with KEYQUORUM_LONG=1 all ten, 1,000 ciphertexts), each with a pool of its own, to the first and to the last member."""
    messages = np.random.default_rng(5).integers(0, 16, COUNT).tolist()
    path = encrypted(five, tmp_path, messages)
    for i, numbers in enumerate(TRIED):
        receiver = numbers[-(i % 2)]
        with without_others(five, numbers):
            fill(five, numbers, COUNT)
            assert decrypt(five, path, numbers, receiver) == messages
            name = f"{POOL}.{'-'.join(map(str, numbers))}"
            assert {pool_status(pools_folder(five, party) / name) for party in numbers} == {(COUNT, COUNT)}


@pytest.mark.timeout(7200 if LONG else 300)
def test_bfv_by_subsets(five: Committee, tmp_path: Path) -> None:
    """Without a pool: all 4096 coefficients of one ciphertext by two subsets; with KEYQUORUM_LONG=1 of 1,000 ciphertexts, or what an hour allows, by all ten, PIECE of them in a job."""
    rng, began, done = np.random.default_rng(6), time.monotonic(), 0
    while done < BFV_COUNT and time.monotonic() - began < MOST_SECONDS:
        done += PIECE
        values = rng.integers(-(1 << 15), 1 << 15, (PIECE, 4096))
        paths = [tmp_path / f"{i}.ct" for i in range(PIECE)]
        outputs = [path.with_suffix(".plain") for path in paths]
        for path, row in zip(paths, values, strict=True):
            api.encrypt(five, "bfv", row.tolist(), path)
        for numbers in TRIED:
            for output in outputs:
                output.unlink(missing_ok=True)
            with without_others(five, numbers):
                job = api.decrypt_job(five, "bfv", paths, numbers[1], outputs, parties=numbers)
                run_in_process(subset_of(five, numbers), lambda context, job=job: run_job(context, job), timeout=600)  # type: ignore[misc]
                assert all(np.array_equal(api.decode(five, "bfv", output), row) for output, row in zip(outputs, values, strict=True))
    print(f"\nbfv-4096: ciphertexts={done} of {BFV_COUNT} subsets={len(TRIED)} wrong=0 seconds={time.monotonic() - began:.0f}")


def sum_of(committee: Committee, key: str, numbers: tuple[int, ...]) -> list[np.ndarray]:
    """The sum of the additive shares of a subset, modulo the prime of each vector."""
    info, sums = load_key(committee.key_folder(0, key)), list[np.ndarray]()
    for party in range(len(numbers)):
        _, shares = LagrangeShares().load(committee.key_folder(numbers[party], key), info, subset_of(committee, numbers), party, None)
        sums = [share.words[0].astype(object) + (sums[i] if sums else 0) for i, share in enumerate(shares)]
    return [total % int(vector.domain[2:]) for total, vector in zip(sums, info.secrets, strict=True)]


@pytest.mark.parametrize(("key", "small"), [("key", (0, 1)), ("bfv", None)])
def test_all_ten_subsets_share_one_secret(five: Committee, key: str, small: tuple[int, ...] | None) -> None:
    """Modulo every prime of the key; the secret of LWE is binary."""
    first, *others = [sum_of(five, key, numbers) for numbers in combinations(range(5), 3)]
    assert len(others) == 9 and all(np.array_equal(a, b) for other in others for a, b in zip(first, other, strict=True))
    assert small is None or set(first[0].tolist()) == set(small)


def test_shares_that_are_not_scaled_decrypt_nothing(five: Committee, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With all coefficients 1."""
    messages = [1, 2, 3, 4] * 4
    path = encrypted(five, tmp_path, messages)
    fill(five, (0, 1, 2), 16)
    monkeypatch.setattr("keyquorum.schemes.quorum_shares.lagrange", lambda points, index, q: 1)
    assert decrypt(five, path, (0, 1, 2), 0) != messages


def test_items_of_another_subset_are_refused(five: Committee, tmp_path: Path) -> None:
    """The pool of 0, 1, 2 under the name of that of 0, 1, 3, at all three: nothing is claimed."""
    path = encrypted(five, tmp_path, [1])
    fill(five, (0, 1, 2), 1)
    mine, wrong = f"{POOL}.0-1-2", [pools_folder(five, party) / f"{POOL}.0-1-3" for party in (0, 1, 3)]
    before = pool_status(pools_folder(five, 0) / mine)
    for folder, party in zip(wrong, (0, 1, 2), strict=True):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(pools_folder(five, party) / mine, folder)
    try:
        with pytest.raises(PoolError, match=r"made with another .*committee, members"):
            decrypt(five, path, (0, 1, 3), 0)
        assert pool_status(pools_folder(five, 0) / mine) == before == pool_status(wrong[0])
    finally:
        for folder in wrong:
            shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("parameters", "rounding", "numbers", "message"),
    [
        (LWE, "round_ltz_circuit", (0, 2), "any 3 of the 5 parties decrypt without the others: name 3"),
        (LWE, "round_ltz_circuit", (0, 1, 2, 3), "any 3 of the 5 parties decrypt without the others: name 3"),
        ("lwe64-p2", "round_ltz_circuit", (0, 1, 2), "shamir shares over prime fields alone, and this set is modulo 2"),
        ("ckks-4096", "round_ltz_circuit", (0, 1, 2), "decryption is flooded, and uses no pool"),
    ],
)
def test_pools_that_no_decryption_can_use_are_refused(
    five: Committee, parameters: str, rounding: str, numbers: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        api.pool_fill_job(five, parameters, rounding, 10, parties=numbers)


def test_subsets_of_other_committees_fill_only_what_they_have_shares_for(tmp_path: Path) -> None:
    """`keyquorum share` makes shares modulo 2^64; with MACs none."""
    additive = api.init(tmp_path / "semi", 3, "semi")
    for parameters, message in ((LWE, "subsets have shares modulo 2\\^k alone"), ("bfv-4096", "shares for subsets are made of keys of")):
        with pytest.raises(ParameterError, match=message):
            api.pool_fill_job(additive, parameters, "round_ltz_circuit", 10, parties=(0, 1))
    with pytest.raises(ParameterError, match="shares of subsets have no MACs"):
        api.pool_fill_job(api.init(tmp_path / "mac", 3, "mascot"), "lwe64-p2", "round_ltz_circuit", 10, parties=(0, 1))
    with pytest.raises(CommitteeError, match="additive shares, which do not let it verify anything: leave out --parties"):
        subset_of(api.init(tmp_path / "verified", 5, "mal-shamir", threshold=2), (0, 1, 2))


def test_shares_that_parties_have_already_are_not_made(five: Committee) -> None:
    with pytest.raises(ParameterError, match="any 3 parties use keys with their own shares"):
        check_subsets(five, load_key(five.key_folder(0, "key")), 2)


def test_a_key_of_fhew(five: Committee, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small set of the form of `ajax53`. `semi`, by which subsets round, makes no such keys itself."""
    monkeypatch.setitem(FHEW_SETS, TINY.name, TINY)
    monkeypatch.setattr("keyquorum.schemes.fhew.keygen.BODIES", 4 * 2 * TINY.levels * TINY.dimension)
    run(five, api.keygen_job("fhew", TINY.name))
    path, numbers = tmp_path / "x.lwe", SUBSETS[1]
    api.encrypt(five, "fhew", [3, 0, 5, 6], path)
    with without_others(five, numbers):
        run(five, api.pool_fill_job(five, TINY.name, "round_ltz_circuit", 4, parties=numbers))
        assert decrypt(five, path, numbers, 3, key="fhew") == [3, 0, 5, 6]


@pytest.mark.skipif(not LONG, reason="keys of ajax53 take a minute of five parties: KEYQUORUM_LONG=1")
@pytest.mark.timeout(1800)
def test_ajax_by_all_ten_subsets(five: Committee, tmp_path: Path) -> None:
    """1,000 ciphertexts of `ajax53` by each."""
    run(five, api.keygen_job("ajax", AJAX), timeout=900)
    messages = np.random.default_rng(7).integers(0, 16, COUNT).tolist()
    path = tmp_path / "x.lwe"
    api.encrypt(five, "ajax", messages, path)
    for numbers in TRIED:
        with without_others(five, numbers):
            run(five, api.pool_fill_job(five, AJAX, "round_ltz_circuit", COUNT, parties=numbers))
            assert decrypt(five, path, numbers, numbers[0], key="ajax") == messages


@pytest.mark.skipif(not LONG, reason="21 parties: KEYQUORUM_LONG=1")
@pytest.mark.timeout(600)
def test_eleven_of_twenty_one(tmp_path: Path) -> None:
    """A batch of LWE, with t = 10."""
    committee, numbers = api.init(tmp_path / "committee", 21, "shamir", threshold=10, base_ot="curve25519"), tuple(range(0, 21, 2))
    run(committee, api.keygen_job("key", LWE), timeout=300)
    messages = np.random.default_rng(8).integers(0, 16, COUNT).tolist()
    path = encrypted(committee, tmp_path, messages)
    with without_others(committee, numbers):
        run(committee, api.pool_fill_job(committee, LWE, "round_ltz_circuit", COUNT, parties=numbers), timeout=300)
        assert decrypt(committee, path, numbers, numbers[-1]) == messages


def test_served_by_three_of_five(five: Committee, tmp_path: Path) -> None:
    """While the folders of the two others are gone."""
    identity, _ = make_receiver(five, "alice")
    members, data = subset_of(five, SUBSETS[1]), encrypted(five, tmp_path, [7, 8, 15]).read_bytes()
    with without_others(five, SUBSETS[1]), Threads(members, Service("key", keep=8, chunk=8, patience=20.0)) as served:
        answer = fetch(members, identity, data, served.addresses(), 20.0)
    assert not served.failures and json.loads(answer.plaintext) == [7, 8, 15]


def test_a_recovered_party_serves_when_others_are_gone(tmp_path: Path) -> None:
    """Party 0 loses its disk and is recovered. Then 1 and 2 are gone, and it is one of the last three."""
    committee, numbers = api.init(tmp_path / "committee", 5, "shamir", threshold=2, base_ot="curve25519"), (0, 3, 4)
    run(committee, api.keygen_job("key", LWE))
    lose(committee, 0)
    run(committee, api.recover_job(committee, 0))
    identity, _ = make_receiver(committee, "alice")
    data = encrypted(committee, tmp_path, [7, 8, 15]).read_bytes()
    members = subset_of(committee, numbers)
    with without_others(committee, numbers), Threads(members, Service("key", keep=8, chunk=8, patience=20.0)) as served:
        answer = fetch(members, identity, data, served.addresses(), 20.0)
    assert not served.failures and json.loads(answer.plaintext) == [7, 8, 15]
