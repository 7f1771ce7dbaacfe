"""Simulated links between parties: profiles by name, or a round trip and a bandwidth.

The transport of the embedded engine simulates a link at the receiving end: a delay, and a token bucket for each direction between
two parties (``Source/net/src/shape.rs``). A relay does the same for MP-SPDZ's connections. Every figure of a simulation is marked as simulated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from .errors import ParameterError

LONGEST_RTT_MS = 10_000.0
SLOWEST_MBIT = 0.1


@dataclass(frozen=True)
class Link:
    """A link: round trip in ms; Mbit/s (10^6 bits) in each direction between two parties, None: no limit."""

    rtt_ms: float
    mbit: float | None = None
    profile: str = ""

    @property
    def spec(self) -> str:
        """The text that :func:`parse` reads back."""
        if self.profile:
            return self.profile
        return f"rtt={self.rtt_ms:g}" + ("" if self.mbit is None else f",mbit={self.mbit:g}")

    @property
    def shape(self) -> tuple[float, int | None]:
        """As the engine takes it: round trip in seconds, bits a second."""
        return self.rtt_ms / 1e3, None if self.mbit is None else round(self.mbit * 1e6)

    def describe(self) -> str:
        """For people."""
        name = f"{self.profile}, " if self.profile else ""
        rate = "any bandwidth" if self.mbit is None else f"{self.mbit:g} Mbit/s each way"
        return f"{name}round trip {self.rtt_ms:g} ms, {rate}"


def _profile(name: str, rtt_ms: float, mbit: float) -> tuple[str, Link]:
    return name, Link(rtt_ms, mbit, name)


PROFILES: dict[str, Link] = dict(
    [
        _profile("lan", 1, 1000),
        _profile("wan", 100, 100),
        _profile("paper004-lan", 0.5, 2000),
        _profile("paper004-wan", 20, 500),
        _profile("paper000-1ms", 1, 1000),
        _profile("paper000-10ms", 10, 1000),
    ]
)
"""``lan`` and ``wan`` are also the settings of Ajax (paper 002). Paper 000 has 1 Gbit/s in its comparison only, at 1 ms."""

FORMS = f"{', '.join(PROFILES)}, or rtt=MS[,mbit=RATE]"


def parse(text: str) -> Link:
    """A link from the name of a profile, or from ``rtt=1,mbit=1000`` (``mbit`` may be left out)."""
    if text in PROFILES:
        return PROFILES[text]
    values: dict[str, float] = {}
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals or name not in ("rtt", "mbit") or name in values:
            raise ParameterError(f"unknown link {text!r}: write {FORMS}")
        try:
            values[name] = float(value)
        except ValueError:
            raise ParameterError(f"link {text!r}: {value!r} is no number") from None
    rtt, mbit = values.get("rtt", 0.0), values.get("mbit")
    if not (math.isfinite(rtt) and 0 <= rtt <= LONGEST_RTT_MS):
        raise ParameterError(f"link {text!r}: the round trip is 0 to {LONGEST_RTT_MS:g} ms")
    if mbit is not None and not (math.isfinite(mbit) and SLOWEST_MBIT <= mbit <= 1e6):
        raise ParameterError(f"link {text!r}: the bandwidth is {SLOWEST_MBIT:g} to 1000000 Mbit/s")
    return Link(rtt, mbit)


def notice(spec: str) -> str:
    """The line that every output of simulated links has."""
    return f"SIMULATED LINKS: {parse(spec).describe()} between each two parties; all of them on the paths that are really there"


def check_link(spec: str | None) -> None:
    """Raises ParameterError for an unknown link; None stands for real links."""
    if spec is not None:
        parse(spec)
