"""The lines of a served party for whoever runs it, on standard output. They never hold the party up, and never end it.

A thread writes them. Lines wait in a queue of bounded length while the reader of a pipe stalls. They are left out when the queue is full, when the reader is gone, or when the file system of the log
is full; before the next line that can be written one says how many.
"""

from __future__ import annotations

import io
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TextIO

MOST_LINES = 1000
"""Lines that wait at most."""
PIECE = 4096
"""Bytes that a pipe takes without blocking when it takes any (PIPE_BUF of Linux)."""
LAST_SECONDS = 1.0
"""Longest time for the last lines, when the party ends."""


class EventLog:
    """Writes lines to a stream. ``render``: the line of an event, without its end. Thread-safe."""

    def __init__(self, stream: TextIO, render: Callable[[str], str], most: int = MOST_LINES) -> None:
        self._render, self._most = render, most
        try:
            self._file = stream.fileno()
        except (OSError, ValueError):  # not a file of the system, as in a test
            self._file = -1
        self._stream = stream
        self._waiting: deque[tuple[str, int]] = deque()
        """Lines, each with the number of events that are lost with it."""
        self._changed = threading.Condition()
        self._left_out, self._cut, self._busy, self._until = 0, False, False, float("inf")
        threading.Thread(target=self._run, daemon=True).start()

    def write(self, event: str) -> None:
        """Hands a line over, and returns at once."""
        line = self._render(event)
        with self._changed:
            if len(self._waiting) >= self._most:
                self._left_out += 1
                return
            if self._left_out:
                self._waiting.append(
                    (self._render(f"{self._left_out:,} lines were left out here: nothing took the lines of this log"), self._left_out)
                )
                self._left_out = 0
            self._waiting.append((line, 1))
            self._changed.notify_all()

    def close(self) -> None:
        """Waits for the lines that were handed over, not for long."""
        with self._changed:
            self._until = time.monotonic() + LAST_SECONDS
            self._changed.notify_all()
            while (self._waiting or self._busy) and (left := self._until - time.monotonic()) > 0:
                self._changed.wait(left)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                while not self._waiting:
                    self._changed.wait()
                self._busy = True
                line, events = self._waiting.popleft()
            if not self._written((line + "\n").encode(errors="replace")):
                with self._changed:
                    self._left_out += events

    def _written(self, data: bytes) -> bool:
        """Whether all of it was written."""
        view = memoryview(b"\n" + data if self._cut else data)
        try:
            if self._file < 0:
                self._stream.write(data.decode())
                self._stream.flush()
                return True
            ready = select.poll()
            ready.register(self._file, select.POLLOUT)
            while view:
                if not ready.poll(100):
                    if time.monotonic() > self._until:
                        return False
                    continue
                written = os.write(self._file, view[:PIECE])
                self._cut, view = view[written - 1] != ord("\n"), view[written:]
        except (OSError, ValueError, io.UnsupportedOperation):
            return False
        return True


__all__ = ["EventLog"]
