"""One party's pool on disk: preprocessing that may be used once, and a journal of the items that were used.

In a pool folder: ``pool.json`` (:mod:`.pool_list`: what the pool is, and its chunks), ``chunk-<id>.kqs`` (share files of some thousand items),
``cursor.journal`` (one line a claim, synced to the disk before anything that depends on it leaves) and ``pool.lock``.
A claim is of the items [start, end). Who has the pool open hands them out in their order, each once; after that nothing below the end of
the last claim is ever handed out, used or not. A claim that cannot be written ends the use of the object, and the journal is cut back to
what it was; a torn end that is found when the pool is opened counts as a claim that was used.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import ShareFile, StoreError
from keyquorum.dsl.files.binding import binding_of
from keyquorum.dsl.files.origin import Origin
from keyquorum.dsl.files.share_vector import Unsigned
from keyquorum.model import journal
from keyquorum.model.checkpoints import reached
from keyquorum.model.committee import write_atomically
from keyquorum.model.errors import PoolError, PoolLost, PoolUnwritable
from keyquorum.model.needs import require_disk
from keyquorum.model.plain import Json, is_count, json_loads
from keyquorum.parties.epochs.erasure import erase_files
from keyquorum.sharing.variants import Preprocessing, Section

from .pool_list import Chunk, ChunkList, read_pool

Words = NDArray[np.uint64]
UNPACKED_AT_A_TIME = 1 << 16
"""Integers of planes that are put together at a time: they stay in the cache."""
FIRST_IN_PLANES = 3
"""Version of ``pool.json`` since which integers of other lengths than 1, 8, 16, 32 and 64 bits are stored in planes."""
MOST_DROPS = 100
"""Times that a lock is opened again because the pool was dropped in between."""


@dataclass(frozen=True)
class Claim:
    """A line of the journal: items [start, end); ``chain`` binds all claims before; ``before``: (end, chain) of every member when
    they agreed on this claim; ``given_up``: items below this are not handed out either, since a torn line may have claimed them."""

    start: int
    end: int
    chain: str
    before: list[tuple[int, str]] = field(default_factory=list)
    given_up: int = 0

    @property
    def used(self) -> int:
        """The end of the items that count as used when the pool is opened."""
        return max(self.end, self.given_up)

    def to_line(self, pool_id: str) -> bytes:
        """With a checksum, so that a torn line is recognised."""
        text = json.dumps(vars(self), separators=(",", ":"))
        return journal.to_line(f"claim {pool_id}", text)


def _section_type(bits: int) -> Any:
    return next(t for t, size in (("<u1", 8), ("<u2", 16), ("<u4", 32), ("<u8", 64)) if bits <= size)


def _whole(bits: int) -> bool:
    """Whether integers of so many bits are stored as they are in memory, not in planes."""
    return bits in (8, 16, 32, 64)


def _row_bytes(bits: int, columns: int) -> int:
    """Bytes of a row of so many integers: a plane of each whole byte of theirs, and a plane of each bit above, eight integers to a byte."""
    return bits // 8 * columns + bits % 8 * -(-columns // 8)


def _planes(words: Words, bits: int) -> bytes:
    """Integers [parts, rows, columns] in planes (:func:`_row_bytes`), the lowest first, row after row."""
    whole = [(words >> np.uint64(8 * i)).astype(np.uint8) for i in range(bits // 8)]
    above = [np.packbits((words >> np.uint64(i) & np.uint64(1)).astype(np.uint8), axis=-1, bitorder="little") for i in range(bits - bits % 8, bits)]
    return np.concatenate([*whole, *above], axis=-1).tobytes()


def _from_planes(rows: NDArray[np.uint8], bits: int, columns: int) -> Unsigned:
    """Inverse of :func:`_planes`: the integers of stored rows [parts, rows, bytes], in the smallest words that hold them."""
    made = np.empty((*rows.shape[:2], columns), np.dtype(_section_type(bits)))
    step = max(1, UNPACKED_AT_A_TIME // columns)
    for part, into in zip(rows, made, strict=True):
        for at in range(0, len(part), step):
            _unpack(part[at : at + step], into[at : at + step], bits)
    return made


def _unpack(rows: NDArray[np.uint8], into: Unsigned, bits: int) -> None:
    columns, whole, kind = into.shape[1], bits // 8, into.dtype.type
    size, at = -(-columns // 8), whole * columns
    above = np.zeros(into.shape, np.uint8)
    for i in range(bits % 8):
        plane = np.unpackbits(rows[:, at + i * size : at + (i + 1) * size], axis=-1, count=columns, bitorder="little")
        np.bitwise_or(above, np.left_shift(plane, i, out=plane), out=above)
    np.left_shift(above, kind(8 * whole), out=into, dtype=into.dtype)
    for i in range(whole):
        np.bitwise_or(into, rows[:, i * columns : (i + 1) * columns].astype(into.dtype) << kind(8 * i), out=into)


def pack(preprocessing: Sequence[Words], sections: Sequence[Section]) -> bytes:
    """Sections one after another, with exactly their bits but for the end of a row: in planes, where the bits are not those of an integer type."""
    return b"".join(
        words.astype(_section_type(section.bits)).tobytes() if _whole(section.bits) else _planes(words, section.bits)
        for words, section in zip(preprocessing, sections, strict=True)
    )


def packed_bytes(sections: Sequence[Section], parts: int, count: int) -> int:
    """Size of what :func:`pack` gives."""
    return sum(parts * s.rows * _row_bytes(s.bits, count * s.words) for s in sections)


def chunks_bytes(sections: Sequence[Section], parts: int, items: int, chunk: int) -> int:
    """The same of ``items`` items in files of ``chunk`` each."""
    return items // chunk * packed_bytes(sections, parts, chunk) + packed_bytes(sections, parts, items % chunk)


def stored_sections(data: bytes, sections: Sequence[Section], parts: int, count: int) -> list[Unsigned]:
    """The sections of what :func:`pack` gave of ``count`` items, [parts, rows, count] each; single bits stay eight to a byte, others are in the smallest
    words that hold them. Copies. What follows them is left out."""
    result: list[Unsigned] = []
    at = 0
    for section in sections:
        kind = np.dtype(_section_type(section.bits) if _whole(section.bits) else np.uint8)
        size = packed_bytes([section], parts, count)
        rows = np.frombuffer(data, kind, size // kind.itemsize, at).reshape(parts, section.rows, -1)
        as_stored = _whole(section.bits) or section.bits == 1
        result.append(rows.copy() if as_stored else _from_planes(rows, section.bits, count * section.words))
        at += size
    return result


def items_of(stored: Sequence[Unsigned], sections: Sequence[Section], start: int, stop: int) -> list[Unsigned]:
    """Items start..stop-1 of :func:`stored_sections`, in the same words."""
    result: list[Unsigned] = []
    for section, words in zip(sections, stored, strict=True):
        if section.bits == 1:
            bits = np.unpackbits(words[:, :, start // 8 : -(-stop // 8)], axis=-1, bitorder="little")
            result.append(bits[:, :, start % 8 : start % 8 + stop - start])
        else:
            result.append(words[:, :, start * section.words : stop * section.words])
    return result


class PoolStore:
    """The pool of one party, locked: no other process can use or fill it. ``kind``: what the pool is (plain data, the same at all
    members but for ``party``)."""

    def __init__(self, folder: Path, kind: Json, sections: Sequence[Section], parts: int) -> None:
        self.folder, self.kind, self.sections, self.parts = folder, kind, list(sections), parts
        self._lock = _locked(folder, make=True)
        self._cached: tuple[str, Preprocessing] | None = None
        self._unwritable = ""
        """Why no claim can be written any more."""
        try:
            self.id, self.chunks = self._load()
            self.claim = self._last_claim()
            self.next = self.claim.used
            """The first item that was not handed out."""
            self.remove_used()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Wipes the items that were read, and releases the lock."""
        self._forget()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    # -- what there is ------------------------------------------------------------------------------------------------

    def _load(self) -> tuple[str, ChunkList]:
        found = read_pool(self.folder)
        if found is None:
            return "", ChunkList()
        if found.kind != self.kind:
            changed = [k for k in self.kind if found.kind.get(k) != self.kind[k]]
            raise PoolLost(f"{self.folder}: this pool was made with another {', '.join(changed) or 'layout'}: keyquorum pool drop")
        if found.version < FIRST_IN_PLANES and not all(_whole(s.bits) or s.bits == 1 for s in self.sections):
            raise PoolLost(
                f"{self.folder}: an earlier build made this pool, whose items take more room: keyquorum pool drop at every party, and fill again"
            )
        return found.id, found.chunks

    def start(self, pool_id: str) -> None:
        """Starts an empty pool; claims begin at 0."""
        claim = Claim(0, 0, hashlib.sha256(pool_id.encode()).hexdigest())
        write_atomically(self._journal, claim.to_line(pool_id), 0o600)  # before the pool counts
        self.id, self.chunks, self.claim, self.next = pool_id, ChunkList(), claim, 0
        self._save()

    def drop(self) -> None:
        """Gives all items up, and erases the files. Takes no room on the disk."""
        self._forget()
        (self.folder / "pool.json").unlink(missing_ok=True)  # first: without it nothing of the rest counts
        self._journal.unlink(missing_ok=True)
        _erase(self.folder.glob("chunk-*.kqs"))
        self.id, self.chunks, self.claim, self.next = "", ChunkList(), Claim(0, 0, ""), 0
        self._unwritable = ""

    def require_files(self) -> None:
        """Raises PoolLost if the file of a chunk with items left is gone."""
        for chunk, _ in self.chunks.there():
            if not self._path(chunk.id).is_file():
                raise PoolLost(f"{self._path(chunk.id)}: missing: keyquorum pool drop at every party, and fill again")

    def _save(self) -> None:
        data = {"id": self.id, "kind": self.kind, **self.chunks.to_json()}
        write_atomically(self.folder / "pool.json", json.dumps(data, indent=1).encode() + b"\n", 0o600)

    # -- filling ------------------------------------------------------------------------------------------------------

    def _path(self, chunk_id: str) -> Path:
        return self.folder / f"chunk-{chunk_id}.kqs"

    def _header(self, chunk: Chunk) -> Json:
        return {
            "protocol": self.kind["protocol"], "domain": "Z2^64", "parties": self.kind["parties"],
            "threshold": self.kind["threshold"], "party": self.kind["party"], "key_id": chunk.id, "length": chunk.count,
        }  # fmt: skip

    def write(self, chunk: Chunk, preprocessing: Preprocessing) -> None:
        """Stores a chunk that does not count yet; their origin, if they have one, stands behind its sections."""
        data = pack(preprocessing, self.sections) + b"".join(map(bytes, preprocessing.origins))
        ShareFile.write(str(self._path(chunk.id)), self._header(chunk), data)

    def require_room(self, count: int, parties: int = 1) -> None:
        """Refuses to make so many items more, at so many parties that have this disk. Raises ResourceError."""
        size = parties * packed_bytes(self.sections, self.parts, count)
        require_disk(f"a pool of {count:,} items more", size, self.folder)

    def discard(self, chunk: Chunk) -> None:
        """Erases a chunk that does not count, or not any more."""
        _erase([self._path(chunk.id)])

    def add(self, chunk: Chunk) -> None:
        """Counts a stored chunk, once every member has stored it. If the disk does not take the list, the chunk does not count here, and is erased."""
        before = self.chunks.number
        self.chunks.add(chunk)
        try:
            self._save()
        except BaseException:
            self.chunks.keep(before)
            self.discard(chunk)
            raise

    def keep(self, number: int) -> None:
        """Forgets the chunks after the first few: those that not every member has."""
        taken = self.chunks.keep(number)
        for chunk in taken:
            self.discard(chunk)
        if taken:
            self._save()
        named = {self._path(c.id).name for c in self.chunks.listed}
        _erase(path for path in self.folder.glob("chunk-*.kqs") if path.name not in named)

    # -- use ----------------------------------------------------------------------------------------------------------

    @property
    def _journal(self) -> Path:
        return self.folder / "cursor.journal"

    def _last_claim(self) -> Claim:
        if not self.id:
            return Claim(0, 0, "")
        claim = last_claim(self._journal, self.id, self.chunks.items)
        if claim is None:
            raise PoolLost(f"{self._journal}: missing or damaged, so what was used is not known: keyquorum pool drop, and fill again")
        line, data = claim.to_line(self.id), self._journal.read_bytes()
        if data != line:
            try:
                write_atomically(self._journal, line, 0o600)  # in place of a torn end: what it may have claimed
            except OSError as error:
                if not data.endswith(b"\n"):
                    raise PoolUnwritable(_unwritable(self._journal, error)) from None
        return claim

    def claim_items(self, claim: Claim) -> None:
        """Makes a claim durable. From now on its items count as used, whatever happens. If the disk does not take it, this object makes no
        claims any more: what is on the disk is found out when the pool is opened again."""
        if self._unwritable:
            raise PoolUnwritable(self._unwritable)
        if claim.start < self.claim.end or claim.end <= claim.start:
            raise PoolError(f"{self.folder}: items {claim.start} to {claim.end} are used already: this is a bug or a foreign journal")
        line = claim.to_line(self.id)
        reached("claim/before")
        file = -1
        try:
            file = os.open(self._journal, os.O_WRONLY | os.O_APPEND)
            length, half = os.fstat(file).st_size, len(line) // 2
            try:
                _write(file, line[:half])
                reached("claim/half")
                _write(file, line[half:])
                reached("claim/written")
                os.fsync(file)
            except BaseException as error:
                self._close_journal(file, length, error)
                raise
        except FileNotFoundError as error:
            raise PoolLost(f"{self._journal}: {error}: keyquorum pool drop, and fill again") from None
        except OSError as error:
            raise PoolUnwritable(self._unwritable or _unwritable(self._journal, error)) from None
        finally:
            if file >= 0:
                os.close(file)
        self.claim = claim
        reached("claim/durable")

    def _close_journal(self, file: int, length: int, error: BaseException) -> None:
        """After a write that failed: no claims any more, and nothing of this one, after which a later line could not be read. Where it
        cannot be cut off either, it is a torn end for whoever opens the pool again."""
        self._unwritable = _unwritable(self._journal, error)
        with suppress(OSError):
            os.ftruncate(file, length)
            os.fsync(file)

    def check(self, start: int, end: int) -> None:
        """Refuses items of which a file is gone, before they are claimed. What is in memory needs no file."""
        held = None if self._cached is None else self._cached[0]
        for chunk, base in self.chunks.there():
            if base >= end:
                return
            if chunk.id != held and max(start, base) < min(end, base + chunk.count) and not self._path(chunk.id).is_file():
                raise PoolLost(f"{self._path(chunk.id)}: missing: keyquorum pool drop at every party, and fill again")

    def hand_out(self, start: int, end: int) -> Preprocessing:
        """The claimed items [start, end), and never again; a section an array [parts, rows, end - start] of words as wide as they are
        stored. Wiping it wipes those of wide sections in the chunk that is held in memory, too.
        What was handed out before is gone by then."""
        if not self.next <= start <= end <= self.claim.end:
            raise PoolError(f"{self.folder}: items {start} to {end} are handed out already, or not claimed: this is a bug")
        self.next = end
        pieces = []
        origins: dict[bytes, Origin] = {}
        for chunk, base in self.chunks.there():
            if base >= end:
                break
            low, high = max(start, base), min(end, base + chunk.count)
            if low < high:
                stored = self._chunk(chunk)
                origins.update((bytes(origin), origin) for origin in stored.origins)
                piece = items_of(stored, self.sections, low - base, high - base)
                pieces.append(piece if high == end else [rows.copy() for rows in piece])  # another chunk takes the place of this one
        return Preprocessing(
            (np.concatenate(rows, axis=2) if len(rows) > 1 else rows[0] for rows in zip(*pieces, strict=True)), list(origins.values())
        )

    def give_up(self, end: int) -> None:
        """From now on no claimed item below ``end`` is handed out."""
        self.next = max(self.next, min(end, self.claim.end))

    def _chunk(self, chunk: Chunk) -> Preprocessing:
        """Its sections as they are stored; they stay in memory."""
        if self._cached is None or self._cached[0] != chunk.id:
            try:
                data = ShareFile.read(str(self._path(chunk.id)), self._header(chunk))
            except StoreError as error:
                raise PoolLost(f"{error}; keyquorum pool drop at every party, and fill again") from None
            size = packed_bytes(self.sections, self.parts, chunk.count)
            if len(data) < size or not binding_of(self.kind["protocol"]).complete(len(data) - size):
                raise PoolLost(f"{self._path(chunk.id)}: of another size than its items take: keyquorum pool drop, and fill again")
            self._forget()
            origins = [Origin(data[size:])] if len(data) > size else []
            self._cached = chunk.id, Preprocessing(stored_sections(data, self.sections, self.parts, chunk.count), origins)
        return self._cached[1]

    def _forget(self) -> None:
        if self._cached is not None:
            for words in self._cached[1].arrays:
                words.fill(0)
            self._cached = None

    def remove_used(self) -> None:
        """Erases the files of chunks that are used up. The list on the disk leaves them out when it is written next; until then who opens the pool finds them used up."""
        for chunk in self.chunks.forget(self.next):
            self.discard(chunk)


def _erase(paths: Iterable[Path]) -> None:
    """Erases files of items. Where the disk takes no write, as a full one that copies what changes, it removes them: no pool must stay for that."""
    for path in sorted(paths):
        with suppress(OSError):
            erase_files([path])
        path.unlink(missing_ok=True)


def _unwritable(journal: Path, error: BaseException) -> str:
    return f"{journal}: the journal could not be written ({error}): make room on the disk, and start the party again"


def _write(file: int, data: bytes) -> None:
    """All of it: a full disk takes a part, and says so only when asked for the rest."""
    while data:
        data = data[os.write(file, data) :]


def _locked(folder: Path, make: bool = False) -> int:
    """The descriptor of the lock of a pool, held; ``make``: the folder too, if it is not there. PoolError if another process holds it.

    Between our open and our lock another process may have dropped the pool: then we hold a deleted file, which keeps nobody out of the next
    pool of this folder. So the file that we locked must be the one that is there; else it is opened again."""
    path = folder / "pool.lock"
    for _ in range(MOST_DROPS):
        if make:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except FileNotFoundError:  # dropped just now
            if make:
                continue
            raise PoolError(f"{folder}: no pool here") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_file(lock, path):
                return lock
        except BlockingIOError:
            os.close(lock)
            raise PoolError(f"{folder}: another process uses this pool: stop it, or wait until it has ended") from None
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)
    raise PoolError(f"{folder}: the pool is dropped again and again while it is opened: stop whatever drops it")


def _is_file(descriptor: int, path: Path) -> bool:
    """Whether an open file is the one at a path."""
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    held = os.fstat(descriptor)
    return (held.st_dev, held.st_ino) == (there.st_dev, there.st_ino)


def last_claim(path: Path, pool_id: str, items: int = 0) -> Claim | None:
    """The last whole line of the journal of a pool of so many items; None if there is none, or a whole line is damaged. An end without
    a line break is torn. Mostly it was being written when the party died, and nothing depended on it; but a file system may lose the end
    of what was synced, so what it claimed is given up."""
    claim = None
    texts, tail = journal.whole_lines(f"claim {pool_id}", path.read_bytes() if path.exists() else b"")
    for text in texts or []:
        claim = _claim_of(text)
        if claim is None:
            return None
    if claim is None or not tail:
        return claim
    return replace(claim, given_up=max(claim.given_up, _torn_end(tail, claim.end, items)))


def _torn_end(tail: bytes, used: int, items: int) -> int:
    """The end of the items that a torn line may have claimed: all ``items`` that there are if it does not say."""
    found = re.match(rb'[0-9a-f]{32} \{"start":(\d{1,18}),"end":(\d{1,18}),', tail)
    start, end = (int(found[1]), int(found[2])) if found else (0, 0)
    return end if used <= start < end else items


def _claim_of(text: str) -> Claim | None:
    """What a line of a journal says; None if it is no claim, which a right checksum does not exclude."""
    try:
        claim = Claim(**json_loads(text))
        claim = replace(claim, before=[(end, chain) for end, chain in claim.before])
    except (ValueError, TypeError):
        return None
    ends = [claim.start, claim.end, claim.given_up, *(end for end, _ in claim.before)]
    chains = [claim.chain, *(chain for _, chain in claim.before)]
    proper = all(map(is_count, ends)) and all(isinstance(chain, str) for chain in chains) and claim.start <= claim.end
    return claim if proper else None


def pool_status(folder: Path) -> tuple[int, int]:
    """Items made, and items used or given up, of a pool that may be in use."""
    found = read_pool(folder)
    if found is None:
        raise PoolError(f"{folder}: no pool here: make one with keyquorum pool fill")
    claim = last_claim(folder / "cursor.journal", found.id, found.chunks.items)
    if claim is None:
        raise PoolError(f"{folder}: the journal is missing or damaged: keyquorum pool drop, and fill again")
    return found.chunks.items, claim.used


def require_unused(folder: Path) -> None:
    """Raises PoolError if a process uses a pool."""
    if (folder / "pool.lock").exists():
        os.close(_locked(folder))


def drop_pool(folder: Path) -> None:
    """Deletes a pool that no process uses. Its items, which are secret, are overwritten before."""
    if not folder.is_dir():
        raise PoolError(f"{folder}: no pool here")
    lock = _locked(folder)
    try:
        (folder / "pool.json").unlink(missing_ok=True)  # first: without it nothing of the rest counts
        _erase([*folder.glob("chunk-*"), *folder.glob(".tmp*")])
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path.name != "pool.lock":
                path.unlink()
        (folder / "pool.lock").unlink()  # last: from here on another process may make a pool in this folder
        with suppress(OSError):
            folder.rmdir()
    finally:
        os.close(lock)
