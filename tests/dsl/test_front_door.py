"""Frequent constructs of MP-SPDZ's users: text inputs, threads, loops, memory, named tuples, circuits from files, matrices of lists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from keyquorum.model.errors import ProgramError

from .running import ALL, BINARY, EMULATE, FIELD, Q60, RING, SHAMIR, Backend, name, printed, run

ANY_PATH = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


# -- text inputs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ALL, ids=name)
def test_numbers_of_text(tmp_path: Path, backend: Backend) -> None:
    """One number a call, or several; sint and sbits take from the same text."""
    bits = "sbits.get_type(9).get_input_from(0).reveal()" if backend in BINARY else "sint.get_input_from(0).reveal()"
    source = f"""
        print_ln('%s', sint.get_input_from(0).reveal())
        print_ln('%s', sint.get_input_from(1, size=3).reveal())
        print_ln('%s', {bits})
        a, m = sint.Array(2), sint.Matrix(2, 2)
        a.input_from(0)
        m.input_from(regint(1))
        print_ln('%s %s', a.reveal(), m.reveal_nested())
        """
    numbers = {0: [-5, 100, 7, 8], 1: [1, -2, 3, 4, 5, 6, 7]}
    assert printed(tmp_path, source, backend, numbers=numbers) == ["-5", "[1, -2, 3]", "100", "[7, 8] [[4, 5], [6, 7]]"]


@ANY_PATH
@given(value=st.integers(-(1 << 80), 1 << 80))
def test_long_numbers_are_reduced(tmp_path: Path, value: int) -> None:
    source = "print_ln('%s', sint.get_input_from(0).reveal())"
    ring, field = value % (1 << 64), value % Q60
    assert printed(tmp_path, source, numbers={0: [value]}) == [str(ring - (1 << 64) if ring >> 63 else ring)]
    assert printed(tmp_path, source, ("emulate", 1, FIELD), numbers={0: [value]}) == [str(field - Q60 if field > Q60 // 2 else field)]


def test_binary_and_text_are_apart(tmp_path: Path) -> None:
    source = "a = sint.get_input_from(0, binary=True)\nb = sint.get_input_from(0)\nprint_ln('%s %s', a.reveal(), b.reveal())"
    assert printed(tmp_path, source, private={0: [3]}, numbers={0: [4]}) == ["3 4"]


# -- loops ------------------------------------------------------------------------------------------------------------


@ANY_PATH
@given(threads=st.integers(1, 9), items=st.integers(0, 30), most=st.one_of(st.none(), st.integers(1, 7)))
def test_parts_of_multithread(tmp_path: Path, threads: int, items: int, most: int | None) -> None:
    """Every item is in one part; sizes differ by one at most before they are cut to the largest that is allowed."""
    source = f"""
        seen = regint.Array({max(items, 1)})

        @multithread({threads}, {items}, {most})
        def _(base, size):
            print_ln('%s %s %s', base, size, get_arg())
            seen.assign_vector(seen.get_vector(base, size) + 1, base)

        print_ln('%s', cint(seen.get_vector(0, {items})) if {items} else 0)
        """
    *parts, last = printed(tmp_path, source)
    rows = [tuple(map(int, p.split())) for p in parts]
    assert sorted(i for base, size, _ in rows for i in range(base, base + size)) == list(range(items))
    assert all(size <= (most or items) and 0 <= number < threads for _, size, number in rows)
    assert last == ("0" if not items else "1" if items == 1 else str([1] * items))
    if most is None and items > 1:
        sizes = [s for _, s, _ in rows]
        assert sizes == sorted(sizes) and max(sizes) - min(sizes) <= 1 and len(rows) == min(threads, items)


def test_threads_of_the_documentation(tmp_path: Path) -> None:
    source = "@multithread(3, 25)\ndef _(base, size):\n    print_ln('%s %s', base, size)\n"
    assert printed(tmp_path, source) == ["0 8", "8 8", "16 9"]
    source = "@multithread(None, 25)\ndef _(base, size):\n    print_ln('%s %s', base, size)\n"
    assert printed(tmp_path, source) == ["0 25"]
    source = "@multithread(2, regint(5))\ndef _(base, size):\n    print_ln('%s %s', base, size)\n"
    assert printed(tmp_path, source) == ["0 2", "2 3"]


def test_reductions(tmp_path: Path) -> None:
    source = """
        a = sint.Array(10)
        a.assign(list(range(10)))

        @map_sum_opt(3, 10, [sint, sint])
        def sums(i):
            return a[i], a[i] * a[i]

        @map_sum_simple(2, 4, sint, 3)
        def vectors(i):
            return sint(regint.inc(3, i))

        @map_reduce(None, 2, [2, 3], lambda: [cint(0)], lambda x, y: [x[0] + y[0]])
        def pairs(i, j):
            return cint(i * 10 + j)

        x, y = sums()
        print_ln('%s %s %s %s', x.reveal(), y.reveal(), vectors().reveal(), pairs())
        print_ln('%s', tree_reduce_multithread(2, lambda x, y: x.max(y), a).reveal())

        @for_range_parallel(2, [2, 2])
        def _(i, j):
            a[i * 2 + j] = 7

        @for_range_opt_multithread(2, 2)
        def _(i):
            a[4 + i] = 8

        print_ln('%s', a.reveal())
        """
    assert printed(tmp_path, source, RING) == ["45 285 [6, 10, 14] 36", "9", "[7, 7, 7, 7, 8, 8, 6, 7, 8, 9]"]


def test_tapes(tmp_path: Path) -> None:
    source = """
        a = sint.Array(3)

        def thread(factor):
            a[get_arg()] = factor * get_arg()

        tape = program.new_tape(thread, args=[10])
        for thread_number in [program.run_tape(tape, i) for i in range(2)]:
            program.join_tape(thread_number)
        program.join_tapes(program.run_tapes([(tape, 2)]))
        program.curr_tape.start_new_basicblock()
        print_ln('%s %s', a.reveal(), get_arg())
        """
    assert printed(tmp_path, source) == ["[0, 10, 20] 0"]


def test_loops_that_end_in_the_middle(tmp_path: Path) -> None:
    source = """
        n = MemValue(0)

        @do_while
        def _():
            n.iadd(1)
            print_str('%s ', n)
            return n < 3

        @for_range(10)
        def _(i):
            @if_e(i == 2)
            def _():
                break_loop()
            @else_
            def _():
                print_str('for %s ', i)

        @while_do(lambda: n < 100)
        def _():
            n.iadd(1)

            @if_(n == 6)
            def _():
                break_loop()

        @do_while
        def _():
            n.iadd(10)

            @if_(n > 20)
            def _():
                break_loop()

            return 1

        @foreach_enumerate([(2, 3), (8, 9)])
        def _(i, x, y):
            print_str('%s:%s,%s ', i, x, y)

        print_ln('%s', n)
        """
    assert printed(tmp_path, source) == ["1 2 3 for 0 for 1 0:2,3 1:8,9 26"]


def test_conditions_that_are_functions(tmp_path: Path) -> None:
    source = """
        def condition(value, text):
            def evaluate():
                print_str(text)
                return regint(value)
            return evaluate

        for make, values in (and_, (1, 0)), (and_, (0, 1)), (or_, (1, 0)), (or_, (0, 1)), (or_, (0, 0)):
            @if_e(make(condition(values[0], 'a'), condition(values[1], 'b'))())
            def _():
                print_str('+ ')
            @else_
            def _():
                print_str('- ')
        print_ln('%s', not_(condition(0, 'c'))())
        n = MemValue(regint(0))

        @while_do(and_(lambda: n < 5, or_(lambda: n < 2, lambda: n == 9)))
        def _():
            n.iadd(1)

        @do_while
        def _():
            n.iadd(1)
            return not_(lambda: n > 6)

        print_ln('%s', n)
        """
    assert printed(tmp_path, source) == ["ab- a- a+ ab+ ab- c1", "7"]
    for line in ("@if_(lambda: regint(0))", "@if_e(and_(lambda: 0))"):
        with pytest.raises(ProgramError, match="a condition is a public number, not a function"):
            run(tmp_path, line + "\ndef _(): pass")


# -- memory, tuples, printing -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", [EMULATE, RING, SHAMIR], ids=name)
def test_memory(tmp_path: Path, backend: Backend) -> None:
    """Cells start as zero, a vector takes one cell an element, and every kind of values has cells of its own."""
    source = """
        sint([1, 2, 3]).store_in_mem(5)
        cint(7).store_in_mem(regint(6))
        regint([8, 9]).store_in_mem(6)
        x = sint(4)
        x.store_in_mem(6)
        x.update(100)
        store_in_mem(sint(-1), 9)
        print_ln('%s', sint.load_mem(4, size=6).reveal())
        print_ln('%s %s %s', sint.load_mem(regint(7)).reveal(), cint.load_mem(6), cint(regint.load_mem(6, size=2)))
        y = sint.load_mem(5, size=3) * sint.load_mem(5, size=3)
        y.store_in_mem(0)
        print_ln('%s', sint.load_mem(0, size=4).reveal())
        """
    assert printed(tmp_path, source, backend) == ["[0, 1, 4, 3, 0, -1]", "3 7 [8, 9]", "[1, 16, 9, 0]"]
    assert printed(tmp_path, "print_ln('%s', sint.load_mem(5).reveal())", backend) == ["0"]


def test_bits_in_memory(tmp_path: Path) -> None:
    source = """
        sbits.get_type(5)(21).store_in_mem(3)
        cbits.get_type(5)(9).store_in_mem(3)
        print_ln('%s %s %s', sbits.get_type(5).load_mem(3).reveal(), sbits.get_type(7).load_mem(3).reveal(), sbits.get_type(2).load_mem(4).reveal())
        print_ln('%s', cbits.get_type(5).load_mem(3))
        x = memorize([sbits.get_type(3)(2), (sint(5), None)])
        write_mem(x, (sbits.get_type(3)(1), (sint(6), None)))
        y = unmemorize(x)
        print_ln('%s %s %s', y[0].reveal(), y[1][0].reveal(), y[1][1])
        """
    assert printed(tmp_path, source) == ["-11 21 0", "9", "1 6 None"]


def test_named_tuples(tmp_path: Path) -> None:
    source = """
        from Compiler.types import getNamedTupleType
        import util
        Bid = getNamedTupleType('party', 'price')
        bids = Bid.get_array(3, sint)
        for i in range(3):
            bids[i] = Bid(i, sint(10 * i * i))
        first = util.tree_reduce(lambda a, b: (a.price < b.price).if_else(b, a), [bids[i] for i in range(3)])
        both = first + bids[1]
        print_ln('%s %s', both.party.reveal(), both.price.reveal())
        a, b = util.cond_swap(sintbit(1), bids[0], bids[2])
        print_ln('%s', [x.reveal() for x in a])
        """
    assert printed(tmp_path, source) == ["3 50", "[2, 40]"]


def test_printing(tmp_path: Path) -> None:
    source = """
        from Compiler.library import print_ln_if
        for condition in 1, 0, regint(1), cint(0), get_player_id() == 0:
            print_ln_if(condition, 'a %s', cint([1, 2]))
        print_both('b')
        sint.Array(2).print_reveal_nested(end=' c\\n')
        cint.Matrix(1, 2).print_reveal_nested()
        from Compiler import util
        print_ln('%s %s', reveal(sint(2)), util.reveal([sint(3), (sint(4), 'text')]))
        """
    party = run(tmp_path, source, RING)[0]
    assert party.lines == ["a [1, 2]", "a [1, 2]", "a [1, 2]", "b", "[0, 0] c", "[[0, 0]]", "2 [3, [4, text]]"]


def test_public_input(tmp_path: Path) -> None:
    assert printed(tmp_path, "print_ln('%s %s', public_input(), public_input())", public=[[5, -6]]) == ["5 -6"]


# -- settings, imports ------------------------------------------------------------------------------------------------


def test_settings(tmp_path: Path) -> None:
    source = """
        program.set_bit_length(20)
        program.options_from_args()
        program.use_trunc_pr = True
        program.curr_tape.require_bit_length(40, 'p')
        print_ln('%s %s', program.bit_length, program.use_edabit())
        """
    assert printed(tmp_path, source, EMULATE, "edabit", "split3", "trunc_pr") == ["20 True"]
    with pytest.raises(ProgramError, match="split into 3 summands, not 2"):
        printed(tmp_path, source, EMULATE, "split2")


def test_modules_by_plain_names(tmp_path: Path) -> None:
    """As on MP-SPDZ; a helper of the program of that name comes first."""
    source = """
        import random
        import util, library
        from util import OR, series
        print_ln('%s %s %s', util.pow2([sintbit(1), sintbit(1)]).reveal(), OR(1, 1), list(series([1, 2])))
        print_ln('%s', library.for_range is for_range)
        """
    assert printed(tmp_path, source) == ["8 1 [0, 1, 3]", "True"]
    path = "import os, sys\nsys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(program.infile)), '..', 'Library'))\n"
    assert printed(tmp_path, path + "import util\nprint_ln('%s', util.MINE)", helpers={"util": "MINE = 3\n"}) == ["3"]


# -- matrices ---------------------------------------------------------------------------------------------------------


@ANY_PATH
@given(rows=st.integers(1, 4), inner=st.integers(1, 4), columns=st.integers(1, 4), data=st.data())
def test_products_of_parts(tmp_path: Path, rows: int, inner: int, columns: int, data: Any) -> None:
    """direct_mul with indices is the product of the rows and columns that these choose."""
    a = [[data.draw(st.integers(-9, 9)) for _ in range(inner)] for _ in range(rows)]
    b = [[data.draw(st.integers(-9, 9)) for _ in range(columns)] for _ in range(inner)]
    chosen = [data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=5)) for n in (rows, inner, columns)]
    source = f"""
        A, B = (Matrix.create_from([[sint(x) for x in row] for row in m]) for m in ({a}, {b}))
        (A * B).print_reveal_nested()
        print_ln('%s', list(A.direct_mul(B).reveal()))
        i, j, k = (regint(x) for x in {chosen})
        print_ln('%s', list(A.direct_mul(B, indices=(i, j, j, k)).reveal()))
        A[0].to_row_matrix().dot(B, n_threads=2).print_reveal_nested()
        """
    full = [[sum(a[r][i] * b[i][c] for i in range(inner)) for c in range(columns)] for r in range(rows)]
    part = [sum(a[r][i] * b[i][c] for i in chosen[1]) for r in chosen[0] for c in chosen[2]]
    assert printed(tmp_path, source) == [str(full), str([x for row in full for x in row]), str(part), str(full[:1])]


def test_parts_of_arrays(tmp_path: Path) -> None:
    source = """
        a = Array.create_from([sint(i) for i in range(6)])
        a.set_range(regint(1), [sint(10), sint(20)])
        a.get_sub(4, 6)[0] = 40
        a.to_column_matrix()[5][0] = 50
        print_ln('%s %s %s', a.reveal(), [x.reveal() for x in a.get_range(1, 2)], a.get_sub(2).reveal())
        b = Array.create_from(x * x for x in a[:3])
        a[-1] = b[2]
        print_ln('%s', a[-1].reveal())
        m = Matrix.create_from([a.get_vector(0, 3), b.get_vector()])
        print_ln('%s', m.reveal_nested())
        print_ln('%s', Matrix.create_from([a.get_sub(2), b.get_sub(2)]).reveal_nested())
        """
    assert printed(tmp_path, source) == ["[0, 10, 20, 3, 40, 50] [10, 20] [0, 10]", "400", "[[0, 10, 20], [0, 100, 400]]", "[[0, 10], [0, 100]]"]


def test_a_large_product_is_made_when_it_is_used(tmp_path: Path) -> None:
    """700^3 products of elements: nothing is sent for a product that is not read, and the result of one that is read is right."""
    source = """
        A, B = sint.Matrix(700, 700), sint.Matrix(700, 700)
        A[3].assign_all(2)
        B.assign_all(5)
        start_timer(1)
        C = A * B
        stop_timer(1)
        print_ln('%s', len(C))
        """
    result = run(tmp_path, source, RING)[0].result
    assert result is not None and result.timers[1].bytes_sent == 0
    assert printed(tmp_path, source.rstrip() + "\n        print_ln('%s %s', C[3][9].reveal(), C[4][9].reveal())\n") == ["700", "7000 0"]


# -- circuits ---------------------------------------------------------------------------------------------------------

FULL_ADDER = """5 8
3 1 1 1
2 1 1

2 1 0 1 3 XOR
2 1 3 2 6 XOR
2 1 0 1 4 AND
2 1 3 2 5 AND
2 1 4 5 7 XOR
"""


@pytest.mark.parametrize("backend", [EMULATE, RING], ids=name)
def test_circuits_from_files(tmp_path: Path, backend: Backend) -> None:
    source = """
        from circuit import Circuit
        adder = Circuit('adder')
        t = sbits.get_type(8)
        total, carry = adder(*(sbitvec.from_vec([t(x)]) for x in (0b00001111, 0b00110011, 0b01010101)))
        print_ln('%s %s', total.v[0].reveal(), carry.v[0].reveal())
        """
    assert printed(tmp_path, source, backend, circuits={"adder": FULL_ADDER}) == [f"{0b01101001} {0b00010111}"]


@pytest.mark.parametrize(
    ("text", "call", "message"),
    [
        (None, "", "no circuit .*other.txt: put a file in Bristol Fashion there"),
        ("1 2\n1 1\n1 1\n\n1 1 0 1 NOT\n", "", "is no circuit in Bristol Fashion"),
        ("nothing", "", "is no circuit in Bristol Fashion"),
        (FULL_ADDER, "(sbitvec.from_vec([sbit(1)]))", r"has inputs of \[1, 1, 1\] rows, not \[1\]"),
    ],
)
def test_circuits_that_are_refused(tmp_path: Path, text: str | None, call: str, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        run(tmp_path, f"from circuit import Circuit\nCircuit('other'){call}", circuits={} if text is None else {"other": text})


def test_bodies_of_reductions_change_nothing_around_them(tmp_path: Path) -> None:
    source = "L = []\n@map_sum_opt(1, 3, [sint])\ndef f(i):\n    L.append(i)\n    return sint(1)\n"
    with pytest.raises(ProgramError, match="'L' cannot change in a run-time loop"):
        run(tmp_path, source)
