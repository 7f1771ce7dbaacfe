"""A party that is killed at any point of counting, evaluating and answering: nothing is counted twice, and nothing is answered without a count. By one-time
tables no item is used twice."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from keyquorum.model.committee import Committee
from keyquorum.model.errors import KeyQuorumError
from keyquorum.model.subset import Subset, members_of
from keyquorum.parties import run_in_process
from keyquorum.parties.jobs import run_job, subset_field
from keyquorum.plans.pool_store import pool_status
from keyquorum.plans.pools import pools_folder
from keyquorum.schemes.prf.evaluations import JOURNAL, read_journal
from keyquorum.schemes.prf.function import combined, finalised, point_of, shared_points
from keyquorum.schemes.prf.key import load_prf_key
from keyquorum.serve.client import make_receiver
from keyquorum.toprf import Toprf, set_policy

from tests.commands import Forked
from tests.long import LONG
from tests.schemes.test_prf import committee_with_key, key_of, reference

ROOT = Path(__file__).resolve().parents[2]
COUNTED = ("count/written", "count/durable", "toprf/evaluated")
"""Points at which the count is in the file."""
POINTS = ("count/before", "count/half", *COUNTED) if LONG else ("count/half", "count/durable", "toprf/evaluated")
VICTIMS = (1, 0) if LONG else (1,)
TABLE_POINTS = (
    "agree/before", "agree/after", "agree/before@2", "agree/after@2", "claim/before", "claim/half", "claim/written", "claim/durable", "toprf/claimed",
    "count/before", "count/half", "count/written", "count/durable", "toprf/counted", "take/read", "toprf/taken", "toprf/part", "toprf/removed",
    "toprf/evaluated", "batch/answered", "toprf/claimed@2", "toprf/taken@2", "toprf/part@3", "claim/durable@2", "take/read@4",
)  # fmt: skip
"""Those with a number are reached after some requests were answered, when items are claimed ahead."""


class Parties:
    """Two parties, each a process, and requests whose ids are known."""

    def __init__(self, committee: Committee, log: Path, *options: str) -> None:
        """``options``: ``table``, and ``unclaimed`` (see the worker)."""
        self.committee, self.log, self.options = committee, log, options
        self.numbers = list(committee.numbers) if isinstance(committee, Subset) else None
        self.key_id = load_prf_key(committee.key_folder(0, "prf")).key_id
        self.running: dict[int, Forked] = {}
        self.asked = 0

    def start(self, party: int, kill_at: str = "-") -> None:
        (self.committee.party_folder(party) / "serve.json").unlink(missing_ok=True)
        with self.log.open("ab") as file:
            subset = [] if self.numbers is None else [f"--parties={','.join(map(str, self.numbers))}"]
            more = [*self.options[:1], str(self.used_log(party)), *self.options[1:]] if self.options else []
            self.running[party] = Forked(
                [
                    sys.executable,
                    "-m",
                    "tests.faults.toprf_worker",
                    *subset,
                    str(self.committee.folder),
                    str(self.committee.number_of(party)),
                    kill_at,
                    *more,
                ],
                stdout=file,
                stderr=file,
                cwd=ROOT,
            )
        end = time.monotonic() + 30
        while not (self.committee.party_folder(party) / "serve.json").exists():
            assert self.running[party].poll() is None and time.monotonic() < end, self.log.read_text()[-2000:]
            time.sleep(0.05)

    def used_log(self, party: int) -> Path:
        return self.log.with_name(f"used-{party}")

    def used(self, party: int) -> list[str]:
        """Hashes of the items that a party has used."""
        return self.used_log(party).read_text().split()

    def alive(self, party: int) -> bool:
        """Waits a moment for the death of a party."""
        with suppress(subprocess.TimeoutExpired):
            self.running[party].wait(0.15)
        return self.running[party].poll() is None

    def stop(self) -> None:
        for process in self.running.values():
            process.kill()
            process.wait()

    def ask(self, identity: Path) -> tuple[str, bytes | None]:
        """The id of a new request, and its value; None if it was refused."""
        self.asked += 1
        name = f"request{self.asked:04}"
        with Toprf(self.committee.whole, "prf", identity, wait=10.0, parties=self.numbers) as toprf:
            try:
                bodies, head = shared_points(self.committee, [point_of(b"x", b"", 16)]), {} if self.numbers is None else {"parties": self.numbers}
                answers = toprf._channels.ask(bodies, {"key": self.key_id, "output": 16, "id": name, **head})
            except KeyQuorumError as error:
                assert "\n" not in str(error)
                return name, None
        return name, finalised(b"x", b"", 16, combined(self.committee, answers, 1))

    def until_answered(self, identity: Path, wanted: bytes) -> str:
        """The id of the first request that is answered, rightly."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            name, value = self.ask(identity)
            if value is not None:
                assert value == wanted
                return name
            time.sleep(0.2)
        raise AssertionError(self.log.read_text()[-2000:])

    def counted(self, party: int) -> list[str]:
        return [line.id for line in read_journal(self.committee.key_folder(party, "prf") / JOURNAL).lines]

    def answered(self, party: int) -> list[str]:
        """The ids of requests for which the party's audit log has an answer."""
        text = (self.committee.party_folder(party) / "audit.jsonl").read_text()
        return [line["request"] for line in map(json.loads, text.splitlines()) if line["result"] == "answered"]


@pytest.mark.timeout(240)
@pytest.mark.parametrize("victim", VICTIMS)
def test_killed_anywhere(tmp_path: Path, victim: int) -> None:
    committee = committee_with_key(tmp_path, "semi", 2)
    identity, _ = make_receiver(committee, "web")
    for party in (0, 1):
        set_policy(committee, party, "prf", 1000)
    parties = Parties(committee, tmp_path / "log")
    try:
        parties.start(1 - victim)
        for point in POINTS:
            parties.start(victim, point)
            before, asked, end = parties.counted(victim), [], time.monotonic() + 60
            while parties.alive(victim):  # the first requests may come before the parties are connected, the last after the death
                name, value = parties.ask(identity)
                assert value is None and time.monotonic() < end, (point, parties.log.read_text()[-2000:])
                asked.append(name)
            assert parties.running[victim].wait() == -signal.SIGKILL
            new = [name for name in parties.counted(victim) if name not in before]
            assert set(new) <= set(asked) and bool(new) == (point in COUNTED), (point, new, asked)
        parties.start(victim)
        received = parties.until_answered(identity, reference(key_of(committee), b"x", length=16))
        for party in (0, 1):
            counted = parties.counted(party)
            assert len(set(counted)) == len(counted)
            assert {received, *parties.answered(party)} <= set(counted)
            assert read_journal(committee.key_folder(party, "prf") / JOURNAL).total == len(counted)
    finally:
        parties.stop()


def served_by_tables(folder: Path, victim: int, points: Sequence[str], *options: str, numbers: tuple[int, ...] | None = None) -> Parties:
    """Two parties after the victim was killed at each of the points, while it was asked again and again, and after a last request. Answers were right.
    ``numbers``: they are these of three, with shares for every two."""
    whole = committee_with_key(folder, "semi2k", 2 if numbers is None else 3)
    identity, _ = make_receiver(whole, "web")
    for party in range(whole.size):
        set_policy(whole, party, "prf", 1000)
    if numbers is not None:
        run_in_process(whole, lambda context: run_job(context, {"kind": "share", "key": "prf", "members": 2}), timeout=60)
    committee = members_of(whole, numbers)
    job = {"kind": "toprf_fill", "count": 16 + 8 * len(points), "chunk": 50, **subset_field(numbers)}
    run_in_process(committee, lambda context: run_job(context, job), timeout=60)
    parties, wanted = Parties(committee, folder / "log", "table", *options), reference(key_of(whole), b"x", length=16)
    try:
        parties.start(1 - victim)
        for point in points:
            parties.start(victim, point)
            end = time.monotonic() + 60
            while parties.alive(victim):
                assert parties.ask(identity)[1] in (None, wanted) and time.monotonic() < end, (point, parties.log.read_text()[-2000:])
            assert parties.running[victim].wait() == -signal.SIGKILL
        parties.start(victim)
        parties.until_answered(identity, wanted)
    finally:
        parties.stop()
    return parties


@pytest.mark.timeout(240)
@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("points", [TABLE_POINTS] if LONG else [("claim/durable",), ("toprf/part",)], ids=lambda points: points[0])
def test_no_item_is_used_twice(tmp_path: Path, victim: int, points: tuple[str, ...]) -> None:
    """Killed at any point. All that was used is below the end of the claims in the journal."""
    parties = served_by_tables(tmp_path, victim, points)
    for party in (0, 1):
        used = parties.used(party)
        assert used and len(set(used)) == len(used)
        _, claimed = pool_status(pools_folder(parties.committee, party) / "prf-aes128-table")
        assert len(used) <= claimed
        answered = parties.answered(party)
        assert len(answered) <= len(used) and set(answered) <= set(parties.counted(party))


@pytest.mark.timeout(240)
@pytest.mark.parametrize("points", [TABLE_POINTS] if LONG else [("claim/durable", "toprf/part")], ids=lambda points: points[0])
def test_no_item_of_a_subset_is_used_twice(tmp_path: Path, points: tuple[str, ...]) -> None:
    """The same of parties 0 and 2, with the pool that they made without party 1."""
    parties = served_by_tables(tmp_path, 1, points, numbers=(0, 2))
    for party in (0, 1):
        used = parties.used(party)
        assert used and len(set(used)) == len(used)
        assert len(used) <= pool_status(pools_folder(parties.committee, party) / "prf-aes128-table.0-2")[1]
    assert not pools_folder(parties.committee.whole, 1).exists()


@pytest.mark.timeout(120)
def test_without_claims_on_the_disk_items_are_used_twice(tmp_path: Path) -> None:
    """The test above, with the claims taken out: it would fail."""
    parties = served_by_tables(tmp_path, 1, ("toprf/part",), "unclaimed")
    for party in (0, 1):
        assert len(set(parties.used(party))) < len(parties.used(party))
