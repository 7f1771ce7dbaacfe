"""Arrays, matrices and memory values. MP-SPDZ prints the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from .running import ALL, BINARY, Backend, name, printed, run

ARRAYS = """
A = sint.Array(10)
A.assign_vector(sint(regint.inc(10)))
A[2:8:3] = sint([70, 80])
print_ln('%s', A.reveal())
A.assign(sint([1, 1]), 3)
A.assign([5, 6], regint(8))
print_ln('%s %s', A.reveal(), A[-1].reveal())
A.assign_vector(sint([7, 7, 7]), regint([0, 2, 4]))
print_ln('%s', A[:].reveal())
print_ln('%s %s', A[regint([9, 0])].reveal(), A.get_vector(regint([9, 0]), 2).reveal())
print_ln('%s %s %s', A.sum().reveal(), len(A), A.shape)
print_ln('%s %s %s', A[2:].reveal(), A[:3].reveal(), A[1:9:4].reveal())
print_ln('%s', A.get(regint.inc(4, 7, -2)).reveal())
print_ln('%s', A.get_vector(2, 3).reveal())
print_ln('%s', A.get_part(regint(3), 2).reveal())
A[regint(1)] = 42
A[cint(2)] += 1
print_ln('%s', A[1:3].reveal())
B = A.same_shape()
B.assign_all(3)
print_ln('%s %s', B.reveal(), sint.dot_product(A, B).reveal())
print_ln('%s %s', (A + B).get_vector(0, 2).reveal(), (2 * A - B)[0].reveal())
print_ln('%s', A.dot(B).reveal())
C = Array.create_from(cint([4, 5, 6]))
print_ln('%s', C)
C[1] = regint(9)
print_ln('%s %s', C, [x for x in C])
R = regint.Array(3)
R.assign([1, 2, 3])
R[0:3:2] = regint([7, 8])
print_ln('%s %s', cint(R[:]), A.get(R).reveal())
D = A.get_vector()
A.assign_all(0)
print_ln('%s %s', D.get_vector(0, 3).reveal(), A.reveal())
E = Array.create_from([sint(1), sint(2)])
E.assign(cint([3]))
print_ln('%s', E.reveal())
"""
ARRAYS_PRINTED = """\
[0, 1, 70, 3, 4, 80, 6, 7, 8, 9]
[0, 1, 70, 1, 1, 80, 6, 7, 5, 6] 6
[7, 1, 7, 1, 7, 80, 6, 7, 5, 6]
[6, 7] [6, 7]
127 10 [10]
[7, 1, 7, 80, 6, 7, 5, 6] [7, 1, 7] [1, 80]
[7, 80, 1, 1]
[7, 1, 7]
[1, 7]
[42, 8]
[3, 3, 3, 3, 3, 3, 3, 3, 3, 3] 507
[10, 45] 11
507
[4, 5, 6]
[4, 9, 6] [4, 9, 6]
[7, 2, 8] [7, 8, 5]
[7, 42, 8] [0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
[3, 2]
"""

MATRICES = """
M = sint.Matrix(2, 3)
M[0] = sint([1, 2, 3])
M[1][:] = sint([4, 5, 6])
M[1][2] = 9
print_ln('%s %s', M.reveal(), M.reveal_nested())
M.set_column(1, sint([0, 0]))
print_ln('%s %s', M[:].reveal(), M.transpose().reveal())
print_ln('%s %s', M.get_part_vector(1).reveal(), M.get_column(regint(2)).reveal())
V = M.dot(sint.Array(3).assign_all(2))
print_ln('%s %s', type(V).__name__, V.reveal())
D = M.dot(M.transpose())
print_ln('%s %s', type(D).__name__, D.reveal())
P = cint.Matrix(3, 2)
P.assign_vector(cint(regint.inc(6)))
print_ln('%s', M.dot(P).reveal())
print_ln('%s', P.dot(P.transpose()))
T = sint.Tensor([2, 2, 2])
T.assign_vector(sint(regint.inc(8)))
print_ln('%s %s', T[1][0].reveal(), T[1].reveal())
T[0].assign_all(7)
T.assign_part_vector(sint([1, 2, 3, 4]), 1)
print_ln('%s %s', T.reveal(), T.get_part(1, 1).reveal())
print_ln('%s %s %s', M.shape, len(M), [row.reveal() for row in M])
M.assign_all(1)
print_ln('%s', sum(row.sum() for row in M).reveal())
"""
MATRICES_PRINTED = """\
[[1, 2, 3], [4, 5, 9]] [[1, 2, 3], [4, 5, 9]]
[1, 0, 3, 4, 0, 9] [[1, 4], [0, 0], [3, 9]]
[4, 0, 9] [3, 9]
Array [8, 26]
Matrix [[10, 31], [31, 97]]
[[12, 16], [36, 49]]
[[1, 3, 5], [3, 13, 23], [5, 23, 41]]
[4, 5] [[4, 5], [6, 7]]
[[[7, 7], [7, 7]], [[1, 2], [3, 4]]] [[[1, 2], [3, 4]]]
[2, 3] 2 [[1, 0, 3], [4, 0, 9]]
6
"""

MEMORY_VALUES = """
m = MemValue(3)
m.iadd(4)
print_ln('%s %s %s', m, m + 1, 2 * m)
m.write(regint(5))
print_ln('%s %s', m.read(), m > 4)
s = MemValue(sint([1, 2]))
s.write(s + 1)
print_ln('%s %s', s.reveal(), (s * s).reveal())
print_ln('%s', (sint([5, 6]) - s).reveal())
x = sint([1, 2, 3])
x.update(x + 1)
y = x
x.update(x + 1)
print_ln('%s %s', x.reveal(), y.reveal())
"""
MEMORY_VALUES_PRINTED = """\
7 8 14
5 1
[2, 3] [4, 9]
[3, 3]
[3, 4, 5] [3, 4, 5]
"""


@pytest.mark.parametrize("backend", ALL, ids=name)
@pytest.mark.parametrize(
    ("source", "expected"),
    [(ARRAYS, ARRAYS_PRINTED), (MATRICES, MATRICES_PRINTED), (MEMORY_VALUES, MEMORY_VALUES_PRINTED)],
    ids=["arrays", "matrices", "values"],
)
def test_containers(tmp_path: Path, backend: Backend, source: str, expected: str) -> None:
    assert printed(tmp_path, source, backend) == expected.splitlines()


@pytest.mark.parametrize("backend", BINARY, ids=name)
def test_arrays_of_bits(tmp_path: Path, backend: Backend) -> None:
    source = """
        t = sbits.get_type(8)
        B = t.Array(3)
        B[1] = t(5)
        B[regint(2)] = B[1] ^ t(1)
        print_ln('%s %s', B[1].reveal(), B[2].reveal())
        C = t.Array(2)
        C.assign_all(7)
        C.assign(B[1], 1)
        print_ln('%s %s', C[0].reveal(), C[1].reveal())
        x = B[1]
        x.update(t(9))
        print_ln('%s', B[1].reveal())
        """
    assert printed(tmp_path, source, backend) == ["5 4", "7 5", "5"]


def test_stored_vectors_keep_their_content(tmp_path: Path) -> None:
    """Arrays change a vector in place only if there is no other reference to it."""
    source = """
        A = sint.Array(4)
        x = sint([1, 2, 3, 4])
        A.assign_vector(x)
        y = A.get_vector()
        A[0] = 9
        A[1:4:2] = sint([8, 7])
        z = A.get_vector()
        A.assign_vector(sint([5, 5]), regint([0, 3]))
        print_ln('%s %s %s %s', x.reveal(), y.reveal(), z.reveal(), A.reveal())
        """
    assert printed(tmp_path, source) == ["[1, 2, 3, 4] [1, 2, 3, 4] [9, 8, 3, 7] [5, 8, 3, 5]"]


def test_products_of_matrices_send_one_element_a_result(tmp_path: Path) -> None:
    source = """
        A, B = sint.Matrix(8, 50), sint.Matrix(50, 4)
        for M in A, B:
            M.assign_vector(sint.get_random(size=M.total_size()))
        start_timer(1)
        C = A.dot(B)
        stop_timer(1)
        """
    result = run(tmp_path, source, ("ring", 3, "Z2^64"))[0].result
    assert result is not None
    assert (result.timers[1].rounds, result.timers[1].bytes_sent) == (1, 8 * 4 * 8)
