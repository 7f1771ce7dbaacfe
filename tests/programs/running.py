"""Runs a program of the collection among in-process parties, with inputs and share files in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pytest
from keyquorum import _engine
from keyquorum.dsl import ProgramIO, ShareVector, run_program
from keyquorum.programs.header import header
from numpy.typing import NDArray

from tests.protocols import RING, SMALLEST_PRIMES, WITH_CHECKS, Backend

from .costs import PROGRAMS, defaults_of, expected

Ints = NDArray[np.int64]
T = TypeVar("T")
SEED = b"tests/programs"
NO_WORDS: Ints = np.empty(0, dtype=np.int64)


class InputsInOrder(ProgramIO):
    """Inputs of a run, private words before public ones: on MP-SPDZ both are in one file, in this order."""

    def take_private(self, engine: Any, owner: int, count: int) -> Ints | None:
        assert self._place == (0, 0), "a private input after a public one: read the private inputs first"
        return super().take_private(engine, owner, count)


@dataclass
class Outcome:
    """What a run gave: shares appended to the share file (opened, centred), outputs, traffic without correlated randomness."""

    shares: Ints
    public: Ints
    personal: dict[int, Ints]
    rounds: int
    sent: int
    timers: dict[int, Any]


def centred(values: Sequence[int] | NDArray[Any], modulus: int) -> Ints:
    """Representatives in [-M/2, M/2)."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iub" and (modulus < 1 << 62 or modulus == 1 << 64):
        if modulus == 1 << 64:
            return values.astype(np.uint64).view(np.int64)
        residues = (values.astype(np.int64 if values.dtype != np.uint64 else np.uint64) % modulus).astype(np.int64)
        return np.where(2 * residues >= modulus, residues - modulus, residues)
    reduced = [int(v) % modulus for v in values]
    return np.array([v - modulus if 2 * v >= modulus else v for v in reduced], dtype=np.int64)


def _share(session: Any, backend: Backend, values: Ints | None) -> ShareVector:
    if values is None or not len(values):
        return ShareVector()
    engine = session.engine(backend.protocol, backend.domain, "deal", None, SEED)
    secret = engine.input(0, len(values), values if session.party == 0 else None)
    made = ShareVector()
    made.write(engine, engine.export(secret))
    return made


def _open(session: Any, backend: Backend, shares: ShareVector, start: int) -> Ints:
    engine = session.engine(backend.protocol, backend.domain, "open", None, SEED)
    count = shares.length - start
    if count <= 0:
        return NO_WORDS
    opened: Ints = engine.read(engine.open(engine.import_(shares.export(start, count), count))).view(np.int64)
    return opened if backend.domain == RING else np.where(opened > backend.modulus // 2, opened - backend.modulus, opened)


def at_every_party(parties: int, one: Callable[[Any], T]) -> list[T]:
    """What ``one`` gives for the session of each party, all at once; a party that fails ends the others."""

    def ended(session: Any) -> T:
        try:
            return one(session)
        except BaseException as error:
            session.abort(f"{type(error).__name__}: {error}")
            raise

    with ThreadPoolExecutor(parties) as pool:
        return [f.result() for f in [pool.submit(ended, s) for s in _engine.local_sessions(parties, 60.0)]]


def run(
    program: str,
    arguments: Mapping[str, Any],
    backend: Backend,
    *,
    private: Mapping[int, Any] | None = None,
    public: Any = None,
    shares: Any = None,
    seed: bytes = SEED,
    check_costs: bool = True,
    opened_from: int | None = None,
) -> Outcome:
    """Runs a program with fixed engine randomness and checks its rounds and bytes against its header (not those of WITH_CHECKS).

    arguments: in the program's order, by the names of its formulas (a list is spliced in); private: words of each party;
    shares: clear values of the share file at the start. opened_from: first share that is opened at the end (default: those that were appended).
    """
    words = [str(w) for value in arguments.values() for w in (value if isinstance(value, list) else [value])]
    start = 0 if shares is None else len(shares)
    if backend.protocol != "emulate" and any(i >= backend.parties for i in private or {}):
        pytest.skip(f"{len(private or {})} contributors need as many parties")
    if backend.modulus < SMALLEST_PRIMES.get(backend.protocol, 0):
        pytest.skip(f"{backend.protocol} refuses the prime {backend.modulus}")
    words_of = {i: np.asarray(v, dtype=np.int64) for i, v in (private or {}).items()}
    dealt = None if shares is None else centred(shares, backend.modulus)

    def one(session: Any) -> tuple[Any, ...]:
        shares = _share(session, backend, dealt)
        io = InputsInOrder(
            private_inputs=words_of.get(session.party, NO_WORDS),
            public_inputs=[] if public is None else [np.asarray(public, dtype=np.int64)],
            other_inputs=words_of if backend.protocol == "emulate" else {},
            shares=shares,
        )
        engine = session.engine(backend.protocol, backend.domain, program, backend.threshold or None, seed)
        result = run_program(engine, PROGRAMS / f"{program}.mpc", words, io)
        stats = engine.stats()
        opened = _open(session, backend, shares, start if opened_from is None else opened_from)
        return opened, _joined(io.binary_outputs), _joined(io.personal_outputs), stats, result.timers

    results = at_every_party(backend.parties, one)
    opened, output, _, stats, timers = results[0]
    for other in results[1:]:
        assert np.array_equal(other[0], opened) and np.array_equal(other[1], output)
    outcome = Outcome(
        opened,
        output,
        {i: r[2] for i, r in enumerate(results)},
        stats["rounds"] - stats["offline_rounds"],
        sum(r[3]["bytes_sent"] - r[3]["offline_bytes_sent"] for r in results),
        timers,
    )
    if check_costs:
        given = defaults_of(program) | dict(arguments)
        stated = [eval(write.size, {}, given) for write in header(program).writes if write.size is not None]
        unknown = len(stated) < len(header(program).writes)
        appended = len(outcome.shares) - (0 if opened_from is None else start - opened_from)
        assert sum(stated) <= appended if unknown else sum(stated) == appended
    if check_costs and backend.protocol not in WITH_CHECKS:
        key = backend.protocol, backend.parties, backend.threshold, backend.domain, arguments
        assert (outcome.rounds, outcome.sent) == (expected(program, "rounds", *key), expected(program, "bytes", *key))
        for index, phase in ((1, "offline rounds"), (2, "online rounds")):
            if header(program).has(phase):
                rounds = timers[index].rounds - timers[index].offline_rounds if index in timers else 0
                assert rounds == expected(program, phase, *key), phase
    return outcome


def _joined(vectors: Sequence[Ints]) -> Ints:
    return np.concatenate([NO_WORDS, *vectors])
