"""Every operation of the engine, on every protocol, against clear arithmetic; with rounds and bytes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from keyquorum import _engine
from keyquorum.model.protocols import PROTOCOLS

from tests.protocols import ROUNDS

from .conftest import run_parties

Case = tuple[str, int, str]


def order(domain: str) -> int:
    return 2 ** int(domain[3:]) if domain.startswith("Z2^") else int(domain[2:])


def read(engine: Any, value: Any) -> list[int]:
    raw = engine.read_wide(value)
    return [int.from_bytes(raw[i : i + 16], "little") for i in range(0, len(raw), 16)]


def ints(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def test_arithmetic(case: Case) -> None:
    m = order(case[2])
    rng = np.random.default_rng(1)
    x, y = rng.integers(-(2**62), 2**62, 100), rng.integers(-(2**62), 2**62, 100)

    def body(e: Any, party: int) -> list[list[int]]:
        owner = e.parties - 1
        a = e.input(0, 100, x if party == 0 else None)
        b = e.input(owner, 100, y if party == owner else None)
        c = e.clear(y)
        one = e.clear(ints([5]))
        results = [e.add(a, b), e.sub(a, b), e.mul(a, b), e.neg(a), e.mul(a, c), e.add(c, a), e.sub(c, a), e.sub(a, c)]
        results += [e.mul(a, one), e.add(e.slice(a, 7, 1, 1), b), e.mul(e.slice(a, 7, 1, 1), b), e.sub(one, a)]
        results += [e.dot(a, b, 10), e.sum(a, 50), e.mul(e.mul(a, b), a)]
        return [read(e, e.open(r)) for r in results]

    xs, ys = [int(v) % m for v in x], [int(v) % m for v in y]
    want = [
        [(p + q) % m for p, q in zip(xs, ys, strict=True)],
        [(p - q) % m for p, q in zip(xs, ys, strict=True)],
        [p * q % m for p, q in zip(xs, ys, strict=True)],
        [-p % m for p in xs],
        [p * q % m for p, q in zip(xs, ys, strict=True)],
        [(p + q) % m for p, q in zip(xs, ys, strict=True)],
        [(q - p) % m for p, q in zip(xs, ys, strict=True)],
        [(p - q) % m for p, q in zip(xs, ys, strict=True)],
        [5 * p % m for p in xs],
        [(xs[7] + q) % m for q in ys],
        [xs[7] * q % m for q in ys],
        [(5 - p) % m for p in xs],
        [sum(xs[i + j] * ys[i + j] for j in range(10)) % m for i in range(0, 100, 10)],
        [sum(xs[i : i + 50]) % m for i in (0, 50)],
        [p * p * q % m for p, q in zip(xs, ys, strict=True)],
    ]
    for got in run_parties(*case, body):
        assert got == want


def test_shape(case: Case) -> None:
    def body(e: Any, party: int) -> list[list[int]]:
        a = e.input(0, 6, ints([0, 1, 2, 3, 4, 5]) if party == 0 else None)
        pending = e.mul(a, a)
        results = []
        for v in (a, pending):
            results += [e.gather(v, ints([5, 0, 5])), e.slice(v, 1, 2, 3), e.slice(v, 5, -1, 6), e.concat([v, v])]
            results.append(e.assign(e.slice(v, 0, 1, 6), 1, 2, e.clear(ints([9, 9, 9]))))
            results.append(e.scatter(e.slice(v, 0, 1, 6), ints([4, 0]), e.slice(v, 2, 1, 2)))
            results.append(e.repeat(e.slice(v, 3, 1, 1), 2))
        return [read(e, e.open(r)) for r in results]

    want = []
    for v in ([0, 1, 2, 3, 4, 5], [0, 1, 4, 9, 16, 25]):
        want += [[v[5], v[0], v[5]], [v[1], v[3], v[5]], v[::-1], v + v, [v[0], 9, v[2], 9, v[4], 9]]
        want += [[v[3], v[1], v[2], v[3], v[2], v[5]], [v[3], v[3]]]
    for got in run_parties(*case, body):
        assert got == want


def test_random_bits_are_bits_and_balanced(case: Case) -> None:
    n = 20000

    def body(e: Any, party: int) -> list[int]:
        return read(e, e.open(e.random_bit(n)))

    results = run_parties(*case, body)
    assert all(r == results[0] for r in results)
    assert set(results[0]) == {0, 1}
    assert abs(sum(results[0]) - n / 2) < 5 * (n / 4) ** 0.5  # false alarm 6e-7


def test_random_is_uniform(case: Case) -> None:
    n, m = 20000, order(case[2])

    def body(e: Any, party: int) -> list[int]:
        return read(e, e.open(e.random(n)))

    results = run_parties(*case, body)
    assert all(r == results[0] for r in results)
    counts = np.bincount([v * 16 // m for v in results[0]], minlength=16)
    assert ((counts - n / 16) ** 2 / (n / 16)).sum() < 50  # chi-square, 15 degrees: false alarm 1e-5


def test_open_to_one_party(case: Case) -> None:
    receiver = case[1] - 1

    def body(e: Any, party: int) -> list[int] | str:
        a = e.input(0, 3, ints([7, 8, 9]) if party == 0 else None)
        p = e.open_to(e.mul(a, a), receiver)
        e.flush()
        try:
            return read(e, p)
        except _engine.UsageError as error:
            return str(error)

    results = run_parties(*case, body)
    for party, got in enumerate(results):
        assert got == [49, 64, 81] if party == receiver else "revealed to party" in got


def test_export_import(case: Case) -> None:
    def body(e: Any, party: int) -> list[int]:
        a = e.input(0, 3, ints([7, 8, 9]) if party == 0 else None)
        raw = e.export(a)
        assert len(raw) == 3 * e.share_parts * e.element_bytes
        e.origin()  # with MACs no shares are taken in before
        with pytest.raises(_engine.StoreError):
            e.import_(raw[:-1], 3)
        return read(e, e.open(e.import_(raw, 3)))

    for got in run_parties(*case, body):
        assert got == [7, 8, 9]


def test_bits(case: Case) -> None:
    if not PROTOCOLS[case[0]].binary:
        pytest.skip(f"{case[0]} has no binary domain")
    rng = np.random.default_rng(2)
    x, y = rng.integers(0, 2, 130).astype(np.uint8), rng.integers(0, 2, 130).astype(np.uint8)

    def body(e: Any, party: int) -> list[list[int]]:
        owner = e.parties - 1
        a = e.input_bits(0, 130, x if party == 0 else None)
        b = e.input_bits(owner, 130, y if party == owner else None)
        c = e.clear_bits(y)
        one = e.slice(a, 3, 1, 1)
        results = [e.xor(a, b), e.and_(a, b), e.not_(a), e.and_(a, c), e.xor(c, a), e.and_(one, b), e.xor(one, b)]
        results += [e.gather(a, ints([129, 0, 64])), e.slice(a, 5, 1, 70), e.concat([one, a, b])]
        out = [list(map(int, e.read_bits(e.open(r)))) for r in results]
        out.append(read(e, e.open(e.bit_to_arith(a))))
        out.append(read(e, e.open(e.bit_to_arith(e.and_(a, b)))))
        return out

    want = [x ^ y, x & y, 1 - x, x & y, x ^ y, x[3] & y, x[3] ^ y, x[[129, 0, 64]], x[5:75], [x[3], *x, *y], x, x & y]
    for got in run_parties(*case, body):
        assert got == [list(map(int, w)) for w in want]


@pytest.mark.parametrize("protocol", [p.name for p in PROTOCOLS.values() if p.splits and p.ring])
def test_summand_bits(protocol: str) -> None:
    parties = PROTOCOLS[protocol].most_parties or 3

    def body(e: Any, party: int) -> list[list[list[int]]]:
        a = e.random(70)
        rows = e.summand_bits(a, 64)
        opened = [[list(map(int, e.read_bits(e.open(bit)))) for bit in summand] for summand in rows]
        return [[read(e, e.open(a))], *opened]

    for got in run_parties(protocol, parties, "Z2^64", body):
        assert len(got) == 1 + PROTOCOLS[protocol].summands(parties)
        total = [sum(sum(bit[i] << j for j, bit in enumerate(s)) for s in got[1:]) % 2**64 for i in range(70)]
        assert total == got[0][0]


@pytest.mark.parametrize(("protocol", "parties"), list(ROUNDS))
@pytest.mark.parametrize("operation", ["mul", "open", "bits", "input"])
def test_rounds_and_bytes(protocol: str, parties: int, operation: str) -> None:
    domain = "Z2^64" if PROTOCOLS[protocol].ring else "F_1152921504606584833"
    n = 960

    def body(e: Any, party: int) -> tuple[int, int]:
        a = e.random(n)
        if operation == "mul":
            for _ in range(5):  # one depth: one round
                e.mul(a, a)
        elif operation == "open":
            e.open(a)
        elif operation == "bits":
            e.random_bit(n)
        else:
            e.input(0, n, np.zeros(n, dtype=np.int64) if party == 0 else None)
        e.flush()
        stats = e.stats()
        return stats["rounds"], stats["bytes_sent"]

    results = run_parties(protocol, parties, domain, body)
    rounds, size = ROUNDS[protocol, parties][operation]
    assert all(r[0] == rounds for r in results)
    assert sum(r[1] for r in results) == parties * size * n * (5 if operation == "mul" else 1)


def test_parties_that_differ_are_named() -> None:
    sessions = _engine.local_sessions(3, 10.0)
    from concurrent.futures import ThreadPoolExecutor

    def one(s: Any) -> str:
        with pytest.raises(_engine.ProtocolError) as caught:
            s.engine("ring", "Z2^64" if s.party else "Z2^32", "p")
        return str(caught.value)

    with ThreadPoolExecutor(3) as pool:
        texts = list(pool.map(one, sessions))
    assert "another domain" in texts[0]
    assert "party 0 has another domain" in texts[1]


def test_what_members_compute_comes_row_after_row() -> None:
    def one(session: Any) -> bytearray:
        joint = session.joint_integers("mal-shamir", 5, 8, 1, 1, None)
        numbers = np.stack([np.frombuffer(joint.numbers(summand), dtype="<u8") for summand in joint.known]).astype(np.int64)
        with pytest.raises(_engine.UsageError, match="row after row"):
            joint.shares_of("F_65537", np.asfortranarray(numbers))
        made: bytearray = joint.shares_of("F_65537", numbers)
        assert made == joint.shares("F_65537")
        return made

    with ThreadPoolExecutor(3) as pool:
        assert len({bytes(made) for made in pool.map(one, _engine.local_sessions(3, 30.0))}) == 3
