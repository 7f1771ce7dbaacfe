"""``pool.json``: what a pool is, and its chunks. Chunks that are used up are not listed, only counted: the file does not grow with the decryptions.

Item numbers and chunk numbers begin at 0 and never begin again as long as the pool has its id. A chain of hashes over all chunks, listed or gone, is equal at all members that made the same ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path

from keyquorum.model.errors import PoolLost
from keyquorum.model.plain import Json, is_count, is_hex, json_loads

VERSION = 3
"""Of ``pool.json``. Files of version 1 have no ``version``, and list all chunks. Before version 3 items had whole integers in place of planes of bits."""
NO_CHAIN = bytes(32).hex()


@dataclass(frozen=True)
class Chunk:
    """Some items that were made together. ``id``: the same at all parties, 32 hexadecimal digits."""

    id: str
    count: int


class ChunkList:
    """The chunks of a pool in their order. ``gone``: how many are used up and not listed; ``gone_items``: their items; ``gone_chain``: the chain over them."""

    def __init__(self, listed: Sequence[Chunk] = (), gone: int = 0, gone_items: int = 0, gone_chain: str = NO_CHAIN) -> None:
        self.gone, self.gone_items, self._gone_chain = gone, gone_items, gone_chain
        self._set(listed)

    def _set(self, listed: Sequence[Chunk]) -> None:
        self.listed = list(listed)
        self._items = self.gone_items + sum(chunk.count for chunk in self.listed)
        *_, self._chain = accumulate(self.listed, _linked, initial=self._gone_chain)

    @property
    def number(self) -> int:
        """Chunks ever made."""
        return self.gone + len(self.listed)

    @property
    def items(self) -> int:
        """Items ever made."""
        return self._items

    @property
    def digest(self) -> bytes:
        """The chain over all chunks."""
        return bytes.fromhex(self._chain)

    def there(self) -> Iterator[tuple[Chunk, int]]:
        """The listed chunks, each with the number of its first item."""
        base = self.gone_items
        for chunk in self.listed:
            yield chunk, base
            base += chunk.count

    def add(self, chunk: Chunk) -> None:
        """Appends a chunk."""
        self.listed.append(chunk)
        self._items += chunk.count
        self._chain = _linked(self._chain, chunk)

    def keep(self, number: int) -> list[Chunk]:
        """Takes all chunks after the first ``number`` off the list, and returns them. Those that are gone stay so."""
        left = max(0, number - self.gone)
        taken = self.listed[left:]
        if taken:
            self._set(self.listed[:left])
        return taken

    def forget(self, used: int) -> list[Chunk]:
        """Takes the first chunks off the list whose items are all below ``used``, and returns them."""
        count = 0
        for chunk, base in self.there():
            if base + chunk.count > used:
                break
            count += 1
        taken, self.listed = self.listed[:count], self.listed[count:]
        for chunk in taken:
            self.gone, self.gone_items, self._gone_chain = self.gone + 1, self.gone_items + chunk.count, _linked(self._gone_chain, chunk)
        return taken

    def to_json(self) -> Json:
        """The entries of ``pool.json``."""
        gone = {"chunks": self.gone, "items": self.gone_items, "chain": self._gone_chain}
        return {"version": VERSION, "gone": gone, "chunks": [asdict(chunk) for chunk in self.listed]}


def _linked(chain: str, chunk: Chunk) -> str:
    return hashlib.sha256(f"keyquorum chunk {chain} {chunk.id} {chunk.count}".encode()).hexdigest()


@dataclass(frozen=True)
class PoolList:
    """The content of ``pool.json``. ``kind``: what the pool is, plain data."""

    id: str
    kind: Json
    chunks: ChunkList
    version: int = VERSION


def read_pool(folder: Path) -> PoolList | None:
    """The list of a pool; None if there is none. Raises PoolLost for a damaged one."""
    path = folder / "pool.json"
    if not path.exists():
        return None
    try:
        return _read(json_loads(path.read_text()))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PoolLost(f"{path}: damaged ({error}): keyquorum pool drop, and fill again") from None


def _read(data: Json) -> PoolList:
    chunks = [Chunk(**c) for c in data["chunks"]]
    if not (isinstance(data["id"], str) and isinstance(data["kind"], dict)):
        raise ValueError("missing entries")
    if not all(is_hex(chunk.id, 32) and is_count(chunk.count, 1) for chunk in chunks):
        raise ValueError("a chunk has no proper id or count")
    version = data.get("version", 1)
    if version == 1:
        return PoolList(data["id"], data["kind"], ChunkList(chunks), version)
    gone = data["gone"]
    if version not in (2, VERSION):
        raise ValueError(f"of version {version}, this build reads 1 to {VERSION}")
    if not (is_count(gone["chunks"]) and is_count(gone["items"], gone["chunks"]) and is_hex(gone["chain"], 64)):
        raise ValueError("no proper sum of the chunks that are gone")
    return PoolList(data["id"], data["kind"], ChunkList(chunks, gone["chunks"], gone["items"], gone["chain"]), version)


__all__ = ["Chunk", "ChunkList", "PoolList", "read_pool"]
