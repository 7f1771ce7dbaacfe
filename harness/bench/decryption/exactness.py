"""Frequency of wrong decryptions, on real ciphertexts with real pools: ``make check-decrypt``.

Exact roundings get noise in the whole range from -D/2 to D/2, half of it at the ends of the range, and no message may be wrong. `round_flood` gets
noise up to the bound that it relies on, and no message may be wrong; its parameter set has a modulus that is large enough for the flooding.
Ciphertexts of BFV are fresh: their noise is that of stock SEAL.
`round_mask_open` and `round_mask_open_one` get noise of a fixed |e| / D. Their failures must be within the 99 % interval of the binomial distribution: a correct program fails
this check in one of a hundred rows.

``--record`` adds a line to results/exactness.csv for every finished row, and ``--totals`` adds up its lines,
of all versions. So slow rows can be split into several runs, each with a key and a pool of its own.

    python -m bench.decryption.exactness [--items N] [--protocol semi,shamir] [--only TEXT] [--record]
    python -m bench.decryption.exactness --totals
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from keyquorum.fhe.lwe import lwe_parameters
from keyquorum.model.chosen_committees import ADDITIVE, REPLICATED, SHAMIR, VERIFIED_REPLICATED, VERIFIED_SHAMIR, WITH_MACS, over_ring
from keyquorum.model.errors import ParameterError
from keyquorum.sweep.decryption import BATCH

from ..runner import MACHINE, RESULTS, Arguments, Bench, Options, Row, add_line, circumstances
from .measure import Configuration, measure

FRACTIONS = (1 / 256, 1 / 16)
"""|e| / D for `round_mask_open` and `round_mask_open_one`."""
SUMMANDS = (ADDITIVE, SHAMIR)
"""Committees that round with additive shares, as `round_mask_open_one` does."""
QUANTILE = 2.576
"""99 % of a normal distribution are within so many standard deviations."""
COMMITTEES = ((REPLICATED, 3, "lwe64-p2"), (ADDITIVE, 2, "lwe64-p2"), (SHAMIR, 3, "lwe53-p16"), (WITH_MACS, 2, "lwe64-p2"))
VERIFIED = ((VERIFIED_REPLICATED, 3, "lwe64-p2"), (VERIFIED_SHAMIR, 3, "lwe53-p16"))
"""Committees that verify products, with exact roundings alone."""
CONFIGURED = ("variant", "protocol", "n", "parameters", "fraction")
RECORDED = RESULTS / "exactness.csv"
SEAL = "bfv-4096"
"""Its decryptions are of coefficients of ciphertexts, which stock SEAL encrypts."""
MALICIOUS = (*((protocol, parties) for protocol, parties, _ in VERIFIED), (WITH_MACS, 2))
"""Committees that decrypt BFV in other ways than the semi-honest ones."""
EXACT = (("round_ltz_circuit", 8, 2), ("round_ltz_table", 8, 2), ("round_ltz_table", 4, 3))
FLOODED = {"lwe64-p2": "lwe64-p16", "lwe53-p16": "lwe53-p16"}
"""For the set of a committee, the set whose modulus is large enough for `round_flood`."""


def interval(fraction: float, items: int) -> tuple[float, float]:
    """The range of failures among ``items`` decryptions that 99 % of all runs have."""
    spread = QUANTILE * math.sqrt(items * fraction * (1 - fraction)) + 0.5
    return items * fraction - spread, items * fraction + spread


def configurations(items: int) -> list[tuple[Configuration, float]]:
    """The rows, and |e| / D of their noise; ``items``: decryptions of each."""
    rows = []
    for protocol, parties, parameters in COMMITTEES:
        rows += [(Configuration(*shape, parameters, protocol, parties, items), 0.0) for shape in EXACT]
        masked = ("round_mask_open", "round_mask_open_one") if protocol in SUMMANDS else ("round_mask_open",)
        rows += [(Configuration(rounding, 8, 2, parameters, protocol, parties, items), f) for rounding in masked for f in FRACTIONS]
        rows.append((Configuration("round_flood", 8, 2, FLOODED[parameters], protocol, parties, items), 0.0))
    for protocol, parties, parameters in VERIFIED:
        shapes = EXACT if over_ring(protocol) != protocol else EXACT[:1]  # prime fields alone have no tables
        rows += [(Configuration(*shape, parameters, protocol, parties, items), 0.0) for shape in shapes]
    whole = math.ceil(items / BATCH) * BATCH
    rows += [(Configuration(*EXACT[0], SEAL, protocol, parties, whole), 0.0) for protocol, parties in MALICIOUS]
    return rows


def check(row: Configuration, fraction: float = 0.0) -> Row:
    """Runs a row; returns its counts. ``fraction``: |e| / D, or 0 for noise in the whole range."""
    values = measure(row, noise=fraction)
    return {
        "variant": values["variant"], "protocol": values["protocol"], "n": row.parties, "parameters": row.parameters,
        "fraction": fraction, "decryptions": row.items, "wrong": values["wrong"],
    }  # fmt: skip


def _most_noise(variant: str, parameters: str) -> str:
    """How far the noise of a row goes that has no fraction."""
    if parameters == SEAL:
        return "fresh"
    return f"2^{lwe_parameters(parameters).noise_bits}" if variant == "round_flood" else "D/2"


def judged(counted: Row) -> Row:
    """The counts with the noise, the number of failures that is expected, and ``ok`` or ``WRONG``."""
    fraction, items, wrong = float(counted["fraction"]), int(counted["decryptions"]), int(counted["wrong"])
    low, high = interval(fraction, items) if fraction else (0, 0)
    noise = f"{fraction:.6g}D" if fraction else _most_noise(str(counted["variant"]), str(counted["parameters"]))
    return {**counted, "noise": noise, "expected": f"{low:.0f}..{high:.0f}", "judged": "ok" if low <= wrong <= high else "WRONG"}


def totals(path: Path) -> list[Row]:
    """The counts of a file, those of the same configuration added up."""
    sums: dict[tuple[str, ...], tuple[int, int]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            key = tuple(row[name] for name in CONFIGURED)
            items, wrong = sums.get(key, (0, 0))
            sums[key] = items + int(row["decryptions"]), wrong + int(row["wrong"])
    return [{**dict(zip(CONFIGURED, key, strict=True)), "decryptions": items, "wrong": wrong} for key, (items, wrong) in sums.items()]


@dataclass(frozen=True)
class Case:
    """A configuration with |e| / D of its noise, or counts that were added up."""

    configuration: Configuration | None = None
    fraction: float = 0.0
    counted: Row | None = None

    @property
    def label(self) -> str:
        """Its name among others."""
        return self.configuration.label if self.configuration else " ".join(map(str, (self.counted or {}).values()))

    @property
    def protocol(self) -> str:
        """The protocol of its committee; of recorded counts that of its rounding."""
        return self.configuration.protocol if self.configuration else str((self.counted or {}).get("protocol", ""))


def cases(options: Options) -> list[Case]:
    """The rows to measure, or the recorded ones. Raises ParameterError where there is no table."""
    if options.record and options.totals:
        raise ParameterError("--record is for counts that are measured: leave out --totals")
    if options.record and not RECORDED.parent.is_dir():
        raise ParameterError(f"there is no folder {RECORDED.parent} here: make it, or go where it is")
    if options.totals and not RECORDED.is_file():
        raise ParameterError(f"there is no {RECORDED} here: make it with --record")
    return [Case(counted=row) for row in totals(RECORDED)] if options.totals else [Case(*row) for row in configurations(options.items)]


def job(case: Case, options: Options) -> Iterator[Row]:
    """Counts the failures of a row."""
    counted = check(case.configuration, case.fraction) if case.configuration else case.counted or {}
    if options.record:
        add_line(RECORDED, {**counted, **{name: circumstances()[name] for name in (*MACHINE, "commit")}})
    yield judged(counted)


def wrong(rows: Sequence[Row]) -> bool:
    """Whether a row has another number of failures than expected."""
    return any(row["judged"] != "ok" for row in rows)


SHOWN = ("variant", "protocol", "n", "parameters", "noise", "decryptions", "wrong", "expected", "judged")
OPTIONS: Arguments = {
    "items": {"type": int, "default": 1_000_000, "help": "decryptions of each row (default: 1000000, which takes hours)"},
    "record": {"action": "store_true", "help": f"add the counts to {RECORDED}"},
    "totals": {"action": "store_true", "help": f"add up {RECORDED}, without a measurement"},
}
BENCH = Bench("exactness", cases, job, (), shown=SHOWN, label=lambda case: case.label, axes=("protocol",), options=OPTIONS, failed=wrong)

if __name__ == "__main__":
    raise SystemExit(BENCH.main())
