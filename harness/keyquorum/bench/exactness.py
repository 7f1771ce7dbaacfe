"""Frequency of wrong decryptions, on real ciphertexts with real pools: ``make check-decrypt``.

Exact roundings get noise in the whole range from -D/2 to D/2, half of it at the ends of the range, and no message may be wrong. `round_flood` gets
noise up to the bound that it relies on, and no message may be wrong; its parameter set has a modulus that is large enough for the flooding.
Ciphertexts of BFV are fresh: their noise is that of stock SEAL.
`round_mask_open` gets noise of a fixed |e| / D. Its failures must be within the 99 % interval of the binomial distribution: a correct program fails
this check in one of a hundred rows.

``--record`` adds a line to results/exactness.csv for every finished row, and ``--totals`` adds up its lines,
of all versions. So slow rows can be split into several runs, each with a key and a pool of its own.

    python -m keyquorum.bench.exactness [--items N] [--only TEXT] [--record]
    python -m keyquorum.bench.exactness --totals
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import platform
from pathlib import Path

import keyquorum
from keyquorum.fhe.lwe import lwe_parameters
from keyquorum.model.chosen_committees import ADDITIVE, REPLICATED, SHAMIR, VERIFIED_REPLICATED, VERIFIED_SHAMIR, WITH_MACS, over_ring
from keyquorum.terminal.output import console

from .decryption import BATCH, Configuration, measure
from .keygen import Row

FRACTIONS = (1 / 256, 1 / 16)
"""|e| / D for `round_mask_open`."""
QUANTILE = 2.576
"""99 % of a normal distribution are within so many standard deviations."""
COMMITTEES = ((REPLICATED, 3, "lwe64-p2"), (ADDITIVE, 2, "lwe64-p2"), (SHAMIR, 3, "lwe53-p16"), (WITH_MACS, 2, "lwe64-p2"))
VERIFIED = ((VERIFIED_REPLICATED, 3, "lwe64-p2"), (VERIFIED_SHAMIR, 3, "lwe53-p16"))
"""Committees that verify products, with exact roundings alone."""
CONFIGURED = ("variant", "protocol", "n", "parameters", "fraction")
RECORDED = Path("results") / "exactness.csv"
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
        rows += [(Configuration("round_mask_open", 8, 2, parameters, protocol, parties, items), f) for f in FRACTIONS]
        rows.append((Configuration("round_flood", 8, 2, FLOODED[parameters], protocol, parties, items), 0.0))
    for protocol, parties, parameters in VERIFIED:
        shapes = EXACT if over_ring(protocol) != protocol else EXACT[:1]  # prime fields alone have no tables
        rows += [(Configuration(*shape, parameters, protocol, parties, items), 0.0) for shape in shapes]
    whole = math.ceil(items / BATCH) * BATCH
    rows += [(Configuration(*EXACT[0], SEAL, protocol, parties, whole), 0.0) for protocol, parties in MALICIOUS]
    return rows


def check(row: Configuration, fraction: float = 0.0) -> Row:
    """Runs a row; returns its counts. ``fraction``: |e| / D, or 0 for noise in the whole range."""
    _, values = measure(row, noise=fraction)
    return {
        "variant": values["variant"], "protocol": values["protocol"], "n": row.parties, "parameters": row.parameters,
        "fraction": fraction, "decryptions": row.items, "wrong": values["wrong"],
    }  # fmt: skip


def _most_noise(variant: str, parameters: str) -> str:
    """How far the noise of a row goes that has no fraction."""
    if parameters == SEAL:
        return "fresh"
    return f"2^{lwe_parameters(parameters).noise_bits}" if variant == "round_flood" else "D/2"


def judge(counted: Row) -> tuple[str, bool]:
    """The printed line of the counts, and whether the number of failures is as expected."""
    fraction, items, wrong = float(counted["fraction"]), int(counted["decryptions"]), int(counted["wrong"])
    low, high = interval(fraction, items) if fraction else (0, 0)
    right = low <= wrong <= high
    noise = f"{fraction:.6g}D" if fraction else _most_noise(str(counted["variant"]), str(counted["parameters"]))
    line = (
        f"exactness: variant={counted['variant']} protocol={counted['protocol']} n={counted['n']} parameters={counted['parameters']} "
        f"noise={noise} decryptions={items} wrong={wrong} "
        f"expected={low:.0f}..{high:.0f} {'ok' if right else 'WRONG'}"
    )
    return line, right


def record(path: Path, counted: Row) -> None:
    """Adds a line to the counts of a file."""
    row = {**counted, "cores": os.cpu_count() or 0, "machine": platform.machine(), "version": keyquorum.__version__}
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, list(row))
        if new:
            writer.writeheader()
        writer.writerow(row)


def totals(path: Path) -> list[Row]:
    """The counts of a file, those of the same configuration added up."""
    sums: dict[tuple[str, ...], tuple[int, int]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            key = tuple(row[name] for name in CONFIGURED)
            items, wrong = sums.get(key, (0, 0))
            sums[key] = items + int(row["decryptions"]), wrong + int(row["wrong"])
    return [{**dict(zip(CONFIGURED, key, strict=True)), "decryptions": items, "wrong": wrong} for key, (items, wrong) in sums.items()]


def main() -> int:
    """Runs every row, or adds up the recorded counts; exit code 1 if a row is not as expected."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=1_000_000, help="decryptions of each row (default: 1000000, which takes hours)")
    parser.add_argument("--only", default="", help="rows whose variant, parameters or committee contain this text")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--record", action="store_true", help=f"add the counts to {RECORDED}")
    what.add_argument("--totals", action="store_true", help=f"add up {RECORDED}, without a measurement")
    options = parser.parse_args()
    if options.record and not RECORDED.parent.is_dir():
        parser.error(f"there is no folder {RECORDED.parent} here: make it, or go where it is")
    if options.totals and not RECORDED.is_file():
        parser.error(f"there is no {RECORDED} here: make it with --record")
    good = True
    for counted in totals(RECORDED) if options.totals else []:
        line, right = judge(counted)
        good &= right
        console.print(line, markup=False, soft_wrap=True)
    if options.totals:
        return 0 if good else 1
    for row, fraction in configurations(options.items):
        if options.only in f"{row.name} {row.parameters} {row.protocol} {row.parties}":
            counted = check(row, fraction)
            line, right = judge(counted)
            good &= right
            console.print(line, markup=False, soft_wrap=True)
            if options.record:
                record(RECORDED, counted)
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
