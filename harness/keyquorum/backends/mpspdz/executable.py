"""A party's MP-SPDZ executable: its state, and conclusions from its output about a failed run."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

from . import commands
from .report import failure_line

HEARTBEAT = 2.0
"""Seconds between the messages in which parties report the state of their executables. Longer than MP-SPDZ waits before it tries its port again."""
RUN_SECONDS = 4 * 3600.0
"""Most seconds that one program may take."""
PEER_SECONDS = 90.0
"""Seconds after which an executable has given up waiting for the others: MP-SPDZ's own limit is 60."""


class Executable:
    """A party's executable and the file with its output."""

    def __init__(self, process: subprocess.Popen[str], log: Path, party: int) -> None:
        self._process, self._log, self._party = process, log, party
        self._deadline = time.monotonic() + RUN_SECONDS
        self._refusals = 0

    def state(self) -> str:
        """``d``: ended well; ``r``: runs; ``f`` and a text: failed. Waits one heartbeat while the executable runs."""
        try:
            code = self._process.wait(HEARTBEAT)
        except subprocess.TimeoutExpired:
            if self._port_taken():
                return f"f{_PORT_TAKEN}: another process has taken the port"
            return f"ftook longer than {RUN_SECONDS:.0f} s" if time.monotonic() > self._deadline else "r"
        if code == 0:
            return "d"
        how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        return f"f{failure_line(self._log.read_text(errors='replace'))} ({how})"

    def _port_taken(self) -> bool:
        """Whether the executable still cannot bind its port, as one heartbeat ago. Between two lines of output it may have bound the port, and
        once the run has begun it binds no port any more."""
        text = self._log.read_text(errors="replace")
        before, self._refusals = self._refusals, text.count(_PORT_TAKEN)
        return 0 < before < self._refusals and not may_have_begun(text, self._party)


_PORT_TAKEN = "Binding to socket"
"""MP-SPDZ prints this every second while it cannot bind its port."""
_CONNECTED = re.compile("^Connection took ", re.M)
"""MP-SPDZ prints this for every connection that it makes, with the option ``time_connect``."""


def may_have_begun(output: str, party: int) -> bool:
    """Whether a party of MP-SPDZ may have been connected to all others. A party first connects to parties of lower index and to itself, and makes its
    next connections after the parties of higher index have connected to it. Before that, no message of the program is sent."""
    return len(_CONNECTED.findall(output)) > party + 1


def _no_peer(text: str) -> bool:
    """Whether a party failed because another one never connected: then no message of the program was sent."""
    return "Timed out waiting for peer" in text


def failed_to_start(text: str) -> bool:
    """Whether a party failed before the program began: its port was taken, or another party never connected."""
    return _PORT_TAKEN in text or _no_peer(text)


def was_never_connected(process: subprocess.Popen[str], log: Path) -> bool:
    """Whether our executable was never connected to those of the others, from its own output: a corrupted party may report anything. If it still
    waits for the others, this waits until it gives up."""
    if _waits_for_port(log):
        commands.stop(process)
        return _waits_for_port(log)
    try:
        process.wait(PEER_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return _no_peer(log.read_text(errors="replace"))


def _waits_for_port(log: Path) -> bool:
    """Whether the last line of the output is :data:`_PORT_TAKEN`."""
    lines = log.read_text(errors="replace").split("\n")
    return _PORT_TAKEN in next((line for line in reversed(lines) if line.strip()), "")


_CONSEQUENCE = ("connection", "broken pipe", "reset by peer", "end of file", "stream truncated", "eof", "closed")


def first_cause(failures: dict[int, str]) -> tuple[int, str]:
    """The first failed party whose reason is not the loss of another one, with the reason."""
    own = {i: t for i, t in failures.items() if not any(word in t.lower() for word in _CONSEQUENCE)}
    return min((own or failures).items())
