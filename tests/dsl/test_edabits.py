"""edaBits with MACs: the first use decides how they are made; their cost and correctness."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from .running import MASCOT, SEMI_2K, SPDZ_2K, Backend, name, run

MACS = pytest.mark.parametrize("backend", [SPDZ_2K, MASCOT], ids=name)
SIZE = 100
LANES = 128
CHECK = """
print_ln('%s', ((sint.bit_compose(rows) - e) * sint.get_random(size={size})).sum().reveal())
print_ln('%s', [row.reveal().n for row in rows] == [{size}] * {length})
"""


def edabits(tmp_path: Path, backend: Backend, length: int, size: int, first: str) -> dict[str, tuple[int, int]]:
    """Runs a program that uses the numbers, or a row, first, and checks both. Returns the correlated randomness that was used."""
    source = f"e, rows = sint.get_edabit({length}, False, size={size})\nuse = {first}\nuse.reveal()\n"
    parties = run(tmp_path, source + CHECK.format(size=size, length=length), backend)
    assert all(party.lines == ["0", "True"] for party in parties)
    assert parties[0].preprocessed == parties[1].preprocessed
    return parties[0].preprocessed


@MACS
def test_numbers_that_come_first_are_made_with_their_bits(tmp_path: Path, backend: Backend) -> None:
    used = edabits(tmp_path, backend, 12, SIZE, "e")["edabits"][1]
    assert used == LANES


@MACS
def test_rows_that_come_first_are_converted(tmp_path: Path, backend: Backend) -> None:
    material = edabits(tmp_path, backend, 12, SIZE, "rows[3]")
    assert material["edabits"] == (0, 0)
    assert material["bits"][1] >= 12 * LANES


@MACS
@pytest.mark.parametrize(("length", "size"), [(3, SIZE), (12, 7), (59, SIZE)])
def test_few_short_and_very_long_ones_come_from_single_bits(tmp_path: Path, backend: Backend, length: int, size: int) -> None:
    """Those of 59 bits are too long for tests that hide them in a field of 60."""
    material = edabits(tmp_path, backend, length, size, "e")
    batched = backend == SPDZ_2K and length == 59
    assert material["edabits"][1] == (LANES if batched else 0)


@MACS
def test_rows_alone_are_random_bits(tmp_path: Path, backend: Backend) -> None:
    parties = run(tmp_path, f"rows = sint.get_edabit(12, False, size={SIZE})[1]\nprint_ln('%s', rows[5].reveal().n)", backend)
    assert parties[0].lines == [str(SIZE)]
    assert parties[0].preprocessed["edabits"] == parties[0].preprocessed["bits"] == (0, 0)


@pytest.mark.parametrize("size", [5, 64])
def test_comparisons_take_an_opening_the_ands_and_a_conversion(tmp_path: Path, size: int) -> None:
    source = f"""
        x = sint([i - {size // 2} for i in range({size})])
        print_ln('%s', (x < 3).sum().reveal())
        """
    party = run(tmp_path, source, SPDZ_2K)[0]
    assert party.lines == [str(size // 2 + 3)]
    # The last round is that of the printed values.
    assert party.stats["rounds"] - party.stats["offline_rounds"] == 1 + math.ceil(math.log2(63)) + 1 + 1
    assert (party.preprocessed["edabits"][1] > 0) == (size == 64)


@pytest.mark.parametrize(("backend", "default"), [(SPDZ_2K, "1"), (MASCOT, "1"), (SEMI_2K, "0")])
def test_programs_are_told(tmp_path: Path, backend: Backend, default: str) -> None:
    source = "print_ln('%s', int(program.use_edabit()))\nprogram.use_edabit(False)\nprint_ln('%s', int(program.use_edabit()))"
    assert run(tmp_path, source, backend)[0].lines == [default, "0"]
