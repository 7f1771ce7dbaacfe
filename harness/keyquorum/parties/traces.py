"""Traces of secrets that a party's process would leave: core dumps, and temporary files of processes that were killed."""

from __future__ import annotations

import ctypes
import fcntl
import os
import re
import resource
import stat
import sys
import time
from pathlib import Path

_PR_SET_DUMPABLE = 4
OLDEST = 60.0
"""Seconds after which a temporary file that nobody has locked is taken for one of a dead writer: writers lock theirs right after they make it."""
TEMPORARY = re.compile(r"\.(tmp\w{6}|.+\.[0-9a-f]{16}\.tmp|.+\.\d+\.[0-9a-f]{8})")
"""Names of the engine's share files, of :func:`.write_atomically`, and of the copy of a private key for OpenSSL, while they are written."""


def forbid_core_dumps() -> None:
    """This process and what it starts leave no core dump; on Linux other processes of the same user cannot read this one's memory either."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        # A core pattern that is a pipe ignores the limit.
        if libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
            error = ctypes.get_errno()
            raise OSError(error, f"cannot forbid core dumps of a party's memory: {os.strerror(error)}")


def sweep(folder: Path) -> None:
    """Removes the temporary files below a party's folder whose writers are dead: they may hold shares and private keys. Their writers lock
    them, so that those of a process that runs stay."""
    for where, _, names in os.walk(folder):
        for name in names:
            if TEMPORARY.fullmatch(name):
                _remove_unlocked(Path(where) / name)


def sweep_copies(path: Path) -> None:
    """The same for temporary files of this file alone, beside it."""
    for found in path.parent.glob(f".{path.name}.*"):
        if TEMPORARY.fullmatch(found.name):
            _remove_unlocked(found)


def _remove_unlocked(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return  # gone meanwhile, or none of ours
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or time.time() - found.st_mtime < OLDEST:
            return
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)
    except OSError:
        pass  # it is being written, or cannot be removed
    finally:
        os.close(descriptor)
