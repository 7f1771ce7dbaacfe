"""The durable record of a served party: where its protocols verify products, sessions that broke off, and a check that failed; with MACs, challenges that were cut off.

Where products are verified every session is another try for whoever cheats. So a session is on the disk before the party connects, and is taken off again only when this party itself ends it, with no batch
running. A failed check leaves a mark. With MACs an attempt is a challenge that was cut off, which the engine counts beside the MAC key (``Source/core/src/mac_key.rs``); too many burn the key, and all that was
made under it. Parties connect again by themselves, so whoever cuts a link at the right times would burn it unseen: a party stops long before.

While the mark stands, or the count is at its limit, the party does not serve, however often it is started. The operator removes the file: nothing else does.
Near the end of a MAC key a party does not serve under it, with the file or without.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from keyquorum._engine import CheckError
from keyquorum.model.committee import Committee, write_atomically
from keyquorum.model.errors import CommitteeError, KeyQuorumError
from keyquorum.model.plain import is_count, json_loads
from keyquorum.parties import mac_key

from .answers import Answers

NAME = "sessions.json"
"""The file, in the party's folder: of all keys that the party serves."""
MOST_SESSIONS = 256
"""Sessions that may break off, over all starts of a party whose protocols verify products, until its operator has looked. Wrong values pass with probability 2^-40 a session, and a
party that sees that a check will fail can break off, so that the others connect again: with 2^-32 in all."""
MOST_CUT_OFFS = 256
"""Challenges that may be cut off under the MAC key of a party that serves, until its operator has looked: a sixteenth of those that burn the key."""
LONGEST = 300
"""Characters of the reason in the file."""
CURE = "find out who, and remove the file to serve again"
LEFT = 256
"""Challenges that other jobs may still cut off before the MAC key burns, when a party serves under it no more."""


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

    def ends(self, error: Exception) -> bool:
        """Whether the party stops serving after a session that ended so."""
        return isinstance(error, CheckError) or self.exhausted

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

    def broke_off(self, reason: str) -> None:
        """Keeps the count of the claimed session."""
        self._claimed = False

    def fail(self, reason: str) -> None:
        """Leaves the mark of a failed check, on the disk."""
        self._claimed = False
        self._failed = _one_line(reason)
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


class CutOffs(BrokenSessions):
    """The record at ``path``, of a party with the MAC key at ``key``: challenges that were cut off since the file was made, in whichever session. ``most``: of these, until the operator has looked.
    Raises CommitteeError, with the reason of the last one and the cure, from then on; KeyFileError if the state of the key cannot be told."""

    def __init__(self, path: Path, most: int, key: Path) -> None:
        self._key, self._reason = key, ""
        self._before, self._last = _read_cut_offs(path)
        super().__init__(path, most)

    def ends(self, error: Exception) -> bool:
        """Never: the next session is not begun. A failed check burns the key, which says so itself."""
        return False

    def check(self) -> None:
        """Counts what was cut off since, durably; see the class."""
        now = mac_key.state(self._key).cut_offs
        before = now if self._before is None else self._before
        if now > before:
            self._broken, self._last = self._broken + now - before, _one_line(self._reason or "this party ended in the middle of it")
        if now != self._before:
            self._before = now
            self._write()
        self._reason = ""
        if now >= mac_key.MOST_CUT_OFFS - LEFT:
            raise CommitteeError(
                f"{self.path}: {now:,} challenges of MAC checks were cut off in all, and at {mac_key.MOST_CUT_OFFS:,} the MAC key burns with all that was made under it. The last one: {self._last}: "
                "find out who cheats, or breaks off; this key serves no more, it still decrypts by keyquorum decrypt"
            )
        if self.exhausted:
            raise CommitteeError(
                f"{self.path}: {self._broken} challenges of MAC checks were cut off, the limit is {self._most}, and at {mac_key.MOST_CUT_OFFS:,} in all ({now:,} now) the MAC key burns with all that "
                f"was made under it. The last one: {self._last}: {CURE}"
            )

    def claim(self) -> None:
        """Before a session: :meth:`check`."""
        self.check()

    def broke_off(self, reason: str) -> None:
        """Why a session ended, in which a challenge may have been cut off. The engine counts it when the session is closed."""
        self._reason = reason

    def fail(self, reason: str) -> None:
        """As :meth:`broke_off`: the key is burned."""
        self._reason = reason

    def close(self) -> None:
        """Counts what the last session cut off."""
        with suppress(KeyQuorumError, OSError):  # it is counted by the engine, and here at the next start
            self.check()

    def _write(self) -> None:
        data = {"broken": self._broken, "failed": "", "cut_offs": self._before, "last": self._last}
        write_atomically(self.path, json.dumps(data).encode() + b"\n", 0o600)


def has_cut_offs(path: Path) -> bool:
    """Whether a record that :func:`read_sessions` reads is of a party with a MAC key."""
    return path.exists() and "cut_offs" in json_loads(path.read_bytes())


def _one_line(reason: str) -> str:
    return "".join(c if c.isprintable() else " " for c in reason)[:LONGEST] or "no reason given"


def _read_cut_offs(path: Path) -> tuple[int | None, str]:
    """Challenges that were cut off in all when the record at ``path`` was written, and the reason of the last one; None without the file. Raises CommitteeError if it is damaged."""
    read_sessions(path)
    if not path.exists():
        return None, ""
    said = json_loads(path.read_bytes())
    before, last = said.get("cut_offs"), said.get("last")
    if not (is_count(before) and isinstance(last, str) and len(last) <= LONGEST and last.isprintable()):
        raise CommitteeError(
            f"{path}: damaged, or not of a party with a MAC key: see how many challenges were cut off (keyquorum inspect mac.key), and remove the file to serve again"
        )
    return before, last


def record_of(committee: Committee, party: int) -> BrokenSessions | None:
    """The record of a party that holds its lock on serving; None where nobody deviates, by assumption. Raises CommitteeError."""
    answers, path = Answers.of(committee), committee.party_folder(party) / NAME
    if answers is Answers.PADDED:
        return CutOffs(path, MOST_CUT_OFFS, committee.mac_key_path(party))
    return None if answers is Answers.SUMMANDS else BrokenSessions(path, MOST_SESSIONS)


__all__ = ["NAME", "BrokenSessions", "CutOffs", "has_cut_offs", "read_sessions", "record_of"]
