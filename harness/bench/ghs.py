"""Transforms of ring elements, and keys of GHS, beside the figures of GMPFHE (section 6.1.4, tables 7 and 8; params/published/004_*.csv).

``transform``: one polynomial of 52-bit residues to its values, on one core; the median of several. ``inverse transform``: the way back. The paper has one figure for both.

``keys``: two parties with additive shares, each a process of this host, over TLS: from the start of the processes to the files on disk, one run. ``noise``: gaussian as in the
paper, cbd beside it. ``gb``: sent by both parties together; ``memory_gb``: of the larger one. Over simulated links the preprocessing is over the link as well.

Writes results/ghs.csv; rows that were not measured stay. A key takes minutes.

    python -m bench.ghs [--what transform,keys] [--parameters ghs-28679] [--noise cbd] [--link none]
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import Cyclotomic, Ntt
from keyquorum.fhe.ghs import SET_NAMES, load_set
from keyquorum.fhe.parameters import load as load_seal
from keyquorum.model import published
from keyquorum.model.chosen_committees import ADDITIVE

from .runner import CIRCUMSTANCES, Bench, Options, Row, new_key

Words = NDArray[np.uint64]
RINGS = {"ckks-16384-seed004": "x^16384+1", "ghs-28679": "Phi_28679", "ghs-53261": "Phi_53261"}
"""Rings of the paper, by parameter set."""
TABLES = {"ghs-28679": "004_table7_aes_bootstrappable", "ghs-53261": "004_table8_aes_leveled"}
LINKS = ("none", "paper004-lan", "paper004-wan")
RUNS, PARTIES = 51, 2
COLUMNS = ("what", "parameters", "noise", "n", "link", "seconds", "gb", "paper_seconds", "paper_gb", "rounds", "memory_gb", "runs", *CIRCUMSTANCES)


@dataclass(frozen=True)
class Case:
    """One measurement."""

    what: str
    parameters: str
    noise: str = ""
    link: str = "none"


def cases(options: Options) -> list[Case]:
    """Transforms of the three rings, and keys of both sets."""
    made = [Case(what, name) for name in RINGS for what in ("transform", "inverse transform")]
    return made + [Case("keys", name, noise, link) for name in SET_NAMES for noise in ("cbd", "gaussian") for link in LINKS]


def job(case: Case, options: Options) -> Iterator[Row]:
    """The row of a measurement."""
    yield _keys(case) if case.what == "keys" else _transform(case)


def _transform(case: Case) -> Row:
    forward, inverse, size, q = _ring(case.parameters)
    polynomial = np.random.default_rng(1).integers(0, q, size, dtype=np.uint64)
    run, given = (forward, polynomial) if case.what == "transform" else (inverse, forward(polynomial))
    seconds = []
    for _ in range(RUNS):
        start = time.perf_counter()
        run(given)
        seconds.append(time.perf_counter() - start)
    paper = next(float(str(row["ms"])) * 1e-3 for row in published.load("004_section6_ntt") if RINGS[case.parameters] in row.values())
    return {
        "what": case.what,
        "parameters": case.parameters,
        "seconds": f"{statistics.median(seconds):.4g}",
        "paper_seconds": f"{paper:.4g}",
        "runs": RUNS,
    }


def _ring(name: str) -> tuple[Callable[[Words], Words], Callable[[Words], Words], int, int]:
    """The transform of a set's ring, its inverse, the coefficients of a polynomial, and a prime."""
    if name in SET_NAMES:
        p = load_set(name)
        transform = Cyclotomic(p.primes[0], p.order)
        return transform.forward, transform.inverse, p.degree, p.primes[0]
    seal = load_seal(name, warn=False)
    ntt = Ntt(seal.coeff_modulus[0], seal.ring_degree)
    return ntt.forward, ntt.inverse, seal.ring_degree, seal.coeff_modulus[0]


def _keys(case: Case) -> Row:
    link = None if case.link == "none" else case.link
    result, seconds, _ = new_key(ADDITIVE, PARTIES, case.parameters, noise=case.noise, link=link)
    network = "WAN" if case.link == "paper004-wan" else "LAN"
    (paper,) = [row for row in published.load(TABLES[case.parameters]) if row["operation"] == "KeyGen" and row["network"] == network]
    return {
        "what": case.what, "parameters": case.parameters, "noise": case.noise, "n": PARTIES, "link": case.link, "seconds": f"{seconds:.1f}",
        "gb": f"{sum(r.total.bytes_sent for r in result.reports) / 1e9:.3f}", "paper_seconds": str(paper["seconds"]), "paper_gb": str(paper["communication_gb"]),
        "rounds": result.reports[0].total.rounds, "memory_gb": f"{max(r.peak_memory for r in result.reports) / 1e9:.2f}", "runs": 1,
    }  # fmt: skip


BENCH = Bench("ghs", cases, job, COLUMNS, axes=("what", "parameters", "noise", "link"), key=("what", "parameters", "noise", "n", "link"))

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
