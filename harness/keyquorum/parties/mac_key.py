"""The key under which a party's shares are authenticated (spdz2k, mascot): made once, kept as long as the shares are.

Shares of one session can be used in another one only under the same key. After a failed MAC check the others may know
it, as what the check tells is the error times the key: make a new committee.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any

from keyquorum.model.committee import Committee
from keyquorum.model.errors import KeyFileError

BYTES = 16


def mac_key(path: Path) -> bytes:
    """The key in a file, which is made (0600, durable before it is used) if it is not there."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        key = path.read_bytes()
        if len(key) != BYTES:
            raise KeyFileError(f"{path}: a MAC key has {BYTES} bytes, not {len(key)}: restore it from a backup") from None
        return key
    with os.fdopen(handle, "wb") as file:
        key = secrets.token_bytes(BYTES)
        file.write(key)
        file.flush()
        os.fsync(file.fileno())
    return key


def use(session: Any, path: Path) -> None:
    """Sets the key of a session."""
    session.set_mac_key(mac_key(path))


_IN_PROCESS: dict[tuple[bytes, int], bytes] = {}
"""Keys of committees without a folder, by digest and party, for as long as this process lives."""


def use_in_process(session: Any, committee: Committee) -> None:
    """Sets the key of a session of this process: that of the party's folder, or one that this process keeps."""
    if committee.party_folder(session.party).exists():
        use(session, committee.mac_key_path(session.party))
    else:
        session.set_mac_key(_IN_PROCESS.setdefault((committee.digest, session.party), secrets.token_bytes(BYTES)))
