"""What a plan will need, stated before it starts: memory of a party at its peak, and disk.

Upper bounds, from the sizes of what is alive at once and of the copies that engine and network make of it; tests measure that they
bound a party's peak resident memory and are not far above it. What a key needs is its scheme's to say (:meth:`.KeyRequest.needs`).
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
"""Headers, metadata, counts and journals."""
PROCESS = 85 * MB
"""Interpreter, libraries, engine."""
LINK = 20 * MB
"""Threads, buffers and oblivious transfer of the link to a peer."""


@dataclass(frozen=True)
class Needs:
    """``memory``: bytes of one party at its peak, at most; ``disk``: bytes of its key folder."""

    memory: int
    disk: int

    def text(self) -> str:
        """For people."""
        return f"at most {self.memory / 1e9:.2f} GB of memory and {self.disk / 1e6:.1f} MB of disk at each party"


def available_memory(meminfo: Path = Path("/proc/meminfo"), group: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Bytes that new processes of this host may take, or None where the system does not tell: what the kernel says is
    available, and what a container may still take."""
    found = []
    with suppress(OSError):
        match = re.search(r"^MemAvailable:\s+(\d+) kB$", meminfo.read_text(), re.M)
        found += [1024 * int(match[1])] if match else []
    with suppress(OSError, ValueError):  # no control group, or "max": no limit
        found.append(int((group / "memory.max").read_text()) - int((group / "memory.current").read_text()))
    return min(found, default=None)


def available_disk(folder: Path) -> int:
    """Bytes that are free on the disk of a folder, which need not be there yet."""
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    return shutil.disk_usage(there).free


def require_disk(what: str, size: int, folder: Path, available: int | None = None) -> None:
    """Refuses to write ``size`` bytes, and what belongs to them (DISK_SLACK), below a folder whose disk has fewer. ``what``: what needs them. Raises ResourceError."""
    available = available_disk(folder) if available is None else available
    if size + DISK_SLACK > available:
        raise ResourceError(
            f"{folder}: {what} needs {(size + DISK_SLACK) / 1e6:.2f} MB of disk, {available / 1e6:.2f} MB are free there: make room, or ask for less"
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
