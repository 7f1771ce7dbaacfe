"""How often decryption is wrong, on real ciphertexts with real pools: ``make check-decrypt``.

Exact roundings decrypt noise anywhere between both borders of D/2, half of it on the borders: nothing may be wrong. `round_mask_open`
gets noise of a fixed |e| / D, at which its failures must lie in the 99 % interval of the binomial law: a right program fails this
check once in a hundred rows.

    python -m keyquorum.bench.exactness [--items N] [--only TEXT]
"""

from __future__ import annotations

import argparse
import math

from keyquorum.cli.output import console
from keyquorum.model.committee import AUTHENTICATED

from .decrypt import Configuration, measure

FRACTIONS = (1 / 256, 1 / 16)
"""|e| / D for `round_mask_open`."""
QUANTILE = 2.576
"""Of the normal law: 99 % lie within so many standard deviations."""
COMMITTEES = (("rep-field", 3, "lwe64-p2"), ("semi", 2, "lwe64-p2"), ("shamir", 3, "lwe53-p16"), ("mascot", 2, "lwe64-p2"))
EXACT = (("round_ltz_circuit", 8, 2), ("round_ltz_table", 8, 2), ("round_ltz_table", 4, 3))


def interval(fraction: float, items: int) -> tuple[float, float]:
    """Failures among ``items`` decryptions that 99 % of all runs have."""
    spread = QUANTILE * math.sqrt(items * fraction * (1 - fraction)) + 0.5
    return items * fraction - spread, items * fraction + spread


def check(row: Configuration, fraction: float = 0.0) -> tuple[str, bool]:
    """Runs a row; returns its line, and whether the failures are as many as they should be."""
    _, values = measure(row, noise=fraction)
    wrong, (low, high) = int(values["wrong"]), interval(fraction, row.items) if fraction else (0, 0)
    right = low <= wrong <= high
    line = (
        f"exactness: variant={values['variant']} protocol={values['protocol']} n={row.parties} parameters={row.parameters} "
        f"noise={f'{fraction:.6g}D' if fraction else 'D/2'} decryptions={row.items} wrong={wrong} "
        f"expected={low:.0f}..{high:.0f} {'ok' if right else 'WRONG'}"
    )
    return line, right


def main() -> int:
    """Runs every row; 1 if one of them is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=1_000_000, help="decryptions of each row (default: 1000000, which takes hours)")
    parser.add_argument("--only", default="", help="rows whose variant, parameters or committee contain this text")
    options = parser.parse_args()
    good = True
    for protocol, parties, parameters in COMMITTEES:
        # Not wide tables with MACs: some 2,400 entries a decryption, made from bits that are converted one by one.
        shapes = [shape for shape in EXACT if protocol not in AUTHENTICATED or shape[:2] != ("round_ltz_table", 8)]
        rows = [(Configuration(*shape, parameters, protocol, parties, options.items), 0.0) for shape in shapes]
        rows += [(Configuration("round_mask_open", 8, 2, parameters, protocol, parties, options.items), f) for f in FRACTIONS]
        for row, fraction in rows:
            if options.only in f"{row.rounding} {parameters} {protocol} {parties}":
                line, right = check(row, fraction)
                good &= right
                console.print(line, markup=False, soft_wrap=True)
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
