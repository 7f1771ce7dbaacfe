"""Different behaviour of MP-SPDZ (0.4.2, commit 3a0a7b1d): the rows of "Differences" and "What is refused" in docs/pages/dsl.md that
MP-SPDZ does not refuse. If a test fails, MP-SPDZ has changed, and the page must change as well."""

from __future__ import annotations

from pathlib import Path

import pytest
from keyquorum.model.errors import ProgramError

from ..running import EMULATE, EMULATE_FIELD, RING, printed, run
from .spdz import FIELD, NEEDED, Q60, Work, work

__all__ = ["work"]


@NEEDED
def test_popcnt_loses_a_carry(work: Work) -> None:
    """For the numbers of rows that are refused here, and no others up to 64."""
    text = """
        for m in range(1, 65):
            counted = sbitvec.from_vec([sbit(1) for i in range(m)]).popcnt()
            print_ln('%s %s', m, sint.bit_compose(counted.v).reveal())
        """
    counts = dict(map(int, line.split()) for line in work.lines("ring", text))
    assert [m for m in range(1, 65) if counts[m] != m] == [2, 4, 5, 6, 8, 9, 10]


def test_popcnt_here(tmp_path: Path) -> None:
    text = "print_ln('%s', sint.bit_compose(sbitvec.from_vec([sbits.get_type(2)(3) for i in range({})]).popcnt().v).reveal())"
    for m in (1, 3, 7, 11, 12, 31):
        assert printed(tmp_path, text.format(m), RING) == [f"[{m}, {m}]"]
    for m in (2, 4, 5, 6, 8, 9, 10):
        with pytest.raises(ProgramError, match=f"popcnt of {m} rows is wrong on MP-SPDZ"):
            run(tmp_path, text.format(m), RING)


INPUT_ELEMENT = """
x = sint.get_input_from(0, size=3, binary=True)
{}
print_ln('%s %s', x.reveal(), x[1].reveal())
z = sint.get_input_from(0, size=2, binary=True)
print_ln('%s', z.reveal())
"""


@NEEDED
def test_inputs_taken_apart_are_lost(work: Work) -> None:
    work.inputs({0: [1, 2, 3, 4, 5]})
    assert work.lines("ring", INPUT_ELEMENT.format("")) == ["[0, 0, 0] 0", "[4, 5]"]
    assert work.lines("ring", INPUT_ELEMENT.format("break_point()")) == ["[1, 2, 3] 2", "[4, 5]"]


def test_inputs_taken_apart_here(tmp_path: Path) -> None:
    assert printed(tmp_path, INPUT_ELEMENT.format(""), RING, private={0: [1, 2, 3, 4, 5]}) == ["[1, 2, 3] 2", "[4, 5]"]


PERSONAL = """
sint([88, 100, 78]).reveal_to(1).binary_output()
{}
sint([1, 2, 3]).reveal_to(1).binary_output()
"""


@NEEDED
def test_personal_outputs_of_lists_are_lost(work: Work) -> None:
    assert not work.run("ring", PERSONAL.format("")).failed
    assert work.output(1) != [88, 100, 78, 1, 2, 3]
    assert not work.run("ring", PERSONAL.format("break_point()")).failed
    assert work.output(1) == [88, 100, 78, 1, 2, 3]


def test_personal_outputs_here(tmp_path: Path) -> None:
    parties = run(tmp_path, PERSONAL.format(""), RING)
    assert [o.tolist() for o in parties[1].io.personal_outputs] == [[88, 100, 78], [1, 2, 3]]


ORDER = """
A = Array.create_from(sint.get_input_from(0, size=2, binary=True))
{}
A[0:2:2] = cint(50, size=1)
{}
x = sint.get_input_from(1, size=1, binary=True)
print_ln('%s %s', A.reveal(), x.reveal())
"""


@NEEDED
def test_memory_accesses_change_places(work: Work) -> None:
    work.inputs({0: [1, 2], 1: [9]})
    assert work.lines("ring", ORDER.format("", "")) == ["[1, 2] 9"]
    assert work.lines("ring", ORDER.format("break_point()", "break_point()")) == ["[50, 2] 9"]


def test_memory_accesses_here(tmp_path: Path) -> None:
    assert printed(tmp_path, ORDER.format("", ""), RING, private={0: [1, 2], 1: [9]}) == ["[50, 2] 9"]


DIVISION = """
known = regint(-24)
@for_range_opt(2)
def _(i):
    print_ln('%s %s', regint(-24) // 64, regint(-24) % 64)
unknown = regint(sint(-24).reveal())
print_ln('%s %s', unknown // 64, unknown % 64)
"""


@NEEDED
def test_known_quotients_are_rounded_down(work: Work) -> None:
    """By the optimizer, where it looks at them; at run time they are rounded towards zero."""
    assert work.lines("ring", DIVISION) == ["-1 40", "-1 40", "0 -24"]


def test_quotients_here(tmp_path: Path) -> None:
    assert printed(tmp_path, DIVISION, EMULATE) == ["0 -24"] * 3


MIDDLE = f"""
x = cint({Q60 // 2})
print_ln('%s %s %s', x, regint(x), x < 0)
x.binary_output()
"""


@NEEDED
def test_the_middle_of_a_field_is_negative(work: Work) -> None:
    """The same on both engines: (q-1)/2 is printed as it is, and counts as -(q+1)/2 elsewhere."""
    assert work.lines("rep-field", MIDDLE, run_time=FIELD) == [f"{Q60 // 2} {-(Q60 // 2) - 1} 1"]
    assert work.output() == [-(Q60 // 2) - 1]


def test_the_middle_of_a_field_is_negative_here(tmp_path: Path) -> None:
    assert printed(tmp_path, MIDDLE, EMULATE_FIELD) == [f"{Q60 // 2} {-(Q60 // 2) - 1} 1"]


ACCEPTED = [
    ("print_ln('%s', sint([1, 0]).bit_or(0))", "0", "gives 0 on MP-SPDZ"),
    ("x = sint([1, 2, 3])\nx.update(sint(7))\nprint_ln('%s', x.reveal())", "[7, 2, 3]", "cannot update a vector of size 3"),
    ("x = sint.Array(3)\nx.assign([1, 2, 3])\nprint_ln('%s', x[-2:].reveal())", None, "negative bound"),
    ("k = 0\n@for_range(3)\ndef _(i):\n    global k\n    k += 1\nprint_ln('%s', k)", "1", "'k' cannot change"),
    ("x = sbits.get_type(3)(5) & sbits.get_type(4)(12)\nprint_ln('%s %s', x.n, x.reveal())", "3 -4", "different vector sizes"),
    ("print_ln('%s', sint(5, size=65)[64].reveal())", "5", "taking a vector of 65 elements apart"),
    ("x = cbits.get_type(3)(5)\nprint_ln('%s', x == 5)", "1", "comparing cbits3 with int is outside the supported subset"),
    ("print_ln_to(0, '%s', MemValue(5))", None, "print_ln_to takes numbers and vectors"),
    ("M = sint.Matrix(1, 2)\nM.assign_part_vector(cint([1, 2]))\nbreak_point()\nprint_ln('%s', M.reveal_nested())", "[[0, 0]]",
     "assign_part_vector takes a sint vector"),
    ("import random\nprint_ln('%s', random.randrange(1))", "0", "every party would draw other numbers"),
]  # fmt: skip


@NEEDED
@pytest.mark.parametrize(("text", "shown", "refusal"), ACCEPTED, ids=[r for _, _, r in ACCEPTED])
def test_refused_here_alone(work: Work, tmp_path: Path, text: str, shown: str | None, refusal: str) -> None:
    done = work.run("ring", text)
    assert not done.failed, done.output[-1000:]
    assert shown is None or done.printed[0].splitlines() == [shown]


@pytest.mark.parametrize(("text", "shown", "refusal"), ACCEPTED, ids=[r for _, _, r in ACCEPTED])
def test_refused_here(tmp_path: Path, text: str, shown: str | None, refusal: str) -> None:
    with pytest.raises(ProgramError, match=r"program.mpc:\d+: ") as error:
        run(tmp_path, text, EMULATE)
    assert refusal in str(error.value)


@NEEDED
def test_opened_bits_are_numbers_of_the_field(work: Work) -> None:
    """& of opened bits goes through the field, where 64 of them do not fit: refused here."""
    text = f"x = cbits.get_type(64)({2 * Q60 + 5})\nprint_ln('%s', (x & x).to_regint())"
    assert work.lines("rep-field", text, run_time=FIELD) != [str(2 * Q60 + 5)]


@NEEDED
def test_loop_variables_may_be_python_numbers(work: Work) -> None:
    """In for_range_multithread, where all iterations fit; here they are regint always."""
    text = "@for_range_multithread(2, 2, 1)\ndef _(i):\n    print('variable', type(i).__name__)"
    assert "variable int" in work.run("ring", text).output


def test_loop_variables_here(tmp_path: Path) -> None:
    text = "@for_range_multithread(2, 2, 1)\ndef _(i):\n    print(type(i).__name__)"
    assert printed(tmp_path, text, EMULATE) == ["regint"]


@NEEDED
def test_regint_vectors_of_lists_may_print_zero(work: Work) -> None:
    """print_ln shows the first element of a regint vector on both engines; a vector just made of a list is not there yet."""
    assert work.lines("ring", "print_ln('%s', regint([7, 8]) + 1)") == ["8"]
    assert work.lines("ring", "print_ln('%s', regint([7, 8]))") == ["0"]
