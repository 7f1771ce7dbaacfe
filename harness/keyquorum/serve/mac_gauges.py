"""Gauges of the state of a party's MAC key."""

from __future__ import annotations

from pathlib import Path

from prometheus_client import CollectorRegistry, Gauge

from keyquorum.model.errors import KeyFileError
from keyquorum.parties import mac_key


def mac_key_gauges(registry: CollectorRegistry, path: Path) -> None:
    """Adds gauges of the MAC key at ``path``, which read its files when they are asked. A state that cannot be told is NaN."""

    def of(name: str) -> float:
        try:
            state = mac_key.state(path)
        except KeyFileError:
            return float("nan")
        return {"burned": float(bool(state.burned)), "cut_offs": state.cut_offs, "unfinished": state.unfinished}[name]

    for name, said in (
        ("burned", "1 if the MAC key is burned, and with it all keys and pools under it"),
        ("cut_offs", f"Challenges that were cut off under the MAC key, which burns at {mac_key.MOST_CUT_OFFS}"),
        ("unfinished", "MAC checks that were cut off, which the next session of all parties finishes"),
    ):
        gauge = Gauge(f"keyquorum_mac_key_{name}", said, registry=registry)
        gauge.set_function(lambda name=name: of(name))  # type: ignore[misc]
