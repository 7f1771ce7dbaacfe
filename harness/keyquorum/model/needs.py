"""Memory and disk that a plan needs at a party, known before it starts.

The values are upper bounds, from the sizes of objects that are alive at the same time and of their copies in engine and network. Tests measure that
they bound a party's peak resident memory and are not far above it. The scheme of a key computes its needs (:meth:`.KeyRequest.needs`).
"""

from __future__ import annotations

import re
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from keyquorum.model.errors import ResourceError

MB = 1_000_000
DISK_SLACK = MB
"""Bytes on the disk for headers, metadata, counts and journals."""
PROCESS = 90 * MB
"""Bytes of memory for interpreter, libraries and engine."""
LINK = 20 * MB
"""Bytes of memory for threads, buffers and oblivious transfer with one peer."""


@dataclass(frozen=True)
class Needs:
    """``memory``: bytes of one party at its peak, at most; ``disk``: bytes of its key folder."""

    memory: int
    disk: int

    def text(self) -> str:
        """For people."""
        return f"at most {self.memory / 1e9:.2f} GB of memory and {self.disk / 1e6:.1f} MB of disk at each party"


def available_memory(meminfo: Path = Path("/proc/meminfo"), group: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Bytes of memory that new processes of this host may take: the least of the kernel's available memory and of what the limit of a container
    leaves. None where the system does not publish it."""
    found = []
    with suppress(OSError):
        match = re.search(r"^MemAvailable:\s+(\d+) kB$", meminfo.read_text(), re.M)
        found += [1024 * int(match[1])] if match else []
    with suppress(OSError, ValueError):  # no control group, or "max": no limit
        found.append(int((group / "memory.max").read_text()) - int((group / "memory.current").read_text()))
    return min(found, default=None)


def available_disk(folder: Path) -> int:
    """Free bytes on the disk of a folder, which need not exist yet."""
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    return shutil.disk_usage(there).free


def require_disk(what: str, size: int, folder: Path, available: int | None = None) -> None:
    """Raises ResourceError if the disk of a folder has fewer free bytes than ``size`` plus DISK_SLACK. ``what``: the purpose, for the error."""
    available = available_disk(folder) if available is None else available
    if size + DISK_SLACK > available:
        raise ResourceError(
            f"{folder}: {what} needs {(size + DISK_SLACK) / 1e6:.2f} MB of disk, {available / 1e6:.2f} MB are free there: free more, or ask for less"
        )


def require_memory(needs: Needs, parties: int, available: int | None = None) -> None:
    """Refuses to start ``parties`` parties on a host that has less memory than they need. Raises ResourceError."""
    available = available_memory() if available is None else available
    wanted = needs.memory * parties
    if available is not None and wanted > available:
        raise ResourceError(
            f"key generation needs {wanted / 1e9:.2f} GB of memory for {parties} {'party' if parties == 1 else 'parties'} on this "
            f"host, {available / 1e9:.2f} GB are available: ask for fewer Galois keys, free memory, or spread the parties over hosts"
        )
