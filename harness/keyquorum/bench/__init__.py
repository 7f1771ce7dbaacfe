"""Benchmarks: each prints its figures, and ends with one line a configuration."""

JOBS = {
    "decrypt": "decrypt", "exchanges": "exchanges", "parity": "parity.embedded", "dishonest": "dishonest", "paper004": "paper004",
    "sweep": "sweep.party",
}  # fmt: skip
"""Jobs of benchmarks, of kinds that begin with ``bench:``, and the modules that define them (:mod:`keyquorum.parties.jobs`)."""
