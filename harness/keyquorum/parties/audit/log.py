"""The audit log of a party: one line of JSON for every request to a served party, on the disk before its answer is sent, and for every state of a change of its epoch (:mod:`keyquorum.parties.epochs.audited`).

The line of a request has the time, the receiver (SHA-256 of its certificate), the id of the request, the ciphertext (SHA-256 and length of its bytes), and the
result: ``answered``, or ``refused`` with the type of the error. A request that is itself a share has no SHA-256 there. It has no share, no message, and nothing of a request but digest, length and id.

The file is opened for appending, with mode 0600. After the log was moved away (logrotate) a new file is begun. While the log cannot be written,
requests are refused. So a line may say ``answered`` where the disk failed after the line and the answer was withheld. No answer is sent without a
line.

Lines are chained by hashes, and signed (:mod:`.chain`). Those of requests that are answered at the same time are written together, with one sync and one signature. What a full disk or a crash cut
off is no line, and nothing was answered for it: it is taken off again, like lines that somebody appended behind the last one that the party signed. After a time without the log a line says so.

Several processes may write: a daemon, and an order about epochs. Each holds a lock on the file with the head (``LOG.head``) while it writes, and first goes on from what the others wrote, as far as it is chained to what this one
knows and the party signed it.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from keyquorum._engine import EngineError
from keyquorum.model import journal
from keyquorum.model.errors import AuditError
from keyquorum.model.plain import Json

from .chain import HEAD, Head, Line, Signer, chained, hashed, last_line, lines_from, read_head, read_line, signed_by, write_head

NAME = "audit.jsonl"
"""Default name of the file, in the party's folder."""
LONGEST = 300
"""Characters of an error in a line."""


def timestamp() -> str:
    """Now, in UTC, to the millisecond (RFC 3339)."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass
class _Waiting:
    """An entry that waits for its line to be on the disk."""

    entry: Json
    done: bool = False
    error: str = ""


class AuditLog:
    """Appends lines. Thread-safe. ``common``: fields of every line. ``warn``: called once when the log cannot be written, and once when it can again. ``signer``: of the party; without one lines are chained,
    and not signed. ``goes_on``: begins a file, and no more: a short work of a party that has a log.

    Raises AuditError if the file cannot be opened, is no regular file, or may be read or written by others."""

    def __init__(
        self, path: Path, common: Json, warn: Callable[[str], None] = lambda line: None, signer: Signer | None = None, goes_on: bool = False
    ) -> None:
        self.path, self._common, self._warn, self._signer = path, common, warn, signer
        self._lock, self._queue = threading.Lock(), threading.Lock()
        self._waiting: list[_Waiting] = []
        self._failed, self._closed = "", False
        self._head, self._begins, self._goes_on = Head(), True, goes_on
        self._length = 0
        """Bytes of the file up to the end of the last line that is on the disk."""
        self._descriptor = -1
        self._descriptor = self._opened()
        self._resume(self._noted())

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
            if not found.st_size:
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

    def describe(self, common: Json) -> None:
        """Changes the fields of every line from now on."""
        self._common = common

    @property
    def writable(self) -> bool:
        """Whether the last line was written."""
        return not self._failed

    def _resume(self, least: Head) -> None:
        """Finds the end of the chain in the open file: after a start, and after a new file was begun. ``least``: the chain has come so far already; lines before that are
        missing in this file, or are in the one before it."""
        size = os.fstat(self._descriptor).st_size
        self._length, line = last_line(
            lambda at, count: os.pread(self._descriptor, count, at), size, None if self._signer is None else self._is_signed
        )
        self._head = least if line is None or line.number + 1 < least.number else Head(line.number + 1, line.chain)
        self._begins = not self._goes_on or line is None or line.chain != self._head.chain

    @property
    def failure(self) -> str:
        """Why the last line was not written; empty if it was."""
        return self._failed

    @property
    def number(self) -> int:
        """Lines of the chain so far, as far as this object knows."""
        return self._head.number

    def entries_from(self, number: int) -> Iterator[Json]:
        """Entries of the lines of this chain in the open file that have this number or a later one, the last one first. Raises OSError."""
        return (line.entry for line in lines_from(lambda at, count: os.pread(self._descriptor, count, at), self._length, number, self._head.chain))

    def require(self) -> None:
        """Raises AuditError while the log cannot be written; called before any work is done for a request."""
        with self._lock:
            if self._failed:
                entry = {"time": timestamp(), **self._common, "event": f"the log could not be written: {self._failed}"[:LONGEST]}
                self._guarded(lambda: self._append([entry]))

    def write(self, entry: Json) -> None:
        """Appends a line, and returns when it is on the disk. Raises AuditError; then the caller must not answer. The lines of all callers that wait are written together."""
        mine = _Waiting({"time": timestamp(), **self._common, **entry})
        with self._queue:
            self._waiting.append(mine)
        with self._lock:
            if not mine.done:
                self._write_waiting()
        if mine.error:
            raise AuditError(mine.error)

    def _write_waiting(self) -> None:
        with self._queue:
            batch, self._waiting = self._waiting, []
        error = ""
        try:
            self._guarded(lambda: self._append([each.entry for each in batch]))
        except AuditError as failure:
            error = str(failure)
        for each in batch:
            each.done, each.error = True, error

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            with self._alone():
                self._follow()
                action()
        except (OSError, AuditError, EngineError) as error:
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
            self._catch_up()
            ours = os.fstat(self._descriptor)
            try:
                there = os.stat(self.path, follow_symlinks=False)
                if (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino):
                    return
            except FileNotFoundError:
                pass
            self._close()
        self._descriptor = self._opened()
        self._resume(max(self._head, self._noted(), key=lambda head: head.number))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keeps other processes from writing. Raises BlockingIOError where one has the log for too long."""
        file = -1
        try:
            with suppress(OSError):  # as for the head itself
                file = os.open(self.path.with_name(self.path.name + HEAD), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            if file >= 0:
                journal.lock(file)
            yield
        finally:
            if file >= 0:
                os.close(file)

    def _noted(self) -> Head:
        """The head in the file beside the log, if the party signed it."""
        found = read_head(self.path)
        return found[0] if found is not None and self._is_ours(*found) else Head()

    def _is_signed(self, line: Line) -> bool:
        return line.signature != "" and self._is_ours(Head(line.number + 1, line.chain), line.signature)

    def _is_ours(self, head: Head, signature: str) -> bool:
        return self._signer is None or (signature != "" and signed_by(self._signer.certificate, head, signature))

    def _catch_up(self) -> None:
        """Goes on from lines that another process of the party wrote: they follow this chain, and the last one is signed."""
        size = os.fstat(self._descriptor).st_size
        head, length = self._head, self._length
        for data in os.pread(self._descriptor, max(0, size - length), length).splitlines(keepends=True):
            line = read_line(data)
            if line is None or line.number != head.number or line.chain != hashed(head.chain, line.body):
                break
            head, length = Head(line.number + 1, line.chain), length + len(data)
            if self._is_ours(head, line.signature):
                self._head, self._length = head, length

    def _append(self, entries: Sequence[Json]) -> None:
        self._take_off()
        lines, head, signature = chained(entries, self._head, self._signer, self._begins)
        view = memoryview(lines)
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
            os.fsync(self._descriptor)
        except OSError:
            with suppress(OSError):
                self._take_off()
            raise
        self._length += len(lines)
        self._head, self._begins = head, False
        self._note_head(signature)

    def _take_off(self) -> None:
        """Takes off what a full disk or a crash left behind the last line. Where the file cannot be cut, that ends as a line which is no part of the chain."""
        size = os.fstat(self._descriptor).st_size
        if size > self._length:
            try:
                os.ftruncate(self._descriptor, self._length)
            except PermissionError:  # a file that may only grow
                if os.pread(self._descriptor, 1, size - 1) != b"\n":
                    size += os.write(self._descriptor, b"\n")
                self._length, self._begins = size, True
        elif size < self._length:  # copied away, and cut
            self._resume(self._head)

    def _note_head(self, signature: str) -> None:
        """Writes the file with the last signed line: by it a log that was cut off is noticed, and the chain goes on in a new file. Not synced: the log is."""
        data = write_head(self.path, self._head, signature)
        with suppress(OSError):
            file = os.open(self.path.with_name(self.path.name + HEAD), os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                os.pwrite(file, data, 0)
                os.ftruncate(file, len(data))
            finally:
                os.close(file)

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
