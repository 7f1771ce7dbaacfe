"""Traces of secrets on the disk: core dumps, and temporary files of processes that were killed."""

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
"""Seconds after which a temporary file without a lock is taken for one of a dead writer: writers lock their files right after they make them."""
TEMPORARY = re.compile(r"\.(tmp\w{6}|.+\.[0-9a-f]{16}\.tmp|.+\.\d+\.[0-9a-f]{8})")
"""Names of the engine's share files, of :func:`.write_atomically`, and of the copy of a private key for OpenSSL, while they are written."""


def forbid_core_dumps() -> None:
    """Forbids core dumps of this process and of processes that it starts. On Linux other processes of the same user cannot read its memory either."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        # A core pattern that is a pipe ignores the limit.
        if libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
            error = ctypes.get_errno()
            raise OSError(error, f"cannot forbid core dumps of a party's memory: {os.strerror(error)}")


def sweep(folder: Path) -> None:
    """Removes the temporary files of dead writers below a party's folder, which may hold shares and private keys. Running writers lock their files,
    and locked files stay."""
    for where, _, names in os.walk(folder):
        for name in names:
            if TEMPORARY.fullmatch(name):
                _remove_unlocked(Path(where) / name)


def sweep_copies(path: Path) -> None:
    """The same for temporary files of one file, in its folder."""
    for found in path.parent.glob(f".{path.name}.*"):
        if TEMPORARY.fullmatch(found.name):
            _remove_unlocked(found)


def _remove_unlocked(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return  # removed in the meantime, or not one of these files
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
