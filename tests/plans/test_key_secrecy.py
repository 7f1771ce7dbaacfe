"""Secrecy of the bootstrapping key of FHEW, exhaustively: what t parties see fits every short secret of 8 bits, by exactly one tape of the others each.

The engine draws its randomness by itself, so this is a model in this process of the messages of `rgsw_bodies` over Shamir's sharing (Source/mpc,
protocol shamir): shares of the inputs, a fresh sharing of every local product (Gennaro, Rabin, Rabin, PODC 1998), of which the engine expands some shares
from common seeds, and the opened shares of the bodies. The
openings of the program itself, run by the engine, are compared with what bodies and own shares determine, as in the model.

The bodies are public, so a secret comes with the noise that gives these bodies: LWE hides which noise is short. If for every secret there is exactly
one tape (all random coefficients of the other parties) that gives what the parties saw, then what they saw is equally likely under every secret.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from keyquorum import _engine
from keyquorum.dsl import ProgramIO, ShareVector, run_program
from keyquorum.model.resources import program_path
from keyquorum.programs import Segment
from keyquorum.programs.signatures import rgsw_bodies

from .test_fhew_products import inverted, opened_shares

Q, BITS, DEGREE, LEVELS, BASE = 97, 8, 16, 1, 6
"""A prime of 7 bits that is 1 modulo 2N = 32, so one digit of 6 bits; ring secrets have 16 coefficients."""
WEIGHT = 1 << (Q.bit_length() - BASE * LEVELS)
COMMITTEES = [(3, 1), (5, 2)]
Ints = Any
"""Arrays of Python integers modulo Q."""


def evaluate(coefficients: list[Ints], party: int) -> Ints:
    """The share of a party: the polynomial with these coefficients, the constant first, at party + 1."""
    return sum(c * pow(party + 1, k, Q) for k, c in enumerate(coefficients)) % Q


def at_zero(points: int) -> list[int]:
    """Lagrange coefficients of the value at 0 by the shares of the first parties."""
    return inverted([[pow(i + 1, k, Q) for k in range(points)] for i in range(points)], Q)[0]


@dataclass
class Tape:
    """Coefficients above the constant: of the sharings of s, z and e, and of every party's fresh sharing of its products, [t] arrays each."""

    s: list[Ints]
    z: list[Ints]
    e: list[Ints]
    again: list[list[Ints]]


@dataclass
class Run:
    """What there is to be seen: shares of every party, the messages that it gets with its shares of the others' products, and opened shares."""

    s: list[Ints]
    z: list[Ints]
    e: list[Ints]
    messages: list[list[Ints]]
    opened: list[Ints]


def products(s: Ints, z: Ints) -> Ints:
    """s_i z_k at all NTT places, [BITS, DEGREE]."""
    return np.multiply.outer(s, z) % Q


def bodies(a: Ints, z: Ints, e: Ints, s: Ints, p: Ints) -> Ints:
    """Of row 0 and row 1 of every bit, [BITS, 2, DEGREE]: a z + e - g p, and a z + e + g s. Of values, and of shares."""
    plain = np.stack([-WEIGHT * p, np.repeat(WEIGHT * s[:, None], DEGREE, 1)], axis=1)
    return (a * z + e + plain) % Q


def model(n: int, t: int, a: Ints, s: Ints, z: Ints, e: Ints, tape: Tape, fresh: bool = True) -> Run:
    """All messages. ``fresh``: whether products are shared anew; without it their shares have degree 2t and are opened as they are."""
    of_s, of_z, of_e = ([evaluate([x, *c], i) for i in range(n)] for x, c in ((s, tape.s), (z, tape.z), (e, tape.e)))
    local = [products(x, y) for x, y in zip(of_s, of_z, strict=True)]
    dealers = 2 * t + 1
    messages = [[evaluate([local[d], *tape.again[d]], i) for d in range(dealers)] for i in range(n)]
    weights = at_zero(dealers)
    shared = [sum(w * m for w, m in zip(weights, got, strict=True)) % Q for got in messages] if fresh else local
    opened = [bodies(a, of_z[i], of_e[i], of_s[i], shared[i]) for i in range(n)]
    return Run(of_s, of_z, of_e, messages if fresh else [[] for _ in range(n)], opened)


def seen(run: Run, parties: tuple[int, ...]) -> list[Ints]:
    """What these parties see: their shares and messages, and everybody's opened shares."""
    mine = [part for i in parties for part in (run.s[i], run.z[i], run.e[i], *run.messages[i])]
    return [*mine, *run.opened]


def through(constant: Ints, shares: list[Ints], parties: tuple[int, ...]) -> list[Ints]:
    """The only coefficients 1 to t of a polynomial with this constant and these t shares."""
    inverse = inverted([[pow(i + 1, k, Q) for k in range(1, len(parties) + 1)] for i in parties], Q)
    return [sum(c * (share - constant) for c, share in zip(row, shares, strict=True)) % Q for row in inverse]


def tape_for(run: Run, parties: tuple[int, ...], own: Tape, secrets: tuple[Ints, Ints, Ints], t: int) -> Tape:
    """The only tape of the other parties under these secrets that gives these parties their shares and messages; their own fresh sharings stay."""
    s, z, e = secrets
    lines = [through(x, [found[i] for i in parties], parties) for x, found in ((s, run.s), (z, run.z), (e, run.e))]
    again = []
    for d in range(2 * t + 1):
        local = products(evaluate([s, *lines[0]], d), evaluate([z, *lines[1]], d))
        again.append(own.again[d] if d in parties else through(local, [run.messages[i][d] for i in parties], parties))
    return Tape(*lines, again)


def drawn(rng: np.random.Generator, n: int, t: int) -> Tape:
    """A uniform tape."""

    def one(*shape: int) -> list[Ints]:
        return [rng.integers(0, Q, shape).astype(object) for _ in range(t)]

    return Tape(one(BITS), one(DEGREE), one(BITS, 2, DEGREE), [one(BITS, DEGREE) for _ in range(n)])


def secrets_and_masks(rng: np.random.Generator) -> tuple[Ints, Ints, Ints, Ints]:
    """The masks a, bits s, values z of the ring secret, and noise e."""
    shapes = ((BITS, 2, DEGREE), (BITS,), (DEGREE,), (BITS, 2, DEGREE))
    a, s, z, e = (rng.integers(0, high, shape).astype(object) for high, shape in zip((Q, 2, Q, 5), shapes, strict=True))
    return a, s, z, e


def all_secrets() -> list[Ints]:
    """Every short secret."""
    return [np.array([number >> i & 1 for i in range(BITS)], dtype=object) for number in range(1 << BITS)]


def same(one: list[Ints], other: list[Ints]) -> bool:
    """Whether two views are equal."""
    return all(np.array_equal(x, y) for x, y in zip(one, other, strict=True))


@pytest.mark.parametrize(("n", "t"), COMMITTEES)
def test_every_secret_is_equally_likely(n: int, t: int) -> None:
    """For all sets of t parties, all 256 short secrets, each with another ring secret, and all messages."""
    rng = np.random.default_rng(n)
    a, s, z, e = secrets_and_masks(rng)
    own = drawn(rng, n, t)
    run = model(n, t, a, s, z, e, own)
    public = bodies(a, z, e, s, products(s, z))
    for parties in list(combinations(range(n), t))[:4]:
        view = seen(run, parties)
        for other in all_secrets():
            ring = rng.integers(0, Q, DEGREE).astype(object)
            noise = (public - bodies(a, ring, 0 * e, other, products(other, ring))) % Q
            secrets = (other, ring, noise)
            tape = tape_for(run, parties, own, secrets, t)
            assert same(seen(model(n, t, a, *secrets, tape), parties), view)


def test_products_that_are_not_shared_anew_are_seen() -> None:
    """The same search among openings of degree 2t leaves the secret alone, with its own ring secret."""
    rng = np.random.default_rng(3)
    a, s, z, e = secrets_and_masks(rng)
    run = model(3, 1, a, s, z, e, drawn(rng, 3, 1), fresh=False)
    public = bodies(a, z, e, s, products(s, z))
    fitting = []
    for other in all_secrets():
        noise = (public - bodies(a, z, 0 * e, other, products(other, z))) % Q
        lines = [through(x, [found[0]], (0,)) for x, found in ((other, run.s), (z, run.z), (noise, run.e))]
        if same(seen(model(3, 1, a, other, z, noise, Tape(*lines, [[0 * z] for _ in range(3)]), fresh=False), (0,)), seen(run, (0,))):
            fitting.append(other.tolist())
    assert fitting == [s.tolist()]


@pytest.mark.parametrize(("n", "t"), COMMITTEES)
def test_openings_of_the_program_fit_every_secret(monkeypatch: pytest.MonkeyPatch, n: int, t: int) -> None:
    """Of the program in the engine, with transformed noise. The bodies, which fit every secret, and the t parties' own opened shares determine all
    opened shares: nothing else about a secret is in them."""
    taken = opened_shares(monkeypatch)
    rng = np.random.default_rng(n + 10)
    a, s, z, e = secrets_and_masks(rng)
    own: dict[int, Ints] = {}

    def one(session: Any) -> None:
        engine = session.engine("shamir", f"F_{Q}", "deal", None, None)
        share, values = ShareVector(), np.concatenate([z, s, e.ravel()]).astype(np.int64)
        share.write(engine, engine.export(engine.input(0, values.size, values if session.party == 0 else None)))
        own[session.party] = share.words[0].astype(object)
        engine = session.engine("shamir", f"F_{Q}", "rgsw_bodies", t, None)
        call = rgsw_bodies(
            count=BITS, N=DEGREE, q=Q, base_log=BASE, levels=LEVELS, noise="transformed",
            z=Segment(0, DEGREE), s=Segment(DEGREE, BITS), e=Segment(DEGREE + BITS, e.size),
        )  # fmt: skip
        public = [a.ravel().astype(np.int64)]
        run_program(engine, program_path(call.program), call.words, ProgramIO(public_inputs=public, shares=share))

    run_all(one, n)
    opened = [taken[i][0][0].reshape(BITS, 2, DEGREE) for i in range(n)]
    public = sum(w * o for w, o in zip(at_zero(n), opened, strict=True)) % Q
    parties = tuple(range(t))
    predicted = [evaluate([public, *through(public, [opened[i] for i in parties], parties)], i) for i in range(n)]
    assert same(predicted, opened)
    of_z, of_s, of_e = (
        [own[i][start : start + size].reshape(shape) for i in range(n)]
        for start, size, shape in ((0, DEGREE, (DEGREE,)), (DEGREE, BITS, (BITS,)), (DEGREE + BITS, e.size, (BITS, 2, DEGREE)))
    )
    ntt = _engine.Ntt(Q, DEGREE)
    of_z = [ntt.forward(share.astype(np.uint64)).astype(object) for share in of_z]
    # row 1 has no product: every party's share of it is that of its own shares alone
    for i in range(n):
        assert np.array_equal(bodies(a, of_z[i], of_e[i], of_s[i], products(of_s[i], of_z[i]))[:, 1], opened[i][:, 1])
    ring = ntt.forward(z.astype(np.uint64)).astype(object)
    assert np.array_equal(public, bodies(a, ring, e, s, products(s, ring)))


def run_all(one: Callable[[Any], Any], n: int) -> None:
    """Every party in a thread."""
    sessions = _engine.local_sessions(n, 60.0)
    with ThreadPoolExecutor(n) as pool:
        for future in [pool.submit(one, session) for session in sessions]:
            future.result()
