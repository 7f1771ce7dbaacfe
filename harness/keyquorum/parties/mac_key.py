"""The key under which a party's shares are authenticated (spdz2k, mascot): made once, kept as long as the shares are.

Shares of one session can be used in another one only under the same key. After a failed MAC check the others may know
it, as what the check tells is the error times the key: it is burned. The engine marks that on the disk beside the key, where it also
notes whether a check is open (``Source/mpc/src/mac_key.rs``). What was made under a burned key is refused here,
and the cure is a new committee. One session at a time may use a key: a second one is refused.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from keyquorum import _engine
from keyquorum._engine import Session
from keyquorum.model.committee import MAC_KEY, Committee, sync_folder, write_atomically
from keyquorum.model.errors import BurnedKeyError, KeyFileError, KeyInUseError
from keyquorum.model.protocols import named

BYTES = 16


def check(path: Path) -> None:
    """Refuses the key in a file, which need not be there, if it is burned: :class:`BurnedKeyError` with the cause and the cure."""
    try:
        _engine.check_mac_key(str(path))
    except _engine.BurnedError as error:
        raise BurnedKeyError(str(error)) from None
    except _engine.StoreError as error:
        raise KeyFileError(str(error)) from None


def check_party(committee: Committee, party: int) -> None:
    """Refuses a party whose MAC key is burned."""
    if committee.authenticated:
        check(committee.mac_key_path(party))


def check_key_folder(folder: Path, protocol: str) -> None:
    """Refuses the shares in a key folder of a party whose MAC key is burned."""
    if named(protocol).macs:
        check(folder.absolute().parent.parent / MAC_KEY)


def mac_key(path: Path) -> bytes:
    """The key in a file, which is made (0600, durable before it is used) if it is not there. Refuses a burned one."""
    check(path)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        made = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
        try:
            write_atomically(made, secrets.token_bytes(BYTES), 0o600)
            with suppress(FileExistsError):  # another process was faster: its key is the one
                os.link(made, path)
            sync_folder(path.parent)
        finally:
            made.unlink(missing_ok=True)
    return _read(path)


def _read(path: Path) -> bytes:
    """The key in a file that is there."""
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_mode & 0o077:
            raise KeyFileError(f"{path}: readable by others: chmod 600 it, and make a new committee if somebody may have read it")
        key = file.read(BYTES + 1)
    if len(key) != BYTES:
        raise KeyFileError(
            f"{path}: damaged, a MAC key has {BYTES} bytes: make a new committee; restore it from a backup only after all other parties "
            "have said that no check has failed since, as a backup does not know whether the key is burned"
        )
    return key


def use(session: Session, path: Path) -> None:
    """Sets the key of a session, which alone may use it until it ends: :class:`KeyInUseError` while another one does."""
    _set(session, mac_key(path), str(path))


def _set(session: Session, key: bytes, path: str | None = None) -> None:
    try:
        session.set_mac_key(key, path)
    except _engine.BurnedError as error:
        raise BurnedKeyError(str(error)) from None
    except _engine.InUseError as error:
        raise KeyInUseError(str(error)) from None


_IN_PROCESS: dict[tuple[bytes, int], bytes] = {}
"""Keys of committees without a folder, by digest and party, for as long as this process lives. The engine remembers which are burned."""


def use_in_process(session: Session, committee: Committee) -> None:
    """Sets the key of a session of this process: that of the party's folder, or one that this process keeps."""
    if committee.party_folder(session.party).exists():
        use(session, committee.mac_key_path(session.party))
    else:
        _set(session, _IN_PROCESS.setdefault((committee.digest, session.party), secrets.token_bytes(BYTES)))
