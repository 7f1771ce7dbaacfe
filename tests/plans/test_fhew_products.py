"""Openings of FHEW keys: nothing but the bodies, and no product of two shares.

A product of two shares of degree t has degree 2t. Where such products are opened without a fresh sharing, the coefficients above t of the opened
polynomials are those of s_i(x) z_k(x) alone: noise and a z have degree t. For 3 parties the coefficient of x^2 is the product of the slopes of s_i and
of z_k, so a party knows all ratios of the slopes of s; with its own shares, two guesses for one bit decide all bits.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from keyquorum import _engine, api
from keyquorum.dsl import ProgramIO, ShareVector, run_program
from keyquorum.dsl.context import current
from keyquorum.dsl.values.secret import sint
from keyquorum.fhe.fhew import KINDS, body_residues
from keyquorum.fhe.lwe import FHEW_SETS
from keyquorum.model.resources import program_path
from keyquorum.programs import Segment
from keyquorum.programs.signatures import rgsw_bodies
from keyquorum.schemes.fhew.keygen import FhewRequest
from scipy import stats

from tests.schemes.test_fhew import TINY

Q = 9007199254614017
BITS, DEGREE, LEVELS = 40, 16, 8
RNG = np.random.default_rng(7)
Shares = dict[int, list[Any]]


def opened_shares(monkeypatch: pytest.MonkeyPatch) -> Shares:
    """Every party's shares of what programs open to all from now on, by its number, [parts, count] each."""
    taken: Shares = defaultdict(list)
    lock, reveal = threading.Lock(), sint.reveal

    def recorded(self: Any, check: bool = True) -> Any:
        engine = current().engine
        if self.value.kind != "c":
            shares = np.frombuffer(engine.export(self.value), dtype="<u8").reshape(engine.share_parts, -1)
            with lock:
                taken[engine.party].append(shares.astype(object))
        return reveal(self, check)

    monkeypatch.setattr(sint, "reveal", recorded)
    return taken


def top_coefficients(shares: list[Any], threshold: int) -> Any:
    """Coefficients above the threshold of the polynomials through the shares of all parties, party i at i + 1: [n - 1 - t, count]."""
    n = len(shares)
    matrix = [[pow(i + 1, k, Q) for k in range(n)] for i in range(n)]
    inverse = inverted(matrix)
    rows = [sum(inverse[k][i] * shares[i] for i in range(n)) % Q for k in range(threshold + 1, n)]
    return np.stack(rows)


def inverted(matrix: list[list[int]], q: int = Q) -> list[list[int]]:
    """Inverse modulo q, by Gauss and Jordan."""
    n = len(matrix)
    rows = [[*row, *(int(i == j) for j in range(n))] for i, row in enumerate(matrix)]
    for i in range(n):
        at = next(j for j in range(i, n) if rows[j][i] % q)
        rows[i], rows[at] = rows[at], rows[i]
        factor = pow(rows[i][i], -1, q)
        rows[i] = [v * factor % q for v in rows[i]]
        for j in range(n):
            if j != i:
                rows[j] = [(a - rows[j][i] * b) % q for a, b in zip(rows[j], rows[i], strict=True)]
    return [row[n:] for row in rows]


def attack(squares: Any, own: Any) -> list[list[int]]:
    """Secrets that fit the coefficients of x^2 of s_i z_k, [bits, N], and the attacker's own shares of s, at 1."""
    known = [k for k in range(squares.shape[1]) if squares[0, k] % Q]
    if not known:
        return []
    ratios = [int(v) * pow(int(squares[0, known[0]]), -1, Q) % Q for v in squares[:, known[0]]]
    found = []
    for guess in (0, 1):
        step = (int(own[0]) - guess) % Q
        bits = [(int(v) - r * step) % Q for v, r in zip(own, ratios, strict=True)]
        if set(bits) <= {0, 1}:
            found.append(bits)
    return found


def shared(values: Any, degree: int, parties: int) -> list[Any]:
    """Shamir shares of a vector."""
    coefficients = [np.asarray(values, dtype=object), *(RNG.integers(0, Q, np.shape(values)).astype(object) for _ in range(degree))]
    return [sum(c * pow(i + 1, k, Q) for k, c in enumerate(coefficients)) % Q for i in range(parties)]


def model(fresh: bool) -> tuple[list[Any], Any, Any]:
    """The opened shares of rows (0, 0) as this file's own algebra makes them, for 3 parties: a z + e - s_i z. ``fresh``: whether products are shared
    anew. Returns them, the bits, and party 0's shares of the bits."""
    s, z = RNG.integers(0, 2, BITS), RNG.integers(0, Q, DEGREE)
    s[0] = 1
    of_s, of_z = shared(s, 1, 3), shared(z, 1, 3)
    products = [np.multiply.outer(x, y) % Q for x, y in zip(of_s, of_z, strict=True)]
    if fresh:
        weights = [3, -3, 1]  # of the value at 0 of a polynomial of degree 2
        again = [shared(p, 1, 3) for p in products]
        products = [sum(w * again[j][i] for j, w in enumerate(weights)) % Q for i in range(3)]
    a = RNG.integers(0, Q, (BITS, DEGREE)).astype(object)
    e = shared(RNG.integers(-9, 10, (BITS, DEGREE)), 1, 3)
    opened = [(a * of_z[i][None, :] + e[i] - products[i]) % Q for i in range(3)]
    return opened, s, of_s[0]


def test_the_attack_finds_all_bits_of_products_that_are_not_shared_anew() -> None:
    opened, s, own = model(fresh=False)
    squares = -top_coefficients([o.ravel() for o in opened], 1)[0].reshape(BITS, DEGREE) % Q
    assert attack(squares, own) == [s.tolist()]


def test_the_attack_finds_nothing_in_fresh_sharings() -> None:
    opened, _, own = model(fresh=True)
    squares = -top_coefficients([o.ravel() for o in opened], 1)[0].reshape(BITS, DEGREE) % Q
    assert not squares.any() and attack(squares, own) == []


@pytest.mark.parametrize(("protocol", "parties", "threshold"), [("shamir", 3, 1), ("shamir", 5, 2), ("shamir", 7, 3)])
def test_openings_of_the_program_have_degree_t(monkeypatch: pytest.MonkeyPatch, protocol: str, parties: int, threshold: int) -> None:
    """All shares of all bodies, which is more than any party sees, are on polynomials of degree t, whose upper coefficient is uniform."""
    taken = opened_shares(monkeypatch)
    s, z, e = RNG.integers(0, 2, BITS), RNG.integers(-1, 2, DEGREE), RNG.integers(-9, 10, BITS * 2 * LEVELS * DEGREE)
    a = RNG.integers(0, Q, e.size)
    own: dict[int, Any] = {}

    def one(session: Any) -> None:
        engine = session.engine(protocol, f"F_{Q}", "deal", None, None)
        share = ShareVector()
        values = np.concatenate([z, s, e]).astype(np.int64)
        share.write(engine, engine.export(engine.input(0, values.size, values if session.party == 0 else None)))
        own[session.party] = share.words[0, DEGREE : DEGREE + BITS].astype(object)
        engine = session.engine(protocol, f"F_{Q}", "rgsw_bodies", threshold, None)
        call = rgsw_bodies(count=BITS, N=DEGREE, q=Q, base_log=6, levels=LEVELS, **segments())
        run_program(engine, program_path(call.program), call.words, ProgramIO(public_inputs=[a], shares=share))

    sessions = _engine.local_sessions(parties, 60.0)
    with ThreadPoolExecutor(parties) as pool:
        for future in [pool.submit(one, session) for session in sessions]:
            future.result()
    assert [len(taken[i]) for i in range(parties)] == [1] * parties
    shares = [taken[i][0][0] for i in range(parties)]
    upper = top_coefficients(shares, threshold)
    assert not upper.any()
    squares = -upper[0].reshape(BITS, LEVELS, 2, DEGREE)[:, 0, 0] % Q
    assert attack(squares, own[0]) == []
    last = top_coefficients(shares, threshold - 1)[0]
    assert stats.chisquare(np.bincount((last >> 48).astype(np.int64), minlength=32)).pvalue > 1e-5


def segments() -> dict[str, Any]:
    """Where the program of the tests reads its shares."""
    return {"z": Segment(0, DEGREE), "s": Segment(DEGREE, BITS), "e": Segment(DEGREE + BITS, BITS * 2 * LEVELS * DEGREE)}


@pytest.mark.parametrize(("protocol", "noise"), [("shamir", "local"), ("rep-field", "local"), ("rep-field", "exact")])
def test_only_bodies_are_opened(monkeypatch: pytest.MonkeyPatch, protocol: str, noise: str) -> None:
    """As many values as the files have, and no pattern in the shares of replicated sharing either."""
    monkeypatch.setitem(FHEW_SETS, TINY.name, TINY)
    taken = opened_shares(monkeypatch)
    material = api.keygen_in_process(api.in_process_committee(3, protocol), FhewRequest(TINY, noise))
    for party in range(3):
        assert sum(shares.shape[1] for shares in taken[party]) == sum(body_residues(TINY, kind) for kind in KINDS)
        for part in range(taken[party][0].shape[0]):
            words = np.concatenate([shares[part] for shares in taken[party]])
            assert stats.chisquare(np.bincount((words >> 45).astype(np.int64), minlength=256)).pvalue > 1e-5
    assert len({m.info.transcript for m in material}) == 1
