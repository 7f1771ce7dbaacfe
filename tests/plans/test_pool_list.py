"""The list of a pool does not grow with what was used, and says the same whether used chunks are listed or not."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from keyquorum.model.errors import PoolError, PoolLost
from keyquorum.plans.pool_list import Chunk, ChunkList, read_pool
from keyquorum.plans.pool_store import Claim, PoolStore, drop_pool, pool_status
from keyquorum.plans.pools import judge
from keyquorum.sharing.variants import Preprocessing, Section

from tests.plans.test_pools import report

KIND = {"protocol": "semi2k", "parties": 2, "threshold": 1, "party": 0}
SECTIONS = [Section(1, 16)]
ITEMS = 4


def opened(folder: Path) -> PoolStore:
    return PoolStore(folder / "p", KIND, SECTIONS, 1)


def grown(store: PoolStore, number: int) -> None:
    chunk = Chunk(f"{number:032x}", ITEMS)
    store.write(chunk, Preprocessing([np.arange(ITEMS, dtype=np.uint64).reshape(1, 1, ITEMS) + np.uint64(ITEMS * number)]))
    store.add(chunk)


def used(store: PoolStore, end: int) -> list[int]:
    start = store.next
    store.claim_items(Claim(start, end, f"{end:064x}", []))
    items = [int(value) for value in store.hand_out(start, end)[0].ravel()]
    store.remove_used()
    return items


def test_the_list_of_a_pool_does_not_grow_with_what_was_used(tmp_path: Path) -> None:
    """A hundred chunks, each used up before the next is made: the file stays as long as it was, and items are numbered on."""
    store, seen, sizes = opened(tmp_path), list[int](), list[int]()
    store.start("id")
    for number in range(100):
        grown(store, number)
        sizes.append((tmp_path / "p" / "pool.json").stat().st_size)
        seen += used(store, ITEMS * (number + 1))
        if number % 17 == 5:
            store.close()
            store = opened(tmp_path)
    assert seen == list(range(100 * ITEMS)), "each item once, also after the pool was opened again"
    assert max(sizes) < sizes[0] + 20, "digits of sums"
    assert store.chunks.number == 100 and store.chunks.items == 100 * ITEMS and len(store.chunks.listed) <= 1
    store.close()
    assert pool_status(tmp_path / "p") == (100 * ITEMS, 100 * ITEMS)


def test_a_list_of_an_earlier_build_is_read_and_its_used_chunks_are_dropped(tmp_path: Path) -> None:
    store = opened(tmp_path)
    store.start("id")
    for number in range(3):
        grown(store, number)
    path = tmp_path / "p" / "pool.json"
    data = json.loads(path.read_text())
    store.claim_items(Claim(0, 5, "a" * 64, []))
    store.close()
    path.write_text(json.dumps({"id": data["id"], "kind": data["kind"], "chunks": data["chunks"]}))
    store = opened(tmp_path)
    assert (store.chunks.items, store.next, store.chunks.number, store.chunks.gone) == (12, 5, 3, 1)
    grown(store, 3)
    assert used(store, 14) == list(range(5, 14))
    store.close()
    found = read_pool(tmp_path / "p")
    assert found is not None and (found.chunks.gone, found.chunks.gone_items, found.chunks.number) == (1, 4, 4)
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 4}))
    with pytest.raises(PoolLost, match="of version 4, this build reads 1 to 3"):
        opened(tmp_path)


def test_a_pool_of_an_earlier_build_is_used_only_where_its_items_have_the_same_bytes(tmp_path: Path) -> None:
    """Since version 3 numbers of other lengths than 1, 8, 16, 32 and 64 bits are stored without their upper bits."""
    for bits in (1, 16, 9, 62):
        store = PoolStore(tmp_path / str(bits), KIND, [Section(3, bits)], 1)
        store.start("id")
        store.close()
        path = tmp_path / str(bits) / "pool.json"
        data = json.loads(path.read_text())
        path.write_text(json.dumps({**data, "version": 2}))
        if bits in (1, 16):
            PoolStore(tmp_path / str(bits), KIND, [Section(3, bits)], 1).close()
            continue
        with pytest.raises(PoolLost, match="an earlier build made this pool, whose items take more room: keyquorum pool drop at every party"):
            PoolStore(tmp_path / str(bits), KIND, [Section(3, bits)], 1)
        assert json.loads(path.read_text())["version"] == 2, "left as it is"
        drop_pool(tmp_path / str(bits))


def test_members_agree_whether_used_chunks_are_listed_or_not() -> None:
    chunks = [Chunk(f"{i:032x}", 10 + i) for i in range(5)]
    whole, pruned = ChunkList(chunks), ChunkList(chunks)
    assert pruned.forget(35) == chunks[:3] and pruned.forget(35) == []
    assert (pruned.digest, pruned.items, pruned.number) == (whole.digest, whole.items, whole.number)
    assert list(pruned.there()) == list(whole.there())[3:]
    assert pruned.keep(4) == chunks[4:] and whole.keep(4) == chunks[4:] and pruned.digest == whole.digest and pruned.items == 46
    listed = [(c.id, c.count) for c in chunks]
    found = judge([report(chunks=listed), report(chunks=listed[3:], gone=(3, 33)), report(chunks=listed[1:4], gone=(1, 10))], [0, 1, 2])
    assert (found.chunks, found.items) == (4, 46)
    with pytest.raises(PoolError, match="parties 0 and 1 have different pools"):
        judge([report(chunks=listed), report(chunks=listed[3:], gone=(3, 34)), report(chunks=listed)], [0, 1, 2])
