"""Signals of a served party. SIGTERM and SIGINT end it, after the batch that runs; SIGHUP reloads what can be reloaded.

A thread acts on the signals. Handlers run in the main thread, in the middle of a batch, perhaps while it holds a lock: they do nothing, and set the
disposition of SIGINT, which background processes of a shell that is not interactive ignore.
"""

from __future__ import annotations

import _thread
import math
import os
import select
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType

STOPS = (signal.SIGTERM, signal.SIGINT)
TAKEN = (*STOPS, signal.SIGHUP)
DRAIN_SECONDS = 20.0
"""Most seconds that a party takes to end, by default: a batch is much shorter, an item with MACs may be made at the time."""
LOOK_SECONDS = 0.2
"""Longest wait of the thread, between two looks whether a stop takes too long."""


class Signals:
    """Takes the signals within a ``with`` block of the main thread. ``drain``: seconds after the first signal to stop, until the main thread gets a
    KeyboardInterrupt; a second signal has the same effect at once, and so has the first one before :meth:`go` is called."""

    def __init__(self, drain: float) -> None:
        self._drain = drain
        self._stop: Callable[[], None] | None = None
        self._reload: Callable[[], None] = lambda: None
        self._over, self._interrupts = False, False
        self._thread = threading.Thread(target=self._act, daemon=True)

    def __enter__(self) -> Signals:
        self._read, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._fd_before = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._before = {number: signal.signal(number, self._handle) for number in TAKEN}
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self._over = True
        self._thread.join()
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._fd_before)
        os.close(self._read)
        os.close(self._write)

    def go(self, stop: Callable[[], None], reload: Callable[[], None]) -> None:
        """From now on signals call these, in the thread of this object."""
        self._stop, self._reload = stop, reload

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._interrupts and number in STOPS:
            raise KeyboardInterrupt

    def _taken(self) -> bytes:
        """Numbers of the signals that have come; waits for the first one, for :data:`LOOK_SECONDS` at most."""
        select.select([self._read], [], [], LOOK_SECONDS)
        with suppress(BlockingIOError):
            return os.read(self._read, 64)
        return b""

    def _act(self) -> None:
        until = math.inf
        while not self._over:
            for number in self._taken():
                if number == signal.SIGHUP:
                    self._reload()
                elif number in STOPS and (self._stop is None or until < math.inf):
                    return self._interrupt()
                elif number in STOPS and self._stop is not None:
                    until = time.monotonic() + self._drain
                    self._stop()
            if time.monotonic() >= until:
                return self._interrupt()

    def _interrupt(self) -> None:
        self._interrupts = True
        _thread.interrupt_main()


__all__ = ["DRAIN_SECONDS", "Signals"]
