"""The journal of a pool when a write fails or its end is torn: what was claimed stays claimed."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from keyquorum.fhe.lwe import lwe_parameters
from keyquorum.model.errors import PoolError
from keyquorum.plans.pool_list import Chunk
from keyquorum.plans.pool_store import Claim, PoolStore, last_claim
from keyquorum.plans.pools import Report, judge
from keyquorum.schemes.lwe.variant import LweVariant
from keyquorum.sharing.variants import Preprocessing

OPEN = LweVariant("round_mask_open", lwe_parameters("lwe64-p2"))
KIND = {"protocol": "semi2k", "parties": 2, "threshold": 1, "party": 0}
ITEMS = 40


def opened(folder: Path) -> PoolStore:
    return PoolStore(folder / "p", KIND, OPEN.sections, 1)


def filled(folder: Path) -> PoolStore:
    store = opened(folder)
    store.start("id")
    chunk = Chunk("ab" * 16, ITEMS)
    store.write(chunk, Preprocessing(np.zeros((1, section.rows, ITEMS), np.uint64) for section in store.sections))
    store.add(chunk)
    store.claim_items(Claim(0, 4, "a", [(0, "x"), (0, "x")]))
    return store


def journal(folder: Path) -> Path:
    return folder / "p" / "cursor.journal"


@contextmanager
def full_disk(path: Path, room: int) -> Iterator[None]:
    """The system refuses to make any file longer than this one is, plus ``room`` bytes: a real failure of a real write."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + room, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def half_writes(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """A write takes a part, the next one finds no space."""
    write, left = os.write, [60, 0]

    def some(file: int, data: bytes) -> int:
        room = left.pop(0) if left else 0
        if not room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, data[:room])

    with patch.context() as inner:
        inner.setattr("keyquorum.plans.pool_store.os.write", some)
        yield


Failure = Callable[[Path, pytest.MonkeyPatch], None]


def lost_claim(folder: Path, patch: pytest.MonkeyPatch, real: bool) -> tuple[int, int]:
    """A claim fails in the middle, and the same object is asked for another when there is room again. Returns the end of what it handed
    out, and the first item that the pool hands out when it is opened again: the latter must not be less."""
    store = filled(folder)
    store.hand_out(0, 4)
    with full_disk(journal(folder), 60) if real else half_writes(patch), pytest.raises((OSError, PoolError)):
        store.claim_items(Claim(4, 8, "b", [(4, "a"), (4, "a")]))
    try:
        store.claim_items(Claim(4, 10, "c", [(4, "a"), (4, "a")]))
        store.hand_out(4, 10)
    except PoolError as error:
        assert "the journal could not be written" in str(error)
    used = store.next
    store.close()
    again = opened(folder)
    try:
        return used, again.next
    finally:
        again.close()


@pytest.mark.parametrize("real", [True, False])
def test_torn_claims_blocked_a_claim_after_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, real: bool) -> None:
    used, first = lost_claim(tmp_path, monkeypatch, real)
    assert first >= used


USES: dict[str, Callable[[PoolStore], object]] = {
    "used up": lambda store: (store.claim_items(Claim(4, ITEMS, "b", [])), store.give_up(ITEMS), store.remove_used()),
    "not at all members": lambda store: store.keep(0),
    "dropped": PoolStore.drop,
}


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("use", USES)
def test_items_that_go_are_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: str, full: bool) -> None:
    """A second name of the file shows what is left on the disk. Where the disk takes no write, the file goes all the same."""
    store = filled(tmp_path)
    [chunk] = (tmp_path / "p").glob("chunk-*")
    copy = tmp_path / "copy"
    copy.hardlink_to(chunk)
    with monkeypatch.context() as patched:
        if full:
            patched.setattr("keyquorum.parties.epochs.erasure._overwrite", lambda path: os.pread(-1, 1, 0))
        USES[use](store)
    assert not chunk.exists() and any(copy.read_bytes()) == full
    store.close()


def torn(folder: Path, cut: int, tail: bytes = b"") -> int:
    """A claim is made and handed out; then the file system loses the end of the journal (all but ``cut`` bytes of the line), and has
    ``tail`` there. Returns the first item that the pool hands out when it is opened for the second time."""
    store = filled(folder)
    before = journal(folder).stat().st_size
    store.claim_items(Claim(4, 10, "b", [(4, "a"), (4, "a")]))
    store.hand_out(4, 10)
    store.close()
    data = journal(folder).read_bytes()
    journal(folder).write_bytes(data[: before + cut] + tail)
    opened(folder).close()
    store = opened(folder)
    try:
        return store.next
    finally:
        store.close()


@pytest.mark.parametrize(("cut", "tail"), [(80, b""), (60, b""), (40, b""), (5, b""), (0, bytes(64))])
def test_torn_claims_blocked_a_torn_end(tmp_path: Path, cut: int, tail: bytes) -> None:
    assert torn(tmp_path, cut, tail) >= 10


def test_torn_claims_blocked_with_a_disk_that_does_not_cut_off_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The torn line stays, nothing follows it, and its items are given up when the pool is opened again."""

    def refused(file: int, length: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("keyquorum.plans.pool_store.os.ftruncate", refused)
    used, first = lost_claim(tmp_path, monkeypatch, False)
    assert (used, first) == (4, 8)


def test_torn_claims_ablated_a_claim_after_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what is done after a failed write, and with the old reading of a torn end, items are handed out again."""
    monkeypatch.setattr(PoolStore, "_close_journal", lambda self, file, length, error: None)
    monkeypatch.setattr("keyquorum.plans.pool_store.last_claim", last_whole_line)
    used, first = lost_claim(tmp_path, monkeypatch, False)
    assert (used, first) == (10, 4)


def test_torn_claims_ablated_a_torn_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keyquorum.plans.pool_store._torn_end", lambda tail, used, items: 0)
    assert torn(tmp_path, 60) == 4


def last_whole_line(path: Path, pool_id: str, items: int = 0) -> Claim | None:
    """A journal's reader that drops what does not fit at the end."""
    lines = path.read_bytes().split(b"\n")
    while len(lines) > 1:
        path.write_bytes(b"\n".join(lines) + b"\n")
        claim = last_claim(path, pool_id, 0)
        if claim is not None:
            return claim
        lines.pop()
    return None


def test_given_up_items_stay_given_up_and_members_agree_on_them(tmp_path: Path) -> None:
    assert torn(tmp_path, 5) == ITEMS, "it does not say what it claimed"
    torn_one = Report("decrypt", "pool", [("a", 60), ("b", 60)], 60, "c0", [], 0, 75, 0, "n")
    whole = Report("decrypt", "pool", [("a", 60), ("b", 60)], 60, "c0", [], 0, 60, 0, "n")
    ahead = Report("decrypt", "pool", [("a", 60), ("b", 60)], 70, "c1", [(60, "c0"), (60, "c0")], 60, 70, 0, "n")
    assert judge([torn_one, whole], [0, 1]).position == 75
    assert judge([torn_one, ahead], [0, 1]).position == 75


def test_a_damaged_line_in_the_journal_is_refused(tmp_path: Path) -> None:
    filled(tmp_path).close()
    data = journal(tmp_path).read_bytes()
    for damaged in (data[:-9] + b"x" + data[-8:], b"", data + b"x\n", data + b"\n"):
        journal(tmp_path).write_bytes(damaged)
        with pytest.raises(PoolError, match="what was used is not known"):
            opened(tmp_path)
    journal(tmp_path).write_bytes(data[:-1])
    store = opened(tmp_path)
    assert (store.claim.end, store.next) == (0, 4), "without its line break the last line is torn"
    store.close()
