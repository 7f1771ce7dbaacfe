"""Masks of numbers that are opened over fields: attacks of a malicious party that makes a compared number longer than its bit length, and
the laws of the masks.

The attacks need a program in which a number of a party is multiplied with a secret of another one. The corrupted party follows the
protocol, and reads the openings that every party sees.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keyquorum import _engine
from keyquorum.dsl import ProgramIO, ProgramOptions, run_program
from keyquorum.dsl.context import Run
from keyquorum.dsl.control.program import Program
from keyquorum.dsl.values import masks
from keyquorum.model.errors import ProgramError
from scipy import stats

from .running import EMULATE_FIELD, MAL_REP_FIELD, MAL_SHAMIR, REP_FIELD, SEMI, SHAMIR, Backend, name, printed, run

MERSENNE = (1 << 61) - 1
WIDE = (1 << 127) - 1
FAR = 1729382256910270481
"""A prime near 1.5 * 2^60: a quarter of the numbers of 61 bits are not below it."""
MALICIOUS: list[Backend] = [("mal-rep-field", 3, f"F_{MERSENNE}"), ("mascot", 2, f"F_{MERSENNE}"), ("mal-shamir", 5, f"F_{MERSENNE}")]
BOUNDED = "program.options.bounded_masks = True\n"
FALSE_ALARM = 1e-9
"""Of each statistical test. Engines have fixed seeds, so a test that passes once always passes."""


@dataclass
class Seen:
    """What party 0 sees: the opened numbers in their order, and the printed text."""

    opened: list[list[int]] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)


class _Watched:
    """An engine whose openings of numbers are noted."""

    def __init__(self, engine: Any, log: list[Any]) -> None:
        self._engine, self._log = engine, log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def open(self, a: Any) -> Any:
        made = self._engine.open(a)
        if a.kind == "s":
            self._log.append(made)
        return made

    def numbers(self) -> list[list[int]]:
        """The opened numbers, in [0, q)."""
        if self._engine.bits <= 64:
            return [self._engine.read(v).tolist() for v in self._log]
        raw = [bytes(self._engine.read_wide(v)) for v in self._log]
        return [[int.from_bytes(r[i : i + 16], "little") for i in range(0, len(r), 16)] for r in raw]


def watched(folder: Path, source: str, backend: Backend, private: Mapping[int, Sequence[int]], seed: str = "") -> Seen:
    """Runs a program with engines of fixed seeds; returns what party 0 sees."""
    path = folder / "program.mpc"
    path.write_text(source)
    protocol, n, domain = backend
    words = {i: np.array(v, dtype=np.int64) for i, v in private.items()}

    def one(session: _engine.Session) -> Seen:
        fixed = hashlib.sha256(f"{backend}/{seed}".encode()).digest()
        log: list[Any] = []
        engine = _Watched(session.engine(protocol, domain, "test", seed=fixed), log)
        seen = Seen()
        io = ProgramIO(private_inputs=words.get(session.party, np.empty(0, dtype=np.int64)), stdout=seen.printed.append)
        try:
            run_program(engine, path, [], io)  # type: ignore[arg-type]
            seen.opened = engine.numbers()
        except BaseException as error:
            session.abort(str(error))
            raise
        return seen

    with ThreadPoolExecutor(n) as pool:
        return next(iter(pool.map(one, _engine.local_sessions(n, 60.0))))


def assert_uniform(numbers: Sequence[int], modulus: int) -> None:
    """The numbers are uniform in [0, modulus), by the test of Kolmogorov and Smirnov."""
    assert stats.kstest([x / modulus for x in numbers], "uniform").pvalue > FALSE_ALARM


# -- a product that is longer than its field allows -----------------------------------------------------------------------

SECRET_BITS, SECRETS = 12, 24
ATTACKED = pytest.mark.parametrize("backend", [*MALICIOUS, MAL_REP_FIELD, MAL_SHAMIR], ids=name)
"""Three protocols modulo 2^61 - 1, two of them also modulo the default prime."""


def bits_of_products(folder: Path, backend: Backend, options: str = "") -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], Seen]:
    """A program that compares products a b with 1000, and prints one bit. For a field of l bits party 0 gives a_i = 2^(l - 1 - i), so bit i of b is the
    highest bit of a_i b, above what the mask covers for the longest integers that may be compared. Returns the bits of party 1's secrets, what party 0
    takes for them, and what it sees."""
    modulus = int(backend[2][2:])
    high = modulus.bit_length() - 1
    length = high - 41
    secrets = np.random.default_rng(13).integers(0, 1 << SECRET_BITS, SECRETS)
    own = [1 << (high - i) for _ in range(SECRETS) for i in range(SECRET_BITS)]
    size = len(own)
    source = (
        options
        + f"""
a = sint.get_input_from(0, size={size}, binary=True)
b = sint.get_input_from(1, size={size}, binary=True)
below = (a * b).less_than(1000, {length})
count = below.sum()
print_ln('%s', count.equal({size}, 18).reveal())
"""
    )
    seen = watched(folder, source, backend, {0: own, 1: np.repeat(secrets, SECRET_BITS).tolist()})
    compared = np.array(next(values for values in seen.opened if len(values) == size), dtype=object).reshape(SECRETS, SECRET_BITS)
    true = (secrets[:, None] >> np.arange(SECRET_BITS)) & 1
    return true, np.array([read_bits(row, modulus) for row in compared]), seen


def read_bits(opened: Sequence[int], modulus: int) -> list[int]:
    """Bit i of the secret from x_i + mask: what is known of x_i is subtracted, and the rest is the mask, below 2^high, or 2^high more."""
    high = modulus.bit_length() - 1
    found: list[int] = []
    for i, value in enumerate(opened):
        known = sum(bit << (high - i + j) for j, bit in enumerate(found))
        found.append(((value - known) % modulus) >> high)
    return found


@ATTACKED
def test_short_masks_blocked_bits_of_a_secret_above_the_mask(tmp_path: Path, backend: Backend) -> None:
    true, read, seen = bits_of_products(tmp_path, backend)
    right = int((true == read).sum())
    assert stats.binomtest(right, true.size).pvalue > FALSE_ALARM
    assert not any((row == guess).all() for row, guess in zip(true, read, strict=True))
    compared = next(values for values in seen.opened if len(values) == true.size)
    assert_uniform(compared, int(backend[2][2:]))
    assert "".join(seen.printed).split() in (["0"], ["1"])


@ATTACKED
def test_short_masks_ablated_bits_of_a_secret_above_the_mask(tmp_path: Path, backend: Backend) -> None:
    true, read, _ = bits_of_products(tmp_path, backend, BOUNDED)
    assert (true == read).all()


# -- inputs that are in range, and a product that is not --------------------------------------------------------------------

PRODUCTS = 64


def high_bits(folder: Path, options: str = "") -> tuple[list[int], list[int], list[int]]:
    """A program with integers of 64 bits, the default, that prints bits [a b < 1000]. All inputs have 63 bits: a = 2^62, b is random.
    Returns the products, the opened numbers and what is printed."""
    secrets = np.random.default_rng(14).integers(0, 1 << 62, PRODUCTS)
    source = (
        options
        + f"""
a = sint.get_input_from(0, size={PRODUCTS}, binary=True)
b = sint.get_input_from(1, size={PRODUCTS}, binary=True)
print_ln('%s', (a * b < 1000).reveal())
"""
    )
    seen = watched(folder, source, ("mal-rep-field", 3, f"F_{WIDE}"), {0: [1 << 62] * PRODUCTS, 1: secrets.tolist()})
    printed = [int(word) % WIDE for word in "".join(seen.printed).strip(" []\n").split(",")]
    return [int(b) << 62 for b in secrets], seen.opened[0], printed


def test_short_masks_blocked_high_bits_of_a_product_in_the_opening(tmp_path: Path) -> None:
    products, opened, printed = high_bits(tmp_path)
    assert_uniform(opened, WIDE)
    assert_uniform([(c - x) % WIDE for c, x in zip(opened, products, strict=True)], WIDE)
    assert not any(abs((c >> 105) - (x >> 105)) <= 1 for c, x in zip(opened, products, strict=True))
    assert set(printed) <= {0, 1}


def test_short_masks_ablated_high_bits_of_a_product_in_the_opening(tmp_path: Path) -> None:
    products, opened, printed = high_bits(tmp_path, BOUNDED)
    assert all((c >> 105) - (x >> 105) in (0, 1) for c, x in zip(opened, products, strict=True))
    # What is printed is no bit: it is the product without its lowest 64 bits.
    assert printed == [-((x - 1000) >> 64) % WIDE for x in products]


# -- every element of the field ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", [*MALICIOUS, ("mal-rep-field", 3, f"F_{FAR}"), ("mal-shamir", 3, f"F_{FAR}")], ids=name)
def test_results_have_their_range_for_every_element(tmp_path: Path, backend: Backend) -> None:
    """Comparisons give bits, and remainders are below 2^m, also of numbers that are too long: those of x, or of x - q where the opening wraps."""
    k, m, q = 16, 5, int(backend[2][2:])
    generator = np.random.default_rng(15)
    given = [
        *generator.integers(-(q // 2), q // 2, 60).tolist(),
        *(s * (1 << i) + d for i in (15, 16, 30, 58, 59) for s in (1, -1) for d in (-1, 0, 1)),
        q // 2,
        -(q // 2),
    ]
    source = f"""
x = sint.get_input_from(1, size={len(given)}, binary=True)
for y in [x.less_than(0, {k - 1}), x.equal(0, {k}), x.mod2m({m}, {k}), *x.bit_decompose({k})]:
    print_ln('%s', y.reveal())
"""
    seen = watched(tmp_path, source, backend, {1: given})
    negative, zero, low, *bits = (np.array([int(word) for word in line.strip("[]").split(",")]) for line in "".join(seen.printed).splitlines())
    for i, x in enumerate(given):
        word = x % q
        ways = {w % (1 << k) for w in (word, word - q)}
        assert negative[i] in {w >> (k - 1) for w in ways}
        assert zero[i] in {int(w == 0) for w in ways}
        assert low[i] in {w % (1 << m) for w in ways}
        assert sum(int(row[i]) << j for j, row in enumerate(bits)) in ways
        if -(1 << (k - 1)) <= x < 1 << (k - 1):
            assert (negative[i], zero[i], low[i]) == (x < 0, x == 0, x % (1 << m))


# -- laws of masks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("q", [5, 257, 65537, 12289, 1152921504606584833, MERSENNE, FAR, WIDE])
@pytest.mark.parametrize("security", [2, 10, 40])
def test_masks_without_candidates_are_nearly_uniform(q: int, security: int) -> None:
    """The width is the right one, from the exact distance of a uniform number below N, modulo q, from a uniform one; None if no power of two is near
    enough."""
    found = {width: distance(1 << width, q) for width in (q.bit_length() - 1, q.bit_length())}
    width = masks.free_width(q, 0, security)
    if width is not None:
        assert found[width] <= Fraction(1, 1 << security)
    else:
        assert all(d > Fraction(1, 1 << (security + 1)) for d in found.values())
    assert masks.free_width(q, 1, security) == (None if width is None else width - 1)


def distance(numbers: int, q: int) -> Fraction:
    """The statistical distance of a uniform number below ``numbers`` < 2q, modulo q, from a uniform one below q."""
    twice = max(0, numbers - q)
    once = min(numbers, q) - twice
    return (
        twice * abs(Fraction(2, numbers) - Fraction(1, q)) + once * abs(Fraction(1, numbers) - Fraction(1, q)) + (q - twice - once) * Fraction(1, q)
    ) / 2


@pytest.mark.parametrize("bound", [1, 3, 5, 11, 13])
@pytest.mark.parametrize("protocol", ["mal-rep-field", "mal-shamir"])
def test_candidates_that_are_kept_are_uniform_below_the_bound(bound: int, protocol: str) -> None:
    """The test of chi squared on 20,000 numbers."""
    count = 20_000
    numbers = [0] * count

    def one(session: _engine.Session) -> None:
        engine = session.engine(protocol, f"F_{MERSENNE}", "test", seed=bytes([bound] * 32))
        run = Run(engine, None, Program(engine, "", "", [], ProgramOptions()))
        drawn = engine.read(engine.open(masks._below(run, bound, count))).tolist()
        if session.party == 0:
            numbers[:] = drawn

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(one, _engine.local_sessions(3, 60.0)))
    seen = np.bincount(numbers, minlength=bound)
    assert len(seen) == bound
    assert bound == 1 or stats.chisquare(seen).pvalue > FALSE_ALARM


LARGE = 1 << 59


def far_openings(folder: Path, backend: Backend, count: int) -> tuple[list[int], float]:
    """What is opened by comparisons of one number that is far out of its range, and the share of it that x + v is for numbers v below 2^61 - q."""
    source = f"x = sint.get_input_from(0, size={count}, binary=True)\nprint_ln('%s', x.less_than(0, 18).sum().reveal())\n"
    seen = watched(folder, source, backend, {0: [LARGE] * count})
    compared = [v for values in seen.opened if len(values) == count for v in values]
    assert len(compared) == count
    return compared, sum((c - LARGE) % FAR < (1 << 61) - FAR for c in compared) / count


@pytest.mark.parametrize(("protocol", "parties", "count"), [("mal-rep-field", 3, 800), ("mal-shamir", 3, 800)])
def test_short_masks_blocked_openings_over_a_prime_far_from_powers_of_two(tmp_path: Path, protocol: str, parties: int, count: int) -> None:
    opened, share = far_openings(tmp_path, (protocol, parties, f"F_{FAR}"), count)
    assert_uniform(opened, FAR)
    assert share < 0.42  # 1/3 is expected; 5 deviations


def test_short_masks_ablated_openings_over_a_prime_far_from_powers_of_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Masks of 61 bits of which none is thrown away: residues below 2^61 - q come twice as often, which shows where x is."""
    monkeypatch.setattr(masks, "free_width", lambda modulus, m, security: modulus.bit_length() - m)
    _, share = far_openings(tmp_path, ("mal-rep-field", 3, f"F_{FAR}"), 800)
    assert share > 0.42  # 1/2 is expected; 4.5 deviations


def test_no_mask_serves_twice(tmp_path: Path) -> None:
    """One number is compared many times, in one vector and in two. Each opening has its own mask: no two are alike or near."""
    source = "x = sint([5] * 50)\nprint_ln('%s %s', x.less_than(3, 18).sum().reveal(), x.less_than(3, 18).sum().reveal())\n"
    seen = watched(tmp_path, source, MALICIOUS[0], {})
    opened = sorted(v for values in seen.opened if len(values) == 50 for v in values)
    assert len(opened) == 100
    assert min(b - a for a, b in pairwise(opened)) > MERSENNE >> 40


class _PassesOff(_Watched):
    """The engine of a party that opens the opposite of [a candidate is too large]."""

    def open(self, a: Any) -> Any:
        if a.size > 300 and not self._log:
            a = self._engine.not_(a) if a.kind == "sb" else self._engine.sub(self._engine.clear(np.ones(1, dtype=np.int64)), a)
        return super().open(a)


@pytest.mark.parametrize(
    ("protocol", "parties", "cheat"),
    [("mal-rep-field", 3, 0), ("mal-rep-field", 3, None), ("mascot", 2, 0), ("mal-shamir", 3, 0), ("mal-shamir", 3, None)],
)
def test_a_candidate_that_is_passed_off_stops_the_run_before_it_masks_anything(
    tmp_path: Path, protocol: str, parties: int, cheat: int | None
) -> None:
    """Party 0 lies about candidates, and with MACs changes what is opened. The last party, which it deceives, has opened no compared number when it stops.

    Of replicated shares party 0 changes the summand that party 2 alone lacks: party 1 reads the true candidates, and may go on until party 2 tells it.
    """
    path, count = tmp_path / "program.mpc", 300
    path.write_text(f"x = sint.get_input_from(1, size={count}, binary=True)\nprint_ln('%s', x.less_than(0, 18).sum().reveal())\n")
    log: list[Any] = []
    last_ended = threading.Event()

    def one(session: _engine.Session) -> Exception | None:
        its_log: list[Any] = log if session.party == parties - 1 else []
        true = session.engine(protocol, f"F_{FAR}", "test")
        engine = (_PassesOff if session.party == cheat else _Watched)(true, its_log)
        io = ProgramIO(private_inputs=np.full(count if session.party == 1 else 0, 5, dtype=np.int64), stdout=lambda text: None)
        try:
            run_program(engine, path, [], io)  # type: ignore[arg-type]
        except _engine.EngineError as error:
            if session.party == parties - 1:
                last_ended.set()
            else:  # the others run on with other candidates, and fail as well: the last party comes to its own check before they break off
                last_ended.wait(20)
            session.abort(str(error))
            return error
        return None

    with ThreadPoolExecutor(parties) as pool:
        errors = list(pool.map(one, _engine.local_sessions(parties, 60.0)))
    compared = [value for value in log if value.size == count]
    assert (errors[-1] is not None, len(compared)) == ((True, 0) if cheat == 0 else (False, 1))
    assert cheat is None or any(isinstance(error, _engine.CheckError) for error in errors)


# -- cost --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", [MAL_REP_FIELD, MAL_SHAMIR], ids=name)
@pytest.mark.parametrize("operation", ["less_than(3, 17)", "equal(3, 16)", "mod2m(8, 16)", "bit_decompose(16)"])
def test_masks_that_hide_every_number_take_no_round_more(tmp_path: Path, backend: Backend, operation: str) -> None:
    """But one for < among arithmetic bits, whose result is a product then."""
    source = f"x = sint.get_random(size=64)\ny = sint(1, size=64).{operation}\n"
    rounds = [run(tmp_path, options + source, backend)[0].stats["rounds"] for options in (BOUNDED, "")]
    assert rounds[1] - rounds[0] == (backend == MAL_SHAMIR and operation.startswith("less"))


# -- the option ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("backend", "default"), [*((backend, "0") for backend in MALICIOUS), (REP_FIELD, "1"), (SHAMIR, "1"), (SEMI, "1"), (EMULATE_FIELD, "1")]
)
def test_the_kind_of_mask_follows_the_promise_of_the_protocol(tmp_path: Path, backend: Backend, default: str) -> None:
    source = """
        print_ln('%s', int(program.options.bounded_masks))
        program.options.bounded_masks = False
        print_ln('%s', sint(-3).less_than(2, 10).reveal())
        """
    assert printed(tmp_path, source, backend) == [default, "1"]


@pytest.mark.parametrize("value", ["1", "None", "'no'"])
def test_an_option_that_is_not_true_or_false(tmp_path: Path, value: str) -> None:
    with pytest.raises(ProgramError, match="bounded_masks is True or False"):
        printed(tmp_path, f"program.options.bounded_masks = {value}")
