"""One measurement of threshold decryption with a pool: the job ``sweep:decrypt`` of the package, and the row of a table."""

from __future__ import annotations

from dataclasses import dataclass

from keyquorum.model.plain import Json
from keyquorum.parties import run_processes

from ..runner import Row, committee_of

LATENCY_RUNS = 101
LATENCY_LINK = "rtt=1"
"""1 ms ping: 0.5 ms one way, by the link shaper of the engine."""


@dataclass(frozen=True)
class Configuration:
    """One measurement: a rounding, a parameter set, a committee with its openings, and the number of decryptions. ``batch`` and ``piece``: see
    :func:`keyquorum.sweep.decryption.decrypt_job`."""

    rounding: str
    width: int
    levels: int
    parameters: str
    protocol: str
    parties: int
    items: int
    openings: str = "direct"
    batch: int = 0
    piece: int = 0
    link: str = ""
    """The simulated link between parties; empty: none."""

    @property
    def name(self) -> str:
        """The rounding, and the shape of its tables."""
        return self.rounding + (f"-{self.width}x{self.levels}" if self.rounding == "round_ltz_table" else "")

    @property
    def label(self) -> str:
        """Its name among others."""
        return f"{self.name} {self.parameters} {self.protocol} n={self.parties} {self.openings} {self.link}"


def measure(row: Configuration, single: bool = False, noise: float = 0.0, runs: int = LATENCY_RUNS) -> Row:
    """Runs a configuration; returns the row of the table. ``noise``: see :func:`keyquorum.sweep.workloads.noise_for`. ``runs``: decryptions, if they are
    ``single``."""
    items = runs if single else row.items
    job: Json = {
        "kind": "sweep:decrypt", "parameters": row.parameters, "rounding": row.rounding, "width": row.width, "levels": row.levels,
        "items": items, "single": single, "noise": noise, "batch": row.batch, "piece": row.piece,
    }  # fmt: skip
    if single or row.link:
        job["link"] = row.link or LATENCY_LINK
    with committee_of(row.protocol, row.parties, openings=row.openings) as committee:
        protocol = committee.ring_protocol or committee.field_protocol
        results = run_processes(committee.folder, job, io_timeout=1200)
    first, last = results[0], results[committee.threshold if committee.capabilities.quorum is not None else -1]
    return {
        "variant": row.name,
        "parameters": row.parameters,
        "protocol": protocol,
        "n": row.parties,
        "items": items,
        "online_us": round(1e6 * first["online"] / items, 2),
        "offline_us": round(1e6 * first["offline"], 2),
        "rounds": first["rounds"],
        "bits": round(last["bits"], 1),
        "per_s": round(items / first["online"]),
        "rounds_in_all": round(first["rounds_in_all"], 1),
        "bits_in_all": round(last["bits_in_all"], 1),
        "online_cpu_us": round(1e6 * sum(r["online_cpu"] for r in results) / items, 2),
        "cpu_party_us": round(1e6 * max(r["online_cpu"] for r in results) / items, 2),
        "offline_cpu_us": round(1e6 * sum(r["offline_cpu"] for r in results), 2),
        "storage_bytes": round(first["storage"], 1),
        "offline_bytes": round(sum(r["offline_bytes"] for r in results)),
        "wrong": first["wrong"],
        "latency_ms": round(1e3 * first["median"], 2) if single else 0,
    }
