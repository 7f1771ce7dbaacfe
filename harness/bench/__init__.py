"""Benchmarks beside published figures and MP-SPDZ. They use the package, and are no part of it: ``python -m bench.NAME`` in a checkout."""

from keyquorum.parties.jobs import add_package

JOBS = {
    "exchanges": "decryption.exchanges", "parity": "parity.embedded", "primitives": "primitives", "paper004": "paper004.methods", "paper004-decrypt": "paper004.cnn",
    "paper004-ands": "paper004.counts", "paper004-powers": "paper004.counts",
    "toprf": "toprf.native", "toprf-legendre": "toprf.legendre", "toprf-lwe": "toprf.lwe", "toprf-block": "toprf.tfhe", "lisss": "toprf.lisss",
    "lisss-exact": "toprf.lisss", "gates-keygen": "baselines.toprf_lwe.gates", "gates-fill": "baselines.toprf_lwe.gates",
    "gates-evaluate": "baselines.toprf_lwe.gates", "multikey": "multikey.decryption", "ghs-decrypt": "ghs_decryption",
}  # fmt: skip
"""Jobs of benchmarks, whose kinds begin with ``bench:``, and the modules that define them (:mod:`keyquorum.parties.jobs`)."""

add_package("bench", __name__)
