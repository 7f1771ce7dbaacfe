"""legendre_prf: the symbols of a reference with Python's integers, at the cost stated, also over primes of more than 64 bits; and blinding that hides all else."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from keyquorum import _engine
from keyquorum.dsl import ProgramIO, ShareVector, run_program
from keyquorum.dsl.files.origin import Origin

from tests.protocols import EMULATE_FIELD, REPLICATED_FIELD, SEMI_FIELD, SHAMIR_3, SHAMIR_5, VERIFIED_FIELD, Backend

from .costs import PROGRAMS, expected
from .running import SEED, at_every_party, run

RNG = np.random.default_rng(544)
MERSENNE = (1 << 127) - 1
GENERAL = (1 << 100) - 15
WIDE = [MERSENNE, GENERAL, (1 << 64) + 13]
ANY = {"emulate": 1, "rep-field": 3, "mal-rep-field": 3}
HELD = {"emulate": [(0,)], "rep-field": [(0, 2), (1, 0), (2, 1)], "mal-rep-field": [(0, 2), (1, 0), (2, 1)]}
"""Summands that a party holds of a shared element."""


def symbol(value: int, q: int) -> int:
    power = pow(value, q // 2, q)
    return -1 if power == q - 1 else power


def polynomial(x: int, keys: list[int], i: int, bits: int, degree: int) -> int:
    return x + keys[i] if degree == 1 else x * (x + keys[bits + i]) + keys[i]


def reference(points: list[int], keys: list[int], bits: int, degree: int, q: int) -> list[int]:
    return [symbol(polynomial(x, keys, i, bits, degree) % q, q) for x in points for i in range(bits)]


def uniform(q: int, count: int) -> list[int]:
    return [int.from_bytes(RNG.bytes(32)) % q for _ in range(count)]


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("backend", [EMULATE_FIELD, REPLICATED_FIELD, VERIFIED_FIELD, SHAMIR_3, SHAMIR_5, SEMI_FIELD], ids=str)
def test_symbols_and_costs(backend: Backend, degree: int) -> None:
    bits, points = 20, [3, 0, 1 << 40]
    keys = RNG.integers(0, 1 << 59, bits * degree).tolist()
    arguments = {"size": 3, "bits": bits, "degree": degree, "destination": "all", "points_at": 1, "constants_at": 4, "slopes_at": 4 + bits}
    out = run("legendre_prf", arguments, backend, shares=[7, *points, *keys])
    assert out.public.tolist() == reference(points, keys, bits, degree, backend.modulus)
    shared = run("legendre_prf", arguments | {"destination": "share"}, backend, shares=[7, *points, *keys])
    assert [symbol(int(v) % backend.modulus, backend.modulus) for v in shared.shares] == out.public.tolist()


def dealt(protocol: str, values: list[int], q: int) -> list[ShareVector]:
    """Summands of values of any length, as each party's share file."""
    summands = [uniform(q, len(values)) for _ in range({1: 0, 3: 2}[ANY[protocol]])]
    summands.append([(v - sum(column)) % q for v, *column in zip(values, *summands, strict=True)])
    made = []
    for held in HELD[protocol]:
        raw = b"".join(b"".join(v.to_bytes(16, "little") for v in summands[number]) for number in held)
        made.append(ShareVector.from_words(np.frombuffer(raw, "<u8").reshape(len(held), -1), 2))
    return made


def wide(protocol: str, q: int, arguments: list[object], values: list[int]) -> tuple[list[int], list[int], dict[str, int]]:
    """Symbols, opened appended values, and the counters of party 0."""
    files = dealt(protocol, values, q)

    def one(session: _engine.Session) -> tuple[list[int], list[int], dict[str, int]]:
        shares = files[session.party]
        engine = session.engine(protocol, f"F_{q}", "legendre_prf", None, SEED)
        if protocol == "mal-rep-field":
            shares.origins = [Origin(engine.origin())]
            shares.bind(protocol, f"F_{q}")
        before = engine.stats()
        io = ProgramIO(shares=shares)
        run_program(engine, PROGRAMS / "legendre_prf.mpc", [str(a) for a in arguments], io)
        stats = {name: engine.stats()[name] - before[name] for name in ("rounds", "bytes_sent")}
        appended = shares.length - len(values)
        opened = b""
        if appended:
            opened = engine.read_wide(engine.open(engine.import_(shares.export(len(values), appended), appended)))
        output = [int(v) for vector in io.binary_outputs for v in vector]
        return output, [int.from_bytes(opened[i : i + 16], "little") for i in range(0, len(opened), 16)], stats

    results = at_every_party(ANY[protocol], one)
    assert all(r[:2] == results[0][:2] for r in results)
    total = {"rounds": results[0][2]["rounds"], "bytes": sum(r[2]["bytes_sent"] for r in results)}
    return results[0][0], results[0][1], total


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("q", WIDE)
@pytest.mark.parametrize("protocol", ANY)
def test_primes_of_more_than_64_bits(protocol: str, q: int, degree: int) -> None:
    bits, points = 64, [*uniform(q, 2), 0, q - 1]
    keys = uniform(q, bits * degree)
    want = reference(points, keys, bits, degree, q)
    symbols, _, counters = wide(protocol, q, [4, bits, degree, "all", 0, 4, 4 + bits], points + keys)
    assert symbols == want
    assert 0.3 < symbols.count(1) / len(symbols) < 0.7
    if protocol == "rep-field":
        names = {"size": 4, "bits": bits, "degree": degree, "destination": "all"}
        assert counters == {what: expected("legendre_prf", what, protocol, 3, 1, f"F_{q}", names) for what in ("rounds", "bytes")}
    _, blinded, _ = wide(protocol, q, [4, bits, degree, "share", 0, 4, 4 + bits], points + keys)
    assert [symbol(v, q) for v in blinded] == want
    assert all(
        v != polynomial(x, keys, i, bits, degree) % q for v, (x, i) in zip(blinded, ((x, i) for x in points for i in range(bits)), strict=True)
    )


def test_a_root_has_the_symbol_zero() -> None:
    q, keys = MERSENNE, [MERSENNE - 5, 1]
    symbols, _, _ = wide("rep-field", q, [1, 2, 1, "all", 0, 1], [5, *keys])
    assert symbols == [0, symbol(6, q)]


def deviation(program: Path, q: int, f: int) -> float:
    """Standard deviations by which the chi-square statistic of opened values of f(x) = f is above its mean: over the non-zero elements with its symbol."""
    count = 6200
    (session,) = _engine.local_sessions(1, 60.0)
    engine = session.engine("emulate", f"F_{q}", "hiding", None, SEED)
    shares = ShareVector()
    shares.write(engine, engine.export(engine.input(0, count + 1, np.array([0] + [f] * count))))
    run_program(engine, program, ["1", str(count), "1", "share", "0", "1"], ProgramIO(shares=shares))
    seen = Counter(engine.read(engine.open(engine.import_(shares.export(count + 1, count), count))).tolist())
    zeros = seen.pop(0, 0)
    assert zeros < 320  # s = 0: 200 expected, deviation 14
    same = [v for v in range(1, q) if symbol(v, q) == symbol(f, q)]
    assert set(seen) <= set(same)
    mean = (count - zeros) / len(same)
    chi = sum((seen[v] - mean) ** 2 / mean for v in same)
    return float((chi - len(same) + 1) / np.sqrt(2 * (len(same) - 1)))


def test_what_is_opened_tells_the_symbol_alone() -> None:
    """Uniform among the non-zero elements with the symbol of f(x). False alarm: below 10^-6 (six deviations)."""
    assert all(deviation(PROGRAMS / "legendre_prf.mpc", 31, f) < 6 for f in (1, 2, 3, 15))


def test_ablated_without_squares_the_receiver_has_the_key(tmp_path: Path) -> None:
    """The same program without the random factors opens f(x) itself: a chosen point gives b, and the test above sees it."""
    source = (PROGRAMS / "legendre_prf.mpc").read_text()
    assert source.count("squares(size * bits)") == 1
    (tmp_path / "Source").mkdir()
    (tmp_path / "Library").symlink_to(PROGRAMS.parent / "Library")
    program = tmp_path / "Source" / "unblinded.mpc"
    program.write_text(source.replace("squares(size * bits)", "sint(1, size=size * bits)"))
    assert deviation(program, 31, 3) > 1000


def test_short_primes_and_degree_1_are_broken_by_a_table() -> None:
    """Khovratovich's attack (eprint 2019/862): keys that are tabled by 40 symbols in a row, and as many windows of queries: about sqrt(p) each. With
    degree 2 the symbols of such windows are those of no tabled key."""
    q, window, steps = (1 << 20) - 3, 40, 2048
    squares = {v * v % q for v in range(q // 2 + 1)}
    bit = [v in squares for v in range(q)]
    table = {tuple(bit[(x + k) % q] for x in range(window)): k for k in range(0, q, steps // 2)}

    def keys_found(symbols: list[bool]) -> list[int]:
        windows = ((i, tuple(symbols[i : i + window])) for i in range(steps))
        return [(table[w] - i) % q for i, w in windows if w in table]

    b, a = uniform(q, 2)
    assert keys_found([bit[(x + b) % q] for x in range(steps + window)]) == [b, b]
    assert not keys_found([bit[(x * (x + a) + b) % q] for x in range(steps + window)])


@pytest.mark.parametrize("protocol", ["shamir", "semi", "mascot", "mal-shamir"])
def test_other_protocols_refuse_long_primes(protocol: str) -> None:
    parties = {"shamir": 3, "mal-shamir": 3}.get(protocol, 2)

    def one(session: _engine.Session) -> str:
        with pytest.raises(_engine.UsageError) as refused:
            session.engine(protocol, f"F_{MERSENNE}", "x", None, SEED)
        return str(refused.value)

    (text, *_) = set(at_every_party(parties, one))
    assert text.startswith(f"{protocol} works over prime fields of at most 62 bits, not over F_{MERSENNE}: take ")


@pytest.mark.parametrize("domain", [f"F_{1 << 64}", f"F_{(1 << 127) - 3}", f"F_{(1 << 128) - 159}", f"F_{(1 << 64) + 1}"])
def test_no_prime_field(domain: str) -> None:
    (session,) = _engine.local_sessions(1, 60.0)
    with pytest.raises(_engine.UsageError, match=r"no modulus of a wide prime field|is not a domain"):
        session.engine("emulate", domain, "x", None, SEED)


def test_symbols_for_receivers() -> None:
    for q in WIDE:
        values = [0, 1, q - 1, *uniform(q, 50)]
        raw = b"".join(v.to_bytes(16, "little") for v in values)
        assert _engine.legendre_symbols(q, raw).tolist() == [symbol(v, q) for v in values]
        doubled = _engine.wide_sum(q, raw, raw)
        assert [int.from_bytes(doubled[i : i + 16], "little") for i in range(0, len(doubled), 16)] == [2 * v % q for v in values]
        with pytest.raises(_engine.UsageError, match="not below the modulus"):
            _engine.legendre_symbols(q, q.to_bytes(16, "little"))
    for call in (lambda: _engine.legendre_symbols(MERSENNE, bytes(15)), lambda: _engine.wide_sum(MERSENNE, bytes(16), bytes(32))):
        with pytest.raises(_engine.UsageError):
            call()


def test_keys_are_uniform_elements() -> None:
    """Of every size, and fresh: the highest bits of 512 elements, and two runs."""
    made = []
    for _ in range(2):
        (session,) = _engine.local_sessions(1, 60.0)
        engine, shares = session.engine("emulate", f"F_{MERSENNE}", "keys"), ShareVector()
        run_program(engine, PROGRAMS / "legendre_keys.mpc", ["256", "2"], ProgramIO(shares=shares))
        raw = shares.export(0, 512)
        made.append([int.from_bytes(raw[i : i + 16], "little") for i in range(0, len(raw), 16)])
    assert len(set(made[0] + made[1])) == 1024 and max(made[0] + made[1]) < MERSENNE
    assert 350 < sum(v >> 126 for v in made[0] + made[1]) < 674  # 512 expected; ten deviations are 160
