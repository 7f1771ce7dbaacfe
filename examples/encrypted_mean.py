"""The mean of a column of a CSV file, under encryption (CKKS).

Three parties make the keys. The owner of the table encrypts the column, and stock SEAL adds it up. The parties decrypt only the sum.

    python encrypted_mean.py                      # a table of random heights
    python encrypted_mean.py heights.csv metres   # a column of your table: at most 256 numbers of absolute value up to 4
"""

from __future__ import annotations

import csv
import sys
import tempfile
from pathlib import Path

import keyquorum
import numpy as np

PARAMETERS = keyquorum.load_parameters("ckks-4096")  # sums, no product
SLOTS = PARAMETERS.ring_degree // 2
ROWS, LARGEST = 256, 4.0
"""Largest number of rows, and largest absolute value: a sum is at most 2^10, and the set can encode values below 2^11."""


def random_table(path: Path, rows: int = 200) -> None:
    """Writes a CSV file with the columns name and metres."""
    heights = np.random.default_rng().normal(1.7, 0.1, rows)
    path.write_text("name,metres\n" + "".join(f"person {i},{height:.2f}\n" for i, height in enumerate(heights)))


def read_column(path: Path, column: str) -> list[float]:
    """The numbers of a column, checked."""
    try:
        with path.open(newline="") as file:
            values = [float(row[column]) for row in csv.DictReader(file)]
    except (OSError, KeyError, TypeError, ValueError) as error:
        sys.exit(f"error: {path}: no column {column!r} of numbers: {error!r}")
    if not 1 <= len(values) <= ROWS or not all(abs(value) <= LARGEST for value in values):
        sys.exit(f"error: {path}: choose 1 to {ROWS} numbers between -{LARGEST:g} and {LARGEST:g}")
    return values


def encrypted_mean(folder: Path, values: list[float]) -> tuple[float, float]:
    """The mean that the receiver learns, and the standard deviation of the error that the flooding causes."""
    period = 1 << (len(values) - 1).bit_length()  # the smallest power of two that holds all values
    steps = [1 << k for k in range(period.bit_length() - 1)]
    committee = keyquorum.init(folder / "committee", parties=3, protocol="rep-field")
    elements = keyquorum.galois_elements(PARAMETERS, steps)
    keyquorum.keygen(committee, "key", PARAMETERS, relin=False, galois_elements=elements)

    # The column, padded with zeros, repeats over all slots: rotations then give the whole sum in every slot, and no slot has a partial sum.
    padded = np.pad(values, (0, period - len(values)))
    keyquorum.encrypt(committee, "key", np.tile(padded, SLOTS // period), folder / "sum.ct", bound=LARGEST)
    for step in steps:
        keyquorum.evaluate(committee, "key", "rotate", [folder / "sum.ct"], folder / "rotated.ct", step)
        keyquorum.evaluate(committee, "key", "add", [folder / "sum.ct", folder / "rotated.ct"], folder / "sum.ct")

    done = keyquorum.decrypt(committee, "key", [folder / "sum.ct"], receiver=0, outputs=[folder / "sum.plain"])
    assert done.precisions is not None
    total = keyquorum.decode(committee, "key", folder / "sum.plain")
    return float(total.mean()) / len(values), done.precisions[0].deviation / SLOTS**0.5 / len(values)  # errors of slots average out


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        path, column = (Path(sys.argv[1]), sys.argv[2]) if len(sys.argv) == 3 else (folder / "table.csv", "metres")
        if len(sys.argv) != 3:
            random_table(path)
        values = read_column(path, column)
        mean, deviation = encrypted_mean(folder, values)
    clear = float(np.mean(values))
    print(f"mean of {len(values)} values of {column!r}: {mean:.6f} under encryption, {clear:.6f} in the clear")
    print(f"the flooding explains errors of deviation {deviation:.1e}, this one is {mean - clear:.1e}")
    assert abs(mean - clear) < 8 * deviation, "the error is larger than the flooding explains"


if __name__ == "__main__":
    main()
