"""A key on disk: public files, metadata, and one party's shares, of whatever scheme.

In a key folder: ``key.json`` (metadata, :class:`.KeyInfo`), the public files of the scheme, what else it keeps there, and at a party
``share-<j>.kqs``, its shares of secret vector j, with ``mac-<j>.kqs``, what shows the run that made them (:mod:`.origin_file`).
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from keyquorum._engine import ShareFile
from keyquorum.dsl import ShareVector
from keyquorum.model.committee import Committee, sync_folder, write_atomically
from keyquorum.model.domains import Domain
from keyquorum.model.errors import KeyFileError, MovedError, ParameterError, PolicyError
from keyquorum.model.inspected import sha256_of
from keyquorum.model.locks import FileLock
from keyquorum.model.plain import json_loads
from keyquorum.model.protocols import named
from keyquorum.parties import mac_key
from keyquorum.parties.context import PartyContext
from keyquorum.parties.epochs.erasure import MAKING, erase_folder
from keyquorum.parties.epochs.record import Record, read_epoch, require_no_departure
from keyquorum.schemes import scheme_named
from keyquorum.schemes.holding import Holding, held_flags, holding_of
from keyquorum.schemes.keys import K, KeyInfo
from keyquorum.schemes.origin_file import OriginFile

METADATA = "key.json"


def check_made_by(committee: Committee, info: KeyInfo, folder: Path, leaving: bool = False) -> None:
    """Refuses a key that another committee made, or holds now. Raises MovedError where the committee passed the key on, and EpochError while it is passed on, unless it may be ``leaving``: for what uses
    no share, or ends that change first."""
    held = holding_of(folder, info)
    if held.epoch and held.members != committee.digest.hex():
        here = folder.parent.parent
        record = Record.load(here, read_epoch(here).name)
        if record.old["digest"] == committee.digest.hex():
            raise MovedError(f"{folder}: moved: since epoch {held.epoch} the committee {record.new['name']} holds this key: ask that one")
        raise KeyFileError(f"{folder}: in epoch {held.epoch} another committee holds this key: take the committee file of that epoch")
    if held.shape != committee.shape:
        raise KeyFileError(f"{folder}: a committee with another protocol or size holds this key")
    if not leaving:
        require_no_departure(folder.parent.parent)


def element_words(protocol: str, domain: str) -> int:
    """Words of 64 bits of an element of a share: two over long primes, and for MACs over a ring, which need a wider one than the values."""
    found = Domain.parse(domain)
    wide = named(protocol).macs if found.prime is None else found.bits > 64
    return 2 if wide else 1


def write_share(folder: Path, info: KeyInfo, party: int, index: int, share: ShareVector) -> None:
    """Stores this party's share of one secret vector, and what shows the run that made it."""
    header = Holding.as_made(info).share_header(party, index)
    ShareFile.write(str(folder / f"share-{index}.kqs"), header, share.export(0, header["length"]))
    OriginFile(folder, index, header).write(share.export_mac())


def read_share(folder: Path, info: KeyInfo, party: int, index: int, tested: bool = True) -> ShareVector:
    """Reads what :func:`write_share` stored; refuses damaged and foreign files, those under a burned MAC key, and those without a test of
    their MAC key if they must be ``tested``: not on MP-SPDZ."""
    held = holding_of(folder, info)
    mac_key.check_key_folder(folder, held.protocol)
    return read_vector(held, held.folder(folder), party, index, tested)


def read_vector(held: Holding, folder: Path, party: int, index: int, tested: bool = True) -> ShareVector:
    """The same of the folder of the share files, wherever it is."""
    header = held.share_header(party, index)
    data = np.frombuffer(ShareFile.read(str(folder / f"share-{index}.kqs"), header), dtype="<u8")
    words = element_words(held.protocol, header["domain"])
    share = ShareVector.from_words(data.reshape(-1, header["length"] * words).copy(), words)
    OriginFile(folder, index, header).load(share, tested)
    return share


def load_shares(folder: Path, info: KeyInfo, party: int, count: int | None = None, backend: str = "embedded") -> list[ShareVector]:
    """This party's shares of the secret vectors of a key (the first ``count``), for this backend."""
    return [read_share(folder, info, party, index, backend == "embedded") for index in range(len(holding_of(folder, info).vectors[:count]))]


def write_public_files(folder: Path, info: K, public: dict[str, bytes], written: Sequence[str] = ()) -> K:
    """Stores public files; returns the metadata with their digests, and those of files that are ``written`` already."""
    for name, data in public.items():
        write_atomically(folder / name, data)
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in public.items()}
    return replace(info, files={**digests, **{name: sha256_of(folder / name).hex() for name in written}})


@contextmanager
def growing_file(path: Path | None) -> Iterator[BinaryIO]:
    """A new public file of a key that is written in pieces, on the disk when this ends; without a path one in memory."""
    if path is None:
        yield io.BytesIO()
        return
    with path.open("xb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def write_info(folder: Path, info: KeyInfo) -> None:
    """Stores the metadata of a key, the last of its files: a folder without metadata does not hold a key."""
    write_atomically(folder / METADATA, json.dumps(info.to_json(), indent=1).encode() + b"\n")


def load_key(folder: Path) -> KeyInfo:
    """Reads the metadata of a key."""
    if not holds_a_key(folder):
        raise KeyFileError(f"{folder}: no key here (no {METADATA}): make one with keyquorum keygen")
    path = folder / METADATA
    try:
        return parse_key(json_loads(path.read_text()))
    except (ValueError, KeyError, TypeError, AttributeError, ParameterError, PolicyError) as error:
        raise KeyFileError(f"{path}: not the metadata of a key ({error}): restore it from a backup") from None


def load_held_key(folder: Path) -> KeyInfo:
    """The same with the committee that holds the key now in the place of the one that made it: on the parties depends how much error decryptions add. Its digest is not the key's."""
    info = load_key(folder)
    held = holding_of(folder, info)
    return replace(info, protocol=held.protocol, parties=held.parties, threshold=held.threshold, **held_flags(info, held))


def parse_key(data: Any) -> KeyInfo:
    """The metadata of a key from their JSON. Raises ValueError, KeyError, TypeError, AttributeError, ParameterError or PolicyError."""
    return scheme_named(data["parameters"]["scheme"]).key_from_json(data)


def load_public_file(folder: Path, info: KeyInfo, name: str) -> bytes:
    """Reads a public file of a key, and checks it against the metadata. Raises KeyFileError."""
    path = _public_file(folder, info, name)
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != info.files[name]:
        raise KeyFileError(f"{path} is damaged: copy it from another party")
    return data


def check_public_file(folder: Path, info: KeyInfo, name: str) -> Path:
    """Checks a public file of a key against the metadata, a piece at a time; returns its path. Raises KeyFileError."""
    path = _public_file(folder, info, name)
    if sha256_of(path).hex() != info.files[name]:
        raise KeyFileError(f"{path} is damaged: copy it from another party")
    return path


def _public_file(folder: Path, info: KeyInfo, name: str) -> Path:
    if name not in info.files:
        raise KeyFileError(f"{folder}: this key was made without {name}: make a key with it")
    path = folder / name
    if not path.exists():
        raise KeyFileError(f"{path} is missing: copy it from another party")
    return path


def holds_a_key(folder: Path) -> bool:
    """Whether there is a key, of any scheme."""
    return (folder / METADATA).exists()


class NewKey:
    """The name of a key that is being made, claimed at this party before any work: of two runs one gets it. ``folder``: where the key's files
    are written; :meth:`publish` moves it to its place, whole or not at all.

    The claim is a lock that names its holder (:class:`FileLock`): the claim of a dead process is nobody's. What such a process left is erased
    once all parties have claimed the name, so that none of them has the key.
    """

    def __init__(self, context: PartyContext, key: str) -> None:
        committee, self._session, self._key = context.committee, context.session, key
        self._target, self._party_folder = committee.key_folder(context.party, key), committee.party_folder(context.party)
        self._making = committee.party_folder(context.party) / MAKING / key
        self._claim = FileLock(self._making.parent / f".{key}.claim", f"key generation of {key!r}", remove=True)
        self.folder = self._making / secrets.token_hex(8)

    def __enter__(self) -> NewKey:
        self._making.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self._claim.take():
            raise KeyFileError(f"{self._target}: a key of this name is being made, by {self._claim.holder()}: wait for it, or choose another name")
        try:
            self._check_free()
            self._session.compare("name of the new key", hashlib.sha256(self._key.encode()).digest())
            if self._making.exists():
                erase_folder(self._making)
            self.folder.mkdir(parents=True, mode=0o700)
        except BaseException:
            self._end()
            raise
        return self

    def _check_free(self) -> None:
        if holds_a_key(self._target):
            raise KeyFileError(f"{self._target}: there is a key of this name already: choose another name")
        if self._target.exists() and any(self._target.iterdir()):
            raise KeyFileError(f"{self._target}: there are files without a key (no key.json): move them away, or choose another name")
        here = read_epoch(self._party_folder)
        if self._key in here.keys:  # its entry says which shares count, and which may be erased
            raise KeyFileError(
                f"{self._target}: epoch {here.number} of this party has a key of this name: choose another name, or restore the folder of that key from a backup"
            )

    def publish(self) -> None:
        """From now on the key counts."""
        self._target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._check_free()
        os.rename(self.folder, self._target)  # never onto a folder that is not empty
        sync_folder(self._target.parent)

    def __exit__(self, *_: object) -> None:
        # A finished key stays: other parties may have theirs in its place.
        if self.folder.exists() and not holds_a_key(self.folder):
            with suppress(OSError):  # who makes a key of this name erases what is left
                erase_folder(self.folder)
        self._end()

    def _end(self) -> None:
        with suppress(OSError):  # there is something in it, or it was not made
            self._making.rmdir()
        self._claim.release()
