"""z2_to_zq, bit_inputs, z3_to_zq, sum_inputs and lift: every backend agrees with clear arithmetic, at the cost stated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from keyquorum.dsl import ProgramIO, run_program
from keyquorum.model.resources import program_path
from keyquorum.sharing.numbers.lift import MERSENNE
from keyquorum.sharing.numbers.proven import _proven_trits
from keyquorum.sweep.operands import summand_rows

from tests.plans.distributions import chi_square_p, uniform
from tests.protocols import (
    ALL,
    EMULATE_FIELD,
    EMULATE_RING,
    FIELD,
    FIELDS,
    Q60,
    REPLICATED_FIELD,
    REPLICATED_RING,
    SEMI_FIELD,
    SEMI_FIELD_3,
    SEMI_RING,
    SEMI_RING_4,
    Backend,
)

from .costs import PROGRAMS
from .running import at_every_party, run

RNG = np.random.default_rng(1)
SPLITTING = [EMULATE_RING, REPLICATED_RING, SEMI_RING, SEMI_RING_4]
"""Rings whose shares split into summands."""
SEMI_RING_5 = Backend("semi2k", 5, "Z2^64", 4)


def trit_inputs(trits: np.ndarray) -> dict[int, np.ndarray]:
    """Each party's trits, in both forms."""
    return {i: np.concatenate([a, np.where(a == 2, -1, a)]) for i, a in enumerate(trits)}


@pytest.mark.parametrize("backend", ALL, ids=str)
@pytest.mark.parametrize("contributors", [1, 2, 3])
def test_z2_to_zq(backend: Backend, contributors: int) -> None:
    bits = RNG.integers(0, 2, (contributors, 200))
    for method in ("poly", "bits"):
        if method == "poly" or backend in SPLITTING:
            arguments = {"contributors": contributors, "size": 200, "method": method}
            out = run("z2_to_zq", arguments, backend, private=dict(enumerate(bits)))
            assert np.array_equal(out.shares, bits.sum(0) % 2)


@pytest.mark.parametrize("backend", ALL, ids=str)
@pytest.mark.parametrize("contributors", [1, 2, 3, 5])
def test_bits_are_proven(backend: Backend, contributors: int) -> None:
    """What is opened is zero for bits alone, also modulo 2^k, whatever the others give."""
    contributors = min(contributors, backend.parties)
    bits = RNG.integers(0, 2, (contributors, 60))
    arguments = {"contributors": contributors, "size": 60}
    out = run("bit_inputs", arguments, backend, private=dict(enumerate(bits)))
    assert np.array_equal(out.shares, bits.sum(0) % 2) and not out.public.any()
    for wrong in (2, -1, 3, 1 << 32, 1 << 62):
        bits[0, 7] = wrong
        found = run("bit_inputs", arguments, backend, private=dict(enumerate(bits))).public.reshape(contributors, -1)
        assert np.flatnonzero(found).tolist() == [7]


@pytest.mark.parametrize("backend", ALL, ids=str)
@pytest.mark.parametrize("contributors", [1, 3])
def test_sum_inputs(backend: Backend, contributors: int) -> None:
    words = RNG.integers(-(2**40), 2**40, (contributors, 200))
    out = run("sum_inputs", {"contributors": contributors, "size": 200}, backend, private=dict(enumerate(words)))
    assert np.array_equal(out.shares, words.sum(0))


@pytest.mark.parametrize("backend", ALL, ids=str)
@pytest.mark.parametrize("contributors", [2, 3])
@pytest.mark.parametrize("method", ["bilinear", "poly"])
def test_z3_to_zq(backend: Backend, contributors: int, method: str) -> None:
    if method == "poly" and backend not in FIELDS:
        pytest.skip("1/24 does not exist modulo 2^k")
    trits = RNG.integers(0, 3, (contributors, 9 * 7))
    for i in range(contributors):  # all combinations of the first two, and of the others
        trits[i, :9] = (np.arange(9) // 3**i) % 3
    arguments = {"contributors": contributors, "size": 63, "method": method, "modulus": backend.modulus if method == "poly" else 0}
    out = run("z3_to_zq", arguments, backend, private=trit_inputs(trits))
    assert np.array_equal(out.shares, trits.sum(0) % 3)


def indicator_inputs(trits: np.ndarray) -> dict[int, np.ndarray]:
    """Each party's trits as indicators of 1 and of 2."""
    return {i: np.concatenate([a == 1, a == 2]).astype(np.int64) for i, a in enumerate(trits)}


@pytest.mark.parametrize("backend", SPLITTING, ids=str)
@pytest.mark.parametrize("contributors", [2, 3, 4])
def test_trits_in_the_binary_domain(backend: Backend, contributors: int) -> None:
    contributors = min(contributors, max(backend.parties, 2))
    trits = RNG.integers(0, 3, (contributors, 9 * 7))
    for i in range(contributors):
        trits[i, :9] = (np.arange(9) // 3**i) % 3
    total = trits.sum(0) % 3
    for program, size, want in (("z3_to_zq", "size", total), ("sample_ternary", "N", np.where(total == 2, -1, total))):
        arguments = {"contributors": contributors, size: 63, "method": "bits"}
        out = run(program, arguments, backend, private=indicator_inputs(trits))
        assert np.array_equal(out.shares, want)


def test_a_contributor_who_gives_no_trit_fixes_the_secret_as_the_headers_say() -> None:
    honest = RNG.integers(0, 3, 50)
    private = {0: trit_inputs(honest[None])[0], 1: np.concatenate([np.ones(50, np.int64), np.zeros(50, np.int64)])}
    for program, size, fixed in (("z3_to_zq", "size", 1), ("sample_ternary", "N", 0)):
        out = run(program, {"contributors": 2, size: 50}, EMULATE_FIELD, private=private)
        assert (out.shares == fixed).all(), "whatever the honest contributor gives"
        header = program_path(program).read_text().partition("import os")[0]
        assert "a contributor that gives no trit can fix" in header and "semi-honest contributors only" in header


LIFTS = [(a, b) for a in ALL for b in ALL if a.protocol == b.protocol and a.parties == b.parties]


@pytest.mark.parametrize(("source", "target"), LIFTS, ids=str)
@pytest.mark.parametrize("contributors", [1, 2, 3])
def test_lift(source: Backend, target: Backend, contributors: int) -> None:
    b, lam, size = 5, 40, 100
    x = RNG.integers(-(2**b), 2**b, size)
    x[:2] = -(2**b), 2**b - 1
    masks = dict(enumerate(RNG.integers(0, 2 ** (b + lam), (contributors, size))))
    arguments = {"contributors": contributors, "size": size, "b": b, "lam": lam, "modulus": source.modulus, "at": 3, "masks": "inputs"}
    opened = run("lift_open", arguments, source, private=masks, shares=[7, 7, 7, *x]).public
    assert opened.min() >= 0 and opened.max() < source.modulus // 2
    assert np.array_equal(opened, x + 2**b + sum(masks.values()))
    arguments = {"contributors": contributors, "size": size, "b": b, "masks": "inputs"}
    assert np.array_equal(run("lift_close", arguments, target, private=masks, public=opened).shares, x)


@pytest.mark.parametrize(("source", "target"), LIFTS, ids=str)
def test_lift_by_a_stored_mask(source: Backend, target: Backend) -> None:
    """Nothing is input: the sum of the masks is stored in both domains, and x takes its place."""
    b, lam, size = 5, 40, 100
    x, r = RNG.integers(-(2**b), 2**b, size), RNG.integers(0, 3 * 2 ** (b + lam), size)
    arguments = {"contributors": 3, "size": size, "b": b, "lam": lam, "modulus": source.modulus, "at": 3, "masks": "stored", "r_at": 3 + size}
    opened = run("lift_open", arguments, source, shares=[7, 7, 7, *x, *r]).public
    assert np.array_equal(opened, x + 2**b + r)
    arguments = {"contributors": 3, "size": size, "b": b, "masks": "stored", "at": 2}
    out = run("lift_close", arguments, target, public=opened, shares=[8, 9, *r, 5], opened_from=0)
    assert np.array_equal(out.shares, [8, 9, *x, 5])


def test_lift_between_small_domains() -> None:
    """Domains with just enough room: Z_2^48 to a 50-bit prime."""
    x = RNG.integers(-32, 32, 50)
    masks = dict(enumerate(RNG.integers(0, 2**45, (2, 50))))
    ring = Backend("ring", 3, "Z2^48", 1)
    arguments = {"contributors": 2, "size": 50, "b": 5, "lam": 40, "modulus": 2**48, "at": 0, "masks": "inputs"}
    opened = run("lift_open", arguments, ring, private=masks, shares=x).public
    prime = Backend("rep-field", 3, "F_1125899904679937", 1)
    out = run("lift_close", {"contributors": 2, "size": 50, "b": 5, "masks": "inputs"}, prime, private=masks, public=opened)
    assert np.array_equal(out.shares, x)


@pytest.mark.parametrize("backend", [*SPLITTING, SEMI_RING_5], ids=str)
@pytest.mark.parametrize("contributors", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("q", [3, 65537, Q60])
def test_zq_to_z2(backend: Backend, contributors: int, q: int) -> None:
    adder = "ripple" if (contributors + backend.parties) % 2 else "prefix"
    summands = RNG.integers(0, q, (contributors, 70))
    summands[:, 0], summands[:, 1] = 0, q - 1  # the least and the greatest sum
    summands[0, 2:5] = (-summands[1:, 2:5].sum(0, dtype=object) + [0, 1, -1]) % q  # residues 0, 1, q - 1
    total = summands.sum(0, dtype=object) % q
    out = min(q.bit_length(), 20)
    arguments = {"contributors": contributors, "size": 70, "q": q, "out": out, "adder": adder}
    rows = run("zq_to_z2_circuit", arguments, backend, private=summand_rows(summands, q)).shares.reshape(out, 70)
    assert rows.tolist() == [[int(x) >> b & 1 for x in total] for b in range(out)]


def test_zq_to_z2_gives_all_bits() -> None:
    summands = RNG.integers(0, Q60, (2, 50))
    arguments = {"contributors": 2, "size": 50, "q": Q60, "out": 60, "adder": "ripple"}
    out = run("zq_to_z2_circuit", arguments, SEMI_RING, private=summand_rows(summands, Q60))
    assert (out.shares.reshape(60, 50).T @ (1 << np.arange(60))).tolist() == (summands.sum(0) % Q60).tolist()
    assert out.timers[1].rounds - out.timers[1].offline_rounds == 119, "one AND less than two a bit, one after another"


def test_zq_to_z2_refuses_an_even_modulus() -> None:
    with pytest.raises(Exception, match="q = 64 is even"):
        arguments = {"contributors": 2, "size": 5, "q": 64, "out": 1, "adder": "prefix"}
        run("zq_to_z2_circuit", arguments, SEMI_RING, private={0: np.zeros(40), 1: np.zeros(35)})


BINARY_FIELDS = [EMULATE_FIELD, REPLICATED_FIELD, SEMI_FIELD, SEMI_FIELD_3, Backend("semi", 5, FIELD, 4)]
NEAR_2_50 = 2**50 - 27
"""A prime; 27 / 2^50 is below 2^-45."""


@pytest.mark.parametrize("backend", BINARY_FIELDS, ids=str)
@pytest.mark.parametrize(("q", "adder"), [(Q60, "ripple"), (Q60, "prefix"), (NEAR_2_50, "prefix")])
def test_zq_to_z2_by_a_mask(backend: Backend, q: int, adder: str) -> None:
    x = np.array([0, 1, 2, q // 2, q // 2 + 1, q - 2, q - 1, *RNG.integers(0, q, 63)])
    arguments = {"size": 70, "q": q, "out": 24, "adder": adder, "at": 2, "lam": 40}
    rows = run("zq_to_z2_mask", arguments, backend.over(f"F_{q}"), shares=[7, 7, *x]).shares.reshape(24, 70)
    assert rows.tolist() == [[int(v) >> b & 1 for v in x] for b in range(24)]


@pytest.mark.parametrize(("q", "lam"), [(65537, 40), (Q60, 43), (2**61 - 1, 60)])
def test_zq_to_z2_refuses_primes_that_a_mask_does_not_fit(q: int, lam: int) -> None:
    arguments = {"size": 5, "q": q, "out": 1, "adder": "ripple", "at": 0, "lam": lam}
    if q == 2**61 - 1:
        run("zq_to_z2_mask", arguments, SEMI_FIELD.over(f"F_{q}"), shares=[1] * 5)
    else:
        with pytest.raises(Exception, match=f"not within 2\\^-{lam} of uniform modulo {q}: take zq_to_z2_circuit"):
            run("zq_to_z2_mask", arguments, SEMI_FIELD.over(f"F_{q}"), shares=[1] * 5)


def _proven(trits: np.ndarray) -> dict[int, np.ndarray]:
    """Each party's indicators u and v, its masks x and y, and x u, y v, x v."""
    found = {}
    for i, a in enumerate(trits):
        u, v = (a == 1).astype(np.int64), (a == 2).astype(np.int64)
        x, y = RNG.integers(0, 1 << 59, (2, a.size), dtype=np.int64)
        found[i] = np.concatenate([u, v, x, y, x * u, y * v, x * v])
    return found


def _proofs(backend: Backend, private: dict[int, np.ndarray], size: int) -> tuple[np.ndarray, np.ndarray]:
    """What `trit_inputs` stores, and what it opens: for each contributor, u^2 - u, v^2 - v and u v."""
    out = run("trit_inputs", {"contributors": len(private), "N": size}, backend, private=private)
    return out.shares, out.public.reshape(len(private), 3, size)


@pytest.mark.parametrize("backend", FIELDS, ids=str)
@pytest.mark.parametrize("contributors", [1, 2, 3])
def test_trits_are_proven(backend: Backend, contributors: int) -> None:
    """Four rounds: the toss waits for all inputs."""
    contributors = min(contributors, max(backend.parties, 2))
    trits = RNG.integers(0, 3, (contributors, 50))
    shares, zeros = _proofs(backend, _proven(trits), 50)
    assert np.array_equal(shares.reshape(contributors, 2, 50), np.stack([trits == 1, trits == 2], axis=1))
    assert not zeros.any()


class _Opening:
    """An engine that keeps what is opened."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._opened: list[Any] = []

    def open(self, value: Any) -> Any:
        self._opened.append(self._engine.open(value))
        return self._opened[-1]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def transcript(self) -> list[np.ndarray]:
        return [np.asarray(self._engine.read(opened)).view(np.int64) for opened in self._opened]


def test_proofs_of_trits_reveal_nothing() -> None:
    """All that is opened: r, e = r u + x and f = r v + y of each contributor, and zeros. Of an honest one, whatever its trits are, e and f are uniform and have nothing to do with each
    other: false alarm 10^-6 a case."""
    size, q, cells = 1 << 13, MERSENNE, 32
    honest = _proven_trits(size)
    private = [honest, np.zeros_like(honest)]

    def one(session: Any) -> list[np.ndarray]:
        engine = _Opening(session.engine("semi", f"F_{q}", "trit_inputs", 1, None))
        run_program(engine, PROGRAMS / "trit_inputs.mpc", ["2", str(size)], ProgramIO(private_inputs=private[session.party]))
        return engine.transcript()

    r, e, f, _, _, *zeros = at_every_party(2, one)[1]
    assert len(zeros) == 6 and not np.any(zeros) and np.unique(r).size == size
    u, v, x, y = honest.reshape(7, size)[:4]
    assert all((int(r[i]) * int(u[i]) + int(x[i]) - int(e[i])) % q == 0 == (int(r[i]) * int(v[i]) + int(y[i]) - int(f[i])) % q for i in range(size))
    for fixed in range(3):
        at = u + 2 * v == fixed
        for seen in (e, f, (e - f) % q, (e - r) % q, (f - r) % q, (e - f + r) % q, (e - f - r) % q):
            assert chi_square_p(seen[at] // (q // cells + 1), uniform(range(cells))) > 1e-6


def test_what_is_no_trit_is_not_proven() -> None:
    """Whatever claims come with it: those of right factors, and those that would fit the toss 0."""
    size = 5
    for u, v in ((1, 1), (2, 0), (0, -1), (5, 7)):
        private = _proven(np.zeros((2, size), dtype=np.int64))
        words = private[1].reshape(7, size)
        words[0, 3], words[1, 3] = u, v
        x, y = words[2, 3], words[3, 3]
        for claims in ((x % 64 * u, y % 64 * v, x % 64 * v), (0, 0, 0)):
            words[2:4, 3] = words[2:4, 3] % 64
            words[4:, 3] = claims
            _, zeros = _proofs(REPLICATED_FIELD, {0: private[0], 1: words.reshape(-1)}, size)
            assert not zeros[0].any() and set(np.flatnonzero(zeros[1].any(0))) == {3}
            if claims != (0, 0, 0):
                wrong = [u * u != u, v * v != v, u * v != 0]
                assert (zeros[1][:, 3] != 0).tolist() == wrong
