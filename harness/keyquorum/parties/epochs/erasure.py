"""Erasure of old shares, and of others that nobody needs any more: overwritten, synced, unlinked, the folder synced; then listed again.

On SSDs, file systems that journal or copy, snapshots and backups this promises nothing against somebody who images the device: the bytes may be elsewhere on it.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from keyquorum.model.checkpoints import reached
from keyquorum.model.committee import sync_folder
from keyquorum.model.plain import Json, json_loads

from .record import pools_place, shares_name

IN_PLACE = ("share-*.kqs", "mac-*.kqs", "lisss*")
"""Files with shares in a key's folder, as key generation and ``keyquorum share`` leave them."""
MAKING = "making"
"""Folder of a party in which keys are made, and recovered."""
_PIECE = 1 << 20


@dataclass(frozen=True)
class Unerased:
    """A file with shares of another epoch than the party's. ``age``: seconds since it was written."""

    path: Path
    age: float


def is_another_key(folder: Path, held: Json) -> bool:
    """Whether the folder of a key has another key than this entry of an epoch (``key_id``): one that was made later and has the name. Metadata that is damaged says nothing."""
    try:
        found = json_loads((folder / "key.json").read_text())["key_id"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return "key_id" in held and found != held["key_id"]


def has_shares(folder: Path) -> bool:
    """Whether there are share files in the folder of a key, of any sharing."""
    return any(_share_files(folder, frozenset(), True))


def old_files(party_folder: Path, keys: Mapping[str, Json], keep: frozenset[str]) -> Iterator[Path]:
    """Files with shares of these keys (entries of an epoch) that are not of an epoch (name) in ``keep``; the empty name keeps what lies in the keys' own folders.
    Nothing of a folder that has another key."""
    kept = frozenset(shares_name(name) for name in keep if name)
    for key, held in keys.items():
        folder = party_folder / "keys" / key
        if is_another_key(folder, held):
            continue
        yield from _share_files(folder, kept, "" not in keep)


def cut_off_files(party_folder: Path, keys: Iterable[str]) -> Iterator[Path]:
    """Files with shares that a recovery left which was cut off. The party may have got its keys back in another way."""
    for key in keys:
        yield from sorted(path for path in (party_folder / MAKING / key).rglob("*.kqs") if path.is_file())


def _share_files(folder: Path, kept: frozenset[str], in_place: bool) -> Iterator[Path]:
    for inner in sorted(folder.glob(shares_name("*"))):
        if inner.name not in kept and inner.is_dir():
            yield from sorted(path for path in inner.rglob("*") if path.is_file() or path.is_symlink())
    for pattern in IN_PLACE if in_place else ():
        for found in sorted(folder.glob(pattern)):
            yield from sorted(p for p in found.rglob("*") if p.is_file()) if found.is_dir() else [found]


def unerased(party_folder: Path, keys: Mapping[str, Json], keep: frozenset[str]) -> list[Unerased]:
    """The same with their ages."""
    now = time.time()
    return [Unerased(path, max(0.0, now - path.lstat().st_mtime)) for path in old_files(party_folder, keys, keep)]


def erase_files(paths: Iterable[Path]) -> int:
    """Erases files, returns the number of bytes. One that is gone counts as erased. May be repeated after a crash. Raises an OSError of the first that cannot be erased after all others are."""
    total, errors = 0, list[OSError]()
    for path in paths:
        try:
            total += _erase(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            errors.append(OSError(error.errno, error.strerror, str(path)))
        reached("erase/unlinked")
    if errors:
        raise errors[0]
    return total


def erase_folder(folder: Path) -> None:
    """Erases the share files below a folder, also what a crash left of one, and removes the folder with all else, which is public. May be repeated after a crash."""
    erase_files(_secret_files(folder))
    shutil.rmtree(folder)


def _secret_files(folder: Path) -> Iterator[Path]:
    found = (path for pattern in ("*.kqs", ".tmp*") for path in sorted(folder.rglob(pattern)))
    return (path for path in found if path.is_file() or path.is_symlink())


def erase_pools(party_folder: Path, epoch: str) -> None:
    """Erases all pools of an epoch in which the party never was. Where the disk takes no write they are removed. May be repeated after a crash."""
    place = pools_place(party_folder, epoch)
    if not place.is_dir():
        return
    with suppress(OSError):
        erase_files(_secret_files(place))
    shutil.rmtree(place)
    sync_folder(place.parent)


def remove_empty(party_folder: Path, keys: Iterable[str], keep: str) -> None:
    """Removes folders of shares of other epochs than ``keep`` that are empty."""
    for key in keys:
        for inner in (party_folder / "keys" / key).glob(shares_name("*")):
            if inner.is_dir() and inner.name != shares_name(keep) and not any(inner.iterdir()):
                inner.rmdir()


def _erase(path: Path) -> int:
    size = 0
    if not path.is_symlink():
        size = _overwrite(path)
        reached("erase/overwritten")
    path.unlink()
    sync_folder(path.parent)
    return size


def _overwrite(path: Path) -> int:
    with path.open("r+b") as file:
        size = os.fstat(file.fileno()).st_size
        for at in range(0, size, _PIECE):
            file.write(bytes(min(_PIECE, size - at)))
        file.flush()
        os.fsync(file.fileno())
    return size
