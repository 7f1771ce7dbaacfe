"""The audit log of a served party: one line of JSON for every request, on the disk before its answer is sent.

A line has the time, the receiver (SHA-256 of its certificate), the id of the request, the ciphertext (SHA-256 and length of its bytes), and the
result: ``answered``, or ``refused`` with the type of the error. A request that is itself a share has no SHA-256 there. It has no share, no message, and nothing of a request but digest, length and id.

The file is opened for appending, with mode 0600. After the log was moved away (logrotate) a new file is begun. While the log cannot be written,
requests are refused. So a line may say ``answered`` where the disk failed after the line and the answer was withheld. No answer is sent without a
line.
"""

from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from keyquorum.model.errors import AuditError
from keyquorum.model.plain import Json

NAME = "audit.jsonl"
"""Default name of the file, in the party's folder."""
LONGEST = 300
"""Characters of an error in a line."""


def timestamp() -> str:
    """Now, in UTC, to the millisecond (RFC 3339)."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class AuditLog:
    """Appends lines. Thread-safe. ``common``: fields of every line. ``warn``: called once when the log cannot be written, and once when it can again.

    Raises AuditError if the file cannot be opened, is no regular file, or may be read or written by others."""

    def __init__(self, path: Path, common: Json, warn: Callable[[str], None] = lambda line: None) -> None:
        self.path, self._common, self._warn = path, common, warn
        self._lock = threading.Lock()
        self._failed, self._closed = "", False
        self._descriptor = -1
        self._descriptor = self._opened()

    def _opened(self) -> int:
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
        except OSError as error:
            raise AuditError(f"{self.path}: the audit log cannot be opened ({error.strerror}): name another file with --audit-log") from None
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise AuditError(f"{self.path}: the audit log is no regular file: name another with --audit-log")
            if found.st_mode & 0o077:
                raise AuditError(f"{self.path}: the audit log is open to others (mode {found.st_mode & 0o777:o}): chmod 600 it")
            self._sync_folder()
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _sync_folder(self) -> None:
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    @property
    def writable(self) -> bool:
        """Whether the last line was written."""
        return not self._failed

    def require(self) -> None:
        """Raises AuditError while the log cannot be written; called before any work is done for a request."""
        with self._lock:
            if self._failed:
                self._guarded(lambda: self._append(b""))

    def write(self, entry: Json) -> None:
        """Appends a line, and returns when it is on the disk. Raises AuditError; then the caller must not answer."""
        line = json.dumps({"time": timestamp(), **self._common, **entry}).encode() + b"\n"
        with self._lock:
            self._guarded(lambda: self._append(line))

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            self._follow()
            action()
        except (OSError, AuditError) as error:
            reason = str(error.strerror or error) if isinstance(error, OSError) else str(error)
            if not self._failed:
                self._warn(f"the audit log {self.path} cannot be written ({reason}): requests are refused until it can")
            self._failed = reason
            raise AuditError("this party cannot write its audit log, and answers nothing until it can: ask who runs it") from None
        finally:
            if self._closed:
                self._close()
        if self._failed:
            self._failed = ""
            self._warn(f"the audit log {self.path} can be written again")

    def _follow(self) -> None:
        """Begins the file anew if it was moved away or removed."""
        if self._descriptor >= 0:
            ours = os.fstat(self._descriptor)
            try:
                there = os.stat(self.path, follow_symlinks=False)
                if (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino):
                    return
            except FileNotFoundError:
                pass
            self._close()
        self._descriptor = self._opened()

    def _append(self, line: bytes) -> None:
        self._end_line()
        view = memoryview(line)
        while view:
            view = view[os.write(self._descriptor, view) :]
        os.fsync(self._descriptor)

    def _end_line(self) -> None:
        """Ends a line that a full disk or a crash cut off, so that the next one is whole."""
        size = os.fstat(self._descriptor).st_size
        if size and os.pread(self._descriptor, 1, size - 1) != b"\n":
            os.write(self._descriptor, b"\n")

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def close(self) -> None:
        """Closes the file. A later line (of the last refusals) opens it again for the time of the write."""
        with self._lock:
            self._closed = True
            self._close()


__all__ = ["NAME", "AuditLog", "timestamp"]
