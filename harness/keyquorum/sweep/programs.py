"""The small programs of the suites ``primitives``, ``sampling`` and ``conversion``, with their inputs and numbers of results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from keyquorum.model.chosen_committees import with_capability
from keyquorum.model.domains import Field, Ring
from keyquorum.model.protocols import PROTOCOLS
from keyquorum.model.resources import program_path
from keyquorum.programs.header import header
from keyquorum.programs.signatures import (
    sample_cbd,
    sample_fixed_weight,
    sample_gaussian,
    sample_ternary,
    z2_to_zq,
    z3_to_zq,
    zq_to_z2_circuit,
)

from .operands import Ints, summand_rows_of

Q60 = 1152921504606584833
RING, FIELD = Ring(64), Field(Q60)
WEIGHT = 64
"""Hamming weight of sampled vectors, as in paper 004."""


@dataclass(frozen=True)
class Setting:
    """The setting of a run at one party."""

    protocol: str
    parties: int
    threshold: int
    batch: int
    party: int = 0

    @property
    def contributors(self) -> int:
        """Number of parties that contribute private randomness: one more than may be corrupted."""
        return self.threshold + 1

    @property
    def domain(self) -> str:
        """The arithmetic domain of the protocol."""
        return RING if PROTOCOLS[self.protocol].ring else FIELD


Arguments = Callable[[Setting], Sequence[object]]
Inputs = Callable[[Setting, np.random.Generator], Ints]


@dataclass(frozen=True)
class Program:
    """A row of a suite. ``source``: the text of the program, or empty for ``program`` of the collection in the variant ``variant``.
    If the program has timer 1, its time is measured. ``products``: approximate number of products for an entry; it divides the batch under protocols
    whose products come from oblivious transfer."""

    suite: str
    name: str
    batch: int
    quick: int
    arguments: Arguments = lambda s: [s.batch]
    inputs: Inputs = lambda s, rng: np.empty(0, dtype=np.int64)
    program: str = ""
    variant: str = ""
    source: str = ""
    protocols: tuple[str, ...] = ()
    products: int = 1

    def runs_on(self, protocol: str, backend: str) -> bool:
        """Whether the program is for this protocol."""
        if self.source:
            return protocol in self.protocols
        return header(self.program).runs_on(PROTOCOLS[protocol], self.variant, backend == "mp-spdz")

    @property
    def path(self) -> Path:
        """The file of a program of the collection."""
        return program_path(self.program)


def _primitive(name: str, batch: int, before: str, measured: str, protocols: tuple[str, ...]) -> Program:
    """A program that measures a primitive. It opens one element of the result, so that the result is computed."""
    lines = ["n = int(program.args[1])", *before.split("; "), "start_timer(1)", measured, "stop_timer(1)", "z.reveal()"]
    source = "\n".join([*filter(None, lines), ""])
    return Program("primitives", name, batch, batch // 50, _with_summands, source=source, protocols=protocols)


def _with_summands(s: Setting) -> list[object]:
    """Arguments: the batch, and the number of summands into which shares of bits split (-Z)."""
    return [s.batch, PROTOCOLS[s.protocol].summands(s.parties)]


_ELEMENTS = "x = sint.get_random(size=n); y = sint.get_random(size=n)"
_BITS = "p = int(program.args[2]); " + "; ".join(f"{v} = sint.get_random(size=n).split_to_n_summands(1, p)[0][0]" for v in "xy")
_ALL, _RINGS = with_capability(), with_capability(ring=True)

PRIMITIVES = [
    _primitive("product", 100_000, _ELEMENTS, "z = x * y", _ALL),
    _primitive("random bit", 100_000, "", "z = sint.get_random_bit(size=n)", _ALL),
    _primitive("opening", 100_000, "x = sint.get_random(size=n)", "z = x + x; c = z.reveal()", _ALL),
    _primitive("comparison of 64 bits", 10_000, _ELEMENTS, "z = x < y", _RINGS),
    _primitive("AND", 1_000_000, _BITS, "z = x & y", with_capability(splits=True)),
]


def _uniform(below: int, rows: int = 1) -> Inputs:
    return lambda s, rng: rng.integers(0, below, rows * s.batch, dtype=np.int64)


def _trits(kind: str) -> Inputs:
    def make(s: Setting, rng: np.random.Generator) -> Ints:
        t = rng.integers(0, 3, s.batch, dtype=np.int64)
        if kind == "bits":
            return np.concatenate([t == 1, t == 2]).astype(np.int64)
        return np.concatenate([t, np.where(t == 2, -1, t)])

    return make


def _summands(s: Setting, rng: np.random.Generator) -> Ints:
    if s.party >= s.contributors:
        return np.empty(0, dtype=np.int64)
    return summand_rows_of(s.party, s.contributors, rng.integers(0, Q60, s.batch, dtype=np.int64), Q60)


def _indices(s: Setting, rng: np.random.Generator) -> Ints:
    width = max(1, (s.batch - 1).bit_length())
    indices = [int(rng.integers(0, s.batch - i)) for i in range(WEIGHT)]
    return np.array([j >> b & 1 for b in range(width) for j in indices], dtype=np.int64)


Method = Literal["bits", "arith"]
Trits = Literal["bilinear", "bits"]
Binary = Literal["poly", "bits"]
METHODS: tuple[Method, ...] = ("bits", "arith")
TRITS: tuple[Trits, ...] = ("bilinear", "bits")
BINARY: tuple[Binary, ...] = ("poly", "bits")


def _cbd(method: Method) -> Arguments:
    return lambda s: sample_cbd(size=s.batch, method=method).args


def _gaussian(method: Method) -> Arguments:
    return lambda s: sample_gaussian(size=s.batch, method=method).args


def _ternary(method: Trits) -> Arguments:
    return lambda s: sample_ternary(contributors=max(2, s.contributors), N=s.batch, method=method).args


def _z2(method: Binary) -> Arguments:
    return lambda s: z2_to_zq(contributors=s.contributors, size=s.batch, method=method).args


def _z3(method: Trits) -> Arguments:
    return lambda s: z3_to_zq(contributors=max(2, s.contributors), size=s.batch, method=method).args


SAMPLING = [
    *(
        Program("sampling", f"centred binomial ({m})", 1 << 15, 1 << 10, _cbd(m), program="sample_cbd", variant=m)
        for m in METHODS
    ),
    *(
        Program(
            "sampling", f"discrete Gaussian ({m})", 1 << 15, 1 << 10, _gaussian(m),
            program="sample_gaussian", variant=m, products=16 if m == "arith" else 1,
        )
        for m in METHODS
    ),
    *(
        Program(
            "sampling", f"uniform trit ({m})", 1 << 15, 1 << 10,
            _ternary(m), _trits(m), "sample_ternary", m, products=4 if m == "bilinear" else 1,
        )
        for m in TRITS
    ),
    Program(
        "sampling", f"Hamming weight {WEIGHT} (shuffle)", 1 << 15, 1 << 10,
        lambda s: sample_fixed_weight(method="shuffle", N=s.batch, weight=WEIGHT).args, program="sample_fixed_weight", variant="shuffle", products=16,
    ),
    Program(
        "sampling", f"Hamming weight {WEIGHT} (bits)", 1 << 14, 1 << 10,
        lambda s: sample_fixed_weight(method="bits", N=s.batch, weight=WEIGHT, contributors=max(2, s.contributors)).args, _indices, "sample_fixed_weight", "bits",
    ),
]  # fmt: skip

CONVERSIONS = [
    *(
        Program(
            "conversion", f"Z2 to Zq ({m})", 1 << 15, 1 << 10,
            _z2(m), _uniform(2), "z2_to_zq", m,
        )
        for m in BINARY
    ),
    *(
        Program(
            "conversion", f"Z3 to Zq ({m})", 1 << 15, 1 << 10,
            _z3(m), _trits(m), "z3_to_zq", m,
        )
        for m in TRITS
    ),
    Program(
        "conversion", "Zq to Z2 (circuit)", 1 << 11, 1 << 8,
        lambda s: zq_to_z2_circuit(contributors=s.contributors, size=s.batch, q=Q60, out=0).args, _summands, "zq_to_z2_circuit",
    ),
]  # fmt: skip

PROGRAMS = {(p.suite, p.name): p for p in [*PRIMITIVES, *SAMPLING, *CONVERSIONS]}
