"""The choice between the two simulations of links: the engine's transport, or, in containers, the kernel's ``tc netem``.

``keyquorum compose --netem`` gives each container NET_ADMIN and sets KEYQUORUM_NETEM. Then a party whose job names links asks the
kernel to delay every packet that its interface sends by half the round trip, at the bandwidth. If the kernel lacks netem or refuses, the engine
simulates the links instead. Every output says which of the two did.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from functools import cache

from keyquorum.model.links import parse

VARIABLE = "KEYQUORUM_NETEM"
"""Variable with the name of an interface (eth0) that tc shapes. Not set, or empty: the engine simulates."""
SECONDS = 20.0
QUEUE = 100_000
"""Packets that may be in flight: more than the bandwidth-delay product of every profile."""


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
    """The command that shapes an interface. Each party delays what it sends, so the delay is half the round trip."""
    link = parse(spec)
    words = ["tc", "qdisc", "replace", "dev", interface, "root", "netem", "limit", str(QUEUE), "delay", f"{link.rtt_ms / 2:g}ms"]
    return words if link.mbit is None else [*words, "rate", f"{link.mbit:g}mbit"]


@cache
def _refused(interface: str, spec: str) -> str:
    """Shapes the interface. Returns the reason of a failure, empty after success."""
    try:
        done = subprocess.run(netem_command(interface, spec), capture_output=True, text=True, timeout=SECONDS, check=False)
    except FileNotFoundError:
        return "tc is not installed"
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if done.returncode == 0 else (done.stderr.strip().splitlines() or ["tc failed"])[-1]


def shaping(spec: str) -> Shaping:
    """The simulation of links of this ``spec`` (empty: real links). Tries the kernel if KEYQUORUM_NETEM is set."""
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
