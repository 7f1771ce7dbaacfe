"""Bits as numbers: sbits of several lengths, sbitint, sbitintvec, against integers in clear text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .running import BINARY, RING, Backend, name, printed, run

OPERATIONS: list[tuple[str, Callable[[int, int], int]]] = [
    ("a + b", lambda a, b: a + b),
    ("a - b", lambda a, b: a - b),
    ("a * b", lambda a, b: a * b),
    ("-a", lambda a, b: -a),
    ("abs(a)", lambda a, b: abs(a)),
    ("a.max(b)", max),
    ("a.min(b)", min),
    ("a << 3", lambda a, b: a << 3),
    ("(a < b).if_else(a, b) + b", lambda a, b: min(a, b) + b),
]
COMPARISONS: list[tuple[str, Callable[[int, int], bool]]] = [
    ("a < b", lambda a, b: a < b),
    ("a <= b", lambda a, b: a <= b),
    ("a > b", lambda a, b: a > b),
    ("a >= b", lambda a, b: a >= b),
    ("a == b", lambda a, b: a == b),
    ("a != b", lambda a, b: a != b),
    ("a.less_than(b)", lambda a, b: a < b),
    ("a.equal(b)", lambda a, b: a == b),
]
ANY_PATH = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def signed(value: int, n: int) -> int:
    """The number of n bits in two's complement that a value is modulo 2^n; a single bit is 0 or 1."""
    low = value % (1 << n)
    return low - (1 << n) if n > 1 and low >> (n - 1) else low


@ANY_PATH
@given(
    n=st.integers(2, 64),
    pairs=st.lists(st.tuples(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(-(1 << 63), (1 << 63) - 1)), min_size=1, max_size=5),
)
def test_numbers_in_rows_and_packed(tmp_path: Path, n: int, pairs: list[tuple[int, int]]) -> None:
    """All operations, as columns of one sbitintvec and one by one as sbitint."""
    pairs = [(signed(a, n), signed(b, n)) for a, b in pairs]
    expressions = [e for e, _ in OPERATIONS] + [e for e, _ in COMPARISONS]
    source = f"""
        from Compiler.GC.types import sbits, sbitint, sbitintvec
        t, one, many = sbits.get_type({n}), sbitint.get_type({n}), sbitintvec.get_type({n})
        pairs = {pairs!r}
        a, b = (many([t(p[i]) for p in pairs]) for i in (0, 1))
        for y in {", ".join(expressions)}:
            print_ln('%s', [x.reveal() for x in y.elements()])
        for p in pairs:
            a, b = one(p[0]), one(p[1])
            print_ln('%s', [y.reveal() for y in ({", ".join(expressions)})])
        """
    lines = [eval(line) for line in printed(tmp_path, source)]
    expected = [[signed(f(a, b), n) for a, b in pairs] for _, f in OPERATIONS]
    expected += [[int(g(a, b)) for a, b in pairs] for _, g in COMPARISONS]
    assert lines[: len(expected)] == expected
    assert lines[len(expected) :] == [[row[i] for row in expected] for i in range(len(pairs))]


@pytest.mark.parametrize("backend", BINARY, ids=name)
def test_numbers_on_every_protocol_with_bits(tmp_path: Path, backend: Backend) -> None:
    source = """
        t, many = sbits.get_type(12), sbitintvec.get_type(12)
        a, b = many([t(5), t(-700), t(2047)]), many([t(-3), t(-700), t(1)])
        for y in a + b, a - b, a * b, a < b, a == b, 2 - a, a + 1:
            print_ln('%s', [x.reveal() for x in y.elements()])
        """
    assert printed(tmp_path, source, backend) == [
        "[2, -1400, -2048]", "[8, 0, 2046]", f"[-15, {signed(490000, 12)}, 2047]", "[0, 0, 0]", "[0, 1, 0]",
        "[-3, 702, -2045]", "[6, -699, -2048]",
    ]  # fmt: skip


def test_a_program_sees_vectors_under_the_older_name(tmp_path: Path) -> None:
    """As on MP-SPDZ: sbitint is sbitintvec in a program, and another type in Compiler.GC.types."""
    source = """
        print_ln('%s', sbitint is sbitintvec)
        from Compiler.GC.types import sbitint
        print_ln('%s %s', sbitint is sbitintvec, sbitint.get_type(7)(-3).reveal())
        """
    assert printed(tmp_path, source) == ["True", "False -3"]


@ANY_PATH
@given(m=st.integers(1, 70), n=st.integers(1, 70), data=st.data())
def test_bits_of_different_lengths(tmp_path: Path, m: int, n: int, data: Any) -> None:
    """XOR extends with zeros, conversions cut or extend, and so do opened bits."""
    a, b = data.draw(st.integers(0, (1 << m) - 1)), data.draw(st.integers(0, (1 << n) - 1))
    source = f"""
        a, b = sbits.get_type({m})({a}), sbits.get_type({n})({b})
        for y in a ^ b, a + b, a - b, sbits.get_type({n})(a), a ^ {b}:
            print_ln('%s %s', y.n, y.reveal())
        c, d = a.reveal(), b.reveal()
        for y in c ^ d, cbits.get_type({n})(c), c + d, c - d:
            print_ln('%s %s', y.n, y)
        """
    longest = max(m, n)
    xor, cut = f"{longest} {signed(a ^ b, longest)}", f"{n} {signed(a, n)}"
    length = max(m, b.bit_length())
    shown = [
        xor,
        xor,
        xor,
        cut,
        f"{length} {signed(a ^ b, length)}",
        xor,
        cut,
        f"{longest} {signed(a + b, longest)}",
        f"{longest} {signed(a - b, longest)}",
    ]
    assert printed(tmp_path, source) == shown


def test_operations_of_bits(tmp_path: Path) -> None:
    source = """
        t = sbits.get_type(6)
        a, b = t(0b101100), t(0b100110)
        shown = [a | b, sbit(1) * a, a * sbit(0), sbit(1) * 5, a == b, a == t(0b101100), a != b, a.equal(b), t(3) << 1,
                 sbits.compose([t(5), 2, t(1)], 3), sbits.new(5, 9), sbit(1).if_else(2, 1), a.right_shift(2, 5)]
        for y in shown:
            print_ln('%s %s', y.n, y.reveal())
        print_ln('%s', [y.reveal() for y in sbits.trans([t(1), t(3), t(2)])])
        c = cbits.get_type(6)(0b101100)
        for y in c >> 2, c << 2, -c, 5 - c, c & 12, cbits.new(5):
            print_ln('%s %s', y.n, y)
        c.print_reg()
        c.print_reg('abc')
        """
    expected = [
        (6, 0b101110), (6, 0b101100), (6, 0), (3, 5), (1, 0), (1, 1), (1, 1), (1, 0), (7, 6), (9, 5 + (2 << 3) + (1 << 6)), (9, 5), (2, 2), (3, 3),
    ]  # fmt: skip
    clear = [(4, 0b1011), (8, 0b10110000), (6, -0b101100), (6, 5 - 0b101100), (6, 12), (3, 5)]
    assert printed(tmp_path, source) == [
        *(f"{n} {signed(value, n)}" for n, value in expected),
        "[3, -2, 0, 0, 0, 0]",
        *(f"{n} {signed(value, n)}" for n, value in clear),
        "Reg[0] = 0x000000000000002c #     ",
        "Reg[0] = 0x000000000000002c # abc ",
    ]


def test_the_length_of_untyped_bits_is_the_runs(tmp_path: Path) -> None:
    """sbits.n is a setting of the run that makes it, and of no other."""
    assert printed(tmp_path, "sbits.n = 9\nprint_ln('%s %s %s', sbits(3).n, sbits.n, cbits(3).n)") == ["9 9 40"]
    assert printed(tmp_path, "print_ln('%s %s', sbits(3).n, sbits.n)") == ["40 40"]


def test_matrices_of_bits(tmp_path: Path) -> None:
    source = """
        t = sbits.get_type(3)
        m = sbitvec.from_matrix([[t(1), t(2)], [t(3), t(7)]])
        print_ln('%s', [row.reveal() for row in m.v])
        x = sbitvec.get_type(5)(9)
        print_ln('%s %s', len(x.v), [row.reveal() for row in x.v])
        print_ln('%s', sbitvec.get_type(5)([t(3), t(5)]).reveal())
        print_ln('%s', sbitintvec.get_type(5)([t(3), t(5)]).reveal())
        print_ln('%s', (sbitvec([t(3), t(5)]) ^ sbitvec([t(4), t(4)])).reveal())
        y = sbitvec([t(1)] * 100).elements()
        print_ln('%s %s', len(y), y[99].reveal())
        """
    assert printed(tmp_path, source) == ["[1, -2, 0, -1, -1, -2]", "5 [1, 0, 0, 1, 0]", "[3, 5]", "[3, -3]", "[-1, 1]", "100 1"]


def test_a_comparison_takes_the_rounds_it_says(tmp_path: Path) -> None:
    """16 bits: one level of ANDs, ceil(log2 16) for the borrow, and the opening."""
    source = """
        t = sbitintvec.get_type(16)
        a, b = (t([sbits.get_type(16)(sint.get_random_int(15)) for _ in range(8)]) for _ in range(2))
        (a.v[0] ^ b.v[0]).reveal().to_regint()
        start_timer(1)
        print_ln('%s', len((a < b).elements()[0].reveal().bit_decompose()))
        stop_timer(1)
        """
    result = run(tmp_path, source, RING)[0].result
    assert result is not None and 1 <= result.timers[1].rounds <= 7
