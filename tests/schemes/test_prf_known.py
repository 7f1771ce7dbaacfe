"""What a party counts of evaluations that others have counted while it was absent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from keyquorum.schemes.prf.evaluations import JOURNAL, Evaluations, read_journal, read_known, start_evaluations
from keyquorum.schemes.prf.policy import EvaluationPolicy

KEY, WEB, APP = "ab" * 16, "1" * 64, "2" * 64


class Clock:
    """Seconds that tests set."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def counting(folder: Path, clock: Clock, rate: int = 10) -> Evaluations:
    folder.mkdir(exist_ok=True)
    if not (folder / JOURNAL).exists():
        start_evaluations(folder, KEY)
    return Evaluations(folder, EvaluationPolicy(KEY, rate, 20), clock, clock)


def test_what_others_counted_counts_here(tmp_path: Path) -> None:
    """Once, on the disk, and for the right receiver; after a restart too. What both have counted adds nothing."""
    clock = Clock()
    mine, other = counting(tmp_path / "0", clock), counting(tmp_path / "1", clock)
    for each in (mine, other):
        each.claim([(WEB, "together", 2)])
    other.claim([(WEB, "without me", 3), (APP, "another", 4)])
    for _ in range(2):
        mine.learn(other.known())
        assert mine.total == other.total == 9 and mine.known() == other.known()
    assert mine.refusal(WEB, "next", 6) is not None and mine.refusal(WEB, "next", 5) is None
    assert "counted already" in str(mine.refusal(WEB, "without me", 1))
    assert read_journal(tmp_path / "0" / JOURNAL, KEY).total == 9 == counting(tmp_path / "0", clock).total


def test_who_knows_the_same_says_the_same(tmp_path: Path) -> None:
    """Also where clocks differ, as they always do; then nothing but the digest is sent. Another count, total, receiver or id is another digest."""
    here, there = Clock(), Clock()
    there.now += 0.25
    mine, other = counting(tmp_path / "0", here), counting(tmp_path / "1", there)
    for each in (mine, other):
        each.claim([(WEB, "together", 2)])
    assert mine.known() != other.known() and mine.known_digest() == other.known_digest()
    digests = {mine.known_digest()}
    for request in ((APP, "a", 1), (APP, "b", 1), (WEB, "a", 1), (WEB, "c", 2)):
        other.claim([request])
        assert other.known_digest() not in digests
        digests.add(other.known_digest())
    mine.learn(other.known())
    assert mine.known_digest() == other.known_digest()
    for clock in (here, there):
        clock.now += 3601
    assert mine.known_digest() == other.known_digest() != counting(tmp_path / "2", here).known_digest(), "totals remain"


def test_old_evaluations_count_in_the_total(tmp_path: Path) -> None:
    """Those of more than an hour ago have no lines; the larger total has them."""
    clock = Clock()
    mine, other = counting(tmp_path / "0", clock), counting(tmp_path / "1", clock)
    other.claim([(WEB, "old", 5)])
    clock.now += 3700
    mine.claim([(APP, "mine", 1)])
    other.claim([(WEB, "new", 2)])
    assert json.loads(other.known())["lines"][0]["id"] == "new"
    mine.learn(other.known())
    other.learn(mine.known())
    assert mine.total == 7 and other.total == 8  # whether "old" is "mine" is not known here, and no total goes down
    mine.learn(other.known())
    assert mine.total == 8 and mine.refusal(WEB, "next", 8) is None and mine.refusal(WEB, "next", 9) is not None


def test_a_clock_that_is_ahead_elsewhere_does_not_move_this_one(tmp_path: Path) -> None:
    here, there = Clock(), Clock()
    there.now += 50_000
    mine, other = counting(tmp_path / "0", here), counting(tmp_path / "1", there)
    other.claim([(WEB, "ahead", 10)])
    mine.learn(other.known())
    assert mine.refusal(WEB, "next", 1) is not None
    here.now += 3601
    assert mine.refusal(WEB, "next", 1) is None


@pytest.mark.parametrize("behind", [0, 1, 300, 3000])
def test_reconnecting_counts_nothing_twice(tmp_path: Path, behind: int) -> None:
    """Around one hour after a request one clock has its line in the last hour and the other one has not; a party that starts again reads which lines there were."""
    here, there = Clock(), Clock()
    there.now -= behind
    mine, other = counting(tmp_path / "0", here), counting(tmp_path / "1", there)
    for each in (mine, other):
        each.claim([(WEB, "together", 5)])
    other.claim([(WEB, "without me", 4)])
    for step in range(40):
        for each in (mine, other):
            each.refusal(WEB, "next", 1)  # as a request that comes
        mine.learn(other.known())
        other.learn(mine.known())
        assert mine.total == other.total == 9
        for clock in (here, there):
            clock.now += 3595 if step == 0 else 1 if step < 12 else 250
        if step % 5 == 4:
            mine, other = counting(tmp_path / "0", here), counting(tmp_path / "1", there)


@pytest.mark.parametrize(
    "said",
    [b"", b"7", b"[]", b"{}", b'{"total": -1, "lines": []}', b'{"total": true, "lines": []}', b'{"total": 1, "lines": [{}]}', b'{"total": 1, "lines": 5}',
     json.dumps({"total": 2, "lines": [{"time": 1.0, "receiver": WEB, "id": "twice", "count": 1}] * 2}).encode()],
)  # fmt: skip
def test_other_bytes_are_refused(tmp_path: Path, said: bytes) -> None:
    with pytest.raises(ValueError):
        read_known(said)
    mine = counting(tmp_path / "0", Clock())
    before = (tmp_path / "0" / JOURNAL).read_bytes()
    with pytest.raises(ValueError):
        mine.learn(said)
    assert (tmp_path / "0" / JOURNAL).read_bytes() == before
