"""Locks between processes, on a file that names the holder. The system releases the lock of a dead process, whatever the file says."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from .errors import CommitteeError
from .plain import json_loads

PAUSE = 0.1
"""Seconds between two tries."""
LONGEST_NAME = 200
"""Characters of a lock file that are shown."""

Say = Callable[[str], None]


def held(path: Path) -> bool:
    """Whether a process holds the lock of this file. Looking at it may make another process's try fail, which it repeats."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def say_on_stderr(line: str) -> None:
    """One line on standard error."""
    print(line, file=sys.stderr, flush=True)


class FileLock:
    """An exclusive lock on ``path``. ``what``: the work of the holder, for processes that wait. ``remove``: remove the file on release."""

    def __init__(self, path: Path, what: str, remove: bool = False) -> None:
        self.path, self._what, self._remove = path, what, remove
        self.descriptor = -1

    def take(self) -> bool:
        """Takes the lock and writes this process as its holder. False if another process has the lock."""
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not self._is_the_file(descriptor):  # the holder removed it after we had opened it
                os.close(descriptor)
                return False
            holder = {
                "what": self._what,
                "pid": os.getpid(),
                "host": socket.gethostname(),
                "since": datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
            }
            data = json.dumps(holder).encode() + b"\n"
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, data, 0)
        except BlockingIOError:
            os.close(descriptor)
            return False
        except OSError as error:
            os.close(descriptor)
            raise OSError(error.errno, error.strerror, str(self.path)) from None
        self.descriptor = descriptor
        return True

    def _is_the_file(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), self.path.stat())
        except FileNotFoundError:
            return False

    def holder(self) -> str:
        """The holder of the lock, as the file names it."""
        try:
            said = json_loads(self.path.read_text())
            text = f"{said['what']} (process {said['pid']} on {said['host']}, since {said['since']})"
        except (OSError, ValueError, KeyError, TypeError):
            return "another process"
        return text[:LONGEST_NAME]

    def wait(self, until: float, busy: str, say: Say = say_on_stderr) -> None:
        """Waits for the lock, with one message, and takes it. ``until``: time of the monotonic clock after which CommitteeError is raised. ``busy``:
        what the lock protects, for the message."""
        said = ""
        while not self.take():
            holder = self.holder()
            if time.monotonic() >= until:
                raise CommitteeError(f"{busy} is busy with {holder}: try again when that has ended, or end that process")
            if not said:
                said = f"{busy} is busy with {holder}: waiting until that has ended"
                say(said)
            time.sleep(PAUSE)

    def release(self) -> None:
        """Releases the lock. A process that inherited the descriptor keeps it."""
        if self.descriptor < 0:
            return
        if self._remove:
            self.path.unlink(missing_ok=True)
        os.close(self.descriptor)
        self.descriptor = -1
