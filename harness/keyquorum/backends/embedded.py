"""The embedded engine: programs run in this process, as one party of a session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keyquorum.dsl import Persistence, ProgramIO, run_program
from keyquorum.model.resources import program_path

Ints = NDArray[np.int64]


@dataclass
class ProgramOutput:
    """What a program gave this party: public vectors, and vectors revealed to it alone (both centred int64)."""

    public: Ints
    personal: Ints
    stats: dict[str, int] = field(default_factory=dict)


def run(
    session: Any,
    protocol: str,
    domain: str,
    program: str,
    args: Sequence[object],
    *,
    threshold: int | None = None,
    private: Ints | None = None,
    public: Sequence[Ints] = (),
    persistence: Persistence | None = None,
    seed: bytes | None = None,
) -> ProgramOutput:
    """Runs one program of the collection with inputs and share file in memory.

    ``private``: this party's input words, in the order in which the program asks for them. ``public``: the words of
    ``fixinput``, joined. ``persistence``: the share file of this domain, read and appended to. ``seed``: INSECURE, tests.
    """
    words = [str(a) for a in args]
    engine = session.engine(protocol, domain, " ".join([program, *words]), threshold, seed)
    io = ProgramIO(
        private_inputs=np.empty(0, dtype=np.int64) if private is None else private,
        public_inputs=[np.concatenate(public)] if public else [],
        persistence=Persistence() if persistence is None else persistence,
    )
    run_program(engine, program_path(program), words, io)
    empty = np.empty(0, dtype=np.int64)
    return ProgramOutput(
        np.concatenate([empty, *io.binary_outputs]),
        np.concatenate([empty, *io.personal_outputs]),
        engine.stats(),
    )
