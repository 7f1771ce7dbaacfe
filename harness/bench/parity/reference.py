"""The clear-text reference of a row: the program on ``emulate``, in this process."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from keyquorum import _engine
from keyquorum._engine import Engine
from keyquorum.dsl import ProgramIO, ShareVector, run_program
from keyquorum.model.protocols import CLEAR_TEXT
from keyquorum.model.resources import program_path

from .outcome import Case, Outcome, centred


def deal(engine: Engine, values: NDArray[np.int64] | None, modulus: int) -> ShareVector:
    """A share file with these clear values, which party 0 inputs."""
    if values is None or not len(values):
        return ShareVector()
    words = np.array(centred(values, modulus), dtype=np.int64)
    secret = engine.input(0, len(words), words if engine.party == 0 else None)
    made = ShareVector()
    made.write(engine, engine.export(secret))
    return made


def opened(engine: Engine, shares: ShareVector, start: int, modulus: int) -> list[int]:
    """Opens what a program appended to the share file."""
    count = shares.length - start
    if count <= 0:
        return []
    return centred(engine.read(engine.open(engine.import_(shares.export(start, count), count))).tolist(), modulus)


def program_io(case: Case, party: int, shares: ShareVector) -> ProgramIO:
    """Inputs of one party."""
    empty = np.empty(0, dtype=np.int64)
    return ProgramIO(
        private_inputs=case.private.get(party, empty),
        public_inputs=[] if case.public is None else [case.public],
        shares=shares,
    )


def words(vectors: list[NDArray[np.int64]], modulus: int) -> list[int]:
    """Output vectors, joined."""
    return centred([int(v) for vector in vectors for v in vector], modulus)


def reference(case: Case) -> Outcome:
    """Runs a case in clear text."""
    session = _engine.local_sessions(1)[0]
    shares = deal(session.engine(CLEAR_TEXT, case.domain, "deal"), case.shares, case.modulus)
    io = program_io(case, 0, shares)
    io.other_inputs = case.private
    start = shares.length
    run_program(session.engine(CLEAR_TEXT, case.domain, case.program), program_path(case.program), case.args, io)
    appended = opened(session.engine(CLEAR_TEXT, case.domain, "open"), shares, start, case.modulus)
    # One process stands for all parties: what a receiver gets is among the personal outputs.
    personal = words(io.personal_outputs, case.modulus)
    return Outcome(appended, words(io.binary_outputs, case.modulus), {-1: personal} if personal else {})


__all__ = ["deal", "opened", "program_io", "reference", "words"]
