"""The examples of test_front_door, test_bit_numbers and test_fixed print the same on MP-SPDZ."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from .. import test_bit_numbers, test_fixed, test_front_door
from ..running import RING, printed
from .spdz import NEEDED, Work, work

__all__ = ["work"]

EXAMPLES: list[Callable[..., None]] = [
    test_front_door.test_bits_in_memory,
    test_front_door.test_conditions_that_are_functions,
    test_front_door.test_loops_that_end_in_the_middle,
    test_front_door.test_memory,
    test_front_door.test_named_tuples,
    test_front_door.test_numbers_of_text,
    test_front_door.test_parts_of_arrays,
    test_front_door.test_reductions,
    test_front_door.test_tapes,
    test_bit_numbers.test_a_program_sees_vectors_under_the_older_name,
    test_bit_numbers.test_matrices_of_bits,
    test_bit_numbers.test_numbers_on_every_protocol_with_bits,
    test_bit_numbers.test_operations_of_bits,
    test_fixed.test_on_rings,
]
DIVISIONS = """
for a, b in (-6, 2), (6, -2), (-7, 2), (7, -2), (-7, -2), (0, -5), (-1, 100), (1000, 7), (-16383, 1):
    print_str('%s ', sint(a).int_div(sint(b), 15).reveal())
    print_str('%s ', sint(a).int_mod(sint(b), 15).reveal())
print_ln('')
"""


@NEEDED
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.__name__)
def test_the_same_on_mp_spdz(work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, example: Callable[..., None]) -> None:
    """The test itself, with MP-SPDZ in the place of the embedded engine."""

    def on_mp_spdz(folder: Path, source: str, *_: Any, numbers: Mapping[int, Sequence[int]] | None = None) -> list[str]:
        for party, given in (numbers or {}).items():
            (work.folder / "Player-Data" / f"Input-P{party}-0").write_text(" ".join(map(str, given)))
        return work.lines("ring", source)

    monkeypatch.setattr(inspect.getmodule(example), "printed", on_mp_spdz)
    example(tmp_path, *[RING for name in inspect.signature(example).parameters if name == "backend"])


@NEEDED
def test_division_rounds_down(work: Work) -> None:
    pairs = [(-6, 2), (6, -2), (-7, 2), (7, -2), (-7, -2), (0, -5), (-1, 100), (1000, 7), (-16383, 1)]
    assert work.lines("ring", DIVISIONS)[0].split() == [str(x) for a, b in pairs for x in (a // b, a % b)]


CHOICE = """
t, many = sbits.get_type(3), sbitintvec.get_type(4)
a, b, c = many([sbits.get_type(4)(x) for x in (1, 2, 7)]), many([sbits.get_type(4)(x) for x in (6, 3, 0)]), t(5)
print_ln('%s', [x.reveal() for x in c.if_else(a, b).elements()])
print_ln('%s', [x.reveal() for x in many.from_vec([c.if_else(x, y) for x, y in zip(a.v, b.v)]).elements()])
"""


@NEEDED
def test_choices_between_rows_of_bits(work: Work, tmp_path: Path) -> None:
    """Right here; on MP-SPDZ row by row only."""
    assert printed(tmp_path, CHOICE) == ["[1, 3, 7]"] * 2
    wrong, right = work.lines("ring", CHOICE)
    assert right == "[1, 3, 7]" != wrong


@NEEDED
def test_functions_count_as_true_in_branches(work: Work) -> None:
    assert work.lines("ring", "@if_e(and_(lambda: regint(0)))\ndef _():\n    print_ln('yes')\n@else_\ndef _():\n    print_ln('no')\n") == ["yes"]
