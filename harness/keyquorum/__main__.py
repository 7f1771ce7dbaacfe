"""``python -m keyquorum``, and the command ``keyquorum``."""

from __future__ import annotations

import os
import signal
from types import FrameType

INTERRUPTED = 130
"""As of :mod:`keyquorum.parties.worker`, which is not imported yet."""


def _leave(number: int, frame: FrameType | None) -> None:
    """Ends the process while it loads its modules, when nothing was begun: an exception could come out of any of them."""
    os.write(2, b"error: keyquorum was interrupted; keys made before are untouched\n")
    os._exit(INTERRUPTED)


def main() -> None:
    """The command line. Loading takes most of a second, in which Ctrl-C gives a line too. A process that ignores SIGINT goes on ignoring it."""
    waits = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if waits:
        signal.signal(signal.SIGINT, _leave)
    from keyquorum.cli import main as run

    if waits:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


if __name__ == "__main__":
    main()
