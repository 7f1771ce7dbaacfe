"""Any t parties evaluate: the values of every subset are those of the whole committee; what is refused; and kills in the middle of a sharing."""

from __future__ import annotations

import json
import shutil
import threading
import time
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from keyquorum.api import pool_list
from keyquorum.model import checkpoints
from keyquorum.model.committee import Committee
from keyquorum.model.errors import KeyQuorumError, ParameterError, PoolError
from keyquorum.model.subset import subset_of
from keyquorum.parties import run_in_process
from keyquorum.parties.jobs import run_job
from keyquorum.plans.pool_variants import pool_group
from keyquorum.plans.pools import Pool, pools_folder
from keyquorum.schemes.key_folder import load_key
from keyquorum.schemes.prf.tables import aes_tables
from keyquorum.schemes.subset_shares import SUBSETS, check_subsets, load_subset_shares, read_sharing
from keyquorum.serve.client import Refused, make_receiver
from keyquorum.serve.daemon import Daemon, Service
from keyquorum.toprf import Toprf, set_policy, toprf_fill

from tests.schemes.test_prf import committee_with_key, key_of, reference
from tests.serve.test_toprf import Served


def share(committee: Committee, members: int) -> None:
    run_in_process(committee, lambda context: run_job(context, {"kind": "share", "key": "prf", "members": members}), timeout=60)


def shares_of(committee: Committee, numbers: tuple[int, ...]) -> list[np.ndarray]:
    subset, found = subset_of(committee, numbers), []
    for index, number in enumerate(numbers):
        folder = committee.key_folder(number, "prf")
        _, (mine,) = load_subset_shares(folder, load_key(folder), subset, index)
        found.append(mine.words[0].copy())
    return found


@pytest.mark.parametrize(("protocol", "parties", "members"), [("semi", 3, 2), ("semi", 4, 3)])
def test_every_subset_reconstructs(tmp_path: Path, protocol: str, parties: int, members: int) -> None:
    """From the files, and twice: the second sharing replaces the first, with other shares. A share alone has as many ones as zeros, within 7 deviations."""
    committee, seen = committee_with_key(tmp_path, protocol, parties), list[bytes]()
    for _ in range(2):
        share(committee, members)
        for numbers in combinations(range(parties), members):
            shares = shares_of(committee, numbers)
            bits = np.bitwise_xor.reduce(shares)[:128].astype(np.uint8)
            assert np.packbits(bits, bitorder="little").tobytes() == key_of(committee)
            assert all(abs(int(mine.sum()) - 704) < 7 * 18.8 for mine in shares)
            seen += [mine.tobytes() for mine in shares]
    assert len(set(seen)) == len(seen)
    for party in range(parties):
        files = list(committee.key_folder(party, "prf").glob("lisss*"))
        assert len(files) == 2 and all(file.stat().st_mode & 0o777 == 0o600 for file in files)


def test_two_subsets_have_the_values_of_the_whole(tmp_path: Path) -> None:
    committee = committee_with_key(tmp_path, "semi", 3)
    identity, _ = make_receiver(committee, "web")
    for party in range(3):
        set_policy(committee, party, "prf", 10)
    share(committee, 2)
    wanted, key_id = reference(key_of(committee), b"x"), load_key(committee.key_folder(0, "prf")).key_id
    for numbers in ((0, 2), (1, 2)):
        served = Served(subset_of(committee, numbers), b"", key_id, identity)
        served.start()
        try:
            with Toprf(committee, "prf", identity, wait=20.0, parties=numbers) as toprf:
                assert toprf.evaluate(b"x") == wanted
            with Toprf(served.committee, "prf", identity, wait=20.0) as other, pytest.raises(Refused, match=r"here serve parties \d, 2"):
                other.evaluate(b"x")
        finally:
            served.stop()
        assert not served.failures
        for party in numbers:  # members are numbered from 0 in messages, and by the whole committee in files
            lines = [json.loads(line) for line in (committee.party_folder(party) / "audit.jsonl").read_text().splitlines()]
            assert {line["party"] for line in lines} == {party} and lines[-1]["parties"] == list(numbers)
    whole = Served(committee, b"", key_id, identity)
    whole.start()
    try:
        with Toprf(committee, "prf", identity, wait=20.0) as toprf:
            assert toprf.evaluate(b"x") == wanted
        assert whole.totals() == [2, 3, 3]  # one count for a key at a party, whoever evaluates with it; party 1 learned of the first from party 2
    finally:
        whole.stop()


def test_a_subset_evaluates_by_tables_of_its_own(tmp_path: Path) -> None:
    """Made by the subset, used by it, and by nobody else; the whole committee has another pool. An empty pool is refused with the command that fills it."""
    committee = committee_with_key(tmp_path, "semi", 3)
    identity, _ = make_receiver(committee, "web")
    for party in range(3):
        set_policy(committee, party, "prf", 10)
    share(committee, 2)
    subset, key_id = subset_of(committee, (0, 2)), load_key(committee.key_folder(0, "prf")).key_id
    assert toprf_fill(committee, 3, parties=(0, 2)).line == "pool prf-aes128-table.0-2: 3 items made, 3 left; a block takes one"
    assert [(pool["party"], pool["pool"]) for pool in pool_list(committee)] == [(0, "prf-aes128-table.0-2"), (2, "prf-aes128-table.0-2")]
    served = Served(subset, b"", key_id, identity, {"method": "table"})
    served.start()
    try:
        with Toprf(committee, "prf", identity, wait=20.0, parties=(0, 2)) as toprf:
            assert toprf.evaluate(b"x") == reference(key_of(committee), b"x")
            with pytest.raises(Refused, match=r"prf-aes128-table.0-2: needs 2 items, has 1: fill the pool \(keyquorum toprf fill --parties 0,2, or"):
                toprf.evaluate(b"y")
    finally:
        served.stop()
    assert not served.failures
    with pytest.raises(PoolError, match=r"made with another .*members"):
        folder = pools_folder(committee, 0)
        (folder / "prf-aes128-table.0-2").rename(folder / "prf-aes128-table.0-1")
        run_in_process(subset_of(committee, (0, 1)), lambda context: Pool(context, pool_group(context), aes_tables(context.committee)))


@pytest.mark.parametrize("point", ["share/written", "share/before", "share/published"])
def test_a_run_that_breaks_off(tmp_path: Path, point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A party stops at any point: either nobody has a new sharing, or parties with different ones are told apart; a new run mends it."""
    committee = committee_with_key(tmp_path, "semi", 3)
    share(committee, 2)
    old = [read_sharing(f, load_key(f)).id for f in (committee.key_folder(p, "prf") for p in range(3))]
    left = [1]

    def hook(name: str) -> None:
        if name == point and left and left.pop():
            raise KeyQuorumError("stopped")

    monkeypatch.setattr(checkpoints, "hook", hook)
    with pytest.raises(KeyQuorumError, match="stopped"):
        share(committee, 2)
    monkeypatch.undo()
    new = [read_sharing(f, load_key(f)).id for f in (committee.key_folder(p, "prf") for p in range(3))]
    assert new == old or point != "share/written"
    for party in range(3):  # what counts at a party is whole
        numbers = tuple(sorted((party, (party + 1) % 3)))
        folder = committee.key_folder(party, "prf")
        load_subset_shares(folder, load_key(folder), subset_of(committee, numbers), numbers.index(party))
    share(committee, 2)
    assert len({read_sharing(f, load_key(f)).id for f in (committee.key_folder(p, "prf") for p in range(3))}) == 1
    bits = np.bitwise_xor.reduce(shares_of(committee, (0, 2)))[:128].astype(np.uint8)
    assert np.packbits(bits, bitorder="little").tobytes() == key_of(committee)
    assert all(len(list(committee.key_folder(p, "prf").glob("lisss-*"))) == 1 for p in range(3))


def test_sharings_of_two_runs_do_not_meet(tmp_path: Path) -> None:
    """Party 0 has the shares of an earlier run: it refuses party 1, and nothing is counted. With the ids left out of what is compared they connect."""
    committee = committee_with_key(tmp_path, "semi", 3)
    make_receiver(committee, "web")
    folder, aside = committee.key_folder(0, "prf"), tmp_path / "aside"
    share(committee, 2)
    shutil.copytree(folder, aside)
    share(committee, 2)
    for file in folder.glob("lisss*"):
        file.unlink()
    for file in aside.glob("lisss*"):
        shutil.copy(file, folder)
    assert (folder / SUBSETS).read_bytes() != (committee.key_folder(1, "prf") / SUBSETS).read_bytes()
    for party in range(2):
        set_policy(committee, party, "prf", 10)
    for compared in (True, False):
        logs: list[str] = []
        daemons = [Daemon(subset_of(committee, (0, 1)), i, Service("prf", patience=20.0), log=logs.append) for i in range(2)]
        if not compared:
            for daemon in daemons:
                daemon.served_key.compared = {}
        threads = [threading.Thread(target=daemon.run, daemon=True) for daemon in daemons]
        for thread in threads:
            thread.start()
        try:
            wanted = "sharing" if compared else "connected to all"
            end = time.monotonic() + 20
            while not any(wanted in line for line in logs) and time.monotonic() < end:
                time.sleep(0.05)
            assert any(wanted in line for line in logs), logs
            assert compared != any(line.startswith("connected") for line in logs)
        finally:
            for daemon in daemons:
                daemon.stop()
            for thread in threads:
                thread.join(30)
                assert not thread.is_alive()


def test_too_many_shares_are_refused(tmp_path: Path) -> None:
    """With the formula; just below the bound they are made."""
    committee = committee_with_key(tmp_path, "semi", 2)
    info = load_key(committee.key_folder(0, "prf"))

    def of(parties: int) -> Committee:
        return replace(committee, parties=committee.parties[:1] * parties, threshold=parties - 1)

    assert check_subsets(of(21), info, 10) == 176 * 167_960
    with pytest.raises(ParameterError, match=r"C\(22, 9\) = 497,420 shares of 176 bytes are 87,545,920 bytes at each party, above 64,000,000"):
        check_subsets(of(23), info, 10)


def test_refused(tmp_path: Path) -> None:
    committee = committee_with_key(tmp_path, "semi", 3)
    info = load_key(committee.key_folder(0, "prf"))
    for members in (1, 3):
        with pytest.raises(ParameterError, match="choose 2 to 2, since any 3 of the 3 parties have the key already"):
            check_subsets(committee, info, members)
    for numbers in ((0, 0), (0,), (0, 3)):
        with pytest.raises(ParameterError, match="name two parties or more"):
            subset_of(committee, numbers)
    with pytest.raises(KeyQuorumError, match="no shares for subsets"):
        shares_of(committee, (0, 1))
