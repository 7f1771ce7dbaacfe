"""The durable record of a served party whose protocols verify products: its sessions that broke off, and a check that failed.

Every session is another try for whoever cheats. So a session is on the disk before the party connects, and is taken off again only when this party itself ends it, with no batch
running. A failed check leaves a mark. While the mark stands, or the count is at its limit, the party does not serve, however often it is started. The operator removes the file: nothing else does.
"""

from __future__ import annotations

import json
from pathlib import Path

from keyquorum.model.committee import write_atomically
from keyquorum.model.errors import CommitteeError
from keyquorum.model.plain import is_count, json_loads

NAME = "sessions.json"
"""The file, in the party's folder: of all keys that the party serves."""
LONGEST = 300
"""Characters of the reason in the file."""
CURE = "find out who, and remove the file to serve again"


def read_sessions(path: Path) -> tuple[int, str]:
    """Sessions that broke off, and the reason of a failed check (empty: none failed). A party without the file has neither. Raises CommitteeError if the file is damaged."""
    try:
        said = json_loads(path.read_bytes())
        broken, failed = said["broken"], said["failed"]
        if not (is_count(broken) and isinstance(failed, str) and len(failed) <= LONGEST and failed.isprintable()):
            raise ValueError
    except FileNotFoundError:
        return 0, ""
    except (ValueError, KeyError, TypeError):
        raise CommitteeError(
            f"{path}: damaged, so whether a check failed in a served session is not known: find out who broke off, and remove the file to serve again"
        ) from None
    return broken, failed


class BrokenSessions:
    """The record at ``path``, of a party that holds its lock on serving. ``most``: sessions that may break off until the operator has looked. Raises CommitteeError, with the file and the cure,
    if the file is damaged, if a check failed, or if that many sessions broke off."""

    def __init__(self, path: Path, most: int) -> None:
        self.path, self._most = path, most
        self._broken, self._failed = read_sessions(path)
        self._claimed = False
        self.check()

    @property
    def count(self) -> tuple[int, int]:
        """Sessions that broke off, without the one that runs, and their limit."""
        return self._broken - self._claimed, self._most

    @property
    def exhausted(self) -> bool:
        """Whether no further session may begin."""
        return not self._claimed and self._broken >= self._most

    def check(self) -> None:
        """See the class."""
        if self._failed:
            raise CommitteeError(f"{self.path}: a check failed in a served session, so a party cheats ({self._failed}): {CURE}")
        if self.exhausted:
            raise CommitteeError(f"{self.path}: {self._broken} served sessions broke off, the limit is {self._most}: {CURE}")

    def claim(self) -> None:
        """Counts a session that is about to begin, and returns when that is on the disk. A session that is claimed and did not begin is not counted twice."""
        self.check()
        if not self._claimed:
            self._broken += 1
            self._write()
            self._claimed = True

    def broke_off(self) -> None:
        """Keeps the count of the claimed session."""
        self._claimed = False

    def fail(self, reason: str) -> None:
        """Leaves the mark of a failed check, on the disk."""
        self._claimed = False
        self._failed = "".join(c if c.isprintable() else " " for c in reason)[:LONGEST] or "no reason given"
        self._write()

    def close(self) -> None:
        """Takes a claimed session off the count: it did not begin, or ended well."""
        if self._claimed:
            self._claimed = False
            self._broken -= 1
            self._write()

    def _write(self) -> None:
        data = json.dumps({"broken": self._broken, "failed": self._failed}).encode() + b"\n"
        write_atomically(self.path, data, 0o600)


__all__ = ["NAME", "BrokenSessions", "read_sessions"]
