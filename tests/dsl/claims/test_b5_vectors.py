"""Vectors and public data, inputs and outputs in files. The order of memory accesses: test_differences.py."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ..running import ALL, Backend, name, printed, run
from .spdz import FIELD, NEEDED, Q60, Work, work

__all__ = ["work"]


@NEEDED
@pytest.mark.parametrize("protocol", ["ring", "rep-field"])
def test_public_words(work: Work, protocol: str) -> None:
    """fixinput(-1, ...) reads int64 from each party's own binary input, pubinput text; private words come from the same file,
    reduced modulo the prime; what goes out is centred. The embedded engine: tests/dsl/test_inputs_outputs.py."""
    text = """
        a = sint.get_input_from(1, size=2, binary=True)
        x = cint(size=3)
        fixinput(-1, x, 0, 0)
        y = cint(size=2)
        pubinput(y)
        print_ln('%s %s %s', a.reveal(), x, y)
        x.binary_output()
        x.binary_output()
        """
    big = Q60 // 2 + 5 if protocol == "rep-field" else 7
    work.inputs({0: [-1, 5, big], 1: [Q60 + 3, 9, -1, 5, big], 2: [-1, 5, big]})
    (work.folder / "Programs" / "Public-Input" / "kq_claim").write_text("8 -9\n")
    prime = FIELD if protocol == "rep-field" else ()
    first, last = (3, 5 - Q60 // 2 - 1) if prime else (Q60 + 3, 7)
    assert work.lines(protocol, text, run_time=prime) == [f"[{first}, 9] [-1, 5, {last}] [8, -9]"]
    assert work.output(0) == work.output(2) == [-1, 5, last] * 2


@NEEDED
def test_a_run_begins_its_output_anew(work: Work) -> None:
    for _ in range(2):
        assert not work.run("emulate", "regint(4).binary_output()\nregint([5, 6]).binary_output()").failed
    assert work.output() == [4, 5, 6]


SUMS = """
x, c = sint(regint.inc(1000)), cint(regint.inc(1000))
print_ln('%s %s %s', x.get_vector(0, 1).reveal(), x.sum().reveal(), (x * c).sum().reveal())
"""


@NEEDED
def test_sums_of_long_vectors(work: Work) -> None:
    assert work.lines("ring", SUMS) == [f"0 {999 * 500} {sum(i * i for i in range(1000))}"]


@pytest.mark.parametrize("backend", ALL, ids=name)
def test_sums_of_long_vectors_here(tmp_path: Path, backend: Backend) -> None:
    assert printed(tmp_path, SUMS, backend) == [f"0 {999 * 500} {sum(i * i for i in range(1000))}"]


@NEEDED
def test_inner_products_with_public_factors_fail(work: Work) -> None:
    """The embedded engine refuses them: tests/dsl/test_refusals.py (and takes Matrix.dot, which works on both)."""
    assert work.run("ring", "y = sint.dot_product(sint([1, 2]), cint([3, 4]))").failed
    text = "A, C = sint.Matrix(2, 2), cint.Matrix(2, 2)\nA.assign_all(1)\nC.assign_all(2)\n"
    assert work.run("ring", text + "y = A.direct_mul(C)\nprint_ln('%s', y.reveal())").failed
    assert work.lines("ring", text + "print_ln('%s', A.dot(C).reveal_nested())") == ["[[4, 4], [4, 4]]"]


BUTTERFLIES = """
n, x = 16, sint(regint.inc(16))
w = cint(regint.inc(8, 3, 2))
for layer in range(4):
    y = sint.Array(n)
    a, b = x.get_vector(0, 8), x.get_vector(8, 8) * w
    y[0:n:2] = a + b
    y[1:n:2] = a - b
    break_point()
    x = y.get_vector()
"""


@NEEDED
def test_butterflies_with_public_factors_are_local(work: Work) -> None:
    """The transforms of the collection, at full size: tests/programs."""
    done = work.run("ring", BUTTERFLIES)
    sent = re.search(r"Global data sent = (\S+) MB", done.output)
    assert not done.failed and sent and float(sent[1]) == 0
    values = list(range(16))
    for _ in range(4):
        pairs = [(values[i], values[8 + i] * (3 + 2 * i)) for i in range(8)]
        values = [v for a, b in pairs for v in (a + b, a - b)]
    assert work.lines("ring", BUTTERFLIES + "print_ln('%s', x.reveal())") == [str(values)]


@pytest.mark.parametrize("backend", [b for b in ALL if b[0] != "emulate"], ids=name)
def test_butterflies_are_local_here(tmp_path: Path, backend: Backend) -> None:
    stats = run(tmp_path, BUTTERFLIES, backend)[0].stats
    assert stats["bytes_sent"] == stats["rounds"] == 0
