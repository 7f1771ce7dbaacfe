"""Runs programs given as text among in-process parties."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from keyquorum import _engine
from keyquorum.dsl import ProgramIO, ProgramOptions, ProgramResult, run_program

Q60 = 1152921504606584833
FIELD = f"F_{Q60}"
EMULATE, RING = ("emulate", 1, "Z2^64"), ("ring", 3, "Z2^64")
EMULATE_FIELD, REP_FIELD, SHAMIR = ("emulate", 1, FIELD), ("rep-field", 3, FIELD), ("shamir", 3, FIELD)
SHAMIR_5 = ("shamir", 5, FIELD)
SEMI_2K, SEMI = ("semi2k", 2, "Z2^64"), ("semi", 2, FIELD)
SPDZ_2K, MASCOT = ("spdz2k", 2, "Z2^64"), ("mascot", 2, FIELD)
MAL_REP_FIELD, MAL_SHAMIR = ("mal-rep-field", 3, FIELD), ("mal-shamir", 3, FIELD)
Backend = tuple[str, int, str]
RINGS: list[Backend] = [EMULATE, RING, SEMI_2K]
FIELDS: list[Backend] = [EMULATE_FIELD, REP_FIELD, SHAMIR, SEMI]
MALICIOUS_FIELDS: list[Backend] = [MAL_REP_FIELD, MASCOT, MAL_SHAMIR]
BINARY: list[Backend] = [EMULATE, RING, SEMI_2K, EMULATE_FIELD, REP_FIELD, SEMI]
ALL: list[Backend] = [*RINGS, *FIELDS]


def name(backend: Backend) -> str:
    """Test id of a backend."""
    return f"{backend[0]}-{backend[1]}-{backend[2][:2]}"


@dataclass
class Party:
    """Result of a run at one party: printed text, inputs and outputs, cost."""

    io: ProgramIO
    printed: list[str] = field(default_factory=list)
    result: ProgramResult | None = None
    stats: dict[str, int] = field(default_factory=dict)
    preprocessed: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Correlated randomness made and used."""

    @property
    def lines(self) -> list[str]:
        return "".join(self.printed).splitlines()


def run(
    folder: Path,
    source: str,
    backend: Backend = EMULATE,
    *args: object,
    options: ProgramOptions | None = None,
    private: Mapping[int, Sequence[int]] | None = None,
    public: Sequence[Sequence[int]] = (),
    persistences: Sequence[Any] | None = None,
    helpers: Mapping[str, str] | None = None,
    numbers: Mapping[int, Sequence[Any]] | None = None,
    circuits: Mapping[str, str] | None = None,
) -> list[Party]:
    """Runs a program at all parties and returns the result of each."""
    path = folder / "Programs" / "Source" / "program.mpc"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(source))
    for module, text in (helpers or {}).items():
        helper = folder / "Programs" / "Library" / f"{module}.py"
        helper.parent.mkdir(exist_ok=True)
        helper.write_text(textwrap.dedent(text))
    for circuit, text in (circuits or {}).items():
        (folder / "Programs" / "Circuits").mkdir(exist_ok=True)
        (folder / "Programs" / "Circuits" / f"{circuit}.txt").write_text(text)
    protocol, n, domain = backend
    words = {i: np.array(v, dtype=np.int64) for i, v in (private or {}).items()}

    def one(session: _engine.Session) -> Party:
        engine = session.engine(protocol, domain, "test")
        io = ProgramIO(
            private_inputs=words.get(session.party, np.empty(0, dtype=np.int64)),
            public_inputs=[np.array(v, dtype=np.int64) for v in public],
            other_inputs=words if protocol == "emulate" else {},
        )
        for player, given in (numbers or {}).items():
            if player == session.party or protocol == "emulate":
                io.numbers[player] = list(given)
        if persistences is not None:
            io.shares = persistences[session.party]
        party = Party(io)
        io.stdout = party.printed.append
        try:
            party.result = run_program(engine, path, [str(a) for a in args], io, options)
        except BaseException as error:
            session.abort(str(error))
            raise
        party.stats, party.preprocessed = engine.stats(), engine.preprocessed()
        return party

    sessions = _engine.local_sessions(n, 30.0)
    with ThreadPoolExecutor(n) as pool:
        futures = [pool.submit(one, s) for s in sessions]
        errors = [f.exception() for f in futures]
        own = [e for e in errors if e is not None and not isinstance(e, _engine.NetworkError)]
        if own or any(errors):
            raise own[0] if own else next(e for e in errors if e is not None)
        return [f.result() for f in futures]


def printed(folder: Path, source: str, backend: Backend = EMULATE, *args: object, **options: Any) -> list[str]:
    """The lines that party 0 prints; all parties must print the same."""
    parties = run(folder, source, backend, *args, **options)
    assert all(p.lines == parties[0].lines for p in parties)
    return parties[0].lines


def shown(pairs: Sequence[tuple[str, str]]) -> str:
    """A program that prints every expression on a line of its own."""
    return "\n".join(f"print_ln('%s', {expression})" for expression, _ in pairs)
