"""Transforms of ring elements, and keys and decryption of GHS, beside the figures of GMPFHE (section 6.1.4, tables 7 and 8; params/published/004_*.csv).

``transform``: one polynomial of 52-bit residues to its values, on one core; the median of several. ``transform-inverse``: the way back. The paper has one figure for both.

``keys``: two parties with additive shares, each a process of this host, over TLS: from the start of the processes to the files on disk, one run. ``noise``: gaussian as in the
paper, cbd beside it. Over simulated links the preprocessing is over the link as well.

``decryption-rounding``: of as many ciphertexts as the paper's blocks take, exactly, as ``keyquorum decrypt`` does it: ``step`` offline, then online. ``decryption-bits``: by the
paper's way, phases to bits, in one step. Medians of several runs.

``link``: none, or the paper's networks, simulated; then the links of a party share the bandwidth (``shared_link``). ``batch``: coefficients that are decrypted together, or keys.
``gb``: sent by both parties together; ``memory_gb``: of the larger one. ``cpu_party``: CPU seconds of the busiest party: both share the cores of this host, and the paper's had a
machine each.

Writes results/ghs.csv, in which rows that are not measured stay. A key takes minutes. ``--quick``: keys of few primes and a light secret, and one run: whether it runs, not how fast.

    python -m bench.ghs [--what transform,keys] [--parameters ghs-28679] [--noise cbd] [--link none,paper004-wan] [--quick]
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from keyquorum._engine import Cyclotomic, Ntt
from keyquorum.fhe.ghs import SET_NAMES, GhsParameters, load_set
from keyquorum.fhe.parameters import load as load_seal
from keyquorum.model import published
from keyquorum.model.chosen_committees import ADDITIVE
from keyquorum.model.links import SHARED
from keyquorum.parties import run_processes

from .ghs_decryption import ROUNDING, WAYS, steps_of
from .runner import CIRCUMSTANCES, Arguments, Bench, Options, Row, committee_of, new_key

Words = NDArray[np.uint64]
RINGS = {"ckks-16384-seed004": "x^16384+1", "ghs-28679": "Phi_28679", "ghs-53261": "Phi_53261"}
"""Rings of the paper, by parameter set."""
TABLES = {"ghs-28679": "004_table7_aes_bootstrappable", "ghs-53261": "004_table8_aes_leveled"}
LINKS = ("none", "paper004-lan", "paper004-wan")
CIPHERTEXTS = {"ghs-28679": 3, "ghs-53261": 1}
"""Ciphertexts of the paper's 180 and 120 blocks of AES: 60 and 120 fit in one."""
OPERATIONS = {"offline": "Dec (TupleGen)", "online": "Dec (CircuitEval)"}
"""Rows of the paper's tables, by our steps."""
TRANSFORMS, DECRYPTIONS, PARTIES = 51, 5, 2
"""Runs of a transform, and of a decryption; parties."""
QUICK_PRIMES, QUICK_WEIGHT = 4, 4
"""Primes of a quick key, the fewest that three digits have, and the weight of its secret."""
COLUMNS = (
    "what", "parameters", "noise", "n", "link", "step", "seconds", "gb", "paper_seconds", "paper_gb", "rounds", "memory_gb", "cpu_party", "batch", "shared_link", "runs", "wrong",
    *CIRCUMSTANCES, "command",
)  # fmt: skip
KEY = ("what", "parameters", "noise", "link", "step")
"""Columns by which rows of the table are known."""


@dataclass(frozen=True)
class Case:
    """One measurement."""

    what: str
    parameters: str
    noise: str = ""
    link: str = "none"

    @property
    def shared_link(self) -> str | None:
        """The link as jobs name it."""
        return None if self.link == "none" else f"{self.link},{SHARED}"

    @property
    def columns(self) -> Row:
        """The columns of every row between parties."""
        return {
            "what": self.what, "parameters": self.parameters, "noise": self.noise, "n": PARTIES, "link": self.link,
            "shared_link": "yes" if self.shared_link else "",
        }  # fmt: skip

    def paper(self, operation: str) -> Row:
        """The paper's figures of an operation, over its network of this link; without a simulated link those of the LAN."""
        network = "WAN" if self.link == "paper004-wan" else "LAN"
        (found,) = [row for row in published.load(TABLES[self.parameters]) if row["operation"] == operation and row["network"] == network]
        return {"paper_seconds": str(found["seconds"]), "paper_gb": str(found["communication_gb"])}


def cases(options: Options) -> list[Case]:
    """Transforms of the three rings, and keys and decryption of both sets."""
    made = [Case(what, name) for name in RINGS for what in ("transform", "transform-inverse")]
    made += [Case(f"decryption-{way}", name, "", link) for name in SET_NAMES for way in WAYS for link in LINKS]
    return made + [Case("keys", name, noise, link) for name in SET_NAMES for noise in ("cbd", "gaussian") for link in LINKS]


def job(case: Case, options: Options) -> Iterator[Row]:
    """The rows of a measurement, with all columns by which rows are known."""
    return ({**dict.fromkeys(KEY, ""), "link": case.link, **row} for row in _rows(case, options.quick))


def _rows(case: Case, quick: bool) -> Iterator[Row]:
    if case.what == "keys":
        yield _keys(case, quick)
    elif case.what.startswith("decryption"):
        yield from _decryption(case, 1 if quick else DECRYPTIONS)
    else:
        yield _transform(case)


def _transform(case: Case) -> Row:
    forward, inverse, size, q = _ring(case.parameters)
    polynomial = np.random.default_rng(1).integers(0, q, size, dtype=np.uint64)
    run, given = (forward, polynomial) if case.what == "transform" else (inverse, forward(polynomial))
    seconds = []
    for _ in range(TRANSFORMS):
        start = time.perf_counter()
        run(given)
        seconds.append(time.perf_counter() - start)
    paper = next(float(str(row["ms"])) * 1e-3 for row in published.load("004_section6_ntt") if RINGS[case.parameters] in row.values())
    return {
        "what": case.what,
        "parameters": case.parameters,
        "seconds": f"{statistics.median(seconds):.4g}",
        "paper_seconds": f"{paper:.4g}",
        "runs": TRANSFORMS,
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


def _quick(parameters: GhsParameters) -> GhsParameters:
    """A set over the same ring, whose keys take less."""
    return replace(parameters, name=f"{parameters.name}-quick", primes=parameters.primes[:QUICK_PRIMES], automorphisms=(), weight=QUICK_WEIGHT)


def _keys(case: Case, quick: bool) -> Row:
    parameters = load_set(case.parameters)
    result, seconds, _ = new_key(ADDITIVE, PARTIES, _quick(parameters) if quick else parameters, noise=case.noise, link=case.shared_link)
    return {
        **case.columns, "seconds": f"{seconds:.1f}", "gb": f"{sum(r.total.bytes_sent for r in result.reports) / 1e9:.3f}",
        **({} if quick else case.paper("KeyGen")), "rounds": result.reports[0].total.rounds, "memory_gb": f"{max(r.peak_memory for r in result.reports) / 1e9:.2f}",
        "cpu_party": f"{max(r.cpu_seconds for r in result.reports):.1f}", "batch": 1, "runs": 1,
    }  # fmt: skip


def _decryption(case: Case, runs: int) -> Iterator[Row]:
    """A row of each step: medians over the runs, of the slower party."""
    count, way = CIPHERTEXTS[case.parameters], case.what.removeprefix("decryption-")
    asked = {"kind": "bench:ghs-decrypt", "parameters": case.parameters, "way": way, "count": count, "runs": runs}
    with committee_of(ADDITIVE, PARTIES) as committee:
        results = run_processes(committee.folder, asked | ({"link": case.shared_link} if case.shared_link else {}), io_timeout=900)
    for step in steps_of(results):
        costs = [[result["runs"][i][step] for result in results] for i in range(runs)]
        seconds, cpu = (statistics.median(max(cost[name] for cost in run) for run in costs) for name in ("seconds", "cpu"))
        yield {
            **case.columns, "step": step, "seconds": f"{seconds:.4g}", "gb": f"{sum(cost['sent'] for cost in costs[-1]) / 1e9:.4g}",
            **(case.paper(OPERATIONS[step]) if way == ROUNDING else {}), "rounds": costs[-1][0]["rounds"], "cpu_party": f"{cpu:.4g}",
            "batch": count * load_set(case.parameters).degree, "runs": runs, "wrong": sum(result["wrong"] for result in results),
        }  # fmt: skip


OPTIONS: Arguments = {"quick": {"action": "store_true", "help": "small keys and one run: whether it runs, not how fast; no table is written"}}
BENCH = Bench(
    "ghs", cases, job, COLUMNS, axes=("what", "parameters", "noise", "link"), options=OPTIONS, restricting=("quick",),
    key=KEY, failed=lambda rows: any(row.get("wrong") for row in rows),
)  # fmt: skip

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
