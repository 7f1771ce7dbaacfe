"""Loops, branches, functions, timers. MP-SPDZ prints the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from .running import ALL, RING, Backend, name, printed, run

LOOPS = """
acc = regint(0)
@for_range(5)
def _(i):
    acc.update(acc + i)
print_ln('%s', acc)

@for_range(10)
def _(i):
    print_str('%s ', i)
    return i != 3
print_ln()

@for_range(5, 0, -2)
def _(i):
    print_str('%s ', i)
print_ln()

@for_range(regint(2), cint(4))
def _(i):
    print_str('%s ', i)
print_ln()

@for_range_opt([2, 3])
def _(i, j):
    print_str('%s%s ', i, j)
print_ln()

@for_range_opt(2, 9, 3)
def _(i):
    print_str('%s ', i)
print_ln()

@for_range_opt(regint(3))
def _(i):
    print_str('%s ', i)
print_ln()

@for_range_multithread(1, 2, [2, 3])
def _(i, j):
    print_str('%s%s ', i, j)
print_ln()

n = 6
A, B = sint.Array(n), sint.Array(n)
A.assign_vector(sint(regint.inc(n)))
@for_range_multithread(2, 2, n)
def _(i):
    B[i] = A[i] * A[i]
print_ln('%s', B.reveal())
@for_range_opt(n)
def _(i):
    A[n - 1 - i] = B[i] + 1
print_ln('%s', A.reveal())

i = regint(0)
@while_do(lambda x: x < 3, i)
def _(x):
    print_str('%s ', x)
    return x + 1
j = regint(8)
@while_do(lambda: j > 6)
def _():
    j.update(j - 1)
print_ln('%s', j)

total = sint(0)
@for_range(3)
def _(i):
    total.update(total + i * i)
print_ln('%s', total.reveal())

x = regint(1)
alias = x
@for_range(3)
def _(i):
    global x
    x = x * 2
print_ln('%s %s', x, alias)
@for_range(0)
def _(i):
    print_ln('never')
"""
LOOPS_PRINTED = """\
10
0 1 2 3 
5 3 1 
2 3 
00 01 02 10 11 12 
2 5 8 
0 1 2 
00 01 02 10 11 12 
[0, 1, 4, 9, 16, 25]
[26, 17, 10, 5, 2, 1]
0 1 2 6
5
8 8
"""

BRANCHES = """
r = regint(3)
y = MemValue(0)
@if_e(r > 2)
def _():
    y.write(1)
@else_
def _():
    y.write(2)
print_ln('%s', y)
@if_e(r > 5)
def _():
    y.write(3)
@else_
def _():
    y.write(4)
print_ln('%s', y)
@if_(cint(1) == 1)
def _():
    print_ln('yes')
@if_(r - 3)
def _():
    print_ln('no')
@if_(True)
def _():
    print_ln('constant')
@if_e(r == 3)
def _():
    @if_e(r == 4)
    def _():
        print_ln('inner if')
    @else_
    def _():
        print_ln('inner else')
@else_
def _():
    print_ln('outer else')
@function_block
def f(a, b):
    return a + b, a * b
p, q = f(sint(3), 4)
print_ln('%s %s', p.reveal(), q.reveal())
p, q = f(sint([3, 4]), MemValue(5))
print_ln('%s %s', p.reveal(), q.reveal())
break_point()
crash(regint(0))
runtime_error_if(r == 4, 'bad %s', r)
print_ln('%s %s', get_number_of_players() - get_number_of_players(), program.args[0] != '')
"""
BRANCHES_PRINTED = """\
1
4
yes
constant
inner else
7 12
[8, 9] [15, 20]
0 True
"""

UTIL = """
from Compiler import util
from Compiler.util import tree_reduce, if_else
import operator
print_ln('%s', tree_reduce(operator.add, [sint(i) for i in range(5)]).reveal())
print_ln('%s %s', if_else(sint(1), sint(2), 3).reveal(), if_else(True, 4, 5))
print_ln('%s', [x.reveal() for x in if_else(sint(0), [sint(1), sint(2)], [sint(3), sint(4)])])
print_ln('%s %s', util.bit_xor(sint(1), 1).reveal(), util.bit_and(1, sint(1)).reveal())
print_ln('%s %s', util.bit_decompose(5, 4), util.bit_compose([cint(1), cint(1)]))
print_ln('%s', util.reveal([sint(1), [sint(2)], 'x']))
print_ln('%s %s', util.is_zero(0), util.is_constant(regint(0)))
print_ln('%s %s', util.max(cint(3), cint(4)), util.min([cint(3), cint(2), cint(4)]))
"""
UTIL_PRINTED = """\
10
2 4
[3, 4]
0 1
[1, 0, 1, 0] 3
[1, [2], x]
True False
4 2
"""


@pytest.mark.parametrize("backend", ALL, ids=name)
@pytest.mark.parametrize(
    ("source", "expected"),
    [(LOOPS, LOOPS_PRINTED), (BRANCHES, BRANCHES_PRINTED), (UTIL, UTIL_PRINTED)],
    ids=["loops", "branches", "util"],
)
def test_control(tmp_path: Path, backend: Backend, source: str, expected: str) -> None:
    assert printed(tmp_path, source, backend) == expected.splitlines()


def test_rounds_of_loops(tmp_path: Path) -> None:
    """for_range takes turns, the other loops run side by side; outputs wait for the end."""
    body = """
        x = sint.get_random(size=4)
        @{loop}
        def _(i):
            (x * i * x).reveal().binary_output()
        """
    in_turn = run(tmp_path, body.format(loop="for_range(5)"), RING)[0]
    together = run(tmp_path, body.format(loop="for_range_opt(5)"), RING)[0]
    threads = run(tmp_path, body.format(loop="for_range_multithread(5, 5, 5)"), RING)[0]
    assert in_turn.stats["rounds"] == 10
    assert together.stats["rounds"] == threads.stats["rounds"] == 2
    assert len(together.io.binary_outputs) == 5


def test_timers(tmp_path: Path) -> None:
    source = """
        a = sint.get_random(size=100)
        for i in range(2):
            start_timer(3)
            b = a * a
            stop_timer(3)
        c = b * b
        start_timer(1)
        stop_timer(1)
        """
    result = run(tmp_path, source, RING)[0].result
    assert result is not None
    assert {i: (t.rounds, t.bytes_sent) for i, t in result.timers.items()} == {3: (2, 1600), 1: (0, 0)}
    assert (result.total.rounds, result.total.bytes_sent) == (3, 2400)
    lines = result.lines()
    assert lines[0].startswith("Time = ") and lines[1].startswith("Time1 = ") and lines[2].startswith("Time3 = ")
    assert lines[2].endswith("(0.0016 MB, 2 rounds)")
    assert lines[3] == "Data sent = 0.0024 MB in 3 rounds"


def test_clear_text_says_so(tmp_path: Path) -> None:
    result = run(tmp_path, "print_ln('x')")[0].result
    assert result is not None and result.lines()[0] == "INSECURE: emulate computes on clear text"
