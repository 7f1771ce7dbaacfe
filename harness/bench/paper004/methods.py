"""The rows of tables 2 to 4: sampling and conversion, each with every method that takes less than minutes, among them the paper's own."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from keyquorum.dsl import ShareVector
from keyquorum.model.chosen_committees import ADDITIVE, ADDITIVE_RING
from keyquorum.model.plain import Json
from keyquorum.parties.context import PartyContext
from keyquorum.parties.jobs import party_job
from keyquorum.programs import Call
from keyquorum.programs.signatures import (
    lift_close,
    lift_open,
    sample_fixed_weight,
    sample_gaussian,
    z2_to_zq,
    z3_to_zq,
    zq_to_z2_circuit,
    zq_to_z2_mask,
)
from keyquorum.sweep.operands import Ints, summand_rows_of

PRIMES = {60: 1152921504606584833, 62: 4611686018425815041}
"""Bits of the modulus q, and q. The paper's has 64, and ours have at most 62: both lengths are measured."""
RING = "Z2^64"
BATCH, QUICK_BATCH = 1 << 15, 1 << 8
WEIGHT = 64
MASK_BITS = 50
"""Statistical security of a mask of ``lift``."""


class Runs:
    """Runs the programs of one measured method at one party, with fresh private inputs."""

    def __init__(self, context: PartyContext, prime: int) -> None:
        self.context, self.parties, self.prime = context, context.parties, prime
        self._rng = np.random.default_rng()

    def uniform(self, below: int, size: int) -> Ints:
        """Private words."""
        return self._rng.integers(0, below, size, dtype=np.int64)

    def ring(self, call: Call, **rest: Any) -> Ints:
        """A program modulo 2^64."""
        return self.context.backend.run(ADDITIVE_RING, RING, call, **rest).words

    def field(self, call: Call, **rest: Any) -> Ints:
        """A program modulo the prime."""
        return self.context.backend.run(ADDITIVE, f"F_{self.prime}", call, **rest).words

    def lift(self, shares: ShareVector, size: int, bits: int) -> None:
        """Lifts shares from the ring to the field."""
        masks = self.uniform(1 << (bits + MASK_BITS), size)
        opening = lift_open(contributors=self.parties, size=size, b=bits, lam=MASK_BITS, modulus=1 << 64)
        opened = self.ring(opening, private=masks, shares=shares)
        self.field(lift_close(contributors=self.parties, size=size, b=bits), private=masks, public=[opened])


@dataclass(frozen=True)
class Method:
    """A method for a row of the paper: ``run(runs, size)`` makes ``size`` results. Figures are for one result; ``match``: the paper's row."""

    table: str
    row: str
    name: str
    match: dict[str, object]
    time: str
    traffic: str
    run: Callable[[Runs, int], None]
    size: int = BATCH
    quick: int = QUICK_BATCH
    bits: tuple[int, ...] = (60, 62)
    """Lengths of q that it is measured with; none: it uses no prime."""
    batch: bool = True
    """Whether a run makes ``size`` results. Otherwise it makes one result of that size, which is the paper's size unless the run is quick."""


def _z2_poly(runs: Runs, size: int) -> None:
    runs.field(z2_to_zq(contributors=runs.parties, size=size, method="poly"), private=runs.uniform(2, size))


def _z2_bits(runs: Runs, size: int) -> None:
    shares = ShareVector()
    runs.ring(z2_to_zq(contributors=runs.parties, size=size, method="bits"), private=runs.uniform(2, size), shares=shares)
    runs.lift(shares, size, 1)


def _z3(method: Literal["bilinear", "poly", "bits"]) -> Callable[[Runs, int], None]:
    def run(runs: Runs, size: int) -> None:
        trits = runs.uniform(3, size)
        if method == "bits":
            shares, indicators = ShareVector(), np.concatenate([trits == 1, trits == 2]).astype(np.int64)
            runs.ring(z3_to_zq(contributors=runs.parties, size=size, method=method), private=indicators, shares=shares)
            runs.lift(shares, size, 2)
        else:
            both = np.concatenate([trits, np.where(trits == 2, -1, trits)])
            runs.field(z3_to_zq(contributors=runs.parties, size=size, method=method, modulus=runs.prime), private=both)

    return run


def _zq(runs: Runs, size: int) -> None:
    rows = summand_rows_of(runs.context.party, runs.parties, runs.uniform(runs.prime, size), runs.prime)
    runs.ring(zq_to_z2_circuit(contributors=runs.parties, size=size, q=runs.prime, out=0, adder="ripple"), private=rows)


def _zq_mask(runs: Runs, size: int) -> None:
    shares = ShareVector.from_words(runs.uniform(runs.prime, size).astype(np.uint64).reshape(1, -1))
    runs.field(zq_to_z2_mask(size=size, q=runs.prime, out=0, adder="ripple"), shares=shares)


def _fixed_weight(runs: Runs, length: int) -> None:
    width = (length - 1).bit_length()
    indices = [int(runs.uniform(length - i, 1)[0]) for i in range(WEIGHT)]
    rows = np.array([j >> b & 1 for b in range(width) for j in indices], dtype=np.int64)
    runs.ring(sample_fixed_weight(method="bits", N=length, weight=WEIGHT, contributors=runs.parties), private=rows)


def methods() -> list[Method]:
    """All methods of tables 2 to 4."""
    gaussian = ("2", "discrete Gaussian")
    made = [
        Method(*gaussian, "Z_2^64", {}, "ms", "communication_kb", lambda r, m: void(r.ring(sample_gaussian(size=m, method="bits"))), bits=()),
        Method(*gaussian, "F_q", {}, "ms", "communication_kb", lambda r, m: void(r.field(sample_gaussian(size=m, method="bits")))),
    ]
    for length in (23040, 46080):
        match: dict[str, object] = {"phi_m": length, "hamming_weight": WEIGHT}
        name = f"Hamming weight {WEIGHT} of {length}"
        made.append(Method("3", name, "bits", match, "seconds", "communication_mb", _fixed_weight, length, length // 20, (), False))
    conversions: list[tuple[str, str, Callable[[Runs, int], None]]] = [
        ("Z2 to Zq", "poly", _z2_poly),
        ("Z2 to Zq", "bits and lift", _z2_bits),
        ("Z3 to Zq", "poly", _z3("poly")),
        ("Z3 to Zq", "bilinear", _z3("bilinear")),
        ("Z3 to Zq", "bits and lift", _z3("bits")),
        ("Zq to bits", "circuit", _zq),
        ("Zq to bits", "mask", _zq_mask),
    ]
    for row, name, run in conversions:
        made.append(Method("4", row, name, {"operation": row}, "us", "communication_kb", run))
    return made


def void(_: Ints) -> None:
    """Ignores the output of a program."""


@party_job("bench:paper004", {"method": int, "bits": int, "quick": bool, "repeats": int})
def paper004_job(context: PartyContext, job: Json) -> Json:
    """The job ``bench:paper004``: method number ``method`` with a prime of ``bits`` bits, ``repeats`` times after one run that is not counted (it loads code, and
    the first run of a session makes base OTs). Returns the costs at this party: seconds, CPU seconds and bytes that it sends."""
    method, runs, measured = methods()[job["method"]], Runs(context, PRIMES[job["bits"]]), []
    for _ in range(1 + job["repeats"]):
        context.session.compare("start of a run", b"")
        before, start, cpu = context.backend.stats(), time.monotonic(), time.process_time()
        method.run(runs, method.quick if job["quick"] else method.size)
        seconds, cpu, after = time.monotonic() - start, time.process_time() - cpu, context.backend.stats()
        measured.append({"seconds": seconds, "cpu": cpu, "sent": after["bytes_sent"] - before["bytes_sent"]})
    return {"runs": measured[1:]}
