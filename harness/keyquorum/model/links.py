"""Simulated links between parties: profiles by name, or a round trip and a bandwidth.

The transport of the embedded engine simulates a link at the receiving end: a delay, and a token bucket for each direction between
two parties (``Source/net/src/shape.rs``), or, with ``shared``, for each direction of a party. A relay does the former for MP-SPDZ's connections. Every figure
of a simulation is marked as simulated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from .errors import ParameterError

LONGEST_RTT_MS = 10_000.0
SLOWEST_MBIT = 0.1
SHARED = "shared"


@dataclass(frozen=True)
class Link:
    """A link: round trip in ms; Mbit/s (10^6 bits) in each direction between two parties, None: no limit. ``shared``: the bandwidth is that of all links of
    a party together, as of an interface."""

    rtt_ms: float
    mbit: float | None = None
    profile: str = ""
    shared: bool = False

    @property
    def spec(self) -> str:
        """The text that :func:`parse` reads back."""
        text = self.profile or f"rtt={self.rtt_ms:g}" + ("" if self.mbit is None else f",mbit={self.mbit:g}")
        return text + f",{SHARED}" * self.shared

    @property
    def shape(self) -> tuple[float, int | None, bool]:
        """As the engine takes it: round trip in seconds, bits a second, whether a party's links share them."""
        return self.rtt_ms / 1e3, None if self.mbit is None else round(self.mbit * 1e6), self.shared

    def describe(self) -> str:
        """For people."""
        name = f"{self.profile}, " if self.profile else ""
        rate = "any bandwidth" if self.mbit is None else f"{self.mbit:g} Mbit/s each way"
        return f"{name}round trip {self.rtt_ms:g} ms, {rate}" + ", shared by the links of a party" * self.shared


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

FORMS = f"{', '.join(PROFILES)}, or rtt=MS[,mbit=RATE]; with ,{SHARED} a party's links share the bandwidth"


def parse(text: str) -> Link:
    """A link from the name of a profile, or from ``rtt=1,mbit=1000`` (``mbit`` may be left out); ``,shared`` in the end: see :class:`Link`."""
    link = _parse(text.removesuffix(f",{SHARED}"))
    if not text.endswith(f",{SHARED}"):
        return link
    if link.mbit is None:
        raise ParameterError(f"link {text!r}: there is no bandwidth to share: add mbit=RATE, or leave out {SHARED}")
    return replace(link, shared=True)


def _parse(text: str) -> Link:
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


def check_link(spec: str | None, backend: str = "embedded") -> None:
    """Raises ParameterError for an unknown link, and for one that a backend does not simulate; None stands for real links."""
    if spec is not None and parse(spec).shared and backend != "embedded":
        raise ParameterError(
            f"link {spec!r}: the relays of MP-SPDZ limit each pair of parties alone: leave out ,{SHARED}, or take the embedded engine"
        )
