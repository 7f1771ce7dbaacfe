"""Fixed-point numbers, against fractions in clear text."""

from __future__ import annotations

from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from keyquorum.dsl import ProgramOptions
from keyquorum.model.errors import ProgramError

from .running import EMULATE, FIELD, RING, SEMI_2K, Backend, name, printed, run

ANY_PATH = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
F = 16


def scaled(x: float) -> int:
    return round(x * (1 << F))


@ANY_PATH
@given(pairs=st.lists(st.tuples(st.floats(-100, 100), st.floats(-100, 100)), min_size=1, max_size=4), nearest=st.booleans())
def test_operations(tmp_path: Path, pairs: list[tuple[float, float]], nearest: bool) -> None:
    """Sums are exact, products rounded down (or to the nearest), quotients towards zero; the same of secret and public numbers."""
    pairs = [(a, b if scaled(b) else 1.5) for a, b in pairs]
    source = f"""
        sfix.round_nearest = {nearest}
        left, right = {[a for a, _ in pairs]}, {[b for _, b in pairs]}
        a, b, c, d = sfix(left), sfix(right), sfix(left).reveal(), sfix(right).reveal()
        for y in a + b, a - d, a * b, c * b, c * d, -a, 1 - a, a * 3, a + 2, a * sint(2), left[0] * b:
            print_ln('%s', y.reveal().v)
        for y in a < b, a <= d, a == b, a != b, a > b, a >= b, c < d, c == d:
            print_ln('%s', cint(y.reveal()))
        """
    lines = [eval(line) for line in printed(tmp_path, source)]
    integers = [(scaled(a), scaled(b)) for a, b in pairs]

    def cut(x: int) -> int:
        return (x + nearest * (1 << (F - 1))) >> F

    columns = [
        (a + b, a - b, cut(a * b), cut(a * b), cut(a * b), -a, (1 << F) - a, 3 * a, a + (2 << F), 2 * a, cut(integers[0][0] * b),
         int(a < b), int(a <= b), int(a == b), int(a != b), int(a > b), int(a >= b), int(a < b), int(a == b))
        for a, b in integers
    ]  # fmt: skip
    expected = [[int(column[i]) for column in columns] for i in range(len(columns[0]))]
    assert lines == [row if len(row) > 1 else row[0] for row in expected]


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(a=st.floats(-100, 100), b=st.floats(-50, 50).filter(lambda b: abs(b) > 0.01))
def test_quotients(tmp_path: Path, a: float, b: float) -> None:
    source = f"for y in sfix({a}) / sfix({b}), cfix({a}) / cfix({b}), {a} / sfix({b}), sfix({a}) / {b}:\n    print_ln('%s', y.reveal().v)"
    exact = Fraction(scaled(a) << F, scaled(b))
    towards_zero = floor(exact) if exact >= 0 else -floor(-exact)
    assert printed(tmp_path, source) == [str(towards_zero)] * 4


@pytest.mark.parametrize("backend", [EMULATE, RING, SEMI_2K], ids=name)
def test_on_rings(tmp_path: Path, backend: Backend) -> None:
    source = """
        sfix.set_precision(8, 24)
        print_ln('%s %s', sfix.f, sfix.k)
        A = sfix.Matrix(2, 2)
        A.assign([[1.5, -2], [0.25, 3]])
        B = A * A
        B.print_reveal_nested()
        x = sfix.Array(2)
        x.assign([2, 0.5])
        print_ln('%s %s', A.dot(x).reveal(), sum(x).reveal())
        print_ln('%s', (sfix(7) / sfix(2)).reveal())
        m = MemValue(sfix(0.75))
        m.write(m + 1)
        print_ln('%s', m.reveal())
        print_ln('%s', (x[0] < x[1]).if_else(x[0], x[1]).reveal())
        print_float_precision(3)
        print_ln('%s %s', cfix(3.14159), [cfix(-100.25), cfix(1)])
        t = sfix()
        t.load_int(sint(5))
        print_ln('%s', t.reveal())
        """
    assert printed(tmp_path, source, backend) == [
        "8 24", "[[1.75, -9], [1.125, 8.5]]", "[2, 2] 2.5", "3.5", "1.75", "0.5", "3.14 [-100, 1]", "5",
    ]  # fmt: skip


@pytest.mark.parametrize("backend", [EMULATE, RING], ids=name)
def test_decimal_inputs(tmp_path: Path, backend: Backend) -> None:
    """Rounded to the nearest multiple of 2^-16; numbers of the same file as integers."""
    source = """
        x = sfix.get_input_from(0, size=3)
        print_ln('%s', x.reveal().v)
        print_ln('%s', sint.get_input_from(0).reveal())
        """
    text = "1.5 -0.1 2e2 -7"
    from keyquorum.dsl.files.program_io import as_number

    numbers = [as_number(t) for t in text.split()]
    assert printed_with_numbers(tmp_path, source, backend, numbers) == ["[98304, -6554, 13107200]", "-7"]
    with pytest.raises(ProgramError, match=r"the input 1\.5 of party 0 is no integer: use sfix\.get_input_from"):
        printed_with_numbers(tmp_path, "sint.get_input_from(0)", backend, numbers)


def printed_with_numbers(tmp_path: Path, source: str, backend: Backend, numbers: list[Any]) -> list[str]:
    return printed(tmp_path, source, backend, numbers={0: numbers})


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("sfix.set_precision(16, 8)", "0 <= f < k"),
        ("sfix.f = 3", "sfix.f cannot be changed: use set_precision"),
        ("cfix(sfix(1))", "cannot convert the secret sfix to cfix: reveal it first"),
        ("cfix([1, 2])", "cfix of a list is outside the supported subset"),
        ("sfix(40000)", "the number 40000 does not fit 31 bits with 16 after the point"),
        ("sfix(float('inf'))", "inf is no fixed-point number"),
        ("cfix(1) / cfix(0)", "division of a cfix by zero"),
        ("sfix([1, 2]) + sfix([1, 2, 3])", "different vector sizes of operands: 2/3"),
        ("sfix(1).sqrt()", "sfix.sqrt is outside the supported subset"),
        ("if sfix(1) < 2: pass", "cannot branch on secret values"),
        ("print_ln('%s', sfix(1))", "cannot print secret value"),
        ("print_float_precision(0)", "a positive compile-time integer"),
    ],
)
def test_refused(tmp_path: Path, statement: str, message: str) -> None:
    with pytest.raises(ProgramError) as caught:
        run(tmp_path, statement)
    assert message in str(caught.value)


def test_products_over_a_field_need_room(tmp_path: Path) -> None:
    """2k bits for a product: with a 60-bit prime f = 4 and k = 9 fit."""
    field = ("emulate", 1, FIELD)
    with pytest.raises(ProgramError, match="needs a prime of"):
        run(tmp_path, "(sfix(1) * sfix(2)).reveal()", field)
    source = "sfix.set_precision(4, 9)\nprint_ln('%s', (sfix(1.5) * sfix(2.25)).reveal())"
    assert printed(tmp_path, source, field, options=ProgramOptions(field=18)) == ["3.375"]


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pairs=st.lists(st.tuples(st.integers(-(1 << 14), 1 << 14), st.integers(-(1 << 14), 1 << 14).filter(bool)), min_size=1, max_size=4))
def test_integer_division(tmp_path: Path, pairs: list[tuple[int, int]]) -> None:
    """int_div rounds down, int_mod is what it leaves: as // and % of Python."""
    source = f"""
        a, b = sint({[a for a, _ in pairs]}), sint({[b for _, b in pairs]})
        print_ln('%s', list(a.int_div(b, 16).reveal()))
        print_ln('%s', list(a.int_mod(b, 16).reveal()))
        """
    assert printed(tmp_path, source) == [str([a // b for a, b in pairs]), str([a % b for a, b in pairs])]
