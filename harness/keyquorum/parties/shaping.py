"""Who simulates the links of a job: the engine's transport, or in containers the kernel, by ``tc netem``.

``keyquorum compose --netem`` gives each container NET_ADMIN and sets KEYQUORUM_NETEM. Then a party whose job names links asks the
kernel to delay everything that leaves its interface by half the round trip, at the bandwidth. A kernel without netem (or without the
right) says no, and the engine does it: nothing is left unshaped, and every output says which it was.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from functools import cache

from keyquorum.model.links import parse

VARIABLE = "KEYQUORUM_NETEM"
"""An interface (eth0): shape it with tc. Not set, or empty: the engine shapes."""
SECONDS = 20.0
QUEUE = 100_000
"""Packets that may be on their way: more than a fast link with a long round trip holds."""


@dataclass(frozen=True)
class Shaping:
    """``engine``: the links that the engine (or the relay of MP-SPDZ) simulates, empty if it does not. ``notice``: for people."""

    engine: str
    notice: str

    @property
    def by_kernel(self) -> bool:
        """Whether netem is in force."""
        return "tc netem" in self.notice and not self.engine


def netem_command(interface: str, spec: str) -> list[str]:
    """What shapes an interface as a profile says: each party delays what it sends, so half the round trip each."""
    link = parse(spec)
    words = ["tc", "qdisc", "replace", "dev", interface, "root", "netem", "limit", str(QUEUE), "delay", f"{link.rtt_ms / 2:g}ms"]
    return words if link.mbit is None else [*words, "rate", f"{link.mbit:g}mbit"]


@cache
def _refused(interface: str, spec: str) -> str:
    """Shapes the interface; why that did not work, empty if it did."""
    try:
        done = subprocess.run(netem_command(interface, spec), capture_output=True, text=True, timeout=SECONDS, check=False)
    except FileNotFoundError:
        return "tc is not installed"
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["tc failed"])[-1]


def shaping(spec: str) -> Shaping:
    """Who shapes links of this ``spec`` (empty: real ones); asks the kernel if KEYQUORUM_NETEM says so."""
    if not spec:
        return Shaping("", "")
    said = f"SIMULATED LINKS: {parse(spec).describe()}"
    interface = os.environ.get(VARIABLE, "")
    if not interface:
        return Shaping(spec, f"{said}, by the engine")
    reason = _refused(interface, spec)
    if reason:
        return Shaping(spec, f"{said}, by the engine: no tc netem here ({reason})")
    return Shaping("", f"{said}, by tc netem on {interface}: the bandwidth is that of all links of a party together")
