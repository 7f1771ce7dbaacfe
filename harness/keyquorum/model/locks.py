"""Locks between processes: a lock on a file that names its holder. The system gives the lock of a dead process back, whatever the file says."""

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
"""Characters of what a lock file says that are shown."""

Say = Callable[[str], None]


def say_on_stderr(line: str) -> None:
    """One line on standard error."""
    print(line, file=sys.stderr, flush=True)


class FileLock:
    """An exclusive lock on ``path``. ``what``: what the holder does, for those who wait. ``remove``: the file goes when the lock is given back."""

    def __init__(self, path: Path, what: str, remove: bool = False) -> None:
        self.path, self._what, self._remove = path, what, remove
        self.descriptor = -1

    def take(self) -> bool:
        """Takes the lock if nobody holds it, and writes who does now."""
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
        """Who holds the lock, as the file says."""
        try:
            said = json_loads(self.path.read_text())
            text = f"{said['what']} (process {said['pid']} on {said['host']}, since {said['since']})"
        except (OSError, ValueError, KeyError, TypeError):
            return "another process"
        return text[:LONGEST_NAME]

    def wait(self, until: float, busy: str, say: Say = say_on_stderr) -> None:
        """Takes the lock when its holder gives it back; says once that it waits. CommitteeError when the time (monotonic) is over. ``busy``: what
        the lock is of."""
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
        """Gives the lock back. A process that inherited the descriptor goes on holding it."""
        if self.descriptor < 0:
            return
        if self._remove:
            self.path.unlink(missing_ok=True)
        os.close(self.descriptor)
        self.descriptor = -1
