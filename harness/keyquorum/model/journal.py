"""Journals: files of lines with checksums, of which each is on the disk before anything that depends on it leaves the party."""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from pathlib import Path

from .checkpoints import reached

CHECKSUM_DIGITS = 32
PATIENCE, PAUSE = 10.0, 0.02
"""Seconds that a writer waits for another one, which has a line to write, and seconds between two tries."""


def checksum(label: str, text: str) -> str:
    """The 32 hexadecimal digits before a line. ``label``: what the journal is, and whose."""
    return hashlib.sha256(f"keyquorum {label} {text}".encode()).hexdigest()[:CHECKSUM_DIGITS]


def to_line(label: str, text: str) -> bytes:
    """A line: the checksum, a space, and the text, which has no line break."""
    return f"{checksum(label, text)} {text}\n".encode()


def whole_lines(label: str, data: bytes) -> tuple[list[str] | None, bytes]:
    """The texts of all whole lines (None if one of them is damaged), and what follows the last line break: a line that was being written when the party died."""
    whole, _, torn = data.rpartition(b"\n")
    texts = []
    for line in whole.split(b"\n") if whole else []:
        said, _, text = line.decode(errors="replace").partition(" ")
        if said != checksum(label, text) or not text:
            return None, torn
        texts.append(text)
    return texts, torn


def append(path: Path, label: str, text: str, checkpoint: str) -> None:
    """Appends a line and syncs it; the file is made if it is missing (mode 0600). What a crash left of a line is cut off before. Writers wait
    for one another; raises BlockingIOError after :data:`PATIENCE` seconds. ``checkpoint``: begins the names of points at which tests stop."""
    line = to_line(label, text)
    made = not path.exists()
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        lock(file)
        size = os.fstat(file).st_size
        kept = os.pread(file, size, 0).rpartition(b"\n")[:2]
        end = len(b"".join(kept))
        os.ftruncate(file, end)
        half = len(line) // 2
        try:
            _write_at(file, line[:half], end)
            reached(f"{checkpoint}/half")
            _write_at(file, line[half:], end + half)
            os.fsync(file)
        except OSError:
            os.ftruncate(file, end)
            raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        os.close(file)
    if made:
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    reached(f"{checkpoint}/durable")


def lock(file: int) -> None:
    """Locks an open file, until it is closed: the end that one writer measures must not move, and is not torn. Raises BlockingIOError after :data:`PATIENCE` seconds."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() >= until:
                raise BlockingIOError(error.errno, "in use by another process: wait until it ends, or end it") from None
            time.sleep(PAUSE)


def _write_at(file: int, data: bytes, place: int) -> None:
    """All of it: a full disk takes a part, and says so only when asked for the rest."""
    while data:
        written = os.pwrite(file, data, place)
        data, place = data[written:], place + written
