"""Benchmarks: each prints its figures, and ends with one line for each configuration."""

JOBS = {
    "decrypt": "decryption", "exchanges": "exchanges", "parity": "parity.embedded", "dishonest": "dishonest", "paper004": "paper004",
    "sweep": "sweep.party", "toprf": "toprf", "toprf-legendre": "toprf_legendre", "toprf-lwe": "toprf_lwe", "toprf-block": "toprf_tfhe", "lisss": "lisss",
    "lisss-exact": "lisss", "verified": "verified",
}  # fmt: skip
"""Jobs of benchmarks, whose kinds begin with ``bench:``, and the modules that define them (:mod:`keyquorum.parties.jobs`)."""
