"""Comparisons and bit decomposition agree with the integers, on every backend; rounds and bytes are the stated ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from keyquorum.dsl import ProgramOptions

from tests.long import LONG

from .running import ALL, EMULATE, FIELDS, MALICIOUS_FIELDS, MASCOT, REP_FIELD, RING, SHAMIR, Backend, name, run

SOURCE = """
k, n = int(program.args[1]), int(program.args[2])
a = sint.get_input_from(0, size=n, binary=True)
b = sint.get_input_from(0, size=n, binary=True)
for x in (a.less_than(b, k), a.greater_than(b, k), a.less_equal(b, k), a.greater_equal(b, k), a.equal(b, k),
          a.not_equal(b, k), a.mod2m(k // 2, k), a.right_shift(k // 2, k)):
    x.reveal().binary_output()
for x in a.bit_decompose(k):
    x.reveal().binary_output()
"""


RANDOM = "x = sint.get_random(size=64)\n"


def integers(k: int, count: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Pairs of k-bit integers: the extremes, near ones, and random ones."""
    low, high = -(1 << (k - 1)), (1 << (k - 1)) - 1
    edges = [low, low + 1, -1, 0, 1, high - 1, high]
    pairs = [(x, y) for x in edges for y in edges if low <= x - y <= high]
    generator = np.random.default_rng(k)
    sizes = generator.integers(1, k, (2, count))
    x = (generator.integers(-(1 << 62), 1 << 62, (2, count))) >> (63 - sizes)
    x = np.clip(x, low // 2, high // 2)
    near = np.stack([x[0], np.clip(x[0] + generator.integers(-2, 3, count), low // 2, high // 2)])
    return np.concatenate([np.array(pairs, dtype=np.int64).T, x, near], axis=1)


def check(tmp_path: Path, backend: Backend, k: int, count: int, options: ProgramOptions | None = None) -> None:
    a, b = integers(k, count)
    words = np.concatenate([a, b])
    parties = run(tmp_path, SOURCE, backend, k, len(a), private={0: words.tolist()}, options=options)
    out = parties[-1].io.binary_outputs
    m = k // 2
    expected = [a < b, a > b, a <= b, a >= b, a == b, a != b, a % (1 << m), a >> m]
    expected += [(a >> i) & 1 for i in range(k)]
    assert len(out) == len(expected)
    for got, want in zip(out, expected, strict=True):
        assert np.array_equal(got, want.astype(np.int64))


@pytest.mark.parametrize("k", [2, 3, 8, 17, 32, 63])
@pytest.mark.parametrize("backend", [EMULATE, RING], ids=name)
def test_rings(tmp_path: Path, backend: Backend, k: int) -> None:
    check(tmp_path, backend, k, 300)


@pytest.mark.parametrize(("parties", "k"), [(2, 2), (2, 17), (2, 63), (3, 17), (4, 63), (5, 8), (7, 8)])
def test_rings_of_many_summands(tmp_path: Path, parties: int, k: int) -> None:
    """semi2k: a summand a party."""
    check(tmp_path, ("semi2k", parties, "Z2^64"), k, 100)


@pytest.mark.parametrize("domain", ["Z2^8", "Z2^64", "Z2^72"])
@pytest.mark.parametrize("parties", [2, 3, 6])
def test_equality_on_semi2k(tmp_path: Path, parties: int, domain: str) -> None:
    """x = 0 by the summands' bits: true values among multiples of powers of two, which agree in the low bits; of k bits, the upper
    ones do not count."""
    bits = int(domain[3:])
    powers = [0, 0, *(1 << i for i in range(min(bits, 63))), *(-1 << i for i in range(min(bits, 63))), 0]
    source = """
        x = sint.get_input_from(1, size=int(program.args[1]), binary=True)
        (x == 0).reveal().binary_output()
        x.equal(0, 5).reveal().binary_output()
        (x != 0).reveal().binary_output()
        """
    options = ProgramOptions()
    out = run(tmp_path, source, ("semi2k", parties, domain), len(powers), private={1: powers}, options=options)[0].io.binary_outputs
    length = bits - 1  # the default length of integers
    assert out[0].tolist() == [v % (1 << length) == 0 for v in powers]
    assert out[1].tolist() == [v % 32 == 0 for v in powers]
    assert out[2].tolist() == [v % (1 << length) != 0 for v in powers]


@pytest.mark.parametrize(("parties", "rounds", "ands"), [(2, 6 + 1, 62), (3, 2 + 6 + 1, 62 + 62 + 61), (4, 3 + 6 + 1, 2 * 62 + 62 + 61)])
def test_cost_of_equality_on_semi2k(tmp_path: Path, parties: int, rounds: int, ands: int) -> None:
    """Online: ANDs open two bits a pair of parties, the conversion of the result one; 64 entries, so a row is 8 bytes."""
    stats = run(tmp_path, RANDOM + "y = x == 0", ("semi2k", parties, "Z2^64"))[0].stats
    assert stats["rounds"] - stats["offline_rounds"] == rounds
    assert stats["bytes_sent"] - stats["offline_bytes_sent"] == 8 * (parties - 1) * (2 * ands + 1)


@pytest.mark.parametrize("domain", ["Z2^41", "Z2^72"])
def test_other_rings(tmp_path: Path, domain: str) -> None:
    check(tmp_path, ("ring", 3, domain), 40, 100)


@pytest.mark.parametrize("k", [2, 3, 8, 18])
@pytest.mark.parametrize("backend", FIELDS, ids=name)
def test_fields(tmp_path: Path, backend: Backend, k: int) -> None:
    check(tmp_path, backend, k, 100 if backend == SHAMIR else 300)


@pytest.mark.parametrize("backend", MALICIOUS_FIELDS, ids=name)
@pytest.mark.parametrize("k", [2, 8, 18])
def test_fields_with_masks_that_hide_every_number(tmp_path: Path, backend: Backend, k: int) -> None:
    if backend == MASCOT and k > 2 and not LONG:
        pytest.skip("some 20 s; KEYQUORUM_LONG=1 runs it (test_masks.py has numbers at both ends)")
    check(tmp_path, backend, k, 30)


@pytest.mark.parametrize("k", [2, 18, 63])
def test_a_field_of_127_bits(tmp_path: Path, k: int) -> None:
    check(tmp_path, ("mal-rep-field", 3, f"F_{(1 << 127) - 1}"), k, 100)


@pytest.mark.parametrize("protocol", ["mal-rep-field", "mal-shamir"])
@pytest.mark.parametrize("prime", [1729382256910270481, 1154047404513689627, 2305842974853955601])
def test_primes_of_which_masks_are_drawn_more_than_once(tmp_path: Path, protocol: str, prime: int) -> None:
    """1.5, 1 + 2^-10 and 2 - 2^-25 times 2^60."""
    check(tmp_path, (protocol, 3, f"F_{prime}"), 18, 50)


@pytest.mark.parametrize("backend", ALL, ids=name)
def test_all_small_numbers(tmp_path: Path, backend: Backend) -> None:
    source = """
        a = sint.get_input_from(0, size=256, binary=True)
        b = sint.get_input_from(0, size=256, binary=True)
        a.less_than(b, 5).reveal().binary_output()
        a.equal(b, 5).reveal().binary_output()
        """
    a, b = (v.ravel() for v in np.meshgrid(np.arange(-8, 8), np.arange(-8, 8)))
    out = run(tmp_path, source, backend, private={0: [*a.tolist(), *b.tolist()]})[0].io.binary_outputs
    assert np.array_equal(out[0], a < b) and np.array_equal(out[1], a == b)


@pytest.mark.parametrize(
    ("backend", "statement", "rounds"),
    [
        (RING, "y = x < 0", 1 + 6 + 2),  # full adders, carries of 63 bits, conversion
        (RING, "y = x == 0", 2 + 6 + 2),
        (RING, "y = x.bit_decompose(64, maybe_mixed=True)", 1 + 6),
        (RING, "y = sbitvec(x, 8, 8)", 1 + 3),
        (RING, "y = sbitvec.from_vec([sbits.get_type(64)(sint.get_edabit(1, False, size=64)[1][0]) "
               "for _ in range(31)]).popcnt()", 4),
        (REP_FIELD, "y = sint(1, size=64).less_than(3, 17)", 2 + 1 + 5 + 2),  # mask, opening, carries, conversion
        (SHAMIR, "y = sint(1, size=64).less_than(3, 17)", 2 + 1 + 5),
        (SHAMIR, "y = sint(1, size=64).equal(3, 16)", 2 + 1 + 4),
    ],
)  # fmt: skip
def test_rounds(tmp_path: Path, backend: Backend, statement: str, rounds: int) -> None:
    assert run(tmp_path, RANDOM + statement, backend)[0].stats["rounds"] == rounds
