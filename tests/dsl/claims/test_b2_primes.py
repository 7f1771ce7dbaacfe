"""Primes: what works at run time with a program compiled as usual, and how long comparisons may be."""

from __future__ import annotations

from pathlib import Path

import pytest
from keyquorum.dsl import ProgramOptions
from keyquorum.model.errors import ProgramError

from ..running import EMULATE_FIELD, FIELDS, Backend, name, printed, run
from .spdz import FIELD, NEEDED, Q60, Work, encrypted, needs, work

__all__ = ["work"]

ANY_PRIME = """
x = sint.get_input_from(0, size=3, binary=True)
print_ln('%s %s', (x * x).reveal(), (x * -1).reveal())
b = sint.get_random_bit(size=5)
r = sint.get_random(size=5)
print_ln('%s %s', (b * (b - 1)).reveal(), ((x[0] + r[0]).reveal() - r[0]).reveal())
print_ln('%s', sint.dot_product(x, x).reveal())
"""
BITS = """
d, bit = sint.get_dabit(size=4)
print_ln('%s', (d - sint(bit)).reveal())
e, bits = sint.get_edabit(5, False, size=4)
print_ln('%s', (e - sint.bit_compose(bits)).mod2m(5, 8).reveal())
"""
PRINTED = ["[4, 9, 16] [-2, 3, -4]", "[0, 0, 0, 0, 0] 2", "29"]


@NEEDED
@pytest.mark.parametrize(("protocol", "parties"), [("rep-field", 3), ("shamir", 3), ("semi", 2), ("mascot", 2)])
def test_a_prime_at_run_time(tmp_path: Path, protocol: str, parties: int) -> None:
    needs(protocol)
    work = Work(tmp_path, parties)
    work.inputs({0: [2, -3, 4]})
    lines = work.lines(protocol, ANY_PRIME + BITS, run_time=[*FIELD, *encrypted(protocol)], compiler=["-F", "18"])
    assert lines == [*PRINTED, "[0, 0, 0, 0]", "[0, 0, 0, 0]"]


@pytest.mark.parametrize("backend", FIELDS, ids=name)
def test_the_same_here(tmp_path: Path, backend: Backend) -> None:
    assert printed(tmp_path, ANY_PRIME, backend, private={0: [2, -3, 4]}) == PRINTED


@NEEDED
@pytest.mark.parametrize("bits", [30, 40, 50])
@pytest.mark.parametrize(("protocol", "parties"), [("rep-field", 3), ("shamir", 3), ("semi", 2), ("mascot", 2)])
def test_random_bits_over_shorter_primes(tmp_path: Path, protocol: str, parties: int, bits: int) -> None:
    """mascot alone needs 40 bits."""
    needs(protocol)
    prime = {30: 1073741789, 40: 1099511627689, 50: 1125899906842597}[bits]
    done = Work(tmp_path, parties).run(
        protocol,
        "b = sint.get_random_bit(size=50)\nprint_ln('%s', (b * (b - 1)).sum().reveal())",
        run_time=["-P", str(prime), *encrypted(protocol)],
    )
    if protocol == "mascot" and bits < 40:
        assert done.failed
    else:
        assert not done.failed and done.printed[0] == "0\n", done.output[-1000:]


MASKED = [("y = sint(1) < 2", 18), ("y = sint(1) == 1", 19), ("y = sint(5) % 4", 19), ("y = sint(2) >> 1", 19),
          ("y = sint(1).bit_decompose()[0]", 19)]  # fmt: skip


@NEEDED
@pytest.mark.parametrize("protocol", ["rep-field", "shamir"])
@pytest.mark.parametrize(("statement", "largest"), MASKED)
def test_masked_comparisons(work: Work, protocol: str, statement: str, largest: int) -> None:
    """bits(q) >= k + 42 for <, k + 41 for the others: with 60 bits -F 18 or 19 at most. The embedded engine:
    tests/dsl/test_refusals.py."""
    text = statement + "\nprint_ln('%s', y.reveal())"
    assert work.lines(protocol, text, compiler=["-F", str(largest)], run_time=FIELD) == ["1"]
    done = work.run(protocol, text, compiler=["-F", str(largest + 1)], run_time=FIELD)
    assert done.failed and not any(done.printed)


@NEEDED
def test_the_default_length_needs_106_bits(work: Work) -> None:
    text = "print_ln('%s', (sint(1) < 2).reveal())"
    assert work.run("rep-field", text, run_time=FIELD).failed
    assert work.run("rep-field", text, run_time=["-P", str(2**105 - 13)]).failed
    assert work.lines("rep-field", text, run_time=["-P", str(2**106 - 117)]) == ["1"]


def test_the_default_length_needs_106_bits_here(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="needs a prime of 106 bits"):
        run(tmp_path, "y = sint(1) < 2", EMULATE_FIELD, options=ProgramOptions())


@NEEDED
def test_a_prime_at_compile_time_is_exact(work: Work) -> None:
    """-P for the compiler: comparisons and bits of up to bits(q) - 2."""
    text = """
        x, y = sint(2**57 - 1), sint(-2**57 + 1)
        print_ln('%s %s %s', (x < y).reveal(), (y < x).reveal(), x.equal(x, 58).reveal())
        print_ln('%s', sint.bit_compose(x.bit_decompose(58)).reveal())
        """
    assert work.lines("rep-field", text, compiler=FIELD) == ["0 1 1", str(2**57 - 1)]


@NEEDED
@pytest.mark.parametrize("q", [Q60, 65537, 12289])
def test_linear_algebra_works_for_any_prime(work: Work, q: int) -> None:
    text = """
        M, v = sint.Matrix(2, 2), sint([3, -4])
        M.assign_vector(sint([1, 2, 3, 4]))
        A = Array.create_from(v)
        print_ln('%s %s', M.dot(A).reveal(), (v * v).sum().reveal())
        b = sint.get_random_bit(size=3)
        print_ln('%s', (b * (b - 1)).reveal())
        """
    assert work.lines("rep-field", text, run_time=["-P", str(q)]) == ["[-5, -7] 25", "[0, 0, 0]"]
