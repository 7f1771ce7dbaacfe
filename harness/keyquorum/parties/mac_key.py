"""The key under which a party's shares are authenticated (spdz2k, mascot). It is made once, and kept as long as the shares.

Shares of one session can be used in another one only under the same key. A failed MAC check reveals the error times the key, so afterwards the
other parties may know the key: it is *burned*. The engine marks a burned key in a file beside it, and notes there which checks are open
(``Source/core/src/mac_key.rs``). A check that was cut off is finished by the next session of all parties. Shares under a burned key are refused here; the
remedy is a new committee, with new keys or those that keyquorum reshare passes on without MACs. One session at a time may use a key: a second one is refused.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from keyquorum import _engine
from keyquorum._engine import Session
from keyquorum.model.committee import MAC_KEY, Committee, sync_folder, write_atomically
from keyquorum.model.errors import BurnedKeyError, KeyFileError, KeyInUseError
from keyquorum.model.protocols import named

BYTES = 16

MOST_CUT_OFFS: int = _engine.MOST_CUT_OFFS
"""Challenges that may be cut off under a key before it burns."""

WARNING = (
    "MACs: a check that fails burns a party's MAC key (mac.key), and with it every key, pool and ciphertext under it. keyquorum reshare passes keys on to a new committee, then without a proof that they are the same. "
    "A party that is killed or cut off burns it while it makes keys of SEAL or decrypts CKKS, and on MP-SPDZ; otherwise the next session finishes what was cut off, "
    "with the folders of all parties"
)
"""What whoever chooses a protocol with MACs must know before."""


@dataclass(frozen=True)
class State:
    """What became of a key. ``burned``: cause and remedy, or empty. ``cut_offs``: challenges that were cut off, of :data:`MOST_CUT_OFFS`; ``unfinished``: checks that the
    next session finishes."""

    burned: str
    cut_offs: int
    unfinished: int

    def __str__(self) -> str:
        if self.burned:
            return self.burned
        said = "its MAC key is not burned"
        if self.cut_offs:
            said += f"; {self.cut_offs:,} of at most {MOST_CUT_OFFS:,} challenges were cut off"
        if self.unfinished:
            said += "; a MAC check was cut off, which the next session of all parties finishes"
        return said


def state(path: Path) -> State:
    """The state of the key in a file, which need not exist. Raises KeyFileError if it cannot be told."""
    try:
        check(path)
        return State("", *_engine.mac_key_wear(str(path)))
    except BurnedKeyError as error:
        return State(str(error), 0, 0)
    except _engine.StoreError as error:
        raise KeyFileError(str(error)) from None


def check(path: Path) -> None:
    """Raises :class:`BurnedKeyError`, with cause and remedy, if the key in a file is burned. The file need not exist."""
    try:
        _engine.check_mac_key(str(path))
    except _engine.BurnedError as error:
        raise BurnedKeyError(str(error)) from None
    except _engine.StoreError as error:
        raise KeyFileError(str(error)) from None


def kept(committee: Committee, party: int) -> Path | None:
    """The file of a party's MAC key; None where parties keep no MAC key."""
    return committee.mac_key_path(party) if committee.authenticated else None


def check_party(committee: Committee, party: int) -> None:
    """Refuses a party whose MAC key is burned."""
    path = kept(committee, party)
    if path is not None:
        check(path)


def check_key_folder(folder: Path, protocol: str) -> None:
    """Refuses the shares in a key folder of a party whose MAC key is burned."""
    if named(protocol).macs:
        check(folder.absolute().parent.parent / MAC_KEY)


def mac_key(path: Path) -> bytes:
    """The key in a file. A missing file is made (mode 0600, durable before the key is used). Raises BurnedKeyError."""
    check(path)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        made = path.with_name(f".{path.name}.{secrets.token_hex(8)}.new")
        try:
            write_atomically(made, secrets.token_bytes(BYTES), 0o600)
            with suppress(FileExistsError):  # another process was faster: its key is used
                os.link(made, path)
            sync_folder(path.parent)
        finally:
            made.unlink(missing_ok=True)
    return _read(path)


def _read(path: Path) -> bytes:
    """The key in a file that exists. Raises KeyFileError."""
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
    """Sets the key of a session. Raises :class:`KeyInUseError` while another session uses the key."""
    _set(session, mac_key(path), str(path))


def use_kept(session: Session, committee: Committee, party: int) -> None:
    """Sets the key of a party's session, where parties keep a MAC key. Raises :class:`KeyInUseError` while another session uses the key."""
    path = kept(committee, party)
    if path is not None:
        use(session, path)


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
    """Sets the key of a session of this process, where parties keep a MAC key: the key of the party's folder, or one in the memory of this process."""
    path = kept(committee, session.party)
    if path is None:
        return
    if path.parent.exists():
        use(session, path)
    else:
        _set(session, _IN_PROCESS.setdefault((committee.digest, session.party), secrets.token_bytes(BYTES)))
